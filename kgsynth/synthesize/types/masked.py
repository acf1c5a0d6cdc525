"""Masked spans: which of four texts stands in the place of the blank? (after Golden Goose, arXiv 2601.22975)

Why the reward is unarguable: the hidden words are those of the cited source. The three other options have the same shape, stand
elsewhere in the sources about something else, and are refutable (`synthesize/masks.py`): an entry that documents another name in
other words, an exception or special method that is neither above nor below the hidden one, a clause that shares no word with
the passage. Which option is longest, and where the right one stands, is drawn by the sample's seed.

Options of a hard task come from the same page or the same class and are as near as that allows, those of an easy one from
other pages. In the scope "siblings" at least two of them are about what lies beside the concept in the graph.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from kgsynth.concept import content_id
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.facts import source_name
from kgsynth.synthesize.masks import Mask
from kgsynth.synthesize.material import Material
from kgsynth.task import DIFFICULTIES, Task, VerifierSpec
from kgsynth.verifiers.text import normalise

LETTERS = "ABCD"
LONGER = 2.2  # times as long as the right one, at most; and as much shorter


def capacity(material: Material, env: SynthesisEnv) -> int:
    return len(env.masks.of.get(material.concept.id, ()))


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    masks = env.masks.of.get(sample.concept, [])
    masks = sorted(masks, key=lambda m: (m.kind == "clause", content_id("masked", str(sample.seed), m.shown)))
    if not masks:
        return reject(sample, "material", f"no sentence about {material.concept.name!r} has a span to hide")
    mask = masks[sample.variant % len(masks)]
    others = _others(sample, env, mask)
    if len(others) < 3:
        return reject(sample, "unique", f"fewer than three texts are certainly wrong in {mask.shown!r}")
    return _task(sample, env, material, mask, others)


def _task(
    sample: Sample, env: SynthesisEnv, material: Material, mask: Mask, others: Sequence[Mask]
) -> Task | Rejection:
    options = [mask, *others]
    rng_of(sample, "letters").shuffle(options)
    texts = {letter: option.text for letter, option in zip(LETTERS, options, strict=True)}
    correct = LETTERS[options.index(mask)]
    wrong = [letter for letter in LETTERS if letter != correct]
    passage = mask.shown if mask.kind == "entry" else f"{mask.title}: {mask.shown}"
    lines = "\n".join(f"{letter}. {text}" for letter, text in texts.items())
    prompt = (
        f"Which text stands in the place of the blank in the documentation of {source_name(mask.page)}?\n\n{passage}\n\n{lines}\n\n"
        "Reply with the letter in <answer></answer>."
    )
    beside = [c for option in others if (c := env.puzzles.concept(option.title))] if sample.scope == "siblings" else []
    return build_task(
        sample,
        env,
        concepts=[material.concept, *beside],
        prompt=prompt,
        verifier=VerifierSpec(name="choice", params={"correct": correct, "options": list(LETTERS), "texts": texts}),
        reference=answered(correct),
        wrong=[
            answered(a) for a in (*wrong, *(f"{correct}) {texts[w]}" for w in wrong), f"{wrong[0]}) {texts[correct]}")
        ],
        spans=list(dict.fromkeys(option.span for option in (mask, *others))),
    )


def _others(sample: Sample, env: SynthesisEnv, mask: Mask) -> list[Mask]:
    """Three refutable options of the same shape and about the same length, as near as the difficulty says."""
    rng, masks, beside = rng_of(sample, "options"), env.masks, set[str]()
    pool = [option for option in masks.by_shape[mask.shape] if _fits(mask, option) and masks.excludes(mask, option)]
    if sample.scope == "siblings":
        beside = {option.title for option in pool if _is_beside(env, sample.concept, option)}
    rng.shuffle(pool)
    hard = DIFFICULTIES.index(sample.difficulty)
    distance = {id(option): _distance(mask, option) for option in pool}
    if hard == 2:
        pool.sort(key=lambda option: distance[id(option)])
    elif hard == 1:
        pool.sort(key=lambda option: distance[id(option)] > 1)
    else:
        pool = [option for option in pool if option.page != mask.page]
    if sample.scope == "siblings":
        pool.sort(key=lambda option: option.title not in beside)
    found = _with_any_length(mask, pool, rng)
    return found if sample.scope != "siblings" or sum(option.title in beside for option in found) > 1 else []


def _fits(mask: Mask, option: Mask) -> bool:
    sizes = sorted((len(mask.text), len(option.text)))
    both = mask.text[:1].isupper() == option.text[:1].isupper()
    return mask.shape in ("exception", "special") or (sizes[1] <= LONGER * sizes[0] and both)


def _distance(mask: Mask, option: Mask) -> float:
    """Below 1 on the same page or in the same class; less when the words are the same."""
    outer = mask.title.rpartition(".")[0]
    same = option.page == mask.page or (outer and option.title.rpartition(".")[0] == outer)
    return (
        (0 if same else 1)
        + (0 if outer.split(".")[0] == option.title.split(".")[0] else 0.5)
        - 0.4 * _overlap(mask, option)
    )


def _overlap(mask: Mask, option: Mask) -> float:
    return len(mask.stems & option.stems) / max(1, len(mask.stems | option.stems))


def _with_any_length(mask: Mask, pool: Sequence[Mask], rng: random.Random) -> list[Mask]:
    """Three of the pool, mutually different; how many of them are longer than the right one is drawn first."""
    shorter = [option for option in pool if len(option.text) < len(mask.text)]
    longer = [option for option in pool if len(option.text) > len(mask.text)]
    ranks = [r for r in range(4) if len(shorter) >= r and len(longer) >= 3 - r]
    if not ranks:
        return []
    rank = rng.choice(ranks)
    found: list[Mask] = []
    for side, wanted in ((shorter, rank), (longer, 3 - rank)):
        kept = 0
        for option in side:
            if kept < wanted and not any(_alike(option, other) for other in found):
                found.append(option)
                kept += 1
    return found if len(found) == 3 else []


def _alike(a: Mask, b: Mask) -> bool:
    return normalise(a.text) == normalise(b.text) or _overlap(a, b) > 0.6


def _is_beside(env: SynthesisEnv, concept: str, option: Mask) -> bool:
    """Is the option about a sibling of the concept, or about what lies below one?"""
    graph, other = env.graph, env.puzzles.concept(option.title)
    if other is None or other.id == concept:
        return False
    above = {parent.id for parent in graph.parents(concept)}
    line = (other, *graph.ancestors(other))
    return concept not in {c.id for c in line} and any(above & {p.id for p in graph.parents(c)} for c in line)


register(
    TaskType(
        name="masked",
        area="knowledge",
        why="The hidden words are the source's own; the other options stand elsewhere, about something else, and do not fit.",
        capacity=capacity,
        draft=draft,
        scopes=("concept", "siblings"),
        difficulties=DIFFICULTIES,
    )
)
