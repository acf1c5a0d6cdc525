"""How much of a benchmark's item is in a task, or of a task in an item, by four measures; the first that speaks is told.

    verbatim    share of the words that stand in runs of n words which both have (n = 13 as in Brown et al. 2020, GPT-3;
                a third of the item's words for shorter ones); 70 % of n-grams is the rule of Chowdhery et al. 2022, PaLM
    reordered   the same share over shingles that know no order of sentences, lines and options
    renumbered  the same with every number taken for the same one
    run         words in a row that both have, however long the rest (Lee et al. 2022, "Deduplicating training data": 50 tokens)
    embedding   cosine of the two, where they share rare words too: a paraphrase

What tasks of a type have in common, and what many items of a benchmark have in common, says nothing: it does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgsynth.embed import Embedder
from kgsynth.screen.benchmark import Item
from kgsynth.screen.postings import Floats, Postings, Templates, without
from kgsynth.screen.text import (
    NUMBER,
    TOKEN,
    WORD,
    Hashes,
    content,
    numberless,
    runs,
    shingles,
    stems,
    telling,
    units,
    word_hashes,
)

MEASURES = ("verbatim", "reordered", "renumbered", "run", "embedding")  # the surest first
GRAM = 13  # words
COMMON_GRAM = 10  # items; what more have is a template (Brown et al. 2020)
LEAST = 8.0  # weight of shingles under which a text must be found whole: a few words are found anywhere
WHOLE = 0.95  # share of a task in a longer item: less is documentation that both quote
AKIN = 0.3  # share of a task that an item in it must be, if it is to be known out of order: lines are found anywhere
AS_MANY = 0.8  # numbers of the one for one of the other, if only their values were changed
WINDOW, STEP = 1200, 600  # words of a long text that are looked at together
CANDIDATES = 3  # items to embed
SOLUTION_WORDS = 20  # the least of a solution that is compared
RARE = 0.4  # share of the smaller text's weight of stems that a paraphrase has in common
QUOTED = 300  # characters of shared text that are told


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """A task and an item: by which measure, how much, and the words they share."""

    item: Item
    measure: str
    value: float
    shared: str

    def evidence(self) -> dict[str, Any]:
        return {
            "benchmark": self.item.benchmark, "index": self.item.index, "part": self.item.part,
            "measure": self.measure, "value": round(self.value, 4), "shared": self.shared[:QUOTED],
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Limits:
    """See ScreenConfig."""

    overlap: float
    renumbered: float
    run: int
    similar: float


class Benchmarks:
    """All items, indexed once; asked for every task."""

    def __init__(self, items: Sequence[Item], limits: Limits, embedder: Embedder | None) -> None:
        self._items = [item for item in items if item.part == "question" or is_long(item.text)]
        self._limits, self._embedder = limits, embedder
        self._texts = texts = [content(item.text) for item in self._items]
        self._exact = Postings([shingles(text) for text in texts])
        self._loose = Postings([shingles(text, numbers=False) for text in texts])
        self._grams = Postings([_grams(text) for text in texts], most=COMMON_GRAM)
        self._stems = Postings([stems(text) for text in texts])
        self._templates = Templates()
        self._masses: dict[str, tuple[Floats, Floats]] = {}  # of items, without a type's template
        self._vectors: dict[int, np.ndarray] = {}

    def add(self, kind: str, text: str) -> None:
        """A task of that type is kept: what it shares with others of its type is its template."""
        head = text[:4000]
        seen = np.unique(np.concatenate([shingles(head), shingles(head, numbers=False), _grams(head)]))
        if self._templates.add(kind, seen):
            self._masses.pop(kind, None)

    def worst(self, kind: str, texts: Sequence[str]) -> Overlap | None:
        """The strongest overlap of any of a task's texts with any item, or None. Depends on the tasks added so far."""
        if not self._items:
            return None
        found = (over for text in texts for part in _windows(text) if (over := self._of(kind, part)))
        return max(found, key=lambda over: (-MEASURES.index(over.measure), over.value), default=None)

    def _of(self, kind: str, text: str) -> Overlap | None:
        return (
            self._copied(kind, text)
            or self._renumbered(kind, text)
            or self._long_run(kind, text)
            or self._paraphrased(kind, text)
        )

    def _copied(self, kind: str, text: str) -> Overlap | None:
        """An item that is in the task, in any order; or the task, in one piece, in a longer item."""
        of_item, of_task = self._shares(kind, text, self._exact, numbers=True)
        at = int(np.argmax(of_item))
        if of_item[at] >= self._limits.overlap:
            covered, longest = _covered(self._hashes(at), word_hashes(text))
            if covered >= self._limits.overlap:
                return Overlap(item=self._items[at], measure="verbatim", value=covered, shared=_quoted(text, longest))
            if of_task[at] >= AKIN:
                return self._unordered(at, "reordered", float(of_item[at]), text)
        at = int(np.argmax(of_task))
        if of_task[at] < WHOLE:
            return None
        own = word_hashes(text)
        start, end = _covered(self._hashes(at), own)[1]
        whole = (end - start) / max(1, len(own))
        return self._told(at, "verbatim", whole, text) if whole >= self._limits.overlap else None

    def _renumbered(self, kind: str, text: str) -> Overlap | None:
        of_item, of_task = self._shares(kind, text, self._loose, numbers=False)
        at = int(np.argmax(of_item))
        counts = len(NUMBER.findall(self._texts[at])), len(NUMBER.findall(text))
        if of_item[at] < self._limits.renumbered or of_task[at] < AKIN or min(counts) < max(1, AS_MANY * max(counts)):
            return None
        return self._unordered(at, "renumbered", float(of_item[at]), text)

    def _shares(self, kind: str, text: str, postings: Postings, *, numbers: bool) -> tuple[Floats, Floats]:
        """For every item, how much of it is in the text, and how much of the text in it; the less of both, where the one
        in the other has few words of its own."""
        own = without(shingles(text, numbers=numbers), self._templates.of(kind))
        shared, mass, weight = postings.shared(own), self._mass(kind, numbers), postings.weight(own)
        of_item = np.divide(shared, mass, out=np.zeros_like(shared), where=mass > 1e-9)
        of_task = shared / max(weight, 1e-9)
        both = np.minimum(of_item, of_task)
        return np.where(mass >= LEAST, of_item, both), of_task if weight >= LEAST else both

    def _mass(self, kind: str, numbers: bool) -> Floats:
        """Of every item, the weight of what is not of the template."""
        if kind not in self._masses:
            template = self._templates.of(kind)
            self._masses[kind] = (
                self._exact.mass - self._exact.shared(template), self._loose.mass - self._loose.shared(template),
            )  # fmt: skip
        return self._masses[kind][0 if numbers else 1]

    def _long_run(self, kind: str, text: str) -> Overlap | None:
        shared = self._grams.shared(without(_grams(text), self._templates.of(kind)))
        at = int(np.argmax(shared))
        if shared[at] < max(1, self._limits.run - GRAM + 1):
            return None
        return self._told(at, "run", float(shared[at] + GRAM - 1), text)

    def _paraphrased(self, kind: str, text: str) -> Overlap | None:
        if self._embedder is None or not self._limits.similar:
            return None
        own = stems(text)
        smaller = np.minimum(self._stems.mass, self._stems.weight(own))
        share = self._stems.shared(own) / np.maximum(smaller, 1.0)
        best = [int(at) for at in np.argsort(-share, kind="stable")[:CANDIDATES] if share[at] >= RARE]
        likely = [at for at in best if telling(self._texts[at]) == telling(text)]
        if not likely:
            return None
        cosines = self._embedded(likely) @ self._embedder.embed([text])[0]
        best = int(np.argmax(cosines))
        if cosines[best] < self._limits.similar:
            return None
        return self._told(likely[best], "embedding", float(cosines[best]), text)

    def _embedded(self, rows: list[int]) -> np.ndarray:
        assert self._embedder is not None
        if new := [row for row in rows if row not in self._vectors]:
            vectors = self._embedder.embed([self._texts[row] for row in new])
            self._vectors.update(zip(new, vectors, strict=True))
        return np.stack([self._vectors[row] for row in rows])

    def _hashes(self, at: int) -> Hashes:
        return word_hashes(self._texts[at])

    def _unordered(self, at: int, measure: str, value: float, text: str) -> Overlap:
        """What they share are sentences and lines, wherever these stand."""
        known = set(map(_loosely, units(self._texts[at])))
        shared = [unit for unit in units(text) if _loosely(unit) in known]
        return Overlap(item=self._items[at], measure=measure, value=value, shared=" | ".join(shared))

    def _told(self, at: int, measure: str, value: float, text: str) -> Overlap:
        longest = _covered(self._hashes(at), word_hashes(text))[1]
        return Overlap(item=self._items[at], measure=measure, value=value, shared=_quoted(text, longest))


def is_long(text: str) -> bool:
    """Whether a solution has enough words to be told from others."""
    return len(WORD.findall(text)) >= SOLUTION_WORDS


def _loosely(unit: str) -> tuple[str, ...]:
    return tuple(TOKEN.findall(numberless(unit)))


def _grams(text: str) -> Hashes:
    hashes = word_hashes(text)
    return np.unique(runs(hashes, GRAM)) if len(hashes) >= GRAM else np.zeros(0, np.uint64)


def _windows(text: str) -> Iterator[str]:
    """The text, or overlapping parts of a long one."""
    ends = [match.end() for match in WORD.finditer(text)]
    if len(ends) <= WINDOW:
        yield text
        return
    for start in range(0, len(ends) - STEP, STEP):
        yield text[ends[start - 1] if start else 0 : ends[min(start + WINDOW, len(ends)) - 1]]


def _covered(item: Hashes, text: Hashes) -> tuple[float, tuple[int, int]]:
    """(share of the shorter one's words inside runs that both have, the longest such run as words of the text)."""
    shorter = min(len(item), len(text))
    n = max(1, min(GRAM, max(shorter // 3, min(3, shorter))))
    hits = np.isin(runs(text, n), runs(item, n))
    marked = np.zeros(len(text) + 1, bool)
    for at in np.flatnonzero(hits):
        marked[at : at + n] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked]).astype(np.int8)))
    spans = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=False))
    longest = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
    return min(1.0, float(marked.sum()) / max(shorter, 1)), longest


def _quoted(text: str, span: tuple[int, int]) -> str:
    """These words of the text, as they stand there."""
    found = [match.span() for match in WORD.finditer(text)][span[0] : span[1]]
    return " ".join(text[found[0][0] : found[-1][1]].split()) if found else ""
