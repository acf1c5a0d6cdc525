"""Chart tasks: a question about a rendered chart or diagram, whose answer is known from the data that drew it.

Why the reward is unarguable: the picture is drawn from figures counted in the cited pages, or from edges of the graph, so the
answer is computed from the very numbers that place its bars, points and boxes. Values are asked for within what a few
pixels are worth on the axis (the prompt says how much), counts and comparisons only where no answer would change if values were
off by more than that: no ties, no near ties, nothing close to a gridline that is asked about. Every text in the picture
is legible and no two touch. The prompt has the title and the question, never the data, and never the label that is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice

from kgsynth.concept import content_id
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.drawing.asked import Question
from kgsynth.synthesize.drawing.figures import in_turns, whose_turn
from kgsynth.synthesize.drawing.views import View, views
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject
from kgsynth.synthesize.material import Material
from kgsynth.task import DIFFICULTIES, Task
from kgsynth.verifiers.text import normalise

MOST = 8  # tasks about one concept, so that no concept fills a set
SCOPES = ("concept", "siblings")

Asked = tuple[View, Question]


def capacity(material: Material, env: SynthesisEnv) -> int:
    found = chain.from_iterable(_askable(scope, "medium", material, env) for scope in SCOPES)
    return sum(1 for _ in islice(found, MOST))


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    asked = _varied(list(_askable(sample.scope, sample.difficulty, material, env)), sample.seed)
    if not asked:
        return reject(sample, "material", f"no picture about {material.concept.name!r} answers such a question")
    view, question = whose_turn(asked, sample, env)
    return build_task(
        sample,
        env,
        concepts=view.concepts,
        prompt=_prompt(view, question),
        verifier=question.verifier,
        reference=answered(question.answer),
        wrong=[answered(text) for text in question.wrong],
        spans=view.spans,
        images=[view.picture.image],
        hints={"marks": len(view.picture.marks)},
    )


def _prompt(view: View, question: Question) -> str:
    return f"The picture shows {view.shown}. {question.text}"


def _askable(scope: str, difficulty: str, material: Material, env: SynthesisEnv) -> Iterator[Asked]:
    """Every question of that difficulty about every picture, where the prompt does not name the answer."""
    for view in views(scope, difficulty, material, env):
        for question in view.questions:
            told = _named(question.answer, _prompt(view, question)) or _is_a_guess(question)
            if question.difficulty == difficulty and not told:
                yield view, question


def _named(answer: str, prompt: str) -> bool:
    """Whether the answer, being no number, stands in the prompt as whole words."""
    written = re.escape(normalise(answer))
    return not answer.isdigit() and bool(re.search(rf"(?<!\w){written}(?!\w)", normalise(prompt)))


def _is_a_guess(question: Question) -> bool:
    """Whether one of the commonest guesses is within the tolerance."""
    off = float(question.verifier.params.get("absolute", 0))
    return off > 0 and any(abs(guess - float(question.answer)) <= off for guess in (0, 1, 2, 10, 100))


def _varied(asked: list[Asked], seed: int) -> list[Asked]:
    """In an order in which pictures and kinds of questions take turns, seeded."""
    asked = sorted(asked, key=lambda a: content_id("chart", str(seed), a[0].shown, a[1].text))
    return in_turns(in_turns(asked, lambda a: (a[0].shown, a[1].kind)), lambda a: a[0].shown)


register(
    TaskType(
        name="chart",
        area="visual",
        why="The answer is computed from the figures that drew the picture, and is the same within what can be read off it.",
        capacity=capacity,
        draft=draft,
        scopes=SCOPES,
        difficulties=DIFFICULTIES,
    )
)
