"""What is done on the first failure beside the screen: what the terminal gets, and the command that is run."""
from __future__ import annotations

import json
import os
import shlex
import sys

import pytest

from builders import NOW, RunBuilder, at, crashed_run
from support.screens import app_on, notes, settle, wait_for
from trainwatch import alarm, browser, config
from trainwatch.alarm import Alarm, sequence
from trainwatch.cli import main, parser
from trainwatch.commands.arguments import alarm_for

SIZE = (100, 30)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(alarm, "SETTLE", 0.0)
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.delenv("STY", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def script(tmp_path, text: str) -> tuple[str, ...]:
    """A Python program as a command; it gets a directory to write to."""
    path = tmp_path / "hook.py"
    path.write_text(text)
    return (sys.executable, str(path), str(tmp_path))


KEEPS = "import sys; open(sys.argv[1] + '/got.json', 'a').write(sys.stdin.read() + chr(0))"


def got(tmp_path) -> list[dict]:
    path = tmp_path / "got.json"
    return [json.loads(part) for part in path.read_text().split("\0")[:-1]] if path.exists() else []


def written(app, monkeypatch) -> list[str]:
    """What goes to the terminal beside the screen."""
    found: list[str] = []
    before = app._driver.write
    monkeypatch.setattr(app._driver, "write", lambda data: (found.append(data), before(data)))
    return found


async def test_the_command_gets_what_why_says_once_for_a_run(tmp_path, capsys):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run", on_failure=Alarm(command=script(tmp_path, KEEPS)))
    async with app.run_test(size=SIZE) as pilot:
        await wait_for(pilot, lambda: got(tmp_path))
        app._source.look()
        await settle(pilot)
        app._rang = False  # as when the same run is opened once more
        app._source.look()
        await settle(pilot)
        await wait_for(pilot, lambda: not [worker for worker in app.workers if worker.group == "alarm"])
    [told] = got(tmp_path)
    assert (told["kind"], told["root_cause_rank"], told["collateral_ranks"]) == ("python_error", 2, [0, 1, 3])
    assert main(["why", "--json", str(tmp_path / "run")]) == 0
    assert json.loads(capsys.readouterr().out).keys() == told.keys()


async def test_what_a_command_complains_of_is_told_in_one_line(tmp_path):
    crashed_run(tmp_path / "run")
    fails = "import sys; print('on the screen'); print('a\\nno route to host', file=sys.stderr); sys.exit(22)"
    app = app_on(tmp_path / "run", on_failure=Alarm(command=script(tmp_path, fails)))
    async with app.run_test(size=SIZE) as pilot:
        await wait_for(pilot, lambda: f"{sys.executable} ended with 22: no route to host" in notes(pilot))


async def test_a_command_that_is_not_there_is_told(tmp_path):
    crashed_run(tmp_path / "run")
    app = app_on(tmp_path / "run", on_failure=Alarm(command=("/nonexistent/hook",)))
    async with app.run_test(size=SIZE) as pilot:
        await wait_for(pilot, lambda: "/nonexistent/hook: No such file or directory" in notes(pilot))


async def test_a_command_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(alarm, "WITHIN", 0.2)
    assert "sleep had not ended" in await alarm.run(("sleep", "600"), {})


async def test_a_command_need_not_read_what_it_is_given():
    assert await alarm.run(("true",), {"much": "x" * 1_000_000}) == ""


async def test_a_failure_that_is_old_is_no_news(tmp_path, monkeypatch):
    run = RunBuilder(tmp_path / "run", world_size=2)
    run.rank(0).start(NOW - 4000).fail(1, NOW - 3600, reason="boom")
    run.rank(1).start(NOW - 4000)
    app = app_on(tmp_path / "run", on_failure=Alarm(command=script(tmp_path, KEEPS)))
    async with app.run_test(size=SIZE) as pilot:
        said = written(app, monkeypatch)
        await settle(pilot)
        await wait_for(pilot, lambda: app._rang)
        await wait_for(pilot, lambda: not [worker for worker in app.workers if worker.group == "alarm"])
        assert not [data for data in said if "notify" in data]
    assert got(tmp_path) == []


async def test_the_terminal_is_asked_to_notify(tmp_path, monkeypatch):
    run = RunBuilder(tmp_path / "run", world_size=2)
    run.rank(0, host="gpu;\x1b]0;evil\x07").start().output(b"x\n")
    app = app_on(tmp_path / "run")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        said = written(app, monkeypatch)
        at(run, 0).fail(1, NOW - 1, reason="KeyError: \x1b[2Jboom\x07")
        app._source.look()
        await wait_for(pilot, lambda: [data for data in said if "777;notify;" in data])
    [sent] = [data for data in said if "777;notify;" in data]
    assert sent.count("\x1b") == 2
    assert sent.count("\x07") == 2
    assert sent.startswith("\x1b]9;trainwatch: run-1 failed: rank 0 on gpu;")
    assert "python error: KeyError:" in sent


@pytest.mark.parametrize("how", ["option", "browser"])
async def test_nothing_is_notified_where_that_is_not_wished(tmp_path, monkeypatch, how):
    if how == "browser":
        monkeypatch.setenv(browser.VARIABLE, browser.SCREEN)
    run = RunBuilder(tmp_path / "run", world_size=1)
    run.rank(0).start().output(b"x\n")
    app = app_on(tmp_path / "run", on_failure=Alarm(notify=how != "option"))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        said = written(app, monkeypatch)
        at(run, 0).fail(1, NOW - 1, reason="boom")
        app._source.look()
        await wait_for(pilot, lambda: app._rang)
        await wait_for(pilot, lambda: not [worker for worker in app.workers if worker.group == "alarm"])
        assert not [data for data in said if "notify" in data]


async def test_terminals_get_the_sequence_that_they_know():
    both = await sequence("a;b", "c;d", {"TERM": "xterm-256color"})
    assert both == "\x1b]9;a;b: c;d\x07\x1b]777;notify;a,b;c,d\x07"
    assert (await sequence("a", "b", {"TERM": "foot"})) == "\x1b]777;notify;a;b\x07"
    assert (await sequence("a", "b", {"TERM": "xterm-kitty"})) == "\x1b]9;a: b\x07"
    nowhere = {"TERM": "tmux", "TMUX": "/nonexistent,1,0"}
    for environ in ({"TERM": "linux"}, {"TERM": "screen", "STY": "1.pts"}, nowhere):
        assert await sequence("a", "b", environ) == ""


@pytest.mark.parametrize("allowed", ["on", "off"])
async def test_inside_tmux_it_goes_through_only_where_that_is_allowed(tmux, allowed):
    tmux.start(["cat"])
    tmux.tmux("set-option", "-g", "allow-passthrough", allowed)
    pane = tmux.tmux("display-message", "-p", "#{pane_id}").strip()
    environ = {**os.environ, "TMUX": tmux.inside, "TMUX_PANE": pane, "TERM": "foot"}
    said = await sequence("a", "b", environ)
    assert said == ("\x1bPtmux;\x1b\x1b]777;notify;a;b\x07\x1b\\" if allowed == "on" else "")


def test_the_command_line_wins_over_the_configuration(tmp_path, monkeypatch):
    file = tmp_path / "config.toml"
    file.write_text('[options]\non_failure = "notify-send \'a b\'"\nnotify = false\n')
    monkeypatch.setattr(config, "path", lambda: file)
    assert alarm_for(None, False) == Alarm(False, ("notify-send", "a b"))
    given = parser().parse_args(["run", "--on-failure", shlex.join(["sh", "-c", "cat > x"]), "--no-notify"])
    assert alarm_for(given.on_failure, given.no_notify) == Alarm(False, ("sh", "-c", "cat > x"))
    assert alarm_for(parser().parse_args(["--on-failure", ""]).on_failure, False).command == ()


@pytest.mark.parametrize(("written", "said"), [
    ("on_failure = \"curl 'x\"", "options.on_failure: No closing quotation"),
    ("on_failure = 1", "options.on_failure must be text"), ("notify = 1", "options.notify must be true or false"),
])  # fmt: skip
def test_a_configuration_that_makes_no_sense_is_refused(tmp_path, written, said):
    file = tmp_path / "config.toml"
    file.write_text(f"[options]\n{written}\n")
    with pytest.raises(config.TargetError, match=said):
        config.load(file)


def test_a_command_line_that_makes_no_sense_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--on-failure", "curl 'x"])
    assert "No closing quotation" in capsys.readouterr().err
