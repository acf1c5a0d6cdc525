"""What a graph and a ledger must not show after a run that was killed, as counts that must be 0."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.growers.killing import Story
from benchmarks.growers.world import Meaning, World
from benchmarks.kill_writers import every_row, wrong_levels
from benchmarks.taxonomy.score import count_cycles
from kgsynth.concept import Concept, name_key
from kgsynth.doctor import examine
from kgsynth.ledger import LOST, Ledger, Spend, spend
from kgsynth.store import GraphStore, Operation

RESEARCH = "research of "


def of_the_meaning(grown: Meaning, world: World) -> dict[str, int]:
    """A graph against the whole truth."""
    meant = set(grown.of.values())
    return {"duplicates": len(grown.of) - len(meant), "concepts missing": len(world.taxonomy) - len(meant)}


def of_the_graph(store: GraphStore, world: World, calm: Meaning) -> dict[str, int]:
    """`calm`: what an undisturbed run has made of the same world. Lost edges: those that were not refused for a cycle either."""
    concepts, ends = store.concepts(), [(e.parent, e.child) for e in store.edges()]
    grown, true = world.meaning(store), set(world.taxonomy.edges)
    queued = list(every_row(store, "frontier"))
    researched = research(store.operations(), concepts)
    done = {row["concept"] for row in queued if row["state"] == "done"}
    state = store.frontier()
    return {
        "cycles": count_cycles(ends),
        "wrong levels": wrong_levels(store, [c.id for c in concepts], ends),
        "duplicates by meaning": len(grown.of) - len(set(grown.of.values())),
        "duplicates by name": repeats((name_key(c.name), name_key(c.sense)) for c in concepts),
        "duplicate edges": repeats(ends),
        "queued twice": repeats(row["concept"] for row in queued),
        "researched twice": sum(n - 1 for n in researched.values()),
        "done without research": len(done - researched.keys()),
        "concepts lost": len(set(calm.of.values()) - set(grown.of.values())),
        "concepts from nowhere": len(set(grown.of.values()) - set(calm.of.values())) + len(concepts) - len(grown.of),
        "edges lost": len((calm.edges & true) - grown.edges - grown.refused),
        "vectors lost": len({c.id for c in concepts} - set(store.embeddings()[1])),
        "left to research": state["waiting"],
        "leases left": state["leased"],
        "faults by the doctor": len(examine(store)),
    }


def research(log: Iterable[Operation], concepts: Iterable[Concept]) -> Counter[str]:
    """Concept -> committed operations that say they are its research. Names of several concepts are told apart by what the
    operation touched."""
    named: dict[str, list[str]] = {}
    for concept in concepts:
        named.setdefault(concept.name, []).append(concept.id)
    found: Counter[str] = Counter()
    for operation in log:
        if operation.note.startswith(RESEARCH):
            ids = named.get(operation.note.removeprefix(RESEARCH), [])
            found.update(set(ids).intersection(operation.concepts) if len(ids) > 1 else ids)
    return found


def of_the_ledger(path: Path, seen: int, again: int) -> tuple[dict[str, int], dict[str, int]]:
    """(what must be 0, what is told). seen: requests that the server has counted; again: those it had answered before.

    A request has left or has not when its process is killed or told to stop. So the server has seen every request that the
    ledger settles with an answer, and of the others, which the ledger counts as spent, some.
    """
    ledger = Ledger(path, readonly=True)
    rows = [row for row in ledger.rows() if row["kind"] == "llm"]
    calls = Counter[str]()
    for row in rows:
        calls[_kind(row["outcome"])] += row["calls"]
    in_flight = calls["lost"] + calls["stopped"]
    told = {"calls": sum(calls.values()), **{f"calls {kind}": n for kind, n in sorted(calls.items())}, "seen": seen,
            "of those in flight, seen": seen - calls["ok"], "answered again": again}  # fmt: skip
    wrong = {
        "sums of the ledger": sums_off(ledger, rows),
        "reserved at the end": ledger.reserved.calls,
        "calls not in the ledger": max(0, seen - sum(calls.values())),
        "answers nobody gave": max(0, calls["ok"] - seen),
        "calls failed": calls["failed"],
        "answered again, not in flight": max(0, again - in_flight),
        "answers paid twice": paid_twice(path),
    }
    return wrong, told


def _kind(outcome: str) -> str:
    if outcome in ("ok", "cached"):
        return outcome
    if outcome == LOST:
        return "lost"
    return "stopped" if outcome in ("CancelledError", "KeyboardInterrupt") else "failed"


def sums_off(ledger: Ledger, rows: Iterable[dict[str, Any]]) -> int:
    """Totals, by stage, concept and model and in all, that are not the sums of the rows."""
    rows = list(rows)
    said = {"stage": ledger.by_stage(), "concept": ledger.by_concept(), "model": ledger.by_model()}
    off = int(_unlike(sum(map(_own, rows), Spend()), ledger.total))
    for by, totals in said.items():
        sums: dict[str, Spend] = {}
        for row in rows:
            sums[row[by]] = sums.get(row[by], Spend()) + _own(row)
        off += sum(_unlike(sums.get(name, Spend()), totals.get(name, Spend())) for name in {*sums, *totals})
    return off


def _own(row: dict[str, Any]) -> Spend:
    return spend(row[name] for name in Spend.__dataclass_fields__)


def _unlike(a: Spend, b: Spend) -> bool:
    return a.numbers[:3] != b.numbers[:3] or abs(a.usd - b.usd) > 1e-9


def paid_twice(path: Path) -> int:
    """Answers that were received and paid again under the same key."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
        sql = "SELECT key, count(*) FROM request WHERE kind = 'llm' AND outcome = 'ok' GROUP BY key"
        return sum(n - 1 for key, n in db.execute(sql) if key)


def of_the_story(story: Story, kills: int) -> dict[str, int]:
    over = 0
    if story.cap is not None and story.calls_at_cap is not None:
        over = max(0, abs(story.calls_at_cap - story.cap) - 1) + max(0, (story.seen_at_cap or 0) - story.cap)
    return {
        "kills missed": kills - sum(story.kills.values()),
        "failures of the command": len(story.failures),
        "orphans": story.orphans,
        "cap never reached": int(story.cap is not None and story.calls_at_cap is None),
        "calls off the cap": over,
    }


def repeats(items: Iterable[Any]) -> int:
    return sum(n - 1 for n in Counter(items).values())
