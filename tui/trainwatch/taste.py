"""What the user likes: saved filters from the configuration, and how the table looked last, kept between starts."""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from trainwatch.model.look import Look, look_of
from trainwatch.model.query import NONE_SAVED

FILE = "table.json"


def path() -> Path:
    """Where the table's look is kept: among the user's state, which nobody edits by hand."""
    return platformdirs.user_state_path("trainwatch") / FILE


def load(file: Path | None = None) -> Look:
    """How the table looked last; the usual look when nothing is kept or it cannot be read."""
    try:
        return look_of(json.loads((file or path()).read_text("utf-8")))
    except (OSError, ValueError, RecursionError):
        return Look()


def save(look: Look, file: Path | None = None) -> None:
    """Keep how the table looks. A home that cannot be written to costs nothing but that."""
    file = file or path()
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(look.to_json()) + "\n", "utf-8")
        draft.replace(file)
    except OSError:
        return


@dataclass(frozen=True)
class Taste:
    """What the screens are given."""

    look: Look = field(default_factory=Look)
    filters: Mapping[str, str] = field(default_factory=lambda: NONE_SAVED)
    """Saved filters by name."""
    keep: Callable[[Look], None] = lambda look: None
    """Called with each new look of the table."""


def of_user(filters: Mapping[str, str]) -> Taste:
    """The user's own, kept from now on."""
    return Taste(load(), filters, save)
