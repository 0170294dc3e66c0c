"""Help: every key from the action registry, and the words that the screens use."""

from __future__ import annotations

from trainwatch import actions
from trainwatch.model import query
from trainwatch.screens.page import Page
from trainwatch.widgets import states
from trainwatch.widgets.header import Part, hanging

WORDS = (
    ("run", "all workers of one job"),
    ("rank", "one worker: one launcher and its command"),
    ("attempt", "one start of a rank; 3#2 is the second attempt of rank 3, older ones are dimmed"),
    ("local rank", "a launcher inside a rank's command; 3.0 is local rank 0 of rank 3"),
    ("phase", "what the command says it is doing: === [Phase] NAME ==="),
    ("age", "how long the phase has lasted"),
    ("hold", "a failed attempt kept alive for debugging, until its time runs out; a local rank by its container"),
    ("quiet", "how long ago the last output came"),
    ("step, loss", "what the newest line of progress says; the arrow or line behind a loss is where it goes"),
    ("gpu", "how busy each GPU is, their mean, and the worst that any suffers from: lost, ecc, hot, slowed"),
    ("mem", "of the GPU that is fullest, in GiB"),
    ("▲", "what stands out: a loss that is none, GPUs that are not well, who waits for whom, who is slow or stalled"),
    ("!", "behind a rank: it stands out, or something could not be read; its log's title says what"),
)


class Help(Page):
    """The page of keys, states and words."""

    def __init__(self, *first: str) -> None:
        super().__init__("help", lambda width: help_parts(first, width))


INDENT = 14


def help_parts(first: tuple[str, ...], width: int) -> list[Part]:
    """All that help says; the scopes of the screen that one comes from are first."""
    scopes = [*first, *(scope for scope in actions.TITLES if scope not in first)]
    parts: list[Part] = []
    for scope in scopes:
        found = actions.of(scope)
        if found:
            parts.append((f"{actions.TITLES[scope]}\n", "bold $tw-accent"))
            parts += [part for action in found for part in _line(action.key, action.help, "bold", width)]
            parts.append(("\n", ""))
    parts.append(("In the filter\n", "bold $tw-accent"))
    for field, meaning in query.HELP:
        parts += _line(field, meaning, "bold", width)
    parts.append(("\nStates\n", "bold $tw-accent"))
    for name, meaning in states.MEANINGS.items():
        parts += _line(f"{states.symbol(name)} {name}", meaning, states.variable(name), width)
    parts.append(("\nWords\n", "bold $tw-accent"))
    for word, meaning in WORDS:
        parts += _line(word, meaning, "", width)
    return parts


def _line(left: str, right: str, style: str, width: int) -> list[Part]:
    return hanging(f"  {left}", right, INDENT, width, "$tw-muted", style)
