"""Home-made lines: `step 100/1000 | loss: 2.31 | lr 1e-4`. Only where a place and a training loss stand in one line.

What is not known must not be misread, so a line is refused for every word that speaks of evaluation, summaries,
checkpoints, configuration or code.
"""
from __future__ import annotations

import re

from trainwatch_launcher.progress.names import COMMON
from trainwatch_launcher.progress.origin import message
from trainwatch_launcher.progress.pairs import named, pick
from trainwatch_launcher.progress.values import KEYS, convert
from trainwatch_launcher.progress.words import NO_TRAINING_LINE, speaks_of_evaluation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

    from trainwatch_launcher.progress.values import Values

LONGEST = 2000
LOSS = re.compile(
    r"(?:oss|OSS|损失)[\w)'\"]{0,20}[ \t]{0,8}[:=]?[ \t]{0,12}['\"([]{0,3} {0,4}(?:[-+.\d]|nan|NaN|inf|tensor|np\.)"
)
"""What must stand in a line, at the least."""
CODE = ("self.", "_runtime", "f'", 'f"', "评估", "验证", "测试", "ERROR", "train_num_updates")
CALL = re.compile(r"\w\((?:\w{1,40}=|\))")
SHELL = re.compile(r"(?:^|[\s\]:])\+{1,4} ")
TYPED = re.compile(r"^\s{0,40}(?:# |>>> |-- |\$ )|(?:^|\s)--[A-Za-z]|\.py [\w.+]{1,60}=|\w\{\w{1,60}=\"")
"""A comment, a prompt, a command line, a labelled metric of a monitor."""
CAPTIONED = re.compile(
    r"[Ll]oss[ \t]{1,8}[-+.\d]{1,20}[ \t]{1,3}"
    r"(?:[A-Za-z][A-Za-z_ ]{1,60}[.!]?\s*$|(?:[mun]?s|sec|[GMK]B|files?|nodes?|times)\b)"
)
"""A number of something: `loss 2.3 ms`, `loss 3 files`."""

STEP_NAMES = (
    ("global_step", "global_steps", "global_iter", "global_iteration", "train_step", "training_step", "train_steps",
     "num_updates", "optimizer_step"),
    ("step", "steps", "iter", "iters", "iteration", "iterations", "iter_num", "step_num", "_step", "train_iter"),
    ("update", "updates", "it", "train/step", "train/global_step"),
    ("batch", "batches", "minibatch", "mini-batch", "batch_idx", "train_batch"),
)
"""What a step is called; of several in one line the first listed counts."""
TOTALS = ("total_steps", "max_steps", "total_iters", "max_iters")
EPOCH_NAMES = ("epoch", "epochs", "ep", "_epoch", "train_epoch")
VALIDATION = ("val_loss", "valid_loss", "validation_loss", "eval_loss", "test_loss")

PLACE = re.compile(
    r"(\d[\d,]{0,18}(?:\.\d{1,9})?)(?![\w.]|:\d)(?: {0,3}(?:/|of) {0,12}(\d[\d,]{0,18})(?![\w.]|:\d))?"
)
BRACKETS = re.compile(r"\[ {0,12}(\d{1,15}) {0,2}/ {0,12}(\d{1,15})(?: ?\([\d .]{1,8}%\))?\]")
COUNTED = re.compile(r"(?<![\w./:-])(\d{1,15}) {0,2}/ {0,12}(\d{1,15}) (?:batches|steps|iters|iterations|it)\b")
VALUE = r"(?<![\w.,])(\d[\d,]{0,18}(?:\.\d{1,9})?(?:e[+-]?\d{1,3})?[kM]?) ?"
EACH = r"/s(?:ec(?:ond)?)?(?![\w/])"
RATES = (
    ("tokens_per_s", "", re.compile(VALUE + r"tok(?:en)?s?" + EACH)),
    ("tokens_per_s_per_gpu", "", re.compile(VALUE + r"tok(?:en)?s?/s(?:ec)?/(?:gpu|GPU|device)(?![\w/])")),
    ("samples_per_s", "", re.compile(VALUE + r"(?:sample|image|img|example|seq|sequence)s?" + EACH)),
    ("ms_per_iter", "per_s", re.compile(VALUE + r"(?:it|iter|step|batch|batche)s?" + EACH)),
    ("ms_per_iter", "own", re.compile(
        r"(?<![\w.,])(\d{1,12}(?:\.\d{1,9})? ?(?:ms|s|sec|seconds))/(?:it|iter|iteration|step|batch)(?![\w/])"
    )),
    ("ms_per_iter", "own", re.compile(
        r"(?i:per[ -](?:step|iter|iteration|batch)[ -]time|batch time)[:= ]{1,3}(\d{1,12}(?:\.\d{1,9})? ?m?s)(?!\w)"
    )),
    ("grad_norm", "", re.compile(r"[Gg]rad\. [Nn]orm[:= ]{1,3}(\d{1,12}(?:\.\d{1,9})?(?:e[+-]?\d{1,3})?)(?![\w.])")),
)
"""Rates whose unit stands behind the number: `1,234 tok/s`."""
PER_DEVICE = re.compile(r"(?i:per (?:card|gpu|device))")
LEADING = re.compile(
    r"(?:^|^\d{1,6}: |[-\]>]:? )(\d{1,12})(?:/(\d{1,12}), |: | \| )(?=(?:[Tt]rain[ _])?[Ll]oss)"
)
PART = r"(\d{1,15})(?: ?/ ?(\d{1,15}))?"
CHINESE = re.compile(r"(?:第 {0,2}(?=[\d /]{1,34}步)|(?:步数?|步骤|迭代(?:次数)?)[ :：]{0,8})" + PART)
CHINESE_EPOCH = re.compile(r"(?:第 {0,2}(?=[\d /]{1,34}轮)|(?:轮次|轮数)[ :：]{0,3})" + PART)


def generic(text: str) -> Values | None:
    """What a home-made line says, or None."""
    if len(text) > LONGEST or LOSS.search(text) is None:
        return None
    text = message(text)
    if is_something_else(text):
        return None
    found = named(text)
    values: Values = {}
    pick(text, found, COMMON, values)
    if "loss" not in values or is_number_of_epochs(text, found):
        return None
    epoch = place_of(text, found, EPOCH_NAMES) or (CHINESE_EPOCH.search(text) if "轮" in text else None)
    step = next((place for place in (place_of(text, found, names) for names in STEP_NAMES) if place), None)
    step = step or unnamed_step(text, epoch)
    if not comes_first(text, step or epoch, found) or (epoch is None and is_report(found)):
        return None
    if epoch is not None:
        take(values, epoch, "epoch", "epochs_total")
    if step is not None:
        take(values, step, "step", "total")
        if "step" not in values:
            return None
        take_total(values, text, found)
    take_rates(values, text)
    return values if "step" in values or "epoch" in values else None


def is_something_else(text: str) -> bool:
    """Whether the line is code, a call, the shell's echo, a summary, an evaluation."""
    if any(literal in text for literal in CODE):
        return True
    if ("(" in text and CALL.search(text)) or ("+ " in text and SHELL.search(text)):
        return True
    if NO_TRAINING_LINE.any_in(text) or speaks_of_evaluation(text):
        return True
    return TYPED.search(text) is not None or CAPTIONED.search(text) is not None


def place_of(text: str, found: dict[str, int], names: Iterable[str]) -> re.Match[str] | None:
    """Where one of these counters stands: its number and maybe its total."""
    for name in names:
        if name in found:
            match = PLACE.match(text, found[name])
            if match is not None:
                return match
    return None


def unnamed_step(text: str, epoch: re.Match[str] | None) -> re.Match[str] | None:
    """A step in brackets, before `batches`, or at the front of the line."""
    last = None
    for match in BRACKETS.finditer(text):
        if epoch is None or not match.start() <= epoch.start() < match.end():
            last = match
    chinese = CHINESE.search(text) if "步" in text or "迭代" in text else None
    return last or COUNTED.search(text) or LEADING.search(text) or chinese


def take(values: Values, place: re.Match[str], key: str, total_key: str) -> None:
    """Put the number and the total of a counter into the values; a total below its number is something else."""
    number = convert(key, "", place.group(1), 0)
    if number is None:
        return
    values[key] = number
    total = convert(total_key, "", place.group(2), 0) if place.group(2) else None
    if isinstance(total, int) and total >= float(number) and total:
        values[total_key] = total


def take_total(values: Values, text: str, found: dict[str, int]) -> None:
    """Put in the number of steps that the line states with a name of its own."""
    for name in TOTALS:
        if name in found and "total" not in values:
            total = convert("total", "", text, found[name])
            if isinstance(total, int) and total >= int(values["step"]):
                values["total"] = total


def take_rates(values: Values, text: str) -> None:
    """Put the rates into the values whose unit stands behind the number."""
    for key, unit, pattern in RATES:
        match = pattern.search(text) if key not in values else None
        rate = convert(key, unit, match.group(1), 0) if match is not None else None
        if match is not None and rate is not None:
            own = PER_DEVICE.search(text, max(0, match.start() - 20), match.start()) is not None
            values.setdefault(key + "_per_gpu" if own and key + "_per_gpu" in KEYS else key, rate)


def is_number_of_epochs(text: str, found: dict[str, int]) -> bool:
    """Whether a line of settings says how long training is to be: `lr=0.1, epochs=30`."""
    place = PLACE.match(text, found["epochs"]) if "epochs" in found else None
    return place is not None and place.group(2) is None


def is_report(found: dict[str, int]) -> bool:
    """Whether a line is nanoGPT's and its descendants' evaluation: `step 250: train loss 3.10, val loss 3.21`."""
    return "train_loss" in found and any(name in found for name in VALIDATION)


def comes_first(text: str, place: re.Match[str] | None, found: dict[str, int]) -> bool:
    """Whether the place stands before the loss, as in training lines; behind it only where both have signs."""
    if place is None:
        return False
    at = min((at for name, at in found.items() if name in COMMON and COMMON[name][1] == "loss"), default=0)
    if place.start() < at:
        return True
    return all(sign in (":", "=") for sign in (sign_before(text, place.start()), sign_before(text, at)))


def sign_before(text: str, at: int) -> str:
    """The character before a value that is no blank, quote or bracket."""
    return text[max(0, at - 12) : at].rstrip(" \t'\"[(")[-1:]
