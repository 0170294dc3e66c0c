"""The rules of the house: who may import whom, where file names live, and what importing the launcher may cost."""
from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.pythons import every_python
from trainwatch_launcher.rundir import paths

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "launcher" / "trainwatch_launcher"
VIEWER = ROOT / "tui" / "trainwatch"
WORKER = VIEWER / "demo" / "worker"

MODULES = sorted([*LAUNCHER.rglob("*.py"), *VIEWER.rglob("*.py")])
MAX_LINES = 450

OPTIONAL = {"pynvml"}
"""What the launcher uses when it is there: only inside a `try`."""

NEVER = {
    # who: what it never imports, each a module with all that is in it
    "trainwatch_launcher": ("trainwatch",),
    "trainwatch_launcher.rundir": (
        "trainwatch_launcher.reader", "trainwatch_launcher.supervisor", "trainwatch_launcher.cli"),
    "trainwatch_launcher.reader": (
        "trainwatch_launcher.supervisor", "trainwatch_launcher.cli", "trainwatch_launcher.agent"),
    "trainwatch_launcher.agent": ("trainwatch_launcher.supervisor", "trainwatch_launcher.cli"),
    "trainwatch.model": (
        "textual", "rich", "asyncio", "os", "pathlib", "io", "socket", "subprocess", "threading", "time", "watchfiles",
        "trainwatch.sources", "trainwatch.app", "trainwatch.showing", "trainwatch.screens", "trainwatch.widgets",
        "trainwatch.commands",
        "trainwatch_launcher.rundir.files", "trainwatch_launcher.rundir.paths",
    ),
    "trainwatch.widgets": (
        "trainwatch.sources", "trainwatch.screens", "trainwatch.app", "trainwatch.showing", "trainwatch.commands"),
    "trainwatch.screens": ("trainwatch.commands",),
    "trainwatch.sources": (
        "textual", "trainwatch.model", "trainwatch.widgets", "trainwatch.screens", "trainwatch.app",
        "trainwatch.showing", "trainwatch.commands", "trainwatch.opening"),
    "trainwatch.lint": (
        "textual", "rich", "asyncio", "subprocess", "threading", "time", "socket", "re", "trainwatch.sources",
        "trainwatch.app", "trainwatch.showing", "trainwatch.screens", "trainwatch.widgets", "trainwatch.commands"),
    "trainwatch.harden": (
        "textual", "rich", "asyncio", "subprocess", "threading", "time", "socket", "re", "trainwatch.sources",
        "trainwatch.app", "trainwatch.showing", "trainwatch.screens", "trainwatch.widgets", "trainwatch.commands"),
    "trainwatch.commands": ("trainwatch.screens", "trainwatch.widgets"),
    "trainwatch.demo.worker": ("trainwatch_launcher",),
}


def name_of(path: Path) -> str:
    """The dotted name of a module of ours."""
    base = LAUNCHER.parent if path.is_relative_to(LAUNCHER) else VIEWER.parent
    parts = list(path.relative_to(base).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports_of(path: Path) -> Iterator[tuple[str, int, bool]]:
    """(module, line, is inside a `try`) of every import, also in functions; what only type checkers see is not one."""
    yield from walk(tree_of(path), name_of(path), path.name == "__init__.py", False)


def walk(node: ast.AST, module: str, is_package: bool, guarded: bool) -> Iterator[tuple[str, int, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from walk(ast.Module([other], []), module, is_package, guarded)
        elif isinstance(child, ast.Import):
            for alias in child.names:
                yield alias.name, child.lineno, guarded
        elif isinstance(child, ast.ImportFrom):
            base = child.module or ""
            if child.level:
                parents = module.split(".")[:len(module.split(".")) - child.level + is_package]
                base = ".".join([*parents, base]).rstrip(".")
            yield base, child.lineno, guarded
            for alias in child.names:
                yield f"{base}.{alias.name}", child.lineno, guarded
        else:
            yield from walk(child, module, is_package, guarded or isinstance(child, ast.Try))


def is_within(module: str, room: str) -> bool:
    return module == room or module.startswith(room + ".")


@pytest.mark.parametrize("room", NEVER)
def test_no_room_imports_what_it_must_not_know(room):
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {imported}"
        for path in MODULES if is_within(name_of(path), room)
        for imported, line, _ in imports_of(path)
        if any(is_within(imported, forbidden) for forbidden in NEVER[room])
    ]
    assert not wrong


def test_the_launcher_imports_only_the_standard_library_and_what_may_be_missing():
    wrong = []
    for path in [*LAUNCHER.rglob("*.py"), *WORKER.rglob("*.py")]:
        neighbours = {"trainwatch_launcher"} if path.is_relative_to(LAUNCHER) else {p.stem for p in WORKER.glob("*.py")}
        for imported, line, guarded in imports_of(path):
            top = imported.partition(".")[0]
            if top not in sys.stdlib_module_names | neighbours and not (top in OPTIONAL and guarded):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {imported}")
    assert not wrong


def test_file_names_of_the_run_directory_have_one_home():
    names = {paths.RUN_FILE, paths.EVENTS, paths.OUTPUT, paths.INDEX, paths.STATUS, paths.METRICS,
             paths.RANK_PREFIX, paths.LOCAL_PREFIX, paths.ATTEMPT_PREFIX}
    home = LAUNCHER / "rundir" / "paths.py"
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} says {node.value!r}"
        for path in MODULES if path != home
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.rpartition("/")[2] in names
    ]
    assert not wrong


@pytest.mark.parametrize("path", MODULES, ids=lambda path: name_of(path))
def test_every_module_says_what_it_is_for_and_stays_readable(path):
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "no docstring"
    assert text.count("\n") <= MAX_LINES


@every_python
def test_all_that_runs_on_a_worker_compiles_on_every_promised_python(python):
    check = "import sys; [compile(open(p, encoding='utf-8').read(), p, 'exec') for p in sys.argv[1:]]"
    worker_side = [str(path) for path in [*LAUNCHER.rglob("*.py"), *WORKER.rglob("*.py")]]
    done = subprocess.run([python, "-I", "-S", "-c", check, *worker_side], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@every_python
def test_starting_the_launcher_imports_nothing_slow(python):
    slow = ["argparse", "asyncio", "collections", "concurrent", "dataclasses", "enum", "functools", "inspect",
            "logging", "pathlib", "re", "socket", "subprocess", "tempfile", "threading", "typing"]
    all_of_it = "import trainwatch_launcher.cli, trainwatch_launcher.supervisor"
    loaded = modules_after(python, all_of_it, LAUNCHER.parent)
    assert "trainwatch_launcher.cli" in loaded
    assert not loaded & set(slow)


@every_python
def test_an_agent_starts_with_nothing_that_takes_longer_to_import_than_the_agent(python):
    slow = ["collections", "dataclasses", "enum", "functools", "json", "pwd", "re", "threading", "typing"]
    loaded = modules_after(python, "import trainwatch_launcher.agent.main", LAUNCHER.parent)
    assert "trainwatch_launcher.agent.main" in loaded
    assert not loaded & set(slow)


def test_a_command_that_draws_nothing_imports_no_textual():
    places = [LAUNCHER.parent, VIEWER.parent]
    for module in ("trainwatch.cli", "trainwatch.commands.status", "trainwatch.demo.command"):
        loaded = modules_after(sys.executable, f"import {module}", *places, bare=False)
        assert module in loaded
        assert "textual" not in loaded, module


def modules_after(python: str, statement: str, *places: Path, bare: bool = True) -> set[str]:
    """The names of all modules that are loaded after one statement, in an interpreter bare of site-packages or not."""
    code = f"import sys; sys.path[:0] = {[str(place) for place in places]!r}; {statement}; print(*sys.modules)"
    options = ["-I", "-S"] if bare else ["-I"]
    done = subprocess.run([python, *options, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())
