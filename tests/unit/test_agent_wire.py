"""Changes cross the wire as they are, and after a reconnect only what is new does."""
from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, RunBuilder, at, crashed_run
from trainwatch_launcher.agent import wire
from trainwatch_launcher.agent.resume import Have, Resumption
from trainwatch_launcher.reader.changes import AttemptKey, EventsAppended, StatusChanged, Unreadable
from trainwatch_launcher.reader.directory import Reader
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.records import Status, event

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def sent(changes):
    told = wire.Told()
    return [wire.decode_change(json.loads(text), told) for portion in wire.packets(changes, told) for text in portion]


def test_all_changes_of_a_run_arrive_as_they_were(tmp_path):
    run = crashed_run(tmp_path / "run")
    run.local(0, 1).start()
    at(run, 2).raw_event(b"no event\n").set(world_size=None).event("odd", NOW, extra=None, argv=["\udcff"])
    (run.directory / paths.rank_name(3) / paths.attempt_name(1) / paths.STATUS).write_bytes(b"{")
    changes = Reader(str(run.directory)).poll()
    assert any(isinstance(change, Unreadable) for change in changes)
    assert sent(changes) == changes


@given(JSON)
def test_what_is_no_change_is_left_out(value):
    told = wire.Told()
    wire.decode_change(value, told)
    assert wire.decode_change(["status", [0], value], told) is None or isinstance(value, dict)
    assert wire.decode_change(["a-new-kind", value], told) is None
    assert wire.decode_change(["changed", [1], {}, []], told) is None
    told.statuses[AttemptKey(2)] = Status(time=NOW)
    wire.decode_change(["changed", [2], value, value], told)
    wire.decode_change(["changed", [2], {"time": value}, ["time"]], told)
    assert isinstance(told.statuses[AttemptKey(2)].time, (int, float))


FACTS = st.fixed_dictionaries(
    {"time": st.floats(0, 1e9)},
    optional={"phase": st.none() | st.sampled_from(["Load", "Train", ""]), "step": st.none() | st.integers(0, 9),
              "warning": st.sampled_from(["", "full"]), "gpus": st.lists(st.just({"util": 3})), "new": JSON},
)  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 2), FACTS), max_size=12))
def test_statuses_that_go_as_differences_arrive_whole(said):
    changes = [StatusChanged(AttemptKey(rank), Status.from_json(json.loads(json.dumps(facts)))) for rank, facts in said]
    arrived, meant = ([(one.key, wire.fingerprint(one.status)) for one in each] for each in (sent(changes), changes))
    assert arrived == meant


def test_what_is_as_it_was_does_not_go_over_the_wire_again():
    told, status = wire.Told(), Status(time=NOW, phase="Train", last_line="x" * 200, step=1)
    first, = wire.packets([StatusChanged(AttemptKey(0), status)], told)
    second, = wire.packets([StatusChanged(AttemptKey(0), status.replace(time=NOW + 1, step=2, phase=None))], told)
    assert len(first[0]) > 200
    assert json.loads(second[0]) == ["changed", [0, 1, -1, 0], {"time": NOW + 1, "step": 2}, ["phase"]]


def test_many_events_come_in_several_portions_and_in_order():
    events = tuple(event("warning", NOW + at, message="x" * 1000) for at in range(2000))
    portions = list(wire.packets([EventsAppended(AttemptKey(0), events)], wire.Told()))
    assert len(portions) > 2
    assert max(sum(map(len, portion)) for portion in portions) < wire.CHANGES_SIZE + 2000
    parts = [wire.decode_change(json.loads(text), wire.Told()) for portion in portions for text in portion]
    assert tuple(one for part in parts for one in part.events) == events


class Viewer:
    """Takes what readers tell, through `Resumption` and the wire, as a viewer does that loses its link."""

    def __init__(self, run):
        self.run = run
        self.have = Have()
        self.seen = []

    def connect(self):
        reader = Reader(str(self.run.directory))
        resumption = Resumption(Have.from_json(json.loads(json.dumps(self.have.to_json()))))
        new = sent([*resumption.new(reader.poll()), *resumption.finish()])
        self.have.note(new)
        self.seen += new
        return new


def test_a_viewer_that_has_everything_is_told_nothing(tmp_path):
    viewer = Viewer(crashed_run(tmp_path / "run"))
    assert viewer.connect() != []
    assert viewer.connect() == []


def test_after_a_reconnect_only_what_is_new_comes(tmp_path):
    run = crashed_run(tmp_path / "run")
    viewer = Viewer(run)
    viewer.connect()
    at(run, 1).event("warning", NOW, kind="a")
    at(run, 2).set(phase="Eval")
    run.rank(2, attempt=2).start()
    new = viewer.connect()
    assert [change.key for change in new if isinstance(change, EventsAppended)] == [(1, 1, -1, 0), (2, 2, -1, 0)]
    assert [one.event for change in new if isinstance(change, EventsAppended) for one in change.events] == [
        "warning", "start", "phase"]
    assert [change.status.phase for change in new if isinstance(change, StatusChanged)] == ["Eval", None]
    assert viewer.connect() == []


@given(st.lists(st.sampled_from(["event", "status", "problem", "fixed", "connect"]), max_size=12))
def test_however_often_the_link_is_lost_the_end_is_the_same(tmp_path_factory, steps):
    run = RunBuilder(tmp_path_factory.mktemp("run") / "run")
    rank = run.rank(0).start()
    viewer = Viewer(run)
    for number, step in enumerate([*steps, "connect"]):
        if step == "event":
            rank.event("warning", NOW + number, number=number)
        elif step == "status":
            rank.set(output_bytes=number)
        elif step == "problem":
            (rank.directory / paths.STATUS).write_bytes(b"{%d" % number)
        elif step == "fixed":
            rank.set()
        else:
            viewer.connect()
    once = [one for change in viewer.seen if isinstance(change, EventsAppended) for one in change.events]
    fresh = Viewer(run)
    fresh.connect()
    assert once == [one for change in fresh.seen if isinstance(change, EventsAppended) for one in change.events]
    assert viewer.have.to_json()["problems"] == fresh.have.to_json()["problems"]
    if not fresh.have.problems:
        assert viewer.have.attempts[AttemptKey(0)].status == fresh.have.attempts[AttemptKey(0)].status


def test_a_file_that_was_begun_again_does_not_silence_its_events_for_ever(tmp_path):
    run = RunBuilder(tmp_path / "run")
    rank = run.rank(0).start()
    for number in range(5):
        rank.event("warning", NOW, number=number)
    viewer = Viewer(run)
    viewer.connect()
    (rank.directory / paths.EVENTS).write_bytes(b"")
    rank.event("warning", NOW, number=9)
    reader = Reader(str(run.directory))
    resumption = Resumption(viewer.have)
    resumption.new(reader.poll())
    resumption.finish()
    rank.event("warning", NOW, number=10)
    assert [one.extra["number"] for change in reader.poll() for one in change.events] == [10]
