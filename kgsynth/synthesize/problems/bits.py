"""Positional notation and bits: what `int`, `hex`, `bin`, `int.bit_count`, the bitwise operators, `struct`, `base64` and `ipaddress` document."""

from __future__ import annotations

import base64
import ipaddress
import random
from functools import reduce
from operator import xor

from kgsynth.synthesize.problems import Problem, at, family

DIGITS = "0123456789abcdef"
TWOS = r"[Tt]wo.?s.complement|[Ss]igned (?:char|short|int|long|byte|\d+.bit)|\bsigned integers?\b"


@family(
    "notation", r"[Hh]exadecimal|\b[Oo]ctal\b|\bbinary (?:notation|representation|number)|\bin base \d|\b[Rr]adix\b"
)
def notation(rng: random.Random, level: int) -> Problem:
    n, base = (
        rng.randint(*at(level, (300, 4000), (200, 900), (150, 900))),
        at(level, 16, rng.choice((5, 6, 7, 9)), rng.randint(5, 9)),
    )
    shown = _in_base(n, base)
    if level < 2:
        text = f"The number {shown} is written in base {base}. What is it in decimal notation?"
        wrong_base = [int(shown, b) for b in (base + 1, base - 1) if max(shown) < DIGITS[b % 16] or b > 16]
        slips = (
            int(shown[::-1], base),
            *wrong_base,
            sum(int(c, 16) * base ** (i + 1) for i, c in enumerate(shown[::-1])),
            n + base,
            n - base,
        )
        return Problem(text=text, answer=_value(shown, base), again=int(shown, base), slips=slips)
    text = f"In some base b, the number written {shown} equals the decimal number {n}. What is b (in decimal notation)?"
    lowest = max(int(c, 16) for c in shown) + 1
    again = next(b for b in range(lowest, 40) if _value(shown, b) == n)
    return Problem(text=text, answer=base, again=again, slips=(base + 1, base - 1, 10, 16, 8, 2, lowest))


def _in_base(n: int, base: int) -> str:
    digits = ""
    while n:
        n, digit = divmod(n, base)
        digits = DIGITS[digit] + digits
    return digits


def _value(digits: str, base: int) -> int:
    """By Horner's rule."""
    return reduce(lambda value, c: value * base + DIGITS.index(c), digits, 0)


@family(
    "ones",
    r"\bbit_count\b|[Nn]umber of ones in the binary|\bbit_length\b|bits necessary|\b[Bb]inary (?:notation|representation)|[Bb]itwise",
)
def ones(rng: random.Random, level: int) -> Problem:
    n = rng.randint(*at(level, (200, 2000), (4, 14), (6, 15)))
    if level == 0:
        text = f"How many ones does the binary notation of {n} have?"
        answer = _in_base(n, 2).count("1")
        return Problem(
            text=text,
            answer=answer,
            again=n.bit_count(),
            slips=(n.bit_length() - answer, n.bit_length(), answer + 1, answer - 1),
        )
    numbers = range(1, 2**n + 1)
    if level == 1:
        text = f"What is the total number of ones in the binary notations of all whole numbers from 1 to {2**n}?"
        answer = n * 2 ** (n - 1) + 1
        slips = (answer - 1, n * 2**n, n * 2 ** (n - 1) + n, (n + 1) * 2**n, n * 2 ** (n - 1) + 2)
        return Problem(text=text, answer=answer, again=sum(i.bit_count() for i in numbers), slips=slips)
    text = f"How many whole numbers from 0 to {2**n - 1} have no two neighbouring ones in their binary notation?"
    answer, before = 2, 1
    for _ in range(n - 1):
        answer, before = answer + before, answer
    again = sum("11" not in f"{i:b}" for i in range(2**n))
    return Problem(
        text=text, answer=answer, again=again, slips=(answer - 1, before, answer + before, 2 ** (n - 1), 2**n - answer)
    )


@family("bitwise", r"[Bb]itwise|\bXOR\b|[Ee]xclusive [Oo]r|Same as a [&|^] b")
def bitwise(rng: random.Random, level: int) -> Problem:
    a, b = sorted(rng.sample(range(70, 250), 2))
    if level < 2:
        name, answer = at(level, ("AND", a & b), ("exclusive OR", a ^ b))
        text = f"What is the bitwise {name} of {a} and {b} (all in decimal notation)?"
        bits = [(_in_base(a, 2).zfill(8), _in_base(b, 2).zfill(8))]
        pairs = list(zip(*bits[0], strict=True))
        own = _value("".join("1" if (x == y == "1" if level == 0 else x != y) else "0" for x, y in pairs), 2)
        slips = (a | b, a ^ b if level == 0 else a & b, a + b, b - a, 255 - answer, ~answer)
        return Problem(text=text, answer=own, again=answer, slips=slips)
    text = f"All whole numbers from {a} to {b}, both included, are combined by bitwise exclusive OR. What is the result in decimal notation?"

    def up_to(n: int) -> int:
        return (n, 1, n + 1, 0)[n % 4]

    slips = (up_to(b) ^ up_to(a), a ^ b, up_to(b), (b - a + 1) * (a + b) // 2, up_to(b) ^ up_to(a - 1) ^ a, 0)
    return Problem(text=text, answer=up_to(b) ^ up_to(a - 1), again=reduce(xor, range(a, b + 1)), slips=slips)


@family("two's complement", TWOS)
def twos(rng: random.Random, level: int) -> Problem:
    if level == 0:
        n = rng.randint(6, 24)
        text = f"What is the smallest whole number that {n} bits can hold in two's complement?"
        again = int.from_bytes((1 << (n - 1) << (32 - n)).to_bytes(4, "big"), "big", signed=True) >> (32 - n)
        return Problem(
            text=text,
            answer=-(2 ** (n - 1)),
            again=again,
            slips=(-(2 ** (n - 1)) + 1, 2 ** (n - 1), -(2**n), 2 ** (n - 1) - 1, -(2**n) + 1),
        )
    value = rng.randint(130, 250)
    shown = _in_base(value, 2)
    if level == 1:
        text = f"The 8 bits {shown} are read as a signed whole number in two's complement. Which number is it?"
        again = int.from_bytes(bytes([value]), "little", signed=True)
        return Problem(
            text=text,
            answer=value - 256,
            again=again,
            slips=(value, value - 255, 128 - value, 256 - value, value - 128, value - 257),
        )
    a, b = rng.randint(70, 127), rng.randint(70, 127)
    text = f"{a} and {b} are held as signed 8-bit numbers in two's complement and added, keeping the lowest 8 bits of the sum. Which signed 8-bit number results?"
    again = int.from_bytes(bytes([(a + b) % 256]), "little", signed=True)
    return Problem(
        text=text,
        answer=a + b - 256,
        again=again,
        slips=(a + b, a + b - 255, 127, a + b - 128, 256 - a - b, 128 - a - b),
    )


@family("encoded length", r"\bBase64\b|\bbase-64\b|\bbase64 (?:data|module|encod)|\bb64(?:en|de)code\(")
def encoded(rng: random.Random, level: int) -> Problem:
    n = 3 * rng.randint(20, 140) + rng.randint(*at(level, (0, 0), (1, 2), (1, 2)))
    once = 4 * -(-n // 3)
    if level < 2:
        text = f"How many characters, padding included and without line breaks, has the standard Base64 encoding of {n} bytes?"
        slips = (4 * n // 3, -(-4 * n // 3), 4 * (n // 3), 2 * n, n * 8 // 5, once + 4, once - 4, n)
        return Problem(text=text, answer=once, again=len(base64.b64encode(bytes(n))), slips=slips)
    text = (
        f"{n} bytes are encoded in standard Base64, and the resulting text, taken as ASCII bytes, is encoded in Base64 once "
        "more, both times with padding and without line breaks. How many characters has the result?"
    )
    answer = 4 * -(-once // 3)
    slips = (n * 16 // 9, once, 2 * once, once * 4 // 3, answer + 4, answer - 4, -(-n * 16 // 9))
    return Problem(text=text, answer=answer, again=len(base64.b64encode(base64.b64encode(bytes(n)))), slips=slips)


@family("networks", r"\bIPv4\b|\bsubnet|\bCIDR\b|network mask|\bnetmask\b")
def networks(rng: random.Random, level: int) -> Problem:
    prefix, address = rng.randint(*at(level, (18, 29), (20, 28), (17, 27))), rng.randint(0x0A000000, 0xDFFFFFFF)
    size = 2 ** (32 - prefix)
    if level == 0:
        text = f"How many IPv4 addresses, the first and the last one included, does a network with a prefix of {prefix} bits have?"
        again = ipaddress.ip_network(f"10.0.0.0/{prefix}").num_addresses
        return Problem(
            text=text, answer=size, again=again, slips=(size - 2, 2**prefix, size - 1, size // 2, 32 - prefix)
        )
    if level == 1:
        longer = prefix + rng.randint(2, 4)
        text = f"Into how many networks with a prefix of {longer} bits can an IPv4 network with a prefix of {prefix} bits be divided?"
        again = sum(1 for _ in ipaddress.ip_network(f"10.0.0.0/{prefix}").subnets(new_prefix=longer))
        return Problem(
            text=text,
            answer=2 ** (longer - prefix),
            again=again,
            slips=(
                longer - prefix,
                2 * (longer - prefix),
                2 ** (longer - prefix) - 2,
                2 ** (32 - longer),
                2 ** (longer - prefix - 1),
            ),
        )
    shown = str(ipaddress.ip_address(address))
    text = f"The IPv4 address {shown} belongs to a network with a prefix of {prefix} bits. How many addresses of this network are numerically greater than {shown}?"
    last = int(ipaddress.ip_network(f"{shown}/{prefix}", strict=False).broadcast_address)
    answer = size - 1 - address % size
    return Problem(
        text=text, answer=answer, again=last - address, slips=(answer + 1, answer - 1, size, address % size, size - 2)
    )
