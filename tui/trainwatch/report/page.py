"""The report as a page: no script, no link, no request; all words of a run are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from trainwatch.model import bill, rows, text
from trainwatch.model.progress import step_text
from trainwatch.model.story import Story, fold_words, kind_words
from trainwatch.model.summary import Summary, summary
from trainwatch.model.timeline import Timeline, timeline
from trainwatch.report import drawing
from trainwatch.report.material import Excerpt, Material
from trainwatch.report.style import STYLE
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.gpus import Metrics
from trainwatch_launcher.version import __version__

if TYPE_CHECKING:
    from trainwatch.model.idle import Spans

CHARTS = (
    ("Loss", "loss", ""),
    ("Step time", "ms_per_iter", "ms"),
    ("Tokens per second", "tokens_per_s", "tok/s"),
    ("GPU utilisation", "util", "%"),
    ("GPU power", "power", "W"),
    ("GPU temperature", "temperature", "°C"),
)
"""(title, name in metrics.jsonl, unit)."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may do with the page: draw it."""
LONGEST_LINE = 2000
LONGEST_NAME = 60
"""Of a phase in the legend."""


def page(material: Material, price: float | None = None) -> str:
    """The whole page. `price`: of an hour of one GPU."""
    whole = summary(material.run, material.now)
    line = timeline(material.run, material.now)
    title = said(whole.run_id or material.name)
    simulated = material.run.info is not None and material.run.info.extra.get("simulated") is True
    excerpts = [_excerpt(material, excerpt) for excerpt in material.excerpts]
    body = [
        f"<h1>{title}</h1>", _facts(material, whole, simulated), _cause(material.story), _cost(material, price),
        _timeline(line, material.idle), _phases(material, line), _charts(material), *excerpts,
        _ranks(material), _problems(material),
        f"<footer>trainwatch {__version__} · {text.moment(material.now)}</footer>",
    ]  # fmt: skip
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{POLICY}"><meta name="viewport" content="width=device-width"><title>{title} · trainwatch</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(part for part in body if part) + "\n</body></html>\n"
    )


def said(written: object, most: int = LONGEST_LINE) -> str:
    """Words of a run as HTML; nothing in a run makes the page as long as it likes."""
    return drawing.words(str(written), most)


def _facts(material: Material, whole: Summary, simulated: bool) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in whole.counts.items())
    of = f" of {whole.world_size}" if whole.world_size else ""
    info = material.run.info
    pairs = [
        ("state", f'<b class="s-{said(whole.state)}">{said(whole.state)}</b>'),
        ("ranks", said(f"{whole.seen}{of} ({counts})")),
        ("started", said(text.moment(whole.started)) if whole.started is not None else ""),
        ("elapsed", said(text.duration(whole.elapsed))),
        ("command", f"<code>{said(' '.join(info.command))}</code>" if info is not None and info.command else ""),
        ("note", "this run is simulated: nothing was trained" if simulated else ""),
    ]
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in pairs if value) + "</dl>"


def _cause(story: Story | None) -> str:
    """Why it failed: the same as the failure screen tells."""
    if story is None:
        return ""
    ended = f", {story.ended}" if story.ended else ""
    during = f", in {story.phase}" if story.phase else ""
    during += f", step {story.step}" if story.step is not None else ""
    where = f"line {story.line} of its log" if story.line is not None else ""
    pairs = [
        ("when", said(text.moment(story.time) + during)),
        ("at", "; ".join(part for part in (f"<code>{said(story.frame)}</code>" if story.frame else "", where) if part)),
        ("because", said(story.why) if story.why not in story.summary else ""),
        ("confidence", said(story.sure)),
        ("or else", said(story.runner_up)),
        ("what to do", said(story.hint)),
    ]
    facts = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in pairs if value)
    evidence = "\n".join(said(line) for line in story.evidence if line[:80] not in story.summary)
    followed = "".join(f"<li>{said(fold_words(fold))} ({said(fold.ranks)})</li>" for fold in story.folds)
    return (
        f'<section class="cause"><h2>Root cause</h2><p><b>{said(story.who)}</b>: '
        f"{said(kind_words(story.kind) + ended)}</p>"
        + (f"<pre>{said(story.summary)}</pre>" if story.summary else "")
        + f"<dl>{facts}</dl>"
        + (f"<h3>Evidence</h3><pre>{evidence}</pre>" if evidence else "")
        + (f"<h3>What followed</h3><ul>{followed}</ul>" if followed else "")
        + "</section>"
    )


def _cost(material: Material, price: float | None) -> str:
    hours = bill.gpu_hours(material.run)
    if hours is None:
        return ""
    money = f"; at {price:g} an hour {hours.total * price:,.2f}, of it {hours.idle * price:,.2f} idle" if price else ""
    return f"<section><h2>GPU time</h2><p>{said(bill.words(hours) + money)}</p></section>"


def _timeline(line: Timeline, idle: Mapping[AttemptKey, Spans]) -> str:
    drawn = drawing.lanes(line, idle)
    if not drawn:
        return ""
    named = [(line.hues.of(spread.name), said(spread.name, LONGEST_NAME)) for spread in line.spreads]
    legend = "".join(f'<span><i class="b{hue}"></i>{name}</span>' for hue, name in named)
    legend += '<span><i class="bhold"></i>held</span>'
    if idle:
        legend += '<span><i class="b0 half"></i>pale: GPUs idle</span>'
    return f'<section><h2>Timeline</h2><div class="legend">{legend}</div>{drawn}</section>'


def _phases(material: Material, line: Timeline) -> str:
    if not line.spreads:
        return ""
    found = []
    for spread in line.spreads:
        costs = [cost for cost in material.costs if cost.name == spread.name]
        seconds = sum(cost.gpu_seconds for cost in costs)
        known = [cost for cost in costs if cost.utilisation is not None and cost.gpu_seconds]
        weight = sum(cost.gpu_seconds for cost in known)
        util = sum((cost.utilisation or 0.0) * cost.gpu_seconds for cost in known) / weight if weight else None
        out = f"{spread.still} in it" if spread.still else text.moment(spread.last_out, "%H:%M:%S")
        entered = [text.moment(moment, "%H:%M:%S") for moment in (spread.first_in, spread.last_in)]
        found.append((
            spread.name, spread.ranks, *entered, out, text.duration(spread.median), text.duration(spread.longest),
            ", ".join(spread.slowest), f"{seconds / 3600:,.2f}" if seconds else "",
            "" if util is None else f"{util:.0f} %",
        ))  # fmt: skip
    heads = ("phase", "ranks", "first in", "last in", "last out", "typical", "longest", "slowest ranks", "GPU-hours",
             "mean GPU load")  # fmt: skip
    ranks = len([attempt for attempt in material.run.current() if not attempt.nested])
    note = f"<p>GPU-hours and load are of {material.sampled} ranks, a sample.</p>" if material.sampled < ranks else ""
    return f"<section><h2>Phases</h2>{_table(heads, found)}{note}</section>"


def _table(heads: Sequence[str], found: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{said(name)}</th>" for name in heads)
    lines = "".join("<tr>" + "".join(f"<td>{said(cell)}</td>" for cell in row) + "</tr>" for row in found)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _charts(material: Material) -> str:
    parts = []
    for title, name, unit in CHARTS:
        lines = [drawing.Line(f"rank {material.run.label(key)}", [(m.time, value) for m in found
                 if (value := _value(m, name)) is not None]) for key, found in material.histories.items()]  # fmt: skip
        drawn = drawing.chart(lines, unit)
        if drawn:
            parts.append(f"<h3>{title}</h3>{drawn}")
    if not parts:
        return ""
    legend = "".join(f'<span><i class="c{number % 8}"></i>rank {said(material.run.label(key))}</span>'
                     for number, key in enumerate(material.histories))  # fmt: skip
    return f'<section><h2>Charts</h2><div class="legend">{legend}</div>{"".join(parts)}</section>'


def _value(line: Metrics, name: str) -> float | None:
    """A value of the history: of the progress, or the mean over the GPUs."""
    value = line.progress().get(name)
    if value is not None:
        return value
    means = [pair[0] for gpu in line.gpus() if (pair := gpu.pair(name)) is not None]
    return sum(means) / len(means) if means else None


def _excerpt(material: Material, excerpt: Excerpt) -> str:
    label = said(material.run.label(excerpt.key))
    if excerpt.problem:
        return f"<section><h2>Log of rank {label}</h2><p>{said(excerpt.problem)}</p></section>"
    if not excerpt.lines:
        return ""
    lines = "\n".join(said(line[:LONGEST_LINE]) for line in excerpt.lines)
    return f"<section><h2>End of the log of rank {label}</h2><pre>{lines}</pre></section>"


def _ranks(material: Material) -> str:
    found = []
    for row in rows.rows(material.run, material.now):
        step = step_text(row.progress)
        found.append((row.label, row.host, row.state, row.phase or "", text.duration(row.phase_age), step,
                      row.exit_text, row.reason or row.last_line))  # fmt: skip
    heads = ("rank", "host", "state", "phase", "for", "step", "exit", "why, or last line")
    return f"<section><h2>Ranks</h2>{_table(heads, found)}</section>"


def _problems(material: Material) -> str:
    if not material.run.problems:
        return ""
    found = [(problem.path, problem.message) for problem in material.run.problems]
    return f"<section><h2>What could not be read</h2>{_table(('path', 'why'), found)}</section>"

