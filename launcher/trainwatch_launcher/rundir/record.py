"""The base of all records: typed fields, JSON in and out, tolerant of what it does not know.

Not a dataclass, because importing `dataclasses` costs the launcher 12 ms before a training command may start.
"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Dict, Mapping, Tuple, Type, TypeVar

    from typing_extensions import dataclass_transform

    R = TypeVar("R", bound="Record")
else:
    def dataclass_transform(**_options):
        """Tell type checkers, and nobody else, that the class below makes constructors as dataclasses do."""
        return lambda cls: cls

FORMAT = 1
"""The version that this code writes. Readers accept it and older ones."""

NUMBER = (int, float)
KINDS = {"int": int, "float": NUMBER, "str": str, "bool": bool, "list": list, "dict": dict}


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
        _fields: ClassVar[Dict[str, Tuple[str, bool]]]

    def __init_subclass__(cls) -> None:
        # name -> (declared type, may be null); the annotations are strings because of the __future__ import
        cls._fields = {}
        for name, declared in cls.__annotations__.items():
            kind = str(declared).split("[")[0].split("|")[0].strip().lower()
            cls._fields[name] = (kind, "None" in str(declared))

    def __init__(self, **values: Any) -> None:
        for name, (_, nullable) in self._fields.items():
            if name in values:
                setattr(self, name, values.pop(name))
            elif not nullable and not hasattr(type(self), name):
                raise RecordError("%s needs %s" % (type(self).__name__, name))
        self.extra = values  # type: Dict[str, Any]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_json() == other.to_json()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        shown = ", ".join("%s=%r" % item for item in self.to_json().items() if item[1] is not None)
        return "%s(%s)" % (type(self).__name__, shown)

    def to_json(self) -> Dict[str, Any]:
        """All fields, unknown ones included, ready for `json.dumps`."""
        known = {name: getattr(self, name, None) for name in self._fields}
        return {**known, **self.extra}

    @classmethod
    def from_json(cls: Type[R], data: object) -> R:
        """A record from a decoded JSON object.

        A value of the wrong type counts as absent. Raises NewerFormatError for a format above `FORMAT`, and RecordError
        when `data` is no object or lacks a field that has no default.
        """
        if not isinstance(data, dict):
            raise RecordError("%s: expected an object, found %s" % (cls.__name__, type(data).__name__))
        version = data.get("format")
        if isinstance(version, int) and version > FORMAT:
            raise NewerFormatError("format %d is newer than this trainwatch (it knows format %d)" % (version, FORMAT))
        values = {}
        for name, value in data.items():
            declared = cls._fields.get(name)
            if declared is None or is_a(value, declared[0]):
                values[name] = value
        return cls(**values)

    def replace(self: R, **changes: Any) -> R:
        """A copy with some fields changed."""
        return type(self)(**{**self.to_json(), **changes})


def is_a(value: object, kind: str) -> bool:
    """Whether a decoded JSON value may stand in a field declared as `kind`; a bool is not a number here."""
    if isinstance(value, bool):
        return kind == "bool"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return False
    return isinstance(value, KINDS.get(kind, object))


def text_of(data: Mapping[str, Any], name: str) -> str:
    """The text under `name`, or an empty one when it is absent or not text."""
    value = data.get(name)
    return value if isinstance(value, str) else ""
