"""The two stages of a run, from a recipe to files: grow the graph, then make the task set.

    recipe = load_recipe("recipes/demo.toml")
    with open_run(recipe) as run:
        grow_graph(run)
        make_tasks(run)

Each stage asks the run folder what is done already and does the rest. Nothing here decides anything about concepts or
tasks: that is in `grow/`, `sample.py`, `synthesize/` and `validate.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from functools import cached_property, partial
from typing import Any, TypeVar

from kgsynth.annotate import annotate
from kgsynth.embed import Embedder, open_embedder
from kgsynth.errors import RunError
from kgsynth.feedback import to_learn
from kgsynth.graph import ConceptGraph
from kgsynth.grow.grow import grow, plant
from kgsynth.grow.on_ray import grow_on_ray
from kgsynth.grow.progress import GrowReport, Progress
from kgsynth.grow.workers import grow_in_processes
from kgsynth.ledger import CHARGED_TO, Ledger, Spend
from kgsynth.llm import LLM
from kgsynth.llm.offline import OfflineExtractive
from kgsynth.llm.openai import OpenAIChat
from kgsynth.recipe import Recipe
from kgsynth.run import RunFolder
from kgsynth.store import open_store
from kgsynth.synthesis import Synthesis
from kgsynth.task import Task, TaskSet
from kgsynth.web import SearchProvider
from kgsynth.web.corpus import Corpus, open_corpus
from kgsynth.web.open import open_archive, open_web
from kgsynth.web.read import Reader
from kgsynth.web.sites import SiteFetcher
from kgsynth.worker import report_of

T = TypeVar("T")

# Settings that change how fast or at what cost a run goes, never what it makes.
MAY_CHANGE = (
    "run.dir", "grow.agents", "grow.order", "grow.domains", "grow.processes", "grow.on", "grow.attempts",
    "grow.lease_seconds", "corpus.cache", "synthesize.drafts", "llm.", "web.", "feedback.",
)  # fmt: skip


class Run:
    """A recipe, its folder, and the tools that its stages share, each made when first asked for."""

    def __init__(self, recipe: Recipe, folder: RunFolder, *, offline: bool = False) -> None:
        """offline: nothing goes out; the archive, the ledger and the reply cache answer."""
        self.recipe, self.folder, self.offline = recipe, folder, offline

    @property
    def owner(self) -> str:
        """The name under which the run leases concepts."""
        return f"run {self.recipe.run.name}"

    def close(self) -> None:
        if "graph" in vars(self):
            self.graph.store.close()

    @cached_property
    def graph(self) -> ConceptGraph:
        return ConceptGraph(open_store(self.recipe.store.url or f"sqlite:{self.folder / 'graph.sqlite'}"))

    @cached_property
    def embedder(self) -> Embedder:
        return open_embedder(self.recipe.embed.model)

    @cached_property
    def corpus(self) -> Corpus:
        return open_corpus(self.recipe.corpus, self.embedder)

    @asynccontextmanager
    async def web(self, stage: str) -> AsyncIterator[tuple[SearchProvider, Reader]]:
        """Where a stage searches and reads, and is charged for it: the configured providers, or the corpus."""
        config = self.recipe.web
        with contextlib.ExitStack() as files:
            archive = open_archive(config)
            if archive is not None:
                files.callback(archive.close)
            web = open_web(
                config, corpus=lambda: self.corpus, archive=archive, offline=self.offline,
                charge=partial(self._charge, stage), tally=self.folder / "searches",
            )  # fmt: skip
            async with web as (search, fetcher):
                yield search, Reader(SiteFetcher(fetcher) if config.providers else fetcher)

    async def _charge(self, stage: str, provider: str, usd: float) -> None:
        """A paid search, on the account of the concept that is researched. Raises BudgetError."""
        async with self.ledger.charge(Spend(calls=1, usd=usd), stage=stage, model=provider, concept=CHARGED_TO.get()):
            return  # paid for whatever comes of it

    @cached_property
    def ledger(self) -> Ledger:
        if isinstance(self.llm, OpenAIChat):
            return self.llm.ledger
        return Ledger(self.folder / "ledger.sqlite", caps=self.recipe.llm.caps)

    def open_tools(self) -> None:
        """Make what takes seconds to make, before an event loop runs: there a Ctrl-C would have to wait for it."""
        _ = self.embedder, self.recipe.web.providers or self.corpus

    @cached_property
    def llm(self) -> LLM:
        config = self.recipe.llm
        return (
            OfflineExtractive()
            if config.kind == "offline"
            else OpenAIChat(config, self.folder.path, offline=self.offline)
        )

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, int]]:
        """Times a stage and records it, with the counts put into what it yields, however it ends (short of a kill)."""
        start, counts, ended = time.time(), {}, "stopped"
        try:
            yield counts
            ended = "done"
        finally:
            row = {"stage": name, "seconds": round(time.time() - start, 3), "ended": ended, "counts": counts}
            self.folder.append("stages.jsonl", {**row, "brain": self.llm.name})


@contextmanager
def open_run(recipe: Recipe, say: Callable[[str], None] = print, *, offline: bool = False) -> Iterator[Run]:
    """The run folder, locked, mended after a kill and checked to belong to this recipe. Raises RunError."""
    folder = RunFolder(recipe.run.folder)
    with folder.lock(say):
        for name in ("tasks.jsonl", "rejected.jsonl", "stages.jsonl"):
            folder.mend(name)
        folder.claim(recipe.tables, MAY_CHANGE)
        run = Run(recipe, folder, offline=offline)
        try:
            yield run
        finally:
            run.close()


def _wait(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in a thread of its own where a loop is running already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def grow_graph(run: Run, on_progress: Callable[[Progress], None] = lambda _: None) -> GrowReport | None:
    """Grow the graph until its frontier is empty and its vectors are stored; None when that was so already."""
    frontier = run.graph.store.frontier()
    if frontier["done"] and not frontier["waiting"] + frontier["leased"] and _has_vectors(run.graph):
        return None
    with run.stage("grow") as counts:
        if run.recipe.grow.processes == 1:
            run.open_tools()
        report = _wait(_grow_everywhere(run, on_progress))
        done = report.tally
        counts |= {"concepts": len(run.graph), "edges": run.graph.number_of_edges(), "refused_edges": done.refused}
        counts |= {"researched": done.researched, "failed": done.failed}
    return report


def _has_vectors(graph: ConceptGraph) -> bool:
    """They are stored last: a kill may have come before."""
    return len(graph.store.embeddings()[1]) == len(graph)


async def _grow_everywhere(run: Run, on_progress: Callable[[Progress], None]) -> GrowReport:
    """In this process, or in several."""
    config = run.recipe.grow
    run.graph.store.release(run.owner, workers=True)  # of a run that was killed, in however many processes it was
    if config.processes == 1:
        return await grow_here(run, on_progress)
    plant(run.graph, config.seeds)
    folder, store = str(run.folder.path.absolute()), run.graph.store
    if config.on == "ray":
        work = partial(report_of, folder, run.offline)
        report = await grow_on_ray(work, config.processes, store, on_progress)
    else:
        command = [sys.executable, "-m", "kgsynth.worker", folder, *(["--offline"] if run.offline else [])]
        report = await grow_in_processes(command, config.processes, store, run.owner, on_progress)
    run.graph.refresh()
    return report


async def grow_here(
    run: Run, on_progress: Callable[[Progress], None], *, owner: str = "", patient: bool = False
) -> GrowReport:
    """Grow in this process; see `grow.grow` for patient."""
    weight = partial(to_learn, run.graph.store, run.recipe.feedback) if "feedback" in run.recipe.grow.order else dict
    try:
        async with run.web("grow") as (search, reader):
            return await grow(
                run.graph, run.recipe.grow, llm=run.llm, search=search, reader=reader, embedder=run.embedder,
                owner=owner or run.owner, patient=patient, weight=weight, on_progress=on_progress,
            )  # fmt: skip
    finally:
        await run.llm.close()


def make_tasks(run: Run, on_progress: Callable[[int, int, int], None] = lambda *_: None) -> TaskSet:
    """Draft and validate samples until `[sample] tasks` are kept; returns all that are kept.

    on_progress(kept, wanted, rejected) is called after each sample. Samples are decided in order, so what is kept does not
    depend on how many are drafted at once, nor on where the stage was stopped before. The tasks are put into the graph too.
    """
    tasks = load_kept(run.folder)
    rejected = run.folder.rows("rejected.jsonl", needs=("index", "check"))
    if len(tasks) >= run.recipe.sample.tasks or any(row["check"] == "exhausted" for row in rejected):
        annotate(run.graph.store, run.folder.path, tasks)
        return TaskSet(tasks)
    if not len(run.graph):
        raise RunError(f"the graph of {run.folder.path} is empty; grow it first, with `kgsynth grow` or `kgsynth run`")
    with run.stage("synthesize") as counts:
        _wait(Synthesis(run, tasks, rejected, on_progress).work())
        counts |= {"kept": len(tasks), "rejected": len(rejected), **Counter(f"kept {t.type}" for t in tasks)}
    annotate(run.graph.store, run.folder.path, tasks)
    return TaskSet(tasks)


def annotate_graph(recipe: Recipe) -> dict[str, int]:
    """Put the tasks of a run, and the pass rates its trainer has measured by now, into its graph.

    Returns counts: tasks, tried (those with a pass rate), changed. Raises RunError when there is no graph yet.
    """
    folder = RunFolder(recipe.run.folder)
    graph = folder / "graph.sqlite"
    if not recipe.store.url and not graph.exists():
        raise RunError(f"the run {folder.path} has no graph yet; make one with `kgsynth run RECIPE.toml`")
    with closing(open_store(recipe.store.url or f"sqlite:{graph}")) as store:
        tasks = load_kept(folder)
        changed = annotate(store, folder.path, tasks)
        ids = {task.id for task in tasks}
        tried = sum(task.id in ids and task.pass_rate is not None for task in store.tasks())
    return {"tasks": len(tasks), "tried": tried, "changed": changed}


def load_kept(folder: RunFolder) -> list[Task]:
    """The tasks kept so far. Raises TaskError naming file and line."""
    path = folder / "tasks.jsonl"
    return list(TaskSet.load(path)) if path.exists() else []
