"""What the graph is made of: Concept, Edge, Source, SourceSpan. Frozen, with content-addressed ids.

An edge always points from a coarser concept to a finer one (`NARROWER`, after SKOS). Every edge carries the spans
of the sources that justify it, so any concept can be traced to the page, licence and moment it came from.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import Any

NARROWER = "NARROWER"


def content_id(kind: str, *parts: str) -> str:
    """`kind` + 16 hex digits of SHA-256 over the parts (length-prefixed, so ("ab","c") differs from ("a","bc"))."""
    digest = hashlib.sha256()
    for part in (kind, *parts):
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return f"{kind}_{digest.hexdigest()[:16]}"


def text_hash(text: str) -> str:
    """SHA-256 of a text, as hex."""
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=1 << 16)
def name_key(name: str) -> str:
    """The spelling under which a name is looked up: case, accents, hyphens, spaces, "the" and a plural 's' do not count.

    >>> name_key("The Binary-Search  Trees") == name_key("binary search tree")
    True
    >>> name_key("str.join"), name_key("class"), name_key("C++")
    ('str.join', 'class', 'c++')
    """
    text = name.casefold() if name.isascii() else _without_accents(name)
    text = re.sub(r"[\s\-‐‑–—/]+", " ", text).strip(" .,:;'\"`()[]")
    words = text.removeprefix("the ").split()
    return " ".join([*words[:-1], _singular(words[-1])]) if words else ""


def _without_accents(name: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", name).casefold() if not unicodedata.combining(c))


def _singular(word: str) -> str:
    """English plural to singular for plain words only: identifiers (with dots, digits, underscores) are kept."""
    if not word.isalpha() or len(word) < 4 or word.endswith(("ss", "us", "is", "os")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") else word


def allows(licences: Iterable[str], licence: str) -> bool:
    """Whether a licence is among those allowed, which are names with `*`, in any case; none named: every licence is."""
    named = [known.casefold() for known in licences]
    return not named or any(fnmatchcase(licence.casefold(), known) for known in named)


@dataclass(frozen=True, kw_only=True)
class Concept:
    """One concept. Identity is its normalised name plus `sense` (empty unless two meanings share a name)."""

    name: str
    domain: str
    definition: str = ""
    aliases: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    sense: str = ""
    atomic: bool | None = None  # None: not judged yet
    atomic_reason: str = ""

    @cached_property
    def id(self) -> str:
        return content_id("c", name_key(self.name), name_key(self.sense))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Every normalised spelling this concept answers to, without repeats, its own name first."""
        return tuple(dict.fromkeys(k for k in map(name_key, (self.name, *self.aliases)) if k))


@dataclass(frozen=True, kw_only=True)
class Source:
    """One fetched text, exactly as the spans index it."""

    url: str
    title: str
    text: str
    licence: str = "unknown"
    retrieved_at: str = ""  # ISO 8601, UTC; not part of the identity

    @cached_property
    def content_hash(self) -> str:
        return text_hash(self.text)

    @cached_property
    def id(self) -> str:
        return content_id("s", self.url, self.content_hash)

    def span(self, start: int, end: int) -> SourceSpan:
        """The span [start, end) of this source, characters. Raises ValueError when it is empty or out of range."""
        if not 0 <= start < end <= len(self.text):
            raise ValueError(f"span [{start}, {end}) is outside {self.url} ({len(self.text)} characters)")
        return SourceSpan(source=self.id, url=self.url, start=start, end=end, text=self.text[start:end])


@dataclass(frozen=True, kw_only=True)
class SourceSpan:
    """A quoted piece of a source: `text == source.text[start:end]`."""

    source: str  # Source.id
    url: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Edge:
    """parent (coarser) -> child (finer), with the spans that justify it."""

    parent: str
    child: str
    spans: tuple[SourceSpan, ...] = ()

    @cached_property
    def id(self) -> str:
        return content_id("e", self.parent, self.child)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A recorded judgement: which rule decided what about which concept, on which evidence."""

    kind: str  # "dedup", "atomic", "cycle", "drop"
    subject: str  # the name or id judged
    outcome: str  # e.g. "new", "exact", "alias", "vector", "refused", "atomic", "expand"
    reason: str
    evidence: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def id(self) -> str:
        return content_id("d", self.kind, self.subject, self.outcome, self.reason, repr(self.evidence))


def merge_unique(old: Iterable[Any], new: Iterable[Any]) -> tuple[Any, ...]:
    """Both sequences without repeats, order kept."""
    return tuple(dict.fromkeys((*old, *new)))
