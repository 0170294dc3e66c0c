"""What a reader of a log remembers from one line to the next, all of it bounded."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.progress.blocks import Block

SLOW_ENOUGH = 20.0
"""Milliseconds: a bar without a name that is faster is a loop over data, unless training has been announced."""
SHORTEST_TOTAL = 10
LONG_LOOP = 60.0
"""Seconds: a bar without a name that is first seen when it is complete must have run this long."""


class Context:
    """Facts that later lines depend on."""

    def __init__(self) -> None:
        self.announced = False
        """Something said that a training loop with unnamed bars runs: Hugging Face's dictionaries or banner."""
        self.bar_total: int | None = None
        """How long the unnamed bar of the training loop is."""
        self.bar_done = False
        self.epoch: tuple[int, int] | None = None
        """Keras: the epoch that `Epoch 3/20` began, and how many there are."""
        self.epoch_done = False
        """Keras: its bar is complete; the next bar without a new epoch is an evaluation's."""
        self.block: Block | None = None
        """A sample whose lines still come."""

    def announce(self, again: bool = False) -> None:
        """Training has begun, as a banner says (`again`: another one may have ended before), or goes on.

        What was taken for its bar before anybody said so is forgotten: it may have been a slow loop over data.
        """
        if again or not self.announced:
            self.bar_total, self.bar_done = None, False
        self.announced = True

    def is_training_bar(self, step: int, total: int, ms: float | None, elapsed: float | None) -> bool:
        """Whether a bar without a name is the training loop's: they all look the same, evaluations' too."""
        if self.bar_total is None or (self.bar_done and not self.announced):
            if not self.announced and (total < SHORTEST_TOTAL or is_fast(step, ms, elapsed)):
                return False
            if step >= total and (elapsed is None or elapsed < LONG_LOOP):
                return False  # most likely a short loop before training, or the evaluation after it
            if ms is None and not self.announced:
                return False
            self.bar_total = total
        if total != self.bar_total:
            return False
        self.bar_done = step >= total
        return True


def is_fast(step: int, ms: float | None, elapsed: float | None) -> bool:
    """Whether a bar runs too fast for training, now or so far (whole seconds are known), or nobody knows."""
    if ms is None or ms < SLOW_ENOUGH:
        return True
    return elapsed is not None and (elapsed + 1) * 1000 < step * SLOW_ENOUGH
