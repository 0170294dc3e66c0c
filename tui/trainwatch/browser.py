"""Whether the screen is drawn for a browser, and what a person there may do on this machine."""

from __future__ import annotations

import os

VARIABLE = "TRAINWATCH_BROWSER"
"""Set by `trainwatch serve` for the viewer behind a page: SHELL when it may open windows of tmux here, else SCREEN."""
SHELL, SCREEN = "shell", "screen"
NO_SHELL = (
    "A browser has no shell. In a terminal: trainwatch shell TARGET --rank N. With trainwatch serve --allow-shell, S "
    "opens one in the tmux in which that was started."
)


def is_there() -> bool:
    """Whether this process draws for a browser."""
    return VARIABLE in os.environ


def shell_allowed() -> bool:
    """Whether a person at the browser may open shells on this machine."""
    return os.environ.get(VARIABLE) == SHELL
