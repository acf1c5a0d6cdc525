"""Whether a rewriting says what its source says: nothing lost, nothing new, nothing turned round. Rejected on doubt.

Chunk-wise rewriting with a check of fidelity is the recipe of Kimi K2 (Kimi Team 2025, section 2.2); rephrased web text as
pre-training data is WRAP (Maini et al. 2024, "Rephrasing the Web"). The checks here are rules, so that they cost nothing
and can be read; where a model is configured, entailment in both directions comes on top (questions.py).

What rules cannot see: a synonym that is slightly off, a relation that no listed word carries.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from kgsynth.rephrase.chunks import CODE, code_blocks, prose, sentences
from kgsynth.rephrase.facts import (
    IDENTIFIER,
    INLINE,
    NAME,
    NUMBER,
    STOP,
    Cue,
    citations,
    cues,
    dates,
    identifiers,
    names,
    quantities,
    stem,
    stems,
)  # fmt: skip
from kgsynth.web.screen import commands, masked

REASONS = (
    "form", "code", "injection", "citation", "date", "number", "unit", "entity", "negation", "modality", "comparison",
    "order", "dropped", "added", "entailment", "unchanged",
)  # fmt: skip
KEPT = 0.6  # share of a sentence's meaning words that a rewriting must have, somewhere
OWN = 0.5  # share of a clause's meaning words that must be the source's
PLACE = 3  # meaning words to either side of a name that say where it stands
FEW = 2  # new meaning words in a clause that are a manner of speaking
META = re.compile(
    r"\b(?:as an? (?:AI|language model)|here(?:'s| is| are) (?:the|a|your) (?:rewrit|rephras|summar|revised)|sure[,!] |I (?:cannot|can't|am unable)"
    r"|the (?:passage|text|source|chunk|original) (?:says|states|above|instructs)|I have (?:rewritten|rephrased))",
    re.IGNORECASE,
)
ITEM = re.compile(rf"{IDENTIFIER.pattern}|{NAME.pattern}|{NUMBER.pattern}")
_CLAUSE = re.compile(r"[;:—–()]|,\s+(?=\w)|\s-\s|\b(?:and|but|which|because|so that|while|although|whereas|since)\b")


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """Why a rewriting is not kept. `reason` is one of REASONS."""

    reason: str
    message: str


def doubts(source: str, rewriting: str) -> list[Doubt]:
    """Everything that speaks against a rewriting, the surest first; empty when it is faithful as far as rules can tell."""
    orders = " ".join(source[start:end] for start, end, _ in commands(source))
    source = masked(source).replace("█", "")
    if not rewriting.strip() or len(rewriting) > 6 * len(source) + 400:
        return [Doubt(reason="form", message="it is empty, or far longer than its source")]
    found = [
        *_form(source, rewriting), *_code(source, rewriting), *_injected(source, rewriting, orders),
        *_figures(source, rewriting), *_entities(source, rewriting), *_relations(source, rewriting),
        *_order(source, rewriting), *_meaning(source, rewriting),
    ]  # fmt: skip
    return sorted(found, key=lambda doubt: REASONS.index(doubt.reason))


def unchanged(source: str, rewriting: str) -> bool:
    """Whether every sentence is in the source as it is, in the same order: nothing was told anew."""
    return list(map(_plain, sentences(source))) == list(map(_plain, sentences(rewriting)))


def _plain(sentence: str) -> str:
    return " ".join(re.findall(r"\w+", sentence.casefold()))


def _doubt(reason: str, what: str, items: Iterable[str]) -> list[Doubt]:
    shown = ", ".join(sorted(map(repr, items))[:5])
    return [Doubt(reason=reason, message=f"{what}: {shown}")] if shown else []


def _form(source: str, rewriting: str) -> list[Doubt]:
    said = META.search(rewriting)
    return _doubt("form", "it talks about itself", [said[0]]) if said and said[0] not in source else []


def _code(source: str, rewriting: str) -> list[Doubt]:
    theirs, ours = Counter(code_blocks(source)), Counter(code_blocks(rewriting))
    return [
        *_doubt("code", "a block of code is not there letter by letter", (theirs - ours).keys()),
        *_doubt("code", "a block of code is new", (ours - theirs).keys()),
    ]


def _injected(source: str, rewriting: str, orders: str) -> list[Doubt]:
    told = set(stems(orders)) - set(stems(source))
    obeyed = told & set(stems(rewriting))
    if len(obeyed) >= 2 or (obeyed and commands(rewriting)):
        return _doubt("injection", "words that only an order in the source has", obeyed)
    new = citations(rewriting) - citations(source)
    return _doubt("citation", "a reference that the source does not give", new)


def _figures(source: str, rewriting: str) -> list[Doubt]:
    a, b = "\n".join(sentences(source)), "\n".join(sentences(rewriting))  # without the numbers of lists
    lost, new = dates(a) - dates(b), dates(b) - dates(a)
    theirs, ours = quantities(a), quantities(b)
    values, our_values = {q.value for q in theirs}, {q.value for q in ours}
    units, our_units = {(q.value, q.unit) for q in theirs}, {(q.value, q.unit) for q in ours}
    swapped = {f"{value} {unit}" for value, unit in units ^ our_units if value in values & our_values}
    return [
        *_doubt("date", "dates of one text only", lost | new),
        *_doubt("number", "numbers of one text only", values ^ our_values),
        *_doubt("unit", "with another unit, or none", swapped),
    ]


def _entities(source: str, rewriting: str) -> list[Doubt]:
    a, b = prose(source), prose(rewriting)
    theirs, ours = identifiers(a), identifiers(b)
    known = {stem(word) for word in re.findall(r"\w+", source)}
    known_text, mentioned = _bare(a), _bare(b)
    lost = {one for one in theirs if _bare(one) not in mentioned}
    new = {one for one in ours if _bare(one) not in known_text}
    named = {one for s in sentences(a) for one in names(s) if _bare(one) not in mentioned}
    unknown = {one for s in sentences(b) for one in names(s) if not _known(one, known)}
    return [
        *_doubt("entity", "names that are missing", lost | named),
        *_doubt("entity", "names that the source does not have", new | unknown),
    ]


def _known(name: str, known: set[str]) -> bool:
    """Whether the source has every part of a name, or it belongs to the form."""
    return all(stem(part) in known or part.casefold() in FRAME for part in re.findall(r"\w+", name))


def _bare(text: str) -> str:
    """Without marks of code and emphasis, white space collapsed."""
    return " ".join(re.sub(r"[`*]", "", text).casefold().split())


FRAME = frozenset(
    "question answer student teacher reader author definition note remark fact summary key points what how why when which in short if the a it this is".split()
)


def _relations(source: str, rewriting: str) -> list[Doubt]:
    theirs = [cue for sentence in sentences(source) for cue in cues(sentence)]
    told = [s for s in sentences(rewriting) if not s.endswith("?")]
    ours = [cue for sentence in told for cue in cues(sentence)]
    found: list[Doubt] = []
    for kind in ("negation", "modality", "comparison"):
        lost = _unmatched([cue for cue in theirs if cue.kind == kind], ours)
        new = [cue for cue in ours if cue.kind == kind and not _matched(cue, theirs)]
        found += _doubt(kind, "lost", map(_shown, lost)) + _doubt(kind, "new", map(_shown, new))
    return found


def _unmatched(cues: Sequence[Cue], others: Sequence[Cue]) -> list[Cue]:
    """Those for which the other text has no such word left, when each of its words may stand for one only."""
    left = list(others)
    lost = []
    for cue in cues:
        alike = [other for other in left if _alike(cue, other)]
        if alike:
            left.remove(max(alike, key=lambda other: len(cue.near & other.near)))
        else:
            lost.append(cue)
    return lost


def _matched(cue: Cue, others: Sequence[Cue]) -> bool:
    return any(_alike(cue, other) for other in others)


def _alike(one: Cue, other: Cue) -> bool:
    """Whether they say the same of nearly the same words."""
    if (one.kind, one.group) != (other.kind, other.group):
        return False
    return len(one.near & other.near) >= min(2, len(one.near), len(other.near))


def _shown(cue: Cue) -> str:
    return f"{cue.word} ({', '.join(sorted(cue.near)[:4])})"


def _order(source: str, rewriting: str) -> list[Doubt]:
    """Two names, or two numbers, that stand where the other one stood: in a sentence, or in the whole text."""
    told = [s for s in sentences(rewriting) if not s.endswith("?")]
    pairs = [(s, max(told, key=lambda other: _likeness(s, other), default="")) for s in sentences(source)]
    straight = [pair for pair in pairs if not _turned(*pair)]
    whole = [("\n".join(sentences(source)), "\n".join(told))] if straight == pairs else []
    for one, other in [*straight, *whole]:
        theirs, ours = _places(one), _places(other)
        for a, b in combinations([item for item in theirs if item in ours], 2):
            stayed = len(theirs[a] & ours[a]) + len(theirs[b] & ours[b])
            swapped = len(theirs[a] & ours[b]) + len(theirs[b] & ours[a])
            if swapped > stayed and a[0].isdigit() == b[0].isdigit():
                return _doubt("order", "each stands where the other stood", [a, b])
    return []


def _places(text: str) -> dict[str, set[tuple[str, str]]]:
    """Names of every kind and numbers, each with the words that stand before and behind it, as (side, stem)."""
    bare = re.sub(r"[`*]", "", text)
    found: dict[str, set[tuple[str, str]]] = {}
    for match in ITEM.finditer(bare):
        if match[0].lower() in STOP:
            continue
        before, behind = (
            stems(bare[max(0, match.start() - 60) : match.start()]),
            stems(bare[match.end() : match.end() + 60]),
        )
        sides = {("<", one) for one in before[-PLACE:]} | {(">", one) for one in behind[:PLACE]}
        found.setdefault(match[0], set()).update(sides)
    return found


def _likeness(one: str, other: str) -> float:
    a, b = set(stems(one)), set(stems(other))
    return len(a & b) / max(1, len(a | b))


def _turned(one: str, other: str) -> bool:
    """Whether exactly one of them is in the passive: then what stood before stands behind."""
    passive = [bool(re.search(r"\b(?:is|are|was|were|be|been|being)\b[^.]{0,40}\bby\b", s)) for s in (one, other)]
    return passive[0] != passive[1]


def _meaning(source: str, rewriting: str) -> list[Doubt]:
    """Sentences of the source that left few of their words, and clauses of the rewriting that brought their own."""
    theirs, ours = set(stems(INLINE.sub(r"\1", source))), set(stems(INLINE.sub(r"\1", rewriting)))
    parts = [clause for s in sentences(source) for clause in (s, *_CLAUSE.split(s))]
    lost = [part for part in parts if _share(part, ours) < KEPT and len(set(stems(part))) >= FEW]
    told = [s for s in sentences(rewriting) if not s.endswith("?")]
    new = [clause for s in told for clause in _CLAUSE.split(CODE.sub(" ", s)) if _is_new(clause, theirs)]
    return [*_doubt("dropped", "not told", lost), *_doubt("added", "not in the source", new)]


def _share(text: str, known: set[str]) -> float:
    own = stems(INLINE.sub(r"\1", text))
    return sum(one in known for one in own) / len(own) if own else 1.0


def _is_new(clause: str, known: set[str]) -> bool:
    own = stems(INLINE.sub(r"\1", clause))
    new = [one for one in own if one not in known]
    return len(new) >= FEW and len(new) > (1 - OWN) * len(own)
