"""How the hosts of a run are told in the header and on their page."""
from __future__ import annotations

import pytest

from builders import NOW, RunBuilder
from support.screens import StillSource, press, screen_text, settle
from trainwatch.app import TrainwatchApp
from trainwatch.link import Link
from trainwatch.screens.hosts import host_parts
from trainwatch.widgets.links import summary

UP = Link("gpu-0", "connected", NOW - 60, heard=NOW - 1, round_trip=0.012)
LOST = Link("gpu-1", "lost", NOW - 30, "connection refused", heard=NOW - 30, retry_at=NOW + 5)
LAGS = Link("gpu-2", "lagging", NOW - 9, "its file system has not answered for 9 s", heard=NOW)


@pytest.mark.parametrize(
    ("links", "wide", "narrow"),
    [
        ((), "", ""),
        ((UP,), "", "1h"),
        ((LOST,), "gpu-1 lost", "0/1h"),
        ((UP, UP), "2 hosts", "2h"),
        ((UP, LOST, LAGS), "2/3 hosts, 1 lost, 1 lagging", "2/3h"),
    ],
)
def test_the_header_counts_hosts_and_names_what_is_wrong(links, wide, narrow):
    assert summary(links, True)[0] == wide
    assert summary(links, False)[0] == narrow
    assert summary(links, True)[1] == any(link.state != "connected" for link in links)


def test_the_page_shows_the_worst_first_with_reason_and_next_try():
    text = "".join(part for part, _ in host_parts((UP, LOST, LAGS), NOW))
    assert text.index("gpu-1") < text.index("gpu-2") < text.index("gpu-0")
    for word in ("connection refused; again in 5s", "has not answered for 9 s", "12 ms", "● connected", "✗ lost"):
        assert word in text
    assert "there is no host" in host_parts((), NOW)[0][0]


def test_names_and_reasons_from_hosts_are_text_only():
    evil = Link("\x1b]0;x\x07[red]h", "lost", NOW, "\x1b[2Jgone")
    text = "".join(part for part, _ in host_parts((evil,), NOW))
    assert "\x1b" not in text
    assert "\x07" not in text


async def test_the_overview_shows_them_and_a_key_opens_the_page(tmp_path):
    source = StillSource(RunBuilder(tmp_path / "run").directory)
    source.links = (UP, LOST)
    app = TrainwatchApp(source, clock=lambda: NOW, theme_name="trainwatch-dark")
    async with app.run_test(size=(140, 30)) as pilot:
        await settle(pilot)
        assert "1/2 hosts, 1 lost" in screen_text(pilot)
        await press(pilot, "H")
        assert "connection refused" in screen_text(pilot)
        source.links = (UP, UP)
        await press(pilot, "escape")


async def test_clocks_that_are_ahead_do_not_make_ages_wrong(tmp_path):
    run = RunBuilder(tmp_path / "run")
    run.rank(0, time=NOW + 300).start(NOW + 100).phase("Train", NOW + 240).output(b"x\n", NOW + 290)
    source = StillSource(run.directory)
    source.clock_ahead = 300.0
    app = TrainwatchApp(source, clock=lambda: NOW, theme_name="trainwatch-dark")
    async with app.run_test(size=(140, 30)) as pilot:
        await settle(pilot)
        text = screen_text(pilot)
        assert "1m00s" in text  # in the phase for a minute
        assert "10s" in text  # and quiet for ten seconds
