"""JSON text to values and back, without the `json` package where its engine can be had alone.

With the package come `re` and `enum`: 4 ms of every launcher's and every agent's start, for patterns that are not
needed when all text is in one piece. Its engine, the module `_json`, is CPython's own and not documented; where it is
missing or made differently, the package does the same.
"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

WHITESPACE = " \t\n\r"


def _unknown(value: object) -> Any:
    raise TypeError("%s has no place in JSON" % type(value).__name__)


class _Rules:
    """What the engine asks for when it reads, as `json.JSONDecoder` sets it."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float, parse_int = float, int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.__getitem__


def _engine() -> tuple[Callable[[str], Any], Callable[..., str]]:
    import _json

    scan: Callable[..., Any] = _json.make_scanner(_Rules)  # type: ignore[arg-type]
    string = _json.encode_basestring_ascii
    encoders = [_json.make_encoder(None, _unknown, string, None, ":", ",", keys, False, True) for keys in (False, True)]

    def read(text: str) -> Any:
        text = text.strip(WHITESPACE)
        try:
            value, end = scan(text, 0)
        except StopIteration:
            raise ValueError("a value is missing") from None
        except SystemError:  # 3.10 and 3.11 want to raise the package's own error, and fail where it is not imported
            raise ValueError("not JSON") from None
        if end != len(text):
            raise ValueError("something follows the value")
        return value

    def write(value: object, sort_keys: bool = False) -> str:
        return "".join(encoders[sort_keys](value, 0))

    if write(read(' {"b": [1.5, "\\u00e9"], "a": null} '), True) != '{"a":null,"b":[1.5,"\\u00e9"]}':
        raise ValueError("made differently")
    return read, write


def _package() -> tuple[Callable[[str], Any], Callable[..., str]]:
    import json

    def write(value: object, sort_keys: bool = False) -> str:
        return json.dumps(value, separators=(",", ":"), sort_keys=sort_keys)

    return json.loads, write


try:
    _read, _write = _engine()
except Exception:  # noqa: BLE001 - whatever is different there, nobody's training may end by it
    _read, _write = _package()


def loads(text: str) -> Any:
    """The value of a text. Raises ValueError for what is no JSON, and RecursionError for what is nested too deeply."""
    return _read(text)


def dumps(value: object, sort_keys: bool = False) -> str:
    """A value as text in one line, ASCII only, no spaces. Raises TypeError for what JSON cannot hold."""
    return _write(value, sort_keys)
