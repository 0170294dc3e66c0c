"""The base of plain values: named facts that never change, compared by what they hold.

What a frozen dataclass is, without importing `dataclasses`, which takes as long as a bare Python takes to start.
"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, TypeVar

    from typing_extensions import dataclass_transform

    F = TypeVar("F", bound="Facts")
else:
    from trainwatch_launcher.rundir.record import dataclass_transform


@dataclass_transform(frozen_default=True, eq_default=True)
class Facts:
    """Subclasses annotate their fields; a field without a default must be given. Raises TypeError otherwise."""

    if TYPE_CHECKING:
        _fields: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        facts = dict(zip(self._fields, values))
        if len(values) > len(self._fields) or facts.keys() & named.keys() or named.keys() - set(self._fields):
            raise TypeError("%s has the facts %s" % (type(self).__name__, ", ".join(self._fields)))
        facts.update(named)
        for name in self._fields:
            if name not in facts and not hasattr(type(self), name):
                raise TypeError("%s needs %s" % (type(self).__name__, name))
        self.__dict__.update(facts)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("%s does not change" % type(self).__name__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % item for item in self.to_dict().items()))

    def to_dict(self) -> dict[str, Any]:
        """All facts by name."""
        return dict(zip(self._fields, self._values()))

    def replace(self: F, **changes: Any) -> F:
        """A copy with some facts changed."""
        return type(self)(**{**self.to_dict(), **changes})

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._fields)
