"""Samples that are spread over lines: a header with the step, then indented lines, one value each."""
from __future__ import annotations

import re

from trainwatch_launcher.progress.names import table
from trainwatch_launcher.progress.values import convert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.progress.values import Values

COMPOSER = re.compile(r"\[batch=(\d{1,15})/(\d{1,15})\]:?\s*$")
COMPOSER_EPOCH = re.compile(r"\[epoch=(\d{1,9})(?:/(\d{1,9}))?\]\[batch=(\d{1,15})/(\d{1,15})\]:?\s*$")
OLMO = re.compile(
    r"\[step=(\d{1,15})(?:/(\d{1,15}))?(?:, {0,2}epoch=(\d{1,9})(?:/(\d{1,9}))?)?(?:, {0,2}eta=([^\]]{1,60}))?\]\s*$"
)
ENTRY = re.compile(r"(?:Train )?([\w./ ()%-]{1,100}?)(?:: {1,4}|=)(?=[-+.\d]|nan|inf)")
PREFIX = re.compile(r"^(?:\[[^\[\]]{1,80}\](?:<\w{1,8}>)?:? ?|\(\w{1,60} pid=\d[^()]{0,80}\) ?|\d{1,6}: ?){1,4}")
"""What platforms and launchers put before every line."""
RESULTS = re.compile(r"={5,80} Step (\d{1,15})/(\d{1,15}) ={5,80}\s*$")
"""NeMo RL: what the step gave follows under headings, with the output of other actors in between."""
MAX_LINES = 400
MAX_FOREIGN = 3
"""Lines of others (another rank's warning) that may stand between."""
MAX_RESULTS = 4000
"""Lines from the header of a NeMo RL step to its results."""

NAMES = table("""
loss: loss/train/total, loss/train, train/loss/total, train/celoss, train/crossentropyloss, train/ce loss, train/loss
loss: loss/train/ce, metrics/train/languagecrossentropy
samples_per_s: throughput/samples_per_sec
samples_per_s_per_gpu: throughput/device/samples_per_sec
tokens_per_s: throughput/tokens_per_sec
tokens_per_s_per_gpu: throughput/device/tokens_per_sec, throughput/device/tokens_per_second, throughput/device/tps
mfu auto: throughput/device/mfu
mfu: throughput/device/mfu (%)
grad_norm: l2_norm/grad/global, optim/total_grad_norm, optim/total grad norm
ms_per_iter per_s: throughput/batches_per_sec, throughput/device/batches_per_second, throughput/device/bps
lr: optim/learning_rate_group0, optim/lr (group 0), optim/lr
tokens: throughput/total_tokens, throughput/total tokens
""")


RESULT_NAMES = table("""
loss: loss
reward: avg reward, mean reward
ms_per_iter s: total step time
tokens_per_s_per_gpu: e2e (tokens/sec/gpu)
""")


class Block:
    """A sample that is being read: Composer's or OLMo's."""

    def __init__(self, line: int, name: str, values: Values) -> None:
        self.line, self.name, self.values = line, name, values
        self._ranks: dict[str, int] = {}
        self._left, self._foreign = MAX_LINES, MAX_FOREIGN

    def take(self, text: str) -> bool:
        """Read one more line; False when it is not one of the block's."""
        text = PREFIX.sub("", text, count=1)
        self._left -= 1
        if text[:1] in (" ", "\t") and text.strip():
            self._read(text.strip())
            return True
        self._foreign -= 1
        return False

    @property
    def ended(self) -> bool:
        """Whether no more of its lines can come."""
        return self._left <= 0 or self._foreign < 0

    def _read(self, text: str) -> None:
        match = ENTRY.match(text)
        if match is None:
            return
        name = match.group(1).lower()
        if name.startswith("lr-"):
            rank, key, unit = 0, "lr", ""
        elif name in NAMES:
            rank, key, unit = NAMES[name]
        else:
            return
        value = convert(key, unit, text, match.end())
        if value is not None and rank <= self._ranks.get(key, rank) and (key not in self.values or key in self._ranks):
            if key == "lr" and key in self._ranks:
                return  # the first group's
            self.values[key] = value
            self._ranks[key] = rank

    def is_training(self) -> bool:
        """Whether it held a training loss: an evaluation has the same header."""
        return "loss" in self.values


class Results(Block):
    """A step of NeMo RL: entries with bullets, under a heading each for training, validation, times."""

    def __init__(self, line: int, values: Values) -> None:
        super().__init__(line, "nemo", values)
        self._left = self._foreign = MAX_RESULTS
        self._is_training = False

    def take(self, text: str) -> bool:
        """Read one more line; False when it is not one of the block's."""
        text = PREFIX.sub("", text, count=1).strip()
        self._left -= 1
        if text.endswith(":") and ("Results" in text or "Timing" in text or "Metrics" in text):
            self._is_training = "alidation" not in text
            return True
        if text[:1] not in ("\u2022", "-") or not self._is_training:
            return False
        entry = ENTRY.match(text[1:].lstrip())
        name = entry.group(1).lower() if entry is not None else ""
        if entry is not None and name in RESULT_NAMES:
            _, key, unit = RESULT_NAMES[name]
            value = convert(key, unit, text[1:].lstrip(), entry.end())
            if value is not None:
                self.values.setdefault(key, value)
        return True


def header(text: str, line: int) -> Block | None:
    """The block that a line begins, or None."""
    match = RESULTS.search(text) if "= Step " in text else None
    if match is not None:
        return Results(line, {"step": int(match.group(1)), "total": int(match.group(2))})
    match = COMPOSER_EPOCH.search(text)
    if match is not None:
        epoch, epochs, step, total = match.groups()
        values: Values = {"step": int(step), "total": int(total), "epoch": int(epoch)}
        if epochs:
            values["epochs_total"] = int(epochs)
        return Block(line, "composer", values)
    match = COMPOSER.search(text)
    if match is not None:
        return Block(line, "composer", {"step": int(match.group(1)), "total": int(match.group(2))})
    match = OLMO.search(text)
    if match is None:
        return None
    values = {"step": int(match.group(1))}
    for key, group in (("total", 2), ("epoch", 3), ("epochs_total", 4)):
        if match.group(group):
            values[key] = int(match.group(group))
    eta = convert("eta_s", "", match.group(5), 0) if match.group(5) else None
    if eta is not None:
        values["eta_s"] = eta
    return Block(line, "olmo", values)
