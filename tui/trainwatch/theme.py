"""Colours: two themes of our own, and what the terminal's own 16 colours mean to us.

Every state has a colour variable (`$state-held`); so has everything else that our widgets draw on the line API. The
contrast of text is at least 4.5:1 in both themes; a test holds that.
"""

from __future__ import annotations

from rich.terminal_theme import TerminalTheme
from textual.theme import Theme

DARK = "trainwatch-dark"
LIGHT = "trainwatch-light"
ANSI_DARK = "ansi-dark"
ANSI_LIGHT = "ansi-light"

DARK_COLORS = {
    "state-starting": "#9aadc1", "state-running": "#7fc08a", "state-stalled": "#e3c45c", "state-finished": "#82aacc",
    "state-failed": "#f58486", "state-held": "#f0a35e", "state-ended": "#d5979b", "state-lost": "#c792ea",
    "tw-muted": "#97a1af", "tw-header": "#aab4c0", "tw-accent": "#6cb6e8", "tw-link": "#6cb6e8",
    "tw-cursor": "#25354a", "tw-cursor-blurred": "#222b36", "tw-rule": "#39424e",
    "tw-alarm": "#8f2430", "tw-alarm-text": "#ffffff", "tw-alarm-soft": "#ffd9d9", "tw-bar": "#1d232b",
    "tw-match": "#e3c45c", "tw-match-text": "#14181d", "tw-number": "#9fc3e6",
    "shade-unknown": "#59636f", "shade-root": "#ff4d55",
    "shade-heat-0": "#4f9d69", "shade-heat-1": "#8fb35a", "shade-heat-2": "#e3c45c",
    "shade-heat-3": "#f0955e", "shade-heat-4": "#f2585e", "shade-phase-0": "#6cb6e8", "shade-phase-1": "#7fc08a",
    "shade-phase-2": "#e3c45c", "shade-phase-3": "#c792ea", "shade-phase-4": "#f0a35e", "shade-phase-5": "#9aadc1",
    "tw-line-0": "#6cb6e8", "tw-line-1": "#f0a35e", "tw-line-2": "#7fc08a", "tw-line-3": "#f58486",
    "tw-line-4": "#c792ea", "tw-line-5": "#e3c45c", "tw-line-6": "#5fd0c5", "tw-line-7": "#c3ccd6",
    "tw-picture": "#4f6478",
}  # fmt: skip
LIGHT_COLORS = {
    "state-starting": "#566372", "state-running": "#1d7335", "state-stalled": "#7d5d00", "state-finished": "#1f5f96",
    "state-failed": "#b3232b", "state-held": "#9a4a00", "state-ended": "#8c4347", "state-lost": "#7a3aa8",
    "tw-muted": "#5d6773", "tw-header": "#414b57", "tw-accent": "#0f639c", "tw-link": "#0f639c",
    "tw-cursor": "#dcebf8", "tw-cursor-blurred": "#e3e9ef", "tw-rule": "#c3cad2",
    "tw-alarm": "#b3232b", "tw-alarm-text": "#ffffff", "tw-alarm-soft": "#ffe3e3", "tw-bar": "#e8ecf1",
    "tw-match": "#ffd95a", "tw-match-text": "#1c2128", "tw-number": "#1f5f96",
    "shade-unknown": "#b4bcc6", "shade-root": "#c00018",
    "shade-heat-0": "#2f8a4b", "shade-heat-1": "#7a9a2c", "shade-heat-2": "#b98a00",
    "shade-heat-3": "#d0621a", "shade-heat-4": "#b3232b", "shade-phase-0": "#1f77b4", "shade-phase-1": "#2c8c46",
    "shade-phase-2": "#b98a00", "shade-phase-3": "#7a3aa8", "shade-phase-4": "#d0621a", "shade-phase-5": "#66727f",
    "tw-line-0": "#0f639c", "tw-line-1": "#9a4a00", "tw-line-2": "#1d7335", "tw-line-3": "#b3232b",
    "tw-line-4": "#7a3aa8", "tw-line-5": "#7d5d00", "tw-line-6": "#0e6b75", "tw-line-7": "#414b57",
    "tw-picture": "#9db3c8",
}  # fmt: skip
ANSI_COLORS = {
    "state-starting": "ansi_cyan", "state-running": "ansi_green", "state-stalled": "ansi_yellow",
    "state-finished": "ansi_blue", "state-failed": "ansi_red", "state-held": "ansi_bright_red",
    "state-ended": "ansi_red", "state-lost": "ansi_magenta",
    "tw-muted": "ansi_default", "tw-header": "ansi_default", "tw-accent": "ansi_cyan", "tw-link": "ansi_cyan",
    "tw-cursor": "ansi_blue", "tw-cursor-blurred": "ansi_default", "tw-rule": "ansi_default",
    "tw-alarm": "ansi_red", "tw-alarm-text": "ansi_bright_white", "tw-alarm-soft": "ansi_bright_white",
    "tw-bar": "ansi_default", "tw-match": "ansi_yellow", "tw-match-text": "ansi_black", "tw-number": "ansi_default",
    "shade-unknown": "ansi_bright_black", "shade-root": "ansi_bright_red",
    "shade-heat-0": "ansi_green", "shade-heat-1": "ansi_cyan",
    "shade-heat-2": "ansi_yellow", "shade-heat-3": "ansi_magenta", "shade-heat-4": "ansi_red",
    "shade-phase-0": "ansi_blue", "shade-phase-1": "ansi_green", "shade-phase-2": "ansi_yellow",
    "shade-phase-3": "ansi_magenta", "shade-phase-4": "ansi_cyan", "shade-phase-5": "ansi_white",
    "tw-line-0": "ansi_cyan", "tw-line-1": "ansi_yellow", "tw-line-2": "ansi_green", "tw-line-3": "ansi_red",
    "tw-line-4": "ansi_magenta", "tw-line-5": "ansi_blue", "tw-line-6": "ansi_bright_cyan",
    "tw-line-7": "ansi_bright_yellow", "tw-picture": "ansi_cyan",
}  # fmt: skip

THEMES = (
    Theme(
        name=DARK, dark=True, primary="#6cb6e8", secondary="#8fa3b8", accent="#6cb6e8", success="#7fc08a",
        warning="#e3c45c", error="#f2787a", foreground="#d5dbe3", background="#14181d", surface="#181d23",
        panel="#1d232b", variables=DARK_COLORS,
    ),
    Theme(
        name=LIGHT, dark=False, primary="#0f639c", secondary="#566372", accent="#0f639c", success="#1d7335",
        warning="#7d5d00", error="#b3232b", foreground="#1c2128", background="#fbfcfd", surface="#f3f5f8",
        panel="#e8ecf1", variables=LIGHT_COLORS,
    ),
)  # fmt: skip

_DARK_16 = [
    (0x5A, 0x64, 0x70), (0xF2, 0x78, 0x7A), (0x7F, 0xC0, 0x8A), (0xE3, 0xC4, 0x5C), (0x7A, 0xA2, 0xE0),
    (0xC7, 0x92, 0xEA), (0x6C, 0xC7, 0xD1), (0xC8, 0xCF, 0xD8),
]  # fmt: skip
_DARK_16_BRIGHT = [
    (0x7D, 0x88, 0x95), (0xFF, 0x9B, 0x9B), (0x9F, 0xDC, 0xA9), (0xF5, 0xDC, 0x84), (0x9D, 0xC1, 0xF7),
    (0xDD, 0xB3, 0xF7), (0x93, 0xDF, 0xE6), (0xFF, 0xFF, 0xFF),
]  # fmt: skip
_LIGHT_16 = [
    (0x1C, 0x21, 0x28), (0xB3, 0x23, 0x2B), (0x1D, 0x73, 0x35), (0x7D, 0x5D, 0x00), (0x1F, 0x5F, 0x96),
    (0x7A, 0x3A, 0xA8), (0x0E, 0x6B, 0x75), (0x6A, 0x73, 0x7E),
]  # fmt: skip
_LIGHT_16_BRIGHT = [
    (0x56, 0x63, 0x72), (0xC4, 0x31, 0x39), (0x24, 0x80, 0x3E), (0x8A, 0x68, 0x08), (0x2A, 0x6F, 0xAB),
    (0x8A, 0x4A, 0xB8), (0x13, 0x79, 0x84), (0x7A, 0x83, 0x8E),
]  # fmt: skip
LOG_DARK = TerminalTheme((0x14, 0x18, 0x1D), (0xD5, 0xDB, 0xE3), _DARK_16, _DARK_16_BRIGHT)
"""What the 16 colours of a log look like on our dark background: all readable, "black" too."""
LOG_LIGHT = TerminalTheme((0xFB, 0xFC, 0xFD), (0x1C, 0x21, 0x28), _LIGHT_16, _LIGHT_16_BRIGHT)
"""The same on the light background, where "white" must be readable."""


def defaults(ansi: bool, dark: bool) -> dict[str, str]:
    """Our variables for a theme that does not set them itself."""
    if ansi:
        return ANSI_COLORS
    return DARK_COLORS if dark else LIGHT_COLORS


def other(name: str) -> str:
    """The theme of the opposite brightness, staying with the terminal's own colours where they are used."""
    return {DARK: LIGHT, LIGHT: DARK, ANSI_DARK: ANSI_LIGHT, ANSI_LIGHT: ANSI_DARK}.get(name, DARK)


def preferred(environ: dict[str, str]) -> str:
    """The theme to start with: `TRAINWATCH_THEME` (dark, light, ansi, or a theme's name), else what the terminal can.

    `COLORFGBG` tells of a light background where a terminal sets it; a terminal of at most 16 colours gets its own.
    """
    wanted = environ.get("TRAINWATCH_THEME", "")
    names = {"dark": DARK, "light": LIGHT, "ansi": ANSI_DARK, "ansi-light": ANSI_LIGHT}
    if wanted:
        return names.get(wanted, wanted)
    light = environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")
    many = environ.get("COLORTERM") in ("truecolor", "24bit") or environ.get("TERM", "").endswith(("256color", "kitty"))
    if not many:
        return ANSI_LIGHT if light else ANSI_DARK
    return LIGHT if light else DARK
