"""Starts an agent where nothing is installed: a command that reads the program from its stdin, and that program.

The command is the same text for every host and run; whatever a user named travels behind it, in frames. The program is
the reader and the agent, as small as in the packed file, imported from memory, so that no file is left behind. Compiled
code goes with it for a host whose Python is like ours: that saves each of a thousand hosts the compiling. What only
some requests need stays here until an agent asks for it.
"""
from __future__ import annotations

import asyncio
import base64
import functools
import importlib.util
import json
import marshal
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from trainwatch import packing

PYTHONS = ("python3", *(f"python3.{minor}" for minor in range(14, 7, -1)), "/usr/bin/python3")
"""Tried in this order until one is new enough."""
TOO_OLD = 88
"""The command's exit code when none is."""
FIRST = f"import sys; sys.version_info < (3, 8) and sys.exit({TOO_OLD}); exec(sys.stdin.buffer.readline())"
SCRIPT = (
    'for p; do command -v "$p" >/dev/null 2>&1 || continue; '
    f'"$p" -I -S -c "{FIRST}"; r=$?; [ $r -eq {TOO_OLD} ] || exit $r; done; exit {TOO_OLD}'
)
MAIN = "trainwatch_launcher.agent.main"
OLDEST = 2
"""The version of marshal that every Python 3 reads."""
LEVEL = 6
"""Of compression: 9 takes four times as long for 2 % less."""
MAKING = threading.Lock()
ROOMS = ("agent", "reader", "rundir")
ENTER = "trainwatch_launcher/agent/enter.py"

SECOND = """
import marshal, sys, zlib
stream = sys.stdin.buffer
size = int(stream.readline())
data = stream.read(size)
if len(data) < size: sys.exit(0)
packages, magic, compiled, sources = marshal.loads(data)
ready = magic == sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
unpack = lambda data: marshal.loads(zlib.decompress(data))
modules = unpack(compiled if ready else sources)
class Memory:
    rest = None
    def find_spec(self, name, path=None, target=None):
        if name not in modules and self.rest and name.startswith("trainwatch_launcher."):
            modules.update(unpack(self.rest(ready)))
        if name not in modules: return None
        return sys.modules["_frozen_importlib"].ModuleSpec(name, self, origin=name, is_package=name in packages)
    def create_module(self, spec): return None
    def exec_module(self, module):
        code = modules[module.__name__]
        exec(marshal.loads(code) if ready else compile(code, module.__name__, "exec"), module.__dict__)
memory = Memory()
sys.meta_path.insert(0, memory)
from trainwatch_launcher.agent.main import main
main(stream, memory)
"""


def command(python: str = "") -> list[str]:
    """The command that starts an agent, with the Python named or the first that will do."""
    return ["sh", "-c", SCRIPT, "sh", *([python] if python else PYTHONS)]


async def prepared() -> bytes:
    """`program()`, which takes a moment the first time and stops nothing meanwhile."""
    return program() if _parts.cache_info().currsize else await asyncio.to_thread(program)


def program() -> bytes:
    """What to write to the command's stdin before the first frame."""
    with MAKING:  # once, however many hosts wait for it
        return _parts().program


def rest(compiled: bool) -> bytes:
    """What an agent asks for when it first needs it: modules, compiled by our Python, or their sources."""
    with MAKING:
        parts = _parts()
    return parts.compiled if compiled else parts.sources


@dataclass(frozen=True)
class _Parts:
    program: bytes
    compiled: bytes
    sources: bytes


@functools.cache
def _parts() -> _Parts:
    files = {name: data for name, data in packing.sources().items() if _wanted(name)}
    sources = {packing.module_of(name): data.decode("utf-8") for name, data in files.items()}
    packages = [packing.module_of(name) for name in files if name.endswith("/__init__.py")]
    compiled = {name: marshal.dumps(_bare(_compiled(name, text))) for name, text in sources.items()}
    first = packing.needed(sources, [MAIN])
    (code, more_code), (text, more_text) = _packed(compiled, first), _packed(sources, first)
    data = marshal.dumps((packages, importlib.util.MAGIC_NUMBER, code, text), OLDEST)
    return _Parts(b"exec(%r)\n%d\n" % (SECOND.encode("ascii"), len(data)) + data, more_code, more_text)


def _compiled(name: str, text: str) -> CodeType:
    code: CodeType = compile(text, name, "exec", dont_inherit=True, optimize=2)  # nobody reads docstrings there
    return code


def _bare(code: CodeType) -> CodeType:
    """The same without its line numbers, 40 % of it: the lines are not there, and answers tell an error in words."""
    inner = tuple(_bare(const) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.replace(co_consts=inner, co_linetable=b"")


def _packed(modules: Mapping[str, str | bytes], first: set[str]) -> list[bytes]:
    """Those that are needed first, and the rest."""
    parts = [{name: data for name, data in modules.items() if (name in first) is at_once} for at_once in (True, False)]
    return [zlib.compress(marshal.dumps(part, OLDEST), LEVEL) for part in parts]


def enter(python: str, plan: dict[str, Any]) -> list[str]:
    """The command that becomes the shell which an agent's `shell` described, on the host where that agent is.

    The helper's text and its argument are base64: whatever shell a host has between us and it finds nothing to expand.
    """
    argument = base64.b64encode(json.dumps(plan).encode("ascii")).decode("ascii")
    return [python, "-I", "-S", "-c", _enter_code(), argument]


@functools.cache
def _enter_code() -> str:
    text = packing.sources()[ENTER]
    packed = base64.b64encode(zlib.compress(text, 9)).decode("ascii")
    return f'import base64, zlib; exec(zlib.decompress(base64.b64decode("{packed}")))'


def _wanted(name: str) -> bool:
    package, _, rest = name.partition("/")
    if package != "trainwatch_launcher" or name == ENTER:
        return False
    return rest.partition("/")[0] in (*ROOMS, "__init__.py", "version.py")
