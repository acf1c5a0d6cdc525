"""Sites whose pages are better had by another address: arXiv papers as HTML or PDF, GitHub repositories as snapshots."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from urllib.parse import urldefrag

from kgsynth.errors import WebError
from kgsynth.web import Fetched, Fetcher, arxiv, repository

log = logging.getLogger(__name__)

_FINAL = ("rate limit", "quota", "private address")  # another address of the same site would fare no better


def rewrite(url: str) -> list[str]:
    """The addresses to try for a URL, the best first, the URL itself last."""
    better = arxiv.rewrite(url) or repository.rewrite(url)
    return [*better, *([] if url in better else [url])]


def cited(url: str) -> str:
    """The address a person would cite for a URL."""
    return arxiv.cited(url) if arxiv.paper(url) else urldefrag(url).url


@dataclass(frozen=True)
class SiteFetcher:
    """A Fetcher that tries the better addresses of known sites through `inner`, then the URL itself."""

    inner: Fetcher

    async def fetch(self, url: str) -> Fetched:
        """The first that can be had, under the URL a person would cite. Raises the last WebError when none can."""
        attempts = rewrite(url)
        if attempts == [url]:
            return await self.inner.fetch(url)
        for attempt in attempts:
            try:
                fetched = await self.inner.fetch(attempt)
                return replace(fetched, url=cited(url))
            except WebError as error:
                if attempt == attempts[-1] or error.cause in _FINAL:
                    raise
                log.info("%s: %s; trying the next address", url, error)
        raise AssertionError("a URL has at least itself as an address")
