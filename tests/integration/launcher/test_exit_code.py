"""The exit code is sacred: whatever happens, the platform sees the command's own."""
from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest

from support.pythons import every_python

DAEMON = "setsid sh -c 'echo $$ > PID_FILE; exec sleep 60' >/dev/null 2>&1"


@every_python
@pytest.mark.parametrize("code", [0, 1, 2, 3, 126, 127, 128, 200, 255])
def test_the_command_s_code_is_returned(launch, python, code):
    assert launch("sh", "-c", f"exit {code}", python=python).code == code


@every_python
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT, signal.SIGUSR1])
def test_death_by_signal_n_is_128_plus_n(launch, python, number):
    launched = launch("sh", "-c", f"kill -{int(number)} $$", python=python)
    assert launched.code == 128 + number
    assert launched.events("exit")[0].text("signal") == number.name


def test_a_missing_command_is_127_and_one_that_cannot_be_run_126(launch, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("echo never\n")
    missing = launch("no-such-command")
    assert (missing.code, missing.log()) == (127, b"")
    assert b"command not found" in missing.err
    assert launch(str(tmp_path / "nothing")).code == 127
    assert launch(str(plain)).code == 126
    assert launch(str(tmp_path)).code == 126
    assert launch("").code == 127


def test_a_script_without_a_first_line_is_run_by_sh_as_a_shell_would(launch, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo from sh $1\nexit 6\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    launched = launch(str(script), "it")
    assert (launched.code, launched.log()) == (6, b"from sh it\n")


def test_a_command_whose_interpreter_is_missing_says_so(launch, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    launched = launch(str(script))
    assert launched.code == 127
    assert b"interpreter" in launched.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--holdd=3"], b"did you mean --hold"),
        (["--bogus"], b"unknown option --bogus; see --help"),
        (["--world-size=0"], b"--world-size must be a whole number from 1 up"),
        (["--hold=soon"], b"--hold must be a number of seconds"),
        (["--hold"], b"--hold needs SECONDS"),
        (["--rank=-1"], b"--rank must be a whole number"),
        (["--root=a", "--run-dir=b"], b"give one of them"),
        (["--hold-on=x"], b"exit codes like"),
    ],
)
def test_wrong_options_exit_2_before_anything_runs(launch, tmp_path, options, says):
    ran = tmp_path / "ran"
    launched = launch("touch", str(ran), options=options)
    assert launched.code == 2
    assert says in launched.err
    assert b"Traceback" not in launched.err
    assert not ran.exists()


def test_no_command_is_a_usage_error(launch):
    launched = launch()
    assert launched.code == 2
    assert b"no command" in launched.err


def test_a_wrong_variable_is_named(launch):
    launched = launch("true", env={"TRAINWATCH_DRAIN_TIMEOUT": "never"})
    assert launched.code == 2
    assert b"TRAINWATCH_DRAIN_TIMEOUT" in launched.err


def test_a_background_process_that_holds_the_pipe_does_not_hold_the_launcher(launch):
    launched = launch("sh", "-c", "sleep 600 & exit 3", options=["--drain-timeout=0.5"], timeout=10)
    assert launched.code == 3
    left = [event for event in launched.events("warning") if event.text("kind") == "left-behind"]
    assert "sleep" in left[0].text("message")


def test_what_a_background_process_still_writes_is_kept(launch):
    launched = launch("sh", "-c", "(sleep 0.3; echo late) & exit 3", timeout=10)
    assert (launched.code, launched.log()) == (3, b"late\n")


def test_processes_in_sessions_of_their_own_are_not_left_behind(launch, tmp_path):
    pid_file = tmp_path / "pid"
    command = f"{DAEMON} & while [ ! -s {pid_file} ]; do :; done".replace("PID_FILE", str(pid_file))
    launched = launch("sh", "-c", command, timeout=15)
    assert launched.code == 0
    assert not alive(int(pid_file.read_text()))


def test_with_leave_orphans_they_live_on(launch, tmp_path):
    pid_file = tmp_path / "pid"
    command = f"{DAEMON} & while [ ! -s {pid_file} ]; do :; done".replace("PID_FILE", str(pid_file))
    launch("sh", "-c", command, options=["--leave-orphans"], timeout=15)
    pid = int(pid_file.read_text())
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_process_that_the_entry_script_started_before_us_is_not_ours_to_kill(launch, tmp_path):
    pid_file = tmp_path / "pid"
    before = ["sh", "-c", f'sleep 30 >/dev/null 2>&1 & echo $! > {pid_file}; exec "$@"', "sh"]
    assert launch("true", before=before, timeout=15).code == 0
    pid = int(pid_file.read_text())
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
