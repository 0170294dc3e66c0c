"""How a log goes on: whether training went on after some line, whether it finished, whether its loss stayed NaN."""
from __future__ import annotations

import re

from trainwatch_launcher.progress.stream import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.diagnosis.lines import Text

WINDOW = 64 << 10
"""So many bytes at the end are read for progress."""
NAN_STREAK = 3
"""So many samples without a finite loss at the end are no accident."""
FINISHED = re.compile(
    r"training (?:is )?(?:complete|completed|finished|done|succeeded)\b(?! with (?:exit|status|code|error))|finished "
    r"training\b"
    r"|^\W{0,8}(?:all )?done\W{0,4}$|'train_runtime'|train_runtime +=|\*\*\*\*\* train metrics"
    r"|`?trainer\.fit`? stopped: |after training is done|exiting program (?:after|at) |worker group successfully "
    r"finished"
    r"|successfully finished|model saved (?:to|in) |final (?:model|checkpoint) saved|total training time|job "
    r"(?:completed|succeeded)"
    r"|exit(?:ed with)? (?:code|status)[:= ]{1,3}0\b|训练(?:完成|结束)|saved final|completed successfully|\bfinished "
    r"successfully",
    re.IGNORECASE,
)
LITERALS = ("train", "done", "exit", "success", "saved", "complete", "total training", "训练", "finish")
STOPPED = re.compile(r"^`?trainer\.fit`? stopped", re.IGNORECASE)


class Course:
    """What the end of a text shows of the training itself. Lines are from 0."""

    def __init__(self, text: Text) -> None:
        self.last: dict[str, int] = {}
        """The last line with training progress, for each stream."""
        self.finished = -1
        """The last line that says that all went well; -1 for none."""
        self.nan: int | None = None
        """Where the loss stopped to be a number for good; None when it did not."""
        self._read(text)
        self._find_end(text)

    def got_over(self, line: int, stream: str) -> bool:
        """Whether training went on, or was said to have finished, after a line of a stream."""
        return self.last.get(stream, -1) > line or self.finished > line

    def _read(self, text: Text) -> None:
        first, size = len(text), 0
        while first > 0 and size < WINDOW:
            first -= 1
            size += len(text.lines[first]) + 1
        reader = Reader()
        points = reader.feed(b"\n".join(text.lines[first:]) + b"\n") + reader.finish()
        steps: dict[str, object] = {}
        streak: list[int] = []
        for point in points:
            index = first + point.line - 1
            if index >= len(text):
                continue
            stream, step = text[index].stream, point.values.get("step")
            if step is None or steps.get(stream) != step:  # bars are drawn again when a program ends
                self.last[stream] = index
            steps[stream] = step
            loss = point.values.get("loss")
            if loss in ("nan", "inf", "-inf"):
                streak.append(index)
            elif loss is not None:
                streak = []
        if len(streak) >= NAN_STREAK:
            self.nan = streak[0]

    def _find_end(self, text: Text) -> None:
        for literal in LITERALS:
            for index in reversed(text.holding(literal, 0, 12)):
                line = text[index]
                if index > self.finished and FINISHED.search(line.body) and (line.level or 0) < 2:
                    self.finished = index
                    break
