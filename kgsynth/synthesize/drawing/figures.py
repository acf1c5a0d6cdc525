"""Figures counted in real pages, and pieces of the graph: what pictures are drawn from. Each with the spans it rests on.

A `Series` is a few labelled numbers that fit one plot. Two kinds of figures are measured: what a page says about its
parts (words of entries, of sections; numbers listed in its examples and tables), and what the sources say about the
topics that lie side by side below one concept. Everything depends on the graph and the pages only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

from kgsynth.concept import Concept, SourceSpan, content_id, name_key
from kgsynth.retrieve import is_about
from kgsynth.sample import Sample
from kgsynth.synthesize.env import SynthesisEnv
from kgsynth.synthesize.material import Material
from kgsynth.web import Definition, Hit, Page

Shown = TypeVar("Shown")

FEWEST = 4  # values of a series
LABEL_CHARS = 24
TITLE_CHARS = 64
PAGE_CHARS = 2500  # of a page that is cited whole
CITED_CHARS = 400  # of each of many spans
NUMBER = r"-?\d{1,6}(?:\.\d{1,3})?"
NUMBERS = re.compile(rf"[\[(](\s*{NUMBER}(?:\s*,\s*{NUMBER}){{4,11}})\s*,?\s*[\])]")
ROW = re.compile(r"^\|(.+)\|\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Series:
    """Labelled numbers. `ordered`: the labels have an order of their own, so that a line may join the values."""

    title: str
    measure: str  # plural noun: "words"
    labels: tuple[str, ...]
    values: tuple[float, ...]  # at least 0, not all equal
    spans: tuple[SourceSpan, ...]
    concepts: tuple[Concept, ...]
    ordered: bool = False

    def __len__(self) -> int:
        return len(self.values)

    @property
    def whole(self) -> bool:
        return all(value == int(value) for value in self.values)

    def permuted(self, order: Sequence[int]) -> Series:
        """The same places with other values: value i is what was value order[i]."""
        return replace(self, values=tuple(self.values[i] for i in order))


@dataclass(frozen=True, kw_only=True)
class Item:
    """One row before a series is made of it."""

    label: str
    value: float
    span: SourceSpan
    concept: Concept | None = None


def own_pages(material: Material) -> list[Page]:
    return [page for page in material.pages if is_about(material.concept, Hit(url=page.url, title=page.title))]


def series_of(scope: str, material: Material, env: SynthesisEnv, size: int) -> list[Series]:
    """Every series of at most `size` values about a concept ("concept"), or about it among its siblings ("siblings")."""
    found = _about_siblings(material.concept, env, size) if scope == "siblings" else _about_pages(material, env, size)
    return [series for series in found if _is_usable(series)]


def pairs_of(scope: str, material: Material, env: SynthesisEnv, size: int) -> list[tuple[Series, Series]]:
    """Two measures of the same things: words and characters, words and lines."""
    found = series_of(scope, material, env, size)
    return [
        (a, b)
        for a, b in combinations(found, 2)
        if (a.title, a.labels) == (b.title, b.labels) and a.measure != b.measure
    ]


def _is_usable(series: Series) -> bool:
    return (
        len(series) >= FEWEST
        and min(series.values) >= (0 if series.ordered else 1)  # a bar of no length is no bar
        and len(set(series.values)) >= 3
        and all(map(is_label, series.labels))
        and len({name_key(label) for label in series.labels}) == len(series)
    )


def is_label(text: str) -> bool:
    """Can it stand in a picture and be read off it: short, of plain letters, without what separates the items of a list?"""
    return 0 < len(text) <= LABEL_CHARS and text.isascii() and text.isprintable() and not set(text) & set(",;<>&\"'`*|")


def _about_pages(material: Material, env: SynthesisEnv, size: int) -> Iterator[Series]:
    for page in own_pages(material):
        if is_label(page.title):
            yield from _entries(page, material.concept, size)
            yield from _sections(page, material.concept, size)
            yield from _listed_numbers(page, material.concept, size)
            yield from _tables(page, material.concept, size)
    yield from _topics_below(material.concept, env, size)


def _entries(page: Page, concept: Concept, size: int) -> Iterator[Series]:
    """How long the entries are that a page has for its parts."""
    entries = [d for d in page.definitions if d.term not in (page.title, concept.name)]
    named = {name_key(short(d.term)): d for d in reversed(entries) if is_label(short(d.term)) and d.text.split()}
    kept = [d for d in entries if named.get(name_key(short(d.term))) is d]
    for chunk in _chunks(kept, size):
        for measure, length in (("words", _words), ("characters", len)):
            items = [_entry(page, d, length) for d in chunk]
            yield _series(f"Length of each entry on {page.title}", measure, items, kept, [concept])


def _entry(page: Page, definition: Definition, length: Callable[[str], int]) -> Item:
    span = page.source.span(definition.start, definition.end)
    return Item(label=short(definition.term), value=length(definition.text), span=span)


def _sections(page: Page, concept: Concept, size: int) -> Iterator[Series]:
    """How long the sections of a page are, in their order."""
    heads = [h for h in page.headings if is_label(h.text)]
    ends = [h.start for h in page.headings[1:]] + [len(page.source.text)]
    end_of = dict(zip(page.headings, ends, strict=True))
    items = []
    for head in heads:
        body = page.source.text[head.end : end_of[head]]
        if body.strip():
            span = page.source.span(head.start, min(end_of[head], head.start + CITED_CHARS))
            items.append(Item(label=head.text, value=_words(body.rstrip("# \n")), span=span))
    if len(items) <= size:
        yield _series(f"Length of each section on {page.title}", "words", items, items, [concept], ordered=True)


def _listed_numbers(page: Page, concept: Concept, size: int) -> Iterator[Series]:
    """Lists of numbers that the page's examples calculate with, by position."""
    for number, found in enumerate(NUMBERS.finditer(page.source.text), 1):
        values = [float(n) for n in found[1].split(",")][: max(size, 6)]
        span = page.source.span(*found.span())
        items = [Item(label=str(i), value=value, span=span) for i, value in enumerate(values)]
        title = f"List {number} in the examples of {page.title}, by index"
        yield _series(title, "values", items, items, [concept], ordered=True)


def _tables(page: Page, concept: Concept, size: int) -> Iterator[Series]:
    """Columns of numbers in the page's tables, labelled by the first column."""
    rows = [([cell.strip() for cell in m[1].split("|")], m.span()) for m in ROW.finditer(page.source.text)]
    if not rows:
        return
    head = rows[0][0]
    for column in range(1, len(head)):
        body = [(cells, at) for cells, at in rows[1:] if len(cells) == len(head)]
        body = [(cells, at) for cells, at in body if re.fullmatch(NUMBER, cells[column]) and is_label(cells[0])][:size]
        items = [Item(label=c[0], value=float(c[column]), span=page.source.span(*at)) for c, at in body]
        yield _series(f"{head[column]}, from {page.title}", head[column] or "values", items, items, [concept])


def _topics_below(concept: Concept, env: SynthesisEnv, size: int) -> Iterator[Series]:
    """How many finer topics lie below each child."""
    if not is_label(concept.name):
        return
    items = [
        replace(item, value=len(env.graph.descendants(child)), concept=child)
        for child in env.graph.children(concept)
        if (item := _introduced(concept, child, env, _words))
    ]
    for chunk in _chunks(items, size):
        yield _series(f"Finer topics below each part of {concept.name}", "topics", chunk, items, [concept])


def _about_siblings(concept: Concept, env: SynthesisEnv, size: int) -> Iterator[Series]:
    for parent in env.graph.parents(concept):
        group = [c for c in env.graph.children(parent) if is_label(short(c.name))]
        if concept not in group or not is_label(parent.name) or len(group) < FEWEST:
            continue
        group, all_of = around(concept, group, size), group
        for measure, length in (("words", _words), ("characters", len)):
            items = [item for c in group if (item := _introduced(parent, c, env, length))]
            title = f"Length of the entry for {'parts' if len(group) < len(all_of) else 'each part'} of {parent.name}"
            yield _series(title, measure, items, all_of, [concept, parent])
        pages = [(c, page) for c in group if (page := _page_of(c, env))]
        for measure, count in (("words", _words), ("lines", _lines)):
            items = [
                Item(label=short(c.name), value=count(p.source.text), span=p.source.span(0, len(p.source.text)), concept=c)
                for c, p in pages
            ]  # fmt: skip
            title = f"Length of the pages about parts of {parent.name}"
            yield _series(title, measure, items, all_of, [concept, parent])


def turn(concept: Concept, env: SynthesisEnv) -> tuple[int, int]:
    """(the concept's place among the siblings below its first parent, how many they are)."""
    parents = env.graph.parents(concept)
    group = [c.id for c in env.graph.children(parents[0])] if parents else [concept.id]
    return group.index(concept.id), len(group)


def in_turns(found: Iterable[Shown], kind: Callable[[Shown], Hashable]) -> list[Shown]:
    """The first of each kind, then the second of each, and so on; otherwise in the order in which they come."""
    turns = Counter[Hashable]()
    ranked = []
    for one in found:
        turns[kind(one)] += 1
        ranked.append((turns[kind(one)], one))
    return [one for _, one in sorted(ranked, key=lambda pair: pair[0])]


def whose_turn(found: Sequence[Shown], sample: Sample, env: SynthesisEnv) -> Shown:
    """The one that a sample asks for. Siblings share what can be drawn of them, so that each begins at another one."""
    rank, many = turn(env.graph[sample.concept], env) if sample.scope == "siblings" else (0, 1)
    return found[(sample.variant * many + rank) % len(found)]


def around(concept: Concept, group: Sequence[Concept], size: int) -> list[Concept]:
    """The concept and the siblings it draws, in the group's order: another few for each concept of a large group."""
    others = sorted((c for c in group if c != concept), key=lambda c: content_id("among", concept.id, c.id))
    chosen = {concept.id, *(c.id for c in others[: size - 1])}
    return [c for c in group if c.id in chosen]


def _page_of(concept: Concept, env: SynthesisEnv) -> Page | None:
    pages = own_pages((env.material or {})[concept.id])
    return pages[0] if pages and 0 < len(pages[0].source.text) <= PAGE_CHARS else None


def _introduced(parent: Concept, child: Concept, env: SynthesisEnv, length: Callable[[str], int]) -> Item | None:
    """A child and the length of the words with which a source introduces it."""
    edge = env.graph.edge(parent, child)
    spans = [span for span in (edge.spans if edge else ()) if span.text.strip()]
    if not spans or not is_label(short(child.name)):
        return None
    return Item(label=short(child.name), value=length(introduction(spans[0].text)), span=spans[0], concept=child)


def introduction(text: str) -> str:
    """What a source says in its entry for a term: `**term**: text` without the term."""
    return re.sub(r"^[^\n]{1,80}?\*\*:\s*", "", text).strip()


def _series(
    title: str, measure: str, items: Sequence[Item], all_of: Sequence[object], concepts: list[Concept], *, ordered: bool = False
) -> Series:  # fmt: skip
    part = len(items) < len(all_of) and bool(items)
    title += f", {items[0].label} to {items[-1].label}" if part else ""
    return Series(
        title=title,
        measure=measure,
        labels=tuple(item.label for item in items),
        values=tuple(item.value for item in items),
        spans=tuple(dict.fromkeys(item.span for item in items)),
        concepts=tuple(dict.fromkeys([*concepts, *(item.concept for item in items if item.concept)])),
        ordered=ordered,
    )


def _chunks(items: Sequence, size: int) -> Iterable[Sequence]:
    """Consecutive pieces of about `size`, none smaller than FEWEST."""
    n = max(1, len(items) // size)
    bounds = [min(i * size, len(items)) for i in range(n)]
    return [items[start : start + size] for start in bounds]


def short(name: str) -> str:
    """`randint` of `random.randint`: the part of a dotted name that tells siblings apart."""
    return name.rsplit(".", 1)[-1] if re.fullmatch(r"[\w.]+", name) else name


def _words(text: str) -> int:
    return len(text.split())


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())
