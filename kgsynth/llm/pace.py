"""How fast an endpoint is asked: a concurrency limit that adapts, a pause it may demand, and a breaker.

The limit follows AIMD (Chiu and Jain, 1989: additive increase, multiplicative decrease): a "slow down" halves it, each
success adds 1/limit up to the configured maximum. The breaker opens after `breaker` failures in a row, over all calls,
and lets one probe through every `cool_down` seconds; one success closes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from kgsynth.errors import LLMError


class Pace:
    """Belongs to one event loop. `clock` gives seconds and never runs backwards; `sleep` waits that many."""

    def __init__(
        self,
        concurrency: int,
        *,
        breaker: int,
        cool_down: float = 60.0,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.limit = float(concurrency)
        self.active = 0
        self._most = concurrency
        self._breaker, self._cool_down = breaker, cool_down
        self._clock, self._sleep = clock, sleep
        self._failures, self._cause, self._opened_at = 0, "", 0.0
        self._resume_at = self._halved_at = float("-inf")
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def slot(self, admit: Callable[[], bool]) -> AsyncIterator[float]:
        """Wait for a free slot, for the pause to end and for `admit()`; gives the time at which the slot was taken.

        `admit` is asked again whenever a slot is given back. Raises LLMError while the breaker is open, and whatever
        `admit` raises.
        """
        if (pause := self._resume_at - self._clock()) > 0:
            await self._sleep(pause)
        async with self._changed:
            await self._changed.wait_for(lambda: self.active < max(1, int(self.limit)) and self._closed() and admit())
            self.active += 1
        try:
            yield self._clock()
        finally:
            self.active -= 1
            async with self._changed:
                self._changed.notify_all()

    def succeeded(self) -> None:
        self._failures = 0
        self.limit = min(self._most, self.limit + 1 / self.limit)

    def failed(self, cause: str) -> None:
        self._failures += 1
        self._cause, self._opened_at = cause, self._clock()

    def throttled(self, taken_at: float, pause: float) -> None:
        """The endpoint said "slow down" to a request that took its slot at `taken_at`; nobody asks for `pause` seconds.

        Requests that were in flight together count as one signal: the limit halves once for all of them.
        """
        if taken_at >= self._halved_at:
            self.limit = max(1.0, self.limit / 2)
            self._halved_at = self._clock()
        self._resume_at = max(self._resume_at, self._clock() + pause)

    def _closed(self) -> bool:
        if self._failures < self._breaker:
            return True
        if self._clock() - self._opened_at < self._cool_down:
            raise LLMError(f"{self._failures} calls in a row failed, not asking again for now; the last: {self._cause}")
        self._opened_at = self._clock()  # one probe; the others wait another cool_down
        return True
