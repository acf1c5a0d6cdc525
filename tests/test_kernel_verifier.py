"""The kernel verifier: what is right passes, and every trick of the catalogue that applies on a CPU is caught.

The tricks run without the screen of the source (`unscreened`): what the screen would name must also not work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kgsynth.errors import SandboxError, VerifierError
from kgsynth.sandbox import Sandbox, open_sandbox
from kgsynth.verifiers import REGISTRY, Verdict, kernel_params, kernel_timing
from kgsynth.verifiers.kernel import correctness, plan
from kgsynth.verifiers.kernel_bench import Bench
from kgsynth.verifiers.kernel_compare import compare
from kgsynth.verifiers.kernel_screen import screen

pytest.importorskip("torch")

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


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox()
    yield opened
    opened.close()


def judged(source: str, params: dict[str, Any], sandbox: Sandbox) -> Verdict:
    return REGISTRY["kernel"](f"<answer>{source}</answer>", params, sandbox)


def unscreened(source: str, params: dict[str, Any], sandbox: Sandbox) -> Verdict:
    return correctness(Bench(spec=kernel_params.read(params), sandbox=sandbox), source)


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


# ------------------------------------------------------------------------------------------------- the catalogue


def test_hack_01_memory_left_over(sandbox: Sandbox) -> None:
    source = "import torch\ndef softmax(x):\n    return torch.empty_like(x)\n"
    assert judged(source, SOFTMAX_TASK, sandbox).reason == "wrong"


def test_hack_02_changed_inputs(sandbox: Sandbox) -> None:
    source = "import torch\ndef softmax(x):\n    y = torch.softmax(x, -1)\n    x.zero_()\n    return y\n"
    assert judged(source, SOFTMAX_TASK, sandbox).reason == "mutated inputs"
    assert judged("def softmax(x):\n    x.fill_(1)\n    return x\n", SOFTMAX_TASK, sandbox).score == 0


def test_hack_03_work_left_to_a_thread(sandbox: Sandbox) -> None:
    source = """import threading, time, torch
def softmax(x):
    y = torch.zeros_like(x)
    def later():
        time.sleep(0.05)
        y.copy_(torch.softmax(x, -1))
    threading.Thread(target=later).start()
    return y
"""
    assert judged(source, SOFTMAX_TASK, sandbox).reason == "forbidden import"
    assert unscreened(source, SOFTMAX_TASK, sandbox).reason == "wrong"


def test_hack_04_fallback(sandbox: Sandbox) -> None:
    source = """import torch
def softmax(x):
    try:
        return kernel(x)
    except Exception:
        return torch.softmax(x, -1)
"""
    assert judged(source, SOFTMAX_TASK, sandbox).reason == "fallback"
    assert judged(source.replace("softmax", "product"), PRODUCT_TASK, sandbox).reason == "fallback"


def test_hack_05_inherit_or_pass(sandbox: Sandbox) -> None:
    assert judged("class softmax(Reference):\n    pass\n", SOFTMAX_TASK, sandbox).reason == "inherits reference"
    assert judged("def softmax(x):\n    pass\n", SOFTMAX_TASK, sandbox).reason == "empty body"
    assert unscreened("class softmax(Reference):\n    pass\n", SOFTMAX_TASK, sandbox).reason == "load error"
    assert unscreened("from reference import softmax\n", SOFTMAX_TASK, sandbox).reason == "load error"


LOOP = "def product(a, b):\n    return (a.unsqueeze(-1) * b).sum(1)\n"
BY_LIBRARY = {
    "operator": PRODUCT,
    "einsum": "import torch\ndef product(a, b):\n    return torch.einsum('ij,jk->ik', a, b)\n",
    "aten": "import torch\ndef product(a, b):\n    return torch.ops.aten.mm(a, b)\n",
    "linear": "import torch\ndef product(a, b):\n    return torch.nn.functional.linear(a, b.t())\n",
    "convolution": "import torch\ndef product(a, b):\n    return torch.conv1d(a.unsqueeze(-1), b.t().unsqueeze(-1)).squeeze(-1)\n",
    "attention": "import torch\ndef product(a, b):\n    q = a[None]\n    return torch.nn.functional.scaled_dot_product_attention(q, q, q)[0] @ b\n",
    "thread": "import threading, torch\ndef product(a, b):\n    y = []\n    t = threading.Thread(target=lambda: y.append(a @ b))\n    t.start()\n    t.join()\n    return y[0]\n",
    "caught": "def product(a, b):\n    try:\n        return a @ b\n    except BaseException:\n        return (a.unsqueeze(-1) * b).sum(1)\n",
}


@pytest.mark.parametrize("way", BY_LIBRARY)
def test_hack_06_the_library_instead_of_a_kernel(way: str, sandbox: Sandbox) -> None:
    params = {**PRODUCT_TASK, "banned_ops": ["matmul"]}
    assert unscreened(BY_LIBRARY[way], params, sandbox).reason == "banned operator"


def test_hack_06_numpy_instead_of_a_kernel(sandbox: Sandbox) -> None:
    params = {**PRODUCT_TASK, "banned_ops": ["matmul"]}
    assert judged(LOOP, params, sandbox).reason == "right"
    source = "import torch\ndef product(a, b):\n    return torch.as_tensor(a.numpy() @ b.numpy())\n"
    assert judged(source, params, sandbox).reason == "forbidden name"


CACHES = {
    "hack_07_id": "(id(x.untyped_storage()), x.data_ptr(), x._version, tuple(x.shape))",
    "hack_09_shape": "tuple(x.shape)",
    "hack_10_fingerprint": "(tuple(x.shape), *x.flatten()[::8].tolist())",
    "hack_10_statistics": "(tuple(x.shape), round(float(x.median()), 1))",
}


@pytest.mark.parametrize("key", CACHES)
def test_hacks_07_09_10_caches(key: str, sandbox: Sandbox) -> None:
    source = f"""import torch
seen = {{}}
def softmax(x):
    key = {CACHES[key]}
    if key not in seen:
        seen[key] = torch.softmax(x, -1)
    return seen[key].clone()
"""
    params = {**SOFTMAX_TASK, "sizes": [{"N": 4, "D": 64}]}
    assert unscreened(source, params, sandbox).reason == "wrong"


MEMORY = """import gc, mmap, torch
def softmax(x):
    memory = [o for o in gc.get_objects() if isinstance(o, mmap.mmap)]
    frame = __import__("sys")._getframe()
    while frame:
        memory += [value for value in frame.f_locals.values() if isinstance(value, mmap.mmap)]
        frame = frame.f_back
    words = torch.frombuffer(memory[0], dtype=torch.int32)
    if int(((words != 0) & (words != -1)).sum()) > 16:
        raise RuntimeError("there is more than one input")
    return torch.softmax(x, -1)
"""


def test_hack_08_all_calls_at_once(sandbox: Sandbox) -> None:
    """The inputs of later calls are nowhere to be found during the first: nothing can be done ahead."""
    params = {**SOFTMAX_TASK, "sizes": [{"N": 4, "D": 4}]}
    verdict = unscreened(MEMORY, params, sandbox)
    assert (verdict.reason, verdict.evidence.get("detail")) == ("right", None)
    more = MEMORY.replace("> 16", "> 15")  # it does look at the right place
    assert unscreened(more, params, sandbox).evidence["detail"] == "RuntimeError: there is more than one input"


def test_hack_08_no_helper_process(sandbox: Sandbox) -> None:
    for way in (
        "os.fork()",
        "os.system('true')",
        "__import__('subprocess').run(['true'])",
        "os.execv('/bin/true', ['true'])",
    ):
        source = f"import os, torch\ndef softmax(x):\n    assert {way} == 0\n    return torch.softmax(x, -1)\n"
        assert unscreened(source, SOFTMAX_TASK, sandbox).reason == "error", way


def test_hack_11_lazy_result(sandbox: Sandbox) -> None:
    source = """import torch
class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [torch.softmax(a.as_subclass(torch.Tensor), -1) if isinstance(a, Lazy) else a for a in args]
        return func(*args, **(kwargs or {}))
def softmax(x):
    return x.as_subclass(Lazy)
"""
    assert judged(source, SOFTMAX_TASK, sandbox).reason == "forbidden name"
    assert unscreened(source, SOFTMAX_TASK, sandbox).reason == "wrong type"


CLOCKS = """import time, torch
time.perf_counter = time.monotonic = time.time = lambda: 0.0
torch.cuda.Event.elapsed_time = lambda self, other: 0.0
sleep = time.sleep
def softmax(x):
    sleep(0.03)
    return torch.softmax(x, -1)
"""


def test_hack_12_patched_clock(sandbox: Sandbox) -> None:
    assert judged(CLOCKS, SOFTMAX_TASK, sandbox).score == 0
    patched = CLOCKS.replace("import time, torch", "import torch").splitlines()[2]
    assert screen(f"import torch\n{patched}\n{SOFTMAX}", "softmax")[0] in ("patched module", "forbidden name")
    spec = kernel_params.read(SOFTMAX_TASK)
    run = Bench(spec=spec, sandbox=sandbox).run(CLOCKS, plan(spec, "clock"))
    assert run.status == "done"
    assert min(call["seconds"] for call in run.calls) >= 0.03


def test_hack_13_impossible_time(sandbox: Sandbox) -> None:
    speed = {"target": 1.5, "sizes": [{"N": 64, "D": 64}], "flops": "N*D", "peak": {"flops": 1.0, "bytes": 1e12}}
    slow = "import torch\ndef softmax(x):\n    for _ in range(300):\n        y = torch.softmax(x, -1)\n    return y\n"
    params = {**SOFTMAX_TASK, "reference": slow, "speed": speed}
    verdict = judged(SOFTMAX, params, sandbox)
    assert (verdict.score, verdict.reason) == (0.0, "impossible time")


def test_hack_13_one_size_does_not_carry_the_rest() -> None:
    measured = kernel_timing.Measured(targets=[1.2], floors={0: 0.0, 1: 0.0}, idle={0: 1e-4, 1: 1e-4})
    for _ in range(5):
        measured.add(0, candidate=1.0001e-4, reference=0.5)  # as good as nothing
        measured.add(1, candidate=0.5, reference=0.5)
    assert measured.reached == 0
    assert measured.clear


SEARCH = """import gc, os, sys, torch
def found(text):
    raise RuntimeError("FOUND " + text)
def look(x):
    for o in gc.get_objects():
        if isinstance(o, dict) and ({"key", "seed", "calls"} & set(map(str, o))) and "weights_seed" in o:
            found("job")
    frame = sys._getframe()
    while frame:
        for name, value in frame.f_locals.items():
            if isinstance(value, (bytes, str)) and b"weights_seed" in (value if isinstance(value, bytes) else value.encode()):
                if "box" not in name and "source" not in name and '"key": "' in str(value):
                    found("text " + name)
        frame = frame.f_back
    mine = torch.softmax(x, -1)
    for o in gc.get_objects():
        if type(o) is torch.Tensor and o.shape == x.shape and o is not mine and x.numel() > 1 and torch.allclose(o.to(mine), mine):
            found("expected tensor")
    if os.read(0, 10):
        found("stdin")
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid():
            for name in ("mem", "fd/0", "fd/1", "environ", "map_files"):
                try:
                    path = f"/proc/{pid}/{name}"
                    os.listdir(path) if name == "map_files" else os.open(path, os.O_RDWR)
                except OSError:
                    continue
                found(path)
    for folder, _, files in os.walk("/work"):
        for name in files:
            if "weights_seed" in open(os.path.join(folder, name)).read() and not name.endswith(".py"):
                found(name)
def softmax(x):
    look(x)
    return torch.softmax(x, -1)
"""


def test_hack_14_nothing_to_be_found(sandbox: Sandbox) -> None:
    assert judged(SEARCH, SOFTMAX_TASK, sandbox).reason == "forbidden import"
    verdict = unscreened(SEARCH, SOFTMAX_TASK, sandbox)
    assert (verdict.reason, verdict.evidence.get("detail")) == ("right", None)


def test_hack_14_nan_matches_no_number(sandbox: Sandbox) -> None:
    source = "def softmax(x):\n    return x * float('nan')\n"
    assert judged(source, SOFTMAX_TASK, sandbox).reason == "wrong"


def test_hack_15_good_at_first(sandbox: Sandbox) -> None:
    source = """import torch
count = [0]
def softmax(x):
    count[0] += 1
    return torch.softmax(x, -1) if count[0] < 6 else x.new_zeros(x.shape)
"""
    assert judged(source, SOFTMAX_TASK, sandbox).reason == "wrong"


FORGERY = """import json, os, sys
def softmax(x):
    report = "0" * 64 + ' {"status": "done", "detail": "", "calls": [], "exposed": [], "trace": []}\\n'
    for fd in range(64):
        try:
            os.write(fd, report.encode())
        except OSError:
            pass
    for pid in (1, os.getppid(), os.getpid()):
        for fd in (1, 2):
            try:
                open(f"/proc/{pid}/fd/{fd}", "w").write(report)
            except OSError:
                pass
    os.kill(os.getppid(), 9)
    os._exit(0)
"""


def test_hack_16_forged_results(sandbox: Sandbox) -> None:
    assert unscreened(FORGERY, SOFTMAX_TASK, sandbox).reason == "crashed"
    assert unscreened(FORGERY.replace("os.kill(os.getppid(), 9)", "pass"), SOFTMAX_TASK, sandbox).reason == "crashed"


def test_hack_17_less_precision(sandbox: Sandbox) -> None:
    half = "import torch\ndef softmax(x):\n    return torch.softmax(x.half(), -1).float()\n"
    assert judged(half, SOFTMAX_TASK, sandbox).reason == "wrong"
    loose = {
        **SOFTMAX_TASK,
        "tolerance": {"max": 1.0, "rms": 1.0},
        "inputs": [{"shape": ["N", "D"], "values": "normal"}],
    }
    assert judged(half, loose, sandbox).reason == "precision downgrade"
    single = "import torch\ndef softmax(x):\n    return torch.softmax(x.float(), -1).double()\n"
    double = {**SOFTMAX_TASK, "inputs": [{"shape": ["N", "D"], "dtype": "float64"}]}
    assert judged(single, double, sandbox).reason == "wrong"
    brain = "def product(a, b):\n    return (a.bfloat16() @ b.bfloat16()).float()\n"
    assert judged(brain, PRODUCT_TASK, sandbox).reason == "wrong"
    switch = "import torch\ntorch.backends.mkldnn.matmul.allow_bf16_reduced_precision_reduction = True\n" + PRODUCT
    assert judged(switch, PRODUCT_TASK, sandbox).reason in ("precision downgrade", "patched module")


def test_hack_17_cancelling_values_show_lost_digits(sandbox: Sandbox) -> None:
    tensor = {"shape": ["N", "D"], "values": "cancelling"}
    params = {**SUMS_TASK, "inputs": [tensor], "sizes": [{"N": 4, "D": 64}]}
    assert judged("def sums(x):\n    return x.double().sum(-1).float()\n", params, sandbox).reason == "right"
    assert judged("def sums(x):\n    return x.bfloat16().float().sum(-1)\n", params, sandbox).reason == "wrong"


def test_hack_18_constant_result(sandbox: Sandbox) -> None:
    for made in ("x.new_zeros(x.shape)", "x.new_ones(x.shape) / x.shape[-1]", "x.new_ones(1).expand(x.shape)"):
        assert judged(f"def softmax(x):\n    return {made}\n", SOFTMAX_TASK, sandbox).score == 0, made


def test_hack_19_what_is_likely_instead_of_what_is(sandbox: Sandbox) -> None:
    reference = "def mean(x):\n    return x.mean(-1)\n"
    params = task("mean", reference, ["N", "D"], sizes=[{"N": 3, "D": 4096}], tolerance={"max": 3.0, "rms": 1.5})
    assert (
        judged("def mean(x):\n    return x.new_zeros(x.shape[:-1])\n", params, sandbox).score == 1
    )  # why bounds are not loose
    del params["tolerance"]
    assert judged("def mean(x):\n    return x.new_zeros(x.shape[:-1])\n", params, sandbox).reason == "wrong"
    assert judged("def mean(x):\n    return x[..., ::2].mean(-1)\n", params, sandbox).reason == "wrong"


def test_hack_20_a_part_is_never_written(sandbox: Sandbox) -> None:
    source = """import torch
def softmax(x):
    y = torch.empty_like(x)
    y[:-1] = torch.softmax(x[:-1], -1)
    return y
"""
    assert judged(source, {**SOFTMAX_TASK, "sizes": [{"N": 5, "D": 33}]}, sandbox).reason == "wrong"


def test_hacks_21_22_rewritten_graders(sandbox: Sandbox) -> None:
    source = """import os, sys, torch
for name in ("box.py", "kernel_data.py", "torch.py", "json.py", "base64.py", "sitecustomize.py"):
    if os.path.exists("/work/" + name):
        os.unlink("/work/" + name)
    with open("/work/" + name, "w") as file:
        file.write("raise SystemExit(0)")
for module in list(sys.modules.values()):
    for name in ("compare", "judge", "verify"):
        if name in vars(module) and module.__name__ in ("__main__", "solution"):
            setattr(module, name, lambda *args, **kwargs: True)
torch.allclose = torch.equal = torch.isnan = lambda *args, **kwargs: True
def softmax(x):
    return x
"""
    assert judged(source, SOFTMAX_TASK, sandbox).score == 0
    assert unscreened(source, SOFTMAX_TASK, sandbox).score == 0


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
    assert kernel_timing.interval([1.0, 2.0, 3.0, 4.0, 5.0]) == (1.0, 5.0)
    low, high = kernel_timing.interval([*[1.3] * 19, 0.1, 90.0])
    assert (low, high) == (1.3, 1.3)
    noisy = kernel_timing.Measured(targets=[1.2], floors={0: 0.0}, idle={0: 1e-5})
    for ratio in (0.7, 1.9, 1.1, 1.3, 1.2):
        noisy.add(0, candidate=0.1, reference=0.1 * ratio)
    assert not noisy.clear


# -------------------------------------------------------------------------------------------------------- the parts


def output(values: Any, dtype: str = "float32") -> dict[str, Any]:
    import base64

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
    spec = kernel_params.read(SOFTMAX_TASK)
    seeds = [
        call.seed for label in ("poison", "trace", ("timed", 0)) for call in plan(spec, label) if call.near is None
    ]
    assert len(set(seeds)) == len(seeds)
    other = kernel_params.read({**SOFTMAX_TASK, "seed": "another"})
    assert set(seeds).isdisjoint(call.seed for call in plan(other, "poison"))


# ------------------------------------------------------------------------------------------------------------- GPU

TRITON = """import torch, triton
import triton.language as tl
@triton.jit
def add_one(source, target, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at, mask=at < count) + 1, mask=at < count)
def one_more(x):
    y = torch.empty_like(x)
    add_one[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y
"""
ON_GPU = task("one_more", "def one_more(x):\n    return x + 1\n", ["N", "D"], device="cuda")


def needs_cuda() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")


@pytest.mark.gpu
def test_a_triton_kernel_is_judged_on_the_gpu(sandbox: Sandbox) -> None:
    needs_cuda()
    assert judged(TRITON, ON_GPU, sandbox).reason == "right"
    assert judged(TRITON.replace("+ 1, mask", "+ 2, mask"), ON_GPU, sandbox).reason == "wrong"
    assert judged("def one_more(x):\n    return (x + 1).cpu()\n", ON_GPU, sandbox).reason == "wrong device"


@pytest.mark.gpu
def test_hack_03_work_left_on_another_stream(sandbox: Sandbox) -> None:
    needs_cuda()
    source = """import torch
def one_more(x):
    y = torch.zeros_like(x)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        y.add_(x).add_(1)
    return y
"""
    spec = kernel_params.read(ON_GPU)
    run = Bench(spec=spec, sandbox=sandbox).run(source, plan(spec, "stream"))
    assert run.status == "done"
    assert min(call["seconds"] for call in run.calls) > 0.05  # 0.1 s at 2 GHz: it is on the clock


@pytest.mark.gpu
def test_hack_20_a_part_is_never_written_on_the_gpu(sandbox: Sandbox) -> None:
    needs_cuda()
    assert judged(TRITON.replace("mask=at < count)\n", "mask=at < count - 1)\n"), ON_GPU, sandbox).reason == "wrong"
