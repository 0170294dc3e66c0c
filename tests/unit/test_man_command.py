"""`trainwatch man`: manual pages that say what --help says, and that man(1) can show."""
from __future__ import annotations

import shutil
import subprocess
from importlib import import_module

import pytest

from trainwatch.cli import COMMANDS, main
from trainwatch.commands.man import LAUNCH, SELF, names, page
from trainwatch_launcher.options import OPTIONS


@pytest.mark.parametrize("name", names())
def test_every_option_is_on_the_page(name):
    text = page(name).replace(r"\-", "-")
    if name == LAUNCH:
        flags = [option.flag for group in OPTIONS.values() for option in group]
        flags += [option.env for group in OPTIONS.values() for option in group]
    else:
        module = "trainwatch.cli" if name == SELF else COMMANDS[name.partition("-")[2]]
        flags = [flag for action in import_module(module).parser()._actions for flag in action.option_strings]
    assert [flag for flag in flags if flag not in text] == []
    assert all(heading in text for heading in (".SH NAME\n", ".SH SYNOPSIS\n", ".SH OPTIONS\n", ".SH SEE ALSO\n")
               if name != LAUNCH or "OPTIONS" not in heading)  # fmt: skip


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff shows manual pages")
def test_groff_has_nothing_to_complain_about():
    for name in names():
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-K", "utf8"], input=page(name), text=True,
                              capture_output=True)  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), name
        assert "trainwatch" in done.stdout


def test_a_page_is_printed_and_all_are_written(tmp_path, capsys):
    assert main(["man"]) == 0
    assert capsys.readouterr().out.startswith('.TH "TRAINWATCH"')
    assert main(["man", "launch"]) == main(["man", "trainwatch-lint"]) == 0
    assert main(["man", "nothing"]) == 2
    assert "there are: launch, status" in capsys.readouterr().err
    assert main(["man", "--all", str(tmp_path / "man1")]) == 0
    assert {path.name for path in (tmp_path / "man1").iterdir()} == {f"{name}.1" for name in names()}
