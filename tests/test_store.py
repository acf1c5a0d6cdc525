"""One suite for both stores, then what is particular to each. Concurrency is tested with real processes."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from kgsynth.concept import Concept, Decision, Edge, Source, SourceSpan
from kgsynth.errors import StoreError
from kgsynth.store import Change, FrontierItem, GraphStore, local, open_store, queries
from kgsynth.store.change import MAX_SPANS
from kgsynth.store.embedded import EmbeddedStore
from tests.bolt import bolt_url  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
SPAWN = multiprocessing.get_context("spawn")


def concept(name: str, **fields: Any) -> Concept:
    return Concept(name=name, domain="test", **fields)


def edge(parent: Concept, child: Concept, *spans: SourceSpan) -> Edge:
    return Edge(parent=parent.id, child=child.id, spans=spans)


A, B, C, D = map(concept, "abcd")
PAGE = Source(url="https://example.org/ä", title="Bäume 🌳", text="Every tree is a graph. " * 40, licence="CC0-1.0")
SPANS = [PAGE.span(i, i + 5) for i in range(12)]
CHAIN = Change(concepts=(A, B, C), edges=(edge(A, B), edge(B, C)))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["embedded", pytest.param("neo4j", marks=pytest.mark.neo4j)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'graph.sqlite'}" if request.param == "embedded" else request.getfixturevalue("bolt_url")


@pytest.fixture
def open_it(url: str) -> Iterable[Callable[..., GraphStore]]:
    """Opens the store under test; each call is a connection of its own."""
    opened: list[GraphStore] = []

    def connect(**kwargs: Any) -> GraphStore:
        if url.startswith("sqlite:"):
            opened.append(EmbeddedStore(url.removeprefix("sqlite:"), **kwargs))
        else:
            from kgsynth.store.neo4j import Neo4jStore

            opened.append(Neo4jStore(url, **kwargs))
        return opened[-1]

    yield connect
    for store in opened:
        store.close()


@pytest.fixture
def store(open_it: Callable[..., GraphStore]) -> GraphStore:
    return open_it()


def dump(store: GraphStore) -> dict[str, Any]:
    """All that can be read."""
    return {
        "version": store.version(),
        "concepts": store.concepts(),
        "edges": store.edges(),
        "sources": store.sources(),
        "decisions": store.decisions(),
        "frontier": dict(store.frontier()),
    }


def is_dag(edges: Iterable[Edge]) -> bool:
    return nx.is_directed_acyclic_graph(nx.DiGraph([(e.parent, e.child) for e in edges]))


# commit


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


def test_the_same_change_again_changes_nothing(store: GraphStore) -> None:
    change = replace(
        CHAIN,
        sources=(PAGE,),
        edges=(edge(A, B, *SPANS[:3]), edge(B, C), edge(C, A), edge(A, D), edge(A, A)),
        decisions=(Decision(kind="atomic", subject=A.id, outcome="expand", reason="broad"),),
        enqueue=(FrontierItem(concept=B.id, depth=1), FrontierItem(concept=C.id, depth=1)),
        done=(B.id,),
    )
    first = store.commit(change)
    before = dump(store)
    again = store.commit(change)
    assert dump(store) == before
    assert (again.added, again.linked, again.merged) == ((), (), ())
    assert again.refused == first.refused


def test_a_known_concept_learns_and_forgets_nothing(store: GraphStore) -> None:
    store.commit(Change(concepts=(concept("tree", aliases=("T",), atomic=False, atomic_reason="has parts"),)))
    store.commit(Change(concepts=(concept("Trees", definition="A graph.", aliases=("arbor", "T"), keywords=("k",)),)))
    known = concept("tree", definition="A graph.", aliases=("T", "arbor"), keywords=("k",), atomic=False, atomic_reason="has parts")  # fmt: skip
    assert store.concepts() == [known]
    store.commit(Change(concepts=(concept("tree", definition="Other.", atomic=True, atomic_reason="one idea"),)))
    assert store.concepts() == [replace(known, atomic=True, atomic_reason="one idea")]
    assert [c.name for c in store.find("arbor")] == [c.name for c in store.find("tree")] == ["tree"]
    assert store.find("bush") == []


def test_two_senses_of_one_name_are_found_in_order(store: GraphStore) -> None:
    senses = (concept("set", sense="type"), concept("set", sense="command"))
    store.commit(Change(concepts=senses))
    assert store.find("set") == list(senses)


def test_edges_that_would_close_a_cycle_are_refused_and_recorded(store: GraphStore) -> None:
    result = store.commit(replace(CHAIN, edges=(*CHAIN.edges, edge(C, A), edge(A, A), edge(A, C))))
    assert result.refused == (edge(C, A), edge(A, A))
    assert result.linked == tuple(e.id for e in (*CHAIN.edges, edge(A, C)))
    assert store.edges() == [*CHAIN.edges, edge(A, C)]
    assert [(d.kind, d.subject, d.outcome) for d in store.decisions()] == [
        ("cycle", edge(C, A).id, "refused"),
        ("cycle", edge(A, A).id, "refused"),
    ]
    assert store.commit(Change(edges=(edge(B, A),))).refused == (edge(B, A),)


def test_an_edge_without_both_ends_is_refused_and_recorded(store: GraphStore) -> None:
    result = store.commit(Change(concepts=(A,), edges=(edge(A, B),)))
    assert result.refused == (edge(A, B),)
    assert store.edges() == []
    assert "ends" in store.decisions()[0].reason


def test_spans_are_added_once_and_bounded(store: GraphStore) -> None:
    store.commit(Change(sources=(PAGE,), concepts=(A, B), edges=(edge(A, B, SPANS[0]), edge(A, B, SPANS[1]))))
    assert store.commit(Change(edges=(edge(A, B, SPANS[1], SPANS[2]),))).linked == ()
    assert store.edges() == [edge(A, B, *SPANS[:3])]
    store.commit(Change(edges=(edge(A, B, *reversed(SPANS)),)))
    (stored,) = store.edges()
    assert stored.spans == (*SPANS[:3], *SPANS[: -MAX_SPANS + 2 : -1])
    assert len(stored.spans) == MAX_SPANS


def test_the_cap_drops_and_records_further_concepts(store: GraphStore) -> None:
    change = Change(
        concepts=(A, B, C), edges=(edge(A, B), edge(A, C)), enqueue=(FrontierItem(concept=C.id, depth=1),), max_concepts=2
    )  # fmt: skip
    result = store.commit(change)
    assert (result.added, result.dropped, result.refused) == ((A.id, B.id), (C.id,), ())
    assert store.edges() == [edge(A, B)]
    assert [(d.kind, d.subject) for d in store.decisions()] == [("drop", C.id), ("drop", edge(A, C).id)]
    assert store.frontier()["waiting"] == 0, "what is not in the graph is not researched"
    better = replace(B, definition="known concepts still learn")
    assert store.commit(Change(concepts=(better,), max_concepts=2)).dropped == ()
    assert store.concept(B.id) == better


def test_version_tells_what_is_new(store: GraphStore) -> None:
    assert store.version() == (0, 0)
    store.commit(CHAIN)
    _, seen = store.version()
    assert store.concepts(seen) == store.edges(seen) == []
    store.commit(Change(concepts=(D, replace(B, keywords=("new",))), edges=(edge(C, D), edge(A, B, SPANS[0]))))
    assert [c.name for c in store.concepts(seen)] == ["b", "d"]
    assert store.edges(seen) == [edge(A, B, SPANS[0]), edge(C, D)]
    latest = store.version()
    store.commit(Change(decisions=(Decision(kind="drop", subject="x", outcome="y", reason="z"),), done=(A.id,)))
    assert store.version() == latest


# merge


def test_merge_moves_everything_and_the_old_id_means_the_kept_one(store: GraphStore) -> None:
    keep, fold = concept("merge sort", definition="Sorts."), concept("mergesort", aliases=("msort",), keywords=("k",))
    change = Change(
        sources=(PAGE,),
        concepts=(A, B, keep, fold, C),
        edges=(
            edge(A, keep, SPANS[0]),
            edge(A, fold, SPANS[1]),
            edge(B, fold, SPANS[2]),
            edge(fold, C),
            edge(keep, fold),
        ),
        enqueue=(FrontierItem(concept=fold.id, depth=2),),
    )
    store.commit(change)
    assert store.commit(Change(merges=((keep.id, fold.id),))).merged == (fold.id,)
    merged = replace(keep, aliases=("mergesort", "msort"), keywords=("k",))
    assert store.concepts() == [A, B, merged, C]
    assert store.edges() == [edge(A, keep, *SPANS[:2]), edge(B, keep, SPANS[2]), edge(keep, C)]
    assert store.concept(fold.id) == merged
    assert store.find("msort") == store.find("mergesort") == [merged]
    record = store.decisions()[-1]
    assert (record.kind, record.outcome, dict(record.evidence)["children"]) == ("merge", "merged", (C.id,))
    assert store.version()[0] == 1
    assert [item.concept for item in store.lease(9, "me", 60)] == [keep.id]
    before = dump(store)
    assert store.commit(Change(merges=((keep.id, fold.id),))).merged == ()
    assert dump(store) == before
    late = store.commit(Change(concepts=(fold, D), edges=(edge(fold, D), edge(C, fold)), done=(fold.id,)))
    assert late.added == (D.id,)
    assert late.linked == (edge(keep, D).id,)
    assert late.refused == (edge(C, keep),)
    assert store.frontier()["done"] == 1


def test_a_merge_that_would_close_a_cycle_is_refused(store: GraphStore) -> None:
    store.commit(CHAIN)
    for pair in ((A.id, C.id), (C.id, A.id)):
        before = store.edges()
        assert store.commit(Change(merges=(pair,))).merged == ()
        assert store.edges() == before
    assert [(d.kind, d.outcome) for d in store.decisions()] == [("merge", "refused")] * 2
    assert store.version()[0] == 0


def test_merges_chain(store: GraphStore) -> None:
    store.commit(Change(concepts=(A, B, C, D), edges=(edge(D, C),)))
    result = store.commit(Change(merges=((B.id, C.id), (A.id, B.id)), edges=(edge(C, D),)))
    assert result.merged == (C.id, B.id)
    assert store.edges() == [edge(D, A)]
    assert result.refused == (edge(A, D),)
    assert store.concept(C.id) == store.concept(B.id) == store.concept(A.id) == replace(A, aliases=("b", "c"))


# frontier


def items(*names: str) -> Change:
    concepts = tuple(map(concept, names))
    return Change(concepts=concepts, enqueue=tuple(FrontierItem(concept=c.id, depth=1) for c in concepts))


def test_frontier_leases_in_order_and_finishes(store: GraphStore) -> None:
    store.commit(items("a", "b", "c"))
    first = store.lease(2, "one", 60)
    assert [i.concept for i in first] == [A.id, B.id]
    assert first[0].seq < first[1].seq
    assert [i.concept for i in store.lease(5, "two", 60)] == [C.id]
    assert store.lease(5, "three", 60) == store.lease(0, "three", 60) == []
    assert store.frontier() == {"waiting": 0, "leased": 3, "done": 0}
    store.commit(replace(items("a", "d"), done=(A.id,)))
    assert store.frontier() == {"waiting": 1, "leased": 2, "done": 1}
    store.commit(items("a"))
    assert store.frontier()["done"] == 1, "done stays done"
    assert [i.concept for i in store.lease(5, "three", 60)] == [D.id]


def test_release_gives_back_own_leases_only(store: GraphStore) -> None:
    store.commit(items("a", "b", "c"))
    store.lease(2, "one", 60)
    store.lease(1, "two", 60)
    assert store.release("one") == 2
    assert store.release("one") == store.release("nobody") == 0
    again = store.lease(5, "two", 60)
    assert [(i.concept, i.attempts) for i in again] == [(A.id, 1), (B.id, 1)]


def test_expired_leases_count_as_waiting(open_it: Callable[..., GraphStore]) -> None:
    clock = Clock()
    store = open_it(clock=clock)
    store.commit(items("a", "b"))
    store.lease(1, "slow", 10)
    clock.now += 9.9
    assert [i.concept for i in store.lease(5, "fast", 100)] == [B.id]
    clock.now += 0.2
    assert store.frontier() == {"waiting": 1, "leased": 1, "done": 0}
    (item,) = store.lease(5, "fast", 100)
    assert (item.concept, item.attempts) == (A.id, 1)
    store.commit(Change(done=(A.id,)))  # the slow one comes in late: its work counts
    assert store.frontier() == {"waiting": 0, "leased": 1, "done": 1}


# several writers


def test_other_connections_see_commits_and_their_edges_count(open_it: Callable[..., GraphStore]) -> None:
    one, two = open_it(), open_it()
    one.commit(Change(concepts=(A, B, C), edges=(edge(A, B),)))
    assert two.concepts() == [A, B, C]
    two.commit(Change(edges=(edge(B, C),)))
    assert one.commit(Change(edges=(edge(C, A),))).refused == (edge(C, A),)
    two.commit(Change(merges=((A.id, B.id),)))
    assert one.commit(Change(edges=(edge(C, B),))).refused == (edge(C, A),)
    assert one.edges() == two.edges() == [edge(A, C)]


def hammer(url: str, seed: int, names: int, rounds: int) -> None:
    """Commit edges in random directions, a few at a time."""
    store, dice = open_store(url), random.Random(seed)
    concepts = [concept(f"n{i}") for i in range(names)]
    store.commit(Change(concepts=tuple(concepts)))
    for _ in range(rounds):
        pairs = [dice.sample(concepts, 2) for _ in range(3)]
        store.commit(Change(edges=tuple(edge(p, c) for p, c in pairs)))
    store.close()


def test_processes_that_close_cycles_on_each_other_leave_a_dag(url: str, store: GraphStore) -> None:
    workers = [SPAWN.Process(target=hammer, args=(url, seed, 12, 40)) for seed in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    edges = store.edges()
    assert len(store.concepts()) == 12
    assert is_dag(edges)
    assert len(edges) > 40
    refused = [d for d in store.decisions() if d.kind == "cycle"]
    assert refused, "the test must have tried to close cycles"
    assert len({e.id for e in edges}) == len(edges)


def take_all(url: str, owner: str, found: Any) -> None:
    store = open_store(url)
    while leased := store.lease(3, owner, 600):
        found.put([item.concept for item in leased])
    store.close()


def test_no_item_is_leased_twice(url: str, store: GraphStore) -> None:
    store.commit(items(*(f"n{i}" for i in range(40))))
    found = SPAWN.SimpleQueue()
    workers = [SPAWN.Process(target=take_all, args=(url, f"worker{i}", found)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    taken = []
    while not found.empty():
        taken += found.get()
    assert sorted(taken) == sorted(concept(f"n{i}").id for i in range(40))


def test_bulk(store: GraphStore) -> None:
    """5,000 concepts and 15,000 edges in one change; the shuffled directions make some of them refused."""
    dice = random.Random(0)
    concepts = [concept(f"bulk {i}", aliases=(f"alias {i}",)) for i in range(5000)]
    pairs = {(dice.randrange(i), i) for i in range(1, 5000) for _ in range(3)}
    back = [(c, p) for p, c in dice.sample(sorted(pairs), 50)]
    edges = tuple(edge(concepts[p], concepts[c]) for p, c in [*sorted(pairs), *back])
    result = store.commit(Change(concepts=tuple(concepts), edges=edges))
    assert (len(result.added), len(result.linked)) == (5000, len(pairs))
    assert len(result.refused) == 50
    assert is_dag(store.edges())
    assert store.find("alias 4711") == [concepts[4711]]


def test_a_closed_store_says_so(store: GraphStore) -> None:
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.concepts()


def test_evidence_that_json_cannot_hold_leaves_nothing_behind(store: GraphStore) -> None:
    decision = Decision(kind="dedup", subject="x", outcome="new", reason="y", evidence=(("object", object()),))
    with pytest.raises(StoreError, match="evidence"):
        store.commit(replace(CHAIN, decisions=(decision,)))
    assert store.concepts() == store.edges() == []
    assert store.commit(CHAIN).linked == (edge(A, B).id, edge(B, C).id)


def random_change(dice: random.Random) -> Change:
    concepts = [
        concept(f"n{dice.randrange(14)}", aliases=tuple(f"x{dice.randrange(9)}" for _ in range(dice.randrange(3))))
        for _ in range(dice.randrange(4))
    ]
    anyone = [concept(f"n{i}") for i in range(14)]
    ends = [dice.choices(anyone, k=2) for _ in range(dice.randrange(6))]
    edges = [edge(parent, child, *dice.choices(SPANS, k=dice.randrange(4))) for parent, child in ends]
    merges = [tuple(c.id for c in dice.sample(anyone, 2))] if dice.random() < 0.15 else []
    return Change(
        sources=(PAGE,) if dice.random() < 0.3 else (),
        concepts=tuple(concepts), edges=tuple(edges), merges=tuple(merges),  # type: ignore[arg-type]
        enqueue=tuple(FrontierItem(concept=c.id, depth=dice.randrange(3)) for c in dice.sample(anyone, 2)),
        done=(dice.choice(anyone).id,) if dice.random() < 0.3 else (),
        max_concepts=dice.choice([None, None, 9]),
    )  # fmt: skip


@pytest.mark.neo4j
@pytest.mark.parametrize("seed", range(3))
def test_both_stores_agree_on_random_changes(seed: int, bolt_url: str, tmp_path: Path) -> None:  # noqa: F811
    dice = random.Random(seed)
    with EmbeddedStore(tmp_path / "graph.sqlite") as ours, open_store(bolt_url) as theirs:  # type: ignore[attr-defined]
        for _ in range(40):
            change = random_change(dice)
            assert ours.commit(change) == theirs.commit(change)
        assert dump(ours) == dump(theirs)
        assert is_dag(ours.edges())
        assert ours.version()[0] > 0, "some merges went through"
        leased = [[(i.concept, i.depth, i.attempts) for i in s.lease(50, "me", 60)] for s in (ours, theirs)]
        assert leased[0] == leased[1]


# the embedded store alone

KILLED = """
import sys
from kgsynth.concept import Concept, Decision, Edge
from kgsynth.store import Change, FrontierItem, open_store
store, start = open_store(sys.argv[1]), int(sys.argv[2])
root = Concept(name="root", domain="test")
store.commit(Change(concepts=(root,)))
for i in range(start, start + 10_000):
    new = Concept(name=f"n{i}", domain="test")
    decision = Decision(kind="dedup", subject=new.name, outcome="new", reason="test")
    store.commit(Change(concepts=(new,), edges=(Edge(parent=root.id, child=new.id),), decisions=(decision,),
                        enqueue=(FrontierItem(concept=new.id, depth=1),)))
    print(i, flush=True)
"""


def test_kill_9_loses_no_acknowledged_commit_and_leaves_no_half(tmp_path: Path) -> None:
    path, dice, acknowledged = tmp_path / "graph.sqlite", random.Random(0), []
    for round_ in range(6):
        command = [sys.executable, "-c", KILLED, str(path), str(round_ * 10_000)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None
        for _ in range(dice.randrange(1, 40)):
            acknowledged.append(int(process.stdout.readline()))
        os.kill(process.pid, signal.SIGKILL)
        rest, _ = process.communicate()
        acknowledged += [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    with EmbeddedStore(path) as store:
        names = {c.name for c in store.concepts()}
        assert {f"n{i}" for i in acknowledged} <= names
        assert len(names) - 1 <= len(acknowledged) + 6, "at most one unacknowledged commit for each kill"
        assert len(store.edges()) == len(store.decisions()) == store.frontier()["waiting"] == len(names) - 1
    checked = sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone()
    assert checked == ("ok",)


def test_damaged_or_foreign_files_are_named_and_left_alone(tmp_path: Path) -> None:
    text, other, newer, torn = (tmp_path / name for name in ("text", "other.sqlite", "newer.sqlite", "torn.sqlite"))
    text.write_text("not a database, but long enough to have a header of one hundred bytes " * 4)
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE concept (x)")
    EmbeddedStore(newer).close()
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 99")
    cases = ((text, "choose a new path"), (other, "another program"), (newer, "format 99"), (tmp_path, "check that"))
    for path, message in cases:
        before = path.read_bytes() if path.is_file() else b""
        with pytest.raises(StoreError, match=message):
            EmbeddedStore(path)
        assert (path.read_bytes() if path.is_file() else b"") == before
    with EmbeddedStore(torn) as store:
        store.commit(CHAIN)
    torn.write_bytes(torn.read_bytes()[:4096] + b"\xff" * 4096)
    with pytest.raises(StoreError, match=re.escape(str(torn))):
        EmbeddedStore(torn).concepts()


def test_a_fork_must_open_its_own(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "graph.sqlite")
    pid = os.fork()
    if pid == 0:
        try:
            store.concepts()
        except StoreError as error:
            os._exit(0 if "fork" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_open_store_takes_paths_and_urls(tmp_path: Path) -> None:
    for url in (f"sqlite:{tmp_path / 'new' / 'a.sqlite'}", str(tmp_path / "b.sqlite"), ":memory:"):
        store = open_store(url)
        assert store.commit(CHAIN).added == (A.id, B.id, C.id)
        store.close()
    assert (tmp_path / "new" / "a.sqlite").exists()


def test_several_processes_may_create_the_file(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'graph.sqlite'}"
    workers = [SPAWN.Process(target=hammer, args=(url, seed, 3, 0)) for seed in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(open_store(url).concepts()) == 3


# the Neo4j store and the local server alone


def test_a_local_server_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="Maven"):
        local.fetch()
    monkeypatch.setattr(local, "JAVA", (99,))
    with pytest.raises(StoreError, match="needs Java 99"):
        local.start(tmp_path / "home")


def test_only_its_own_server_is_stopped(tmp_path: Path) -> None:
    """A pid file that a reboot made point at another process ends nothing."""
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "kgsynth.pid").write_text(str(other.pid))
    assert local.running(tmp_path) is None
    assert not local.stop(tmp_path)
    assert other.poll() is None
    other.communicate(b"\n")
    assert other.returncode == 0


def test_an_unreachable_server_is_a_store_error_with_the_fix() -> None:
    pytest.importorskip("neo4j")
    with pytest.raises(StoreError, match="check the address"):
        open_store("bolt://127.0.0.1:1")
    with pytest.raises(StoreError, match="write it as"):
        open_store("bolt+x://127.0.0.1:1")


def test_a_missing_driver_names_the_extra() -> None:
    code = "import sys; sys.modules['neo4j'] = None\nfrom kgsynth.store import open_store; open_store('bolt://127.0.0.1:1')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.stderr.strip().endswith("ConfigError: the Neo4j store needs the driver: pip install 'kgsynth[neo4j]'")


@pytest.mark.neo4j
def test_an_unknown_database_is_named(bolt_url: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("NEO4J_DATABASE", "elsewhere")
    with pytest.raises(StoreError, match="NEO4J_DATABASE"):
        open_store(bolt_url)


def statements(name: str) -> list[str]:
    text = re.sub(r"^//.*\n", "", (ROOT / "graph_schemas" / name).read_text(), flags=re.MULTILINE)
    return [" ".join(part.split()) for part in text.split(";") if part.strip()]


def test_the_schema_file_says_what_the_store_makes() -> None:
    assert statements("constraints.cypher") == [*queries.CONSTRAINTS, *queries.INDEXES]


@pytest.mark.neo4j
def test_saved_queries_run_and_show_provenance(bolt_url: str) -> None:  # noqa: F811
    from neo4j import GraphDatabase

    span = SPANS[0]
    change = replace(CHAIN, sources=(PAGE,), edges=(edge(A, B, span), edge(B, C, span), edge(A, C)))
    open_store(bolt_url).commit(replace(change, enqueue=(FrontierItem(concept=C.id, depth=2),)))
    with GraphDatabase.driver(bolt_url) as driver:
        given = {"name": "b", "from": "a", "to": "c"}
        saved: list[Any] = statements("queries.cypher")
        counts = [len(driver.execute_query(query, given, database_="neo4j").records) for query in saved]
        pages = driver.execute_query("MATCH (c:Concept)-[:FOUND_IN]->(s) RETURN c.name, s.url ORDER BY c.name")
    assert all(counts), counts
    assert [tuple(r.values()) for r in pages.records] == [("b", PAGE.url), ("c", PAGE.url)]
