"""Every case of `tests/fair` is judged as it says, over all verifiers; and the same way however often and beside whatever."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgsynth.sandbox import Sandbox
from tests.fair import Case, judged, load, repeated

CASES = load()
REPEATS = 4  # benchmarks/verdicts_repeat.py has 1,000


@pytest.mark.parametrize("module", CASES)
def test_cases_are_judged_as_they_say(module: str, sandbox: Sandbox) -> None:
    said = [(case, answer, 1.0) for case in CASES[module] for answer in (case.reference, *case.right)]
    said += [(case, answer, 0.0) for case in CASES[module] for answer in case.wrong]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(lambda row: judged(row[0], row[1], sandbox), said))
    misjudged = [
        f"{answer!r} for {dict(case.params)} is {'not right' if score else 'not wrong'}: {verdict.reason}"[:500]
        for (case, answer, score), verdict in zip(said, verdicts, strict=True)
        if verdict.score != score
    ]
    assert not misjudged, "\n".join(misjudged)


def test_there_are_enough_cases() -> None:
    cases = [case for module in CASES.values() for case in module]
    assert sum(len(case.right) for case in cases) >= 200
    assert sum(len(case.wrong) for case in cases) >= 200
    assert all(case.right and case.wrong for case in cases)
    assert all(
        len({case.reference, *case.right, *case.wrong}) == 1 + len(case.right) + len(case.wrong)
        for case in cases
        if case.reference not in case.right
    )


def test_a_verdict_is_the_same_again(sandbox: Sandbox) -> None:
    """In random order, in threads, among the answers of all verifiers: two right and two wrong ones of each."""
    rows: list[tuple[Case, str]] = []
    for cases in CASES.values():
        right = [(case, answer) for case in cases for answer in case.right]
        wrong = [(case, answer) for case in cases for answer in case.wrong]
        rows += random.Random(0).sample(right, min(2, len(right))) + random.Random(1).sample(wrong, min(2, len(wrong)))
    seen = repeated(rows, REPEATS, 4, sandbox, random.Random(2))
    assert [kinds for kinds in seen if len(kinds) > 1] == []
