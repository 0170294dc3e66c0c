"""What platforms, launchers and loggers put before a line: `[rank3]:`, a time, `INFO:root:`, `(pid=7)`, `node-2: `."""
from __future__ import annotations

import re

STAMP = (
    r"(?:(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d(?:[-/]\d{2,4})?)[T ,]{1,2})?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"(?:Z|[+-]\d\d:?\d\d)?(?![\w:])"
)
"""A time of day, maybe with a date and a zone."""
LEVEL = r"(?:INFO|DEBUG|SUCCESS|NOTICE)(?::(?!(?i:epoch|step|iter|train))[\w.]{1,80}:(?=\S)|\b)"
PLACE = r"(?i:epoch|step|iter|batch|loss|val|test|episode)"
"""A bracket with one of these says where training is, or what the line is about."""
OWNER = (
    r"(?:" + STAMP + "|" + LEVEL + r"|(?i:rank|default|worker|node|pod|gpu|host|proc|task|pid|stdout|stderr)"
    r"|[\w./-]{1,80}\.py:\d|[\w.]{1,40}-)"
)
HOST = (
    r"(?!" + PLACE + r"|(?i:eval|dev|infer|fold|train\d|gen))[^\W\d][\w.]{0,40}(?:[-/][\w.]{1,40}){0,6}(?<=\d)"
    r"(?: {0,8}\||:)(?=\s)"
)
SOURCE = r"[\w.<>]{1,80}:[\w.<>]{1,80}:\d{1,6} -|[\w./-]{1,80}\.py:\d{1,6}:?(?=\s)|[\w.]{1,60} -(?= (?:INFO|DEBUG))"
"""Where in a program the line was logged."""
SYSLOG = r"[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d [\w.-]{1,60} [\w./-]{1,60}(?:\[\d{1,9}\])?:"
ABSL = r"[IDWEF]\d{4,8} \d\d:\d\d:\d\d\.\d{1,9} {1,9}\d{1,9} [\w./-]{1,80}:\d{1,6}\]"
SURE = "|".join((
    r"\[\d{1,6},\d{1,6}\]<std\w{3}>:", r"\((?:\w{1,60} )?pid=\d+[^()]{0,80}\)", r"(?i:rank[ _]?)\d{1,6}:", STAMP,
    r"std(?:out|err) [FP](?= )", SYSLOG, ABSL, LEVEL, "wandb:", r"<\d{1,3}>", SOURCE, HOST,
))  # fmt: skip
LINE = re.compile(
    r"[ \t]*(?:\[(?![^\]]{0,80}" + PLACE + ")" + OWNER + r"[^\[\]=]{0,80}\]:?|"
    + SURE + r"|\d{1,6}:(?= )(?! {0,8}(?i:train|loss)))"
)
AFTER = re.compile(r"[ \t]*[-:>|,]{1,3}(?=\s)")
"""Between a prefix and what follows."""
TITLE = re.compile(
    r"[ \t]*(?:\[(?![^\]]{0,80}(?i:epoch|step|iter|episode|loss))[^\[\]]{0,80}\](?:<\w{1,8}>)?:?|"
    + SURE + r"|\d{1,6}:(?= )|WARNING\b|[-:>|,]+)"
)
"""Before the name of a bar everything in brackets is a prefix, and so are signs."""
MOST = 8
"""Prefixes that are taken off one line."""


def message(text: str) -> str:
    """The line without its prefixes, when that is sure."""
    at = 0
    for _ in range(MOST):
        match = LINE.match(text, at) or (AFTER.match(text, at) if at else None)
        if match is None or match.end() == at:
            break
        at = match.end()
    return text[at:].lstrip()


def prefix_and_name(text: str) -> tuple[str, str]:
    """What stands before a bar, as its prefixes and its name."""
    at = 0
    match = TITLE.match(text)
    while match is not None and match.end() > at:
        at = match.end()
        match = TITLE.match(text, at)
    return text[:at], text[at:].strip()
