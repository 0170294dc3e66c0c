"""How states look: a word, a symbol of its own shape, and a colour; never a colour alone."""

from __future__ import annotations

from trainwatch_launcher.rundir import state

SYMBOLS = {
    state.STARTING: "◌",
    state.RUNNING: "●",
    state.STALLED: "◍",
    state.FINISHED: "✓",
    state.FAILED: "✗",
    state.HELD: "■",
    state.ENDED: "×",
    state.LOST: "?",
}

MEANINGS = {
    state.STARTING: "the launcher is there, the command is not yet",
    state.RUNNING: "the command runs",
    state.STALLED: "the command runs, but has made no progress for a while",
    state.FINISHED: "the command ended with code 0",
    state.FAILED: "the command ended with another code, and was not held",
    state.HELD: "it failed, and its container is kept alive for you until the hold runs out",
    state.ENDED: "it failed and was held; the hold is over",
    state.LOST: "no sign of life from the launcher, and no word that it ended",
}

WORKING = frozenset((state.STARTING, state.RUNNING, state.STALLED))
"""The command is not over yet."""
COMPONENTS = frozenset(f"state--{name}" for name in SYMBOLS)
"""Component classes, for widgets that draw states on the line API; app.tcss gives them their colours."""


def symbol(name: str) -> str:
    """The symbol of a state; a newer launcher's state that we do not know gets a dot."""
    return SYMBOLS.get(name, "·")


def component(name: str) -> str:
    """The component class of a state."""
    return f"state--{name}" if name in SYMBOLS else f"state--{state.LOST}"


def variable(name: str) -> str:
    """The theme variable of a state's colour, for use in content styles."""
    return f"$state-{name}" if name in SYMBOLS else f"$state-{state.STARTING}"
