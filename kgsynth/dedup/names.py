"""What names alone say: spellings, abbreviations, and whether two names can mean one concept at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations

from kgsynth.concept import Concept, merge_unique, name_key

CACHED = 1 << 15

IRREGULAR = {
    "matrice": "matrix",
    "vertice": "vertex",
    "indice": "index",
    "automata": "automaton",
    "criteria": "criterion",
}
GENERIC = (" algorithm", " data structure")  # "merge sort algorithm" is merge sort

# Words of one row exclude each other: "left join" and "right join" are two, whatever their definitions share.
CONTRASTS = """left right|upper lower|top bottom middle|inner outer|internal external|inside outside|front back rear
up down|high low|long short|large small|major minor|min max|minimum maximum|first second third fourth fifth last
primary secondary tertiary|even odd|positive negative|true false|input output|source target sink|parent child
forward backward reverse|ascending descending|ascent descent|horizontal vertical|row column|local global|public private
static dynamic class|shallow deep|singly doubly|shared exclusive|strong weak|hard soft|hot cold|early late
read write|push pull|client server|encoder decoder|encryption decryption|space time|dna rna protein
nucleotide peptide|alpha beta gamma delta|north south east west|male female|maternal paternal|discrete continuous
open closed|active passive|import export|precision recall|full partial|lossy lossless|one two three four
insertion deletion substitution|prefix suffix infix postfix|linear quadratic cubic exponential|gain loss
transcription translation replication|classification regression clustering|addition subtraction multiplication division
dominant recessive|genus family order phylum kingdom|gram degree meter|sine cosine tangent"""
CONTRAST_OF = {
    word: row for row, words in enumerate(re.split(r"[|\n]", CONTRASTS)) for word in words.split()
}  # word -> row
PREFIXES = """micro macro hypo hyper intra inter extra endo exo iso homo hetero mono di tri poly uni bi multi pre post sub
super syn asyn meta para ortho trans cis over under up down in out""".split()
ADD_NOTHING = frozenset(
    """algorithm analysis approach biological computation computational concept construction data detection field general
    generation identification information kind method methodology molecular operation problem procedure process
    processing scheme science structure study system task technique technology theory tool type""".split()
)  # "codon usage data analysis" is codon usage analysis
NEGATIONS = ("non", "un", "in", "im", "ir", "il", "a", "anti", "dis", "de", "counter", "semi", "pseudo", "quasi")


def tidied(concept: Concept) -> Concept:
    """ "binary search tree (BST)" has an alias, "set (mathematics)" a sense; "print()" is left as it is."""
    if not concept.name.rstrip().endswith(")"):
        return concept
    parts = re.fullmatch(r"(.*\w)\s+\(([^()]+)\)", concept.name.strip())
    if not parts:
        return concept
    name, inner = parts.groups()
    if name_key(inner) in abbreviations(name) or name_key(name) in abbreviations(inner):
        return replace(concept, name=name, aliases=merge_unique((inner,), concept.aliases))
    return replace(concept, name=name, sense=concept.sense or inner)


@lru_cache(maxsize=CACHED)
def is_identifier(name: str) -> bool:
    """Code or a word with inner structure ("heapq.merge", "__init__", "OrderedDict", "C++"): spelt in one way only."""
    return bool(re.search(r"[^\w\s'’,/()‐‑–—-]|_|\.\w|\w\(|[a-z][A-Z]", name))


def is_code(name: str) -> bool:
    """An identifier that a program would hold: "heapq.merge", "__init__", "print()"; not "PolyA" nor "mRNA: export"."""
    return bool(re.search(r"\w[._]\w|\w\(\)|^_|::|^@|->", name))


def has_acronym(name: str) -> bool:
    return any(re.fullmatch(r"[A-Z][A-Z0-9]{1,6}s?", word) for word in re.split(r"[\s\-/]+", name))


@lru_cache(maxsize=CACHED)
def abbreviations(name: str) -> tuple[str, ...]:
    """Every key that arises when a run of two or more words is replaced by its initials.

    >>> abbreviations("binary search tree")
    ('bs tree', 'bst', 'binary st')
    """
    words = name_key(name).split()
    if not 2 <= len(words) <= 8 or any(len(word) == 1 for word in words):  # an "A battery" is no AB
        return ()
    runs = [(start, stop) for start, stop in combinations(range(len(words) + 1), 2) if stop - start > 1]
    return tuple(" ".join(_shortened(words, start, stop)) for start, stop in runs)


def _shortened(words: list[str], start: int, stop: int) -> list[str]:
    initials = "".join(word[0] for word in words[start:stop])
    return [*words[:start], initials if stop < len(words) else name_key(initials), *words[stop:]]


@lru_cache(maxsize=CACHED)
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name without spelling differences: singular, -ize, -or, "X of Y" turned into "Y X"."""
    text = re.sub(r"['’]s?\b", "", name_key(name))
    text = re.sub(r"^([\w ]+?) of ([\w ]+)$", r"\2 \1", text)
    return tuple(map(plain_word, text.split()))


@lru_cache(maxsize=CACHED)
def plain_word(word: str) -> str:
    """One word without its plural and without British spelling."""
    word = name_key(word)
    word = IRREGULAR.get(word, word)
    if len(word) < 6:
        return word
    word = re.sub(r"(is(?=(e|ed|er|ing|ation)$)|ys(?=(e|ed|er|ing)$))", lambda m: m[0][0] + "z", word)
    word = re.sub(r"our(ed|al)?$", r"or\1", word)
    return re.sub(r"^(an|arch|di|f|h|leuk|p)?[ao]e", r"\1e", word)  # anaesthesia, haemoglobin, oestrogen


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


def typo_keys(name: str) -> Iterator[tuple[int, str]]:
    """What two names share that are a typing error apart: all words but one, and one end of that one.

    An error touches either the first three letters of a word or the last three, never both.
    """
    words = words_of(name)
    for i, word in enumerate(words):
        if len(word) >= 7 and word.isalpha():
            others = " ".join((*words[:i], "", *words[i + 1 :]))
            yield i, f"{word[:3]}-|{others}"
            yield i, f"-{word[-3:]}|{others}"


def is_typo(a: str, b: str) -> bool:
    """One letter added, left out, changed or swapped with the next one, in one word of eight letters or more, not its first."""
    if is_identifier(a) or is_identifier(b):
        return False
    ours, theirs = words_of(a), words_of(b)
    if len(ours) != len(theirs) or abs(len(a) - len(b)) > 4:
        return False
    differing = [(x, y) for x, y in zip(ours, theirs, strict=True) if x != y]
    if len(differing) != 1:
        return False
    x, y = sorted(differing[0], key=len)
    spelt = len(x) >= 7 and len(y) >= 8 and x[0] == y[0] and (x.isalpha() and y.isalpha()) and _one_edit(x, y)
    return spelt and not are_opposite(ours, theirs)


def _one_edit(x: str, y: str) -> bool:
    """len(x) <= len(y), x != y."""
    at = next((i for i, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), len(x))
    if len(x) < len(y):
        return x[at:] == y[at + 1 :]
    return len(x) == len(y) and (
        x[at + 1 :] == y[at + 1 :] or (x[at + 2 :] == y[at + 2 :] and x[at : at + 2] == y[at : at + 2][::-1])
    )


def share_a_word(a: str, b: str) -> bool:
    """Whether both have a word in common, as two of a kind do ("network analysis", "network prediction")."""
    return not set(words_of(a)).isdisjoint(words_of(b))


def relation(a: str, b: str) -> str:
    """What two names alone say.

    "identifier", "symbols", "digits" and "opposite" exclude sameness; "narrower" (one has all words of the other) does so unless the
    definitions are the same; "sibling" (other modifiers of one head) speaks against it; "open" says nothing, nor does "wordier"
    (one has all words of the other, and some that add nothing).
    """
    if SYMBOLS.findall(a) != SYMBOLS.findall(b):
        return "symbols"
    if is_identifier(a) or is_identifier(b):
        return "identifier"
    ours, theirs = words_of(a), words_of(b)
    digits = [re.findall(r"\d+", name) for name in (a, b)]
    if (all(digits) and digits[0] != digits[1]) or _differently_marked(ours, theirs):
        return "digits"
    if are_opposite(ours, theirs):
        return "opposite"
    if set(ours) < set(theirs) or set(theirs) < set(ours):
        return "wordier" if set(ours) ^ set(theirs) <= ADD_NOTHING else "narrower"
    return "sibling" if ours[-1:] == theirs[-1:] and min(len(ours), len(theirs)) > 1 else "open"


SYMBOLS = re.compile(r"(?<=\w)[+#*]+(?=\s|$)")  # C, C++, C#, A*


def _differently_marked(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """ "vitamin A" and "vitamin B", "type I error" and "type II error"."""
    marks = [[w for w in words if len(w) == 1 or re.fullmatch(r"[ivx]{1,4}", w)] for words in (ours, theirs)]
    return len(ours) == len(theirs) and all(marks) and marks[0] != marks[1]


def are_opposite(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Whether the names differ by a negation ("linear", "nonlinear") or by words that exclude each other ("left", "right")."""
    first, second = set(ours) - set(theirs), set(theirs) - set(ours)
    if not first or not second:
        return bool(extra := first | second) and extra <= set(NEGATIONS)
    if any(CONTRAST_OF.get(x, -1) == CONTRAST_OF.get(y, -2) for x in first for y in second):
        return True
    return any(_negates(x, y) or _negates(y, x) or _prefixed_otherwise(x, y) for x in first for y in second)


def _negates(x: str, y: str) -> bool:
    return len(x) > len(y) >= 4 and x.endswith(y) and x[: -len(y)] in NEGATIONS


def _prefixed_otherwise(x: str, y: str) -> bool:
    """ "microeconomics", "macroeconomics"."""
    return x[-4:] == y[-4:] and not _unprefixed(x).isdisjoint(_unprefixed(y))


@lru_cache(maxsize=CACHED)
def _unprefixed(word: str) -> frozenset[str]:
    return frozenset(word[len(p) :] for p in PREFIXES if word.startswith(p) and len(word) > len(p) + 3)
