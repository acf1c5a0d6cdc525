"""What growing cost, from the ledger: in all, per kept concept, by model, by stage, over time. A resumed run may have had several
models; calls and tokens are those of models, dollars those of paid searches too."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from kgsynth.report.growth import POINTS, work_clock

Row = dict[str, Any]
NUMBERS = ("calls", "prompt_tokens", "completion_tokens", "usd")


def cost(ledger: Sequence[Row], *, kept: Sequence[Row], born: Sequence[float], tasks: int) -> Row | None:
    """The page's figures; None when nothing was asked. kept: the graph's nodes, each with id and atomic. born: when they came,
    unix seconds, ascending. tasks: kept ones.

    Keys: total, per_concept (usd, calls, tokens), models, stages, spent_on, over_time.
    """
    grown = [row for row in ledger if row.get("stage") == "grow"]
    if not grown:
        return None
    total = sums(grown)
    counts = {"usd": total["usd"], "calls": total["calls"], "tokens": total["tokens"]}
    return {
        "total": total,
        "kept": len(kept),
        "priced": any(row.get("usd") for row in ledger),
        "cached": sum(row.get("outcome") == "cached" for row in grown),
        "failed": sum(row.get("outcome") not in ("ok", "cached") for row in grown),
        "per_concept": {key: value / len(kept) for key, value in counts.items()} if kept else None,
        "models": models(grown),
        "stages": stages(ledger, {"grow": (len(kept), "concept"), "synthesize": (tasks, "task")}),
        "spent_on": spent_on(grown, kept),
        "over_time": over_time(grown, born),
    }


def sums(rows: Sequence[Row]) -> Row:
    """calls, prompt_tokens, completion_tokens, tokens, usd, and how many searches were paid for."""
    total: Counter[str] = Counter()
    for row in rows:
        is_search = row.get("kind", "llm") != "llm"
        total.update({key: _number(row, key) for key in (NUMBERS[3:] if is_search else NUMBERS)})
        total["searches"] += is_search
    return {
        **{key: total[key] for key in (*NUMBERS, "searches")},
        "tokens": total["prompt_tokens"] + total["completion_tokens"],
    }


def models(rows: Sequence[Row]) -> list[Row]:
    """One row per model or paid provider, in the order of their first request, with the time of the first and last one."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[str(row.get("model") or "not recorded")].append(row)
    return [
        {
            "model": model,
            "kind": str(group[0].get("kind", "llm")),
            **sums(group),
            "requests": len(group),
            "failed": sum(row.get("outcome") not in ("ok", "cached") for row in group),
            "concepts": len({row["concept"] for row in group if row.get("concept")}),
            "first": min(_number(row, "time") for row in group),
            "last": max(_number(row, "time") for row in group),
        }
        for model, group in found.items()
    ]


def stages(rows: Sequence[Row], made: dict[str, tuple[int, str]]) -> list[Row]:
    """One row per stage; with the price of each thing that it made and that was kept, where that is known."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[str(row.get("stage", "?"))].append(row)
    return [
        {"stage": stage, **sums(group), "made": made.get(stage, (0, ""))[0], "thing": made.get(stage, (0, ""))[1]}
        for stage, group in found.items()
    ]


def spent_on(rows: Sequence[Row], kept: Sequence[Row]) -> list[Row]:
    """Calls and dollars by what became of the concept they were spent on."""
    fate = {node["id"]: _fate(node["atomic"]) for node in kept}
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        concept = row.get("concept")
        found[fate.get(concept, "concepts that are not in the graph") if concept else "no single concept"].append(row)
    ranked = [{"what": what, **sums(group)} for what, group in found.items()]
    return sorted(ranked, key=lambda row: (-row["usd"], -row["calls"]))


def _fate(atomic: bool | None) -> str:
    if atomic is None:
        return "concepts that are not judged"
    return "concepts with nothing finer below" if atomic else "concepts with finer ones below"


def over_time(rows: Sequence[Row], born: Sequence[float]) -> Row | None:
    """What was spent by when: unit ("usd", or "tokens" without a price), minutes at work [P], models: name -> cumulative sums
    [P], each: spent per concept in the graph by then [P]. None when times are not recorded."""
    timed = sorted((row for row in rows if _number(row, "time") > 0), key=lambda row: row["time"])
    if not timed:
        return None
    clock, resumed = work_clock(row["time"] for row in timed)
    unit = "usd" if any(row.get("usd") for row in timed) else "tokens"
    names = list(dict.fromkeys(str(row.get("model") or "not recorded") for row in timed))
    running, curves = dict.fromkeys(names, 0.0), {name: [] for name in names}
    minutes, each = [], []
    every = max(1, len(timed) // POINTS)
    for number, row in enumerate(timed):
        spent = (
            _number(row, "usd") if unit == "usd" else _number(row, "prompt_tokens") + _number(row, "completion_tokens")
        )
        running[str(row.get("model") or "not recorded")] += spent
        if number % every == 0 or number == len(timed) - 1:
            minutes.append(round(clock(row["time"]), 3))
            there = (
                len(born) if number == len(timed) - 1 else bisect_right(born, row["time"])
            )  # the last one's are written later
            each.append(round(sum(running.values()) / max(1, there), 6))
            for name in names:
                curves[name].append(round(running[name], 6))
    return {"unit": unit, "minutes": minutes, "each": each, "models": curves, "resumed": resumed}


def _number(row: Row, key: str) -> float:
    value = row.get(key)
    return value if isinstance(value, (int, float)) else 0
