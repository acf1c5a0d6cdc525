"""Random operations by hypothesis, against a naive model (`tests/dag_model.py`)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.errors import CycleError, UndoError
from kgsynth.store import Change, CommitResult, FrontierItem, GraphStore, Split
from tests.conformance.samples import (
    PAGE,
    SPANS,
    check,
    concept,
    every_row,
    undo_all,
    undo_with_what_hinders,
)
from tests.dag_model import DagModel, Outcome, Refused

Step = Change | tuple[str, int]  # ("undo" or "again", a number that chooses which)
NAMES = [concept(f"n{i}") for i in range(7)]

numbers = st.integers(0, len(NAMES) - 1)
ids = numbers.map(lambda i: NAMES[i].id)
concepts = st.builds(
    lambda i, aliases, definition, atomic: concept(
        f"n{i}", aliases=tuple(f"n{a}" if a < 9 else f"x{a}" for a in aliases), definition=definition, atomic=atomic,
        keywords=(definition,) if definition else (),
    ),
    numbers, st.lists(st.integers(0, 12), max_size=2), st.sampled_from(["", "", "D", "E"]), st.sampled_from([None, None, True, False]),
)  # fmt: skip
pairs = st.tuples(ids, ids)


def several(strategy: st.SearchStrategy, least: int = 0, most: int = 3) -> st.SearchStrategy:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


def _edges(ends: tuple, spans: list[int]) -> tuple:
    from kgsynth.concept import Edge

    return tuple(Edge(parent=p, child=c, spans=tuple(SPANS[i] for i in spans)) for p, c in ends)


edges = st.builds(_edges, several(pairs, most=5), st.lists(st.integers(0, 11), max_size=6))
items = several(st.builds(lambda i, depth: FrontierItem(concept=i, depth=depth), ids, st.integers(0, 3)), most=2)
grow = st.builds(
    Change, concepts=several(concepts, most=4), edges=edges, enqueue=items, done=several(ids, most=2),
    max_concepts=st.sampled_from([None, None, None, 4]),
)  # fmt: skip
merge = st.builds(Change, concepts=several(concepts, most=1), merges=several(pairs, 1), edges=edges, enqueue=items)
split = st.builds(
    Change, edges=edges,
    splits=several(st.builds(Split, concept=ids, into=concepts, parents=several(ids), children=several(ids)), 1, 2),
)  # fmt: skip
cut = st.builds(Change, unlink=several(pairs, 1, 4), edges=edges)
remove = st.builds(Change, remove=several(ids, 1, 2), done=several(ids, most=1))
mixed = st.builds(
    Change, concepts=several(concepts), merges=several(pairs, most=1), unlink=several(pairs, most=2), edges=edges,
    splits=several(st.builds(Split, concept=ids, into=concepts, parents=several(ids), children=several(ids)), most=1),
    remove=several(ids, most=1), enqueue=items, done=several(ids, most=1),
)  # fmt: skip
undo = st.tuples(st.just("undo"), st.integers(0, 30))
again = st.tuples(st.just("again"), st.integers(0, 30))
steps = st.lists(
    st.one_of(grow, grow, merge, merge, split, cut, remove, mixed, undo, undo, again), min_size=1, max_size=16
)


def take(store: GraphStore, model: DagModel, step: Step, before: list[Change]) -> None:
    """One step in both, with the same outcome."""
    if isinstance(step, Change):
        before.append(step)
        same(store.commit(step), model.commit(step))
    elif step[0] == "again" and before:
        change = before[step[1] % len(before)]
        same(store.commit(change), model.commit(change))
    elif step[0] == "undo" and model.log:
        take_back(store, model, 1 + step[1] % len(model.log))


def take_back(store: GraphStore, model: DagModel, op: int) -> None:
    try:
        expected = model.undo(op)
    except Refused as why:
        refused = why
    else:
        assert store.undo(op).op == expected
        return
    with pytest.raises((CycleError, UndoError)) as caught:
        store.undo(op)
    if isinstance(caught.value, UndoError):
        assert caught.value.later in refused.later
    else:
        assert refused.cycle or refused.later


def same(result: CommitResult, expected: Outcome) -> None:
    assert result.op == expected.op
    assert list(result.added) == unique(expected.added)
    assert [edge.id for edge in result.refused] == [edge.id for edge in _edges(tuple(unique(expected.refused)), [])]
    assert list(result.linked) == [edge.id for edge in _edges(tuple(expected.linked), [])]
    assert list(result.unlinked) == [edge.id for edge in _edges(tuple(expected.unlinked), [])]
    assert list(result.dropped) == unique(expected.dropped)
    assert list(result.merged) == expected.merged
    assert list(result.removed) == expected.removed


def unique(found: list) -> list:
    return list(dict.fromkeys(found))


def compare(store: GraphStore, model: DagModel) -> None:
    assert store.version() == len(model.log)
    assert store.concepts() == model.concepts()
    assert [((e.parent, e.child), e.spans) for e in store.edges()] == model.edges()
    assert store.levels() == model.levels()
    assert {row["fold"]: row["keep"] for row in every_row(store, "merged")} == model.redirects()
    assert [(row["concept"], row["depth"], row["state"]) for row in every_row(store, "frontier")] == model.queue()
    assert nx.is_directed_acyclic_graph(nx.DiGraph([(e.parent, e.child) for e in store.edges()]))


def play(store: GraphStore, steps: list[Step]) -> DagModel:
    model, before = DagModel(), []
    store.commit(Change(sources=(PAGE,)))
    for step in steps:
        take(store, model, step, before)
        compare(store, model)
    return model


def examples(url: str, embedded: int, neo4j: int) -> settings:
    return settings(max_examples=embedded if url.startswith("sqlite:") else neo4j, deadline=None)


def test_random_operations_do_what_the_naive_model_does(url: str, fresh: Callable[[], GraphStore]) -> None:
    @examples(url, 200, 15)
    @given(steps)
    def run(steps: list[Step]) -> None:
        store = fresh()
        play(store, steps)
        check(store)
        undo_all(store)

    run()


N0, N6 = NAMES[0].id, NAMES[6].id
FOUND_ONCE: dict[str, list[Step]] = {
    "removed, then added and folded in one operation": [
        Change(concepts=(NAMES[0], NAMES[6])),
        Change(remove=(N6,)),
        Change(concepts=(NAMES[6],), merges=((N0, N6),)),
        ("undo", 1),
        ("undo", 2),
        ("undo", 1),
    ],
    "the same, taken back and done again": [
        Change(concepts=(NAMES[0], NAMES[6])),
        Change(remove=(N6,)),
        Change(concepts=(NAMES[6],), merges=((N0, N6),)),
        ("undo", 2),
        ("undo", 3),
        ("undo", 1),
        ("undo", 4),
        ("undo", 1),
    ],
}


@pytest.mark.parametrize("case", FOUND_ONCE)
def test_what_random_operations_found_once(case: str, fresh: Callable[[], GraphStore]) -> None:
    store = fresh()
    play(store, FOUND_ONCE[case])
    check(store)
    undo_all(store)


def test_every_operation_can_be_undone_by_following_the_advice(url: str, fresh: Callable[[], GraphStore]) -> None:
    """And what was undone on the way can be done again, which gives the graph as it was."""

    @examples(url, 60, 4)
    @given(steps, st.integers(0, 30))
    def run(steps: list[Step], which: int) -> None:
        store = fresh()
        model = play(store, steps)
        if not model.log:
            return
        op = 1 + which % len(model.log)
        try:
            undone = undo_with_what_hinders(store, op)
        except CycleError:
            return  # edges of no common concept: no single operation is in the way
        assert undone[-1] == op
        check(store)
        for number in range(store.version(), store.version() - len(undone), -1):
            store.undo(number)
        compare_graph(store, model)

    run()


def compare_graph(store: GraphStore, model: DagModel) -> None:
    assert store.concepts() == model.concepts()
    assert [((e.parent, e.child), e.spans) for e in store.edges()] == model.edges()
    assert store.levels() == model.levels()


def test_what_a_reader_reads_again_after_touched_is_all_that_changed(url: str, fresh: Callable[[], GraphStore]) -> None:
    @examples(url, 40, 3)
    @given(steps)
    def run(steps: list[Step]) -> None:
        store = fresh()
        play(store, steps)
        last = {i: list(group)[-1] for i, group in groupby(sorted(_versions(store)), key=lambda v: v[0])}
        for i, (_, op) in last.items():
            history = store.history(i)
            assert [v.op for v in history] == sorted(v.op for v in history)
            assert history[-1].op <= op
            assert history[-1].concept == next(iter(store.concepts([i])), None)

    run()


def _versions(store: GraphStore) -> list[tuple[str, int]]:
    """(concept id, operation that touched it)"""
    return [(i, operation.op) for operation in store.operations() for i in operation.concepts]
