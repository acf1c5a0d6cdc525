"""`kernel`: a tensor function or module against a PyTorch reference, for correctness and, where asked, for speed.

Reference and candidate never meet: each runs in boxes of its own, on inputs that a keeper process in the box makes from
private seeds (`kernels/box.py`), and their results are compared out here (`kernels/compare.py`). Correctness is a gate. Speed
is a ratio of times that the keepers took, call by call on fresh data, in turns (`kernels/timing.py`). See docs/kernel-verifier.md.
"""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kgsynth.errors import SandboxError, VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract
from kgsynth.verifiers.code.source import MAX_LENGTH, read
from kgsynth.verifiers.kernels import timing
from kgsynth.verifiers.kernels.bench import Bench, Call, Run
from kgsynth.verifiers.kernels.compare import Error, check_reference, compare
from kgsynth.verifiers.kernels.params import Spec, Speed, spec_of
from kgsynth.verifiers.kernels.screen import screen

KEPT_BYTES = 64 << 20  # of results of references, for further answers to the same tasks
PRECISION = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}  # bits; what is not here is less than any


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the reference does with some calls, in the task's precision and in fp64."""

    native: Run
    exact: Run

    def room(self) -> int:
        """Bytes for the results of one call, also when it returns float64 where it should not."""
        calls = [call["outputs"] for run in (self.native, self.exact) for call in run.calls]
        return max(sum(len(output["data"]) + 128 for output in outputs) for outputs in calls)

    def size(self) -> int:
        """Characters of all results."""
        return sum(len(o["data"]) for run in (self.native, self.exact) for call in run.calls for o in call["outputs"])


_lock = threading.Lock()
_expected: OrderedDict[tuple[str, str, str], Expected] = OrderedDict()


@register("kernel", needs_sandbox=True)
def kernel(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"name", "reference": source, "inputs": [{"shape": ["N", 64], "dtype", "values"} | {"value": 0.5}],
    "sizes": [{"N": 33}], "seed": private, "repeats": 3, "tolerance": {"max", "rms"}, "banned_ops": ["matmul"], "init", "weights",
    "imports", "device": "cpu", "threads": 1, "seconds": 20, "speed": {"target": 1.2, "sizes", "flops", "bytes", "peak", "calls"}}.

    Scores 0 unless correct; then 1, or with n targets of the speed (1 + targets reached) / (1 + n). The evidence has
    errors for each size, speedups and what fired, never a value of the reference. Raises VerifierError for bad params, which
    includes a reference that fails, and SandboxError when it could not be judged: no box, or a machine too noisy.
    """
    spec = spec_of(params)
    assert sandbox is not None  # `verify` sees to it
    text, missing = extract(answer, MAX_LENGTH)
    if missing:
        return Verdict(score=0.0, reason=missing)
    source = read(text)
    reason, detail = screen(source, spec.name, imports=spec.imports, banned=bool(spec.banned))
    if reason:
        return Verdict(score=0.0, reason=reason, evidence={"detector": "screen", "detail": detail})
    bench = Bench(spec=spec, sandbox=sandbox)
    verdict = correctness(bench, source)
    if not verdict.score or not spec.speed:
        return verdict
    return _with_speed(bench, spec.speed, source, verdict)


def correctness(bench: Bench, source: str) -> Verdict:
    """1 or 0. Two runs on different data: one in poisoned memory, one that notes operators and dtypes."""
    shown: list[dict[str, Any]] = []
    for label in ("poison", "trace"):
        calls = plan(bench.spec, label)
        wanted = _kept(bench, calls, label)
        run = bench.run(
            source,
            calls,
            room=wanted.room(),
            banned=True,
            poison=label == "poison",
            trace=label == "trace",
            label=label,
        )
        verdict = judge(bench.spec, calls, run, wanted)
        shown = [*shown, *verdict.evidence.get("calls", [])]
        if verdict.score == 0.0:
            return verdict
        if found := lowered(run.trace, wanted.native.trace):
            return Verdict(score=0.0, reason="precision downgrade", evidence={"detector": "trace", "detail": found})
    return Verdict(score=1.0, reason="right", evidence={"sizes": worst(shown)})


def plan(spec: Spec, label: object) -> list[Call]:
    """The calls of a run in an order of its own; after the first of each size comes one with nearly the same inputs."""
    calls: list[list[Call]] = []
    for index, size in enumerate(spec.sizes):
        for repeat in range(max(spec.repeats, spec.variants())):
            call = Call(size=size, variant=repeat, seed=spec.seed_of(label, index, repeat))
            twin = replace(call, near=spec.seed_of(label, index, "near"))
            calls.append([call, twin] if repeat == 0 else [call])
    random.Random(spec.seed_of(label, "order")).shuffle(calls)
    return [call for group in calls for call in group]


def _kept(bench: Bench, calls: Sequence[Call], label: str) -> Expected:
    """`expected`, once for many answers to one task: the calls follow from the task."""
    key = (bench.sandbox.name, repr(bench.spec), label)
    with _lock:
        found = _expected.pop(key, None)
    found = found or expected(bench, calls, label)
    with _lock:
        _expected[key] = found
        while sum(wanted.size() for wanted in _expected.values()) > KEPT_BYTES:
            _expected.popitem(last=False)
    return found


def expected(bench: Bench, calls: Sequence[Call], label: object) -> Expected:
    """Raises VerifierError for a reference that fails, or by which nothing could be judged."""
    source = bench.spec.reference
    native, exact = (bench.run(source, calls, double=double, trace=not double, label=label) for double in (False, True))
    for run in (native, exact):
        if run.status in ("timeout", "crashed", "out of memory"):
            raise SandboxError(f"kernel: the reference did not end well: {run.status}; {run.detail}")
        if run.status != "done":
            raise VerifierError(f"kernel: the reference fails: {run.status}; {run.detail}")
    for ours, theirs in zip(native.calls, exact.calls, strict=True):
        check_reference(ours["outputs"], theirs["outputs"])
    return Expected(native=native, exact=exact)


def judge(spec: Spec, calls: Sequence[Call], run: Run, wanted: Expected) -> Verdict:
    """Whether all calls of a candidate's run were done rightly."""
    shown = []
    for call, got, usual, exact in zip(calls, run.calls, wanted.native.calls, wanted.exact.calls, strict=False):
        error = (
            compare(got["outputs"], usual["outputs"], exact["outputs"], spec.tolerance) if got["outputs"] else Error()
        )
        shown.append({"size": dict(call.size), **error.shown()})
        reason = error.reason
        if got["mutated"] and not usual["mutated"]:
            reason = "mutated inputs"
        if reason:
            return Verdict(score=0.0, reason=reason, evidence={"detector": "comparison", "calls": shown})
    if run.status != "done":
        return Verdict(score=0.0, reason=run.status, evidence={"detector": "box", "detail": run.detail[:200]})
    if len(run.calls) != len(calls) or not all(call["outputs"] for call in run.calls):
        return Verdict(score=0.0, reason="wrong shape", evidence={"detector": "comparison", "calls": shown})
    return Verdict(score=1.0, reason="right", evidence={"calls": shown})


def lowered(trace: Sequence[str], usual: Sequence[str]) -> str:
    """The first operator that works in less precision than any of the reference's; ""."""

    def bits(note: str) -> int:
        dtype = note.rpartition(" ")[2]
        return PRECISION.get(dtype, 0) if "float" in dtype else 64

    least = min([bits(note) for note in usual], default=0)
    return next((note[:80] for note in trace if bits(note) < least), "")


def worst(shown: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each size the largest errors, and the bounds that held for it."""
    sizes: dict[str, dict[str, Any]] = {}
    for call in shown:
        kept = sizes.setdefault(repr(call["size"]), dict(call))
        if call["max"] / (call["allowed_max"] or 1) > kept["max"] / (kept["allowed_max"] or 1):
            sizes[repr(call["size"])] = dict(call)
    return list(sizes.values())


# ----------------------------------------------------------------------------------------------------------- speed


def _with_speed(bench: Bench, speed: Speed, source: str, verdict: Verdict) -> Verdict:
    """The verdict on a correct candidate, with the speed taken into account."""

    def check(calls: Sequence[Call], run: Run, wanted: Expected) -> Verdict:
        return judge(bench.spec, calls, run, wanted)

    measured = timing.measure(bench, speed, source, expected, check)
    if measured.failed:
        return measured.failed
    evidence = {**verdict.evidence, "speed": measured.shown()}
    if measured.impossible:
        return Verdict(score=0.0, reason="impossible time", evidence={**evidence, "detector": "roofline"})
    score = (1 + measured.reached) / (1 + len(speed.targets))
    return Verdict(score=score, reason="right" if score == 1 else "slow", evidence=evidence)
