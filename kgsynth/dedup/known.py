"""The concepts of a graph, indexed by everything that `Dedup` looks them up by."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgsynth.concept import Concept
from kgsynth.dedup.definitions import Definitions
from kgsynth.dedup.names import abbreviations, is_identifier, spelling_forms, tidied, typo_keys
from kgsynth.embed import Embedder
from kgsynth.nearest import Nearest
from kgsynth.store.change import absorb

RECENT = 8192  # vectors of texts kept between `prepare`, `align` and `add`

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Vectors:
    """Unit vectors [dim] of one concept. whole: the direction of name + definition, or the name's when that is all."""

    name: Vector
    definition: Vector | None
    whole: Vector


class Embedded:
    """Texts embedded once, as long as they are among the last few thousand."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._recent: OrderedDict[str, Vector] = OrderedDict()

    def texts(self, texts: Iterable[str]) -> dict[str, Vector]:
        """text -> unit vector. New ones are embedded in one batch."""
        wanted = dict.fromkeys(texts)
        missing = [text for text in wanted if text not in self._recent]
        if missing:
            self._recent |= zip(missing, self._embedder.embed(missing), strict=True)
        found = {text: self._recent[text] for text in wanted}
        while len(self._recent) > RECENT + len(wanted):
            self._recent.popitem(last=False)
        return found

    def concepts(self, concepts: Sequence[Concept]) -> list[Vectors]:
        found = self.texts(text for c in concepts for text in (c.name, c.definition) if text)
        return [_together(found[c.name], found[c.definition] if c.definition else None) for c in concepts]


def _together(name: Vector, definition: Vector | None) -> Vectors:
    if definition is None:
        return Vectors(name, None, name)
    whole = name + definition
    norm = float(np.sqrt(whole @ whole))
    return Vectors(name, definition, whole / np.float32(norm) if norm > 1e-6 else definition)


class Index:
    """key -> concept ids, in the order of insertion."""

    def __init__(self) -> None:
        self._ids: dict[object, dict[str, None]] = {}

    def add(self, keys: Iterable[object], concept_id: str) -> None:
        for key in keys:
            self._ids.setdefault(key, {})[concept_id] = None

    def remove(self, keys: Iterable[object], concept_id: str) -> None:
        for key in keys:
            if (ids := self._ids.get(key)) is not None:
                ids.pop(concept_id, None)
                if not ids:
                    del self._ids[key]

    def ids(self, keys: Iterable[object]) -> list[str]:
        return list(dict.fromkeys(i for key in keys for i in self._ids.get(key, ())))

    def __contains__(self, key: object) -> bool:
        return key in self._ids


class Known:
    """Concepts by id, and the indexes over them. Depends on what was added and removed in which order, only."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedded = Embedded(embedder)
        self.concepts: dict[str, Concept] = {}
        self.plain: dict[str, Concept] = {}  # tidied
        self.keys, self.forms, self.shortened, self.typos = Index(), Index(), Index(), Index()
        self.definitions = Definitions()
        self.near = Nearest(embedder.dim)
        self.vectors: dict[str, Vectors] = {}

    def add(self, concepts: Iterable[Concept]) -> None:
        """Index concepts, or what is new about known ones."""
        stale: dict[str, Concept] = {}
        for concept in concepts:
            old = self.concepts.get(concept.id)
            new = absorb(old, concept) if old else concept
            if new == old:
                continue
            self._index(new.id, new)
            if old is None or old.definition != new.definition:
                stale[new.id] = self.plain[new.id]
        if stale:
            found = self.embedded.concepts(list(stale.values()))
            self.vectors |= zip(stale, found, strict=True)
            self.near.add(list(stale), np.stack([v.whole for v in found]))

    def remove(self, concept_ids: Iterable[str]) -> None:
        """Forget concepts; ids that are not known are passed over."""
        gone = [i for i in dict.fromkeys(concept_ids) if i in self.concepts]
        for concept_id in gone:
            for index, keys in self._entries(self.concepts.pop(concept_id), self.plain.pop(concept_id)):
                index.remove(keys, concept_id)
            self.definitions.remove(concept_id)
            del self.vectors[concept_id]
        self.near.remove(gone)

    def _index(self, concept_id: str, concept: Concept) -> None:
        self.concepts[concept_id] = concept
        self.plain[concept_id] = plain = tidied(concept)
        for index, keys in self._entries(concept, plain):
            index.add(keys, concept_id)
        if concept.definition and concept_id not in self.definitions:
            self.definitions.add(concept_id, concept.definition)

    def _entries(self, concept: Concept, plain: Concept) -> list[tuple[Index, Iterable[object]]]:
        """What stands in the indexes for a concept. Grows with what is learnt about it, and never shrinks."""
        coded = is_identifier(plain.name)
        return [
            (self.keys, concept.keys if plain is concept else (*concept.keys, *plain.keys)),
            (self.forms, () if coded else spelling_forms(plain.name)),
            (self.shortened, abbreviations(plain.name)),
            (self.typos, () if coded else typo_keys(plain.name)),
        ]
