"""How each host is reached: connected, lagging, lost, tried again, with its age and the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from trainwatch.link import Link
from trainwatch.model import text
from trainwatch.screens.feed import Feed
from trainwatch.screens.page import Page
from trainwatch.widgets import links as marks
from trainwatch.widgets.header import Part, fit_most
from trainwatch.widgets.logtext import clean

COLUMNS: tuple[tuple[str, int], ...] = (("host", 24), ("state", 15), ("heard", 7), ("answers in", 11), ("clock", 9))


class Hosts(Page):
    """All hosts, the worst first; renewed every second while it is open."""

    BINDINGS: ClassVar = []

    def __init__(self, feed: Feed) -> None:
        super().__init__("hosts")
        self._feed = feed
        self._shown: list[Part] = []

    def content(self) -> Widget:
        """A line a host, and its reason below when it is not as it should be."""
        return Static("", id="hosts", markup=False)

    def on_mount(self) -> None:
        """Show them, and go on showing them."""
        self._show()
        self.set_interval(1.0, self._show)

    def _show(self) -> None:
        parts = host_parts(self._feed.links, self._feed.now())
        if parts != self._shown:
            self._shown = parts
            self.query_one("#hosts", Static).update(Content.assemble(*parts))


def host_parts(links: Sequence[Link], now: float) -> list[Part]:
    """What the page says of the hosts at `now`, in Unix seconds."""
    if not links:
        return [("This run is read on this machine: there is no host to reach.", "$tw-muted")]
    parts: list[Part] = [("".join(_cell(name, width) for name, width in COLUMNS) + "\n", "$tw-muted")]
    for link in sorted(links, key=lambda link: (marks.ORDER.index(link.state), link.spare, link.name)):
        parts += _line(link, now)
    return parts


def _line(link: Link, now: float) -> list[Part]:
    age, trip = link.age(now), link.round_trip
    state = f"{marks.symbol(link.state)} {link.state}"
    cells = [
        ("never" if age is None else f"{text.ago(age)}", COLUMNS[2][1]),
        ("" if trip is None else f"{trip * 1000:.0f} ms", COLUMNS[3][1]),
        (f"{link.clock_ahead:+.0f}s" if abs(link.clock_ahead) >= 1 else "", COLUMNS[4][1]),
    ]
    parts: list[Part] = [
        (_cell(clean(link.name), COLUMNS[0][1]), "bold"),
        (_cell(state, COLUMNS[1][1]), marks.style(link.state)),
        ("".join(_cell(value, width) for value, width in cells) + ("spare" if link.spare else "") + "\n", "$tw-muted"),
    ]
    if link.reason and not (link.up and link.state != "lagging"):
        parts.append((f"    {clean(link.reason)}{_retry(link, now)}\n", "$tw-muted"))
    return parts


def _retry(link: Link, now: float) -> str:
    if link.retry_at is None:
        return ""
    return f"; again in {text.duration(max(0.0, link.retry_at - now))}"


def _cell(value: str, width: int) -> str:
    shown = fit_most(value, width - 1)
    return shown + " " * (width - cell_len(shown))
