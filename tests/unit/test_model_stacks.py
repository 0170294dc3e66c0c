"""Stacks of many ranks folded: who is together, who differs, whatever the order in which they come."""
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from trainwatch.model import stacks
from trainwatch.model.stacks import fold, rounds
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.rundir.stacks import Dump, Frame, Process, Tasks, Thread

TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
MODULE = Frame("<module>", "/job/train.py", 9)
SYNC = [Frame("wait", f"{TORCH}/x.py", 7), Frame("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", 2501),
        Frame("sync", "/job/comm.py", 80), MODULE]
LOAD = [Frame("__getitem__", "/job/data_loader.py", 41), MODULE]
WORKER = [Frame("select", "/usr/lib/python3.11/selectors.py", 415), Frame("get", "/usr/lib/python3.11/queues.py", 113),
          Frame("_worker_loop", f"{TORCH}/utils/data/_utils/worker.py", 275), MODULE]
AGENT = [Frame("sleep", f"{TORCH}/distributed/elastic/agent/server/api.py", 849)]


def process(frames, pid=1, command="python train.py"):
    made = Process(pid, "S", command)
    if frames:
        made.threads.append(Thread(pid, "MainThread", "idle"))
        made.threads[0].frames = list(frames)
    made.tasks.append(Tasks(1, "S", "do_wait", "wait4", command.split()[0]))
    return made


def dump(*stacks_of, time=NOW):
    made = Dump(time, 0, "gpu-01")
    made.processes = [one if isinstance(one, Process) else process(one, pid) for pid, one in enumerate(stacks_of, 10)]
    return made


def folded(*per_rank):
    return fold({AttemptKey(rank): one for rank, one in enumerate(per_rank)}, {})


def said(groups):
    return [(group.who, group.where, group.odd) for group in groups]


def test_sixty_three_ranks_wait_and_one_is_the_odd_one():
    ranks = [dump(SYNC) for _ in range(64)]
    ranks[12] = dump(LOAD)
    groups = folded(*ranks)
    assert said(groups) == [("63 ranks", "in all_reduce at comm.py:80", False),
                            ("rank 12", "in data_loader.py:41 (__getitem__)", True)]
    assert groups[0].ranks == "0-11, 13-63"
    text = "\n".join(stacks.as_lines(groups, full=True))
    assert "63 ranks in all_reduce at comm.py:80   [0-11, 13-63]" in text
    assert "    __getitem__ (/job/data_loader.py:41)" in text


def test_what_a_library_does_below_differs_from_moment_to_moment():
    other = [Frame("poll", f"{TORCH}/y.py", 1), *SYNC[1:]]
    deeper = [*SYNC[:1], Frame("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", 2507), *SYNC[2:]]
    assert len(folded(dump(SYNC), dump(other), dump(deeper))) == 1
    elsewhere = [*SYNC[:2], Frame("sync", "/job/comm.py", 81), MODULE]
    assert len(folded(dump(SYNC), dump(elsewhere))) == 2


def test_what_is_wrapped_around_a_function_is_not_what_was_called():
    inside = Frame("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", 3252)
    around = Frame("_exception_logger.<locals>.wrapper", f"{TORCH}/distributed/c10d_logger.py", 83)
    (group,) = folded(dump([inside, around, *SYNC[2:]]))
    assert group.where == "in all_reduce at comm.py:80"
    (group,) = folded(dump([Frame("main.<locals>.step", "/job/a.py", 3), MODULE]))
    assert group.where == "in a.py:3 (step)"


def test_helpers_are_told_apart_and_never_odd():
    tracker = process(AGENT, 90)
    ranks = [dump(SYNC, SYNC, WORKER, tracker, process([], 91, "bash train.sh")) for _ in range(3)]
    ranks.append(dump(SYNC, LOAD, WORKER, process(LOAD + WORKER[2:], 92), process([], 93, "sleep 9")))
    groups = folded(*ranks)
    assert [group.role for group in groups] == [
        stacks.TRAINER, stacks.TRAINER, stacks.LOADER, stacks.LOADER, stacks.STARTER, stacks.PROGRAM, stacks.PROGRAM]
    assert [group.who for group in groups if group.odd] == ["rank 3"]
    assert groups[1].where == "in data_loader.py:41 (__getitem__)"


def test_what_a_rank_has_besides_is_not_odd():
    """Rank 0 writes the logs too, from a process of its own; all of it waits where the others do."""
    writer = process([Frame("run", "/job/writer.py", 5)], 99, "python writer.py")
    groups = folded(dump(SYNC, writer), *[dump(SYNC) for _ in range(5)])
    assert not any(group.odd for group in groups)


def test_of_two_and_without_a_majority_nobody_is_odd():
    assert not any(group.odd for group in folded(dump(SYNC), dump(LOAD)))
    assert not any(group.odd for group in folded(dump(SYNC), dump(LOAD), dump(SYNC), dump(LOAD)))


def test_where_only_the_kernel_tells_the_program_and_its_wait_are_said():
    forbidden = process([])
    forbidden.tried.append("py-spy is not permitted")
    groups = folded(dump(forbidden), dump(forbidden), dump(process([], 1, "bash -c x")))
    assert said(groups) == [("2 ranks", "python train.py in wait4 (do_wait)", False),
                            ("rank 2", "bash in wait4 (do_wait)", False)]


def test_notes_name_the_ranks():
    ranks = {AttemptKey(rank): dump(SYNC) for rank in range(4)}
    for rank in (0, 1, 3):
        ranks[AttemptKey(rank)].note = "py-spy is not permitted"
    assert stacks.notes(ranks, {}) == ("ranks 0-1, 3: py-spy is not permitted",)


def test_what_was_taken_together_is_a_round_on_one_clock():
    taken = {AttemptKey(0): [dump(SYNC, time=NOW), dump(LOAD, time=NOW - 500)],
             AttemptKey(1): [dump(SYNC, time=NOW + 90.0)], AttemptKey(2): [dump(LOAD, time=NOW - 510)]}
    found = rounds(taken, {AttemptKey(1): -100.0})
    assert [sorted(key.rank for key in one.dumps) for one in found] == [[0, 1], [0, 2]]
    assert found[0].time == NOW - 10
    again = rounds({AttemptKey(0): [dump(SYNC, time=NOW), dump(LOAD, time=NOW - 5)]}, {})
    assert [one.time for one in again] == [NOW]
    assert rounds({}, {}) == ()


frames = st.builds(
    Frame, st.sampled_from(["f", "g", "C.f", "<module>", "_worker_loop", ""]),
    st.sampled_from(["/job/a.py", "/job/b.py", f"{TORCH}/z.py", f"{TORCH}/utils/data/_utils/worker.py", "<frozen>"]),
    st.integers(0, 3),
)  # fmt: skip
commands = st.sampled_from(["python a.py", "sh", "x"])
processes = st.builds(process, st.lists(frames, max_size=4), st.integers(1, 9), commands)
ranks = st.dictionaries(st.builds(AttemptKey, st.integers(0, 9)), st.lists(processes, max_size=3), max_size=8)


@given(ranks.map(lambda made: {key: dump(*given) for key, given in made.items()}), st.randoms())
def test_every_process_is_in_one_group_and_the_order_of_ranks_does_not_matter(dumps, random):
    groups = fold(dumps, {})
    members = [id(member.process) for group in groups for member in group.members]
    assert sorted(members) == sorted(id(one) for dump in dumps.values() for one in dump.processes)
    order = list(dumps)
    random.shuffle(order)
    assert said(fold({key: dumps[key] for key in order}, {})) == said(groups)
    everyone = {key for group in groups if group.role == stacks.TRAINER and group.frames for key in group.keys}
    odd = {key for group in groups if group.odd for key in group.keys}
    assert 2 * len(odd) < max(1, len(everyone)) or not odd
