"""`trainwatch-launch`, the shell script: however it is installed and called, it finds a Python and its package."""
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.launching import ROOT
from trainwatch import packing
from trainwatch.packing import pack
from trainwatch_launcher.version import __version__

BARE = {"PATH": "/usr/bin:/bin"}
SCRIPT = ROOT / "launcher" / "bin" / "trainwatch-launch"


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """An installation as pip lays it out."""
    prefix = tmp_path / "an installation"
    packages = prefix / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    (prefix / "bin").mkdir(parents=True)
    shutil.copytree(ROOT / "launcher" / "trainwatch_launcher", packages / "trainwatch_launcher")
    shutil.copy(SCRIPT, prefix / "bin")
    (prefix / "bin" / "python3").symlink_to(sys.executable)
    return prefix


def version_from(command: list[str], **how) -> str:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, **how)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_finds_its_package_beside_it(prefix):
    assert __version__ in version_from([str(prefix / "bin" / "trainwatch-launch")], cwd="/", env=BARE)


def test_it_works_from_a_checkout():
    assert __version__ in version_from([str(SCRIPT)], cwd="/", env=BARE)


@pytest.mark.parametrize("absolute", [True, False])
def test_it_works_through_links_elsewhere(prefix, tmp_path, absolute):
    target = prefix / "bin" / "trainwatch-launch"
    (tmp_path / "first").mkdir()
    first = tmp_path / "first" / "launch"
    first.symlink_to(target if absolute else Path("..") / target.relative_to(tmp_path))
    second = tmp_path / "second"
    second.symlink_to("first/launch")
    assert __version__ in version_from([str(second)], cwd="/", env=BARE)


def test_it_works_when_called_by_a_name_without_a_slash(prefix):
    assert __version__ in version_from(["trainwatch-launch"], env={"PATH": f"{prefix}/bin:/usr/bin:/bin"})


def test_a_broken_python_environment_does_not_reach_it(prefix, tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('a broken site hook')")
    env = {**BARE, "PYTHONPATH": str(tmp_path), "PYTHONHOME": str(tmp_path), "PYTHONSTARTUP": "nowhere"}
    assert __version__ in version_from([str(prefix / "bin" / "trainwatch-launch")], cwd=tmp_path, env=env)


def test_without_any_python_the_command_runs_all_the_same(tmp_path):
    lonely = tmp_path / "bin"
    lonely.mkdir()
    script = shutil.copy(SCRIPT, lonely)
    text = Path(script).read_text().replace("/usr/bin/python3", str(lonely / "python3"))
    Path(script).write_text(text)
    done = subprocess.run(["/bin/sh", script, "--hold", "9", "--", "/bin/sh", "-c", "echo trained; exit 7"],
                          capture_output=True, text=True, env={"PATH": str(lonely)})
    assert (done.returncode, done.stdout) == (7, "trained\n")
    assert "no python3 here" in done.stderr


@pytest.mark.parametrize("entry", ["installed", "packed"])
def test_as_pid_1_a_stop_while_python_comes_up_is_not_lost(prefix, tmp_path, entry):
    # a container that is stopped as soon as it was started would train until it is killed
    python = tmp_path / "python" / "python3"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\nkill -s TERM $$\nexec {sys.executable} \"$@\"\n")
    python.chmod(0o755)
    program = prefix / "bin" / "trainwatch-launch"
    (prefix / "bin" / "python3").unlink()
    (prefix / "bin" / "python3").symlink_to(python)
    if entry == "packed":
        program = pack(tmp_path / "launch.pyz").path
    command = [str(program), f"--run-dir={tmp_path / 'run'}", "--hold=0", "--", "sh", "-c", "sleep 20; exit 9"]
    pid_1 = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    done = subprocess.run([*pid_1, *command], env={"PATH": f"{python.parent}:/usr/bin:/bin"}, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 143, done.stderr


def test_as_pid_1_the_command_inherits_a_clean_signal_state(prefix):
    show = ["grep", "-E", "SigBlk|TRAINWATCH_", "/proc/self/status", "/proc/self/environ"]
    command = [str(prefix / "bin" / "trainwatch-launch"), "--root=/dev/null/none", "--", *show]
    pid_1 = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    done = subprocess.run([*pid_1, *command], capture_output=True, env=BARE, check=False)
    assert b"SigBlk:\t0000000000000000" in done.stdout
    assert b"HELD" not in done.stdout
    assert b"EARLY" not in done.stdout


def test_script_and_packed_file_do_the_same_as_pid_1():
    text = SCRIPT.read_text()
    assert text[text.index("\nhold=") : text.index("self=$0")].rstrip() + "\n" in packing.HEAD
