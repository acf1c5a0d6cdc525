"""The scale benchmark, tiny: it runs as people run it, its graphs are what they say, and its own checks find what is wrong."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import networkx as nx
import pytest

from kgsynth.store import Change
from kgsynth.store.embedded import EmbeddedStore

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
OURS = {"guard alone", "edge", "edge, a commit each", "concept with its edges", "merge", "unlink", "undo of an edge", "undo of a merge"}  # fmt: skip
RIVALS = {"our guard on dicts: edge", "networkx, has_path: edge", "networkx, has_path: merge", "networkx, is_directed_acyclic_graph: edge", "whole-graph check: edge"}  # fmt: skip


@pytest.fixture
def grown(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("grown")


@pytest.fixture
def planted(grown: ModuleType, tmp_path: Path) -> EmbeddedStore:
    store = EmbeddedStore(tmp_path / "planted.sqlite")
    grown.plant(store, 400)
    return store


def test_it_runs_checks_itself_and_draws(tmp_path: Path) -> None:
    command = [
        sys.executable, str(BENCHMARKS / "graph_scale.py"), "--quick", "--sizes", "200", "600", "--seconds", "0.2",
        "--workdir", str(tmp_path), "--plot", str(tmp_path / "scale.png"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["times"].keys() == OURS | RIVALS
    for by_size in result["times"].values():
        assert by_size.keys() == {"200", "600"}
        assert all(times["wall"] >= 0 and times["samples"] >= 2 for times in by_size.values())
    assert [check["faults"] for check in result["checks"].values()] == [[], []]
    assert all(check["cycles"] == 0 and check["levels_checked"] for check in result["checks"].values())
    assert [found["concepts"] for found in result["open"].values()] == [200, 600]
    assert result["nearest"][0]["recall"] == 1.0
    assert "networkx, has_path" in done.stderr
    assert (tmp_path / "scale.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name.split("-")[1] for path in tmp_path.glob("grown-*.sqlite")) == ["200", "600"]


def test_the_planted_graph_is_a_dag_of_three_edges_each_the_same_every_time(
    grown: ModuleType, planted: EmbeddedStore, tmp_path: Path
) -> None:
    skeleton = planted.skeleton()
    assert len(skeleton.ids) == 400
    assert 2.8 < len(skeleton.parents) / 400 <= 3
    assert (skeleton.parents < skeleton.children).all()
    assert 3 <= skeleton.levels.max() <= 30
    with EmbeddedStore(tmp_path / "again.sqlite") as store:
        grown.plant(store, 400)
        assert store.edges() == planted.edges()
        assert store.concepts() == planted.concepts()


def test_which_proposed_edges_close_a_cycle_is_known(grown: ModuleType, planted: EmbeddedStore) -> None:
    proposed = grown.Edits(planted.skeleton()).edges(300)
    graph = nx.DiGraph((edge.parent, edge.child) for edge in planted.edges())
    refused = 0
    for edge in proposed.edges:
        assert not graph.has_edge(edge.parent, edge.child)
        if nx.has_path(graph, edge.child, edge.parent):
            refused += 1
        else:
            graph.add_edge(edge.parent, edge.child)
    assert refused == proposed.cyclic
    assert 15 <= refused <= 50


def test_twins_are_merged_back_into_the_graph_as_it_was(grown: ModuleType, planted: EmbeddedStore) -> None:
    edits, before = grown.Edits(planted.skeleton()), len(planted.concepts())
    twins, pairs = edits.duplicates(20)
    assert len(planted.commit(twins).added) == 20
    assert planted.commit(Change(merges=pairs)).merged == tuple(fold for _, fold in pairs)
    assert len(planted.concepts()) == before


def test_a_graph_that_is_not_as_it_should_be_is_a_fault(
    grown: ModuleType, planted: EmbeddedStore, tmp_path: Path
) -> None:
    graph_scale = importlib.import_module("graph_scale")
    measured = graph_scale.Measured(graph_scale.Samples(), True, planted)
    measured.round()
    lost = measured.store.edges()[7]
    measured.store.commit(Change(unlink=((lost.parent, lost.child),)))
    assert measured.check()["faults"] == ["1 edges that should not be there, or are missing, not 0"]
