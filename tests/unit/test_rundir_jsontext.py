"""JSON without the `json` package says what the package says, on every Python, and when only the package is there."""
from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.pythons import every_python
from trainwatch_launcher.rundir import jsontext

LAUNCHER = Path(__file__).resolve().parents[2] / "launcher"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
CHECK = """
import sys
sys.path.insert(0, sys.argv[1])
if sys.argv[2] == "package": sys.modules["_json"] = None
from trainwatch_launcher.rundir import jsontext
torn = '{"a": ["b", {"c": 1.5}], "d": "e"}'
for wrong in [torn[:length] for length in range(len(torn))] + ['{"a":}', '{,}', "{1: 2}", "[1 2]"]:
    try: jsontext.loads(wrong)
    except ValueError: continue
    raise SystemExit("took " + repr(wrong))
import json
value = {"b": [1, -2.5e300, float("inf"), None, True, 10**30], "a": {"\\u00e9\\n\\ud800": "\\U0001f600"}, "": []}
for text in (json.dumps(value), json.dumps(value, indent=2), " [] "):
    assert jsontext.loads(text) == json.loads(text), text
assert jsontext.dumps(value) == json.dumps(value, separators=(",", ":"))
assert jsontext.dumps(value, sort_keys=True) == json.dumps(value, separators=(",", ":"), sort_keys=True)
for wrong in ("", "[", "{} {}", "nul", "\\ufeff1", "[1,]", '"\\n"', "[" * 100000):
    try: jsontext.loads(wrong)
    except (ValueError, RecursionError): continue
    raise SystemExit("took " + repr(wrong))
print(jsontext._read.__module__)
"""


@given(VALUES)
def test_what_is_written_is_what_the_package_writes_and_is_read_back(value):
    text = jsontext.dumps(value)
    assert text == json.dumps(value, separators=(",", ":"))
    assert repr(jsontext.loads(text)) == repr(json.loads(text))


@given(st.text() | st.text(alphabet='[]{}",:0123456789.eE+-\\nultrfas \n\t\ufeff', max_size=12))
def test_what_is_no_json_for_the_package_is_none_here(text):
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - of whatever kind
            jsontext.loads(text)
    else:
        assert repr(jsontext.loads(text)) == repr(expected)


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(TypeError, match="bytes has no place in JSON"):
        jsontext.dumps([b"bytes"])
    assert math.isnan(jsontext.loads("NaN"))


@every_python
@pytest.mark.parametrize("engine", ["engine", "package"])
def test_every_python_reads_and_writes_the_same_with_its_engine_and_without(python, engine):
    done = subprocess.run([python, "-I", "-S", "-c", CHECK, str(LAUNCHER), engine], capture_output=True, text=True)
    assert done.stderr == ""
    # a Python whose engine has changed would be slower and nobody would know
    assert done.stdout.split() == ["json" if engine == "package" else "trainwatch_launcher.rundir.jsontext"]
    assert sys.version_info >= (3, 10)
