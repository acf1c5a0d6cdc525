"""How much faster than the reference? Rounds of runs in turns, each in a fresh box, each call on fresh data.

A time is the least of the timed calls of one run, as the keeper in the box took it. From it goes what a kernel costs that
does nothing (the signal, the copy of the results). A round gives one ratio for each size, and rounds go on until a
confidence interval of the median ratio (order statistics, as in the sign test) is clear of every target. When it is not
after the last round, nothing is said: SandboxError. The speedup of a task is that of its worst size, so that no trick at
one size pays.
"""

from __future__ import annotations

import math
import random
import statistics
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kgsynth.errors import SandboxError
from kgsynth.verifiers import Verdict
from kgsynth.verifiers.kernels.bench import Bench, Call, Run
from kgsynth.verifiers.kernels.params import Speed, evaluate, spec_of

WARM = 2  # first calls of a size, checked but not timed; a candidate cannot tell them from the rest
FIRST, LAST = 5, 21  # rounds
CONFIDENCE = 0.93
PEAK_MARGIN = 2.0  # a measured peak is what we reached, not what the machine can do
LEAST_NET = 1.0  # times the cost of doing nothing that the reference must take beyond it, to be measurable
_alone = threading.Lock()  # two measurements at once would measure each other
_peaks: dict[tuple[str, str, int, str], dict[str, float]] = {}

PROBES = {
    "flops": (
        "def probe(x):\n    for _ in range(8):\n        y = x @ x\n    return y[:1]\n",
        [512, 512],
        8 * 2 * 512**3,
    ),
    "bytes": (
        "import torch\ndef probe(x):\n    y = torch.empty_like(x)\n    for _ in range(200):\n        y.copy_(x)\n    return y[:1]\n",
        [256, 256],
        200 * 2 * 256 * 256 * 4,
    ),
}


@dataclass(kw_only=True)
class Measured:
    """What came of the rounds. Times in seconds, by the number of the size."""

    targets: Sequence[float]
    floors: dict[int, float]
    idle: dict[int, float]  # what doing nothing takes
    fastest: dict[int, float] = field(default_factory=lambda: defaultdict(lambda: math.inf))
    ratios: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    failed: Verdict | None = None  # a timed call whose result was not right

    def add(self, size: int, candidate: float, reference: float) -> None:
        """One round at one size. Raises SandboxError when the reference drowns in the cost of a call."""
        net = reference - self.idle[size]
        if net < LEAST_NET * self.idle[size]:
            raise SandboxError(
                f"not measurable: the reference takes {reference * 1e6:.0f} us at size {size}, "
                f"{self.idle[size] * 1e6:.0f} us of it for the call alone; ask for the speed at larger sizes"
            )
        self.fastest[size] = min(self.fastest[size], candidate)
        self.ratios[size].append(net / max(candidate - self.idle[size], self.floors[size], 0.02 * self.idle[size]))

    @property
    def impossible(self) -> bool:
        return any(self.fastest[size] < floor for size, floor in self.floors.items())

    @property
    def reached(self) -> int:
        """How many targets the worst size has passed for sure."""
        return min(sum(interval(r)[0] >= target for target in self.targets) for r in self.ratios.values())

    @property
    def clear(self) -> bool:
        """Whether more rounds would not change `reached`: some size is surely below the next target."""
        if self.reached == len(self.targets):
            return True
        return any(interval(r)[1] < self.targets[self.reached] for r in self.ratios.values())

    def shown(self) -> dict[str, Any]:
        return {
            "speedup": [round(statistics.median(r), 3) for r in self.ratios.values()],
            "interval": [[round(end, 3) for end in interval(r)] for r in self.ratios.values()],
            "rounds": max(map(len, self.ratios.values()), default=0),
            "fastest_us": [round(t * 1e6, 1) for t in self.fastest.values()],
            "idle_us": [round(t * 1e6, 1) for t in self.idle.values()],
            "floor_us": [round(t * 1e6, 1) for t in self.floors.values()],
        }


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """An interval that holds the median with CONFIDENCE, without an assumption about the noise."""
    ordered, cut = sorted(ratios), 0
    while 1 - 2 * _at_most(cut + 1, len(ordered)) >= CONFIDENCE:
        cut += 1
    return ordered[cut], ordered[-1 - cut]


def _at_most(successes: int, tries: int) -> float:
    """P(X <= successes) for a fair coin."""
    return sum(math.comb(tries, k) for k in range(successes + 1)) / 2**tries


def measure(
    bench: Bench,
    speed: Speed,
    source: str,
    expected: Callable[[Bench, Sequence[Call], object], Any],
    check: Callable[[Sequence[Call], Run, Any], Verdict],
) -> Measured:
    """Rounds until it is clear. Raises SandboxError when it does not become so. Every timed result is checked."""
    with _alone:
        outputs = [call["outputs"] for call in expected(bench, _one_each(bench, speed), "idle").native.calls]
        measured = Measured(
            targets=speed.targets,
            floors=floors(bench, speed, outputs),
            idle={i: idle(bench, size, outputs[i]) for i, size in enumerate(speed.sizes)},
        )
        for number in range(LAST):
            measured.failed = _round(bench, speed, source, number, measured, expected, check)
            done = number + 1 >= FIRST and (number + 1) % 2 and measured.clear
            if measured.failed or measured.impossible or done:
                return measured
    raise SandboxError(f"not measurable: too close to the target or too noisy after {LAST} rounds: {measured.shown()}")


def _round(
    bench: Bench,
    speed: Speed,
    source: str,
    number: int,
    measured: Measured,
    expected: Callable[[Bench, Sequence[Call], object], Any],
    check: Callable[[Sequence[Call], Run, Any], Verdict],
) -> Verdict | None:
    """Candidate and reference in turns; who goes first changes. A verdict when a timed result was not right."""
    label = ("timed", number)
    calls = _calls(bench, speed, label)
    wanted = expected(bench, calls, label)
    sources = {"candidate": source, "reference": bench.spec.reference}
    runs: dict[str, Run] = {}
    for who in sorted(sources, reverse=bool(number % 2)):
        room, banned = wanted.room(), who == "candidate"
        runs[who] = bench.run(sources[who], calls, room=room, banned=banned, pin=True, label=label)
    verdict = check(calls, runs["candidate"], wanted)
    if verdict.score == 0.0:
        return verdict
    if runs["reference"].status != "done":
        raise SandboxError(f"not measurable: the reference did not end well: {runs['reference'].status}")
    for index, size in enumerate(speed.sizes):
        measured.add(index, *(_least(calls, runs[who], size) for who in ("candidate", "reference")))
    return None


def _one_each(bench: Bench, speed: Speed) -> list[Call]:
    return [Call(size=size, variant=0, seed=bench.spec.seed_of("idle", i)) for i, size in enumerate(speed.sizes)]


def _calls(bench: Bench, speed: Speed, label: object) -> list[Call]:
    spec = bench.spec
    calls = [
        Call(size=size, variant=number, seed=spec.seed_of(label, i, number))
        for i, size in enumerate(speed.sizes)
        for number in range(WARM + speed.calls)
    ]
    random.Random(spec.seed_of(label, "order")).shuffle(calls)
    return calls


def _least(calls: Sequence[Call], run: Run, size: Mapping[str, int]) -> float:
    times = [done["seconds"] for call, done in zip(calls, run.calls, strict=True) if call.size == size]
    return min(times[WARM:])


def idle(bench: Bench, size: Mapping[str, int], outputs: Sequence[Mapping[str, Any]]) -> float:
    """Seconds of a call that returns results of the right form and computes nothing."""
    made = ", ".join(
        f"torch.empty({list(o['shape'])}, dtype=torch.{o['dtype']}, device={o['device']!r})" for o in outputs
    )
    source = f"import torch\ndef {bench.spec.name}(*args):\n    return ({made},)\n"
    calls = [Call(size=size, variant=0, seed=n) for n in range(16)]
    room = sum(len(o["data"]) + 128 for o in outputs)
    run = bench.run(source, calls, room=room, pin=True, weights=False)
    if run.status != "done":
        raise SandboxError(f"not measurable: a call that does nothing ends with {run.status}")
    return min(call["seconds"] for call in run.calls[WARM:])


# -------------------------------------------------------------------------------------------------------- roofline


def floors(bench: Bench, speed: Speed, outputs: Sequence[Sequence[Mapping[str, Any]]]) -> dict[int, float]:
    """Seconds below which no kernel can be at each size: its work at the peak of this machine."""
    peak = {**peaks(bench, outputs[0][0]["dtype"]), **speed.peak} if len(speed.peak) < 2 else speed.peak
    found = {}
    for index, size in enumerate(speed.sizes):
        moved = evaluate(speed.moved, size) if speed.moved else sum(3 * len(o["data"]) // 4 for o in outputs[index])
        flops = evaluate(speed.flops, size) if speed.flops else 0
        found[index] = max(flops / peak["flops"], moved / peak["bytes"])
    return found


def peaks(bench: Bench, dtype: str) -> dict[str, float]:
    """Flops and bytes per second, measured once in a process: a matrix product, and a copy within the cache; twice that."""
    spec = bench.spec
    kind = dtype if dtype in ("float64", "float16", "bfloat16") else "float32"
    key = (bench.sandbox.name, spec.device, spec.threads, kind)
    if key not in _peaks:
        _peaks[key] = {what: PEAK_MARGIN * _reached(bench, what, kind) for what in PROBES}
    return _peaks[key]


def _reached(bench: Bench, what: str, dtype: str) -> float:
    source, shape, work = PROBES[what]
    tensor = {"shape": shape, "dtype": dtype if what == "flops" else "float32", "values": "normal"}
    spec = spec_of({"name": "probe", "reference": source, "seed": 0, "inputs": [tensor]})
    spec = replace(spec, device=bench.spec.device, threads=bench.spec.threads, seconds=60.0)
    run = replace(bench, spec=spec).run(source, [Call(size={}, variant=0, seed=n) for n in range(8)], pin=True)
    if run.status != "done":
        raise SandboxError(f"not measurable: the probe of the machine's {what} ends with {run.status}")
    return work / min(call["seconds"] for call in run.calls)
