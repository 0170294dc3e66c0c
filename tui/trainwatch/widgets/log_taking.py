"""Ways to take lines out of a log: copy them, say where one is, save them to a file, open the place elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from textual.message import Message

from trainwatch.model import text as words
from trainwatch.widgets import logtext
from trainwatch.widgets.log_going import LogGoing
from trainwatch.widgets.log_loader import LogReader, ReadError, whole
from trainwatch.widgets.page_loader import Sifting
from trainwatch.widgets.paged_lines import PagedLines
from trainwatch.widgets.search_bar import SAVE
from trainwatch_launcher.reader.pages import Entry, Page

MOST_COPIED = 4 << 20
"""Bytes that are copied at most; a clipboard is no place for more."""
SAVED_AT_ONCE = 1 << 20
LINES_AT_ONCE = 2000


class LogTaking(LogGoing):
    """Part of a log pane."""

    @dataclass
    class Copied(Message):
        """This text is to be put where the terminal can paste it from."""

        text: str

    @dataclass
    class OpenPlace(Message):
        """Open a log at a place in another program: `log` is its number, `line` from 1 on."""

        log: int
        offset: int
        line: int
        editor: bool

    @dataclass
    class NamePlace(Message):
        """Copy the name of a place: FILE:LINE."""

        log: int
        line: int

    # Selecting and copying

    def action_select(self) -> None:
        """Select lines with the keys that move, or stop that."""
        if not self.view.end_selection():
            self.view.begin_selection()

    def action_copy_lines(self) -> None:
        """Copy the selected lines, else the line that a search has found, else the first one on screen."""
        chosen = self.view.selected
        if chosen is None:
            text = self.screen.get_selected_text()
            if text:
                self.post_message(self.Copied(text))
                return
            current = self.view.current
            chosen = None if current is None else (current, current)
        if chosen is not None:
            self.run_worker(self._copy(*chosen), group="take", exclusive=True, exit_on_error=False)

    async def _copy(self, first: int, last: int) -> None:
        try:
            lines = await self._lines_between(first, last)
        except ReadError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        text = "\n".join(logtext.plain(line) for line in lines)
        if text:
            self.post_message(self.Copied(text))
            self.view.end_selection()

    async def _lines_between(self, first: int, last: int) -> list[bytes]:
        """The bytes of some lines. Raises ReadError."""
        lines, reader = self.view.lines, self.view.reader
        if reader is None:
            return []
        if isinstance(lines, PagedLines):
            taken, room = [], MOST_COPIED
            for number in range(first, last + 1):
                if lines.holds(number) and room > 0:
                    taken.append(await whole(reader, lines.entry(number), room))
                    room -= len(taken[-1])
            if room <= 0:
                self._say_too_much()
            return taken
        end = lines.line_at(last).end
        data = b""
        while first + len(data) < end and len(data) < MOST_COPIED:
            more = await reader.read(first + len(data), min(end - first - len(data), SAVED_AT_ONCE))
            if not more:
                break
            data += more
        if end - first > MOST_COPIED:
            self._say_too_much()
        return data.split(b"\n")

    def _say_too_much(self) -> None:
        self.notify(f"Only the first {words.size(MOST_COPIED)} are copied; ctrl+s saves all to a file.")

    def action_copy_place(self) -> None:
        """Copy the file and the line's number."""
        self._with_line(lambda log, offset, line: self.NamePlace(log, line))

    def action_open_pager(self) -> None:
        """Open the log at this place in $PAGER."""
        self._with_line(lambda log, offset, line: self.OpenPlace(log, offset, line, False))

    def action_open_editor(self) -> None:
        """Open the log at this place in $EDITOR."""
        self._with_line(lambda log, offset, line: self.OpenPlace(log, offset, line, True))

    def _with_line(self, message: Any) -> None:
        current = self.view.current
        if current is not None and self.view.reader is not None:
            log, offset = self.view.place(current)
            work = self._find_line(self.view.reader, log, offset, message)
            self.run_worker(work, group="take", exclusive=True, exit_on_error=False)

    async def _find_line(self, reader: LogReader, log: int, offset: int, message: Any) -> None:
        try:
            line = await reader.line(log, offset)
        except ReadError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self.post_message(message(log, offset, line + 1))

    # Saving

    def action_save(self) -> None:
        """Type the name of a file to write to."""
        self.ask_for(SAVE, self.suggested_name)

    suggested_name = "trainwatch.log"
    """What a file with these lines may be called."""

    def save_to(self, typed: str) -> str:
        """Write the selected lines, else all that the view shows; returns why not, or nothing."""
        path = Path(typed.strip()).expanduser()
        try:
            out = path.open("xb")
        except FileExistsError:
            return f"there is one already: {path}"
        except OSError as error:
            return f"cannot write {path}: {error.strerror or error}"
        self.run_worker(self._save(out, path), group="save", exit_on_error=False)
        return ""

    async def _save(self, out: BinaryIO, path: Path) -> None:
        view, count = self.view, 0
        chosen, reader = view.selected, view.reader
        try:
            with out:
                if reader is None:
                    pass
                elif chosen is not None:
                    count = await self._save_selected(out, reader, *chosen)
                elif view.sifting.queries or len(reader.labels) > 1 or reader.is_part:
                    count = await self._save_pages(out, reader, view.sifting)
                else:
                    count = await self._save_bytes(out, reader, 0, (await reader.ends())[0])
        except (ReadError, OSError) as error:
            why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            self.notify(f"{path}: {why}; what it holds is not whole.", severity="error", markup=False)
            return
        finally:
            self.busy = ""
            self.retitle()
        self.notify(f"Saved {words.size(count)} to {path}", markup=False)
        view.end_selection()

    async def _save_bytes(self, out: BinaryIO, reader: LogReader, start: int, end: int) -> int:
        at = start
        while at < end:
            data = await reader.read(at, min(SAVED_AT_ONCE, end - at))
            if not data:
                break
            await asyncio.to_thread(out.write, data)
            at += len(data)
            self._saving((at - start) / (end - start))
        return at - start

    async def _save_pages(self, out: BinaryIO, reader: LogReader, sifting: Sifting) -> int:
        cuts, ends, count, at_end = None, await reader.ends(), 0, False
        labels = [f"[{label}] ".encode() if len(reader.labels) > 1 else b"" for label in reader.labels or [""]]
        while not at_end:
            asked = reader.ask("page", down=True, count=LINES_AT_ONCE, cuts=cuts, ends=ends, **sifting.facts())
            async with contextlib.aclosing(asked) as answer:
                async for facts, body in answer:
                    count += await self._save_entries(out, reader, Page.decode(body), labels)
                    cuts, at_end = facts["cuts"], facts["at_end"]
                    self._saving(sum(facts["cuts"]) / max(1, sum(ends)))
        return count

    async def _save_entries(
        self, out: BinaryIO, reader: LogReader, entries: Sequence[Entry], labels: Sequence[bytes]
    ) -> int:
        """Write lines, each whole, however long it is; returns how many bytes these were."""
        parts, count = [], 0
        for entry in entries:
            parts.append(labels[entry.log] + entry.data)
            if len(entry.data) < entry.end - entry.start:
                count += await asyncio.to_thread(out.write, b"".join(parts))
                parts.clear()
                asked = reader.ask("read", log=entry.log, start=entry.start + len(entry.data), end=entry.end)
                async with contextlib.aclosing(asked) as answer:
                    async for _, data in answer:
                        count += await asyncio.to_thread(out.write, data)
            parts.append(b"\n")
        return count + await asyncio.to_thread(out.write, b"".join(parts))

    async def _save_selected(self, out: BinaryIO, reader: LogReader, first: int, last: int) -> int:
        lines = self.view.lines
        if isinstance(lines, PagedLines):
            chosen = [lines.entry(number) for number in range(first, last + 1) if lines.holds(number)]
            return await self._save_entries(out, reader, chosen, [b""] * len(reader.labels or [""]))
        count = await self._save_bytes(out, reader, first, lines.line_at(last).end)
        return count + await asyncio.to_thread(out.write, b"\n")

    def _saving(self, share: float) -> None:
        self.busy = f"saving… {share:.0%}"
        self.retitle()
