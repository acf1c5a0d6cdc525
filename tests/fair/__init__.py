"""Fair variants and near misses, per verifier: what `tests/test_fairness.py` and `benchmarks/verifier_fairness.py` read.

Each module of this package has `CASES: list[Case]`.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import NEEDS_SANDBOX, REGISTRY, Verdict
from kgsynth.verifiers.answer import CLOSE, OPEN


@dataclass(frozen=True, kw_only=True)
class Case:
    """One task's verifier with answers that it must accept and answers that it must reject.

    An answer is a whole reply with tags; one without any tag is wrapped by the reader.
    """

    verifier: str  # its name in kgsynth.verifiers.REGISTRY
    params: Mapping[str, Any]
    reference: str  # the usual right answer
    right: tuple[str, ...] = ()  # right, in an unusual but fair form
    wrong: tuple[str, ...] = ()  # near misses and tricks


def load() -> dict[str, list[Case]]:
    """Module name -> its cases, for every module of this package."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: importlib.import_module(f"{__name__}.{name}").CASES for name in names}


def reply(answer: str) -> str:
    """The answer as a model's reply: wrapped in tags when it has none."""
    return answer if OPEN in answer or CLOSE in answer else f"{OPEN}{answer}{CLOSE}"


def judged(case: Case, answer: str, sandbox: Sandbox) -> Verdict:
    """The verdict of the case's verifier."""
    return REGISTRY[case.verifier](reply(answer), case.params, sandbox if case.verifier in NEEDS_SANDBOX else None)


def repeated(
    rows: Sequence[tuple[Case, str]], times: int, threads: int, sandbox: Sandbox, rng: random.Random
) -> list[Counter[tuple[float, str]]]:
    """How often each (score, reason) came of each answer, when all are judged so many times in random order and threads.

    That an answer could not be judged is a reason too.
    """

    def verdict(i: int) -> tuple[float, str]:
        try:
            found = judged(*rows[i], sandbox)
        except SandboxError as error:
            return -1.0, f"could not be judged: {error}"
        return found.score, found.reason

    order = [i for i in range(len(rows)) for _ in range(times)]
    rng.shuffle(order)
    with ThreadPoolExecutor(threads) as pool:
        verdicts = list(pool.map(verdict, order))
    seen: list[Counter[tuple[float, str]]] = [Counter() for _ in rows]
    for i, found in zip(order, verdicts, strict=True):
        seen[i][found] += 1
    return seen
