"""Progress bars: tqdm's, Ultralytics' own, Keras'. Which of them are training is told by their names."""
from __future__ import annotations

import re

from trainwatch_launcher.progress.names import COMMON, COMMON_ROWS, table
from trainwatch_launcher.progress.origin import prefix_and_name
from trainwatch_launcher.progress.pairs import BLANKS, COMMAS, pairs, pick
from trainwatch_launcher.progress.values import convert, seconds
from trainwatch_launcher.progress.words import CAPTION, OTHER_BAR, TRAINING_BAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwatch_launcher.progress.context import Context
    from trainwatch_launcher.progress.values import Value, Values

COUNTS = re.compile(r" {0,4}(\d{1,15})/(\d{1,15}) \[([^<\[\]]{1,20})<([^,\[\]]{1,24}), {1,12}([^,\]]{1,30})")
RATE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?) ?(?:(s)/([a-z]{1,10})|([a-z]{1,10})/s)")
EPOCHS = frozenset(("epoch", "epochs", "ep"))
ITERATIONS = frozenset(("it", "its", "iter", "iters", "step", "steps", "batch", "batches", "ba", "update", "updates"))
ENDLESS = re.compile(r": \|[^|\w]{0,200}\| {0,4}(\d{1,15})/\? \[[^<\[\]]{1,20}<[^,\[\]]{1,24}, {1,12}([^,\]]{1,30})")
"""Lightning's bar over data of unknown length."""
COUNT = re.compile(r"(?:^|[\s:])(\d{1,15})it \[[^<,\[\]]{1,20}, {1,12}([^,\]]{1,30})")
"""tqdm's over data of unknown length."""
PERCENT_BEFORE = re.compile(r"\d{1,3}$")

NAMES = table(COMMON_ROWS, "ms_per_iter s: train_step_timing in s, train_step_timing",
              "loss: loss/train/total, policy_loss, gpt_loss, preference_loss")
EPOCH = re.compile(r"(?i)\bepochs?\W{0,3}(\d{1,9})(?:\]?\s{0,2}/\s{0,2}(\d{1,9}))?")
ONLY_EPOCHS = re.compile(r"(?i)^\W*epochs?\W*$")
TORCHTUNE = re.compile(r"^\W*(\d{1,9})\|\d{1,15}\|Loss: ")
ULTRALYTICS = re.compile(r"(?:^|[\s\]:])(\d{1,6})/(\d{1,6}) {1,12}[\d.]{1,8}[GM]B? {1,12}[^%]{1,200}: {1,4}\d{1,3}%")
OWN_BAR = re.compile(r"% {0,2}[^\w\s]{1,60}[ \u2500-\u2578]{0,60} {0,2}(\d{1,9})/(\d{1,9}) ([\d.]{1,9}(?:it/s|s/it))")


def tqdm(text: str, context: Context) -> tuple[str, Values] | None:
    """The last tqdm bar of the text: its format and values, no values when it is not training; None without a bar."""
    at = text.rfind("%|")
    if at < 0:
        return None
    end = text.find("|", at + 2)
    match = COUNTS.match(text, end + 1) if end > 0 else None
    if match is None:
        return None if text.find("/", at) < 0 else ("tqdm", {})
    title = name_of(text[:at])
    step, total = int(match.group(1)), int(match.group(2))
    values: Values = {"step": step, "total": total}
    ms, after = milliseconds(match.group(5)), match.end()
    if ms is not None:
        values["ms_per_iter"] = ms
    elif "=" in match.group(5):
        after = match.start(5)  # NeMo's bars have no rate
    elif counts_epochs(match.group(5)):
        title = "epochs" if title is not None else None
    elif not match.group(5).startswith(("?it", "0.00it")):
        return "tqdm", {}
    left = seconds(match.group(4).strip(), 0, "")
    if left is not None:
        values["eta_s"] = left
    rest = text[after:].lstrip(", ")
    found = offset(pairs(rest, COMMAS), len(text) - len(rest))
    pick(text, found, NAMES, values)
    if "num_updates" in found:
        return updates(text, title, found, values)
    is_plausible = context.announced or is_share(text[max(0, at - 3) : at], step, total)
    spent = seconds(match.group(3).strip(), 0, "")
    kind = kind_of(title, values, context if is_plausible else None, spent) if title is not None else None
    if kind is not None and "v_num=" in text:
        return "lightning", kind[1]
    return kind or ("tqdm", {})


def counts_epochs(rate: str) -> bool:
    """Whether a bar says that it counts epochs: `12.3s/epoch`."""
    unit = RATE.match(rate)
    return unit is not None and (unit.group(3) or unit.group(4)) in EPOCHS


def updates(text: str, title: str | None, found: dict[str, int], values: Values) -> tuple[str, Values]:
    """fairseq's bar: it counts the batches of an epoch; the step is the number of updates that it states too."""
    numbered = EPOCH.search(title) if title is not None and not OTHER_BAR.any_in(title) else None
    step = convert("step", "", text, found["num_updates"])
    if numbered is None or not isinstance(step, int):
        return "fairseq", {}
    if abs(step - int(values["step"])) > 1:
        values.pop("total", None)
    values["step"], values["epoch"] = step, int(numbered.group(1))
    rate = convert("tokens_per_s", "", text, found["wps"]) if "wps" in found else None
    if rate is not None:
        values["tokens_per_s"] = rate
    return "fairseq", values


def endless(text: str) -> tuple[str, Values] | None:
    """A bar of training whose total is not known."""
    match = ENDLESS.search(text) or COUNT.search(text)
    title = name_of(text[: match.start()] + " ") if match is not None else None
    if match is None or title is None or OTHER_BAR.any_in(title):
        return None
    numbered = EPOCH.search(title)
    if numbered is None and not TRAINING_BAR.any_in(title):
        return None
    values: Values = {"step": int(match.group(1))}
    if numbered is not None:
        values["epoch"] = int(numbered.group(1))
    ms = milliseconds(match.group(2))
    if ms is not None:
        values["ms_per_iter"] = ms
    rest = text[match.end() :].lstrip(", ")
    found = offset(pairs(rest, COMMAS), len(text) - len(rest))
    pick(text, found, NAMES, values)
    step = convert("step", "", text, found["global_step"]) if "global_step" in found else None
    if step is not None:
        values["step"] = step
    return "lightning" if match.re is ENDLESS or "v_num=" in text else "tqdm", values


def milliseconds(text: str) -> float | None:
    """The time of one iteration from a bar's rate; None when it counts something else or does not know yet."""
    rate = RATE.match(text)
    if rate is None or (rate.group(3) or rate.group(4)) not in ITERATIONS or float(rate.group(1)) <= 0:
        return None
    return float(rate.group(1)) * 1000 if rate.group(2) else 1000 / float(rate.group(1))


def kind_of(title: str, values: Values, context: Context | None, elapsed: Value | None) -> tuple[str, Values] | None:
    """What a tqdm bar of this name is; None when it is not training. Without a context it needs a name."""
    if OTHER_BAR.any_in(title):
        return None
    step, total = int(values["step"]), int(values["total"])
    own = pairs(title, BLANKS)
    pick(title, own, COMMON, values)  # `1|120|Loss: 2.31:  12%|`, `epoch 2 loss 0.31:  12%|`
    numbered = EPOCH.search(title)
    tune = TORCHTUNE.match(title)
    if numbered is not None:
        values["epoch"] = int(numbered.group(1))
        if numbered.group(2):
            values["epochs_total"] = int(numbered.group(2))
    elif tune is not None:
        values["epoch"] = int(tune.group(1))
    elif ONLY_EPOCHS.match(title):
        kept: Values = {key: values[key] for key in ("loss", "lr", "grad_norm", "eta_s") if key in values}
        return "tqdm", {"epoch": step, "epochs_total": total, **kept}  # this bar counts epochs
    elif not any(c.isalpha() for c in title):
        ms, spent = values.get("ms_per_iter"), float(elapsed) if elapsed is not None else None
        is_training = context is not None and context.is_training_bar(step, total, float(ms) if ms else None, spent)
        if "loss" not in values and not is_training:
            return None
    elif not TRAINING_BAR.any_in(title) and "loss" not in values:
        return None
    return "torchtune" if tune is not None else "tqdm", values


def is_bar(format: str) -> bool:
    """Whether points of this format come from bars that may stand beside a framework's own lines."""
    return format in ("tqdm", "torchtune", "lightning")


def name_of(before: str) -> str | None:
    """The name of a bar, from all that stands before its percentage: without an earlier bar, dictionary or prefix.

    None when a bracket says that it is about something else: `[Val] Epoch 3`, `[rollout 32 / 128]`.
    """
    earlier = before.rfind("%|")
    if earlier >= 0:
        before = before[before.find("]", earlier) + 1 :]
    before = PERCENT_BEFORE.sub("", before[before.rfind("}") + 1 :][-300:])
    prefix, name = prefix_and_name(before)
    last = prefix[prefix.rfind("[") :] if not name and "[" in prefix else ""
    return None if CAPTION.search(prefix) is not None or OTHER_BAR.any_in(last) else name


def is_share(percent: str, step: int, total: int) -> bool:
    """Whether the printed percentage is that of the counts, as tqdm prints it."""
    return percent.strip().isdigit() and total > 0 and abs(int(percent) - 100 * step / total) < 2


def offset(found: dict[str, int], by: int) -> dict[str, int]:
    """Pairs of a part of a text, as pairs of the whole."""
    return {name.rstrip("]"): at + by for name, at in found.items()}


def ultralytics(text: str) -> tuple[str, Values] | None:
    """A row of Ultralytics' training table with its bar, tqdm's or the newer own one; the losses have no single one."""
    head = ULTRALYTICS.search(text)
    if head is None:
        return None
    values: Values = {"epoch": int(head.group(1)), "epochs_total": int(head.group(2))}
    bar = text.find("|", head.end() + 1) if text.startswith("|", head.end()) else -1
    counts = COUNTS.match(text, bar + 1) if bar > 0 else None
    if counts is not None:
        values["step"], values["total"] = int(counts.group(1)), int(counts.group(2))
        ms = milliseconds(counts.group(5))
        if ms is not None:
            values["ms_per_iter"] = ms
        return "ultralytics", values
    own = OWN_BAR.search(text, head.end() - 1)
    if own is None:
        return "ultralytics", {}
    values["step"], values["total"] = int(own.group(1)), int(own.group(2))
    ms = milliseconds(own.group(3))
    if ms is not None:
        values["ms_per_iter"] = ms
    return "ultralytics", values
