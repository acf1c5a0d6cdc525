"""Questions whose answer is read off a picture, each with what may be wrong about an answer and how far off it may be.

Nobody reads a picture more finely than to a few pixels. So `READ` pixels decide everything here: a value may be off by what
they are worth on the axis, and nothing is asked whose answer would change if values were off by `APART` pixels, which are more.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from kgsynth.concept import name_key
from kgsynth.synthesize.drawing.figures import Series
from kgsynth.synthesize.drawing.graphs import Diagram, Sets
from kgsynth.synthesize.drawing.plots import Axis, number
from kgsynth.task import VerifierSpec

READ, APART = 3, 7  # pixels
EXACT = 10  # pixels per unit from which a whole number is read without doubt
LARGE = 5  # a value that is asked for is at least this many tolerances
COUNTED = re.compile(r"\b[Hh]ow many (?:of the [0-9]+ |more |different )?([a-z]+s)\b")
NUMBER = "Write the number in <answer></answer>."
NAME = "Write its label, as it stands in the picture, in <answer></answer>."
NAMES = "Write the labels, separated by commas, in <answer></answer>."


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about one picture, its answer and plausible other answers."""

    kind: str
    difficulty: str
    text: str  # with how to answer
    verifier: VerifierSpec
    answer: str
    wrong: tuple[str, ...]


def about_bars(series: Series, axis: Axis, thing: str = "bar") -> Iterator[Question]:
    """Questions about one value per label on an axis; `thing` is what shows a value: "bar" or "point"."""
    reading = Reading(series, axis, thing)
    yield from _values(reading)
    yield from _ranks(reading)
    yield from _counts(reading)
    yield from _calculations(reading)
    if series.ordered:
        yield from _steps(reading)


@dataclass(frozen=True)
class Reading:
    """Values as they can be read off an axis."""

    series: Series
    axis: Axis
    thing: str

    @property
    def tolerance(self) -> float:
        """Of one value: 0 where whole numbers are told apart."""
        if self.series.whole and self.axis.scale >= EXACT:
            return 0.0
        return nice(READ / self.axis.scale, whole=self.series.whole)

    @property
    def apart(self) -> float:
        """Values this far apart are seen to differ."""
        return APART / self.axis.scale

    @property
    def ranked(self) -> list[tuple[str, float]]:
        pairs = zip(self.series.labels, self.series.values, strict=True)
        return sorted(pairs, key=lambda pair: -pair[1])

    def clear(self, value: float) -> bool:
        """Is no value close to this one?"""
        return all(abs(v - value) >= self.apart for v in self.series.values)


def nice(value: float, *, whole: bool) -> float:
    """The next larger of 1, 2, 5 times a power of ten; a whole number where only such are read."""
    power = 10.0 ** math.floor(math.log10(value))
    up = next(f * power for f in (1, 2, 5, 10) if f * power >= value * (1 - 1e-9))
    return max(1.0, up) if whole else round(up, 6)


def _values(r: Reading) -> Iterator[Question]:
    for label, value in _spread(r):
        if value >= max(LARGE * r.tolerance, r.apart):
            yield _number(
                "read", "easy", f'What is the value of "{label}"?', value, r.tolerance,
                others=r.series.values, nouns=_nouns(r.series.measure),
            )  # fmt: skip


def _spread(r: Reading) -> list[tuple[str, float]]:
    """Some of the values: the middle ones first, as ends are what other questions are about."""
    return r.ranked[1:-1][:3]


def _ranks(r: Reading) -> Iterator[Question]:
    ranked = r.ranked
    gaps = [a[1] - b[1] >= r.apart for a, b in pairwise(ranked)]
    labels = [label for label, _ in ranked]
    what = "longest bar" if r.thing == "bar" else "highest point"
    least = "shortest bar" if r.thing == "bar" else "lowest point"
    if gaps[0]:
        yield _name("most", "easy", f"Which label has the {what}?", labels[0], labels)
    if gaps[-1]:
        yield _name("least", "easy", f"Which label has the {least}?", labels[-1], labels[::-1])
    if gaps[0] and gaps[1]:
        yield _name("second", "medium", f"Which label has the second {what}?", labels[1], labels)
    if all(gaps[:3]) and len(ranked) > 4:
        order = "from the largest value down"
        yield _names("top", "medium", f"Which three labels have the largest values, {order}?", labels[:3], labels, ordered=True)  # fmt: skip
    middle = len(ranked) // 2
    if len(ranked) % 2 and len(ranked) > 4 and gaps[middle - 1] and gaps[middle]:
        yield _name("median", "hard", "Which label has the median of the values shown?", labels[middle], labels[middle - 2 :] + labels)  # fmt: skip
    if all(gaps) and 5 <= len(ranked) <= 9:
        asked = "Sort all labels by their value, the smallest first."
        yield _names("sort", "hard", asked, labels[::-1], labels, ordered=True)


def _counts(r: Reading) -> Iterator[Question]:
    n, values = len(r.series), r.series.values
    for tick in r.axis.ticks[1:-1]:
        above = sum(v > tick for v in values)
        if r.clear(tick) and 1 < above < n:
            reach = "extend beyond" if r.thing == "bar" else "lie above"
            asked = f"How many of the {n} {r.thing}s {reach} the gridline at {number(tick)}?"
            yield _count("above", "easy", asked, above, n)
    ranked = r.ranked
    for low in range(len(ranked) - 1, 3, -1):
        (top, high), (bottom, small) = ranked[low - 4], ranked[low]
        between = ranked[low - 3 : low]
        if all(high - v >= r.apart and v - small >= r.apart for _, v in between):
            asked = f'How many labels have a value larger than that of "{bottom}" and smaller than that of "{top}"?'
            yield _count("between", "medium", asked, 3, n)
            break
    mean = statistics.fmean(values)
    if r.clear(mean) and 1 < (above := sum(v > mean for v in values)) < n:
        yield _count("above mean", "hard", "How many labels have a value above the mean of all values shown?", above, n)
    near = _tick_near(mean, r)
    low, high = near * 0.5, near
    if r.clear(low) and r.clear(high) and low in r.axis.ticks and (inside := sum(low < v < high for v in values)) > 1:
        asked = f"How many of the {n} values lie between the gridlines at {number(low)} and {number(high)}?"
        yield _count("inside", "medium", asked, inside, n)


def _tick_near(value: float, r: Reading) -> float:
    return min(r.axis.ticks[1:], key=lambda tick: abs(tick - 1.5 * value))


def _calculations(r: Reading) -> Iterator[Question]:
    ranked, t = r.ranked, r.tolerance
    nouns = _nouns(r.series.measure)
    high, small = ranked[0][1], ranked[-1][1]
    asked = "By how much does the largest value exceed the smallest one?"
    if high - small >= max(LARGE * 2 * t, r.apart):
        yield _number("range", "medium", asked, high - small, 2 * t, others=[high, small, high + small], nouns=nouns)
    (a, large), (b, less) = ranked[1], ranked[len(ranked) // 2]
    if large - less >= max(LARGE * 2 * t, r.apart):
        asked = f'By how much is the value of "{a}" larger than that of "{b}"?'
        yield _number("difference", "medium", asked, large - less, 2 * t, others=[large, less, large + less], nouns=nouns)  # fmt: skip
    three = ranked[0], ranked[len(ranked) // 2], ranked[-1]
    named = ", ".join(f'"{label}"' for label, _ in three[:2]) + f' and "{three[2][0]}"'
    total = sum(value for _, value in three)
    others = [total - value for _, value in three] + [total / 3]
    yield _number("sum", "hard", f"What do the values of {named} add up to?", total, 2 * t, others=others, nouns=nouns)
    if t and less >= 8 * t and large / less >= 1.5:
        asked = f'How many times as large as the value of "{b}" is that of "{a}"?'
        slack = round(large / less * (t / large + t / less), 2)
        yield _number("ratio", "hard", asked, round(large / less, 3), slack, others=[less / large, large / less + 1])
    if not t and 0 < less < large and large % less == 0:
        asked = f'How many times as large as the value of "{b}" is that of "{a}"?'
        yield _number("ratio", "hard", asked, large / less, 0, others=[large - less, large / less + 1])


def _steps(r: Reading) -> Iterator[Question]:
    """Along an axis whose labels have an order."""
    labels, values = r.series.labels, r.series.values
    steps = [b - a for a, b in pairwise(values)]
    ups = sorted(range(len(steps)), key=lambda i: -steps[i])
    if steps[ups[0]] > 0 and steps[ups[0]] - steps[ups[1]] >= 2 * r.apart:
        asked = f"Between which two neighbouring {r.thing}s is the largest rise from left to right? Name the right one."
        yield _name("rise", "medium", asked, labels[ups[0] + 1], [labels[ups[1] + 1], labels[ups[0]], *labels])
    if steps[ups[-1]] < 0 and steps[ups[-2]] - steps[ups[-1]] >= 2 * r.apart:
        asked = f"Between which two neighbouring {r.thing}s is the largest fall from left to right? Name the right one."
        yield _name("fall", "medium", asked, labels[ups[-1] + 1], [labels[ups[-2] + 1], labels[ups[-1]], *labels])
    if all(step == 0 or abs(step) >= r.apart for step in steps) and (falls := sum(s < 0 for s in steps)) > 0:
        asked = f"How many times is a {r.thing} lower than the one just left of it?"
        yield _count("falls", "medium", asked, falls, len(steps) + 1)
        turns = sum(a * b < 0 for a, b in pairwise(steps))
        if turns and all(steps):
            asked = "How often does the line turn from rising to falling or from falling to rising?"
            yield _count("turns", "hard", asked, turns, len(steps) + 1)


def about_points(across: Series, up: Series, axes: tuple[Axis, Axis]) -> Iterator[Question]:
    """Questions about a scatter plot."""
    x, y = Reading(across, axes[0], "point"), Reading(up, axes[1], "point")
    labels = list(across.labels)
    for r, far, near, hint in (
        (x, "farthest to the right", "farthest to the left", "x"),
        (y, "highest", "lowest", "y"),
    ):
        ranked = r.ranked
        names = [label for label, _ in ranked]
        if ranked[0][1] - ranked[1][1] >= r.apart:
            yield _name(f"most {hint}", "easy", f"Which point lies {far}?", names[0], names)
        if ranked[-2][1] - ranked[-1][1] >= r.apart:
            yield _name(f"least {hint}", "easy", f"Which point lies {near}?", names[-1], names[::-1])
        for label, value in ranked[1:3]:
            if value >= max(LARGE * r.tolerance, r.apart):
                asked = f'How many {r.series.measure} does "{label}" have?'
                yield _number(f"read {hint}", "easy", asked, value, r.tolerance, others=[*x.series.values, *y.series.values], nouns=_nouns(r.series.measure))  # fmt: skip
    for tick in axes[0].ticks[1:-1]:
        for level in axes[1].ticks[1:-1]:
            inside = sum(a > tick and b > level for a, b in zip(across.values, up.values, strict=True))
            if x.clear(tick) and y.clear(level) and 1 < inside < len(labels):
                asked = f"How many points lie to the right of {number(tick)} and above {number(level)}?"
                yield _count("region", "medium", asked, inside, len(labels))
    for tick in axes[0].ticks[1:-1]:
        kept = sorted((up.values[i], labels[i]) for i, a in enumerate(across.values) if a < tick)
        if x.clear(tick) and 2 < len(kept) < len(labels) and kept[-1][0] - kept[-2][0] >= y.apart:
            asked = f"Of the points to the left of {number(tick)}, which one lies highest?"
            yield _name("highest left", "hard", asked, kept[-1][1], [name for _, name in kept[::-1]] + labels)


def about_diagram(diagram: Diagram) -> Iterator[Question]:
    """Questions about boxes and arrows."""
    names, n = list(diagram.names), len(diagram.names)
    into, out = {x: diagram.into(x) for x in names}, {x: diagram.out_of(x) for x in names}
    for name in names:
        if len(into[name]) > 1:
            yield _count("into", "easy", f'How many arrows lead to "{name}"?', len(into[name]), n)
            yield _names("sources", "easy", f'From which boxes do arrows lead to "{name}"?', into[name], names)
        if len(out[name]) > 1:
            yield _count("out", "easy", f'How many arrows start at "{name}"?', len(out[name]), n)
        below = diagram.below(name)
        if len(out[name]) < len(below) < min(n - 1, 7):
            asked = f'Which boxes can be reached from "{name}" along the arrows, in one step or several?'
            yield _names("reach", "medium", asked, below, names)
            yield _count("reach count", "medium", f'How many boxes can be reached from "{name}" along the arrows, in one step or several?', len(below), n)  # fmt: skip
        for end in below:
            links = [m for m in out[name] if end in out[m]]
            if len(links) == 1 and diagram.ways(name, end) == 1 and end not in out[name]:
                asked = f'Which box lies between "{name}" and "{end}" along the arrows?'
                yield _name("link", "medium", asked, links[0], [*out[name], *into[end], *names])
            if (ways := diagram.ways(name, end)) > 1:
                asked = f'By how many different chains of arrows can "{end}" be reached from "{name}"?'
                yield _count("ways", "hard", asked, ways, n)
    most = sorted(names, key=lambda x: -len(out[x]))
    if len(out[most[0]]) > len(out[most[1]]):
        yield _name("most out", "easy", "At which box do the most arrows start?", most[0], most)
    last = [x for x in names if not out[x]]
    yield _count("ends", "medium", "At how many boxes does no arrow start?", len(last), n)
    longest = max(_depth(diagram, x) for x in names)
    if longest > 2:
        yield _count("longest", "hard", "How many boxes does the longest chain of arrows join, both ends included?", longest, n)  # fmt: skip
    branching = [x for x in names if len(out[x]) > 1]
    if len(branching) > 1:
        yield _count(
            "branching", "hard", "How many boxes have more than one arrow starting at them?", len(branching), n
        )
    if sum(len(i) > 1 for i in into.values()) > 1:
        yield _count("joining", "hard", "At how many boxes do two or more arrows end?", sum(len(i) > 1 for i in into.values()), n)  # fmt: skip


def _depth(diagram: Diagram, name: str) -> int:
    return 1 + max((_depth(diagram, below) for below in diagram.out_of(name)), default=0)


def about_sets(sets: Sets) -> Iterator[Question]:
    """Questions about two overlapping circles."""
    (a, b), (only, both, other) = sets.names, sets.parts
    names = [*both, *only, *other]
    n = len(names)
    yield _names("both", "easy", f'Which names lie in both "{a}" and "{b}"?', both, names)
    yield _names("only", "medium", f'Which names lie in "{a}" but not in "{b}"?', only, names)
    yield _names("other", "medium", f'Which names lie in "{b}" but not in "{a}"?', other, names)
    yield _count("size", "medium", f'How many names lie in "{a}", those shared with "{b}" included?', len(only) + len(both), n)  # fmt: skip
    if len(only) != len(other):
        difference = abs(len(only) - len(other))
        larger, smaller = (a, b) if len(only) > len(other) else (b, a)
        yield _count("more", "hard", f'How many more names does "{larger}" hold than "{smaller}"?', difference, n)
    yield _count("one", "hard", "How many names lie in exactly one of the two circles?", len(only) + len(other), n)


def _number(
    kind: str, difficulty: str, asked: str, value: float, tolerance: float, *, others: Sequence[float], nouns: Sequence[str] = ()
) -> Question:  # fmt: skip
    params: dict[str, Any] = {"value": number(value)} | ({"absolute": tolerance} if tolerance else {})
    params |= {"nouns": list(nouns)} if nouns else {}
    step = math.ceil(max(1.0, 2.5 * tolerance)) if float(value).is_integer() else max(2.5 * tolerance, 0.1 * value)
    tries = [value + step, value - step, *others, value + 2 * step, value - 2 * step, value * 2, value / 2, value * 10]
    wrong = [number(v) for v in tries if v > 0 and abs(v - value) > 1.5 * tolerance + 1e-6 * value]
    allowed = f" Answers within {number(tolerance)} of the exact value count." if tolerance else ""
    return Question(
        kind=kind, difficulty=difficulty, text=f"{asked}{allowed} {NUMBER}", answer=number(value),
        verifier=VerifierSpec(name="number", params=params), wrong=_some(wrong, number(value)),
    )  # fmt: skip


def _count(kind: str, difficulty: str, asked: str, count: int, most: int) -> Question:
    tries = [count + 1, count - 1, count + 2, count - 2, most, most - count, 0, count + 3, most + 1, 2 * count]
    wrong = [str(i) for i in tries if i >= 0 and i != count]
    params: dict[str, Any] = {"value": str(count)} | ({"nouns": nouns} if (nouns := _counted(asked)) else {})
    return Question(
        kind=kind, difficulty=difficulty, text=f"{asked} {NUMBER}", answer=str(count),
        verifier=VerifierSpec(name="number", params=params), wrong=_some(wrong, str(count)),
    )  # fmt: skip


def _counted(asked: str) -> list[str]:
    """What a question counts, which may follow the number: "4 bars", "1 box"."""
    if asked.startswith("How often"):
        return ["times", "time"]
    found = COUNTED.search(asked)
    return [found[1], found[1].removesuffix("es" if found[1] == "boxes" else "s")] if found else []


def _name(kind: str, difficulty: str, asked: str, label: str, others: Sequence[str]) -> Question:
    wrong = [other for other in others if name_key(other) != name_key(label)]
    return Question(
        kind=kind, difficulty=difficulty, text=f"{asked} {NAME}", answer=label,
        verifier=VerifierSpec(name="text", params={"answers": [label]}), wrong=_some(wrong, label),
    )  # fmt: skip


def _names(
    kind: str, difficulty: str, asked: str, labels: Sequence[str], others: Sequence[str], *, ordered: bool = False
) -> Question:  # fmt: skip
    joined = ", ".join(labels)
    params: Mapping[str, Any] = {"items": list(labels), "ordered": ordered}
    outside = [x for x in others if x not in labels]
    wrong = [", ".join(labels[:-1]), *(", ".join([*labels[:-1], x]) for x in outside[:3])]
    wrong += [", ".join([*labels, x]) for x in outside[:3]] + [", ".join(labels[1:])]
    if ordered:
        swapped = [*labels[:-2], labels[-1], labels[-2]]
        wrong = [", ".join(swapped), ", ".join(labels[::-1]), ", ".join([labels[1], labels[0], *labels[2:]]), *wrong]
    return Question(
        kind=kind, difficulty=difficulty, text=f"{asked} {NAMES}", answer=joined,
        verifier=VerifierSpec(name="listed", params=params), wrong=_some([w for w in wrong if w], joined),
    )  # fmt: skip


def _some(wrong: Sequence[str], right: str) -> tuple[str, ...]:
    return tuple(w for w in dict.fromkeys(wrong) if w != right)[:10]


def _nouns(measure: str) -> list[str]:
    return [measure, measure.removesuffix("s")] if measure.isalpha() else []
