"""One HTML page per concept, and a search engine over them."""

from __future__ import annotations

from html import escape
from typing import Any

import bm25s
import numpy as np

from benchmarks.taxonomy.names import Names
from benchmarks.taxonomy.noise import about, sentence
from benchmarks.taxonomy.truth import Taxonomy, TrueConcept
from kgsynth.concept import name_key

ROBOTS = "User-agent: *\nAllow: /\nDisallow: /search\n"
PER_PAGE = 10  # results


class Pages:
    """`aliases`: whether a page says by which other names its concept goes."""

    def __init__(self, taxonomy: Taxonomy, *, aliases: bool = False) -> None:
        self.taxonomy, self.aliases = taxonomy, aliases
        self.ids = list(taxonomy.concepts)
        self._numbers = {concept: number for number, concept in enumerate(self.ids)}
        self._names = Names(taxonomy)
        self._index = bm25s.BM25()
        words = [" ".join([c.label, c.label, *c.spellings, c.definition]) for c in taxonomy]
        self._index.index([_words(text) for text in words], show_progress=False)

    def html(self, number: int) -> str:
        """A concept's page: what it is, and what each of its children is. Raises IndexError when there is none."""
        concept = self.taxonomy[self.ids[number]]
        children = [self.taxonomy[child] for child in self.taxonomy.children.get(concept.id, ())]
        entries = "\n".join(f"<dt>{self._link(c)}</dt>\n<dd>{escape(sentence(c, concept))}</dd>" for c in children)
        also = f"<p>Also called: {escape('; '.join(concept.synonyms))}.</p>\n" if self._tells_aliases(concept) else ""
        narrower = f"<h2>Narrower concepts</h2>\n<dl>\n{entries}\n</dl>" if children else "<p>Nothing is narrower.</p>"
        title = escape(concept.label)
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
            '<link rel="license" href="https://creativecommons.org/publicdomain/zero/1.0/"></head>\n'
            f"<body><main>\n<h1>{title}</h1>\n<p>{escape(about(concept))}</p>\n{also}{narrower}\n</main></body></html>\n"
        )

    def _tells_aliases(self, concept: TrueConcept) -> bool:
        return self.aliases and bool(concept.synonyms)

    def _link(self, concept: TrueConcept) -> str:
        return f'<a href="/concept/{self._numbers[concept.id]}">{escape(concept.label)}</a>'

    def search(self, query: str, page: int = 1) -> list[tuple[int, float]]:
        """(page number, score), best first: pages of that title, of that synonym, then by words (BM25)."""
        titled = sorted(self._names.owners(query), key=lambda c: not self._names.titled(c, query))
        scores = {self._numbers[concept]: 100.0 - place for place, concept in enumerate(titled)}
        known = [word for word in _words(query) if word in self._index.vocab_dict]
        words = self._index.get_scores(known) if known else np.zeros(len(self.ids))
        wanted = min(page * PER_PAGE, len(self.ids))
        for number in np.argsort(-words, kind="stable")[:wanted]:
            if words[number] > 0:
                scores.setdefault(int(number), float(words[number]))
        return list(scores.items())[(page - 1) * PER_PAGE : page * PER_PAGE]

    def results(self, query: str, page: int, site: str) -> dict[str, Any]:
        """The answer of a SearXNG server (https://docs.searxng.org/dev/search_api.html, format=json)."""
        found = [(self.taxonomy[self.ids[number]], number, score) for number, score in self.search(query, page)]
        results = [
            {"url": f"{site}/concept/{number}", "title": c.label, "content": about(c)[:300], "engine": "taxonomy",
             "engines": ["taxonomy"], "score": score, "category": "general"}
            for c, number, score in found
        ]  # fmt: skip
        return {"query": query, "number_of_results": len(results), "results": results, "answers": [],
                "corrections": [], "infoboxes": [], "suggestions": [], "unresponsive_engines": []}  # fmt: skip


def longest(taxonomy: Taxonomy) -> int:
    """An upper bound for the characters of a page's text."""
    lists = (
        sum(len(taxonomy[c].label) + len(sentence(taxonomy[c], taxonomy[parent])) + 40 for c in below)
        for parent, below in taxonomy.children.items()
    )
    own = (sum(len(text) + 2 for text in (c.label, about(c), *c.synonyms)) for c in taxonomy)
    return max(lists, default=0) + max(own) + 200


def _words(text: str) -> list[str]:
    return [name_key(word) for word in name_key(text).split()]
