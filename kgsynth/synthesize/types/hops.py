"""Multi-hop questions: the answer follows from several facts that different pages state, through things that are never named.

Why the reward is unarguable: every fact is read off a page by a strict pattern ("Bases: `LookupError`.", a signature, "Raises
KeyError if") and holds one object for its subject (`facts.py`). A question starts from a sentence that documents one thing
only. With all facts the answer is unique; without any single one at least two are possible; and no cited page holds the
start together with the answer (`synthesize/hops.py`). Every name under which the answer is known counts.

Scope "path" is one chain; "pair" joins two chains from different things: the nearest class that both are derived from, or the
sum of two defaults. Two hops are easy, three medium, four hard.
"""

from __future__ import annotations

from collections.abc import Iterator

from kgsynth.concept import Concept, content_id
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject
from kgsynth.synthesize.facts import Fact, Facts, source_name
from kgsynth.synthesize.hops import Chain, Puzzle, solve
from kgsynth.synthesize.material import Material
from kgsynth.task import DIFFICULTIES, Task, VerifierSpec
from kgsynth.verifiers.text import normalise

SCOPES = ("path", "pair")
LETTERS = "ABCDEFGHIJ"
MOST_WRONG = 10
SAYS = {
    "base": "{b} is the class that {a} is directly derived from (its only base class).",
    "class": "{b} is the class that {a} belongs to.",
    "module": "{b} is the module that {a} is documented in.",
    "raises": "{b} is the class that the documentation of {a} says is raised; it names no other.",
    "returns": "{b} is the class of what the documentation of {a} says it returns.",
    "like": "{b} is the function or method in terms of which the documentation explains {a}.",
    "inverse": "{b} is the function that {a} is documented to be the inverse of.",
    "topic": "{b} is the broader topic whose page lists {a}.",
}


def capacity(material: Material, env: SynthesisEnv) -> int:
    return sum(len(env.puzzles.of(material.concept.id, scope)) for scope in SCOPES)


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    puzzles = env.puzzles
    found = puzzles.of(sample.concept, sample.scope)
    hops = DIFFICULTIES.index(sample.difficulty) + 2
    fitting = [puzzle for puzzle in found if min(puzzle.hops, 4) == hops]
    if not fitting:
        return reject(sample, "material", f"no {sample.scope} of {hops} hops leads through {material.concept.name!r}")
    fitting.sort(key=lambda p: (puzzles.answers[p.answer], content_id("hops", str(sample.seed), p.key)))
    return _task(sample, material, env, fitting[sample.variant % len(fitting)])


def _task(sample: Sample, material: Material, env: SynthesisEnv, puzzle: Puzzle) -> Task | Rejection:
    facts, lines = env.facts, list(_lines(puzzle, env.facts))
    last, is_number = puzzle.chains[-1].steps[-1], puzzle.answer.lstrip("-").replace(".", "", 1).isdigit()
    answers = facts.spellings(puzzle.answer) if last.relation in SAYS else [puzzle.answer.strip("'")]
    numbered = "\n".join(f"{i}. {line}" for i, line in enumerate(lines[:-1], 1))
    how = "Write the number" if is_number else "Write its full name" if last.relation in SAYS else "Write it"
    verifier = VerifierSpec(name="text", params={"answers": answers})
    if is_number:
        verifier = VerifierSpec(name="number", params={"value": puzzle.answer})
    return build_task(
        sample,
        env,
        concepts=_concepts(puzzle, material.concept, env),
        prompt=f"All of this is about {source_name(last.span.url)}.\n{numbered}\n{lines[-1]} {how} in <answer></answer>.",
        verifier=verifier,
        reference=answered(answers[0]),
        wrong=[answered(name) for name in _wrong(puzzle, facts, answers)],
        spans=list(dict.fromkeys(fact.span for fact in puzzle.facts)),
        hints={"hops": puzzle.hops},
    )


def _lines(puzzle: Puzzle, facts: Facts) -> Iterator[str]:
    """The steps, each thing under a letter of its own, and the question."""
    letters, ends = iter(LETTERS), []
    for chain in puzzle.chains:
        steps = chain.steps[:1] if puzzle.join == "meet" else chain.steps
        steps = () if puzzle.join == "meet" and steps[0].relation == "base" else steps
        at = next(letters)
        yield f"{at} is the {_noun(chain.start.subject, facts)} that is documented with these words: “{chain.start.object}”"
        for step in steps:
            if step.relation in SAYS:
                before, at = at, next(letters)
                yield SAYS[step.relation].format(a=before, b=at)
            else:
                at = f"the default value of the parameter {step.relation.split(' ', 1)[1]!r} of {at}"
        ends.append(at)
    if puzzle.join == "meet":
        yield f"What is the nearest class that both {ends[0]} and {ends[1]} are derived from, directly or through other classes?"
    elif puzzle.join == "sum":
        yield f"What do you get when you add {ends[0]} and {ends[1]}?"
    else:
        yield f"What is {ends[0]}?"


def _noun(name: str, facts: Facts) -> str:
    if facts.fact(name, "class"):
        return "method or attribute"
    if facts.fact(name, "base"):
        return "class"
    return "function or class" if facts.fact(name, "module") else "function or method" if "." in name else "topic"


def _concepts(puzzle: Puzzle, first: Concept, env: SynthesisEnv) -> list[Concept]:
    """What the sample asked about, then every other concept on the way."""
    names = [name for fact in puzzle.facts for name in (fact.subject, fact.object) if fact.relation != "doc"]
    return list(dict.fromkeys([first, *(c for name in names if (c := env.puzzles.concept(name)))]))


def _wrong(puzzle: Puzzle, facts: Facts, answers: list[str]) -> list[str]:
    """One hop short, one too many, then what other facts would lead to."""
    last = puzzle.chains[0].steps[-1]
    short = [fact.object for chain in puzzle.chains for fact in reversed(chain.steps)]
    further = [fact.object for fact in facts.chain(puzzle.answer, last.relation)[:1]]
    possible = [name for fact in reversed(puzzle.facts) for name in sorted(_sampled(puzzle, facts, fact))]
    right = {normalise(answer) for answer in answers}
    found = [name.strip("'") for name in (*short, *further, *possible, *_starts(puzzle.chains))]
    return [name for name in dict.fromkeys(found) if normalise(name) not in right][:MOST_WRONG]


def _sampled(puzzle: Puzzle, facts: Facts, without: Fact) -> list[str]:
    """A few of the answers that remain possible without a fact, always the same ones."""
    return sorted(solve(puzzle, facts, without), key=lambda name: content_id("wrong", puzzle.key, name))[:4]


def _starts(chains: tuple[Chain, ...]) -> list[str]:
    return [chain.start.subject for chain in chains]


register(
    TaskType(
        name="hops",
        area="knowledge",
        why="Facts read by strict patterns give one answer together, and several when any one of them is taken away.",
        capacity=capacity,
        draft=draft,
        scopes=SCOPES,
        difficulties=DIFFICULTIES,
    )
)
