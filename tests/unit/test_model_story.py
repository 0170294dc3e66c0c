"""A failure as it is told: parts, order, folds; and as a ticket."""
from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from builders import NOW, RunBuilder, at, crashed_run
from trainwatch.model.failure import first_failure
from trainwatch.model.state import EMPTY, apply
from trainwatch.model.story import OTHER, ROOT, VICTIM, Fold, Story, delay_words, fold_words, tell
from trainwatch.model.ticket import ticket
from trainwatch_launcher.diagnosis import table
from trainwatch_launcher.diagnosis.answer import Diagnosis
from trainwatch_launcher.reader.changes import AttemptKey
from trainwatch_launcher.reader.directory import Reader


def story_of(run: RunBuilder) -> Story:
    state = apply(EMPTY, Reader(run.directory).poll())
    failure = first_failure(state, NOW)
    assert failure is not None
    return tell(state, NOW, failure)


def said(kind: str, summary: str, **facts: object) -> dict:
    row = table.kind(kind)
    role = row.role == table.COLLATERAL
    return Diagnosis(kind, row.family, summary, confidence=0.9, collateral=role, hint=row.hint, **facts).as_json()


def starved(directory) -> RunBuilder:
    """Rank 2 runs out of memory; the others lose it later, and their clocks are wrong."""
    run = RunBuilder(directory, world_size=4)
    for rank in range(4):
        run.rank(rank, clock_offset=-500.0 if rank == 0 else 0.0).start(NOW - 200).phase("Train", NOW - 100)
    oom = said("cuda_oom", "OutOfMemoryError: no more", frame="model.py:231 in forward", line=7, offset=90)
    at(run, 2).fail(1, NOW - 60, diagnosis=oom)
    for rank, after in ((0, 512.0), (1, 12.0), (3, 40.0)):
        lost = said("nccl_timeout", "watchdog: collective timed out")
        at(run, rank).fail(134, NOW - 60 + after, signal=6, diagnosis=lost)
    return run


def test_it_begins_with_the_cause_and_goes_on_by_everybodys_time_on_one_clock(tmp_path):
    story = story_of(starved(tmp_path / "run"))
    assert (story.key, story.kind, story.frame, story.line) == (AttemptKey(2), "cuda_oom", "model.py:231 in forward", 7)
    assert (story.exit_text, story.phase, story.sure) == ("1", "Train", "high (90%)")
    assert [(one.label, one.part) for one in story.order] == [("2", ROOT), ("0", VICTIM), ("1", VICTIM), ("3", VICTIM)]
    assert [fold_words(fold) for fold in story.folds] == ["3 ranks: nccl timeout, 12s to 40s later"]
    assert story.folds[0].ranks == "0-1, 3"


def test_of_local_ranks_the_one_where_it_began_stands_for_its_container(tmp_path):
    run = starved(tmp_path / "run")
    run.rank(4).start(NOW - 200)
    dead = said("python_error", "KeyError: 'x'")
    run.local(4, 1).start(NOW - 190).phase("Train", NOW - 100).fail(3, NOW - 90, hold=None, diagnosis=dead)
    at(run, 4).fail(1, NOW - 80)
    story = story_of(run)
    assert (story.label, story.order[0].label, story.order[0].part) == ("4.1", "4.1", ROOT)
    assert [one.label for one in story.order].count("4") == 0


def test_a_rank_that_failed_of_something_else_is_said_to_have_done_so(tmp_path):
    run = starved(tmp_path / "run")
    at(run, 3).fail(1, NOW - 50, diagnosis=said("disk_full", "No space left on device"))
    story = story_of(run)
    assert (OTHER, "disk_full") in [(fold.part, fold.kind) for fold in story.folds]
    assert "disk_full: No space left" in story.runner_up


def test_what_all_ranks_have_is_nobodys_and_told_of_all(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=3)
    for rank in range(3):
        run.rank(rank).start(NOW - 200).fail(1, NOW - 60 + rank, diagnosis=said("dependency", "no module named x"))
    story = story_of(run)
    assert (story.who, story.ended) == ("the whole job", "exit 1")
    assert [fold_words(fold) for fold in story.folds] == ["3 ranks: the same fault, up to 2s later"]


def test_a_rank_that_only_went_silent_has_no_exit_code(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=2)
    run.rank(0, time=NOW - 500).start(NOW - 900)
    run.rank(1).start()
    story = story_of(run)
    assert (story.who, story.ended, story.time) == ("rank 0 on gpu-00", "lost", NOW - 500)


def test_when_something_followed_is_said_in_words():
    assert delay_words(12.0, 12.2) == "12s later"
    assert delay_words(0.2, 0.9) == "within a second"
    assert delay_words(0.0, 75.0) == "up to 1m15s later"
    assert delay_words(-30.0, -20.0) == "30s before"
    assert fold_words(Fold(OTHER, "unknown", 1, "3", 5.0, 5.0)) == "1 rank: cause unknown of its own, 5s later"


def test_a_ticket_has_all_that_a_colleague_needs(tmp_path):
    story = story_of(starved(tmp_path / "run"))
    page = ticket(story, "/shared/run", "/shared/run/rank-2/output.log:7", ["step 1", "OutOfMemoryError: no more"], 1)
    assert page.startswith("## rank 2 on gpu-02: cuda oom, exit 1\n")
    assert "**What:** `OutOfMemoryError: no more`" in page
    assert "`/shared/run/rank-2/output.log:7` at `model.py:231 in forward`" in page
    assert "```text\n  step 1\n> OutOfMemoryError: no more\n```" in page
    assert "- 3 ranks: nccl timeout, 12s to 40s later (0-1, 3)" in page


def test_a_ticket_can_be_made_without_a_log(tmp_path):
    run = crashed_run(tmp_path / "run")
    assert "## rank 2 on gpu-02" in ticket(story_of(run), "/shared/run", "output.log", [])


HOSTILE = st.text(st.sampled_from("`*<>[]()!|#\\~&_a\x1b\x07\n\r\u202e- "), max_size=40)


@given(HOSTILE, st.lists(HOSTILE, max_size=5))
def test_nothing_in_a_run_ends_the_code_that_it_is_quoted_in(words, log):
    story = Story(
        run_id=words, key=AttemptKey(0), label="0", host=words, whole=False, kind="python_error", summary=words,
        frame=words, why=words, hint=words, evidence=(words,), runner_up=words, confidence=0.9, clear=True, line=1,
        offset=0, time=NOW, exit_text="1", phase=words, step=1, hold_left=None, inner_rank=None, order=(), folds=(),
        ranks=1,
    )  # fmt: skip
    page = ticket(story, words, words, log, 0 if log else None)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", page)
    tokens = MarkdownIt("commonmark").parse(page)
    assert [token.type for token in tokens if token.level == 0 and token.nesting >= 0] == [
        "heading_open", "bullet_list_open", "fence",
    ]  # fmt: skip
    inside = {child.type for token in tokens for child in token.children or ()}
    assert inside <= {"text", "text_special", "code_inline", "strong_open", "strong_close"}


def test_what_the_gpus_cost_is_told_where_it_is_known(tmp_path):
    run = starved(tmp_path / "run")
    assert story_of(run).cost == ""
    at(run, 1).set(gpu_seconds=7200.0, gpu_seconds_idle=3600.0)
    story = story_of(run)
    assert story.cost.startswith("2.0 GPU-hours")
    assert "2.0 GPU-hours" in ticket(story, "/runs/one", "output.log:7", [])
