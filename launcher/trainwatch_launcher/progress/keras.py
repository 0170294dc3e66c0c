"""Keras' bars, of versions 2 and 3, and Paddle's copy of them: the epoch stands on the line before, and an evaluation's
bar looks the same.
"""
from __future__ import annotations

import re

from trainwatch_launcher.progress.names import table
from trainwatch_launcher.progress.pairs import SIGNS, pairs, pick
from trainwatch_launcher.progress.values import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.progress.context import Context
    from trainwatch_launcher.progress.values import Values

EPOCH = re.compile(r"(?:^|[\s\]:])Epoch {1,3}(\d{1,9})/(\d{1,9})\s*$")
COUNTS = r"(?:^|[\s\]:])(\d{1,12})/(\d{1,12}) {1,4}"
BAR_3 = re.compile(COUNTS + r"[\u2500-\u257f][\u2500-\u257f ]{0,60} ([\d:]{1,12}[smhd]?) [\d.]{1,9}[\u00b5um]?s/step")
BAR_2 = re.compile(COUNTS + r"\[[=>.]{1,60}\] - (?:ETA: ([\d:]{1,12}s?)|[\d:]{1,12}[smhd]?)")
NO_BAR = re.compile(COUNTS + r"- [\d:]{1,12}[smhd]? - ")
UNKNOWN = re.compile(r"(?:^|[\s\]:])(\d{1,12})/Unknown (?:- )?[\d:]{1,12}[smhd]? [\d.]{1,9}[\u00b5um]?s/step - ")
"""Over data of unknown length, in the first epoch."""
PADDLE = re.compile(
    r"(?:^|[\s\]:])step {1,8}(\d{1,12})/(\d{1,12}) (?:\[[=>.]{1,60}\] )?- (?:[^\n]{0,300} ETA: ([\d:]{1,12}s?) )?"
    r"(?=[^\n]{0,300}s/step)"
)
NAMES = table("loss: loss\nlr: learning_rate, lr\nms_per_iter own: step_time")
STEP_TIME = re.compile(r" ([\d.]{1,9}[\u00b5um]?s)/step")


def epoch_line(text: str, context: Context) -> bool:
    """Whether the line begins an epoch."""
    match = EPOCH.search(text)
    if match is None:
        return False
    context.epoch = int(match.group(1)), int(match.group(2))
    context.epoch_done = False
    return True


def bar(text: str, context: Context) -> tuple[str, Values] | None:
    """A bar with a loss: its values, none when it is an evaluation's; None when there is no bar."""
    match = BAR_3.search(text) or BAR_2.search(text)
    left = match.group(3) if match is not None else None
    name = "keras"
    if match is None and "step " in text:
        match = PADDLE.search(text)
        left = match.group(3) if match is not None else None
        name = "paddle" if match is not None else name
    match = match or NO_BAR.search(text) or UNKNOWN.search(text)
    if match is None or "loss" not in text:
        return None
    step, total = int(match.group(1)), int(match.group(2)) if match.re is not UNKNOWN else 0
    done = 0 < total <= step
    if context.epoch_done or (context.epoch is None and (done or not total)):
        return name, {}
    context.epoch_done = done
    values: Values = {"step": step, "total": total} if total else {"step": step}
    if context.epoch is not None:
        values["epoch"], values["epochs_total"] = context.epoch
    time = STEP_TIME.search(text, match.start())
    found = pairs(text, SIGNS)
    if time is not None:
        found["step_time"] = time.start(1)
    pick(text, found, NAMES, values)
    eta = seconds(left, 0, "") if left and not done else None  # a complete bar shows the time that it took
    if eta is not None:
        values["eta_s"] = eta
    return name, values if "loss" in values else {}
