"""Every page that the survey read, each text once, with the words on it: what long contexts are arranged from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from kgsynth.concept import text_hash
from kgsynth.synthesize.material import Material
from kgsynth.web import Page

WORD = re.compile(r"[A-Za-z0-9_]+")  # an unbroken run of letters, digits and underscores, as the prompts say


@dataclass(frozen=True, kw_only=True)
class Document:
    """A page in a context: a title that no other document of the library has, and its words as they are written."""

    page: Page
    words: frozenset[str]

    @property
    def title(self) -> str:
        return self.page.title

    @property
    def text(self) -> str:
        return self.page.source.text.strip()


@dataclass(frozen=True)
class Library:
    """Documents in the order of their URLs, which depends on nothing but the pages."""

    documents: tuple[Document, ...]

    @classmethod
    def of(cls, material: Iterable[Material]) -> Library:
        """The pages of all materials; of pages with the same text or the same title only the first is kept."""
        by_url = {page.url: page for each in material for page in each.pages if page.title.strip()}
        pages, seen = list[Page](), set[str]()
        for url in sorted(by_url):
            marks = {text_hash(by_url[url].source.text), by_url[url].title.casefold()}
            if not marks & seen:
                pages.append(by_url[url])
            seen |= marks
        return cls(tuple(Document(page=p, words=frozenset(WORD.findall(p.source.text))) for p in pages))

    @cached_property
    def holding(self) -> Mapping[str, tuple[int, ...]]:
        """Word -> the numbers of the documents that have it."""
        found: dict[str, list[int]] = {}
        for number, document in enumerate(self.documents):
            for word in document.words:
                found.setdefault(word, []).append(number)
        return {word: tuple(numbers) for word, numbers in found.items()}

    @cached_property
    def chars(self) -> int:
        return sum(len(document.text) for document in self.documents)
