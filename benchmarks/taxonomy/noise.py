"""What a model gets wrong when it is asked for finer concepts: reproducible from (seed, concept), whatever else is asked.

Every kind has its own share, and its own draw for every parent and child, so that changing one leaves the others as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from random import Random

from benchmarks.taxonomy.names import Names
from benchmarks.taxonomy.truth import Taxonomy, TrueConcept
from kgsynth.concept import name_key
from kgsynth.errors import ConfigError

LONGEST_NAME, LONGEST_DEFINITION, LONGEST_QUOTE = 80, 600, 1200  # what a proposal may hold
MODIFIERS = "adaptive,inverse,hybrid,second-order,regularised,federated,incremental,sparse,quantised,ambient".split(",")
BRITISH = [("ization", "isation"), ("izing", "ising"), ("ized", "ised"), ("ize", "ise"), ("yze", "yse"), ("olor", "olour"), ("eling", "elling")]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NoiseConfig:
    """Shares in [0, 1]."""

    synonyms: float = 0.3  # of children (that have any) are proposed under a synonym instead of their label
    respellings: float = 0.0  # of the others: hyphens, plurals, -ise, "X of Y", one wrong letter
    acronyms: float = 0.0  # of the others with two words or more: "BST" or "binary search tree (BST)"
    repeated: float = 0.0  # of children are proposed a second time, in another spelling
    missing: float = 0.0  # of children are left out, by this parent
    invented: float = 0.0  # per child, one more that does not exist; half of them quote a page
    reversed: float = 0.0  # per concept, one of its ancestors is proposed as its child
    undefined: float = 0.0  # of proposals come without definition
    malformed: float = 0.0  # of replies are not what was asked for
    errors: float = 0.0  # of requests get 429 or 500
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "seed" and not 0 <= value <= 1:
                raise ConfigError(f"--{field.name} {value} is no share; give a number from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class Told:
    """A child as it is proposed."""

    concept: str | None  # the true one; None: invented
    name: str
    kind: str  # "label", or the noise that named it
    definition: str = ""
    quote: str = ""  # the sentence it rests on


class Noise:
    """The proposals for each concept of a taxonomy, and how requests fail."""

    def __init__(self, taxonomy: Taxonomy, config: NoiseConfig) -> None:
        self.taxonomy, self.config = taxonomy, config
        self._names = Names(taxonomy)

    def _draw(self, kind: str, *about: str) -> Random:
        return Random("\x1f".join((str(self.config.seed), kind, *about)))

    def _hits(self, kind: str, *about: str) -> bool:
        share: float = getattr(self.config, kind)
        return share > 0 and self._draw(kind, *about).random() < share

    @cached_property
    def used(self) -> list[tuple[str, str]]:
        """(true concept, name) of every proposal there can be."""
        told = (t for c in self.taxonomy for t in self.proposals(c.id))
        return list(dict.fromkeys((t.concept, t.name) for t in told if t.concept))

    @lru_cache(maxsize=1 << 16)  # noqa: B019  one object per run
    def proposals(self, parent: str) -> tuple[Told, ...]:
        """What is proposed below a concept, in the order of its page."""
        children = self.taxonomy.children.get(parent, [])
        told = [t for child in children for t in self._child(parent, child)]
        told += [self._invented(parent, str(i)) for i in range(max(1, len(children))) if self._hits("invented", parent, str(i))]  # fmt: skip
        if self.taxonomy[parent].parents and self._hits("reversed", parent):
            told.append(self._reversed(parent))
        return tuple(told)

    def _child(self, parent: str, child: str) -> Iterator[Told]:
        if self._hits("missing", parent, child):
            return
        concept = self.taxonomy[child]
        name, kind = self._name(concept, parent)
        yield self._told(concept, name, kind, parent)
        if self._hits("repeated", parent, child):
            spellings = [*concept.spellings, *self._respelt(concept.label)]
            others = [s for s in map(shortened, spellings) if s != name and self._is_free(s, child)]
            if others:
                yield self._told(concept, self._draw("again", parent, child).choice(others), "repeated", parent)

    def _told(self, concept: TrueConcept, name: str, kind: str, parent: str) -> Told:
        definition = "" if self._hits("undefined", parent, concept.id, name) else concept.definition
        quote = sentence(concept, self.taxonomy[parent])[:LONGEST_QUOTE].rstrip()
        return Told(concept=concept.id, name=name, kind=kind, definition=definition[:LONGEST_DEFINITION], quote=quote)

    def _name(self, concept: TrueConcept, parent: str) -> tuple[str, str]:
        """The name under which a child is proposed, and the noise that chose it. A name of another concept is no choice
        except for a synonym: the taxonomy itself says that both have it."""
        kinds = {
            "synonyms": concept.synonyms,
            "respellings": [s for s in self._respelt(concept.label) if self._is_free(s, concept.id)],
            "acronyms": [s for s in abbreviated(concept.label) if self._is_free(s, concept.id)],
        }
        for kind, choices in kinds.items():
            if choices and self._hits(kind, parent, concept.id):
                return shortened(self._draw(f"which of {kind}", parent, concept.id).choice(list(choices))), kind
        return shortened(concept.label), "label"

    def _is_free(self, name: str, concept: str) -> bool:
        return set(self._names.owners(name)) <= {concept}

    def _respelt(self, label: str) -> list[str]:
        return [s for s in respellings(label, self._draw("letter", label)) if s != label]

    def _invented(self, parent: str, number: str) -> Told:
        draw, above = self._draw("made up", parent, number), self.taxonomy[parent]
        word = draw.choice([m for m in MODIFIERS if not self._names.owners(f"{m} {above.label}")] or ["imaginary"])
        name = shortened(f"{word} {above.label}")
        definition = f"A {word} form of {above.label} that nobody has described."[:LONGEST_DEFINITION]
        quote = definition if draw.random() < 0.5 else about(above)
        return Told(concept=None, name=name, kind="invented", definition=definition, quote=quote[:LONGEST_QUOTE])

    def _reversed(self, concept: str) -> Told:
        draw, above = self._draw("which ancestor", concept), self.taxonomy.ancestors(concept)
        ancestor = self.taxonomy[above[0] if draw.random() < 0.5 else draw.choice(above)]
        name, quote = shortened(ancestor.label), about(self.taxonomy[concept])[:LONGEST_QUOTE]
        definition = ancestor.definition[:LONGEST_DEFINITION]
        return Told(concept=ancestor.id, name=name, kind="reversed", definition=definition, quote=quote)

    def fault(self, request: str, time: int) -> str:
        """ "429", "500", a way to be malformed, or "": of the n-th time that this very request is made."""
        about = (request, str(time))
        if self._hits("errors", *about):
            return self._draw("which error", *about).choice(["429", "500"])
        if self._hits("malformed", *about):
            return self._draw("which fault", *about).choice(["cut", "prose", "empty", "other"])
        return ""


def sentence(child: TrueConcept, parent: TrueConcept) -> str:
    """What a parent's page says about a child: its definition, and where that is no sentence, that it is one."""
    if len(child.definition) >= 20:
        return child.definition
    return f"{child.label} is a kind of {parent.label}. {child.definition}".strip()


def about(concept: TrueConcept) -> str:
    """What a concept's page says first."""
    return concept.definition if len(concept.definition) >= 20 else f"This page is about {concept.label}."


def shortened(name: str) -> str:
    """At most LONGEST_NAME characters, whole words if that leaves any."""
    if len(name) <= LONGEST_NAME:
        return name
    return name[: LONGEST_NAME + 1].rpartition(" ")[0].strip() or name[:LONGEST_NAME]


def respellings(name: str, draw: Random) -> list[str]:
    """Other ways to write a name, none of them another name."""
    words = name.split()
    found = [name.replace("-", " ") if "-" in name else "-".join(words), name.lower(), name.title()]
    if words and words[-1].isalpha() and words[-1].islower() and len(words[-1]) > 3:
        found.append(name[:-1] if name.endswith("s") and not name.endswith(("ss", "us", "is")) else f"{name}s")
    for american, british in BRITISH:
        found += [re.sub(rf"{a}\b", b, name) for a, b in ((american, british), (british, american)) if a in name]
    if len(words) == 2 and all(word.isalpha() and not word.isupper() for word in words):
        found.append(f"{words[1]} of {words[0].lower()}")
    found += _misspelt(name, draw)
    return [f for f in dict.fromkeys(found) if f != name and name_key(f)]


def _misspelt(name: str, draw: Random) -> Iterator[str]:
    """Two letters swapped in the middle of a long word."""
    long = list(re.finditer(r"[a-z]{8,}", name))
    if long:
        word = draw.choice(long)
        at = draw.randrange(word.start() + 1, word.end() - 2)
        yield name[:at] + name[at + 1] + name[at] + name[at + 2 :]


def abbreviated(name: str) -> list[str]:
    """ "BST", "binary search tree (BST)"."""
    words = re.findall(r"[^\W\d_]+", name)
    if not 2 <= len(words) <= 6 or "(" in name:
        return []
    short = "".join(word[0] for word in words).upper()
    return [short, f"{name} ({short})"]
