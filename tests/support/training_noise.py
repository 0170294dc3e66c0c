"""What else stands in training logs: lines with numbers, losses and steps in them that are no training step."""
from __future__ import annotations

import random
import string
from collections.abc import Iterator
from pathlib import Path

LINES = Path(__file__).resolve().parents[1] / "data" / "progress" / "noise.txt"
"""Templates: {d}, {n2}, {n} are whole numbers of up to one, two, four digits, {f} is a decimal, {h} hex, {w} words."""


def blocks(seed: int = 0) -> Iterator[bytes]:
    """Endless noise in pieces of whole lines, about 15 kB each, the same for the same seed."""
    chance = random.Random(seed)
    templates = LINES.read_bytes().decode().rstrip("\n").split("\n")
    while True:
        chance.shuffle(templates)
        yield "".join(filled(template, chance) + "\n" for template in templates).encode()


def filled(template: str, chance: random.Random) -> str:
    """A line with other numbers, sometimes with a platform's prefix or a rank's."""
    for hole, width in (("{n2}", 2), ("{n}", 4), ("{d}", 1)):
        while hole in template:
            template = template.replace(hole, str(chance.randrange(1, 10**width)), 1)
    while "{f}" in template:
        template = template.replace("{f}", f"{chance.random() * 1000:.2f}", 1)
    while "{h}" in template:
        template = template.replace("{h}", f"{chance.randrange(1 << 48):x}", 1)
    if "{w}" in template:
        words = ("".join(chance.choices(string.ascii_lowercase, k=chance.randrange(2, 9))) for _ in range(12))
        template = template.replace("{w}", " ".join(words))
    prefix = chance.choice(("", "", "", "[2025-11-28 12:00:00] [worker-0] ", "[rank3]: ", "3: "))
    return prefix + template
