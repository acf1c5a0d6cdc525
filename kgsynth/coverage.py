"""What was wanted of each cell, what there is of it, and why not.

    rows = coverage(schedule, map(cell_of, tasks), rejected=[(cell_of(row), row["check"]) for row in rejected])
    print(coverage_table([row for row in rows if row.misses]))

A miss is told in the words of the cause that was found: by looking (nothing offered, no concept, no material), by the minimum
cut of the wanted numbers (material or a cap lets too few through), or by counting (rejected, not drawn yet).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kgsynth.quota import AXES, PRIORITY, bottlenecks, marginal
from kgsynth.sample import Cell, Plan

if TYPE_CHECKING:
    from rich.table import Table

SLACK = 0.01  # of a cell's target, and tasks: so near is not worth an explanation
SCOPE_NEEDS = {
    "concept": "material",
    "path": "material and a parent",
    "siblings": "material and a sibling",
    "pair": "material and a partner with material in another branch",
}


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """One cell. `causes` are short words for programs, `why` is a sentence for people; both are empty where nothing misses."""

    cell: Cell
    target: float  # tasks wanted, not rounded
    planned: int  # whole tasks the plan gives
    achieved: int
    capacity: int  # tasks its concepts could give, were they asked for nothing else
    causes: tuple[str, ...] = ()  # of CAUSES
    why: str = ""

    @property
    def misses(self) -> bool:
        """Whether it is off by more than rounding, or would be so as a part of its axes' totals."""
        return bool(self.causes)

    def row(self) -> dict[str, Any]:
        """Plain values, flat: for JSON, a data frame, a report."""
        rest = asdict(self)
        del rest["cell"]
        return {**self.cell._asdict(), **rest, "target": round(self.target, 3), "causes": list(self.causes)}


CAUSES = {
    "offer": "the type does not offer this scope or difficulty",
    "concepts": "no concept of this domain and granularity",
    "scope": "its concepts have no parent, sibling or other branch",
    "material": "the pages give too few tasks",
    "per_concept": "[sample] per_concept",
    "per_concept_total": "[sample] per_concept_total",
    "per_source": "[sample] per_source",
    "priority": "it gave way to totals that come first",
    "more": "it makes up for what other cells cannot give",
    "rejected": "drafted, and rejected",
    "unfinished": "not all of its samples have been drawn",
    "unasked": "the plan has no such cell",
}


def coverage(plan: Plan, made: Iterable[Cell], rejected: Iterable[tuple[Cell, str]] = ()) -> list[Coverage]:
    """Target, achieved and why not, for every cell that is wanted or made. rejected: cell and failed check of each."""
    achieved, refused = Counter(made), dict[Cell, Counter[str]]()
    for cell, check in rejected:
        refused.setdefault(cell, Counter())[check] += 1
    found = list(_wanted_cells(plan, achieved, refused))
    for cell in sorted(achieved.keys() - plan.targets.keys()):
        why = "no task of this kind is wanted"
        found.append(
            Coverage(cell=cell, target=0, planned=0, achieved=achieved[cell], capacity=0, causes=("unasked",), why=why)
        )
    return found


def _wanted_cells(plan: Plan, achieved: Mapping[Cell, int], refused: Mapping[Cell, Counter[str]]) -> Iterable[Coverage]:
    reasons = _Reasons(plan)
    for at in np.flatnonzero(plan.table).tolist():
        cell, target = plan.cell(at), float(plan.table.flat[at])
        planned, made = plan.planned.get(cell, 0), achieved.get(cell, 0)
        told = reasons.of(at)
        if made < planned:
            told = [*told, _lost(planned - made, refused.get(cell, Counter()))]
        elif made >= target + 1 and not told:
            told = [("more", CAUSES["more"])]
        yield Coverage(
            cell=cell,
            target=target,
            planned=planned,
            achieved=made,
            capacity=int(reasons.room.flat[at // plan.table.shape[-1]]) if reasons.offered(at) else 0,
            causes=tuple(cause for cause, _ in told),
            why="; ".join(why for _, why in told),
        )


def _lost(missing: int, checks: Counter[str]) -> tuple[str, str]:
    if not checks:
        return "unfinished", f"{missing} of its samples not drawn yet"
    return "rejected", "rejected in synthesis: " + ", ".join(f"{n} by {check}" for check, n in sorted(checks.items()))


class _Reasons:
    """Why the plan gives a cell less, or more, than is wanted."""

    def __init__(self, plan: Plan) -> None:
        shape = plan.table.shape
        self.plan, self.shape = plan, shape
        self.room, self.raw = plan.lots.room(shape), plan.lots.room(shape, raw=True)
        possible = np.array([self.offered(at) for at in range(plan.table.size)]).reshape(shape)
        self.caps = bottlenecks(plan.table * (possible & (self.room > 0)[..., None]), plan.lots)
        self.places = {(c.domain, plan.kinship.granularity[c.id]) for c in plan.kinship.concepts}

    def offered(self, at: int) -> bool:
        cell = self.plan.cell(at)
        return self.plan.supply.offers(cell.type, cell.scope, cell.difficulty)

    def of(self, at: int) -> list[tuple[str, str]]:
        """(cause, sentence), the most important first; empty when the plan gives what is wanted."""
        target, share = self.plan.table.flat[at], self.plan.solution.shares.flat[at]
        if share > target + SLACK * max(1, target):
            return [("more", CAUSES["more"])]
        if share >= target - SLACK * max(1, target):
            return []
        return self._short(self.plan.cell(at), at // self.shape[-1])

    def _short(self, cell: Cell, row: int) -> list[tuple[str, str]]:
        supply = self.plan.supply
        where = f"{cell.granularity} concept of domain {cell.domain!r}"
        if cell.scope not in supply.scopes_of(cell.type):
            return [("offer", f"{cell.type} offers {_listed(supply.scopes_of(cell.type))}, not scope {cell.scope}")]
        if cell.difficulty not in supply.difficulties_of(cell.type):
            offered = _listed(supply.difficulties_of(cell.type))
            return [("offer", f"{cell.type} offers {offered}, not difficulty {cell.difficulty}")]
        if (cell.domain, cell.granularity) not in self.places:
            return [("concepts", f"the graph has no {where}")]
        if not self.raw.reshape(-1, self.shape[3])[row // self.shape[3]].any():
            return [("material", f"no {where} has material for {cell.type}")]
        if not self.raw.flat[row]:
            return [("scope", f"no {where} has {SCOPE_NEEDS[cell.scope]} for {cell.type}")]
        if row not in self.caps:
            order = ", ".join(Cell._fields[axis] for axis in PRIORITY)
            return [
                ("priority", f"gave way, so that the totals come nearer to what is wanted (in this order: {order})")
            ]
        return [(cap, self._through(cap, tasks, int(self.raw.flat[row]))) for cap, tasks in self.caps[row].items()]

    def _through(self, cap: str, tasks: float, raw: int) -> str:
        if cap == "material":
            return f"the material of its concepts gives {tasks:g} tasks"
        lets = f"[sample] {cap} = {getattr(self.plan.config, cap)} lets {tasks:g} tasks through"
        return lets + f" (its material alone would give {raw})" * (cap == "per_concept")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def deviation(plan: Plan, made: Iterable[Cell]) -> dict[str, float]:
    """Per axis, and for the cells (`joint`), the total variation distance in [0, 1] between wanted and made shares."""
    counts = Counter(made)
    total = max(1, sum(counts.values()))
    wanted = plan.table / plan.table.sum()
    found: dict[str, float] = {}
    for axis, name in enumerate(Cell._fields):
        shares = dict(zip(plan.keys[axis], marginal(wanted, (AXES[axis],)).ravel().tolist(), strict=True))
        got = Counter[str]()
        for cell, n in counts.items():
            got[cell[axis]] += n
        found[name] = _apart(shares, got, total)
    cells = {cell: target / plan.table.sum() for cell, target in plan.targets.items()}
    return {**found, "joint": _apart(cells, counts, total)}


def _apart(shares: Mapping[Any, float], counts: Mapping[Any, int], total: int) -> float:
    return math.fsum(abs(shares.get(k, 0) - counts.get(k, 0) / total) for k in {*shares, *counts}) / 2  # in any order


def axis_rows(plan: Plan, made: Iterable[Cell]) -> list[dict[str, Any]]:
    """Per value of each axis: axis, value, target (tasks of all that were to be made), achieved."""
    made = list(made)
    rows = []
    for axis, name in enumerate(Cell._fields):
        got = Counter(cell[axis] for cell in made)
        targets = marginal(plan.table, (AXES[axis],)).ravel().tolist()
        for value, target in zip(plan.keys[axis], targets, strict=True):
            rows.append({"axis": name, "value": value, "target": round(target, 2), "achieved": got[value]})
    return rows


def coverage_table(rows: Sequence[Coverage], title: str = "") -> Table:
    """The rows for a terminal: `rich.print(coverage_table(...))`. Scopes and difficulties of one reason share a line."""
    from rich.table import Table
    from rich.text import Text

    table = Table("cell", title=title or None)
    for name in ("target", "planned", "achieved"):
        table.add_column(name, justify="right")
    table.add_column("why", overflow="fold", ratio=1)
    lines: dict[tuple[Any, ...], list[Coverage]] = {}
    for row in rows:
        lines.setdefault((row.cell[:3], row.causes, row.why), []).append(row)
    for (place, causes, why), some in lines.items():
        rest = [", ".join(dict.fromkeys(row.cell[axis] for row in some)) for axis in AXES[3:]]
        figures = [sum(getattr(row, name) for row in some) for name in ("target", "planned", "achieved")]
        style = "" if not causes else "cyan" if causes == ("more",) else "yellow"
        texts = (" / ".join((*place, *rest)), f"{figures[0]:.1f}", *map(str, figures[1:]), why)
        table.add_row(*map(Text, texts), style=style)
    return table
