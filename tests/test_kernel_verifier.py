"""The kernel verifier: what is right passes, what ends badly is a verdict, what is misused an error; speed; the parts."""

from __future__ import annotations

import base64
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kgsynth.errors import SandboxError, VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import REGISTRY
from kgsynth.verifiers.kernel import plan
from kgsynth.verifiers.kernels import timing
from kgsynth.verifiers.kernels.compare import compare
from kgsynth.verifiers.kernels.params import spec_of
from tests.kernel_tasks import BY_HAND, SOFTMAX, SOFTMAX_TASK, judged, task, unscreened

pytest.importorskip("torch")


# ----------------------------------------------------------------------------------------------------- what is right


def test_another_way_to_the_same_numbers_is_right(sandbox: Sandbox) -> None:
    verdict = judged(BY_HAND, SOFTMAX_TASK, sandbox)
    assert (verdict.score, verdict.reason) == (1.0, "right")
    assert sorted(row["size"]["N"] for row in verdict.evidence["sizes"]) == [1, 5]
    assert all(row["max"] <= row["allowed_max"] < 1e-4 for row in verdict.evidence["sizes"])


def test_a_module_gets_private_weights(sandbox: Sandbox) -> None:
    reference = (
        "import torch\nfrom torch import nn\nclass Layer(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.linear = nn.Linear(n, 3)\n    def forward(self, x):\n        return torch.relu(self.linear(x))\n"
    )
    by_hand = reference.replace(
        "torch.relu(self.linear(x))", "((x.unsqueeze(-2) * self.linear.weight).sum(-1) + self.linear.bias).clamp(min=0)"
    )
    weights = [{"name": "linear.weight", "shape": [3, 8]}, {"name": "linear.bias", "shape": [3]}]
    params = task("Layer", reference, ["N", 8], init=[8], weights=weights, banned_ops=["matmul"])
    assert judged(by_hand, params, sandbox).reason == "right"
    assert judged(by_hand.replace(" + self.linear.bias", ""), params, sandbox).reason == "wrong"
    assert judged(by_hand.replace("self.linear", "self.other"), params, sandbox).reason == "load error"
    assert judged(reference, params, sandbox).reason == "banned operator"


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_every_precision_has_bounds_of_its_own(dtype: str, sandbox: Sandbox) -> None:
    params = {**SOFTMAX_TASK, "inputs": [{"shape": ["N", "D"], "dtype": dtype}]}
    assert judged(BY_HAND, params, sandbox).reason == "right"


def test_whole_numbers_plain_arguments_and_several_results(sandbox: Sandbox) -> None:
    reference = "import torch\ndef top(x, k):\n    return torch.topk(x, k).values, (x > 4)\n"
    ours = "import torch\ndef top(x, k):\n    return x.sort(descending=True).values[:k].clone(), (x >= 5)\n"
    params = task("top", reference, sizes=[{"D": 9}], inputs=[{"shape": ["D"], "dtype": "int64"}, {"value": 3}])
    assert judged(ours, params, sandbox).reason == "right"
    assert judged(ours.replace(">= 5", ">= 4"), params, sandbox).reason == "wrong"
    assert judged(ours.replace(", (x >= 5)", ""), params, sandbox).reason == "wrong shape"


def test_odd_values_layouts_and_empty_tensors(sandbox: Sandbox) -> None:
    tensor = {"shape": ["N", "D"], "values": ["extreme", "cancelling", "nonfinite", "constant"], "transposed": True}
    params = {**SOFTMAX_TASK, "inputs": [tensor], "sizes": [{"N": 6, "D": 40}, {"N": 3, "D": 8}]}
    params |= {"reference": "import torch\ndef softmax(x):\n    return x * 2\n"}
    assert judged("def softmax(x):\n    return x + x\n", params, sandbox).reason == "right"
    assert judged("def softmax(x):\n    return (x + x).contiguous()\n", params, sandbox).reason == "wrong layout"
    assert judged("def softmax(x):\n    return (x + x).nan_to_num(0)\n", params, sandbox).reason == "wrong"
    empty = {**SOFTMAX_TASK, "sizes": [{"N": 0, "D": 4}, {"N": 2, "D": 4}]}
    assert judged(BY_HAND, empty, sandbox).reason == "right"


def test_the_same_answer_has_the_same_verdict_in_threads(sandbox: Sandbox) -> None:
    answers = [BY_HAND, "def softmax(x):\n    return x\n", "def softmax(x):\n    raise ValueError\n"] * 4
    with ThreadPoolExecutor(3) as pool:
        verdicts = list(pool.map(lambda source: judged(source, SOFTMAX_TASK, sandbox), answers))
    assert [v.reason for v in verdicts] == ["right", "wrong", "error"] * 4
    assert all(v.evidence == verdicts[i % 3].evidence for i, v in enumerate(verdicts))


# ----------------------------------------------------------------------------------------------- endings and speed


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("while True:\n        pass", "timeout"),
        ("import os\n    os._exit(3)", "crashed"),
        ("import os\n    os.kill(os.getpid(), 19)", "timeout"),
        ("import ctypes\n    ctypes.string_at(0)", "crashed"),
        ("return x.new_zeros(1 << 22)", "result too large"),
        ("return 'softmax'", "wrong type"),
        ("return x.to_sparse()", "wrong type"),
        ("return x.double()", "wrong dtype"),
        ("return x.reshape(-1)", "wrong shape"),
        ("return ()", "wrong shape"),
        ("return softmax(x)", "error"),
        ("raise SystemExit(0)", "error"),
    ],
)
def test_bad_endings_are_verdicts(body: str, reason: str, sandbox: Sandbox) -> None:
    params = {**SOFTMAX_TASK, "seconds": 2.0}
    assert unscreened(f"def softmax(x):\n    {body}\n", params, sandbox).reason == reason


def test_hostile_answers_are_verdicts(sandbox: Sandbox) -> None:
    for answer in (
        "",
        "<answer></answer>",
        "x" * 10_000_000,
        "<answer>\0</answer>",
        "<answer>" + "(" * 19_000 + "</answer>",
        "\ud800",
    ):
        assert REGISTRY["kernel"](answer, SOFTMAX_TASK, sandbox).score == 0
    assert judged("def other(x):\n    return x\n", SOFTMAX_TASK, sandbox).reason == "no such function"


@pytest.mark.slow
def test_faster_is_paid_and_the_same_is_not(sandbox: Sandbox) -> None:
    """The factors are so large that no load of the machine makes up for them."""
    slow = "import torch\ndef softmax(x):\n    for _ in range(200):\n        y = torch.softmax(x, -1)\n    return y\n"
    speed = {"target": [1.5, 1e5], "sizes": [{"N": 64, "D": 65}], "peak": {"flops": 1e13, "bytes": 1e13}, "calls": 3}
    params = {**SOFTMAX_TASK, "reference": slow, "speed": speed}
    fast = judged(SOFTMAX, params, sandbox)
    assert (round(fast.score, 3), fast.reason) == (0.667, "slow")
    assert fast.evidence["speed"]["rounds"] >= 5
    same = judged(slow, {**params, "speed": {**speed, "target": 1e4}}, sandbox)
    assert (same.score, same.reason) == (0.5, "slow")


def test_a_size_too_small_to_time_is_not_judged(sandbox: Sandbox) -> None:
    speed = {"target": 1.2, "sizes": [{"N": 1, "D": 1}], "peak": {"flops": 1e13, "bytes": 1e13}}
    cheap = {**SOFTMAX_TASK, "reference": "def softmax(x):\n    return x + 1\n", "speed": speed}
    with pytest.raises(SandboxError, match="not measurable"):
        judged("def softmax(x):\n    return x + 1\n", cheap, sandbox)


def test_an_interval_needs_no_model_of_the_noise() -> None:
    assert timing.interval([1.0, 2.0, 3.0, 4.0, 5.0]) == (1.0, 5.0)
    low, high = timing.interval([*[1.3] * 19, 0.1, 90.0])
    assert (low, high) == (1.3, 1.3)
    noisy = timing.Measured(targets=[1.2], floors={0: 0.0}, idle={0: 1e-5})
    for ratio in (0.7, 1.9, 1.1, 1.3, 1.2):
        noisy.add(0, candidate=0.1, reference=0.1 * ratio)
    assert not noisy.clear


# -------------------------------------------------------------------------------------------------------- the parts


def output(values: Any, dtype: str = "float32") -> dict[str, Any]:
    array = np.asarray(values, dtype)
    strides = [stride // array.itemsize for stride in array.strides]
    data = base64.b64encode(array.tobytes()).decode()
    return {"dtype": dtype, "shape": list(array.shape), "stride": strides, "device": "cpu", "data": data}


def reason_for(actual: Any, usual: Any, exact: Any) -> str:
    return compare([output(actual)], [output(usual)], [output(exact, "float64")], {}).reason


def test_comparison_is_nan_safe() -> None:
    nan, inf = math.nan, math.inf
    assert reason_for([1, nan], [1, nan], [1, nan]) == ""
    assert reason_for([1, nan], [1, 2], [1, 2]) == "wrong"
    assert reason_for([1, 2], [1, nan], [1, nan]) == "wrong"
    assert reason_for([1, -inf], [1, inf], [1, inf]) == "wrong"
    assert reason_for([1, inf], [1, nan], [1, nan]) == "wrong"
    assert reason_for([1, inf], [1, inf], [1, 1e60]) == ""  # what overflows in the task's precision may
    assert reason_for([1, 2.0001], [1, 2], [1, 2]) == "wrong"
    assert reason_for([1, 2.000001], [1, 2], [1, 2]) == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "1x"}, "identifier"),
        ({"reference": "def other(x): pass"}, "defines"),
        ({"inputs": []}, "at least one tensor"),
        ({"inputs": [{"shape": ["N", "Q"]}]}, "cannot evaluate"),
        ({"inputs": [{"shape": ["N"], "dtype": "float8"}]}, "dtype"),
        ({"inputs": [{"shape": ["N"], "values": "nice"}]}, "values"),
        ({"inputs": [{"shape": ["N - 9"]}]}, "negative"),
        ({"sizes": []}, "sizes"),
        ({"sizes": [{"N": 1 << 30, "D": 4}]}, "smaller"),
        ({"device": "tpu"}, "device"),
        ({"repeats": 0}, "repeats"),
        ({"seconds": True}, "seconds"),
        ({"speed": {"target": 1.0}}, "target"),
        ({"speed": {"target": [2, 1.5]}}, "ascend"),
        ({"tolerance": {"abs": 1}}, "tolerance"),
        ({"banned_ops": ["a b"]}, "banned_ops"),
        ({"banned_ops": ["no_such_operator"]}, "no_such_operator"),
        ({"typo": 1}, "unknown"),
        ({"reference": "def softmax(x):\n    return y\n"}, "reference fails"),
        ({"reference": "def softmax(x):\n    return x / 0\n"}, "not finite"),
    ],
)
def test_bad_params_are_errors_that_say_so(change: dict[str, Any], message: str, sandbox: Sandbox) -> None:
    with pytest.raises(VerifierError, match=message):
        judged(BY_HAND, {**SOFTMAX_TASK, **change}, sandbox)
    with pytest.raises(VerifierError, match="seed"):
        judged(BY_HAND, {k: v for k, v in SOFTMAX_TASK.items() if k != "seed"}, sandbox)


def test_seeds_are_private_and_of_their_own() -> None:
    spec = spec_of(SOFTMAX_TASK)
    seeds = [
        call.seed for label in ("poison", "trace", ("timed", 0)) for call in plan(spec, label) if call.near is None
    ]
    assert len(set(seeds)) == len(seeds)
    other = spec_of({**SOFTMAX_TASK, "seed": "another"})
    assert set(seeds).isdisjoint(call.seed for call in plan(other, "poison"))
