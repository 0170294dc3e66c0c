"""The packed file: one file that any worker's Python runs, whatever that worker's environment is like."""
from __future__ import annotations

import ast
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.pythons import every_python, installed
from support.users import NOBODY
from trainwatch import packing
from trainwatch.cli import main as trainwatch
from trainwatch.slimming import slim
from trainwatch_launcher import bundle
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.stacks import spy
from trainwatch_launcher.version import __version__

BARE = {"PATH": "/usr/bin:/bin"}
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount and become somebody else")


@pytest.fixture(scope="module")
def packed() -> Iterator[Path]:
    """The file, where everybody may run it."""
    with public_directory() as directory:
        packing.pack(directory / "trainwatch-launch.pyz")
        yield directory / "trainwatch-launch.pyz"


@pytest.fixture
def here() -> Iterator[Path]:
    """An empty directory where everybody may write."""
    with public_directory() as directory:
        yield directory


@contextlib.contextmanager
def public_directory() -> Iterator[Path]:
    """A new directory; pytest's own are closed to other users."""
    directory = Path(tempfile.mkdtemp(prefix="trainwatch-test-"))
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory)


def run(*start, here: Path, env=None, **how) -> subprocess.CompletedProcess[str]:
    """Run a command that fails with 3 under the packed file, which `start` starts, and check what was kept of it."""
    command = [*map(str, start), f"--run-dir={here}/run", "--hold=0", "--", "/bin/sh", "-c", "echo trained; exit 3"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=here, env=BARE if env is None else env,
                          timeout=60, **how)
    assert done.returncode == 3, done.stderr
    assert "exit code 3" in done.stderr
    assert "Traceback" not in done.stderr
    attempts = paths.numbered(str(here / "run" / paths.rank_name(0)), paths.ATTEMPT_PREFIX)
    assert (Path(attempts[-1][1]) / paths.OUTPUT).read_bytes() == b"trained\n"
    return done


# -- the file itself


def test_it_holds_the_launcher_s_sources_and_little_else(packed):
    archive = zipfile.ZipFile(packed)
    names = archive.namelist()
    assert names == sorted(names)
    together = list(bundle.sources_of(archive.read(bundle.NAME)))
    assert together == sorted(together)
    assert not set(names) & set(together)
    assert {"__main__.py", "trainwatch_launcher/cli.py"} <= set(names)
    assert {"trainwatch_launcher/reader/directory.py", "trainwatch_launcher/agent/main.py"} <= set(together)
    files = [*names, *together]
    files.remove(bundle.NAME)
    assert all(name.endswith(".py") for name in files)
    assert all(name.startswith("trainwatch_launcher/") for name in files if name not in ("__main__.py", "pynvml.py"))


def test_all_that_the_start_imports_lies_in_the_archive_by_itself(packed, here):
    """The rest is unpacked once the command runs."""
    script = """import sys
class Tell(list):
    def append(self, finder):
        list.append(self, finder)
        read = finder._read
        finder._read = lambda: sys.stderr.write("unpacked\\n") and read()
sys.meta_path = Tell(sys.meta_path)
sys.argv = sys.argv[1:]
import runpy
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    options = ["--root", here, "--no-lint", "--hold=0", "--"]
    for command, code, unpacked in (("true", 0, False), ("false", 1, True)):
        done = subprocess.run([sys.executable, "-I", "-c", script, packed, *options, command], capture_output=True,
                              text=True)
        assert done.returncode == code, done.stderr
        assert ("unpacked" in done.stderr) is unpacked, done.stderr


@every_python
def test_every_module_of_it_can_be_imported(packed, python):
    """Also the agent's and the reader's, which a launcher needs not."""
    script = """import sys, zipfile
sys.path.insert(0, sys.argv[1])
import trainwatch_launcher
files = list(sys.meta_path[-1]._read())
for file in files:
    __import__(file[:-3].replace("/__init__", "").replace("/", "."))
from trainwatch_launcher.diagnosis import diagnose
print(len(files), diagnose.__file__, "def diagnose" in diagnose.__loader__.get_source(diagnose.__name__))
"""
    done = subprocess.run([python, "-I", "-S", "-c", script, packed], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, file, has_source = done.stdout.split()
    assert int(count) > 80
    assert file == "trainwatch_launcher/diagnosis/diagnose.py"
    assert has_source == "True"


def test_what_is_packed_is_the_same_program_line_for_line():
    for name, source in packing.sources().items():
        slimmed = slim(source)
        assert shape(slimmed) == shape(source), name
        assert slimmed.count(b"\n") <= source.count(b"\n")
    head = b'#!/bin/sh\n"""Doc."""\nfrom __future__ import annotations\n'
    tricky = head + b'x = "#"  # why\ndef f():\n    """Says\n\n    it."""\n'
    assert slim(tricky) == b'#!/bin/sh\n\n\nx="#"\ndef f():\n ""\n'
    typed = b'class C(B):\n    a: int = 1\ndef f(\n    x: int = 1, *y: str\n) -> int:\n    z: str = "a"\n    return z\n'
    assert slim(typed) == b'class C(B):\n a:int=1\ndef f(\nx=1,*y\n):\n z="a"\n return z\n'


class Unsaid(ast.NodeTransformer):
    """A program without what only people and checkers read."""

    def visit_Expr(self, node):
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node

    def visit_If(self, node):
        is_for_checkers = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_for_checkers else self.generic_visit(node)

    def visit_Assign(self, node):
        return None if ast.unparse(node) == "TYPE_CHECKING = False" else self.generic_visit(node)

    def visit_ImportFrom(self, node):
        return None if node.module == "__future__" else node

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node):
        node.annotation = ast.Constant(0)
        assigned = ast.copy_location(ast.Assign([node.target], node.value), node)
        return node if node.value is None else self.generic_visit(assigned)


def shape(source):
    """What stands where in a program, and all values, without what strings that are statements and types say."""
    tree = Unsaid().visit(ast.parse(source))
    lines = [(type(node).__name__, node.lineno) for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return lines, ast.dump(tree)


def test_what_is_left_out_is_imported_by_nothing_that_is_packed():
    for name, source in packing.sources().items():
        for left_out in packing.NOT_NEEDED:
            module = left_out[:-len(".py")].replace("/", ".")
            parent, _, last = f"trainwatch_launcher.{module}".rpartition(".")
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ImportFrom):
                    names = {alias.name for alias in node.names}
                    assert node.module != f"{parent}.{last}", name
                    assert node.module != parent or last not in names, name


def test_py_spy_goes_with_it_when_it_is_wanted(tmp_path, monkeypatch, capsys):
    assert trainwatch(["pack", "-o", str(tmp_path / "x.pyz"), "--with-py-spy"]) == 0
    said = capsys.readouterr().out
    assert f"py-spy for {os.uname().machine}" in said
    packed = zipfile.ZipFile(tmp_path / "x.pyz").read(spy.MEMBER)
    assert packed == Path(sys.executable).with_name("py-spy").read_bytes()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert trainwatch(["pack", "-o", str(tmp_path / "y.pyz"), "--with-py-spy"]) == 1
    assert "pip install 'trainwatch[py-spy]'" in capsys.readouterr().err
    assert not (tmp_path / "y.pyz").exists()


def test_it_stays_small(packed, monkeypatch):
    monkeypatch.setattr(packing, "binding_version", lambda: None)
    assert len(packing.pack_bytes()) < 200_000


def test_its_entry_can_be_read_before_anything_is_imported(packed):
    """Else a zlib.py in PYTHONPATH would stand between a worker and its training."""
    entry = zipfile.ZipFile(packed).getinfo("__main__.py")
    assert entry.compress_type == zipfile.ZIP_STORED


PACK = "import sys; sys.path[:0] = sys.argv[1:]; from trainwatch import packing; packing.pack(packing.Path('x.pyz'))"


@pytest.mark.parametrize("python", [path for version, path in installed().items() if len(version) > 3][:4:3])
def test_the_same_sources_give_the_same_bytes(packed, tmp_path, python):
    copy = tmp_path / "another machine"
    for package in ("launcher/trainwatch_launcher", "tui/trainwatch"):
        source = Path(packing.__file__).parents[2] / package
        shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in copy.rglob("*"):
        path.chmod(0o700)
        os.utime(path, (1e9, 1e9))
    # nvidia-ml-py is in neither: -S
    plain = subprocess.run([python, "-I", "-S", "-c", PACK, str(copy)], cwd=tmp_path, umask=0o077, capture_output=True)
    assert plain.returncode == 0, plain.stderr
    again = subprocess.run([sys.executable, "-I", "-S", "-c", PACK, *[str(Path(packing.__file__).parents[2] / place)
                            for place in ("launcher", "tui")]], cwd=copy, umask=0o022, env={"TZ": "Asia/Tokyo"})
    assert again.returncode == 0
    assert (tmp_path / "x.pyz").read_bytes() == (copy / "x.pyz").read_bytes()
    assert os.access(tmp_path / "x.pyz", os.X_OK)
    assert (tmp_path / "x.pyz").stat().st_mode & 0o777 == 0o755


def test_the_driver_s_binding_goes_with_it_where_it_is_installed(tmp_path, monkeypatch):
    (tmp_path / "pynvml.py").write_text("NVML = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(packing, "binding_version", lambda: "13.580.82")
    made = packing.pack(tmp_path / "x.pyz")
    assert made.nvidia_ml_py == "13.580.82"
    assert zipfile.ZipFile(made.path).read("pynvml.py") == b"NVML = 1\n"


def test_another_package_of_the_binding_s_name_is_left_out(tmp_path, monkeypatch):
    (tmp_path / "pynvml").mkdir()
    (tmp_path / "pynvml" / "__init__.py").write_text("NVML = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(packing, "binding_version", lambda: "13.580.82")
    assert packing.binding_module() is None


# -- the command


def test_the_command_says_what_it_wrote_and_how_to_use_it(tmp_path, capsys):
    target = tmp_path / "my launcher.pyz"
    assert trainwatch(["pack", "-o", str(target)]) == 0
    said = capsys.readouterr().out
    for word in (str(target), f"{target.stat().st_size:,} bytes", "sha256", f"'{target}' --root", "-- COMMAND"):
        assert word in said, word
    assert trainwatch(["pack", "-o", str(target), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["path"], facts["size"], facts["version"]) == (str(target), target.stat().st_size, __version__)
    assert subprocess.run(["sha256sum", target], capture_output=True, text=True).stdout.startswith(facts["sha256"])
    assert sorted(os.listdir(tmp_path)) == ["my launcher.pyz"]


def test_without_a_name_it_lands_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert trainwatch(["pack"]) == 0
    assert os.listdir(tmp_path) == ["trainwatch-launch.pyz"]


@pytest.mark.parametrize(("target", "why"), [
    ("missing/x.pyz", "No such file or directory"), (".", "is a directory"), ("/dev/null", "no regular file"),
    ("/proc/x.pyz", ""),
])  # fmt: skip
def test_what_cannot_be_written_is_said_in_one_line(tmp_path, monkeypatch, capsys, target, why):
    monkeypatch.chdir(tmp_path)
    assert trainwatch(["pack", "-o", target]) == 1
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1


def test_a_link_to_the_file_stays_a_link(tmp_path):
    (tmp_path / "current.pyz").symlink_to("v1.pyz")
    (tmp_path / "v1.pyz").write_bytes(b"old")
    packing.pack(tmp_path / "current.pyz")
    assert (tmp_path / "current.pyz").is_symlink()
    assert (tmp_path / "v1.pyz").read_bytes().startswith(b"#!/bin/sh\n")


# -- on a worker


@every_python
@pytest.mark.parametrize("options", [[], ["-I"], ["-I", "-S", "-B", "-X", "utf8"]], ids=["plain", "-I", "-I -S"])
def test_it_runs_on_every_promised_python(packed, here, python, options):
    assert run(python, *options, packed, here=here).stdout == "trained\n"


def test_it_runs_by_itself(packed, here):
    assert run(packed, here=here).stdout == "trained\n"
    (here / "a link").symlink_to(packed)
    assert run("./a link", here=here).stdout == "trained\n"
    assert run("trainwatch-launch.pyz", here=here, env={"PATH": f"{packed.parent}:/usr/bin:/bin"})
    assert run("/bin/sh", packed, here=here)


def test_its_first_lines_are_understood_by_bash_too(packed, here):
    run("bash", packed, here=here)


@every_python
def test_it_runs_from_a_path_with_spaces_and_letters_of_any_script(packed, here, python):
    place = here / "运行 ü"
    place.mkdir()
    shutil.copy(packed, place / "启动 trainwatch.pyz")
    run(python, place / "启动 trainwatch.pyz", here=here)
    run(python, "运行 ü/启动 trainwatch.pyz", here=here, env={**BARE, "LC_ALL": "C"})
    run("运行 ü/启动 trainwatch.pyz", here=here)


MODULES_OF_OURS = {
    "collections", "ctypes", "difflib", "enum", "errno", "fcntl", "json", "pynvml", "re", "select", "shlex", "signal",
    "struct", "threading", "time", "traceback", "trainwatch_launcher", "types", "zlib",
}


@every_python
def test_modules_of_the_user_never_stand_in_for_the_standard_library_s(packed, here, python):
    """With `python3 FILE` alone, what the interpreter's own start and site hooks import is beyond us; -I helps."""
    hostile = {**BARE, "PYTHONPATH": f"{here}::.:/nowhere", "PYTHONSTARTUP": str(here / "json.py")}
    asked = subprocess.run([python, "-c", "import runpy, sys; print(*sys.modules)"], capture_output=True, text=True)
    ours = MODULES_OF_OURS - set(asked.stdout.split())
    assert {"json", "signal", "fcntl"} <= ours
    for name in ours:
        (here / f"{name}.py").write_text(f"raise SystemExit('the wrong {name}')")
    run(python, packed, here=here, env=hostile)
    for name in MODULES_OF_OURS:
        (here / f"{name}.py").write_text(f"raise SystemExit('the wrong {name}')")
    run(python, "-I", packed, here=here, env=hostile)


def test_started_by_itself_nothing_of_the_user_comes_before_it(packed, here):
    for name in ("os", "site", "sitecustomize", "usercustomize", "encodings", "codecs", "io", *MODULES_OF_OURS):
        (here / f"{name}.py").write_text(f"raise SystemExit('the wrong {name}')")
    run(packed, here=here, env={**BARE, "PYTHONPATH": str(here), "PYTHONHOME": "/nowhere", "PYTHONUSERBASE": str(here)})


@every_python
def test_it_needs_neither_home_nor_locale_nor_open_descriptors(packed, here, python):
    run(python, packed, here=here, env={})
    run(python, packed, here=here, env={**BARE, "LC_ALL": "xx_YY.NOPE", "HOME": "/nowhere"})
    script = '"$0" "$1" --run-dir "$2/run" --hold 0 -- sh -c "echo trained; exit 3" <&- >&- 2>&-'
    done = subprocess.run(["/bin/sh", "-c", script, python, packed, here], env=BARE, timeout=60)
    assert done.returncode == 3
    attempt = here / "run" / paths.rank_name(0) / paths.attempt_name(3)
    assert (attempt / paths.OUTPUT).read_bytes() == b"trained\n"


@AS_ROOT
def test_any_user_may_run_it(packed, here):
    run(packed, here=here, env={}, user=NOBODY, group=NOBODY, extra_groups=[])


@AS_ROOT
def test_it_runs_from_a_read_only_mount(packed, here):
    (here / "mount").mkdir()
    script = """mount -t tmpfs none "$1" && cp "$0" "$1" && mount -o remount,ro "$1" && ! touch "$1/x" 2>/dev/null &&
        shift && exec "$@" """
    inside = here / "mount" / packed.name
    run("unshare", "--mount", "/bin/sh", "-c", script, packed, here / "mount", inside, here=here)


@pytest.mark.parametrize("happens", ["rm FILE", "echo garbage > FILE", "cp /bin/ls FILE"])
def test_whatever_happens_to_the_file_during_the_training_its_end_is_told_all_the_same(packed, tmp_path, happens):
    """Somebody copies a new version over the file in use: what the end needs must not be read from it then."""
    file = tmp_path / "launch.pyz"
    shutil.copy(packed, file)
    command = happens.replace("FILE", str(file)) + "; echo 'ValueError: loss is nan'; exit 3"
    done = subprocess.run([file, f"--run-dir={tmp_path}/run", "--hold=0.1", "--", "/bin/sh", "-c", command],
                          capture_output=True, text=True, env=BARE, timeout=60)
    assert done.returncode == 3
    assert "ValueError: loss is nan" in done.stderr
    assert "hold ended" in done.stderr


def test_the_file_in_memory_is_not_the_command_s(packed, here):
    done = subprocess.run([packed, "--root", here, "--", "ls", "-l", "/proc/self/fd"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env=BARE)
    assert done.returncode == 0
    assert "memfd" not in done.stdout


OLD = sorted(Path.home().glob(".pyenv/versions/3.[67].*/bin/python3"))


@pytest.mark.parametrize("python", OLD, ids=[path.parts[-3] for path in OLD])
def test_a_python_that_is_too_old_runs_the_command_without_us(packed, here, python):
    alone = {"PATH": str(here)}
    done = subprocess.run([python, packed, "--hold", "9", "--", "/bin/sh", "-c", "echo trained; exit 7"],
                          capture_output=True, encoding="utf-8", env=alone)
    assert (done.returncode, done.stdout) == (7, "trained\n")
    assert "needs Python 3.8 or newer" in done.stderr
    missing = subprocess.run([python, packed, "--", "no-such-command"], capture_output=True, env=alone)
    assert missing.returncode == 127
    assert subprocess.run([python, packed, "--help"], capture_output=True, env=alone).returncode == 2


@pytest.mark.parametrize("python", OLD, ids=[path.parts[-3] for path in OLD])
def test_a_python_that_is_too_old_hands_over_to_a_newer_one(packed, here, python):
    broken = here / "python3.13"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    (here / "python3.10").symlink_to(sys.executable)
    run(python, packed, here=here, env={"PATH": str(here)})


def test_without_any_python_the_command_runs_all_the_same(packed, tmp_path):
    text = packed.read_bytes().replace(b"/usr/bin/python3", b"/nowhere/python3")
    (tmp_path / "x.pyz").write_bytes(text)
    done = subprocess.run(["/bin/sh", tmp_path / "x.pyz", "--hold", "9", "--", "/bin/sh", "-c", "echo trained; exit 7"],
                          capture_output=True, text=True, env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (7, "trained\n")
    assert "no python3 here" in done.stderr
