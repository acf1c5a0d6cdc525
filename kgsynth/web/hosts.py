"""Taking turns at hosts: how many requests at once, how far apart, and not at all while a host asks to be left alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType

from kgsynth.errors import WebError
from kgsynth.web.archive import Archive


class Unavailable(WebError):
    """The host does not answer now; another time it may."""


class Clock:
    """The time of one page inside `async with Clock(...)`: `seconds` for requests, `patience` for waiting for its turn.

    The two are counted apart, so that a queue before a polite host does not use up the time of the page. Raises
    WebError, "timeout" or "rate limit", when either is over.
    """

    def __init__(self, url: str, seconds: float, patience: float) -> None:
        self.patience = patience
        self._url, self._seconds = url, seconds
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(seconds)
        self._queued = False

    @property
    def left(self) -> float:
        return (self._timeout.when() or 0.0) - self._loop.time()

    async def __aenter__(self) -> Clock:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as late:
            if self._queued:
                raise Unavailable(
                    f"{self._url}: its turn at the host did not come in time", cause="rate limit"
                ) from late
            raise Unavailable(f"{self._url}: no complete answer in {self._seconds} s", cause="timeout") from late

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Time spent inside is taken from `patience`."""
        left, begun = self.left, self._loop.time()
        self._queued = True
        self._timeout.reschedule(begun + self.patience)
        yield
        self._queued = False
        self.patience -= self._loop.time() - begun
        self._timeout.reschedule(self._loop.time() + left)


class Hosts:
    """Turns at hosts, shared with every process that uses the archive."""

    def __init__(self, archive: Archive, at_once: int) -> None:
        self._archive, self._at_once = archive, at_once
        self._slots: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def turn(self, host: str, interval: float, clock: Clock) -> AsyncIterator[None]:
        """One request: `interval` seconds after the one before, of at most `at_once` in this process.

        Raises WebError ("rate limit") when the turn would come too late.
        """
        slots = self._slots.setdefault(host, asyncio.Semaphore(self._at_once))
        if slots.locked():
            async with clock.waiting():
                await slots.acquire()
        else:
            await slots.acquire()
        try:
            await self._wait(host, interval, clock)
            yield
        finally:
            slots.release()

    def hold(self, host: str, seconds: float) -> None:
        """Leave a host alone for so long."""
        self._archive.hold(host, seconds)

    async def _wait(self, host: str, interval: float, clock: Clock) -> None:
        pause = self._archive.reserve(host, interval, clock.patience)
        while pause > 0:
            if pause > clock.patience:
                raise Unavailable(f"{host} is to be left alone for another {pause:.0f} s", cause="rate limit")
            async with clock.waiting():
                await asyncio.sleep(pause)
            pause = self._archive.held(host)  # another page may have been told to slow down meanwhile
