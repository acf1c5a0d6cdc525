"""What can be told of a task set: what was wanted and what came of it, what was lost where, what it cost, how hard it is.

Everything is plain JSON, computed from tasks, from the rows of `rejected.jsonl` and the ledger, and from `coverage.json`.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from typing import Any

from kgsynth.calibrate import LABELS, Z, wilson
from kgsynth.report.cost import sums
from kgsynth.synthesize import TYPES
from kgsynth.task import DIFFICULTIES, GRANULARITIES, SCOPES, Task

Row = dict[str, Any]

AXES = ("domain", "type", "granularity", "scope", "difficulty")
ORDER = {"granularity": GRANULARITIES, "scope": SCOPES, "difficulty": DIFFICULTIES}
MOST_CELLS = 30  # that miss, told one by one

STEPS = {  # what a sample passes, and the checks that fail there; any other check is one of validation
    "drafted": ("material", "llm", "quote", "injection", "reference", "unit", "licence of the sources"),
    "validated": (),
    "agreed": ("ambiguous", "consensus", "entailment", "easy", "hop", "standalone"),
    "kept": ("licence", "contaminated", "duplicate", "unique"),
}
PASSED = {
    "drawn": "samples that were asked for",
    "drafted": "there was material, and a draft",
    "validated": "the verifier accepts the right and rejects the wrong, and nothing leaks",
    "agreed": "solvers and examiners found the same answer, and no other",
    "kept": "no copy of another task or of a benchmark, licences allowed",
}


# --- wanted and made ---------------------------------------------------------------------------------------------


def axes(coverage: Mapping[str, Any], tasks: Sequence[Task]) -> dict[str, list[Row]]:
    """Per axis its values with target (None where no plan is known) and achieved, by name or in their natural order."""
    found: dict[str, list[Row]] = {}
    for axis in AXES:
        made = Counter(str(getattr(task, axis)) for task in tasks)
        wanted = {str(row["value"]): float(row["target"]) for row in _rows(coverage, "axes") if row.get("axis") == axis}
        names = _in_order(axis, {**wanted, **made}, made)
        rows = [{"value": v, "target": wanted.get(v, 0.0) if wanted else None, "achieved": made[v]} for v in names]
        found[axis] = [row for row in rows if row["target"] or row["achieved"]]
    return found


def _in_order(axis: str, values: Iterable[str], made: Mapping[str, int]) -> list[str]:
    order = ORDER.get(axis, ())
    return sorted(values, key=lambda v: (order.index(v) if v in order else len(order), -made.get(v, 0), v))


def misses(coverage: Mapping[str, Any]) -> Row | None:
    """Cells that are off: how many, by cause, and the worst of them; None without a plan.

    Keys: cells, missed, by_cause [{cause, cells, short, over, why}], worst (cells as `Coverage.row` gives them).
    """
    cells = _rows(coverage, "cells")
    if not cells:
        return None
    missed = sorted((row for row in cells if row.get("causes")), key=lambda row: -abs(_gap(row)))
    by_cause: dict[str, list[Row]] = defaultdict(list)
    for row in missed:
        cause, why = _cause(row)
        by_cause[cause].append({**row, "why": why})
    rows = [
        {
            "cause": cause,
            "cells": len(group),
            "short": sum(max(0.0, -_gap(row)) for row in group),
            "over": sum(max(0.0, _gap(row)) for row in group),
            "why": str(group[0].get("why", "")),
        }
        for cause, group in by_cause.items()
    ]
    worst = [row for row in missed if abs(_gap(row)) >= 0.5][:MOST_CELLS]
    ranked = sorted(rows, key=lambda row: -(row["short"] + row["over"]))
    return {"cells": len(cells), "missed": len(missed), "by_cause": ranked, "worst": worst}


def _cause(row: Mapping[str, Any]) -> tuple[str, str]:
    """(cause, sentence) of a miss. A cell that was to make up for others and has too few anyway has another cause for that."""
    causes, told = list(map(str, row["causes"])), str(row.get("why", ""))
    sentences = told.split("; ")
    at = 1 if causes[0] == "more" and len(causes) > 1 and _gap(row) < 0 else 0
    return causes[at], sentences[at] if len(sentences) == len(causes) else told


def _gap(row: Mapping[str, Any]) -> float:
    return float(row.get("achieved", 0)) - float(row.get("target", 0))


def _rows(coverage: Mapping[str, Any], key: str) -> list[Row]:
    rows = coverage.get(key)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


# --- what was lost where -----------------------------------------------------------------------------------------


def funnel(kept: int, rejected: Iterable[Mapping[str, Any]]) -> list[Row]:
    """How many samples came how far: step, count, words, lost: [[check, n], ...] on the way to it.

    A rejection counts where its check belongs; types make some checks of validation themselves while they draft.
    """
    lost: dict[str, Counter[str]] = {step: Counter() for step in STEPS}
    for row in rejected:
        check = str(row.get("check", "?"))
        if check != "exhausted":
            lost[_step(check, row)][check] += 1
    left = kept + sum(found.total() for found in lost.values())
    steps: list[Row] = [{"step": "drawn", "count": left, "words": PASSED["drawn"], "lost": []}]
    for step, found in lost.items():
        left -= found.total()
        if found or step != "agreed":
            steps.append(
                {"step": step, "count": left, "words": PASSED[step], "lost": list(map(list, found.most_common()))}
            )
    return steps


def _step(check: str, row: Mapping[str, Any]) -> str:
    if check == "licence" and "evidence" not in row:  # only the screen gives evidence
        check = "licence of the sources"
    return next((step for step, checks in STEPS.items() if check in checks), "validated")


# --- what it cost ------------------------------------------------------------------------------------------------

UNTOLD = "not told apart"


def cost_by_type(ledger: Iterable[Row], tasks: Sequence[Task], rejected: Iterable[Mapping[str, Any]]) -> list[Row]:
    """What models and paid searches cost per kept task: type, kept, calls, tokens, usd, usd_per_kept; dearest first.

    A request counts for the one type of which tasks about its concept were written by a model, else for the only type that
    uses one, else for UNTOLD. Empty when nothing was asked.
    """
    rows = [row for row in ledger if row.get("stage") in ("synthesize", "validate")]
    about, paid = defaultdict[str, set[str]](set), Counter[str]()
    for task in tasks:
        if task.provenance.author != "programmatic":
            paid[task.type] += 1
            about[task.provenance.concepts[0]].add(task.type)
    asked = {str(row.get("type")) for row in rejected}
    using = sorted({*paid, *(name for name in asked if name in TYPES and TYPES[name].uses_model)})
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        kinds = sorted(about.get(str(row.get("concept")), using))
        groups[kinds[0] if len(kinds) == 1 else UNTOLD].append(row)
    found = [{"type": kind, "kept": paid[kind], **sums(group)} for kind, group in groups.items()]
    for row in found:
        row["usd_per_kept"] = row["usd"] / row["kept"] if row["kept"] else None
        row["tokens_per_kept"] = row["tokens"] / row["kept"] if row["kept"] else None
    return sorted(found, key=lambda row: (-row["usd"], -row["calls"], row["type"]))


# --- how hard it is ----------------------------------------------------------------------------------------------


def calibration(tasks: Iterable[Task]) -> Row | None:
    """How a policy did: policies, attempts, and per type tasks, rate, low, high, b0 and how many have each label.

    The interval is Wilson's with a task, not an attempt, as the unit: attempts at one task are no independent evidence
    about its type, and a task's mean varies at most as much as one attempt does. None when no task was tried.
    """
    tried = [(task.type, task.calibration) for task in tasks if task.calibration]
    if not tried:
        return None
    groups = {kind: [found for one, found in tried if one == kind] for kind in sorted({kind for kind, _ in tried})}
    rows = []
    for kind, group in groups.items():
        attempts = sum(found.attempts for found in group)
        right = sum(round(found.pass_rate * found.attempts) for found in group)
        low, high = wilson(right, attempts, Z * sqrt(attempts / len(group)))
        spent = [found.b0 for found in group if found.b0 is not None]
        labels = Counter(found.label for found in group)
        rows.append(
            {
                "type": kind, "tasks": len(group), "rate": right / attempts, "low": low, "high": high,
                "b0": statistics.median(spent) if spent else None, "labels": [labels[name] for name in LABELS],
            }
        )  # fmt: skip
    policies = sorted({found.policy for _, found in tried})
    return {"policies": policies, "tasks": len(tried), "labels": list(LABELS), "types": rows}


# --- what it holds -----------------------------------------------------------------------------------------------


def figures(tasks: Sequence[Task]) -> Row:
    """The counts of a set. prompt_chars: least, quartiles and most; licences and sources: of the spans, by tasks citing them."""

    def count(of: Callable[[Task], Any]) -> dict[str, int]:
        return dict(Counter(str(of(task)) for task in tasks).most_common())

    cited = Counter(licence for task in tasks for licence in set(task.provenance.licences))
    tried = [task.calibration.label for task in tasks if task.calibration]
    return {
        "tasks": len(tasks),
        "types": {kind: _of_type([t for t in tasks if t.type == kind]) for kind in sorted({t.type for t in tasks})},
        "difficulty": count(lambda task: task.difficulty),
        "granularity": count(lambda task: task.granularity),
        "scopes": count(lambda task: task.scope),
        "domains": count(lambda task: task.domain),
        "verifiers": count(lambda task: task.verifier.name),
        "licences": dict(cited.most_common()),
        "authors": count(lambda task: task.provenance.author),
        "concepts": len({task.provenance.concepts[0] for task in tasks if task.provenance.concepts}),
        "sources": len({span.url for task in tasks for span in task.provenance.spans}),
        "pictures": sum(bool(task.images) for task in tasks),
        "prompt_chars": quartiles([len(task.prompt) for task in tasks]),
        "calibrated": len(tried),
        "labels": {name: tried.count(name) for name in LABELS if name in tried},
    }


def _of_type(tasks: Sequence[Task]) -> Row:
    counts = Counter(task.difficulty for task in tasks)
    chars = quartiles([len(task.prompt) for task in tasks])
    return {"tasks": len(tasks), **{name: counts[name] for name in DIFFICULTIES}, "prompt_chars": chars}


def quartiles(values: Sequence[int]) -> list[int]:
    """Least, lower quartile, median, upper quartile, most; nothing of nothing."""
    if not values:
        return []
    cut = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return [min(values), *map(round, cut), max(values)]
