"""Rewriting without a model: sentences are turned round and set in another form; no word of meaning is exchanged.

What it does is what a rule can do safely: definitions and statements become questions with answers, lists become prose and
prose lists, "If A, B" becomes "B if A" and back, simple active sentences become passive, imperatives of reference manuals
become statements, abbreviations and contractions are spelled out. A sentence that fits no rule stays as it is, in its new
frame. It is no replacement for a model, and its name says so. The result goes through the same checks of fidelity.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kgsynth.rephrase.chunks import CODE, LABEL, sentences

AUTHOR = "rules (no model)"
_TRANSITIVE = (
    "return/returned raise/raised contain/contained create/created provide/provided support/supported define/defined"
    " call/called implement/implemented store/stored require/required accept/accepted convert/converted remove/removed"
    " add/added read/read write/written set/set compute/computed produce/produced replace/replaced check/checked test/tested"
    " insert/inserted encode/encoded decode/decoded open/opened close/closed find/found parse/parsed generate/generated"
    " represent/represented handle/handled describe/described compare/compared copy/copied delete/deleted split/split"
    " join/joined extract/extracted format/formatted send/sent extend/extended reverse/reversed rotate/rotated"
)
PARTICIPLES = {verb: done for verb, _, done in (pair.partition("/") for pair in _TRANSITIVE.split())}


def third(verb: str) -> str:
    """Of the third person."""
    if verb.endswith(("s", "x", "ch", "sh")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2] not in "aeou" else f"{verb}s"


VERBS = {third(verb): (verb, participle) for verb, participle in PARTICIPLES.items()}
SPELLED = {
    "e.g.": "for example", "i.e.": "that is", "don't": "do not", "doesn't": "does not", "can't": "cannot", "isn't": "is not",
    "aren't": "are not", "won't": "will not", "it's": "it is", "didn't": "did not", "wasn't": "was not",
}  # fmt: skip
_SPELLED = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, SPELLED))})(?!\w)", re.IGNORECASE)
_NOUN = r"(?:(?:The|A|An|This|Each|Every|All)\s+)?[\w.`*()-]+(?:\s+[\w.`*()-]+){0,4}?"
_IS = re.compile(rf"^(?P<what>{_NOUN})\s+(?P<is>is|are|was|were)\s+(?P<rest>.+)$")
_DOES = re.compile(rf"^(?P<who>{_NOUN})\s+(?P<verb>{'|'.join(VERBS)})\s+(?P<what>[^,;:]+?)(?P<end>[.]?)$")
_WHEN = re.compile(r"^(?P<when>If|When|Unless)\s+(?P<a>[^,;:]+),\s+(?P<b>[^;:]+?)(?P<end>[.]?)$")
_ONLY_WHEN = re.compile(r"^(?P<b>[^,;:]+?)\s+(?P<when>if|when|unless)\s+(?P<a>[^,;:]+?)(?P<end>[.]?)$")
_BACKWARD = re.compile(
    r"^(?:it|its|they|their|this|these|that|then|he|she|his|her|the same|otherwise|and|so|both)\b", re.IGNORECASE
)
_ENTRY = re.compile(r"^\*\*(?P<term>[^*]+)\*\*:\s+(?P<text>.+)$")
_THING = re.compile(  # a noun, perhaps with what hangs on it: no word before that ends like a verb
    r"^(?:A|An|The)(?: (?!(?:is|are|was|were|has|have|had|can|may|will)\b)[\w'’()-]*(?:[^\Ws]|ss))+"
    r"(?:(?: (?:of|for|that|which|used|with|in|to|from|by)\b|,) .*)?\.?$"
)
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(.*)$")
_HEADING = re.compile(r"^#{1,6}\s+(.*)$")


def turned(sentence: str) -> str:
    """The sentence with its condition on the other side, in the passive, or as a statement; as it was where no rule fits."""
    spelled = _SPELLED.sub(_spell, sentence)
    for rule in (_entered, _flipped, _stated, _passive):
        if (new := rule(spelled)) is not None:
            return new
    return spelled


def _spell(match: re.Match[str]) -> str:
    new = SPELLED[match[0].lower()]
    return new[0].upper() + new[1:] if match[0][0].isupper() else new


def _entered(sentence: str) -> str | None:
    """An entry of a glossary, "**term**: A text." -> "`term` is a text." """
    found = _ENTRY.match(sentence)
    if found is None:
        return None
    first, _, rest = found["text"].partition(" ")
    if first.lower() in PARTICIPLES and rest:
        return f"`{found['term']}` {_does(found['text'])}"
    if _THING.match(found["text"]):
        return f"`{found['term']}` is {first.lower()} {rest}"
    return f"`{found['term']}`: {found['text']}"


def _flipped(sentence: str) -> str | None:
    """ "If A, B." <-> "B if A.", where the half that now comes first does not point back."""
    if (
        (found := _WHEN.match(sentence))
        and not _BACKWARD.match(found["b"])
        and not found["b"].lower().startswith("if ")
    ):
        return f"{_upper(found['b'])} {found['when'].lower()} {found['a']}{found['end']}"
    found = _ONLY_WHEN.match(sentence)
    if (
        found
        and not _BACKWARD.match(found["a"])
        and sentence.count(" if ") + sentence.count(" when ") + sentence.count(" unless ") == 1
        and " or " not in found["b"]
        and " only" not in found["b"]
        and " even" not in found["b"]
        and found["b"][-3:] != " as"
    ):
        return f"{_upper(found['when'])} {found['a']}, {_lower(found['b'])}{found['end']}"
    return None


def _stated(sentence: str) -> str | None:
    """ "Return the sum." -> "It returns the sum." """
    first, _, rest = sentence.partition(" ")
    if (
        not first[:1].isupper()
        or first.lower() not in PARTICIPLES
        or not rest
        or rest.startswith(("is ", "are ", "value ", "values "))
    ):
        return None
    return f"It {_does(sentence)}"


def _does(order: str) -> str:
    """ "Remove and return the item." -> "removes and returns the item." """
    first, *rest = order.split(" ")
    if len(rest) > 1 and rest[0] == "and" and rest[1] in PARTICIPLES:
        rest[1] = third(rest[1])
    return " ".join([third(first.lower()), *rest])


def _passive(sentence: str) -> str | None:
    """ "X raises Y." -> "Y is raised by X.", for two short nouns without anything that hangs on them."""
    found = _DOES.match(sentence)
    if found is None or _BACKWARD.match(found["who"]) or len(found["what"].split()) > 6:
        return None
    if re.search(
        r"\b(?:not|only|and|or|with|by|to|from|of|in|on|as|for|that|which|if|when|never|also|them|it|itself)\b",
        f"{found['who']} {found['what']}",
    ):
        return None
    plural = not re.match(r"(?:a|an|the|one|each|every)\b", found["what"]) and found["what"].endswith("s")
    return f"{_upper(found['what'])} {'are' if plural else 'is'} {VERBS[found['verb']][1]} by {_lower(found['who'])}{found['end']}"


def _upper(text: str) -> str:
    """A capital, unless the first word is a name of code."""
    return text if re.match(r"\S*[_.`(A-Z0-9]", text) else text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    """A small letter for words that begin a sentence only."""
    first = text.split(" ", 1)[0]
    small = {
        "The",
        "A",
        "An",
        "This",
        "Each",
        "Every",
        "All",
        *map(str.title, PARTICIPLES),
        *map(str.title, VERBS),
        "There",
        "No",
        "Some",
        "Use",
    }
    return text[:1].lower() + text[1:] if first in small else text


def asked(sentence: str) -> str | None:
    """A question that the sentence answers."""
    if _BACKWARD.match(sentence):
        return None
    if found := _ENTRY.match(sentence):
        does = found["text"].split(" ", 1)[0].lower() in {*PARTICIPLES, *VERBS}
        return f"What does `{found['term']}` do?" if does else f"What is `{found['term']}`?"
    if found := _WHEN.match(sentence):
        return f"What happens {found['when'].lower()} {found['a']}?"
    if (found := _IS.match(sentence)) and not re.search(
        r"\b(?:there|here|which|that|what|if|when|not|can|may)\b", found["what"].lower()
    ):
        return f"What {found['is']} {_lower(found['what'])}?"
    if (found := _DOES.match(sentence)) is not None:
        return f"What does {_lower(found['who'])} {VERBS[found['verb']][0]}?"
    return None


# forms


@dataclass(frozen=True, kw_only=True)
class Block:
    """A piece of a chunk. `kind` is "code", "heading", "list" or "prose"; items are sentences, of a list its entries."""

    kind: str
    items: tuple[str, ...]


def blocks(text: str) -> Iterator[Block]:
    at = 0
    for match in [*CODE.finditer(text), None]:
        yield from _prose_blocks(text[at : match.start() if match else len(text)])
        if match:
            yield Block(kind="code", items=(match[0],))
            at = match.end()


def _prose_blocks(text: str) -> Iterator[Block]:
    for paragraph in re.split(r"\n[ \t]*\n+", text):
        lines = [line for line in paragraph.split("\n") if line.strip()]
        if not lines:
            continue
        if found := _HEADING.match(lines[0]):
            yield Block(kind="heading", items=(found[1].strip(),))
            lines = lines[1:]
        first = next((at for at, line in enumerate(lines) if _ITEM.match(line)), len(lines))
        if first:
            yield Block(kind="prose", items=tuple(sentences("\n".join(lines[:first]))))
        if first < len(lines):
            yield Block(kind="list", items=tuple(_entries(lines[first:])))


def _entries(lines: list[str]) -> list[str]:
    entries: list[str] = []
    for line in lines:
        found = _ITEM.match(line)
        if found:
            entries.append(found[1].strip())
        else:
            entries[-1] = f"{entries[-1]} {line.strip()}"
    return entries


def _told(text: str, *, prose: Callable[[tuple[str, ...]], str], listed: Callable[[tuple[str, ...]], str],
          heading: Callable[[str], str]) -> str:  # fmt: skip
    parts = []
    for block in blocks(text):
        if block.kind == "code":
            parts.append(block.items[0])
        elif block.kind == "heading":
            parts.append(heading(block.items[0]))
        elif block.items:
            parts.append((listed if block.kind == "list" else prose)(block.items))
    return "\n\n".join(part for part in parts if part.strip())


def encyclopedic(text: str) -> str:
    """Running prose: lists become sentences."""
    return _told(
        text, prose=lambda items: " ".join(map(_closed, map(turned, items))), listed=lambda items: " ".join(map(_closed, map(turned, items))),
        heading=lambda words: f"## {words}",
    )  # fmt: skip


def textbook(text: str) -> str:
    """Definitions and remarks, each a paragraph under its label."""

    def labelled(items: tuple[str, ...]) -> str:
        return "\n\n".join(f"{'Definition' if _defines(s) else 'Remark'}. {turned(s)}" for s in items)

    return _told(text, prose=labelled, listed=_bulleted, heading=lambda words: f"# {words}")


def _defines(sentence: str) -> bool:
    return bool(
        _ENTRY.match(sentence) or (_IS.match(sentence) and not _WHEN.match(sentence) and not _BACKWARD.match(sentence))
    )


def questions(text: str) -> str:
    """Questions, each with the sentences that answer it."""
    return _interview(text, "Question", "Answer")


def dialogue(text: str) -> str:
    """A student asks, a teacher answers."""
    return _interview(text, "Student", "Teacher")


def _interview(text: str, one: str, other: str) -> str:
    """Turns of two. An answer goes on, also behind a list or code, until a sentence answers another question."""
    topic, begun = "here", False

    def heading(words: str) -> str:
        nonlocal topic, begun
        topic, begun = f"about {words}", False
        return f"Topic: {words}"

    def prose(items: tuple[str, ...]) -> str:
        nonlocal begun
        lines: list[str] = []
        for sentence in items:
            spelled = _SPELLED.sub(_spell, sentence)
            question = asked(spelled) or ("" if begun else f"What is there to know {topic}?")
            begun, told = True, _entered(spelled) or spelled
            if question:
                lines.append(f"{one}: {question}\n{other}: {told}")
            else:
                lines[-1:] = [f"{lines[-1]} {told}" if lines else told]
        return "\n\n".join(lines)

    def listed(items: tuple[str, ...]) -> str:
        return f"{one}: What is on the list?\n{other}: {' '.join(map(_closed, items))}"

    return _told(text, prose=prose, listed=listed, heading=heading)


def bullets(text: str) -> str:
    """A list of what is said, a line each."""
    return _told(text, prose=_bulleted, listed=_bulleted, heading=lambda words: f"**{words}**")


def _bulleted(items: tuple[str, ...]) -> str:
    return "\n".join(f"- {turned(sentence).removesuffix('.')}" for sentence in items)


def plain(text: str) -> str:
    """Short sentences: what a semicolon joins is taken apart, the rest is turned where that is simpler."""

    def prose(items: tuple[str, ...]) -> str:
        return "\n".join(
            _closed(_upper(turned(part))) for sentence in items for part in re.split(r";\s+(?=[a-z])", sentence)
        )

    return _told(text, prose=prose, listed=prose, heading=lambda words: words)


def _closed(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?", ":")) else f"{sentence}."


STYLES: dict[str, Callable[[str], str]] = {
    "encyclopedic": encyclopedic, "questions": questions, "textbook": textbook, "dialogue": dialogue, "bullets": bullets,
    "plain": plain,
}  # fmt: skip


def reworded(text: str, seed: int = 0) -> str:
    """A text of any kind, line by line, in other words as far as rules go: sentences are turned, and where none points back,
    those of a line come in another order."""
    rng = random.Random(seed)
    parts, at = [], 0
    for match in [*CODE.finditer(text), None]:
        parts += [_reworded_line(line, rng) for line in text[at : match.start() if match else len(text)].splitlines()]
        if match:
            parts.append(match[0])
            at = match.end()
    return "\n".join(parts)


def _reworded_line(line: str, rng: random.Random) -> str:
    told = [turned(sentence) for sentence in sentences(line)]
    if len(told) > 1 and not any(_BACKWARD.match(sentence) for sentence in told):
        rng.shuffle(told)
    label = LABEL.match(line)
    return (label[0] if label else "") + " ".join(told)
