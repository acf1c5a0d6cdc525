"""The brain without a model: it proposes what pages show, word for word, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from kgsynth.concept import Concept, Source
from kgsynth.llm.offline import OfflineExtractive, clean_name, first_sentence, is_about
from kgsynth.llm.questions import JudgeAtomic, PlanQueries, Propose, SameConcept
from kgsynth.web import Definition, Heading, Page

BRAIN = OfflineExtractive()
HEAPS = Concept(name="heaps", domain="data")


def page(title: str, text: str, headings: list[tuple[int, str]] = [], terms: list[tuple[str, str]] = []) -> Page:  # noqa: B006
    """A page whose headings and definitions are found by their words."""
    source = Source(url=f"test://{title}", title=title, text=text)
    found = [Heading(level=n, text=t, start=text.index(t), end=text.index(t) + len(t)) for n, t in headings]
    defined = [
        Definition(term=t, start=text.index(t), end=text.index(x) + len(x), text=x) for t, x in terms if x in text
    ]
    return Page(source=source, headings=tuple(found), definitions=tuple(defined))


HEAP_PAGE = page(
    "Heaps - a guide",
    "# Heaps\n\nA heap keeps its smallest item first.\n\n"
    "binary heap (items)\n:   Binary heaps store their items in one array. They are fast.\n\n"
    "## Heap sort\n\nHeap sort removes the smallest item again and again. It needs no extra space.\n\n"
    "## See also\n\nOther pages that may help with the matter.\n",
    headings=[(1, "Heaps"), (2, "Heap sort"), (2, "See also")],
    terms=[("binary heap (items)", "Binary heaps store their items in one array. They are fast.")],
)  # fmt: skip


def ask(question):
    return asyncio.run(BRAIN.ask(question))


def test_the_name_says_that_no_model_was_used() -> None:
    assert "no model" in BRAIN.name
    assert not BRAIN.uses_model


def test_proposes_terms_then_sections_with_quotes_from_the_page() -> None:
    items = ask(Propose(concept=HEAPS, pages=(HEAP_PAGE,))).items
    assert [p.name for p in items] == ["binary heap", "Heap sort"]
    assert all(p.quote in HEAP_PAGE.source.text and p.definition in HEAP_PAGE.source.text for p in items)
    assert items[0].definition == "Binary heaps store their items in one array."


def test_a_class_may_be_named_like_a_section_title() -> None:
    """`Exception` is a concept; were it left out, nothing would tie its subclasses to BaseException."""
    terms = [("Exception", "Base class for all non-exit exceptions."), ("Exceptions", "What this page lists.")]
    text = "# BaseException\n\n" + "\n\n".join(f"**{name}**: {told}" for name, told in terms)
    shown = page("BaseException", text, terms=terms)
    items = ask(Propose(concept=Concept(name="BaseException", domain="language"), pages=(shown,))).items
    assert [p.name for p in items] == ["Exception"]


def test_what_a_section_defines_is_found_below_the_section() -> None:
    text = (
        "# Heaps\n\nA heap keeps its smallest item first.\n\n## Kinds of heaps\n\nHeaps differ in how they are linked.\n\n"
        "binary heap\n:   One array holds them.\n\n## Uses\n\nHeaps are used to sort and to schedule.\n"
    )
    shown = page(
        "Heaps", text, headings=[(1, "Heaps"), (2, "Kinds of heaps"), (2, "Uses")],
        terms=[("binary heap", "One array holds them.")],
    )  # fmt: skip
    assert [p.name for p in ask(Propose(concept=HEAPS, pages=(shown,))).items] == ["Kinds of heaps", "Uses"]
    kinds = Concept(name="Kinds of heaps", domain="data")
    below = ask(Propose(concept=kinds, ancestors=(HEAPS,), pages=(shown,))).items
    assert [p.name for p in below] == ["binary heap"]
    assert ask(Propose(concept=kinds, ancestors=(), pages=(shown,))).items == []


def test_a_page_about_something_else_supports_nothing() -> None:
    assert ask(Propose(concept=Concept(name="stacks", domain="data"), pages=(HEAP_PAGE,))).items == []


def test_neither_the_concept_nor_an_ancestor_is_proposed_below_itself() -> None:
    above = Concept(name="binary heaps", domain="data")
    items = ask(Propose(concept=HEAPS, ancestors=(above,), pages=(HEAP_PAGE,))).items
    assert [p.name for p in items] == ["Heap sort"]


def test_names_that_mean_nothing_elsewhere_are_left_out() -> None:
    text = "# heaps\n\nheaps.push(x)\n:   Push an item.\n\nkey\n:   How to compare.\n\ncopy()\n:   A shallow copy.\n"
    terms = [("heaps.push(x)", "Push an item."), ("key", "How to compare."), ("copy()", "A shallow copy.")]
    items = ask(Propose(concept=HEAPS, pages=(page("heaps", text, terms=terms),))).items
    assert [p.name for p in items] == ["heaps.push"]


def test_limit() -> None:
    assert len(ask(Propose(concept=HEAPS, pages=(HEAP_PAGE,), limit=1)).items) == 1


def test_same_question_same_answer() -> None:
    question = Propose(concept=HEAPS, pages=(HEAP_PAGE,))
    assert ask(question) == ask(question)


@pytest.mark.parametrize(
    ("title", "about"),
    [("Heaps", True), ("heap", True), ("Heaps - a guide", True), ("Guide: Heaps", True), ("Heaps of sand", False)],
)
def test_is_about(title: str, about: bool) -> None:
    assert is_about(page(title, "x"), HEAPS) is about


@pytest.mark.parametrize(
    ("term", "name"),
    [
        ("heapq.merge(*iterables, key=None)", "heapq.merge"),
        ("`textwrap.dedent`", "textwrap.dedent"),
        ("class collections.Counter([iterable])", "collections.Counter"),
        ("3.4. Binary trees", "Binary trees"),
        ("[str](pydoc://x)", "str"),
        ("**bold**", "bold"),
        ("", ""),
        ("a term that has far too many words to be one", ""),
        ("x" * 80, ""),
        ("__init__", ""),
        ("???", ""),
    ],
)
def test_clean_name(term: str, name: str) -> None:
    assert clean_name(term) == name


def test_first_sentence_keeps_dots_inside_words() -> None:
    assert first_sentence("Use os.path here. Then stop.") == "Use os.path here."
    assert first_sentence("No stop at all\n\nNext block") == "No stop at all"


def test_queries_go_from_the_name_to_its_surroundings() -> None:
    concept = Concept(name="heap sort", domain="data", keywords=("array",))
    asked = ask(PlanQueries(concept=concept, ancestors=(HEAPS,), n=3)).queries
    assert asked == ["heap sort", "heap sort heaps", "heap sort array"]


def test_what_is_atomic_shows_on_pages_only() -> None:
    heap_sort = Concept(name="heap sort", domain="data", definition="Sorts by a heap.")
    (judged,) = ask(JudgeAtomic(concept=HEAPS, finer=(heap_sort,))).items
    assert (judged.number, judged.verdict) == (0, "unsure")


def test_sameness_is_spelling() -> None:
    other = Concept(name="Heap", domain="data")
    assert ask(SameConcept(candidate=HEAPS, known=other, similarity=0.9)).relation == "same"
    stack = Concept(name="stack", domain="data")
    assert ask(SameConcept(candidate=HEAPS, known=stack, similarity=0.9)).relation == "different"
