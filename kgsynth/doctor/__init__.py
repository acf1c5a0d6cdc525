"""The doctor: every invariant of a graph, checked on its raw rows; what can be repaired is, as operations that can be undone.

survey.py    the rows, read once, as compact columns
checks.py    survey -> findings of one kind each
graph.py     cycles and levels
folding.py   concepts that are there twice, merges that stopped half-way
patch.py     what a repair changes: rows as they will be
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from kgsynth.concept import Decision
from kgsynth.doctor.checks import CHECKS
from kgsynth.doctor.patch import Finding, Patch
from kgsynth.doctor.survey import Survey
from kgsynth.errors import StoreError
from kgsynth.store import Change, GraphStore, unfinished

__all__ = ["Finding", "Repair", "examine", "repair"]

Progress = Callable[[str, int, int], None]  # kind of row, rows read so far, about how many there are in all
PASSES = 3  # over a graph that is being written to
NAMED = 20  # findings that are named in a Decision


@dataclass(frozen=True, kw_only=True)
class Repair:
    """What was done about the findings of one kind."""

    kind: str
    findings: int
    done: str  # a sentence
    op: int  # of the operation that `undo` takes back; 0: it is none (counters, indexes)


def examine(store: GraphStore, on_progress: Progress = lambda *_: None) -> list[Finding]:
    """Everything that is wrong with a graph, what is to be repaired first coming first.

    Reads all rows, of a file as of one moment. Raises StoreError when a graph in a server is never the same before and after.
    """
    if copying := store.state().get("copying"):
        return [Finding(kind="unfinished-copy", what=unfinished("this", copying))]
    for _ in range(PASSES):
        with store.snapshot():
            state, survey = store.state(), Survey(store, on_progress)
            findings = [finding for check in CHECKS for finding in check(survey)]
            if store.state() == state:
                return findings
    raise StoreError(f"the graph was changed during each of {PASSES} looks at it; stop its writers and look again")


def repair(
    store: GraphStore, *, before: Callable[[], None] = lambda: None, on_progress: Progress = lambda *_: None
) -> tuple[list[Repair], list[Finding]]:
    """Repair what can be, one kind after the other, and look again after each. Returns what was done and what is left.

    `before` is called once, before anything is changed. Raises StoreError when others write to the graph meanwhile.
    """
    done: list[Repair] = []
    tried: Counter[str] = Counter()
    while True:
        as_of = store.version()
        findings = examine(store, on_progress)
        kind = next((f.kind for f in findings if f.repair and tried[f.kind] < 2), None)
        if kind is None:
            return done, findings
        if not tried:
            before()
        tried[kind] += 1
        done.append(_mend(store, [f for f in findings if f.kind == kind and f.repair], as_of))


def _mend(store: GraphStore, findings: list[Finding], as_of: int) -> Repair:
    """All findings of one kind, in one operation with a Decision."""
    kind, patch = findings[0].kind, Patch(store, (ref for finding in findings for ref in finding.rows))
    for finding in findings:
        finding.fix(patch)
    done = "; ".join(dict.fromkeys(finding.repair for finding in findings))
    remove, insert = patch.changes()
    op = store.rewrite(remove, insert, note=f"doctor: {kind}", as_of=as_of) if remove or insert else 0
    evidence = (("operation", op), ("findings", len(findings)), ("first", tuple(f.what for f in findings[:NAMED])))
    decision = Decision(
        kind="repair", subject=kind, outcome="repaired", reason=done, evidence=(*evidence, ("at", time.time()))
    )
    store.commit(Change(decisions=(decision,)))
    return Repair(kind=kind, findings=len(findings), done=done, op=op)
