"""A small run of `benchmarks/dedup_quality.py`: precision and recall on EDAM, WordNet and the hand-written pairs."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from benchmarks.dedup_quality import Answer, altered, figures, measure
from benchmarks.dedup_sets import WORDNET, Labelled, edam, labelled
from kgsynth.embed import HashingEmbedder

pytest.importorskip("edam_ontology")


@pytest.fixture(scope="module")
def data() -> Labelled:
    if not WORDNET.is_file():
        pytest.skip("wordnet-base is not installed")
    return labelled(synonyms=150, others=40, distractors=1_000)


@pytest.fixture(scope="module")
def answers(data: Labelled) -> dict[str, list[Answer]]:
    """Without a language model of any kind, so that other senses of a name cannot be told: these are left out."""
    found = measure(HashingEmbedder(), data)
    return {variant: [a for a in rows if a.pair.kind != "other sense"] for variant, rows in found.items()}


def test_the_pairs_are_what_they_say(data: Labelled) -> None:
    kinds = Counter((p.source, p.kind) for p in data.pairs)
    assert len(data.pairs) >= 500
    assert {source for source, _ in kinds} == {"hand", "edam", "wordnet"}
    assert {"parent", "child", "sibling", "other sense", "synonym"} <= {kind for _, kind in kinds}
    graph = {p.known.id for p in data.pairs} | {c.id for c in data.distractors}
    assert len(graph) > 1_500
    new = [p for p in data.pairs if not p.same and p.kind != "other sense"]
    assert all(p.candidate.id not in graph for p in new)
    assert all(p.candidate.id != p.known.id for p in data.pairs if p.source != "hand" and p.kind != "other sense")


@pytest.mark.parametrize(("variant", "recall", "asked"), [("same", 0.95, 0.05), ("altered", 0.90, 0.12)])
def test_precision_and_recall(answers: dict[str, list[Answer]], variant: str, recall: float, asked: float) -> None:
    row = figures(answers[variant])
    assert row["judged"]["precision"] >= 0.97, row
    assert row["judged"]["recall"] >= recall, row
    assert row["alone"]["precision"] >= 0.97, row
    assert row["without_model"] >= 1 - asked, row


def test_without_a_definition_little_is_found_and_little_is_wrong(answers: dict[str, list[Answer]]) -> None:
    row = figures([a for a in answers["without"] if not a.pair.same])
    assert row["alone"]["wrong"] <= 0.05 * row["pairs"]


def test_altered_definitions_add_nothing() -> None:
    for n, entry in enumerate(list(edam().values())[:200]):
        before, after = entry.definition, altered(entry.definition, random.Random(n))
        assert set(after.strip(",;").split()) <= {w for word in before.split() for w in (word, word.rstrip(",;"))}
        assert after == altered(before, random.Random(n))
