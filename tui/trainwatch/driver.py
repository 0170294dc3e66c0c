"""Textual's way to a terminal, for real ones: with bytes typed that are no UTF-8, with one stream alone to draw on."""

from __future__ import annotations

import os
from codecs import IncrementalDecoder, getincrementaldecoder
from contextlib import suppress
from typing import Any

from textual.drivers import linux_driver

from trainwatch.terminal import drawn_on


def tolerant(name: str) -> type[IncrementalDecoder]:
    """The decoder of this name that shows what it cannot decode as U+FFFD instead of raising."""
    strict = getincrementaldecoder(name)

    class Tolerant(strict):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__("replace")

    return Tolerant


class TerminalDriver(linux_driver.LinuxDriver):
    """Draws on the stream that is a terminal, and outlives every byte that is typed or pasted.

    Textual (8.2.8) decodes strictly, and ends the app when a terminal set to Latin-1 sends an umlaut.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._file = drawn_on() or self._file

    def _get_terminal_size(self) -> tuple[int, int]:
        """Of the terminal that is drawn on; Textual asks stdout, which may be a pipe."""
        columns = lines = 0
        with suppress(ValueError, OSError):
            columns, lines = os.get_terminal_size(self._file.fileno() if self._file is not None else -1)
        return (columns, lines) if columns and lines else super()._get_terminal_size()

    def run_input_thread(self) -> None:
        """Read what is typed, until the end."""
        vars(linux_driver)["getincrementaldecoder"] = tolerant
        super().run_input_thread()
