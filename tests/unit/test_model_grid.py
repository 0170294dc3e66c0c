"""Where the cells of the grid stand: each rank once, inside the screen, none on another or on a name."""
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainwatch.model import grid
from trainwatch_launcher.reader.changes import AttemptKey

sizes = st.lists(st.integers(1, 70), min_size=1, max_size=60)


def groups(counts: list[int]) -> list[tuple[str, list[AttemptKey]]]:
    found, rank = [], 0
    for number, count in enumerate(counts):
        found.append((f"gpu-{number:02d}", [AttemptKey(rank + n, 1) for n in range(count)]))
        rank += count
    return found


@given(counts=sizes, width=st.integers(20, 200), height=st.integers(1, 60))
def test_every_rank_has_a_cell_of_its_own_inside_the_width(counts, width, height):
    layout = grid.arrange(groups(counts), width, height, 4)
    pitch = layout.style.pitch
    taken = [(x + column, y) for x, y in layout.places.values() for column in range(pitch)]
    taken += [(name.x + column, name.y) for name in layout.names for column in range(name.width)]
    assert len(layout.places) == sum(counts)
    assert len(set(taken)) == len(taken)
    assert all(x + (pitch if pitch == 1 else pitch - 1) <= width for x, _ in layout.places.values())


@given(counts=sizes, width=st.integers(20, 200), height=st.integers(1, 60))
def test_what_is_under_a_cell_is_that_cell(counts, width, height):
    layout = grid.arrange(groups(counts), width, height, 4)
    assert all(layout.at(x, y) == key for key, (x, y) in layout.places.items())


@given(counts=sizes, width=st.integers(20, 200), steps=st.lists(st.sampled_from([(1, 0), (-1, 0), (0, 1), (0, -1)])))
def test_the_cursor_always_stands_on_a_cell(counts, width, steps):
    layout = grid.arrange(groups(counts), width, 20, 4)
    key = next(iter(layout.places))
    for dx, dy in steps:
        key = layout.neighbour(key, dx, dy)
    assert key in layout.places


def test_few_ranks_have_their_numbers_and_hosts_their_names():
    layout = grid.arrange(groups([8] * 8), 100, 20, 2)
    assert layout.style.numbered
    assert [name.text for name in layout.names] == [f"gpu-{n:02d}" for n in range(8)]


def test_four_thousand_ranks_fit_on_one_screen():
    layout = grid.arrange(groups([8] * 512), 158, 41, 4)
    assert layout.lines <= 41


def test_beyond_that_two_rows_share_a_line_and_the_rest_is_scrolled_to():
    layout = grid.arrange(groups([8] * 4096), 158, 41, 5)
    assert layout.style.halves
    assert layout.lines > 41


def test_down_and_up_lead_to_the_cell_below_and_above():
    layout = grid.arrange(groups([8, 8]), 50, 20, 2)
    assert layout.neighbour(AttemptKey(3, 1), 0, 1) == AttemptKey(11, 1)
    assert layout.neighbour(AttemptKey(11, 1), 0, -1) == AttemptKey(3, 1)
    assert layout.neighbour(AttemptKey(3, 1), 0, -1) == AttemptKey(3, 1), "there is none above"


def test_nothing_to_show_is_no_layout_at_all():
    assert grid.arrange([], 80, 20).places == {}
