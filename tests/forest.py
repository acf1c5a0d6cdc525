"""A made-up graph of any size in a store: several domains, each grown outwards from its roots as `kgsynth grow` does.

python -m tests.forest big.sqlite 50000         and then: kgsynth view big.sqlite
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kgsynth.concept import Concept, Edge, Source
from kgsynth.store import Change, GraphStore, TaskRecord, open_store

DOMAINS: Sequence[
    str
] = """algorithms,python,databases,networks,cryptography,statistics,linear algebra,operating systems,
machine learning,geometry,biology,music theory""".replace("\n", "").split(",")
FIRST = """adaptive balanced binary cached compact concurrent cyclic dense directed discrete distributed dynamic elastic
exact finite fuzzy greedy hashed hidden immutable implicit indexed iterative lazy linear local lossless mutable nested
optimal ordered parallel partial persistent planar prime random recursive reduced regular robust secure shared sparse
stable static stochastic strict symmetric temporal typed uniform virtual weighted""".split()
LAST = """array automaton basis buffer cache channel cipher closure cluster codec cursor digest encoding estimator field
filter flow frame function gradient graph group heap index integral iterator join kernel lattice ledger list lock loop
map matrix matroid measure model monoid norm operator packet parser path permutation pointer policy polynomial predicate
process protocol query queue record relation ring route sample scheduler schema search sequence set signal socket spline
stack stream string table tensor thread token transform tree trie tuple vector view window""".split()
ROOTS = 3  # of every domain
PAGES = 40  # edges quote one page in so many


def plant(store: GraphStore, concepts: int, *, links: float = 2.2, seed: int = 0) -> list[Concept]:
    """Fill an empty store with `concepts` concepts and about `links` edges for each, pages that justify them, and tasks."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, len(DOMAINS) + 1) ** 0.6
    room: dict[str, int] = dict(
        zip(DOMAINS, np.maximum(ROOTS, share / share.sum() * concepts).astype(int).tolist(), strict=True)
    )
    room[DOMAINS[0]] += concepts - sum(room.values())
    names = _names(rng, concepts)
    grown: list[Concept] = []
    levels: list[int] = []
    members: dict[str, list[int]] = {domain: [] for domain in DOMAINS}
    pairs: list[tuple[int, int]] = []

    def add(name: str, domain: str, level: int) -> int:
        text = f"What is called {name} in {domain}, in one sentence as a page would have it."
        grown.append(Concept(name=name, domain=domain, definition=text, aliases=(f"{name} of {domain}",)))
        levels.append(level)
        members[domain].append(len(grown) - 1)
        return len(grown) - 1

    waiting = [add(name, d, 0) for d in DOMAINS for name in (d, f"{d} in theory", f"{d} in practice")]
    while len(grown) < concepts:
        parent = waiting.pop(int(len(waiting) * rng.beta(1, 6)))  # mostly the oldest
        domain, level = grown[parent].domain, levels[parent]
        wanted = 3 + int(rng.lognormal(0.8, 0.9)) if level < 3 or rng.random() < 0.45 else 0
        for _ in range(min(wanted, room[domain] - len(members[domain]))):
            child = add(names.pop(), domain, level + 1)
            waiting.append(child)
            others = _more_parents(rng, members[domain], child, mean=1.4 * (links - 1))
            pairs += [
                (parent, child),
                *((other, child) for other in others if levels[other] <= level and other != parent),
            ]
        if not waiting:  # every branch has ended early: go on from the finest ones
            waiting.extend(range(max(0, len(grown) - 50), len(grown)))
    _write(store, grown, pairs)
    return grown


def _names(rng: np.random.Generator, n: int) -> list[str]:
    """Different names, the plainest ones last."""
    plain = [f"{a} {b}" for a in FIRST for b in LAST]
    longer = [f"{a} {name}" for name in plain for a in FIRST if not name.startswith(a)]
    return [*rng.permutation(longer)[: max(0, n - len(plain))].tolist(), *rng.permutation(plain).tolist()]


def _more_parents(rng: np.random.Generator, members: list[int], child: int, mean: float) -> set[int]:
    """Most of the same domain, some of any."""
    n = rng.poisson(mean)
    own = [members[i] for i in rng.integers(0, len(members), n)]
    return {other if rng.random() < 0.8 else int(rng.integers(0, child)) for other in own} - {child}


def _write(store: GraphStore, grown: list[Concept], pairs: list[tuple[int, int]]) -> None:
    broad = {parent for parent, _ in pairs}
    grown = [
        _judged(concept, atomic=False if row in broad else True if row % 4 else None)
        for row, concept in enumerate(grown)
    ]
    sources: list[Source] = []
    edges: list[Edge] = []
    for at in range(0, len(pairs), PAGES):
        told = [(grown[parent], grown[child]) for parent, child in pairs[at : at + PAGES]]
        said = [f"What is called {child.name} is one kind of {parent.name}." for parent, child in told]
        page = Source(
            url=f"https://pages.example/{at // PAGES}", title=f"Kinds, part {at // PAGES + 1}", text=" ".join(said),
            licence="CC-BY-4.0", retrieved_at="2026-01-31T12:00:00Z",
        )  # fmt: skip
        sources.append(page)
        start = 0
        for (parent, child), text in zip(told, said, strict=True):
            edges.append(Edge(parent=parent.id, child=child.id, spans=(page.span(start, start + len(text)),)))
            start += len(text) + 1
    store.commit(Change(sources=tuple(sources), concepts=tuple(grown), edges=tuple(edges), note="planted"))
    store.put_tasks(_task(concept, number) for number, concept in enumerate(grown[::7]))


def _judged(concept: Concept, *, atomic: bool | None) -> Concept:
    return Concept(**{**vars(concept), "atomic": atomic})


def _task(concept: Concept, number: int) -> TaskRecord:
    return TaskRecord(
        id=f"t_{number:016x}", type="choice", domain=concept.domain, granularity="fine", attempts=8, policy="base",
        prompt=f"Which of these is said of {concept.name}?", concepts=(concept.id,), pass_rate=number % 9 / 8,
    )  # fmt: skip


if __name__ == "__main__":
    planted = plant(open_store(str(Path(sys.argv[1]))), int(sys.argv[2]))
    print(f"{len(planted):,} concepts in {sys.argv[1]}")
