"""What each concept can be asked about: functions, interactive examples and sentences of the pages about it.

Every function, example and sentence belongs to one concept only, the finest that its page is about, so that two concepts
never give the same task. The survey reads each concept's pages once, before the plan is made.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kgsynth.concept import Concept, name_key
from kgsynth.retrieve import is_about, pages_about
from kgsynth.synthesize.env import SynthesisEnv
from kgsynth.synthesize.snippet import Example, examples
from kgsynth.synthesize.stdlib import Function, function_shown, functions_of, module_of
from kgsynth.web import Hit, Page
from kgsynth.web.sentences import sentence_end

MOST_SENTENCES = 12  # per concept
SENTENCE_CHARS = (40, 240)
CONTEXT_CHARS = 200  # of the sentences before, in the same paragraph
_PARAGRAPH = re.compile(r"(?:^|\n\s*\n)(?P<text>[^\n].*?)(?=\n\s*\n|\s*\Z)", re.DOTALL)
_NOT_PROSE = re.compile(
    r"```|>>>|^\s{4}|^\s*(?:#|\||[-*+] |\d+\. )|\n\s*(?:[-*+] |\|)|^See also|^Bases:|\bTO-?DO\b|\bXXX\b", re.MULTILINE
)


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A sentence of running text; `context` is where the quotation around it starts."""

    page: Page
    context: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class PageExample:
    """An interactive example and the page that documents it."""

    page: Page
    example: Example


@dataclass(frozen=True, kw_only=True)
class PageFunction:
    """A standard-library function and the page that documents it."""

    page: Page
    function: Function


@dataclass(frozen=True, kw_only=True)
class Material:
    """Everything a concept may be asked about. Pages about it first, then pages that name it."""

    concept: Concept
    pages: tuple[Page, ...] = ()
    functions: tuple[PageFunction, ...] = ()  # with a slice
    calls: tuple[PageFunction, ...] = ()  # to be called, in whatever language they are written
    examples: tuple[PageExample, ...] = ()
    sentences: tuple[Sentence, ...] = ()


async def survey(env: SynthesisEnv, at_once: int = 8) -> dict[str, Material]:
    """Concept id -> Material, for every concept of the graph. Depends on the graph and the pages only."""
    gate = asyncio.Semaphore(at_once)

    async def read(concept: Concept) -> list[Page]:
        async with gate:
            return await _pages(concept, env)

    concepts = sorted(env.concepts, key=lambda c: -env.graph.level(c))
    pages = dict(zip((c.id for c in concepts), await asyncio.gather(*map(read, concepts)), strict=True))
    return await asyncio.to_thread(_share_out, concepts, pages, env)


async def _pages(concept: Concept, env: SynthesisEnv) -> list[Page]:
    cited = dict.fromkeys(span.url for span in env.spans.get(concept.id, ()))
    ancestors = env.graph.ancestors(concept)
    found = await pages_about(concept, ancestors, list(cited), env.web, env.config.retrieve)
    for page in found:
        env.remember(page)
    return found


def _share_out(concepts: list[Concept], pages: dict[str, list[Page]], env: SynthesisEnv) -> dict[str, Material]:
    """Finest concepts choose first: all of the pages about them, then sentences elsewhere that name them."""
    taken: set[tuple[str, object]] = set()

    def free(kind: str, key: object) -> bool:
        new = (kind, key) not in taken
        taken.add((kind, key))
        return new

    functions, calls, snippets, sentences = {}, {}, {}, {}
    for c in concepts:
        own = [page for page in pages[c.id] if _about(c, page)]
        functions[c.id] = [f for page in own for f in _functions(page, env) if free("function", f.function.dotted)]
        calls[c.id] = [f for page in own for f in _calls(page) if free("call", f.function.dotted)]
        snippets[c.id] = [e for page in own for e in _examples(page) if free("example", e.example.statements)]
        sentences[c.id] = [s for s in _first(s for p in own for s in _sentences(p)) if free("sentence", _text_key(s))]
    for c in concepts:
        named = (s for p in pages[c.id] if not _about(c, p) for s in _sentences(p) if _names(c, s))
        sentences[c.id] += [s for s in _first(named) if free("sentence", _text_key(s))]
    return {
        c.id: Material(
            concept=c,
            pages=tuple(pages[c.id]),
            functions=tuple(functions[c.id]),
            calls=tuple(calls[c.id]),
            examples=tuple(snippets[c.id]),
            sentences=tuple(sentences[c.id][:MOST_SENTENCES]),
        )
        for c in concepts
    }


def _about(concept: Concept, page: Page) -> bool:
    return is_about(concept, Hit(url=page.url, title=page.title))


def _first(sentences: Iterable[Sentence]) -> list[Sentence]:
    return [s for s, _ in zip(sentences, range(MOST_SENTENCES), strict=False)]


def _text_key(sentence: Sentence) -> str:
    return name_key(sentence.page.source.text[sentence.start : sentence.end])


def _names(concept: Concept, sentence: Sentence) -> bool:
    padded = f" {_text_key(sentence)} "
    return any(f" {key} " in padded for key in concept.keys)


def _functions(page: Page, env: SynthesisEnv) -> list[PageFunction]:
    found = functions_of(page.url, env.config.max_reference_chars)
    return [PageFunction(page=page, function=function) for function in found]


def _calls(page: Page) -> list[PageFunction]:
    function = function_shown(page)
    return [PageFunction(page=page, function=function)] if function else []


def _examples(page: Page) -> list[PageExample]:
    return [PageExample(page=page, example=e) for e in examples(page.source.text, module_of(page.url))]


def _sentences(page: Page) -> Iterator[Sentence]:
    """Sentences of the page's running text: no code, lists, tables or headings."""
    text = page.source.text
    for paragraph in _PARAGRAPH.finditer(text):
        at, end = paragraph.span("text")
        if _NOT_PROSE.search(text, at, end):
            continue
        context = at
        while at < end:
            stop = min(end, sentence_end(text, at))
            if SENTENCE_CHARS[0] <= stop - at <= SENTENCE_CHARS[1]:
                yield Sentence(page=page, context=context if at - context <= CONTEXT_CHARS else at, start=at, end=stop)
            at = stop
            while at < end and text[at].isspace():
                at += 1
