"""The guardian: a tiny process that kills the command when the launcher itself is killed.

A parent-death signal (prctl(2)) would end the command's first process only; training hides behind `bash train.sh` and
torchrun, which keep their children running. The guardian is a shell that waits on a pipe: its end without a word means
that the launcher died, and then the command's group and all its descendants go too. It is started before the command,
so that a launcher that is killed in the very moment of its start leaves nothing either. As PID 1 there is no need: the
kernel kills everybody.
"""
from __future__ import annotations

import os

from trainwatch_launcher.quick import signal

SCRIPT = """
trap '' HUP INT QUIT TERM USR1 USR2 ALRM TSTP TTIN TTOU PIPE
below() {
    for task in /proc/"$1"/task/*/children; do
        for child in $(cat "$task" 2>/dev/null); do below "$child"; echo "$child"; done
    done
}
read -r group || exit
read -r word && exit
family=$(below "$group")
kill -s KILL -- "-$group" $family 2>/dev/null
"""


class Guardian:
    """Watches over one process group (`watch`) from the outside until it is dismissed."""

    def __init__(self) -> None:
        self.pid = 0
        self._writer = -1
        if os.getpid() == 1:
            return
        try:
            reader, self._writer = os.pipe2(os.O_CLOEXEC)
        except OSError:
            return  # no descriptor left: the command loses this safety, nothing else
        actions = [
            (os.POSIX_SPAWN_DUP2, reader, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        arguments = ["trainwatch-guardian", "-c", SCRIPT]
        try:
            env = {"PATH": "/usr/bin:/bin"}
            self.pid = os.posix_spawn("/bin/sh", arguments, env, file_actions=actions, setpgroup=0)
        except OSError:
            os.close(self._writer)  # an image without a shell, or no process to be had
            self._writer = -1
        finally:
            os.close(reader)

    def watch(self, group: int) -> None:
        """From now on this group dies with us."""
        if self._writer >= 0:
            try:
                os.write(self._writer, b"%d\n" % group)
            except OSError:
                pass  # somebody killed the guardian

    def dismiss(self) -> None:
        """The command has ended, or needs no guard any more. Returns when the guardian is gone."""
        if self.pid:
            pid, self.pid = self.pid, 0
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                pass  # it was collected with the other children already
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1
