"""`kgsynth dedup`: the closest pairs of both stores, stored decisions, merging."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from kgsynth.cli import main
from kgsynth.concept import Concept, Decision, Edge
from kgsynth.dedup import Dedup
from kgsynth.dedup.audit import nearest_rows
from kgsynth.embed import HashingEmbedder
from kgsynth.store import Change, open_store
from tests.bolt import bolt_url  # noqa: F401

TABLE = Concept(
    name="hash table", domain="d", definition="Keeps values under keys whose hash says where they are stored."
)
MAP = Concept(name="dictionary type", domain="d", definition=TABLE.definition)
LEFT = Concept(name="left join", domain="d", definition="Keeps all rows of one of two tables.")
RIGHT = Concept(name="right join", domain="d", definition="Keeps all rows of one of two tables.")
ROOT = Concept(name="data", domain="d")


def planted(url: str) -> str:
    concepts = (
        ROOT,
        TABLE,
        MAP,
        LEFT,
        RIGHT,
        *(Concept(name=name, domain="d") for name in ("apple", "weather", "music")),
    )
    with closing(open_store(url)) as store:
        dedup = Dedup(HashingEmbedder())
        decisions = tuple(dedup.align(c).decision for c in (TABLE, Concept(name="hash-tables", domain="d")))
        dedup.add(*concepts)
        edges = tuple(Edge(parent=ROOT.id, child=c.id) for c in concepts[1:])
        odd = Decision(kind="drop", subject="hash table", outcome="dropped", reason="not of dedup")
        store.commit(Change(concepts=concepts, edges=edges, decisions=(*decisions, odd)))
        store.put_embeddings("hashing", *dedup.vectors())
    return url


@pytest.fixture
def graph(tmp_path: Path) -> str:
    return planted(f"sqlite:{tmp_path / 'graph.sqlite'}")


def said(capsys: pytest.CaptureFixture[str], *args: str) -> dict:
    assert main(["dedup", *args]) == 0
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])


def check_audit(capsys: pytest.CaptureFixture[str], url: str) -> None:
    report = said(capsys, url, "--json", "--top", "4")
    first, *rest = report["pairs"]
    assert len(rest) == 3
    assert (first["verdict"], first["one_name"], first["other_name"]) == (
        "would merge",
        "hash table",
        "dictionary type",
    )
    assert first["scores"]["definition"] == 1.0
    assert first["command"].split()[-3:] == ["--merge", TABLE.id, MAP.id]
    joins = next(pair for pair in rest if pair["one_name"] == "left join")
    assert (joins["verdict"], joins["command"]) == ("excluded: opposite", None)
    assert report["verdicts"]["would merge"] == 1


def test_the_closest_pairs_and_what_the_rules_say(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_audit(capsys, graph)
    assert main(["dedup", graph]) == 0
    text = capsys.readouterr().out
    assert "would merge" in text
    assert "words of the names exclude each other" in text
    assert json.loads(text.strip().splitlines()[-1])["model"] == "hashing"


@pytest.mark.neo4j
def test_the_closest_pairs_in_neo4j(bolt_url: str, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    check_audit(capsys, planted(bolt_url))


def test_what_the_audit_says_would_merge_can_be_merged_and_undone(
    graph: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = said(capsys, graph, "--merge", "Hash Tables", MAP.id)
    assert (done["kept"], done["folded"]) == (TABLE.id, MAP.id)
    with closing(open_store(graph)) as store:
        assert not store.concepts([MAP.id])
        assert store.concepts([TABLE.id])[0].aliases == ("dictionary type",)
    assert all(pair["verdict"] != "would merge" for pair in said(capsys, graph, "--json")["pairs"])
    assert main(["undo", graph]) == 0
    capsys.readouterr()
    check_audit(capsys, graph)


def test_a_name_that_nothing_bears_is_named(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dedup", graph, "--merge", "hash table", "no such thing"]) == 1
    assert "no concept is called 'no such thing'" in capsys.readouterr().err


def test_stored_decisions_about_a_name(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = said(capsys, graph, "--decisions", "Hash-Table", "--json")["decisions"]
    assert [row["subject"] for row in rows] == ["hash table", "hash-tables"]
    assert {row["outcome"] for row in rows} == {"new"}
    assert said(capsys, graph, "--decisions", "nobody")["decisions"] == 0


def test_graphs_with_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without concepts; with two, but without vectors: names and definitions are compared all the same."""
    empty, bare = (f"sqlite:{tmp_path / name}.sqlite" for name in ("empty", "bare"))
    for url, concepts in ((empty, ()), (bare, (TABLE, MAP))):
        with closing(open_store(url)) as store:
            store.commit(Change(concepts=concepts))
    assert said(capsys, empty)["pairs"] == 0
    assert [pair["verdict"] for pair in said(capsys, bare, "--json")["pairs"]] == ["would merge"]


@pytest.mark.parametrize(("n", "k"), [(0, 3), (1, 3), (2, 5), (700, 40)])
def test_all_rows_are_compared_with_all(n: int, k: int) -> None:
    dice = np.random.default_rng(n)
    rows = dice.standard_normal((n, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) if n else 1
    cosines = rows @ rows.T
    naive = sorted((-float(cosines[i, j]), i, j) for i in range(n) for j in range(i + 1, n))[:k]
    found = nearest_rows(rows, k, lambda *_: None)
    assert [c for c, _, _ in found] == pytest.approx([-c for c, _, _ in naive], abs=1e-5)
    assert len({(i, j) for _, i, j in found}) == len(found)
    assert all(i < j for _, i, j in found)
