"""Which task is asked for next: a seeded plan over domain x task type x granularity.

The wanted shares of the three axes are met jointly as far as the graph has material: cells without material get nothing,
and iterative proportional fitting (Deming & Stephan, 1940) moves their share to cells that keep the axes' totals. The
plan is a sequence whose every prefix is as close to these shares as whole tasks allow, so a run can stop or resume
anywhere: sample i depends on the graph, the config and i only. Nothing is drafted here.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgsynth.concept import Concept, content_id
from kgsynth.errors import ConfigError
from kgsynth.graph import ConceptGraph
from kgsynth.task import GRANULARITIES

Capacity = Callable[[str, Concept], int]  # (task type, concept) -> how many different tasks its material can give


@dataclass(frozen=True, kw_only=True)
class SampleConfig:
    """Section `[sample]`. Weights need not sum to one; an absent entry of a non-empty mapping weighs nothing."""

    tasks: int = 300
    seed: int = 0
    types: Mapping[str, float] = field(
        default_factory=lambda: {"implement": 0.3, "predict": 0.3, "cloze": 0.15, "choice": 0.25}
    )
    domains: Mapping[str, float] = field(default_factory=dict)  # empty: the domains of the graph, by number of concepts
    granularity: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(GRANULARITIES, 1.0))
    per_concept: int = 4  # tasks of one type about one concept, at most
    related: int = 2  # neighbours that accompany a concept, at most

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.per_concept < 1 or self.related < 0:
            raise ConfigError("[sample] tasks and per_concept must be at least 1, related at least 0")
        if unknown := set(self.granularity) - set(GRANULARITIES):
            raise ConfigError(
                f"[sample.granularity] knows {', '.join(GRANULARITIES)}, not {', '.join(sorted(unknown))}"
            )
        for axis in ("types", "domains", "granularity"):
            weights = getattr(self, axis)
            if any(w < 0 for w in weights.values()) or (weights and not sum(weights.values())):
                raise ConfigError(f"[sample.{axis}] weights must be at least 0 and not all 0: {dict(weights)}")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A task asked for: which type, about which concept, and the how-manieth of its kind about that concept."""

    index: int
    seed: int
    type: str
    domain: str
    granularity: str
    concept: str  # Concept.id
    related: tuple[str, ...] = ()  # Concept.id of those it is about beside `concept`, as the scope says
    variant: int = 0  # 0 for the first task of this type about this concept, then 1, 2, ...
    scope: str = "concept"  # one of kgsynth.task.SCOPES
    difficulty: str = "medium"  # one of kgsynth.task.DIFFICULTIES


class Cell(NamedTuple):
    """One combination of the three axes."""

    domain: str
    type: str
    granularity: str


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What was wanted of a cell and what there is of it."""

    cell: Cell
    target: float  # tasks, not rounded
    capacity: int  # tasks the cell's concepts can give
    achieved: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The fitted shares of the cells and the concepts each draws from, in drawing order."""

    config: SampleConfig
    targets: Mapping[Cell, float]  # tasks, not rounded; the sum is config.tasks unless the capacity is smaller
    queues: Mapping[Cell, tuple[tuple[Concept, int], ...]]  # (concept, variant)
    neighbours: Callable[[Concept], list[str]]

    def samples(self, start: int = 0) -> Iterator[Sample]:
        """Samples `start`, `start + 1`, ... until every cell is used up: also more than `config.tasks`, for replacements."""
        return itertools.islice(self._all(), start, None)

    def _all(self) -> Iterator[Sample]:
        cells = [cell for cell, target in self.targets.items() if target > 0]
        share = np.array([self.targets[cell] for cell in cells])
        size = np.array([len(self.queues[cell]) for cell in cells])
        used = np.zeros(len(cells), dtype=int)
        for index in range(int(size.sum())):
            lag = np.where(used < size, (used + 0.5) / np.maximum(share, 1e-9), np.inf)
            k = int(np.argmin(lag))
            concept, variant = self.queues[cells[k]][used[k]]
            used[k] += 1
            yield self._sample(index, cells[k], concept, variant)

    def _sample(self, index: int, cell: Cell, concept: Concept, variant: int) -> Sample:
        near = sorted(self.neighbours(concept), key=lambda c: content_id("near", str(self.config.seed), str(index), c))
        return Sample(
            index=index,
            seed=self.config.seed,
            **cell._asdict(),
            concept=concept.id,
            related=tuple(near[: self.config.related]),
            variant=variant,
        )

    def coverage(self, made: Iterable[Cell]) -> list[Coverage]:
        """Target against achieved, per cell with material."""
        counts = Counter(made)
        return [
            Coverage(cell=cell, target=target, capacity=len(self.queues[cell]), achieved=counts[cell])
            for cell, target in self.targets.items()
        ]

    def deviation(self, made: Iterable[Cell]) -> dict[str, float]:
        """Per axis, the total variation distance in [0, 1] between the wanted shares and those of what was made."""
        counts = Counter(made)
        total = max(1, sum(counts.values()))
        axes = {"domain": _domain_weights(self.config, self.queues), "type": self.config.types}
        axes["granularity"] = self.config.granularity
        found: dict[str, float] = {}
        for axis, weights in axes.items():
            achieved: Counter[str] = Counter()
            for cell, n in counts.items():
                achieved[getattr(cell, axis)] += n
            norm = sum(weights.values())
            keys = set(weights) | set(achieved)
            found[axis] = sum(abs(weights.get(k, 0) / norm - achieved[k] / total) for k in keys) / 2
        return found


def cell_of(thing: object) -> Cell:
    """The cell of anything with the three attributes: a Sample or a Task."""
    return Cell(*(getattr(thing, name) for name in Cell._fields))


def plan(graph: ConceptGraph, config: SampleConfig, capacity: Capacity | None = None) -> Plan:
    """Fit the plan. `capacity` says what a concept's material can give (default: `per_concept` of every type).

    Raises ConfigError when no concept of the graph has material for any wanted domain, type and granularity.
    """
    queues = _queues(graph, config, capacity or (lambda *_: config.per_concept))
    if not any(queues.values()):
        raise ConfigError(
            f"[sample] nothing to sample: no concept of the graph has material for types {', '.join(config.types)} in "
            f"domains {', '.join(config.domains) or '(all)'} at granularity {', '.join(config.granularity)}"
        )
    return Plan(
        config=config,
        targets=_targets(config, queues),
        queues=queues,
        neighbours=lambda concept: _neighbours(graph, concept),
    )


def sample(graph: ConceptGraph, config: SampleConfig, capacity: Capacity | None = None) -> list[Sample]:
    """The first `config.tasks` samples of the plan; fewer when the graph has no more material."""
    return list(itertools.islice(plan(graph, config, capacity).samples(), config.tasks))


def _queues(
    graph: ConceptGraph, config: SampleConfig, capacity: Capacity
) -> dict[Cell, tuple[tuple[Concept, int], ...]]:
    """Per cell the (concept, variant) pairs: every concept's first task before any concept's second, seeded order."""
    pools: dict[Cell, list[tuple[int, str, Concept]]] = {}
    for concept in graph:
        if config.domains and not config.domains.get(concept.domain):
            continue
        granularity = graph.granularity(concept)
        for kind in config.types:
            cell = Cell(concept.domain, kind, granularity)
            if not config.types[kind] or not config.granularity.get(granularity):
                continue
            order = content_id("draw", str(config.seed), kind, concept.id)
            for variant in range(min(config.per_concept, capacity(kind, concept))):
                pools.setdefault(cell, []).append((variant, order, concept))
    return {
        cell: tuple((concept, variant) for variant, _, concept in sorted(pool, key=lambda row: row[:2]))
        for cell, pool in sorted(pools.items())
    }


def _domain_weights(
    config: SampleConfig, queues: Mapping[Cell, tuple[tuple[Concept, int], ...]]
) -> Mapping[str, float]:
    if config.domains:
        return config.domains
    concepts = {(cell.domain, concept.id) for cell, queue in queues.items() for concept, _ in queue}
    return Counter(domain for domain, _ in concepts)


def _targets(config: SampleConfig, queues: Mapping[Cell, tuple[tuple[Concept, int], ...]]) -> dict[Cell, float]:
    """Where the axes cannot all be met, types go before granularity, and granularity before domains."""
    axes = (_domain_weights(config, queues), config.granularity, config.types)
    names = [sorted(axis) for axis in axes]
    room = np.array([[[len(queues.get(Cell(d, t, g), ())) for t in names[2]] for g in names[1]] for d in names[0]])
    wanted = [np.array([axis[key] for key in keys], dtype=float) for axis, keys in zip(axes, names, strict=True)]
    fitted = fit_shares([config.tasks * w / w.sum() for w in wanted], room.astype(float))
    where = [{key: k for k, key in enumerate(keys)} for keys in names]
    return {c: float(fitted[where[0][c.domain], where[1][c.granularity], where[2][c.type]]) for c in queues}


def fit_shares(totals: list[NDArray[np.float64]], room: NDArray[np.float64], rounds: int = 200) -> NDArray[np.float64]:
    """Non-negative cells at most `room` whose sums along each axis come near to `totals[axis]`, later axes first.

    totals: one vector per axis of room, all with the same sum. The result's sum is min(that sum, room's sum).
    """
    size = min(totals[0].sum(), room.sum())
    cells = np.where(room > 0, 1.0, 0.0)
    axes = list(range(room.ndim))
    for axis in axes * rounds + axes[-1:] * rounds:
        others = tuple(k for k in axes if k != axis)
        have = cells.sum(axis=others)
        scale = np.divide(totals[axis], have, out=np.ones_like(have), where=have > 0)
        cells = np.minimum(cells * scale.reshape([-1 if k == axis else 1 for k in axes]), room)
    return _fill(cells, room, size)


def _fill(cells: NDArray[np.float64], room: NDArray[np.float64], size: float) -> NDArray[np.float64]:
    """Bring the sum to `size`: scale down, or spread what is missing over the free room."""
    if (total := cells.sum()) >= size:
        return cells * (size / total) if total else cells
    free = room - cells
    return cells + free * ((size - total) / free.sum())


def _neighbours(graph: ConceptGraph, concept: Concept) -> list[str]:
    """Siblings, parents and children, each once."""
    parents = graph.parents(concept)
    siblings = [child for parent in parents for child in graph.children(parent) if child.id != concept.id]
    return list(dict.fromkeys(c.id for c in (*siblings, *parents, *graph.children(concept))))
