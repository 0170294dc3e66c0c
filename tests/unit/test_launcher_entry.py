"""The launcher's entry: the path it leaves to import from, in every layout of a Python installation."""
from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from support.pythons import every_python

LAUNCHER = Path(__file__).resolve().parents[2] / "launcher"
ENTRY = LAUNCHER / "trainwatch_launcher" / "__main__.py"
LOOK = """
import runpy, sys
before = list(sys.path)
runpy.run_path({entry!r})
import _json, ctypes, fcntl, json, select, threading, zlib
library = json.__file__.rsplit("/", 2)[0]
print("\\n".join([library, *sys.path]))
"""


def cleaned(python, *options, entry=ENTRY, env=None, cwd="/") -> tuple[str, list[str]]:
    """(where the standard library is, the path that the entry leaves)."""
    done = subprocess.run([str(python), *options, "-c", LOOK.format(entry=str(entry))], capture_output=True, text=True,
                          env=env or {}, cwd=cwd)
    assert done.returncode == 0, done.stderr
    library, *path = done.stdout.split("\n")[:-1]
    return library, path


@every_python
@pytest.mark.parametrize("options", [[], ["-I"], ["-S"], ["-I", "-S"]], ids=" ".join)
def test_the_standard_library_comes_first_and_then_the_launcher(python, options):
    library, path = cleaned(python, *options)
    assert library in path
    assert all(place.startswith(library[:library.rindex("/")]) for place in path[:path.index(str(LAUNCHER))])
    assert all("-packages" in place for place in path[path.index(str(LAUNCHER)) + 1:])


def test_the_system_s_python_finds_its_library():
    library, path = cleaned("/usr/bin/python3")
    assert path.index(library) < path.index(str(LAUNCHER))


def test_a_virtual_environment_finds_its_base_s_library_and_its_own_packages(tmp_path):
    venv.create(tmp_path / "venv", symlinks=True)
    library, path = cleaned(tmp_path / "venv" / "bin" / "python3")
    assert library.startswith(sys.base_prefix)
    assert str(tmp_path / "venv") in path[-1]
    assert path[-1].endswith("site-packages")


def test_a_moved_home_is_where_the_library_is(tmp_path):
    (tmp_path / "lib").symlink_to(Path(sys.base_prefix) / "lib")
    python = f"{sys.base_prefix}/bin/python3"
    library, path = cleaned(python, env={"PYTHONHOME": str(tmp_path)})
    assert library.startswith(str(tmp_path))
    assert library in path


def test_a_working_directory_below_the_prefix_is_not_the_library():
    """/usr/src/app in a container whose Python's prefix is /usr."""
    below = Path(sys.prefix) / "lib"
    _, path = cleaned(sys.executable, env={"PYTHONPATH": f"{below}:{sys.base_prefix}/share::."}, cwd=below)
    assert {str(below), f"{sys.base_prefix}/share", "", "."}.isdisjoint(path)


def test_packages_that_lie_beside_the_launcher_come_last(tmp_path):
    site = tmp_path / "site-packages"
    (site / "trainwatch_launcher").mkdir(parents=True)
    entry = site / "trainwatch_launcher" / "__main__.py"
    entry.write_bytes(ENTRY.read_bytes())
    (site / "json.py").write_text("raise SystemExit('a stale backport')")
    library, path = cleaned(sys.executable, entry=entry, env={"PYTHONPATH": str(site)})
    assert path.index(library) < path.index(str(site))
    assert path.count(str(site)) == 1


def test_the_launcher_s_folder_runs_wherever_it_is_called_from():
    for start in (["trainwatch_launcher"], ["-I", "trainwatch_launcher"], ["./trainwatch_launcher/__main__.py"],
                  ["-m", "trainwatch_launcher"]):
        done = subprocess.run([sys.executable, *start, "--version"], cwd=LAUNCHER, capture_output=True, text=True)
        assert done.stdout.startswith("trainwatch-launch "), done.stderr
