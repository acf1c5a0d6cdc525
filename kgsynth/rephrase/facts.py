"""What must survive a rewriting, read off a text by rules: code, numbers, units, dates, names, negations, modality, comparisons.

Words that carry a relation (not, may, more ...) are kept with the words around them, so that one that moved to another
statement is not taken for the same one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

WORD = re.compile(r"[^\W_]+(?:[’'][a-z]+)?|\d+(?:[.,]\d+)*")
NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w]*_)")
NUMERALS: dict[str, str] = dict(zip("two three four five six seven eight nine ten eleven twelve twenty thirty hundred thousand million".split(),
                    "2 3 4 5 6 7 8 9 10 11 12 20 30 100 1000 1000000".split(), strict=True))  # fmt: skip
UNITS = frozenset(
    "% percent ms s sec second seconds minute minutes min hour hours h day days week weeks month months year years ns us µs"
    " bit bits byte bytes kb mb gb tb kib mib gib kib/s mb/s hz khz mhz ghz m km cm mm nm kg g mg t l ml v mv ma w kw mw j wh kwh mwh gwh"
    " k c f °c °f degree degrees pixel pixels px character characters char chars word words line lines digit digits item items"
    " times fold dollar dollars euro euros $ €".split()
)
MONTHS = "january february march april may june july august september october november december".split()
DATE = re.compile(
    rf"\b(?:\d{{4}}-\d\d-\d\d|(?:\d{{1,2}}\.? )?(?:{'|'.join(m.title() for m in MONTHS)})(?: \d{{1,2}},)? \d{{4}}|(?:1[5-9]|20)\d\d(?!\w|[.,]\d))"
)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z]\w*(?:\.[A-Za-z_]\w*)+(?:\(\))?|[A-Za-z]+_\w+|_+\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|\w+\(\))"
)
NAME = re.compile(r"\b(?:[A-Z][a-z]+|[A-Z]{2,}[a-z]?|[A-Z]+\d\w*)(?:[-’'][A-Za-z]+)*\b")
CITED = re.compile(
    r"\[\d+(?:, ?\d+)*\]|\bet al\b|\bdoi\b|https?://\S+|\barXiv\b|\([A-Z][a-z]+(?: (?:and|&) [A-Z][a-z]+)?,? (?:1[5-9]|20)\d\d\)",
    re.IGNORECASE,
)

STOP = frozenset(
    "a an the and or but if of in on at to for from by with as is are was were be been being it its this that these those they"
    " them their there here which who whom whose what when where how why than then so such not no nor do does did has have had"
    " into out up down over under again each any all both some one ones other another same very also only just can will would"
    " may might could should must shall i you we he she his her him your our us me my about per via because while until since"
    " between during through after before above below question answer student teacher reader author definition note remark"
    " fact summary key point points short topic true called known means mean said say says tell happens happen case following"
    " follow follows thing things way ways use used uses using let lets get gets give gives given gave make makes made like"
    " hold holds else example instance terms term words word plain simply put explain describe describes described name e g ie eg".split()
)
CUES: dict[str, dict[str, str]] = {  # kind -> class -> words
    "negation": {
        "not": "not no never none nothing neither nor cannot without n't isn't aren't wasn't weren't doesn't don't didn't can't won't"
        " couldn't shouldn't wouldn't hasn't haven't hadn't mustn't nobody nowhere lack lacks lacking unable rather-than",
    },
    "modality": {
        "possible": "may might can could possibly perhaps able optional optionally maybe cannot can't couldn't",
        "must": "must shall required requires require needs need necessary mandatory has-to have-to mustn't",
        "should": "should ought recommended advisable shouldn't",
        "usual": "usually often typically generally normally mostly commonly frequently tends tend",
        "sometimes": "sometimes occasionally rarely seldom",
        "always": "always every-time invariably",
        "likely": "likely probably presumably apparently seems appears suggests suggest unlikely",
        "roughly": "approximately roughly around nearly almost circa about",
        "only": "only solely exclusively merely",
        "unless": "unless except otherwise",
    },
    "comparison": {
        "more": "more greater larger bigger higher longer faster exceeds exceed above over increases increase increased grows at-least"
        " minimum upper most greatest largest highest longest fastest maximum stronger deeper wider heavier hotter older",
        "less": "less fewer smaller lower shorter slower below under decreases decrease decreased shrinks at-most least smallest lowest"
        " shortest slowest weaker narrower lighter colder younger",
        "before": "before earlier prior previously until",
        "after": "after later afterwards following subsequently",
        "better": "better best", "worse": "worse worst", "equal": "equal equals same identical",
    },
}  # fmt: skip
REACH = 6  # content words to either side of such a word that say what it is about


@dataclass(frozen=True, kw_only=True)
class Cue:
    """A word that carries a relation, and the stems near it."""

    kind: str
    group: str
    word: str
    near: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number, and its unit when one follows."""

    value: str
    unit: str


def stem(word: str) -> str:
    word = word.lower().replace("’", "'").removesuffix("'s")
    for ending, rest in (
        ("ies", "y"),
        ("ied", "y"),
        ("ings", ""),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
        ("ly", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: len(word) - len(ending)] + rest
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word.removesuffix("e")[:7]


def stems(text: str) -> list[str]:
    """Of the words that carry meaning, in order."""
    return [stem(word) for word in WORD.findall(text) if _means(word.lower().replace("’", "'"))]


def _means(word: str) -> bool:
    """No letter alone, number, contraction of a verb, or word of grammar."""
    return len(word) > 1 and not word[0].isdigit() and not word.endswith("n't") and word.split("'")[0] not in STOP


def quantities(text: str) -> list[Quantity]:
    """In order. Spelled-out numbers from two count as figures; a unit is what stands behind, or $ and € before."""
    found = []
    lowered = re.sub(rf"\b(?:{'|'.join(NUMERALS)})\b", lambda m: NUMERALS[str(m[0]).lower()], text, flags=re.IGNORECASE)
    for match in NUMBER.finditer(lowered):
        behind = re.match(r"[ \u00a0-]?(%|°?[A-Za-zµ]+(?:/[a-z]+)?)", lowered[match.end() :])
        unit = behind[1].lower() if behind and behind[1].lower() in UNITS else ""
        before = lowered[max(0, match.start() - 1) : match.start()]
        unit = before if before in ("$", "€") else unit
        value = match[0].replace(",", "").replace("−", "-")
        found.append(Quantity(value=value, unit=_one_unit(unit)))
    return found


def _one_unit(unit: str) -> str:
    same = {"percent": "%", "seconds": "s", "second": "s", "sec": "s", "minutes": "minute", "min": "minute", "chars": "character", "char": "character", "hours": "hour", "h": "hour"}  # fmt: skip
    return same.get(unit, unit if len(unit) < 4 or unit == "times" else unit.removesuffix("s"))


def dates(text: str) -> frozenset[str]:
    return frozenset(" ".join(match.replace(",", "").split()) for match in DATE.findall(text))


def identifiers(text: str) -> frozenset[str]:
    """Inline code, and names of code outside of it."""
    inline = {match.strip() for match in INLINE.findall(text)}
    outside = {match.removesuffix("()") for match in IDENTIFIER.findall(INLINE.sub(" ", text))} - {
        "e.g",
        "i.e",
        "kWh",
        "mAh",
    }
    return frozenset(inline | outside)


def names(sentence: str) -> list[str]:
    """Capitalised words in order, without the first word of a sentence unless it has more than one capital."""
    found = []
    for match in NAME.finditer(INLINE.sub(lambda m: " " * len(m[0]), sentence)):
        starts = (
            not re.search(r"[^\W_]", sentence[: match.start()]) or sentence[: match.start()].rstrip()[-1:] in ".:?!"
        )
        if match[0].lower() not in STOP and (not starts or sum(map(str.isupper, match[0])) > 1):
            found.append(match[0].removesuffix("'s").removesuffix("’s"))
    return found


def citations(text: str) -> frozenset[str]:
    return frozenset(match.group().lower().rstrip(".,;:'\")>") for match in CITED.finditer(text))


_GROUPS = {word: [(k, g) for k, gs in CUES.items() for g, ws in gs.items() if word in ws.split()]
           for gs in CUES.values() for ws in gs.values() for word in ws.split()}  # fmt: skip
_PAIRS = {word.replace("-", " "): word for word in _GROUPS if "-" in word}
_JOIN = re.compile(rf"\b(?:{'|'.join(_PAIRS)})\b", re.IGNORECASE)


def cues(sentence: str) -> Iterator[Cue]:
    """The words of a sentence that carry a relation. "about" counts before a number only, "may" not as a month."""
    coded = INLINE.sub(lambda m: _one_word(m[1]), sentence)
    joined = _JOIN.sub(lambda m: m[0].lower().replace(" ", "_"), IDENTIFIER.sub(lambda m: _one_word(m[0]), coded))
    tokens = re.findall(r"[\w’']+", joined)
    meant = [stem(t) if t.lower() not in STOP and t.lower().replace("_", "-") not in _GROUPS else "" for t in tokens]
    for at, token in enumerate(tokens):
        word = token.lower().replace("_", "-").replace("’", "'")
        if word == "about" and not (
            at + 1 < len(tokens) and (tokens[at + 1][0].isdigit() or tokens[at + 1] in NUMERALS)
        ):
            continue
        if token == "May" or (token == "No" and re.search(r"\bNo[.,!]", sentence)):
            continue
        for kind, group in _GROUPS.get(word, ()):
            yield Cue(kind=kind, group=group, word=word, near=_near(meant, at))


def _one_word(code: str) -> str:
    """A name of code is one word, whatever is in it."""
    return re.sub(r"\W+", "_", code)


def _near(meant: list[str], at: int) -> frozenset[str]:
    before = [one for one in reversed(meant[:at]) if one][:REACH]
    behind = [one for one in meant[at + 1 :] if one][:REACH]
    return frozenset([*before, *behind])
