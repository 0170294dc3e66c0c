"""The supervisor: starts the command, forwards signals to it, and waits for its end.

It is the main thread and does nothing that can block: output is the pump's, files are the recorder's, words are the
voice's. It sleeps in sigtimedwait(2); whoever needs it sends SIGCHLD to the process.
"""
from __future__ import annotations

import errno
import os
import time

from trainwatch_launcher import child, signals
from trainwatch_launcher.attempt import ATTEMPT_VARIABLE
from trainwatch_launcher.cleanup import Cleanup, has_children
from trainwatch_launcher.control import answer
from trainwatch_launcher.ending import Outcome, end
from trainwatch_launcher.facts import start_facts
from trainwatch_launcher.guardian import Guardian
from trainwatch_launcher.helpers import LEAST
from trainwatch_launcher.hold import duration
from trainwatch_launcher.identity import JOB_VARIABLE, doubts, job_of
from trainwatch_launcher.lines import LineCounter
from trainwatch_launcher.output import STUCK, Pump
from trainwatch_launcher.peers import stop_words
from trainwatch_launcher.quick import signal
from trainwatch_launcher.terminal import Lent, Pty
from trainwatch_launcher.worker import PATIENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.attempt import Attempt
    from trainwatch_launcher.child import Exit
    from trainwatch_launcher.vitals import Vitals
    from trainwatch_launcher.worker import Worker

EXHAUSTED = frozenset((errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE))
"""Errors that say that this machine or container has nothing more to give."""
LAST_WORDS = 0.01
"""A moment, in seconds, for the last words before a stop."""
TERMINAL_ASKS = frozenset((signal.SIGTTIN, signal.SIGTTOU))
"""What stops a process that uses a terminal of which it is not the foreground."""


class Supervisor:
    """Watches over one command. `run` returns what the process exits with."""

    def __init__(self, worker: Worker) -> None:
        self.worker, self.options, self.recorder = worker, worker.options, worker.recorder
        self.terminal = Lent()
        self.pty: Pty | None = None
        self.pump: Pump | None = None
        self.guardian: Guardian | None = None
        self.guarded_again = False
        """Whether the guardian, dismissed for an end that seemed near, was started again."""
        self.cleanup: Cleanup | None = None
        self.pid = 0
        self.started = 0.0
        self.exit: Exit | None = None
        self.exited = 0.0
        self.duration = 0.0
        self.stop_asked = self.pause_asked = False
        self.kill_at: float | None = None
        self.kill_why = ""
        self.phases = 0

    def run(self) -> int:
        """Run the command to its end, and hold it if it failed.

        Raises only before the command was started, or for a fault of ours: see rescue.py.
        """
        if self.worker.helpers.size < LEAST:
            raise OSError(errno.EAGAIN, "no thread can be started: the limit on processes or memory is reached")
        self.recorder.start()
        attempt = self.recorder.wait_ready(PATIENCE)
        if attempt is None and not self.recorder.failure:
            place = self.worker.place.run_dir
            self.worker.warn("WARNING: %s does not answer; the command starts without waiting for it", place)
        for doubt in doubts(self.worker.identity):
            self.worker.warn("WARNING: %s", doubt)
        env = self._environment(attempt)
        mark = mark_of(env)
        cleanup = self.cleanup = Cleanup(self.options, mark)
        self.worker.processes = lambda: cleanup.left(self.pid) if self.pid else []
        self.guardian = Guardian(mark)
        try:
            self._spawn(env, self.guardian)
        except child.SpawnError as error:
            self.guardian.dismiss()
            if error.errno in EXHAUSTED:
                raise  # nothing more can be started here, but we can become the command
            return self._never_started(error)
        assert self.pump is not None
        self.pump.start()
        if self.options.stop_on_peer_failure is not None and not self.worker.place.nested:
            self.worker.peers.watch(self.options.stop_on_peer_failure)
        self.recorder.watch(self._vitals)
        self._check()
        return end(self.worker, self._wait(self.pump, self.guardian, self.cleanup))

    def _vitals(self) -> Vitals:
        """Called by the recorder, in its thread, once the command runs: a short one does not wait for this import."""
        from trainwatch_launcher.vitals import Vitals

        assert self.pump is not None
        return Vitals(self.worker, self.pump, self.started)

    def _check(self) -> None:
        """Have the start script looked at, by a thread in reserve, while it runs already."""
        command = self.options.command
        shell = command[0].endswith(("bash", "sh"))
        if not shell or self.options.no_lint or self.options.strict:
            return

        def look() -> None:
            try:
                from trainwatch_launcher import startcheck
            except (ImportError, OSError):
                return  # no descriptor left: the script runs, unlooked at
            startcheck.report(self.worker)

        self.worker.helpers.run(look)

    # -- starting

    def _spawn(self, env: dict[bytes, bytes], guardian: Guardian) -> None:
        """Start the command, with everything ready that its output needs."""
        if self.options.pty:
            try:
                self.pty = Pty(self.worker.helpers)
            except OSError as error:
                self.worker.warn("WARNING: no terminal for --pty: %s; the command gets a pipe", error.strerror)
        if self.pty is not None:
            self._make_pump(self.pty.reader)
            self._start(env, self.pty.path, guardian)
            self.pty.started(self.pid)
            return
        reader, writer = child.output_pipe()
        try:
            self._make_pump(reader)
            self._start(env, writer, guardian)
        finally:
            os.close(writer)

    def _start(self, env: dict[bytes, bytes], output: int | str, guardian: Guardian) -> None:
        """Start the command itself; when its guardian took the last process that we may have, without a guardian."""
        argv = [os.fsencode(word) for word in self.options.command]
        mask = self.worker.taken.inherited_mask
        # it may read the terminal a moment before it gets it: then it must stop, not fail, as where these are ignored
        defaults = TERMINAL_ASKS if self.terminal.is_ours() else ()
        try:
            self.pid = child.spawn(argv, env, output, mask, defaults)
        except child.SpawnError as error:
            if error.errno not in EXHAUSTED or not guardian.pid:
                raise
            guardian.dismiss()
            self.pid = child.spawn(argv, env, output, mask, defaults)
        if self.pty is None:
            self.terminal.give(self.pid)
        guardian.watch(self.pid)
        self._record_start()

    def _environment(self, attempt: Attempt | None) -> dict[bytes, bytes]:
        """What the command gets: our environment, unbuffered Python, and where it runs."""
        env = dict(os.environb)
        if not self.options.buffered:
            env.setdefault(b"PYTHONUNBUFFERED", b"1")
        who = self.worker.identity
        ours = {
            "TRAINWATCH_RUN_ID": who.run_id,
            "TRAINWATCH_RANK": str(who.rank),
            "TRAINWATCH_RUN_DIR": self.worker.place.run_dir,
            JOB_VARIABLE: job_of(os.environ),
        }
        if attempt is not None:
            ours[ATTEMPT_VARIABLE] = attempt.directory
        env.update((os.fsencode(name), os.fsencode(value)) for name, value in ours.items() if value)
        if self.options.strict:
            self._be_strict(env)
        if self.options.faulthandler:
            from trainwatch_launcher.stacks.arming import arm

            arm(env)
        if env.get(b"LC_CTYPE") == b"C.UTF-8" and b"\0LC_CTYPE=" not in initial_environment():
            del env[b"LC_CTYPE"]  # our interpreter set it, for want of a locale (PEP 538)
        return env

    def _be_strict(self, env: dict[bytes, bytes]) -> None:
        from trainwatch_launcher import startcheck

        if startcheck.runs_bash(self.options.command):
            startcheck.with_strict(env)
        elif ATTEMPT_VARIABLE not in os.environ:
            self.worker.say("NOTE: --strict does nothing: the command is no bash script")

    def _make_pump(self, reader: int) -> None:
        worker = self.worker
        prefix = None
        if self.options.console_prefix:
            from trainwatch_launcher.prefix import LinePrefix

            prefix = LinePrefix("worker-%d" % worker.identity.rank)
        lines = LineCounter(worker.read_back)
        sinks, transforms = [worker.log, worker.console], [None, prefix]
        self.pump = Pump(reader, sinks, lines, transforms, self._on_phase, signals.wake_main, worker.helpers)
        self.recorder.pump = self.pump

    def _never_started(self, error: child.SpawnError) -> int:
        self.worker.warn("%s", error)
        now = time.time()
        self.recorder.event_at(now, "start", **start_facts(self.worker, None))
        outcome = Outcome(exit=child.Exit(error.code << 8, 0.0, 0.0, 0), started=now, exited=now, reason=str(error))
        return end(self.worker, outcome)

    def _record_start(self) -> None:
        self.started, self.duration = time.time(), -time.monotonic()
        self.recorder.event_at(self.started, "start", **start_facts(self.worker, self.pid))
        self.recorder.event_at(self.started, "phase", name="Start", offset=0, source="launcher")
        self.recorder.update(pid=self.pid, started=self.started, phase="Start", phase_since=self.started)

    def _on_phase(self, when: float, name: str, offset: int) -> None:
        """Called by the pump, in its thread."""
        self.phases += 1
        offset = max(0, offset - self.worker.log.lost_bytes)
        self.recorder.event_at(when, "phase", name=name, offset=offset, source="marker")
        self.recorder.update(phase=name, phase_since=when, phase_count=self.phases)

    # -- while the command runs

    def _wait(self, pump: Pump, guardian: Guardian, cleanup: Cleanup) -> Outcome:
        """Until the command has ended, its output is copied and nothing of it is left behind."""
        requests = self.worker.requests
        while True:
            info = signal.sigtimedwait(self.worker.taken.numbers, STUCK)
            pump.check()
            if info is not None and info.si_signo != signal.SIGCHLD:
                self._forward(info.si_signo, signals.sender_of(info))
            self._reap(pump, guardian)
            while requests:
                answer(requests.popleft(), self._forward, None, self.worker)
            self._stop_when_a_peer_failed()
            self._kill_when_due(cleanup)
            if self.exit is None:
                if self.pty is not None and not self.pty.typing:
                    self.pty.resume()
                continue
            if self._is_over(pump, guardian, cleanup):
                return Outcome(self.exit, self.started, self.exited, self.stop_asked, pump, duration=self.duration)

    def _is_over(self, pump: Pump, guardian: Guardian, cleanup: Cleanup) -> bool:
        """Whether nothing of the command is left, after its own end. Until then the guardian watches over the rest."""
        alone = not child.alive_in(self.pid)
        if alone:
            guardian.group_has_gone()
        if self.options.leave_orphans:
            guardian.dismiss()
        elif alone and pump.ended and not self.guarded_again:
            guardian.dismiss()  # as a rule it is over, which is seen at once by our having no child at all
            if has_children():
                self.guarded_again = True
                guardian.begin()
        over = cleanup.done(self.pid, self.stop_asked, pump, self.worker)
        if over:
            guardian.dismiss()
        return over

    def _reap(self, pump: Pump, guardian: Guardian) -> None:
        changed = child.reap()
        if guardian.pid in changed:
            guardian.pid = 0
        if self.exit is not None:
            return
        how = changed.get(self.pid)
        if how is None and child.is_gone(self.pid):
            how = child.Exit(1 << 8, 0.0, 0.0, 0)  # somebody else took its exit code
            self.worker.warn("WARNING: the command has ended, but its exit code went elsewhere: 1 is returned")
        if isinstance(how, child.Exit):
            self.exit = how
            self._ended(how, pump)
        elif how is not None:
            self._stopped(how)

    def _ended(self, how: Exit, pump: Pump) -> None:
        self.exited = time.time()
        self.duration += time.monotonic()
        self.terminal.take_back()
        if self.pty is not None:
            self.pty.restore()
        if self.terminal.lent and how.code == 128 + signal.SIGINT:
            self.stop_asked = True  # Ctrl-C goes from the terminal to the command, past us
        self.recorder.event_at(self.exited, "phase", name="Drain", offset=pump.lines.size, source="launcher")
        self.recorder.update(exited=self.exited, exit_code=how.code, exit_signal=how.signal)

    def _stopped(self, number: int) -> None:
        """The command was stopped by a signal. We stop with it if we were asked to, or if its terminal was.

        Not before: a command that takes TSTP for saving a checkpoint, say, and runs on, needs us for its output.
        """
        self._show_last_words()
        if number in TERMINAL_ASKS and self.terminal.there and not self.pause_asked:
            if self.terminal.give(self.pid):
                return  # it asked before it was given, or the shell made us the foreground (fg) without a word to us
            self.pause_asked = True
        asked, self.pause_asked = self.pause_asked or self.terminal.lent, False
        if self.terminal.lent:
            self.terminal.take_back()
            self.terminal.lent = False
        if asked:
            stop_ourselves()

    def _show_last_words(self) -> None:
        """Give the pump a moment for what the command said before it stopped."""
        deadline = time.monotonic() + STUCK
        while True:
            time.sleep(LAST_WORDS)
            if self.pump is None or not self.pump.has_input() or time.monotonic() >= deadline:
                return

    def _forward(self, number: int, sender: dict[str, object]) -> bool:
        """Pass a signal on to the command's group; whether anybody was there to get it."""
        sent = self.options.rewrite.get(number, number)
        if sent and (number in signals.STOPS or sent in signals.STOPS):
            self.stop_asked = True
            self.worker.stop = self.worker.stop or (number, sender)
            if self.options.kill_after is not None and self.kill_at is None:
                self._kill_in(self.options.kill_after, "--kill-after")
        if number == signal.SIGCONT:
            self.terminal.give(self.pid)
        if self.pty is not None:
            sent = self._for_pty(self.pty, number, sent)
        got = bool(sent) and child.send(self.pid, sent)
        facts = {"signal": signals.name_of(number), "received_from": sender, "forwarded": got}
        if sent != number:
            facts["forwarded_as"] = signals.name_of(sent) if sent else None
        self.recorder.event("signal", **facts)
        if number in signals.PAUSES and sent:
            self.pause_asked = self.exit is None
            if self.exit is not None:
                stop_ourselves()
        elif number == signal.SIGCONT:
            self.pause_asked = False
        return got

    def _for_pty(self, pty: Pty, number: int, sent: int) -> int:
        """What a signal means for a command with a terminal of its own; the signal to send."""
        if number == signal.SIGWINCH:
            pty.resize()
        elif number == signal.SIGCONT:
            pty.resume()
        elif sent in signals.PAUSES:
            pty.restore()
            return signal.SIGSTOP  # the kernel ignores the others in a group without a parent in its session
        return sent

    def _stop_when_a_peer_failed(self) -> None:
        """--stop-on-peer-failure: TERM, and KILL after the grace."""
        failure = self.worker.peers.due()
        if failure is None or self.exit is not None:
            return
        self.worker.stopped_for = stop_words(failure)
        self.worker.warn("%s: stopping (--stop-on-peer-failure)", self.worker.stopped_for)
        self._forward(signal.SIGTERM, {"peer": failure.rank})
        if self.kill_at is None:
            self._kill_in(self.options.grace, "--stop-on-peer-failure")

    def _kill_in(self, seconds: float, option: str) -> None:
        self.kill_at = time.monotonic() + seconds
        self.kill_why = "%s: %s after the stop signal" % (option, duration(seconds))

    def _kill_when_due(self, cleanup: Cleanup) -> None:
        if self.kill_at is None or time.monotonic() < self.kill_at:
            return
        self.kill_at = None
        if cleanup.kill(self.pid):
            self.worker.warn("the command did not end: KILL (%s)", self.kill_why)
            self.recorder.event("signal", signal="SIGKILL", received_from={}, forwarded=True, why=self.kill_why)


def stop_ourselves() -> None:
    """Stop, so that a shell sees it; its CONT comes to us and is forwarded. As PID 1 the kernel lets us run on."""
    if signal.SIGCONT not in signal.sigpending():
        os.kill(os.getpid(), signal.SIGSTOP)


def mark_of(env: dict[bytes, bytes]) -> bytes:
    """What only the environment of the command and its children has: where they are told to be."""
    for name in (ATTEMPT_VARIABLE, "TRAINWATCH_RUN_DIR"):
        value = env.get(os.fsencode(name))
        if value:
            return os.fsencode(name) + b"=" + value
    return b"TRAINWATCH_RANK="


def initial_environment() -> bytes:
    """The environment that we were started with, as proc(5) shows it; when it cannot be read, as if all were set."""
    try:
        with open("/proc/self/environ", "rb") as file:
            return b"\0" + file.read()
    except OSError:
        return b"\0LC_CTYPE="
