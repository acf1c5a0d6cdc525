"""The loop of the second stage: samples are drafted and tried a few at a time, and decided one by one in their order.

    draft        a task, or why there is none (`synthesize/`)
    validate     its verifier accepts the right and rejects the wrong (`validate/`)
    consensus    independent solvers and a judge agree with it, where a model is configured (`consensus.py`)
    screen       it is no copy of a task kept before, of an earlier set or of a benchmark (`screen/`)

The first three look at one task only and run at the same time. The last depends on what was kept before, so it comes when
it is the sample's turn: what is kept does not depend on how many are at work, nor on where the stage was stopped.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kgsynth.consensus import consensus
from kgsynth.coverage import axis_rows, coverage, deviation
from kgsynth.errors import TaskError, ValidationError
from kgsynth.files import write_atomically
from kgsynth.ledger import CHARGED_TO
from kgsynth.sample import Cell, Plan, Sample, cell_of, plan
from kgsynth.sandbox import open_sandbox
from kgsynth.screen import Screen
from kgsynth.synthesize import Rejection, SynthesisEnv, draft, survey
from kgsynth.task import Task
from kgsynth.validate import seen_keys, validate

if TYPE_CHECKING:
    from kgsynth.stages import Run


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What became of one sample: a task, or the reason why not."""

    sample: Sample
    task: Task | None = None
    check: str = ""
    message: str = ""


class Synthesis:
    """Makes tasks until enough are kept, with what is on disk already as its start."""

    def __init__(self, run: Run, tasks: list[Task], rejected: list[dict[str, Any]], show: Callable[..., None]) -> None:
        """tasks, rejected: what was decided before; both grow. show(kept, wanted, rejected) is called after each sample."""
        self.run, self.tasks, self.rejected, self.show = run, tasks, rejected, show
        self.recipe, self.wanted = run.recipe, run.recipe.sample.tasks
        self.seen = {key for task in tasks for key in seen_keys(task)}
        self.screen = Screen(self.recipe.screen, run.embedder)
        for task in tasks:
            self.screen.add(task)
        self.sandbox = open_sandbox(self.recipe.synthesize.sandbox)

    async def work(self) -> None:
        """Raises LLMError, BudgetError and SandboxError, after which the same call goes on where it was."""
        run = self.run
        try:
            async with run.web("synthesize") as (search, reader):
                self.env = SynthesisEnv(
                    graph=run.graph, search=search, reader=reader, llm=run.llm, sandbox=self.sandbox,
                    embedder=run.embedder, config=self.recipe.synthesize.limits,
                )  # fmt: skip
                schedule = plan(run.graph, self.recipe.sample, await survey(self.env))
                await self._all_of(schedule)
                self._sum_up(schedule)
        finally:
            await run.llm.close()
            self.sandbox.close()

    async def _all_of(self, schedule: Plan) -> None:
        """First the samples of cells that still want tasks, so that what is rejected is replaced by its like; then the others."""
        decided = {t.provenance.index for t in self.tasks} | {row["index"] for row in self.rejected}
        kept, passed = Counter(map(cell_of, self.tasks)), list[Sample]()

        def is_wanted(sample: Sample) -> bool:
            wanted = schedule.wants(cell_of(sample), kept)
            passed.extend([] if wanted else [sample])
            return wanted

        await self._in_order(
            (s for s in schedule.samples() if s.index not in decided and is_wanted(s)), kept, is_wanted
        )
        await self._in_order(sorted(passed, key=lambda sample: sample.index), kept)
        if len(self.tasks) < self.wanted:
            message = f"{len(self.tasks) + len(self.rejected)} samples decided, of at most {self._most}"
            self._reject({"index": -1, "type": "", "check": "exhausted", "message": message})

    @property
    def _most(self) -> int:
        return int(self.wanted * self.recipe.synthesize.samples_per_task)

    def _enough(self) -> bool:
        return len(self.tasks) >= self.wanted or len(self.tasks) + len(self.rejected) >= self._most

    async def _in_order(
        self, samples: Iterable[Sample], kept: Counter[Cell], is_wanted: Callable[[Sample], bool] = lambda _: True
    ) -> None:
        """A few at work, recorded one by one. What is no longer wanted when its turn comes is dropped: with one at work it
        would not have been begun."""
        queue: list[asyncio.Task[Decided]] = []
        try:
            for sample in samples:
                if self._enough():
                    return
                queue.append(asyncio.ensure_future(self._decide(sample)))
                if len(queue) >= self.recipe.synthesize.drafts:
                    self._record(await queue.pop(0), kept, is_wanted)
            while queue and not self._enough():
                self._record(await queue.pop(0), kept, is_wanted)
        finally:
            for task in queue:
                task.cancel()
            await asyncio.gather(*queue, return_exceptions=True)

    async def _decide(self, sample: Sample) -> Decided:
        """Everything but the comparison with the tasks kept so far; what it costs is on the account of the concept."""
        CHARGED_TO.set(sample.concept)
        made = await draft(sample, self.env)
        if isinstance(made, Rejection):
            return Decided(sample=sample, check=made.check, message=made.message)
        try:
            await asyncio.to_thread(validate, made, self.sandbox, config=self.recipe.validate)
            config = self.recipe.synthesize.consensus
            await consensus(made, config, self.run.llm, sandbox=self.sandbox, web=self.env.web)
        except TaskError as error:
            check = error.check if isinstance(error, ValidationError) else "form"
            return Decided(sample=sample, check=check, message=str(error))
        return Decided(sample=sample, task=made)

    def _record(self, made: Decided, kept: Counter[Cell], is_wanted: Callable[[Sample], bool]) -> None:
        """On disk before it counts."""
        if not is_wanted(made.sample):
            return
        task, row = made.task, {"check": made.check, "message": made.message[:500]}
        if task is not None and set(seen_keys(task)) & self.seen:
            task, row = None, {"check": "unique", "message": "the same task was kept before"}
        if task is not None and (found := self.screen.finding(task)):
            task, row = None, {"check": found.check, "message": found.message[:500], "evidence": dict(found.evidence)}
        if task is None:
            self._reject({"index": made.sample.index, **cell_of(made.sample)._asdict(), **row})
        else:
            self._keep(task)
            kept[cell_of(task)] += 1
        self.show(len(self.tasks), self.wanted, len(self.rejected))

    def _keep(self, task: Task) -> None:
        self.run.folder.append("tasks.jsonl", task.to_json())
        self.seen |= set(seen_keys(task))
        self.screen.add(task)
        self.tasks.append(task)

    def _reject(self, row: dict[str, Any]) -> None:
        self.run.folder.append("rejected.jsonl", row)
        self.rejected.append(row)

    def _sum_up(self, schedule: Plan) -> None:
        """What was wanted of each cell, what became of it and why, for `kgsynth stats` and the report."""
        refused = [(Cell(*(row[axis] for axis in Cell._fields)), row["check"]) for row in self.rejected if row["type"]]
        made = [cell_of(task) for task in self.tasks]
        found = {
            "cells": [each.row() for each in coverage(schedule, made, refused)],
            "axes": axis_rows(schedule, made),
            "deviation": deviation(schedule, made),
        }
        write_atomically(self.run.folder / "coverage.json", json.dumps(found, ensure_ascii=False) + "\n")
