"""What training says about the graph: where it should grow, and how hard the next tasks should be.

    rates = solved(store.tasks(), structure, config)    how often the policy solves what tests a concept
    weights(rates, structure, config)                   how much is to be learnt there; `[grow] order = ["feedback"]` goes by it
    found = advice(rates, graph, config)                what to research again, and where tasks should be finer or coarser
    apply(graph, found)                                 writes that down, as one operation

**Rates.** A concept's estimate is the mean of a Beta posterior whose prior is what is known of its first parent, worth
`strength` replies; a root's prior is `prior`. So a concept with few replies stays near its parent (partial pooling: Efron and
Morris, JASA 70, 1975; Gelman et al., Bayesian Data Analysis, ch. 5). The interval is Wilson's (JASA 22, 1927) of these counts.

**Weights.** 4p(1-p) is the variance of a binary reward, scaled to [0, 1]. In group-relative RL (GRPO: Shao et al. 2024,
arXiv:2402.03300) a group of replies that are all right or all wrong has zero advantage and teaches nothing; DAPO drops such
groups (Yu et al. 2025, arXiv:2503.14476). The expected improvement of a policy is bounded from below by this variance (Bae et
al. 2025, arXiv:2504.03380), and tasks drawn by it are learnt faster (Rutherford et al. 2024, arXiv:2408.15099; Foster et al.
2025, arXiv:2502.12272). GraphGen (arXiv:2505.20416) weights a graph by a trainee's loss too, but once, before anything is made.

**Advice** takes for granted that finer concepts are harder. It is given only where the interval leaves no doubt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from statistics import NormalDist
from typing import Any, Literal

from kgsynth.concept import Concept, Decision
from kgsynth.errors import ConfigError
from kgsynth.graph import ConceptGraph
from kgsynth.store import Change, CommitResult, FrontierItem, GraphStore, Row, TaskRecord, rows
from kgsynth.structure import Structure

KIND = "feedback"  # of the decisions that remember advice
UNTRIED = 0.5  # the weight of a concept that nothing is known of, as the frontier assumes
REACH = 4  # edges over which what is known of a concept says something about others
DIGITS = 6  # of the numbers by which evidence is recognised

Verdict = Literal["mastered", "learnable", "hopeless", "unsure"]
Step = Literal["reopen", "finer", "coarser", "keep"]


@dataclass(frozen=True, kw_only=True)
class FeedbackConfig:
    """[feedback]: how results of training are read."""

    prior: float = 0.5  # pass rate assumed of a root before anything was tried
    strength: float = 2.0  # replies that a prior is worth: of a root `prior`, below it the parent's estimate
    related: float = 0.25  # of a reply's weight counts for the concepts that a task tests beside its first
    per_task: int = (
        8  # replies to one task that count at most: they are alike, more of them say little about the concept
    )
    confidence: float = 0.8  # of the interval
    min_attempts: float = 8.0  # weighted replies below which nothing is advised
    mastered: float = 0.7  # when the whole interval lies at or above
    hopeless: float = 0.2  # when the whole interval lies at or below
    decay: float = 0.5  # of what a tried concept says about an untried one, per edge

    def __post_init__(self) -> None:
        for key in ("prior", "confidence", "mastered", "hopeless"):
            _require(0 < getattr(self, key) < 1, key, getattr(self, key), "between 0 and 1")
        for key in ("related", "decay"):
            _require(0 <= getattr(self, key) <= 1, key, getattr(self, key), "from 0 to 1")
        _require(self.strength > 0, "strength", self.strength, "above 0")
        for key in ("per_task", "min_attempts"):
            _require(getattr(self, key) >= 1, key, getattr(self, key), "at least 1")
        if self.hopeless >= self.mastered:
            raise ConfigError(f"[feedback] hopeless = {self.hopeless} must be below mastered = {self.mastered}")


def _require(holds: bool, key: str, value: float, wanted: str) -> None:
    if not holds:
        raise ConfigError(f"[feedback] {key} must be {wanted}, not {value}")


# rates


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How often the policy solved the tasks of one concept."""

    tasks: int  # with a pass rate
    attempts: float  # replies, weighted: see FeedbackConfig.related and per_task
    right: float  # of them
    estimate: float  # of the pass rate, in (0, 1)
    low: float  # of the interval around it
    high: float

    @property
    def evidence(self) -> tuple[tuple[str, Any], ...]:
        """By which the same results are recognised."""
        return (
            ("tasks", self.tasks), ("attempts", round(self.attempts, DIGITS)), ("right", round(self.right, DIGITS))
        )  # fmt: skip

    def __str__(self) -> str:
        return f"{self.estimate:.2f} [{self.low:.2f}, {self.high:.2f}] from {self.attempts:g} replies to {self.tasks} tasks"


@dataclass
class _Tally:
    tasks: int = 0
    attempts: float = 0.0
    right: float = 0.0


def solved(
    tasks: Iterable[TaskRecord], structure: Structure, config: FeedbackConfig = FeedbackConfig()
) -> dict[str, Rate]:
    """The rates of the concepts that tried tasks test, in the order of the tasks. Unknown concepts are left out."""
    tallies = _pooled(tasks, structure, config)
    estimates = _estimates(tallies, structure, config)
    z = NormalDist().inv_cdf((1 + config.confidence) / 2)
    found: dict[str, Rate] = {}
    for concept_id, tally in tallies.items():
        low, high = wilson(estimates[concept_id], tally.attempts + config.strength, z)
        found[concept_id] = Rate(**vars(tally), estimate=estimates[concept_id], low=low, high=high)
    return found


def _pooled(tasks: Iterable[TaskRecord], structure: Structure, config: FeedbackConfig) -> dict[str, _Tally]:
    tallies: dict[str, _Tally] = {}
    for task in tasks:
        if task.pass_rate is None or not math.isfinite(task.pass_rate):
            continue
        rate = min(1.0, max(0.0, task.pass_rate))  # a reward, which may have been shaped
        replies = min(config.per_task, max(1, task.attempts))
        for place, concept_id in enumerate(dict.fromkeys(task.concepts)):
            weight = replies * (config.related if place else 1.0)
            if weight and concept_id in structure:
                tally = tallies.setdefault(concept_id, _Tally())
                tally.tasks += 1
                tally.attempts += weight
                tally.right += weight * rate
    return tallies


def _estimates(tallies: Mapping[str, _Tally], structure: Structure, config: FeedbackConfig) -> dict[str, float]:
    """Posterior means of the tallied concepts and of all above them on the way of first parents."""
    found: dict[str, float] = {}
    for concept_id in tallies:
        way = [concept_id]
        while way[-1] not in found and (above := structure.parents(way[-1])):
            way.append(above[0])
        mean = found.get(way[-1], config.prior)
        for here in reversed(way):
            if here not in found:
                tally = tallies.get(here, _Tally())
                found[here] = (tally.right + config.strength * mean) / (tally.attempts + config.strength)
            mean = found[here]
    return found


def wilson(p: float, n: float, z: float) -> tuple[float, float]:
    """The score interval for a share p of n trials (E. B. Wilson, JASA 22:158, 1927), z standard errors wide.

    >>> [round(end, 4) for end in wilson(0.5, 100, 1.96)]
    [0.4038, 0.5962]
    """
    square = z * z / n
    middle, half = p + square / 2, z * math.sqrt(p * (1 - p) / n + square / (4 * n))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


def verdict(rate: Rate, config: FeedbackConfig = FeedbackConfig()) -> Verdict:
    if rate.attempts < config.min_attempts:
        return "unsure"
    if rate.low >= config.mastered:
        return "mastered"
    return "hopeless" if rate.high <= config.hopeless else "learnable"


# weights


def weights(
    rates: Mapping[str, Rate], structure: Structure, config: FeedbackConfig = FeedbackConfig()
) -> dict[str, float]:
    """Concept id -> how much is to be learnt there, in [0, 1]; what is not in it has the weight UNTRIED.

    A tried concept has 4p(1-p), one that is hopeless nothing. An untried one is like those next to it, parents and children,
    that are fewest edges away from a tried one: their mean, drawn towards UNTRIED by `decay` per edge, up to REACH edges.
    """
    found = {i: 0.0 if verdict(rate, config) == "hopeless" else variance(rate.estimate) for i, rate in rates.items()}
    rim = list(found)
    for _ in range(REACH if config.decay else 0):
        heard: dict[str, list[float]] = {}
        for here in rim:
            for there in (*structure.parents(here), *structure.children(here)):
                if there not in found:
                    heard.setdefault(there, []).append(found[here])
        found |= {i: UNTRIED + config.decay * (math.fsum(said) / len(said) - UNTRIED) for i, said in heard.items()}
        rim = list(heard)
    return found


def variance(p: float) -> float:
    """Of a reward that is 1 with probability p, else 0; scaled to [0, 1]."""
    return 4 * p * (1 - p)


def to_learn(store: GraphStore, config: FeedbackConfig = FeedbackConfig()) -> dict[str, float]:
    """`weights` as the store stands: what the frontier asks for."""
    structure = Structure(store.skeleton())
    return weights(solved(known_tasks(store, structure), structure, config), structure, config)


def known_tasks(store: GraphStore, structure: Structure) -> list[TaskRecord]:
    """All tried tasks, with folded concepts as what they were folded into."""
    tasks = [task for task in store.tasks() if task.pass_rate is not None]
    lost = {i for task in tasks for i in task.concepts if i not in structure}
    kept = {i: concept.id for i in lost if (concept := store.concept(i)) is not None}
    return [_renamed(task, kept) if kept.keys() & set(task.concepts) else task for task in tasks]


def _renamed(task: TaskRecord, kept: Mapping[str, str]) -> TaskRecord:
    return TaskRecord(**{**asdict(task), "concepts": tuple(kept.get(i, i) for i in task.concepts)})


# advice


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is advised about one concept, and why."""

    concept: Concept
    rate: Rate
    verdict: Verdict
    step: Step
    reason: str
    others: tuple[str, ...] = ()  # concept ids: the finer or coarser ones that tasks should be about instead
    depth: int | None = None  # of the frontier item to make, for one that never was queued


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What `advice` found, in the order of the rates. Nothing is written before `apply`."""

    findings: tuple[Finding, ...] = ()

    def of(self, step: Step) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.step == step)

    @property
    def reopen(self) -> tuple[Finding, ...]:
        """Mastered, with nothing finer left to learn: to be researched again."""
        return self.of("reopen")

    @property
    def deeper(self) -> tuple[Finding, ...]:
        """Mastered, with finer concepts that are still to be learnt."""
        return self.of("finer")

    @property
    def coarser(self) -> tuple[Finding, ...]:
        """Hopeless, with something coarser that is not."""
        return self.of("coarser")

    @property
    def granularity(self) -> dict[str, Literal["finer", "coarser", "keep"]]:
        """Concept id -> where its next tasks should be, of all tried concepts."""
        return {f.concept.id: "finer" if f.step == "reopen" else f.step for f in self.findings}


def advice(
    rates: Mapping[str, Rate],
    graph: ConceptGraph,
    config: FeedbackConfig = FeedbackConfig(),
    *,
    max_depth: int | None = None,
) -> Advice:
    """max_depth: of `[grow]`; a concept there is not researched, so it is not re-opened either."""
    concepts = {c.id: c for c in graph.store.concepts(rates)}
    queue = {row["concept"]: row for row in _rows(graph.store, "frontier")}
    there = {i: rate for i, rate in rates.items() if i in concepts}
    known = _Known(graph, config, there, concepts, queue, _remembered(graph.store), max_depth)
    return Advice(findings=tuple(map(known.finding, there)))


@dataclass(frozen=True)
class _Known:
    """All that a finding rests on."""

    graph: ConceptGraph
    config: FeedbackConfig
    rates: Mapping[str, Rate]
    concepts: Mapping[str, Concept]
    queue: Mapping[str, Row]  # concept id -> frontier item
    remembered: frozenset[tuple[str, tuple[Any, ...]]]  # (concept id, evidence) for which it was re-opened
    max_depth: int | None
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.verdicts.update({i: verdict(rate, self.config) for i, rate in self.rates.items()})

    def finding(self, concept_id: str) -> Finding:
        match self.verdicts[concept_id]:
            case "mastered":
                return self._mastered(concept_id)
            case "hopeless":
                return self._hopeless(concept_id)
            case "learnable":
                return self._says(concept_id, "keep", "is solved sometimes: tasks about it teach")
        return self._says(concept_id, "keep", f"has fewer than {self.config.min_attempts:g} replies")

    def _mastered(self, concept_id: str) -> Finding:
        finer = [child.id for child in self.graph.children(concept_id)]
        left = [i for i in finer if self.verdicts.get(i) != "mastered"]
        ahead = tuple(i for i in left if self.verdicts.get(i) != "hopeless")
        if ahead:
            why = f"is mastered; {len(ahead)} of its {len(finer)} finer concepts are still to be learnt"
            return self._says(concept_id, "finer", why, others=ahead)
        if left:
            return self._says(concept_id, "keep", "is mastered, but what is finer is out of reach so far")
        if against := self._against(concept_id):
            return self._says(concept_id, "keep", f"is mastered, but {against}")
        why = f"is mastered, and {'so are all its finer concepts' if finer else 'nothing finer is known'}"
        return self._says(
            concept_id, "reopen", why, depth=None if concept_id in self.queue else self._depth(concept_id)
        )

    def _against(self, concept_id: str) -> str:
        """What speaks against researching it again; empty: nothing."""
        item, depth = self.queue.get(concept_id), self._depth(concept_id)
        if (concept_id, self.rates[concept_id].evidence) in self.remembered:
            return "was re-opened for these results before; train again, or make more tasks about it"
        if item is not None and item["state"] != "done":
            return "waits to be researched already"
        if self.max_depth is not None and depth >= self.max_depth:
            return f"is {depth} edges from its seed, where growth ends: raise [grow] max_depth"
        return ""

    def _depth(self, concept_id: str) -> int:
        """Edges from the nearest seed, as the frontier counts them."""
        if concept_id in self.queue:
            return self.queue[concept_id]["depth"]
        above = [self.queue[p.id]["depth"] for p in self.graph.parents(concept_id) if p.id in self.queue]
        return min(above) + 1 if above else self.graph.level(concept_id)

    def _hopeless(self, concept_id: str) -> Finding:
        """Tasks about the nearest coarser concepts that are not hopeless themselves come first."""
        rim = [concept_id]
        while rim := list(dict.fromkeys(p.id for i in rim for p in self.graph.parents(i))):
            if within := tuple(i for i in rim if self.verdicts.get(i) != "hopeless"):
                why = "is out of reach; its expansion can wait, and what is coarser comes first"
                return self._says(concept_id, "coarser", why, others=within)
        return self._says(concept_id, "keep", "is out of reach, and so is all above it; its expansion can wait")

    def _says(
        self, concept_id: str, step: Step, reason: str, *, others: tuple[str, ...] = (), depth: int | None = None
    ) -> Finding:
        return Finding(
            concept=self.concepts[concept_id], rate=self.rates[concept_id], verdict=self.verdicts[concept_id],
            step=step, reason=reason, others=others, depth=depth,
        )  # fmt: skip


def _remembered(store: GraphStore) -> frozenset[tuple[str, tuple[Any, ...]]]:
    decisions = (rows.to_decision(row) for row in _rows(store, "decision") if row["kind"] == KIND)
    return frozenset((d.subject, d.evidence) for d in decisions if d.outcome == "reopen")


def _rows(store: GraphStore, kind: str) -> Iterator[Row]:
    after = -1
    while page := store.export(kind, after):
        yield from page
        after = page[-1]["n"]


# writing it down


def apply(graph: ConceptGraph, found: Advice) -> CommitResult:
    """Re-open what is to be researched again, and record every piece of advice as a Decision. `op` 0: nothing was re-opened.

    One transaction. A concept is re-opened once for the same results, also when the operation was undone or another process
    applied the same: so it can be repeated after any kind of stop. Raises StaleError when a concept was removed meanwhile.
    """
    as_of, remembered = graph.store.version(), _remembered(graph.store)
    there = {c.id: c for c in graph.store.concepts(f.concept.id for f in found.reopen)}
    fresh = [f for f in found.reopen if f.concept.id in there and (f.concept.id, f.rate.evidence) not in remembered]
    others = [*found.deeper, *found.coarser]
    return graph.commit(
        Change(
            concepts=tuple(_unjudged(f) for f in fresh if there[f.concept.id].atomic),
            decisions=tuple(map(_decision, [*fresh, *others])),
            enqueue=tuple(FrontierItem(concept=f.concept.id, depth=f.depth) for f in fresh if f.depth is not None),
            reopen=tuple(f.concept.id for f in fresh),
            as_of=as_of,
            note=f"feedback: {len(fresh)} mastered concepts re-opened",
        )
    )


def _unjudged(finding: Finding) -> Concept:
    """Atomic no more, until it is researched: then it is judged by what is found."""
    concept = finding.concept
    reason = f"feedback: {finding.reason}; pass rate {finding.rate}"
    return Concept(name=concept.name, domain=concept.domain, sense=concept.sense, atomic=False, atomic_reason=reason)


def _decision(finding: Finding) -> Decision:
    return Decision(
        kind=KIND, subject=finding.concept.id, outcome=finding.step,
        reason=f"{finding.reason}; pass rate {finding.rate}", evidence=finding.rate.evidence,
    )  # fmt: skip
