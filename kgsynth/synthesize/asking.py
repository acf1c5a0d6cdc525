"""The two steps that every model-written task begins with: passages about its concepts, and one question to the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgsynth.concept import Concept
from kgsynth.errors import LLMReplyError, ValidationError
from kgsynth.llm import Question, Reply
from kgsynth.retrieve import Context, Insufficient, Passage, retrieve
from kgsynth.sample import Sample
from kgsynth.synthesize.env import SynthesisEnv


@dataclass(frozen=True, kw_only=True)
class Source:
    """Passages to write from, those of the first concept first. `about[i]` is the number of the concept of passage i."""

    concepts: tuple[Concept, ...]
    ancestors: tuple[Concept, ...]  # of the first concept, nearest first
    passages: tuple[Passage, ...]
    about: tuple[int, ...]


async def passages_of(sample: Sample, concepts: Sequence[Concept], env: SynthesisEnv) -> Source:
    """Passages about every concept; of several, each gives its best ones. Raises ValidationError "llm" without a model, and
    "material" or "licence" when there are none."""
    if not env.llm.uses_model:
        told = f"{env.llm.name} writes no tasks; configure [llm] kind = 'openai' or drop {sample.type!r} from [sample.types]"
        raise ValidationError("llm", told)
    contexts = [await _context(concept, env) for concept in concepts]
    each = env.config.retrieve.passages // len(contexts) or 1
    about = {p.span: (p, i) for i, context in reversed([*enumerate(contexts)]) for p in context.passages[:each][::-1]}
    passages = sorted(about.values(), key=lambda pair: pair[1])
    return Source(
        concepts=tuple(concepts),
        ancestors=contexts[0].ancestors,
        passages=tuple(p for p, _ in passages),
        about=tuple(i for _, i in passages),
    )


async def _context(concept: Concept, env: SynthesisEnv) -> Context:
    cited = env.spans.get(concept.id, ())
    found = await retrieve(
        concept, env.graph, cited, env.web, env.config.retrieve, embedder=env.embedder, allows=env.config.allows
    )
    if isinstance(found, Insufficient):
        raise ValidationError("licence" if found.why == "licence" else "material", found.reason)
    return found


async def asked_of(question: Question[Reply], env: SynthesisEnv) -> Reply:
    """The model's reply. Raises ValidationError "llm" when none had the right form; any other LLMError ends the run, which
    can be resumed: nothing is lost."""
    try:
        return await env.llm.ask(question)
    except LLMReplyError as error:
        raise ValidationError("llm", str(error)) from error
