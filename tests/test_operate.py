"""Jobs in small worlds: done by their scripts, not by those that nearly do them, and by nothing that guesses."""

from __future__ import annotations

import random

import pytest

from kgsynth.sandbox import Sandbox
from kgsynth.synthesize.env import answered
from kgsynth.synthesize.jobs import JOBS, Entry, Job, World
from kgsynth.verifiers import REGISTRY

ENTRIES = tuple(
    sorted(
        Entry(title=title, topic=topic, words=words)
        for title, topic, words in (
            ("heap", "structures", 120), ("heap.push", "heap", 31), ("heap.pop", "heap", 28), ("O'Neil tree", "structures", 31),
            ("tree.walk", "O'Neil tree", 64), ("tree.walk.pre", "tree.walk", 12), ("naïve", "structures", 77), ("sort", "order", 90),
        )
    )
)  # fmt: skip
LINKS = (("heap", "heap.pop"), ("heap", "heap.push"), ("O'Neil tree", "tree.walk"), ("tree.walk", "tree.walk.pre"))
WORLD = World(entries=ENTRIES, links=LINKS, others=("graph", "queue"))
KINDS = [kind for kinds in JOBS.values() for kind in kinds]


def score(job: Job, script: str, sandbox: Sandbox) -> float:
    params = {"files": job.files, "language": "python", "checks": list(job.checks)}
    return REGISTRY["world"](answered(script), params, sandbox).score


def made(kind: object, seed: int = 0) -> Job:
    job = kind(WORLD, random.Random(seed))  # type: ignore[operator]
    assert job is not None
    return job


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_script_does_the_job_and_slips_do_not(kind: object, sandbox: Sandbox) -> None:
    job = made(kind)
    assert score(job, job.script, sandbox) == 1
    paid = [script for script in job.wrong if score(job, script, sandbox)]
    assert len(job.wrong) >= 7
    assert len(paid) <= 2, "a slip that makes no difference here is left out of the task; most make one"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nothing_and_everything_are_not_paid(kind: object, sandbox: Sandbox) -> None:
    job = made(kind, seed=1)
    assert score(job, "print('done')", sandbox) == 0
    assert score(job, "import os\nfor name in os.listdir('.'):\n    os.remove(name)", sandbox) == 0
    assert score(job, "open('totals.csv', 'w').write('topic,pages,words\\n')", sandbox) == 0


def test_a_world_without_two_levels_has_nothing_to_archive() -> None:
    archive = JOBS["hard"][0]
    assert archive(World(entries=ENTRIES, links=LINKS[:2], others=()), random.Random(0)) is None


def test_jobs_depend_on_their_seed_only() -> None:
    for kind in KINDS:
        assert made(kind, 3) == made(kind, 3)
    assert len({made(KINDS[0], seed).request for seed in range(20)}) > 2
