"""Near-duplicates among tasks: two that ask the same thing, however much of their words is the template of their type.

What a task asks is its content without options, with the documents of its pictures; what it answers is the reference, a
letter being resolved to its option. Candidates come from MinHash and locality-sensitive hashing (Broder 1997; Leskovec,
Rajaraman, Ullman, "Mining of massive datasets", ch. 3; `datasketch`) and from the nearest embeddings. They are duplicates

    when they have the same answer, and what they ask is alike by `near` or more (Jaccard, of words or characters, without
    what both have from the template), or by cosine, where every number and name in the one is in the other too
    when they have different answers, and what they ask is the same to the letter
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgsynth.embed import Embedder
from kgsynth.nearest import Nearest
from kgsynth.screen.postings import Templates, both
from kgsynth.screen.text import Hashes, content, telling, word_hash
from kgsynth.task import Task

PERMUTATIONS = 64
SLACK = 0.25  # candidates may look that much less alike by their sketch
NEIGHBOURS = 3
HALF = 0.5  # similarity without which an embedding alone proves nothing
LONG_ANSWER, SAME_ANSWER = 20, 0.95  # tokens of a long one; Jaccard of pairs of them, if two such say the same
ENDS = 4000  # characters at either end of a long prompt: where its question stands
_OPTION = re.compile(r"^\s*\(?([A-Z])[.):]\s+(.+)$", re.MULTILINE)
_TAGS = re.compile(r"</?answer>", re.IGNORECASE)
_SYMBOL = re.compile(r"[^\w\s]|\w+")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A task as it is compared."""

    id: str
    kind: str  # its type
    where: str  # "this set" or the file of an earlier one
    text: str
    words: Hashes  # of single tokens and pairs of them
    chars: Hashes  # of five characters
    telling: frozenset[str]  # numbers, literals and names of code: what no embedding tells apart
    options: frozenset[str]
    answers: frozenset[str]  # any spelling of the right one
    concept: str  # that is tested


def asked(task: Task, where: str = "this set") -> Asked:
    options = dict(_OPTION.findall(task.prompt)) if task.verifier.name == "choice" else {}
    text = content(_OPTION.sub("", task.prompt) if options else task.prompt)
    text = "\n".join([_ends(text), *(_ends(image.source) for image in task.images)])
    tokens = _SYMBOL.findall(text.casefold())
    answer = _TAGS.sub("", task.reference).strip()
    listed = task.verifier.params.get("answers")
    spellings = [options.get(answer, answer), *(listed if isinstance(listed, list | tuple) else ())]
    return Asked(
        id=task.id,
        kind=task.type,
        where=where,
        text=text,
        words=_hashes([*tokens, *(f"{a} {b}" for a, b in pairwise(tokens))]),
        chars=_hashes(_five(" ".join(tokens))),
        telling=telling(text),
        options=frozenset(map(_plain, options.values())),
        answers=frozenset(_plain(str(one)) for one in spellings),
        concept=task.provenance.concepts[0] if task.provenance.concepts else "",
    )


def _ends(text: str) -> str:
    return text if len(text) <= 2 * ENDS else f"{text[:ENDS]}\n{text[-ENDS:]}"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _five(text: str) -> list[str]:
    return [text[at : at + 5] for at in range(max(1, len(text) - 4))]


def _hashes(parts: list[str]) -> Hashes:
    return np.array(sorted({word_hash(part) for part in parts}), np.uint64)


@dataclass(frozen=True, kw_only=True)
class Twin:
    """The earlier task that asks the same, by which measure and how much."""

    other: Asked
    measure: str  # "same", "minhash" or "embedding"
    value: float

    def evidence(self) -> dict[str, Any]:
        return {"task": self.other.id, "set": self.other.where, "measure": self.measure, "value": round(self.value, 4)}


class Near:
    """The tasks so far. What is found depends on what was added before, in order."""

    def __init__(self, near: float, similar: float, embedder: Embedder | None) -> None:
        from datasketch import MinHash, MinHashLSH

        self._near, self._similar, self._embedder = near, similar, embedder
        self._blank = MinHash(num_perm=PERMUTATIONS, hashfunc=_folded)
        self._lsh = MinHashLSH(threshold=max(0.1, near - SLACK), num_perm=PERMUTATIONS)
        self._nearest = Nearest(embedder.dim) if embedder else None
        self._embedded = "", np.zeros(0, np.float32)
        self._tasks: dict[str, Asked] = {}
        self._order: dict[str, int] = {}
        self._of_kind: dict[str, list[str]] = {}
        self._templates = Templates()

    def add(self, one: Asked) -> None:
        if one.id in self._tasks:
            return
        self._tasks[one.id], self._order[one.id] = one, len(self._order)
        self._of_kind.setdefault(one.kind, []).append(one.id)
        if self._nearest is not None:
            self._nearest.add([one.id], self._vector(one)[None])
        if self._templates.add(one.kind, np.concatenate([one.words, one.chars])):
            for other in self._of_kind[one.kind][:-1]:
                self._lsh.remove(other)
            for other in self._of_kind[one.kind]:
                self._lsh.insert(other, self._sketch(self._tasks[other]))
        else:
            self._lsh.insert(one.id, self._sketch(one))

    def twin(self, one: Asked) -> Twin | None:
        """The most alike of the earlier tasks that ask the same; the first of equals."""
        found = [twin for other, cosine in self._candidates(one) if (twin := self._compared(one, other, cosine))]
        return max(found, key=lambda twin: twin.value, default=None)

    def _candidates(self, one: Asked) -> Iterator[tuple[Asked, float]]:
        cosines: dict[str, float] = {}
        if self._nearest is not None and len(self._nearest):
            near = self._nearest.query(self._vector(one), NEIGHBOURS)
            cosines = {other: cosine for other, cosine in near if cosine >= self._similar}
        likely = {*self._lsh.query(self._sketch(one)), *cosines}
        for other in sorted(likely, key=self._order.__getitem__):
            yield self._tasks[other], cosines.get(other, 0.0)

    def _vector(self, one: Asked) -> NDArray[np.float32]:
        """Of the task that is looked at and then added, once."""
        assert self._embedder is not None
        if self._embedded[0] != one.text:
            self._embedded = one.text, self._embedder.embed([one.text])[0]
        return self._embedded[1]

    def _compared(self, one: Asked, other: Asked, cosine: float) -> Twin | None:
        words = self._alike(one, other, one.words, other.words)
        value = max(words, self._alike(one, other, one.chars, other.chars))
        if _agree(one.answers, other.answers):
            if value >= self._near:
                return Twin(other=other, measure="minhash", value=value)
            akin = value >= HALF and one.telling == other.telling and one.concept == other.concept
            return Twin(other=other, measure="embedding", value=cosine) if akin and cosine >= self._similar else None
        same = one.options == other.options and _plain(one.text) == _plain(other.text)
        return Twin(other=other, measure="same", value=1.0) if same else None

    def _alike(self, one: Asked, other: Asked, mine: Hashes, theirs: Hashes) -> float:
        """Jaccard similarity without the template that both have. Without anything else they are the same."""
        shared = both(mine, theirs)
        given = len(both(shared, self._templates.of(one.kind)))
        rest = len(mine) + len(theirs) - len(shared) - given
        return (len(shared) - given) / rest if rest else 1.0

    def _sketch(self, one: Asked) -> Any:
        template = self._templates.of(one.kind)
        own = np.setdiff1d(one.words, template, assume_unique=True)
        sketch = self._blank.copy()
        sketch.update_batch((own if len(own) else one.words).tolist())
        return sketch


def _folded(value: int) -> int:
    """32 of a hash's 64 bits: what MinHash permutes."""
    return value & 0xFFFFFFFF


def _agree(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether any spelling is in both, or two long answers are nearly the same."""
    if mine & theirs:
        return True
    one, other = (_SYMBOL.findall(max(side, key=len, default="")) for side in (mine, theirs))
    a, b = set(pairwise(one)), set(pairwise(other))
    return min(len(one), len(other)) >= LONG_ANSWER and len(a & b) >= SAME_ANSWER * len(a | b)
