"""Dates and durations: what `calendar`, `datetime`, `time` and the date formats of e-mail document."""

from __future__ import annotations

import calendar
import datetime
import random
from fractions import Fraction

from kgsynth.synthesize.problems import Problem, at, family

EPOCH = r"since the [Ee]poch|POSIX timestamp|UTC timestamp|\b[Uu]nix (?:epoch|time)"
DATES = r"\b[Dd]ate string|\bdate and time\b|\b[Cc]alendar\b|\bdatetime\b|\bdate/time\b|[Jj]ulian [Dd]ay|time ?tuple"


@family("leap years", rf"[Ll]eap ?(?:year|day)|{DATES}")
def leap(rng: random.Random, level: int) -> Problem:
    first = rng.randint(*at(level, (1901, 1960), (1780, 1880), (1550, 1690)))
    last = rng.randint(*at(level, (1990, 2090), (1910, 2090), (2010, 2450)))
    text = f"How many leap years are there from {first} to {last}, both included, in the Gregorian calendar (extended backwards if needed)?"

    def up_to(year: int) -> int:
        return year // 4 - year // 100 + year // 400

    fourth = last // 4 - (first - 1) // 4
    slips = (
        fourth,
        fourth - (last // 100 - (first - 1) // 100),
        (last - first) // 4,
        up_to(last) - up_to(first - 1) + 1,
        up_to(last) - up_to(first - 1) - 1,
    )
    return Problem(
        text=text, answer=up_to(last) - up_to(first - 1), again=calendar.leapdays(first, last + 1), slips=slips
    )


@family("days between dates", DATES)
def days(rng: random.Random, level: int) -> Problem:
    start = datetime.date(rng.randint(1995, 2030), rng.randint(1, 6), rng.randint(1, 28))
    gap = rng.randint(*at(level, (35, 150), (250, 700), (1200, 4000)))
    end = start + datetime.timedelta(days=gap)
    if level < 2:
        text = f"How many days after {_long(start)} is {_long(end)}?"
        rough = (end.year - start.year) * 365 + (end.month - start.month) * 30 + end.day - start.day
        slips = (
            gap + 1,
            gap - 1,
            rough,
            (end.year - start.year) * 365 + (end.month - start.month) * 31 + end.day - start.day,
        )
        return Problem(text=text, answer=_ordinal(end) - _ordinal(start), again=(end - start).days, slips=slips)
    text = f"How many Mondays are there from {_long(start)} to {_long(end)}, both included, if {_long(start)} is a {start:%A}?"
    all_days = (start + datetime.timedelta(days=i) for i in range(gap + 1))
    first = -start.weekday() % 7
    answer = (gap - first) // 7 + 1
    slips = (gap // 7, answer + 1, answer - 1, gap // 7 + 2, gap // 30)
    return Problem(text=text, answer=answer, again=sum(d.weekday() == 0 for d in all_days), slips=slips)


def _long(day: datetime.date) -> str:
    return f"{day.day} {day:%B} {day.year}"


def _ordinal(day: datetime.date) -> int:
    """Days since a fixed day, by the formula that starts the year in March (Richards, 2013)."""
    year, month = (day.year - 1, day.month + 9) if day.month < 3 else (day.year, day.month - 3)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day.day


@family("seconds since the epoch", EPOCH)
def epoch(rng: random.Random, level: int) -> Problem:
    day = datetime.date(
        rng.randint(*at(level, (1970, 1972), (1975, 1999), (2000, 2035))), rng.randint(1, 12), rng.randint(1, 28)
    )
    hour, minute = (0, 0) if level == 0 else (rng.randint(1, 23), rng.choice((0, 15, 30, 45)))
    text = f"How many seconds after 1 January 1970, 00:00 UTC is {_long(day)}, {hour:02}:{minute:02} UTC, when leap seconds are not counted?"
    whole = _ordinal(day) - _ordinal(datetime.date(1970, 1, 1))
    answer = whole * 86400 + hour * 3600 + minute * 60
    again = calendar.timegm((day.year, day.month, day.day, hour, minute, 0, 0, 0, 0))
    flat = (day.year - 1970) * 365 + int(f"{day:%j}") - 1
    slips = (
        answer + 86400,
        answer - 86400,
        flat * 86400 + hour * 3600 + minute * 60,
        whole * 86400 + hour * 60 + minute,
        answer * 1000,
        whole,
    )
    return Problem(text=text, answer=answer, again=again, slips=slips)


@family("durations", rf"\btimedelta\b|\b[Dd]uration\b|{EPOCH}|\bin seconds\b")
def durations(rng: random.Random, level: int) -> Problem:
    d, h, m, s = rng.randint(1, 9), rng.randint(1, 23), rng.randint(1, 59), rng.randint(1, 59)
    if level == 0:
        text = f"How many seconds are {h} hours, {m} minutes and {s} seconds?"
        again = int(datetime.timedelta(hours=h, minutes=m, seconds=s).total_seconds())
        return Problem(
            text=text,
            answer=(h * 60 + m) * 60 + s,
            again=again,
            slips=(h * 60 + m * 60 + s, h * 3600 + m + s, h * 3600 + m * 60, h * 3600 + m * 60 + s + 60),
        )
    one = datetime.timedelta(days=d, hours=h, minutes=m, seconds=s)
    if level == 1:
        n = rng.randint(3, 9)
        text = f"A job takes {h} hours, {m} minutes and {s} seconds and is run {n} times in a row. How many whole minutes does that fill completely?"
        total = n * ((h * 60 + m) * 60 + s)
        again = (n * (one - datetime.timedelta(days=d))) // datetime.timedelta(minutes=1)
        return Problem(
            text=text,
            answer=total // 60,
            again=again,
            slips=(total // 60 + 1, n * (h * 60 + m), n * (h * 60 + m + 1), total, total // 3600, n * (h * 60 + m) + s),
        )
    later = datetime.timedelta(hours=rng.randint(1, 23), minutes=rng.randint(1, 59), seconds=rng.randint(1, 59))
    u, v, w = (int(x) for x in str(later).split(":"))
    text = (
        f"A recording lasts {d} days, {h} hours, {m} minutes and {s} seconds. {u} hours, {v} minutes and {w} seconds of it are cut "
        "out, and the rest is played at double speed. How many seconds does that take?"
    )
    total = ((d * 24 + h) * 60 + m) * 60 + s - (u * 60 + v) * 60 - w
    slips = (
        total,
        2 * total,
        Fraction(total + 2 * ((u * 60 + v) * 60 + w), 2),
        Fraction(total - d * 86400, 2),
        Fraction(total + 60, 2),
    )
    return Problem(
        text=text, answer=Fraction(total, 2), again=(one - later) / datetime.timedelta(seconds=2), slips=slips
    )
