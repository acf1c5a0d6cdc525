"""Questions that several facts answer together: a chain of relations from a described thing, or two chains that meet.

A question is kept when it has one answer with all its facts, at least two possible ones whenever a single fact is taken
away (`needs_all`), and when no cited page holds what a chain starts from together with the answer (`has_shortcut`).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kgsynth.concept import Concept, content_id
from kgsynth.synthesize.facts import Fact, Facts, concept_of
from kgsynth.verifiers.text import normalise

STEPS = ("class", "raises", "returns", "inverse", "like", "base", "module")
UPWARD = ("raises", "returns", "class", "base")  # what a line of classes may start with
DESCRIPTION_WORDS = 5  # at least
TOO_COMMON = ("BaseException", "object")  # where every chain ends
WEAK_START = re.compile(r"Has the methods|Alias for field|An enumeration|Bases?\b|.*\b(?:see|See) ")
COMPOUND = re.compile(r"[a-z][A-Z]|_")
UPPER = 4  # hops
PASSAGE_CHARS = 1500  # as long as what a search for material quotes (`RetrieveConfig`)
LEAST_OF_AN_ANSWER, MOST_OF_AN_ANSWER = 5, 0.08  # puzzles with the same answer: never fewer, else this share of all
PARTNERS = 10  # of a start, for each class above it and for each number


@dataclass(frozen=True)
class Chain:
    """A subject that a sentence describes, and the facts that lead from it to the end, one after the other."""

    start: Fact  # its `doc`
    steps: tuple[Fact, ...]

    @property
    def facts(self) -> tuple[Fact, ...]:
        return (self.start, *self.steps)

    @property
    def end(self) -> str:
        return self.steps[-1].object if self.steps else self.start.subject


@dataclass(frozen=True)
class Puzzle:
    """Chains and how their ends make the answer: "end" (of the only one), "meet" (the nearest class above both starts)
    or "sum" (of two numbers)."""

    chains: tuple[Chain, ...]
    join: str
    answer: str

    @property
    def hops(self) -> int:
        return sum(len(chain.steps) for chain in self.chains)

    @property
    def facts(self) -> tuple[Fact, ...]:
        return tuple(fact for chain in self.chains for fact in chain.facts)

    @property
    def key(self) -> str:
        return content_id("puzzle", self.join, *(part for f in self.facts for part in (f.subject, f.relation)))


class Puzzles:
    """Every question of a fact base that passes the checks, by the concept that its first chain starts from."""

    def __init__(self, facts: Facts, concepts: Sequence[Concept]) -> None:
        self.facts = facts
        self._by_key = {key: concept for concept in reversed(concepts) for key in concept.keys}

    @cached_property
    def starts(self) -> Mapping[str, tuple[Fact, ...]]:
        """Concept id -> the sentences that describe it, or a part of it, and nothing else."""
        found: dict[str, list[Fact]] = defaultdict(list)
        for subject in self.facts.documented:
            fact = self.facts.relation("doc")[subject]
            concept = self.concept(subject)
            if concept and _describes(fact):
                found[concept.id].append(fact)
        return {concept: tuple(facts) for concept, facts in found.items()}

    @cached_property
    def answers(self) -> Counter[str]:
        """How many chains lead to each answer: rare ones are asked first, because the commonest are guessed."""
        return Counter({name: len(lines) for name, lines in self._lines.items()})

    def concept(self, name: str) -> Concept | None:
        """The concept that a name is, or is a part of."""
        return concept_of(name, self._by_key)

    def of(self, concept: str, scope: str) -> Sequence[Puzzle]:
        """The puzzles of a concept: those that lead through it, each given to one concept only."""
        return self._shared[scope].get(concept, ())

    @cached_property
    def _shared(self) -> Mapping[str, Mapping[str, Sequence[Puzzle]]]:
        """Scope -> concept id -> puzzles. Each goes to the concept on its way that has the fewest so far."""
        shared: dict[str, dict[str, list[Puzzle]]] = {"path": defaultdict(list), "pair": defaultdict(list)}
        for scope, puzzles in (("path", self._paths()), ("pair", self._pairs())):
            given: Counter[str] = Counter()
            for puzzle in sorted(puzzles, key=lambda puzzle: puzzle.key):
                given[puzzle.answer] += 1
                if given[puzzle.answer] > max(LEAST_OF_AN_ANSWER, len(puzzles) * MOST_OF_AN_ANSWER):
                    continue
                names = [
                    name for fact in puzzle.facts for name in (fact.subject, fact.object) if fact.relation != "doc"
                ]
                concepts = dict.fromkeys(c.id for c in map(self.concept, names) if c)
                shared[scope][min(concepts, key=lambda c: len(shared[scope][c]))].append(puzzle)
        return shared

    def _paths(self) -> list[Puzzle]:
        """Single chains."""
        chains = [chain for starts in self.starts.values() for start in starts for chain in self._chains(start)]
        return [p for chain in chains if self._sound(p := Puzzle((chain,), "end", chain.end))]

    def _pairs(self) -> list[Puzzle]:
        """Two chains that meet in a class, or whose numbers are added."""
        starts = [start for found in self.starts.values() for start in found]
        both = {p.key: p for start in starts for p in (*self._meetings(start), *self._sums(start))}
        once = {tuple(sorted(chain.start.subject for chain in p.chains)): p for p in both.values()}
        return [puzzle for puzzle in once.values() if self._sound(puzzle)]

    def _chains(self, start: Fact) -> Iterator[Chain]:
        """Every chain of two to UPPER relations."""
        open_ends = [Chain(start, ())]
        for length in range(1, UPPER + 1):
            longer = [Chain(start, (*chain.steps, fact)) for chain in open_ends for fact in self._steps(chain)]
            yield from (chain for chain in longer if length > 1)
            open_ends = [chain for chain in longer if not chain.steps[-1].relation.startswith("default")]

    def _steps(self, chain: Chain) -> Iterator[Fact]:
        """What may follow, without a circle."""
        subject, met = chain.end, {fact.subject for fact in chain.facts}
        for relation in self._relations:
            fact = self.facts.fact(subject, relation)
            if fact and fact.object not in met:
                yield fact
        if chain.steps:
            for relation in self.facts.relations:
                if relation.startswith("default") and (fact := self.facts.fact(subject, relation)):
                    yield fact

    @cached_property
    def _relations(self) -> tuple[str, ...]:
        """What a page lists says less than the others, so that it leads on only where the pages state none of these."""
        return STEPS if any(map(self.facts.relation, STEPS)) else ("topic",)

    @cached_property
    def _lines(self) -> Mapping[str, tuple[Chain, ...]]:
        """Class -> the chains that lead up to it."""
        found: dict[str, list[Chain]] = defaultdict(list)
        for starts in self.starts.values():
            for start in starts:
                for line in self._upward(start):
                    found[line.end].append(line)
        return {name: tuple(lines) for name, lines in found.items() if name not in TOO_COMMON}

    def _upward(self, start: Fact) -> Iterator[Chain]:
        for first in filter(None, (self.facts.fact(start.subject, name) for name in UPWARD)):
            for n, _ in enumerate(bases := (first, *self.facts.chain(first.object, "base")), 1):
                yield Chain(start, bases[:n])

    def _meetings(self, start: Fact) -> Iterator[Puzzle]:
        """The start with up to eight others for each class above it."""
        for line in self._upward(start):
            mine = {fact.object for fact in line.steps[:-1]} | {start.subject}
            others = _turned(self._lines.get(line.end, ()), start.subject)
            fitting = (
                other
                for other in others
                if 3 <= len(line.steps) + len(other.steps) <= UPPER + 1
                and not mine & ({fact.object for fact in other.steps[:-1]} | {other.start.subject})
                and other.start.subject != line.end
            )
            yield from (Puzzle((line, other), "meet", line.end) for other in itertools.islice(fitting, PARTNERS))

    def _sums(self, start: Fact) -> Iterator[Puzzle]:
        for fact in self._numbers.get(start.subject, ()):
            others = [other for other in _turned(self._counted, start.subject) if other.start.subject != start.subject]
            for other in others[:PARTNERS]:
                total = int(fact.object) + int(other.end)
                yield Puzzle((Chain(start, (fact,)), other), "sum", str(total))

    @cached_property
    def _counted(self) -> tuple[Chain, ...]:
        """Every described subject with a number."""
        starts = {start.subject: start for found in self.starts.values() for start in found}
        return tuple(Chain(starts[s], (fact,)) for s, facts in self._numbers.items() if s in starts for fact in facts)

    @cached_property
    def _numbers(self) -> Mapping[str, tuple[Fact, ...]]:
        """Subject -> its defaults that are whole numbers over 1."""
        found: dict[str, list[Fact]] = defaultdict(list)
        for relation in self.facts.relations:
            for subject, fact in self.facts.relation(relation).items():
                if relation.startswith("default") and fact.object.isdecimal() and int(fact.object) > 1:
                    found[subject].append(fact)
        return {subject: tuple(facts) for subject, facts in found.items()}

    def _sound(self, puzzle: Puzzle) -> bool:
        if puzzle.answer in TOO_COMMON or names_its_way(puzzle):
            return False
        return needs_all(puzzle, self.facts) and not has_shortcut(puzzle, self.facts)


def _turned(chains: Sequence[Chain], key: str) -> Sequence[Chain]:
    """The same chains, from a place on that depends on the key."""
    at = int(content_id("turn", key)[-8:], 16) % len(chains) if chains else 0
    return (*chains[at:], *chains[:at])


def _describes(fact: Fact) -> bool:
    """Does the sentence say enough, without the name of what it describes?"""
    words = normalise(fact.object).split()
    tail = normalise(fact.subject.rsplit(".", 1)[-1]).strip("_")
    return (
        len(words) >= DESCRIPTION_WORDS
        and len(fact.object) <= 200
        and not WEAK_START.match(fact.object)
        and not re.search(rf"(?<![a-z]){re.escape(tail)}", normalise(fact.object))
        and not any(part.startswith("_") for part in fact.subject.split("."))
    )


def solve(puzzle: Puzzle, facts: Facts, without: Fact | None = None) -> set[str]:
    """The answers that the facts allow when one of them is unknown: then anything that its relation holds is possible."""
    ends = [_reached(chain, facts, without) for chain in puzzle.chains]
    if puzzle.join == "end":
        return ends[0][-1]
    if puzzle.join == "sum":
        return {str(int(a) + int(b)) for a in ends[0][-1] for b in ends[1][-1] if a.isdecimal() and b.isdecimal()}
    lines = [_lines_up(chain, facts, without) for chain in puzzle.chains]
    return {meeting for a in lines[0] for b in lines[1] if (meeting := next((name for name in a if name in b), ""))}


def _reached(chain: Chain, facts: Facts, without: Fact | None) -> list[set[str]]:
    """What each place of a chain may be."""
    first = chain.steps[0].relation
    places = [set(facts.relation(first)) if chain.start is without else {chain.start.subject}]
    for step in chain.steps:
        known = [facts.fact(subject, step.relation) for subject in places[-1]]
        objects = {fact.object for fact in known if fact and fact is not without}
        places.append(
            objects | ({f.object for f in facts.relation(step.relation).values()} if without in known else set())
        )
    return places


def _lines_up(chain: Chain, facts: Facts, without: Fact | None) -> list[tuple[str, ...]]:
    """The lines of classes, nearest first, that the first place above the start may lead along."""
    lines: list[tuple[str, ...]] = []
    for name in sorted(_reached(Chain(chain.start, chain.steps[:1]), facts, without)[1]):
        line = facts.line(name)
        cut = next((i for i, n in enumerate(line) if without is not None and facts.fact(n, "base") is without), None)
        rests = {f.object for f in facts.relation("base").values()} if cut is not None else {""}
        lines += [(*line[: len(line) if cut is None else cut + 1], *([rest] if rest else ())) for rest in sorted(rests)]
    return lines


def needs_all(puzzle: Puzzle, facts: Facts) -> bool:
    """One answer with every fact, several possible ones without any single one."""
    return solve(puzzle, facts) == {puzzle.answer} and all(len(solve(puzzle, facts, fact)) > 1 for fact in puzzle.facts)


def names_its_way(puzzle: Puzzle) -> bool:
    """Does a sentence that the question quotes name something on the way, "ValueError" also as "a value error"?"""
    said = " ".join(chain.start.object for chain in puzzle.chains)
    squeezed = re.sub(r"\W", "", said).casefold()
    names = [fact.object for chain in puzzle.chains for fact in chain.steps if not fact.relation.startswith("default")]
    tails = [name.rsplit(".", 1)[-1] for name in names]
    return any(
        tail in re.findall(r"\w+", said) or (COMPOUND.search(tail) and tail.casefold() in squeezed) for tail in tails
    )


def has_shortcut(puzzle: Puzzle, facts: Facts) -> bool:
    """Does a passage of a cited page, or the question itself, hold every start together with the answer?"""
    starts = [chain.start.object for chain in puzzle.chains]
    names = "|".join(map(re.escape, facts.spellings(puzzle.answer)))
    answer = re.compile(rf"(?<![\w.])(?:{names})(?!\w)", re.IGNORECASE)
    texts = {fact.page for fact in puzzle.facts}
    return bool(answer.search("\n".join(starts))) or any(_near(text, starts, answer) for text in texts)


def _near(text: str, starts: Sequence[str], answer: re.Pattern[str]) -> bool:
    """Do all of them stand within one passage of the text?"""
    places = [[m.start() for m in re.finditer(re.escape(start), text)] for start in starts]
    if not all(places):
        return False
    places.append([m.start() for m in answer.finditer(text)])
    return any(max(choice) - min(choice) <= PASSAGE_CHARS for choice in itertools.product(*places))
