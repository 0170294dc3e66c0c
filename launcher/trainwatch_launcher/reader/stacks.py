"""Reads the stacks that a launcher has taken: the newest files of an attempt, in bounded memory."""
from __future__ import annotations

import os
import zlib

from trainwatch_launcher.reader import log
from trainwatch_launcher.rundir import paths
from trainwatch_launcher.rundir.stacks import MOST_BYTES, Dump, Frame, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

    Files = list[tuple[int, bytes]]

MOST = 16
"""More files of one attempt are never read at once."""
MOST_ALL = 16 << 20
"""Nor more bytes, all files together; the newest is always among them."""


def newest(directory: str, most: int) -> Files:
    """The numbers and contents of an attempt's newest files, at most so many, the newest first. Raises OSError."""
    try:
        numbers = [paths.stacks_number(name) for name in os.listdir(directory)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    found: Files = []
    size = 0
    for number in sorted((one for one in numbers if one is not None), reverse=True)[: max(0, min(most, MOST))]:
        data = log.read(os.path.join(directory, paths.stacks_name(number)), 0, MOST_BYTES)
        size += len(data)
        if found and size > MOST_ALL:
            break
        if data:
            found.append((number, data))
    return found


def packed(found: Files) -> bytes:
    """Files for a way: compressed, they are much alike."""
    packer = zlib.compressobj(6)
    parts = []
    for number, data in found:
        parts += [packer.compress(b"%d %d\n" % (number, len(data))), packer.compress(data)]
    return b"".join(parts) + packer.flush()


def unpacked(data: bytes) -> Files:
    """The files in what `packed` made. Raises ValueError when it is something else."""
    try:
        text = zlib.decompressobj().decompress(data, MOST_ALL + MOST_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    found: Files = []
    while text:
        head, _, text = text.partition(b"\n")
        number, _, size = head.partition(b" ")
        found.append((int(number), text[: int(size)]))
        text = text[int(size):]
    return found


def dumps(found: Iterable[tuple[int, bytes]], shared: dict[str, Frame] | None = None) -> list[Dump]:
    """Files as what they say; those that are none are left out. What is in `shared` is used again, and what is new is
    put there: of hundreds of ranks most frames are the same."""
    made = []
    for number, data in found:
        dump = parse(data, shared)
        if dump is not None:
            dump.number = number
            made.append(dump)
    return made
