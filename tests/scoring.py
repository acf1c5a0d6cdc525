"""One answer to one task that has nothing but a verifier."""

from __future__ import annotations

from typing import Any

from kgsynth.sandbox import Sandbox
from kgsynth.task import Provenance, Task, VerifierSpec
from kgsynth.verifiers import Verdict, verify


def score(name: str, params: dict[str, Any], answer: str, sandbox: Sandbox | None = None) -> Verdict:
    task = Task(
        type="t",
        domain="d",
        granularity="atomic",
        prompt="p",
        verifier=VerifierSpec(name=name, params=params),
        reference="",
        wrong=(),
        provenance=Provenance(concepts=("c",), names=("c",), spans=(), licences=(), author="test"),
    )
    return verify(answer, task, sandbox)


def tagged(text: str) -> str:
    return f"<answer>{text}</answer>"
