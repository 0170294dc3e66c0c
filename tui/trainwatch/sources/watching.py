"""Tells when files under a directory change: the kernel's notifications where they can be had."""
from __future__ import annotations

import os
import threading
from collections.abc import Callable

import watchfiles

DEBOUNCE = 100
"""Milliseconds that a burst of changes is collected for."""
STEP = 20
"""Milliseconds without a change that end a burst."""


LIMIT = "its limit is used up; raise fs.inotify.max_user_watches"


class Watcher:
    """Calls back, from a thread of its own, with the paths that changed and that `wanted` lets through.

    `failed` is called once with a sentence when watching is not possible or ends by itself.
    """

    def __init__(
        self,
        directory: str,
        wanted: Callable[[str], bool],
        changed: Callable[[set[str]], None],
        failed: Callable[[str], None],
    ) -> None:
        self._directory = directory
        self._wanted = wanted
        self._changed = changed
        self._failed = failed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trainwatch-watch", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; returns at once, the thread ends within a moment."""
        self._stop.set()

    def _run(self) -> None:
        try:
            for changes in watchfiles.watch(
                self._directory,
                watch_filter=lambda _change, path: self._wanted(path),
                debounce=DEBOUNCE,
                step=STEP,
                stop_event=self._stop,
                rust_timeout=1000,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                self._changed({path for _, path in changes})
        except (OSError, RuntimeError) as error:
            if not self._stop.is_set():
                self._failed(_sentence(error))


def _sentence(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "limit" in text.lower() or "No space left" in text or "Too many open files" in text:
        text = LIMIT
    return f"the kernel does not tell of changes ({text}): looking every half second instead"


class Doubt:
    """Whether the kernel tells of everything. When its limit is used up on the way, only some directories are watched,
    and nobody says so; then looks at everything find changes in a directory of which no word comes.
    """

    sentence = f"the kernel does not tell of all changes ({LIMIT}): looking every half second instead"

    def __init__(self) -> None:
        self._heard: set[str] = set()
        self._suspects: set[str] = set()

    def note(self, paths: set[str]) -> None:
        """The kernel has told of these files."""
        self._heard.update(path.rpartition(os.sep)[0] for path in paths)

    def confirmed(self, changed: set[str]) -> bool:
        """After each look at everything: the directories in which something had changed.

        Twice with no word between: of a change just before the first look the word would have come after it.
        """
        untold = changed - self._heard
        confirmed = bool(untold & self._suspects)
        self._heard, self._suspects = set(), untold
        return confirmed
