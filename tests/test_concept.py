"""Identity, spelling and spans: what everything else relies on."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgsynth.concept
from kgsynth.concept import Concept, Decision, Edge, Source, content_id, merge_unique, name_key


def test_docstrings_hold() -> None:
    assert doctest.testmod(kgsynth.concept).failed == 0


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Binary-Search  Trees", "binary search tree"),
        ("  Hash–Table.", "hash table"),
        ("naïve Bayes", "Naive Bayes"),
        ("queries", "query"),
        ("hashes", "hash"),
        ("`append`", "append"),
        ("input/output", "input output"),
        ("ＡＢＣ", "abc"),
    ],
)
def test_spellings_of_one_name_share_a_key(a: str, b: str) -> None:
    assert name_key(a) == name_key(b)
    assert Concept(name=a, domain="x").id == Concept(name=b, domain="y").id


@pytest.mark.parametrize(
    "pair", [("str.join", "str join"), ("C", "C++"), ("class", "clas"), ("os", "o"), ("a_b", "a b")]
)
def test_different_names_do_not(pair: tuple[str, str]) -> None:
    assert name_key(pair[0]) != name_key(pair[1])


@given(st.text(max_size=40))
def test_a_key_is_its_own_key_or_a_further_singular(name: str) -> None:
    once = name_key(name)
    assert name_key(once) in (once, name_key(name_key(once)))
    assert once == once.strip()
    assert name_key(f"  {name}  ") == once


@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_content_ids_do_not_run_parts_together(a: list[str], b: list[str]) -> None:
    assert (content_id("x", *a) == content_id("x", *b)) == (a == b)
    assert content_id("x", *a) != content_id("y", *a)


def test_identity_is_name_and_sense_only() -> None:
    plain = Concept(name="set", domain="a")
    assert plain.id == Concept(name="Sets", domain="b", definition="d", aliases=("x",), atomic=True).id
    assert plain.id != Concept(name="set", domain="a", sense="command").id
    assert Concept(name="set", domain="a", aliases=("Sets", "collection", "", "...")).keys == ("set", "collection")


def test_spans_quote_their_source() -> None:
    source = Source(url="u", title="t", text="grün 🌳 tree")
    span = source.span(5, 6)
    assert (span.text, span.source, span.url) == ("🌳", source.id, "u")
    for start, end in ((3, 3), (-1, 2), (0, 99), (4, 2)):
        with pytest.raises(ValueError, match=r"span \[.*outside u"):
            source.span(start, end)


def test_retrieval_time_is_no_part_of_a_source_and_its_text_is() -> None:
    source = Source(url="u", title="t", text="text", retrieved_at="2026-01-01")
    assert source.id == Source(url="u", title="other", text="text", retrieved_at="2027-01-01").id
    assert source.id != Source(url="u", title="t", text="text ").id


def test_edges_have_a_direction_and_decisions_their_evidence() -> None:
    assert Edge(parent="a", child="b").id != Edge(parent="b", child="a").id
    decision = Decision(kind="dedup", subject="x", outcome="new", reason="r", evidence=(("s", 0.5),))
    assert decision.id != Decision(kind="dedup", subject="x", outcome="new", reason="r", evidence=(("s", 0.6),)).id


def test_merge_unique_keeps_the_order() -> None:
    assert merge_unique((3, 1, 3), (2, 1)) == (3, 1, 2)
