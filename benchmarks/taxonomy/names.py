"""Which true concept a name means: for the server that reads a question, and for the score that reads a graph.

A name may be a label, a name that the noise has used for a concept, or a synonym, of several concepts at once. What else is
known decides, as far as it goes: the very spelling, the definition, the names of the concepts above, the domain; then a label
counts for more than a used name, and that for more than a synonym.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from benchmarks.taxonomy.truth import Taxonomy
from kgsynth.concept import name_key

LABEL, USED, SYNONYM = range(3)


class Names:
    """`used` are (true concept, name) pairs beyond labels and synonyms."""

    def __init__(self, taxonomy: Taxonomy, used: Iterable[tuple[str, str]] = ()) -> None:
        self.taxonomy = taxonomy
        self._ranks: dict[str, dict[str, int]] = {}  # name_key -> concept -> how it comes by the name
        self._spelt: dict[str, set[str]] = {}  # as written -> concepts
        self._keys: dict[str, set[str]] = {}  # concept -> name_keys
        for concept in taxonomy:
            self._put(concept.id, concept.label, LABEL)
            for synonym in concept.synonyms:
                self._put(concept.id, synonym, SYNONYM)
        for concept, name in used:
            self._put(concept, name, USED)

    def _put(self, concept: str, name: str, rank: int) -> None:
        key = name_key(name)
        ranks = self._ranks.setdefault(key, {})
        ranks[concept] = min(rank, ranks.get(concept, rank))
        self._spelt.setdefault(name, set()).add(concept)
        self._keys.setdefault(concept, set()).add(key)

    def owners(self, name: str) -> Collection[str]:
        """The concepts that answer to a name."""
        return self._ranks.get(name_key(name), {}).keys()

    def titled(self, concept: str, name: str) -> bool:
        """Whether the name is its label."""
        return self._ranks[name_key(name)][concept] == LABEL

    def meant(self, name: str, definition: str = "", above: Iterable[str] = (), domain: str = "") -> str | None:
        """The true concept of that name; None when there is none. `above`: names of its parents."""
        ranks = self._ranks.get(name_key(name), {})
        if len(ranks) < 2:
            return next(iter(ranks), None)
        spelt, keys, truth = self._spelt.get(name, set()), {name_key(a) for a in above}, self.taxonomy
        tests: list[Callable[[str], bool]] = [
            lambda c: same_text(truth[c].definition, definition),
            lambda c: any(not keys.isdisjoint(self._keys[p]) for p in truth[c].parents),
            lambda c: truth.domains[c] == domain,
            lambda c: c in spelt,
        ]
        left = list(ranks)
        for test in tests:
            left = [c for c in left if test(c)] or left
        return min(left, key=lambda c: ranks[c])


def same_text(whole: str, told: str) -> bool:
    """Whether a definition was told, in full or cut short."""
    return bool(told) and whole.startswith(told.removesuffix("…").rstrip())
