"""Numbers with units that sentences state without a condition, defaults in signatures, and what can be worked out from them.

A sentence counts when it has one number only, followed by a unit or by "-bit" or "-byte", and nothing that makes the number
less than certain: "at least", "about", "up to", "default", "on Windows", "version", "if", "or", an example.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from kgsynth.concept import Concept, SourceSpan
from kgsynth.retrieve import is_about
from kgsynth.synthesize.facts import ITEM, Facts
from kgsynth.synthesize.masks import BLANK, plain
from kgsynth.synthesize.material import Material
from kgsynth.web import Hit, Page
from kgsynth.web.sentences import sentence_end

SENTENCE_CHARS = (30, 260)
UNITS = {
    "bit": "bit", "bits": "bit", "byte": "byte", "bytes": "byte", "octet": "byte", "octets": "byte", "KiB": "KiB", "MiB": "MiB",
    "second": "second", "seconds": "second", "millisecond": "ms", "milliseconds": "ms", "minute": "minute", "minutes": "minute",
    "hour": "hour", "hours": "hour", "Hz": "Hz", "kHz": "kHz", "MHz": "MHz", "GHz": "GHz",
}  # fmt: skip
COUNTS = (
    "characters character columns column rows digits elements items pages arguments parameters levels entries words colours colors"
    " spaces registers lines symbols points channels pins values files terms operands bases vectors"
).split()
NUMBER = re.compile(
    rf"(?<![\w.,/-])(?P<value>[1-9]\d{{0,2}}(?:,\d{{3}})+|\d+(?:\.\d+)?)(?:[ -])(?P<unit>{'|'.join([*UNITS, *COUNTS])})\b(?!\w)"
)
PLURAL = re.compile(r"s$|^[kMG]?Hz$|^[KM]iB$")
INTEGER = re.compile(
    r"-bit (?:big-endian |little-endian |positive )?(?:unsigned |signed )?(?:integer|number|value|key|rowid|counter|code|address)",
    re.I,
)
SIGNED = re.compile(r"\bsigned (?:\d+|_+)-bit|-bit signed", re.I)
HASH = re.compile(r"\bsha(?:3-|)(?P<value>224|256|384|512) hash\b")
RANGE = re.compile(r"\bin (?:the )?range\((?P<value>\d+)\)")
ANY_NUMBER = re.compile(
    r"(?<![A-Za-z_])\d[\d.,]*|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|thousand|million|billion)\b"
)
UNSURE = re.compile(
    r"\b(?:at least|at most|up to|about|around|approximately|roughly|nearly|almost|over|more|less|fewer|larger|smaller|longer|shorter"
    r"|greater|between|from|minimum|usually|typically|often|may|might|could|can|should|would|if|when|unless|until|while|where|or|either"
    r"|default|defaults|windows|linux|unix|narrow|wide|platforms?|builds?|versions?|release|currently|some|lower|upper|higher|low|high|average|estimated?|e\.g|i\.e"
    r"|example|such as|like|first|last|next|per|additional|extra|multiple|power|expect|bug|fix\w*|was|were|years?"
    r"|prior|later|earlier|since|before|after|systems?|seem\w*|suppose)\b|[%~<>=≥≤±|*?:;\[\]{}“”]|\.\.\.|http",
    re.IGNORECASE,
)
BEGINS = re.compile(
    r"(?!(?:It|Its|They|Their|This|These|Those|That|He|She|You|We|Such|Both|Then|There|Here|And|But|So|Also|However|Instead)\b)[A-Z]"
)
TOLERANCE = 0.001


@dataclass(frozen=True)
class Quantity:
    """A number in a sentence. `unit` is one that `number` converts, or empty for what is counted (`noun`)."""

    value: Fraction
    unit: str
    noun: str
    sentence: str  # as quoted
    blanked: str  # the same without the number
    title: str
    span: SourceSpan
    kind: str = "amount"  # or "default", "hash" (bits of a digest), "range" (how many whole numbers)


@dataclass(frozen=True)
class Asked:
    """A question about quantities, its answer, and what slips would give."""

    text: str
    value: Fraction
    unit: str
    noun: str
    slips: Sequence[Fraction]


def quantities(material: Material) -> list[Quantity]:
    """What the concept's own sentences, and its pages, state; the pages about it first."""
    pages = sorted(material.pages, key=lambda p: not is_about(material.concept, Hit(url=p.url, title=p.title)))
    own = (q for sentence in material.sentences for q in _stated(sentence.page, sentence.start, sentence.end))
    found = {quantity.sentence: quantity for quantity in (*own, *(q for page in pages for q in _on(page)))}
    return list(found.values())


@lru_cache(maxsize=4096)
def _on(page: Page) -> tuple[Quantity, ...]:
    text, found = page.source.text, list[Quantity]()
    for line in re.finditer(r"^(?![#|`>*\s-]).+$", text, re.MULTILINE):
        at = line.start()
        while at < line.end():
            stop = min(line.end(), max(at + 1, sentence_end(text, at)))
            found += _stated(page, at, stop)
            at = stop + len(text[stop : line.end()]) - len(text[stop : line.end()].lstrip())
    return tuple(found)


def _stated(page: Page, start: int, end: int) -> Iterator[Quantity]:
    raw = page.source.text[start:end]
    if ITEM.match(raw) or "\n" in raw.strip():
        return
    for kind, pattern in (("hash", HASH), ("range", RANGE), ("amount", NUMBER)):
        found = list(pattern.finditer(raw))
        if len(found) == 1 and (kind != "amount" or _is_certain(raw)):
            yield from _quantity(page, start, raw, found[0], kind)
            return


def _is_certain(raw: str) -> bool:
    """A whole sentence with one number, and without a word that takes something back."""
    whole = SENTENCE_CHARS[0] <= len(raw.strip()) <= SENTENCE_CHARS[1] and raw.rstrip().endswith(".")
    begins = BEGINS.match(raw.lstrip("(* `"))
    return bool(whole and begins and len(ANY_NUMBER.findall(raw)) == 1 and not UNSURE.search(raw))


def _quantity(page: Page, start: int, raw: str, number: re.Match[str], kind: str) -> Iterator[Quantity]:
    value = Fraction(number["value"].replace(",", ""))
    named = number.groupdict().get("unit", "")
    if kind == "amount" and number[0][-len(named) - 1] == " " and not PLURAL.search(named):
        return  # "127 byte codes" are no bytes
    if value > 1 and len(raw.strip()) <= SENTENCE_CHARS[1]:
        yield Quantity(
            value=value,
            unit="bit" if kind == "hash" else UNITS.get(named, ""),
            noun="" if named in UNITS else named,
            sentence=plain(raw),
            blanked=plain(raw[: number.start("value")] + BLANK + raw[number.end("value") :]),
            title=page.title,
            span=page.source.span(start + len(raw) - len(raw.lstrip()), start + len(raw.rstrip())),
            kind=kind,
        )


def defaults(facts: Facts, name: str) -> list[Quantity]:
    """The defaults of a documented function's parameters that are whole numbers over 1."""
    found = []
    for relation in facts.relations:
        fact = facts.fact(name, relation) if relation.startswith("default ") else None
        if fact and fact.object.isdecimal() and int(fact.object) > 1:
            said = f"the default value of the parameter {relation.removeprefix('default ')!r} of {name}"
            found.append(Quantity(Fraction(fact.object), "", "", said, "", name, fact.span, "default"))
    return found


def share_out(
    material: Mapping[str, Material], facts: Facts, concept_of: Callable[[str], Concept | None]
) -> dict[str, list[Quantity]]:
    """Concept id -> quantities, each at one concept only; defaults at the concept that the function is, or is part of."""
    shared: dict[str, list[Quantity]] = {concept: [] for concept in material}
    taken: set[str] = set()
    for concept, each in material.items():
        for quantity in quantities(each):
            if quantity.sentence not in taken:
                home = concept_of(quantity.title)
                shared[home.id if home else concept].append(quantity)
                taken.add(quantity.sentence)
    for name in sorted({n for r in facts.relations if r.startswith("default ") for n in facts.relation(r)}):
        if concept := concept_of(name):
            shared[concept.id] += defaults(facts, name)
    return {concept: found for concept, found in shared.items() if found}


def single(quantity: Quantity, level: int, factor: int) -> Asked | None:
    """A conversion (0), a second step with it (1), or the conversion of a number that is not shown (2); None where there is none."""
    if quantity.kind == "default":
        return None
    if quantity.kind in ("hash", "range"):
        return (_digest if quantity.kind == "hash" else _range)(quantity, level, factor)
    said = f"“{quantity.blanked if level == 2 else quantity.sentence}”"
    hidden = " Find the number that belongs in the blank." if level == 2 else ""
    if quantity.unit == "bit" and "-bit" in quantity.sentence:
        is_integer = 2 <= quantity.value <= 64 and INTEGER.search(quantity.sentence)
        return _values(quantity, level, said + hidden) if is_integer else None
    if not quantity.unit:
        return _counted(quantity, level, said)
    target, ratio = CONVERSIONS[quantity.unit]
    if quantity.unit == "byte" and quantity.value >= 1024:
        target, ratio = "KiB", Fraction(1, 1024)
    value = quantity.value * ratio * (factor if level == 1 else 1)
    ask = (
        f" How many {NAMES[target]} is the amount that it states?",
        f" How many {NAMES[target]} are {factor} times the amount that it states?",
        f" How many {NAMES[target]} is the amount?",
    )[level]
    slips = (
        value / ratio,
        value / ratio / ratio,
        value * 2,
        value / 2,
        value * 10,
        value / 10,
        value * Fraction(1024, 1000),
    )
    return Asked(said + hidden + ask, value, target, "", slips)


CONVERSIONS = {
    "bit": ("byte", Fraction(1, 8)), "byte": ("bit", Fraction(8)), "KiB": ("byte", Fraction(1024)), "MiB": ("KiB", Fraction(1024)),
    "second": ("ms", Fraction(1000)), "ms": ("second", Fraction(1, 1000)), "minute": ("second", Fraction(60)),
    "hour": ("minute", Fraction(60)), "Hz": ("kHz", Fraction(1, 1000)), "kHz": ("Hz", Fraction(1000)),
    "MHz": ("kHz", Fraction(1000)), "GHz": ("MHz", Fraction(1000)),
}  # fmt: skip
NAMES = {
    "bit": "bits", "byte": "bytes", "KiB": "KiB (1 KiB = 1024 bytes)", "MiB": "MiB", "second": "seconds", "ms": "milliseconds",
    "minute": "minutes", "hour": "hours", "Hz": "Hz", "kHz": "kHz", "MHz": "MHz", "GHz": "GHz",
}  # fmt: skip


def _values(quantity: Quantity, level: int, said: str) -> Asked:
    """How many values bits can tell apart, or the largest one."""
    n = int(quantity.value)
    slips = [2**n - 1, 2**n, 2 ** (n - 1), 2 ** (n - 1) - 1, 2 ** (n + 1), n * n, 2 * n, 10**n, n]
    ask, value = " How many different values can that many bits take?", 2**n
    if level == 1 and SIGNED.search(quantity.sentence):
        ask, value = " What is the largest whole number that so many bits hold in two's complement?", 2 ** (n - 1) - 1
    elif level == 1:
        ask, value = " What is the largest whole number that so many bits hold without a sign?", 2**n - 1
    return Asked(said + ask, Fraction(value), "", "" if level == 1 else "values", [Fraction(s) for s in slips])


def _digest(quantity: Quantity, level: int, factor: int) -> Asked:
    """How long a digest is in bytes (0), in hexadecimal digits (1), in Base64 (2)."""
    n = int(quantity.value)
    base64 = 4 * -(-n // 24)
    ask, value = (
        ("How many bytes long is such a digest?", n // 8),
        (f"How many hexadecimal digits do {factor} such digests have together?", factor * n // 4),
        ("How many characters has the standard Base64 encoding of such a digest, padding included?", base64),
    )[level]
    slips = (n, n // 8, n // 4, n // 2, n // 6, -(-n // 6), base64, factor * n // 8, factor * n, value + 1, value - 1)
    return Asked(
        f"“{quantity.sentence}” {ask}",
        Fraction(value),
        "byte" if level == 0 else "",
        ("", "hexadecimal digits", "characters")[level],
        [Fraction(s) for s in slips],
    )


def _range(quantity: Quantity, level: int, factor: int) -> Asked | None:
    """What whole numbers below a power of two take: bits (0), the largest (1), sequences of them (2)."""
    n = int(quantity.value)
    bits, some = n.bit_length() - 1, min(factor, 6)
    if n != 2**bits:
        return None
    ask, value = (
        ("How many bits are needed to tell all whole numbers in that range apart?", bits),
        (f"How many bits do {factor} of these numbers take, each in as few bits as all of them need?", factor * bits),
        (f"How many different sequences of {some} whole numbers in that range are there?", n**some),
    )[level]
    slips = (
        n,
        n - 1,
        bits + 1,
        bits - 1,
        factor * (n - 1),
        factor * n + factor,
        n * some,
        (n - 1) ** some,
        some**n if n < 99 else 2 * n,
    )
    noun = ("bits", "bits", "sequences")[level]
    return Asked(f"“{quantity.sentence}” {ask}", Fraction(value), "", noun, [Fraction(s) for s in slips])


def _counted(quantity: Quantity, level: int, said: str) -> Asked | None:
    """What is only counted is asked for itself, where the sentence hides it."""
    if level < 2:
        return None
    value = quantity.value
    slips = [value + 1, value - 1, value * 2, value / 2, value * 10, value + 2, value + 8, Fraction(1)]
    return Asked(f"{said} Which number belongs in the blank?", value, "", quantity.noun, slips)


def double(a: Quantity, b: Quantity, level: int, factor: int) -> Asked | None:
    """The sum (0), the difference (1) or a weighted difference (2) of two numbers of the same sort, or None."""
    if (
        a.kind != b.kind
        or (a.unit, a.noun.rstrip("s")) != (b.unit, b.noun.rstrip("s"))
        or a.value == b.value
        or a.kind == "range"
    ):
        return None
    if (a.noun and a.kind == "amount") or (a.unit == "bit" and not (_is_width(a) and _is_width(b))):
        return None  # they have nothing to do with each other
    big, small = (a, b) if a.value > b.value else (b, a)
    said = f"First: “{big.sentence}” Second: “{small.sentence}”"
    if a.kind == "default":
        said = f"Take {big.sentence} as the first number, and {small.sentence} as the second."
    if a.unit == "bit":
        return _two_widths(said, int(big.value), int(small.value), level)
    asks = (
        ("What is the sum of the two?", big.value + small.value),
        ("By how much is the first larger than the second?", big.value - small.value),
        (f"What is {factor} times the first, less the second?", factor * big.value - small.value),
    )
    ask, value = asks[level]
    ask += f" Answer in {NAMES[a.unit]}." if a.unit else ""
    slips = (
        *(other for _, other in asks), big.value * small.value, big.value, small.value, factor * (big.value - small.value),
        factor * big.value + small.value, value + 1, value - 1,
    )  # fmt: skip
    return Asked(f"{said} {ask}", value, a.unit, a.noun, slips)


def _is_width(quantity: Quantity) -> bool:
    return quantity.kind == "hash" or bool(INTEGER.search(quantity.sentence))


def _two_widths(said: str, big: int, small: int, level: int) -> Asked:
    """Two widths in bits: bytes together (0), how many times as many values (1), all pairs of values (2)."""
    ask, value, unit = (
        (
            "Both are stored one after the other, without a gap. How many bytes is that?",
            Fraction(big + small, 8),
            "byte",
        ),
        ("How many times as many values can the first take as the second?", Fraction(2 ** (big - small)), ""),
        (
            "How many bits are needed for seven of the first and five of the second?",
            Fraction(7 * big + 5 * small),
            "bit",
        ),
    )[level]
    slips = (
        Fraction(big + small),
        Fraction(big - small),
        Fraction(big, small),
        Fraction(2) ** (big - small - 1),
        Fraction(12 * big),
        Fraction(big - small, 8),
        2 * value,
        value / 2,
        value + 1,
    )
    return Asked(f"{said} {ask}", value, unit, "", slips)
