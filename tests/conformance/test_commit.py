"""A commit: what is there afterwards, that nothing is there twice, and that nothing is there by halves."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kgsynth.concept import Decision
from kgsynth.errors import StoreError
from kgsynth.store import Change, GraphStore, Split
from tests.conformance.samples import CHAIN, PAGE, SPANS, A, B, C, D, check, concept, dump, edge, item, longest_paths


def test_everything_comes_back_as_it_was_in_the_order_of_insertion(store: GraphStore) -> None:
    full = concept(
        "Binärbaum 二叉树", definition="Ein “Baum” \0 \n 🌳", aliases=("binary tree", "BT"), keywords=("tree",), sense="CS",
        atomic=True, atomic_reason="klein",
    )  # fmt: skip
    evidence = (("similarity", 0.25), ("neighbour", "tree"), ("pair", ("x", 1, None, True)))
    decision = Decision(kind="dedup", subject="Binärbaum", outcome="new", reason="nothing near", evidence=evidence)
    link = edge(B, full, *SPANS[:2])
    change = Change(sources=(PAGE,), concepts=(full, B, A), edges=(link, edge(A, B)), decisions=(decision,))
    result = store.commit(change)
    assert result.op == store.version() == 1
    assert result.added == (full.id, B.id, A.id)
    assert result.linked == (link.id, edge(A, B).id)
    assert store.concepts() == [full, B, A]
    assert store.edges() == [link, edge(A, B)]
    assert store.sources() == [PAGE] == store.sources([PAGE.id])
    assert store.sources([]) == store.sources(["s_none"]) == []
    assert store.decisions() == [decision]
    assert store.concept(full.id) == full
    assert store.concept("c_none") is None
    assert isinstance(store, GraphStore)
    check(store)


def test_a_new_graph_is_empty(store: GraphStore) -> None:
    assert store.version() == 0
    assert store.concepts() == store.edges() == store.sources() == store.decisions() == store.tasks() == []
    assert store.operations() == []
    assert store.levels() == {}
    assert store.frontier() == {"waiting": 0, "leased": 0, "done": 0}
    check(store)


def test_the_same_change_again_changes_nothing(store: GraphStore) -> None:
    change = replace(
        CHAIN,
        sources=(PAGE,),
        edges=(edge(A, B, *SPANS[:3]), edge(B, C), edge(C, A), edge(A, D), edge(A, A)),
        decisions=(Decision(kind="atomic", subject=A.id, outcome="expand", reason="broad"),),
        enqueue=(item(B), item(C)),
        done=(B.id,),
    )
    first = store.commit(change)
    before = dump(store)
    again = store.commit(change)
    assert dump(store) == before
    assert (again.op, again.added, again.linked, again.merged) == (0, (), (), ())
    assert again.refused == first.refused


def test_every_kind_of_change_again_changes_nothing(store: GraphStore) -> None:
    store.commit(replace(CHAIN, concepts=(A, B, C, D)))
    into = concept("part")
    change = Change(
        merges=((A.id, D.id),),
        splits=(Split(concept=B.id, into=into, parents=(A.id,)),),
        unlink=((B.id, C.id),),
        remove=(C.id,),
    )
    assert store.commit(change).op == 2
    before = dump(store)
    assert store.commit(change).op == 0
    assert dump(store) == before


def test_an_empty_change_is_no_operation(store: GraphStore) -> None:
    assert store.commit(Change(note="nothing")).op == 0
    assert store.version() == 0


def test_sources_and_decisions_alone_are_no_operation(store: GraphStore) -> None:
    decision = Decision(kind="drop", subject="x", outcome="y", reason="z")
    assert store.commit(Change(sources=(PAGE,), decisions=(decision,))).op == 0
    assert (store.sources(), store.decisions(), store.version()) == ([PAGE], [decision], 0)


def test_a_known_concept_learns_and_forgets_nothing(store: GraphStore) -> None:
    store.commit(Change(concepts=(concept("tree", aliases=("T",), atomic=False, atomic_reason="has parts"),)))
    store.commit(Change(concepts=(concept("Trees", definition="A graph.", aliases=("arbor", "T"), keywords=("k",)),)))
    known = concept(
        "tree", definition="A graph.", aliases=("T", "arbor"), keywords=("k",), atomic=False, atomic_reason="has parts"
    )
    assert store.concepts() == [known]
    store.commit(Change(concepts=(concept("tree", definition="Other.", atomic=True, atomic_reason="one idea"),)))
    assert store.concepts() == [replace(known, atomic=True, atomic_reason="one idea")]
    assert [c.name for c in store.find("arbor")] == [c.name for c in store.find("tree")] == ["tree"]
    assert store.find("bush") == []


def test_a_concept_twice_in_one_change_is_one(store: GraphStore) -> None:
    result = store.commit(Change(concepts=(A, replace(A, definition="D."), replace(A, keywords=("k",)))))
    assert result.added == (A.id,)
    assert store.concepts() == [replace(A, definition="D.", keywords=("k",))]


def test_repeated_names_and_keywords_are_kept_once(store: GraphStore) -> None:
    odd = concept("a", aliases=("x", "y", "x"), keywords=("k", "k"))
    store.commit(Change(concepts=(odd,)))
    assert store.concepts() == [concept("a", aliases=("x", "y"), keywords=("k",))]
    assert store.commit(Change(concepts=(odd,))).op == 0


def test_a_concept_told_otherwise_within_one_change_counts_as_told_last(store: GraphStore) -> None:
    store.commit(Change(concepts=(replace(A, atomic=False),)))
    change = Change(concepts=(replace(A, atomic=True), replace(A, atomic=False)))
    assert store.commit(change).op == 0
    assert store.concepts() == [replace(A, atomic=False)]


def test_the_cap_drops_and_records_further_concepts(store: GraphStore) -> None:
    change = Change(
        concepts=(A, B, C), edges=(edge(A, B), edge(A, C)), enqueue=(item(C),), max_concepts=2
    )  # fmt: skip
    result = store.commit(change)
    assert (result.added, result.dropped, result.refused) == ((A.id, B.id), (C.id,), ())
    assert store.edges() == [edge(A, B)]
    assert [(d.kind, d.subject) for d in store.decisions()] == [("drop", C.id), ("drop", edge(A, C).id)]
    assert store.frontier()["waiting"] == 0, "what is not in the graph is not researched"
    better = replace(B, definition="known concepts still learn")
    assert store.commit(Change(concepts=(better,), max_concepts=2)).dropped == ()
    assert store.concept(B.id) == better


def test_the_cap_counts_what_is_there_now(store: GraphStore) -> None:
    store.commit(Change(concepts=(A, B, C)))
    store.commit(Change(merges=((A.id, B.id),), remove=(C.id,)))
    assert store.commit(Change(concepts=(D,), max_concepts=2)).added == (D.id,)
    assert store.commit(Change(concepts=(concept("more"),), max_concepts=2)).dropped == (concept("more").id,)


def test_evidence_that_json_cannot_hold_leaves_nothing_behind(store: GraphStore) -> None:
    decision = Decision(kind="dedup", subject="x", outcome="new", reason="y", evidence=(("object", object()),))
    with pytest.raises(StoreError, match="evidence"):
        store.commit(replace(CHAIN, sources=(PAGE,), decisions=(decision,), enqueue=(item(A),)))
    assert store.concepts() == store.edges() == store.sources() == store.operations() == []
    assert store.frontier()["waiting"] == 0
    assert store.commit(CHAIN).linked == (edge(A, B).id, edge(B, C).id)


def test_a_closed_store_says_so(store: GraphStore) -> None:
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.concepts()


def test_bulk(store: GraphStore) -> None:
    """1,000 concepts and 3,000 edges in one change; the shuffled directions make some of them refused."""
    dice = random.Random(0)
    concepts = [concept(f"bulk {i}", aliases=(f"alias {i}",)) for i in range(1000)]
    pairs = {(dice.randrange(i), i) for i in range(1, 1000) for _ in range(3)}
    back = [(c, p) for p, c in dice.sample(sorted(pairs), 50)]
    edges = tuple(edge(concepts[p], concepts[c]) for p, c in [*sorted(pairs), *back])
    result = store.commit(Change(concepts=tuple(concepts), edges=edges))
    assert (len(result.added), len(result.linked)) == (1000, len(pairs))
    assert len(result.refused) == 50
    assert store.levels() == longest_paths([c.id for c in concepts], [(e.parent, e.child) for e in store.edges()])
    assert store.find("alias 711") == [concepts[711]]
    store.undo(1)
    assert store.concepts() == store.edges() == store.find("alias 711") == []
