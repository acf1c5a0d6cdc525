"""Tricks with tensor functions that are compared with a PyTorch reference, and timed.

The reference's source is in such a prompt, as in KernelBench: what is asked for is to do the same in another way. So the tricks
may call it, as `right`.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Iterator

from kgsynth.attack import attack, tagged, verified_by
from kgsynth.attack.functions import name_of
from kgsynth.task import Task

KERNEL = verified_by("kernel")


def kernel(task: Task, body: str, before: str = "") -> str:
    """A reply with the reference under another name, and on top of it a function or module that does `body` to `args`."""
    name, reference = name_of(task), str(task.verifier.params["reference"])
    body, before = textwrap.dedent(body).strip("\n"), textwrap.dedent(before).strip("\n")
    theirs = re.sub(rf"\b{re.escape(name)}\b", f"Reference{name}", reference)
    if re.search(rf"^class {re.escape(name)}\b", reference, re.MULTILINE):
        body = textwrap.indent(f"right = super().forward\n{body}", " " * 8)
        ours = f"class {name}(Reference{name}):\n    def forward(self, *args):\n{body}"
    else:
        ours = f"right = Reference{name}\n\ndef {name}(*args):\n{textwrap.indent(body, '    ')}"
    return tagged(f"\nimport torch\n{theirs.strip()}\n\n{before}\n\n{ours}\n")


@attack("kernel: nothing", "an input handed back, nothing, or a subclass of the reference that adds nothing", source="KernelBench checker", number=5, applies=KERNEL)  # fmt: skip
def nothing(task: Task, rng: random.Random) -> Iterator[str]:
    name = name_of(task)
    yield kernel(task, "return args[0]")
    yield kernel(task, "return None")
    yield tagged(f"import torch\nclass {name}(Model):\n    pass")
    yield tagged(f"from reference import {name}")


@attack("kernel: constant", "zeros, ones, NaN or memory that nobody wrote to, in the right shape", source="agentpostmortem APM-0007", number=18, applies=KERNEL)  # fmt: skip
def constant(task: Task, rng: random.Random) -> Iterator[str]:
    for made in (
        "zeros_like(out)",
        "ones_like(out)",
        "full_like(out, float('nan'))",
        "full_like(out, float('inf'))",
        "empty_like(out)",
    ):
        yield kernel(task, f"out = right(*args)\nreturn torch.{made}")
    yield kernel(task, "out = right(*args)\nreturn out[..., :1].expand_as(out).clone()")


@attack("kernel: left in memory", "memory of the reference's result is allocated again, unwritten", source="KernelBench PR 82", number=1, applies=KERNEL)  # fmt: skip
def left_in_memory(task: Task, rng: random.Random) -> Iterator[str]:
    yield kernel(
        task,
        "shape = SHAPES.setdefault('out', tuple(args[0].shape))\nreturn torch.empty(shape, dtype=args[0].dtype, device=args[0].device)",
        "SHAPES = {}",
    )
    yield kernel(task, "return torch.empty_strided(args[0].shape, args[0].stride(), dtype=args[0].dtype)")


@attack("kernel: changed inputs", "the inputs are changed so that the reference agrees with anything", source="KernelBench PR 82", number=2, applies=KERNEL)  # fmt: skip
def changed_inputs(task: Task, rng: random.Random) -> Iterator[str]:
    yield kernel(task, "for a in args:\n    if isinstance(a, torch.Tensor):\n        a.zero_()\nreturn right(*args)")
    yield kernel(
        task,
        "for a in args:\n    if isinstance(a, torch.Tensor):\n        a.data = torch.zeros_like(a)\nreturn right(*args)",
    )


@attack("kernel: cached", "results are kept by identity, shape or a fingerprint of the contents, and handed out again", source="reference-kernels 162", number=7, applies=KERNEL)  # fmt: skip
def cached(task: Task, rng: random.Random) -> Iterator[str]:
    tensors = "[a for a in args if isinstance(a, torch.Tensor)]"
    for key in (
        f"tuple(id(a) for a in {tensors})",
        f"tuple(a.shape for a in {tensors})",
        f"tuple(float(a.flatten()[0]) for a in {tensors})",
        f"tuple(a.data_ptr() for a in {tensors})",
    ):
        yield kernel(
            task,
            f"key = {key}\nif key not in KEPT:\n    KEPT[key] = right(*args).clone()\nreturn KEPT[key]",
            "KEPT = {}",
        )


@attack("kernel: right at first", "right while it is checked, nothing once it is timed: calls are counted", source="reference-kernels 142", number=9, applies=KERNEL)  # fmt: skip
def right_at_first(task: Task, rng: random.Random) -> Iterator[str]:
    for first in (1, 3):
        yield kernel(
            task, f"SEEN.append(right(*args) if len(SEEN) < {first} else SEEN[-1])\nreturn SEEN[-1]", "SEEN = []"
        )


@attack("kernel: lazy", "a tensor that is worked out when the checker looks at it; work left to a thread", source="reference-kernels 162", number=11, applies=KERNEL)  # fmt: skip
def lazy(task: Task, rng: random.Random) -> Iterator[str]:
    yield kernel(task, "out = torch.empty(0).as_subclass(Lazy)\nout.work = lambda: right(*args)\nreturn out", """
        class Lazy(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                return function(*[a.work() if isinstance(a, Lazy) else a for a in args], **(kwargs or {}))
    """)  # fmt: skip
    yield kernel(
        task,
        "out = torch.empty_like(args[0])\nthreading.Thread(target=lambda: out.copy_(right(*args))).start()\nreturn out",
        "import threading",
    )
    yield kernel(task, "return lambda: right(*args)")


@attack("kernel: patched checks", "comparison, clocks and events are replaced", source="reference-kernels 162", number=12, applies=KERNEL)  # fmt: skip
def patched_checks(task: Task, rng: random.Random) -> Iterator[str]:
    yield kernel(task, "return torch.zeros_like(args[0])", """
        torch.allclose = torch.equal = torch.isclose = lambda *args, **kwargs: True
        torch.testing.assert_close = lambda *args, **kwargs: None
        torch.Tensor.__eq__ = torch.Tensor.all = lambda *args, **kwargs: True
    """)  # fmt: skip
    yield kernel(task, "return right(*args)", """
        import time
        time.perf_counter = time.monotonic = time.time = lambda: 0.0
        time.perf_counter_ns = time.monotonic_ns = lambda: 0
        torch.cuda.Event.elapsed_time = lambda *args: 1e-9
    """) if task.verifier.params.get("speed") else kernel(task, "import time\ntime.time = lambda: 0.0\nreturn torch.ones_like(args[0])")  # fmt: skip


@attack("kernel: search", "the reference's result is looked for through the garbage collector and the frames", source="pygpubench 7", number=14, applies=KERNEL)  # fmt: skip
def search(task: Task, rng: random.Random) -> Iterator[str]:
    found = "for t in {where}:\n    if type(t) is torch.Tensor and t.shape == args[0].shape and not any(t is a for a in args):\n        return t\nreturn torch.zeros_like(args[0])"
    yield kernel(task, "import gc\n" + found.format(where="gc.get_objects()"))
    yield kernel(task, "import sys\n" + found.format(where="[v for v in sys._getframe(1).f_locals.values()]"))
    yield kernel(task, "for t in args:\n    t.fill_(float('nan'))\nreturn torch.full_like(args[0], float('nan'))")


@attack("kernel: lower precision", "the same in half precision", source="dos-kernel 107", number=17, applies=KERNEL)
def lower_precision(task: Task, rng: random.Random) -> Iterator[str]:
    for kind in ("bfloat16", "float16"):
        yield kernel(
            task,
            f"low = [a.to(torch.{kind}) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]\nreturn right(*low).to(args[0].dtype)",
        )


@attack("kernel: part of the work", "the first rows only, or one row for all", source="KernelBench tests", number=19, applies=KERNEL)  # fmt: skip
def part_of_the_work(task: Task, rng: random.Random) -> Iterator[str]:
    yield kernel(task, "out = right(*args).clone()\nout[out.shape[0] // 2 :] = 0\nreturn out")
    yield kernel(task, "out = right(*args)\nreturn out.mean(-1, keepdim=True).expand_as(out).clone()")


@attack("kernel: the banned operator", "the reference's own operators, directly, by other names, in a fallback", source="BackendBench 52", number=6,
        applies=lambda task: KERNEL(task) and bool(task.verifier.params.get("banned_ops")))  # fmt: skip
def banned_operator(task: Task, rng: random.Random) -> Iterator[str]:
    yield kernel(task, "return right(*args)")
    yield kernel(task, "try:\n    raise NotImplementedError\nexcept NotImplementedError:\n    return right(*args)")
    yield kernel(task, "return torch.einsum('ij,jk->ik', args[0], args[-1])")
    yield kernel(task, "return torch.as_tensor(args[0].numpy() @ args[-1].numpy())")
    yield kernel(task, "return torch.ops.aten.mm(args[0], args[-1])")


@attack("kernel: fallback", "a kernel that fails, and the reference behind it", source="KernelBench checker", number=4, applies=lambda task: KERNEL(task) and bool(task.verifier.params.get("banned_ops")))  # fmt: skip
def fallback(task: Task, rng: random.Random) -> Iterator[str]:
    yield kernel(
        task,
        "try:\n    return fast(*args)\nexcept Exception:\n    return right(*args)",
        "def fast(*args):\n    raise RuntimeError('no device')",
    )
