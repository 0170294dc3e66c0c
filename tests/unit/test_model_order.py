"""The order of rows and their groups."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.model.gpus import Gpus
from trainwatch.model.order import GROUPS, SORT_KEYS, Group, OrderError, grouped, sort_rows
from trainwatch.model.progress import Progress
from trainwatch.model.rows import Row
from trainwatch_launcher.reader.changes import AttemptKey

ROWS = (
    Row(AttemptKey(0), "0", "gpu-01", "running", phase="Load data", phase_age=5, output_bytes=10),
    Row(AttemptKey(1), "1", "gpu-02", "failed", phase="Train", phase_age=50, exit_code=1, output_bytes=30,
        progress=Progress(step=90)),
    Row(AttemptKey(2), "2", "cpu-03", "held", phase="Train", phase_age=1, exit_code=137, progress=Progress(step=100),
        gpus=Gpus(util=40.0)),
    Row(AttemptKey(10), "10", "gpu-10", "finished", exit_code=0, output_bytes=20, gpus=Gpus(util=20.0)),
    Row(AttemptKey(10, 2), "10#2", "gpu-11", "stalled", phase="Upload"),
)  # fmt: skip


def labels(key, reverse=False):
    return [row.label for row in sort_rows(reversed(ROWS), key, reverse)]


def test_rows_are_sorted_by_any_column_and_unknown_facts_come_last():
    assert labels("rank") == ["0", "1", "2", "10", "10#2"]
    assert labels("rank", reverse=True) == ["10#2", "10", "2", "1", "0"]
    assert labels("state") == ["1", "2", "10#2", "0", "10"]
    assert labels("host") == ["2", "0", "1", "10", "10#2"]
    assert labels("output_bytes") == ["0", "10", "1", "2", "10#2"]
    assert labels("output_bytes", reverse=True) == ["1", "10", "0", "2", "10#2"]
    assert labels("phase_age", reverse=True) == ["1", "0", "2", "10", "10#2"]
    assert labels("exit_code") == ["10", "1", "2", "0", "10#2"]


def test_every_sort_key_works_and_others_are_refused():
    for key in SORT_KEYS:
        assert len(sort_rows(ROWS, key)) == len(ROWS)
    with pytest.raises(OrderError, match="cannot sort by 'colour'; sort by one of rank"):
        sort_rows(ROWS, "colour")


def test_an_order_keeps_rows_that_are_equal_in_it_by_rank_either_way():
    alike = [Row(AttemptKey(rank), str(rank), "h", "running", phase="Train") for rank in (3, 1, 2)]
    for key in SORT_KEYS[1:]:
        for reverse in (False, True):
            assert [row.label for row in sort_rows(alike, key, reverse)] == ["1", "2", "3"]


def lines(by, folded=()):
    entries = grouped(ROWS, by, set(folded).__contains__)
    return [entry.name if isinstance(entry, Group) else entry.label for entry in entries]


def test_rows_are_grouped_by_host_state_or_phase_and_groups_fold():
    assert lines("") == ["0", "1", "2", "10", "10#2"]
    assert lines("phase") == ["Load data", "0", "Train", "1", "2", "", "10", "Upload", "10#2"]
    assert lines("state") == ["failed", "1", "held", "2", "stalled", "10#2", "running", "0", "finished", "10"]
    assert lines("phase", {"Train", ""}) == ["Load data", "0", "Train", "", "Upload", "10#2"]


def test_a_group_says_how_many_ranks_it_has_and_how_they_are():
    groups = [entry for entry in grouped(ROWS, "phase", "Train".__eq__) if isinstance(entry, Group)]
    train = next(group for group in groups if group.name == "Train")
    assert train == Group("phase", "Train", 2, (("failed", 1), ("held", 1)), (90, 100), 40.0, True)


NAMES = st.sampled_from(["Train", "running", "", "cpu-03"])


@given(st.lists(st.sampled_from(ROWS)), st.sampled_from(GROUPS), st.sets(NAMES))
def test_no_row_is_lost_or_twice_in_groups(rows, by, folded):
    entries = grouped(rows, by, folded.__contains__)
    shown = [entry for entry in entries if isinstance(entry, Row)]
    hidden = sum(entry.count for entry in entries if isinstance(entry, Group) and entry.folded)
    assert len(shown) + hidden == len(rows)
    if by:
        assert sum(entry.count for entry in entries if isinstance(entry, Group)) == len(rows)
