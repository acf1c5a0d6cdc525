"""Runs of a kernel in boxes: what goes in, what comes out, and whether it was really our keeper who said so."""

from __future__ import annotations

import hmac
import inspect
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Limits, Sandbox
from kgsynth.verifiers.kernels import box, data, filter
from kgsynth.verifiers.kernels.params import MATMUL, Spec

LOAD_SECONDS = 60.0  # for torch and a first compilation, on a busy machine
LEAST_LOAD_SECONDS = 10.0  # where nothing is compiled, and torch is there before a candidate is
ROOM = 128 << 20  # bytes for the results of one call of the reference, which nobody knows before
MEMORY_MB = 4096
# A worker's word for how it ended; anything else is its own invention.
REASONS = {
    "done", "error", "load error", "syntax error", "no such function", "wrong type", "result too large", "banned operator",
    "out of memory", "timeout", "crashed", "ran while stopped",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call: at a size, with inputs filled in a way, from a private seed; perhaps those of `seed` but for few elements."""

    size: Mapping[str, int]
    variant: int
    seed: int
    near: int | None = None


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one box said. `calls` has those that were made: {"seconds", "mutated", "outputs"}."""

    status: str  # one of REASONS
    detail: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)  # "operator dtype"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A task and the sandbox to run it in."""

    spec: Spec
    sandbox: Sandbox

    def run(
        self,
        source: str,
        calls: Sequence[Call],
        *,
        room: int = ROOM,
        banned: bool = False,
        double: bool = False,
        trace: bool = False,
        poison: bool = False,
        pin: bool = False,
        weights: bool = True,
        label: object = 0,
    ) -> Run:
        """All calls, one after the other, of one source in one process in one fresh box.

        room: bytes for the results of a call, poisoned before each when it is less than ROOM. banned: without the banned
        operators. double: every float as float64. trace: note operators. poison: fill fresh memory. pin: to
        `threads` processors. weights: load a module's, the same for the same label. Raises SandboxError when it could not be judged.
        """
        spec, key = self.spec, secrets.token_bytes(32)
        tensors = [spec.tensors(call.size, call.variant) for call in calls]
        loaded = spec.resolved_weights() if weights else []
        start = max([data.layout(t, doubled=True)[1] for t in (*tensors, loaded)])
        job = {
            "key": key.hex(),
            "source": source,
            "name": spec.name,
            "init": list(spec.init),
            "device": spec.device,
            "threads": spec.threads,
            "banned": list(spec.banned) if banned else [],
            "known": [] if banned else [name for name in spec.banned if name not in MATMUL],
            "trace": trace,
            "poison": poison,
            "double": double,
            "pin": pin,
            "late": spec.device != "cpu",
            "start": start,
            "wipe": room if room < ROOM else 0,
            "weights": loaded,
            "weights_seed": spec.seed_of("weights", label),
            "load_seconds": LOAD_SECONDS if spec.device != "cpu" else max(spec.seconds, LEAST_LOAD_SECONDS),
            "call_seconds": spec.seconds,
            "all_seconds": 2 * spec.seconds,
            "calls": [
                {"tensors": t, "seed": call.seed, "near": call.near} for t, call in zip(tensors, calls, strict=True)
            ],
        }
        return self._ask(json.dumps(job), start + room, key, len(calls), room)

    def _ask(self, job: str, shared: int, key: bytes, count: int, room: int) -> Run:
        told = 4096 + count * (room * 2 + 4096) if room < ROOM else 1 << 30
        limits = Limits(
            seconds=LOAD_SECONDS + 2 * self.spec.seconds + 10,
            cpu_seconds=int(LOAD_SECONDS + self.spec.threads * self.spec.seconds * 2 + 10),
            memory_mb=MEMORY_MB + 4 * (shared >> 20),
            virtual_mb=0,
            processes=64 + 2 * self.spec.threads,
            output_kb=told >> 10,
        )
        files = {"box.py": inspect.getsource(box), "kernel_data.py": inspect.getsource(data)}
        files["kernel_filter.py"] = inspect.getsource(filter)
        result = self.sandbox.run(
            [*self.sandbox.python, "box.py", str(shared)], files=files, stdin=job, limits=limits, packages=("torch",)
        )
        for line in result.stdout.split("\n"):
            signature, _, text = line.partition(" ")
            if hmac.compare_digest(signature.encode(), hmac.new(key, text.encode(), "sha256").hexdigest().encode()):
                return _read(json.loads(text), count)
        if result.timed_out:
            return Run(status="timeout")
        if result.out_of_memory:
            return Run(status="out of memory")
        return Run(status="crashed", detail=result.stderr.strip()[-300:])


def _read(report: Mapping[str, Any], count: int) -> Run:
    """A signed report. Raises SandboxError when the candidate could have looked into other processes of the box."""
    if report["exposed"]:
        raise SandboxError(
            "a candidate's box shows it other processes of its user, so that times and data are not safe from it; "
            "use a sandbox whose helpers run as another user or are not dumpable"
        )
    status = report["status"] if report["status"] in REASONS else "crashed"
    trace = [str(note) for note in report.get("trace", []) or []]
    return Run(status=status, detail=report["detail"], calls=report["calls"], trace=trace)
