"""Quantities: a number with its unit, worked out from what a source states without any condition.

Why the reward is unarguable: the sentence has one number, and no word that makes it less than certain (`quantities.py`); or
the number is a default in a signature. An easy or medium task quotes the sentence, a hard one hides the number, which then
has to be known. What is asked follows by a conversion or by arithmetic in fractions. The prompt states the unit and how
exact the answer must be; any unit that converts counts. Scope "pair" is about two such numbers of the same sort.
"""

from __future__ import annotations

from fractions import Fraction

from kgsynth.concept import content_id
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.facts import source_name
from kgsynth.synthesize.material import Material
from kgsynth.synthesize.quantities import TOLERANCE, Asked, Quantity, double, single
from kgsynth.task import DIFFICULTIES, Task, VerifierSpec

MOST_WRONG = 10
PARTNERS = 4  # pairs that a number takes part in, as far as a concept's capacity is concerned


def capacity(material: Material, env: SynthesisEnv) -> int:
    found = env.quantities.get(material.concept.id, ())
    return len(found) * (1 + PARTNERS)


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    level, factor = DIFFICULTIES.index(sample.difficulty), rng_of(sample).randint(3, 12)
    mine = env.quantities.get(sample.concept, ())
    drawn: list[tuple[Asked, tuple[Quantity, ...]]] = []
    if sample.scope == "pair":
        others = [q for concept, found in env.quantities.items() if concept != sample.concept for q in found]
        both = [(asked, (a, b)) for a in mine for b in others if (asked := double(a, b, level, factor))]
        drawn = sorted(
            both, key=lambda row: content_id("pair", str(sample.seed), row[1][0].sentence, row[1][1].sentence)
        )
    else:
        drawn = [(asked, (quantity,)) for quantity in mine if (asked := single(quantity, level, factor))]
    if not drawn:
        return reject(sample, "material", f"no number about {material.concept.name!r} can be asked for in this way")
    asked, used = drawn[sample.variant % len(drawn)]
    return _task(sample, env, material, asked, used)


def _task(
    sample: Sample, env: SynthesisEnv, material: Material, asked: Asked, used: tuple[Quantity, ...]
) -> Task | Rejection:
    exact = asked.value.denominator == 1
    params: dict[str, object] = {"value": _written(asked.value)}
    if not exact:
        params["relative"] = TOLERANCE
    if asked.unit:
        params |= {"unit": asked.unit, "unit_use": "optional"}
    if asked.noun:
        params["nouns"] = _nouns(asked.noun)
    names = " and ".join(dict.fromkeys(quantity.title for quantity in used))
    rule = "exactly" if exact else "to within 0.1 %"
    others = [c for q in used[1:] for c in env.concepts if q in env.quantities.get(c.id, ())]
    return build_task(
        sample,
        env,
        concepts=[material.concept, *others],
        prompt=(
            f"From the documentation of {source_name(used[0].span.url)} ({names}). {asked.text}\n"
            f"Write the number {rule} in <answer></answer>."
        ),
        verifier=VerifierSpec(name="number", params=params),
        reference=answered(f"{_written(asked.value)} {asked.unit}".strip()),
        wrong=[answered(f"{_written(v)} {asked.unit}".strip()) for v in asked.slips if _is_off(v, asked)][:MOST_WRONG],
        spans=list(dict.fromkeys(quantity.span for quantity in used)),
    )


def _nouns(noun: str) -> list[str]:
    """Singular and plural of what is counted, whole ("hexadecimal digits") and without what qualifies it ("digits")."""
    written = {noun, noun.split()[-1], noun.replace("hexadecimal", "hex")}
    return sorted({form for each in written for form in (each, each.rstrip("s"), each.rstrip("s") + "s")})


def _is_off(value: Fraction, asked: Asked) -> bool:
    """Is a slip wrong by more than ten times what the task allows?"""
    return abs(value - asked.value) > (
        0 if asked.value.denominator == 1 else abs(asked.value) * 10 * Fraction(str(TOLERANCE))
    )


def _written(value: Fraction) -> str:
    """A whole number, or a decimal that is exact or good to twelve figures."""
    return str(value) if value.denominator == 1 else f"{float(value):.12g}"


register(
    TaskType(
        name="quantity",
        area="knowledge",
        why="The source states the number without a condition; the answer follows from it by conversion or arithmetic.",
        capacity=capacity,
        draft=draft,
        scopes=("concept", "pair"),
        difficulties=DIFFICULTIES,
    )
)
