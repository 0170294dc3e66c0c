"""How a person wants the table: its order, groups and columns. Pure."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainwatch.model.order import GROUPS, SORT_KEYS


@dataclass(frozen=True)
class Look:
    """What is remembered from one start to the next."""

    sort: str = "rank"
    """One of `order.SORT_KEYS`."""
    reverse: bool = False
    group: str = ""
    """One of `order.GROUPS`."""
    columns: tuple[str, ...] = ()
    """Titles of the columns in their order; empty: those that the width allows, as they come."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"sort": self.sort, "reverse": self.reverse, "group": self.group, "columns": list(self.columns)}


def look_of(data: object) -> Look:
    """A look from plain values; what is not understood is as if it had never been chosen."""
    facts: Mapping[Any, Any] = data if isinstance(data, dict) else {}
    sort, group, columns = facts.get("sort"), facts.get("group"), facts.get("columns")
    titles = [title for title in columns if isinstance(title, str)] if isinstance(columns, list) else []
    return Look(
        sort if sort in SORT_KEYS else "rank",
        facts.get("reverse") is True,
        group if group in GROUPS else "",
        tuple(dict.fromkeys(titles)),
    )
