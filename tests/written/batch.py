"""Puts a batch of cases through the real thing: a graph, a corpus of files, an endpoint over HTTP, draft, validate, consensus, screen."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgsynth.concept import Concept
from kgsynth.consensus import ConsensusConfig, consensus
from kgsynth.embed import Embedder
from kgsynth.errors import ValidationError
from kgsynth.graph import ConceptGraph
from kgsynth.llm.openai import LLMConfig, OpenAIChat
from kgsynth.sample import Sample
from kgsynth.sandbox import Sandbox
from kgsynth.screen import Screen, ScreenConfig
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.synthesize import Rejection, SynthesisEnv, draft, survey
from kgsynth.task import Task
from kgsynth.validate import validate
from kgsynth.web.corpus import CorpusConfig, open_corpus
from kgsynth.web.read import Reader
from tests.fake_openai import FakeOpenAI
from tests.written.cases import Case
from tests.written.pages import CHAINS, PAGES, TOPS
from tests.written.script import Model

CONSENSUS = ConsensusConfig(attempts=5, agree=3, judge=True, votes=5)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a case: a task, or the check that rejected it."""

    case: Case
    task: Task | None = None
    check: str = ""
    message: str = ""

    @property
    def is_right(self) -> bool:
        """Kept when good, rejected for the right reason when bad."""
        return self.check in self.case.checks if self.case.checks else self.task is not None


def write_pages(folder: Path) -> None:
    """The pages as files of a corpus, one each."""
    texts = {name: text for name, (_, _, text) in PAGES.items()}
    texts |= {name: text for chain, pages in CHAINS.items() for name, text in zip(chain, pages, strict=True)}
    for name, text in texts.items():
        (folder / f"{name.replace(' ', '-')}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")


def planted_graph() -> ConceptGraph:
    """A concept for every page, below its subject; the chains one below the other."""
    graph = ConceptGraph(EmbeddedStore(":memory:"))
    tops = {domain: graph.add(Concept(name=name, domain=domain)) for domain, name in TOPS.items()}
    for name, (domain, _, text) in PAGES.items():
        graph.add(Concept(name=name, domain=domain, definition=text.split(". ")[0]), [tops[domain]])
    for chain in CHAINS:
        parent = tops["motion"]
        for name in chain:
            parent = graph.add(Concept(name=name, domain="motion"), [parent])
    return graph


def samples(cases: Sequence[Case], graph: ConceptGraph) -> list[Sample]:
    """One for each case; the variant says which of its concept and type it is."""
    ids, seen = {concept.name: concept.id for concept in graph}, Counter[tuple[str, str]]()
    made = []
    for index, case in enumerate(cases):
        told = case.about[-1] if case.type == "written_hops" else case.about[0]
        made.append(
            Sample(
                index=index,
                seed=0,
                type=case.type,
                domain="any",
                granularity="atomic",
                concept=ids[told],
                related=tuple(ids[name] for name in case.about if name != told),
                scope=case.scope,
                variant=seen[case.type, told],
            )
        )
        seen[case.type, told] += 1
    return made


def run_batch(cases: Sequence[Case], folder: Path, sandbox: Sandbox, embedder: Embedder) -> list[Outcome]:
    """Every case in turn, as a run decides them: what is kept first is what a duplicate is compared with."""
    write_pages(folder)
    graph = planted_graph()
    asked = samples(cases, graph)
    names = {concept.id: concept.name for concept in graph}
    planted = {(s.type, names[s.concept], s.variant): case for s, case in zip(asked, cases, strict=True)}
    corpus = open_corpus(CorpusConfig(builtin=False, paths=(str(folder),), licence="CC0-1.0", cache=False), embedder)
    with FakeOpenAI(Model(planted)) as server:
        llm = OpenAIChat(LLMConfig(kind="openai", model="fake", base_url=server.url, cache=False), folder)
        env = SynthesisEnv(
            graph=graph, search=corpus, reader=Reader(corpus), llm=llm, sandbox=sandbox, embedder=embedder
        )
        return asyncio.run(_decided(list(zip(cases, asked, strict=True)), env, Screen(ScreenConfig(), embedder)))


async def _decided(pairs: Iterable[tuple[Case, Sample]], env: SynthesisEnv, screen: Screen) -> list[Outcome]:
    await survey(env)
    gate = asyncio.Semaphore(4)

    async def examined(case: Case, sample: Sample) -> Outcome:
        async with gate:
            return await _examined(case, sample, env)

    outcomes, seen = await asyncio.gather(*(examined(*pair) for pair in pairs)), set[str]()
    await env.llm.close()
    return [_screened(outcome, screen, seen) for outcome in outcomes]


async def _examined(case: Case, sample: Sample, env: SynthesisEnv) -> Outcome:
    """Everything that looks at one task alone."""
    made = await draft(sample, env)
    if isinstance(made, Rejection):
        return Outcome(case=case, check=made.check, message=made.message)
    try:
        await asyncio.to_thread(validate, made, env.sandbox)
        await consensus(made, CONSENSUS, env.llm, sandbox=env.sandbox, web=env.web)
    except ValidationError as error:
        return Outcome(case=case, check=error.check, message=str(error))
    return Outcome(case=case, task=made)


def _screened(outcome: Outcome, screen: Screen, seen: set[str]) -> Outcome:
    """Compared with what was kept before it."""
    task = outcome.task
    if task is None:
        return outcome
    if task.prompt in seen:
        return Outcome(case=outcome.case, check="unique", message="the same prompt was kept before")
    if found := screen.finding(task):
        return Outcome(case=outcome.case, check=found.check, message=found.message)
    seen.add(task.prompt)
    screen.add(task)
    return outcome
