"""How far the run as a whole is: one step, one loss, one time left, for what its ranks say one by one. Pure."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainwatch.model.gpus import mean_util
from trainwatch.model.progress import NO_PROGRESS, Progress
from trainwatch.model.rows import Row
from trainwatch_launcher.rundir.state import RUNNING, STALLED


@dataclass(frozen=True)
class Whole:
    """The run's progress and its GPUs at one moment."""

    progress: Progress = NO_PROGRESS
    """That of the rank that is farthest; see `loss`."""
    loss: Progress = NO_PROGRESS
    """That of the first rank that says a loss: often only one does. One whose loss is no number comes first."""
    working: bool = False
    """Whether it goes on, so that there is time left."""
    util: float | None = None
    """Mean utilisation of all GPUs in per cent, each counted once."""
    gpus: int = 0
    """How many of them there are."""

    @property
    def known(self) -> bool:
        """Whether there is anything to say."""
        return self.progress is not NO_PROGRESS or self.util is not None


def whole(rows: Sequence[Row]) -> Whole:
    """The run that these rows are all of. Ranks that were started again count with their newest attempt."""
    current = [row for row in rows if not row.superseded]
    telling = [row for row in current if row.progress is not NO_PROGRESS]
    util, count = mean_util((row.key, row.gpus) for row in current if row.gpus.each)
    if not telling:
        return Whole(util=util, gpus=count)
    working = [row for row in telling if row.state in (RUNNING, STALLED)]
    lead = max(working or telling, key=lambda row: (_step(row.progress), [-number for number in row.key]))
    losses = [row.progress for row in working or telling if row.progress.loss is not None]
    loss = next((progress for progress in losses if progress.is_bad), losses[0] if losses else NO_PROGRESS)
    return Whole(lead.progress, loss, bool(working), util, count)


def _step(progress: Progress) -> tuple[float, float]:
    step, epoch = progress.step, progress.epoch
    return -1.0 if step is None else float(step), -1.0 if epoch is None else epoch
