"""Data and chance: what `statistics` and `random` document. Counted again in fractions, by the module or case by case."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter
from fractions import Fraction
from typing import Any

from kgsynth.synthesize.problems import Problem, at, family, listed

AXES = (
    "the number of orders",
    "the temperature in °C",
    "the mass in grams",
    "the score",
    "the waiting time in minutes",
)


def _data(rng: random.Random, n: int, low: int = 2, high: int = 30) -> list[int]:
    return [rng.randint(low, high) for _ in range(n)]


def _mean(data: list[Any]) -> Fraction:
    return Fraction(sum(data), len(data)) if all(isinstance(x, int) for x in data) else sum(data) / Fraction(len(data))


def _squares(data: list[Any]) -> Fraction:
    """The sum of the squared deviations from the mean, by the shortcut formula."""
    return Fraction(sum(x * x for x in data)) - Fraction(sum(data)) ** 2 / len(data)


@family("mean", r"[Aa]rithmetic mean|[Aa]verage \(|sample mean|\bmean\b.{0,30}\bdata\b")
def mean(rng: random.Random, level: int) -> Problem:
    n = rng.randint(5, 8)
    data, what = _data(rng, n), rng.choice(AXES)
    if level == 0:
        text = f"What is the arithmetic mean of {listed(data)}?"
        slips = (
            statistics.median(data),
            Fraction(sum(data), n - 1),
            Fraction(sum(data), n + 1),
            sum(data),
            Fraction(max(data) + min(data), 2),
        )
        return Problem(text=text, answer=Fraction(sum(data), n), again=statistics.fmean(data), slips=slips)
    target = rng.randint(12, 24)
    if level == 1:
        last = target * (n + 1) - sum(data)
        text = f"On {n} days {what} was {listed(data)}. What must it be on the next day for the arithmetic mean of all {n + 1} days to be {target}?"
        again = next(x for x in range(-999, 999) if statistics.mean([*data, x]) == target)
        slips = (target, target * n - sum(data), last + target, 2 * target - _mean(data), target * (n + 1))
        return Problem(text=text, answer=last, again=again, slips=slips)
    a, b, removed = rng.randint(6, 14), rng.randint(15, 25), rng.randint(3, 60)
    means = (rng.randint(10, 20), rng.randint(21, 40))
    text = (
        f"A group of {a} values has the arithmetic mean {means[0]}, another group of {b} values the arithmetic mean {means[1]}. The two "
        f"groups are put together and one value, {removed}, is removed. What is the arithmetic mean of the rest?"
    )
    total = a * means[0] + b * means[1]
    data = [means[0]] * a + [means[1]] * b
    slips = (
        Fraction(sum(means), 2),
        Fraction(total, a + b),
        Fraction(total - removed, a + b),
        Fraction(total, a + b - 1),
        Fraction(sum(means) - removed, 2),
    )
    again = statistics.fmean([*data, -removed]) * (a + b + 1) / (a + b - 1)
    return Problem(text=text, answer=Fraction(total - removed, a + b - 1), again=again, slips=slips)


@family("median", r"\b[Mm]edian\b")
def median(rng: random.Random, level: int) -> Problem:
    if level < 2:
        n = at(level, rng.choice((7, 9)), rng.choice((8, 10)))
        data = _data(rng, n, 2, 60)
        text = f"What is the median of {listed(data)}?"
        ordered = sorted(data)
        answer = Fraction(ordered[(n - 1) // 2] + ordered[n // 2], 2)
        slips = (
            Fraction(data[(n - 1) // 2] + data[n // 2], 2),
            ordered[n // 2],
            ordered[(n - 1) // 2],
            _mean(data),
            ordered[n // 2 - 1],
            Fraction(ordered[0] + ordered[-1], 2),
        )
        return Problem(text=text, answer=answer, again=statistics.median(data), slips=slips)
    values = sorted(rng.sample(range(1, 12), 5))
    counts = [rng.randint(3, 20) for _ in values]
    if sum(counts) % 2:
        counts[0] += 1
    data = [v for v, n in zip(values, counts, strict=True) for _ in range(n)]
    rows = listed([f"the value {v} {n} times" for v, n in zip(values, counts, strict=True)])
    half, total = sum(counts) // 2, list(itertools.accumulate(counts))
    middle = [next(v for v, t in zip(values, total, strict=True) if t >= k) for k in (half, half + 1)]
    slips = (
        values[2],
        _mean(data),
        _mean(values),
        sorted(counts)[2],
        statistics.mode(data),
        middle[1] + 1,
        middle[0] - 1,
    )
    return Problem(
        text=f"A data set holds {rows}. What is its median?",
        answer=Fraction(sum(middle), 2),
        again=statistics.median(data),
        slips=slips,
    )


@family(
    "mode", r"\bmultimode\b|[Mm]ode \(most common|most common (?:data point|value)|[Mm]ost frequently occurring values?"
)
def mode(rng: random.Random, level: int) -> Problem:
    times = rng.randint(2, 3)
    winners = rng.sample(range(2, 40), at(level, 1, 2, 3))
    others = [v for v in rng.sample(range(2, 40), 9) if v not in winners][: at(level, 4, 5, 6)]
    data = [w for w in winners for _ in range(times)] + [o for o in others for _ in range(rng.randint(1, times - 1))]
    rng.shuffle(data)
    best = max(Counter(data).values())
    answer = frozenset(v for v, n in Counter(data).items() if n == best)
    text = f"Which values occur most often in the data {listed(data)}? Answer with the set of all of them."
    slips = (
        frozenset(winners[:1]),
        frozenset({*winners, others[0]}),
        frozenset({max(data)}),
        frozenset({best}),
        frozenset(others[:1]),
        frozenset({*winners, 0}),
    )
    return Problem(text=text, answer=answer, again=frozenset(statistics.multimode(data)), slips=slips, kind="set")


@family("variance", r"\b[Vv]ariance\b")
def variance(rng: random.Random, level: int) -> Problem:
    n = rng.randint(4, 6)
    data, square = _data(rng, n, 1, 20), 0
    while len(set(data)) == 1:
        data = _data(rng, n, 1, 20)
    square = _squares(data)
    if level == 0:
        text = f"{listed(data)} are a whole population. What is its variance?"
        slips = (square / (n - 1), square, _mean(data) ** 2, Fraction(sum(x * x for x in data), n), square / (n + 1))
        return Problem(text=text, answer=square / n, again=statistics.pvariance(map(Fraction, data)), slips=slips)
    if level == 1:
        text = f"{listed(data)} are a sample from a larger population. What is the sample variance, with n - 1 in the denominator?"
        slips = (square / n, square, square / (n - 2), Fraction(sum(x * x for x in data), n - 1), square / (n + 1))
        return Problem(text=text, answer=square / (n - 1), again=statistics.variance(map(Fraction, data)), slips=slips)
    a, b = rng.randint(2, 5), rng.randint(3, 15)
    text = f"Each value of the sample {listed(data)} is multiplied by {a} and then increased by {b}. What is the sample variance (with n - 1 in the denominator) of the new values?"
    slips = (
        a * square / (n - 1),
        a * a * square / n,
        square / (n - 1),
        a * a * square / (n - 1) + b,
        a * square / (n - 1) + b,
    )
    again = statistics.variance([Fraction(a * x + b) for x in data])
    return Problem(text=text, answer=a * a * square / (n - 1), again=again, slips=slips)


@family("standard deviation", r"[Ss]tandard deviation")
def deviation(rng: random.Random, level: int) -> Problem:
    import sympy

    n = rng.randint(4, 6)
    data = _data(rng, n, 1, at(level, 9, 20, 40))
    while len(set(data)) == 1:
        data = _data(rng, n, 1, 20)
    square = _squares(data)
    roots = [sympy.sqrt(sympy.Rational(square.numerator, square.denominator * d)) for d in (n, n - 1)]
    population = level == 0 or (level == 2 and rng.random() < 0.5)
    text = f"{listed(data)} are a whole population. What is its standard deviation?"
    if not population:
        text = f"{listed(data)} are a sample from a larger population. What is the sample standard deviation (n - 1 in the denominator)?"
    answer, other = roots if population else roots[::-1]
    again = (statistics.pstdev if population else statistics.stdev)(data)
    slips = (other, answer**2, sympy.sqrt(sympy.Rational(square.numerator, square.denominator)), other**2, answer / n)
    return Problem(text=text, answer=answer, again=again, slips=slips)


@family("harmonic mean", r"[Hh]armonic mean")
def harmonic(rng: random.Random, level: int) -> Problem:
    speeds = rng.sample((30, 40, 45, 50, 60, 70, 75, 80, 90, 100, 120), at(level, 2, 2, 3))
    legs = [1] * len(speeds) if level == 0 else [rng.randint(1, 5) * 10 for _ in speeds]
    trips = listed([f"{leg} km at {v} km/h" for leg, v in zip(legs, speeds, strict=True)])
    text = f"A car drives {trips}. What is its average speed over the whole distance, in km/h?"
    if level == 0:
        text = f"A car drives the first half of a distance at {speeds[0]} km/h and the second half at {speeds[1]} km/h. What is its average speed over the whole distance, in km/h?"
    answer = sum(legs) / sum((Fraction(leg, v) for leg, v in zip(legs, speeds, strict=True)), Fraction(0))
    weighted = Fraction(sum(leg * v for leg, v in zip(legs, speeds, strict=True)), sum(legs))
    slips = (
        _mean(speeds),
        weighted,
        len(speeds) / sum((Fraction(1, v) for v in speeds), Fraction(0)),
        Fraction(math.isqrt(math.prod(speeds))),
        min(speeds),
        max(speeds),
    )
    return Problem(text=text, answer=answer, again=statistics.harmonic_mean(speeds, weights=legs), slips=slips)


@family("geometric mean", r"[Gg]eometric mean")
def geometric(rng: random.Random, level: int) -> Problem:
    n = at(level, 2, 3, 4)
    while True:
        values = [2 ** rng.randint(0, 5) * 3 ** rng.randint(0, 3) * rng.choice((1, 5)) for _ in range(n)]
        root = round(math.prod(values) ** (1 / n))
        if root**n == math.prod(values) and len(set(values)) == n:
            break
    text = f"What is the geometric mean of {listed(values)}?"
    slips = (
        _mean(values),
        math.prod(values),
        Fraction(math.prod(values), n),
        math.isqrt(math.prod(values)),
        statistics.median(values),
        Fraction(n) / sum(Fraction(1, v) for v in values),
    )
    return Problem(text=text, answer=root, again=statistics.geometric_mean(values), slips=slips)


@family(
    "weighted mean",
    r"[Ww]eighted (?:average|mean)|\bweights\b.{0,60}\b(?:mean|average)\b|weights is given.*mean|[Aa]rithmetic mean",
)
def weighted(rng: random.Random, level: int) -> Problem:
    n = at(level, 2, 3, 4)
    marks, weights = [rng.randint(40, 99) for _ in range(n)], rng.sample((1, 2, 3, 4, 5, 6), n)
    rows = listed([f"{m} with weight {w}" for m, w in zip(marks, weights, strict=True)])
    total = sum(m * w for m, w in zip(marks, weights, strict=True))
    text = f"A student's marks are {rows}. What is the weighted mean of the marks?"
    slips = (
        _mean(marks),
        Fraction(total, n),
        total,
        Fraction(sum(m * w for m, w in zip(marks, weights[::-1], strict=True)), sum(weights)),
        Fraction(total, sum(weights) + 1),
    )
    return Problem(
        text=text,
        answer=Fraction(total, sum(weights)),
        again=statistics.fmean([m for m, w in zip(marks, weights, strict=True) for _ in range(w)]),
        slips=slips,
    )


@family("regression", r"[Ll]inear regression|[Ss]lope and intercept|[Ll]east squares")
def regression(rng: random.Random, level: int) -> Problem:
    n = at(level, 3, 4, 5)
    x = sorted(rng.sample(range(10), n))
    y = [rng.randint(1, 15) for _ in x]
    text = (
        f"A straight line y = m·x + c is fitted to the points {listed(list(zip(x, y, strict=True)))} by ordinary least squares. Answer with "
        "the pair (m, c)."
    )
    cross = Fraction(sum(a * b for a, b in zip(x, y, strict=True))) - Fraction(sum(x) * sum(y), n)
    m = cross / _squares(x)
    c = _mean(y) - m * _mean(x)
    ends = Fraction(y[-1] - y[0], x[-1] - x[0])
    turned = cross / _squares(y) if _squares(y) else Fraction(1)
    origin = Fraction(sum(a * b for a, b in zip(x, y, strict=True)), sum(a * a for a in x))
    slips = (
        (ends, y[0] - ends * x[0]),
        (c, m),
        (m, -c),
        (-m, c),
        (origin, Fraction(0)),
        (turned, _mean(x) - turned * _mean(y)),
        (m, _mean(y)),
    )
    return Problem(text=text, answer=(m, c), again=tuple(statistics.linear_regression(x, y)), slips=slips, kind="tuple")


@family("covariance", r"\b[Cc]ovariance\b")
def covariance(rng: random.Random, level: int) -> Problem:
    n = at(level, 3, 4, 6)
    x, y = _data(rng, n, 0, 12), _data(rng, n, 0, 12)
    text = f"For the paired observations (x, y) = {listed(list(zip(x, y, strict=True)))}, what is the sample covariance of x and y (n - 1 in the denominator)?"
    cross = Fraction(sum(a * b for a, b in zip(x, y, strict=True))) - Fraction(sum(x) * sum(y), n)
    slips = (
        cross / n,
        cross,
        -cross / (n - 1),
        Fraction(sum(a * b for a, b in zip(x, y, strict=True)), n - 1),
        _mean(x) * _mean(y),
        cross / (n + 1),
    )
    return Problem(text=text, answer=cross / (n - 1), again=statistics.covariance(x, y), slips=slips)


@family("correlation", r"[Cc]orrelation coefficient|Pearson")
def correlation(rng: random.Random, level: int) -> Problem:
    import sympy

    n = at(level, 3, 4, 5)
    x, y = rng.sample(range(10), n), rng.sample(range(10), n)
    cross = Fraction(sum(a * b for a, b in zip(x, y, strict=True))) - Fraction(sum(x) * sum(y), n)
    if not cross:
        return correlation(rng, level)
    under = _squares(x) * _squares(y)
    answer = sympy.Rational(cross.numerator, cross.denominator) / sympy.sqrt(
        sympy.Rational(under.numerator, under.denominator)
    )
    text = f"What is Pearson's correlation coefficient of the paired observations (x, y) = {listed(list(zip(x, y, strict=True)))}?"
    slips = (
        answer**2,
        -answer,
        sympy.Rational(cross.numerator, cross.denominator),
        answer * sympy.Rational(n, n - 1),
        answer * sympy.Rational(n - 1, n),
        1,
    )
    return Problem(text=text, answer=answer, again=statistics.correlation(x, y), slips=slips)


@family("normal distribution", r"[Nn]ormal distribution")
def normal(rng: random.Random, level: int) -> Problem:
    import sympy

    m, s, x = rng.randint(40, 120), rng.randint(4, 15), rng.randint(40, 150)
    while abs(x - m) in (0, s):  # what is guessed
        x = rng.randint(40, 150)
    if level == 0:
        text = f"A normal distribution has the mean {m} and the standard deviation {s}. How many standard deviations above the mean is {x} (negative when below)?"
        slips = (Fraction(m - x, s), Fraction(x - m, s * s), x - m, Fraction(x, s), Fraction(x + m, s))
        return Problem(text=text, answer=Fraction(x - m, s), again=statistics.NormalDist(m, s).zscore(x), slips=slips)
    t = rng.randint(3, 14)
    a, b = (1, 1) if level == 1 else (rng.randint(2, 4), rng.randint(2, 4))
    what = "X + Y" if level == 1 else f"{a}·X - {b}·Y"
    text = f"X and Y are independent and normally distributed, with the standard deviations {s} and {t}. What is the standard deviation of {what}?"
    answer = sympy.sqrt((a * s) ** 2 + (b * t) ** 2)
    first, second = statistics.NormalDist(0, s) * a, statistics.NormalDist(0, t) * b
    slips = (
        a * s + b * t,
        answer**2,
        abs(a * s - b * t),
        sympy.sqrt(a * s * s + b * t * t),
        sympy.sqrt(abs((a * s) ** 2 - (b * t) ** 2)),
        sympy.sqrt(s + t),
    )
    return Problem(text=text, answer=answer, again=(first - second).stdev, slips=slips)


@family(
    "random integers",
    r"[Rr]andom integer in range|including both end ?points|[Rr]andom (?:element|item)|\brandrange\b|[Pp]seudo-?random number",
)
def draws(rng: random.Random, level: int) -> Problem:
    n, k = rng.randint(6, 12), at(level, 2, 2, 3)
    cases = list(itertools.product(range(1, n + 1), repeat=k))
    numbers = at(level, "Two", "Two", "Three")
    text = f"{numbers} whole numbers are drawn independently, each uniformly from 1 to {n}, both included. What is the probability that "
    if level == 1:
        m = rng.randint(3, n - 1)
        answer = Fraction(m * m - (m - 1) ** 2, n * n)
        slips = (Fraction(m, n) ** 2, Fraction(1, n), Fraction(2, n), Fraction(2 * m, n * n), Fraction(m - 1, n) ** 2)
        return Problem(
            text=f"{text}the larger of them (or both, if they are equal) is {m}?",
            answer=answer,
            again=_share(cases, lambda c: max(c) == m),
            slips=slips,
        )
    total = rng.randint(n, k * n - n // 2)
    ways = sum(
        (-1) ** i * math.comb(k, i) * math.comb(total - i * n - 1, k - 1) for i in range(k + 1) if total - i * n >= k
    )
    slips = (
        Fraction(math.comb(total - 1, k - 1), n**k),
        Fraction(1, k * n - k + 1),
        Fraction(ways, math.comb(n, k)),
        Fraction(ways + 1, n**k),
        Fraction(ways - 1, n**k),
        1 - Fraction(ways, n**k),
    )
    return Problem(
        text=f"{text}their sum is {total}?",
        answer=Fraction(ways, n**k),
        again=_share(cases, lambda c: sum(c) == total),
        slips=slips,
    )


def _share(cases: list[Any], good: Any) -> Fraction:
    return Fraction(sum(map(good, cases)), len(cases))


@family("drawing without replacement", r"without replacement|unique (?:random )?elements|[Rr]andom sampl")
def sampled(rng: random.Random, level: int) -> Problem:
    a, b, k = rng.randint(4, 7), rng.randint(3, 6), at(level, 2, 3, 4)
    n, cases = a + b, list(itertools.combinations(range(a + b), k))
    start = f"An urn holds {a} red and {b} blue balls. {k} balls are drawn at random without replacement. What is the probability that "
    if level < 2:
        answer = Fraction(math.perm(a, k), math.perm(n, k))
        slips = (
            Fraction(a, n) ** k,
            Fraction(a, n),
            Fraction(math.perm(b, k), math.perm(n, k)),
            1 - answer,
            Fraction(a - 1, n - 1),
            Fraction(k, n),
        )
        return Problem(
            text=f"{start}all of them are red?", answer=answer, again=_share(cases, lambda c: max(c) < a), slips=slips
        )
    j = rng.randint(1, 3)
    answer = Fraction(math.comb(a, j) * math.comb(b, k - j), math.comb(n, k))
    p = Fraction(a, n)
    slips = (
        math.comb(k, j) * p**j * (1 - p) ** (k - j),
        Fraction(math.perm(a, j) * math.perm(b, k - j), math.perm(n, k)),
        1 - answer,
        p**j,
        Fraction(j, k),
    )
    return Problem(
        text=f"{start}exactly {j} of them {'is' if j == 1 else 'are'} red?",
        answer=answer,
        again=_share(cases, lambda c: sum(i < a for i in c) == j),
        slips=slips,
    )


@family("shuffling", r"\b[Ss]huffle\b")
def shuffled(rng: random.Random, level: int) -> Problem:
    n = rng.randint(*at(level, (5, 30), (4, 7), (5, 8)))
    cases = list(itertools.permutations(range(n), 2 if level == 0 else n))  # places of two items, or of all
    start = f"A list of {n} different items is shuffled so that all orders are equally likely. What is the probability that "
    if level == 0:
        text, answer = f"{start}two particular items end up next to each other?", Fraction(2, n)
        again = _share(cases, lambda c: abs(c[0] - c[1]) == 1)
        slips = (
            Fraction(1, n),
            Fraction(2, n - 1),
            Fraction(1, n - 1),
            Fraction(n - 1, math.comb(n, 2) * 2),
            1 - answer,
            Fraction(2, n * (n - 1)),
        )
    elif level == 1:
        text = f"{start}no item is at its old place?"
        answer = sum((Fraction((-1) ** i, math.factorial(i)) for i in range(n + 1)), Fraction(0))
        again = _share(cases, lambda c: all(i != x for i, x in enumerate(c)))
        slips = (
            Fraction(n - 1, n),
            Fraction(n - 1, n) ** n,
            1 - answer,
            Fraction(1, n),
            1 - Fraction(1, math.factorial(n)),
        )
    else:
        text = f"{start}exactly one item is at its old place?"
        answer = sum((Fraction((-1) ** i, math.factorial(i)) for i in range(n)), Fraction(0))
        again = _share(cases, lambda c: sum(i == x for i, x in enumerate(c)) == 1)
        slips = (
            Fraction(1, n),
            Fraction(n - 1, n) ** (n - 1),
            answer / n,
            1 - answer,
            Fraction(1, math.factorial(n - 1)),
        )
    return Problem(text=text, answer=answer, again=again, slips=slips)
