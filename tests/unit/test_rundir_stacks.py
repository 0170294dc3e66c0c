"""stacks-N.txt: what is written is what is read, and no bytes of a program's names break either."""
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainwatch_launcher.reader import stacks as reader
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.stacks import MOST_BYTES, Dump, Frame, Process, Tasks, Thread, as_bytes, parse

anything = st.text(max_size=30)
counts = st.integers(0, 1 << 31)


@st.composite
def dumps(draw):
    dump = Dump(draw(st.floats(0, 4e9).map(lambda time: round(time, 3))), draw(counts), draw(anything))
    dump.why, dump.method, dump.note = draw(anything), draw(anything), draw(anything)
    dump.left_out = draw(counts)
    for _ in range(draw(st.integers(0, 3))):
        process = Process(draw(counts), draw(anything), draw(anything))
        process.parent, process.method, process.kernel = draw(counts), draw(anything), draw(anything)
        process.tried = draw(st.lists(anything, max_size=2))
        for _ in range(draw(st.integers(0, 2))):
            thread = Thread(draw(counts), draw(anything), draw(anything))
            count = draw(st.integers(0, 3))
            thread.frames = [Frame(draw(anything), draw(anything), draw(counts)) for _ in range(count)]
            process.threads.append(thread)
        process.tasks = [Tasks(draw(counts), *(draw(anything) for _ in range(4)))]
        dump.processes.append(process)
    return dump


@given(dumps())
def test_what_is_read_is_what_was_written_whatever_it_is_called(dump):
    data = as_bytes(dump)
    read = parse(data)
    assert as_bytes(read) == data
    assert abs(read.time - dump.time) < 0.01
    assert (read.rank, read.left_out) == (dump.rank, dump.left_out)
    assert [one.pid for one in read.processes] == [one.pid for one in dump.processes]
    for before, after in zip(dump.processes, read.processes, strict=True):
        assert [[frame.line for frame in thread.frames] for thread in after.threads] == [
            [frame.line for frame in thread.frames] for thread in before.threads]
        assert [tasks.count for tasks in after.tasks] == [tasks.count for tasks in before.tasks]
    assert all(char.isprintable() or char == "\n" for char in data.decode())


@given(st.binary(max_size=300), st.sampled_from([b"", b"trainwatch stacks, format 1\n"]))
def test_nothing_that_lies_there_breaks_the_reader(data, head):
    assert (parse(head + data) is not None) == bool(head)
    parse(head + b"process 1 S x\n  thread 1\n    f (\n    g (x:)\n  tasks\n  parent x\n" + data)


def test_it_reads_as_people_expect():
    dump = Dump(1_764_500_000.5, 3, "gpu-05")
    process = Process(4711, "S", "python train.py")
    process.method = "py-spy"
    thread = Thread(4711, "MainThread", "idle")
    thread.frames = [Frame("all_reduce", "/opt/lib (x)/comm.py", 80), Frame("<module>", "train.py", 3)]
    process.threads.append(thread)
    process.tasks = [Tasks(4, "S", "futex_do_wait", "", "pt autograd")]
    dump.processes.append(process)
    lines = as_bytes(dump).decode().splitlines()
    assert lines[0] == "trainwatch stacks, format 1"
    assert lines[-5:] == [
        "  method     py-spy", "  thread 4711 idle MainThread", "    all_reduce (/opt/lib (x)/comm.py:80)",
        "    <module> (train.py:3)", "  tasks 4 S futex_do_wait - pt autograd"]  # fmt: skip
    (read,) = parse(as_bytes(dump)).processes
    assert read.threads[0].frames[0].file == "/opt/lib (x)/comm.py"
    assert read.tasks[0].name == "pt autograd"


def test_a_newer_format_and_other_files_are_none():
    assert parse(b"trainwatch stacks, format 2\nrank 1\n") is None
    assert parse(b"") is None
    assert parse(b"Traceback\n") is None


def test_a_file_has_a_bound_and_says_so():
    dump = Dump(1.0)
    process = Process(1, "S", "x")
    process.threads.append(Thread(1, "x"))
    process.threads[0].frames = [Frame("f" * 400, "g" * 400, 1)] * 8000
    dump.processes.append(process)
    data = as_bytes(dump)
    assert MOST_BYTES - 2000 < len(data) <= MOST_BYTES
    assert data.endswith(b"cut off here: more than 4 MiB\n")
    assert len(parse(data).processes[0].threads[0].frames) > 5000


def test_the_newest_files_are_read_and_travel(tmp_path):
    for number in range(1, 12):
        (tmp_path / paths.stacks_name(number)).write_bytes(as_bytes(Dump(float(number))))
    (tmp_path / "stacks-x.txt").write_bytes(b"no")
    (tmp_path / "stacks-99.txt.1.tmp").write_bytes(b"no")
    (tmp_path / "stacks-50.txt").write_bytes(b"no stacks")
    found = reader.newest(str(tmp_path), 3)
    assert [number for number, _ in found] == [50, 11, 10]
    assert reader.unpacked(reader.packed(found)) == found
    assert [(one.number, one.time) for one in reader.dumps(found)] == [(11, 11.0), (10, 10.0)]
    assert reader.newest(str(tmp_path / "gone"), 3) == []
