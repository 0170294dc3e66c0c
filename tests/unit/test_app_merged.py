"""Several ranks' logs as one on screen: their order, who is shown, what is folded; nothing is lost meanwhile."""
from __future__ import annotations

from builders import NOW, RunBuilder, at
from support.logs import SIZE, enter, filled, marked, shown, view
from support.screens import app_on, notes, press, screen_text, settle, wait_for
from trainwatch.app import TrainwatchApp
from trainwatch_launcher.reader.engine import Engine


def run_of(directory, ranks=3, seconds=40):
    run = RunBuilder(directory, world_size=ranks)
    for rank in range(ranks):
        attempt = run.rank(rank).start()
        for second in range(seconds):
            attempt.output(b"second %d says %d\n" % (second, rank), NOW - 100 + second + rank / 8)
            attempt.output(b"all say %d\n" % second, NOW - 100 + second + 0.5 + rank / 8)
    return run


def order(ranks, seconds):
    found = []
    for second in seconds:
        found += [f"{rank} ▏ second {second} says {rank}" for rank in ranks]
        found += [f"{rank} ▏ all say {second}" for rank in ranks]
    return found


async def test_lines_of_all_ranks_come_in_the_order_of_time_and_go_on_coming(tmp_path):
    run = run_of(tmp_path / "run", seconds=12)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "M")
        await wait_for(pilot, lambda: filled(pilot)[-1:] == order(range(3), [11])[-1:])
        assert filled(pilot) == order(range(3), range(12))[-len(filled(pilot)):]
        for rank in (2, 0, 1):
            at(run, rank).output(b"news of %d\n" % rank, NOW - 50 + rank)
        await wait_for(pilot, lambda: filled(pilot)[-3:] == [f"{rank} ▏ news of {rank}" for rank in range(3)])
        await press(pilot, "g")
        await wait_for(pilot, lambda: filled(pilot)[:6] == order(range(3), [0]))
        at(run, 1).output(b"late\n", NOW - 40)
        await wait_for(pilot, lambda: "↓" in screen_text(pilot))
        seen = []
        while not view(pilot).following:
            await press(pilot, "j")
            await wait_for(pilot, lambda: len(filled(pilot)) == view(pilot).size.height or view(pilot).following)
            seen.append(shown(pilot)[0])
        assert seen == order(range(3), range(12))[1:len(seen) + 1]
        await wait_for(pilot, lambda: filled(pilot)[-1] == "1 ▏ late")


async def test_a_rank_that_is_muted_is_left_out_until_it_is_not(tmp_path):
    run_of(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "M", "m", "j", "enter", "escape")
        await wait_for(pilot, lambda: filled(pilot)[-2:] == ["0 ▏ all say 39", "2 ▏ all say 39"])
        assert "ranks 0, 2" in screen_text(pilot).splitlines()[0]
        assert "1 muted" in screen_text(pilot).splitlines()[0]
        await press(pilot, "m", "a", "escape")
        await wait_for(pilot, lambda: filled(pilot)[-2:] == ["1 ▏ all say 39", "2 ▏ all say 39"])


async def test_what_all_ranks_say_is_folded_into_one_line_on_a_key(tmp_path):
    run_of(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "M", "D")
        folded = ["2 ▏ second 39 says 2", "0 ▏ all say 39  ＝ 2 other ranks"]
        await wait_for(pilot, lambda: filled(pilot)[-2:] == folded)
        assert "1 ▏ all say 39" not in filled(pilot)
        await press(pilot, "D")
        await wait_for(pilot, lambda: filled(pilot)[-1] == "2 ▏ all say 39")


async def test_marked_ranks_are_merged_searched_and_filtered(tmp_path):
    run_of(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "m", "j", "m")
        assert screen_text(pilot).count("◆") == 2
        await press(pilot, "M")
        await wait_for(pilot, lambda: "ranks 0, 2" in screen_text(pilot).splitlines()[0])
        await enter(pilot, "slash", "second 12 ")
        await wait_for(pilot, lambda: marked(pilot) == "2 ▏ second 12 says 2")
        await press(pilot, "N")
        await wait_for(pilot, lambda: marked(pilot) == "0 ▏ second 12 says 0")
        await wait_for(pilot, lambda: "2 lines" in screen_text(pilot))
        await press(pilot, "escape")
        await enter(pilot, "ampersand", "say 7")
        await wait_for(pilot, lambda: filled(pilot) == ["0 ▏ all say 7", "2 ▏ all say 7"])


async def test_a_single_rank_has_nothing_to_be_merged_with(tmp_path):
    run_of(tmp_path / "run", ranks=1)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "M")
        assert "There is only one log." in notes(pilot)


LONG = b"head " + b"x" * 40_000 + b" tail"


async def test_a_very_long_line_says_how_much_more_there_is_and_is_copied_and_saved_whole(tmp_path, monkeypatch):
    copied = []
    monkeypatch.setattr(TrainwatchApp, "on_copy", lambda _, wish: copied.append(wish.text))
    run = run_of(tmp_path / "run")
    at(run, 1).output(LONG + b"\n", NOW)
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "M")
        await enter(pilot, "ampersand", "head")
        await press(pilot, "w")
        await wait_for(pilot, lambda: "more: ⏎ shows the line whole" in screen_text(pilot).replace("\n", ""))
        await press(pilot, "c")
        await wait_for(pilot, lambda: copied == [LONG.decode()])
        await enter(pilot, "ctrl+s", str(tmp_path / "out.log"))
        await wait_for(pilot, lambda: "Saved" in notes(pilot))
        assert (tmp_path / "out.log").read_bytes() == b"[1] " + LONG + b"\n"
        await press(pilot, "enter")
        await wait_for(pilot, lambda: "rank 1" in screen_text(pilot).splitlines()[0])
        await press(pilot, "w", "G")
        await wait_for(pilot, lambda: filled(pilot)[-1].endswith("x tail"))


async def test_what_fails_in_a_way_that_nobody_thought_of_is_said(tmp_path, monkeypatch):
    run_of(tmp_path / "run")
    async with app_on(tmp_path / "run").run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "M")
        await wait_for(pilot, lambda: filled(pilot)[-1:] == ["2 ▏ all say 39"])

        def fail(*_):
            raise RuntimeError("no such luck")

        monkeypatch.setattr(Engine, "ask", fail)
        await enter(pilot, "slash", "second 12 ")
        await wait_for(pilot, lambda: "RuntimeError: no such luck" in screen_text(pilot).splitlines()[-2])
        await press(pilot, "escape")
        await wait_for(pilot, lambda: "no such luck" in screen_text(pilot).splitlines()[0])
        monkeypatch.undo()
        await press(pilot, "G")
        await wait_for(pilot, lambda: "no such luck" not in screen_text(pilot).splitlines()[0])
