"""`benchmarks/kill_growers.py`, short: agents in several processes, killed at random, grow what an undisturbed run grows."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from benchmarks import kill_growers
from benchmarks.growers import checks
from benchmarks.growers.killing import POLL, last_words, start
from benchmarks.growers.world import make_world
from kgsynth.errors import StoreError
from kgsynth.store import local
from kgsynth.store.maven import LTS, fetch


def run(capsys: pytest.CaptureFixture[str], store: str, *arguments: str) -> dict:
    code = kill_growers.main(["--store", store, "--concepts", "80", "--processes", "2", "--delay", "0.2", *arguments])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (code, found["wrong"]) == (0, {}), found
    return found[store]


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
