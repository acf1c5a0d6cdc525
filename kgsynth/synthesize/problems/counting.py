"""Counting: what `math.comb`, `math.perm`, `math.factorial` and the iterators of `itertools` document. Counted again case by case."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

from kgsynth.synthesize.problems import Problem, at, family

SHORT = "LEVEL KAYAK RADAR PUPPY EERIE ERROR MUMMY TOTAL SWEET APPLE HELLO SHEEP".split()
LONG = "BANANA COFFEE PEPPER SCIENCE SUCCESS LETTERS BALLOON CABBAGE ADDRESS COLLEGE PATTERN".split()
MIXED = "ORANGE COFFEE BANANA BALLOON CABBAGE RAINBOW OUTSIDE LIBRARY NUMERAL EVENING AUCTION PICTURE".split()
TEAMS = (
    ("engineers", "designers"),
    ("doctors", "nurses"),
    ("teachers", "students"),
    ("singers", "dancers"),
    ("red marbles", "blue marbles"),
)
PRIMES = (2, 3, 5, 7)


@family(
    "committees",
    r"ways to choose k items from n items without repetition and without order|[Bb]inomial coefficient|[Cc]ombinations?\(|[Cc]ombinatori|length combinations",
)
def committees(rng: random.Random, level: int) -> Problem:
    a, b, k = rng.randint(5, 8), rng.randint(4, 6), rng.randint(3, 5)
    n, j = a + b, rng.randint(1, k - 1)
    first, second = rng.choice(TEAMS)
    chosen = list(itertools.combinations(range(n), k))
    inside = [sum(i < a for i in c) for c in chosen]
    exactly, mixed = math.comb(a, j) * math.comb(b, k - j), f"A box holds {a} {first} and {b} {second}"
    if "marbles" not in first:
        mixed = f"A company has {a} {first} and {b} {second}"
    if level == 0:
        text = f"In how many ways can a group of {k} be chosen from {n} people, when the order of choosing does not matter?"
        slips = (math.perm(n, k), math.comb(n - 1, k), n**k, math.comb(n + k - 1, k), n * k, math.factorial(k))
        return Problem(text=text, answer=_falling(n, k) // math.factorial(k), again=len(chosen), slips=slips)
    if level == 1:
        text = f"{mixed}, all told apart. How many different groups of {k} contain exactly {j} of the {first}?"
        slips = (math.comb(a, j) + math.comb(b, k - j), math.comb(n, k), math.perm(a, j) * math.perm(b, k - j))
        return Problem(
            text=text,
            answer=exactly,
            again=inside.count(j),
            slips=(*slips, math.comb(a, j), sum(i >= j for i in inside)),
        )
    text = f"{mixed}, all told apart. How many different groups of {k} contain at least {j} of the {first}?"
    answer = sum(math.comb(a, i) * math.comb(b, k - i) for i in range(j, k + 1) if k - i <= b)
    slips = (
        math.comb(a, j) * math.comb(n - j, k - j),
        exactly,
        math.comb(n, k) - answer,
        math.comb(n, k),
        answer - exactly,
    )
    return Problem(text=text, answer=answer, again=sum(i >= j for i in inside), slips=slips)


def _falling(n: int, k: int) -> int:
    return math.factorial(n) // math.factorial(n - k)


@family("arrangements", r"ways to choose k items from n items without repetition and with order|[Pp]ermutations?\b")
def arrangements(rng: random.Random, level: int) -> Problem:
    if level == 0:
        n, k = rng.randint(6, 12), rng.randint(3, 4)
        what = rng.choice(("runners finish a race", "chess players play a tournament", "films compete at a festival"))
        text = f"{n} {what} without ties. How many different orders are possible for the first {k} places?"
        slips = (math.comb(n, k), n**k, _falling(n, k - 1), _falling(n - 1, k), math.factorial(n), n * k)
        return Problem(text=text, answer=_falling(n, k), again=math.perm(n, k), slips=slips)
    if level == 1:
        k, least = rng.randint(3, 5), rng.choice((2, 3, 5, 7))
        text = (
            f"How many whole numbers with exactly {k} decimal digits have digits that are all different and a first digit of "
            f"at least {least}?"
        )
        answer = (10 - least) * _falling(9, k - 1)
        again = sum(p[0] >= least for p in itertools.permutations(range(10), k))
        slips = (
            _falling(10, k),
            9 * _falling(9, k - 1),
            (10 - least) * 10 ** (k - 1),
            (10 - least) * 9 ** (k - 1),
            (9 - least) * _falling(9, k - 1),
        )
        return Problem(text=text, answer=answer, again=again, slips=slips)
    n, apart = rng.randint(5, 8), rng.choice((2, 3))
    names = "Ada and Ben" if apart == 2 else "Ada, Ben and Cleo"
    text = f"{n} people, among them {names}, stand in a row. In how many orders do no two of these {apart} stand next to each other?"
    answer = math.factorial(n - apart) * _falling(n - apart + 1, apart)
    orders = itertools.permutations(range(n))
    again = sum(all(p[i] >= apart or p[i + 1] >= apart for i in range(n - 1)) for p in orders)
    together = math.factorial(apart) * math.factorial(n - apart + 1)
    slips = (
        math.factorial(n) - together,
        together,
        math.factorial(n),
        math.factorial(n - apart) * math.comb(n - apart + 1, apart),
        math.factorial(n) - math.factorial(n - 1),
    )
    return Problem(text=text, answer=answer, again=again, slips=slips)


@family("letters of a word", r"[Ff]ind n!|[Ff]actorial|successive (?:r-length )?permutations")
def letters(rng: random.Random, level: int) -> Problem:
    if level < 2:
        word = rng.choice(SHORT if level == 0 else LONG)
        text = f"How many different strings can be formed by rearranging all the letters of {word}, the word itself included?"
        answer = _orders(word)
        once = math.factorial(len(word))
        slips = (once, once // 2, answer - 1, math.factorial(len(set(word))), 2 * answer, once // len(word))
        return Problem(text=text, answer=answer, again=len(set(itertools.permutations(word))), slips=slips)
    word = rng.choice(MIXED)
    vowels = [c for c in word if c in "AEIOU"]
    block = "".join(c for c in word if c not in "AEIOU") + "*"
    text = f"In how many different rearrangements of all the letters of {word} do the letters A, E, I, O, U that occur in it stand side by side as one block?"
    answer = _orders(block) * _orders("".join(vowels))
    again = sum(_is_block(p) for p in set(itertools.permutations(word)))
    slips = (
        _orders(block),
        _orders(word),
        answer * 2,
        math.factorial(len(block)) * math.factorial(len(vowels)),
        _orders(word) - answer,
    )
    return Problem(text=text, answer=answer, again=again, slips=slips)


def _orders(letters: str) -> int:
    return math.factorial(len(letters)) // math.prod(math.factorial(n) for n in Counter(letters).values())


def _is_block(letters: tuple[str, ...]) -> bool:
    places = [i for i, c in enumerate(letters) if c in "AEIOU"]
    return places[-1] - places[0] == len(places) - 1


@family("zeros of a factorial", r"[Ff]ind n!|[Ff]actorial")
def zeros(rng: random.Random, level: int) -> Problem:
    n = rng.randint(*at(level, (22, 99), (120, 400), (130, 450)))
    p = 5 if level < 2 else rng.choice((6, 12, 15))  # the base in which zeros are counted
    again = 0
    while math.factorial(n) % (10 if level < 2 else p) ** (again + 1) == 0:
        again += 1
    if level < 2:
        text = f"With how many zeros does the decimal notation of {n}! end?"
        slips = (n // 5, n // 10, _power(n, 5) - 1, _power(n, 2), n // 5 + n // 10)
        return Problem(text=text, answer=_power(n, 5), again=again, slips=slips)
    text = f"What is the largest whole number k for which {p}^k divides {n}!?"
    parts = {6: [(3, 1), (2, 1)], 12: [(2, 2), (3, 1)], 15: [(5, 1), (3, 1)]}[p]
    answer = min(_power(n, q) // e for q, e in parts)
    slips = (n // p, _power(n, parts[0][0]), _power(n, parts[1][0]), _power(n, 5), answer + 1)
    return Problem(text=text, answer=answer, again=again, slips=slips)


def _power(n: int, p: int) -> int:
    """Legendre's formula: how often the prime p divides n!."""
    return sum(n // p**i for i in range(1, n.bit_length() + 1))


@family("strings", r"[Cc]artesian product")
def strings(rng: random.Random, level: int) -> Problem:
    if level == 0:
        a, b, c = (rng.randint(3, 9) for _ in range(3))
        text = f"A menu lists {a} starters, {b} main courses and {c} desserts. How many meals of one of each can be ordered?"
        again = sum(1 for _ in itertools.product(range(a), range(b), range(c)))
        return Problem(
            text=text, answer=a * b * c, again=again, slips=(a + b + c, a * b + c, a * b, (a + b) * c, a + b * c)
        )
    k = rng.randint(3, 5) if level == 1 else rng.randint(3, 4)
    n = rng.randint(k + 1, 7)
    alphabet = "ABCDE"[:k]
    rows = list(itertools.product(range(k), repeat=n))
    if level == 1:
        text = f"How many strings of {n} letters over the alphabet {', '.join(alphabet)} have no two equal letters next to each other?"
        again = sum(all(x != y for x, y in itertools.pairwise(row)) for row in rows)
        slips = (k**n, math.perm(k, min(n, k)), k ** (n - 1), (k - 1) ** n, k * (k - 1) ** n)
        return Problem(text=text, answer=k * (k - 1) ** (n - 1), again=again, slips=slips)
    text = f"How many strings of {n} letters over the alphabet {', '.join(alphabet)} contain each of these letters at least once?"
    answer = sum((-1) ** i * math.comb(k, i) * (k - i) ** n for i in range(k + 1))
    again = sum(len(set(row)) == k for row in rows)
    slips = (k**n, k**n - k * (k - 1) ** n, math.factorial(k) * k ** (n - k), k**n - (k - 1) ** n, k**n - k)
    return Problem(text=text, answer=answer, again=again, slips=slips)


@family(
    "repeated choice",
    r"combinations_with_replacement|individual elements to have successive repeats|\bmultisets?\b|[Cc]ombinations with rep",
)
def repeated(rng: random.Random, level: int) -> Problem:
    if level == 0:
        n, k = rng.randint(4, 9), rng.randint(3, 5)
        text = (
            f"A shop sells {n} kinds of pastry. How many different boxes of {k} pastries are possible, when a kind may be taken "
            "more than once and the order in the box does not matter?"
        )
        again = sum(1 for _ in itertools.combinations_with_replacement(range(n), k))
        slips = (math.comb(n, k), n**k, math.perm(n, k), math.comb(n + k, k), math.comb(n + k - 1, k - 1))
        return Problem(text=text, answer=math.comb(n + k - 1, k), again=again, slips=slips)
    r, n = rng.randint(3, 4), rng.randint(9, 14)
    free = math.comb(n + r - 1, r - 1)
    rows = [row for row in itertools.product(range(n + 1), repeat=r) if sum(row) == n]
    people = "Ada, Ben and Cleo" if r == 3 else "Ada, Ben, Cleo and Dan"
    if level == 1:
        least = rng.randint(1, 2)
        text = f"{n} equal coins are shared among {people} so that each gets at least {least}. In how many ways can it be done?"
        m = n - r * least
        slips = (
            free,
            math.comb(m + r, r - 1),
            math.comb(n - 1, r - 1) if least > 1 else math.comb(n, r),
            r**n,
            math.comb(m + r - 1, r),
        )
        return Problem(
            text=text, answer=math.comb(m + r - 1, r - 1), again=sum(min(row) >= least for row in rows), slips=slips
        )
    most = rng.randint(n // r + 2, n - 3)
    text = f"{n} equal coins are shared among {people} so that nobody gets more than {most}; somebody may get none. In how many ways can it be done?"
    answer = sum(
        (-1) ** i * math.comb(r, i) * math.comb(n - i * (most + 1) + r - 1, r - 1)
        for i in range(r + 1)
        if n >= i * (most + 1)
    )
    slips = (
        free,
        free - r * math.comb(n - most + r - 1, r - 1),
        free - math.comb(n - most - 1 + r - 1, r - 1),
        (most + 1) ** r,
        free - answer,
    )
    return Problem(text=text, answer=answer, again=sum(max(row) <= most for row in rows), slips=slips)


@family("union of sets", r"\b[Uu]nion\b|\b[Ii]ntersection\b|[Ss]ymmetric.difference|[Dd]isjoint")
def unions(rng: random.Random, level: int) -> Problem:
    limit = at(level, rng.randint(60, 200), rng.randint(200, 600), rng.randint(300, 999))
    p, q, r = rng.sample((3, 4, 5, 6, 7, 8, 9, 10, 11), 3)
    sets = [set(range(d, limit + 1, d)) for d in (p, q, r)]
    sizes = [limit // d for d in (p, q, r)]
    both = limit // math.lcm(p, q)
    if level == 0:
        text = f"How many of the whole numbers from 1 to {limit} are divisible by {p} or by {q} (or by both)?"
        slips = (
            sizes[0] + sizes[1],
            sizes[0] + sizes[1] - limit // (p * q),
            both,
            sizes[0] + sizes[1] - 2 * both,
            limit - sizes[0],
        )
        return Problem(text=text, answer=sizes[0] + sizes[1] - both, again=len(sets[0] | sets[1]), slips=slips)
    if level == 1:
        text = f"How many of the whole numbers from 1 to {limit} are divisible by exactly one of {p} and {q}?"
        slips = (
            sizes[0] + sizes[1] - both,
            sizes[0] + sizes[1],
            sizes[0] + sizes[1] - 2 * (limit // (p * q)),
            both,
            sizes[0] - both,
        )
        return Problem(text=text, answer=sizes[0] + sizes[1] - 2 * both, again=len(sets[0] ^ sets[1]), slips=slips)
    text = f"How many of the whole numbers from 1 to {limit} are divisible by none of {p}, {q} and {r}?"
    pairs = sum(limit // math.lcm(x, y) for x, y in itertools.combinations((p, q, r), 2))
    hit = sum(sizes) - pairs + limit // math.lcm(p, q, r)
    slips = (hit, limit - sum(sizes), limit - sum(sizes) + pairs, limit - hit + 1, limit - sum(sizes) - pairs)
    return Problem(text=text, answer=limit - hit, again=limit - len(set.union(*sets)), slips=slips)


@family(
    "subsets",
    r"unordered collection of unique elements|another set contains|issubset|\b[Pp]ower ?set\b|[Ss]ubsets? of (?:a|the) set",
)
def subsets(rng: random.Random, level: int) -> Problem:
    n = rng.randint(*at(level, (6, 15), (5, 15), (6, 16)))
    masks = range(1 << n)
    if level == 0:
        k = rng.randint(2, 3)
        text = f"How many subsets of {{1, 2, ..., {n}}} have at least {k} elements?"
        answer = 2**n - sum(math.comb(n, i) for i in range(k))
        slips = (
            2**n,
            2**n - math.comb(n, k),
            math.comb(n, k),
            sum(math.comb(n, i) for i in range(k + 1)),
            answer - math.comb(n, k),
        )
        return Problem(text=text, answer=answer, again=sum(m.bit_count() >= k for m in masks), slips=slips)
    if level == 1:
        text = f"How many subsets of {{1, 2, ..., {n}}} contain at least one even number?"
        odd = (n + 1) // 2
        again = sum(any(m >> i & 1 for i in range(1, n, 2)) for m in masks)
        slips = (2**n - 1, 2 ** (n // 2), 2 ** (n // 2) - 1, 2**odd, 2**n - 2 ** (n // 2), 2 ** (n - 1))
        return Problem(text=text, answer=2**n - 2**odd, again=again, slips=slips)
    text = f"How many subsets of {{1, 2, ..., {n}}}, the empty one included, contain no two consecutive numbers?"
    answer, before = 2, 1
    for _ in range(n - 1):
        answer, before = answer + before, answer
    slips = (answer - 1, before, answer + before, 2 ** (n - 1), 2**n - (n - 1) * 2 ** (n - 2), 2**n)
    return Problem(text=text, answer=answer, again=sum(not m & m >> 1 for m in masks), slips=slips)
