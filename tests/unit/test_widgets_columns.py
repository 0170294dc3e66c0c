"""The rank table's columns at any width."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from trainwatch.model.rows import Row
from trainwatch.model.text import countdown
from trainwatch.widgets import columns
from trainwatch.widgets.rank_table import fit
from trainwatch_launcher.reader.changes import AttemptKey

RUNNING = Row(AttemptKey(0), "0", "gpu-node-000", "running", phase="Launching torchrun", phase_age=60, last_line="step")
HELD = Row(AttemptKey(1), "1", "gpu-node-001", "held", phase="Launching torchrun", exit_code=137,
           exit_text="137 SIGKILL", hold_left=581.0)  # fmt: skip


def titles(width: int, *rows: Row) -> list[str]:
    return [column.title for column, _ in columns.layout(width, columns.content_widths(rows))]


@given(st.integers(20, 300), st.sets(st.sampled_from([RUNNING, HELD])))
def test_columns_fill_the_width_and_never_more(width, rows):
    shown = columns.layout(width, columns.content_widths(tuple(rows)))
    used = sum(cells for _, cells in shown) + columns.GAP * (len(shown) - 1)
    assert used <= max(width, 40)
    assert {"rank", "state"} <= {column.title for column, _ in shown}


def test_at_80_columns_who_state_exit_and_hold_stay():
    assert titles(78, RUNNING, HELD) == ["rank", "host", "state", "phase", "age", "exit", "hold", "quiet"]
    assert titles(78, RUNNING) == ["rank", "host", "state", "phase", "age", "quiet"]
    assert titles(60, RUNNING, HELD) == ["rank", "state", "phase", "exit", "hold"]


def test_where_there_is_room_all_are_shown_also_when_empty():
    assert titles(158, RUNNING) == [column.title for column in columns.COLUMNS]


@pytest.mark.parametrize(("seconds", "shown"), [
    (None, ""), (0, "0:00"), (-5, "0:00"), (9, "0:09"), (581, "9:41"), (3599, "59:59"), (3600, "1h00m"),
    (9660, "2h41m"), (90_000, "1d01h"),
])  # fmt: skip
def test_holds_count_down(seconds, shown):
    assert countdown(seconds) == shown
    assert len(shown) <= columns.HOLD.least


@given(st.text(max_size=30), st.integers(1, 20), st.booleans(), st.booleans())
def test_cells_are_exactly_as_wide_as_their_column(text, width, right, keep_end):
    text = "".join(character for character in text if character.isprintable())
    assert cell_len(fit(text, width, right, keep_end)) == width


def test_hosts_keep_their_end():
    assert fit("gpu-node-017", 8, keep_end=True) == "…ode-017"
    assert fit("gpu-node-017", 8) == "gpu-nod…"
