"""Puts a batch of cases through the second stage of a run: a corpus of files, an endpoint over HTTP, draft, validate, consensus, screen."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgsynth.concept import Concept
from kgsynth.graph import ConceptGraph
from kgsynth.recipe import Recipe, load_recipe
from kgsynth.sample import Cell, Sample
from kgsynth.stages import Run, open_run
from kgsynth.synthesis import Synthesis
from kgsynth.synthesize import SynthesisEnv, survey
from kgsynth.task import Task
from tests.fake_openai import FakeOpenAI
from tests.written.cases import Case
from tests.written.pages import CHAINS, PAGES, TOPS
from tests.written.script import Model

RECIPE = """
run = {{ name = "r", dir = "{folder}" }}
corpus = {{ builtin = false, paths = ["{folder}/pages"], licence = "CC0-1.0", cache = false }}
embed = {{ model = "hashing" }}
screen = {{ similar = 0.8 }}
llm = {{ kind = "openai", model = "fake", base_url = "{url}", cache = false, api_key_env = "", max_attempts = 1 }}
sample = {{ tasks = 3, types = {{ written = 1.0 }}, per_concept = 1 }}
synthesize = {{ samples_per_task = 20, consensus = {{ attempts = 5, agree = 3, judge = true, hops = true }} }}
"""


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


def write_recipe(folder: Path, url: str, *overrides: str) -> Recipe:
    """A run over the scripted pages, with the model at `url`."""
    pages = folder / "pages"
    pages.mkdir(exist_ok=True)
    texts = {name: text for name, (_, _, text) in PAGES.items()}
    texts |= {name: text for chain, told in CHAINS.items() for name, text in zip(chain, told, strict=True)}
    for name, text in texts.items():
        (pages / f"{name.replace(' ', '-')}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    path = folder / "recipe.toml"
    path.write_text(RECIPE.format(folder=folder, url=url))
    return load_recipe(path, overrides)


def plant(graph: ConceptGraph) -> None:
    """A concept for every page, below its subject; the chains one below the other. Nothing when that was done before."""
    if len(graph):
        return
    tops = {domain: graph.add(Concept(name=name, domain=domain)) for domain, name in TOPS.items()}
    for name, (domain, _, text) in PAGES.items():
        graph.add(Concept(name=name, domain=domain, definition=text.split(". ")[0]), [tops[domain]])
    for chain in CHAINS:
        parent = tops["motion"]
        for name in chain:
            parent = graph.add(Concept(name=name, domain="motion"), [parent])


@dataclass(frozen=True)
class Listed:
    """A plan that asks for these samples and no others."""

    asked: Sequence[Sample]

    def samples(self) -> Iterator[Sample]:
        return iter(self.asked)

    def wants(self, cell: Cell, kept: Mapping[Cell, int]) -> bool:
        return True


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


def run_batch(cases: Sequence[Case], folder: Path, *overrides: str, seed: int = 0) -> list[Outcome]:
    """Every case, decided in order as a run decides its samples: what is kept first is what a duplicate is compared with.
    seed: of the errors of solver and judge."""
    model = Model({}, seed=seed)
    with FakeOpenAI(model) as server:
        recipe = write_recipe(folder, server.url, "sample.tasks=1000", *overrides)
        with open_run(recipe) as run:
            plant(run.graph)
            asked = samples(cases, run.graph)
            names = {concept.id: concept.name for concept in run.graph}
            model.plant({(s.type, names[s.concept], s.variant): c for s, c in zip(asked, cases, strict=True)})
            run.open_tools()
            tasks, rejected = asyncio.run(_decided(run, asked))
    kept = {task.provenance.index: task for task in tasks}
    why = {row["index"]: row for row in rejected}
    return [
        Outcome(case=case, task=kept.get(i), check=why.get(i, {}).get("check", ""), message=why.get(i, {}).get("message", ""))
        for i, case in enumerate(cases)
    ]  # fmt: skip


async def _decided(run: Run, asked: Sequence[Sample]) -> tuple[list[Task], list[dict[str, Any]]]:
    """(kept, rejected) by the loop of the stage, for these samples instead of those that it would have planned."""
    tasks, rejected = list[Task](), list[dict[str, Any]]()
    work = Synthesis(run, tasks, rejected, lambda *_: None)
    async with run.web("synthesize") as (search, reader):
        work.env = SynthesisEnv(
            graph=run.graph, search=search, reader=reader, llm=run.llm, sandbox=work.sandbox,
            embedder=run.embedder, config=run.recipe.synthesize.limits,
        )  # fmt: skip
        await survey(work.env)
        await work._all_of(Listed(asked))  # type: ignore[arg-type]
    await run.llm.close()
    work.sandbox.close()
    return tasks, rejected
