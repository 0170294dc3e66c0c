"""Every action there is: its key, its words, and where it works. Key map, footer, help and palette all read this."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding, BindingType

APP = "app"
OVERVIEW = "overview"
RANK = "rank"
LOG = "log"
CHART = "chart"
RUNS = "runs"
TABLE = "table"
VIEW = "view"

TITLES = {
    OVERVIEW: "Overview",
    RANK: "Rank",
    LOG: "Log",
    CHART: "Chart",
    RUNS: "Runs",
    TABLE: "In the table",
    VIEW: "In a log",
    APP: "Everywhere",
}
"""Scopes as the help names them, in its order."""


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
    Action("open", "enter", "details", "Facts, progress, GPUs, phases and events of the selected rank", (OVERVIEW,),
           "⏎", 1),
    Action("log", "l", "log", "The rank's whole log: follow, scroll, search", (OVERVIEW, RANK), footer=2),
    Action("chart", "c", "chart", "Loss, rate, step time and GPUs over time: the marked ranks, else the selected one",
           (OVERVIEW, RANK), footer=9),
    Action("mark", "m", "mark", "Mark a rank, or unmark it; the marked ones are charted together", (OVERVIEW,)),
    Action("shell", "s", "shell", "A shell in the rank's working directory and environment",
           (OVERVIEW, RANK, LOG), footer=3),
    Action("extend", "e", "extend", "Hold a failed rank for longer", (OVERVIEW, RANK, LOG), footer=4),
    Action("release", "x", "release", "End the hold of a failed rank now", (OVERVIEW, RANK, LOG), footer=5),
    Action("why", "w", "why", "Go to the rank that failed first, else to the one that stands out most", (OVERVIEW,),
           footer=7),
    Action("filter", "slash", "filter", "Show only the ranks that match: words, state:failed, rank:0-7, host:gpu-*",
           (OVERVIEW,), "/", 6),
    Action("sort_next", "full_stop,greater_than_sign", "sort", "Sort by the next column", (OVERVIEW,), ".", 8),
    Action("sort_previous", "comma,less_than_sign", "sort back", "Sort by the column before it", (OVERVIEW,), ","),
    Action("reverse", "r", "reverse", "Turn the order around", (OVERVIEW,)),
    Action("commands", "y", "commands", "The same for scripts: commands that release, extend or open a shell",
           (OVERVIEW, RANK, LOG)),
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
    Action("back", "escape", "back", "One step back", (RANK, LOG, CHART), "esc", 80, palette=False),
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
