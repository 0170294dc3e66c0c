"""Shell completion: what is offered where, asked from real shells as far as they are installed."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from trainwatch import cli
from trainwatch.commands.completion import DIRECTORIES, FILES, NO_FILES, completed

CONFIG = '[targets]\nprod = "ssh://worker-[0-7]/data/run"\n[targets.lab]\ntarget = "ssh://login/shared/runs"\n'


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with named targets; in it we stand among a directory and a file."""
    (tmp_path / "trainwatch").mkdir()
    (tmp_path / "trainwatch" / "config.toml").write_text(CONFIG)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    here = tmp_path / "here"
    (here / "my runs").mkdir(parents=True)
    (here / "my log").touch()
    monkeypatch.chdir(here)
    return tmp_path


def words(*typed):
    kind, found = completed(typed)
    return kind, [word for word, _ in found]


@pytest.mark.parametrize(("typed", "kind", "expected"), [
    (["ho"], DIRECTORIES, ["hold"]),
    (["pro"], DIRECTORIES, ["prod"]),
    (["--no-k"], NO_FILES, ["--no-keep-hold"]),
    (["status", ""], DIRECTORIES, ["prod", "lab"]),
    (["status", "prod", "--j"], NO_FILES, ["--json"]),
    (["hold", "prod", "--re"], NO_FILES, ["--release"]),
    (["hold", "--rank", "3", "l"], DIRECTORIES, ["lab"]),
    (["hold", "prod", "--rank", ""], NO_FILES, []),
    (["hold", "prod", ""], NO_FILES, []),
    (["shell", "prod", "--rank", "0", "--", ""], FILES, []),
    (["inspect", "one", ""], FILES, []),
    (["pack", "-o", ""], FILES, []),
    (["--hosts", ""], FILES, []),
    (["completion", "z"], NO_FILES, ["zsh"]),
    (["demo", "--root", ""], DIRECTORIES, []),
    (["a.log", "x"], FILES, []),
])  # fmt: skip
def test_what_is_offered_where(home, typed, kind, expected):
    assert words(*typed) == (kind, expected)


def test_the_first_word_may_be_any_command_or_name(home):
    assert words("") == (DIRECTORIES, [*cli.COMMANDS, "prod", "lab"])


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_its_options_offered(command):
    assert import_module(cli.COMMANDS[command]).parser().prog == f"trainwatch {command}"
    assert "--help" in words(command, "--")[1]


def test_an_option_is_offered_once_and_with_its_meaning(home):
    assert "--json" not in words("status", "--json", "--")[1]
    assert dict(completed(["hold", "--a"])[1])["--all"].startswith("all that are held")


def test_a_broken_configuration_offers_no_names_and_no_error(home):
    (home / "trainwatch" / "config.toml").write_text("= broken")
    assert words("status", "") == (DIRECTORIES, [])


def script(shell):
    done = subprocess.run([sys.executable, "-m", "trainwatch", "completion", shell], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def typed_in(shell, code, *more):
    """What a shell prints for a piece of its code, with our program on its PATH."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run([shell, *more, "-c", code], capture_output=True, text=True, env={**os.environ, "PATH": path},
                          timeout=60, check=False)  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(("line", "expected"), [
    (["trainwatch", "hol"], ["hold"]),
    (["trainwatch", "p"], ["pack", "prod"]),
    (["trainwatch", "status", "m"], ["my runs"]),
    (["trainwatch", "inspect", "m"], ["my log", "my runs"]),
    (["trainwatch", "hold", "prod", "--ex"], ["--extend"]),
    (["trainwatch", "hold", "prod", "--rank", ""], []),
])  # fmt: skip
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(home, line, expected):
    code = f"""{script("bash")}
complete -p trainwatch >/dev/null || exit 1
COMP_WORDS=({" ".join(repr(word) for word in line)}) COMP_CWORD={len(line) - 1}
_trainwatch trainwatch 2>/dev/null
[ ${{#COMPREPLY[@]}} = 0 ] || printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    assert sorted(typed_in("bash", code, "--norc")) == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_at_the_tab_key(home, tmux):
    (home / "rc").write_text(f"PS1='$ '\nPATH={Path(sys.executable).parent}:$PATH\n" + script("bash"))
    tmux.start(["bash", "--rcfile", str(home / "rc"), "-i"], cwd=home / "here", env={"XDG_CONFIG_HOME": str(home)})
    tmux.wait_for("$")
    tmux.type("trainwatch hold pro")
    tmux.send("Tab")
    tmux.wait_for("trainwatch hold prod")
    tmux.type("--col")
    tmux.send("Tab")
    tmux.wait_for("trainwatch hold prod --collateral")
    tmux.send("C-u")
    tmux.type("trainwatch status my")
    tmux.send("Tab")
    tmux.wait_for("trainwatch status my\\ runs/")


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(("line", "expected"), [
    ("trainwatch hol", ["hold"]), ("trainwatch status ", ["lab", "my runs/", "prod"]),
    ("trainwatch hold prod --ex", ["--extend"]), ("trainwatch hold prod --rank ", []),
])  # fmt: skip
def test_fish_completes(home, line, expected):
    found = typed_in("fish", f'{script("fish")}\ncomplete -C "{line}"', "--no-config")
    assert sorted(word.partition("\t")[0] for word in found) == expected


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_completes_at_the_tab_key(home, tmux):
    path = f"PS1='%% '\npath=({Path(sys.executable).parent} $path)\nautoload -Uz compinit && compinit -u\n"
    (home / ".zshrc").write_text(path + script("zsh"))
    tmux.start(["zsh", "-i"], cwd=home / "here", env={"XDG_CONFIG_HOME": str(home), "ZDOTDIR": str(home)})
    tmux.wait_for("%")
    tmux.type("trainwatch hold pro")
    tmux.send("Tab")
    tmux.wait_for("trainwatch hold prod")
    tmux.type("--col")
    tmux.send("Tab")
    tmux.wait_for("trainwatch hold prod --collateral")
    tmux.send("C-u")
    tmux.type("trainwatch status my")
    tmux.send("Tab")
    tmux.wait_for("trainwatch status my\\ runs/")
