"""What is sent to start an agent: what it needs at once first, and nothing that the other Pythons cannot take."""
from __future__ import annotations

import subprocess
import sys
from importlib.util import MAGIC_NUMBER

from support.pythons import every_python
from trainwatch.sources import boot

MAGIC = "import importlib.util, sys; sys.stdout.buffer.write(importlib.util.MAGIC_NUMBER)"
TELL = """
import sys
import trainwatch_launcher.agent.main as agent
ours = lambda: sorted(name for name in sys.modules if name.startswith("trainwatch_launcher"))
def main(stream, memory):
    print(*ours())
    asked = []
    def rest(compiled):
        asked.append(compiled)
        return stream.read()
    memory.rest = rest
    from trainwatch_launcher.agent import standing
    from trainwatch_launcher.reader import query
    print(*asked, standing.__name__)
    try:
        standing.no_such_thing
    except AttributeError as error:
        import traceback
        traceback.format_exc()
        print(error)
"""


@every_python
def test_an_agent_unpacks_at_its_start_what_it_imports_then_and_the_rest_when_it_is_asked_for(python):
    second = boot.SECOND.replace("from trainwatch_launcher.agent.main import main", TELL)
    program = boot.program()
    program = b"exec(%r)" % second.encode() + program[program.index(b"\n"):]
    like_ours = subprocess.run([python, "-c", MAGIC], capture_output=True).stdout == MAGIC_NUMBER
    given = program + boot.rest(like_ours)
    done = subprocess.run([python, "-I", "-S", "-c", boot.FIRST], input=given, capture_output=True)
    assert done.stderr == b""
    loaded, asked, error = done.stdout.decode().splitlines()
    files = {name: data for name, data in boot.packing.sources().items() if boot._wanted(name)}
    sources = {boot.packing.module_of(name): data.decode() for name, data in files.items()}
    assert set(loaded.split()) == boot.packing.needed(sources, [boot.MAIN])
    assert asked == f"{like_ours} trainwatch_launcher.agent.standing"
    assert error == "module 'trainwatch_launcher.agent.standing' has no attribute 'no_such_thing'"
    assert len(loaded.split()) < len(sources)
    assert sys.version_info >= (3, 10)
