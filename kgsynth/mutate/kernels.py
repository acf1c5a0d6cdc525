"""`kernel`: the reference rewritten; and results that are a little off, wherever they came from.

A wrong variant calls the right function and spoils its result by more than rounding: what it returns is wrong for any reference
whose results are not all the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from kgsynth.mutate import Mutator, Named, inside, python_code, register
from kgsynth.task import Task
from kgsynth.verifiers.code.source import read

SPOILT = {
    "a hundredth too much": "out * 1.01",
    "another sign": "-out",
    "rolled by one": "out.roll(1, -1) + 1e-2",
    "one more": "out + 1",
    "zeros": "torch.zeros_like(out)",
    "the first one left out": "torch.cat([torch.zeros_like(out.flatten()[:1]) + 3, out.flatten()[1:]]).reshape(out.shape)",
    "rounded": "(out * 4).round() / 4 + 0.1",
    "NaN somewhere": "out.masked_fill(torch.arange(out.numel()).reshape(out.shape) == 0, float('nan'))",
    "another shape": "out.flatten()[:-1]",
}


def right_kernel(task: Task, rng: random.Random) -> Iterator[Named]:
    source, name = read(inside(task.reference)), str(task.verifier.params["name"])
    yield from (
        one
        for one in python_code.rewritten(source, name, rng)
        if one[0] not in ("a function around it", "type annotations")
    )


def wrong_kernel(task: Task, rng: random.Random) -> Iterator[Named]:
    source, name = read(inside(task.reference)), str(task.verifier.params["name"])
    is_class = bool(re.search(rf"^class {re.escape(name)}\b", source, re.MULTILINE))
    for how in rng.sample(list(SPOILT), len(SPOILT)):
        spoil = f"def _spoilt(out):\n    return {SPOILT[how]}"
        if is_class:
            ours = (
                f"class {name}(_First):\n    def forward(self, *args):\n        return _spoilt(super().forward(*args))"
            )
        else:
            ours = f"def {name}(*args):\n    return _spoilt(_First(*args))"
        yield how, f"import torch\n{source.strip()}\n\n_First = {name}\n\n{spoil}\n\n{ours}\n"


register(Mutator(verifier="kernel", right=right_kernel, wrong=wrong_kernel, most=4))
