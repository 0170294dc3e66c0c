"""The dictionaries that Hugging Face's Trainer and its relatives print: `{'loss': 1.83, ..., 'epoch': 0.12}`."""
from __future__ import annotations

import re

from trainwatch_launcher.progress.names import HUGGING_FACE
from trainwatch_launcher.progress.pairs import SIGNS, pairs, pick
from trainwatch_launcher.progress.values import convert
from trainwatch_launcher.progress.words import Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.progress.values import Values

BEGIN = re.compile(r"\{['\"][A-Za-z_]")
STEP_OF = re.compile(r"['\"](?:global_step/max_steps|iteration)['\"]: ['\"](\d{1,15})/(\d{1,15})['\"]")
PLACE = frozenset(("epoch", "step", "grad_norm"))
"""One of these beside the loss makes a dictionary a training step's: a printed configuration has neither."""
RUNTIME = ("_runtime'", '_runtime"')
"""In the summary at a run's or an evaluation's end; steps have a `train_runtime` too when the Trainer counts tokens."""
OTHER_MODE = re.compile(
    r"['\"](?:mode|split|phase|stage|event|tag|type|kind|subset)['\"]: {0,2}['\"](?:val|eval|test|dev)"
)
SETTINGS = Words("arg args argument* config* hparam* hyperparam* settings options parameters kwargs namespace")
"""Before a dictionary that is no output of a step."""
DIALECTS = (
    ("ms-swift", ("train_speed(", "global_step/max_steps")),
    ("llama-factory", ("'throughput'", '"current_steps"')),
    ("axolotl", ("memory/max_", "memory/device_")),
    ("trl", ("'num_tokens'", "'rewards/", "'reward'", "'completions/", "'mean_token_accuracy'", "'objective/")),
)


def dictionary(text: str) -> tuple[str, Values] | None:
    """The last dictionary of metrics in the text: its dialect and values, no values when it is no training step."""
    begin = None
    for begin in BEGIN.finditer(text):  # noqa: B007 - the last one counts
        pass
    if begin is None:
        return None
    end = text.find("}", begin.start())
    part = text[begin.start() : end if end > 0 else len(text)]
    found = pairs(part, SIGNS)
    if any(name in part for name in RUNTIME) and not ("loss" in found and "learning_rate" in found):
        return "hf-trainer", {}
    if OTHER_MODE.search(part) is not None or SETTINGS.any_in(text[max(0, begin.start() - 200) : begin.start()]):
        return "hf-trainer", {}
    if "num_updates" in found:
        return None  # fairseq's
    if "loss" not in found and "loss/policy_avg" not in found and "train/loss" not in found:
        return ("hf-trainer", {}) if any(name.startswith("eval") for name in found) else None
    values: Values = {}
    pick(part, found, HUGGING_FACE, values)
    place = STEP_OF.search(part)
    if place is not None:
        values["step"], values["total"] = int(place.group(1)), int(place.group(2))
    elif "step" not in values:
        values.pop("total", None)
    if "loss" not in values or not PLACE & set(values):
        return None
    if "remaining_time" in found and "eta_s" not in values:
        eta = convert("eta_s", "", part, found["remaining_time"])
        if eta is not None:
            values["eta_s"] = eta
    for name, marks in DIALECTS:
        if any(mark in part for mark in marks):
            return name, values
    return "hf-trainer", values
