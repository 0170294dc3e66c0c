"""The end: why the command failed, what the launcher says about it, the hold, and the exit code."""
from __future__ import annotations

import os
import time

from trainwatch_launcher import child, signals
from trainwatch_launcher.control import answer
from trainwatch_launcher.hold import Hold, banner, clock
from trainwatch_launcher.peers import stop_words
from trainwatch_launcher.postmortem import examine
from trainwatch_launcher.quick import Flag, signal
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.worker import PATIENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.child import Exit
    from trainwatch_launcher.diagnosis.answer import Diagnosis
    from trainwatch_launcher.output import Pump
    from trainwatch_launcher.worker import Worker


class Outcome:
    """How a command ended. Times are Unix seconds; `pump` is None when it never started, and then `reason` says why.

    `duration` is measured by the monotonic clock: the other one may have been set meanwhile.
    """

    def __init__(
        self,
        exit: Exit,
        started: float,
        exited: float,
        stop_asked: bool = False,
        pump: Pump | None = None,
        reason: str = "",
        duration: float = 0.0,
    ) -> None:
        self.exit, self.started, self.exited, self.duration = exit, started, exited, duration
        self.stop_asked, self.pump, self.reason = stop_asked, pump, reason
        self.not_held = ""
        """Why it is not held although failures are; empty when that needs no word."""
        self.diagnosis: Diagnosis | None = None
        """Why it failed; None when it did not, or when that could not be found out in time."""


def end(worker: Worker, outcome: Outcome) -> int:
    """Everything after the command's end; returns what the process exits with, which is the command's own code."""
    code = outcome.exit.code
    examine(worker, outcome)
    record_exit(worker, outcome)
    worker.peers.announce(outcome)
    hold = None
    # after a stop request the platform's grace period runs, and a nested launcher leaves holding to its container's
    holds = worker.options.holds(code) and not outcome.stop_asked and not worker.place.nested
    if holds and not is_excused(worker, outcome):
        hold = Hold(worker.options.hold, code, time.time(), time.monotonic())
    if code:
        sync_log(worker)
        worker.console.settle(1.0)
    if code and outcome.stop_asked:
        worker.say("the command ended with exit code %d after it was asked to stop", code)
    elif code and worker.place.nested:
        # its container's launcher has the banner; this is one of many lines that reach that one's console
        worker.say("local rank %d failed with exit code %d: %s", worker.identity.local_rank or 0, code, outcome.reason)
    elif code:
        worker.voice.post(failure_text(worker, outcome, hold).encode("utf-8", "backslashreplace"))
    if hold is not None:
        if worker.options.hold_policy == "root":
            worker.peers.release_later(outcome, hold)
        keep(worker, hold)
    costs = worker.recorder.vitals.words() if worker.recorder.vitals is not None else ""
    if costs and not worker.place.nested:
        worker.say("%s", costs)
    return worker.leave(code)


def is_excused(worker: Worker, outcome: Outcome) -> bool:
    """Whether --hold-policy root lets this one go: another rank is the cause, and is held itself."""
    if worker.options.hold_policy != "root":
        return False
    blamed = worker.peers.excuse(outcome)
    if blamed is None:
        return False
    outcome.not_held = "not held (--hold-policy root): %s" % stop_words(blamed)
    worker.recorder.event("not-held", why="policy", by="rank %d" % blamed.rank, message=stop_words(blamed))
    return True


def record_exit(worker: Worker, outcome: Outcome) -> None:
    """The `exit` event, and the same facts in the status."""
    ended = outcome.exit
    lines = outcome.pump.lines if outcome.pump else None
    worker.recorder.event_at(
        outcome.exited,
        "exit",
        code=ended.code,
        signal=signals.name_of(ended.signal) if ended.signal is not None else None,
        core_dumped=ended.core_dumped,
        duration=round(outcome.duration, 3),
        cpu_user=round(ended.cpu_user, 3),
        cpu_system=round(ended.cpu_system, 3),
        max_rss=ended.max_rss,
        oom_kills=worker.new_oom_kills(),
        output_bytes=lines.size if lines else 0,
        reason=outcome.reason,
        diagnosis=outcome.diagnosis.as_json() if outcome.diagnosis is not None else None,
    )
    worker.recorder.update(
        exited=outcome.exited, exit_code=ended.code, exit_signal=ended.signal, reason=outcome.reason
    )


def sync_log(worker: Worker) -> None:
    """Let other hosts see the whole log before we speak of it; not longer than PATIENCE."""
    attempt = worker.recorder.attempt
    if attempt is None:
        return
    worker.log.settle(PATIENCE)
    synced = Flag()

    def sync() -> None:
        try:
            os.fsync(attempt.output)
        except OSError:
            pass  # the sink says what it could not write
        synced.set()

    if worker.helpers.run(sync):
        synced.wait(PATIENCE)


def failure_text(worker: Worker, outcome: Outcome, hold: Hold | None) -> str:
    """The failure banner."""
    attempt = worker.recorder.attempt
    return banner(
        when=outcome.exited,
        host=worker.identity.host,
        rank=worker.identity.rank,
        code=outcome.exit.code,
        signal=outcome.exit.signal,
        reason=outcome.reason,
        diagnosis=outcome.diagnosis,
        note=outcome.not_held,
        log=attempt.path(paths.OUTPUT) if attempt else "",
        run_dir=worker.place.run_dir if attempt else "",
        hold=hold,
    )


def keep(worker: Worker, hold: Hold) -> None:
    """Hold: reap, obey, count down, until the deadline, a request or a signal ends it."""
    recorder, requests = worker.recorder, worker.requests
    recorder.event("hold", until=hold.until, seconds=hold.seconds, code=hold.code)
    recorder.update(hold_until=hold.until)

    def refuse(number: int, sender: dict[str, object]) -> bool:
        return False  # nobody is left to forward a signal to

    while not hold.why:
        info = signal.sigtimedwait(worker.taken.numbers, min(1.0, hold.left(time.monotonic())))
        child.reap()
        if info is not None and info.si_signo != signal.SIGCHLD:
            name, sender = signals.name_of(info.si_signo), signals.sender_of(info)
            recorder.event("signal", signal=name, received_from=sender, forwarded=False, why="held")
            if info.si_signo in signals.STOPS:
                hold.release("signal", name)
        while requests:
            answer(requests.popleft(), refuse, hold, worker)
        until = hold.until
        reminder = hold.tick(time.time(), time.monotonic())
        if hold.until != until:
            recorder.update(hold_until=hold.until)  # the clock was set, and the viewer counts down by it
        if reminder:
            worker.say("%s", reminder)
    recorder.event("release", why=hold.why, by=hold.by)
    by = " by %s" % hold.by if hold.by else ""
    worker.say("hold ended (%s%s) at %s; exit %d", hold.why, by, clock(time.time()), hold.code)
