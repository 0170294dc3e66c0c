"""Where the processes of ranks are: their stacks, folded, as they are taken now or were taken before."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from trainwatch import actions
from trainwatch.model import stacks, text
from trainwatch.model.naming import ranks
from trainwatch.model.stacks import Group, Round
from trainwatch.screens import stacks_rows, wishes
from trainwatch.screens.feed import Feed
from trainwatch.screens.run_screen import Plain, RunScreen
from trainwatch.widgets import header
from trainwatch.widgets.header import Bar, Part
from trainwatch.widgets.keybar import KeyBar
from trainwatch.widgets.log_loader import ReadError
from trainwatch.widgets.logtext import clean
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.stacks import Dump

AT_ONCE = 16
"""Ranks whose files are read at the same time."""
FEW, SOME, MANY_FILES = 64, 4, 16
"""Of so many ranks so many files each are read at first, of more only the newest; and at most, when one goes back."""
MOST_NOTES = 4


class StacksScreen(RunScreen):
    """Groups of processes at the same place, the most shared first; those who differ from the many stand out."""

    BINDINGS = actions.bindings(actions.STACKS)
    SCOPES = (actions.STACKS,)
    DEFAULT_CSS = """
    StacksScreen #taken { background: $tw-bar; }
    StacksScreen #said { height: auto; max-height: 6; padding: 0 1; color: $state-stalled; }
    StacksScreen OptionList {
        height: 1fr; border: none; padding: 0; background: $background; background-tint: $foreground 0%;
        text-wrap: nowrap; text-overflow: ellipsis; scrollbar-color: $tw-rule; scrollbar-background: $background;
    }
    StacksScreen OptionList:focus { background-tint: $foreground 0%; }
    StacksScreen OptionList > .option-list--option { padding: 0 1; }
    StacksScreen OptionList > .option-list--option-highlighted {
        background: $tw-cursor; color: $foreground; text-style: none;
    }
    """

    def __init__(self, feed: Feed, keys: Sequence[AttemptKey] = (), take: bool = False) -> None:
        super().__init__(feed)
        self._only = tuple(keys)
        """Which ranks; none for all."""
        self._take = take
        self._asked: tuple[AttemptKey, ...] = ()
        self._taken: dict[AttemptKey, Sequence[Dump]] = {}
        self._problems: dict[AttemptKey, str] = {}
        self._read: dict[AttemptKey, int | None] = {}
        """The newest file of each, as the status told when it was read."""
        self._most = SOME if len(self._only or feed.run.order) <= FEW else 1
        self._reading = self._further = False
        self._rounds: tuple[Round, ...] = ()
        self._round = 0
        self._groups: tuple[Group, ...] = ()
        self._opened: set[str] = set()
        self._lines: list[stacks_rows.Line] = []

    @property
    def is_complete(self) -> bool:
        """Whether all that there is has been read."""
        return not self._reading and not self._due()

    @property
    def listed(self) -> OptionList:
        """What scrolls."""
        return self.query_one(OptionList)

    @property
    def key(self) -> AttemptKey | None:
        """The rank of the line under the cursor."""
        at = self.listed.highlighted if self.is_whole else None
        key = self._lines[at].key if at is not None and at < len(self._lines) else None
        return key or (self._only[0] if self._only else next(iter(self._shown()), None))

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Bar(id="header")
        yield Bar(id="taken")
        yield Plain(id="said")
        yield OptionList(markup=False, compact=True)
        yield KeyBar(actions.STACKS, actions.APP)

    def on_mount(self) -> None:
        """Ask, if that is what was wanted."""
        self.listed.focus()
        self.query_one(KeyBar).show(actions.STACKS, actions.APP, needed=("stacks",))
        if self._take:
            self._ask(self._only or tuple(stacks.running(self.feed.run, self.feed.now())))

    def _ask(self, keys: Sequence[AttemptKey]) -> None:
        busy = set(self._awaited())
        wanted = tuple(key for key in keys if key not in busy)
        if wanted:
            self._asked = tuple(sorted({*wanted, *busy}))
            self._round = 0
            self.post_message(wishes.TakeStacks(wanted))
        elif not busy:
            self.notify("No rank runs: there is nothing to take.", severity="warning")

    def _awaited(self) -> list[AttemptKey]:
        """Who was asked, and has not taken them yet."""
        return [key for key in self._asked if (taken := self.feed.taking(key)) is None or taken.pending]

    # What is shown

    def run_changed(self) -> None:
        """Read what has come, and say what is awaited."""
        run, now = self.feed.run, self.feed.now()
        state = self.summary_at(now)
        self.set_class(state.first is not None, "alarm")
        note = header.trouble_note(run.trouble) or (self.feed.problem and "source lost")
        problems = len(run.problems) - bool(run.trouble)
        parts = header.header_parts(state, self.feed.name, now, self.size.width, problems, note, self.feed.links)
        self.query_one("#header", Bar).show(parts)
        due = self._due()
        if due and not self._reading:
            self._reading = True
            self.run_worker(self._renew(due), group="stacks", exit_on_error=False)
        self.query_one("#taken", Bar).show(self._title(now))
        self._show_said()
        self._show_lines()

    def _keys(self) -> Sequence[AttemptKey]:
        run = self.feed.run
        return self._only or [key for key in run.order if stacks.has_stacks(run, key)]

    def _newest(self, key: AttemptKey) -> int | None:
        """The number of the newest file, as far as is known."""
        attempt = self.feed.run.attempts.get(key)
        if attempt is None:
            return None
        told = attempt.last("stacks")
        numbers = [attempt.status.stacks if attempt.status is not None else None,
                   told.integer("number") if told is not None and told.text("file") else None]  # fmt: skip
        return max((number for number in numbers if number is not None), default=None)

    def _due(self) -> list[AttemptKey]:
        """Whose files are to be read: there are newer ones than those that were."""
        return [key for key in self._keys() if (self._newest(key) or 0) > (self._read.get(key) or 0)]

    async def _renew(self, keys: Sequence[AttemptKey]) -> None:
        try:
            for first in range(0, len(keys), AT_ONCE):
                await asyncio.gather(*(self._renew_one(key) for key in keys[first : first + AT_ONCE]))
            await asyncio.to_thread(self._fold)  # of hundreds of ranks it takes a moment
            if self._further and self._round + 1 < len(self._rounds):
                self._round += 1
                await asyncio.to_thread(self._fold)
        finally:
            self._reading = self._further = False
        self.show()

    async def _renew_one(self, key: AttemptKey) -> None:
        self._read[key] = self._newest(key) or 0
        try:
            self._taken[key] = await self.feed.stacks(key, self._most)
            self._problems.pop(key, None)
        except ReadError as error:
            self._problems[key] = str(error)

    def _fold(self) -> None:
        self._rounds = stacks.rounds(self._taken, {})
        self._round = min(self._round, max(0, len(self._rounds) - 1))
        self._groups = stacks.fold(self._shown(), self.feed.run.labels)

    def _shown(self) -> dict[AttemptKey, Dump]:
        return dict(self._rounds[self._round].dumps) if self._rounds else {}

    def _title(self, now: float) -> list[Part]:
        pending, count = len(self._awaited()), len(self._asked)
        if pending:
            return [(f" taking stacks: {count - pending} of {count} have come…", "bold $tw-accent")]
        if not self._rounds:
            said = "reading…" if self._reading else "no stacks were taken; d takes them"
            return [(f" {said}", "$tw-muted")]
        here, shown = self._rounds[self._round], self._shown()
        who = ranks(tuple(sorted(shown)), {key: self.feed.run.label(key) for key in shown})
        methods = ", ".join(dict.fromkeys(part for dump in shown.values() for part in clean(dump.method).split(", ")))
        when = f"{text.time_of_day(here.time, now)}, {text.ago(now - here.time)} ago"
        parts: list[Part] = [(" stacks ", "bold"), (f"of {who}", ""), (f" · {when} · {methods}", "$tw-muted")]
        if len(self._rounds) > 1:
            parts.append((f" · {self._round + 1} of {len(self._rounds)}, [ older ] newer", "$tw-muted"))
        return parts

    def _show_said(self) -> None:
        """What stood in the way, each once."""
        run = self.feed.run
        said: dict[str, list[AttemptKey]] = defaultdict(list)
        for key in self._asked:
            taken = self.feed.taking(key)
            if taken is not None and taken.said:
                said[taken.said].append(key)
        for key, why in self._problems.items():
            said[why].append(key)
        lines = [f"{ranks(tuple(keys), {key: run.label(key) for key in keys})}: {why}" for why, keys in said.items()]
        lines += stacks.notes(self._shown(), run.labels)
        more = [f"and {len(lines) - MOST_NOTES} more"] if len(lines) > MOST_NOTES else []
        widget = self.query_one("#said", Plain)
        widget.display = bool(lines)
        widget.update(Content("\n".join(clean(line) for line in [*lines[:MOST_NOTES], *more])))

    def _show_lines(self) -> None:
        lines = stacks_rows.lines(self._groups, self._opened, self.size.width - 2)
        if lines == self._lines:
            return
        at = self.listed.highlighted
        name = self._lines[at].name if at is not None and at < len(self._lines) else ""
        self._lines = lines
        self.listed.set_options([Option(Content.assemble(*line.parts)) for line in lines])
        places = {line.name: number for number, line in enumerate(lines)}
        if lines:
            self.listed.highlighted = places.get(name, 0)

    # Actions

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click or Enter unfolds."""
        event.stop()
        self.action_unfold()

    def action_unfold(self) -> None:
        """Unfold the group or the process under the cursor, or fold it."""
        at = self.listed.highlighted
        if at is not None and at < len(self._lines) and self._lines[at].unfolds:
            self._opened ^= {self._lines[at].name}
            self._show_lines()

    def action_stacks(self) -> None:
        """Take them again."""
        running = stacks.running(self.feed.run, self.feed.now())
        self._ask([key for key in self._only if key in running or stacks.runs(self.feed.run, key, self.feed.now())]
                  if self._only else running)  # fmt: skip

    def action_stacks_all(self) -> None:
        """Of all ranks."""
        self._only, self._opened = (), set()
        self._ask(stacks.running(self.feed.run, self.feed.now()))
        self.show()

    def action_older(self) -> None:
        """What was taken before."""
        if self._round + 1 < len(self._rounds):
            self._turn_to(self._round + 1)
        elif self._most < MANY_FILES and not self._reading and any(self._read.values()):
            self._most = MANY_FILES
            self._read.clear()
            self._further = True
            self.show()
        else:
            self.notify("These are the first ones that were taken.")

    def action_newer(self) -> None:
        """What was taken after these."""
        if self._round:
            self._turn_to(self._round - 1)
        else:
            self.notify("These are the newest ones; d takes new ones.")

    def _turn_to(self, number: int) -> None:
        self._round = number
        self._fold()
        self.show()

    def action_log(self) -> None:
        """The whole log of the rank under the cursor."""
        if self.key is not None:
            from trainwatch.screens.log import LogScreen

            self.app.push_screen(LogScreen(self.feed, self.key))

    def action_copy_stacks(self) -> None:
        """All this as text."""
        if self._groups:
            self.post_message(wishes.Copy("\n".join(stacks.as_lines(self._groups, full=True)) + "\n"))
        else:
            self.notify("There are no stacks to copy.", severity="warning")

    def action_page_line_down(self) -> None:
        """One line down."""
        self.listed.action_cursor_down()

    def action_page_line_up(self) -> None:
        """One line up."""
        self.listed.action_cursor_up()

    def action_page_top(self) -> None:
        """The first line."""
        self.listed.action_first()

    def action_page_bottom(self) -> None:
        """The last line."""
        self.listed.action_last()
