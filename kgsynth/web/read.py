"""Fetch and extract in one step, each page once: what agents and synthesis call to read a URL."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

from kgsynth.web import Fetcher, Page

SMALL = 1 << 14  # bytes of plain text that are read faster than handed to a thread


@dataclass
class Reader:
    """Reads pages through a fetcher and keeps the last `keep` of them in memory.

    Two callers that want one URL at the same time share one fetch; a failed read is not remembered.
    """

    fetcher: Fetcher
    keep: int = 512
    _pages: OrderedDict[str, asyncio.Task[Page]] = field(default_factory=OrderedDict, repr=False)

    async def read(self, url: str) -> Page:
        """The extracted page. Raises WebError when it cannot be fetched or holds no text."""
        task = self._pages.get(url)
        if task is None:
            task = self._pages[url] = asyncio.ensure_future(self._read(url))
            while len(self._pages) > self.keep:
                self._pages.popitem(last=False)
        try:
            return await asyncio.shield(task)
        except BaseException:
            if task.done():
                self._pages.pop(url, None)
            raise

    async def _read(self, url: str) -> Page:
        from kgsynth.web.extract import extract

        fetched = await self.fetcher.fetch(url)
        small = fetched.content_type.startswith("text/plain") and len(fetched.body) < SMALL
        return extract(fetched) if small else await asyncio.to_thread(extract, fetched)
