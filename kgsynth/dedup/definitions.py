"""Definitions compared by their words. Where embeddings see one meaning ("keeps every row of the left table", "... right
table": 0.97), the words that only one side has tell siblings apart; and the same text is recognised under any name.

    shared      weight of the common words / weight of all words        (weighted Jaccard)
    contained   weight of the common words / weight of the shorter side (1: one says nothing that the other does not)

A word weighs log(1 + N / n): N definitions, of which n have it (Sparck Jones, 1972), so that a template weighs little.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from typing import Any

from kgsynth.dedup.names import plain_word

STOPWORDS = frozenset(
    "a an the of to in on for and or by with as is are be that which from it its at into this these those their such"
    " etc e g i one ones can may also".split()
)
POLARITY = frozenset("not no without non never neither nor".split())
SCANNED = 400  # postings looked at for one candidate, the rarest words first; common words find nothing


@dataclass(frozen=True)
class Words:
    """The words of a definition that carry meaning, in their order, and without repeats."""

    order: tuple[str, ...]
    bag: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How two definitions share their words."""

    shared: float = 0.0
    contained: float = 0.0
    words: int = 0  # common ones
    rarity: float = 0.0  # their mean weight, of the most that a word can weigh here
    same: bool = False  # the same words in the same order
    part: bool = False  # one has all words of the other, each as often
    ours: frozenset[str] = frozenset()  # the words that only the first has
    theirs: frozenset[str] = frozenset()  # and the second
    agree: bool = True  # both deny, or neither does


NONE = Overlap()


@lru_cache(maxsize=1 << 13)
def words(text: str) -> Words:
    """
    >>> words("The rows of a table, one by one.").order
    ('row', 'table')
    """
    found = re.findall(r"\w+", text.casefold())
    order = tuple(plain_word(word) for word in found if word not in STOPWORDS)
    return Words(order, frozenset(order))


class Definitions:
    """Definitions under ids, found by their rarest words."""

    def __init__(self) -> None:
        self._words: dict[str, Words] = {}
        self._having: dict[Any, dict[str, None]] = defaultdict(dict)  # word -> ids
        self._texts: dict[Any, dict[str, None]] = defaultdict(dict)  # all words -> ids

    def add(self, concept_id: str, text: str) -> None:
        self.remove(concept_id)
        if (found := words(text)).bag:
            self._words[concept_id] = found
            self._texts[found.order][concept_id] = None
            for word in found.bag:
                self._having[word][concept_id] = None

    def remove(self, concept_id: str) -> None:
        found = self._words.pop(concept_id, None)
        for index, keys in ((self._texts, [found.order]), (self._having, found.bag)) if found else ():
            for key in keys:
                index[key].pop(concept_id, None)
                if not index[key]:
                    del index[key]

    def __contains__(self, concept_id: str) -> bool:
        return concept_id in self._words

    def having(self, text: str) -> list[str]:
        """Ids with the same definition, in the order of insertion."""
        return list(self._texts.get(words(text).order, ()))

    def nearest(self, text: str, k: int) -> list[str]:
        """Up to k ids whose definitions share the most weight, among those found by the rarest words."""
        score: dict[str, float] = defaultdict(float)
        left = SCANNED
        lists = [(len(ids), word, ids) for word in words(text).bag if (ids := self._having.get(word))]
        for n, _, ids in sorted(lists, key=lambda found: found[:2]):
            left -= n
            if left < 0 and score:
                break
            weight = math.log(1 + len(self._words) / n)
            for concept_id in ids:
                score[concept_id] += weight
        return nlargest(k, score, key=score.__getitem__)

    def overlap(self, text: str, concept_id: str) -> Overlap:
        ours, theirs = words(text), self._words.get(concept_id)
        common = ours.bag & theirs.bag if theirs else None
        if theirs is None or not common:
            return NONE
        weight, mine, its = map(self._total, (common, ours.bag, theirs.bag))
        return Overlap(
            shared=weight / (mine + its - weight), contained=weight / min(mine, its), words=len(common),
            rarity=weight / len(common) / math.log(1 + len(self._words)),
            same=ours.order == theirs.order, part=_is_part(ours, theirs) or _is_part(theirs, ours),
            ours=ours.bag - theirs.bag, theirs=theirs.bag - ours.bag, agree=ours.bag & POLARITY == theirs.bag & POLARITY,
        )  # fmt: skip

    def _total(self, bag: Iterable[str]) -> float:
        """The weight of some words. Exact, so that the order of a set does not count."""
        having, n, log = self._having, len(self._words), math.log
        return math.fsum([log(1 + n / (len(having[word]) if word in having else 1)) for word in bag])


def _is_part(ours: Words, theirs: Words) -> bool:
    return ours.bag <= theirs.bag and Counter(ours.order) <= Counter(theirs.order)
