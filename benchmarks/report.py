"""How benchmarks say what they found: Markdown tables, the same on the screen and in RESULTS.md."""
from __future__ import annotations

from collections.abc import Sequence


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one table under its title."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(head) + " |")
    print("| " + " | ".join("---" for _ in head) + " |")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)
