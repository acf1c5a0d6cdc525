"""Spans that can be hidden from a passage, and others of the same shape that cannot stand in their place.

Three kinds, each with a shape that an option must share:

    entry    the sentence that documents a name, and nothing else in the source; options document other names
    name     an exception or a special method in a sentence; options are names of the same sort
    clause   what follows "if", "when", "because", ... up to the full stop; options follow the same word elsewhere

An option is used only when it is refutable (`excludes`): its words are neither those of the hidden span nor of what
remains of the passage, and for names neither is derived from the other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kgsynth.concept import SourceSpan
from kgsynth.synthesize.facts import EXCEPTION, Facts
from kgsynth.synthesize.hops import WEAK_START
from kgsynth.synthesize.material import Material, Sentence
from kgsynth.verifiers.text import normalise
from kgsynth.web import Page

BLANK = "____"
BOLD = re.compile(r"(?<!\w)\*\*(?=\S)([^*\n]+)(?<=\S)\*\*(?!\w)")
ENTRY_STEMS, CLAUSE_STEMS = 2, 3  # words that carry meaning, at least
CLAUSE_CHARS = (24, 130)
HEAD_STEMS = 3  # of what remains of a sentence whose clause is hidden
ENTRY_CHARS = (24, 170)
NAME = re.compile(rf"(?P<exception>\b{EXCEPTION}\b)|(?P<special>\b__[a-z]\w*[a-z]__)(?=\(|`? (?:method|function))")
CLAUSE = re.compile(
    r"(?<=[\w)`'\"]) (?P<word>if|when|unless|because|so that|until|whenever|even if|as long as) (?P<rest>[^;:]+)\.$"
)
PRONOUN = re.compile(
    r"(?:necessary|needed|possible|it|its|they|their|this|that|these|those|there|he|she|you|we|such|one|both|either|then)\b",
    re.IGNORECASE,
)
LISTED = re.compile(
    r"(?:such as|like|e\.g\.,?|for example,?|including|[,/]|\b(?:or|and|not|than|other))[\s`'\"(]*$", re.IGNORECASE
)
GOES_ON = re.compile(r"^[\s`'\")]*(?:,|/|\b(?:or|and)\b)")
WORDS = re.compile(r"[A-Za-z_][\w.]*")
CUT_SHORT = re.compile(r"^\(|[:,]$|\b[A-Z]$|\b(?:e\.g|i\.e|a\.k\.a|etc|see|by)\.?$|\bfollowing\b|\b[Ss]ee\b")
ACTIONS = frozenset(
    verb + ending
    for verb in "return create remove get set check test determine compute raise write read open close parse load dump encode decode find"
    " replace insert append add apply make build construct convert generate handle iterate print format split join compare send receive"
    " wait start stop run call execute register release pop push sort merge update clear copy discard delete drop group scan search match"
    " transform turn try use yield signal implement initialize give calculate count extract fetch fill flush lock unlock perform process"
    " produce quote escape rename reset resolve retrieve reverse rotate save seek select shift skip store subtract switch translate truncate"
    " unpack pack validate verify wrap look list choose provide do take put mark move invoke increment encrypt decrypt isolate explicitly".split()
    for ending in ("", "s", "es")
)
COMMON = frozenset(
    "return returns returned raise raises raised given with from that this when then than into each must will have has been being are was were"
    " which value values used using uses use not only also more most other otherwise same such some there their they what where while would"
    " could should may can cannot does object objects argument arguments method function functions default true false none name names"
    " first last number type types new about any all for the and its but one two set get does called call calls after before between".split()
)


@dataclass(frozen=True, kw_only=True)
class Mask:
    """A span that may be hidden: `shown` is the passage with the blank in its place."""

    kind: str  # "entry", "name", "clause"
    shape: str  # options have the same: "entry", "exception", "special", or the word before a clause
    text: str  # the hidden words, as an option shows them
    shown: str
    span: SourceSpan  # of the passage
    page: str  # URL
    title: str  # what the passage is about

    @cached_property
    def stems(self) -> frozenset[str]:
        return stems(self.text)

    @cached_property
    def around(self) -> frozenset[str]:
        """The words of the passage, and of its title, that remain."""
        return stems(f"{self.title} {self.shown}")


def _names_itself(name: str, text: str) -> bool:
    """Does a text say the last part of a name, or a word of it: `HtmlDiff` by "HTML"?"""
    tail = name.rsplit(".", 1)[-1]
    parts = [p.casefold() for p in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", tail) if len(p) >= 5]
    folded = text.casefold()
    initials = "".join(re.findall(r"[A-Z]", text)).casefold()
    told = any(part[: max(5, len(part) - 2)] in folded for part in (*parts, tail.casefold()) if len(part) >= 3)
    return told or "".join(re.findall(r"[a-z]", tail.casefold())) in (initials, initials[: len(tail)])


def _balanced(text: str) -> bool:
    return text.count("(") == text.count(")") and text.count('"') % 2 == 0


def stems(text: str) -> frozenset[str]:
    """The words that carry meaning, without their endings."""
    words = (w.casefold().strip("._") for w in WORDS.findall(text))
    return frozenset(w[: max(4, len(w) - 2)] for w in words if len(w) >= 4 and w not in COMMON)


def plain(markdown: str) -> str:
    """One line without emphasis and code marks."""
    return " ".join(BOLD.sub(r"\1", markdown).replace("`", "").split())


class Masks:
    """Every span of the surveyed pages that may be hidden, by concept, and the candidates for options by shape."""

    def __init__(self, material: Mapping[str, Material], facts: Facts, homes: Mapping[str, str]) -> None:
        """homes: documented name -> the id of its concept."""
        self.facts = facts
        self.of: dict[str, list[Mask]] = {c: list(_in_sentences(each.sentences)) for c, each in material.items()}
        for name, concept in homes.items():
            if mask := self._entry(name):
                self.of[concept].append(mask)

    def _entry(self, name: str) -> Mask | None:
        fact = self.facts.relation("doc")[name]
        text = plain(fact.object).rstrip(".")
        if _names_itself(name, text) or not ENTRY_CHARS[0] <= len(text) <= ENTRY_CHARS[1]:
            return None
        if len(stems(text)) < ENTRY_STEMS or CUT_SHORT.search(text) or WEAK_START.match(text) or not _balanced(text):
            return None
        shape = "entry of an action" if text.split()[0].casefold() in ACTIONS else "entry of a thing"
        return Mask(
            kind="entry",
            shape=shape,
            text=text,
            shown=f"{name}: {BLANK}.",
            span=fact.span,
            page=fact.span.url,
            title=name,
        )

    @cached_property
    def by_shape(self) -> Mapping[str, Sequence[Mask]]:
        """Every mask once, by the shape that its options share."""
        found: dict[str, dict[str, Mask]] = defaultdict(dict)
        for masks in self.of.values():
            for mask in masks:
                found[mask.shape].setdefault(normalise(mask.text), mask)
        return {shape: tuple(masks.values()) for shape, masks in found.items()}

    def excludes(self, mask: Mask, option: Mask) -> bool:
        """Is it certain that the option's words do not belong in the place of the hidden ones?"""
        if normalise(mask.text) == normalise(option.text) or (option.title == mask.title and mask.kind == "entry"):
            return False
        if mask.kind == "name":
            return self._other_name(mask, option.text)
        if mask.kind == "entry":
            return self._other_entry(mask, option)
        return not option.stems & (mask.stems | mask.around) and not option.around & (mask.around - stems(mask.title))

    def _other_name(self, mask: Mask, name: str) -> bool:
        """Not shown already, no part of the hidden name, neither above nor below it."""
        a, b = mask.text.rstrip("()"), name.rstrip("()")
        lines = {*self.facts.line(a)[1:]}, {*self.facts.line(b)[1:]}
        known = mask.shape != "exception" or (len(lines[0]) > 0 and len(lines[1]) > 0)
        short = (a.strip("_"), b.strip("_"))
        alike = short[0] in short[1] or short[1] in short[0] or (short[0][1:] == short[1] or short[1][1:] == short[0])
        return known and not alike and a not in lines[1] and b not in lines[0] and b not in mask.shown

    def _other_entry(self, mask: Mask, option: Mask) -> bool:
        """Documents something of another name that has nothing to do with it, in mostly other words."""
        shared = len(mask.stems & option.stems)
        if 2 * shared >= min(len(mask.stems), len(option.stems)):
            return False
        tails = {title.rsplit(".", 1)[-1].strip("_").casefold() for title in (mask.title, option.title)}
        lines = {*self.facts.line(mask.title)}, {*self.facts.line(option.title)}
        named = any(tail in WORDS.findall(f"{mask.text} {option.text}".casefold()) for tail in tails)
        related = mask.title in lines[1] or option.title in lines[0]
        return len(tails) == 2 and not named and not related


def _in_sentences(sentences: Iterable[Sentence]) -> Iterator[Mask]:
    for sentence in sentences:
        text = sentence.page.source.text[sentence.start : sentence.end].rstrip()
        if "**: " not in text and "\n" not in text.strip():
            yield from _clauses(sentence.page, sentence, text)
            yield from _names(sentence.page, sentence, text)


def _clauses(page: Page, sentence: Sentence, text: str) -> Iterator[Mask]:
    found = CLAUSE.search(text)
    if not found or len(re.findall(rf"\b{found['word']}\b", text)) > 1 or PRONOUN.match(found["rest"]):
        return
    rest, head = plain(found["rest"]), text[: found.start("rest")]
    said = len(stems(rest)) >= CLAUSE_STEMS and len(stems(head)) >= HEAD_STEMS and not PRONOUN.match(head)
    if said and CLAUSE_CHARS[0] <= len(rest) <= CLAUSE_CHARS[1] and _balanced(rest) and _balanced(head):
        yield _mask("clause", found["word"], rest, page, sentence, found.start("rest"), found.end("rest"))


def _names(page: Page, sentence: Sentence, text: str) -> Iterator[Mask]:
    for found in NAME.finditer(text):
        before, after = text[: found.start()], text[found.end() :]
        whole = page.source.text[sentence.context : sentence.end]
        alone = (
            whole.count(found[0].strip("_")) == 1
            and found[0].strip("_") not in page.title
            and not LISTED.search(before)
            and not GOES_ON.match(after)
        )
        if alone and len(stems(before + after)) >= HEAD_STEMS and not PRONOUN.match(text):
            yield _mask("name", str(found.lastgroup), found[0], page, sentence, *found.span())


def _mask(kind: str, shape: str, hidden: str, page: Page, sentence: Sentence, start: int, end: int) -> Mask:
    """The sentence, after what comes before it in its paragraph, with [start, end) of it hidden."""
    text, at = page.source.text, sentence.start
    context = sentence.context if hidden not in text[sentence.context : at] else at
    shown = plain(f"{text[context : at + start]}{BLANK}{text[at + end : sentence.end]}")
    span = page.source.span(context, sentence.end)
    return Mask(kind=kind, shape=shape, text=hidden, shown=shown, span=span, page=page.url, title=page.title)
