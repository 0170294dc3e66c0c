"""A command in this terminal beside a rank whose hold is kept meanwhile."""
from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

from trainwatch.commands.targets import Followed
from trainwatch.model import holding, text
from trainwatch.model.keeping import Keeping
from trainwatch.sources.base import ShellPlan, SourceError
from trainwatch_launcher.reader.changes import AttemptKey

EVERY = 1.0
"""Seconds between two looks at the rank."""
LEAVE = 5.0
"""Seconds that a request on its way has when the command has ended."""


def run_kept(followed: Followed, plan: ShellPlan, beside: AttemptKey) -> int:
    """Run a plan's command to its end and extend the hold as it needs it; returns the exit code as a shell gives it.

    Raises OSError when it cannot be started.
    """
    process = subprocess.Popen(plan.argv, env=plan.env)
    # only now: what is ignored here would be ignored there too. The keyboard's signals are for the command alone
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: process.send_signal(number))
    keeper = Keeper(followed, beside)
    keeper.start()
    code = process.wait()
    keeper.stop()
    return code if code >= 0 else 128 - code


class Keeper(threading.Thread):
    """Looks at one rank, and asks its launcher for more time when there is little left."""

    def __init__(self, followed: Followed, beside: AttemptKey) -> None:
        super().__init__(name="keep", daemon=True)
        self._followed = followed
        self._holder = holding.container(beside)
        self._keeping = Keeping()
        self._keeping.opened(beside, time.time())
        self._over = threading.Event()
        self._asked: tuple[AttemptKey, str] | None = None
        self._said = ""

    def run(self) -> None:
        """Until `stop`; then nothing that nobody has answered is left behind."""
        while not self._over.is_set():
            for key, seconds in self._keeping.due(self._followed.look_at(self._holder), time.time()):
                self._take_back()
                try:
                    self._asked = key, self._followed.request(key, "extend", seconds)
                except SourceError as error:
                    self._say(f"the hold is not kept: {error}")
            self._over.wait(EVERY)
        self._take_back()
        self._followed.close()

    def stop(self) -> None:
        """The command has ended."""
        self._over.set()
        self.join(LEAVE)

    def _take_back(self) -> None:
        """The last request, if its launcher has not taken it."""
        asked, self._asked = self._asked, None
        try:
            if asked is not None and self._followed.withdraw(*asked):
                self._say("the hold is not kept: its launcher does not answer")
        except SourceError as error:
            self._say(f"the hold is not kept: {error}")

    def _say(self, words: str) -> None:
        """Once, and not again and again into somebody's shell."""
        if words != self._said:
            self._said = words
            print(f"\r\ntrainwatch: {text.printable(words)}\r", file=sys.stderr, flush=True)
