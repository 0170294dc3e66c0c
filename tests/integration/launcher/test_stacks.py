"""Stacks of hung processes: by py-spy, by faulthandler, by the kernel; and what is said where none can be had."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.pythons import every_python
from support.stacks import BARE_PYTHON, HANGS, NO_PY_SPY, PY_SPY, dump_of, functions, take
from support.waiting import wait_until
from trainwatch import packing
from trainwatch_launcher.child import processes
from trainwatch_launcher.reader.requests import write_request
from trainwatch_launcher.rundir.stacks import Tasks
from trainwatch_launcher.stacks import spy

IN_LOCK = ["wait_for_ever", "wait_for_ever", "wait_for_ever", "<module>"]


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "hang.py"
    path.write_text(HANGS)
    return str(path)


def by_command(dump, word):
    """The processes whose commands have a word, in the order of their ids."""
    found = [one for one in dump.processes if word in one.command.split() and not one.command.startswith("sh -c")]
    return sorted(found, key=lambda one: one.pid)


def is_alive(pid):
    return spy.state_of(pid) not in ("", "Z", "X")


def test_py_spy_tells_where_all_threads_of_all_processes_are(launch, script):
    command = f"sleep 1000 & {sys.executable} {script} fork"
    launched = launch.start("sh", "-c", command, env={"PATH": f"{PY_SPY.parent}:/usr/bin:/bin"})
    launched.wait_for_output(b"ready")
    event, dump = take(launched)
    assert (event.text("file"), event.text("method"), event.text("note")) == ("stacks-1.txt", "py-spy", "")
    assert (event.integer("processes"), event.integer("python"), event.integer("left_out")) == (4, 2, 0)
    main, forked = by_command(dump, script)
    assert (main.method, functions(main), main.threads[0].name) == ("py-spy", IN_LOCK, "MainThread")
    assert main.threads[0].frames[0].file == script
    assert main.threads[0].frames[0].line == HANGS.splitlines().index("    lock.acquire()") + 2
    assert "in_socket" in functions(main, 1)
    assert functions(forked) == ["child_sleeps", "<module>"]
    (sleeper,) = by_command(dump, "sleep")
    assert not sleeper.threads
    assert sleeper.tasks[0].name == "sleep"
    assert dump.why.startswith("asked by ")
    assert launched.process.poll() is None
    assert all(is_alive(one.pid) for one in dump.processes)
    again, _ = take(launched)
    assert again.text("file") == "stacks-2.txt"
    wait_until(lambda: launched.status().stacks == 2, what="the newest file in the status")
    launched.signal(signal.SIGTERM)
    assert b"stacks of 4 processes (py-spy): stacks-1.txt" in launched.wait().err


@every_python
def test_an_armed_python_tells_where_it_is_also_a_forked_one_and_one_that_waits_in_c(launch, script, python, tmp_path):
    """And nothing of the user's own is lost by the arming."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import builtins; builtins.customized = 'yes'\n")
    (own / "mine.py").write_text("")
    Path(script).write_text("import mine; print('customized', customized)\n" + HANGS)
    launched = launch.start(python_of(python), script, "fork", options=["--faulthandler"], python=python_of(python),
                            env={**NO_PY_SPY, "PYTHONPATH": str(own)})
    launched.wait_for_output(b"ready")
    assert b"customized yes" in launched.log()
    event, dump = take(launched)
    assert event.text("method") == "faulthandler"
    main, forked = by_command(dump, script)
    assert (functions(main), main.threads[0].name, main.threads[0].id) == (IN_LOCK, "MainThread", main.pid)
    assert any("in_socket" in functions(main, number) for number in range(1, len(main.threads)))
    assert functions(forked)[0] == "child_sleeps"
    _, again = take(launched)
    assert [functions(one) for one in by_command(again, script)] == [functions(main), functions(forked)]


def python_of(python):
    return BARE_PYTHON if python == sys.executable else python


def test_a_python_that_is_not_armed_is_left_alone_and_said(launch, script):
    """A signal that it does not catch would end it."""
    launched = launch.start(BARE_PYTHON, "-I", script, options=["--faulthandler"], python=BARE_PYTHON, env=NO_PY_SPY)
    launched.wait_for_output(b"ready")
    event, dump = take(launched)
    assert event.text("method") == "kernel"
    assert "no py-spy here" in event.text("note")
    assert "--with-py-spy" in event.text("note")
    (main,) = by_command(dump, script)
    assert any("not armed" in why for why in main.tried)
    assert isinstance(main.tasks[0], Tasks)
    assert is_alive(main.pid)


def test_armed_pythons_see_the_same_path_and_the_same_faults_as_others(launch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('the user s own')\n")
    tell = f"{BARE_PYTHON} -c 'import sys; print(sys.path, \"sitecustomize\" in sys.modules)'"
    said = []
    for options in ([], ["--faulthandler"]):
        for own in ({}, {"PYTHONPATH": ""}, {"PYTHONPATH": str(tmp_path)}):
            launched = launch("sh", "-c", tell, options=options, env={**NO_PY_SPY, **own}, rank=len(said))
            said.append(launched.log().replace(b"True", b"False"))  # our own module stays where there is no other
    assert said[:3] == said[3:]
    assert b"the user s own" in said[2]


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    path = tmp_path_factory.mktemp("packed") / "launch.pyz"
    packing.pack(path, with_py_spy=True)
    path.chmod(0o500)
    return path


@pytest.mark.parametrize(("options", "method"), [([], "py-spy"), (["--faulthandler"], "faulthandler")])
def test_the_packed_file_brings_py_spy_and_arms_too(launch, script, packed, tmp_path, options, method):
    file = packed
    if options:
        file = tmp_path / "plain.pyz"
        packing.pack(file)
    argv = [BARE_PYTHON, "-I", file.name, f"--run-dir={launch.run}", *options, "--", BARE_PYTHON, script]
    launched = launch.adopt(subprocess.Popen(argv, cwd=file.parent, env=NO_PY_SPY))
    launched.wait_for_output(b"ready")
    event, dump = take(launched)
    assert event.text("method") == method
    (main,) = by_command(dump, script)
    assert functions(main) == IN_LOCK
    descriptors = [os.readlink(f"/proc/{main.pid}/fd/{name}") for name in os.listdir(f"/proc/{main.pid}/fd")]
    assert not any("py-spy" in path or "trainwatch-launch" in path for path in descriptors)


@pytest.mark.parametrize("trouble", [AttributeError("an old kernel"), PermissionError(1, "vm.memfd_noexec")])
def test_where_nothing_in_memory_may_run_a_file_without_a_name_does(monkeypatch, tmp_path, trouble):
    def refuse(*_):
        raise trouble

    monkeypatch.setattr(os, "memfd_create", refuse)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    fd = spy.in_memory(PY_SPY.read_bytes())
    try:
        done = subprocess.run([f"/proc/self/fd/{fd}", "--version"], capture_output=True, text=True, pass_fds=[fd])
    finally:
        os.close(fd)
    assert done.stdout.startswith("py-spy ")
    assert not list(tmp_path.iterdir())


# -- where py-spy cannot


def stand_in(directory, text):
    path = directory / "bin" / "py-spy"
    path.parent.mkdir()
    path.write_text(text)
    path.chmod(0o755)
    return {"PATH": f"{path.parent}:/usr/bin:/bin"}


@pytest.mark.parametrize(("options", "method"), [([], "kernel"), (["--faulthandler"], "faulthandler")])
def test_that_it_is_not_permitted_is_said_once_with_what_would_help(launch, script, tmp_path, options, method):
    env = stand_in(tmp_path, f"""#!/bin/sh
echo asked >> {tmp_path}/asked
echo "Permission Denied: Try running again with elevated permissions by going 'sudo env PATH=$PATH !!'" >&2
exit 1
""")
    launched = launch.start(BARE_PYTHON, script, "fork", options=options, python=BARE_PYTHON, env=env)
    launched.wait_for_output(b"ready")
    event, dump = take(launched)
    assert event.text("method") == method
    for one in by_command(dump, script):
        assert "py-spy is not permitted" in one.tried[0]
    assert (tmp_path / "asked").read_text() == "asked\n"
    if not options:
        assert "--cap-add SYS_PTRACE" in event.text("note")
        assert "--faulthandler" in event.text("note")
    assert "Traceback" not in (launched.attempt() / event.text("file")).read_text()


def test_one_for_another_machine_is_said(launch, script, tmp_path):
    env = stand_in(tmp_path, "")
    other = 183 if os.uname().machine == "x86_64" else 62
    Path(env["PATH"].partition(":")[0], "py-spy").write_bytes(
        b"\x7fELF\2\1\1" + bytes(9) + b"\2\0" + other.to_bytes(2, "little") + bytes(100))
    launched = launch.start(BARE_PYTHON, script, python=BARE_PYTHON, env=env)
    launched.wait_for_output(b"ready")
    event, _ = take(launched)
    assert f"is for {spy.MACHINES[other]}, and this is {os.uname().machine}" in event.text("note")


def test_one_that_hangs_is_killed_and_leaves_nobody_stopped(tmp_path):
    victim = subprocess.Popen(["sleep", "1000"])
    env = stand_in(tmp_path, "#!/bin/sh\nkill -STOP $4\nexec sleep 1000\n")
    try:
        with pytest.raises(spy.SpyError, match="did not answer"):
            spy.Spy(os.path.join(env["PATH"].partition(":")[0], "py-spy"), "py-spy").ask(victim.pid, 1.0)
        wait_until(lambda: spy.state_of(victim.pid) == "S", what="the process to run on")
    finally:
        victim.kill()
        victim.wait()


# -- when


def test_a_stall_has_its_stacks_once(launch, script):
    command = f"echo 'step 1/9 | loss: 1.0'; exec {BARE_PYTHON} {script}"
    options = ["--stall-dump", "--stall-after=1", "--heartbeat=0.2"]
    launched = launch.start("sh", "-c", command, options=options, env={"PATH": f"{PY_SPY.parent}:/usr/bin:/bin"})
    stall = launched.wait_for_event("stall")
    taken = launched.wait_for_event("stacks", 60)
    assert stall.text("stacks") == taken.text("file") == "stacks-1.txt"
    assert taken.text("by") == "stall"
    dump = dump_of(launched, taken)
    assert dump.why == "stall"
    assert functions(by_command(dump, script)[0]) == IN_LOCK
    wait_until(lambda: launched.status().time > taken.time + 2, what="it to stall for longer")
    assert len(launched.events("stacks")) == 1


def test_while_a_failed_rank_is_held_there_is_nothing_to_take(launch):
    launched = launch.start("false", options=["--hold=600"])
    launched.wait_for_event("hold")
    event, dump = take(launched)
    assert dump is None
    assert event.text("note") == "no process of the command is left"
    assert launched.process.poll() is None


def test_a_second_request_waits_for_no_first_one(launch, script, tmp_path):
    env = stand_in(tmp_path, "#!/bin/sh\nexec sleep 1000\n")
    launched = launch.start(BARE_PYTHON, script, python=BARE_PYTHON, env=env)
    launched.wait_for_output(b"ready")
    for _ in range(2):
        write_request(str(launched.attempt()), "stacks")
    wait_until(lambda: len(launched.events("control")) == 2, what="both to be answered")
    assert [one.text("result") for one in launched.events("control")] == ["done", "stacks are being taken already"]
    sleeper = wait_until(lambda: [p.pid for p in processes() if p.parent == launched.process.pid and p.name == "sleep"])
    launched.signal(signal.SIGTERM)
    assert launched.wait().code == 143  # the end does not wait for it, nor leaves it behind
    wait_until(lambda: not is_alive(sleeper[0]), what="its end")
