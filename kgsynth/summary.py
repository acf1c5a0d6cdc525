"""The figures of a run, read from its files: what `kgsynth stats` and `kgsynth report` print as one line of JSON."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from kgsynth.errors import RunError
from kgsynth.graph import ConceptGraph
from kgsynth.run import RunFolder
from kgsynth.stages import Recipe, load_kept
from kgsynth.store import open_store

TRAINING = ("reward_before", "reward_after", "heldout_before", "heldout_after")


def summarize(recipe: Recipe) -> dict[str, Any]:
    """Keys: concepts, edges, cycles, multi_parent_share, unsupported_edges, tasks, tasks_by_type, rejected,
    reward_before, reward_after, heldout_before, heldout_after (None: not trained yet), seconds (of all stages).

    Raises RunError when there is no run, or a file of it is damaged."""
    folder = RunFolder(recipe.run.folder)
    if not folder.path.is_dir():
        raise RunError(f"there is no run folder {folder.path}; make one with `kgsynth run RECIPE.toml`")
    tasks = load_kept(folder)
    result = _training(folder / "train" / "result.json")
    stages = sum(row["seconds"] for row in folder.rows("stages.jsonl", needs=("seconds",)))
    return {
        **_graph(recipe, folder),
        "tasks": len(tasks),
        "tasks_by_type": dict(sorted(Counter(t.type for t in tasks).items())),
        "rejected": len(folder.rows("rejected.jsonl")),
        **{key: result.get(key) for key in TRAINING},
        "seconds": round(stages, 1),
    }


def _graph(recipe: Recipe, folder: RunFolder) -> dict[str, Any]:
    path = folder / "graph.sqlite"
    if not recipe.store.url and not path.exists():
        return {"concepts": 0, "edges": 0, "cycles": 0, "multi_parent_share": 0.0, "unsupported_edges": 0}
    store = open_store(recipe.store.url or f"sqlite:{path}")
    try:
        stats = ConceptGraph(store).stats()
    finally:
        store.close()
    keys = ("concepts", "edges", "cycles", "multi_parent_share", "unsupported_edges")
    return {key: getattr(stats, key) for key in keys}


def _training(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_bytes())) if path.exists() else {}
    except (ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged ({error}); delete it and train again: `trainer run RECIPE.toml`") from error
