"""Searching a corpus: BM25, titles and aliases find candidates, embeddings re-rank them, reciprocal ranks are summed.

BM25 as in Lucene (`bm25s`); reciprocal rank fusion after Cormack, Clarke and Büttcher (SIGIR 2009), constant 60.
Candidates are embedded when they first come up, each page once; a few hundred central pages (those the overview chapters
list) are compared with every query, whether or not they share a word with it. Opening a corpus embeds nothing.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from kgsynth.concept import name_key
from kgsynth.web import Hit
from kgsynth.web.document import Document
from kgsynth.web.vectors import PageVectors

RRF = 60
CANDIDATES = 24
NEAR = 0.4  # cosine from which a central page counts as found although it shares no word with the query
_WORD = re.compile(r"\w+(?:\.\w+)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_STOP = frozenset(
    "a an and are as at be been but by can could did do does for from had has have how in into is it its may of on or"
    " should such than that the their them then there these they this to was we were what when where which who why will"
    " with would you your".split()
)


def tokens(text: str) -> list[str]:
    """Search terms: lower case, stemmed, without stop words; an identifier also counts as its parts.

    >>> tokens("the queue.PriorityQueue of threads")
    ['queue.priorityqueue', 'queu', 'priority', 'queu', 'thread']
    """
    words = _WORD.findall(text)
    kept = [w for w in words if w.lower() not in _STOP] or words
    return [term for word in kept for term in _terms(word)]


@lru_cache(maxsize=200_000)
def _terms(word: str) -> tuple[str, ...]:
    if word.isalpha() and word[1:].islower():
        return (_stem(word),)
    parts = [_stem(part) for part in _PART.findall(word)]
    return (word.lower(), *parts) if parts != [word.lower()] else (word.lower(),)


def _stem(word: str) -> str:
    """Without plural, -ing, -ed and final -e, so that sorts, sorting and sorted are sort."""
    stem = name_key(word)
    for ending in ("ing", "ed"):
        if stem.endswith(ending) and len(stem) >= len(ending) + 4:
            stem = stem.removesuffix(ending)
            stem = stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "sl" else stem
    return stem[:-1] if stem.endswith("e") and len(stem) > 4 else stem


class CorpusSearch:
    """A SearchProvider over documents. `candidates` bounds what is embedded."""

    name = "corpus"

    def __init__(
        self,
        documents: Sequence[Document],
        vectors: PageVectors,
        *,
        candidates: int = CANDIDATES,
    ) -> None:
        self.documents = documents
        self.vectors = vectors
        self.candidates = candidates
        title_tokens = [tokens(d.title) for d in documents]
        self._titles = Bm25(title_tokens)
        self._texts = Bm25([t * 3 + tokens(d.text) for t, d in zip(title_tokens, documents, strict=True)])
        self._by_title: dict[str, list[int]] = {}
        self._by_alias: dict[str, list[int]] = {}
        for i, document in enumerate(documents):
            self._by_title.setdefault(name_key(document.title), []).append(i)
            for alias in document.aliases:
                self._by_alias.setdefault(name_key(alias), []).append(i)
        self._central = [i for i, document in enumerate(documents) if document.central]
        self._lock = threading.Lock()

    async def search(self, query: str, k: int) -> list[Hit]:
        """At most k hits, best first. Nothing matches: an empty list."""
        return await asyncio.to_thread(self.search_now, query, k)

    def search_now(self, query: str, k: int) -> list[Hit]:
        terms, key = tokens(query), name_key(query)
        title, alias = self._by_title.get(key, []), self._by_alias.get(key, [])[:4]
        by_title = [i for i in self._titles.rank(terms, 8) if set(terms) <= set(tokens(self.documents[i].title))]
        by_text = self._texts.rank(terms, max(self.candidates, k))
        found = list(dict.fromkeys([*title, *alias, *by_title, *by_text]))
        meant = self._by_meaning(query, found[: self.candidates]) if query.strip() else []
        pool = list(dict.fromkeys([*found, *meant]))
        rankings = [title, title, [*title, *alias], by_title, by_text, meant]
        scores = {i: sum(1 / (RRF + r.index(i)) for r in rankings if i in r) for i in pool}
        best = sorted(pool, key=lambda i: (-scores[i], i))[:k]
        return [self._hit(i, scores[i]) for i in best]

    def _hit(self, i: int, score: float) -> Hit:
        document = self.documents[i]
        return Hit(url=document.url, title=document.title, snippet=document.lead, score=score)

    def _by_meaning(self, query: str, found: list[int]) -> list[int]:
        """Found pages, and central pages that are near enough to count as found, by similarity."""
        pool = list(dict.fromkeys([*found, *self._central]))
        texts = [f"{self.documents[i].title}. {self.documents[i].lead[:200]}" for i in pool]
        with self._lock:  # searches may come from several threads
            asked, rows = self.vectors.embed(query, texts)
        likeness = rows @ asked
        order = [j for j in np.argsort(-likeness, kind="stable") if j < len(found) or likeness[j] >= NEAR]
        return [pool[j] for j in order[: self.candidates]]


class Bm25:
    """Okapi BM25 over lists of terms, as Lucene computes it."""

    def __init__(self, texts: list[list[str]]) -> None:
        import bm25s

        self._index = bm25s.BM25(method="lucene") if any(texts) else None
        if self._index is not None:
            self._index.index(texts, show_progress=False)

    def rank(self, terms: list[str], k: int) -> list[int]:
        """Indices of the k best texts, best first, ties by index; only texts that share a term."""
        if self._index is None:
            return []
        known = [term for term in terms if term in self._index.vocab_dict]
        if not known:
            return []
        scores = self._index.get_scores(known)
        return [int(i) for i in np.argsort(-scores, kind="stable")[:k] if scores[i] > 0]
