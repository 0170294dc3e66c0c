"""Logs read as one, filtered, searched and counted: what comes is what sorting and counting everything gives."""
from __future__ import annotations

import subprocess
import time
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, RunBuilder
from trainwatch_launcher.reader import log, records, searching
from trainwatch_launcher.reader.engine import Engine, EngineError, LogName
from trainwatch_launcher.reader.pages import Page

LINE = st.sampled_from([b"loss 0.1\n", b"step\n", b"\n", b"error: x\n", b"w" * 50 + b"\n", "损失\n".encode(),
                        b"\xff\n"])
LOG = st.lists(st.tuples(st.integers(0, 8), st.lists(LINE, max_size=5).map(b"".join)), max_size=8)
"""What came when: (time, bytes), in any order of times."""


def go(engine, operation, names, **asked):
    return list(engine.ask(operation, names, asked, lambda: False))


def run_with(directory, logs):
    """A run with these logs; the names of the logs, and all lines as (time, log, start, bytes) by their indexes."""
    run, names, lines = RunBuilder(directory / "run"), [], []
    for rank, chunks in enumerate(logs):
        attempt, at, newest = run.rank(rank), 0, 0.0
        for when, data in chunks:
            if not data:
                continue
            newest = max(newest, NOW + when)
            attempt.output(data, NOW + when)
            for line in data.splitlines(keepends=True):
                lines.append((newest + rank, rank, at, line.rstrip(b"\n")))
                at += len(line)
        names.append(LogName(str(attempt.directory), True, float(rank)))
    return run, names, lines


def all_pages(engine, names, down, count, **asked):
    """Every line, page by page."""
    entries, cuts = [], None
    while True:
        parts = go(engine, "page", names, down=down, count=count, cuts=cuts, **asked)
        page = [entry for facts, body in (parts if down else parts[::-1]) for entry in Page.decode(body)]
        assert len(page) <= count
        entries = entries + page if down else page + entries
        facts = parts[-1][0]
        cuts = facts["cuts"]
        if facts["at_end"]:
            return entries


@settings(max_examples=60, deadline=None)
@given(st.lists(LOG, min_size=1, max_size=4), st.integers(1, 9), st.booleans())
def test_merged_order_is_a_stable_sort_by_time_whichever_way_and_however_paged(tmp_path_factory, logs, count, down):
    _, names, lines = run_with(tmp_path_factory.mktemp("run"), logs)
    entries = all_pages(Engine(), names, down, count)
    should = sorted(lines, key=lambda line: (line[0], line[1])) if len(logs) > 1 else lines
    assert [(entry.time, entry.log, entry.start, entry.data) for entry in entries] == should


@settings(max_examples=25, deadline=None)
@given(st.lists(LOG, min_size=1, max_size=3), st.integers(1, 9), st.booleans(), st.integers(0, 2))
def test_filtered_lines_are_those_that_match_with_their_neighbours(tmp_path_factory, logs, count, down, context):
    _, names, lines = run_with(tmp_path_factory.mktemp("run"), logs)
    queries = [{"text": "loss|error", "regex": True}, {"text": "error", "invert": True}]
    entries = all_pages(Engine(), names, down, count, queries=queries, context=context)
    hits = [b"loss" in line for *_, line in lines]
    should = [
        (rank, start, hits[at]) for at, (_, rank, start, _) in enumerate(lines)
        if any(hits[other] and lines[other][1] == rank for other in range(max(0, at - context), at + context + 1)
               if other < len(lines))
    ]  # fmt: skip
    assert sorted((entry.log, entry.start, entry.hit) for entry in entries) == sorted(should)
    assert entries == sorted(entries, key=lambda entry: (entry.time, entry.log, entry.start)) or len(logs) == 1


def test_pages_of_growing_logs_miss_nothing_and_show_nothing_twice(tmp_path):
    run = RunBuilder(tmp_path / "run")
    attempts = [run.rank(rank) for rank in range(3)]
    names = [LogName(str(attempt.directory), True, 0.0) for attempt in attempts]
    engine, cuts, seen = Engine(), [0, 0, 0], []
    for turn in range(60):
        for rank, attempt in enumerate(attempts):
            # a line comes before the index tells of it, as it does in life
            data = b"%d of %d\n" % (turn, rank)
            attempt.output(data, NOW + turn, index=turn % 3 == rank)
        parts = go(engine, "page", names, down=True, count=2, cuts=cuts)
        seen += [entry.data for _, body in parts for entry in Page.decode(body)]
        cuts = parts[-1][0]["cuts"]
    seen += [entry.data for _, body in go(engine, "page", names, down=True, count=999, cuts=cuts)
             for entry in Page.decode(body)]
    assert sorted(seen) == sorted(b"%d of %d" % (turn, rank) for turn in range(60) for rank in range(3))


def test_a_place_by_line_time_and_share_is_where_pages_begin(tmp_path):
    logs = [[(second, b"%d of %s\n" % (second, name)) for second in range(10)] for name in (b"a", b"b")]
    _, names, _ = run_with(tmp_path, logs)
    names = [name._replace(shift=0.0) for name in names]
    engine = Engine()

    def first(**asked):
        [(facts, _)] = go(engine, "cuts", names, **asked)
        parts = go(engine, "page", names, down=True, count=1, cuts=facts["cuts"])
        return [entry.data for _, body in parts for entry in Page.decode(body)]

    assert first(time=NOW + 4) == [b"4 of a"]
    assert first(time=NOW + 4.5) == [b"5 of a"]
    assert first(log=1, offset=7 * 4 + 3) == [b"4 of b"]
    assert first(share=0.5) == [b"5 of a"]
    assert first(time=NOW + 99) == []


def test_lines_of_which_many_come_at_once_are_told_apart_by_log_and_place(tmp_path):
    _, names, _ = run_with(tmp_path, [[(1, b"a\n" * 5000)], [(0, b"b\n" * 5000)], [(0, b"")]])
    names = [name._replace(shift=0.0) for name in names]
    entries = all_pages(Engine(), names, False, 700)
    assert [entry.data for entry in entries] == [b"b"] * 5000 + [b"a"] * 5000


def foreign(tmp_path, *texts):
    """Logs that no launcher wrote."""
    names = []
    for number, text in enumerate(texts):
        path = tmp_path / f"log{number}"
        path.write_bytes(text)
        names.append(LogName(str(path), False, 0.0))
    return names


def test_logs_without_an_index_are_ordered_by_the_times_that_their_lines_state(tmp_path, monkeypatch):
    monkeypatch.setattr("trainwatch_launcher.reader.timeline.NEAR", 64)
    names = foreign(
        tmp_path,
        b"".join(b"2025-11-30 10:00:%02d,000 a%d\n  more of a%d\n" % (s, s, s) for s in range(0, 60, 2)),
        b"".join(b"[2025-11-30T10:00:%02d.5] b%d\n" % (s, s) for s in range(60)),
    )
    entries = all_pages(Engine(), names, False, 7)
    order = [entry.data.split()[-1] for entry in entries]
    should = []
    for s in range(60):
        should += [b"a%d" % s] * 2 * (s % 2 == 0) + [b"b%d" % s]
    assert order == should
    [(facts, _)] = go(Engine(), "cuts", names, time=time.mktime((2025, 11, 30, 10, 0, 30, 0, 0, -1)))
    assert log.read(names[1].path, facts["cuts"][1], 25) == b"[2025-11-30T10:00:30.5] b"


@pytest.mark.parametrize(("line", "when"), [
    (b"2025-11-30T10:53:20Z x", NOW), (b"[2025-11-30 10:53:20,500+00:00] [rank3]: x", NOW + 0.5),
    (b"1764500000.25 x", NOW + 0.25), (b"2025-11-30 12:53:20.000 +0200 x", NOW), (b"step 1764500000123 x", None),
    (b"no time 3:2", None), (b"2025-13-45 99:99:99 x", None), (b"", None), (b"\xff" * 500, None),
])  # fmt: skip
def test_times_in_lines_are_read_and_others_are_not_made_up(line, when):
    from trainwatch_launcher.reader.stamps import Stamps

    found = Stamps(NOW).of(line)
    assert found == when if when is None else found == pytest.approx(when)


@pytest.mark.parametrize("line", [b"I1130 10:53:20.250000 x", b"Nov 30 10:53:20.25 host x", b"10:53:20.25 INFO x",
                                  b"2025/11/30 10:53:20.25 x"])
def test_what_a_time_leaves_open_the_files_own_age_tells(line):
    from trainwatch_launcher.reader.stamps import Stamps

    here = time.mktime((2025, 11, 30, 10, 53, 20, 0, 0, -1)) + 0.25
    assert Stamps(here + 5).of(line) == pytest.approx(here)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(LINE, max_size=30).map(b"".join), min_size=1, max_size=3), st.booleans(),
       st.sampled_from(["loss", "error", "[a-z]$", "x*"]), st.integers(0, 300))
def test_a_search_counts_as_grep_does_and_tells_where(tmp_path_factory, texts, down, text, at):
    first, searching.FIRST = searching.FIRST, 64
    try:
        directory = tmp_path_factory.mktemp("logs")
        names = foreign(directory, *texts)
        query = {"text": text, "regex": True, "case": True}
        parts = go(Engine(), "search", names, queries=[query], down=down, at=[at] * len(names))
    finally:
        searching.FIRST = first
    assert parts[0][0]["total"] == sum(len(text) for text in texts)
    for number, name in enumerate(names):
        blocks = [(facts, body) for facts, body in parts[1:] if facts["log"] == number]
        plain = subprocess.run(["grep", "-a", "-b", "-E", "-e", text, name.path], stdout=subprocess.PIPE, check=False,
                               env={"LC_ALL": "C"}).stdout
        should = [int(line.partition(b":")[0]) for line in plain.split(b"\n") if line]
        assert sum(facts["count"] for facts, _ in blocks) == len(should)
        assert sorted(start for _, body in blocks for start in array("Q", body)) == should
        covered = sorted((facts["from"], facts["to"]) for facts, _ in blocks)
        assert [low for low, _ in covered[1:]] == [high for _, high in covered[:-1]]


def test_hits_that_are_too_many_to_tell_are_still_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "FIRST", 1 << 10)
    monkeypatch.setattr(searching, "MOST", 1000)
    names = foreign(tmp_path, b"x\n" * 50_000)
    parts = go(Engine(), "search", names, queries=[{"text": "x"}], down=True, at=[0])[1:]
    assert sum(facts["count"] for facts, _ in parts) == 50_000
    assert sum(len(body) // 8 for _, body in parts) <= 1000
    assert not parts[-1][0]["told"]


def test_a_log_without_an_index_is_counted_step_by_step_and_usable_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "CHECKPOINT", 1 << 12)
    names = foreign(tmp_path, b"".join(b"line %d\n" % n for n in range(20_000)))
    engine = Engine()
    [(facts, _)] = go(engine, "places", names, offsets=[0, 8, 200_000])
    assert facts["lines"] == [None] * 3
    monkeypatch.setattr("trainwatch_launcher.reader.engine.TELL_EVERY", 0)
    steps = [facts for facts, _ in go(engine, "count", names)]
    assert len(steps) > 20
    assert steps[-1] == {"lines": 20_000}
    awk = subprocess.run(["awk", "/^line 15000$/ { print NR - 1 }", names[0].path], stdout=subprocess.PIPE, check=True)
    [(facts, _)] = go(engine, "places", names, numbers=[15_000])
    offset = facts["offsets"][0]
    [(facts, _)] = go(engine, "places", names, offsets=[offset])
    assert facts["lines"] == [int(awk.stdout)]


def test_an_index_of_which_little_is_kept_in_memory_tells_the_same_times(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_RECORDS", 8)
    logs = [[(second + half, b"%d\n" % second) for second in range(100)] for half in (0, 0.5)]
    _, names, lines = run_with(tmp_path, logs)
    entries = all_pages(Engine(), names, False, 13)
    assert [(entry.time, entry.log) for entry in entries] == sorted(line[:2] for line in lines)


def test_an_answer_ends_early_when_nobody_wants_it(tmp_path):
    names = foreign(tmp_path, b"x\n" * 3_000_000)
    answer = Engine().ask("search", names, {"queries": [{"text": "y"}], "down": True}, lambda: True)
    assert [facts for facts, _ in answer] == [{"ends": [6_000_000], "total": 6_000_000}]


@pytest.mark.parametrize(("operation", "asked"), [
    ("page", {}), ("page", {"down": True, "count": "x"}), ("search", {"queries": [{}]}), ("nothing", {}),
    ("cuts", {"log": 7, "offset": 0}), ("page", {"down": True, "count": 1, "queries": [{"text": "(", "regex": True}]}),
])  # fmt: skip
def test_what_is_not_understood_is_said(tmp_path, operation, asked):
    with pytest.raises(EngineError):
        go(Engine(), operation, foreign(tmp_path, b"x\n"), **asked)
