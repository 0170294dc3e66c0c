"""What a command's GPUs cost: seconds times GPUs, and what they were spent on."""
from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TRAINS = (
    r"(?:start(?:ing)? )?(?:pre-?|fine-?)?(?:train(?:ing)?|tun(?:e|ing)|fit(?:ting)?|sft)\b"
    r"(?! ?(?:data|set|file|env|code))"
    r"|.*(?:训练|微调)(?!数据|集|脚本|环境|代码)"
)
"""A phase with such a name is the training itself."""
SCALES = (("hours", 3600.0, 1, 360.0), ("minutes", 60.0, 1, 60.0), ("seconds", 1.0, 0, 0.0))
"""Units of GPU time in words: name, seconds, digits after the point, and from how many seconds on it is taken."""


class Bill:
    """When each part began, in monotonic seconds; what comes after the command's end is `held`.

    Setup is what comes before the first step. A command whose steps nobody can read trains from a phase on whose name
    says so, and when it has no such phase either, it is not known what is setup and what training.
    """

    def __init__(self, tick: float) -> None:
        self._began = tick
        self._trains: float | None = None
        self._surely = False
        self._ended: float | None = None

    def stepped(self, tick: float) -> None:
        """A step was seen; the first counts."""
        if not self._surely:
            self._trains, self._surely = max(tick, self._began), True

    def phase(self, name: str, tick: float) -> None:
        """A phase began that the command has told."""
        if self._trains is None and re.match(TRAINS, name, re.IGNORECASE):
            self._trains = max(tick, self._began)

    def ended(self, tick: float) -> None:
        """The command has ended."""
        if self._ended is None:
            self._ended = max(tick, self._began)

    def fields(self, tick: float, gpus: int, idle: float) -> dict[str, Any]:
        """The fields of a status at `tick`; nothing without GPUs. `idle`: seconds times GPUs seen to be idle."""
        if not gpus:
            return {}
        end = max(tick, self._began)
        ran = end if self._ended is None else min(self._ended, end)
        fields = {
            "gpu_seconds": gpus * (end - self._began),
            "gpu_seconds_idle": min(idle, gpus * (end - self._began)),
            "gpu_seconds_held": gpus * (end - ran),
        }
        if self._trains is not None:
            trains = min(self._trains, ran)
            fields["gpu_seconds_setup"] = gpus * (trains - self._began)
            fields["gpu_seconds_training"] = gpus * (ran - trains)
        return {name: round(value, 1) for name, value in fields.items()}


def in_words(fields: dict[str, Any]) -> str:
    """`3.2 GPU-hours, 0.9 before the first step, 0.4 held`; empty when nothing is known of GPUs."""
    if not fields:
        return ""
    unit, divisor, digits, _ = next((scale for scale in SCALES if fields["gpu_seconds"] >= scale[3]), SCALES[-1])
    parts = ["%.*f GPU-%s" % (digits, fields["gpu_seconds"] / divisor, unit)]
    for name, words in (("setup", "before the first step"), ("idle", "idle"), ("held", "held")):
        value = fields.get("gpu_seconds_" + name)
        if value is not None and round(value / divisor, digits) > 0:
            parts.append("%.*f %s" % (digits, value / divisor, words))
    return ", ".join(parts)
