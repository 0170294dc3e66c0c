"""Colours: readable in both themes, and what a terminal of few colours gets."""
from __future__ import annotations

import pytest
from textual.color import Color

from trainwatch import theme
from trainwatch.widgets import states
from trainwatch_launcher.rundir.state import STATES


@pytest.mark.parametrize("ours", theme.THEMES, ids=lambda ours: ours.name)
def test_text_is_readable(ours):
    colors = ours.variables
    text = [name for name in colors if name.startswith("state-")] + ["tw-muted", "tw-header", "tw-accent"]
    for ground in (ours.background, ours.surface, colors["tw-bar"], colors["tw-cursor"], colors["tw-cursor-blurred"]):
        for color in [ours.foreground, *(colors[name] for name in text)]:
            assert contrast(color, ground) >= 4.5, (color, ground)
    for color in (colors["tw-alarm-text"], colors["tw-alarm-soft"]):
        assert contrast(color, colors["tw-alarm"]) >= 4.5
    assert contrast(colors["tw-match-text"], colors["tw-match"]) >= 4.5


@pytest.mark.parametrize(("log", "ours"), [(theme.LOG_DARK, theme.THEMES[0]), (theme.LOG_LIGHT, theme.THEMES[1])])
def test_all_16_colours_of_a_log_can_be_seen(log, ours):
    for number in range(16):
        assert contrast(Color(*log.ansi_colors[number]).hex, ours.background) >= 2.8, number


def contrast(one: str, other: str) -> float:
    first, second = sorted((luminance(one), luminance(other)), reverse=True)
    return (first + 0.05) / (second + 0.05)


def luminance(color: str) -> float:
    parts = [value / 255 for value in Color.parse(color).rgb]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_state_has_a_symbol_of_its_own_a_meaning_and_a_colour():
    assert set(states.SYMBOLS) == set(states.MEANINGS) == set(STATES)
    assert len(set(states.SYMBOLS.values())) == len(STATES)
    for colors in (theme.DARK_COLORS, theme.LIGHT_COLORS, theme.ANSI_COLORS):
        assert {f"state-{state}" for state in STATES} <= set(colors)
        assert set(colors) == set(theme.DARK_COLORS)


@pytest.mark.parametrize(("environ", "name"), [
    ({"TERM": "xterm-256color"}, "trainwatch-dark"),
    ({"TERM": "xterm", "COLORTERM": "truecolor"}, "trainwatch-dark"),
    ({"TERM": "xterm-256color", "COLORFGBG": "0;15"}, "trainwatch-light"),
    ({"TERM": "screen"}, "ansi-dark"),
    ({"TERM": "xterm", "COLORFGBG": "0;15"}, "ansi-light"),
    ({"TERM": "xterm-256color", "TRAINWATCH_THEME": "light"}, "trainwatch-light"),
    ({"TERM": "xterm-256color", "TRAINWATCH_THEME": "nord"}, "nord"),
])  # fmt: skip
def test_the_first_theme_is_what_the_terminal_can_show(environ, name):
    assert theme.preferred(environ) == name
