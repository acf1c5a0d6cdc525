"""Whole numbers: what `math.gcd`, `math.lcm`, `math.isqrt`, `divmod`, `pow` with a modulus and `range` document."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

from kgsynth.synthesize.problems import Problem, at, family, listed


@family("common divisor", r"[Gg]reatest [Cc]ommon (?:[Dd]ivisor|[Ff]actor)|[Ee]uclid(?:'s|ean) [Aa]lgorithm")
def divisor(rng: random.Random, level: int) -> Problem:
    g, a, b = rng.randint(6, 24), *rng.sample((4, 5, 7, 9, 11, 13), 2)
    if level == 0:
        text = (
            f"A rectangular floor of {g * a} cm by {g * b} cm is to be covered with equal square tiles, without cutting any. What is "
            "the largest possible side of a tile, in centimetres?"
        )
        slips = (math.lcm(g * a, g * b), math.gcd(a, g) * math.gcd(b, g), abs(g * a - g * b), g // 2, 2 * g)
        return Problem(text=text, answer=_euclid(g * a, g * b), again=math.gcd(g * a, g * b), slips=slips)
    if level == 1:
        text = (
            f"How many points with whole-number coordinates lie on the straight segment from (0, 0) to ({g * a}, {g * b}), both ends "
            "included?"
        )
        again = sum(g * b * x % (g * a) == 0 for x in range(g * a + 1))
        slips = (g, g - 1, g * a + 1, min(g * a, g * b), math.lcm(a, b))
        return Problem(text=text, answer=_euclid(g * a, g * b) + 1, again=again, slips=slips)
    m, n = sorted(rng.sample(range(12, 40), 2))
    base = rng.choice((2, 3))
    text = f"What is the greatest common divisor of {base}^{m} - 1 and {base}^{n} - 1?"
    d = _euclid(m, n)
    slips = (d, 1, base**d, base**d + 1, base**m - 1, base ** (d + 1) - 1)
    return Problem(text=text, answer=base**d - 1, again=math.gcd(base**m - 1, base**n - 1), slips=slips)


def _euclid(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


@family("common multiple", r"[Ll]east [Cc]ommon [Mm]ultiple")
def multiple(rng: random.Random, level: int) -> Problem:
    periods = [rng.choice((2, 3, 4, 6)) * x for x in rng.sample((4, 5, 6, 7, 9, 10), at(level, 2, 3, 3))]
    together = math.lcm(*periods)
    again = next(t for t in itertools.count(periods[0], periods[0]) if not any(t % p for p in periods))
    own = 1
    for p in periods:
        own = own * p // _euclid(own, p)
    slips = (math.prod(periods), sum(periods), math.gcd(*periods), together // 2, math.prod(periods[:2]), max(periods))
    if level < 2:
        text = (
            f"Lights flash every {listed(periods)} seconds. They have just flashed all at once. After how many seconds do they "
            "next flash all at once?"
        )
        return Problem(text=text, answer=own, again=again, slips=slips)
    rest = rng.randint(1, min(periods) - 1)
    text = f"What is the smallest whole number greater than {rest} that leaves the remainder {rest} when divided by each of {listed(periods)}?"
    found = next(n for n in itertools.count(rest + 1) if all(n % p == rest for p in periods))
    return Problem(text=text, answer=own + rest, again=found, slips=(own, own - rest, *(s + rest for s in slips)))


@family("square roots of whole numbers", r"[Ii]nteger (?:part of the )?square root|\bsquare root\b")
def squares(rng: random.Random, level: int) -> Problem:
    low, high = rng.randint(50, 900), rng.randint(1500, 9000)
    if level == 0:
        text = f"{high} seats are arranged as the largest possible square, as many rows as seats in a row. How many seats are left over?"
        slips = ((math.isqrt(high) + 1) ** 2 - high, math.isqrt(high), high - math.isqrt(high), math.isqrt(high) ** 2)
        again = min(high - n * n for n in range(high) if n * n <= high)
        return Problem(text=text, answer=high - math.isqrt(high) ** 2, again=again, slips=slips)
    roots = [int(n**0.5 + 1e-9) for n in (low - 1, high)]
    numbers = range(low, high + 1)
    square = [n for n in numbers if math.isqrt(n) ** 2 == n]
    if level == 1:
        text = f"How many perfect squares are there from {low} to {high}, both included?"
        slips = (
            roots[1] - roots[0] + 1,
            roots[1] - roots[0] - 1,
            roots[1],
            math.isqrt(high - low),
            math.isqrt(high - low) + 1,
        )
        return Problem(text=text, answer=roots[1] - roots[0], again=len(square), slips=slips)
    cubes = [n**3 for n in range(1, 100)]
    text = f"How many whole numbers from 1 to {high} are neither perfect squares nor perfect cubes?"
    s, c, six = math.isqrt(high), sum(x <= high for x in cubes), sum(n**6 <= high for n in range(1, 20))
    again = sum(math.isqrt(n) ** 2 != n and n not in cubes for n in range(1, high + 1))
    slips = (high - s - c, s + c - six, high - s - c - six, high - s, high - six)
    return Problem(text=text, answer=high - s - c + six, again=again, slips=slips)


@family(
    "powers and remainders",
    r"with 3 arguments|\*\*exp % mod|\b[Mm]odulo\b|\b[Mm]odular arith|pow with modulus|[Dd]ivision remainder",
)
def remainders(rng: random.Random, level: int) -> Problem:
    b, e, m = (
        rng.randint(3, 13),
        rng.randint(*at(level, (5, 9), (30, 99), (1000, 9999))),
        rng.randint(*at(level, (7, 15), (11, 40), (50, 150))),
    )
    text = f"What is the remainder when {b}^{e} is divided by {m}?"
    seen = [1 % m]
    while (step := seen[-1] * b % m) not in seen:
        seen.append(step)
    start = seen.index(step)
    cycle = seen[start:]
    answer = seen[e] if e < start else cycle[(e - start) % len(cycle)]
    slips = (pow(b, e - 1, m), pow(b, e + 1, m), b * e % m, pow(b, e % m, m), (m - answer) % m, e % m, 1)
    return Problem(text=text, answer=answer, again=pow(b, e, m), slips=slips)


@family(
    "inverse modulo", r"with 3 arguments|\*\*exp % mod|\b[Mm]odular (?:arith|inverse)|inverse modulo|pow with modulus"
)
def inverses(rng: random.Random, level: int) -> Problem:
    m = rng.choice(at(level, (11, 13, 17, 19, 23), (29, 37, 41, 50, 64), (97, 101, 120, 143, 169)))
    a = rng.choice([n for n in range(3, m - 1) if math.gcd(n, m) == 1 and n * n % m != 1])
    c = at(level, 1, 1, rng.randint(2, m - 1))
    right = "1" if c == 1 else str(c)
    text = f"What is the smallest positive whole number x for which {a}·x leaves the remainder {right} when divided by {m}?"
    again = next(x for x in range(1, m + 1) if a * x % m == c % m)
    answer = _extended(a, m) * c % m
    slips = (m - answer, (m - a) % m, a * c % m, answer + m, _extended(a, m) % m, (answer + c) % m)
    return Problem(text=text, answer=answer, again=again, slips=slips)


def _extended(a: int, m: int) -> int:
    """The inverse of a modulo m, by the extended Euclidean algorithm."""
    r0, r1, t0, t1 = m, a, 0, 1
    while r1:
        q = r0 // r1
        r0, r1, t0, t1 = r1, r0 - q * r1, t1, t0 - q * t1
    return t0 % m


@family("quotient and remainder", r"[Ff]loor division|\bquotient\b|x//y|\bdivmod\b|a // b")
def quotients(rng: random.Random, level: int) -> Problem:
    b = rng.randint(6, 19)
    if level == 0:
        n = rng.randint(4000, 90000)
        text = f"Write {n} seconds as h hours, m minutes and s seconds with 0 ≤ m < 60 and 0 ≤ s < 60. Answer with the triple (h, m, s)."
        answer = (n // 3600, n // 60 % 60, n % 60)
        minutes, seconds = divmod(n, 60)
        slips = (
            (n // 3600, n % 60, n // 60 % 60),
            (n // 3600, n // 60, n % 60),
            (n // 3600, n % 3600 // 60 + 1, n % 60),
            (n // 60, 0, n % 60),
        )
        return Problem(text=text, answer=answer, again=(*divmod(minutes, 60), seconds), slips=slips, kind="tuple")
    if level == 1:
        a = -rng.choice([n for n in range(50, 400) if n % b])
        text = f"Find the whole numbers q and r with {a} = {b}·q + r and 0 ≤ r < {b}. Answer with the pair (q, r)."
        q = -(-a // b) - 1
        slips = ((-(-a // b), -(-a % b)), (-(-a // b), -a % b), (q, -a % b), (q + 1, a - b * q), (q - 1, a - b * q + b))
        return Problem(
            text=text, answer=(q, a - b * q), again=divmod(a, b), slips=(*slips, (a - b * q, q)), kind="tuple"
        )
    p, q = rng.sample((7, 9, 11, 13, 16, 17, 19), 2)
    s, t = rng.randint(1, p - 1), rng.randint(1, q - 1)
    text = f"What is the smallest positive whole number that leaves the remainder {s} when divided by {p} and the remainder {t} when divided by {q}?"
    answer = (s + p * ((t - s) * _extended(p % q, q) % q)) % (p * q)
    again = next(n for n in range(1, p * q + 1) if n % p == s and n % q == t)
    slips = (
        answer + p * q,
        p * q - answer,
        s * t,
        p * q + s + t,
        answer + p,
        answer + q,
        (t + q * ((s - t) % p)) % (p * q),
    )
    return Problem(text=text, answer=answer, again=again, slips=slips)


@family(
    "arithmetic progression",
    r"sequence of integers from start|start, start\+step|[Aa]rithmetic progression|range of numbers",
)
def progression(rng: random.Random, level: int) -> Problem:
    start, step, stop = rng.randint(-20, 30), rng.randint(3, 9), rng.randint(120, 400)
    terms = range(start, stop, step)
    n = -(-(stop - start) // step)
    shown = f"{start}, {start + step}, {start + 2 * step}, ..."
    if level == 0:
        text = f"How many terms of the sequence {shown} (each {step} more than the one before) are less than {stop}?"
        return Problem(
            text=text,
            answer=n,
            again=len(terms),
            slips=(n - 1, n + 1, (stop - start) // step + 2, stop // step, stop - start),
        )
    total = n * (2 * start + (n - 1) * step) // 2
    if level == 1:
        text = f"What is the sum of all terms of the sequence {shown} (each {step} more than the one before) that are less than {stop}?"
        slips = (
            total + start + n * step,
            total - start,
            n * (start + stop) // 2,
            total - terms[-1],
            n * step * (n - 1) // 2,
        )
        return Problem(text=text, answer=total, again=sum(terms), slips=slips)
    a, b = rng.sample((3, 4, 5, 6, 7, 10), 2)
    text = f"What is the sum of all whole numbers from 1 to {stop} that are divisible neither by {a} nor by {b}?"

    def multiples(d: int) -> int:
        return d * (stop // d) * (stop // d + 1) // 2

    whole, both = stop * (stop + 1) // 2, math.lcm(a, b)
    answer = whole - multiples(a) - multiples(b) + multiples(both)
    again = sum(x for x in range(1, stop + 1) if x % a and x % b)
    slips = (
        whole - multiples(a) - multiples(b),
        whole - answer,
        whole - multiples(a) - multiples(b) + multiples(a * b + 1),
        whole - multiples(both),
        answer + stop,
    )
    return Problem(text=text, answer=answer, again=again, slips=slips)


@family("products", r"[Pp]roduct of all the elements|[Cc]alculates? the product")
def products(rng: random.Random, level: int) -> Problem:
    n = rng.randint(6, 30)
    if level == 0:
        text, terms = f"(1 + 1/1)·(1 + 1/2)·(1 + 1/3)· ... ·(1 + 1/{n})", [Fraction(k + 1, k) for k in range(1, n + 1)]
        answer, slips = n + 1, (n, n + 2, Fraction(n + 1, n), 2 * n, Fraction(1, n + 1))
    elif level == 1:
        text = f"(1 - 1/2^2)·(1 - 1/3^2)·(1 - 1/4^2)· ... ·(1 - 1/{n}^2)"
        terms = [1 - Fraction(1, k * k) for k in range(2, n + 1)]
        answer = Fraction(n + 1, 2 * n)
        slips = (
            Fraction(1, n),
            Fraction(n, 2 * (n - 1)),
            Fraction(n + 2, 2 * (n + 1)),
            Fraction(n + 1, n),
            Fraction(1, 2),
        )
    else:
        text = f"the product of (k^3 - 1)/(k^3 + 1) over all whole numbers k from 2 to {n}"
        terms = [Fraction(k**3 - 1, k**3 + 1) for k in range(2, n + 1)]
        answer = Fraction(2 * (n * n + n + 1), 3 * n * (n + 1))
        slips = (
            Fraction(2, 3),
            Fraction(2 * (n * n - n + 1), 3 * n * (n - 1)),
            Fraction(2, n * (n + 1)),
            Fraction(n * n + n + 1, 3 * n * (n + 1)),
        )
    return Problem(text=f"What is {text}, in lowest terms?", answer=answer, again=math.prod(terms), slips=slips)


@family(
    "sums", r"[Aa]ccumulated sums?|running total|\bcumulatively\b|[Rr]eturn the sum of|sum of values in the iterable"
)
def sums(rng: random.Random, level: int) -> Problem:
    n = rng.randint(12, 40)
    if level == 0:
        text = f"What is 1·2 + 2·3 + 3·4 + ... + {n}·{n + 1}?"
        answer, again = n * (n + 1) * (n + 2) // 3, sum(k * (k + 1) for k in range(1, n + 1))
        slips = (
            n * (n + 1) * (2 * n + 1) // 6,
            (n - 1) * n * (n + 1) // 3,
            n * (n + 1) // 2,
            n * (n + 1) * (n + 2) // 6,
            answer + n + 1,
        )
    elif level == 1:
        step = rng.randint(2, 4)
        text = f"What is the sum of 1/(k·(k + {step})) over all whole numbers k from 1 to {n}?"
        answer = sum((Fraction(1, k) - Fraction(1, n + k) for k in range(1, step + 1)), Fraction(0)) / step
        again = sum(Fraction(1, k * (k + step)) for k in range(1, n + 1))
        slips = (
            answer * step,
            1 - Fraction(1, n + step),
            Fraction(n, n + 1),
            answer + Fraction(1, n),
            Fraction(1, step),
        )
    else:
        r = rng.choice((2, 3))
        n = rng.randint(6, 12)
        text = f"What is 1·{r} + 2·{r}^2 + 3·{r}^3 + ... + {n}·{r}^{n}?"
        answer = r * (1 - (n + 1) * r**n + n * r ** (n + 1)) // (1 - r) ** 2
        again = sum(k * r**k for k in range(1, n + 1))
        slips = (
            n * r**n,
            (r ** (n + 1) - r) // (r - 1),
            answer - n * r**n,
            answer + (n + 1) * r ** (n + 1),
            n * (r ** (n + 1) - 1) // (r - 1),
        )
    return Problem(text=text, answer=answer, again=again, slips=slips)


@family("coins", r"[Gg]reatest [Cc]ommon (?:[Dd]ivisor|[Ff]actor)|[Ll]east [Cc]ommon [Mm]ultiple")
def coins(rng: random.Random, level: int) -> Problem:
    a, b = at(level, (4, 7), (7, 11), (9, 16))
    a, b = rng.choice([(x, y) for x in range(a - 1, b) for y in range(b - 2, b + 6) if x < y and math.gcd(x, y) == 1])
    payable = {a * i + b * j for i in range(b + 1) for j in range(a + 1)}
    missing = [n for n in range(1, a * b) if n not in payable]
    if level == 0:
        text = f"Stamps are worth {a} cents or {b} cents each. What is the largest whole number of cents that no combination of such stamps makes up exactly?"
        return Problem(
            text=text, answer=a * b - a - b, again=max(missing), slips=(a * b, a * b - 1, a * b - a, a * b - b, a + b)
        )
    text = f"Stamps are worth {a} cents or {b} cents each. How many positive whole numbers of cents does no combination of such stamps make up exactly?"
    slips = (a * b - a - b, (a * b - a - b) // 2, a * b // 2, (a - 1) * (b - 1), len(missing) + 1)
    return Problem(text=text, answer=(a - 1) * (b - 1) // 2, again=len(missing), slips=slips)
