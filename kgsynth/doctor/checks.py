"""The checks, in the order in which repairs have to be made: what later ones rely on comes first."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from kgsynth.doctor.folding import duplicates, half_merges
from kgsynth.doctor.graph import cycles, levels
from kgsynth.doctor.patch import Finding, Patch, changing, removing
from kgsynth.doctor.survey import Survey
from kgsynth.store.change import MAX_SPANS

IN_PASSING = {"dropped", "merged", "split", "refused"}  # what a commit says of a concept that may come and go within it
CONCEPT_ID = re.compile("c_[0-9a-f]{16}")
NOTHING = {"concept": {}, "edge": {}, "embedding": {}, "merged": {}, "frontier": {}, "gone": [], "cut": []}


def counters(survey: Survey) -> Iterator[Finding]:
    """Numbers must never be given twice."""
    state = survey.state
    wrong = {name: used for name, used in survey.last.items() if state[name] < used}
    if state["concepts"] != survey.count:
        wrong["concepts"] = survey.count
    for name, right in wrong.items():
        use = "are there" if name == "concepts" else "is in use"
        yield Finding(
            kind="counter", what=f"the counter {name!r} says {state[name]}, and {right} {use}",
            repair="the counters are set to what is there (`undo` does not take that back)",
            fix=lambda patch: patch.store.load({}, {**state, **wrong}),
        )  # fmt: skip


def log(survey: Survey) -> Iterator[Finding]:
    """A log may begin late (a graph of an older format has none), but not have gaps."""
    there = survey.operations
    wanted = range(there[0], max(survey.state["op"], there[-1]) + 1) if there else ()
    for op in sorted({*wanted}.difference(there)):
        row = {
            "n": op, "at": 0.0, "kind": "lost", "note": "this entry of the log was lost", "undoes": None, "concepts": [],
            "edges": [], "before": json.dumps(NOTHING),
        }  # fmt: skip
        yield Finding(
            kind="log", what=f"operation {op} is missing from the log",
            repair="an empty entry of the kind 'lost' takes its place: what it did cannot be taken back",
            fix=lambda patch, row=row: patch.add_numbered("operation", row),
        )  # fmt: skip


def edges(survey: Survey) -> Iterator[Finding]:
    for n, parent, child in survey.dangling:
        ends = f"{survey.name(parent)} -> {survey.name(child)}"
        missing = " and ".join(end for end in dict.fromkeys((parent, child)) if end not in survey.place)
        what = f"the edge {ends} has no concept at {missing}"
        yield Finding(
            kind="dangling-edge", what=what, rows=(("edge", n),), repair="it is removed", fix=removing(("edge", n))
        )
    for n, parent, child in zip(survey.edge_n, survey.parent, survey.child, strict=True):
        if parent == child:
            what = f"{survey.name(survey.ids[parent])} has an edge to itself"
            yield Finding(
                kind="self-loop", what=what, rows=(("edge", n),), repair="it is removed", fix=removing(("edge", n))
            )


def quotes(survey: Survey) -> Iterator[Finding]:
    """Spans whose text is not in their source, and more of them than an edge may have."""
    for kind, bad, problem in (
        ("missing-source", survey.unsourced, "quotes a source that is not there"),
        ("misquote", survey.misquoted, "quotes what its source does not say there"),
    ):
        for n, places in bad.items():
            yield Finding(
                kind=kind, what=f"edge {n} {problem} ({len(places)} times)", rows=(("edge", n),),
                repair="these quotes are removed, the edge stays", fix=_without_spans(n, places),
            )  # fmt: skip
    for n, spans in zip(survey.edge_n, survey.spans, strict=True):
        if spans > MAX_SPANS:
            yield Finding(
                kind="too-many-quotes", what=f"edge {n} has {spans} quotes, at most {MAX_SPANS} are kept",
                rows=(("edge", n),), repair=f"the first {MAX_SPANS} stay",
                fix=_without_spans(n, list(range(MAX_SPANS, spans))),
            )  # fmt: skip


def _without_spans(n: int, places: list[int]) -> Callable[[Patch], None]:
    def fix(patch: Patch) -> None:
        if row := patch.row(("edge", n)):
            kept = [span for at, span in enumerate(row["spans"]) if at not in places]
            patch.change(("edge", n), spans=kept)

    return fix


def ids(survey: Survey) -> Iterator[Finding]:
    """A concept's id follows from its name and sense, or a redirect leads from the one that does."""
    for place, right in survey.misnamed:
        wrong = survey.ids[place]
        what = f"{survey.names[place]!r} has the id {wrong}, its name gives {right}"
        taken = right in survey.place or right in survey.keep
        yield Finding(
            kind="wrong-id", what=what + (", which is another concept; merge the two" if taken else ""),
            rows=(survey.ref(wrong),), repair="" if taken else "the id that its name gives leads to it from now on",
            fix=lambda patch, row={"fold": right, "keep": wrong}: patch.add("merged", row),
        )  # fmt: skip


def names(survey: Survey) -> Iterator[Finding]:
    """The index of spellings, against the names and aliases of concepts."""
    listed: set[int] = set()
    wrong: dict[str, str] = {}
    for key, concept_id in survey.store.spellings():
        listed.add(spelling := hash((key, concept_id)))
        if spelling not in survey.spellings:
            wrong[concept_id] = (
                f"the spelling {key!r} is listed for {survey.name(concept_id)}, which does not answer to it"
            )
    for spelling in survey.spellings.keys() - listed:
        place = survey.spellings[spelling]
        wrong.setdefault(survey.ids[place], f"a spelling of {survey.name(survey.ids[place])} is not listed")
    for concept_id, what in wrong.items():
        stray = concept_id not in survey.place
        ref = ("concept", int(concept_id.partition(":")[2])) if stray else survey.ref(concept_id)
        yield Finding(
            kind="names-index", what=what, rows=(ref,), repair="its spellings are listed again",
            fix=removing(ref) if stray else changing(ref),
        )  # fmt: skip


def embeddings(survey: Survey) -> Iterator[Finding]:
    usual = max(survey.widths, key=lambda width: len(survey.widths[width]), default=0)
    wrong = {
        n: f"has {width / 4:g} numbers, others have {usual // 4}"
        for width, found in survey.widths.items()
        if width != usual
        for n in found
    }
    wrong |= dict.fromkeys(survey.not_finite, "holds numbers that are not finite")
    wrong |= {n: f"is of {concept}, which is not there" for n, concept in survey.stray_vectors}
    names = {n: survey.name(i) for i, n in survey.columns["concept"].number.items()} if wrong else {}
    for n, problem in sorted(wrong.items()):
        yield Finding(
            kind="embedding", what=f"the vector {n} ({names.get(n, 'no concept')}) {problem}", rows=(("embedding", n),),
            repair="it is removed; put_embeddings with the graph's model makes it again", fix=removing(("embedding", n)),
        )  # fmt: skip


def strays(survey: Survey) -> Iterator[Finding]:
    """Frontier items, tasks and decisions of concepts that the graph has never had."""
    for concept_id, n in survey.columns["frontier"].number.items():
        if concept_id not in survey.place and _end_of(survey, concept_id) not in survey.place:
            yield _stray("frontier", n, f"the frontier item of {concept_id} is of no concept")
    known = survey.ever.union(survey.place, survey.keep)
    for n, concepts in survey.tested.items():
        if unknown := [i for i in concepts if i not in known]:
            yield _stray("task", n, f"task {n} tests {unknown[0]}, which the graph has never had")
    passing = {subject for _, subject, outcome in survey.judged if outcome in IN_PASSING}
    for n, subject, _ in survey.judged:
        if CONCEPT_ID.fullmatch(subject) and subject not in known and subject not in passing:
            yield _stray("decision", n, f"decision {n} is about {subject}, which the graph has never had")


def _end_of(survey: Survey, concept_id: str) -> str:
    for _ in range(len(survey.keep)):
        concept_id = survey.keep.get(concept_id, concept_id)
    return concept_id


def _stray(kind: str, n: int, what: str) -> Finding:
    return Finding(kind=kind, what=what, rows=((kind, n),), repair="it is removed", fix=removing((kind, n)))


def schema(survey: Survey) -> Iterator[Finding]:
    for what in survey.store.schema_faults():
        damaged = "damaged" in what
        yield Finding(
            kind="damaged-file" if damaged else "schema",
            what=f"{what}; restore a backup with `kgsynth restore`" if damaged else what,
            repair="" if damaged else "it is made again", fix=lambda patch: patch.store.mend_schema(),
        )  # fmt: skip


CHECKS: list[Callable[[Survey], Iterator[Finding]]] = [
    counters, log, duplicates, half_merges, edges, quotes, cycles, levels, ids, names, embeddings, strays, schema,
]  # fmt: skip
