"""`trainwatch status`, and what all commands say of a target that is none."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from builders import NOW, RunBuilder, crashed_run
from support.users import unprivileged_directory
from trainwatch import cli
from trainwatch.commands import status
from trainwatch.commands.targets import Followed
from trainwatch.model.summary import summary
from trainwatch_launcher.rundir import paths

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def frozen(monkeypatch):
    monkeypatch.setattr(status.time, "time", lambda: NOW)
    monkeypatch.delenv("TRAINWATCH_ROOT", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/proc/none")  # tests that are somebody else may not look into root's


def run_cli(capsys, *argv):
    code = cli.main([str(word) for word in argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def lines_of(run, **options):
    followed = Followed(str(run.directory))
    return status.as_table(followed.run, summary(followed.run, NOW), NOW, **options)


def test_json_is_one_object_with_the_promised_facts(tmp_path, capsys):
    run = crashed_run(tmp_path / "run")
    code, out, err = run_cli(capsys, "status", run.directory, "--json")
    assert (code, err) == (1, "")
    data = json.loads(out)
    assert {name: data["run"][name] for name in ("id", "state", "world_size", "started", "elapsed")} == {
        "id": "run-1", "state": "held", "world_size": 4, "started": NOW - 300, "elapsed": 247.0}
    assert data["run"]["first_failure"]["rank"] == 2
    row = data["ranks"][2]
    assert {name: row[name] for name in (
        "rank", "host", "attempt", "state", "phase", "phase_age", "exit_code", "signal", "hold_remaining",
        "last_output_age", "pid", "reason")} == {
        "rank": 2, "host": "gpu-02", "attempt": 1, "state": "held", "phase": "Train", "phase_age": 180.0,
        "exit_code": 1, "signal": None, "hold_remaining": 540.0, "last_output_age": 62.0, "pid": 4242,
        "reason": "ValueError: loss is nan"}
    assert row["output_bytes"] == (Path(row["directory"]) / paths.OUTPUT).stat().st_size
    assert data["ranks"][3]["signal"] == "SIGKILL"


def test_facts_that_nobody_knows_are_null(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run", world_size=None)
    run.rank(0, host="")
    row = json.loads(run_cli(capsys, "status", run.directory, "--json")[1])["ranks"][0]
    unknown = ("host", "phase", "phase_age", "exit_code", "signal", "hold_remaining", "last_output_age", "pid",
               "started", "elapsed", "local_rank", "reason", "last_line", "warning")
    assert {name: row[name] for name in unknown} == dict.fromkeys(unknown)


def test_gpu_hours_are_told_and_what_they_cost(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run", world_size=1)
    run.rank(0).start().set(
        gpu_seconds=11520.0, gpu_seconds_idle=1440.0, gpu_seconds_setup=3240.0, gpu_seconds_training=7200.0,
        gpu_seconds_held=1080.0, step=7, total=90, loss_text="nan", progress_format="keras",
        gpus=[{"index": 0, "util": 3}])
    data = json.loads(run_cli(capsys, "status", run.directory, "--json")[1])
    assert data["gpu_hours"] == {"total": 3.2, "idle": 0.4, "setup": 0.9, "training": 2.0, "held": 0.3}
    assert "gpu_cost" not in data
    (row,) = data["ranks"]
    assert (row["progress"], row["progress_format"]) == ({"step": 7, "total": 90, "loss": "nan"}, "keras")
    assert (row["gpus"][0]["index"], row["gpus"][0]["util"], row["gpu_note"]) == (0, 3, None)
    data = json.loads(run_cli(capsys, "status", run.directory, "--json", "--gpu-price", "2.5")[1])
    assert data["gpu_cost"] == {"total": 8.0, "idle": 1.0, "setup": 2.25, "training": 5.0, "held": 0.75}
    lines = run_cli(capsys, "status", run.directory, "--gpu-price", "2.5")[1].splitlines()
    assert lines[1] == "3.2 GPU-hours, 0.9 before the first step, 0.4 idle, 0.3 held"
    assert lines[2] == "cost: 8.00 at 2.5 an hour (2.25 before the first step, 1.00 idle, 0.75 held)"


def test_gpu_hours_that_nobody_knows_are_null(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run", world_size=1)
    run.rank(0).start()
    data = json.loads(run_cli(capsys, "status", run.directory, "--json", "--gpu-price=2")[1])
    assert (data["gpu_hours"], data["gpu_cost"]) == (None, None)
    assert "cost: unknown" in run_cli(capsys, "status", run.directory, "--gpu-price=2")[1]


@pytest.mark.parametrize("price", ["dear", "-1", "nan", "inf"])
def test_a_price_that_is_none_is_a_usage_error(tmp_path, capsys, price):
    with pytest.raises(SystemExit) as raised:
        cli.main(["status", str(tmp_path), f"--gpu-price={price}"])
    assert raised.value.code == 2
    assert "must be a number" in capsys.readouterr().err


def test_the_exit_code_is_0_while_nothing_has_failed_and_1_after(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run", world_size=3)
    assert run_cli(capsys, "status", run.directory)[0] == 0
    run.rank(0).start()
    run.rank(1).start().finish()
    assert run_cli(capsys, "status", run.directory)[0] == 0
    run.rank(2, time=NOW - 99).start()
    assert run_cli(capsys, "status", run.directory)[0] == 1


def test_a_failure_that_a_restart_has_mended_is_none(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run", world_size=1)
    run.rank(0).start().fail(1)
    assert run_cli(capsys, "status", run.directory)[0] == 1
    run.rank(0, attempt=2).start().finish()
    code, out, _ = run_cli(capsys, "status", run.directory)
    assert code == 0
    assert "held (old)" in out


def test_the_table_reads_like_the_screen(tmp_path):
    lines = lines_of(crashed_run(tmp_path / "run"))
    assert lines[0] == "run-1  held  4 of 4 ranks (3 held, 1 ended)  4m07s"
    assert lines[1] == "first failure: rank 2 on gpu-02, exit 1: ValueError: loss is nan"
    assert lines[3].split() == [
        "RANK", "HOST", "STATE", "PHASE", "FOR", "EXIT", "HOLD", "OUTPUT", "QUIET", "LAST", "LINE"]
    assert lines[6] == "2     gpu-02  held   Train  3m00s  1            9m00s  4.0 kB  1m02s  ValueError: loss is nan"
    assert len(lines) == 8


def test_a_rank_that_cannot_be_read_is_code_1_and_named(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run", world_size=2)
    run.rank(0).start()
    garbage = run.rank(1).directory
    os.utime(garbage, (NOW, NOW))
    (garbage / paths.STATUS).write_bytes(b"\xff garbage")
    (garbage / paths.EVENTS).write_bytes(b"\xff garbage\n")
    os.utime(garbage, (NOW, NOW))
    code, out, _ = run_cli(capsys, "status", run.directory)
    assert code == 1
    assert "starting" in out
    assert "rank 1: not understood" in out
    code, out, _ = run_cli(capsys, "status", run.directory, "--json")
    assert code == 1
    assert [row["warning"] is not None for row in json.loads(out)["ranks"]] == [False, True]


def test_a_few_bad_lines_in_events_hide_no_failure(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run", world_size=1)
    run.rank(0).start().raw_event(b"garbage\n")
    assert run_cli(capsys, "status", run.directory)[0] == 0


def test_a_rank_that_may_not_be_read_is_code_1_and_named(capsys):
    with unprivileged_directory() as directory:
        run = RunBuilder(directory / "run", world_size=2)
        run.rank(0).start()
        closed = run.rank(1).directory.parent
        closed.chmod(0)
        code, out, _ = run_cli(capsys, "status", run.directory)
        closed.chmod(0o700)
    assert code == 1
    assert "rank-00001: no permission to read it" in out


def test_a_root_whose_runs_belong_to_others_says_so_and_what_helps(capsys):
    with unprivileged_directory() as directory:
        RunBuilder(directory / "run").directory.chmod(0)
        code, _, err = run_cli(capsys, "status", directory)
        (directory / "run").chmod(0o700)
    assert code == 2
    assert "no permission to read" in err
    assert "--share-group" in err


def test_missing_ranks_and_what_could_not_be_read_are_said(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=4)
    run.rank(0).start().set(warning="log disk full: 3 kB lost")
    (run.rank(1).directory / paths.STATUS).write_text("{")
    text = "\n".join(lines_of(run))
    assert "2 of 4 ranks have not come yet" in text
    assert "rank 0: log disk full: 3 kB lost" in text
    assert "rank 1: not understood: no JSON" in text


def test_a_terminal_gets_colours_and_lines_that_fit_unless_no_color_is_set(tmp_path):
    run = crashed_run(tmp_path / "run")
    run.rank(0).start().output("进度 ".encode() * 60)
    coloured = lines_of(run, colours=True, columns=100)
    assert any("\x1b[31mheld" in line for line in coloured)
    plain = lines_of(run, columns=100)
    assert "\x1b" not in "\n".join(plain)
    assert plain[4].endswith("…")
    assert all(status.text.width(line) <= 100 for line in plain)


def test_nothing_that_a_run_says_acts_on_the_terminal(tmp_path):
    evil = "\x1b]0;owned\x07\x9b31m\r\n[bold]x"
    run = RunBuilder(tmp_path / "run", run_id=evil, world_size=1)
    run.rank(0, host=evil).start().phase(evil).set(last_line=evil, warning=evil).fail(1, reason=evil)
    text = "".join(lines_of(run))
    assert text.isprintable()
    assert "[bold]x" in text


def test_without_a_target_the_newest_run_of_the_root_is_taken(tmp_path, capsys, monkeypatch):
    RunBuilder(tmp_path / "runs" / "one", run_id="one")
    monkeypatch.setenv("TRAINWATCH_ROOT", str(tmp_path / "runs"))
    assert json.loads(run_cli(capsys, "status", "--json")[1])["run"]["id"] == "one"
    monkeypatch.delenv("TRAINWATCH_ROOT")
    monkeypatch.chdir(tmp_path)
    newer = RunBuilder(tmp_path / "runs" / "two", run_id="two")
    (newer.directory / paths.RUN_FILE).write_text(json.dumps({**newer.info.to_json(), "created": NOW}))
    code, out, err = run_cli(capsys, "status", "--json")
    assert (code, json.loads(out)["run"]["id"]) == (0, "two")
    assert "the newest of 2 runs" in err


@pytest.mark.parametrize("command", [["status"], ["hold", "--all", "--release"], ["shell"], []])
@pytest.mark.parametrize(("name", "said"), [
    ("none", "does not exist"), ("file", "is a file"), ("empty", "is empty"), ("newer", "upgrade trainwatch"),
])  # fmt: skip
def test_a_bad_target_is_one_line_and_code_2(tmp_path, capsys, command, name, said):
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    newer = RunBuilder(tmp_path / "newer")
    (newer.directory / paths.RUN_FILE).write_text('{"format": 2, "run_id": "r", "created": 1}')
    argv = [*command[:1], tmp_path / name, *command[1:]]
    code, out, err = run_cli(capsys, *argv)
    assert (code, out, err.count("\n")) == (2, "", 1)
    if command or name != "file":
        assert said in err
    else:
        assert "needs a terminal" in err, "a file is a log that can be watched"
    assert err.startswith("trainwatch: ")


def test_no_target_and_no_runs_says_what_to_do(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run_cli(capsys, "status")
    assert code == 2
    assert "no TARGET given, and ./runs does not exist; name a run directory, or try: trainwatch demo" in err


def test_a_mistyped_command_is_told_the_commands(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run_cli(capsys, "statsu")
    assert code == 2
    assert "commands are status, logs, hold, shell" in err


@pytest.mark.parametrize(("argv", "said"), [
    (["statis", "runs/x"], "unknown command statis; did you mean: trainwatch status"),
    (["hodl", "runs/x", "--all", "--release"], "unknown command hodl; did you mean: trainwatch hold"),
    (["frobnicate", "runs/x"], "unknown command frobnicate; commands are status, logs, hold, shell"),
])  # fmt: skip
def test_an_unknown_command_is_told_the_one_that_was_meant(tmp_path, capsys, monkeypatch, argv, said):
    monkeypatch.chdir(tmp_path)
    code, out, err = run_cli(capsys, *argv)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_a_path_with_a_line_break_in_it_is_still_one_line(tmp_path, capsys):
    code, _, err = run_cli(capsys, "status", f"{tmp_path}/a\nb\x1b[2J")
    assert (code, err.count("\n")) == (2, 1)
    assert "\x1b" not in err


@pytest.mark.parametrize(
    "argv", [["--help"], ["--version"], ["status", "--help"], ["hold", "--help"], ["shell", "--help"]])
def test_help_is_there_and_teaches(capsys, argv):
    with pytest.raises(SystemExit) as raised:
        cli.main(argv)
    assert raised.value.code == 0
    out = capsys.readouterr().out
    assert "trainwatch" in out
    if "--help" in argv:
        assert "examples:" in out
        assert "exit codes" in out


def process(*argv, **options):
    return subprocess.run([sys.executable, "-m", "trainwatch", *map(str, argv)], capture_output=True, text=True,
                          check=False, **options)


def test_a_reader_that_leaves_early_causes_no_complaint(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=None)
    for rank in range(40):
        run.rank(rank).start().output(b"x" * 150)
    command = f"{sys.executable} -m trainwatch status {run.directory} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith("run-1")
    closed = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m trainwatch status {run.directory} >&-; echo $?"],
        capture_output=True, text=True, check=True)
    assert "Traceback" not in closed.stderr


def test_an_interrupt_ends_without_a_traceback(capsys, monkeypatch, tmp_path):
    def interrupt(_argv):
        raise KeyboardInterrupt

    monkeypatch.setattr(status, "main", interrupt)
    assert run_cli(capsys, "status", tmp_path) == (130, "", "")


def test_a_terminal_without_utf_8_still_gets_its_table(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start().output("损失\n".encode())
    run.rank(0, attempt=2).start()
    ascii_only = {"PATH": os.environ["PATH"], "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = process("status", run.directory, env=ascii_only)
    assert "Traceback" not in done.stderr
    assert "RANK" in done.stdout


def test_status_never_loads_the_screen(tmp_path):
    run = RunBuilder(tmp_path / "run")
    code = (
        "import sys; from trainwatch.cli import main; main(['status', sys.argv[1]]);"
        "sys.exit(any(m.partition('.')[0] in ('textual', 'rich', 'watchfiles', 'asyncio') for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run.directory)], capture_output=True, check=False)
    assert done.returncode == 0, done


def test_numbers_beyond_all_calendars_are_told_as_valid_json(tmp_path, capsys):
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start().fail(1).set(hold_until=1e308, clock_offset=1e308, time=1e17, started=-1e17)
    _, out, err = run_cli(capsys, "status", run.directory, "--json")
    assert (json.loads(out, parse_constant=pytest.fail)["ranks"][0]["rank"], err) == (0, "")
    assert run_cli(capsys, "status", run.directory)[2] == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_one_line_and_code_2(tmp_path):
    run = RunBuilder(tmp_path / "run")
    argv = [sys.executable, "-m", "trainwatch", "status", str(run.directory)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "trainwatch: No space left on device\n")


def test_a_working_directory_that_is_gone_is_one_line_and_code_2(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    code = "import os, sys; os.rmdir(os.getcwd()); from trainwatch.cli import main; sys.exit(main(['status', 'x']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=gone, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n"), "Traceback" in done.stderr) == (2, 1, False)
