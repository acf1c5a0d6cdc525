"""Verifiers: (answer, task, sandbox) -> Verdict. One file each, found by name in REGISTRY.

The checker that admits a task (`kgsynth.validate`) is the checker that pays the reward (`trainer.reward`).
An answer is a model's whole reply; what counts in it is defined once, in `answer.py`.
"""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of verifying one answer."""

    score: float  # in [0, 1]
    reason: str  # a short code: "right", "wrong", "empty", "no answer tag", "several answers", "forbidden import", ...
    evidence: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


Verifier = Callable[[str, Mapping[str, Any], Sandbox | None], Verdict]
REGISTRY: dict[str, Verifier] = {}
NEEDS_SANDBOX: set[str] = set()


def register(name: str, *, needs_sandbox: bool = False) -> Callable[[Verifier], Verifier]:
    """Class a function as the verifier `name`. Raises VerifierError when the name is taken."""

    def add(verifier: Verifier) -> Verifier:
        if name in REGISTRY:
            raise VerifierError(f"verifier {name!r} is registered twice")
        REGISTRY[name] = verifier
        if needs_sandbox:
            NEEDS_SANDBOX.add(name)
        return verifier

    return add


def verify(answer: str, task: Task, sandbox: Sandbox | None = None) -> Verdict:
    """Score one answer to one task. Raises VerifierError for an unknown verifier or a missing sandbox, never for the answer."""
    name = task.verifier.name
    if name not in REGISTRY:
        raise VerifierError(f"task {task.id} wants verifier {name!r}; known: {', '.join(sorted(REGISTRY))}")
    if name in NEEDS_SANDBOX and sandbox is None:
        raise VerifierError(f"verifier {name!r} runs code: pass a sandbox (kgsynth.sandbox.open_sandbox())")
    start = time.perf_counter()
    verdict = REGISTRY[name](answer, task.verifier.params, sandbox)
    return replace(verdict, seconds=time.perf_counter() - start)


for _module in pkgutil.iter_modules(__path__):  # each registers itself; what is slow to load they load when used
    importlib.import_module(f"{__name__}.{_module.name}")
