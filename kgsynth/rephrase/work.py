"""Chunks in, rewritings out: who writes them, what is checked, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgsynth.concept import Source, allows
from kgsynth.errors import ConfigError, LLMReplyError
from kgsynth.llm import LLM
from kgsynth.rephrase.chunks import Chunk, chunks
from kgsynth.rephrase.fidelity import Doubt, doubts, unchanged
from kgsynth.rephrase.questions import Follows, Rewrite
from kgsynth.rephrase.rules import AUTHOR, STYLES


@dataclass(frozen=True, kw_only=True)
class RephraseConfig:
    """What is rewritten, and how. Lengths are characters."""

    styles: tuple[str, ...] = tuple(STYLES)
    licences: tuple[str, ...] = ()  # allowed of sources, e.g. ["PSF-2.0", "CC-BY-*"]; empty: any
    chunk: int = 1500  # at most, unless a single paragraph is longer
    least: int = 200  # of a chunk
    at_once: int = 4  # sources at work at the same time

    def __post_init__(self) -> None:
        if unknown := [style for style in self.styles if style not in STYLES] or not self.styles:
            raise ConfigError(f"styles {unknown}: choose of {', '.join(STYLES)}")
        if self.least < 1 or self.chunk < self.least or self.at_once < 1:
            raise ConfigError(
                f"chunk = {self.chunk} must be at least least = {self.least}, and both, and at_once, above 0"
            )

    def allows(self, licence: str) -> bool:
        return allows(self.licences, licence)


@dataclass(frozen=True, kw_only=True)
class Told:
    """A chunk in a style, or why there is none (`doubt`)."""

    chunk: Chunk
    style: str
    author: str
    text: str = ""
    doubt: Doubt | None = None
    checks: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, int, str]:
        return self.chunk.source.id, self.style, self.chunk.start, self.author

    def row(self) -> dict[str, Any]:
        """A line of the export: pre-training text that says where it comes from. Of a rejection: its reason instead."""
        source = self.chunk.source
        about = {
            "style": self.style, "source": source.id, "url": source.url, "licence": source.licence,
            "date": source.retrieved_at[:10] if source.url.startswith("http") else "",
            "span": [self.chunk.start, self.chunk.end], "author": self.author,
        }  # fmt: skip
        if self.doubt:
            return {**about, "reason": self.doubt.reason, "message": self.doubt.message[:500]}
        return {"text": self.text, **about, "checks": dict(self.checks)}


def key_of(row: Mapping[str, Any]) -> tuple[str, str, int, str]:
    """Of a line written before."""
    return row["source"], row["style"], row["span"][0], row["author"]


def author_of(llm: LLM | None) -> str:
    return llm.name if llm and llm.uses_model else AUTHOR


async def rephrase(
    sources: Sequence[Source], config: RephraseConfig, llm: LLM | None = None
) -> AsyncIterator[list[Told]]:
    """Every source in every style: what became of its chunks, a list for each source and style, in their order.

    Without a model the rules write. Raises LLMError when the endpoint fails for good, BudgetError when a cap is reached.
    """
    lanes = ((source, style) for source in sources if config.allows(source.licence) for style in config.styles)
    queue: list[asyncio.Task[list[Told]]] = []
    try:
        for source, style in lanes:
            queue.append(asyncio.ensure_future(_lane(source, style, config, llm)))
            if len(queue) >= config.at_once:
                yield await queue.pop(0)
        while queue:
            yield await queue.pop(0)
    finally:
        for task in queue:
            task.cancel()
        await asyncio.gather(*queue, return_exceptions=True)


async def _lane(source: Source, style: str, config: RephraseConfig, llm: LLM | None) -> list[Told]:
    """Chunk after chunk, each told with the one before in view."""
    told: list[Told] = []
    for chunk in chunks(source, config.chunk, config.least):
        before = told[-1].text if told and not told[-1].doubt else ""
        told.append(await retold(chunk, style, llm, before))
    return told


async def retold(chunk: Chunk, style: str, llm: LLM | None = None, before: str = "") -> Told:
    """One chunk in one style, checked. before: how the chunk before it was told."""
    if llm is None or not llm.uses_model:
        text = await asyncio.to_thread(STYLES[style], chunk.text)
        return _checked(chunk, style, AUTHOR, text)
    try:
        reply = await llm.ask(Rewrite(title=chunk.source.title, text=chunk.text, style=style, before=before))
    except LLMReplyError as error:
        return Told(chunk=chunk, style=style, author=llm.name, doubt=Doubt(reason="form", message=str(error)))
    made = _checked(chunk, style, llm.name, reply.text)
    return made if made.doubt else await _entailed(made, llm)


def _checked(chunk: Chunk, style: str, author: str, text: str) -> Told:
    found = doubts(chunk.text, text)
    if not found and unchanged(chunk.text, text):
        found = [Doubt(reason="unchanged", message="every sentence is as it was")]
    checks = {"rules": "passed", "entailment": "no model"}
    return Told(chunk=chunk, style=style, author=author, text=text, doubt=found[0] if found else None, checks=checks)


async def _entailed(made: Told, llm: LLM) -> Told:
    """Both ways: nothing new in the rewriting, nothing of the source lost."""
    pairs = ((made.chunk.text, made.text, "added"), (made.text, made.chunk.text, "lost"))
    for text, claim, what in pairs:
        try:
            judged = await llm.ask(Follows(text=text, claim=claim))
        except LLMReplyError as error:
            return _doubted(made, f"{what}: no judgement: {error}")
        if judged.follows != "yes":
            return _doubted(made, f"{what} ({judged.follows}): {judged.what}")
    checks = {**made.checks, "entailment": "both ways"}
    return Told(chunk=made.chunk, style=made.style, author=made.author, text=made.text, checks=checks)


def _doubted(made: Told, message: str) -> Told:
    return Told(
        chunk=made.chunk, style=made.style, author=made.author, doubt=Doubt(reason="entailment", message=message)
    )
