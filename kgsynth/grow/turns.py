"""Agents work at the same time and pass one at a time, in the order in which they entered."""

from __future__ import annotations

import asyncio


class Turns:
    """Each agent that enters must leave, whatever becomes of it. Leaving wakes the next one only."""

    def __init__(self) -> None:
        self._queue: dict[int, asyncio.Event] = {}  # in the order of entering; the first one's event is set

    def enter(self, seq: int) -> None:
        self._queue[seq] = asyncio.Event()
        self._wake()

    async def wait(self, seq: int) -> None:
        await self._queue[seq].wait()

    def leave(self, seq: int) -> None:
        self._queue.pop(seq, None)
        self._wake()

    def _wake(self) -> None:
        for first in self._queue.values():
            first.set()
            return
