"""What finding training steps in output costs: at heartbeats beside 10,000 lines a second, and over a whole log.

The noise is what else stands in training logs; not one sample may be found in it. BENCH_NOISE_MB says how much of it is
read (1024).
"""
from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from report import table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "launcher")]
from support.training_noise import blocks  # noqa: E402
from trainwatch_launcher.progress.latest import TAIL, Watcher  # noqa: E402
from trainwatch_launcher.progress.stream import LITERALS, Reader  # noqa: E402

NOISE = int(os.environ.get("BENCH_NOISE_MB", "1024")) << 20
LINES_A_SECOND = 10_000
HEARTBEAT = 5.0
"""Seconds between two looks of the launcher."""
PIECE = 1 << 20
UNIQUE = 128 << 20
PLAIN = b"gpu-17:2041:2318 [3] NCCL INFO Channel 07/32 : 3[3] -> 4[4] via P2P/CUMEM/read, queue depth 12 of 64\n"
MEGATRON = (
    " [2026-03-04 11:22:33.456789] iteration {:8d}/   48000 | consumed samples:       107520 | "
    "elapsed time per iteration (ms): 6412.7 | learning rate: 2.625000E-05 | global batch size:   512 | "
    "lm loss: 3.412345E+00 | loss scale: 1.0 | "
    "grad norm: 0.734 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
DICTIONARY = "\n{'loss': 2.5, 'learning_rate': 0.1, 'epoch': 0.5}\n"
BAR = "\r  1%|          | {}/1752 [00:57<1:22:40,  2.86s/it]"


def pieces(size: int, seed: int = 0) -> Iterator[bytes]:
    """So many bytes of noise, in pieces as they are read from a file; after 128 MiB they come again."""
    kept: list[bytes] = []
    pending = b""
    for block in blocks(seed):
        pending += block
        if len(pending) >= PIECE:
            kept.append(pending[:PIECE])
            pending = pending[PIECE:]
            yield kept[-1]
            if len(kept) >= min(size, UNIQUE) // PIECE:
                break
    yield from itertools.islice(itertools.cycle(kept), max(0, size // PIECE - len(kept)))


def at_heartbeats() -> None:
    """The share of a core that a look at every heartbeat takes."""
    noise = b"".join(pieces(8 << 20))
    steps = "".join(MEGATRON.format(step) for step in range(4000)).encode()
    bars = (DICTIONARY + "".join(BAR.format(step) for step in range(1752))).encode()
    rows = []
    for name, text in {
        "noise, made of near misses": noise,
        "ordinary output": PLAIN * 20_000,
        "a Megatron step in each line": steps,
        "a tqdm bar": bars * 4,
        "one endless line": b"x" * (2 << 20),
    }.items():
        watcher = Watcher()
        looks = max(1, len(text) // TAIL - 1)
        began = time.process_time()
        for look in range(looks):
            watcher.look(text[look * TAIL // 2 :][:TAIL])
        cost = (time.process_time() - began) / looks
        rows.append([name, f"{cost * 1000:.2f} ms", f"{cost / HEARTBEAT:.3%}", "1 %"])
    head = ["output", "one look", f"share of a core at one look in {HEARTBEAT:.0f} s", "bar"]
    table(f"Progress at heartbeats, whatever comes in between ({LINES_A_SECOND:,} lines a second and more)", head, rows)


def over_a_log() -> int:
    """Reading whole logs, as `trainwatch inspect` does, beside only searching them; returns false samples."""
    rows, false = [], 0
    sources: dict[str, Iterable[bytes]] = {
        "noise, made of near misses": pieces(NOISE),
        "ordinary output": itertools.repeat(PLAIN * (PIECE // len(PLAIN)), max(1, NOISE >> 22)),
    }
    for name, source in sources.items():
        reader, size, lines, found = Reader(), 0, 0, 0
        spent = search = 0.0
        for piece in source:
            began = time.process_time()
            found += len(reader.feed(piece))
            between = time.process_time()
            for literal in LITERALS:
                piece.count(literal)
            search += time.process_time() - between
            spent += between - began
            size += len(piece)
            lines += piece.count(b"\n")
        found += len(reader.finish())
        false += found
        rows.append([
            name, f"{size >> 20:,} MiB, {lines:,} lines", f"{found}", "0", f"{size / spent / 1e6:.0f} MB/s",
            f"{spent / lines * LINES_A_SECOND:.2%}", f"{spent / search:.1f}",
        ])  # fmt: skip
    head = [
        "log", "size", "false samples", "bar", "speed", f"share of a core to read {LINES_A_SECOND:,} lines a second",
        "beside searching for the literals alone",
    ]  # fmt: skip
    table("Progress over whole logs (trainwatch inspect)", head, rows)
    return false


if __name__ == "__main__":
    at_heartbeats()
    sys.exit(1 if over_a_log() else 0)
