"""Computed tasks: a mathematical problem in words about something that the pages document.

Why the reward is unarguable: a concept is asked only about what a page of its own says in words (`gcd`: "Greatest Common
Divisor"), and the line that says it is cited. The problem states everything it needs. Its answer is worked out by a
formula and, independently, by the documented function or by trying every case; where the two differ, nothing is asked. The
answer counts by its exact value in any notation. The planted wrong answers are what the usual slips give.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kgsynth.concept import SourceSpan, content_id, name_key
from kgsynth.retrieve import is_about
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.material import Material
from kgsynth.synthesize.problems import Problem, load, written
from kgsynth.task import DIFFICULTIES, Task, VerifierSpec
from kgsynth.web import Hit, Page

PER_FAMILY = 4  # problems of one family about one concept
LINE_CHARS = (12, 400)  # of a line that is cited
TRIES = 5  # problems posed, of which the one that is hardest to guess is asked
NUMBER = re.compile(r"[\d/]*\d")
NOT_PROSE = re.compile(r"See also|Bases:|>>>|\.\.\.|#")
NOT_NAMES = re.compile(r"[^\w.]+")
ASK = {
    "number": "Write the exact number (whole, a fraction, or with roots or π, never a rounded decimal)",
    "set": "Write the set in braces, such as {1, 2},",
    "tuple": "Write the numbers exactly and in parentheses, in the order asked for,",
    "interval": "Write it exactly, in interval notation such as [0, 1),",
}


def capacity(material: Material, env: SynthesisEnv) -> int:
    return PER_FAMILY * len(_asked(material))


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    found = _asked(material)
    if not found:
        return reject(sample, "material", f"no page about {material.concept.name!r} speaks of what can be computed")
    names = sorted(found, key=lambda name: content_id("computed", str(sample.seed), sample.concept, name))
    name = names[sample.variant % len(names)]
    level = DIFFICULTIES.index(sample.difficulty)
    problem = min((load()[name].pose(rng_of(sample, str(k)), level) for k in range(TRIES)), key=_guessable)
    if not problem.agrees:
        differ = f"{problem.answer} by formula, {problem.again} by trying"
        return reject(sample, "oracle", f"{name}: {differ}: {problem.text}")
    if _guessable(problem) > 1:
        return reject(sample, "form", f"{name}: {problem.answer} is guessed too easily: {problem.text}")
    return _task(sample, env, material, problem, found[name])


def _guessable(problem: Problem) -> int:
    """2 when the answer is one of the commonest guesses, 1 when it stands in the question, else 0."""
    if problem.kind == "number" and written(problem.answer).lstrip("-") in ("0", "1", "2", "1/2"):
        return 2
    return int(written(problem.answer) in NUMBER.findall(problem.text))


def _task(
    sample: Sample, env: SynthesisEnv, material: Material, problem: Problem, span: SourceSpan
) -> Task | Rejection:
    return build_task(
        sample,
        env,
        concepts=[material.concept],
        prompt=f"{problem.text}\n{ASK[problem.kind]} in <answer></answer>.",
        verifier=VerifierSpec(name="mathematics", params={"expected": written(problem.answer), "kind": problem.kind}),
        reference=answered(written(problem.answer)),
        wrong=[answered(written(slip)) for slip in problem.mistakes()],
        spans=[span],
    )


@lru_cache(maxsize=4096)
def _asked(material: Material) -> dict[str, SourceSpan]:
    """The families that the concept's pages speak of, and the line of each that does: its own pages, or a line that names it."""
    found: dict[str, SourceSpan] = {}
    for page in material.pages:
        own = is_about(material.concept, Hit(url=page.url, title=page.title))
        for name, start, end, words in _lines(page):
            if name not in found and (own or any(f" {key} " in words for key in material.concept.keys)):
                found[name] = page.source.span(start, end)
    return found


@lru_cache(maxsize=4096)
def _lines(page: Page) -> list[tuple[str, int, int, str]]:
    """(family, start, end, its words) of every line of a page that speaks of a family."""
    text, found = page.source.text, []
    for known in load().values():
        for match in known.says.finditer(text):
            start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
            end = len(text) if end < 0 else end
            if LINE_CHARS[0] <= end - start <= LINE_CHARS[1] and not NOT_PROSE.match(text, start):
                found.append((known.name, start, end, f" {name_key(NOT_NAMES.sub(' ', text[start:end]))} "))
    return found


register(
    TaskType(
        name="computed",
        area="knowledge",
        why="The answer is worked out twice, by formula and by the documented function or by trying every case, and agrees.",
        capacity=capacity,
        draft=draft,
        difficulties=DIFFICULTIES,
    )
)
