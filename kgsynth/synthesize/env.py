"""What every task type works with: the graph, the web, a sandbox, and the vocabulary; and how a task is put together."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kgsynth.concept import Concept, Edge, Source, SourceSpan, allows, content_id, name_key
from kgsynth.embed import Embedder
from kgsynth.errors import ConfigError
from kgsynth.graph import ConceptGraph
from kgsynth.llm import LLM
from kgsynth.retrieve import RetrieveConfig, Web
from kgsynth.sample import Sample
from kgsynth.sandbox import Sandbox
from kgsynth.task import Image, Provenance, Task, VerifierSpec
from kgsynth.web import Page, SearchProvider
from kgsynth.web.read import Reader

if TYPE_CHECKING:
    from kgsynth.synthesize.facts import Facts
    from kgsynth.synthesize.hops import Puzzles
    from kgsynth.synthesize.masks import Masks
    from kgsynth.synthesize.material import Material
    from kgsynth.synthesize.oracle import Probe, Trial
    from kgsynth.synthesize.quantities import Quantity
    from kgsynth.synthesize.shelf import Library

PROGRAMMATIC = "programmatic"
LEAST_CONTEXT = 1000  # tokens of a long prompt
ARTICLES = frozenset({"a", "an", "the"})
WORD = re.compile(r"[A-Za-z][A-Za-z_]*(?:[.\-][A-Za-z_]+)*")


@dataclass(frozen=True, kw_only=True)
class DraftConfig:
    """[synthesize.limits]: limits of what is drafted. Lengths are characters."""

    licences: tuple[str, ...] = ()  # allowed of every source that a task cites, e.g. ["PSF-2.0", "CC-BY-*"]; empty: any
    context_tokens: tuple[int, ...] = (8_000, 16_000, 32_000)  # lengths of long prompts, at four characters a token
    max_prompt_chars: int = 1200
    max_reference_chars: int = 900
    max_code_chars: int = 2400  # of library code that a repair, complete or translate task shows or asks for
    max_output_chars: int = 100  # of a predicted output
    least_tests: int = 8  # hidden tests of an implement task
    most_tests: int = 12
    retrieve: RetrieveConfig = RetrieveConfig()

    def __post_init__(self) -> None:
        where = "[synthesize.limits]"
        if not self.context_tokens or min(self.context_tokens) < LEAST_CONTEXT:
            given = list(self.context_tokens)
            raise ConfigError(f"{where} context_tokens must be numbers of at least {LEAST_CONTEXT}, not {given}")
        for name in ("max_prompt_chars", "max_reference_chars", "max_code_chars", "max_output_chars", "least_tests"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{where} {name} must be at least 1, not {getattr(self, name)}")
        if self.most_tests < self.least_tests:
            raise ConfigError(
                f"{where} most_tests ({self.most_tests}) must not be below least_tests ({self.least_tests})"
            )

    def allows(self, licence: str) -> bool:
        return allows(self.licences, licence)


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """A sample that gave no task. `check` is material, licence, oracle, reference, wrong, unique, form, quote or llm."""

    index: int
    type: str
    concept: str
    check: str
    message: str


def reject(sample: Sample, check: str, message: str) -> Rejection:
    return Rejection(index=sample.index, type=sample.type, concept=sample.concept, check=check, message=message)


@dataclass(kw_only=True)
class SynthesisEnv:
    """The tools and the caches of one run of synthesis. The graph must not change while it is used."""

    graph: ConceptGraph
    search: SearchProvider
    reader: Reader
    llm: LLM
    sandbox: Sandbox
    embedder: Embedder | None = None
    config: DraftConfig = field(default_factory=DraftConfig)
    material: dict[str, Material] | None = None  # filled by the survey
    probes: dict[str, asyncio.Future[Probe]] = field(default_factory=dict, repr=False)  # by dotted function name
    calls: dict[str, asyncio.Future[list[Trial]]] = field(default_factory=dict, repr=False)  # likewise
    tried: dict[str, asyncio.Future[Any]] = field(
        default_factory=dict, repr=False
    )  # bugs and ports, by what and function
    library: dict[str, Any] = field(default_factory=dict, repr=False)  # see `library.py`
    named: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)  # by concept id: see `choice.py`
    bases: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)  # likewise
    _words: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)
    _cited: dict[str, tuple[str, str]] = field(default_factory=dict, repr=False)  # (licence, date) by source id

    @cached_property
    def web(self) -> Web:
        return Web(search=self.search, reader=self.reader)

    @cached_property
    def shelf(self) -> Library:
        """Every page that the survey has read, each text once."""
        from kgsynth.synthesize.shelf import Library

        return Library.of((self.material or {}).values())

    @cached_property
    def facts(self) -> Facts:
        """What the pages that the survey has read state in fixed words, and the graph's edges."""
        from kgsynth.synthesize.facts import Facts

        return Facts((page for each in (self.material or {}).values() for page in each.pages), self.graph)

    @cached_property
    def puzzles(self) -> Puzzles:
        """The questions that several of these facts answer together."""
        from kgsynth.synthesize.hops import Puzzles

        return Puzzles(self.facts, self.concepts)

    @cached_property
    def masks(self) -> Masks:
        """The spans of the surveyed pages that a task may hide."""
        from kgsynth.synthesize.masks import Masks

        homes = {name: found.id for name in self.facts.documented if (found := self.puzzles.concept(name))}
        return Masks(self.material or {}, self.facts, homes)

    @cached_property
    def quantities(self) -> Mapping[str, Sequence[Quantity]]:
        """Concept id -> the numbers that its pages state for certain, each given to one concept only."""
        from kgsynth.synthesize.quantities import share_out

        return share_out(self.material or {}, self.facts, self.puzzles.concept)

    @cached_property
    def concepts(self) -> list[Concept]:
        return list(self.graph)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Every spelling a concept answers to, normalised."""
        return frozenset(key for concept in self.concepts for key in concept.keys)

    @cached_property
    def _terms(self) -> dict[tuple[str, int], set[str]]:
        found: dict[tuple[str, int], set[str]] = {}
        for concept in self.concepts:
            for name in (concept.name, *concept.aliases):
                for term in {name.casefold(), *(w.casefold() for w in WORD.findall(name))} - {""}:
                    found.setdefault((term[0], len(term)), set()).add(term)
        return found

    def terms_like(self, first: str, length: int) -> set[str]:
        """Names of concepts, and words of such names, in lower case, with this first letter and length."""
        return self._terms.get((first, length), set())

    def concept_names_in(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Offsets of concept names of at most five words in text[start:end], longest first at each place, no overlaps."""
        words = [m.span() for m in WORD.finditer(text, start, end) if m.group().casefold() not in ARTICLES]
        i = 0
        while i < len(words):
            for j in range(min(len(words), i + 5), i, -1):
                if name_key(text[words[i][0] : words[j - 1][1]]) in self.vocabulary:
                    yield words[i][0], words[j - 1][1]
                    i = j - 1
                    break
            i += 1

    def page_words(self, page: Page) -> frozenset[str]:
        """The words of a page in lower case."""
        if page.url not in self._words:
            self._words[page.url] = frozenset(w.casefold() for w in WORD.findall(page.source.text))
        return self._words[page.url]

    @cached_property
    def spans(self) -> Mapping[str, tuple[SourceSpan, ...]]:
        """Concept id -> the spans of the edges that lead to it, then of those that leave it."""
        into: dict[str, list[SourceSpan]] = {}
        out: dict[str, list[SourceSpan]] = {}
        for edge in self.graph.edges():
            into.setdefault(edge.child, []).extend(edge.spans)
            out.setdefault(edge.parent, []).extend(edge.spans)
        ids = dict.fromkeys([*into, *out])
        return {i: tuple(dict.fromkeys([*into.get(i, []), *out.get(i, [])])) for i in ids}

    def path_edges(self, upper: str, lower: str) -> list[Edge]:
        """A shortest chain of edges from a concept down to a finer one."""
        below: dict[str, str] = {}
        frontier = [lower]
        while frontier and upper not in below:
            steps = [(parent.id, c) for c in frontier for parent in self.graph.parents(c) if parent.id not in below]
            below |= dict(reversed(steps))
            frontier = list(dict.fromkeys(parent for parent, _ in steps))
        found, at = list[Edge](), upper
        while at != lower and at in below:
            edge = self.graph.edge(at, below[at])
            found += [edge] if edge else []
            at = below[at]
        return found

    def path_spans(self, upper: str, lower: str) -> list[SourceSpan]:
        """The spans that justify such a chain."""
        return list(dict.fromkeys(span for edge in self.path_edges(upper, lower) for span in edge.spans))

    def remember(self, page: Page) -> None:
        """Keep the licence and the date of a page that spans will cite."""
        self.cite(page.source)

    def cite(self, source: Source) -> None:
        """The same for any text."""
        self._cited[source.id] = source.licence, _date(source)

    def licence(self, span: SourceSpan) -> str:
        return self._citation(span)[0]

    def date(self, span: SourceSpan) -> str:
        """The day its source was fetched, "" for a document on this machine."""
        return self._citation(span)[1]

    def _citation(self, span: SourceSpan) -> tuple[str, str]:
        if span.source not in self._cited:
            found = self.graph.store.sources([span.source])
            self._cited[span.source] = (found[0].licence, _date(found[0])) if found else ("unknown", "")
        return self._cited[span.source]


def _date(source: Source) -> str:
    return source.retrieved_at[:10] if source.url.startswith("http") else ""


def rng_of(sample: Sample, purpose: str = "") -> random.Random:
    """A generator that depends on (seed, index, purpose) only."""
    return random.Random(content_id("rng", str(sample.seed), str(sample.index), purpose))


def answered(text: str) -> str:
    """A whole reply whose answer is `text`."""
    return f"<answer>{text}</answer>"


def build_task(
    sample: Sample,
    env: SynthesisEnv,
    *,
    concepts: Sequence[Concept],
    prompt: str,
    verifier: VerifierSpec,
    reference: str,
    wrong: Sequence[str],
    spans: Sequence[SourceSpan],
    author: str = PROGRAMMATIC,
    images: Sequence[Image] = (),
    hints: Mapping[str, float] | None = None,
    most_chars: int = 0,
) -> Task | Rejection:
    """The task of a sample, or a Rejection when it would be too long, untraceable, not licensed or without a wrong answer.

    hints: figures about it for whoever filters or plots; most_chars: of the prompt, where it may be longer than usual.
    """
    wrong = [answer for answer in dict.fromkeys(wrong) if answer != reference]
    most_chars = most_chars or env.config.max_prompt_chars
    if len(prompt) > most_chars:
        return reject(sample, "form", f"the prompt has {len(prompt)} characters, over {most_chars}")
    if refused := sorted({env.licence(span) for span in spans if not env.config.allows(env.licence(span))}):
        return reject(sample, "licence", f"{', '.join(refused)}: not among [synthesize.limits] licences")
    if not spans:
        return reject(sample, "material", f"no source span supports a task about {concepts[0].name!r}")
    if not wrong:
        return reject(sample, "wrong", f"no wrong answer to plant for a task about {concepts[0].name!r}")
    return Task(
        type=sample.type,
        domain=sample.domain,
        granularity=sample.granularity,
        prompt=prompt,
        verifier=verifier,
        reference=reference,
        wrong=tuple(wrong),
        provenance=Provenance(
            concepts=tuple(dict.fromkeys(c.id for c in concepts)),
            names=tuple(dict.fromkeys(c.name for c in concepts)),
            spans=tuple(spans),
            licences=tuple(env.licence(span) for span in spans),
            author=author,
            dates=tuple(env.date(span) for span in spans),
            seed=sample.seed,
            index=sample.index,
        ),
        scope=sample.scope,
        difficulty=sample.difficulty,
        hints={
            "prompt_chars": len(prompt),
            "reference_chars": len(reference),
            "level": env.graph.level(sample.concept),
            **(hints or {}),
        },
        images=tuple(images),
    )
