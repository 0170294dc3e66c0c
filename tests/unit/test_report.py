"""The report: what a person finds in it, and that nothing of a run acts in it."""
from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from builders import NOW, RunBuilder, crashed_run
from trainwatch.cli import main
from trainwatch.report.drawing import MOST_POINTS, thinned

HOSTILE = '<script>alert(1)</script><img src=x onerror="x">&"\x1b[31m\x00\u202e'


def report(run, tmp_path, *options: str) -> str:
    path = tmp_path / "page.html"
    assert main(["report", str(run), "-o", str(path), *options]) == 0
    return path.read_text(encoding="utf-8")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_who_failed_first_stands_at_the_top_with_its_log(tmp_path):
    crashed_run(tmp_path / "run")
    page = report(tmp_path / "run", tmp_path)
    cause = page.split("Root cause")[1].split("</section>")[0]
    assert "rank 2 on gpu-02</b>: python error, exit 1" in cause
    assert "<pre>ValueError: loss is nan</pre>" in cause
    assert "<dt>confidence</dt>" in cause
    assert "<dt>what to do</dt>" in cause
    assert "End of the log of rank 2" in page


def test_a_crash_is_told_with_who_died_of_it(tmp_path):
    run = tmp_path / "run"
    assert main(["simulate", str(run), "--ranks=8", "--age=200", "--once", "--trouble=5:120:oom"]) == 0
    cause = report(run, tmp_path).split("Root cause")[1].split("</section>")[0]
    assert "rank 5 on gpu-00</b>: cuda oom, exit 1" in cause
    assert "<code>model.py:231 in forward</code>; line " in cause
    assert "<li>7 ranks: nccl timeout, 2" in cause
    assert "(0-4, 6-7)</li>" in cause


def test_phases_have_their_spread_and_their_cost(tmp_path):
    run = tmp_path / "run"
    assert main(["simulate", str(run), "--ranks=4", "--age=120", "--once"]) == 0
    page = report(run, tmp_path, "--gpu-price=2")
    row = re.search(r"<td>Load dataset</td>(.*?)</tr>", page).group(1)
    cells = re.findall(r"<td>(.*?)</td>", row)
    assert cells[0] == "4"
    assert float(cells[-2]) == pytest.approx(4 * 9 / 3600, abs=0.01), "GPU-hours"
    assert cells[-1] == "0 %"
    assert "GPU-hours" in page
    assert "at 2 an hour" in page
    assert "simulated" in page
    assert page.count("<polyline") >= 4 * 4


def test_phases_are_pale_where_gpus_were_idle_and_a_hold_is_not(tmp_path):
    run = RunBuilder(tmp_path / "run", world_size=1)
    one = run.rank(0).start(NOW - 200).phase("Load", NOW - 200).phase("Train", NOW - 100)
    for at in range(-190, 1, 10):
        one.metrics(NOW + at, gpus=[{"index": 0, "util": [90 if -100 < at <= -50 else 0, 100]}])
    one.fail(1, NOW - 50)
    page = report(tmp_path / "run", tmp_path)
    [pale] = re.findall(r'<path class="idle"[^>]* d="([^"]*)"', page)
    [(begin, wide)] = re.findall(r"M([\d.]+) 8h([\d.]+)", pale)
    assert float(begin) == pytest.approx(110, abs=1)
    assert float(wide) == pytest.approx(970 / 2, abs=6)
    assert "pale: GPUs idle" in page


def test_nothing_that_a_run_says_becomes_markup(tmp_path):
    run = RunBuilder(tmp_path / "run", run_id=HOSTILE, world_size=1)
    rank = run.rank(0, host=HOSTILE).start(argv=(HOSTILE,)).phase(HOSTILE, NOW - 100).phase("x" * 200_000, NOW - 90)
    rank.output(HOSTILE.encode() + b"\xff\n" * 3).fail(1, reason=HOSTILE)
    page = report(tmp_path / "run", tmp_path)
    tags = Tags()
    tags.feed(page)
    assert tags.seen.isdisjoint({"script", "img", "iframe", "link", "object", "a"})
    assert not any(name.startswith("on") or name in ("href", "src") for name in tags.attributes)
    assert "\x1b" not in page
    assert "\x00" not in page
    assert "\u202e" not in page
    assert "default-src 'none'" in page
    assert len(page) < 20_000, "nor as long as it likes"


def test_a_run_of_which_nothing_is_known_yet_has_a_page_too(tmp_path):
    RunBuilder(tmp_path / "run", world_size=4)
    assert "waiting" in report(tmp_path / "run", tmp_path)


def test_thousands_of_ranks_stay_below_five_megabytes(tmp_path):
    run = tmp_path / "run"
    assert main(["simulate", str(run), "--ranks=512", "--age=130", "--once", "--lines=0", "--trouble=77:90:oom"]) == 0
    assert len(report(run, tmp_path).encode()) < 5_000_000 * 512 / 4096


def test_a_page_that_cannot_be_written_is_said(tmp_path, capsys):
    crashed_run(tmp_path / "run")
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "none" / "page.html")]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_thinning_a_line_keeps_its_spikes():
    points = [(float(at), 1.0) for at in range(10_000)]
    points[4321] = (4321.0, 99.0)
    points[77] = (77.0, -5.0)
    kept = thinned(points)
    assert len(kept) <= MOST_POINTS + 2
    assert points[4321] in kept
    assert points[77] in kept
    assert kept == sorted(kept)
