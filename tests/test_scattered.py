"""Long contexts: the answer needs all of them, and the program that arranged them knows it."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from kgsynth.concept import Concept, Source
from kgsynth.embed import open_embedder
from kgsynth.graph import ConceptGraph
from kgsynth.llm.offline import OfflineExtractive
from kgsynth.sample import Sample
from kgsynth.sandbox import Sandbox
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.synthesize import DraftConfig, Rejection, SynthesisEnv, draft, survey
from kgsynth.synthesize.material import Material
from kgsynth.synthesize.shelf import Document, Library
from kgsynth.synthesize.types.scattered import Context, _arranged
from kgsynth.task import DIFFICULTIES, Task
from kgsynth.validate import validate
from kgsynth.verifiers import verify
from kgsynth.web import Page
from kgsynth.web.corpus import CorpusConfig, open_corpus
from kgsynth.web.read import Reader


def page(number: int, text: str, title: str = "") -> Page:
    return Page(source=Source(url=f"https://example.org/{number:04}", title=title or f"page {number}", text=text, licence="CC0-1.0"))  # fmt: skip


def library(pages: int = 400, chars: int = 900) -> Library:
    """Every tenth page has the word `needle`, every other tenth one that looks like it."""
    words = {0: "needle", 5: "needles Needle"}
    texts = (f"{'lorem ipsum ' * (chars // 12)}{words.get(i % 10, '')} number {i}" for i in range(pages))
    return Library.of([Material(concept=Concept(name="x", domain="d"), pages=tuple(page(i, t) for i, t in enumerate(texts)))])  # fmt: skip


def test_a_library_has_every_text_and_every_title_once() -> None:
    pages = [page(2, "same"), page(1, "same"), page(3, "other", "Page 1"), page(4, "more")]
    found = Library.of([Material(concept=Concept(name="x", domain="d"), pages=tuple(pages))] * 2)
    assert [d.page.url[-1] for d in found.documents] == ["1", "4"]
    assert found.holding["same"] == (0,)


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
@pytest.mark.parametrize("tokens", [8_000, 64_000])
def test_no_quarter_is_enough(difficulty: str, tokens: int) -> None:
    for seed in range(5):
        context = _arranged("needle", tokens, library(), random.Random(seed))
        answer = context.answer(difficulty)
        size = sum(len(d.text) for d in context.shelf)
        assert 0.9 * tokens * 4 < size < 1.02 * tokens * 4
        for start in range(len(context.shelf)):
            end, seen = start, 0
            while end < len(context.shelf) and seen + len(context.shelf[end].text) <= size / 4:
                seen += len(context.shelf[end].text)
                end += 1
            assert context.answer(difficulty, start, end) != answer
        assert any("Needle" in d.words for d in context.shelf), "what only looks like the word is there too"


def test_a_million_tokens_are_arranged() -> None:
    context = _arranged("needle", 1_000_000, library(1200, 4000), random.Random(0))
    assert sum(len(d.text) for d in context.shelf) > 3_800_000
    assert len(context.answer("easy")) >= 4
    assert not any(context.answer("easy", *run) == context.answer("easy") for run in context.quarters())


def test_a_quarter_that_is_enough_is_seen() -> None:
    texts = ["needle " + "x " * 400, *("y " * 400 + str(i) for i in range(20))]
    shelf = [Document(page=page(i, t), words=frozenset(t.split())) for i, t in enumerate(texts)]
    context = Context(shelf=shelf, word="needle")
    assert any(context.answer("easy", *run) == context.answer("easy") for run in context.quarters())


@pytest.fixture(scope="module")
def env(sandbox: Sandbox) -> SynthesisEnv:
    corpus, graph = open_corpus(CorpusConfig(), open_embedder("hashing")), ConceptGraph(EmbeddedStore(":memory:"))
    root = graph.add(Concept(name="the library", domain="python"))
    names = [url.rsplit("/", 1)[-1] for url in corpus.urls() if "/library/" in url][::7]
    for name in names:
        graph.add(Concept(name=name, domain="python"), [root])
    found = SynthesisEnv(
        graph=graph, search=corpus, reader=Reader(corpus), llm=OfflineExtractive(), sandbox=sandbox,
        config=DraftConfig(context_tokens=(8_000,)),
    )  # fmt: skip
    asyncio.run(survey(found))
    return found


def samples(env: SynthesisEnv, n: int) -> list[Sample]:
    capacity = asyncio.run(survey(env))
    able = [c for c in env.concepts if capacity("scattered", c)]
    return [
        Sample(
            index=i, seed=0, type="scattered", domain=c.domain, granularity="atomic", concept=c.id,
            difficulty=DIFFICULTIES[i % 3],
        )
        for i, c in enumerate(able[:n])
    ]  # fmt: skip


def test_tasks_from_real_pages_validate_and_cite_every_page(env: SynthesisEnv, sandbox: Sandbox) -> None:
    made = [asyncio.run(draft(sample, env)) for sample in samples(env, 12)]
    tasks = [task for task in made if isinstance(task, Task)]
    assert len(tasks) >= 9, [item for item in made if isinstance(item, Rejection)]
    for task in tasks:
        validate(task, sandbox)
        assert len(task.provenance.spans) == task.hints["documents"] == task.prompt.count("<document number=")
        assert set(task.provenance.licences) <= {"PSF-2.0", "Apache-2.0"}
        assert verify(task.prompt, task).score == 0
    assert asyncio.run(draft(samples(env, 1)[0], env)) == made[0]


def test_a_length_that_the_pages_cannot_fill_is_said_to_be_so(env: SynthesisEnv) -> None:
    short = replace(env, config=DraftConfig(context_tokens=(1_000_000,)))
    made = asyncio.run(draft(samples(env, 1)[0], short))
    assert isinstance(made, Rejection)
    assert made.check == "material"
    assert "no length fits" in made.message
    concept = next(iter(env.concepts))
    assert asyncio.run(survey(short))("scattered", concept) == 0
