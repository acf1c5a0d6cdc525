"""Tasks that have little but a verifier, and one answer to one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kgsynth.sandbox import Sandbox
from kgsynth.task import Provenance, Task, VerifierSpec
from kgsynth.verifiers import Verdict, verify


def score(name: str, params: Mapping[str, Any], answer: str, sandbox: Sandbox | None = None) -> Verdict:
    return verify(answer, task(name, params), sandbox)


def task(
    verifier: str,
    params: Mapping[str, Any],
    reference: str = "",
    wrong: Sequence[str] = (),
    prompt: str = "",
    type: str = "",
) -> Task:
    return Task(
        type=type or verifier,
        domain="d",
        granularity="atomic",
        prompt=prompt or f"A question for {verifier}. Reply in <answer></answer>.",
        verifier=VerifierSpec(name=verifier, params=params),
        reference=tagged(reference),
        wrong=tuple(map(tagged, wrong)),
        provenance=Provenance(concepts=("c",), names=("c",), spans=(), licences=(), author="test"),
    )


def tagged(text: str) -> str:
    return f"<answer>{text}</answer>"
