"""The figures of a run, read from its files: what `kgsynth stats` and `kgsynth report` print as one line of JSON."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from kgsynth.errors import RunError
from kgsynth.graph import ConceptGraph
from kgsynth.ledger import Ledger, Spend
from kgsynth.recipe import Recipe
from kgsynth.run import RunFolder
from kgsynth.stages import load_kept
from kgsynth.store import open_store

TRAINING = ("reward_before", "reward_after", "heldout_before", "heldout_after")
GRAPH = ("concepts", "edges", "cycles", "multi_parent_share", "unsupported_edges", "atomic")


def summarize(recipe: Recipe) -> dict[str, Any]:
    """Keys: concepts, edges, cycles, multi_parent_share, unsupported_edges, atomic, refused_edges, tasks, tasks_by_type,
    rejected, reward_before, reward_after, heldout_before, heldout_after (None: not trained yet), seconds (of all stages).

    When the run has a ledger also cost_usd, calls and tokens (of all stages), usd_per_concept and calls_per_concept (of growing,
    per concept in the graph; None without one). Raises RunError when there is no run, or a file of it is damaged.
    """
    folder = RunFolder(recipe.run.folder)
    if not folder.path.is_dir():
        raise RunError(f"there is no run folder {folder.path}; make one with `kgsynth run RECIPE.toml`")
    tasks = load_kept(folder)
    result = _training(folder / "train" / "result.json")
    stages = sum(row["seconds"] for row in folder.rows("stages.jsonl", needs=("seconds",)))
    graph = _graph(recipe, folder)
    return {
        **graph,
        "tasks": len(tasks),
        "tasks_by_type": dict(sorted(Counter(t.type for t in tasks).items())),
        "rejected": len(folder.rows("rejected.jsonl")),
        **{key: result.get(key) for key in TRAINING},
        "seconds": round(stages, 1),
        **_money(folder / "ledger.sqlite", graph["concepts"]),
    }


def paid(path: Path) -> dict[str, Spend]:
    """Stage -> what a run's ledger says was spent on it: calls and tokens of models, dollars of paid searches too. Empty
    without a ledger. Raises RunError."""
    spent: dict[str, Spend] = {}
    for row in Ledger(path, readonly=True).rows() if path.exists() else ():
        keys = Spend.__dataclass_fields__ if row["kind"] == "llm" else ("usd",)
        spent[row["stage"]] = spent.get(row["stage"], Spend()) + Spend(**{key: row[key] for key in keys})
    return spent


def _graph(recipe: Recipe, folder: RunFolder) -> dict[str, Any]:
    path = folder / "graph.sqlite"
    if not recipe.store.url and not path.exists():
        return {**dict.fromkeys(GRAPH, 0), "multi_parent_share": 0.0, "refused_edges": 0}
    store = open_store(recipe.store.url or f"sqlite:{path}")
    try:
        stats = ConceptGraph(store).stats()
        refused = sum(decision.kind == "cycle" for decision in store.decisions())
    finally:
        store.close()
    return {**{key: getattr(stats, key) for key in GRAPH}, "refused_edges": refused}


def _money(path: Path, concepts: int) -> dict[str, Any]:
    if not path.exists():
        return {}
    by_stage = paid(path)
    total, growing = sum(by_stage.values(), Spend()), by_stage.get("grow", Spend())
    return {
        "cost_usd": round(total.usd, 6),
        "calls": total.calls,
        "tokens": total.tokens,
        "usd_per_concept": round(growing.usd / concepts, 8) if concepts else None,
        "calls_per_concept": round(growing.calls / concepts, 3) if concepts else None,
    }


def _training(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_bytes())) if path.exists() else {}
    except (ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged ({error}); delete it and train again: `trainer run RECIPE.toml`") from error
