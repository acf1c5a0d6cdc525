"""The same recipe gives the same bytes: in any order of completion, under any string hashing, from a copy of the graph."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kgsynth.recipe import load_recipe
from kgsynth.stages import grow_graph, open_run
from kgsynth.task import TaskSet

ROOT = Path(__file__).resolve().parents[1]
TYPES = "cloze choice masked computed chart scattered operate repair predict implement hops quantity complete translate"
SETTINGS = [
    "sample.tasks=40", "grow.max_concepts=120", f"sample.types={{{', '.join(f'{name}=1.0' for name in TYPES.split())}}}",
    "synthesize.limits.context_tokens=[8000]",
]  # fmt: skip


def made(folder: Path, drafts: int, hash_seed: str) -> None:
    command = [
        sys.executable, "-m", "kgsynth.cli", "synthesize", str(ROOT / "tests" / "small.toml"), f"run.dir={folder.parent}",
        f"run.name={folder.name}", f"synthesize.drafts={drafts}", *SETTINGS,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_every_type_gives_the_same_bytes(tmp_path: Path) -> None:
    recipe = load_recipe(ROOT / "tests" / "small.toml", [f"run.dir={tmp_path}", "run.name=grown", *SETTINGS])
    with open_run(recipe) as run:
        grow_graph(run)
    graph = (tmp_path / "grown" / "graph.sqlite").read_bytes()
    contents = []
    for name, drafts, hash_seed in (("one", 1, "0"), ("many", 9, "4711")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "graph.sqlite").write_bytes(graph)
        made(tmp_path / name, drafts, hash_seed)
        contents.append(
            {f: (tmp_path / name / f).read_bytes() for f in ("tasks.jsonl", "rejected.jsonl", "coverage.json")}
        )
    assert contents[0] == contents[1]
    tasks = TaskSet.load(tmp_path / "one" / "tasks.jsonl")
    counts = Counter(task.type for task in tasks)
    assert len(counts) >= 10, counts
    assert not any(str(tmp_path) in line for line in map(str, tasks)), "a task knows nothing of the machine"
    assert str(Path.home()).encode() not in contents[0]["tasks.jsonl"]
