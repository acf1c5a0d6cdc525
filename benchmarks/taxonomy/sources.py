"""Taxonomies to be had: EDAM from its package, WordNet nouns from Debian's, and made-up ones of any size and shape."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from benchmarks.taxonomy.truth import TrueConcept
from kgsynth.errors import ConfigError

EDAM_PARTS = ("topic", "operation", "data", "format")
WORDNET = Path("/usr/share/wordnet")


def edam(parts: Sequence[str] = ("topics", "operations"), *, exact: bool = False) -> list[TrueConcept]:
    """Classes of EDAM (edamontology.org, in the package `edam-ontology`) that are not obsolete.

    exact: only the synonyms that EDAM calls exact, without narrow, broad and related ones. Addresses among the synonyms are
    left out ("https://en.wikipedia.org/...", "sumo:Function"). Raises ConfigError.
    """
    kinds = [part.strip().lower().removesuffix("s") for part in parts]
    if unknown := [part for part, kind in zip(parts, kinds, strict=True) if kind not in EDAM_PARTS]:
        raise ConfigError(f"EDAM has no part {unknown[0]!r}; it has topics, operations, data and formats")
    try:
        from edam_ontology.streams import tabular_stream
    except ImportError as error:
        raise ConfigError("EDAM is not installed; pip install edam-ontology") from error
    column = "http://www.geneontology.org/formats/oboInOwl#hasExactSynonym" if exact else "Synonyms"
    with tabular_stream() as lines:
        rows = [row for row in csv.DictReader(lines, delimiter="\t") if row["Obsolete"] != "TRUE"]
    return [_edam(row, column) for row in rows if _local(row["Class ID"]).rpartition("_")[0] in kinds]


def _edam(row: dict[str, str], synonyms: str) -> TrueConcept:
    return TrueConcept(
        id=_local(row["Class ID"]),
        label=row["Preferred Label"],
        synonyms=tuple(
            s for s in dict.fromkeys(row[synonyms].split("|")) if s and s != row["Preferred Label"] and ":" not in s
        ),
        parents=tuple(_local(p) for p in row["Parents"].split("|") if "edamontology.org" in p),
        definition=" ".join(row["Definitions"].replace("|", " ").split()),
    )


def _local(iri: str) -> str:
    return iri.rpartition("/")[2]


def wordnet(word: str = "science", folder: Path = WORDNET) -> list[TrueConcept]:
    """The noun synsets of WordNet below the first sense of a word (wordnet.princeton.edu; Debian's `wordnet-base`).

    The file's format is that of wndb(5WN); synonyms are the other words of a synset, parents its hypernyms ("@", "@i").
    """
    try:
        lines = (folder / "data.noun").read_text(encoding="latin-1").splitlines()
        senses = (folder / "index.noun").read_text(encoding="latin-1").splitlines()
    except OSError as error:
        raise ConfigError(f"WordNet is not at {folder} ({error.strerror}); apt-get install wordnet-base") from error
    entry = next((line.split() for line in senses if line.startswith(f"{word.lower().replace(' ', '_')} ")), None)
    if entry is None:
        raise ConfigError(f"WordNet knows no noun {word!r}")
    start = entry[-int(entry[2])]  # the first of as many synsets as the third field says
    synsets = {s.id: s for s in map(_synset, (line for line in lines if not line.startswith(" ")))}
    below: dict[str, list[str]] = {}
    for synset in synsets.values():
        for parent in synset.parents:
            below.setdefault(parent, []).append(synset.id)
    kept = {start: None}
    for here in (order := [start]):
        new = [child for child in below.get(here, ()) if child not in kept]
        kept |= dict.fromkeys(new)
        order += new
    return [synsets[i] for i in kept]


def _synset(line: str) -> TrueConcept:
    head, _, gloss = line.partition(" | ")
    fields = head.split()
    words = [fields[4 + 2 * i].replace("_", " ") for i in range(int(fields[3], 16))]
    pointers = fields[5 + 2 * len(words) :]
    parents = [pointers[i + 1] for i in range(0, len(pointers) - 3, 4) if pointers[i] in ("@", "@i")]
    return TrueConcept(
        id=fields[0], label=words[0], synonyms=tuple(w for w in dict.fromkeys(words) if w != words[0]),
        parents=tuple(parents), definition=gloss.strip(),
    )  # fmt: skip


def made_up(
    size: int, *, fan: int = 6, second_parent: float = 0.2, defined: bool = True, seed: int = 0
) -> list[TrueConcept]:
    """A taxonomy of that size with names of two made-up words, a synonym for every other concept, parents before children."""
    draw, names = Random(seed), _made_up_names(seed)
    concepts: list[TrueConcept] = []
    for number in range(size):
        above = [concepts[(number - 1) // fan]] if number else []
        if number > fan and draw.random() < second_parent:
            above.append(concepts[draw.randrange((number - 1) // fan + 1)])
        label, synonym, a, b = (next(names) for _ in range(4))
        concepts.append(
            TrueConcept(
                id=f"m{number}", label=label, synonyms=(synonym,) if number % 2 else (),
                parents=tuple(dict.fromkeys(c.id for c in above)),
                definition=f"The {label} turns every {a} into a {b} of the same weight." if defined else "",
            )
        )  # fmt: skip
    return concepts


def _made_up_names(seed: int) -> Iterator[str]:
    draw, seen = Random(f"names {seed}"), set[str]()
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    while True:
        name = " ".join("".join(draw.choices(syllables, k=draw.randint(2, 4))) for _ in range(2))
        if name not in seen:
            seen.add(name)
            yield name
