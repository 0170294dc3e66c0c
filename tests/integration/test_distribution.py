"""What is published: the same bytes wherever it is built, and programs that run in an environment of their own."""
from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from trainwatch_launcher.version import __version__

ROOT = Path(__file__).resolve().parents[2]
NOT_COPIED = shutil.ignore_patterns(".*cache", ".venv", ".venvs", ".git", ".hypothesis", "__pycache__", "runs", "dist")

pytestmark = pytest.mark.xdist_group("distribution")


def build(source: Path, out: Path) -> dict[str, Path]:
    """The wheel and the source archive of a tree."""
    done = subprocess.run([sys.executable, "-m", "hatchling", "build", "--directory", str(out)], cwd=source,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {path.suffix: path for path in out.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[dict[str, Path], Path]:
    """(what was built, where from)."""
    place = tmp_path_factory.mktemp("built")
    source = place / "tree"
    shutil.copytree(ROOT, source, ignore=NOT_COPIED)
    return build(source, place / "out"), source


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """The `bin` of a new environment that has the wheel, and the dependencies of ours, but not our checkout."""
    place = tmp_path_factory.mktemp("clean") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", str(built[0][".whl"])]
    done = subprocess.run(install, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    own = next((place / "lib").glob("python*/site-packages"))
    # a path in a .pth file is searched, but .pth files in it are not read: our editable installation stays out
    (own / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return place / "bin"


def run(*command: str | Path, code: int = 0, **more: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8", **more}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd="/", env=environment,
                          stdin=subprocess.DEVNULL, timeout=100)  # fmt: skip
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_same_bytes_are_built_elsewhere_at_another_time_and_from_the_source_archive(built, tmp_path):
    made, source = built
    again = tmp_path / "another place"
    shutil.copytree(source, again, copy_function=shutil.copy)  # with new times
    other = build(again, tmp_path / "out")
    assert {kind: digest(path) for kind, path in other.items()} == {kind: digest(path) for kind, path in made.items()}
    with tarfile.open(made[".gz"]) as archive:
        archive.extractall(tmp_path / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert digest(build(unpacked, tmp_path / "out2")[".whl"]) == digest(made[".whl"])


def test_the_wheel_is_for_every_python_and_machine_and_has_what_is_needed_and_no_more(built):
    wheel = built[0][".whl"]
    assert wheel.name == f"trainwatch-{__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "trainwatch", "trainwatch_launcher", f"trainwatch-{__version__}.dist-info", f"trainwatch-{__version__}.data"}
    assert f"trainwatch-{__version__}.data/scripts/trainwatch-launch" in names
    assert "trainwatch/app.tcss" in names
    here = {str(path.relative_to(base)) for base in (ROOT / "tui", ROOT / "launcher")
            for path in base.rglob("*.py")}  # fmt: skip
    assert here <= set(names)


def test_the_version_has_one_home():
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", __version__)
    pinned = re.compile(rf'["\' ]{re.escape(__version__)}["\'\s]')
    texts = [ROOT / "pyproject.toml", *(ROOT / "launcher").rglob("*.py"), *(ROOT / "tui").rglob("*.py")]
    assert [path.name for path in texts if pinned.search(path.read_text(encoding="utf-8"))] == ["version.py"]


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings
    assert headings[0] == "## [Unreleased]" or headings[0].startswith(f"## [{__version__}] - ")
    for heading in headings[1:]:
        assert re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading)
    kinds = {line[4:] for line in text.splitlines() if line.startswith("### ")}
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_programs_run_from_the_wheel_alone(installed, tmp_path):
    assert run(installed / "trainwatch", "--version") == f"trainwatch {__version__}\n"
    homes = "import trainwatch, trainwatch_launcher; print(trainwatch.__file__, trainwatch_launcher.__file__)"
    where = run(installed / "python", "-c", homes)
    assert all(str(installed.parent) in path for path in where.split())
    launched = run(installed / "trainwatch-launch", "--run-dir", tmp_path / "run", "--hold", "0", "--", "sh", "-c",
                   "echo hello; exit 3", code=3)  # fmt: skip
    assert launched == "hello\n"
    ranks = json.loads(run(installed / "trainwatch", "status", "--json", tmp_path / "run", code=1))["ranks"]
    assert [rank["exit_code"] for rank in ranks] == [3]
    assert "pipe-masks-exit" in run(installed / "trainwatch", "lint", "--command", "python train.py | tee log", code=1)
    run(installed / "trainwatch", "pack", "-o", tmp_path / "launch.pyz")
    assert run(sys.executable, tmp_path / "launch.pyz", "--version") == f"trainwatch-launch {__version__}\n"
    assert run(installed / "python", "-m", "trainwatch_launcher", "--version").startswith("trainwatch-launch ")


def test_nothing_that_it_needs_is_missing_from_its_dependencies(installed):
    check = (
        "import importlib.metadata as m, sys, re\n"
        "for line in m.requires('trainwatch'):\n"
        "    name = re.split(r'[ ;<>=!\\[]', line)[0]\n"
        "    'python_version' in line or m.version(name)\n"
        "from importlib import import_module\n"
        "from trainwatch.cli import COMMANDS\n"
        "[import_module(module) for module in COMMANDS.values()]\n"
        "import trainwatch.app, trainwatch.lint.linting, trainwatch.harden.hardening\n"
        "top = {name.split('.')[0] for name in sys.modules}\n"
        "print(*sorted(n for n, d in m.packages_distributions().items() if n in top for n in d[:1]))\n"
    )
    used = set(run(installed / "python", "-c", check).split())
    assert {"textual", "trainwatch"} <= used
    assert not used & {"pytest", "hypothesis", "ruff", "mypy"}
