"""How a link's state is drawn, and how all links together are told in the header."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trainwatch.link import CONNECTED, CONNECTING, LAGGING, LOST, RECONNECTING, Link

ORDER = (LOST, RECONNECTING, LAGGING, CONNECTING, CONNECTED)
"""The worst first."""
SYMBOLS = {CONNECTED: "●", CONNECTING: "○", LAGGING: "◐", RECONNECTING: "↻", LOST: "✗"}
STYLES = {
    CONNECTED: "$state-running",
    CONNECTING: "$tw-muted",
    LAGGING: "$state-stalled",
    RECONNECTING: "$state-stalled",
    LOST: "bold $state-failed",
}


def symbol(state: str) -> str:
    """A state's sign, which differs in shape too."""
    return SYMBOLS.get(state, "?")


def style(state: str) -> str:
    """A state's colour."""
    return STYLES.get(state, "")


def summary(links: Sequence[Link], wide: bool) -> tuple[str, bool]:
    """All links in few words, and whether something is wrong; empty for a run of this machine.

    `64 hosts`, `60/64 hosts, 3 lost, 1 connecting`; narrow: `60/64h`.
    """
    if not links:
        return "", False
    counts = Counter(link.state for link in links)
    up = sum(link.up for link in links)
    whole = counts[CONNECTED] == len(links)
    if not wide:
        return (f"{len(links)}h" if whole else f"{up}/{len(links)}h"), not whole
    if len(links) == 1:
        (link,) = links
        return ("" if whole else f"{link.name} {link.state}"), not whole
    if whole:
        return f"{len(links)} hosts", False
    rest = [f"{counts[state]} {state}" for state in ORDER if state != CONNECTED and counts[state]]
    return f"{up}/{len(links)} hosts, {', '.join(rest)}", True
