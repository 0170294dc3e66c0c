"""The base of all records: typed fields, JSON in and out, tolerant of what it does not know.

Not a dataclass, because importing `dataclasses` costs the launcher 12 ms before a training command may start.
"""
from __future__ import annotations

from sys import intern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Iterable, Mapping, TypeVar

    from typing_extensions import dataclass_transform

    R = TypeVar("R", bound="Record")
else:
    def dataclass_transform(**_options: object) -> Any:
        """Tell type checkers, and nobody else, that the class below makes constructors as dataclasses do."""
        return lambda cls: cls

FORMAT = 1
"""The version that this code writes. Readers accept it and older ones."""

NUMBER = (int, float)
SHORT = 64
"""Texts of fewer characters are worth sharing between records."""
MAX_NUMBER = 10**18
"""A number from here on counts as none: it is no time and no size, and arithmetic with it fails or overflows."""


class RecordError(ValueError):
    """A record lacks a field that it must have, or has it with the wrong type."""


class NewerFormatError(RecordError):
    """A record was written by a newer trainwatch, in a format that this one does not know."""


@dataclass_transform(kw_only_default=True, eq_default=True)
class Record:
    """A set of named, typed facts that is one JSON object in a file.

    Subclasses annotate their fields; a field without a default must be present. Fields that a reader does not know are
    kept in `extra` and written again.
    """

    if TYPE_CHECKING:
        _fields: ClassVar[dict[str, tuple[str, bool]]]
        _expected: ClassVar[dict[str, tuple[str, str, bool, object]]]
        _required: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        # name -> (declared type, may be null); the annotations are strings because of the __future__ import
        cls._fields = {}
        for name, declared in cls.__annotations__.items():
            kind, _, null = str(declared).partition("|")
            cls._fields[name] = (kind.strip(), null.strip() == "None")
            if cls._fields[name][1] and not hasattr(cls, name):
                setattr(cls, name, None)
        # the same for reading: with the one copy of each name that all records share, and its default
        cls._expected = {
            name: (name, kind, nullable, getattr(cls, name, cls)) for name, (kind, nullable) in cls._fields.items()
        }
        cls._required = tuple(name for name in cls._fields if not hasattr(cls, name))

    def __init__(self, /, **values: Any) -> None:  # "/": a fact in somebody's file may be named `self`
        for name in self._fields:
            if name in values:
                setattr(self, name, values.pop(name))  # the class holds the others' defaults
        for name in self._required:
            if name not in self.__dict__:
                raise RecordError("%s needs %s" % (type(self).__name__, name))
        self.extra: dict[str, Any] = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and type(self) is type(other) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((type(self), getattr(self, "time", None)))

    def __repr__(self) -> str:
        shown = ", ".join("%s=%r" % item for item in self.to_json().items() if item[1] is not None)
        return "%s(%s)" % (type(self).__name__, shown)

    def facts(self) -> dict[str, Any]:
        """The same without those of our fields that are null, which means the same and is half of a status."""
        known = {name: value for name in self._fields if (value := getattr(self, name)) is not None}
        return {**known, **self.extra}

    def to_json(self) -> dict[str, Any]:
        """All fields, unknown ones included, ready to be written as JSON."""
        known = {name: getattr(self, name) for name in self._fields}
        return {**known, **self.extra}

    @classmethod
    def from_json(cls: type[R], data: object) -> R:
        """A record from a decoded JSON object.

        A value of the wrong type counts as absent. Raises NewerFormatError for a format above `FORMAT`, and RecordError
        when `data` is no object or lacks a field that has no default.
        """
        if not isinstance(data, dict):
            raise RecordError("%s: expected an object, found %s" % (cls.__name__, type(data).__name__))
        version = data.get("v" if "v" in cls._fields else "format")
        if isinstance(version, NUMBER) and version > FORMAT:
            raise NewerFormatError("format %s is newer than this trainwatch (it knows format %d)" % (version, FORMAT))
        record = cls.__new__(cls)
        record.extra = {}
        record._take(data)
        return record

    def changed(self: R, data: Mapping[str, Any], gone: Iterable[str] = ()) -> R:
        """A copy with what decoded JSON says newly, as tolerant as `from_json`, and without the fields in `gone`.

        Raises RecordError when a field that has no default is gone.
        """
        record = type(self).__new__(type(self))
        record.__dict__.update(self.__dict__)
        record.extra = dict(self.extra)
        for names in (gone, data):
            for name in names:
                record.__dict__.pop(name, None)
                record.extra.pop(name, None)
        record._take(data)
        return record

    def _take(self, data: Mapping[str, Any]) -> None:
        """Take what a decoded object says, as far as it is understood."""
        # thousands may come in every second: no detour by the constructor, the commonest type first, nothing is kept of
        # what the class says anyway (half of a status), and one copy of what many events say alike
        known, extra, expected = self.__dict__, self.extra, self._expected
        for name, value in data.items():
            declared = expected.get(name)
            if declared is None:
                extra[intern(name)] = intern(value) if value.__class__ is str and len(value) < SHORT else value
                continue
            own, kind, nullable, default = declared
            if value.__class__ is float and kind == "float":  # `is_a` in short: its call is dear here
                if -MAX_NUMBER < value < MAX_NUMBER:
                    known[own] = value
            elif value != default and (is_a(value, kind) or (value is None and nullable)):
                known[own] = value
        for name in self._required:
            if name not in known:
                raise RecordError("%s needs %s" % (type(self).__name__, name))

    def replace(self: R, /, **changes: Any) -> R:
        """A copy with some fields changed."""
        return type(self)(**{**self.to_json(), **changes})


def is_a(value: object, kind: str) -> bool:
    """Whether a decoded JSON value may stand in a field declared as `kind`; a bool is not a number here."""
    found = value.__class__
    if kind == "float":  # the commonest first: a viewer asks this a hundred thousand times a second
        # the comparison is false for NaN too
        return (found is float or found is int) and -MAX_NUMBER < value < MAX_NUMBER  # type: ignore[operator]
    if kind == "int":
        return found is int and -MAX_NUMBER < value < MAX_NUMBER  # type: ignore[operator]
    if kind == "str":
        return found is str
    if kind == "bool":
        return found is bool
    if kind == "list[str]":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    raise TypeError("no field may be declared as %s" % kind)


def text_of(data: Mapping[str, Any], name: str) -> str:
    """The text under `name`, or an empty one when it is absent or not text."""
    value = data.get(name)
    return value if isinstance(value, str) else ""
