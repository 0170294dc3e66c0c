"""Every action there is: its key, its words, and where it works. Key map, footer, help and palette all read this."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding, BindingType

APP = "app"
OVERVIEW = "overview"
RANK = "rank"
LOG = "log"
GRID = "grid"
CELLS = "cells"
TIMELINE = "timeline"
LANES = "lanes"
CHART = "chart"
FAILURE = "failure"
STACKS = "stacks"
RUNS = "runs"
TABLE = "table"
VIEW = "view"
MERGED = "merged"

TITLES = {
    OVERVIEW: "Overview",
    RANK: "Rank",
    FAILURE: "Why it failed",
    STACKS: "Stacks",
    LOG: "Log",
    GRID: "Grid",
    CELLS: "Among the cells",
    TIMELINE: "Timeline",
    LANES: "In the timeline",
    CHART: "Chart",
    MERGED: "Logs of several ranks",
    RUNS: "Runs",
    TABLE: "In the table",
    VIEW: "In a log",
    APP: "Everywhere",
}
"""Scopes as the help names them, in its order."""

ALL_RANKS = (OVERVIEW, GRID, TIMELINE)
"""Where all ranks are seen, and one of them is selected."""
ONE_RUN = (*ALL_RANKS, RANK, LOG, FAILURE, STACKS)


@dataclass(frozen=True)
class Action:
    """Something a person can do."""

    name: str
    """The action's method, without `action_`; also its id."""
    keys: str
    """Keys as Textual calls them, separated by commas; the first one is shown."""
    label: str
    """One or two words, for the footer."""
    help: str
    """One sentence, for help, palette and tooltips."""
    scopes: tuple[str, ...]
    shown: str = ""
    """How the key is written, where its own name would be clumsy."""
    footer: int = 0
    """Place in the footer, 1 first; 0: not there."""
    palette: bool = True
    """Whether the palette offers it; plain movements are not commands."""

    @property
    def key(self) -> str:
        """The key as a person reads it."""
        return self.shown or self.keys.split(",")[0]


ACTIONS = (
    # What a run and its ranks are looked at with
    Action("open", "enter", "details", "Facts, progress, GPUs, phases and events of the selected rank", ALL_RANKS,
           "⏎", 1),
    Action("log", "l", "log", "The rank's whole log: follow, scroll, search", (*ALL_RANKS, RANK, STACKS), footer=2),
    Action("merged", "M", "merged", "The logs of all ranks, or of the marked ones, as one in the order of time",
           (OVERVIEW, RANK, LOG)),
    Action("chart", "c", "chart", "Loss, rate, step time and GPUs over time: the marked ranks, else the selected one",
           (*ALL_RANKS, RANK), footer=9),
    Action("mark", "m", "mark", "Mark a rank, or unmark it: c charts the marked ones, M reads their logs as one",
           (OVERVIEW,)),
    Action("shell", "s", "shell", "A shell in the rank's working directory and environment",
           ONE_RUN, footer=3),
    Action("shell_window", "S", "shell window", "The same shell in a new window of tmux, beside this one",
           ONE_RUN, footer=10),
    Action("extend", "e", "extend", "Hold a failed rank for longer", ONE_RUN, footer=4),
    Action("release", "x", "release", "End the hold of a failed rank now", ONE_RUN, footer=5),
    Action("why", "w", "why", "Why it failed: where it began, its lines, who died of it; else what stands out",
           (*ALL_RANKS, RANK), footer=7),
    Action("line", "enter,l", "the line", "Go to the line in the log that says why", (FAILURE,), "⏎ l", 1),
    Action("copy_ticket", "c", "copy", "Copy all this as Markdown, for a ticket", (FAILURE,), footer=2),
    Action("release_others", "X", "release others", "End the holds of all ranks but the one where it began", (FAILURE,),
           footer=6),
    Action("unfold", "enter,space", "unfold", "The group's whole stack and its processes; of a process all its threads",
           (STACKS,), "⏎", 1),
    Action("stacks", "d", "stacks", "It hangs: take the stacks of the selected or the marked ranks, folded",
           ONE_RUN, footer=13),
    Action("stacks_all", "D", "all stacks", "The same of all ranks: who is where, and who differs from the many",
           ONE_RUN, footer=14),
    Action("older", "left_square_bracket", "older", "The stacks that were taken before these", (STACKS,), "[", 9),
    Action("newer", "right_square_bracket", "newer", "The stacks that were taken after these", (STACKS,), "]", 10),
    Action("copy_stacks", "c", "copy", "Copy who is where, with whole stacks", (STACKS,), footer=6),
    Action("grid", "o", "grid", "A cell for each rank: thousands at one glance", (OVERVIEW,), footer=9),
    Action("timeline", "t", "timeline", "Phases of all ranks over time: who was where when", (OVERVIEW, GRID),
           footer=9),
    Action("lens_next", "full_stop,greater_than_sign", "colour", "Colour cells by the next fact: phase, GPU load…",
           (GRID,), ".", 6),
    Action("lens_previous", "comma,less_than_sign", "colour back", "Colour cells by the fact before it", (GRID,), ","),
    Action("filter", "slash", "filter", "Show only ranks that match: words, state:failed, host:gpu-0*, gpu<50, lag>2",
           (OVERVIEW,), "/", 6),
    Action("sort_next", "full_stop,greater_than_sign", "sort", "Sort by the next column", (OVERVIEW,), ".", 8),
    Action("sort_previous", "comma,less_than_sign", "sort back", "Sort by the column before it", (OVERVIEW,), ","),
    Action("reverse", "r", "reverse", "Turn the order around", (OVERVIEW,)),
    Action("group", "z", "group", "Group by host, by state, by phase, or not", (OVERVIEW,), footer=11),
    Action("fold_all", "Z", "fold all", "Fold all groups, or unfold them", (OVERVIEW,)),
    Action("columns", "C", "columns", "Choose the table's columns and their order", (OVERVIEW,), footer=12),
    Action("commands", "y", "commands", "The same for scripts: commands that release, extend or open a shell",
           ONE_RUN),
    Action("problems", "p", "problems", "Stalls, stragglers, losses and GPUs that are not well, unreadable files",
           (OVERVIEW,)),
    Action("hosts", "H", "hosts", "How each host is reached: connected, lagging, lost, and why", (OVERVIEW,)),
    Action("switch", "tab", "table/log", "Move between the table and the log below it", (OVERVIEW,)),
    Action("back", "escape", "back", "Out of the search, the filter, the log, the marks; then back to the runs",
           (OVERVIEW,), "esc", palette=False),
    Action("pick", "enter", "open", "Watch the selected run", (RUNS,), "⏎", 1),
    Action("reload", "r", "reload", "Look again for runs", (RUNS,), footer=2),
    # The table
    Action("down", "j,down", "down", "One row down", (TABLE,), "j ↓", palette=False),
    Action("up", "k,up", "up", "One row up", (TABLE,), "k ↑", palette=False),
    Action("first", "g,home", "first", "The first row", (TABLE,), "g", palette=False),
    Action("last", "G,end", "last", "The last row", (TABLE,), "G", palette=False),
    Action("page_down", "pagedown,ctrl+f,ctrl+d", "page down", "A page down", (TABLE,), "PgDn", palette=False),
    Action("page_up", "pageup,ctrl+b,ctrl+u", "page up", "A page up", (TABLE,), "PgUp", palette=False),
    Action("fold", "space", "fold", "Fold the group under the cursor, or unfold it; so does Enter on its line",
           (TABLE,)),
    # The timeline
    Action("time_forward", "right", "later", "A column later", (LANES,), "→", palette=False),
    Action("time_back", "left,h", "earlier", "A column earlier", (LANES,), "← h", palette=False),
    Action("time_next", "right_curly_bracket", "next phase", "To where the rank's next phase is", (LANES,), "}", 11),
    Action("time_previous", "left_curly_bracket", "phase before", "To where the rank's phase began", (LANES,), "{"),
    Action("zoom_in", "plus,equals_sign", "zoom in", "Half the time on screen, around the cursor", (LANES,), "+", 9),
    Action("zoom_out", "minus", "zoom out", "Twice the time on screen", (LANES,), "-", 10),
    Action("zoom_all", "0", "all", "The whole run on screen", (LANES,), "0", 12),
    Action("lane_down", "j,down", "down", "The rank below", (LANES,), "j ↓", palette=False),
    Action("lane_up", "k,up", "up", "The rank above", (LANES,), "k ↑", palette=False),
    Action("lane_first", "g,home", "first", "The first rank's lane", (LANES,), "g", palette=False),
    Action("lane_last", "G,end", "last", "The last rank's lane", (LANES,), "G", palette=False),
    Action("lane_page_down", "pagedown,ctrl+f,ctrl+d", "page down", "A page of lanes down", (LANES,), "PgDn",
           palette=False),
    Action("lane_page_up", "pageup,ctrl+b,ctrl+u", "page up", "A page of lanes up", (LANES,), "PgUp", palette=False),
    # The cells of the grid
    Action("cell_left", "left,h", "left", "The cell at the left", (CELLS,), "← h", palette=False),
    Action("cell_right", "right", "right", "The cell at the right", (CELLS,), "→", palette=False),
    Action("cell_down", "down,j", "down", "The cell below", (CELLS,), "↓ j", palette=False),
    Action("cell_up", "up,k", "up", "The cell above", (CELLS,), "↑ k", palette=False),
    Action("cell_first", "g,home", "first", "The first rank", (CELLS,), "g", palette=False),
    Action("cell_last", "G,end", "last", "The last rank", (CELLS,), "G", palette=False),
    # A page
    Action("page_line_down", "j", "down", "One row down", (RANK, FAILURE, STACKS), "j ↓", palette=False),
    Action("page_line_up", "k", "up", "One row up", (RANK, FAILURE, STACKS), "k ↑", palette=False),
    Action("page_top", "g", "top", "The top of the page", (RANK, FAILURE, STACKS), palette=False),
    Action("page_bottom", "G", "bottom", "The bottom of the page", (RANK, FAILURE, STACKS), palette=False),
    # A log
    Action("follow", "f", "follow", "Go to the end and follow new lines, or stop following", (VIEW,), footer=1),
    Action("bottom", "G,end", "end", "The end of the log, and follow it", (VIEW,), "G", palette=False),
    Action("search", "slash", "search", "Search the whole log for text or an expression", (VIEW,), "/", 2),
    Action("show_lines", "ampersand", "filter", "Show only lines with some text or expression", (VIEW,), "&", 3),
    Action("hide_lines", "minus", "hide", "Hide lines with some text or expression; each time one more", (VIEW,), "-"),
    Action("context", "plus", "context", "More or fewer lines around each that passes the filter", (VIEW,), "+"),
    Action("find_next", "n", "next", "The next hit below", (VIEW,), footer=7),
    Action("find_previous", "N", "previous", "The next hit above", (VIEW,), footer=8),
    Action("next_error", "right_square_bracket", "next error", "The next error, exception or traceback below", (VIEW,),
           "]", 9),
    Action("previous_error", "left_square_bracket", "last error", "The same above", (VIEW,), "[", 4),
    Action("next_phase", "right_curly_bracket", "next phase", "The line that begins the next phase", (VIEW,), "}"),
    Action("previous_phase", "left_curly_bracket", "last phase", "The same above", (VIEW,), "{"),
    Action("go_time", "T", "time", "Go to a time: -10m before the end, 12:31:05, 2025-11-30 12:31", (VIEW,), footer=10),
    Action("go_line", "colon", "line", "Go to a line by its number", (VIEW,), ":"),
    Action("gutter", "number_sign", "numbers", "Before each line its number, its time, or nothing", (VIEW,), "#"),
    Action("states", "R", "bars", "All states of progress bars, or only their last", (VIEW,)),
    Action("select", "v", "select", "Select lines with the keys that move", (VIEW,)),
    Action("copy_lines", "c", "copy", "Copy the selected lines, or the line of the hit", (VIEW,), footer=11),
    Action("copy_place", "C", "copy place", "Copy FILE:LINE of the line", (VIEW,)),
    Action("save", "ctrl+s", "save", "Save the selected lines, or all that the filter shows, to a file", (VIEW,)),
    Action("open_pager", "o", "pager", "Open the log at this line in $PAGER", (VIEW,)),
    Action("open_editor", "O", "editor", "Open the log at this line in $EDITOR", (VIEW,)),
    Action("mute", "m", "mute", "Choose which ranks are shown", (MERGED,), footer=5),
    Action("fold", "D", "fold", "Show a line that other ranks say too once, with their number", (MERGED,), footer=6),
    Action("wrap", "w", "wrap", "Wrap long lines, or scroll sideways", (LOG, MERGED), footer=6),
    Action("in_full", "enter", "in full", "The line in its rank's whole log: nothing hidden, however long it is",
           (LOG, MERGED), "⏎"),
    Action("scroll_right", "l", "right", "Scroll sideways, when lines are not wrapped", (LOG, MERGED), "l →",
           palette=False),
    Action("line_down", "j,down", "down", "One row down", (VIEW,), "j ↓", palette=False),
    Action("line_up", "k,up", "up", "One row up", (VIEW,), "k ↑", palette=False),
    Action("view_down", "pagedown,space,ctrl+f,ctrl+d", "page down", "A page down", (VIEW,), "PgDn", palette=False),
    Action("view_up", "pageup,b,ctrl+b,ctrl+u", "page up", "A page up", (VIEW,), "PgUp", palette=False),
    Action("top", "g,home", "top", "The beginning of the log", (VIEW,), "g", palette=False),
    Action("right", "right", "right", "Scroll sideways, when lines are not wrapped", (VIEW,), "→", palette=False),
    Action("left", "h,left", "left", "Scroll back", (VIEW,), "h ←", palette=False),
    # A chart
    Action("next_measure", "right,l,tab", "next", "The next one alone: loss, rate, step time, GPU, power", (CHART,),
           "→", 1),
    Action("previous_measure", "left,h,shift+tab", "before", "The one before it alone", (CHART,), "←", 2),
    Action("all_measures", "a", "all", "All of them at once, where there is room", (CHART,), footer=3),
    Action("shorter", "plus,equals_sign", "shorter", "A shorter time: an hour, a quarter of one", (CHART,), "+", 4),
    Action("longer", "minus", "longer", "A longer time, up to all there is", (CHART,), "-", 5),
    # Everywhere
    Action("help", "question_mark,f1", "help", "Keys, states and words", (APP,), "?", 90),
    Action("palette", "colon", "commands", "Find an action by its name (also ctrl+p)", (APP,), ":", palette=False),
    Action("toggle_theme", "T", "theme", "Light or dark", (APP,)),
    Action("back", "escape", "back", "One step back", (RANK, LOG, MERGED, GRID, TIMELINE, CHART, STACKS), "esc", 80,
           palette=False),
    Action("back", "escape,w", "back", "One step back", (FAILURE,), "esc", 80, palette=False),
    Action("quit", "q,ctrl+c", "quit", "Leave; the run goes on (only a demo stops its workers)", (APP,),
           footer=91),
)  # fmt: skip


def of(*scopes: str) -> list[Action]:
    """The actions of some scopes, in the registry's order."""
    return [action for action in ACTIONS if any(scope in scopes for scope in action.scopes)]


def bindings(scope: str) -> list[BindingType]:
    """The key bindings of a screen, a widget or the app."""
    return [
        Binding(action.keys, action.name, action.label, show=bool(action.footer), key_display=action.key,
                tooltip=action.help, id=f"{scope}.{action.name}")
        for action in of(scope)
    ]  # fmt: skip


def footer(*scopes: str) -> list[Action]:
    """The actions that a footer offers, in its order."""
    return sorted((action for action in of(*scopes) if action.footer), key=lambda action: action.footer)
