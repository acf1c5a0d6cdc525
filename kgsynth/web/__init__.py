"""Finding and reading material: search -> fetch -> extract. The offline corpus stands behind the same protocols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kgsynth.concept import Source


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One search result."""

    url: str
    title: str
    snippet: str = ""
    score: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What a fetcher brought: raw bytes and what is known about them."""

    url: str  # after redirects
    body: bytes
    content_type: str  # "text/html", "text/markdown", "text/plain", ...
    licence: str = "unknown"
    licence_evidence: str = ""  # the words or the tag that say so, and where they stand; "" when unknown
    retrieved_at: str = ""  # ISO 8601, UTC


@dataclass(frozen=True, kw_only=True)
class Heading:
    level: int  # 1..6
    text: str
    start: int  # offset in Page.source.text of the heading's text
    end: int


@dataclass(frozen=True, kw_only=True)
class Link:
    text: str  # the anchor
    url: str  # absolute
    start: int  # offset in Page.source.text of the anchor text
    end: int


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A term and the text that explains it (HTML `dl`, Markdown "**term**: text", a heading with its first sentence)."""

    term: str
    start: int  # offsets in Page.source.text of term and explanation together
    end: int
    text: str  # the explanation alone


@dataclass(frozen=True, kw_only=True)
class Page:
    """An extracted page: a Markdown text (in `source.text`) and the structure found in it, all by offset."""

    source: Source
    headings: tuple[Heading, ...] = ()
    links: tuple[Link, ...] = ()
    definitions: tuple[Definition, ...] = ()
    licence_evidence: str = ""  # what `source.licence` rests on

    @property
    def url(self) -> str:
        return self.source.url

    @property
    def title(self) -> str:
        return self.source.title


class SearchProvider(Protocol):
    name: str

    async def search(self, query: str, k: int) -> list[Hit]:
        """At most k hits, best first; an empty list when nothing matches. Raises WebError."""
        ...


class Fetcher(Protocol):
    async def fetch(self, url: str) -> Fetched:
        """Raises WebError when the page cannot be had."""
        ...
