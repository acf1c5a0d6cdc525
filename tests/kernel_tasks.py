"""Tasks for the kernel verifier, and two ways to judge a source: as it is done, and without the screen."""

from __future__ import annotations

from typing import Any

from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import REGISTRY, Verdict
from kgsynth.verifiers.kernel import correctness
from kgsynth.verifiers.kernels.bench import Bench
from kgsynth.verifiers.kernels.params import spec_of

SOFTMAX = "import torch\ndef softmax(x):\n    return torch.softmax(x, -1)\n"
PRODUCT = "import torch\ndef product(a, b):\n    return a @ b\n"
SUMS = "import torch\ndef sums(x):\n    return x.sum(-1)\n"
BY_HAND = "def softmax(x):\n    e = (x - x.amax(-1, keepdim=True)).exp()\n    return e / e.sum(-1, keepdim=True)\n"


def task(name: str, reference: str, *shapes: list[Any], **params: Any) -> dict[str, Any]:
    inputs = [{"shape": shape} for shape in shapes]
    usual = {"inputs": inputs, "sizes": [{"N": 5, "D": 33}, {"N": 1, "D": 1}], "seed": "private"}
    return {"name": name, "reference": reference, **usual, **params}


SOFTMAX_TASK = task("softmax", SOFTMAX, ["N", "D"])
SUMS_TASK = task("sums", SUMS, ["N", "D"])
PRODUCT_TASK = task("product", PRODUCT, ["N", "D"], ["D", 7])


def judged(source: str, params: dict[str, Any], sandbox: Sandbox) -> Verdict:
    return REGISTRY["kernel"](f"<answer>{source}</answer>", params, sandbox)


def unscreened(source: str, params: dict[str, Any], sandbox: Sandbox) -> Verdict:
    return correctness(Bench(spec=spec_of(params), sandbox=sandbox), source)
