"""Frames: cut anywhere, behind whatever a login shell prints, and never more than they may be."""
from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch_launcher.agent import frames

HEADERS = st.dictionaries(st.text(max_size=8), st.none() | st.integers() | st.text(max_size=20), max_size=4)
FRAMES = st.lists(st.tuples(HEADERS, st.binary(max_size=200)), max_size=6)


def pieces(data, cuts):
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@given(FRAMES, st.lists(st.integers(0, 2000), max_size=20), st.binary(max_size=300))
def test_frames_come_out_as_they_went_in_wherever_they_were_cut(sent, cuts, garbage):
    if frames.PREAMBLE in garbage + frames.PREAMBLE[:-1]:
        garbage = b""
    decoder = frames.Decoder(preamble=True)
    data = garbage + frames.PREAMBLE + b"".join(frames.encode(header, body) for header, body in sent)
    assert [frame for piece in pieces(data, cuts) for frame in decoder.feed(piece)] == sent
    assert decoder.garbage == garbage
    assert decoder.unread == b""


@given(FRAMES.filter(bool), st.data())
def test_output_that_ends_anywhere_gives_the_whole_frames_before(sent, data):
    whole = [frames.encode(header, body) for header, body in sent]
    stream = b"".join(whole)
    end = data.draw(st.integers(0, len(stream)))
    complete = sum(len(b"".join(whole[: at + 1])) <= end for at in range(len(whole)))
    assert frames.Decoder().feed(stream[:end]) == sent[:complete]


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=5))
def test_any_bytes_are_frames_or_one_clear_error(data, cuts):
    decoder = frames.Decoder()
    try:
        for piece in pieces(data, cuts):
            decoder.feed(piece)
    except frames.FrameError:
        pass


def test_a_host_that_prints_without_end_is_not_listened_to_for_ever():
    decoder = frames.Decoder(preamble=True)
    decoder.feed(b"Welcome!\n" * 1000)
    with pytest.raises(frames.FrameError, match="start-up files"):
        decoder.feed(b"Welcome!\n" * 10_000)


@pytest.mark.parametrize("bad", [
    frames.LENGTHS.pack(1 << 30, 0), frames.LENGTHS.pack(2, 1 << 30), frames.LENGTHS.pack(4, 0) + b"nope",
    frames.LENGTHS.pack(2, 0) + b"[]", b"Connection to gpu-01 closed.\r\n",
])  # fmt: skip
def test_what_is_no_frame_is_an_error_and_not_a_wait(bad):
    with pytest.raises(frames.FrameError, match="damaged"):
        frames.Decoder().feed(bad)
