"""What the user has set once for all: targets, default options, lint rules. From ~/.config/trainwatch/config.toml.

    gpu_price = 2.5

    [options]
    handshakes = 8

    [shell]
    keep_hold = false

    [targets]
    prod = "ssh://worker-[0-7]/data/run"

    [targets.lab]
    target = "ssh://login/shared/runs"
    ssh_config = "~/lab/ssh_config"

    [lint]
    ignore = ["no-nounset"]

    [filters]
    idle = "state:running gpu<20"
"""
from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import platformdirs

from trainwatch_launcher.reader.runs import TargetError

# the same module under two names; which of them is there depends on the Python
toml: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

FILE = "config.toml"
WANTED = {int: "a number above 0", str: "text", bool: "true or false"}


@dataclass(frozen=True)
class Options:
    """How targets are reached and told of. In the file under [options] for all, or beside one target."""

    ssh_config: str = ""
    """A file to use instead of ~/.ssh/config."""
    handshakes: int = 16
    """So many hosts at once are connected to."""
    python: str = ""
    """The Python to use on the hosts, a name or a path; without one the first that is new enough."""
    container: str = ""
    """The container of a pod, when it is not the default one."""
    on_failure: str = ""
    """A command line to run on the first failure; empty: none."""
    notify: bool = True
    """Whether the terminal is asked to notify of the first failure."""


@dataclass(frozen=True)
class Shell:
    """How shells beside ranks are opened. In the file under [shell]."""

    keep_hold: bool = True
    """Whether a hold is extended while a shell is open beside its rank."""


@dataclass(frozen=True)
class Config:
    """The file's contents."""

    gpu_price: float | None = None
    """What an hour of one GPU costs, in whatever money; None when nobody has said."""
    options: Options = Options()
    shell: Shell = Shell()
    targets: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What each name stands for."""
    of_target: Mapping[str, Options] = field(default_factory=lambda: MappingProxyType({}))
    """The options of each name, those for all included."""
    lint_ignore: tuple[str, ...] = ()
    """Rules that `trainwatch lint` leaves out."""
    filters: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Saved filters by name; each is one that `model.query` understands."""


def path() -> Path:
    """Where the file is, whether it exists or not."""
    return platformdirs.user_config_path("trainwatch") / FILE


def load(file: Path | None = None) -> Config:
    """The user's configuration; nothing set when there is no file. Raises TargetError when it cannot be used."""
    file = file or path()
    try:
        data = toml.loads(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return Config()  # another user's home, after su: nobody here can have meant what is in it
    except OSError as error:
        raise TargetError(f"{file}: {error.strerror or error}") from None
    except (toml.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TargetError(f"{file}: {error}") from None
    try:
        return _config(data)
    except ValueError as error:
        raise TargetError(f"{file}: {error}") from None


def _config(data: Mapping[str, Any]) -> Config:
    _only(data, ("gpu_price", "options", "shell", "targets", "lint", "filters"), "the file")
    options = _options(Options(), _table(data.get("options", {}), "options"), "options")
    targets: dict[str, str] = {}
    of_target: dict[str, Options] = {}
    for name, value in _table(data.get("targets", {}), "targets").items():
        where = f"targets.{name}"
        entry = {"target": value} if isinstance(value, str) else dict(_table(value, where))
        target = entry.pop("target", None)
        if not isinstance(target, str) or not target:
            raise ValueError(f"{where} needs a target, such as target = \"ssh://host/path\"")
        targets[name], of_target[name] = target, _options(options, entry, where)
    shell = _shell(_table(data.get("shell", {}), "shell"))
    lint_ignore = _lint_ignore(data.get("lint", {}))
    price = _price(data.get("gpu_price"))
    filters = _filters(_table(data.get("filters", {}), "filters"))
    return Config(price, options, shell, MappingProxyType(targets), MappingProxyType(of_target), lint_ignore, filters)


def _price(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
        raise ValueError("gpu_price must be a number from 0 up")
    return float(value)


def _filters(table: Mapping[str, Any]) -> Mapping[str, str]:
    from trainwatch.model.query import QueryError, parse

    for name, value in table.items():
        if not isinstance(value, str):
            raise ValueError(f"filters.{name} must be text, such as {name} = \"state:running gpu<20\"")
        if not re.fullmatch(r"[\w-]+", name):
            raise ValueError(f"filters: {name!r} cannot be typed as @name; use letters, digits, - and _")
        try:
            parse(value, table)
        except QueryError as error:
            raise ValueError(f"filters.{name}: {error}") from None
    return MappingProxyType(dict(table))


def _shell(table: Mapping[str, Any]) -> Shell:
    _only(table, tuple(each.name for each in fields(Shell)), "shell")
    wrong = next((name for name, value in table.items() if not isinstance(value, bool)), None)
    if wrong is not None:
        raise ValueError(f"shell.{wrong} must be true or false")
    return Shell(**table)


def _lint_ignore(value: object) -> tuple[str, ...]:
    table = _table(value, "lint")
    _only(table, ("ignore",), "lint")
    names = table.get("ignore", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError('lint.ignore must be a list of rules, such as ["no-nounset"]')
    return tuple(names)


def _options(base: Options, table: Mapping[str, Any], where: str) -> Options:
    kinds: dict[str, type] = {each.name: type(each.default) for each in fields(Options)}
    _only(table, tuple(kinds), where)
    for name, value in table.items():
        if type(value) is not kinds[name] or (type(value) is int and value < 1):
            raise ValueError(f"{where}.{name} must be {WANTED[kinds[name]]}")
    changed = dict(table)
    try:
        shlex.split(changed.get("on_failure", ""))
    except ValueError as error:
        raise ValueError(f"{where}.on_failure: {error}") from None
    if "ssh_config" in changed:
        changed["ssh_config"] = str(Path(changed["ssh_config"]).expanduser())
    return replace(base, **changed)


def _table(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be a table")
    return value


def _only(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = next((name for name in table if name not in known), None)
    if unknown is not None:
        raise ValueError(f"{where} has no {unknown}; it may have {', '.join(known)}")
