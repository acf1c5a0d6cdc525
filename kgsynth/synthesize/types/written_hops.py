"""Multi-hop questions that a language model writes along a chain of concepts, coarse to fine.

Why the reward is unarguable: each hop is proved by words of its own, copied letter by letter from a passage about its own
concept. The term that a hop yields must stand in its quotation and in that of the next hop; the question names none of
these terms, and the final answer stands in the last quotation only. So no hop can be left out, and the program checks
it; with `[synthesize.consensus] hops` a solver that lacks the source of one hop must fail too. The `text` verifier decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from pydantic import BaseModel, Field

from kgsynth.concept import Concept, SourceSpan
from kgsynth.errors import ValidationError
from kgsynth.llm import Question
from kgsynth.llm.questions import quoted
from kgsynth.retrieve import Passage
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.asking import Source, asked_of, passages_of
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject
from kgsynth.synthesize.evidence import DIFFICULTY, RULES, SYSTEM, Quote, check_guess, check_question, cited, says
from kgsynth.synthesize.material import Material
from kgsynth.task import Task, VerifierSpec
from kgsynth.verifiers.text import normalise

MOST = 3  # tasks about a concept


class Hop(Quote):
    """One step: the words that prove it and the term it yields."""

    yields: str = Field(
        min_length=1, max_length=120, description="a term of this quotation that the next one names too"
    )


class WrittenHops(BaseModel):
    """A question that takes every hop in turn; what the last hop yields is its answer."""

    question: str = Field(min_length=20, max_length=700)
    hops: list[Hop] = Field(min_length=2, max_length=4)
    aliases: list[str] = Field(default_factory=list, max_length=6, description="other spellings of the answer")
    wrong: list[str] = Field(min_length=3, max_length=6, description="plausible answers that are certainly wrong")


@dataclass(frozen=True, kw_only=True)
class WriteHops(Question[WrittenHops]):
    """Write one question along a chain of concepts, one hop for each."""

    reply: ClassVar[type[BaseModel]] = WrittenHops
    stage: ClassVar[str] = "synthesize"
    chain: tuple[Concept, ...]  # coarse to fine
    passages: tuple[Passage, ...]
    about: tuple[int, ...]  # number of the concept in the chain, for each passage
    variant: int = 0
    difficulty: str = "medium"

    def messages(self) -> list[dict[str, str]]:
        path = " > ".join(concept.name for concept in self.chain)
        numbered = zip(range(len(self.passages)), self.passages, self.about, strict=True)
        passages = "\n\n".join(
            quoted("passage", i, p.span.text, title=p.title, about=self.chain[c].name) for i, p, c in numbered
        )
        wish = (
            f"Write one question that takes {len(self.chain)} hops, one for each concept of the path, in any order. Each hop rests on a "
            "quotation from a passage about its own concept and yields a term that stands in this quotation and in that of the next hop. "
            "The question names none of these terms: it describes the first one, so that every hop is needed. The last hop yields the "
            f"answer, which stands in no earlier quotation. {DIFFICULTY[self.difficulty]}\n{RULES}\n"
            f"Question number {self.variant + 1} about this path."
        )
        about = f"Path: {path}"
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"{about}\n\n{passages}\n\n{wish}"}]


def capacity(material: Material, env: SynthesisEnv) -> int:
    return MOST if env.llm.uses_model and material.pages and env.graph.parents(material.concept) else 0


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    try:
        source = await passages_of(sample, _chain(sample, env), env)
        question = WriteHops(
            chain=source.concepts, passages=source.passages, about=source.about,
            variant=sample.variant, difficulty=sample.difficulty,
        )  # fmt: skip
        return _made(sample, env, source, await asked_of(question, env))
    except ValidationError as error:
        return reject(sample, error.check, str(error))


def _chain(sample: Sample, env: SynthesisEnv) -> list[Concept]:
    """The concepts of the sample from coarse to fine. Raises ValidationError "material" unless edges join them."""
    chain = sorted((env.graph[c] for c in {sample.concept, *sample.related}), key=lambda c: (env.graph.level(c), c.id))
    if len(chain) < 2 or not all(env.graph.edge(a.id, b.id) for a, b in pairwise(chain)):
        raise ValidationError("material", f"{', '.join(c.name for c in chain)}: no chain of edges")
    return chain


def _made(sample: Sample, env: SynthesisEnv, source: Source, reply: WrittenHops) -> Task | Rejection:
    """Raises ValidationError."""
    spans = cited(reply.hops, source.passages)
    terms = [hop.yields.strip() for hop in reply.hops]
    answers = list(dict.fromkeys([terms[-1], *(a.strip() for a in reply.aliases if a.strip())]))
    check_guess(terms[-1])
    check_question(reply.question, answers)
    _check_hops(reply, terms, spans, source)
    if clash := set(map(normalise, reply.wrong)) & set(map(normalise, answers)):
        raise ValidationError("wrong", f"a wrong answer counts as right: {min(clash)!r}")
    return build_task(
        sample,
        env,
        concepts=source.concepts,
        prompt=f"{reply.question.strip()}\nWrite the term in <answer></answer>.",
        verifier=VerifierSpec(name="text", params={"answers": answers}),
        reference=answered(answers[0]),
        wrong=[answered(w.strip()) for w in (*reply.wrong, *terms[:-1])],
        spans=spans,
        author=env.llm.name,
        hints={"hops": len(spans)},
    )


def _check_hops(reply: WrittenHops, terms: Sequence[str], spans: Sequence[SourceSpan], source: Source) -> None:
    """Raises ValidationError "quote" when a hop is not proved, and "hop" when one can be left out."""
    concepts = [source.about[hop.passage] for hop in reply.hops]
    if sorted(concepts) != list(range(len(source.concepts))):
        raise ValidationError(
            "hop", f"{len(source.concepts)} concepts, and the hops quote passages about {len(set(concepts))}"
        )
    for term, span in zip(terms, spans, strict=True):
        if not says(span.text, term):
            raise ValidationError("quote", f"the quotation of a hop does not contain {term!r}")
    for term, following in zip(terms, spans[1:], strict=False):
        if not says(following.text, term):
            raise ValidationError("hop", f"{term!r} does not lead to the next hop, whose quotation does not name it")
        if says(reply.question, term):
            raise ValidationError("hop", f"the question names {term!r}, so that the hop to it is not needed")
    if any(says(span.text, terms[-1]) for span in spans[:-1]):
        raise ValidationError("hop", f"the answer {terms[-1]!r} stands in the quotation of an earlier hop")


register(
    TaskType(
        name="written_hops",
        area="knowledge",
        why="Each hop has a quotation of its own, linked by terms that the question does not name; the answer is in the last.",
        capacity=capacity,
        draft=draft,
        scopes=("path",),
        difficulties=("medium", "hard"),
        uses_model=True,
    )
)
