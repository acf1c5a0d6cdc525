"""How fast an endpoint is asked: a concurrency limit that adapts, a pause it may demand, and a breaker.

The limit follows AIMD (Chiu and Jain, 1989: additive increase, multiplicative decrease): a "slow down" halves it, each
success adds 1/limit up to the configured maximum. The breaker opens after `breaker` failures in a row, over all calls,
and lets one probe through every `cool_down` seconds; one success closes it. So an endpoint that only ever says "slow down"
is given up, with its own words as the cause; one that is merely slow is not: waiting for a turn has no time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from kgsynth.errors import LLMError
from kgsynth.ledger import POLL_S

Ticket = TypeVar("Ticket")


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
        name: str = "the endpoint",
    ) -> None:
        self.limit = float(concurrency)
        self.active = 0
        self._most, self._name = concurrency, name
        self._breaker, self._cool_down = breaker, cool_down
        self._clock, self._sleep = clock, sleep
        self._failures, self._cause, self._opened_at = 0, "", 0.0
        self._resume_at = self._halved_at = float("-inf")
        self._door = asyncio.Lock()  # one caller at a time waits for a slot, the others behind it in order
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def slot(self, admit: Callable[[], Ticket | None]) -> AsyncIterator[tuple[float, Ticket]]:
        """Wait for a free slot, for the pause to end and for `admit()` to give a ticket.

        Gives the time at which the slot was taken, and the ticket. `admit` is asked again whenever a slot is given back,
        and every POLL_S, since other processes may decide what it says. Raises LLMError while the breaker is open, and
        whatever `admit` raises.
        """
        async with self._door:
            ticket = await self._enter(admit)
        try:
            yield self._clock(), ticket
        finally:
            self.active -= 1
            self._changed.set()

    def succeeded(self) -> None:
        self._failures = 0
        self.limit = min(self._most, self.limit + 1 / self.limit)

    def failed(self, cause: str) -> None:
        self._failures += 1
        self._cause, self._opened_at = cause, self._clock()
        self._changed.set()

    def throttled(self, taken_at: float, pause: float) -> None:
        """The endpoint said "slow down" to a request that took its slot at `taken_at`; nobody asks for `pause` seconds.

        Requests that were in flight together count as one signal: the limit halves once for all of them.
        """
        if taken_at >= self._halved_at:
            self.limit = max(1.0, self.limit / 2)
            self._halved_at = self._clock()
        self._resume_at = max(self._resume_at, self._clock() + pause)

    async def _enter(self, admit: Callable[[], Ticket | None]) -> Ticket:
        while True:
            self._changed.clear()
            self._refuse_if_open()
            if (pause := self._resume_at - self._clock()) > 0:
                await self._sleep(pause)
                continue
            free = self.active < max(1, int(self.limit))
            if free and (ticket := admit()) is not None:
                self.active += 1
                self._opened_at = self._clock()  # of an open breaker: this is the probe, others wait another cool_down
                return ticket
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S if free else None):
                    await self._changed.wait()

    def _refuse_if_open(self) -> None:
        if self._failures >= self._breaker and self._clock() - self._opened_at < self._cool_down:
            raise LLMError(
                f"{self._name}: {self._failures} calls in a row failed, not asking again for now; the last: {self._cause}"
            )
