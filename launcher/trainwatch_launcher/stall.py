"""When a command stands still: no output and no progress for longer than is usual for it."""
from __future__ import annotations

SHORTEST = 300.0
"""Seconds of silence that are never a stall once there were steps, unless the user says otherwise."""
BEFORE_STEPS = 1800.0
"""The same before the first step: loading, compiling and preparing data say little for long."""
LONGEST = 3600.0
"""Seconds of silence that are always one, unless steps themselves take that long."""
STEPS = 10
"""So many times the usual time between two steps is a stall."""
SILENCES = 3
"""So many times the longest silence so far, which ended by itself, is one."""


class Stall:
    """Decides by what it is told. Times are monotonic seconds.

    `after` is what the user said in seconds, 0 for never, None for what suits the command. `alone` says whether this
    rank is the only one of its run: others may rightly be silent while one of them tells the progress of all.
    """

    def __init__(self, after: float | None, alone: bool, tick: float) -> None:
        self._after, self._alone = after, alone
        self.moved = tick
        """When it moved last."""
        self.stalled = False
        self._size = 0
        self._first_step: float | None = None
        self._last_step = tick
        self._steps = 0
        self._silence = 0.0

    def look(self, tick: float, size: int, stepped: bool, busy_at: float | None) -> bool:
        """Whether that it stalls has just begun or ended.

        `size`: bytes of output so far; `stepped`: progress has changed since the last look; `busy_at`: when one of its
        GPUs worked last, None when nothing is known of GPUs.
        """
        if stepped:
            self._step(tick)
        if stepped or size > self._size:
            if self._steps:
                self._silence = max(self._silence, tick - self.moved)
            self._size, self.moved = size, tick
        stalled = tick - self._still_since(busy_at) >= self.limit(busy_at) > 0
        changed, self.stalled = stalled != self.stalled, stalled
        return changed

    def limit(self, busy_at: float | None = None) -> float:
        """Seconds after which it stalls; 0 for never."""
        if self._after is not None:
            return self._after
        if not self._steps:
            # a rank that tells no steps and of whose GPUs nothing is known may be silent by nature
            return BEFORE_STEPS if self._alone or busy_at is not None else 0.0
        step = self.usual_step()
        return max(SHORTEST, SILENCES * step, min(LONGEST, max(STEPS * step, SILENCES * self._silence)))

    def usual_step(self) -> float:
        """The mean time between two looks at which a step was new; 0 when there were fewer than two."""
        if self._first_step is None or self._steps < 2:
            return 0.0
        return (self._last_step - self._first_step) / (self._steps - 1)

    def _step(self, tick: float) -> None:
        if self._first_step is None:
            self._first_step = tick
        self._steps += 1
        self._last_step = tick

    def _still_since(self, busy_at: float | None) -> float:
        """Before the first step a GPU that works is a sign of life too; later it may be one that waits for others."""
        if self._after is None and not self._steps and busy_at is not None:
            return max(self.moved, busy_at)
        return self.moved
