"""Draw tasks: write the SVG that renders a given picture.

Why the reward is unarguable: the picture is what the reference renders to, here and now, in the same browser that renders the
answer, and an answer is right when it is within stated limits of it in colour, tone, structure, edges and words,
however it is written. What cannot be seen to the pixel (margins, steps of an axis, line widths, fonts, colours) the prompt says in
words; the data, the labels and the arrangement stand in the picture only. The data are figures counted in the cited
pages or edges of the graph.
"""

from __future__ import annotations

from itertools import chain, islice

from kgsynth.concept import content_id
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.drawing.canvas import WHITE, Picture
from kgsynth.synthesize.drawing.drawings import Drawing, drawings
from kgsynth.synthesize.drawing.figures import in_turns, whose_turn
from kgsynth.synthesize.drawing.spoiled import spoiled
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.material import Material
from kgsynth.task import DIFFICULTIES, Task, VerifierSpec
from kgsynth.verifiers.pictures.shown import INSTALL, can_render

MOST = 3  # tasks about one concept
MOST_CHARS = 8000  # of a reference
WRONG = 3  # planted answers: each is rendered
LIMITS = {"words": 0.5, "colour": 4.0}  # stricter than usual: a line of one pixel in another colour is seen
SCOPES = ("concept", "siblings")


def capacity(material: Material, env: SynthesisEnv) -> int:
    if not can_render(env.sandbox):
        return 0
    found = chain.from_iterable(drawings(scope, "medium", material, env) for scope in SCOPES)
    return sum(1 for _ in islice(found, MOST))


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    if not can_render(env.sandbox):
        return reject(sample, "material", f"there is no Chromium to render pictures with; {INSTALL}")
    found = [d for d in drawings(sample.scope, sample.difficulty, material, env) if len(d.picture.svg) <= MOST_CHARS]
    if not found:
        return reject(sample, "material", f"nothing about {material.concept.name!r} can be drawn")
    found.sort(key=lambda d: content_id("draw", str(sample.seed), d.picture.svg))
    found = in_turns(found, lambda d: d.layout[:40])
    return _task(sample, env, whose_turn(found, sample, env))


def _task(sample: Sample, env: SynthesisEnv, drawing: Drawing) -> Task | Rejection:
    picture = drawing.picture
    others = [other.svg for other in drawing.others if other.svg != picture.svg]
    wrong = list(dict.fromkeys([*others, *spoiled(picture, rng_of(sample, "spoiled"), WRONG)]))[:WRONG]
    params = {
        "format": "svg",
        "reference": {"source": picture.svg},
        "width": picture.width,
        "height": picture.height,
        "limits": LIMITS,
    }
    return build_task(
        sample,
        env,
        concepts=drawing.concepts,
        prompt=_prompt(drawing),
        verifier=VerifierSpec(name="picture", params=params),
        reference=answered(picture.svg),
        wrong=[answered(svg) for svg in wrong],
        spans=drawing.spans,
        images=[picture.image],
        hints={"marks": len(picture.marks), "shapes": len(picture.shapes)},
        most_chars=2 * env.config.max_prompt_chars,
    )


def _prompt(drawing: Drawing) -> str:
    picture = drawing.picture
    return (
        f"The picture shows {drawing.shown}. Write an SVG document of {picture.width} x {picture.height} pixels that looks exactly like it: "
        f"the same elements, texts, places and colours, to the pixel. {drawing.layout} {_paints(picture)} All text is in <text> elements. No "
        "scripts, raster images or anything from elsewhere. Write the document in <answer></answer>."
    )


def _paints(picture: Picture) -> str:
    """Colours and fonts, as what looking does not tell exactly."""
    values = [(key, str(v)) for s in picture.shapes for key, v in s.attributes.items() if key in ("fill", "stroke")]
    colours = [v for v in dict.fromkeys(v for _, v in values) if v not in ("none", WHITE)]
    sizes = sorted({(int(s.attributes["font-size"]), "font-weight" in s.attributes) for s in picture.shapes if s.text})
    told = " and ".join(f"{size} px{' bold' if bold else ''}" for size, bold in sizes)
    return f"The background is white or left empty; the colours are {', '.join(colours)}; text is sans-serif (DejaVu Sans), {told}."


register(
    TaskType(
        name="draw",
        area="visual",
        why="The answer is rendered by the browser that rendered the picture, and compared with it within stated limits.",
        capacity=capacity,
        draft=draft,
        scopes=SCOPES,
        difficulties=DIFFICULTIES,
    )
)
