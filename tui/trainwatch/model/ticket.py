"""A failure as Markdown, for a ticket. Pure."""
from __future__ import annotations

from collections.abc import Sequence

from trainwatch.model import text
from trainwatch.model.story import Story, fold_words, kind_words

LONGEST_LINE = 400
MOST_EVIDENCE = 4


def ticket(story: Story, run_directory: str, place: str, log: Sequence[str], hit: int | None = None) -> str:
    """The ticket. `place` is the file of the log and its line, `log` lines from there, `hit` which of them it is."""
    title = f"{story.who}: {kind_words(story.kind)}" + (f", {story.ended}" if story.ended else "")
    facts = [
        ("Run", f"{_code(story.run_id)} in {_code(run_directory)}" if story.run_id else _code(run_directory)),
        ("What", _code(story.summary)),
        ("Where", " ".join(part for part in (_code(place), f"at {_code(story.frame)}" if story.frame else "") if part)),
        ("When", _when(story)),
        ("Confidence", story.sure),
        ("How it is known", _words(story.why)),
        ("It could also be", _code(story.runner_up)),
        ("What to do", _words(story.hint)),
        ("GPU time", _words(story.cost)),
    ]
    lines = [f"## {_words(title)}", ""]
    lines += [f"- **{name}:** {value}" for name, value in facts if value]
    if log:
        marked = [f"{'>' if number == hit else ' '} {line[:LONGEST_LINE]}" for number, line in enumerate(log)]
        lines += ["", *_fenced(marked)]
    elif story.evidence:
        lines += ["", *_fenced([line[:LONGEST_LINE] for line in story.evidence[:MOST_EVIDENCE]])]
    if story.folds:
        lines += ["", f"{len(story.order)} of {story.ranks} ranks went wrong:", ""]
        first = "no single rank" if story.whole else f"rank {_words(story.label)}"
        lines.append(f"- root cause: {first}")
        lines += [f"- {_words(fold_words(fold))} ({fold.ranks})" for fold in story.folds]
    return "\n".join(lines) + "\n"


def _when(story: Story) -> str:
    parts = [text.moment(story.time, "%Y-%m-%d %H:%M:%S %z")]
    if story.phase:
        parts.append(f"in {_code(story.phase)}")
    if story.step is not None:
        parts.append(f"step {story.step}")
    return ", ".join(parts)


def _words(written: str) -> str:
    """Words that come from a run as Markdown that says just them."""
    shown = text.printable(written)
    return "".join(f"\\{char}" if char in "\\`*_[]<>#|!&~" else char for char in shown)


def _code(written: str) -> str:
    """The same as code, on one line."""
    shown = " ".join(text.printable(written).split())
    if not shown:
        return ""
    fence = "`" * (_longest_run(shown) + 1)
    space = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{space}{shown}{space}{fence}"


def _fenced(lines: Sequence[str]) -> list[str]:
    """Lines as a block of code that nothing in them can end."""
    shown = [text.printable(line) for line in lines]
    fence = "`" * max(3, max(map(_longest_run, shown)) + 1)
    return [f"{fence}text", *shown, fence]


def _longest_run(written: str) -> int:
    """The most backticks in a row."""
    longest = run = 0
    for char in written:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest
