"""The tasks of a run in its graph: which concepts each one tests, and how often a trained policy solved it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from kgsynth.errors import RunError
from kgsynth.store import GraphStore, TaskRecord
from kgsynth.task import Task

EVALUATIONS = (
    ("eval_after.json", "rl"),
    ("eval_before.json", "sft"),
)  # of the trainer: file, whose pass rates; newest first


def annotate(store: GraphStore, folder: Path, tasks: Iterable[Task]) -> int:
    """Put a run's tasks into its graph, with the pass rates the trainer has written by now. Doing it again changes nothing.

    A pass rate that another run on the same graph has measured of the same task stays until this one measures it too.
    Returns how many were new or known differently. Raises RunError when a file of the trainer is damaged.
    """
    known = {task.id: task for task in store.tasks()}
    told = (_with_rate(record, known.get(record.id)) for record in records(folder, tasks))
    new = [record for record in told if known.get(record.id) != record]
    if new:
        store.put_tasks(new)
    return len(new)


def _with_rate(record: TaskRecord, known: TaskRecord | None) -> TaskRecord:
    if record.pass_rate is not None or known is None:
        return record
    return replace(record, pass_rate=known.pass_rate, attempts=known.attempts, policy=known.policy)


def records(folder: Path, tasks: Iterable[Task]) -> Iterator[TaskRecord]:
    """A run's tasks as the graph knows them."""
    tried = _tried(folder)
    for task in tasks:
        rate, attempts, policy = tried.get(task.id, (None, 0, ""))
        yield TaskRecord(
            id=task.id, type=task.type, domain=task.domain, granularity=task.granularity, prompt=task.prompt,
            concepts=task.provenance.concepts, pass_rate=rate, attempts=attempts, policy=policy,
        )  # fmt: skip


def _tried(folder: Path) -> dict[str, tuple[float, int, str]]:
    """Task id -> (pass rate, replies, policy) of the newest evaluation of the trainer, if there was one."""
    for name, policy in EVALUATIONS:
        path = folder / "train" / name
        if path.exists():
            return {task: (rate, attempts, policy) for task, rate, attempts in _read(path)}
    return {}


def _read(path: Path) -> list[tuple[str, float, int]]:
    """(task id, pass rate, replies) of the tasks with a reply that could be verified."""
    try:
        report = json.loads(path.read_bytes())
        return [
            (task, float(rate), int(report[split].get("attempts", {}).get(task, 0)))
            for split in ("train", "held_out")
            for task, rate in report[split]["pass_rates"].items()
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunError(f"{path} is damaged ({error}); delete it and train again: `trainer run RECIPE.toml`") from error
