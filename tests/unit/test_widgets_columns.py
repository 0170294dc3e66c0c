"""The rank table's columns at any width."""
from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from trainwatch.model.course import Course
from trainwatch.model.gpus import Gpus
from trainwatch.model.progress import Progress
from trainwatch.model.rows import Row
from trainwatch.model.text import countdown
from trainwatch.widgets import cells, columns
from trainwatch.widgets.fit import fit
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.gpus import Gpu

RUNNING = Row(AttemptKey(0), "0", "gpu-node-000", "running", phase="Launching torchrun", phase_age=60, last_line="step")
HELD = Row(AttemptKey(1), "1", "gpu-node-001", "held", phase="Launching torchrun", exit_code=137,
           exit_text="137 SIGKILL", hold_left=581.0)  # fmt: skip
GIB = 1 << 30
EIGHT = tuple(Gpu(index=place, uuid=f"GPU-{place}", util=97) for place in range(8))
PROGRESS = Progress(step=4120, total=48000, loss=2.31, course=Course(said=(2.5, 2.4, 2.35, 2.31)),
                    tokens=412_000.0, eta=9000.0)
TRAINING = Row(AttemptKey(2), "2", "gpu-node-002", "running", phase="Launching torchrun", phase_age=60, last_line="x",
               progress=PROGRESS, gpus=Gpus(EIGHT, util=97.0, memory_used=71 * GIB, memory_total=80 * GIB))  # fmt: skip
BROKEN = Row(AttemptKey(3), "3", "gpu-node-003", "running", phase="Train", finding="loss is nan",
             kinds=frozenset({"loss"}), progress=Progress(step=10**17, total=10**17, loss=float("nan"), samples=1e17),
             gpus=Gpus((*EIGHT[:7], Gpu(lost=True)), ail="lost", util=97.0, memory_used=10**17,
                       memory_total=10**17))  # fmt: skip


def titles(width: int, *rows: Row) -> list[str]:
    return [column.title for column, _ in columns.layout(width, columns.content_widths(rows))]


@given(st.integers(20, 300), st.sets(st.sampled_from([RUNNING, HELD, TRAINING, BROKEN])))
def test_columns_fill_the_width_and_never_more(width, rows):
    shown = columns.layout(width, columns.content_widths(tuple(rows)))
    used = sum(cells for _, cells in shown) + columns.GAP * (len(shown) - 1)
    assert used <= max(width, 40)
    assert {"rank", "state"} <= {column.title for column, _ in shown}
    for column, wide in shown:
        for cell in (column.cell(row, wide) for row in rows):
            assert not cell.parts or "".join(part for part, _ in cell.parts) == cell.text


def test_at_80_columns_who_state_exit_and_hold_stay():
    assert titles(78, RUNNING, HELD) == ["rank", "host", "state", "phase", "age", "exit", "hold", "quiet"]
    assert titles(78, RUNNING) == ["rank", "host", "state", "phase", "age", "quiet"]
    assert titles(60, RUNNING, HELD) == ["rank", "state", "phase", "exit", "hold"]


def test_where_there_is_room_all_are_shown_also_when_empty():
    factual = {"step", "rate", "eta", "loss", "gpu", "mem"}
    assert titles(158, RUNNING) == [column.title for column in columns.COLUMNS if column.title not in factual]


def test_at_80_columns_a_training_says_where_it_is_and_how_it_ended():
    assert titles(78, TRAINING) == ["rank", "state", "phase", "step", "rate", "loss", "gpu"]
    assert titles(78, TRAINING, HELD) == ["rank", "state", "phase", "step", "loss", "exit", "hold"]
    assert titles(230, TRAINING, HELD) == [column.title for column in columns.COLUMNS]


@pytest.mark.parametrize(("cell", "width", "said"), [
    (cells.step, 10, "4120/48000"), (cells.step, 20, "4120/48000 ▌░░░░░"), (cells.loss, 8, "2.310 ↘"),
    (cells.loss, 14, "2.310 █▄▂▁"), (cells.gpu, 8, " 97%"), (cells.gpu, 13, "████████  97%"),
    (cells.memory, 9, "71/80G"), (cells.rate, 12, "412k tok/s"), (cells.eta, 6, "2h30m"),
])  # fmt: skip
def test_what_a_training_rank_says_in_so_many_cells(cell, width, said):
    assert cell(TRAINING, width).text == said


def test_what_is_not_well_is_a_word_and_not_a_colour_alone():
    assert cells.loss(BROKEN, 20) == ("nan", cells.BAD, ())
    assert cells.gpu(BROKEN, 20).text == "███████✗ lost"
    assert cells.gpu(BROKEN, 8).text == " 97% lost"
    assert cells.last_line(BROKEN, 20).text == "! loss is nan"


def test_gpus_that_another_row_shows_are_drawn_there_only():
    shared = replace(TRAINING, gpus_at="2.0")
    assert (cells.gpu(shared, 20).text, cells.memory(shared, 9).text) == ("see 2.0", "")


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
