"""Is this concept in the graph already? A cascade of rules, each cheaper and surer than the next.

    key       the same normalised name, or an alias of either
    acronym   "BST" <-> "binary search tree", "LRU cache" <-> "least recently used cache"
    lexical   spelling variants: "hash map" / "hashmap", "-ise" / "-ize", "X of Y" / "Y X", a typing error
    vector    nearest neighbours by the embedding of "name: definition"

No one threshold on embeddings separates synonyms from siblings ("left join" / "right join": 0.95, "hash table" / "hash
map": 0.88), so names are compared as well: identifiers match by key only, names with other digits never, a name that
contains the other is narrower, and two modifiers of one head are siblings. What stays uncertain is returned in
`needs_judge`; unless someone judges it, it is new, because a duplicate can still be merged later and a wrong match not undone.

The same name with a clearly other meaning becomes a new concept with a `sense`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kgsynth.concept import Concept, Decision, merge_unique, name_key
from kgsynth.embed import Embedder
from kgsynth.nearest import Nearest
from kgsynth.store.change import absorb

RECENT = 4096  # vectors of candidates kept between `prepare`, `align` and `add`


@dataclass(frozen=True, kw_only=True)
class DedupConfig:
    """Thresholds on the cosine of "name: definition" embeddings, for all-MiniLM-L6-v2 ([grow.dedup] in a recipe).

    Chosen on the even rows of `tests/dedup_pairs.py`; measured on the odd ones in docs/graph.md.
    """

    same: float = 0.87  # at least this, and no name rule against it: the same concept
    different: float = 0.70  # below this a neighbour is not worth a judgement
    sense: float = 0.45  # same name, one domain, both defined, below this: another meaning
    sense_across: float = 0.52  # the same between two domains
    acronym: float = 0.45  # an acronym that fits but whose definition is further away is another one's
    typo: float = 0.60  # one wrong letter counts as an error only if the definitions are this close
    neighbours: int = 5  # looked at


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """The answer for one candidate."""

    match: Concept | None  # the equivalent concept in the graph, as it stands there
    concept: (
        Concept  # what to write: the match with the candidate's names added, or the candidate, with a sense if needed
    )
    decision: Decision  # which rule decided, on which evidence
    similarity: float  # cosine to the match, or to the nearest neighbour; 0 when the graph is empty
    needs_judge: list[tuple[Concept, float]] = field(default_factory=list)  # uncertain neighbours, nearest first


class Dedup:
    """The concepts of a graph, indexed for `align`. Deterministic: depends on what was added in which order, only."""

    def __init__(self, embedder: Embedder, config: DedupConfig = DedupConfig()) -> None:
        self.config, self._embedder = config, embedder
        self._semantic = not embedder.name.startswith("hashing")  # else cosines are about spelling: no vector rules
        self._concepts: dict[str, Concept] = {}
        self._keys: dict[str, dict[str, None]] = {}  # name_key of names and aliases -> concept ids
        self._forms: dict[str, dict[str, None]] = {}  # spelling_forms -> ids
        self._shortened: dict[str, dict[str, None]] = {}  # every way to abbreviate a name -> ids
        self._near = Nearest(embedder.dim)
        self._recent: dict[str, NDArray[np.float32]] = {}  # text -> vector

    def __len__(self) -> int:
        return len(self._concepts)

    def add(self, *concepts: Concept) -> None:
        """Index concepts, or what is new about known ones. Texts are embedded in one batch."""
        stale = {}
        for concept in concepts:
            old = self._concepts.get(concept.id)
            new = absorb(old, concept) if old else concept
            self._concepts[new.id] = new
            self._index(new)
            if old is None or old.definition != new.definition:
                stale[new.id] = _text(new)
        self._near.add(list(stale), self._vectors(list(stale.values())))

    def vectors(self) -> tuple[list[str], NDArray[np.float32]]:
        """(concept ids, their vectors [N, dim]) in the order in which they were added."""
        return self._near.vectors()

    def prepare(self, candidates: Iterable[Concept]) -> None:
        """Embed candidates ahead of `align`, in one batch. May run in another thread; saves time and changes nothing."""
        self._vectors([_text(tidied(c)) for c in candidates])

    def align(self, candidate: Concept) -> Alignment:
        """Find the candidate's equivalent. Changes nothing: `add` the outcome once it is committed."""
        query = _Query(tidied(candidate), self._vectors([_text(tidied(candidate))])[0])
        for rule in (self._by_key, self._by_acronym, self._by_spelling, self._by_vector):
            if (alignment := rule(query)) is not None:
                return alignment
        return self._new(query)

    # the cascade

    def _by_key(self, query: _Query) -> Alignment | None:
        hits = list(self._lookup(self._keys, query.candidate.keys))
        own = [c for c in hits if name_key(tidied(c).name) == name_key(query.candidate.name)]
        if known := next((c for c in own if c.id == query.candidate.id and query.candidate.sense), None):
            return self._match(query, known, "exact", "same name and sense")
        for concept in self._nearest_first(query, own):
            if self._same_sense(query, concept):
                return self._match(query, concept, "exact", "same name")
        if own:
            return self._other_sense(query, own)
        for concept in self._nearest_first(query, hits):
            if _relation(query, concept) in {"open", "sibling"} and self._same_sense(query, concept):
                return self._match(query, concept, "alias", "one is an alias of the other")
            self._doubt(query, concept)
        return None

    def _by_acronym(self, query: _Query) -> Alignment | None:
        name = query.candidate.name
        short = [name_key(name)] if has_acronym(name) else []
        fits = [c for c in self._lookup(self._shortened, short) if not has_acronym(c.name)]
        fits += [c for c in self._lookup(self._keys, abbreviations(name)) if has_acronym(c.name)]
        near = [c for c in self._nearest_first(query, fits) if self._close(query, c, self.config.acronym)]
        if len(near) == 1:
            return self._match(query, near[0], "acronym", "one abbreviates the other")
        for concept in near:
            self._doubt(query, concept)
        return None

    def _by_spelling(self, query: _Query) -> Alignment | None:
        if is_identifier(query.candidate.name):
            return None
        variants = [
            c for c in self._lookup(self._forms, spelling_forms(query.candidate.name)) if not is_identifier(c.name)
        ]
        for concept in self._nearest_first(query, variants):
            if self._same_sense(query, concept):
                return self._match(query, concept, "lexical", "a spelling of the same name")
            self._doubt(query, concept)
        for concept in self._neighbours(query):
            if is_typo(query.candidate.name, concept.name):
                both_defined = bool(query.candidate.definition and concept.definition)
                if both_defined and self._close(query, concept, self.config.typo):
                    return self._match(query, concept, "lexical", "one letter apart, with close definitions")
                self._doubt(query, concept)
        return None

    def _by_vector(self, query: _Query) -> Alignment | None:
        if not self._semantic:
            return None
        for concept in self._neighbours(query):
            similarity, how = self._similarity(query, concept), _relation(query, concept)
            if similarity < self.config.different:
                break
            if similarity >= self.config.same and how == "open":
                return self._match(query, concept, "vector", "name and definition mean the same")
            if how == "open" or (how == "sibling" and similarity >= self.config.same):
                self._doubt(query, concept)
        return None

    # what the rules ask

    def _same_sense(self, query: _Query, concept: Concept) -> bool:
        if is_identifier(query.candidate.name):
            return True
        if query.candidate.sense and concept.sense and name_key(query.candidate.sense) != name_key(concept.sense):
            return False
        one_domain = query.candidate.domain == concept.domain
        return self._close(query, concept, self.config.sense if one_domain else self.config.sense_across)

    def _close(self, query: _Query, concept: Concept, least: float) -> bool:
        """Not clearly different: a missing definition, or an embedder without meaning, is no evidence against."""
        if not (self._semantic and query.candidate.definition and concept.definition):
            return True
        return self._similarity(query, concept) >= least

    def _similarity(self, query: _Query, concept: Concept) -> float:
        return float(self._near.vector(concept.id) @ query.vector)

    def _neighbours(self, query: _Query) -> list[Concept]:
        """The nearest concepts, nearest first, ties in the order of insertion."""
        if query.neighbours is None:
            nearest = self._near.query(query.vector, self.config.neighbours)
            query.neighbours = [self._concepts[i] for i, _ in nearest]
        return query.neighbours

    def _nearest_first(self, query: _Query, concepts: Iterable[Concept]) -> list[Concept]:
        return sorted(merge_unique((), concepts), key=lambda c: -self._similarity(query, c))

    def _lookup(self, index: dict[str, dict[str, None]], keys: Iterable[str]) -> Iterator[Concept]:
        found = dict.fromkeys(i for key in keys for i in index.get(key, ()))
        return (self._concepts[i] for i in found)

    # answers

    def _doubt(self, query: _Query, concept: Concept) -> None:
        query.uncertain[concept.id] = (concept, round(self._similarity(query, concept), 4))

    def _match(self, query: _Query, match: Concept, outcome: str, reason: str) -> Alignment:
        similarity = round(self._similarity(query, match), 4)
        evidence = (("neighbour", match.name), ("similarity", similarity))
        decision = Decision(
            kind="dedup", subject=query.candidate.name, outcome=outcome, reason=reason, evidence=evidence
        )
        concept = absorb(match, query.candidate)
        return Alignment(match=match, concept=concept, decision=decision, similarity=similarity)

    def _new(
        self, query: _Query, outcome: str = "new", reason: str = "nothing in the graph means the same"
    ) -> Alignment:
        nearest = next(iter(self._neighbours(query)), None)
        similarity = round(self._similarity(query, nearest), 4) if nearest else 0.0
        evidence = (("neighbour", nearest.name), ("similarity", similarity)) if nearest else ()
        if query.uncertain:
            reason = "no rule says that it means the same as its neighbours, and nobody judged"
            evidence += (("uncertain", tuple(c.name for c, _ in query.uncertain.values())),)
        free = tuple(a for a in query.candidate.aliases if name_key(a) not in self._keys)
        decision = Decision(
            kind="dedup", subject=query.candidate.name, outcome=outcome, reason=reason, evidence=evidence
        )
        return Alignment(
            match=None, concept=replace(query.candidate, aliases=free), decision=decision, similarity=similarity,
            needs_judge=sorted(query.uncertain.values(), key=lambda pair: -pair[1]),
        )  # fmt: skip

    def _other_sense(self, query: _Query, own: list[Concept]) -> Alignment:
        """The name is taken by other meanings: the candidate gets a sense, or is the known concept of that sense."""
        sense = query.candidate.sense or _qualifier(query.candidate, own[0])
        query.candidate = replace(query.candidate, sense=sense)
        if known := self._concepts.get(query.candidate.id):
            return self._match(query, known, "exact", f"same name and sense ({sense})")
        return self._new(query, "sense", f"the name is taken by another meaning; this one is {sense!r}")

    # the indexes

    def _index(self, concept: Concept) -> None:
        plain = tidied(concept)
        for index, keys in (
            (self._keys, (*concept.keys, *plain.keys)),
            (self._forms, spelling_forms(plain.name)),
            (self._shortened, abbreviations(plain.name)),
        ):
            for key in keys:
                index.setdefault(key, {})[concept.id] = None

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        """[N, dim], from the last few thousand texts embedded or anew."""
        if missing := [t for t in dict.fromkeys(texts) if t not in self._recent]:
            self._recent |= dict(zip(missing, self._embedder.embed(missing), strict=True))
        found = [self._recent[t] for t in texts]
        for text in list(self._recent)[: max(0, len(self._recent) - RECENT - len(texts))]:
            self._recent.pop(text, None)
        return np.stack(found) if found else np.zeros((0, self._embedder.dim), np.float32)


@dataclass
class _Query:
    """One candidate on its way through the cascade."""

    candidate: Concept
    vector: NDArray[np.float32]
    neighbours: list[Concept] | None = None
    uncertain: dict[str, tuple[Concept, float]] = field(default_factory=dict)


def _relation(query: _Query, concept: Concept) -> str:
    return relation(query.candidate.name, tidied(concept).name)


def _text(concept: Concept) -> str:
    return f"{concept.name}: {concept.definition}" if concept.definition else concept.name


# names


def tidied(concept: Concept) -> Concept:
    """ "binary search tree (BST)" has an alias, "set (mathematics)" a sense; "print()" is left as it is."""
    parts = re.fullmatch(r"(.*\w)\s+\(([^()]+)\)", concept.name.strip())
    if not parts:
        return concept
    name, inner = parts.groups()
    if name_key(inner) in abbreviations(name) or name_key(name) in abbreviations(inner):
        return replace(concept, name=name, aliases=merge_unique((inner,), concept.aliases))
    return replace(concept, name=name, sense=concept.sense or inner)


def is_identifier(name: str) -> bool:
    """Code or a word with inner structure ("heapq.merge", "__init__", "OrderedDict", "C++"): spelt in one way only."""
    return bool(re.search(r"[^\w\s'’,/()‐‑–—-]|_|\.\w|\w\(|[a-z][A-Z]", name))


def has_acronym(name: str) -> bool:
    return any(re.fullmatch(r"[A-Z][A-Z0-9]{1,6}s?", word) for word in re.split(r"[\s\-/]+", name))


def abbreviations(name: str) -> list[str]:
    """Every key that arises when a run of two or more words is replaced by its initials.

    >>> abbreviations("binary search tree")
    ['bs tree', 'bst', 'binary st']
    """
    words = name_key(name).split()
    if not 2 <= len(words) <= 8:
        return []
    runs = combinations(range(len(words) + 1), 2)
    short = (
        [*words[:start], "".join(word[0] for word in words[start:stop]), *words[stop:]]
        for start, stop in runs
        if stop - start > 1
    )
    return [name_key(" ".join(parts)) for parts in short]


IRREGULAR = {
    "matrice": "matrix",
    "vertice": "vertex",
    "indice": "index",
    "automata": "automaton",
    "criteria": "criterion",
}
GENERIC = (" algorithm", " data structure")  # "merge sort algorithm" is merge sort


def words_of(name: str) -> list[str]:
    """The words of a name without spelling differences: singular, -ize, -or, "X of Y" turned into "Y X"."""
    text = re.sub(r"['’]s?\b", "", name_key(name))
    text = re.sub(r"^([\w ]+?) of ([\w ]+)$", r"\2 \1", text)
    return [_plain(IRREGULAR.get(name_key(word), name_key(word))) for word in text.split()]


def _plain(word: str) -> str:
    if len(word) < 6:
        return word
    word = re.sub(r"is(e|ed|er|ing|ation)$", r"iz\1", word)
    return re.sub(r"our(ed|al)?$", r"or\1", word)


def spelling_forms(name: str) -> list[str]:
    """The strings that stand for all spellings of a name: without spaces, and without a generic last word too.

    >>> spelling_forms("merge-sort algorithm"), spelling_forms("mergesort"), spelling_forms("Heap's algorithm")
    (['mergesortalgorithm', 'mergesort'], ['mergesort'], ['heapalgorithm'])
    """
    text = " ".join(words_of(name))
    forms = [text]
    if not re.search(r"['’]", name):  # Heap's algorithm is not about heaps
        forms += [text.removesuffix(g) for g in GENERIC if text.endswith(g)]
    return [form.replace(" ", "") for form in forms]


def is_typo(a: str, b: str) -> bool:
    """One letter added, left out, changed or swapped with the next one, in one word of eight letters or more, not its first."""
    if is_identifier(a) or is_identifier(b):
        return False
    ours, theirs = words_of(a), words_of(b)
    differing = [(x, y) for x, y in zip(ours, theirs, strict=False) if x != y]
    if len(ours) != len(theirs) or len(differing) != 1:
        return False
    x, y = sorted(differing[0], key=len)
    return len(x) >= 7 and len(y) >= 8 and x[0] == y[0] and (x.isalpha() and y.isalpha()) and _one_edit(x, y)


def _one_edit(x: str, y: str) -> bool:
    """len(x) <= len(y), x != y."""
    at = next((i for i, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), len(x))
    if len(x) < len(y):
        return x[at:] == y[at + 1 :]
    return len(x) == len(y) and (
        x[at + 1 :] == y[at + 1 :] or (x[at + 2 :] == y[at + 2 :] and x[at : at + 2] == y[at : at + 2][::-1])
    )


def relation(a: str, b: str) -> str:
    """What two names alone say: "identifier", "digits" and "narrower" exclude sameness, "sibling" speaks against it."""
    if is_identifier(a) or is_identifier(b):
        return "identifier"
    if re.findall(r"\d+", a) != re.findall(r"\d+", b):
        return "digits"
    ours, theirs = words_of(a), words_of(b)
    if set(ours) < set(theirs) or set(theirs) < set(ours):
        return "narrower"
    return "sibling" if ours[-1:] == theirs[-1:] and min(len(ours), len(theirs)) > 1 else "open"


STOPWORDS = frozenset(
    "with that this from which into when where only other more used uses using each than them they".split()
)


def _qualifier(candidate: Concept, other: Concept) -> str:
    """A sense that tells the candidate from `other`: its domain, else the first telling words of its definition."""
    if name_key(candidate.domain) != name_key(other.domain):
        return candidate.domain
    words = [w for w in re.findall(r"[a-z]+", candidate.definition.lower()) if len(w) > 3 and w not in STOPWORDS]
    return " ".join([w for w in words if w not in name_key(candidate.name).split()][:2]) or "other"
