"""Fair variants and near misses, per verifier: what `tests/test_fairness.py` and `benchmarks/verifier_fairness.py` read.

Each module of this package has `CASES: list[Case]`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
