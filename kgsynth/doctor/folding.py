"""Concepts that are there twice, and merges that stopped half-way: folded into one with all edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kgsynth.doctor.patch import Finding, Patch, Ref, changing, removing
from kgsynth.doctor.survey import Survey
from kgsynth.store.change import absorb, bounded_spans
from kgsynth.store.rows import concept_fields, spans_to_rows, to_concept, to_spans

Around = dict[str, tuple[list[Ref], list[Ref]]]  # id of a concept -> (edges, tasks)
NOUNS = {
    "source": "source",
    "decision": "decision",
    "task": "task",
    "frontier": "frontier item of",
    "merged": "redirect of",
}


def duplicates(survey: Survey) -> Iterator[Finding]:
    """Rows of one id, and edges with the same ends."""
    around = _around(survey, survey.columns["concept"].again)
    for concept_id, numbers in survey.columns["concept"].again.items():
        refs = [("concept", n) for n in numbers]
        kept, (edges, tasks) = survey.ref(concept_id), around[concept_id]
        yield Finding(
            kind="duplicate", what=f"concept {survey.name(concept_id)} ({concept_id}) is there {len(refs) + 1} times",
            rows=(kept, *refs, *edges, *tasks), repair="the newer ones are folded into the oldest with all edges",
            fix=_folding(kept, refs, edges, concept_id, concept_id, tasks),
        )  # fmt: skip
    for kind, noun in NOUNS.items():
        for key, numbers in survey.columns[kind].again.items():
            refs = tuple((kind, n) for n in numbers)
            yield Finding(
                kind="duplicate", what=f"the {noun} {survey.name(key)} is there {len(refs) + 1} times", rows=refs,
                repair="the newer ones are removed", fix=removing(*refs),
            )  # fmt: skip
    yield from _parallel_edges(survey)


def _parallel_edges(survey: Survey) -> Iterator[Finding]:
    twice = set(survey.columns["concept"].again)
    for e, n in enumerate(survey.edge_n):
        ends = survey.ids[survey.parent[e]], survey.ids[survey.child[e]]
        if (others := survey.parallel.get(n)) and not twice.intersection(ends):
            refs = [("edge", n), *(("edge", other) for other in others)]
            yield Finding(
                kind="duplicate", what=f"the edge {survey.name(ends[0])} -> {survey.name(ends[1])} is there {len(refs)} times",
                rows=tuple(refs), repair="the newer ones are folded into the oldest with all quotes",
                fix=lambda patch, refs=refs: _fold_edges(patch, refs, {}),
            )  # fmt: skip


def half_merges(survey: Survey) -> Iterator[Finding]:
    """Redirects, and what should have gone with the concept that was folded."""
    around = _around(survey, {*survey.keep, *survey.keep.values()})
    for fold, first in survey.keep.items():
        redirect, keep = ("merged", survey.number("merged", fold)), _end(survey.keep, first)
        if keep is None:
            yield _half(f"the redirects from {fold} lead in a circle", redirect, "they are removed", removing(redirect))
        elif fold in survey.place:
            yield _unfinished(survey, around, fold, keep, redirect)
        elif keep not in survey.place:
            what = f"{fold} was folded into {keep}, which is not there"
            yield _half(what, redirect, "the redirect is removed", removing(redirect))
        elif keep != first:
            what = f"{fold} leads to {survey.name(keep)} over {first}, which was folded itself"
            yield _half(what, redirect, "the redirect leads to the concept itself", changing(redirect, keep=keep))
    yield from _left_behind(survey)


def _unfinished(survey: Survey, around: Around, fold: str, keep: str, redirect: Ref) -> Finding:
    here = survey.ref(fold)
    if keep not in survey.place:
        what = f"{survey.name(fold)} is there, though it was folded into {keep}, which is not"
        return _half(what, redirect, "the redirect is removed", removing(redirect))
    (mine, tasks), (others, _) = around[fold], around[keep]
    edges = [*mine, *others]
    what = f"{survey.name(fold)} was folded into {survey.name(keep)} and is still there, with {len(mine)} edges"
    fix = _folding(survey.ref(keep), [here], edges, keep, fold, tasks)
    return Finding(
        kind="half-merge", what=what, rows=(here, redirect, survey.ref(keep), *edges, *tasks),
        repair="it is finished: names and edges move to the concept that was kept", fix=fix,
    )  # fmt: skip


def _left_behind(survey: Survey) -> Iterator[Finding]:
    waiting = survey.columns["frontier"].number
    for fold, n in waiting.items():
        keep = _end(survey.keep, fold) if fold in survey.keep else None
        if keep in survey.place:
            moves = keep not in waiting
            fix = changing(("frontier", n), concept=keep) if moves else removing(("frontier", n))
            what = f"{fold}, which was folded into {survey.name(keep)}, is still in the frontier"
            yield _half(what, ("frontier", n), "its place in the frontier goes to the concept that was kept", fix)


def _half(what: str, ref: Ref, repair: str, fix: Callable[[Patch], None]) -> Finding:
    return Finding(kind="half-merge", what=what, rows=(ref,), repair=repair, fix=fix)


def _end(keep: dict[str, str], start: str) -> str | None:
    """Where redirects lead, None when in a circle."""
    seen = set()
    while start in keep:
        if start in seen:
            return None
        seen.add(start)
        start = keep[start]
    return start


def _around(survey: Survey, ids: Iterable[str]) -> Around:
    """Edges at the concepts of these ids, and tasks that name them."""
    found: Around = {i: ([], []) for i in ids}
    at = {survey.place[i]: edges for i, (edges, _) in found.items() if i in survey.place}
    for first, *ends in zip(survey.edge_n, survey.parent, survey.child, strict=True) if at else ():
        for end in {*ends} & at.keys():
            at[end] += [("edge", n) for n in (first, *survey.parallel.get(first, ()))]
    for n, named in survey.tested.items():
        for i in {*named} & found.keys():
            found[i][1].append(("task", n))
    return found


def _folding(
    keep: Ref, folds: list[Ref], edges: list[Ref], keep_id: str, fold_id: str, tasks: list[Ref]
) -> Callable[[Patch], None]:
    """tasks: those that name the folded id; written again, they are linked to the concept that was kept."""

    def fix(patch: Patch) -> None:
        for fold in folds:
            old, new = patch.row(keep), patch.row(fold)
            if old and new:
                whole = absorb(to_concept(old), to_concept(new))
                patch.change(keep, **concept_fields(whole))
                patch.remove(fold)
                _move_vector(patch, keep, fold, keep_id)
        _fold_edges(patch, edges, {fold_id: keep_id})
        for task in tasks:
            patch.change(task)

    return fix


def _move_vector(patch: Patch, keep: Ref, fold: Ref, keep_id: str) -> None:
    """A concept's vector has its number."""
    vector = patch.row(("embedding", fold[1]))
    if vector:
        patch.remove(("embedding", fold[1]))
        if keep_id == vector["concept"] and not patch.row(("embedding", keep[1])):
            patch.add_numbered("embedding", {**vector, "n": keep[1]})


def _fold_edges(patch: Patch, edges: list[Ref], meant: dict[str, str]) -> None:
    """Every pair of ends once, with the quotes of all; no self-loops."""
    kept: dict[tuple[str, str], Ref] = {}
    for ref in sorted(set(edges)):
        row = patch.row(ref)
        if not row:
            continue
        parent, child = row["parent"], row["child"]
        ends = str(meant.get(parent, parent)), str(meant.get(child, child))
        if ends[0] == ends[1]:
            patch.remove(ref)
        elif ends in kept and (first := patch.row(kept[ends])):
            spans = bounded_spans(to_spans(first["spans"]), to_spans(row["spans"]))
            patch.change(kept[ends], spans=spans_to_rows(spans))
            patch.remove(ref)
        else:
            kept[ends] = ref
            patch.change(ref, parent=ends[0], child=ends[1])
