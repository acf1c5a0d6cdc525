"""Choice tasks: which of four topics lies below (or above) a concept in the graph?

Why the reward is unarguable: the graph is a DAG of narrower-topic edges, each justified by a source. Exactly one option
is a descendant (ancestor) of the concept; the three others are neither descendants nor ancestors, share no word with the
concept or the right option, neither definition mentions the other's name, and no page about one names the other or what
lies below it as code ("Bases: `Exception`"), and no chain of base classes joins them, so a missing edge cannot make a
second option right. The answer is one letter, or it with its topic, and the letters are shuffled by the sample's seed.

Scope "concept" asks about one edge, "path" about two in a row; longer chains mix kinds of edges, and are not asked about. The
wrong options of a hard task lie near the concept in the graph, those of an easy one in other domains where there are any.
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
from kgsynth.task import DIFFICULTIES, Task, VerifierSpec
from kgsynth.verifiers.text import normalise
from kgsynth.web import Hit

LETTERS = "ABCD"
SCOPES = ("concept", "path")
WEAK = frozenset("and or of the a an in for to with by as on module function class package".split())
CODE = re.compile(r"`([^`\n]{1,80})`")


@dataclass(frozen=True)
class Relation:
    """A related concept, and on which side of the asked one it lies."""

    side: str  # "narrower" or "broader"
    target: str  # Concept.id


def capacity(material: Material, env: SynthesisEnv) -> int:
    enough = len(list(itertools.islice(unrelated(material.concept, env), 3))) == 3
    return sum(len(relations(material.concept, env, scope)) for scope in SCOPES) if enough else 0


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    concept = material.concept
    asked = [r for r in relations(concept, env, sample.scope) if _is_stated(concept, r, env)]
    asked.sort(key=lambda r: _order(sample, concept, r, env))
    if not asked:
        return reject(sample, "material", f"{concept.name!r} has no {sample.scope} to ask about")
    relation = asked[sample.variant % len(asked)]
    others = distractors(concept, relation, env, rng_of(sample), sample.difficulty)
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
    texts = {letter: option.name for letter, option in zip(LETTERS, options, strict=True)}
    wrong = [letter for letter in LETTERS if letter != correct]
    parent, child = (concept, target) if relation.side == "narrower" else (target, concept)
    return build_task(
        sample,
        env,
        concepts=[concept, target],
        prompt=prompt,
        verifier=VerifierSpec(name="choice", params={"correct": correct, "options": list(LETTERS), "texts": texts}),
        reference=answered(correct),
        wrong=[
            answered(a) for a in (*wrong, *(f"{correct}) {texts[w]}" for w in wrong), f"{wrong[0]}) {texts[correct]}")
        ],
        spans=env.path_spans(parent.id, child.id),
    )


def _order(sample: Sample, concept: Concept, relation: Relation, env: SynthesisEnv) -> tuple[bool, str]:
    """Seeded, but first those whose names do not give the relation away."""
    told = bool(_words(concept) & _words(env.graph[relation.target]))
    return told, content_id("choice", str(sample.seed), relation.side, relation.target)


def relations(concept: Concept, env: SynthesisEnv, scope: str) -> list[Relation]:
    """What lies one edge ("concept") or two ("path") below, and above short of the roots, which lie above almost everything."""
    graph = env.graph
    below, above = graph.children(concept), graph.parents(concept)
    if scope == "path":
        near = {c.id for c in (concept, *below, *above)}
        below = [c for child in below for c in graph.children(child) if c.id not in near]
        above = [c for parent in above for c in graph.parents(parent) if c.id not in near]
    found = [Relation("narrower", c.id) for c in below]
    return list(dict.fromkeys(found + [Relation("broader", c.id) for c in above if graph.parents(c)]))


def _is_stated(concept: Concept, relation: Relation, env: SynthesisEnv) -> bool:
    """Whether every edge between the two cites words that are about the finer concept: they begin with a name of it. An edge
    from a word that only occurs in a sentence ("uniform bytes") may be a mistake."""
    upper, lower = concept.id, relation.target
    edges = env.path_edges(*((upper, lower) if relation.side == "narrower" else (lower, upper)))
    return bool(edges) and all(any(_opens_with(s.text, env.graph[e.child]) for s in e.spans) for e in edges)


def _opens_with(text: str, concept: Concept) -> bool:
    said = text.lstrip("*`#- ")
    return any(re.match(rf"{re.escape(name)}(?!\w)", said) for name in (concept.name, *concept.aliases))


def unrelated(concept: Concept, env: SynthesisEnv) -> Iterator[Concept]:
    """Concepts that are certainly neither finer nor coarser than this one."""
    above = _above_by_page(concept, env)
    tied = {c.id for c in (concept, *env.graph.descendants(concept), *env.graph.ancestors(concept))} | above
    for other in env.concepts:
        if other.id in tied or concept.id in _above_by_page(other, env) or _look_related(concept, other):
            continue
        if not _above_by_base(concept, env) & set(other.keys) and not _above_by_base(other, env) & set(concept.keys):
            yield other


def _above_by_base(concept: Concept, env: SynthesisEnv) -> frozenset[str]:
    """Names of every class above the concept, or above what lies above it in the graph, as pages state their bases."""
    if concept.id not in env.bases:
        names = [name for c in (concept, *env.graph.ancestors(concept)) for name in (c.name, *c.aliases)]
        env.bases[concept.id] = frozenset(name_key(b) for name in names for b in env.facts.line(name)[1:])
    return env.bases[concept.id]


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


def distractors(
    concept: Concept, relation: Relation, env: SynthesisEnv, rng: random.Random, difficulty: str = "medium"
) -> list[Concept]:
    """Three unrelated concepts: of about the target's level, so that its level tells nothing; from near the concept, or not."""
    graph, target = env.graph, env.graph[relation.target]
    near = _near(concept, env)
    pool = [other for other in unrelated(concept, env) if not _words(other) & _words(target)]
    rng.shuffle(pool)
    level = graph.level(target)
    away = {
        "easy": lambda other: other.domain == concept.domain or other.id in near,
        "medium": lambda other: other.id not in near,
        "hard": lambda other: (other.id not in near) + (other.domain != concept.domain),
    }[difficulty]
    found: list[Concept] = []
    for other in sorted(pool, key=lambda other: (abs(graph.level(other) - level), away(other))):
        if len(found) < 3 and normalise(other.name) not in {normalise(c.name) for c in (target, *found)}:
            found.append(other)
    return found


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
        scopes=SCOPES,
        difficulties=DIFFICULTIES,
    )
)
