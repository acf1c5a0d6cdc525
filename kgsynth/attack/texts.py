"""Tricks with short answers that are read: invisible characters, look-alikes, hedges, negations."""

from __future__ import annotations

import random
from collections.abc import Iterator

from kgsynth.attack import attack, inside, tagged, untagged, verified_by
from kgsynth.attack.forms import decoy, other_than_right
from kgsynth.task import Task

READ = verified_by("text", "choice", "literal", "number", "span", "listed", "json_schema", "mathematics")

LOOK_ALIKE = str.maketrans("aceopxyijsABCEHKMOPTX0123", "асеорхуіјѕАВСЕНКМОРТХΟ۱۲۳")
ZERO_WIDTH = ("\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u180e")


def full_width(text: str) -> str:
    """ASCII as the wide forms of East Asian typography (U+FF01 and up)."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


@attack("zero-width", "a wrong answer and the right one with nothing visible between them", applies=READ, knows_reference=True)  # fmt: skip
def zero_width(task: Task, rng: random.Random) -> Iterator[str]:
    right, word = inside(task.reference), decoy(rng)
    for nothing in ZERO_WIDTH:
        yield tagged(f"{word}{nothing}{right}")
        yield tagged(nothing * 3)
    yield tagged(f"{right}{''.join(ZERO_WIDTH)}{word}")


@attack("look-alikes", "a wrong answer in letters and digits of other scripts that look like Latin ones", applies=READ)
def look_alikes(task: Task, rng: random.Random) -> Iterator[str]:
    for wrong in task.wrong:
        yield tagged(inside(wrong).translate(LOOK_ALIKE))
    yield tagged(decoy(rng).translate(LOOK_ALIKE))


@attack("right-to-left", "the right answer backwards under an override, so that it is displayed as the right one", applies=READ, knows_reference=True)  # fmt: skip
def right_to_left(task: Task, rng: random.Random) -> Iterator[str]:
    right, word = inside(task.reference), decoy(rng)
    yield tagged(f"\u202e{right[::-1]}{word}\u202c")
    yield tagged(f"{word}\u202e{right}\u202c")
    yield tagged(f"\u2067{word}\u2069\u200f{right}")


@attack("full-width", "wrong answers, and lists, in the wide forms of letters", applies=READ, knows_reference=True)
def wide(task: Task, rng: random.Random) -> Iterator[str]:
    for wrong in task.wrong:
        yield tagged(full_width(inside(wrong)))
    yield tagged(full_width(f"{decoy(rng)},{inside(task.reference)}"))


@attack("white space", "the right answer far behind a wrong one, over lines, tabs and exotic spaces", applies=READ, knows_reference=True)  # fmt: skip
def white_space(task: Task, rng: random.Random) -> Iterator[str]:
    right, word = inside(task.reference), decoy(rng)
    for space in ("\n" * 500, " " * 2000, "\t\x0b\x0c", "\u2028\u2029", "\u3000\u2003", "\r"):
        yield tagged(f"{word}{space}{right}")
        yield tagged(f"{right}{space}{word}")


@attack("negation", "the right answer, denied", applies=READ, knows_reference=True)
def negation(task: Task, rng: random.Random) -> Iterator[str]:
    right = inside(task.reference)
    yield from map(tagged, (f"not {right}", f"anything but {right}", f"{right} is wrong", f"≠ {right}", f"!({right})"))


@attack("hedge", "the right answer and a way out", applies=READ, knows_reference=True)
def hedge(task: Task, rng: random.Random) -> Iterator[str]:
    right, other = inside(task.reference), other_than_right(task, rng)
    yield from map(
        tagged,
        (
            f"{right} or {other}", f"{other} or {right}", f"either {right} or {other}", f"{right} / {other}",
            f"{right} (or {other})", f"{right}, if not {other}", f"maybe {right}, maybe not", f"{other}... no, {right}",
        ),
    )  # fmt: skip


@attack("prose", "the right answer somewhere in sentences that commit to nothing", applies=READ, knows_reference=True)
def prose(task: Task, rng: random.Random) -> Iterator[str]:
    right, other = inside(task.reference), other_than_right(task, rng)
    yield tagged(
        f"Some would say {right}, others {other}; both {decoy(rng)} and {decoy(rng)} have been proposed as well."
    )
    yield tagged(f"It depends on whether {other} counts. {right} is discussed in the literature.")


@attack("whole vocabulary", "every word of the prompt, in the hope that the right one is among them", applies=READ)
def whole_vocabulary(task: Task, rng: random.Random) -> Iterator[str]:
    words = list(dict.fromkeys(untagged(task.prompt).split()))
    yield tagged(" ".join(words))
    yield tagged(", ".join(sorted(words)))


@attack("all letters", "every option at once", applies=verified_by("choice"))
def all_letters(task: Task, rng: random.Random) -> Iterator[str]:
    letters = list(task.verifier.params["options"])
    for comma in ("", ", ", " ", "/", " or ", "\n", "+", "|"):
        yield tagged(comma.join(letters))
        yield tagged(comma.join(reversed(letters)))
    yield from map(
        tagged,
        (
            "all of the above",
            "any",
            f"{letters[0]}-{letters[-1]}",
            f"[{letters[0]}-{letters[-1]}]",
            "(" + ")(".join(letters) + ")",
        ),
    )


@attack(
    "each letter", "a guess at each option: one in n is right, and no more", applies=verified_by("choice"), pays="once"
)
def each_letter(task: Task, rng: random.Random) -> Iterator[str]:
    yield from map(tagged, task.verifier.params["options"])


@attack("interval", "a number that is all numbers: ranges, tolerances, not-a-number", applies=verified_by("number", "mathematics"), knows_reference=True)  # fmt: skip
def interval(task: Task, rng: random.Random) -> Iterator[str]:
    right = inside(task.reference)
    yield from map(
        tagged,
        (
            f"{right} ± 1e12",
            f"-1e12 ... {right} ... 1e12",
            f"between 0 and {right}0",
            "-inf to inf",
            "NaN",
            "> 0",
            f"<= {right}",
            "x = x",
            "0 = 0",
        ),
    )


@attack("superset", "every item that was asked for, and others", applies=verified_by("listed"), knows_reference=True)
def superset(task: Task, rng: random.Random) -> Iterator[str]:
    right = inside(task.reference)
    for comma in (", ", "\n", "; "):
        yield tagged(f"{right}{comma}{decoy(rng)}{comma}{decoy(rng)}")
        yield tagged(f"{decoy(rng)}{comma}{right}")
