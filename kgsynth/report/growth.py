"""How a graph grew, told from its log and its decisions: over time, by branch, what was refused, what was taken for the same."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, get_args

import numpy as np

from kgsynth.concept import Decision, Edge, name_key
from kgsynth.graph import ConceptGraph
from kgsynth.grow.frontier import first_parents, look
from kgsynth.llm.questions import Criterion
from kgsynth.store import Operation, Skeleton

Row = dict[str, Any]

POINTS = 240  # of a curve
SERIES = 8  # stacked at most; what remains is "other"
BRANCHES = 10  # of the thinnest and of the fattest
EXAMPLES = 3
CUT = 160  # characters of a reason
PAUSE_S = 600.0  # without a change: nobody was at work
DROPPED = {
    "unsupported": "proposed, but no page says so",
    "hostile": "proposed with a quote that gives orders",
    "copy": "page is a copy of one that was read",
    "unread": "page could not be read",
    "unsearched": "search failed",
    "failed": "attempt failed",
    "given up": "concept given up after its last attempt",
}
RULES = {
    "new": "new",
    "exact": "same name",
    "alias": "alias",
    "acronym": "acronym",
    "lexical": "spelling",
    "definition": "same definition",
    "vector": "same meaning, by vectors",
    "judge": "same, a model says",
    "sense": "same name, another sense",
}
LOOKED = {True: "read: nothing finer was found", False: "read: finer concepts were found"}


def growth(graph: ConceptGraph, ledger: Sequence[Row]) -> Row:
    """Everything the page says about growth, as plain JSON; parts that a run has nothing on are empty."""
    store = graph.store
    skeleton, decisions, edges = store.skeleton(), store.decisions(), store.edges()
    operations = store.operations()
    names = dict(zip(skeleton.ids, skeleton.names, strict=True))
    clock, resumed = work_clock([o.at for o in operations])
    return {
        "timeline": timeline(operations, skeleton, edges, clock),
        "resumed": resumed,
        "born": birthdays(operations, skeleton),
        "branches": branches(skeleton, ledger),
        "refused": refused(decisions, names),
        "rules": rules(decisions),
        "apart": kept_apart(decisions),
        "criteria": criteria(decisions),
        "licences": cited_licences(decisions, edges),
    }


def work_clock(times: Iterable[float]) -> tuple[Callable[[float], float], list[float]]:
    """(unix s -> minutes at work, the minutes at which work was taken up again): time in which nothing happened for long
    is left out."""
    moments = sorted(times)
    worked, resumed = [0.0] * len(moments[:1]), []
    for before, after in pairwise(moments):
        is_pause = after - before > PAUSE_S
        worked.append(worked[-1] + (0.0 if is_pause else after - before) / 60)
        if is_pause:
            resumed.append(worked[-1])

    def minutes(at: float) -> float:
        row = bisect_right(moments, at) - 1
        return worked[max(0, row)] if moments else 0.0

    return minutes, resumed


def timeline(
    operations: Sequence[Operation], skeleton: Skeleton, edges: Sequence[Edge], clock: Callable[[float], float]
) -> Row | None:
    """Concepts by group, and edges, as of some operations: those that are there now, since the first operation on them.

    Keys: op, minutes, edges, concepts [P each]; groups: name -> [P]; by: what the groups are. None without a log.
    """
    if not operations:
        return None
    born = _first((o.op, o.concepts) for o in operations)
    linked = _first((o.op, o.edges) for o in operations)
    group, by = groups(skeleton)
    steps = sorted({round(i) for i in np.linspace(0, len(operations) - 1, POINTS)})
    ops = [operations[i].op for i in steps]
    found: dict[str, list[int]] = defaultdict(list)
    for concept_id, name in group.items():
        found[name].append(born.get(concept_id, 0))
    series = {name: _counted(found[name], ops) for name in dict.fromkeys(group.values())}
    return {
        "op": ops,
        "minutes": [round(clock(operations[i].at), 3) for i in steps],
        "edges": _counted([linked.get((e.parent, e.child), 0) for e in edges], ops),
        "concepts": _counted([born.get(i, 0) for i in skeleton.ids], ops),
        "groups": dict(sorted(series.items(), key=lambda item: (item[0] == "other", -item[1][-1]))),
        "by": by,
    }


def birthdays(operations: Sequence[Operation], skeleton: Skeleton) -> list[float]:
    """When each concept that is there now came into the graph, ascending, in unix seconds."""
    at = {o.op: o.at for o in operations}
    born = _first((o.op, o.concepts) for o in operations)
    return sorted(at[born[i]] for i in skeleton.ids if i in born)


def _first(touched: Iterable[tuple[int, Iterable[Any]]]) -> dict[Any, int]:
    first: dict[Any, int] = {}
    for op, things in touched:
        for thing in things:
            first.setdefault(thing, op)
    return first


def _counted(births: Sequence[int], ops: Sequence[int]) -> list[int]:
    """How many were there as of each operation."""
    return np.searchsorted(np.sort(np.asarray(births, np.int64)), ops, side="right").tolist()


def groups(skeleton: Skeleton) -> tuple[dict[str, str], str]:
    """(concept id -> its group, what groups are): domains, or seeds where all is one domain; small ones are "other"."""
    if len(set(skeleton.domains)) > 1:
        named, by = list(skeleton.domains), "domain"
    else:
        named, by = [skeleton.names[row] for row in _roots(skeleton)], "seed"
    large = {name for name, _ in Counter(named).most_common(SERIES)}
    return {i: name if name in large else "other" for i, name in zip(skeleton.ids, named, strict=True)}, by


def _roots(skeleton: Skeleton) -> list[int]:
    """The root of each row, along first parents."""
    first = first_parents(skeleton)
    root: dict[int, int] = {}
    for row in range(len(skeleton.ids)):
        way = [row]
        while way[-1] not in root and way[-1] in first:
            way.append(first[way[-1]])
        root |= dict.fromkeys(way, root.get(way[-1], way[-1]))
    return [root[row] for row in range(len(skeleton.ids))]


def branches(skeleton: Skeleton, ledger: Sequence[Row]) -> Row:
    """What hangs below each child of a root, and roots that stand alone. Keys: total, largest (concepts), fat and thin (rows,
    fattest and thinnest first; all in `fat` when there are few). Key `paid`: whether any was paid for."""
    view = look(skeleton, {}, {})
    row_of = {concept_id: row for row, concept_id in enumerate(skeleton.ids)}
    parents = set(skeleton.parents.tolist())
    rooted = set(skeleton.children.tolist())
    members: dict[str, list[int]] = defaultdict(list)
    for concept_id, branch in view.branch.items():
        members[branch].append(row_of[concept_id])
    usd, calls = _by_concept(ledger)
    degree = np.bincount(skeleton.parents, minlength=len(skeleton.ids))
    rows = [
        _branch(skeleton, row_of[head], found, degree, usd, calls)
        for head, found in members.items()
        if row_of[head] in rooted or row_of[head] not in parents
    ]
    rows.sort(key=lambda row: (-row["concepts"], row["name"]))
    few = len(rows) <= 2 * BRANCHES
    return {
        "total": len(rows),
        "largest": max((row["concepts"] for row in rows), default=0),
        "alone": sum(row["alone"] for row in rows),
        "fat": rows if few else rows[:BRANCHES],
        "thin": [] if few else sorted(rows, key=_thin)[:BRANCHES],
        "paid": any(row["calls"] for row in rows),
    }


def _thin(row: Row) -> tuple[Any, ...]:
    """Of equally thin ones first those that need not be so: their concepts are not atomic."""
    return row["concepts"], row["atomic"] or 0.0, row["name"]


def _branch(
    skeleton: Skeleton, head: int, rows: list[int], degree: Any, usd: Mapping[str, float], calls: Mapping[str, float]
) -> Row:
    judged = [skeleton.atomic[row] for row in rows if skeleton.atomic[row] >= 0]
    wide = [int(degree[row]) for row in rows if degree[row]]
    return {
        "id": skeleton.ids[head],
        "name": skeleton.names[head],
        "domain": skeleton.domains[head],
        "alone": bool(len(rows) == 1 and skeleton.levels[head] == 0),
        "concepts": len(rows),
        "depth": int(max(skeleton.levels[row] for row in rows) - skeleton.levels[head] + 1),
        "atomic": sum(int(a) for a in judged) / len(judged) if judged else None,
        "children": median(wide) if wide else None,
        "usd": sum(usd.get(skeleton.ids[row], 0.0) for row in rows),
        "calls": sum(calls.get(skeleton.ids[row], 0.0) for row in rows),
    }


def _by_concept(ledger: Sequence[Row]) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """(dollars, calls) of growing, by concept id."""
    usd: defaultdict[str, float] = defaultdict(float)
    calls: defaultdict[str, float] = defaultdict(float)
    for row in ledger:
        if row.get("stage") == "grow" and row.get("concept"):
            usd[row["concept"]] += row.get("usd") or 0.0
            calls[row["concept"]] += row.get("calls") or 0
    return usd, calls


# --- decisions -------------------------------------------------------------------------------------------------------


def refused(decisions: Sequence[Decision], names: Mapping[str, str]) -> list[Row]:
    """What did not get into the graph, most frequent first: what, count, the commonest reason, examples."""
    left_out = {d.subject: str(name) for d in decisions if d.kind == "drop" and (name := dict(d.evidence).get("name"))}
    names = {**left_out, **names}
    found: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        if what := _refusal(decision):
            found[what].append(decision)
    ranked = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {
            "what": what,
            "count": len(group),
            "reason": Counter(d.reason[:CUT] for d in group).most_common(1)[0][0],
            "examples": list(dict.fromkeys(_example(d, names) for d in group))[:EXAMPLES],
        }
        for what, group in ranked
    ]


def _refusal(decision: Decision) -> str:
    """What kind of a refusal this is; "" when it is none."""
    evidence = dict(decision.evidence)
    if decision.kind == "cycle":
        return (
            "edge refused: an end is missing" if "ends" in decision.reason else "edge refused: it would close a cycle"
        )
    if decision.kind == "merge" and decision.outcome == "refused":
        return "merge refused: it would close a cycle"
    if decision.kind != "drop":
        return ""
    if decision.outcome == "dropped":
        return "edge left out: the graph was full" if "parent" in evidence else "concept left out: the graph was full"
    what = DROPPED.get(decision.outcome, decision.outcome)
    return f"{what}: {evidence['cause']}" if "cause" in evidence else what


def _example(decision: Decision, names: Mapping[str, str]) -> str:
    evidence = dict(decision.evidence)
    if "parent" in evidence and "child" in evidence:
        return f"{names.get(evidence['parent'], '?')} → {names.get(evidence['child'], '?')}"
    return str(evidence.get("name") or names.get(decision.subject, decision.subject))[:CUT]


def rules(decisions: Sequence[Decision]) -> list[Row]:
    """How each proposed concept was recognised: rule, count, and pairs of names with their similarity, least similar first."""
    found: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        if decision.kind == "dedup":
            found[decision.outcome].append(decision)
    order = [*RULES, *sorted(set(found) - set(RULES))]
    return [
        {"rule": RULES.get(name, name), "count": len(found[name]), "pairs": _telling(found[name])}
        for name in order
        if name in found
    ]


def _telling(decisions: Sequence[Decision]) -> list[Row]:
    """Pairs of different names; none of new ones, as those are no pairs."""
    told = [pair for d in decisions if d.outcome not in ("new", "sense") and (pair := _pair(d))]
    unlike = {(p["one"], p["other"]): p for p in told if name_key(p["one"]) != name_key(p["other"])}
    return sorted(unlike.values(), key=lambda pair: (pair["similarity"], pair["one"]))[:EXAMPLES]


def kept_apart(decisions: Sequence[Decision]) -> list[Row]:
    """The new concepts that were most like one in the graph: most similar first."""
    told = {
        (p["one"], p["other"]): p for d in decisions if d.kind == "dedup" and d.outcome == "new" and (p := _pair(d))
    }
    return sorted(told.values(), key=lambda pair: (-pair["similarity"], pair["one"]))[: 2 * EXAMPLES]


def _pair(decision: Decision) -> Row | None:
    evidence = dict(decision.evidence)
    if not isinstance(evidence.get("similarity"), (int, float)) or not evidence.get("neighbour"):
        return None
    return {"one": decision.subject, "other": str(evidence["neighbour"]), "similarity": float(evidence["similarity"])}


def criteria(decisions: Sequence[Decision]) -> list[Row]:
    """Why concepts are atomic or not: criterion, verdict, count. A concept that was judged and then read counts for both."""
    pattern = re.compile("|".join(map(re.escape, get_args(Criterion))))
    found: Counter[tuple[str, str]] = Counter()
    for decision in decisions:
        if decision.kind == "atomic":
            found[_criterion(decision, pattern), decision.outcome] += 1
    rows = [{"criterion": what, "verdict": verdict, "count": n} for (what, verdict), n in found.items()]
    return sorted(rows, key=lambda row: (row["verdict"], -row["count"], row["criterion"]))


def _criterion(decision: Decision, pattern: re.Pattern[str]) -> str:
    """Reasons are "<brain>: <criterion>: <words>", or "<brain>: researched: ..." """
    if ": researched: " in decision.reason:
        return LOOKED[decision.outcome == "atomic"]
    parts = decision.reason.split(": ")
    return next((part for part in parts if pattern.fullmatch(part)), "no criterion given")


def cited_licences(decisions: Sequence[Decision], edges: Sequence[Edge]) -> list[Row]:
    """Licences of cited pages whose evidence is known: licence, pages, edges that rest on them, what says so, an address."""
    known = {d.subject: d for d in decisions if d.kind == "licence"}
    cited = Counter(url for edge in edges for url in {span.url for span in edge.spans} if url in known)
    found: dict[str, list[Decision]] = defaultdict(list)
    for decision in known.values():
        found[decision.outcome].append(decision)
    rows = [
        {
            "licence": licence,
            "pages": len(group),
            "edges": sum(cited[d.subject] for d in group),
            "evidence": Counter(d.reason for d in group).most_common(1)[0][0][:CUT],
            "url": group[0].subject,
        }
        for licence, group in found.items()
    ]
    return sorted(rows, key=lambda row: (-row["pages"], row["licence"]))
