"""What a cell of the grid shows of its rank: by state, phase, GPU, memory, lag, temperature or silence."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trainwatch.model import clock
from trainwatch.model.hues import HUES, Hues
from trainwatch.model.rows import state_at
from trainwatch.model.state import Attempt, Run
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.gpus import Gpu
from trainwatch_launcher.rundir.state import STATES

UNKNOWN = "unknown"
"""The shade of a rank of which this is not known."""
ROOT = "root"
"""The shade of the rank that a failure began on."""


@dataclass(frozen=True)
class Lens:
    """One way to look at all ranks. Shades are names: a state's, `phase-N`, `heat-N` (0 is good, 4 is bad), UNKNOWN."""

    name: str
    title: str
    limits: tuple[float, ...] = ()
    """For a scale: where the next shade begins, four of them, from the good end to the bad one."""
    labels: tuple[str, ...] = ()
    """What each of the five shades means."""


STATE = Lens("state", "state")
PHASE = Lens("phase", "phase")
UTIL = Lens("gpu", "GPU load", (-85, -60, -30, -5), ("85 % on", "60–84", "30–59", "5–29", "idle"))
MEMORY = Lens("memory", "GPU memory", (50, 75, 90, 97), ("under 50 %", "50–74", "75–89", "90–96", "97 % on"))
LAG = Lens("lag", "steps behind", (1, 2, 5, 20), ("none", "1", "2–4", "5–19", "20 on"))
HEAT = Lens("heat", "GPU temperature", (60, 70, 80, 87), ("under 60 °C", "60–69", "70–79", "80–86", "87 °C on"))
SILENCE = Lens("silence", "since output", (10, 60, 300, 1800), ("10 s", "1 min", "5 min", "30 min", "longer"))
LENSES = (STATE, PHASE, UTIL, MEMORY, LAG, HEAT, SILENCE)


@dataclass(frozen=True)
class View:
    """All ranks through one lens."""

    shades: Mapping[AttemptKey, str]
    legend: tuple[tuple[str, str, int], ...]
    """(shade, what it means, how many ranks have it), those that are there."""


def look(
    run: Run, keys: Sequence[AttemptKey], lens: Lens, now: float, hues: Hues, root: AttemptKey | None = None
) -> View:
    """These ranks through a lens at `now`, in Unix seconds on the reader's clock. `hues` are the phases' colours,
    `root` is the rank that a failure began on."""
    if lens is STATE:
        shades = {key: ROOT if key == root else state_at(run.attempts[key], now) for key in keys}
        return View(shades, _legend(shades, [(ROOT, "failed first"), *((state, state) for state in STATES)]))
    if lens is PHASE:
        return _by_phase(run, keys, hues)
    measure = _measure(run, keys, lens, now)
    shades = {}
    for key in keys:
        value = measure(run.attempts[key])
        shades[key] = UNKNOWN if value is None else f"heat-{sum(value >= limit for limit in lens.limits)}"
    return View(shades, _legend(shades, [(f"heat-{n}", label) for n, label in enumerate(lens.labels)]))


def phases_now(run: Run, keys: Sequence[AttemptKey]) -> Counter[str]:
    """In which phases these ranks are, and how many in each."""
    statuses = [run.attempts[key].status for key in keys]
    return Counter([status.phase for status in statuses if status is not None and status.phase is not None])


def _by_phase(run: Run, keys: Sequence[AttemptKey], hues: Hues) -> View:
    """Phases in the order in which ranks came into them, each with a colour; the rest share one."""
    shades = {}
    for key in keys:
        status = run.attempts[key].status
        known = status is not None and status.phase is not None
        shades[key] = f"phase-{hues.of(status.phase)}" if known else UNKNOWN  # type: ignore[union-attr,arg-type]
    others = [name for name in phases_now(run, keys) if name not in hues.own]
    meanings = [(f"phase-{number}", name) for name, number in hues.own.items()]
    if others:
        meanings.append((f"phase-{HUES - 1}", others[0] if len(others) == 1 else f"{len(others)} others"))
    return View(shades, _legend(shades, meanings))


def _legend(shades: Mapping[AttemptKey, str], meanings: Sequence[tuple[str, str]]) -> tuple[tuple[str, str, int], ...]:
    counts = Counter(shades.values())
    return tuple((s, said, counts[s]) for s, said in (*meanings, (UNKNOWN, "not known")) if counts[s])


def _measure(run: Run, keys: Sequence[AttemptKey], lens: Lens, now: float) -> Callable[[Attempt], float | None]:
    """What a scale measures of an attempt."""
    if lens is LAG:
        steps = [s.step for key in keys if (s := run.attempts[key].status) is not None and s.step is not None]
        first = max(steps, default=0)
        return lambda attempt: _lag(attempt, first)
    if lens is SILENCE:
        return lambda attempt: _silence(attempt, now)
    return lambda attempt: _of_gpus(attempt, lens)


def _lag(attempt: Attempt, first: int) -> float | None:
    return None if attempt.status is None or attempt.status.step is None else first - attempt.status.step


def _silence(attempt: Attempt, now: float) -> float | None:
    status = attempt.status
    if status is None or status.exited is not None:
        return None
    return clock.age(status, status.last_output if status.last_output is not None else status.started, now)


def _of_gpus(attempt: Attempt, lens: Lens) -> float | None:
    """The worst of a rank's GPUs."""
    values = [value for gpu in attempt.gpus.each if (value := _reading(gpu, lens)) is not None]
    return max(values, default=None)


def _reading(gpu: Gpu, lens: Lens) -> float | None:
    if lens is UTIL:
        return None if gpu.util is None else -gpu.util  # the less, the worse
    if lens is HEAT:
        return gpu.temperature
    if gpu.memory_used is None or not gpu.memory_total:
        return None
    return 100 * gpu.memory_used / gpu.memory_total
