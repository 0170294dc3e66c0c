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
RUNS = "runs"
TABLE = "table"
VIEW = "view"

TITLES = {
    OVERVIEW: "Overview",
    RANK: "Rank",
    LOG: "Log",
    GRID: "Grid",
    CELLS: "Among the cells",
    TIMELINE: "Timeline",
    LANES: "In the timeline",
    CHART: "Chart",
    RUNS: "Runs",
    TABLE: "In the table",
    VIEW: "In a log",
    APP: "Everywhere",
}
"""Scopes as the help names them, in its order."""

ALL_RANKS = (OVERVIEW, GRID, TIMELINE)
"""Where all ranks are seen, and one of them is selected."""
ONE_RUN = (*ALL_RANKS, RANK, LOG)


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
    Action("log", "l", "log", "The rank's whole log: follow, scroll, search", (*ALL_RANKS, RANK), footer=2),
    Action("chart", "c", "chart", "Loss, rate, step time and GPUs over time: the marked ranks, else the selected one",
           (OVERVIEW, RANK), footer=9),
    Action("mark", "m", "mark", "Mark a rank, or unmark it; the marked ones are charted together", (OVERVIEW,)),
    Action("shell", "s", "shell", "A shell in the rank's working directory and environment",
           ONE_RUN, footer=3),
    Action("shell_window", "S", "shell window", "The same shell in a new window of tmux, beside this one",
           ONE_RUN, footer=10),
    Action("extend", "e", "extend", "Hold a failed rank for longer", ONE_RUN, footer=4),
    Action("release", "x", "release", "End the hold of a failed rank now", ONE_RUN, footer=5),
    Action("why", "w", "why", "Go to the rank that failed first, else to the one that stands out most", (OVERVIEW,),
           footer=7),
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
    Action("page_line_down", "j", "down", "One row down", (RANK,), "j ↓", palette=False),
    Action("page_line_up", "k", "up", "One row up", (RANK,), "k ↑", palette=False),
    Action("page_top", "g", "top", "The top of the page", (RANK,), palette=False),
    Action("page_bottom", "G", "bottom", "The bottom of the page", (RANK,), palette=False),
    # A log
    Action("follow", "f", "follow", "Go to the end and follow new lines, or stop following", (VIEW,), footer=1),
    Action("bottom", "G,end", "end", "The end of the log, and follow it", (VIEW,), "G", palette=False),
    Action("search", "slash", "search", "Search the whole log for text or an expression", (VIEW,), "/", 2),
    Action("find_next", "n", "next", "The next hit below", (VIEW,), footer=7),
    Action("find_previous", "N", "previous", "The next hit above", (VIEW,), footer=8),
    Action("wrap", "w", "wrap", "Wrap long lines, or scroll sideways", (LOG,), footer=6),
    Action("scroll_right", "l", "right", "Scroll sideways, when lines are not wrapped", (LOG,), "l →", palette=False),
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
    Action("back", "escape", "back", "One step back", (RANK, LOG, GRID, TIMELINE, CHART), "esc", 80, palette=False),
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
