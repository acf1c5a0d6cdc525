"""`benchmarks/kill_growers.py`, short: agents in several processes, killed at random, grow what an undisturbed run grows."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import kill_growers
from benchmarks.growers import checks
from benchmarks.growers.killing import POLL, last_words, start
from benchmarks.growers.world import Meaning, make_world
from kgsynth.concept import Concept, Edge
from kgsynth.errors import StoreError
from kgsynth.ledger import Ledger, Spend
from kgsynth.recipe import load_recipe
from kgsynth.stages import grow_graph, open_run
from kgsynth.store import Change, FrontierItem, local
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.store.maven import LTS, fetch


def run(capsys: pytest.CaptureFixture[str], store: str, *arguments: str) -> dict:
    code = kill_growers.main(["--store", store, "--concepts", "80", "--processes", "2", "--delay", "0.2", *arguments])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (code, found["wrong"]) == (0, {}), found
    return found[store]


def test_the_graph_is_looked_at_closely(tmp_path: Path) -> None:
    world = make_world(tmp_path, concepts=5, seed=1, delay=0.0)
    top, one, two = (Concept(name=world.taxonomy[i].label, domain="d") for i in ("m0", "m1", "m2"))
    again = Concept(name=world.taxonomy["m1"].synonyms[0], domain="d")
    calm = Meaning(
        of={"a": "m0", "b": "m1", "c": "m3"}, edges={("m0", "m1"), ("m0", "m2"), ("m0", "m3")}, refused=set()
    )
    with EmbeddedStore(":memory:") as store:
        queued = tuple(FrontierItem(concept=c.id, depth=0) for c in (top, one, two))
        edge = Edge(parent=top.id, child=again.id)
        store.commit(Change(concepts=(top, one, two, again), edges=(edge,), enqueue=queued, done=(two.id,)))
        for keyword in "xy":
            told = replace(top, keywords=(keyword,))
            store.commit(Change(concepts=(told,), done=(top.id,), note=f"research of {top.name}"))
        store.lease(1, "me", 60)
        found = checks.of_the_graph(store, world, calm)
    assert {name: n for name, n in found.items() if n} == {
        "duplicates by meaning": 1, "researched twice": 1, "done without research": 1, "concepts lost": 1,
        "concepts from nowhere": 1, "edges lost": 2, "vectors lost": 4, "leases left": 1,
    }  # fmt: skip


def test_the_ledger_is_looked_at_closely(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for _ in range(3):
        number = ledger.reserve(Spend(calls=1), stage="grow", model="m")
        assert number is not None
        ledger.settle(number, Spend(calls=1, prompt_tokens=5), "ok", key="k", reply="yes")
    ledger.reserve(Spend(calls=1), stage="grow", model="m")
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as db, db:
        db.execute("UPDATE total SET calls = calls + 1 WHERE by = 'stage'")
    found, _ = checks.of_the_ledger(tmp_path / "ledger.sqlite", seen=2, again=1)
    assert {name: n for name, n in found.items() if n} == {
        "sums of the ledger": 2, "reserved at the end": 1, "answers nobody gave": 1, "answered again, not in flight": 1,
        "answers paid twice": 2,
    }  # fmt: skip
    assert checks.of_the_ledger(tmp_path / "ledger.sqlite", seen=9, again=0)[0]["calls not in the ledger"] == 6


@pytest.mark.slow
def test_the_embedded_store(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "sqlite", "--kills", "6")
    assert sum(found["kills"].values()) == 6
    assert found["concepts"] == 80
    assert found["cap"] - 1 <= found["calls_at_cap"] <= found["cap"]
    assert found["calls ok"] > found["cap"], "it went on when the cap was lifted"


@pytest.mark.slow
@pytest.mark.neo4j
def test_neo4j(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        local.find_java(LTS)
        fetch(LTS)
    except StoreError as error:
        pytest.skip(str(error))
    assert run(capsys, "neo4j", "--kills", "4")["concepts"] == 80


@pytest.mark.slow
def test_a_killed_run_goes_on_in_fewer_processes(tmp_path: Path) -> None:
    """The workers that are not started again must not keep their leases."""
    world = make_world(tmp_path, concepts=60, seed=0, delay=0.1)
    with world.served() as asked:
        recipe = world.recipe("run", asked.site, agents=4, processes=2)
        process = start(recipe)
        while asked.seen < 12:
            assert process.poll() is None, last_words(recipe)
            time.sleep(POLL)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with recipe.store() as store:
            assert store.frontier()["leased"]
        assert start(recipe, ["grow.processes=1"]).wait() == 0, last_words(recipe)
        with recipe.store() as store:
            found = checks.of_the_graph(store, world, world.meaning(store))
            assert (found, len(store.concepts())) == (dict.fromkeys(found, 0), 60)


def test_vectors_that_a_kill_left_out_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    world = make_world(tmp_path, concepts=10, seed=0, delay=0.0)
    with world.served() as asked:
        recipe = load_recipe(world.recipe("run", asked.site, agents=4, processes=1).file)
        with open_run(recipe) as run:
            assert grow_graph(run) is not None
            with closing(sqlite3.connect(run.folder / "graph.sqlite")) as db, db:
                db.execute("DELETE FROM embedding")
            assert grow_graph(run) is not None
            assert len(run.graph.store.embeddings()[1]) == len(run.graph) == 10
            assert grow_graph(run) is None
