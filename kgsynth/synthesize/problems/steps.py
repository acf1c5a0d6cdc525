"""Steps, roots and intervals: what `math.floor`, `round`, `abs` and functions with a domain document. Tried again point by point."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from kgsynth.synthesize.problems import Problem, at, family, signed


@family("rounding down and up", r"\b[Cc]eiling\b|\b[Ff]loor of\b|[Tt]runcates? (?:the (?:Real|number|value)|x)\b")
def floors(rng: random.Random, level: int) -> Problem:
    a, b = rng.randint(40, 300), rng.choice((7, 9, 11, 12, 13))
    a += a % b == 0
    if level == 0:
        text = f"The floor of x is the largest whole number that is not above x, the ceiling the smallest that is not below x. What is floor(-{a}/{b}) + ceiling({a + 5 * b}/{b})?"
        answer = (-a) // b - (-(a + 5 * b)) // b
        slips = (answer + 1, answer - 1, answer + 2, (a + 5 * b) // b + a // b, a // b)
        return Problem(text=text, answer=answer, again=math.floor(-a / b) + math.ceil((a + 5 * b) / b), slips=slips)
    if level == 1:
        k, c, n = rng.randint(2, 6), rng.randint(-9, 9), rng.randint(-6, 12)
        text = f"For which real numbers x is floor({k}x {signed(c)}) = {n}, where floor(y) is the largest whole number that is not above y? Answer with an interval."
        low, high = Fraction(n - c, k), Fraction(n + 1 - c, k)
        inside = [
            Fraction(i, 60 * k)
            for i in range(60 * (n - c - 2), 60 * (n - c + 3))
            if math.floor(k * Fraction(i, 60 * k) + c) == n
        ]
        again = f"[{inside[0]}, {inside[-1] + Fraction(1, 60 * k)})"
        slips = (
            f"({low}, {high}]",
            f"[{low}, {high}]",
            f"({low}, {high})",
            f"[{n - c}, {n + 1 - c})",
            f"[{Fraction(n + c, k)}, {Fraction(n + 1 + c, k)})",
            f"[{low - Fraction(1, k)}, {low})",
        )
        return Problem(text=text, answer=f"[{low}, {high})", again=again, slips=slips, kind="interval")
    p, q, n = rng.choice((2, 3, 4)), rng.choice((5, 7)), rng.randint(12, 30)
    text = f"What is the sum of floor({p}k/{q}) over all whole numbers k from 1 to {n}, where floor(y) is the largest whole number that is not above y?"
    answer = (p * n * (n + 1) // 2 - sum(p * k % q for k in range(1, n + 1))) // q
    slips = (
        p * n * (n + 1) // 2 // q,
        answer + n,
        sum(-(-p * k // q) for k in range(1, n + 1)),
        sum(round(p * k / q) for k in range(1, n + 1)),
        answer - p * n // q,
    )
    return Problem(text=text, answer=answer, again=sum(math.floor(p * k / q) for k in range(1, n + 1)), slips=slips)


@family(
    "rounding halves",
    r"[Rr]ound a number|[Rr]ound(?:s|ed|ing)? (?:half|to the nearest|to nearest|to even)|ROUND_HALF|nearest even",
)
def halves(rng: random.Random, level: int) -> Problem:
    n = at(level, 3, 5, 7)
    values = [rng.choice((-1, 1) if level else (1,)) * Fraction(2 * rng.randint(0, 24) + 1, 2) for _ in range(n - 1)]
    values.append(Fraction(rng.randint(3, 60), 4))
    shown = ", ".join(f"{float(v):g}" for v in values)
    text = f"Each of the numbers {shown} is rounded to the nearest whole number, halves to the even neighbour. What is the sum of the rounded numbers?"

    def to_even(v: Fraction) -> int:
        low = v.numerator // v.denominator
        return low + (v - low > Fraction(1, 2) or (v - low == Fraction(1, 2) and low % 2 == 1))

    up = sum(math.floor(v + Fraction(1, 2)) for v in values)
    away = sum(math.floor(abs(v) + Fraction(1, 2)) * (1 if v > 0 else -1) for v in values)
    slips = (
        up,
        away,
        sum(map(math.floor, values)),
        to_even(sum(values, Fraction(0))),
        sum(values),
        sum(map(math.ceil, values)),
        sum(map(math.trunc, values)),
    )
    return Problem(text=text, answer=sum(map(to_even, values)), again=sum(round(float(v)) for v in values), slips=slips)


@family("absolute value", r"[Aa]bsolute value|\bmagnitude of x\b")
def absolute(rng: random.Random, level: int) -> Problem:
    k, c, r = rng.randint(2, 6), rng.randint(-12, 12) or 5, rng.randint(3, 20)
    ends = Fraction(-r - c, k), Fraction(r - c, k)
    if level == 0:
        text = f"Which real numbers x satisfy |{k}x {signed(c)}| = {r}? Answer with the set of all of them."
        again = frozenset(Fraction(i, k) for i in range(-200, 201) if abs(i + c) == r)
        slips = (
            frozenset(ends[1:]),
            frozenset(ends[:1]),
            frozenset(-e for e in ends),
            frozenset({Fraction(r + c, k), Fraction(r - c, k)}),
            frozenset({ends[1], -ends[1]}),
            frozenset({Fraction(r - c), Fraction(-r - c)}),
        )
        return Problem(text=text, answer=frozenset(ends), again=again, slips=slips, kind="set")
    if level == 1:
        text = f"Which real numbers x satisfy |{k}x {signed(c)}| < {r}? Answer with an interval."
        inside = [Fraction(i, 10 * k) for i in range(-800, 801) if abs(Fraction(i, 10) + c) < r]
        again = f"({inside[0] - Fraction(1, 10 * k)}, {inside[-1] + Fraction(1, 10 * k)})"
        a, b = ends
        slips = (
            f"[{a}, {b}]",
            f"(-\\infty, {b})",
            f"({-b}, {-a})",
            f"(-\\infty, {a})\\cup({b}, \\infty)",
            f"[{a}, {b})",
            f"({a * k}, {b * k})",
        )
        return Problem(text=text, answer=f"({a}, {b})", again=again, slips=slips, kind="interval")
    a, gap = rng.randint(-9, 9), rng.randint(2, 9)
    b, s = a + gap, gap + 2 * rng.randint(1, 6)
    text = f"Which real numbers x satisfy |x {signed(-a)}| + |x {signed(-b)}| ≤ {s}? Answer with an interval."
    low, high = Fraction(a + b - s, 2), Fraction(a + b + s, 2)
    inside = [Fraction(i, 4) for i in range(-400, 401) if abs(Fraction(i, 4) - a) + abs(Fraction(i, 4) - b) <= s]
    slips = (
        f"({low}, {high})",
        f"[{a}, {b}]",
        f"[{a - s}, {b + s}]",
        f"[{-high}, {-low}]",
        f"[{low}, \\infty)",
        f"[{low - 1}, {high + 1}]",
    )
    return Problem(
        text=text, answer=f"[{low}, {high}]", again=f"[{inside[0]}, {inside[-1]}]", slips=slips, kind="interval"
    )


@family("domains", r"[Ll]ogarithm|[Ss]quare root|[Aa]rc (?:co)?sine")
def domains(rng: random.Random, level: int) -> Problem:
    k, c = rng.randint(2, 7), rng.randint(-15, 15) or 4
    if level == 0:
        name, closed = rng.choice((("ln", False), ("sqrt", True)))
        text = f"For which real numbers x is {name}({c} - {k}x) a real number? Answer with an interval."
        b = Fraction(c, k)
        inside = max(
            Fraction(i, 10 * k)
            for i in range(-500, 501)
            if (c - Fraction(i, 10) >= 0 if closed else c - Fraction(i, 10) > 0)
        )
        end = b if closed else inside + Fraction(1, 10 * k)
        marks, other = ("]", ")") if closed else (")", "]")
        again = f"(-\\infty, {inside if closed else end}{marks}"
        slips = (
            f"(-\\infty, {b}{other}",
            f"{'[' if closed else '('}{b}, \\infty)",
            f"(-\\infty, {-b}{marks}",
            f"(-\\infty, {c}{marks}",
            f"(-\\infty, {1 / b if b else 1}{marks}",
        )
        return Problem(text=text, answer=f"(-\\infty, {b}{marks}", again=again, slips=slips, kind="interval")
    a, b = sorted(rng.sample(range(-9, 10), 2))
    if level == 1:
        text = (
            f"For which real numbers x is sqrt(x^2 {signed(-a - b)}x {signed(a * b)}) a real number? Answer with a set of intervals."
            if a + b and a * b
            else ""
        )
        if not text:
            return domains(rng, level)
        tenths = [Fraction(i, 2) for i in range(-60, 61) if (Fraction(i, 2) - a) * (Fraction(i, 2) - b) < 0]
        again = f"(-\\infty, {tenths[0] - Fraction(1, 2)}]\\cup[{tenths[-1] + Fraction(1, 2)}, \\infty)"
        slips = (
            f"[{a}, {b}]",
            f"(-\\infty, {a})\\cup({b}, \\infty)",
            f"[{b}, \\infty)",
            f"(-\\infty, {-b}]\\cup[{-a}, \\infty)",
            f"({a}, {b})",
        )
        return Problem(
            text=text, answer=f"(-\\infty, {a}]\\cup[{b}, \\infty)", again=again, slips=slips, kind="interval"
        )
    text = (
        f"For which real numbers x is arcsin(({k}x {signed(c)})/{abs(a) + 2}) a real number? Answer with an interval."
    )
    r = abs(a) + 2
    low, high = Fraction(-r - c, k), Fraction(r - c, k)
    inside = [Fraction(i, k) for i in range(-60, 61) if abs(i + c) <= r]
    slips = (
        f"({low}, {high})",
        f"[{-high}, {-low}]",
        f"[{Fraction(-1 - c, k)}, {Fraction(1 - c, k)}]",
        f"[{-r - c}, {r - c}]",
        f"(-\\infty, {high}]",
    )
    return Problem(
        text=text, answer=f"[{low}, {high}]", again=f"[{inside[0]}, {inside[-1]}]", slips=slips, kind="interval"
    )
