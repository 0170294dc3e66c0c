"""What kinds of lines there are besides plain ones: errors, warnings; and what stands out in any line: numbers.

The expressions are looked for on screen and, to go from one error to the next, in the whole log by the engine.
"""

from __future__ import annotations

import re

ERROR = (
    r"Traceback \(most recent call last\)"
    r"|(?:^|[^A-Za-z0-9_.])(?:[A-Za-z0-9_.]{0,80}(?:Error|Exception)|ERROR|FATAL|CRITICAL|PANIC|[Ff]atal error)"
    r"(?:[: \t\]]|$)"
    r"|(?:^|[^A-Za-z0-9_.])(?:error|panic|fatal): |[Ss]egmentation fault|core dumped|[Oo]ut of memory|CUDA error"
    r"|NCCL error|^Killed$"
)
"""An expression for lines that say that something failed. Case counts: `error_rate` and `0 errors` are no failures."""
WARNING = r"(?:^|[^A-Za-z0-9_.])(?:WARN(?:ING)?|[A-Za-z0-9_.]{0,80}Warning|warning)(?:[: \]]|$)"
PHASE = r"=== \[Phase\] .+ ==="
"""The line with which a command says what it is doing, where no launcher has noted it."""

_ERROR = re.compile(ERROR)
_WARNING = re.compile(WARNING)
_NUMBER = re.compile(r"(?<![\w.\-/:])[+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d{1,3})?(?:%|\b)")
MOST = 2000
"""Characters of a line that are looked at."""


def is_error(text: str) -> bool:
    """Whether a line says that something failed."""
    return _ERROR.search(text, 0, MOST) is not None


def warnings(text: str) -> list[tuple[int, int]]:
    """Where a line warns."""
    return [found.span() for found in _WARNING.finditer(text, 0, MOST)]


def numbers(text: str) -> list[tuple[int, int]]:
    """Where a line's numbers are."""
    return [found.span() for found in _NUMBER.finditer(text, 0, MOST)]
