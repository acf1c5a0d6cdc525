"""Labelled pairs for `dedup_quality.py`: the same concept under two names, and concepts that are easily taken for each other.

    edam      topics and operations of EDAM (Ison et al., 2013), read from the package edam-ontology (CC BY-SA 4.0):
              exact synonyms; held-out concepts against their parent, child or sibling
    wordnet   nouns of WordNet 3.0 (Miller, 1995), read from Debian's wordnet-base: lemmas of one synset; hypernyms,
              hyponyms, co-hyponyms, and other senses of the same lemma
    hand      `tests/dedup_pairs.py`, written for this project: definitions are worded apart in every variant

The texts stay in their packages; nothing of them is copied into this repository.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgsynth.concept import Concept, name_key, text_hash
from kgsynth.errors import ConfigError
from tests.dedup_pairs import HARD, PAIRS

WORDNET = Path("/usr/share/wordnet/data.noun")
DISTRACTORS = 2_000  # nouns of WordNet that are in the graph besides


@dataclass(frozen=True, kw_only=True)
class Pair:
    """`known` is in the graph. same: whether the candidate is it; else the candidate is nothing in the graph."""

    source: str
    kind: str  # "synonym", or how the candidate's neighbour in the graph is related to it
    same: bool
    known: Concept
    candidate: Concept


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """Pairs, and the other concepts that are in the graph with their known sides."""

    pairs: tuple[Pair, ...]
    distractors: tuple[Concept, ...]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One concept of a taxonomy."""

    names: tuple[str, ...]  # the preferred one first
    definition: str
    parents: tuple[str, ...]
    domain: str

    def concept(self, which: int = 0) -> Concept:
        return Concept(name=self.names[which], domain=self.domain, definition=self.definition)


Taxonomy = Mapping[str, Entry]


def labelled(*, synonyms: int = 600, others: int = 200, distractors: int = DISTRACTORS) -> Labelled:
    """All sources together: up to `synonyms` pairs of synonyms from each taxonomy, and `others` of each kind of different ones.

    Nothing in the graph bears a name that a candidate of another source has: it might well be the same concept.
    """
    hand = hand_pairs()
    taken = {key for pair in hand for c in (pair.known, pair.candidate) for key in c.keys}
    biology = without_names(edam(), taken)
    taken |= {key for entry in biology.values() for key in map(name_key, entry.names)}
    one = taxonomy_pairs("edam", biology, synonyms=synonyms, others=others)
    two = taxonomy_pairs("wordnet", without_names(wordnet(), taken), synonyms=synonyms, others=others)
    distracting = (*one.distractors, *two.distractors[:distractors])
    return Labelled(pairs=(*hand, *one.pairs, *two.pairs), distractors=distracting)


def without_names(taxonomy: Taxonomy, taken: set[str]) -> Taxonomy:
    return {i: entry for i, entry in taxonomy.items() if not taken & set(map(name_key, entry.names))}


def hand_pairs() -> tuple[Pair, ...]:
    """The hand-written pairs of which one side is in no other pair, so that it can be left out of the graph."""
    rows = [*PAIRS, *HARD]
    times = Counter(key for row in rows for key in {bare_key(row[1]), bare_key(row[3])})
    pairs: list[Pair] = []
    for same, a, told_a, b, told_b in rows:
        if times[bare_key(b)] > 1:
            a, told_a, b, told_b = b, told_b, a, told_a
        if times[bare_key(b)] == 1:
            known, new = (Concept(name=n, domain="hand", definition=d) for n, d in ((a, told_a), (b, told_b)))
            kind = "synonym" if same else "hard negative"
            pairs.append(Pair(source="hand", kind=kind, same=same, known=known, candidate=new))
    return tuple(pairs)


def bare_key(name: str) -> str:
    """The key of a name without what stands in brackets after it."""
    return name_key(re.sub(r"\s+\([^()]*\)$", "", name))


def edam() -> Taxonomy:
    """id -> entry. Raises ConfigError when the package is missing."""
    try:
        import edam_ontology
    except ImportError as error:
        raise ConfigError("EDAM is not installed: pip install 'kgsynth[dev]' (edam-ontology)") from error
    exact = "http://www.geneontology.org/formats/oboInOwl#hasExactSynonym"
    with open(Path(str(edam_ontology.__file__)).parent / "EDAM.tsv", encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file, delimiter="\t") if re.search(r"/(topic|operation)_\d+$", r["Class ID"])]
    return {
        r["Class ID"]: Entry(
            names=(r["Preferred Label"], *(s for s in r[exact].split("|") if s and ":" not in s)),
            definition=r["Definitions"].split("|")[0],
            parents=tuple(r["Parents"].split("|")),
            domain="bioinformatics",
        )
        for r in rows
        if r["Obsolete"] == "FALSE"
    }


def wordnet() -> Taxonomy:
    """Offset -> entry of every noun synset, in the format of wndb(5). Raises ConfigError when the file is missing.

    Its domain is the lexicographer file: acts, artifacts, attributes, ... 26 in all.
    """
    if not WORDNET.is_file():
        raise ConfigError(f"{WORDNET} is missing: apt-get install wordnet-base (scripts/setup.sh test does)")
    lines = (line for line in WORDNET.read_text(encoding="utf-8").splitlines() if not line.startswith("  "))
    return dict(_synset(line) for line in lines)


def _synset(line: str) -> tuple[str, Entry]:
    fields, gloss = line.split(" | ", 1)
    offset, lexicographer, _, count, *rest = fields.split()
    n = 2 * int(count, 16)
    pointers = rest[n + 1 :]
    parents = tuple(pointers[i + 1] for i in range(0, len(pointers), 4) if pointers[i] in ("@", "@i"))
    names = tuple(dict.fromkeys(word.replace("_", " ") for word in rest[:n:2]))
    told = re.split(r'; "', gloss)[0].strip()
    return offset, Entry(names=names, definition=told, parents=parents, domain=f"lexicographer file {lexicographer}")


def taxonomy_pairs(source: str, taxonomy: Taxonomy, *, synonyms: int, others: int, seed: int = 0) -> Labelled:
    """Up to `synonyms` pairs that are the same and `others` that are not, for each kind; the rest are distractors.

    A fifth of the concepts is held out of the graph; the candidates that are not in the graph are among them.
    """
    ids = _shuffled([i for i in taxonomy if taxonomy[i].definition], seed)
    out = set(ids[: len(ids) // 5])
    named = {name_key(taxonomy[i].names[0]): i for i in ids if i not in out}  # one concept under each name
    inside = {i: taxonomy[i].concept() for i in named.values()}
    renamed = _shuffled([f"{i} {which}" for i in inside for which in _other_names(taxonomy[i])], seed)[:synonyms]
    same = [
        Pair(source=source, kind="synonym", same=True, known=inside[i], candidate=taxonomy[i].concept(int(which)))
        for i, which in map(str.split, renamed)
    ]
    different: dict[str, list[Pair]] = defaultdict(list)
    for kind, one, held in _related(taxonomy, [i for i in ids if i in out], inside):
        pair = Pair(source=source, kind=kind, same=False, known=inside[one], candidate=taxonomy[held].concept())
        different[kind].append(pair)
    pairs = same + [p for kind in different.values() for p in kind[:others]]
    return Labelled(pairs=tuple(pairs), distractors=tuple(inside.values()))


def _shuffled(keys: Sequence[str], seed: int) -> list[str]:
    """In an order that stays when other keys come or go."""
    return sorted(keys, key=lambda key: text_hash(f"{seed} {key}"))


def _other_names(entry: Entry) -> Iterator[int]:
    """The names that are not a spelling of the first."""
    keys = [name_key(name) for name in entry.names]
    return (n for n, key in enumerate(keys) if n and key not in keys[:n])


def _related(taxonomy: Taxonomy, held: Sequence[str], inside: Mapping[str, Concept]) -> Iterator[tuple[str, str, str]]:
    """(kind, id in the graph, id held out), each held-out concept once: the rarest kind that it has."""
    children: dict[str, list[str]] = defaultdict(list)
    for i, entry in taxonomy.items():
        for parent in entry.parents:
            children[parent].append(i)
    homonyms: dict[str, list[str]] = defaultdict(list)
    for i, concept in inside.items():
        homonyms[name_key(concept.name)].append(i)
    for n, i in enumerate(held):
        parents = taxonomy[i].parents
        found = {
            "other sense": homonyms[name_key(taxonomy[i].names[0])],
            "child": [c for c in children[i] if c in inside],
            "parent": [p for p in parents if p in inside],
            "sibling": [c for p in parents for c in children[p] if c in inside and c != i],
        }
        order = ["other sense", "child", *(("parent", "sibling") if n % 2 else ("sibling", "parent"))]
        if kind := next((kind for kind in order if found[kind]), None):
            yield kind, found[kind][0], i
