"""Questions that a language model writes from fetched passages, in the same schema and under the same checks as all others.

Why the reward is unarguable: the model must copy, letter by letter, the words of a passage that prove its answer, and the
answer must itself stand in that quotation; results of calculations and of code are computed a second time, in the sandbox.
The program checks all of it. What scores answers is one of the exact verifiers, never the model. Where solvers and a
judge are configured (`kgsynth.consensus`), they must agree with the reference and find no other right answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel

from kgsynth.concept import Concept, SourceSpan
from kgsynth.errors import ValidationError
from kgsynth.llm import Question
from kgsynth.llm.questions import quoted
from kgsynth.retrieve import Passage
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.answer_forms import FORMS, Given, Written, fitting, scored
from kgsynth.synthesize.asking import Source, asked_of, passages_of
from kgsynth.synthesize.env import Rejection, SynthesisEnv, build_task, reject, rng_of
from kgsynth.synthesize.evidence import DIFFICULTY, RULES, SYSTEM, check_question, cited
from kgsynth.synthesize.material import Material
from kgsynth.task import Task

MOST = 4  # tasks about a concept
SCOPES = {
    "concept": "Ask about this concept alone.",
    "siblings": "Ask for what tells this concept from the others named with it, or what they share: quote at least two of them.",
    "pair": "Ask for something that takes knowledge of both concepts, from two branches of the subject: quote both.",
}


@dataclass(frozen=True, kw_only=True)
class WriteTask(Question[Written]):
    """Write one question about a concept from these passages."""

    reply: ClassVar[type[BaseModel]] = Written
    stage: ClassVar[str] = "synthesize"
    concept: Concept
    ancestors: tuple[Concept, ...]
    related: tuple[Concept, ...]
    passages: tuple[Passage, ...]
    variant: int = 0
    form: str = "text"
    scope: str = "concept"
    difficulty: str = "medium"

    def messages(self) -> list[dict[str, str]]:
        path = " > ".join([*(a.name for a in reversed(self.ancestors)), self.concept.name])
        about = f"Concept: {path}\nRelated: {', '.join(c.name for c in self.related) or '-'}"
        passages = "\n\n".join(quoted("passage", i, p.span.text, title=p.title) for i, p in enumerate(self.passages))
        forms = "\n".join(f"- {name}: {FORMS[name].wish}" for name in fitting(self.passages))
        wish = (
            f"Write one question of type {self.form}; of another type only if the passages cannot support that one.\n{forms}\n"
            f"{SCOPES[self.scope]} {DIFFICULTY[self.difficulty]}\n{RULES}\nThis is question number {self.variant + 1} about this "
            "concept: leave the obvious first questions to the others."
        )
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"{about}\n\n{passages}\n\n{wish}"}]


def capacity(material: Material, env: SynthesisEnv) -> int:
    return MOST if env.llm.uses_model and material.pages else 0


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    concepts = [material.concept, *(env.graph[c] for c in sample.related if sample.scope != "concept")]
    try:
        source = await passages_of(sample, concepts, env)
        reply = await asked_of(_question(sample, env, source), env)
        return await asyncio.to_thread(_made, sample, env, source, reply)
    except ValidationError as error:
        return reject(sample, error.check, str(error))


def _question(sample: Sample, env: SynthesisEnv, source: Source) -> WriteTask:
    concept, *related = source.concepts
    return WriteTask(
        concept=concept, ancestors=source.ancestors, related=tuple(related), passages=source.passages,
        variant=sample.variant, form=rng_of(sample, "form").choice(fitting(source.passages)),
        scope=sample.scope, difficulty=sample.difficulty,
    )  # fmt: skip


def _made(sample: Sample, env: SynthesisEnv, source: Source, reply: Written) -> Task | Rejection:
    """Raises ValidationError."""
    spans = cited(reply.evidence, source.passages)
    if sample.scope != "concept":
        _check_scope(source, [quote.passage for quote in reply.evidence])
    alone = reply.type not in ("literal", "span")  # there the prompt shows what is spoken of
    check_question(reply.question, (), alone=alone)
    check_question("\n".join([reply.answer, *reply.wrong, *reply.aliases, *reply.items]), (), alone=False)
    made = scored(Given(sample=sample, reply=reply, passages=source.passages, spans=spans, sandbox=env.sandbox))
    check_question(reply.question, made.told, alone=alone)
    return build_task(
        sample,
        env,
        concepts=source.concepts,
        prompt=f"{reply.question.strip()}\n{made.ending}",
        verifier=made.verifier,
        reference=made.reference,
        wrong=made.wrong,
        spans=_unique(spans),
        author=env.llm.name,
    )


def _check_scope(source: Source, quoted_passages: Sequence[int]) -> None:
    about = {source.about[number] for number in quoted_passages}
    if len(about) < 2:
        raise ValidationError("quote", "the quotations are about one concept only, and several were asked for")


def _unique(spans: Sequence[SourceSpan]) -> list[SourceSpan]:
    return list(dict.fromkeys(spans))


register(
    TaskType(
        name="written",
        area="knowledge",
        why="The words that prove the answer stand in the cited passage, and an exact verifier compares.",
        capacity=capacity,
        draft=draft,
        scopes=("concept", "siblings", "pair"),
        difficulties=("easy", "medium", "hard"),
        uses_model=True,
    )
)
