"""Texts, sources, provenance, decisions: whatever goes in comes out, to the character."""

from __future__ import annotations

import pytest

from kgsynth.concept import Concept, Decision, Source, name_key
from kgsynth.store import Change, GraphStore, TaskRecord
from tests.conformance.samples import ODD_TEXTS, PAGE, SPANS, A, B, C, concept, edge, graph, item


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_every_text_survives_everywhere(store: GraphStore, text: str) -> None:
    short = text[:8000]
    page = Source(url=f"https://example.org/{text[:80]}", title=text, text=f"<{text}>", licence=text, retrieved_at=text)
    odd = concept(
        f"name {short}", definition=text, aliases=(short, f"{short}!"), keywords=(text,), sense=text, atomic=False,
        atomic_reason=text,
    )  # fmt: skip
    link = edge(A, odd, page.span(1, 1 + len(text)))
    decision = Decision(kind=text, subject=text, outcome=text, reason=text, evidence=((text, text), ("n", (text, 1))))
    change = Change(
        sources=(page,), concepts=(A, odd), edges=(link,), decisions=(decision,), enqueue=(item(odd),), note=text
    )
    store.commit(change)
    store.put_tasks([TaskRecord(id=text[:50], type=text, domain=text, granularity=text, prompt=text, concepts=(odd.id,), policy=text)])  # fmt: skip
    assert store.concepts() == [A, odd]
    assert store.concept(odd.id) == odd
    assert store.edges() == [link]
    assert store.sources() == [page]
    assert store.decisions() == [decision]
    assert store.operations()[0].note == text
    assert (store.tasks()[0].prompt, store.tasks(odd.id)[0].policy) == (text, text)
    assert all(store.find(key) == [odd] for key in odd.keys)
    (held,) = store.lease(1, text, 60)
    assert held.concept == odd.id
    assert store.release(text) == 1
    before = graph(store)
    store.undo(store.commit(Change(remove=(odd.id,))).op)
    assert graph(store) == before


def test_long_texts_and_many_of_them(store: GraphStore) -> None:
    """A book as a source, a definition of a megabyte, a thousand aliases."""
    page = Source(url="https://example.org/book", title="Book", text="word " * 400_000)
    big = concept("big", definition="ä" * 500_000, aliases=tuple(f"alias {i}" for i in range(1000)))
    store.commit(Change(sources=(page,), concepts=(A, big), edges=(edge(A, big, page.span(1_000_000, 1_900_000)),)))
    assert store.concepts() == [A, big]
    assert store.sources() == [page]
    assert store.edges()[0].spans[0].text == page.text[1_000_000:1_900_000]
    assert store.find("alias 999") == [big]


def test_an_emptyish_name_is_a_name(store: GraphStore) -> None:
    """Names of which the key has nothing left have ids of their own by sense, and are found by no key."""
    odd = [Concept(name="...", domain=""), Concept(name="", domain="", sense="x")]
    assert [name_key(c.name) for c in odd] == ["", ""]
    store.commit(Change(concepts=tuple(odd)))
    assert store.concepts() == odd
    assert store.find("") == []


def test_spellings_that_count_as_one(store: GraphStore) -> None:
    store.commit(Change(concepts=(concept("Binary Search-Trees", aliases=("BSTs", "Árbol binario")),)))
    for name in (
        "the binary search tree",
        "BINARY  SEARCH TREES",
        "binary–search tree",
        "bsts",
        "bst",
        "arbol binario",
    ):
        assert len(store.find(name_key(name))) == 1, name
    assert store.commit(Change(concepts=(concept("binary search tree"),))).added == ()


def test_two_senses_of_one_name_are_found_in_order(store: GraphStore) -> None:
    senses = (concept("set", sense="type"), concept("set", sense="command"))
    store.commit(Change(concepts=senses))
    assert store.find("set") == list(senses)


def test_a_spelling_leads_to_all_that_have_it(store: GraphStore) -> None:
    store.commit(Change(concepts=(concept("one", aliases=("x", "X")), concept("two", aliases=("xs", "x")), A)))
    assert [c.name for c in store.find("x")] == ["one", "two"]


def test_a_page_is_stored_once_as_it_was_first_seen(store: GraphStore) -> None:
    again = Source(url=PAGE.url, title="Another title", text=PAGE.text, retrieved_at="2026-01-01")
    newer = Source(url=PAGE.url, title=PAGE.title, text=PAGE.text + "!")
    store.commit(Change(sources=(PAGE, PAGE, again)))
    store.commit(Change(sources=(again, newer)))
    assert store.sources() == [PAGE, newer]
    assert store.sources([newer.id, PAGE.id, "s_none"]) == [PAGE, newer]


def test_any_concept_can_be_traced_to_its_page(store: GraphStore) -> None:
    """Also where the page comes after the edge, or with another change."""
    store.commit(Change(concepts=(A, B, C), edges=(edge(A, B, SPANS[3]), edge(B, C, SPANS[4], SPANS[7]))))
    store.commit(Change(sources=(PAGE,)))
    for found in store.edges():
        for span in found.spans:
            (page,) = store.sources([span.source])
            assert page.text[span.start : span.end] == span.text
            assert page.licence == "CC0-1.0"


def test_decisions_are_kept_once_and_in_order(store: GraphStore) -> None:
    decided = [
        Decision(kind="dedup", subject=f"s{i}", outcome="new", reason="r", evidence=(("i", i),)) for i in range(5)
    ]
    store.commit(Change(decisions=tuple(decided[2:])))
    store.commit(Change(decisions=tuple(decided)))
    assert store.decisions() == [*decided[2:], *decided[:2]]


def test_evidence_keeps_its_types(store: GraphStore) -> None:
    evidence = (
        ("none", None),
        ("yes", True),
        ("int", 2**53 + 1),
        ("float", 0.1),
        ("deep", (("a", (1, ())), "b")),
        ("", ""),
    )
    decision = Decision(kind="k", subject="s", outcome="o", reason="r", evidence=evidence)
    store.commit(Change(decisions=(decision,)))
    assert store.decisions() == [decision]
    assert [type(value) for _, value in store.decisions()[0].evidence] == [type(value) for _, value in evidence]
