"""Material for a task: the concept's own sources, then search with its keywords and its ancestors' names.

What comes back is a `Context` of quoted passages, each with its licence and date, or `Insufficient`: that nothing usable
was found is a result to record, not an error. Passages are ranked by lists whose reciprocal ranks are summed (Cormack,
Clarke and Büttcher, SIGIR 2009): those that edges cite, those of pages titled like the concept, BM25, and cosine where
there is an embedder. Mirrors count once, and one page gives no more than its share while others have something to say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from kgsynth.concept import Concept, Source, SourceSpan, name_key
from kgsynth.embed import Embedder
from kgsynth.errors import WebError
from kgsynth.graph import ConceptGraph
from kgsynth.web import Hit, Page, SearchProvider
from kgsynth.web.alike import THRESHOLD, jaccard, shingles
from kgsynth.web.read import Reader
from kgsynth.web.search import RRF, Bm25, tokens

Allows = Callable[[str], bool]  # a licence -> may it be cited?


@dataclass(frozen=True, kw_only=True)
class RetrieveConfig:
    """[synthesize.limits.retrieve]: how much to look for. Lengths are characters."""

    queries: int = 3
    hits: int = 5  # per query
    pages: int = 4  # read per concept
    passages: int = 4  # kept per concept
    per_page: int = 2  # passages of one page, while other pages have any
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

    WHY = ("no hit", "unreadable", "licence", "unnamed", "short")

    concept: Concept
    why: str  # one of WHY
    reason: str  # a sentence for people
    queries: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()  # tried, in this order
    failures: tuple[str, ...] = ()  # what search and reading said


@dataclass(frozen=True, kw_only=True)
class Web:
    """Where material is looked for and read."""

    search: SearchProvider
    reader: Reader


@dataclass(kw_only=True)
class Looked:
    """What a look at the web brought: the pages that could be read, best first, and everything that was tried."""

    queries: list[str]
    urls: list[str] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def queries(concept: Concept, ancestors: Sequence[Concept], most: int = 3) -> list[str]:
    """The concept's name alone, with its nearest ancestor, with its keywords; then its other names."""
    context = ancestors[0].name if ancestors else concept.domain
    found = [concept.name, f"{concept.name} {context}", " ".join([concept.name, *concept.keywords[:4]])]
    return list(dict.fromkeys(" ".join(q.split()) for q in (*found, *concept.aliases)))[:most]


async def look(
    concept: Concept, ancestors: Sequence[Concept], cited: Sequence[str], web: Web, config: RetrieveConfig
) -> Looked:
    """Search and read: pages titled like the concept, those its edges cite, then other hits. An unreadable page makes room
    for the next, up to twice as many tries as pages are wanted."""
    looked = Looked(queries=queries(concept, ancestors, config.queries))
    hits = [hit for query in looked.queries for hit in await _hits(query, config.hits, web, looked)]
    own = [hit.url for hit in hits if is_about(concept, hit)]
    for url in list(dict.fromkeys([*own, *cited, *(hit.url for hit in hits)]))[: 2 * config.pages]:
        if len(looked.pages) == config.pages:
            break
        looked.urls.append(url)
        try:
            looked.pages.append(await web.reader.read(url))
        except WebError as error:
            looked.failures.append(str(error))
    return looked


async def _hits(query: str, k: int, web: Web, looked: Looked) -> list[Hit]:
    try:
        return await web.search.search(query, k)
    except WebError as error:
        looked.failures.append(str(error))
        return []


async def pages_about(
    concept: Concept, ancestors: Sequence[Concept], cited: Sequence[str], web: Web, config: RetrieveConfig
) -> list[Page]:
    """The pages of `look`."""
    return (await look(concept, ancestors, cited, web, config)).pages


def is_about(concept: Concept, hit: Hit) -> bool:
    """Is the hit's title, or the end of its URL, a name of the concept?"""
    tail = re.split(r"[/#]", hit.url.rstrip("/"))[-1].removesuffix(".html")
    return bool({name_key(hit.title), name_key(tail)} & set(concept.keys))


async def retrieve(
    concept: Concept,
    graph: ConceptGraph,
    cited: Sequence[SourceSpan],
    web: Web,
    config: RetrieveConfig,
    *,
    embedder: Embedder | None = None,
    allows: Allows = lambda licence: True,
) -> Context | Insufficient:
    """Passages about a concept. `cited` are the spans of its edges; `allows` says under which licences it may be quoted."""
    ancestors = graph.ancestors(concept)[:4]
    looked = await look(concept, ancestors, list(dict.fromkeys(s.url for s in cited)), web, config)
    free = [page for page in looked.pages if allows(page.source.licence)]
    found = [passage for page in free for passage in _passages(page, concept, config)]
    kept = choose(_ranked(found, concept, looked.queries, cited, embedder), config)
    if why := _lacking(looked, free, kept, config):
        return Insufficient(
            concept=concept, why=why, reason=_told(why, concept, looked, kept),
            queries=tuple(looked.queries), urls=tuple(looked.urls), failures=tuple(looked.failures),
        )  # fmt: skip
    return Context(concept=concept, ancestors=tuple(ancestors), passages=tuple(kept))


def _lacking(looked: Looked, free: Sequence[Page], kept: Sequence[Passage], config: RetrieveConfig) -> str:
    """Why what was found is not enough, one of Insufficient.WHY; empty when it is."""
    lacking = {
        "no hit": not looked.urls,
        "unreadable": not looked.pages,
        "licence": not free,
        "unnamed": not kept,
        "short": sum(len(p.span.text) for p in kept) < config.least_chars,
    }
    return next((why for why, true in lacking.items() if true), "")


def _told(why: str, concept: Concept, looked: Looked, kept: Sequence[Passage]) -> str:
    name, first = repr(concept.name), f": {looked.failures[0]}" if looked.failures else ""
    licences = ", ".join(sorted({page.source.licence for page in looked.pages}))
    return {
        "no hit": f"{len(looked.queries)} searches for {name} found nothing{first}",
        "unreadable": f"none of {len(looked.urls)} pages about {name} could be read{first}",
        "licence": f"{len(looked.pages)} pages about {name} read, none under an allowed licence: {licences}",
        "unnamed": f"{len(looked.pages)} pages read, no passage of them names {name}",
        "short": f"all that names {name} are {sum(len(p.span.text) for p in kept)} characters in {len(kept)} passages",
    }[why]


def _ranked(
    passages: list[Passage],
    concept: Concept,
    asked: Sequence[str],
    cited: Sequence[SourceSpan],
    embedder: Embedder | None,
) -> list[Passage]:
    """Best first; what ranks alike stays in the order of the pages."""
    if not passages:
        return []
    query = " ".join([*asked, concept.definition])
    texts = [f"{p.title}\n{p.span.text}" for p in passages]
    rankings = [*_known(passages, concept, cited), Bm25(list(map(tokens, texts))).rank(tokens(query), len(texts))]
    if embedder is not None:
        rows = embedder.embed([query, *texts])
        likeness = np.round(rows[1:] @ rows[0], 3)  # a machine's rounding decides nothing
        rankings.append([int(i) for i in np.argsort(-likeness, kind="stable")])
    scores = [sum(1 / (RRF + r.index(i)) for r in rankings if i in r) for i in range(len(passages))]
    return [passages[i] for i in sorted(range(len(passages)), key=lambda i: -scores[i])]


def _known(passages: Sequence[Passage], concept: Concept, cited: Sequence[SourceSpan]) -> Iterator[list[int]]:
    """What speaks for a passage before it is read: it holds a cited span, its page is titled like the concept, or cited."""
    urls, places = {span.url for span in cited}, list(enumerate(p.span for p in passages))
    yield [i for i, s in places if any(c.source == s.source and s.start <= c.start and c.end <= s.end for c in cited)]
    yield [i for i, s in places if is_about(concept, Hit(url=s.url, title=passages[i].title))]
    yield [i for i, s in places if s.url in urls]


def choose(ranked: Sequence[Passage], config: RetrieveConfig) -> list[Passage]:
    """The first `passages` that are unlike each other; those beyond the share of their page only fill what is left."""
    kept: list[tuple[Passage, frozenset[int]]] = []
    taken: Counter[str] = Counter()
    left = list(ranked)
    for share in (config.per_page, config.passages):
        for passage in list(left):
            own = shingles(passage.span.text)
            if len(kept) < config.passages and taken[passage.span.url] < share:
                left.remove(passage)
                if all(jaccard(own, other) < THRESHOLD for _, other in kept):
                    kept.append((passage, own))
                    taken[passage.span.url] += 1
    return [passage for passage, _ in kept]


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
        if about or names(page.source.text[start:end], concept):
            yield passage(page.source, start, end)


def names(text: str, concept: Concept) -> bool:
    """Whether a text holds a name of the concept as whole words, in the singular or the plural."""
    plain = name_key(text)
    return any(_whole(key).search(plain) for key in concept.keys)


@lru_cache(maxsize=65536)
def _whole(key: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(key)}(?:e?s)?(?!\w)")


def passage(source: Source, start: int, end: int) -> Passage:
    return Passage(
        span=source.span(start, end), title=source.title, licence=source.licence, retrieved_at=source.retrieved_at
    )
