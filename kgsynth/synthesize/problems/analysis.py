"""Real and complex numbers: what `math`, `cmath`, `fractions`, `abs` and `round` document. Exact here, in floats a second time."""

from __future__ import annotations

import cmath
import math
import random
from fractions import Fraction
from typing import Any

from kgsynth.synthesize.problems import Problem, at, family, signed


def _over(f: Fraction | int) -> Any:
    """A sympy number."""
    import sympy

    return sympy.Rational(f.numerator, f.denominator)


@family("distance", r"Euclidean|\bhypot\b|[Hh]ypotenuse")
def distance(rng: random.Random, level: int) -> Problem:
    import sympy

    n = at(level, 2, 3, 4)
    p, q = ([rng.randint(-9, 9) for _ in range(n)] for _ in "pq")
    square = sum((a - b) ** 2 for a, b in zip(p, q, strict=True))
    if not square:
        return distance(rng, level)
    text = f"What is the Euclidean distance between the points {tuple(p)} and {tuple(q)}?"
    manhattan, plus = (
        sum(abs(a - b) for a, b in zip(p, q, strict=True)),
        sum((a + b) ** 2 for a, b in zip(p, q, strict=True)),
    )
    slips = (
        square,
        manhattan,
        sympy.sqrt(plus),
        sympy.sqrt(manhattan),
        sympy.sqrt(square + 1),
        max(abs(a - b) for a, b in zip(p, q, strict=True)),
    )
    return Problem(text=text, answer=sympy.sqrt(square), again=math.dist(p, q), slips=slips)


@family("radians", r"\bradians\b")
def radians(rng: random.Random, level: int) -> Problem:
    import sympy

    degrees = rng.choice(
        at(
            level,
            (12, 18, 24, 36, 40, 54, 72, 75, 80),
            (108, 126, 140, 150, 165, 216, 225, 252),
            (50, 64, 84, 105, 144),
        )
    )
    turn = _over(Fraction(degrees, 180))
    if level < 2:
        text = f"An angle has {degrees} degrees. What is it in radians, as an exact multiple of π?"
        slips = (
            _over(Fraction(degrees, 360)) * sympy.pi,
            turn,
            _over(Fraction(180, degrees)) * sympy.pi,
            _over(Fraction(degrees, 90)) * sympy.pi,
            -turn * sympy.pi,
            degrees * sympy.pi,
        )
        return Problem(text=text, answer=turn * sympy.pi, again=math.radians(degrees), slips=slips)
    r = rng.randint(3, 20)
    text = f"A circle has the radius {r} cm. What is the area of a sector with an angle of {degrees} degrees, in square centimetres, as an exact multiple of π?"
    answer = turn * r * r / 2 * sympy.pi
    slips = (turn * r * sympy.pi, turn * r * r * sympy.pi, turn * r / 2 * sympy.pi, answer / sympy.pi, answer / 2)
    return Problem(text=text, answer=answer, again=r * r * math.radians(degrees) / 2, slips=slips)


@family("trigonometry", r"(?<!hyperbolic )\b(?:(?:[Cc]o)?[Ss]ine|[Tt]angent)\b|[Tt]rigonometric")
def trigonometry(rng: random.Random, level: int) -> Problem:
    import sympy

    name = rng.choice(("sin", "cos", "tan"))
    exact, real = getattr(sympy, name), getattr(math, name)
    degrees = rng.choice(
        at(level, (30, 45, 60), (120, 135, 150, 210, 225, 240, 300, 315, 330), (15, 75, 105, 165, 195, 255, 285, 345))
    )
    angle = _over(Fraction(degrees, 180)) * sympy.pi
    answer = sympy.radsimp(sympy.expand_trig(exact(angle))) if level == 2 else exact(angle)
    others = [getattr(sympy, other)(angle) for other in ("sin", "cos", "tan") if other != name]
    slips = (-answer, *others, 1 / answer, exact(sympy.pi / 2 - angle), exact(angle / 2), 2 * answer)
    return Problem(
        text=f"What is the exact value of {name}({degrees}°)?",
        answer=answer,
        again=real(math.radians(degrees)),
        slips=slips,
    )


@family("hyperbolic functions", r"[Hh]yperbolic")
def hyperbolic(rng: random.Random, level: int) -> Problem:
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    x = Fraction(a) if level == 0 else Fraction(a, b) if a != b else Fraction(a, b + 1)
    name, real = rng.choice((("sinh", math.sinh), ("cosh", math.cosh), ("tanh", math.tanh)))
    sinh, cosh = (x - 1 / x) / 2, (x + 1 / x) / 2
    factor = at(level, 1, 1, 2)
    shown = f"ln({x})" if factor == 1 else f"2·ln({x})"
    if factor == 2:
        sinh, cosh = 2 * sinh * cosh, sinh * sinh + cosh * cosh
    values = {"sinh": sinh, "cosh": cosh, "tanh": sinh / cosh}
    answer = values[name]
    slips = (
        *(v for k, v in values.items() if k != name),
        2 * answer,
        1 / answer,
        -answer,
        x,
        (x * x - 1) / (2 * x * x),
    )
    return Problem(
        text=f"What is the exact value of {name}({shown})?",
        answer=answer,
        again=real(factor * math.log(x)),
        slips=slips,
    )


@family("logarithms", r"\b[Ll]ogarithms?\b")
def logarithms(rng: random.Random, level: int) -> Problem:
    p, m, n = rng.choice((2, 3, 5)), rng.randint(2, 4), rng.randint(5, 9)
    if level == 0:
        text = f"What is the logarithm of {p**n} to the base {p}?"
        return Problem(
            text=text, answer=n, again=math.log(p**n, p), slips=(n - 1, n + 1, p, p**n // p, 1, Fraction(1, n))
        )
    if level == 1:
        n = n if n % m else n + 1
        sign = rng.choice((1, -1))
        shown = str(p**n) if sign > 0 else f"1/{p**n}"
        text = f"What is the logarithm of {shown} to the base {p**m}?"
        answer = Fraction(sign * n, m)
        return Problem(
            text=text,
            answer=answer,
            again=sign * math.log(p**n) / math.log(p**m),
            slips=(Fraction(sign * m, n), sign * (n - m), sign * n * m, -answer, answer + 1, sign * n),
        )
    b, (low, high) = rng.choice((2, 3)), sorted(rng.sample(range(7), 2))
    c, e = b**high - b**low, low + high
    text = (
        f"Which real number x > {c} satisfies log_{b}(x) + log_{b}(x - {c}) = {e}, where log_{b} is the logarithm to the "
        f"base {b}?"
    )
    answer = (c + math.isqrt(c * c + 4 * b**e)) // 2
    again = next(float(v) for v in range(c + 1, 2000) if math.isclose(math.log(v, b) + math.log(v - c, b), e))
    return Problem(
        text=text,
        answer=answer,
        again=again,
        slips=(Fraction(b**e + c, 2), -(b**e) // answer, b**e, b**e - c, answer + c, e + c),
    )


@family("fractional powers", r"raised to the power|x to the power|[Cc]ube root|\bexponentiation\b")
def powers(rng: random.Random, level: int) -> Problem:
    b, p, q = rng.randint(2, 6), rng.randint(1, 4), rng.choice((2, 3, 4))
    while math.gcd(p, q) > 1:
        p = rng.randint(1, 5)
    base, sign = Fraction(b**q), 1
    if level > 0:
        sign = -1
    if level == 2:
        base = Fraction(b**q, (b + rng.randint(1, 3)) ** q)
    root = Fraction(round(base.numerator ** (1 / q)), round(base.denominator ** (1 / q)))
    answer = root ** (sign * p)
    text = f"What is ({base})^({'-' if sign < 0 else ''}{p}/{q})?"
    slips = (1 / answer, -answer, base * Fraction(sign * p, q), root ** (sign * q), root, root**sign, answer * root)
    return Problem(text=text, answer=answer, again=float(base) ** (sign * p / q), slips=slips)


@family("complex numbers", r"\b[Cc]omplex (?:number|value|type)|[Pp]olar coordinates|[Ii]maginary")
def complex_numbers(rng: random.Random, level: int) -> Problem:
    import sympy

    a, b = rng.choice((-1, 1)) * rng.randint(2, 9), rng.choice((-1, 1)) * rng.randint(2, 9)
    z, shown = complex(a, b), f"({a} {signed(b)}i)"
    if level == 0:
        slips = (a * a + b * b, a + b, sympy.sqrt(abs(a * a - b * b)), abs(a) + abs(b), sympy.sqrt(a * a + b * b + 1))
        return Problem(
            text=f"What is the absolute value of the complex number {shown[1:-1]}?",
            answer=sympy.sqrt(a * a + b * b),
            again=abs(z),
            slips=slips,
        )
    if level == 1:
        c, d = rng.randint(1, 6), rng.randint(1, 6)
        part = rng.choice(("real", "imaginary"))
        text = f"What is the {part} part of {shown} / ({c} + {d}i)?"
        under = c * c + d * d
        both = {"real": Fraction(a * c + b * d, under), "imaginary": Fraction(b * c - a * d, under)}
        again = (z / complex(c, d)).real if part == "real" else (z / complex(c, d)).imag
        other = both["imaginary" if part == "real" else "real"]
        slips = (
            other,
            -both[part],
            Fraction(a * c - b * d, under),
            Fraction(b * c + a * d, under),
            both[part] * under,
            Fraction(a if part == "real" else b, c if part == "real" else d),
        )
        return Problem(text=text, answer=both[part], again=again, slips=slips)
    n = rng.randint(3, 5)
    x, y = 1, 0
    for _ in range(n):
        x, y = x * a - y * b, x * b + y * a
    text = f"What is the real part of {shown}^{n}?"
    return Problem(
        text=text,
        answer=x,
        again=cmath.exp(n * cmath.log(z)).real,
        slips=(y, -x, a**n, a**n - b**n, a**n + b**n, x + y),
    )


@family("gamma function", r"[Gg]amma function")
def gammas(rng: random.Random, level: int) -> Problem:
    import sympy

    if level == 0:
        n = rng.randint(4, 9)
        slips = (math.factorial(n), math.factorial(n - 2), n, n * (n - 1), math.factorial(n + 1))
        return Problem(
            text=f"What is Γ({n}), the value of the gamma function at {n}?",
            answer=math.factorial(n - 1),
            again=math.gamma(n),
            slips=slips,
        )
    n = rng.randint(2, 5)
    value = math.prod((Fraction(2 * i - 1, 2) for i in range(1, n + 1)), start=Fraction(1))
    if level == 1:
        text = f"What is the exact value of Γ({2 * n + 1}/2), the gamma function at {2 * n + 1}/2?"
        answer = _over(value) * sympy.sqrt(sympy.pi)
        slips = (
            _over(value),
            answer * sympy.Rational(2 * n + 1, 2),
            answer / sympy.Rational(2 * n - 1, 2),
            _over(value) * sympy.pi,
            math.factorial(n) * sympy.sqrt(sympy.pi),
        )
        return Problem(text=text, answer=answer, again=math.gamma(n + 0.5), slips=slips)
    m = rng.randint(n + 1, n + 3)
    text = f"What is the exact value of Γ({2 * m + 1}/2) / Γ({2 * n + 1}/2), where Γ is the gamma function?"
    answer = math.prod(Fraction(2 * i - 1, 2) for i in range(n + 1, m + 1))
    slips = (
        1 / answer,
        Fraction(2 * m + 1, 2 * n + 1),
        answer * Fraction(2 * m + 1, 2),
        Fraction(math.factorial(m), math.factorial(n)),
        answer / 2,
    )
    return Problem(text=text, answer=answer, again=math.gamma(m + 0.5) / math.gamma(n + 0.5), slips=slips)


@family("nearest multiple", r"closest integer multiple|\bremainder\b.{0,30}IEEE|\bfmod\b")
def nearest(rng: random.Random, level: int) -> Problem:
    y = Fraction(rng.choice((7, 9, 11, 13)), at(level, 1, 1, 2))
    x = Fraction(rng.choice((1, -1) if level else (1,)) * rng.randint(40, 300))
    text = f"What is {x} minus the whole multiple of {y} that is closest to {x}?"
    low = (x / y).numerator // (x / y).denominator
    answer = min((x - y * k for k in (low, low + 1)), key=abs)
    slips = (x - y * low, x - y * (low + 1), -answer, abs(answer), low, x / y)
    return Problem(text=text, answer=answer, again=math.remainder(float(x), float(y)), slips=slips)


@family("fractions", r"[Rr]ational (?:number|arithmetic)|\bFraction\b|\bnumerator\b")
def fractions(rng: random.Random, level: int) -> Problem:
    a, b, c, d = rng.randint(1, 9), rng.randint(5, 14), rng.randint(1, 9), rng.randint(5, 14)
    d += d == b
    if level == 0:
        text = f"What is {a}/{b} + {c}/{d} in lowest terms?"
        answer = Fraction(a, b) + Fraction(c, d)
        own = Fraction(a * d + c * b, b * d)
        return Problem(
            text=text,
            answer=own,
            again=answer,
            slips=(
                Fraction(a + c, b + d),
                Fraction(a * c, b * d),
                Fraction(a + c, b * d),
                Fraction(a, b) - Fraction(c, d),
                own + 1,
            ),
        )
    if level == 1:
        hours = rng.sample(range(3, 15), 3)
        text = f"Three pumps fill a tank alone in {hours[0]}, {hours[1]} and {hours[2]} hours. How many hours do they need together, exactly?"
        answer = Fraction(math.prod(hours), hours[0] * hours[1] + hours[0] * hours[2] + hours[1] * hours[2])
        again = 1 / sum((Fraction(1, h) for h in hours), Fraction(0))
        return Problem(
            text=text,
            answer=answer,
            again=again,
            slips=(
                Fraction(sum(hours), 3),
                1 / answer,
                sum(hours),
                Fraction(sum(hours), 9),
                Fraction(min(hours), 3),
                answer / 3,
            ),
        )
    terms = [rng.randint(1, 9) for _ in range(4)]
    terms[-1] += terms[-1] == 1
    text = f"What is {terms[0]} + 1/({terms[1]} + 1/({terms[2]} + 1/{terms[3]})) in lowest terms?"
    p, q, p0, q0 = terms[0], 1, 1, 0
    for t in terms[1:]:
        p, p0, q, q0 = t * p + p0, p, t * q + q0, q
    again = Fraction(terms[-1])
    for t in terms[-2::-1]:
        again = t + 1 / again
    slips = (
        Fraction(q, p),
        Fraction(p0, q0),
        Fraction(p + p0, q + q0),
        terms[0] + sum((Fraction(1, t) for t in terms[1:]), Fraction(0)),
        Fraction(p, q) + 1,
    )
    return Problem(text=text, answer=Fraction(p, q), again=again, slips=slips)


@family("closest fraction", r"limit_denominator|[Cc]losest Fraction|\brational approximation")
def approximations(rng: random.Random, level: int) -> Problem:
    import sympy

    most = at(level, rng.randint(8, 12), rng.randint(20, 40), rng.randint(60, 110))
    value = Fraction(rng.randint(1001, 9999), 1000)
    text = f"Which fraction with a denominator of at most {most} is closest to {float(value):g}?"
    answer = min((Fraction(round(value * q), q) for q in range(1, most + 1)), key=lambda f: abs(f - value))
    if answer == value:
        return approximations(rng, level)
    convergents = [
        Fraction(int(c.p), int(c.q))
        for c in sympy.continued_fraction_convergents(sympy.continued_fraction(_over(value)))
    ]
    fixed = Fraction(round(value * most), most)
    slips = (
        fixed,
        *convergents[-3:],
        Fraction(round(value * 10), 10),
        Fraction(math.floor(value * most), most),
        answer + Fraction(1, most),
    )
    return Problem(text=text, answer=answer, again=value.limit_denominator(most), slips=slips)


@family("binary exponent", r"[Mm]antissa|x \* \(2\*\*i\)|[Ff]loating.point number.{0,40}exponent")
def exponents(rng: random.Random, level: int) -> Problem:
    n = rng.randint(*at(level, (5, 60), (100, 900), (3, 60)))
    x = Fraction(n, 1) if level < 2 else Fraction(n, rng.choice((128, 256, 512, 1024)))
    text = f"Write {x} as m·2^e with a whole number e and 1/2 ≤ m < 1. Answer with the pair (m, e)."
    e, m = 0, x
    while m >= 1:
        m, e = m / 2, e + 1
    while m < Fraction(1, 2):
        m, e = 2 * m, e - 1
    slips = (
        (2 * m, e - 1),
        (m / 2, e + 1),
        (m, -e),
        (x, Fraction(0)),
        (m, e + 1),
        (1 - m, e) if m != Fraction(1, 2) else (m, e - 1),
    )
    return Problem(text=text, answer=(m, e), again=math.frexp(float(x)), slips=slips, kind="tuple")
