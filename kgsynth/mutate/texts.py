"""`text`, `choice`, `span`: short answers that are read."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from kgsynth.mutate import Mutator, Named, in_turn, inside, register
from kgsynth.task import Task

WORD = re.compile(r"\w+(?:[-'.]\w+)*")
ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)
NOISE = frozenset("the a an of in on to and or is are was it its this that with for by as at be write answer".split())
WIDE = 12  # words of a source on either side of a span, from which others are made


def key(text: str) -> str:
    """Letters and digits only, without an article: texts that share it may count as the same to somebody."""
    return "".join(c for c in ARTICLE.sub("", text.strip()).casefold() if c.isalnum())


# text


def right_text(task: Task, rng: random.Random) -> Iterator[Named]:
    params, text = task.verifier.params, inside(task.reference).strip()
    others = [str(answer) for answer in params["answers"] if str(answer) != text]
    yield from (("another accepted spelling", answer) for answer in rng.sample(others, min(2, len(others))))
    if params.get("mode") == "exact":
        yield "white space around", f"\n  {text} \n"
        return
    yield from _dressed(text, rng)
    yield "upper case", text.upper()
    yield "lower case", text.lower()
    yield "capitalised", text[:1].upper() + text[1:]
    if " " in text:
        yield "white space inside", text.replace(" ", "  ")
        yield "no-break spaces", text.replace(" ", "\u00a0")
    if "-" in text:
        yield "typographic hyphen", text.replace("-", "\u2010")
    if "'" in text:
        yield "typographic apostrophe", text.replace("'", "\u2019")
    if params.get("articles") is False:
        yield "with an article", f"the {text}"


def _dressed(text: str, rng: random.Random) -> Iterator[Named]:
    made = {"bold": f"**{text}**", "code marks": f"`{text}`", "full stop": f"{text}.", "label": f"Answer: {text}"}
    if '"' not in text:
        made["quotes"] = f'"{text}"'
    if re.search(r"[.*`'\"]$|^[*`'\"]|:", text):
        return
    yield from ((how, made[how]) for how in rng.sample(list(made), len(made)))


def wrong_text(task: Task, rng: random.Random) -> Iterator[Named]:
    accepted = [str(answer) for answer in task.verifier.params["answers"]]
    text, taken = accepted[0].strip(), set(map(key, accepted))
    groups = {
        "another term of the prompt": _terms(task.prompt, len(WORD.findall(text))),
        "a word left out": _shorter(text),
        "cut short": [text[:-1], text[: max(2, len(text) * 2 // 3)], text[1:]],
        "another inflection": _inflected(text),
        "denied": [f"not {text}", f"non-{text}", f"no {text}"],
        "letters swapped": _swapped(text, rng),
        "a word too many": [f"{text} {word}" for word in _terms(task.prompt, 1)[:3]],
        "another digit": [re.sub(r"\d(?=\D*$)", lambda d: str((int(d[0]) + 1) % 10), text)],
        "part of an alias": [word for other in accepted[1:] for word in WORD.findall(other)][:2],
    }
    for how, made in in_turn({how: list(dict.fromkeys(group)) for how, group in groups.items()}, rng):
        if key(made) and key(made) not in taken:
            yield how, made


def _terms(prompt: str, words: int) -> list[str]:
    """Runs of as many words of the prompt, none of them a mere function word."""
    found = [m for m in WORD.finditer(prompt) if m[0] not in ("answer",)]
    runs = [found[i : i + words] for i in range(len(found) - words + 1)]
    good = [
        r for r in runs if r[0][0].casefold() not in NOISE and r[-1][0].casefold() not in NOISE and len(r[0][0]) > 2
    ]
    return list(
        dict.fromkeys(
            prompt[r[0].start() : r[-1].end()] for r in good if "\n" not in prompt[r[0].start() : r[-1].end()]
        )
    )


def _shorter(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))] if len(words) > 1 else []


def _inflected(text: str) -> list[str]:
    if not text[-1:].isalpha():
        return []
    return [text[:-1] if text.endswith("s") else f"{text}s", f"{text}ing", f"{text}ed", f"un{text}"]


def _swapped(text: str, rng: random.Random) -> list[str]:
    places = [i for i in range(len(text) - 1) if text[i].isalnum() and text[i + 1].isalnum() and text[i] != text[i + 1]]
    chosen = rng.sample(places, min(2, len(places)))
    return [text[:i] + text[i + 1] + text[i] + text[i + 2 :] for i in chosen]


# choice


def _letters(task: Task) -> tuple[list[str], list[str]]:
    """(the right ones, the others)"""
    params = task.verifier.params
    right = list(params["correct"]) if isinstance(params["correct"], (list, tuple)) else [params["correct"]]
    return right, [letter for letter in params["options"] if letter not in right]


def right_choice(task: Task, rng: random.Random) -> Iterator[Named]:
    right, _ = _letters(task)
    texts = task.verifier.params.get("texts") or {}
    if isinstance(task.verifier.params["correct"], (list, tuple)):
        shuffled = rng.sample(right, len(right))
        yield from (
            ("another order", mark.join(shuffled))
            for mark in (", ", " and ", "\n")
            if len(right) == 2 or mark != " and "
        )
        return
    letter = right[0]
    made = {
        "lower case": letter.lower(), "brackets": f"({letter})", "full stop": f"{letter}.", "bold": f"**{letter}**",
        "named": f"Option {letter}", "boxed": f"\\boxed{{{letter}}}", "label": f"The correct answer is {letter}",
    }  # fmt: skip
    if texts:
        made |= {"with its text": f"{letter}) {texts[letter]}"}
    yield from ((how, made[how]) for how in rng.sample(list(made), len(made)))


def wrong_choice(task: Task, rng: random.Random) -> Iterator[Named]:
    (right, others), texts = _letters(task), task.verifier.params.get("texts") or {}
    if isinstance(task.verifier.params["correct"], (list, tuple)):
        yield from (("one missing", ", ".join(x for x in right if x != letter)) for letter in right if len(right) > 1)
        yield from (("one too many", ", ".join([*right, letter])) for letter in others)
        yield from (("one exchanged", ", ".join([*right[:-1], letter])) for letter in others)
        return
    yield from (("another option", letter) for letter in rng.sample(others, len(others)))
    if texts:
        yield from (("another option's text", texts[letter]) for letter in rng.sample(others, len(others)))
        yield from (("its letter with another's text", f"{right[0]}) {texts[letter]}") for letter in others[:2])
    yield from (("two options", f"{right[0]} or {letter}") for letter in others[:2])
    yield "denied", f"not {right[0]}"
    yield "all of them", ", ".join(task.verifier.params["options"])


# span


def _spans(task: Task) -> tuple[str, list[tuple[int, int]]]:
    return task.verifier.params["source"], [(one[0], one[1]) for one in task.verifier.params["spans"]]


def right_span(task: Task, rng: random.Random) -> Iterator[Named]:
    source, spans = _spans(task)
    start, end = rng.choice(spans)
    if task.verifier.params.get("by") == "offsets":
        made = (f"{start}-{end}", f"[{start}, {end}]", f"{start} to {end}", f'{{"start": {start}, "end": {end}}}')
        yield from (("another notation", text) for text in rng.sample(made, len(made)))
        return
    text = source[start:end]
    yield from (("another accepted place", source[a:b]) for a, b in spans if source[a:b] != text)
    yield from _dressed(text, rng)
    yield "white space", "  " + "  ".join(text.split()) + " "
    yield "upper case", text.upper()


def wrong_span(task: Task, rng: random.Random) -> Iterator[Named]:
    source, spans = _spans(task)
    if task.verifier.params.get("by") == "offsets":
        yield from _wrong_offsets(source, spans, rng)
        return
    taken = {key(source[a:b]) for a, b in spans}
    groups = {how: [source[a:b] for a, b in places] for how, places in _other_places(source, spans, rng).items()}
    for how, made in in_turn(groups, rng):
        if key(made) and key(made) not in taken:
            yield how, made


def _other_places(
    source: str, spans: Sequence[tuple[int, int]], rng: random.Random
) -> dict[str, list[tuple[int, int]]]:
    start, end = spans[0]
    words = [m.span() for m in WORD.finditer(source)]
    within = [w for w in words if start <= w[0] and w[1] <= end]
    before, after = [w for w in words if w[1] <= start][-WIDE:], [w for w in words if w[0] >= end][:WIDE]
    size = max(1, len(within))
    elsewhere = [
        (g[0][0], g[-1][1])
        for i in range(len(words))
        if len(g := words[i : i + size]) == size and (g[-1][1] <= start or g[0][0] >= end)
    ]
    return {
        "a word too many": [(w[0], end) for w in before[-1:]] + [(start, w[1]) for w in after[:1]],
        "a word left out": [(within[1][0], end), (start, within[-2][1])] if len(within) > 1 else [],
        "another place": rng.sample(elsewhere, min(6, len(elsewhere))),
        "its neighbour": before[-1:] + after[:1],
    }


def _wrong_offsets(source: str, spans: Sequence[tuple[int, int]], rng: random.Random) -> Iterator[Named]:
    start, end = spans[0]
    size = end - start
    for how, a, b in (
        ("ends one later", start, end + 1), ("ends one earlier", start, end - 1), ("starts one later", start + 1, end),
        ("starts one earlier", start - 1, end), ("shifted", start + 1, end + 1), ("shifted far", end, end + size),
        ("length for end", start, size), ("swapped", end, start), ("from 1", start + 1, end + 1),
    ):  # fmt: skip
        if (a, b) not in spans and a >= 0:
            yield how, f"{a}-{b}"


register(Mutator(verifier="text", right=right_text, wrong=wrong_text))
register(Mutator(verifier="choice", right=right_choice, wrong=wrong_choice))
register(Mutator(verifier="span", right=right_span, wrong=wrong_span))
