"""`trainwatch status`: one look at a run, for people and for scripts."""
from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import time
from typing import Any

from trainwatch.commands.arguments import price, price_of_gpus
from trainwatch.commands.targets import Followed, run_directory
from trainwatch.model import bill, text
from trainwatch.model.failure import Failure
from trainwatch.model.rows import Row, rows
from trainwatch.model.state import Attempt, Run
from trainwatch.model.summary import Summary, summary
from trainwatch_launcher.progress.values import KEYS
from trainwatch_launcher.rundir.gpus import gpus_of

DESCRIPTION = "Say once how a run is doing: each rank's state, phase, exit code, hold and last output."
EPILOG = """\
exit codes:
  0  nothing has failed
  1  a rank has failed or is lost (only the newest attempt of each rank counts), or one could not be read: then it is
     not known whether it has
  2  TARGET is no run that can be read

with --json one object is printed: {"run": {...}, "ranks": [{...}, ...], "gpu_hours": {...}}; times are seconds
(durations and ages) or Unix seconds (moments), facts that are not known are null. GPU-hours are those of all attempts;
a GPU that several ranks report counts once.

examples:
  trainwatch status /shared/runs/7b-42
  trainwatch status runs                        the newest run in there
  trainwatch status RUN --json | jq '.ranks[] | select(.exit_code)'
  trainwatch status RUN --gpu-price 2.5         what its GPUs cost so far
"""

RED, GREEN, YELLOW, BOLD, RESET = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[0m"
COLOURS = {"failed": RED, "held": RED, "lost": RED, "ended": RED, "stalled": YELLOW, "finished": GREEN}
COLUMNS = ("RANK", "HOST", "STATE", "PHASE", "FOR", "EXIT", "HOLD", "OUTPUT", "QUIET", "LAST LINE")
GAP = "  "
GPU_FACTS = ("index", "uuid", "name", "mig", "lost", "util", "memory_used", "memory_total", "power", "temperature")


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code. Raises TargetError."""
    options = parser().parse_args(argv)
    followed = Followed(run_directory(options.target).path)
    now, paid = time.time(), price_of_gpus(options.gpu_price)
    whole = summary(followed.run, now)
    if options.json:
        print(json.dumps(_finite(as_json(followed.run, whole, now, paid)), indent=2, allow_nan=False))
    else:
        print("\n".join(as_table(followed.run, whole, now, _colours_wanted(), _columns(), paid)))
    hidden = [problem for problem in followed.run.problems if problem.key is None]  # a rank's directory, or the run's
    return 1 if whole.bad or whole.unread or hidden else 0


def parser() -> argparse.ArgumentParser:
    """The command line of `trainwatch status`."""
    parser = argparse.ArgumentParser(
        prog="trainwatch status", description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("target", metavar="TARGET", nargs="?",
                        help="a run directory, or a directory of runs (default $TRAINWATCH_ROOT, else ./runs)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--gpu-price", metavar="PRICE", type=price,
                        help="what an hour of one GPU costs: GPU-hours are told in money too")
    return parser


def as_json(run: Run, whole: Summary, now: float, price: float | None = None) -> dict[str, Any]:
    """The run at `now` as plain values: what `--json` prints. `price`: of an hour of one GPU."""
    hours = bill.gpu_hours(run)
    cost = {} if price is None else {"gpu_cost": bill.as_json(None if hours is None else hours.at(price))}
    return {
        "run": {
            "id": whole.run_id,
            "state": whole.state,
            "world_size": whole.world_size,
            "started": whole.started,
            "elapsed": whole.elapsed,
            "ranks_seen": whole.seen,
            "ranks_missing": whole.missing,
            "counts": dict(whole.counts),
            "first_failure": _failure_json(whole.first),
            "command": list(run.info.command) if run.info is not None else None,
            "problems": [{"path": problem.path, "message": problem.message} for problem in run.problems],
        },
        "ranks": [_row_json(row, run.attempts[row.key]) for row in rows(run, now)],
        "gpu_hours": bill.as_json(hours),
        **cost,
    }


def _finite(value: Any) -> Any:
    """The same with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _failure_json(failure: Failure | None) -> dict[str, Any] | None:
    if failure is None:
        return None
    return {
        "rank": failure.key.rank,
        "label": failure.label,
        "host": failure.host,
        "time": failure.time,
        "exit_code": failure.exit_code,
        "reason": failure.reason,
        "others": failure.others,
    }


def _row_json(row: Row, attempt: Attempt) -> dict[str, Any]:
    return {
        "rank": row.key.rank,
        "host": row.host or None,
        "attempt": row.key.attempt,
        "local_rank": row.key.local_rank if row.nested else None,
        "local_attempt": row.key.local_attempt if row.nested else None,
        "label": row.label,
        "superseded": row.superseded,
        "state": row.state,
        "phase": row.phase,
        "phase_age": row.phase_age,
        "exit_code": row.exit_code,
        "signal": row.signal,
        "reason": row.reason or None,
        "hold_remaining": row.hold_left,
        "last_output_age": row.last_output_age,
        "output_bytes": row.output_bytes,
        "output_lines": row.output_lines,
        "last_line": row.last_line or None,
        "pid": row.pid,
        "launcher_pid": row.launcher_pid,
        "started": row.started,
        "exited": row.exited,
        "elapsed": row.elapsed,
        "heartbeat_age": row.heartbeat_age,
        "warning": row.warning or None,
        "directory": attempt.directory or None,
        **_progress_json(attempt),
    }


def _progress_json(attempt: Attempt) -> dict[str, Any]:
    """What an attempt's output and GPUs say; a loss that is no finite number as text."""
    status = attempt.status
    said = {name: getattr(status, name) for name in KEYS if getattr(status, name, None) is not None}
    if status is not None and status.loss_text:
        said["loss"] = status.loss_text
    gpus = gpus_of(status) if status is not None else []
    return {
        "progress": said or None,
        "progress_format": (status.progress_format if status is not None else "") or None,
        "stalled_since": status.stalled_since if status is not None else None,
        "gpus": [{name: getattr(gpu, name) for name in GPU_FACTS} for gpu in gpus] or None,
        "gpu_note": (status.gpu_note if status is not None else "") or None,
    }


def as_table(
    run: Run, whole: Summary, now: float, colours: bool = False, columns: int | None = None,
    price: float | None = None,
) -> list[str]:  # fmt: skip
    """The run at `now` as lines of text; with `columns`, lines that a terminal of that width shows whole.

    `price`: of an hour of one GPU.
    """
    lines = [_headline(whole, colours), *_failure_lines(whole.first), *_cost_lines(bill.gpu_hours(run), price)]
    table = [COLUMNS, *(_cells(row) for row in rows(run, now))]
    if len(table) > 1:
        widths = [max(text.width(cells[at]) for cells in table) for at in range(len(COLUMNS))]
        lines += ["", *(_line(cells, widths, colours, columns) for cells in table)]
    if whole.missing:
        lines += ["", f"{whole.missing} of {whole.world_size} ranks have not come yet"]
    notes = [f"rank {row.label}: {text.printable(row.warning)}" for row in rows(run, now) if row.warning]
    notes += [f"{text.printable(problem.path)}: {text.printable(problem.message)}"
              for problem in run.problems if problem.key is None]  # fmt: skip
    return lines + (["", *notes] if notes else [])


def _headline(whole: Summary, colours: bool) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in whole.counts.items())
    state = f"{COLOURS.get(whole.state, '')}{BOLD}{whole.state}{RESET}" if colours else whole.state
    of = f" of {whole.world_size}" if whole.world_size is not None else ""
    ranks = f"{whole.seen}{of} rank{'' if (whole.world_size or whole.seen) == 1 else 's'}"
    parts = [text.printable(whole.run_id) or "(no name yet)", state, ranks + (f" ({counts})" if counts else "")]
    return GAP.join([*parts, *([text.duration(whole.elapsed)] if whole.elapsed is not None else [])])


def _failure_lines(failure: Failure | None) -> list[str]:
    if failure is None:
        return []
    what = failure.exit_text if failure.exit_code is None else f"exit {failure.exit_text}"
    line = f"first failure: rank {failure.label} on {text.printable(failure.host) or '?'}, {what}"
    return [line + (f": {text.printable(failure.reason)}" if failure.reason else "")]


def _cost_lines(hours: bill.GpuHours | None, price: float | None) -> list[str]:
    if hours is None:
        return [] if price is None else ["cost: unknown, no launcher of this run knows of GPUs"]
    if price is None:
        return [bill.words(hours)]
    cost = hours.at(price)
    parts = ((cost.setup, "before the first step"), (cost.idle, "idle"), (cost.held, "held"))
    shown = ", ".join(f"{value:,.2f} {name}" for value, name in parts if value is not None and value >= 0.005)
    line = f"cost: {cost.total:,.2f} at {price:g} an hour"
    return [bill.words(hours), line + (f" ({shown})" if shown else "")]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.label,
        text.printable(row.host),
        row.state + (" (old)" if row.superseded else ""),
        text.printable(row.phase or ""),
        text.duration(row.phase_age),
        row.exit_text,
        text.duration(row.hold_left),
        text.size(row.output_bytes),
        text.duration(row.last_output_age),
        text.printable(row.reason or row.last_line),
    )


def _line(cells: tuple[str, ...], widths: list[int], colours: bool, columns: int | None) -> str:
    padded = [cell + " " * (width - text.width(cell)) for cell, width in zip(cells, widths, strict=True)]
    padded[-1] = cells[-1]
    if columns is not None:
        used = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
        padded[-1] = _clipped(cells[-1], max(8, columns - used))
    colour = COLOURS.get(cells[2].partition(" ")[0]) if colours else None
    if colour:
        padded[2] = f"{colour}{padded[2]}{RESET}"
    return GAP.join(padded).rstrip()


def _clipped(cell: str, most: int) -> str:
    if text.width(cell) <= most:
        return cell
    while text.width(cell) > most - 1:
        cell = cell[:-1]
    return cell + "…"


def _colours_wanted() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _columns() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
