"""The newest output is kept whatever sizes it comes in, in few pieces."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch_launcher.recent import KEPT, PIECE, Recent


@given(st.lists(st.tuples(st.sampled_from([1, 80, PIECE - 1, PIECE, 8192, KEPT, KEPT + 1, 128 << 10]),
                          st.integers(1, 40)), max_size=12))
def test_the_last_bytes_are_those_of_the_stream(runs):
    recent, stream = Recent(), b""
    for number, (size, times) in enumerate(runs):
        for at in range(times):
            data = bytes([(number + at) % 256]) * size
            recent.add(data)
            stream = (stream + data)[-4 * KEPT:]
    assert recent.last() == stream[-KEPT:]
    assert recent.last(100) == stream[-100:]


@pytest.mark.parametrize("size", [1, 80, PIECE - 1, PIECE, 128 << 10])
def test_what_is_kept_is_bounded(size):
    recent = Recent()
    for _ in range(4 * KEPT // size + 4):
        recent.add(b"x" * size)
    assert sum(map(len, recent._chunks)) < KEPT + max(size, 2 * PIECE)
    assert len(recent._chunks) <= KEPT // PIECE + 2
