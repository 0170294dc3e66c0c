"""An app in which each key is done before the next one is looked at.

Textual hands a key to what has the focus when the key comes, and what the key before it opens has not the focus yet
when both come at once: over a slow line, pasted, or typed fast. Then of `/needle` the first letters would be commands.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from textual import events
from textual.app import App
from textual.message import Message
from textual.timer import Timer

PATIENCE = 0.5
"""Seconds after which the next key is taken all the same: what had the last one may be gone."""


class KeysInOrder(App[int]):
    """Keys wait for each other."""

    class Done(Message):
        """Goes the way that a key went, behind it."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self) -> None:
        super().__init__()
        self._keys: deque[events.Key] = deque()
        self._number = 0
        """Of the key that was handed on last."""
        self._patience: Timer | None = None
        """Runs while that key is on its way."""

    async def on_event(self, event: events.Event) -> None:
        """Keep a key that comes too early."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            self._keys.append(event)
            await self._next_key()
        else:
            await super().on_event(event)

    async def on_keys_in_order_done(self, message: Done) -> None:
        """The next one."""
        message.stop()
        await self._done(message.number)

    async def _done(self, number: int) -> None:
        if number == self._number and self._patience is not None:
            self._patience.stop()
            self._patience = None
            await self._next_key()

    async def _next_key(self) -> None:
        while self._keys and self._patience is None:
            event = self._keys.popleft()
            target = self.focused or self.screen
            await super().on_event(event)
            if event.is_forwarded:
                self._number += 1
                if target.post_message(self.Done(self._number)):
                    self._patience = self.set_timer(PATIENCE, partial(self._done, self._number))
