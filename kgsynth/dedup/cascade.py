"""The rules, in their order. See the package for what they are about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgsynth.concept import Concept, Decision, name_key
from kgsynth.dedup.definitions import NONE, Overlap
from kgsynth.dedup.known import Index, Known, Vectors
from kgsynth.dedup.names import (
    ADD_NOTHING,
    abbreviations,
    has_acronym,
    is_code,
    is_identifier,
    is_typo,
    relation,
    share_a_word,
    spelling_forms,
    tidied,
    typo_keys,
    words_of,
)
from kgsynth.embed import Embedder
from kgsynth.store.change import absorb

LATIN_UP_TO = "\u024f"  # the last letter of Latin Extended-B
FREE = ("open", "wordier")  # names that say nothing for or against


@dataclass(frozen=True, kw_only=True)
class DedupConfig:
    """Thresholds ([grow.dedup] in a recipe): cosines of all-MiniLM-L6-v2, and shares of the words of definitions.

    Chosen on the even pairs of `benchmarks/dedup_quality.py`; measured on the odd ones in docs/graph.md.
    """

    same: float = 0.87  # cosine of name and definition together: the same, unless a rule speaks against it
    same_name: float = 0.6  # and of the names
    same_definition: float = 0.8  # and of the definitions
    different: float = 0.70  # below this a neighbour is not worth a judgement
    sense: float = 0.36  # same name, one domain, definitions further apart than this: another meaning
    sense_across: float = 0.55  # the same between two domains
    sure: float = 0.7  # same name, one domain, definitions at least as close as this: nothing to confirm
    sure_across: float = 0.9  # the same between two domains
    qualified: float = 0.75  # definitions of a name with a qualifier and of the bare name: the same from here on
    acronym: float = 0.35  # an acronym that fits but whose definition is further away is another one's
    typo: float = 0.60  # one wrong letter counts as an error only if the definitions are this close,
    typo_shared: float = 0.3  # or share this much of their words
    # Of the words of two definitions of which one adds nothing to the other: how many they share, and how much of all by weight.
    words: int = 3  # at least, to know a concept by them
    rare: float = 0.7  # so rare that two of them are enough, in a graph of `large`
    large: int = 300
    many_words: int = 4  # enough where names are free to differ, and for the same text under names with one head
    full: int = 6  # enough where one name has all words of the other
    perhaps: float = 0.25  # at least this to be the same with many words under free names; else to be judged
    half: float = 0.5  # with few words
    mostly: float = 0.65  # under names with one head, or of which one has all words of the other
    nearly_all: float = 0.84  # whatever words the rest may be
    all_but: float = 0.9  # with few words under names of which one has all words of the other
    neighbours: int = 5  # looked at
    judged: int = 2  # neighbours put to a judge at most


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """The answer for one candidate."""

    match: Concept | None  # the equivalent concept in the graph, as it stands there
    concept: (
        Concept  # what to write: the match with the candidate's names added, or the candidate, with a sense if needed
    )
    decision: Decision  # which rule decided, on which evidence
    similarity: float  # cosine to the match, or to the nearest neighbour; 0 when there is none
    needs_judge: list[tuple[Concept, float]] = field(default_factory=list)  # uncertain neighbours, likeliest first
    otherwise: Concept | None = (
        None  # with a match to be confirmed (it is in needs_judge): what to write if it is not the same
    )


class Dedup:
    """The concepts of a graph, indexed for `align`. Deterministic: depends on what was added in which order, only."""

    def __init__(self, embedder: Embedder, config: DedupConfig = DedupConfig()) -> None:
        self.config = config
        self._known = Known(embedder)
        self._english = "minilm" in embedder.name.lower() and "multilingual" not in embedder.name.lower()
        self._semantic = not embedder.name.startswith("hashing")  # else cosines are about spelling: no vector rules

    def __len__(self) -> int:
        return len(self._known.concepts)

    def add(self, *concepts: Concept) -> None:
        """Index concepts, or what is new about known ones. Texts are embedded in one batch, unless `prepare` did so."""
        self._known.add(concepts)

    def forget(self, concept_ids: Iterable[str]) -> None:
        """Concepts that are gone from the graph, removed or folded into others. Unknown ids are passed over."""
        self._known.remove(concept_ids)

    def vectors(self) -> tuple[list[str], NDArray[np.float32]]:
        """(concept ids, their vectors [N, dim]) in the order in which they were added: name + definition, length 1."""
        return self._known.near.vectors()

    def prepare(self, candidates: Iterable[Concept]) -> None:
        """Embed candidates ahead of `align`, in one batch. May run in another thread; saves time and changes nothing."""
        self._known.embedded.concepts([tidied(c) for c in candidates])

    def align(self, candidate: Concept, among: Collection[str] | None = None) -> Alignment:
        """Find the candidate's equivalent, with `among` only among these ids. Changes nothing: `add` what is committed.

        `needs_judge` of a match holds that match: the name is the same and the meaning might not be. It stands unless a
        judge says that they differ; then `otherwise` is what to write. Without a match, nobody in `needs_judge` is the
        same unless a judge says so.
        """
        query = _Query(candidate, self._known, self.config.neighbours, among)
        for rule in (self._by_key, self._by_definition, self._by_acronym, self._by_spelling, self._by_vector):
            if (alignment := rule(query)) is not None:
                return alignment
        return self._new(query)

    def scores(self, candidate: Concept, concept_id: str) -> dict[str, Any]:
        """What the evidence of a decision about these two would be."""
        return dict(_Query(candidate, self._known, self.config.neighbours).evidence(concept_id)[1:])

    # the cascade

    def _by_key(self, query: _Query) -> Alignment | None:
        hits = query.found(self._known.keys, query.candidate.keys)
        key = name_key(query.candidate.name)
        own = [i for i in hits if name_key(self._known.plain[i].name) == key]
        for written in (query.given, query.candidate):
            if query.candidate.sense and written.id in own:
                return self._match(query, written.id, "exact", "same name and sense")
        own = query.nearest_first(own)
        if own and (told := self._told_again(query, own)) is not None:
            return told
        if own and query.candidate.sense and (renamed := self._by_definition(query)) is not None:
            return renamed
        for concept_id in own:
            if self._same_sense(query, concept_id):
                return self._match(query, concept_id, "exact", "same name", confirm=not self._surely(query, concept_id))
        if own:
            return self._by_definition(query) or self._other_sense(query, own)
        for concept_id in query.nearest_first(hits):
            if query.relation(concept_id) in (*FREE, "sibling") and self._same_sense(query, concept_id):
                return self._match(query, concept_id, "alias", "one is an alias of the other")
            query.doubt(concept_id)
        return None

    def _told_again(self, query: _Query, own: Sequence[str]) -> Alignment | None:
        """The same definition, under the name itself or under another: whoever has it is meant."""
        for concept_id in own:
            if is_identifier(query.candidate.name):
                return self._match(query, concept_id, "exact", "same name")
            senses = query.candidate.sense, self._known.plain[concept_id].sense
            if query.overlap(concept_id).same and not (all(senses) and name_key(senses[0]) != name_key(senses[1])):
                return self._match(query, concept_id, "exact", "same name", confirm=any(senses) and not all(senses))
        same = any(query.overlap(i).same for i in query.told_alike)
        return self._by_definition(query) if same else None

    def _by_acronym(self, query: _Query) -> Alignment | None:
        name = query.candidate.name
        concepts = self._known.concepts
        fits: list[str] = []
        if has_acronym(name):
            fits += [
                i for i in query.found(self._known.shortened, [name_key(name)]) if not has_acronym(concepts[i].name)
            ]
        fits += [i for i in query.found(self._known.keys, abbreviations(name)) if has_acronym(concepts[i].name)]
        near = [i for i in query.nearest_first(fits) if self._abbreviates(query, i)]
        if len(near) == 1:
            sure = self._defined(query, near[0]) and self._close(query, near[0], self.config.sure)
            return self._match(query, near[0], "acronym", "one abbreviates the other", confirm=not sure)
        for concept_id in near:
            query.doubt(concept_id)
        return None

    def _by_spelling(self, query: _Query) -> Alignment | None:
        name = query.candidate.name
        if is_identifier(name):
            return None
        for concept_id in query.nearest_first(query.found(self._known.forms, spelling_forms(name))):
            if self._same_sense(query, concept_id):
                return self._match(query, concept_id, "lexical", "a spelling of the same name")
            query.doubt(concept_id)
        for concept_id in query.found(self._known.typos, typo_keys(name)):
            if is_typo(name, self._known.plain[concept_id].name):
                close = query.cosines(concept_id).get("definition", 0.0) if self._semantic else 0.0
                if close >= self.config.typo or query.overlap(concept_id).shared >= self.config.typo_shared:
                    return self._match(query, concept_id, "lexical", "one letter apart, with close definitions")
                query.doubt(concept_id)
        return None

    def _by_definition(self, query: _Query) -> Alignment | None:
        """The same definition, or one that is a part of the other, under names that do not exclude each other."""
        if not query.candidate.definition:
            return None
        likely = [i for i in query.told_alike if self._tells_the_same(query, i)]
        if len(likely) == 1:
            whole = "the same definition" if query.overlap(likely[0]).same else "one definition is a part of the other"
            return self._match(query, likely[0], "definition", whole)
        for concept_id in likely or [i for i in query.told_alike if self._might_tell_the_same(query, i)]:
            query.doubt(concept_id)
        return None

    def _by_vector(self, query: _Query) -> Alignment | None:
        for concept_id in query.neighbours if self._semantic and not self._is_foreign(query.candidate) else ():
            how, cosines = query.relation(concept_id), query.cosines(concept_id)
            if cosines["similarity"] < self.config.different:
                break
            other_words = not share_a_word(query.candidate.name, self._known.plain[concept_id].name)
            if how in FREE and other_words and self._means_the_same(cosines):
                return self._match(query, concept_id, "vector", "name and definition mean the same")
            if self._might_mean_the_same(query, concept_id, how, cosines):
                query.doubt(concept_id)
        return None

    # what the rules ask

    def _abbreviates(self, query: _Query, concept_id: str) -> bool:
        """Initials fit many names: short ones and those of other domains need definitions that are close."""
        concept = self._known.plain[concept_id]
        if self._semantic and query.candidate.definition and concept.definition:
            return self._close(query, concept_id, self.config.acronym)
        short = min(len(query.candidate.name), len(concept.name)) < 3
        return query.candidate.domain == concept.domain and not short

    def _defined(self, query: _Query, concept_id: str) -> bool:
        return bool(query.candidate.definition and self._known.concepts[concept_id].definition)

    def _same_sense(self, query: _Query, concept_id: str) -> bool:
        concept = self._known.plain[concept_id]
        if query.overlap(concept_id).same:
            return True
        if query.candidate.sense and name_key(query.candidate.sense) != name_key(concept.sense):
            return not concept.sense and self._is_only_qualified(query, concept_id)
        one_domain = query.candidate.domain == concept.domain
        if self._tells_the_same(query, concept_id):
            return True
        return self._close(query, concept_id, self.config.sense if one_domain else self.config.sense_across)

    def _surely(self, query: _Query, concept_id: str) -> bool:
        """Whether two concepts of one name are the same beyond doubt."""
        if self._tells_the_same(query, concept_id):
            return True
        one_domain = query.candidate.domain == self._known.plain[concept_id].domain
        return self._close(query, concept_id, self.config.sure if one_domain else self.config.sure_across)

    def _is_only_qualified(self, query: _Query, concept_id: str) -> bool:
        """Whether the candidate's qualifier ("set (mathematics)") adds nothing to what is known under the bare name."""
        if not (query.candidate.definition and self._known.concepts[concept_id].definition):
            return True
        if self._tells_the_same(query, concept_id):
            return True
        return self._semantic and self._close(query, concept_id, self.config.qualified)

    def _close(self, query: _Query, concept_id: str, least: float) -> bool:
        """Not clearly different: a missing definition, or an embedder without meaning, is no evidence against."""
        if not (self._semantic and query.candidate.definition and self._known.concepts[concept_id].definition):
            return True
        return query.cosines(concept_id)["definition"] >= least

    def _tells_the_same(self, query: _Query, concept_id: str) -> bool:
        """The same definition; or one that is a part of the other, under names that leave it open what they mean."""
        overlap, config = query.overlap(concept_id), self.config
        if not overlap.part or overlap.words < 2 or not self._may_be(query, concept_id):
            return False
        how, n, shared = query.relation(concept_id), overlap.words, overlap.shared
        if overlap.same:
            few = len(self) >= config.large and overlap.rarity >= config.rare
            return n >= {"narrower": 2, "sibling": config.many_words}.get(how, 2 if few else config.words)
        if n < config.words:
            return False
        if how in FREE and shared >= config.nearly_all and n >= (config.full if overlap.agree else 2 * config.full):
            return True
        if not overlap.agree or query.tells_apart(concept_id, overlap):
            return False
        if how == "narrower":
            return shared >= config.all_but or (n >= config.full and shared >= config.mostly)
        if how == "sibling":
            return shared >= config.mostly
        return shared >= (config.perhaps if n >= config.many_words else config.half)

    def _might_tell_the_same(self, query: _Query, concept_id: str) -> bool:
        overlap = query.overlap(concept_id)
        if not (overlap.part and overlap.agree and overlap.words > 1) or not self._may_be(query, concept_id):
            return False
        free = query.relation(concept_id) in FREE or overlap.words >= self.config.many_words
        apart = query.tells_apart(concept_id, overlap)
        return overlap.shared >= (self.config.perhaps if free and not apart else self.config.half)

    def _may_be(self, query: _Query, concept_id: str) -> bool:
        how = query.relation(concept_id)
        return how not in {"symbols", "digits", "opposite"} and not (
            how == "identifier" and self._is_code(query, concept_id)
        )

    def _is_code(self, query: _Query, concept_id: str) -> bool:
        return is_code(query.candidate.name) or is_code(self._known.plain[concept_id].name)

    def _is_foreign(self, candidate: Concept) -> bool:
        """Whether an embedder that reads English takes the text for little but unknown words: to it they are all alike."""
        letters = [c for c in candidate.name + candidate.definition if c.isalpha()]
        return self._english and 2 * sum(c > LATIN_UP_TO for c in letters) > len(letters)

    def _means_the_same(self, cosines: dict[str, float]) -> bool:
        return (
            cosines["similarity"] >= self.config.same
            and cosines.get("name", 0.0) >= self.config.same_name
            and cosines.get("definition", 0.0) >= self.config.same_definition
        )

    def _might_mean_the_same(self, query: _Query, concept_id: str, how: str, cosines: dict[str, float]) -> bool:
        return cosines["similarity"] >= self.config.same and how in (*FREE, "sibling")

    # answers

    def _match(self, query: _Query, concept_id: str, outcome: str, reason: str, *, confirm: bool = False) -> Alignment:
        match, evidence = self._known.concepts[concept_id], query.evidence(concept_id)
        similarity = query.cosines(concept_id)["similarity"]
        return Alignment(
            match=match, concept=absorb(match, query.candidate), similarity=similarity,
            decision=_decision(query, outcome, reason, evidence),
            needs_judge=[(match, similarity)] if confirm else [],
            otherwise=query.written(self._with_sense(query, match)) if confirm else None,
        )  # fmt: skip

    def _new(
        self, query: _Query, outcome: str = "new", reason: str = "nothing in the graph means the same"
    ) -> Alignment:
        uncertain = query.uncertain[: self.config.judged]
        nearest = uncertain[0] if uncertain else query.nearest(self._semantic)
        evidence = query.evidence(nearest) if nearest else ()
        if uncertain:
            reason = "no rule says that it means the same as its neighbours, and nobody judged"
            evidence += (("uncertain", tuple(self._known.concepts[i].name for i in uncertain)),)
        free = tuple(a for a in query.candidate.aliases if name_key(a) not in self._known.keys)
        return Alignment(
            match=None, concept=replace(query.written(query.candidate), aliases=free), similarity=dict(evidence).get("similarity", 0.0),
            decision=_decision(query, outcome, reason, evidence),
            needs_judge=[(self._known.concepts[i], query.cosines(i)["similarity"]) for i in uncertain],
        )  # fmt: skip

    def _other_sense(self, query: _Query, own: Sequence[str]) -> Alignment:
        """The name is taken by other meanings: the candidate gets a sense of its own, or is the known concept of its sense."""
        if query.candidate.sense and query.candidate.id in self._known.concepts:
            return self._match(query, query.candidate.id, "exact", f"same name and sense ({query.candidate.sense})")
        query.candidate = self._with_sense(query, self._known.concepts[own[0]])
        reason = f"the name is taken by another meaning; this one is {query.candidate.sense!r}"
        return self._new(query, "sense", reason)

    def _with_sense(self, query: _Query, other: Concept) -> Concept:
        """The candidate with a sense that no concept of its name has."""
        if query.candidate.sense:
            return query.candidate
        named = (replace(query.candidate, sense=sense) for sense in _qualifiers(query.candidate, other))
        return next(concept for concept in named if concept.id not in self._known.concepts)


class _Query:
    """One candidate on its way through the cascade; what is worked out about it is worked out once."""

    def __init__(self, given: Concept, known: Known, k: int, among: Collection[str] | None = None) -> None:
        self.given, self.candidate = given, tidied(given)
        self._known, self._k, self._among = known, k, among
        self.uncertain: list[str] = []
        self._cosines: dict[str, dict[str, float]] = {}
        self._overlaps: dict[str, Overlap] = {}
        self._relations: dict[str, str] = {}

    def written(self, candidate: Concept) -> Concept:
        """What a new concept is called: a sense that was given in brackets stays a part of the name."""
        in_brackets = tidied(self.given).sense != self.given.sense
        return self.given if in_brackets and candidate.sense == tidied(self.given).sense else candidate

    def found(self, index: Index, keys: Iterable[object]) -> list[str]:
        """The ids under these keys that the candidate is compared with."""
        ids = index.ids(keys)
        return ids if self._among is None else [i for i in ids if i in self._among]

    @cached_property
    def vectors(self) -> Vectors:
        return self._known.embedded.concepts([self.candidate])[0]

    @cached_property
    def neighbours(self) -> list[str]:
        """The nearest by name and definition, nearest first, ties in the order of insertion."""
        if not self._known.concepts or self._among is not None:
            return list(self._among or ())
        return [i for i, _ in self._known.near.query(self.vectors.whole, self._k)]

    @cached_property
    def told_alike(self) -> list[str]:
        """Ids whose definitions share the most with the candidate's, the same ones first."""
        text = self.candidate.definition
        if not text or self._among is not None:
            return list(self._among or ()) if text else []
        return self._known.definitions.having(text) or self._known.definitions.nearest(text, self._k)

    def nearest(self, semantic: bool) -> str | None:
        return next(iter(self.neighbours if semantic else self.told_alike), None)

    def relation(self, concept_id: str) -> str:
        """What the two names say alone."""
        if concept_id not in self._relations:
            self._relations[concept_id] = relation(_in_full(self.candidate), _in_full(self._known.plain[concept_id]))
        return self._relations[concept_id]

    def tells_apart(self, concept_id: str, overlap: Overlap) -> bool:
        """Whether what only one definition says is in the name of that one (or in a word of it), and not in the other name."""
        ours, theirs = (" ".join(words_of(n)) for n in (self.candidate.name, self._known.plain[concept_id].name))
        sides = ((overlap.ours, ours, theirs), (overlap.theirs, theirs, ours))
        return any(w in own and w not in other for only, own, other in sides for w in only - ADD_NOTHING if len(w) > 2)

    def overlap(self, concept_id: str) -> Overlap:
        if not self.candidate.definition:
            return NONE
        if concept_id not in self._overlaps:
            self._overlaps[concept_id] = self._known.definitions.overlap(self.candidate.definition, concept_id)
        return self._overlaps[concept_id]

    def cosines(self, concept_id: str) -> dict[str, float]:
        """ "similarity" of name and definition together, "name", and "definition" where both have one."""
        if concept_id not in self._cosines:
            ours, theirs = self.vectors, self._known.vectors[concept_id]
            found = {"similarity": _cosine(ours.whole, theirs.whole), "name": _cosine(ours.name, theirs.name)}
            if ours.definition is not None and theirs.definition is not None:
                found["definition"] = _cosine(ours.definition, theirs.definition)
            self._cosines[concept_id] = found
        return self._cosines[concept_id]

    def nearest_first(self, concept_ids: Sequence[str]) -> Sequence[str]:
        if len(concept_ids) < 2:
            return concept_ids
        return sorted(dict.fromkeys(concept_ids), key=lambda i: -self.cosines(i)["similarity"])

    def doubt(self, concept_id: str) -> None:
        if concept_id not in self.uncertain:
            self.uncertain.append(concept_id)

    def evidence(self, concept_id: str) -> tuple[tuple[str, Any], ...]:
        """The neighbour, what the names say, and every score there is."""
        shared = self.overlap(concept_id)
        told = (("shared words", round(shared.shared, 4)),) if shared.words else ()
        how = (("neighbour", self._known.concepts[concept_id].name), ("names", self.relation(concept_id)))
        return how + tuple(self.cosines(concept_id).items()) + told


def _in_full(concept: Concept) -> str:
    return f"{concept.name} {concept.sense}" if concept.sense else concept.name


def _cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    return round(float(a @ b), 4)


def _decision(query: _Query, outcome: str, reason: str, evidence: tuple[tuple[str, Any], ...]) -> Decision:
    return Decision(kind="dedup", subject=query.candidate.name, outcome=outcome, reason=reason, evidence=evidence)


STOPWORDS = frozenset(
    "with that this from which into when where only other more used uses using each than them they".split()
)


def _qualifiers(candidate: Concept, other: Concept) -> Iterator[str]:
    """Senses that tell the candidate from `other`, without end: its domain, telling words of its definition, numbers."""
    if name_key(candidate.domain) != name_key(other.domain):
        yield candidate.domain
    words = [w for w in re.findall(r"[^\W\d_]+", candidate.definition.lower()) if len(w) > 3 and w not in STOPWORDS]
    telling = " ".join([w for w in words if w not in name_key(candidate.name).split()][:2])
    if telling:
        yield telling
    yield from (f"{telling or candidate.domain or 'meaning'} {number}" for number in count(2))
