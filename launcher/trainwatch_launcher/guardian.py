"""The guardian: a tiny process that kills the command when the launcher itself is killed.

A parent-death signal (prctl(2)) would end the command's first process only; training hides behind `bash train.sh` and
torchrun, which keep their children running. The guardian is a shell that waits on a pipe: its end without a word means
that the launcher died, and then the command's group and all its descendants go too, and what the launcher had adopted
of them (daemons, what is left in the drain): who adopts the guardian now adopts those, and they are known by the
command's mark in their environment. It is started before the command, so that a launcher that is killed in the very
moment of its start leaves nothing either. As PID 1 there is no need: the kernel kills everybody.
"""
from __future__ import annotations

import os

from trainwatch_launcher.quick import signal

SCRIPT = """
trap '' HUP INT QUIT TERM USR1 USR2 ALRM TSTP TTIN TTOU PIPE
below() {
    for task in /proc/"$1"/task/*/children; do
        for child in $(cat "$task" 2>/dev/null); do echo "$child"; below "$child"; done
    done
}
parent() {
    while read -r name value; do [ "$name" != PPid: ] || echo "$value"; done </proc/$$/status
}
IFS= read -r mark || exit
group=
while read -r group; do :; done
if [ -n "$group" ]; then
    family=$(below "$group")
    kill -s KILL -- "-$group" $family 2>/dev/null
fi
tries=40
while [ $tries -gt 0 ] && [ "$(parent)" = "$PPID" ]; do
    sleep 0.05 || sleep 1
    tries=$((tries - 1))
done 2>/dev/null
for child in $(cat /proc/"$(parent)"/task/*/children 2>/dev/null); do
    if tr '\\0' '\\n' <"/proc/$child/environ" | grep -qxF -e "$mark"; then
        kill -s KILL $(below "$child") "$child"
    fi
done 2>/dev/null
"""


class Guardian:
    """Watches over one process group (`watch`) from the outside until it is dismissed.

    `mark` is a variable with its value that the command and its descendants have in their environment.
    """

    def __init__(self, mark: bytes) -> None:
        self.pid = 0
        self._writer = -1
        self._watching = False
        self._mark = mark.replace(b"\n", b"?")
        self.begin()

    def begin(self) -> None:
        """Start to watch, also again after `dismiss`: then only over what has the mark."""
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
        self._tell(self._mark)

    def watch(self, group: int) -> None:
        """From now on this group dies with us."""
        self._watching = True
        self._tell(b"%d" % group)

    def group_has_gone(self) -> None:
        """Nobody is left in the group: its number may come to mean another one."""
        if self._watching:
            self._watching = False
            self._tell(b"")

    def _tell(self, line: bytes) -> None:
        if self._writer >= 0:
            try:
                os.write(self._writer, line + b"\n")
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
