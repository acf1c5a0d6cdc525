"""Material for a task: the concept's own sources first, then search with its keywords and its ancestors' names.

What comes back is a `Context` of quoted passages, each with its licence, or `Insufficient`: that nothing usable was
found is a result to record, not an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgsynth.concept import Concept, Source, SourceSpan, name_key
from kgsynth.errors import WebError
from kgsynth.graph import ConceptGraph
from kgsynth.web import Hit, Page, SearchProvider
from kgsynth.web.read import Reader


@dataclass(frozen=True, kw_only=True)
class RetrieveConfig:
    """How much to look for. Lengths are characters."""

    queries: int = 3
    hits: int = 5  # per query
    pages: int = 4  # read per concept
    passages: int = 4  # kept per concept
    passage_chars: int = 1500
    least_chars: int = 120  # of all passages together; less is insufficient


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A quotation with what is needed to cite it."""

    span: SourceSpan
    title: str
    licence: str
    retrieved_at: str = ""


@dataclass(frozen=True, kw_only=True)
class Context:
    """A concept, its ancestors (nearest first) and what the world says about it (best first, never empty)."""

    concept: Concept
    ancestors: tuple[Concept, ...]
    passages: tuple[Passage, ...]


@dataclass(frozen=True, kw_only=True)
class Insufficient:
    """No usable material: what was tried, and why it was not enough."""

    concept: Concept
    reason: str
    queries: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


def queries(concept: Concept, ancestors: Sequence[Concept], most: int = 3) -> list[str]:
    """The concept's name alone, with its nearest ancestor, with its keywords."""
    context = ancestors[0].name if ancestors else concept.domain
    found = [concept.name, f"{concept.name} {context}", " ".join([concept.name, *concept.keywords[:4]])]
    return list(dict.fromkeys(" ".join(q.split()) for q in found))[:most]


@dataclass(frozen=True, kw_only=True)
class Web:
    """Where material is looked for and read."""

    search: SearchProvider
    reader: Reader

    async def hits(self, query: str, k: int) -> list[Hit]:
        """Hits, or none when the provider fails."""
        try:
            return await self.search.search(query, k)
        except WebError:
            return []

    async def page(self, url: str) -> Page | None:
        """The page, or None when it cannot be read."""
        try:
            return await self.reader.read(url)
        except WebError:
            return None


async def pages_about(
    concept: Concept, ancestors: Sequence[Concept], cited: Sequence[str], web: Web, config: RetrieveConfig
) -> list[Page]:
    """Pages, best first: those titled like the concept, those its edges cite, then other search hits."""
    hits = [hit for q in queries(concept, ancestors, config.queries) for hit in await web.hits(q, config.hits)]
    own = [hit.url for hit in hits if is_about(concept, hit)]
    urls = list(dict.fromkeys([*own, *cited, *(hit.url for hit in hits)]))[: config.pages]
    return [page for page in [await web.page(url) for url in urls] if page is not None]


def is_about(concept: Concept, hit: Hit) -> bool:
    """Is the hit's title, or the end of its URL, a name of the concept?"""
    tail = re.split(r"[/#]", hit.url.rstrip("/"))[-1].removesuffix(".html")
    return bool({name_key(hit.title), name_key(tail)} & set(concept.keys))


async def retrieve(
    concept: Concept, graph: ConceptGraph, cited: Sequence[SourceSpan], web: Web, config: RetrieveConfig
) -> Context | Insufficient:
    """Passages about a concept. `cited` are the spans of its edges; they come first where their page can be read."""
    ancestors = graph.ancestors(concept)[:4]
    pages = await pages_about(concept, ancestors, list(dict.fromkeys(s.url for s in cited)), web, config)
    passages = [p for page in pages for p in _passages(page, concept, config)][: config.passages]
    if sum(len(p.span.text) for p in passages) < config.least_chars:
        return Insufficient(
            concept=concept,
            reason=f"{len(pages)} pages read, {len(passages)} passages name {concept.name!r}",
            queries=tuple(queries(concept, ancestors, config.queries)),
            urls=tuple(page.url for page in pages),
        )
    return Context(concept=concept, ancestors=tuple(ancestors), passages=tuple(passages))


def paragraphs(text: str, most: int) -> Iterable[tuple[int, int]]:
    """Offsets of runs of whole paragraphs, each run as long as fits into `most` characters (a longer one is cut)."""
    start = end = 0
    for match in re.finditer(r"\S(?:.*?)(?=\n\s*\n|\s*\Z)", text, re.DOTALL):
        if end > start and match.end() - start > most:
            yield start, end
            start = match.start()
        elif end == start:
            start = match.start()
        end = min(match.end(), start + most)
    if end > start:
        yield start, end


def _passages(page: Page, concept: Concept, config: RetrieveConfig) -> Iterable[Passage]:
    about = is_about(concept, Hit(url=page.url, title=page.title))
    for start, end in paragraphs(page.source.text, config.passage_chars):
        text = name_key(page.source.text[start:end])
        if about or any(key in text for key in concept.keys):
            yield passage(page.source, start, end)


def passage(source: Source, start: int, end: int) -> Passage:
    return Passage(
        span=source.span(start, end), title=source.title, licence=source.licence, retrieved_at=source.retrieved_at
    )
