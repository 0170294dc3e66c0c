"""Waiting for a condition, never for a time."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], timeout: float = 15.0, what: str = "") -> T:
    """Call `condition` until it gives something true, and return that; AssertionError after `timeout` seconds.

    `what` says what was waited for; without it the error names the condition.
    """
    deadline = time.monotonic() + timeout
    pause = 0.005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what or condition}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
