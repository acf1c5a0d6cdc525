"""The closest pairs that are left in a graph, and what the rules say about each.

Pairs are found in two ways: by the cosines of the stored vectors, all with all in blocks; and by what the names and definitions
share (a key, a spelling, an abbreviation, a typing error, the same definition), because embeddings alone miss equal names
and acronyms. `Dedup` then looks at each pair as if one had just been proposed and only the other were known.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgsynth.concept import Concept
from kgsynth.dedup.cascade import Dedup, DedupConfig
from kgsynth.dedup.definitions import words
from kgsynth.dedup.names import abbreviations, has_acronym, is_identifier, is_typo, spelling_forms, tidied, typo_keys
from kgsynth.embed import Embedder, HashingEmbedder
from kgsynth.store import GraphStore

ROWS = 256  # compared with all others at once: 100 MB of cosines in a graph of 100,000
FULL = 30  # concepts that share a key: beyond, the key says nothing
MERGE, JUDGE = "would merge", "needs judging"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class ClosePair:
    """Two concepts of a graph. verdict: "would merge", "needs judging", "excluded: ..." or "apart"."""

    one: Concept
    other: Concept
    verdict: str
    reason: str
    scores: dict[str, Any]  # "similarity", "name", "definition" (cosines), "shared words", "names"
    linked: bool  # one is a parent of the other


def closest_pairs(
    store: GraphStore, embedder: Embedder | None, *, top: int = 50, config: DedupConfig = DedupConfig(),
    on_progress: Progress = lambda *_: None,
) -> list[ClosePair]:  # fmt: skip
    """The `top` pairs: those that would merge, those that need judging, then by cosine.

    embedder: the graph's own, for the cosines of names and definitions; None compares by words and spelling only.
    """
    concepts = {c.id: c for c in store.concepts()}
    _, ids, vectors = store.embeddings()
    near = [(ids[i], ids[j]) for _, i, j in nearest_rows(vectors, max(4 * top, 200), on_progress)]
    named = _closest(sharing_names(list(concepts.values())), ids, vectors, max(20 * top, 1_000))
    pairs = [(a, b) for a, b in dict.fromkeys((*near, *named)) if a in concepts and b in concepts]
    dedup = Dedup(embedder or HashingEmbedder(), config)
    dedup.add(*(concepts[i] for i in dict.fromkeys(i for pair in pairs for i in pair)))
    linked = {frozenset((e.parent, e.child)) for e in store.edges([p for a, b in pairs for p in ((a, b), (b, a))])}
    judged: list[ClosePair] = []
    for n, (a, b) in enumerate(pairs):
        judged.append(_judged(dedup, concepts[a], concepts[b], frozenset((a, b)) in linked))
        on_progress("pairs judged", n + 1, len(pairs))
    rank = {MERGE: 0, JUDGE: 1}
    return sorted(judged, key=lambda p: (rank.get(p.verdict, 2), -p.scores.get("similarity", 0.0)))[:top]


def _closest(
    pairs: Iterable[tuple[str, str]], ids: Sequence[str], vectors: NDArray[np.float32], k: int
) -> list[tuple[str, str]]:
    """The k pairs with the highest cosines; those without vectors first. Judging a pair may mean embedding four texts."""
    rows = {concept_id: row for row, concept_id in enumerate(ids)}

    def cosine(pair: tuple[str, str]) -> float:
        a, b = (rows.get(i) for i in pair)
        return 2.0 if a is None or b is None else float(vectors[a] @ vectors[b])

    return sorted(dict.fromkeys(pairs), key=lambda pair: -cosine(pair))[:k]


def nearest_rows(vectors: NDArray[np.float32], k: int, on_progress: Progress) -> list[tuple[float, int, int]]:
    """The k pairs of rows of [N, dim] with the highest cosines, as (cosine, row, later row), highest first."""
    found: list[tuple[float, int, int]] = []
    n = len(vectors)
    for start in range(0, n, ROWS):
        block = vectors[start : start + ROWS] @ vectors[start:].T
        block[np.tril_indices(len(block), m=block.shape[1])] = -2.0
        least = found[0][0] if len(found) == k else -2.0
        flat = np.flatnonzero(block > least)
        if len(flat) > k:
            flat = flat[np.argpartition(block.ravel()[flat], -k)[-k:]]
        for at in np.sort(flat).tolist():
            row, column = divmod(at, block.shape[1])
            pair = (float(block[row, column]), -(start + row), -(start + column))
            if len(found) < k:
                heapq.heappush(found, pair)
            elif pair > found[0]:
                heapq.heapreplace(found, pair)
        on_progress("rows compared", min(start + ROWS, n), n)
    return [(cosine, -row, -column) for cosine, row, column in sorted(found, reverse=True)]


def sharing_names(concepts: Sequence[Concept]) -> Iterator[tuple[str, str]]:
    """Pairs of ids that share a key, a spelling, an abbreviation or a definition, or are a typing error apart."""
    groups: dict[tuple[str, object], list[Concept]] = defaultdict(list)
    for concept in concepts:
        for key in _keys(concept):
            groups[key].append(concept)
    for (kind, _), group in groups.items():
        if 1 < len(group) <= FULL:
            for one, other in combinations(group, 2):
                if one.id != other.id and (kind != "typo" or is_typo(tidied(one).name, tidied(other).name)):
                    yield one.id, other.id


def _keys(concept: Concept) -> Iterator[tuple[str, object]]:
    plain = tidied(concept)
    yield from (("key", key) for key in plain.keys)
    if not is_identifier(plain.name):
        yield from (("form", form) for form in spelling_forms(plain.name))
        yield from (("typo", key) for key in typo_keys(plain.name))
    if has_acronym(plain.name) or abbreviations(plain.name):
        short: Iterable[str] = plain.keys[:1] if has_acronym(plain.name) else abbreviations(plain.name)
        yield from (("short", key) for key in short)
    if len(order := words(concept.definition).order) > 1:
        yield "definition", order


def _judged(dedup: Dedup, one: Concept, other: Concept, linked: bool) -> ClosePair:
    aligned = dedup.align(one, among=[other.id])
    scores = {k: v for k, v in aligned.decision.evidence if k not in ("neighbour", "uncertain")}
    scores = scores or dedup.scores(one, other.id)
    reason = aligned.decision.reason
    if aligned.match is not None and not aligned.needs_judge:
        verdict = MERGE
    elif aligned.needs_judge:
        verdict = JUDGE
    elif aligned.decision.outcome == "sense":
        verdict = "excluded: sense"
    else:
        names = scores.get("names", "open")
        verdict = "apart" if names in ("open", "wordier") else f"excluded: {names}"
        reason = WHY[names]
    return ClosePair(one=one, other=other, verdict=verdict, reason=reason, scores=scores, linked=linked)


WHY = {
    "identifier": "a name in code is spelt in one way only",
    "symbols": "the names have other symbols",
    "digits": "the names have other numbers",
    "opposite": "words of the names exclude each other",
    "narrower": "one name has all words of the other, and the definitions differ",
    "sibling": "other modifiers of one head, and the definitions differ",
    "open": "the definitions differ",
    "wordier": "the definitions differ",
}
