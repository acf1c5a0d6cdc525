"""ConceptGraph: views, levels, edits and their undoing; what is kept in memory against what is read anew."""

from __future__ import annotations

import contextlib
import random
from contextlib import closing
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.concept import Concept, Edge, Source
from kgsynth.embed import HashingEmbedder
from kgsynth.errors import CycleError, DuplicateError, StoreError, UndoError
from kgsynth.graph import ConceptGraph
from kgsynth.store import Change, open_store
from kgsynth.store.embedded import EmbeddedStore
from tests.bolt import bolt_url  # noqa: F401

PAGE = Source(url="https://example.org/", title="Trees", text="A heap is a tree. " * 9)


def concept(name: str, *, atomic: bool | None = None, aliases: tuple[str, ...] = (), sense: str = "") -> Concept:
    return Concept(name=name, domain="test", atomic=atomic, aliases=aliases, sense=sense)


ROOT, TREE, LIST, HEAP, LEAF = map(concept, ("structure", "tree", "list", "heap", "d-ary heap"))


@pytest.fixture
def graph() -> ConceptGraph:
    """structure -> tree -> heap -> d-ary heap, structure -> list -> heap, and structure -> d-ary heap."""
    graph = ConceptGraph(EmbeddedStore(":memory:"))
    graph.add(ROOT)
    graph.add(TREE, [ROOT], sources=[PAGE], spans=[PAGE.span(0, 17)])
    graph.add(LIST, [ROOT.id])
    graph.add(HEAP, [TREE, LIST])
    graph.add(LEAF, [HEAP, ROOT])
    return graph


def names(concepts: list[Concept]) -> list[str]:
    return [c.name for c in concepts]


def test_views(graph: ConceptGraph) -> None:
    assert names(list(graph)) == ["structure", "tree", "list", "heap", "d-ary heap"]
    assert names(graph.children(ROOT)) == ["tree", "list", "d-ary heap"]
    assert names(graph.parents(HEAP.id)) == ["tree", "list"]
    assert names(graph.ancestors(LEAF)) == ["heap", "structure", "tree", "list"]
    assert names(graph.descendants(TREE)) == ["heap", "d-ary heap"]
    assert names(graph.roots()) == ["structure"]
    assert names(graph.find("Heaps")) == ["heap"]
    assert len(graph) == 5
    assert HEAP in graph
    assert HEAP.id in graph
    assert concept("other") not in graph
    edge = graph.edge(ROOT, TREE)
    assert edge is not None
    assert edge.spans == (PAGE.span(0, 17),)
    assert graph.edge(TREE, ROOT) is None


def test_levels_are_longest_paths(graph: ConceptGraph) -> None:
    assert [graph.level(c) for c in graph] == [0, 1, 1, 2, 3]
    assert [graph.height(c) for c in graph] == [3, 2, 2, 1, 0]
    graph.link(TREE, LIST)
    assert [graph.level(c) for c in graph] == [0, 1, 2, 3, 4]


def test_granularity(graph: ConceptGraph) -> None:
    assert [graph.granularity(c) for c in graph] == ["broad", "broad", "broad", "middle", "atomic"]
    graph.add(concept("list", atomic=True))
    assert graph.granularity(LIST) == "atomic", "judged so"


def test_an_unknown_concept_is_named(graph: ConceptGraph) -> None:
    for act in (graph.children, graph.level, graph.granularity, graph.ancestors):
        with pytest.raises(StoreError, match="c_nowhere"):
            act("c_nowhere")
    with pytest.raises(StoreError, match="c_nowhere"):
        graph.link(ROOT, "c_nowhere")
    with pytest.raises(StoreError, match="c_nowhere"):
        graph.add(concept("new"), ["c_nowhere"])
    assert concept("new") not in graph


def test_cycles_are_refused_with_the_path(graph: ConceptGraph) -> None:
    before = graph.edges()
    with pytest.raises(CycleError) as caught:
        graph.link(LEAF, TREE)
    assert caught.value.path == (TREE.id, HEAP.id, LEAF.id)
    for parents in ([HEAP], [ROOT]):
        with pytest.raises(CycleError):
            graph.add(ROOT, parents)
    assert graph.edges() == before
    assert graph.stats().cycles == 0


def test_link_adds_spans_to_a_known_edge(graph: ConceptGraph) -> None:
    edge = graph.link(ROOT, TREE, spans=[PAGE.span(0, 17), PAGE.span(18, 20)])
    assert len(edge.spans) == 2
    assert len(graph.edges()) == 6
    assert graph.link(ROOT, HEAP).spans == ()


def test_merge(graph: ConceptGraph) -> None:
    double = graph.add(concept("heaps of trees"), [TREE])
    extra = graph.add(concept("pairing heap"), [double])
    kept = graph.merge(HEAP, double)
    assert kept.aliases == ("heaps of trees",)
    assert double not in graph
    assert graph[double] == kept
    assert names(graph.children(HEAP)) == ["d-ary heap", "pairing heap"]
    assert graph.level(extra) == 3
    with pytest.raises(CycleError):
        graph.merge(ROOT, HEAP)
    with pytest.raises(StoreError, match="itself"):
        graph.merge(HEAP, HEAP)
    assert graph.stats().cycles == 0


def test_folding_a_child_into_its_parent_drops_the_self_loop(graph: ConceptGraph) -> None:
    graph.merge(LIST, TREE)
    assert [(e.parent, e.child) for e in graph.edges()] == [
        (ROOT.id, LIST.id), (LIST.id, HEAP.id), (HEAP.id, LEAF.id), (ROOT.id, LEAF.id),
    ]  # fmt: skip
    graph.merge(LIST, HEAP)
    assert names(graph.children(LIST)) == ["d-ary heap"]
    assert graph.level(LEAF) == 2


def test_stats(graph: ConceptGraph) -> None:
    graph.add(concept("alone", atomic=True, aliases=("heap",)))
    graph.add(concept("heap", sense="memory"))
    stats = graph.stats()
    assert (stats.concepts, stats.edges, stats.roots, stats.atomic, stats.max_level) == (7, 6, 3, 1, 3)
    assert (stats.cycles, stats.unsupported_edges) == (0, 5)
    assert stats.multi_parent_share == 0.5
    assert stats.duplicate_names == 1, "heap, also an alias of another concept; the other sense does not count"


@pytest.mark.parametrize("back", [(1, 0), (0, 0)], ids=["cycle", "self-loop"])
def test_stats_find_a_cycle_by_themselves(back: tuple[int, int]) -> None:
    """The check must not trust the store: an edge is written behind its back."""
    store = EmbeddedStore(":memory:")
    graph = ConceptGraph(store)
    graph.add(ROOT)
    graph.add(TREE, [ROOT])
    graph.add(HEAP, [TREE])
    parent, child = ((ROOT.id, TREE.id)[i] for i in back)
    store.load({"edge": [{"n": 99, "parent": parent, "child": child, "version": 1, "spans": []}]}, store.state())
    stats = ConceptGraph(store).stats()
    assert (stats.cycles, stats.edges) == (1, 3)
    with pytest.raises(StoreError, match="doctor"):
        ConceptGraph(store).height(ROOT)


def test_empty_graph() -> None:
    stats = ConceptGraph(EmbeddedStore(":memory:")).stats()
    assert (stats.concepts, stats.max_level, stats.multi_parent_share) == (0, 0, 0)


def test_refresh_sees_what_others_wrote(tmp_path: Path) -> None:
    ours, theirs = (ConceptGraph(EmbeddedStore(tmp_path / "graph.sqlite")) for _ in range(2))
    assert len(ours) == 0
    theirs.add(ROOT)
    theirs.add(TREE, [ROOT])
    assert len(ours) == 0
    ours.refresh()
    assert (len(ours), ours.number_of_edges()) == (2, 1)
    assert names(ours.children(ROOT)) == ["tree"]
    theirs.add(HEAP, [TREE])
    assert names(ours.parents(HEAP)) == ["tree"], "one that was not seen before makes it look"
    theirs.add(concept("tree", aliases=("arbor",)))
    theirs.merge(TREE, HEAP)
    ours.add(LEAF, [HEAP])  # a stale id: it means the kept concept
    assert names(ours.parents(LEAF)) == ["tree"]
    assert names(list(ours)) == names(list(theirs)) == ["structure", "tree", "d-ary heap"]
    assert ours[TREE].aliases == ("arbor", "heap")


def test_opening_reads_nothing_but_the_version(graph: ConceptGraph) -> None:
    """Every statement that SQLite runs is counted."""
    store, asked = graph.store, list[str]()
    assert isinstance(store, EmbeddedStore)
    store._db.set_trace_callback(asked.append)
    opened = ConceptGraph(store)
    assert len(asked) == 1
    opened[HEAP]
    opened[HEAP]
    assert len(asked) == 2, "fetched once"
    opened.children(HEAP)
    opened.parents(LEAF)
    opened.ancestors(LEAF)
    before = len(asked)
    for each in (HEAP, LEAF, ROOT):
        opened.parents(each)
        opened.height(each)
    assert len(asked) == before, "all of it is known by now"


def test_split(graph: ConceptGraph) -> None:
    graph.add(concept("binary heap"), [HEAP])
    graph.add(concept("memory pool"), [HEAP])
    pool = concept("heap", sense="memory")
    assert graph.split(HEAP, pool, parents=[LIST], children=["c_nowhere", concept("memory pool")]) == pool
    assert names(graph.parents(HEAP)) == ["tree"]
    assert names(graph.parents(pool)) == ["list"]
    assert names(graph.children(pool)) == ["memory pool"]
    assert names(graph.children(HEAP)) == ["d-ary heap", "binary heap"]
    with pytest.raises(DuplicateError, match="heap"):
        graph.split(HEAP, pool, children=[LEAF])
    with pytest.raises(StoreError, match="c_nowhere"):
        graph.split("c_nowhere", concept("new"))


def test_unlink_and_remove(graph: ConceptGraph) -> None:
    graph.unlink(ROOT, LEAF)
    assert names(graph.parents(LEAF)) == ["heap"]
    with pytest.raises(StoreError, match="no edge"):
        graph.unlink(ROOT, LEAF)
    with pytest.raises(StoreError, match="c_nowhere"):
        graph.unlink(ROOT, "c_nowhere")
    graph.remove(HEAP)
    assert HEAP not in graph
    assert names(graph.roots()) == ["structure", "d-ary heap"]
    assert (graph.level(LEAF), graph.number_of_edges()) == (0, 2)
    with pytest.raises(StoreError, match=HEAP.id):
        graph.remove(HEAP)


def shape(graph: ConceptGraph) -> list[object]:
    """Everything the views say."""
    return [
        [(c, graph.parents(c), graph.children(c), graph.level(c), graph.height(c)) for c in graph],
        [graph.roots(), graph.edges(), len(graph), graph.number_of_edges()],
    ]


def test_undo_goes_back_step_by_step(graph: ConceptGraph) -> None:
    """Without a number: what was last done and not yet taken back, so that repeating it walks back."""
    states = [shape(graph)]
    for edit in (
        lambda: graph.merge(TREE, LIST),
        lambda: graph.unlink(HEAP, LEAF),
        lambda: graph.remove(HEAP),
        lambda: graph.split(ROOT, concept("part"), children=[LEAF]),
    ):
        edit()
        states.append(shape(graph))
    redo = graph.undo()
    assert shape(graph) == states[-2]
    graph.undo(redo.op)  # an undo taken back is an edit again ...
    assert shape(graph) == states[-1]
    for before in reversed(states[:-1]):  # ... so it is the first to be taken back
        graph.undo()
        assert shape(graph) == before
    for _ in range(5):
        graph.undo()
    assert len(graph) == 0
    with pytest.raises(UndoError, match="nothing to undo"):
        graph.undo()


def test_the_log_and_a_concepts_history(graph: ConceptGraph) -> None:
    graph.add(concept("heap", aliases=("priority queue",)))
    assert [version.concept and version.concept.aliases for version in graph.history(HEAP)] == [(), ("priority queue",)]
    log = graph.operations()
    assert [operation.op for operation in log] == [1, 2, 3, 4, 5, 6]
    assert log[3].edges == ((TREE.id, HEAP.id), (LIST.id, HEAP.id))
    assert graph.operations(since=2, limit=2) == log[2:4]
    graph.remove(HEAP)
    assert graph.history(HEAP)[-1].concept is None


def test_context_is_the_way_down_to_a_concept(graph: ConceptGraph) -> None:
    assert graph.context(HEAP) == "structure > tree"
    assert names(list(graph.lineage(LEAF))) == ["structure", "tree", "heap"]
    assert graph.context(ROOT) == ""


def test_nearest_by_vector_and_by_text(graph: ConceptGraph) -> None:
    embedder = HashingEmbedder()
    with pytest.raises(StoreError, match="no embeddings"):
        graph.nearest("heap")
    concepts = list(graph)
    graph.store.put_embeddings(embedder.name, [c.id for c in concepts], embedder.embed([c.name for c in concepts]))
    (first, cosine), (second, _) = graph.nearest("heap", k=2)
    assert (first, second) == (HEAP, LEAF)
    assert cosine == pytest.approx(1, abs=1e-6)
    assert graph.nearest(embedder.embed(["heap"])[0], k=2) == graph.nearest("heap", k=2)
    graph.remove(HEAP)
    assert graph.nearest("heap", k=1)[0][0] == LEAF


NAMES = st.integers(0, 8).map("n{}".format)
EDIT = st.one_of(
    st.tuples(st.just("add"), NAMES, st.lists(NAMES, max_size=3, unique=True)),
    st.tuples(st.just("merge"), NAMES, NAMES),
    st.tuples(st.just("split"), NAMES, st.lists(NAMES, max_size=2)),
    st.tuples(st.just("unlink"), NAMES, NAMES),
    st.tuples(st.just("remove"), NAMES, st.none()),
    st.tuples(st.just("undo"), st.integers(5, 25), st.none()),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(EDIT, min_size=1, max_size=25), st.sampled_from([1, 5]))
def test_what_is_kept_up_to_date_equals_what_is_read_anew(edits: list[tuple], every: int) -> None:
    """Any edits, also through another view of the same store that looks only now and then."""
    store = EmbeddedStore(":memory:")
    editor, onlooker = ConceptGraph(store), ConceptGraph(store)
    plant(editor)
    for number, edit in enumerate(edits, 1):
        with contextlib.suppress(StoreError):
            apply(editor, edit)
        expected = shape(ConceptGraph(store))
        assert shape(editor) == expected
        if number % every == 0:
            onlooker.refresh()
            assert shape(onlooker) == expected


@pytest.mark.neo4j
def test_neo4j_says_the_same(bolt_url: str) -> None:  # noqa: F811
    """Everything the views say, edit by edit, beside the embedded store."""
    dice = random.Random(1)
    with closing(open_store(bolt_url)) as store:
        theirs, ours = ConceptGraph(store), ConceptGraph(EmbeddedStore(":memory:"))
        plant(ours)
        plant(theirs)
        for number in range(35):
            a, b = (f"n{i}" for i in dice.sample(range(9), 2))
            kind = dice.choice(["add", "add", "merge", "split", "unlink", "remove", "undo"])
            edit = {"split": (kind, a, [b]), "add": (kind, a, [b]), "undo": (kind, number, None)}.get(
                kind, (kind, a, b)
            )
            for graph in (ours, theirs):
                with contextlib.suppress(StoreError):
                    apply(graph, edit)
            assert shape(theirs) == shape(ours), edit
        assert theirs.stats() == ours.stats()
        assert len(ours.operations()) > 20


def plant(graph: ConceptGraph) -> None:
    for i in range(9):
        graph.add(concept(f"n{i}"), [concept(f"n{above}") for above in {i // 2, i // 3} if above < i])


def apply(graph: ConceptGraph, edit: tuple) -> None:
    match edit:
        case ("add", name, parents):
            graph.add(concept(name), [concept(p) for p in parents if concept(p) in graph])
        case ("merge", keep, fold):
            graph.merge(concept(keep), concept(fold))
        case ("split", name, children):
            graph.split(concept(name), concept("part of " + name), children=map(concept, children))
        case ("unlink", parent, child):
            graph.unlink(concept(parent), concept(child))
        case ("remove", name, _):
            graph.remove(concept(name))
        case ("undo", op, _):
            graph.undo(op)


def test_to_networkx(graph: ConceptGraph) -> None:
    digraph = graph.to_networkx()
    assert nx.dag_longest_path(digraph) in ([c.id for c in (ROOT, x, HEAP, LEAF)] for x in (TREE, LIST))
    assert digraph.nodes[HEAP.id]["name"] == "heap"
    assert digraph.nodes[HEAP.id]["level"] == 2
    assert digraph.edges[ROOT.id, TREE.id]["spans"] == (PAGE.span(0, 17),)


def test_levels_equal_longest_paths_on_a_random_dag() -> None:
    dice = random.Random(0)
    concepts = [concept(f"n{i}") for i in range(200)]
    pairs = [(dice.randrange(i), i) for i in range(1, 200) for _ in range(2) if dice.random() < 0.8]
    edges = tuple(Edge(parent=concepts[p].id, child=concepts[c].id) for p, c in pairs)
    graph = ConceptGraph(EmbeddedStore(":memory:"))
    graph.commit(Change(concepts=tuple(concepts), edges=edges))
    for level, generation in enumerate(nx.topological_generations(graph.to_networkx())):
        assert {graph.level(i) for i in generation} == {level}
