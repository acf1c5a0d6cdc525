"""The doctor: each fault is planted past the store, found under its name and alone, repaired, and brought back by undo."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgsynth.cli import main
from kgsynth.concept import Concept, Edge
from kgsynth.doctor import Finding, examine, repair
from kgsynth.errors import StoreError, UndoError
from kgsynth.store import Change, GraphStore, Split, open_store
from tests.bolt import bolt_url  # noqa: F401
from tests.test_push import damage, fill, image

A, B, C, D, E, LONE = (
    Concept(name=name, domain="d", aliases=(f"the {name} itself",)) for name in ("a", "b", "c", "d", "e", "lone")
)
SMALL = Change(
    concepts=(A, B, C, D, E, LONE),
    edges=tuple(Edge(parent=p.id, child=c.id) for p, c in ((A, B), (B, C), (C, D), (A, E))),
)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """How to plant it in a file or in Neo4j, what it is called then, and words of what is said."""

    kind: str
    sql: str
    says: str
    cypher: str = ""  # empty: Neo4j cannot hold it
    comes_back: bool = True  # undone, the repair leaves the fault there again


def n(concept: Concept) -> str:
    return f"(SELECT n FROM concept WHERE id = '{concept.id}')"


def node(concept: Concept, name: str = "c") -> str:
    return f"MATCH ({name}:Concept {{id: '{concept.id}'}})"


SPAN = '{"source": "s_0000000000000000", "url": "u", "start": 0, "end": 4, "text": "that"}'
PAGE = "n: 900, id: 's_1', url: 'u', title: 't', text: 'this text', licence: '', retrieved_at: ''"
PAGE_SQL = "UPDATE state SET n = 900; INSERT INTO source VALUES (900, 's_1', 'u', 't', 'this text', '', '')"
QUOTE = '{"source": "s_1", "url": "u", "start": 0, "end": 4, "text": "this"}'

FAULTS = {
    "a cycle": Fault(
        kind="cycle", says="is a cycle",
        sql=f"INSERT INTO edge VALUES (900, {n(D)}, {n(B)}, 1, '[]'); UPDATE state SET n = 900",
        cypher=f"{node(D, 'p')} {node(B)} CREATE (p)-[:NARROWER {{n: 900, version: 1, spans: '[]', sources: []}}]->(c)"
        " WITH 1 AS x MATCH (g:Guard) SET g.n = 900",
    ),
    "a duplicate id": Fault(
        kind="duplicate", says="'b' (c_", comes_back=False,
        sql=f"DROP INDEX concept_id; UPDATE state SET n = 900, concepts = concepts + 1;"
        f" INSERT INTO concept SELECT 900, id, version, level, name, domain, 'It is twice.', aliases, keywords, sense, atomic, atomic_reason"
        f" FROM concept WHERE id = '{B.id}'; INSERT INTO name SELECT key, 900 FROM name WHERE concept = {n(B)};"
        f" UPDATE edge SET parent = 900 WHERE child = {n(C)}",
        cypher=f"DROP CONSTRAINT concept_id; {node(B)} CREATE (x:Concept) SET x = properties(c), x.n = 900, x.definition = 'It is twice.'"
        f" WITH c, x MATCH (c)-[r:NARROWER]->(to) CREATE (x)-[s:NARROWER]->(to) SET s = properties(r) DELETE r"
        f" WITH DISTINCT c, x MATCH (c)-[:CALLED]->(k) CREATE (x)-[:CALLED]->(k)"
        f" WITH 1 AS one MATCH (g:Guard) SET g.n = 900, g.concepts = 7",
    ),
    "a dangling edge": Fault(
        kind="dangling-edge", says="has no concept at missing:777",
        sql=f"INSERT INTO edge VALUES (900, {n(D)}, 777, 1, '[]'); UPDATE state SET n = 900",
    ),
    "a self-loop": Fault(
        kind="self-loop", says="'d' has an edge to itself",
        sql=f"INSERT INTO edge VALUES (900, {n(D)}, {n(D)}, 1, '[]'); UPDATE state SET n = 900",
        cypher=f"{node(D)} CREATE (c)-[:NARROWER {{n: 900, version: 1, spans: '[]', sources: []}}]->(c)"
        " WITH 1 AS x MATCH (g:Guard) SET g.n = 900",
    ),
    "an edge that is there twice": Fault(
        kind="duplicate", says="the edge 'a' -> 'b' is there 2 times", comes_back=False,
        sql=f"DROP INDEX edge_ends; INSERT INTO edge VALUES (900, {n(A)}, {n(B)}, 1, '[]'); UPDATE state SET n = 900",
    ),
    "a wrong level": Fault(
        kind="wrong-level", says="'c' is on level 2, not 7",
        sql=f"UPDATE concept SET level = 7 WHERE id = '{C.id}'", cypher=f"{node(C)} SET c.level = 7",
    ),
    "an id of another name": Fault(
        kind="wrong-id", says="'something else' has the id c_",
        sql=f"UPDATE concept SET name = 'something else' WHERE id = '{LONE.id}';"
        f" UPDATE name SET key = 'something else' WHERE concept = {n(LONE)} AND key = 'lone'",
        cypher=f"{node(LONE)} SET c.name = 'something else' WITH c MATCH (c)-[:CALLED]->(k {{key: 'lone'}}) SET k.key = 'something else'",
    ),
    "a spelling that is not listed": Fault(
        kind="names-index", says="a spelling of 'c' is not listed", comes_back=False,
        sql=f"DELETE FROM name WHERE concept = {n(C)} AND key = 'c'", cypher="MATCH (k:Name {key: 'c'}) DETACH DELETE k",
    ),
    "a spelling of something else": Fault(
        kind="names-index", says="'wrong' is listed for 'c', which does not answer to it", comes_back=False,
        sql=f"INSERT INTO name VALUES ('wrong', {n(C)})",
        cypher=f"{node(C)} CREATE (c)-[:CALLED]->(:Name {{key: 'wrong'}})",
    ),
    "a spelling of nothing": Fault(
        kind="names-index", says="'wrong' is listed for missing:777", comes_back=False,
        sql="INSERT INTO name VALUES ('wrong', 777)",
    ),
    "an embedding of the wrong size": Fault(
        kind="embedding", says="has 2 numbers, others have 3",
        sql=f"UPDATE embedding SET vector = x'0000803f0000803f' WHERE concept = {n(C)}",
        cypher=f"{node(C)} SET c.embedding = [1.0, 1.0]",
    ),
    "an embedding that is no number": Fault(
        kind="embedding", says="('c') holds numbers that are not finite",
        sql=f"UPDATE embedding SET vector = x'0000c07f0000803f0000803f' WHERE concept = {n(C)}",
        cypher=f"{node(C)} SET c.embedding = [0.0/0.0, 1.0, 1.0]",
    ),
    "an embedding of no concept": Fault(
        kind="embedding", says="is of missing:777, which is not there",
        sql="INSERT INTO embedding VALUES (777, 1, x'0000803f0000803f0000803f')",
    ),
    "a merge whose concept is still there": Fault(
        kind="half-merge", says="'e' was folded into 'lone' and is still there, with 1 edges",
        sql=f"INSERT INTO merged VALUES (900, '{E.id}', '{LONE.id}'); UPDATE state SET n = 900",
        cypher=f"CREATE (:Merged {{n: 900, fold: '{E.id}', keep: '{LONE.id}'}}) WITH 1 AS x MATCH (g:Guard) SET g.n = 900",
    ),
    "a redirect to nothing": Fault(
        kind="half-merge", says="was folded into c_gone, which is not there",
        sql="INSERT INTO merged VALUES (900, 'c_1', 'c_gone'); UPDATE state SET n = 900",
        cypher="CREATE (:Merged {n: 900, fold: 'c_1', keep: 'c_gone'}) WITH 1 AS x MATCH (g:Guard) SET g.n = 900",
    ),
    "a chain of redirects": Fault(
        kind="half-merge", says="leads to 'b' over c_2, which was folded itself",
        sql=f"INSERT INTO merged VALUES (900, 'c_1', 'c_2'), (901, 'c_2', '{B.id}'); UPDATE state SET n = 901",
        cypher=f"CREATE (:Merged {{n: 900, fold: 'c_1', keep: 'c_2'}}), (:Merged {{n: 901, fold: 'c_2', keep: '{B.id}'}})"
        " WITH 1 AS x MATCH (g:Guard) SET g.n = 901",
    ),
    "redirects in a circle": Fault(
        kind="half-merge", says="lead in a circle",
        sql="INSERT INTO merged VALUES (900, 'c_1', 'c_2'), (901, 'c_2', 'c_1'); UPDATE state SET n = 901",
        cypher="CREATE (:Merged {n: 900, fold: 'c_1', keep: 'c_2'}), (:Merged {n: 901, fold: 'c_2', keep: 'c_1'})"
        " WITH 1 AS x MATCH (g:Guard) SET g.n = 901",
    ),
    "a folded concept in the frontier": Fault(
        kind="half-merge", says="is still in the frontier",
        sql=f"INSERT INTO merged VALUES (900, 'c_1', '{B.id}'); UPDATE state SET n = 901;"
        " INSERT INTO frontier VALUES (901, 'c_1', 1, 'waiting', 0, 0, '', 0)",
        cypher=f"CREATE (:Merged {{n: 900, fold: 'c_1', keep: '{B.id}'}}), (:Frontier {{seq: 901, concept: 'c_1', depth: 1,"
        " state: 'waiting', attempts: 0, token: 0, owner: '', lease_until: 0.0}) WITH 1 AS x MATCH (g:Guard) SET g.n = 901",
    ),
    "a quote of a source that is not there": Fault(
        kind="missing-source", says="quotes a source that is not there (1 times)",
        sql=f"UPDATE edge SET spans = '[{SPAN}]' WHERE child = {n(B)}",
        cypher=f"{node(B)}<-[r:NARROWER]-() SET r.spans = '[{SPAN}]', r.sources = ['s_0000000000000000']",
    ),
    "a quote that its source does not say": Fault(
        kind="misquote", says="quotes what its source does not say there",
        sql=f"{PAGE_SQL}; UPDATE edge SET spans = '[{QUOTE}, {QUOTE.replace('this', 'that')}]' WHERE child = {n(B)}",
        cypher=f"CREATE (:Source {{{PAGE}}}) WITH 1 AS x {node(B)}<-[r:NARROWER]-()"
        f" SET r.spans = '[{QUOTE}, {QUOTE.replace('this', 'that')}]', r.sources = ['s_1'] WITH 1 AS y MATCH (g:Guard) SET g.n = 900",
    ),
    "too many quotes": Fault(
        kind="too-many-quotes", says="has 9 quotes, at most 8 are kept",
        sql=f"{PAGE_SQL}; UPDATE edge SET spans = '[{', '.join([QUOTE] * 9)}]' WHERE child = {n(B)}",
        cypher=f"CREATE (:Source {{{PAGE}}}) WITH 1 AS x {node(B)}<-[r:NARROWER]-()"
        f" SET r.spans = '[{', '.join([QUOTE] * 9)}]', r.sources = ['s_1'] WITH 1 AS y MATCH (g:Guard) SET g.n = 900",
    ),
    "a frontier item of no concept": Fault(
        kind="frontier", says="the frontier item of c_9 is of no concept",
        sql="INSERT INTO frontier VALUES (900, 'c_9', 1, 'waiting', 0, 0, '', 0); UPDATE state SET n = 900",
        cypher="CREATE (:Frontier {seq: 900, concept: 'c_9', depth: 1, state: 'waiting', attempts: 0, token: 0, owner: '',"
        " lease_until: 0.0}) WITH 1 AS x MATCH (g:Guard) SET g.n = 900",
    ),
    "a task of no concept": Fault(
        kind="task", says="task 900 tests c_9, which the graph has never had",
        sql="""INSERT INTO task VALUES (900, 't', 'cloze', 'd', 'broad', '?', '["c_9"]', NULL, 0, ''); UPDATE state SET n = 900""",
        cypher="CREATE (:Task {n: 900, id: 't', type: 'cloze', domain: 'd', granularity: 'broad', prompt: '?', concepts: ['c_9'],"
        " attempts: 0, policy: ''}) WITH 1 AS x MATCH (g:Guard) SET g.n = 900",
    ),
    "a decision on no concept": Fault(
        kind="decision", says="decision 900 is about c_0123456789abcdef, which the graph has never had",
        sql="INSERT INTO decision VALUES (900, 'd', 'atomic', 'c_0123456789abcdef', 'atomic', '', '[]'); UPDATE state SET n = 900",
        cypher="CREATE (:Decision {n: 900, id: 'd', kind: 'atomic', subject: 'c_0123456789abcdef', outcome: 'atomic', reason: '',"
        " evidence: '[]'}) WITH 1 AS x MATCH (g:Guard) SET g.n = 900",
    ),
    "a counter of numbers that is too low": Fault(
        kind="counter", says="the counter 'n' says 1, and", sql="UPDATE state SET n = 1",
        cypher="MATCH (g:Guard) SET g.n = 1", comes_back=False,
    ),
    "a counter of concepts that is wrong": Fault(
        kind="counter", says="the counter 'concepts' says 99, and 6 are there", sql="UPDATE state SET concepts = 99",
        cypher="MATCH (g:Guard) SET g.concepts = 99", comes_back=False,
    ),
    "a counter of operations that is too low": Fault(
        kind="counter", says="the counter 'op' says 1, and 2 is in use", sql="UPDATE state SET op = 1",
        cypher="MATCH (g:Guard) SET g.op = 1", comes_back=False,
    ),
    "a counter of leases that is too low": Fault(
        kind="counter", says="the counter 'tokens' says 0, and 5 is in use", comes_back=False,
        sql=f"INSERT INTO frontier VALUES (900, '{B.id}', 1, 'waiting', 0, 5, '', 0); UPDATE state SET n = 900",
        cypher=f"CREATE (:Frontier {{seq: 900, concept: '{B.id}', depth: 1, state: 'waiting', attempts: 0, token: 5, owner: '',"
        " lease_until: 0.0}) WITH 1 AS x MATCH (g:Guard) SET g.n = 900",
    ),
    "a gap in the log": Fault(
        kind="log", says="operation 3 is missing from the log", sql="UPDATE state SET op = 3",
        cypher="MATCH (g:Guard) SET g.op = 3",
    ),
    "an index that is missing": Fault(
        kind="schema", says="the index edge_up is missing", sql="DROP INDEX edge_up", comes_back=False,
    ),
}  # fmt: skip

Plant = Callable[[Fault], None]


def small(store: GraphStore) -> None:
    store.commit(SMALL)
    store.commit(Change(concepts=(Concept(name="a", domain="d", keywords=("k",)),)))
    store.put_embeddings("m", [c.id for c in SMALL.concepts], np.eye(6, 3, dtype=np.float32) + 1)


@pytest.fixture(params=["embedded", pytest.param("neo4j", marks=pytest.mark.neo4j)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store with a small graph in it."""
    url = f"sqlite:{tmp_path / 'graph.sqlite'}" if request.param == "embedded" else request.getfixturevalue("bolt_url")
    with closing(open_store(url)) as store:
        small(store)
    return url


def plant(url: str, fault: Fault) -> None:
    """Past the store, as only a bug, a bad disk or somebody's own hand could."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as db:
            db.executescript(fault.sql)
        return
    if not fault.cypher:
        pytest.skip("Neo4j cannot hold this")
    from neo4j import GraphDatabase

    with GraphDatabase.driver(url, notifications_min_severity="OFF") as driver:
        for statement in fault.cypher.split("; "):
            driver.execute_query(statement, database_="neo4j")  # type: ignore[arg-type]


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], GraphStore]]:
    stores: list[GraphStore] = []

    def open_as_is() -> GraphStore:
        stores.append(open_store(url, as_is=True))
        return stores[-1]

    yield open_as_is
    for store in stores:
        store.close()


def kinds(findings: list[Finding]) -> set[str]:
    return {finding.kind for finding in findings}


def test_what_comes_and_goes_within_a_commit_is_no_fault(tmp_path: Path) -> None:
    part = Concept(name="part", domain="d")
    with closing(open_store(f"sqlite:{tmp_path / 'graph.sqlite'}")) as store:
        store.commit(replace(SMALL, splits=(Split(concept=LONE.id, into=part),), remove=(LONE.id,)))
        store.commit(
            Change(
                concepts=(LONE,),
                edges=(Edge(parent=E.id, child=LONE.id),),
                merges=((A.id, LONE.id),),
                remove=(LONE.id,),
            )
        )
        assert {"split", "refused"} <= {decision.outcome for decision in store.decisions()}
        assert examine(store) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_repaired(url: str, opened: Callable[[], GraphStore], name: str) -> None:
    fault = FAULTS[name]
    plant(url, fault)
    store = opened()
    found = examine(store)
    also = {"schema"} if "DROP" in fault.sql else set()
    assert kinds(found) - also == {fault.kind} - also, found
    assert fault.says in " ".join(finding.what for finding in found)
    done, left = repair(store)
    assert left == []
    assert examine(store) == []
    assert {d.subject for d in store.decisions() if d.kind == "repair"} >= {fault.kind}
    assert {d.outcome for d in store.decisions()} == {"repaired"}
    if fault.comes_back:
        for mended in reversed(done):
            store.undo(mended.op)
        assert fault.says in " ".join(finding.what for finding in examine(store))


@pytest.mark.parametrize("seed", range(3))
def test_a_sound_graph_has_no_findings(tmp_path: Path, seed: int) -> None:
    with closing(open_store(f"sqlite:{tmp_path / 'graph.sqlite'}")) as store:
        fill(store, 300, seed=seed)
        before = image(store)
        assert examine(store) == []
        done, left = repair(store, before=lambda: pytest.fail("there is nothing to repair"))
        assert (done, left) == ([], [])
        assert image(store) == before


@pytest.mark.neo4j
def test_a_sound_graph_in_neo4j_has_no_findings(bolt_url: str) -> None:  # noqa: F811
    with closing(open_store(bolt_url)) as store:
        fill(store, 100)
        assert examine(store) == []


def test_a_repaired_duplicate_has_the_edges_and_names_of_both(url: str, opened: Callable[[], GraphStore]) -> None:
    plant(url, FAULTS["a duplicate id"])
    store = opened()
    done, _ = repair(store)
    whole = store.concept(B.id)
    assert whole is not None
    assert (whole.name, whole.definition) == ("b", "It is twice.")
    assert [(e.parent, e.child) for e in store.edges_of(B.id)] == [(A.id, B.id), (B.id, C.id)]
    assert store.levels() == {A.id: 0, B.id: 1, C.id: 2, D.id: 3, E.id: 1, LONE.id: 0}
    assert [c.id for c in store.find("b")] == [B.id]
    with pytest.raises(UndoError, match=f"concept {B.id} would be there twice"):
        store.undo(done[0].op)


def test_a_finished_merge_is_what_a_merge_would_have_been(url: str, opened: Callable[[], GraphStore]) -> None:
    plant(url, FAULTS["a merge whose concept is still there"])
    store = opened()
    repair(store)
    kept = store.concept(E.id)
    assert kept is not None
    assert (kept.id, kept.aliases) == (LONE.id, ("the lone itself", "e", "the e itself"))
    assert [(e.parent, e.child) for e in store.edges_of(LONE.id)] == [(A.id, LONE.id)]
    assert store.levels()[LONE.id] == 1
    assert len(store.embeddings()[1]) == 5
    store.commit(Change(edges=(Edge(parent=E.id, child=D.id),)))
    assert (LONE.id, D.id) in [(e.parent, e.child) for e in store.edges()]


def test_a_cycle_is_opened_at_its_weakest_edge(url: str, opened: Callable[[], GraphStore]) -> None:
    """The one with the fewest quotes, of these the newest: the planted one."""
    plant(url, FAULTS["a cycle"])
    store = opened()
    repair(store)
    assert [(e.parent, e.child) for e in store.edges()] == [(e.parent, e.child) for e in SMALL.edges]
    assert store.levels() == {A.id: 0, B.id: 1, C.id: 2, D.id: 3, E.id: 1, LONE.id: 0}


def test_many_faults_at_once(tmp_path: Path) -> None:
    """All that can be planted together, in a graph of some size: everything is repaired, one operation per kind."""
    path = tmp_path / "graph.sqlite"
    with closing(open_store(f"sqlite:{path}")) as store:
        fill(store, 300)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "UPDATE concept SET level = level + 1 WHERE n % 3 = 0;"
            "INSERT OR IGNORE INTO edge SELECT n + 10000, child, parent, 1, '[]' FROM edge WHERE n % 20 = 0;"
            "INSERT OR IGNORE INTO edge SELECT n + 20000, parent, 99999, 1, '[]' FROM edge WHERE n % 30 = 0;"
            "DELETE FROM name WHERE concept % 5 = 0; UPDATE embedding SET vector = x'00' WHERE concept % 7 = 0;"
            "UPDATE state SET n = 5, concepts = 1; DROP INDEX edge_up; DELETE FROM operation WHERE n = 2;"
        )
    with closing(open_store(f"sqlite:{path}")) as store:
        found = kinds(examine(store))
        assert found >= {
            "cycle",
            "wrong-level",
            "dangling-edge",
            "names-index",
            "embedding",
            "counter",
            "schema",
            "log",
        }
        done, left = repair(store)
        assert left == []
        assert len(done) == len({mended.kind for mended in done}) == len(found)
        new = Concept(name="new", domain="d")
        store.commit(Change(concepts=(new,), edges=(Edge(parent=store.concepts()[0].id, child=new.id),)))
        assert examine(store) == []


def test_what_cannot_be_repaired_is_left_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A concept whose name is that of another one: which of them is right, nobody can tell."""
    path = tmp_path / "graph.sqlite"
    with closing(open_store(f"sqlite:{path}")) as store:
        small(store)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            f"UPDATE concept SET name = 'b' WHERE id = '{LONE.id}'; UPDATE name SET key = 'b' WHERE key = 'lone'"
        )
    assert main(["doctor", str(path), "--repair"]) == 3
    said = capsys.readouterr().out
    assert "which is another concept; merge the two" in said
    assert "left: 1 finding" in said


def test_writers_must_stop_for_a_repair(tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    with closing(open_store(f"sqlite:{path}")) as store, closing(open_store(f"sqlite:{path}")) as writer:
        small(store)
        plant(f"sqlite:{path}", FAULTS["a wrong level"])

        def meanwhile() -> None:
            writer.commit(Change(concepts=(Concept(name="late", domain="d"),)))

        with pytest.raises(StoreError, match="the graph was changed meanwhile"):
            repair(store, before=meanwhile)
        assert store.levels()[C.id] == 7


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Says what it found, changes nothing unasked, keeps a copy before it does, and exits with 0 when all is well."""
    path = tmp_path / "graph.sqlite"
    with closing(open_store(f"sqlite:{path}")) as store:
        small(store)
    assert main(["doctor", str(path)]) == 0
    assert capsys.readouterr().out == f"doctor: sqlite:{path} is sound\n"
    plant(f"sqlite:{path}", FAULTS["a cycle"])
    with closing(open_store(f"sqlite:{path}")) as store:
        before = image(store)
    assert main(["doctor", str(path)]) == 3
    said = capsys.readouterr().out
    assert "'b' -> 'c' -> 'd' -> 'b' is a cycle" in said
    assert "add --repair" in said
    assert main(["doctor", str(path), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["findings"][0]["rows"] == [["edge", 900]]
    assert main(["doctor", str(path), "--repair", "--json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (report["left"], report["repaired"][0]["kind"], report["repaired"][0]["op"]) == ([], "cycle", 3)
    with closing(open_store(f"sqlite:{report['backup']}")) as kept:
        assert image(kept) == before
    assert main(["undo", str(path)]) == 0
    capsys.readouterr()
    assert main(["doctor", str(path)]) == 3


def test_an_unfinished_copy_is_named(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:{tmp_path / 'graph.sqlite'}")) as store:
        store.load({}, {**store.state(), "copying": "of sqlite:other"})
        found = examine(store)
    assert [(f.kind, f.repair) for f in found] == [("unfinished-copy", "")]
    assert "unfinished copy (of sqlite:other); run the same `kgsynth push` again" in found[0].what


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    with closing(open_store(f"sqlite:{path}")) as store:
        fill(store, 600)
    damage(path, "frontier_state", at=8, length=100)
    with closing(open_store(f"sqlite:{path}")) as store:
        found = examine(store)
    assert kinds(found) == {"damaged-file"}
    assert all("restore a backup" in finding.what and not finding.repair for finding in found)
