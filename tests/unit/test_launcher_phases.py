"""Phases are found whatever stands around them, however the stream is cut, and never in the shell's own echo."""
from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch_launcher.phases import PhaseScanner, phase_in


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("=== [Phase] Load Data ===", "Load Data"),
        ("[2025-11-28 12:00:00] [worker-0] === [Phase] Launching torchrun ===", "Launching torchrun"),
        ("\x1b[1;32m=== [Phase] Go ===\x1b[0m", "Go"),
        ("=== \x1b[1m[Phase]\x1b[0m Bold ===", "Bold"),
        ("INFO:root:=== [Phase] Train ===", "Train"),
        ("步骤一 === [Phase] 加载数据 ===", "加载数据"),
        ('{"level": "info", "message": "=== [Phase] From JSON ==="}', "From JSON"),
        ("=== [Phase]   Many   spaces   ===", "Many   spaces"),
        ("=== [Phase] Epoch 3/10: a=b ===  trailing words", "Epoch 3/10: a=b"),
        ("===[Phase] Tight===", "Tight"),
    ],
)
def test_a_phase_line_is_recognised(line, name):
    assert phase_in(line.encode()) == name


@pytest.mark.parametrize(
    "line",
    [
        "+ echo '=== [Phase] X ==='",
        "++ echo '=== [Phase] X ==='",
        "+ echo === [Phase] X ===",
        "[2025-11-28 12:00:00] [worker-0] + echo === [Phase] X ===",
        "+(train.sh:12): echo '=== [Phase] X ==='",
        "+ printf '=== [Phase] %s ===\\n' X",
        'echo "=== [Phase] X ==="',
        "    print('=== [Phase] X ===')",
        '    print(f"=== [Phase] {name} ===")',
        "=== [Phase] ===",
        "=== [Phase] unfinished",
        "[Phase] no signs",
        "== [Phase] two ==",
    ],
)
def test_what_only_looks_like_one_is_not(line):
    assert phase_in(line.encode()) is None


def test_a_name_is_bounded_and_undecodable_bytes_do_not_matter():
    assert phase_in(b"=== [Phase] \xff\xfe ===") == "\ufffd\ufffd"
    assert len(phase_in(b"=== [Phase] " + b"x" * 900 + b" ===") or "") == 200


TEXT = (
    b"noise\r10%\r20%\n=== [Phase] A ===\nfoo\n" + b"z" * 5000 + b"=== [Phase] Far ===\n"
    b"[x] === [Phase] B ===\rmore\n+ echo '=== [Phase] no ==='\n[Phase] [Phase]\n=== [Phase] Last ==="
)


def phases(chunks: list[bytes]) -> list[tuple[int, str]]:
    scanner = PhaseScanner()
    found = [phase for chunk in chunks for phase in scanner.feed(chunk)]
    return found + scanner.finish()


def test_offsets_are_those_of_the_lines():
    starts = {"A": TEXT.index(b"=== [Phase] A"), "Far": TEXT.index(b"zzz"), "B": TEXT.index(b"[x]")}
    found = {name: offset for offset, name in phases([TEXT])}
    assert {name: found[name] for name in starts} == starts
    assert list(found) == ["A", "Far", "B", "Last"]


@given(st.lists(st.integers(0, len(TEXT)), max_size=40))
def test_any_split_gives_the_same_phases(cuts):
    edges = [0, *sorted(cuts), len(TEXT)]
    assert phases([TEXT[a:b] for a, b in itertools.pairwise(edges)]) == phases([TEXT])


PIECES = st.sampled_from([b"[Phase]", b"===", b" ", b"\n", b"\r", b"x", b"\x1b[1m", b"'"])


@given(st.lists(PIECES, max_size=60), st.integers(1, 9))
def test_any_text_gives_the_same_phases_byte_by_byte_and_whole(pieces, size):
    text = b"".join(pieces)
    assert phases([text[i : i + size] for i in range(0, len(text), size)]) == phases([text])


def test_one_hostile_line_of_ten_megabytes_takes_no_time_and_no_memory():
    scanner = PhaseScanner()
    for _ in range(160):
        scanner.feed(b"=== [Phase] " * 5461)
    scanner.feed(b"\n=== [Phase] After ===\n")
    assert len(scanner._tail) <= 2048
