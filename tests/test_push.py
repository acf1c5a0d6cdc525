"""Copies between stores: whole, in both directions, whatever interrupts them; and backups."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgsynth import push as pushing
from kgsynth.backup import backup, restore
from kgsynth.cli import main
from kgsynth.concept import Concept, Decision, Edge, Source
from kgsynth.errors import StoreError
from kgsynth.push import push
from kgsynth.store import KINDS, Change, FrontierItem, GraphStore, Row, Split, TaskRecord, open_store
from tests.bolt import bolt_url  # noqa: F401

SOURCE = "made by hand"


def damage(path: Path, index: str, *, at: int, length: int) -> None:
    """Overwrite a piece of the page in which an index of a closed file begins."""
    with closing(sqlite3.connect(path)) as db:
        page = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (index,)).fetchone()[0]
        size = db.execute("PRAGMA page_size").fetchone()[0]
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek((page - 1) * size + at)
        file.write(b"\xff" * length)


def fill(store: GraphStore, concepts: int, *, seed: int = 0, width: int = 16) -> None:
    """A graph with everything in it: quotes, merges, splits, refusals, undone operations, leases, vectors, tasks."""
    draw = random.Random(seed)
    made = [
        Concept(
            name=f"concept {seed}.{i} “ä🌳”", domain=f"domain {i % 7}", definition="It is\none." if i % 3 else "",
            aliases=(f"alias {seed}.{i}" + " long" * (1000 if i == 3 else 0),) if i % 2 else (), keywords=("k", str(i)), sense="x" if i % 11 == 0 else "",
            atomic=(None, True, False)[i % 3], atomic_reason="why" if i % 3 else "",
        )
        for i in range(concepts)
    ]  # fmt: skip
    pages = [
        Source(url=f"https://example.org/{seed}/{i}", title=f"Page {i}", text=f"Line {i} of “text” 🌳. " * 20, licence="CC0-1.0")
        for i in range(1 + concepts // 50)
    ]  # fmt: skip
    for low in range(0, concepts, 200):
        some = range(low, min(low + 200, concepts))
        edges = [
            Edge(parent=made[p].id, child=made[i].id, spans=(pages[i // 50].span(p % 9, 12),))
            for i in some for p in {draw.randrange(i) for _ in range(3) if i}
        ]  # fmt: skip
        waiting = tuple(FrontierItem(concept=made[i].id, depth=1) for i in some if i % 4 == 0)
        store.commit(
            Change(
                sources=tuple(pages[low // 50 : some.stop // 50 + 1]), concepts=tuple(made[i] for i in some),
                edges=tuple(edges), enqueue=waiting, note=f"from {low}",
                decisions=(Decision(kind="dedup", subject=f"n {low}", outcome="new", reason="r", evidence=(("x", (1, 0.1)),)),),
            )
        )  # fmt: skip
    leased = store.lease(5, SOURCE, 60)
    store.commit(Change(done=(leased[0].concept,), leases=tuple(leased)))
    keep, fold = made[-1], made[-2]
    store.commit(Change(merges=((keep.id, fold.id), (made[-3].id, made[-4].id))))
    split = Concept(name=f"part {seed}", domain="d")
    store.commit(Change(splits=(Split(concept=made[1].id, into=split, parents=(made[0].id,)),)))
    store.commit(Change(remove=(made[5].id,)))
    store.undo(store.version())
    store.commit(Change(edges=(Edge(parent=made[-1].id, child=made[0].id),)))  # refused, most likely
    there = [concept.id for concept in store.concepts()]
    vectors = np.random.default_rng(seed).normal(size=(len(there), width)).astype(np.float32)
    store.put_embeddings("some-model", there, vectors)
    store.put_tasks(
        TaskRecord(
            id=f"t_{seed}_{i}", type="cloze", domain="d", granularity="broad", prompt=f"What is “{i}”?",
            concepts=tuple(there[i : i + 2]), pass_rate=None if i % 2 else i / 7, attempts=i, policy="rl" if i % 2 else "",
        )
        for i in range(min(40, len(there)))
    )  # fmt: skip


def image(store: GraphStore) -> dict[str, Any]:
    """All that a store holds. The numbers of formats differ between the kinds of store."""
    rows: dict[str, Any] = {kind: list(pushing.stream(store, kind)) for kind in KINDS}
    return rows | {"state": {k: v for k, v in store.state().items() if k != "format"}}


def assert_same(one: GraphStore, other: GraphStore) -> None:
    first, second = image(one), image(other)
    for part in first:
        assert first[part] == second[part], part


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[GraphStore]:
    with closing(open_store(f"sqlite:{tmp_path / 'graph.sqlite'}")) as store:
        fill(store, 400)
        yield store


@pytest.fixture(params=["embedded", pytest.param("neo4j", marks=pytest.mark.neo4j)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    return f"sqlite:{tmp_path / 'copy.sqlite'}" if request.param == "embedded" else request.getfixturevalue("bolt_url")


# copies


def test_a_copy_is_the_same_graph(graph: GraphStore, target: str) -> None:
    with closing(open_store(target)) as copy:
        done = push(graph, copy)
        assert_same(graph, copy)
        assert done.rows == {kind: len(rows) for kind, rows in image(graph).items() if kind != "state"}
        assert done.written == sum(done.rows.values())
        assert copy.levels() == graph.levels()
        assert copy.concepts() == graph.concepts()
        assert copy.edges() == graph.edges()


def test_a_copy_lives_on(graph: GraphStore, target: str) -> None:
    """Numbers, tokens and the log go on where they were; what was before the copy can be undone after it."""
    with closing(open_store(target)) as copy:
        push(graph, copy)
        next_op = graph.version() + 1
        for store in (graph, copy):
            assert store.commit(Change(concepts=(Concept(name="new", domain="d"),))).op == next_op
            assert store.lease(3, "other", 60)[0].token == 6
            store.undo(next_op)
            store.undo(_merge(store))
        assert copy.concepts() == graph.concepts()
        assert copy.edges() == graph.edges()
        assert copy.levels() == graph.levels()


def _merge(store: GraphStore) -> int:
    """The operation that folded two concepts into others."""
    folds = {row["fold"] for row in store.export("merged")}
    return next(o.op for o in store.operations() if len(folds & {*o.concepts}) == 2 and o.op > 2)


@pytest.mark.slow
@pytest.mark.neo4j
def test_there_and_back_again(tmp_path: Path, bolt_url: str) -> None:  # noqa: F811
    """2,000 concepts with everything into Neo4j and back into a second file, killed twice on each way."""
    start, end = tmp_path / "start.sqlite", tmp_path / "end.sqlite"
    with closing(open_store(f"sqlite:{start}")) as store:
        fill(store, 2000, width=64)
    _push_with_kills(f"sqlite:{start}", bolt_url)
    _push_with_kills(bolt_url, f"sqlite:{end}")
    with closing(open_store(f"sqlite:{start}")) as first, closing(open_store(f"sqlite:{end}")) as second:
        assert_same(first, second)


def test_killed_at_any_moment_it_goes_on(tmp_path: Path) -> None:
    start, end = tmp_path / "start.sqlite", tmp_path / "end.sqlite"
    with closing(open_store(f"sqlite:{start}")) as store:
        fill(store, 1500, width=64)
    _push_with_kills(f"sqlite:{start}", f"sqlite:{end}")
    with closing(open_store(f"sqlite:{start}")) as first, closing(open_store(f"sqlite:{end}")) as second:
        assert_same(first, second)


def _push_with_kills(src: str, dst: str, kills: int = 2) -> None:
    """A real process, killed after some of its batches were written; the copy is refused until it is whole."""
    draw = random.Random(src)
    for _ in range(kills):
        _killed_push(src, dst, after=draw.randrange(2, 12))
        with pytest.raises(StoreError, match=r"is an unfinished copy .*run the same `kgsynth push` again"):
            open_store(dst)
        with closing(open_store(dst, as_is=True)) as half, pytest.raises(StoreError, match="unfinished copy"):
            half.commit(Change(concepts=(Concept(name="new", domain="d"),)))
    code = "import sys; from kgsynth.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, "push", src, dst], capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["concepts"] > 1000
    assert 0 < figures["written"] < sum(figures[f"{kind}s"] for kind in KINDS if kind not in ("merged", "frontier"))


SLOW = """
import sys
from kgsynth import push
from kgsynth.cli import main

push.BATCH = 200
batches, count = push.batches, 0

def told(items, size=200):
    global count
    for found in batches(items, size):
        yield found
        count += 1
        print(count, flush=True)

push.batches = told
sys.exit(main(["push", *sys.argv[1:]]))
"""


def _killed_push(src: str, dst: str, after: int) -> None:
    """Says on stdout which batches it has written; killed while it writes the one after."""
    with subprocess.Popen([sys.executable, "-c", SLOW, src, dst], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.strip() == str(after):
                time.sleep(random.uniform(0, 0.01))
                child.send_signal(signal.SIGKILL)
                break
        child.stdout.read()
    assert child.returncode == -signal.SIGKILL


def test_an_older_copy_is_brought_up_to_date(graph: GraphStore, target: str) -> None:
    """Whatever happened since: things added, altered, moved, removed, brought back, leased, tried."""
    with closing(open_store(target)) as copy:
        push(graph, copy)
        first = graph.concepts()
        new = Concept(name="new", domain="d")
        graph.undo(_merge(graph))
        graph.commit(Change(concepts=(new,), edges=(Edge(parent=first[0].id, child=new.id),), remove=(first[7].id,)))
        graph.commit(Change(merges=((first[8].id, first[9].id),), enqueue=(FrontierItem(concept=new.id, depth=2),)))
        graph.lease(4, "other", 60)
        graph.put_tasks(
            [TaskRecord(id="t_0_1", type="cloze", domain="d", granularity="broad", prompt="?", concepts=())]
        )
        graph.put_embeddings("some-model", [first[0].id], np.ones((1, 16), np.float32))
        done = push(graph, copy)
        assert_same(graph, copy)
        assert 0 < done.written < sum(done.rows.values()) / 2
        assert done.removed
        again = push(graph, copy)
        assert (again.written, again.removed) == (0, 0)


def test_a_source_that_changes_meanwhile_is_copied_as_of_one_moment(tmp_path: Path, target: str) -> None:
    """Another process commits during the copy: of it either everything is there or nothing."""
    path = tmp_path / "busy.sqlite"
    with closing(open_store(f"sqlite:{path}")) as src, closing(open_store(f"sqlite:{path}")) as writer:
        fill(src, 300)
        root = src.concepts()[0]
        writes = iter(range(5))

        def meanwhile(kind: str, *_: int) -> None:
            if (i := next(writes, None)) is not None:
                new = Concept(name=f"late {i}", domain="d")
                writer.commit(Change(concepts=(new,), edges=(Edge(parent=root.id, child=new.id),)))

        with closing(open_store(target)) as copy:
            push(src, copy, on_progress=meanwhile)
            late = [c for c in copy.concepts() if c.name.startswith("late")]
            assert copy.version() == src.version() - 5 + len(late)
            assert len([e for e in copy.edges() if e.child in {c.id for c in late}]) == len(late)
            push(src, copy)
            assert_same(src, copy)


@pytest.mark.neo4j
def test_a_server_that_changes_meanwhile_is_read_until_it_holds_still(tmp_path: Path, bolt_url: str) -> None:  # noqa: F811
    with closing(open_store(bolt_url)) as src, closing(open_store(bolt_url)) as writer:
        fill(src, 150)
        writes = iter(range(3))

        def meanwhile(kind: str, *_: int) -> None:
            if (i := next(writes, None)) is not None:
                writer.commit(Change(concepts=(Concept(name=f"late {i}", domain="d"),)))

        with closing(open_store(f"sqlite:{tmp_path / 'copy.sqlite'}")) as copy:
            push(src, copy, on_progress=meanwhile)
            assert_same(src, copy)
            assert len([c for c in copy.concepts() if c.name.startswith("late")]) == 3


@pytest.mark.neo4j
def test_a_source_that_never_holds_still_is_said_to(tmp_path: Path, bolt_url: str) -> None:  # noqa: F811
    with closing(open_store(bolt_url)) as src, closing(open_store(bolt_url)) as writer:
        fill(src, 150)
        count = iter(range(10_000))

        def meanwhile(*_: Any) -> None:
            writer.commit(Change(concepts=(Concept(name=f"late {next(count)}", domain="d"),)))

        with closing(open_store(f"sqlite:{tmp_path / 'copy.sqlite'}")) as copy:
            with pytest.raises(StoreError, match="was changed during each of 5 passes; stop its writers"):
                push(src, copy, on_progress=meanwhile)
            push(src, copy)
            assert_same(src, copy)


# what is refused


def test_another_graph_is_not_overwritten(graph: GraphStore, target: str) -> None:
    with closing(open_store(target)) as other:
        fill(other, 20, seed=1)
        before = image(other)
        with pytest.raises(
            StoreError, match=r"DST holds graph \w{8} at operation \d+, which is not that of SRC .*into an empty"
        ):
            push(graph, other)
        assert image(other) == before


def test_a_newer_state_is_not_overwritten(graph: GraphStore, target: str) -> None:
    with closing(open_store(target)) as copy:
        push(graph, copy)
        copy.commit(Change(concepts=(Concept(name="newer", domain="d"),)))
        with pytest.raises(StoreError, match=r"DST is newer than SRC: .*push the other way round"):
            push(graph, copy)
        push(copy, graph)
        assert_same(graph, copy)


def test_two_copies_that_went_different_ways_are_told_apart(graph: GraphStore, target: str) -> None:
    with closing(open_store(target)) as copy:
        push(graph, copy)
        for name, store in (("here", graph), ("there", copy)):
            store.commit(Change(concepts=(Concept(name=name, domain="d"),)))
        before = image(copy)
        with pytest.raises(StoreError, match="were both changed since one was copied from the other"):
            push(graph, copy)
        graph.commit(Change(concepts=(Concept(name="further", domain="d"),)))
        with pytest.raises(StoreError, match="were both changed since one was copied from the other"):
            push(graph, copy)
        assert image(copy) == before


def test_an_unfinished_copy_is_no_source(graph: GraphStore, tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:{tmp_path / 'half.sqlite'}")) as half:
        half.load({}, {**graph.state(), "copying": "of something"})
        with closing(open_store(f"sqlite:{tmp_path / 'copy.sqlite'}")) as copy:
            with pytest.raises(StoreError, match="SRC is itself an unfinished copy"):
                push(half, copy)


# backups


def test_a_backup_is_the_graph_and_can_be_restored(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "backup.sqlite"
    with closing(open_store(target)) as store:
        fill(store, 100)
        before = image(store)
        assert backup(target, file)["op"] == store.version()
        store.commit(Change(remove=tuple(c.id for c in store.concepts()[:50])))
        after = image(store)
    assert not file.with_name("backup.sqlite.part").exists()
    with pytest.raises(StoreError, match="exists already; name a new file"):
        backup(target, file)
    with pytest.raises(StoreError, match=r"holds a graph already .* say --replace"):
        restore(file, target)
    _, kept = restore(file, target, replace=True)
    assert kept is not None
    for url, wanted in ((target, before), (f"sqlite:{kept}", after)):
        with closing(open_store(url)) as store:
            assert image(store) == wanted


def test_a_restore_may_put_one_graph_in_place_of_another(
    graph: GraphStore, tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the other one is left but its backup."""
    monkeypatch.chdir(tmp_path)
    with closing(open_store(target)) as store:
        fill(store, 30, seed=1)
        other = image(store)
    backup(f"sqlite:{tmp_path / 'graph.sqlite'}", tmp_path / "backup.sqlite")
    _, kept = restore(tmp_path / "backup.sqlite", target, replace=True)
    with closing(open_store(target)) as store, closing(open_store(f"sqlite:{kept}")) as before:
        assert_same(graph, store)
        assert image(before) == other
        assert store.schema_faults() == []
        assert sorted(store.spellings()) == sorted(graph.spellings())


def test_a_backup_is_taken_while_others_write(tmp_path: Path) -> None:
    path, file = tmp_path / "busy.sqlite", tmp_path / "backup.sqlite"
    code = (
        "import sys; from kgsynth.concept import Concept; from kgsynth.store import Change, open_store\n"
        "store = open_store(sys.argv[1])\n"
        "for i in range(100_000): store.commit(Change(concepts=(Concept(name=f'c {i}', domain='d'),))); i or print(flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", code, f"sqlite:{path}"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        for i in range(3):
            state = backup(f"sqlite:{path}", file.with_name(f"{i}.sqlite"))
            with closing(open_store(f"sqlite:{tmp_path / f'{i}.sqlite'}")) as store:
                assert len(store.concepts()) == state["concepts"] == len(store.operations())
        child.kill()


def test_a_damaged_store_is_not_backed_up_as_if_it_were_whole(tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    with closing(open_store(f"sqlite:{path}")) as store:
        fill(store, 600)
    damage(path, "edge_up", at=16, length=400)
    with pytest.raises(StoreError, match=r"does not hold together|malformed"):
        backup(f"sqlite:{path}", tmp_path / "backup.sqlite")
    assert not (tmp_path / "backup.sqlite").exists()


def test_a_restore_goes_on_where_it_was_killed(tmp_path: Path, graph: GraphStore) -> None:
    file, target = tmp_path / "backup.sqlite", f"sqlite:{tmp_path / 'restored.sqlite'}"
    backup(f"sqlite:{tmp_path / 'graph.sqlite'}", file)
    with closing(open_store(target)) as store:
        rows: list[Row] = graph.export("concept", limit=50)
        store.load({"concept": rows}, {**graph.state(), "copying": "of a backup"})
    restore(file, target)
    with closing(open_store(target)) as store:
        assert_same(graph, store)


def test_a_graph_is_not_pushed_onto_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(open_store(f"sqlite:{tmp_path / 'graph.sqlite'}")) as store:
        fill(store, 20)
    assert main(["push", str(tmp_path), f"sqlite:{tmp_path}/../{tmp_path.name}/graph.sqlite"]) == 1
    assert "are the same graph" in capsys.readouterr().err
