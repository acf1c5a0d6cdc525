"""Page tasks: write the HTML and CSS of a small web page that is given as a picture.

Why the reward is unarguable: the picture is what the reference renders to, here and now, in the same browser that renders the
answer, and an answer is right when it is within stated limits of it in colour, tone, structure and edges and has
the same words in the same places, sizes and colours, however it is written. The prompt says the sizes and the colours
that cannot be seen to the pixel; texts and their arrangement stand in the picture only. The texts are quoted from the cited sources.
"""

from __future__ import annotations

from itertools import chain, islice

from kgsynth.concept import content_id
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.drawing.figures import in_turns, whose_turn
from kgsynth.synthesize.drawing.webpages import WIDTH, WebPage, pages
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.material import Material
from kgsynth.task import DIFFICULTIES, Image, Task, VerifierSpec
from kgsynth.verifiers.pictures.shown import INSTALL, can_render

MOST = 3  # tasks about one concept
WRONG = 3  # planted answers: each is rendered
SCOPES = ("concept", "siblings")


def capacity(material: Material, env: SynthesisEnv) -> int:
    if not can_render(env.sandbox):
        return 0
    found = chain.from_iterable(pages(scope, "medium", material, env) for scope in SCOPES)
    return sum(1 for _ in islice(found, MOST))


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    if not can_render(env.sandbox):
        return reject(sample, "material", f"there is no Chromium to render pages with; {INSTALL}")
    found = list(pages(sample.scope, sample.difficulty, material, env))
    found.sort(key=lambda page: content_id("page", str(sample.seed), page.html))
    found = in_turns(found, lambda page: page.layout)
    if not found:
        return reject(sample, "material", f"no text about {material.concept.name!r} fits a page")
    return _task(sample, env, whose_turn(found, sample, env))


def _task(sample: Sample, env: SynthesisEnv, page: WebPage) -> Task | Rejection:
    html = page.html
    params = {"format": "html", "reference": {"source": html}, "width": WIDTH, "height": page.height}
    return build_task(
        sample,
        env,
        concepts=page.concepts,
        prompt=_prompt(page),
        verifier=VerifierSpec(name="picture", params=params),
        reference=answered(html),
        wrong=[answered(wrong) for wrong in page.spoiled(rng_of(sample, "spoiled"), WRONG)],
        spans=page.spans,
        images=[Image(source=html, format="html", width=WIDTH, height=page.height)],
        hints={"items": len(page.items)},
        most_chars=2 * env.config.max_prompt_chars,
    )


def _prompt(page: WebPage) -> str:
    return (
        f"The picture shows {page.shown}. Write an HTML document that looks exactly like it in a window of {WIDTH} x {page.height} pixels: the same "
        f"words in the same places, sizes and colours. {page.layout.format(accent=page.accent)} Text is sans-serif (DejaVu Sans), 14 px with "
        "lines of 20 pixels where nothing else is said; the page is white and has no margin of its own. Use HTML and CSS only: no scripts, no "
        "pictures, nothing from elsewhere. Write the document in <answer></answer>."
    )


register(
    TaskType(
        name="page",
        area="visual",
        why="The answer is rendered by the browser that rendered the page, and compared with it word by word and in colour and form.",
        capacity=capacity,
        draft=draft,
        scopes=SCOPES,
        difficulties=DIFFICULTIES,
    )
)
