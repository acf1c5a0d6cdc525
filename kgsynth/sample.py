"""Which task is asked for next: a seeded plan over domain x task type x granularity x scope x difficulty.

schedule = plan(graph, SampleConfig(tasks=2000, types={"choice": 1, "cloze": 1}), await survey(env))
for sample in schedule.samples(): ...

The wanted numbers are met jointly as far as the graph has material, within caps per concept and per source (`quota/`). The
plan is a sequence whose every prefix is as close to the shares as whole tasks allow, so a run can stop or resume anywhere:
sample i depends on the graph, the config and i only. Nothing is drafted here; what became of it all says `coverage.py`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgsynth.concept import Concept, content_id
from kgsynth.errors import ConfigError
from kgsynth.graph import ConceptGraph
from kgsynth.quota import Lots, Solution, Table, further, solve
from kgsynth.scope import Kinship, chooser
from kgsynth.task import DIFFICULTIES, GRANULARITIES, SCOPES

Capacity = Callable[[str, Concept], int]  # (task type, concept) -> how many different tasks its material can give
Keys = tuple[tuple[str, ...], ...]  # per axis, in the order of Cell, its values in order
SECTIONS = {
    "domain": "domains",
    "type": "types",
    "granularity": "granularity",
    "scope": "scopes",
    "difficulty": "difficulty",
}
MOST = 1_000_000  # tasks that a concept's material is taken for, at most
KNOWN = {"granularity": GRANULARITIES, "scopes": SCOPES, "difficulty": DIFFICULTIES}


@dataclass(frozen=True, kw_only=True)
class Quota:
    """`[[sample.quota]]`: so much of all tasks for these. An axis left out is split by its own weights."""

    weight: float
    domain: str = ""
    type: str = ""
    granularity: str = ""
    scope: str = ""
    difficulty: str = ""


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
    scopes: Mapping[str, float] = field(default_factory=dict)  # empty: of each type what it offers, evenly
    difficulty: Mapping[str, float] = field(default_factory=dict)  # likewise
    quota: tuple[Quota, ...] = ()  # a joint table instead of the product of the axes
    per_concept: int = 4  # tasks of one type about one concept, at most
    per_concept_total: int = 0  # tasks of all types about one concept, at most; 0: no cap
    per_source: int = 0  # tasks about the concepts of one source, at most; 0: no cap
    related: int = 2  # neighbours that accompany a concept, or siblings, at most
    hops: int = 3  # edges of a path, at most

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.per_concept < 1:
            raise ConfigError("[sample] tasks and per_concept must be at least 1")
        if self.related < 0 or self.per_concept_total < 0 or self.per_source < 0 or self.hops < 1:
            raise ConfigError(
                "[sample] related, per_concept_total and per_source must be at least 0 (0: no cap), hops at least 1"
            )
        for axis in ("types", "domains", "granularity", "scopes", "difficulty"):
            _check_weights(f"[sample.{axis}]", getattr(self, axis), KNOWN.get(axis))
        for axis, known in (("granularity", GRANULARITIES), ("scope", SCOPES), ("difficulty", DIFFICULTIES)):
            if unknown := {getattr(entry, axis) for entry in self.quota} - {"", *known}:
                raise ConfigError(f"[sample.quota] {axis} knows {', '.join(known)}, not {', '.join(sorted(unknown))}")
        _check_weights("[sample.quota]", {_label(i, entry): entry.weight for i, entry in enumerate(self.quota)})


def _check_weights(where: str, weights: Mapping[str, float], known: tuple[str, ...] | None = None) -> None:
    if known and (unknown := set(weights) - set(known)):
        raise ConfigError(f"{where} knows {', '.join(known)}, not {', '.join(sorted(unknown))}")
    for name, weight in weights.items():
        if not math.isfinite(weight) or weight < 0:
            raise ConfigError(f"{where} weights must be finite numbers of at least 0, not {name} = {weight}")
    if (weights and not math.isfinite(total := sum(weights.values()))) or (weights and not total):
        raise ConfigError(f"{where} weights must not all be 0, nor too large to add up: {dict(weights)}")


def _label(number: int, entry: Quota) -> str:
    return f"entry {number + 1} ({' '.join(getattr(entry, axis) or '*' for axis in Cell._fields)})"


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
    """One combination of the five axes."""

    domain: str
    type: str
    granularity: str
    scope: str = "concept"
    difficulty: str = "medium"


def cell_of(thing: object) -> Cell:
    """The cell of anything with the five attributes, a Sample or a Task, or of a row of `rejected.jsonl`."""
    if isinstance(thing, Mapping):
        return Cell(**{name: thing[name] for name in Cell._fields if name in thing})
    return Cell(*(getattr(thing, name) for name in Cell._fields))


@dataclass(frozen=True, kw_only=True)
class Supply:
    """What the task types offer and what the concepts' material gives. A call is a call of `capacity`."""

    capacity: Capacity
    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by type; a type left out: single concepts
    difficulties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by type; a type left out: medium
    sources: Mapping[str, str] = field(default_factory=dict)  # concept id -> id of the source its tasks count for

    def __call__(self, kind: str, concept: Concept) -> int:
        return self.capacity(kind, concept)

    def offers(self, kind: str, scope: str, difficulty: str) -> bool:
        return scope in self.scopes_of(kind) and difficulty in self.difficulties_of(kind)

    def scopes_of(self, kind: str) -> tuple[str, ...]:
        return self.scopes.get(kind, ("concept",))

    def difficulties_of(self, kind: str) -> tuple[str, ...]:
        return self.difficulties.get(kind, ("medium",))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many tasks of each cell there will be, about which concepts, and in which order."""

    config: SampleConfig
    supply: Supply
    kinship: Kinship
    keys: Keys
    concepts: tuple[Concept, ...]  # those with material, as `lots` numbers them
    lots: Lots
    table: Table  # tasks wanted, not rounded, over `keys`
    solution: Solution

    def samples(self, start: int = 0) -> Iterator[Sample]:
        """Samples `start`, `start + 1`, ... until everything is used up: also more than `config.tasks`, for replacements."""
        return itertools.starmap(self._sample, itertools.islice(self._draws(), start, None))

    def wants(self, cell: Cell, kept: Mapping[Cell, int]) -> bool:
        """Whether a task of this cell is still missing when so many are kept.

        Who passes over samples of cells that want none replaces what is rejected by its like.
        """
        return kept.get(cell, 0) < self.planned.get(cell, 0)

    @cached_property
    def planned(self) -> Mapping[Cell, int]:
        """Whole tasks per cell, of the first `config.tasks` samples."""
        return Counter(self.cell(at) for at, _ in self.solution.order)

    @cached_property
    def targets(self) -> Mapping[Cell, float]:
        """Tasks wanted per cell, not rounded: the sum is config.tasks, whether there is material or not."""
        return {self.cell(at): float(self.table.flat[at]) for at in np.flatnonzero(self.table).tolist()}

    def cell(self, at: int) -> Cell:
        """The cell of a flat index into `table`."""
        where = np.unravel_index(at, self.table.shape)
        return Cell(*(names[k] for names, k in zip(self.keys, where, strict=True)))

    def _draws(self) -> Iterator[tuple[int, int, int, int]]:
        """(index, cell, lot, variant)"""
        told = Counter[int]()
        later = further(self.solution, self.lots, _ties(self.config, self.keys))
        for index, (at, lot) in enumerate(itertools.chain(self.solution.order, later)):
            told[lot] += 1
            yield index, at, lot, told[lot] - 1

    def _sample(self, index: int, at: int, lot: int, variant: int) -> Sample:
        cell, concept = self.cell(at), self.concepts[self.lots.concept[lot]].id
        related = tuple(self._related(cell, concept, index))
        seed = self.config.seed
        return Sample(index=index, seed=seed, **cell._asdict(), concept=concept, related=related, variant=variant)

    def _related(self, cell: Cell, concept: str, index: int) -> list[str]:
        kin, order = self.kinship, chooser("near", self.config.seed, index)
        most = max(1, self.config.related)
        if cell.scope == "path":
            return kin.path(concept, order, self.config.hops)
        if cell.scope == "siblings":
            return kin.siblings(concept, order, most, self._able[cell.type].__contains__)
        if cell.scope == "pair":
            return kin.pair(concept, order(concept), list(self._able[cell.type]))
        return kin.neighbours(concept, order, self.config.related)

    @cached_property
    def _able(self) -> dict[str, dict[str, None]]:
        """Type -> ids of concepts with material for it, in order."""
        types = self.keys[1]
        pairs = sorted((self.concepts[c].id, t) for c, t in zip(self.lots.concept, self.lots.place[:, 1], strict=True))
        return {name: {i: None for i, t in pairs if t == k} for k, name in enumerate(types)}


def plan(graph: ConceptGraph, config: SampleConfig, supply: Supply | Capacity | None = None) -> Plan:
    """Solve the plan. supply: what types offer and material gives (default: single concepts, `per_concept` of every type).

    Raises ConfigError when no concept of the graph has material for any wanted domain, type and granularity.
    """
    if not isinstance(supply, Supply):
        supply = Supply(capacity=supply or (lambda *_: config.per_concept))
    kinship = Kinship(graph)
    pieces = _pieces(kinship, config, supply)
    keys = _keys(config, pieces, supply)
    if not pieces:
        raise _nothing(keys)
    concepts = tuple({piece.concept.id: piece.concept for piece in pieces}.values())
    lots, table = _lots(pieces, concepts, keys, config, supply, kinship), _table(config, pieces, keys, supply)
    offered = np.array([[[supply.offers(t, s, f) for f in keys[4]] for s in keys[3]] for t in keys[1]])
    solution = solve(table, np.broadcast_to(offered[None, :, None], table.shape), lots, _ties(config, keys))
    if not solution.order:
        raise _nothing(keys)
    return Plan(
        config=config, supply=supply, kinship=kinship, keys=keys, concepts=concepts, lots=lots, table=table,
        solution=solution,
    )  # fmt: skip


def sample(graph: ConceptGraph, config: SampleConfig, supply: Supply | Capacity | None = None) -> list[Sample]:
    """The first `config.tasks` samples of the plan; fewer when the graph has no more material."""
    return list(itertools.islice(plan(graph, config, supply).samples(), config.tasks))


class _Piece(NamedTuple):
    """A concept's material for a type: before it is known how much of it is needed."""

    order: str  # seeded
    concept: Concept
    type: str
    granularity: str
    tasks: int


def _pieces(kinship: Kinship, config: SampleConfig, supply: Supply) -> list[_Piece]:
    """All that may be wanted, in seeded order."""
    domains, types, granularities = (_named(config, axis) for axis in Cell._fields[:3])
    found = []
    for concept in kinship.concepts:
        if domains and concept.domain not in domains:
            continue
        if (granularity := kinship.granularity[concept.id]) not in granularities:
            continue
        for kind in sorted(types):
            if (tasks := min(supply(kind, concept), MOST)) > 0:
                order = content_id("draw", str(config.seed), kind, concept.id)
                found.append(_Piece(order, concept, kind, granularity, tasks))
    return sorted(found, key=lambda piece: piece.order)


def _named(config: SampleConfig, axis: str) -> set[str]:
    """The values of an axis with a weight. Empty: all that there are."""
    named = {getattr(entry, axis) for entry in config.quota if entry.weight}
    weights = getattr(config, SECTIONS[axis])
    left_open = "" in named or not named
    if left_open and not weights:
        return set()
    return (named - {""}) | ({name for name, weight in weights.items() if weight} if left_open else set())


def _keys(config: SampleConfig, pieces: Sequence[_Piece], supply: Supply) -> Keys:
    types = _named(config, "type")
    domains = _named(config, "domain") or {piece.concept.domain for piece in pieces}
    named = {entry.scope for entry in config.quota} - {""}, {entry.difficulty for entry in config.quota} - {""}
    scopes = _named(config, "scope") or named[0].union(*map(supply.scopes_of, types))
    difficulties = _named(config, "difficulty") or named[1].union(*map(supply.difficulties_of, types))
    axes = (domains, types, _named(config, "granularity"), scopes, difficulties)
    return tuple(tuple(sorted(axis)) for axis in axes)


def _table(config: SampleConfig, pieces: Sequence[_Piece], keys: Keys, supply: Supply) -> Table:
    """Tasks wanted per cell: of each quota, its share times the shares of the axes that it leaves open."""
    domains = config.domains or Counter(c.domain for c in {p.concept.id: p.concept for p in pieces}.values())
    entries = config.quota or (Quota(weight=1.0),)
    table = np.zeros([len(names) for names in keys])
    for entry in entries:
        shares = [
            _shares(keys[0], entry.domain, domains),
            _shares(keys[1], entry.type, config.types),
            _shares(keys[2], entry.granularity, config.granularity),
            np.array([_shares(keys[3], entry.scope, config.scopes, supply.scopes_of(t)) for t in keys[1]]),
            np.array(
                [_shares(keys[4], entry.difficulty, config.difficulty, supply.difficulties_of(t)) for t in keys[1]]
            ),
        ]
        table += entry.weight * np.einsum("d,t,g,ts,tf->dtgsf", *shares)
    return table * (config.tasks / table.sum())


def _shares(
    names: Sequence[str], only: str, weights: Mapping[str, float], offered: Sequence[str] = ()
) -> NDArray[np.float64]:
    """One for each name, their sum is 1: all for `only` where one is named, else by weight, else even over what is offered."""
    weights = {only: 1.0} if only else weights or dict.fromkeys(offered, 1.0)
    found = np.array([weights.get(name, 0.0) for name in names])
    return found / max(found.sum(), 1e-300)


def _lots(
    pieces: Sequence[_Piece],
    concepts: Sequence[Concept],
    keys: Keys,
    config: SampleConfig,
    supply: Supply,
    kin: Kinship,
) -> Lots:
    row = {concept.id: k for k, concept in enumerate(concepts)}
    number = [{name: k for k, name in enumerate(names)} for names in keys[:3]]
    sources = [supply.sources.get(concept.id, "") for concept in concepts]
    source = {name: k for k, name in enumerate(dict.fromkeys(filter(None, sources)))}
    place = [(p.concept.domain, p.type, p.granularity) for p in pieces]
    raw = np.array([piece.tasks for piece in pieces])
    return Lots(
        place=np.array([[at[name] for at, name in zip(number, names, strict=True)] for names in place]),
        scopes=_able_scopes(pieces, keys[3], kin),
        size=np.minimum(raw, config.per_concept),
        raw=raw,
        concept=np.array([row[piece.concept.id] for piece in pieces]),
        source=np.array([source.get(name, -1) for name in sources]),
        per_concept_total=config.per_concept_total,
        per_source=config.per_source,
    )


def _able_scopes(pieces: Sequence[_Piece], scopes: Sequence[str], kin: Kinship) -> NDArray[np.bool_]:
    """[pieces, scopes]: which scopes each concept can be the centre of."""
    by_type: dict[str, list[str]] = {}
    for piece in pieces:
        by_type.setdefault(piece.type, []).append(piece.concept.id)
    pairs = {kind: kin.have_pairs(able) for kind, able in by_type.items()} if "pair" in scopes else {}
    can: dict[str, Callable[[_Piece], bool]] = {
        "concept": lambda _: True,
        "path": lambda piece: kin.has_path(piece.concept.id),
        "siblings": lambda piece: kin.has_siblings(piece.concept.id),
        "pair": lambda piece: piece.concept.id in pairs[piece.type],
    }
    return np.array([[can[scope](piece) for scope in scopes] for piece in pieces])


def _ties(config: SampleConfig, keys: Keys) -> Table:
    """What decides between cells that are equally due, in [0, 1): random, and the same whatever other cells there are."""
    parts = [
        np.array([int(content_id("tie", str(config.seed), axis, name)[-12:], 16) / 16**12 for name in names])
        for axis, names in zip(Cell._fields, keys, strict=True)
    ]
    return np.sum(np.broadcast_arrays(*np.ix_(*parts)), axis=0) % 1.0


def _nothing(keys: Keys) -> ConfigError:
    wanted = "; ".join(f"{axis}: {', '.join(names) or '(any)'}" for axis, names in zip(Cell._fields, keys, strict=True))
    return ConfigError(
        f"[sample] nothing to sample: no concept of the graph has material for what is wanted ({wanted}); wish for other "
        "types, domains, granularities, scopes or difficulties, or grow the graph"
    )
