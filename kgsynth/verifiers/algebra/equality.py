"""Are two expressions the same function of their variables? Decided by value, to 45 digits, at fixed points.

Numbers: rational ones are compared exactly, others to 45 digits. With variables, at points where what was expected is
defined (and real, unless the task says complex): expressions that differ agree by chance at no six of them (Schwartz,
"Fast probabilistic algorithms for verification of polynomial identities", JACM 1980; Richardson, JSL 1968, on why no
program can decide it by rules). `simplify`, which may take for ever and gives up on true identities, is asked only
where letters that stand for functions leave no other way.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

import sympy
from sympy import Basic, Expr

from kgsynth.verifiers.algebra.reading import is_applied
from kgsynth.verifiers.algebra.rejection import Rejection

DIGITS, MAX_PRECISION = 60, 400
CLOSE = sympy.Float("1e-45")  # relative difference of what counts as equal
POINTS, TRIES = 6, 60
DOMAINS = ("real", "positive", "integer", "complex")
INFINITE = (sympy.oo, -sympy.oo, sympy.zoo, sympy.nan)
STEPS = (sympy.floor, sympy.ceiling, sympy.Max, sympy.Min)
UNWORKED = (sympy.Integral, sympy.Derivative, sympy.Limit, sympy.Sum, sympy.Product, sympy.UnevaluatedExpr)


def equal(given: Expr, expected: Expr, *, domain: str = "real", tolerance: float = 0.0) -> bool:
    """Whether they are. `tolerance` is relative and for numbers only. Raises Rejection("undefined") when `given` has no
    value (1/0, infinity minus infinity), "other variables" when it has letters that `expected` has not."""
    given, expected = worked_out(given), worked_out(expected)
    if given.has(*INFINITE) or expected.has(*INFINITE):
        return _same_infinity(given, expected)
    if is_applied(given) or is_applied(expected):
        return bool(sympy.simplify(given - expected) == 0)
    if not expected.free_symbols and not given.free_symbols:
        return _equal_numbers(given, expected, tolerance)
    if given.has(*STEPS) and not expected.has(*STEPS):  # may differ only where no point is
        return bool(sympy.simplify(given - expected) == 0)
    return _equal_functions(given, expected, domain)


def worked_out(expression: Expr) -> Expr:
    """With integrals, derivatives, limits and sums carried out, and whole numbers added up."""
    if expression.has(*UNWORKED) or not expression.free_symbols:
        return expression.doit()
    return expression


def _same_infinity(given: Expr, expected: Expr) -> bool:
    if given not in (sympy.oo, -sympy.oo):
        raise Rejection("undefined" if given.has(*INFINITE) else "wrong")
    return given == expected


def _equal_numbers(given: Expr, expected: Expr, tolerance: float) -> bool:
    if given.is_Rational and expected.is_Rational and not tolerance:
        return given == expected
    a, b = value(given, {}), value(expected, {})
    if a is None or b is None:
        return bool(sympy.simplify(given - expected) == 0)
    if tolerance and a.is_real and b.is_real:
        return bool(abs(a - b) <= sympy.Float(str(tolerance), DIGITS) * abs(b) * (1 + CLOSE))
    return _close(a, b)


def _equal_functions(given: Expr, expected: Expr, domain: str) -> bool:
    """Equal wherever `expected` is defined among the points; real points count alone if there are any."""
    symbols = sorted(expected.free_symbols | given.free_symbols, key=str)
    agreed = compared = 0
    real_only = domain != "complex" and not expected.has(sympy.I)
    for point in points(symbols, domain):
        b = value(expected, point)
        if b is None or (real_only and not b.is_real):
            continue
        a = value(given, point)
        compared += 1
        agreed += a is not None and _close(a, b)
        if agreed < compared:
            return False
        if agreed == POINTS:
            return True
    return agreed > 0 or bool(sympy.simplify(given - expected) == 0)


def value(expression: Expr, point: Mapping[Basic, Expr]) -> Expr | None:
    """Its number there to DIGITS digits, or None when it has none."""
    number = expression.evalf(DIGITS, subs=dict(point), maxn=MAX_PRECISION)
    if number.free_symbols or not number.is_number or number.has(*INFINITE):
        return None
    if not all(part.is_Float or part.is_Integer or part.is_Rational for part in number.as_real_imag()):
        return None
    imaginary = number.as_real_imag()[1]
    return number.as_real_imag()[0] if abs(imaginary) <= CLOSE * abs(number) else number


def _close(a: Expr, b: Expr) -> bool:
    size = max(abs(a), abs(b))
    return bool(abs(a - b) <= CLOSE * size) or bool(size < sympy.Float("1e-55"))


def points(symbols: Sequence[Basic], domain: str) -> Iterator[dict[Basic, Expr]]:
    """Always the same ones: of mixed sign and size, with few digits, so that no two values coincide by design."""
    rng = random.Random(f"{domain} {len(symbols)}")
    for i in range(TRIES):
        yield {symbol: _coordinate(rng, domain, 0.3 if i % 3 == 0 else 4.0) for symbol in symbols}


def _coordinate(rng: random.Random, domain: str, size: float) -> Expr:
    if domain == "integer":
        return sympy.Integer(rng.randint(1, 40))
    number = sympy.Rational(rng.randint(1000, 99_999), 99_991) * sympy.Rational(str(size))
    if domain == "positive":
        return number
    if domain == "complex":
        return number * rng.choice((1, -1)) + sympy.I * sympy.Rational(rng.randint(-99_999, 99_999), 49_999)
    return number * rng.choice((1, -1))
