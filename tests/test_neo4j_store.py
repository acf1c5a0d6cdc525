"""What is particular to the Neo4j store. What it shares with the embedded one is in tests/conformance/."""

from __future__ import annotations

import logging
import multiprocessing
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgsynth.concept import Concept, name_key
from kgsynth.errors import StoreError
from kgsynth.store import Change, Split, TaskRecord, local, open_store, queries
from kgsynth.store.labels import concept_labels
from tests.bolt import bolt_url  # noqa: F401
from tests.conformance.samples import CHAIN, PAGE, SPANS, A, B, C, D, E, check, concept, dump, edge, graph, item, items
from tests.cut import Relay

pytest.importorskip("neo4j")

ROOT = Path(__file__).resolve().parents[1]
SPAWN = multiprocessing.get_context("spawn")
Query = Callable[..., list[list[Any]]]


@pytest.fixture
def cypher(bolt_url: str) -> Iterator[Query]:  # noqa: F811
    """Runs a statement on the server itself."""
    from neo4j import GraphDatabase

    with GraphDatabase.driver(bolt_url, notifications_min_severity="OFF") as driver:

        def run(query: Any, **given: Any) -> list[list[Any]]:
            return [record.values() for record in driver.execute_query(query, given, database_="neo4j").records]

        yield run


@pytest.fixture
def store(bolt_url: str) -> Iterator[Any]:  # noqa: F811
    with open_store(bolt_url) as opened:  # type: ignore[attr-defined]
        yield opened


def names(cypher: Query) -> set[str]:
    return {row[0] for row in cypher("SHOW INDEXES YIELD name")}


# what hangs on the rows


def derived(cypher: Query) -> dict[str, Any]:
    """What the store keeps beside the rows, as it is."""
    return {
        "labels": {i: sorted(found) for i, found in cypher("MATCH (c:Concept) RETURN c.id, labels(c)")},
        "called": sorted(cypher("MATCH (c:Concept)-[:CALLED]->(n:Name) RETURN c.id, n.key")),
        "names": cypher("MATCH (n:Name) WHERE NOT (n)<-[:CALLED]-() RETURN n.key"),
        "found": sorted(cypher("MATCH (c:Concept)-[:FOUND_IN]->(s:Source) RETURN c.id, s.id")),
        "tests": sorted(cypher("MATCH (t:Task)-[:TESTS]->(c:Concept) RETURN t.id, c.id")),
        "sources": sorted(cypher("MATCH (p)-[r:NARROWER]->(c) RETURN p.id, c.id, r.sources")),
    }


def derived_from_rows(store: Any) -> dict[str, Any]:
    """The same, worked out from the rows."""
    rows = dump(store)
    pages = {row["id"] for row in rows["source"]}
    ids = {row["id"] for row in rows["concept"]}
    kept = {row["fold"]: row["keep"] for row in rows["merged"]}
    spellings = [(c.id, key) for c in store.concepts() for key in c.keys]
    quoted = [(e["child"], span["source"]) for e in rows["edge"] for span in e["spans"]]
    tested = [(t["id"], kept.get(i, i)) for t in rows["task"] for i in t["concepts"]]
    return {
        "labels": {
            c["id"]: sorted(["Concept", *concept_labels(level=c["level"], atomic=c["atomic"], domain=c["domain"])])
            for c in rows["concept"]
        },
        "called": sorted(map(list, spellings)),
        "names": [],
        "found": sorted([child, page] for child, page in set(quoted) if page in pages),
        "tests": sorted([task, i] for task, i in set(tested) if i in ids),
        "sources": sorted(
            [e["parent"], e["child"], list(dict.fromkeys(span["source"] for span in e["spans"]))] for e in rows["edge"]
        ),
    }


OTHER = replace(PAGE, url="https://example.org/other")
THIRD = replace(PAGE, url="https://example.org/third")


def some_change(dice: random.Random) -> Change:
    anyone = [concept(f"n{i}") for i in range(10)]
    spans = [page.span(i, i + 5) for page in (PAGE, OTHER, THIRD) for i in range(3)]
    new = [
        replace(dice.choice(anyone), aliases=(f"x{dice.randrange(6)}",), atomic=dice.choice([None, True, False]))
        for _ in range(dice.randrange(4))
    ]
    ends = [dice.sample(anyone, 2) for _ in range(dice.randrange(5))]
    one, two = (c.id for c in dice.sample(anyone, 2))
    into = concept(f"part {dice.randrange(4)}", aliases=(f"x{dice.randrange(6)}",))
    return Change(
        sources=(PAGE, OTHER, THIRD), concepts=tuple(new),
        edges=tuple(edge(p, c, *dice.sample(spans, dice.randrange(3))) for p, c in ends),
        merges=((one, two),) if dice.random() < 0.3 else (),
        splits=(Split(concept=one, into=into, parents=(two,), children=(two,)),) if dice.random() < 0.3 else (),
        unlink=((one, two),) if dice.random() < 0.4 else (),
        remove=(one,) if dice.random() < 0.15 else (),
    )  # fmt: skip


@pytest.mark.neo4j
def test_names_pages_labels_and_tests_follow_every_change(store: Any, cypher: Query, tmp_path: Path) -> None:
    dice = random.Random(5)
    tasks = [
        TaskRecord(id=f"t{i}", type="x", domain="d", granularity="g", prompt="p", concepts=tuple(concept(f"n{j}").id for j in (i, i + 1)))
        for i in range(8)
    ]  # fmt: skip
    store.commit(Change(concepts=tuple(concept(f"n{i}") for i in range(10))))
    store.put_tasks(tasks)
    merges = 0
    for _ in range(25):
        result = store.commit(some_change(dice))
        merges += len(result.merged)
        assert derived(cypher) == derived_from_rows(store)
        if result.op and dice.random() < 0.4:
            store.undo(result.op)
            assert derived(cypher) == derived_from_rows(store)
    assert merges > 1
    before = dump(store)
    rows = {kind: before[kind] for kind in ("source", "concept", "edge", "merged", "task")}
    cypher("MATCH (n) DETACH DELETE n")
    with open_store(store.url) as copy:  # type: ignore[attr-defined]
        copy.load(rows, before["state"])
        assert derived(cypher) == derived_from_rows(copy)
        copy.load(rows, before["state"])
        assert derived(cypher) == derived_from_rows(copy)


@pytest.mark.neo4j
def test_a_rewritten_row_keeps_what_hangs_on_it(store: Any, cypher: Query) -> None:
    store.commit(replace(CHAIN, sources=(PAGE,), edges=(edge(A, B, SPANS[0]), edge(B, C, SPANS[1]))))
    store.put_embeddings("m", [B.id], np.ones((1, 3), np.float32))
    (row,) = [row for row in store.export("concept") if row["id"] == B.id]
    (link,) = [row for row in store.export("edge") if row["child"] == C.id]
    before = graph(store)
    op = store.rewrite([("edge", link["n"])], [("concept", {**row, "aliases": ["bee"], "level": 4})], note="test")
    assert [e.child for e in store.edges()] == [B.id]
    assert store.find("bee")[0].id == B.id
    assert store.embeddings()[1] == [B.id]
    assert derived(cypher) == derived_from_rows(store)
    store.undo(op)
    assert graph(store) == before
    assert derived(cypher) == derived_from_rows(store)


@pytest.mark.neo4j
def test_an_edge_without_ends_is_not_loaded_and_said(store: Any) -> None:
    store.commit(CHAIN)
    row = {"n": 99, "parent": "c_none", "child": B.id, "version": 1, "spans": []}
    with pytest.raises(StoreError, match=r"edge 99 .* c_none .*doctor"):
        store.load({"edge": [row], "source": [{"n": 98, "id": "s", "url": "u"}]}, store.state())
    assert len(store.edges()) == 2
    assert store.sources() == []


# opening


@pytest.mark.neo4j
def test_constraints_and_indexes_are_there_before_the_first_write(store: Any, cypher: Query) -> None:
    wanted = queries.CONSTRAINTS | queries.INDEXES
    assert names(cypher) >= set(wanted)
    assert cypher("SHOW INDEXES YIELD name, state WHERE state <> 'ONLINE' RETURN name") == []
    cypher("DROP INDEX concept_n")
    cypher("DROP CONSTRAINT task_id")
    assert len(store.schema_faults()) == 2
    store.mend_schema()
    assert store.schema_faults() == []
    assert names(cypher) >= set(wanted)


@pytest.mark.neo4j
def test_a_newer_format_and_another_programs_database_are_refused_and_left_alone(
    bolt_url: str, cypher: Query, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    open_store(bolt_url).close()
    cypher("MATCH (g:Guard) SET g.format = 99")
    with pytest.raises(StoreError, match=r"format 99.*another database"):
        open_store(bolt_url)
    cypher("MATCH (g:Guard) DELETE g")
    cypher("CREATE (:Concept {title: 'theirs'})")
    cypher("DROP INDEX concept_n")
    with pytest.raises(StoreError, match=r":Concept nodes.*empty database"):
        open_store(bolt_url)
    assert "concept_n" not in names(cypher)
    assert cypher("MATCH (n) RETURN labels(n), properties(n)") == [[["Concept"], {"title": "theirs"}]]
    monkeypatch.setenv("NEO4J_DATABASE", "elsewhere")
    with pytest.raises(StoreError, match="NEO4J_DATABASE"):
        open_store(bolt_url)


@pytest.mark.neo4j
def test_a_database_emptied_under_an_open_store_is_named(store: Any, cypher: Query) -> None:
    cypher("MATCH (n) DETACH DELETE n")
    for use in (lambda: store.commit(CHAIN), store.version, store.state):
        with pytest.raises(StoreError, match="emptied"):
            use()


def open_and_commit(url: str, name: str) -> None:
    with open_store(url) as store:  # type: ignore[attr-defined]
        store.commit(Change(concepts=(concept(name), A), edges=(edge(A, concept(name)),)))


@pytest.mark.neo4j
def test_several_processes_open_an_empty_database_at_once(bolt_url: str, cypher: Query) -> None:  # noqa: F811
    for name in queries.CONSTRAINTS:
        cypher(f"DROP CONSTRAINT {name} IF EXISTS")
    for name in queries.INDEXES:
        cypher(f"DROP INDEX {name} IF EXISTS")
    workers = [SPAWN.Process(target=open_and_commit, args=(bolt_url, f"n{i}")) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    with open_store(bolt_url) as store:  # type: ignore[attr-defined]
        assert len(store.concepts()) == 4
        check(store)


SCANS = {"retested"}  # statements by key that may look at everything: tasks are looked up by what they list


@pytest.mark.neo4j
@pytest.mark.parametrize("full", [False, True])
def test_what_is_looked_up_by_key_is_never_searched_for(store: Any, bolt_url: str, full: bool) -> None:  # noqa: F811
    """Whatever the planner believes of the graph: plans made for an empty one are kept for a while."""
    from neo4j import GraphDatabase

    if full:
        store.commit(Change(concepts=tuple(concept(f"n{i}") for i in range(300))))
    lists = [queries.READ, queries.WRITE, queries.PICK, queries.TAKEN, queries.INSERT, queries.REPLACE, queries.DROP]
    chosen = {name: query for group in lists for name, query in group.items() if query and name not in SCANS}
    by_id = (
        "CONCEPT",
        "CONCEPTS_BY_ID",
        "EDGES_BETWEEN",
        "EDGES_OF",
        "FIND",
        "LEASE",
        "LEASED",
        "RELEASE",
        "LINK_TASKS",
        "OPERATIONS",
    )
    chosen |= {
        name: getattr(queries, name)
        for name in (*by_id, "RESULT", "REDIRECTS", "DROP_CONCEPTS", "UPGRADE_EDGES", "EXPECTED")
    }
    chosen |= {f"export {kind}": query for kind, query in queries.EXPORT.items()}
    with GraphDatabase.driver(bolt_url, notifications_min_severity="OFF") as driver:
        for name, query in chosen.items():
            given = {
                key: {}
                if key in ("w", "asked")
                else False
                if key == "workers"
                else []
                if re.search(rf"(UNWIND|IN) \${key}\b", query)
                else 1
                for key in re.findall(r"\$(\w+)", query)
            }
            plan = driver.execute_query(f"EXPLAIN {query}", given, database_="neo4j").summary.plan  # type: ignore[arg-type]
            assert not [step for step in steps(plan) if "Scan" in step], name


def steps(plan: Any) -> Iterator[str]:
    yield plan["operatorType"]
    for part in plan.get("children", []):
        yield from steps(part)


# an older format, written by the statements of that time

OLD_CONSTRAINTS = [
    f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR (x:{label}) REQUIRE x.{key} IS UNIQUE"
    for name, label, key in (
        ("concept_id", "Concept", "id"), ("name_key", "Name", "key"), ("source_id", "Source", "id"), ("decision_id", "Decision", "id"),
        ("frontier_concept", "Frontier", "concept"), ("merged_fold", "Merged", "fold"), ("guard_id", "Guard", "id"),
    )
] + [
    "CREATE INDEX concept_version IF NOT EXISTS FOR (c:Concept) ON (c.version)",
    "CREATE INDEX concept_name IF NOT EXISTS FOR (c:Concept) ON (c.name)",
    "CREATE INDEX narrower_version IF NOT EXISTS FOR ()-[r:NARROWER]-() ON (r.version)",
]  # fmt: skip
OLD_CONCEPT = """
UNWIND $rows AS row
MERGE (c:Concept {id: row.id}) ON CREATE SET c.n = row.n
SET c += row.fields
WITH c, row UNWIND row.keys AS key
MERGE (name:Name {key: key}) MERGE (c)-[:CALLED]->(name)"""
OLD_EDGE = """
MATCH (p:Concept {id: $parent}), (c:Concept {id: $child})
CREATE (p)-[:NARROWER {id: $id, n: $n, version: 1, spans: $spans}]->(c)"""


def old_graph(cypher: Query) -> None:
    """a -> b -> c with a page, a redirect, a leased and a finished frontier item."""
    import json
    from dataclasses import asdict

    for name in ("concept_name", "concept_domain"):
        cypher(f"DROP INDEX {name} IF EXISTS")
    for statement in OLD_CONSTRAINTS:
        cypher(statement)
    cypher("CREATE (:Guard {id: 'graph', n: 20, merges: 1, changes: 2, locked_at: 5})")
    cypher("CREATE (s:Source) SET s = $row", row={**asdict(PAGE), "id": PAGE.id, "n": 1})
    rows = []
    for n, c in ((2, A), (3, replace(B, atomic=True)), (4, C)):
        fields = {**asdict(c), "aliases": [], "keywords": [], "version": 1}
        rows.append({"id": c.id, "n": n, "fields": fields, "keys": list(c.keys)})
    cypher(OLD_CONCEPT, rows=rows)
    for n, link in ((5, edge(A, B, SPANS[0], SPANS[1])), (6, edge(B, C)), (7, edge(A, C))):
        spans = json.dumps([asdict(span) for span in link.spans])
        cypher(OLD_EDGE, parent=link.parent, child=link.child, id=link.id, n=n, spans=spans)
    cypher("MATCH (c:Concept {id: $id}), (s:Source) CREATE (c)-[:FOUND_IN]->(s)", id=B.id)
    cypher("CREATE (:Merged {fold: $fold, keep: $keep})", fold=D.id, keep=A.id)
    for seq, c, state in ((8, A, "done"), (9, B, "leased")):
        fields = {
            "concept": c.id,
            "depth": 0,
            "attempts": 1,
            "seq": seq,
            "state": state,
            "owner": "x",
            "lease_until": 9.0,
        }
        cypher("CREATE (f:Frontier) SET f = $row", row=fields)


@pytest.mark.neo4j
@pytest.mark.parametrize("torn", [False, True])
def test_a_graph_of_format_1_is_brought_to_this_one(bolt_url: str, cypher: Query, torn: bool) -> None:  # noqa: F811
    old_graph(cypher)
    if torn:  # an upgrade that was killed in the middle
        cypher("MATCH (c:Concept {id: $id}) SET c.level = 7, c:Level5:Domain_x", id=A.id)
        cypher("MATCH (:Concept {id: $id})-[r:NARROWER]->() SET r.sources = ['s']", id=A.id)
        cypher("DROP INDEX narrower_version")
    with ThreadPoolExecutor(3) as pool:  # several at once
        stores: list[Any] = list(pool.map(open_store, [bolt_url] * 3))
    store = stores[0]
    assert store.concepts() == [A, replace(B, atomic=True), C]
    assert store.edges() == [edge(A, B, SPANS[0], SPANS[1]), edge(B, C), edge(A, C)]
    assert store.levels() == {A.id: 0, B.id: 1, C.id: 2}
    assert store.concept(D.id) == A
    assert store.frontier() == {"waiting": 1, "leased": 0, "done": 1}
    state = store.state()
    assert (
        state["format"],
        state["n"],
        state["op"],
        state["concepts"],
        state.get("copying", ""),
    ) == (2, 21, 3, 3, "")
    assert len(state["graph"]) == 32
    assert [row["n"] for row in store.export("merged")] == [21]
    assert derived(cypher) == derived_from_rows(store)
    assert not {"concept_version", "narrower_version"} & names(cypher)
    assert store.schema_faults() == []
    assert cypher("MATCH (g:Guard) RETURN keys(g)")[0][0].count("changes") == 0
    (leased,) = store.lease(5, "me", 60)
    result = store.commit(
        Change(edges=(edge(C, E), edge(C, A)), concepts=(E,), leases=(leased,), done=(leased.concept,))
    )
    assert (result.op, len(result.linked), len(result.refused)) == (4, 1, 1)
    store.undo(result.op)
    for opened in stores:
        assert opened.version() == 5
        opened.close()


# the connection


def test_an_unreachable_server_is_a_store_error_with_the_fix() -> None:
    with pytest.raises(StoreError, match="check the address"):
        open_store("bolt://127.0.0.1:1")
    with pytest.raises(StoreError, match="write it as"):
        open_store("bolt+x://127.0.0.1:1")
    with pytest.raises(StoreError, match="write it as"):
        open_store("bolt://127.0.0.1:port")
    with pytest.raises(StoreError, match="NEO4J_USERNAME"):
        open_store("bolt://user:secret@127.0.0.1:1")


def test_a_missing_driver_names_the_extra() -> None:
    code = "import sys; sys.modules['neo4j'] = None\nfrom kgsynth.store import open_store; open_store('bolt://127.0.0.1:1')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.stderr.strip().endswith("ConfigError: the Neo4j store needs the driver: pip install 'kgsynth[neo4j]'")


@pytest.mark.neo4j
def test_the_driver_says_nothing_of_unknown_labels(store: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="neo4j"):
        store.tasks()
        store.nearest(np.ones(3, np.float32))
        store.commit(CHAIN)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert not [record for record in caplog.records if "notification" in record.name]


@pytest.mark.neo4j
def test_only_a_few_writers_wait_at_the_lock(store: Any, bolt_url: str, cypher: Query) -> None:  # noqa: F811
    from neo4j import GraphDatabase

    from kgsynth.store.neo4j_driver import WRITERS

    waiting = "SHOW TRANSACTIONS YIELD currentQuery WHERE currentQuery STARTS WITH 'MATCH (g:Guard' RETURN count(*)"
    with GraphDatabase.driver(bolt_url) as driver, driver.session(database="neo4j") as session:
        holder = session.begin_transaction()
        holder.run(queries.LOCK).consume()  # type: ignore[arg-type]
        with ThreadPoolExecutor(12) as pool:
            results = [pool.submit(store.commit, Change(concepts=(concept(f"n{i}"),))) for i in range(12)]
            seen = set()
            for _ in range(10):
                seen.add(cypher(waiting)[0][0])
                time.sleep(0.05)
            assert store.concepts() == [], "readers do not wait"
            holder.rollback()
    assert max(seen) == WRITERS
    assert sorted(result.result().op for result in results) == list(range(1, 13))


@pytest.mark.neo4j
def test_what_was_done_without_our_being_told_is_not_done_twice(bolt_url: str) -> None:  # noqa: F811
    """The answer to a COMMIT is lost with the connection: the change is there, and comes back as the result."""
    with Relay(bolt_url) as relay, open_store(relay.url) as store:  # type: ignore[attr-defined]
        relay.cut = 1
        result = store.commit(replace(CHAIN, edges=(*CHAIN.edges, edge(C, A, SPANS[0])), enqueue=(item(A), item(B))))
        assert relay.swallowed == 1
        assert (result.op, result.added, result.refused) == (1, (A.id, B.id, C.id), (edge(C, A, SPANS[0]),))
        assert store.version() == 1
        relay.cut = 1
        (leased,) = store.lease(1, "me", 60)
        assert (leased.concept, leased.token) == (A.id, 1)
        assert store.frontier() == {"waiting": 1, "leased": 1, "done": 0}
        relay.cut = 1
        store.commit(Change(leases=(leased,), done=(A.id,)))
        relay.cut = 1
        undone = store.undo(1 + 1)
        assert (relay.swallowed, undone.op, store.version()) == (4, 3, 3)
        check(store)


def commit_many(url: str, writer: int, rounds: int, told: list[int]) -> None:
    with open_store(url) as store:  # type: ignore[attr-defined]
        for i in range(rounds):
            new = concept(f"w{writer} {i}")
            result = store.commit(Change(concepts=(A, new), edges=(edge(A, new),)))
            assert store.concept(new.id) == new
            told.append(result.op)


@pytest.mark.neo4j
@pytest.mark.slow
def test_writers_and_readers_wait_while_the_server_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        server = local.start(tmp_path)
    except StoreError as error:
        pytest.skip(str(error))
    monkeypatch.delenv("NEO4J_PASSWORD", raising=False)
    rounds, told = 60, []
    try:
        open_store(server.url).close()
        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(commit_many, server.url, writer, rounds, told) for writer in range(4)]
            for so_far in (20, 100):
                while len(told) < so_far and not any(writer.done() for writer in writers):
                    time.sleep(0.02)
                server.stop(seconds=0)  # killed in the middle of whatever it does
                assert len(told) < 4 * rounds, "the test must stop a server that is written to"
                server = local.start(tmp_path, bolt_port=server.bolt_port, http_port=server.http_port)
            for writer in writers:
                writer.result()
        with open_store(server.url) as store:  # type: ignore[attr-defined]
            assert len(store.concepts()) == 4 * rounds + 1
            assert len(store.edges()) == 4 * rounds
            assert sorted(told) == list(range(1, 4 * rounds + 1)), "each commit is one operation, and was told its own"
            check(store)
    finally:
        server.stop(seconds=0)


# vectors


@pytest.mark.neo4j
def test_nearest_finds_what_was_just_written_and_is_exact(store: Any) -> None:
    dice = np.random.default_rng(0)
    concepts = [concept(f"v{i}") for i in range(400)]
    store.commit(Change(concepts=tuple(concepts)))
    vectors = dice.normal(size=(400, 24)).astype(np.float32)
    ids = [c.id for c in concepts]
    for start in range(0, 400, 100):
        store.put_embeddings("m", ids[start : start + 100], vectors[start : start + 100])
        found = store.nearest(vectors[start + 50], 3)
        assert found[0][0] == ids[start + 50]
        assert found[0][1] == pytest.approx(1, abs=1e-6)
    query = dice.normal(size=24).astype(np.float32)
    unit = vectors.astype(float) / np.linalg.norm(vectors.astype(float), axis=1, keepdims=True)
    cosines = unit @ (query / np.linalg.norm(query.astype(float)))
    best = np.argsort(-cosines)[:10]
    found = store.nearest(query, 10)
    assert [i for i, _ in found] == [ids[i] for i in best]
    assert [cosine for _, cosine in found] == pytest.approx([cosines[i] for i in best], abs=1e-6)
    store.commit(Change(remove=(ids[best[0]],)))
    assert store.nearest(query, 1)[0][0] == ids[best[1]]
    store.undo(store.version())
    assert store.nearest(query, 1)[0][0] == ids[best[0]]


@pytest.mark.neo4j
def test_the_index_follows_the_width_of_the_vectors(store: Any, cypher: Query) -> None:
    width = "SHOW VECTOR INDEXES YIELD options RETURN options.indexConfig['vector.dimensions']"
    store.commit(Change(concepts=(A, B)))
    store.put_embeddings("m", [A.id], np.ones((1, 8), np.float32))
    assert cypher(width) == [[8]]
    store.commit(Change(remove=(A.id,)))
    store.put_embeddings("m", [B.id], np.ones((1, 5), np.float32))  # none of the first width is left
    assert cypher(width) == [[5]]
    assert [i for i, _ in store.nearest(np.ones(5, np.float32))] == [B.id]


def test_a_long_spelling_is_indexed_by_its_hash() -> None:
    from kgsynth.store.neo4j_rows import LONGEST_KEY
    from kgsynth.store.neo4j_rows import name_key as indexed

    long = name_key("x" * 5000)
    assert indexed("heap") == "heap"
    assert len(indexed(long).encode()) < 4 * LONGEST_KEY
    assert indexed(long) != indexed(long + "y")


@pytest.mark.neo4j
def test_threads_share_a_store(store: Any) -> None:
    store.commit(items(*(f"n{i}" for i in range(12))))
    taken: list[str] = []
    lock = threading.Lock()

    def work(worker: int) -> None:
        while leased := store.lease(1, f"w{worker}", 60):
            new = concept(f"of {leased[0].seq}")
            result = store.commit(
                Change(
                    concepts=(new,), edges=(edge(next_to(leased[0].concept), new),), leases=tuple(leased), done=(leased[0].concept,)
                )
            )  # fmt: skip
            assert result.op
            with lock:
                taken.append(leased[0].concept)

    by_id = {c.id: c for c in store.concepts()}

    def next_to(concept_id: str) -> Concept:
        return by_id[concept_id]

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, i) for i in range(4)]:
            done.result()
    assert sorted(taken) == sorted(by_id)
    assert store.frontier() == {"waiting": 0, "leased": 0, "done": 12}
    check(store)
