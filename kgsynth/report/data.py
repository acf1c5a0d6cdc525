"""What a report shows, read from the files of a run folder and from its graph store. Nothing is changed on disk.

A part that is missing is None and the page says "not run yet"; a torn last line is left out; lines that cannot be read
are counted in `Run.notes`.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgsynth.errors import KgsynthError, RunError, TaskError
from kgsynth.graph import ConceptGraph
from kgsynth.ledger import Ledger
from kgsynth.report.growth import growth
from kgsynth.report.layout import layered
from kgsynth.store import open_store
from kgsynth.task import GRANULARITIES, Task

Row = dict[str, Any]

QUOTE, PROMPT = 500, 240  # characters of a quote and of a prompt in the graph's side panel


@dataclass(frozen=True, kw_only=True)
class Run:
    """The files of a run folder, parsed."""

    path: Path
    config: Mapping[str, Any]
    config_text: str
    tasks: list[Task] | None
    rejected: list[Row] | None
    metrics: list[Row]
    stages: list[Row]
    ledger: list[Row]
    result: Row
    coverage: Row = field(default_factory=dict)  # what was wanted of each cell and what there is; empty: not known
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def brain(self) -> str | None:
        """Name of what judged concepts; None before any stage has ended."""
        return next((str(row["brain"]) for row in reversed(self.stages) if row.get("brain")), None)


def read_run(path: Path) -> Run:
    """Never raises for what is missing or damaged in the folder."""
    notes: list[str] = []
    text = _text(path / "config.toml")
    try:
        config = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        config, _ = {}, notes.append(f"config.toml: {error}")
    return Run(
        path=path,
        config=config,
        config_text=re.sub(r"://[^/@\s\"]*@", "://***@", text),
        tasks=_tasks(path / "tasks.jsonl", notes),
        rejected=_rows(path / "rejected.jsonl", notes) if (path / "rejected.jsonl").exists() else None,
        metrics=_rows(path / "metrics.jsonl", notes),
        stages=_rows(path / "stages.jsonl", notes),
        ledger=_ledger(path, notes),
        result=_object(path, "train/result.json", notes),
        coverage=_object(path, "coverage.json", notes),
        notes=notes,
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _object(path: Path, name: str, notes: list[str]) -> Row:
    """A JSON object; empty when there is none."""
    try:
        found = json.loads(_text(path / name) or "{}")
    except (ValueError, RecursionError) as error:
        notes.append(f"{name}: {error}")
        return {}
    return found if isinstance(found, dict) else {}


def _lines(path: Path) -> list[str]:
    """The finished lines: what follows the last newline was torn off by a kill."""
    return [line for line in _text(path).split("\n")[:-1] if line.strip()]


def _rows(path: Path, notes: list[str]) -> list[Row]:
    rows, bad = [], 0
    for line in _lines(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        rows, bad = ([*rows, row], bad) if isinstance(row, dict) else (rows, bad + 1)
    if bad:
        notes.append(f"{path.name}: {bad} lines could not be read and are left out")
    return rows


def _ledger(path: Path, notes: list[str]) -> list[Row]:
    """What the run paid for, also while it is at work; from the lines of an earlier version where there is nothing newer."""
    if not (path / "ledger.sqlite").exists():
        return _rows(path / "ledger.jsonl", notes)
    try:
        return Ledger(path / "ledger.sqlite", readonly=True).rows()
    except RunError as error:
        notes.append(str(error))
        return []


def _tasks(path: Path, notes: list[str]) -> list[Task] | None:
    if not path.exists():
        return None
    tasks, problems = [], []
    for line in _lines(path):
        try:
            tasks.append(Task.from_json(line))
        except TaskError as error:
            problems.append(str(error))
    if problems:
        notes.append(f"{path.name}: {len(problems)} lines are left out, the first: {problems[0]}")
    return tasks


# --- the graph ------------------------------------------------------------------------------------------------------


def graph(run: Run) -> tuple[Row | None, str]:
    """Nodes with positions, edges, sources and figures, as plain JSON; None when there is none yet, or a problem."""
    url = run.config.get("store", {}).get("url") or ""
    if not url and not (run.path / "graph.sqlite").exists():
        return None, ""
    try:
        store = open_store(url or f"sqlite:{run.path / 'graph.sqlite'}")
        try:
            opened = ConceptGraph(store)
            drawn = _drawn(opened, run.tasks or [])
            return drawn and {**drawn, "growth": growth(opened, run.ledger)}, ""
        finally:
            store.close()
    except (KgsynthError, ImportError, OSError) as error:
        return None, f"the graph could not be read: {error}"


def _drawn(graph: ConceptGraph, tasks: list[Task]) -> Row | None:
    concepts, edges = list(graph), graph.edges()
    if not concepts:
        return None
    levels = graph.store.levels()
    place = layered(levels, [(edge.parent, edge.child) for edge in edges])
    number = {concept.id: i for i, concept in enumerate(concepts)}
    sources = {source.id: source for source in graph.store.sources()}
    source_number = {source_id: i for i, source_id in enumerate(sources)}
    tested = _tested(tasks)
    nodes = [
        {
            "id": c.id, "name": c.name, "domain": c.domain, "definition": c.definition, "aliases": list(c.aliases),
            "atomic": c.atomic, "reason": c.atomic_reason, "level": levels[c.id],
            "x": round(place[c.id][0], 3), "y": round(place[c.id][1], 3), "tasks": tested.get(c.id, []),
        }
        for c in concepts
    ]  # fmt: skip
    links = [
        {
            "from": number[edge.parent],
            "to": number[edge.child],
            "quotes": [[source_number.get(span.source, -1), span.url, span.text[:QUOTE]] for span in edge.spans],
        }
        for edge in edges
    ]
    return {
        "nodes": nodes,
        "edges": links,
        "sources": [{"url": s.url, "title": s.title, "licence": s.licence} for s in sources.values()],
        "tasks": [{"id": t.id, "type": t.type, "prompt": t.prompt[:PROMPT]} for t in tasks],
        "stats": vars(graph.stats()),
        "decisions": Counter(f"{d.kind}: {d.outcome}" for d in graph.store.decisions()).most_common(),
        "levels": sorted(Counter(levels.values()).items()),
    }


def _tested(tasks: list[Task]) -> dict[str, list[int]]:
    """Concept id -> numbers of the tasks whose first concept it is."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, task in enumerate(tasks):
        if task.provenance.concepts:
            found[task.provenance.concepts[0]].append(number)
    return found


# --- tasks ----------------------------------------------------------------------------------------------------------


def task_counts(tasks: list[Task]) -> Row:
    """Counts by type x granularity, in the form the chart wants."""
    types = [name for name, _ in Counter(t.type for t in tasks).most_common()]
    cells = Counter((t.type, t.granularity) for t in tasks)
    grains = [g for g in GRANULARITIES if any((t, g) in cells for t in types)]
    return {
        "types": types,
        "granularities": {g: [cells[t, g] for t in types] for g in grains},
    }


def rejections(rejected: list[Row]) -> list[Row]:
    """One row per check: how often, by type, and an example of the message."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rejected:
        if row.get("check") != "exhausted":
            groups[str(row.get("check", "?"))].append(row)
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {
            "check": check,
            "count": len(rows),
            "types": Counter(str(row.get("type", "?")) for row in rows).most_common(),
            "example": str(rows[0].get("message", "")),
        }
        for check, rows in ranked
    ]


def licences(sources: Iterable[Row]) -> list[tuple[str, int]]:
    return Counter(source["licence"] for source in sources).most_common()


# --- training and time ----------------------------------------------------------------------------------------------


def curves(metrics: list[Row], stage: str) -> dict[str, list[tuple[float, float]]]:
    """Per number of a stage: (step, value) in order of steps. What is not a finite number is left out."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in metrics:
        if row.get("stage") == stage and _is_number(row.get("step")):
            for name, value in row.items():
                if name not in ("stage", "step", "time") and _is_number(value):
                    found[name].append((row["step"], value))
    return {name: sorted(points) for name, points in found.items()}


def evaluation(run: Run) -> list[Row]:
    """Mean reward before and after RL with standard errors: from train/result.json, else from metrics.jsonl."""
    rows = [
        {"split": split, **{key: _number(run.result.get(f"{prefix}{key}")) for key in keys}}
        for split, prefix, keys in (
            ("training tasks", "", ("reward_before", "reward_after", "stderr_before", "stderr_after")),
            ("held-out tasks", "heldout_", ("before", "after", "stderr_before", "stderr_after")),
        )
    ]
    for row in rows:
        row["before"] = row.pop("reward_before", row.get("before"))
        row["after"] = row.pop("reward_after", row.get("after"))
    rows = [row for row in rows if row["before"] is not None or row["after"] is not None]
    return rows or _logged_evaluation(run.metrics)


def _logged_evaluation(metrics: list[Row]) -> list[Row]:
    logged = curves(metrics, "eval")
    found = []
    for split, key in (("training tasks", "train"), ("held-out tasks", "held_out")):
        rewards = [value for _, value in logged.get(f"{key}_reward", [])]
        errors = [value for _, value in logged.get(f"{key}_stderr", [])]
        if rewards:
            pair = {"before": rewards[0], "after": rewards[-1] if len(rewards) > 1 else None}
            spread = {"stderr_before": errors[0] if errors else None, "stderr_after": errors[-1] if errors else None}
            found.append({"split": split, **pair, **spread})
    return found


def by_type(result: Row) -> list[Row]:
    before, after = (result.get(f"by_type_{when}") or {} for when in ("before", "after"))
    kinds = sorted({*before, *after})
    return [{"type": kind, "before": _number(before.get(kind)), "after": _number(after.get(kind))} for kind in kinds]


def stage_times(stages: list[Row]) -> list[Row]:
    """One row per stage in the order of first appearance: seconds over all attempts, counts of the last one."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in stages:
        groups[str(row.get("stage", "?"))].append(row)
    return [
        {
            "stage": stage,
            "seconds": sum(_number(row.get("seconds")) or 0.0 for row in rows),
            "attempts": len(rows),
            "ended": str(rows[-1].get("ended", "done")),
            "counts": dict(rows[-1].get("counts") or {}),
        }
        for stage, rows in groups.items()
    ]


def spending(ledger: list[Row]) -> list[Row]:
    """Calls, tokens and dollars per stage."""
    total: dict[str, Counter[str]] = defaultdict(Counter)
    for row in ledger:
        numbers = {key: _number(row.get(key)) or 0 for key in ("calls", "prompt_tokens", "completion_tokens", "usd")}
        total[str(row.get("stage", "?"))].update(numbers)
    return [{"stage": stage, **numbers} for stage, numbers in total.items()]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _number(value: Any) -> Any:
    return value if _is_number(value) else None
