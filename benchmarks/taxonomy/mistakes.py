"""What went wrong, by kind and with its cause where the record tells it: counts for all, a few examples for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.taxonomy.noise import Noise, Told
from benchmarks.taxonomy.score import Pair, Score
from kgsynth.concept import Concept, Decision, name_key

NO_MATCH = ("new", "sense")  # outcomes of dedup that make a concept of its own


@dataclass
class Mistakes:
    """Kind -> how many, and the first few in words."""

    most: int = 5
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= self.most:
            self.examples.setdefault(kind, []).append(text)


def find_mistakes(
    concepts: Sequence[Concept], edges: Sequence[Pair], decisions: Iterable[Decision], score: Score, noise: Noise,
    most: int = 5,
) -> Mistakes:  # fmt: skip
    """Compare a grown graph with the truth behind `noise`. `most` examples per kind."""
    found = Mistakes(most)
    case = _Case(concepts, edges, decisions, score, noise)
    for part in (case.doubles, case.strangers, case.lost, case.wrong_edges, case.missing_edges, case.wrong_atoms):
        for kind, text in part():
            found.add(kind, text)
    return found


class _Case:
    """The graph, the truth, and who means whom."""

    def __init__(
        self, concepts: Sequence[Concept], edges: Sequence[Pair], decisions: Iterable[Decision], score: Score, noise: Noise
    ) -> None:  # fmt: skip
        self.grown = {c.id: c for c in concepts}
        self.edges, self.score, self.noise, self.truth = edges, score, noise, noise.taxonomy
        self.means = score.meaning
        self.by_truth = {t: g for g, t in reversed(self.means.items())}
        self.told: dict[str, list[tuple[str, Told]]] = {}  # true concept -> (parent, how it was proposed)
        for parent in self.truth:
            for told in noise.proposals(parent.id):
                if told.concept and told.kind != "reversed":
                    self.told.setdefault(told.concept, []).append((parent.id, told))
        self.decided: dict[str, list[Decision]] = {}  # name_key of a candidate -> what was decided
        for decision in decisions:
            self.decided.setdefault(name_key(decision.subject), []).append(decision)

    def doubles(self) -> Iterator[tuple[str, str]]:
        for double, first in self.score.duplicates.items():
            a, b, meant = self.grown[double], self.grown[first], self.truth[self.means[double]]
            yield "duplicate", f"{a.name!r} beside {b.name!r}: both are {meant.label!r} ({meant.id})"

    def strangers(self) -> Iterator[tuple[str, str]]:
        for g in (g for g in self.grown.values() if g.id not in self.means):
            yield "not in the truth", f"{g.name!r}"

    def lost(self) -> Iterator[tuple[str, str]]:
        for concept in self.truth:
            if concept.id not in self.by_truth:
                cause, detail = self._why(concept.id)
                yield f"missing: {cause}", f"{concept.label!r} ({concept.id}){detail}"

    def _why(self, concept: str) -> tuple[str, str]:
        """Why a true concept was not grown, and the names that belong to it."""
        told = self.told.get(concept, [])
        if not told:
            return ("a root" if not self.truth[concept].parents else "left out by the noise"), ""
        asked = [(parent, t) for parent, t in told if parent in self.by_truth]
        if not asked:
            return "its parents are missing", ""
        for parent, t in asked:
            if merged := self._merged(t):
                return "merged with another", merged
            if self.grown[self.by_truth[parent]].atomic:
                return "its parent was held to be atomic", f" below {self.truth[parent].label!r}"
        outcomes = sorted({d.outcome for _, t in asked for d in self._decisions(t)})
        return "was proposed", f" as {asked[0][1].name!r}, decided: {', '.join(outcomes) or 'nothing'}"

    def _merged(self, told: Told) -> str:
        """By which rule a proposal was taken for something else."""
        for decision in self._decisions(told):
            if decision.kind == "dedup" and decision.outcome not in NO_MATCH:
                evidence = dict(decision.evidence)
                into, how = evidence.get("neighbour", "?"), evidence.get("similarity", "")
                return f" as {told.name!r} taken for {into!r} by rule {decision.outcome} {how} ({decision.reason})"
        return ""

    def _decisions(self, told: Told) -> list[Decision]:
        """About a name, or about what is left of it when "(...)" is taken for its sense."""
        keys = dict.fromkeys(map(name_key, (told.name, told.name.rpartition("(")[0])))
        return [d for key in keys if key for d in self.decided.get(key, ())]

    def wrong_edges(self) -> Iterator[tuple[str, str]]:
        true = set(self.truth.edges)
        for a, b in self.edges:
            pair = self.means.get(a), self.means.get(b)
            if pair not in true and None not in pair:
                yield "wrong edge", f"{self.grown[a].name!r} -> {self.grown[b].name!r}"

    def missing_edges(self) -> Iterator[tuple[str, str]]:
        there = {(self.means.get(a), self.means.get(b)) for a, b in self.edges}
        for parent, child in self.truth.edges:
            if (parent, child) not in there and parent in self.by_truth and child in self.by_truth:
                names = [t.name for p, t in self.told.get(child, ()) if p == parent]
                told = f", told as {names[0]!r}" if names else ", left out by the noise"
                yield "missing edge", f"{self.truth[parent].label!r} -> {self.truth[child].label!r}{told}"

    def wrong_atoms(self) -> Iterator[tuple[str, str]]:
        for g, t in self.means.items():
            atomic, leaf = bool(self.grown[g].atomic), self.truth.is_leaf(t)
            if atomic != leaf:
                yield ("atomic, but no leaf" if atomic else "a leaf, but not atomic"), f"{self.grown[g].name!r}"
