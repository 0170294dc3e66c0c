"""What is sent to start an agent: what it needs at once first, and nothing that the other Pythons cannot take."""
from __future__ import annotations

import subprocess
import sys

from support.pythons import every_python
from trainwatch.sources import boot

TELL = """
import sys
import trainwatch_launcher.agent.main as agent
ours = lambda: sorted(name for name in sys.modules if name.startswith("trainwatch_launcher"))
def main(stream):
    print(*ours())
    rest = globals()["packed"]
    print(len(rest))
    from trainwatch_launcher.agent import standing
    print(len(rest), standing.__name__)
agent.main = main
"""


@every_python
def test_an_agent_unpacks_at_its_start_what_it_imports_then_and_the_rest_when_it_is_asked_for(python):
    second = boot.SECOND.replace("from trainwatch_launcher.agent.main import main", TELL)
    program = boot.program()
    program = b"exec(%r)" % second.encode() + program[program.index(b"\n"):]
    done = subprocess.run([python, "-I", "-S", "-c", boot.FIRST], input=program, capture_output=True)
    assert done.stderr == b""
    loaded, packed, after = done.stdout.decode().splitlines()
    sources = {boot._module(name): data.decode() for name, data in boot.packing.sources().items() if boot._wanted(name)}
    assert set(loaded.split()) == boot.needed_at_start(sources)
    assert packed == "1"
    assert after == "0 trainwatch_launcher.agent.standing"
    assert len(loaded.split()) < len(sources)
    assert sys.version_info >= (3, 10)
