"""Facts that pages state in fixed words: what a class is derived from, what a function raises, a parameter's default, ...

Every fact is (subject, relation, object) with the words that prove it. A relation holds one object for a subject, or the
fact is left out: a page that names two bases, two exceptions or two defaults gives none. So a chain of relations from one
subject leads to one object, and `solve` can say what remains possible when a fact is taken away.

    doc       the sentence that documents it         base      the only class it is derived from
    class     the class whose page documents it      module    the module it belongs to
    raises    the exception its text names           inverse   the function it undoes
    like      the function it is explained by        returns   the class of what it returns
    default   a parameter's default, in a signature  topic     the only broader topic that lists it
"""

from __future__ import annotations

import builtins
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import urlsplit

from kgsynth.concept import Concept, SourceSpan, name_key
from kgsynth.graph import ConceptGraph
from kgsynth.web import Page

ITEM = re.compile(r"^\*\*(?P<name>[A-Za-z_][\w. -]*)\*\*: (?P<text>.+)$", re.MULTILINE)
BASES = re.compile(r"^Bases: `(?P<name>[A-Za-z][\w.]*)`\.$", re.MULTILINE)
SHOWN = re.compile(
    r"^```\n(?P<kind>class )?(?P<name>[A-Za-z_][\w.]*)\((?P<arguments>.*)\)(?: ->.*)?\n```$", re.MULTILINE
)
LEAD = re.compile(r"^(?![#`*>|\s-])\S.*$", re.MULTILINE)
SENTENCE = re.compile(r"[A-Z(][^.!?\n]*(?:\.(?=\S)[^.!?\n]*)*[.]?(?=\s|$)")
EXCEPTION = r"[A-Z]\w*(?:Error|Exception|Warning|Iteration|Interrupt|Exit)"
RAISES = re.compile(
    rf"\b[Rr]ais(?:es?|ing) (?:an? |the )?`?(?P<name>{EXCEPTION})\b|`?\b(?P<name2>{EXCEPTION})\b`? (?:is|will be) raised"
)
LIKE = re.compile(
    r"\b(?:Like|Similar to|Identical to|Version of|Deprecated, use|[Ww]rapper (?:for|around)|[Ss]horthand for)"
    r" (?:the )?[`']?(?P<name>[a-z_][\w.]*)(?=\(|`| method| instead| but| function)"
)
RETURNS = re.compile(
    r"(?:(?<=\n)|(?<=: )|(?<=\. )|(?<= and ))[Rr]eturns? (?:an? |the )(?:new )?`?(?P<name>[A-Z]\w+)`?"
    r" (?:object|instance|representation)\b(?! or\b)"
)
INVERSE = re.compile(r"\b[Ii]nverse of (?:the )?(?:function )?`?(?P<name>[A-Za-z_][\w.]*)(?:\(\))?`?")
SENTENCES = {"raises": RAISES, "inverse": INVERSE, "like": LIKE, "returns": RETURNS}
DEFAULT = re.compile(r"(?:^|, )(?:/, |\*, )*(?P<name>[a-z]\w*)=(?P<value>-?\d+(?:\.\d+)?|'[\w.,:/ +-]{2,20}')(?=, |$)")
SECTIONS = re.compile(r"^## (?:Functions|Classes|Constants|Exceptions|Data)\b", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Fact:
    """`object` is a name, a literal ("70", "'utf-8'") or, for `doc` and `raises`, see `Facts`."""

    subject: str
    relation: str  # "base", "default width", ...
    object: str
    span: SourceSpan
    page: str  # the text of the page that states it


class Facts:
    """Every fact of a set of pages and a graph's edges."""

    def __init__(self, pages: Iterable[Page], graph: ConceptGraph | None = None) -> None:
        self.pages = sorted({page.url: page for page in pages}.values(), key=lambda page: page.url)
        self.titles = {page.title: page for page in self.pages}
        self._relations: dict[str, dict[str, Fact]] = defaultdict(dict)
        found: dict[tuple[str, str], dict[str, Fact]] = defaultdict(dict)
        for fact in (*self._stated(), *(self._edges(graph) if graph else ())):
            found[fact.relation, fact.subject].setdefault(fact.object, fact)
        for (relation, subject), facts in found.items():  # several names for one thing are one object
            if len(facts) == 1:
                self._relations[relation][subject] = next(iter(facts.values()))

    def relation(self, name: str) -> Mapping[str, Fact]:
        """Subject -> its fact."""
        return self._relations.get(name, {})

    def fact(self, subject: str, relation: str) -> Fact | None:
        return self.relation(relation).get(subject)

    @property
    def relations(self) -> Sequence[str]:
        return sorted(self._relations)

    def chain(self, subject: str, relation: str) -> list[Fact]:
        """The facts that follow one another from a subject, as far as they lead: its bases, nearest first."""
        found: list[Fact] = []
        while (fact := self.fact(subject, relation)) and fact not in found:
            found.append(fact)
            subject = fact.object
        return found

    def line(self, name: str) -> tuple[str, ...]:
        """A class and those above it, nearest first."""
        if name not in self._lines:
            self._lines[name] = (name, *(fact.object for fact in self.chain(name, "base")))
        return self._lines[name]

    @cached_property
    def _lines(self) -> dict[str, tuple[str, ...]]:
        return {}

    @cached_property
    def documented(self) -> Mapping[str, str]:
        """Subject -> the sentence that documents it and nothing else."""
        subjects: dict[str, list[str]] = defaultdict(list)
        for subject, fact in self.relation("doc").items():
            subjects[name_key(fact.object)].append(subject)
        return {s[0]: self.relation("doc")[s[0]].object for s in subjects.values() if len(s) == 1}

    @cached_property
    def tails(self) -> Mapping[str, frozenset[str]]:
        """The last part of a dotted name -> every name that ends in it."""
        found: dict[str, set[str]] = defaultdict(set)
        for fact in (f for facts in self._relations.values() for f in facts.values()):
            for name in (fact.subject, fact.object):
                found[name.rsplit(".", 1)[-1]].add(name)
        return {tail: frozenset(names) for tail, names in found.items()}

    def spellings(self, name: str) -> list[str]:
        """A name and what else it is called: builtins under every name they are bound to, a dotted name by its last part
        where no other name ends in it."""
        plain = real_name(name)
        bound = getattr(builtins, plain, None)
        also = [n for n in dir(builtins) if bound is not None and getattr(builtins, n) is bound]
        tail = plain.rsplit(".", 1)[-1]
        short = [tail] if len(self.tails.get(tail, ())) <= 1 else []
        dotted = [f"builtins.{plain}"] if bound is not None else []
        return list(dict.fromkeys([plain, name, *also, *short, *dotted]))

    def _stated(self) -> Iterator[Fact]:
        for page in self.pages:
            yield from _documentation(page)
            yield from self._places(page)
            yield from _classes(page)
            stated = (self._whole(fact) for fact in _functions(page))
            yield from (f for f in stated if f.relation not in ("like", "returns") or f.object in self._known)

    def _whole(self, fact: Fact) -> Fact:
        """A name that a page writes without its module, with it: `StatisticsError` as `statistics.StatisticsError`."""
        outer = fact.subject.split(".")[:-1]
        names = [".".join([*outer[:n], fact.object]) for n in range(len(outer), -1, -1)]
        whole = next((name for name in names if name in self._known), "")
        return replace(fact, object=whole) if whole and fact.relation in SENTENCES else fact

    @cached_property
    def _known(self) -> frozenset[str]:
        """Names that pages are about, or list."""
        listed = (item["name"] for page in self.pages for item in ITEM.finditer(page.source.text))
        return frozenset([*self.titles, *listed])

    def _places(self, page: Page) -> Iterator[Fact]:
        """The class or the module that a dotted name with a page is documented in."""
        names = [(page.title, *_line(page, 0))]
        names += [(m["name"], m.start(), m.end()) for m in ITEM.finditer(page.source.text)]
        for name, start, end in names:
            outer, _, inner = name.rpartition(".")
            home = self.titles.get(outer)
            if home and inner and re.fullmatch(r"[\w.]+", name):
                kind = "class" if _is_class(home) else "module" if SECTIONS.search(home.source.text) else ""
                if kind and (name != page.title or kind == "module"):
                    yield _fact(page, name, kind, outer, start, end)

    def _edges(self, graph: ConceptGraph) -> Iterator[Fact]:
        """The broader topic of what has one only, where a page's own words list it."""
        texts = {page.source.id: page.source.text for page in self.pages}
        for edge in graph.edges():
            parents = graph.parents(edge.child)
            span = edge.spans[0] if edge.spans else None
            if len(parents) == 1 and span and span.source in texts:
                yield Fact(
                    subject=graph[edge.child].name,
                    relation="topic",
                    object=parents[0].name,
                    span=span,
                    page=texts[span.source],
                )


def source_name(url: str) -> str:
    """What people call the source of a page: "Python 3.11", "sqlite3", "FOLDOC", a host.

    >>> source_name("file:///usr/share/doc/postgresql-doc-15/html/gin.html")
    'postgresql 15'
    """
    if found := re.match(r"pydoc://([\d.]+)/", url):
        return f"Python {found[1]}"
    if found := re.search(r"/dictd/([\w-]+)\.index", url):
        return found[1].upper()
    if found := re.search(r"/doc/([^/]+)/", url):
        return re.sub(r"^python([\d.]+)", r"Python \1", found[1].replace("-doc", " ").replace(" -", " ").strip())
    return urlsplit(url).hostname or "the source"


def real_name(name: str) -> str:
    """The name under which Python itself knows a builtin: OSError for EnvironmentError."""
    plain = name.removeprefix("builtins.")
    return getattr(getattr(builtins, plain, None), "__name__", plain) if plain.isidentifier() else plain


def _fact(page: Page, subject: str, relation: str, thing: str, start: int, end: int) -> Fact:
    return Fact(
        subject=subject, relation=relation, object=thing, span=page.source.span(start, end), page=page.source.text
    )


def _line(page: Page, at: int) -> tuple[int, int]:
    end = page.source.text.find("\n", at)
    return at, len(page.source.text) if end < 0 else end


def _is_class(page: Page) -> bool:
    shown = SHOWN.search(page.source.text)
    return bool(BASES.search(page.source.text) or (shown and shown["kind"] and shown["name"] == page.title))


def _documentation(page: Page) -> Iterator[Fact]:
    """The first sentence about the page's own subject, and about each that it lists."""
    text = page.source.text
    title = real_name(page.title)
    if (lead := LEAD.search(text)) and (sentence := SENTENCE.match(text, lead.start())):
        yield _fact(page, title, "doc", sentence[0].strip(), *sentence.span())
    for item in ITEM.finditer(text):
        if "." in item["name"] and (sentence := SENTENCE.match(text, item.start("text"))):
            yield _fact(page, item["name"], "doc", sentence[0].strip(), *sentence.span())


def _classes(page: Page) -> Iterator[Fact]:
    for found in BASES.finditer(page.source.text):
        yield _fact(page, real_name(page.title), "base", real_name(found["name"]), *found.span())


def _functions(page: Page) -> Iterator[Fact]:
    """Exceptions, inverses and defaults of the function that a page is about, or of each that it lists."""
    text, shown = page.source.text, SHOWN.search(page.source.text)
    if shown and shown["name"] == page.title:
        for found in DEFAULT.finditer(shown["arguments"]):
            yield _fact(page, page.title, f"default {found['name']}", found["value"], *shown.span())
    places = [(item["name"], item.start("text"), item.end()) for item in ITEM.finditer(text) if "." in item["name"]]
    if not places and not _is_class(page) and "." in page.title:
        places = [(page.title, 0, len(text))]
    for name, start, end in places:
        for relation, pattern in SENTENCES.items():
            for found in pattern.finditer(text, start, end):
                sentence = next(
                    (s for s in SENTENCE.finditer(text, start, end) if s.start() <= found.start() < s.end()), None
                )
                thing = next(filter(None, found.groups()))
                if sentence and thing.rsplit(".", 1)[-1] != name.rsplit(".", 1)[-1]:
                    yield _fact(page, name, relation, real_name(thing), *sentence.span())


def concept_of(name: str, by_key: Mapping[str, Concept]) -> Concept | None:
    """The concept that a name is, or the nearest that it is part of: `set.pop`, else `set`."""
    while name:
        if found := by_key.get(name_key(name)):
            return found
        name = name.rpartition(".")[0]
    return None
