"""robots.txt (RFC 9309), read with Protego: whether a page may be asked for, and how far apart requests should be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpx
from protego import Protego

from kgsynth.errors import WebError
from kgsynth.web.archive import Archive
from kgsynth.web.hosts import Unavailable

READ_KB = 512  # of the file; RFC 9309, 2.5, asks for at least 500
_KEEP = 24 * 3600.0  # seconds; RFC 9309, 2.4
_KEEP_FAILURE = 60.0  # seconds until a host whose file could not be had is asked again


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What one origin's file says to us."""

    parsed: Protego | None = None  # None: there is no file, all is allowed
    failure: Unavailable | None = None  # it could not be had, nothing is allowed
    until: float = 0.0  # time.time() at which to ask again

    def check(self, url: str, product: str) -> None:
        """Raises WebError ("robots", or why the file could not be had) when the URL must not be fetched."""
        if self.failure:
            raise Unavailable(str(self.failure), cause=self.failure.cause)
        if self.parsed and not self.parsed.can_fetch(url, product):
            raise WebError("robots.txt does not allow it", cause="robots")

    def interval(self, product: str) -> float:
        """Seconds between requests the file asks for (Crawl-delay, Request-rate); 0 when it does not."""
        if not self.parsed:
            return 0.0
        rate = self.parsed.request_rate(product)
        return max(self.parsed.crawl_delay(product) or 0.0, min(rate.seconds, _KEEP) / rate.requests if rate else 0.0)


class Robots:
    """The rules of every origin met so far, kept for a day in the archive too.

    `get` brings the file: its status after redirects and its first READ_KB, or a WebError. Callers that need one file
    at the same time share one request, which none of them can cancel.
    """

    def __init__(self, get: Callable[[httpx.URL], Awaitable[tuple[int, bytes]]], archive: Archive) -> None:
        self._get, self._archive = get, archive
        self._known: dict[str, Rules] = {}
        self._asking: dict[str, asyncio.Task[Rules]] = {}

    async def rules(self, url: httpx.URL) -> Rules:
        """The rules for a URL's origin. Never raises: a failure is part of the rules."""
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        known = self._known.get(origin)
        if known and known.until > time.time():
            return known
        task = self._asking.get(origin)
        if task is None:
            task = self._asking[origin] = asyncio.create_task(self._learn(origin))
            task.add_done_callback(lambda _: self._asking.pop(origin, None))
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _learn(self, origin: str) -> Rules:
        kept = self._archive.get("robots", origin)
        if kept is None or kept.checked_at + _KEEP < time.time():
            try:
                status, body = await self._get(httpx.URL(f"{origin}/robots.txt"))
            except WebError as error:
                rules = self._known[origin] = _failed(error)
                return rules
            kept = self._archive.put("robots", origin, head={"status": status}, body=body)
        found = await _parsed(kept.body) if kept.head["status"] < 300 else None
        rules = self._known[origin] = Rules(parsed=found, until=kept.checked_at + _KEEP)
        return rules


def _failed(error: WebError) -> Rules:
    """A server error or no answer forbids all; endless redirects are as good as no file (RFC 9309, 2.3.1)."""
    until = time.time() + _KEEP_FAILURE
    if error.cause == "redirects":
        return Rules(until=until)
    cause = "robots" if error.cause in ("status", "rate limit", "encoding") else error.cause
    return Rules(
        failure=Unavailable(f"its robots.txt could not be had, so nothing is: {error}", cause=cause), until=until
    )


async def _parsed(body: bytes) -> Protego:
    text = body.decode("utf-8-sig", "replace")
    return Protego.parse(text) if len(text) < 32_000 else await asyncio.to_thread(Protego.parse, text)
