"""Choice tasks: which of four topics lies below (or above) a concept in the graph?

Why the reward is unarguable: the graph is a DAG of narrower-topic edges, each justified by a source. Exactly one option
is a descendant (ancestor) of the concept; the three others are neither descendants nor ancestors, share no word with the
concept or the right option, neither definition mentions the other's name, and no page about one names the other or what
lies below it as code ("Bases: `Exception`"), so a missing edge cannot make a second option right. The answer is one
letter, and the letters are shuffled by the sample's seed.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kgsynth.concept import Concept, content_id, name_key
from kgsynth.retrieve import is_about
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.material import Material
from kgsynth.task import Task, VerifierSpec
from kgsynth.web import Hit

LETTERS = "ABCD"
WEAK = frozenset("and or of the a an in for to with by as on module function class package".split())
CODE = re.compile(r"`([^`\n]{1,80})`")


@dataclass(frozen=True)
class Relation:
    """A related concept, and on which side of the asked one it lies."""

    side: str  # "narrower" or "broader"
    target: str  # Concept.id


def capacity(material: Material, env: SynthesisEnv) -> int:
    enough = len(list(itertools.islice(unrelated(material.concept, env), 3))) == 3
    return len(relations(material.concept, env)) if enough else 0


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    concept = material.concept
    asked = sorted(relations(concept, env), key=lambda r: _order(sample, concept, r, env))
    if sample.variant >= len(asked):
        return reject(sample, "material", f"{concept.name!r} has {len(asked)} relatives to ask about")
    relation = asked[sample.variant]
    others = distractors(concept, relation, env, rng_of(sample))
    if len(others) < 3:
        return reject(sample, "unique", f"fewer than three topics are certainly unrelated to {concept.name!r}")
    return _task(sample, env, concept, relation, others)


def _task(
    sample: Sample, env: SynthesisEnv, concept: Concept, relation: Relation, others: Sequence[Concept]
) -> Task | Rejection:
    target = env.graph[relation.target]
    options = [target, *others]
    rng_of(sample, "letters").shuffle(options)
    correct = LETTERS[options.index(target)]
    lines = "\n".join(f"{letter}. {option.name}" for letter, option in zip(LETTERS, options, strict=True))
    prompt = (
        f"Which topic is {relation.side} than {concept.name}?\n{lines}\nReply with the letter in <answer></answer>."
    )
    parent, child = (concept, target) if relation.side == "narrower" else (target, concept)
    return build_task(
        sample,
        env,
        concepts=[concept, target],
        prompt=prompt,
        verifier=VerifierSpec(name="choice", params={"correct": correct, "options": list(LETTERS)}),
        reference=answered(correct),
        wrong=[answered(letter) for letter in LETTERS if letter != correct],
        spans=env.path_spans(parent.id, child.id),
    )


def _order(sample: Sample, concept: Concept, relation: Relation, env: SynthesisEnv) -> tuple[bool, str]:
    """Seeded, but first those whose names do not give the relation away."""
    told = bool(_words(concept) & _words(env.graph[relation.target]))
    return told, content_id("choice", str(sample.seed), relation.side, relation.target)


def relations(concept: Concept, env: SynthesisEnv) -> list[Relation]:
    """Descendants, and ancestors short of the roots, which lie above almost everything."""
    below = [Relation("narrower", d.id) for d in env.graph.descendants(concept)]
    return below + [Relation("broader", a.id) for a in env.graph.ancestors(concept) if env.graph.parents(a)]


def unrelated(concept: Concept, env: SynthesisEnv) -> Iterator[Concept]:
    """Concepts that are certainly neither finer nor coarser than this one."""
    above = _above_by_page(concept, env)
    tied = {c.id for c in (concept, *env.graph.descendants(concept), *env.graph.ancestors(concept))} | above
    for other in env.concepts:
        if other.id not in tied and concept.id not in _above_by_page(other, env) and not _look_related(concept, other):
            yield other


def _above_by_page(concept: Concept, env: SynthesisEnv) -> frozenset[str]:
    """Ids of the concepts that pages about this one name as code, and of everything above those."""
    if concept.id not in env.named:
        material = (env.material or {}).get(concept.id)
        pages = [p for p in (material.pages if material else ()) if is_about(concept, Hit(url=p.url, title=p.title))]
        marked = {name_key(name) for page in pages for name in CODE.findall(page.source.text)}
        found = [c for c in env.concepts if c.id != concept.id and not marked.isdisjoint(c.keys)]
        env.named[concept.id] = frozenset(a.id for c in found for a in (c, *env.graph.ancestors(c)))
    return env.named[concept.id]


def _look_related(a: Concept, b: Concept) -> bool:
    mentions = any(key in _definition(y) for x, y in ((a, b), (b, a)) for key in x.keys)
    return mentions or bool(_words(a) & _words(b))


@lru_cache(maxsize=65536)
def _definition(concept: Concept) -> str:
    return name_key(concept.definition)


@lru_cache(maxsize=65536)
def _words(concept: Concept) -> frozenset[str]:
    return frozenset(name_key(word) for key in concept.keys for word in re.split(r"[ ._]+", key)) - WEAK


def distractors(concept: Concept, relation: Relation, env: SynthesisEnv, rng: random.Random) -> list[Concept]:
    """Three unrelated concepts: of about the target's level, so that its level tells nothing, then from near the concept."""
    graph, target = env.graph, env.graph[relation.target]
    near = _near(concept, env)
    pool = [other for other in unrelated(concept, env) if not _words(other) & _words(target)]
    rng.shuffle(pool)
    level = graph.level(target)
    return sorted(pool, key=lambda other: (abs(graph.level(other) - level), other.id not in near))[:3]


def _near(concept: Concept, env: SynthesisEnv) -> set[str]:
    """Siblings, parents' siblings and their children."""
    graph = env.graph
    parents = graph.parents(concept)
    uncles = [uncle for p in parents for grandparent in graph.parents(p) for uncle in graph.children(grandparent)]
    return {c.id for member in (*parents, *uncles) for c in graph.children(member)} | {u.id for u in uncles}


register(
    TaskType(
        name="choice",
        area="knowledge",
        why="Exactly one option lies below (above) the concept in the graph; no source relates the others to it.",
        capacity=capacity,
        draft=draft,
    )
)
