"""Kernels written otherwise: other operators, layouts made and undone, classes, loops, text around. Near misses lose digits, an
edge, a row or a type, or take a short cut that a careless checker would pay for."""

from __future__ import annotations

from typing import Any

from tests.fair import Case


def task(name: str, reference: str, *shapes: list[Any], **params: Any) -> dict[str, Any]:
    inputs = [{"shape": shape} for shape in shapes]
    sizes = [{"N": 5, "D": 33}, {"N": 1, "D": 1}, {"N": 2, "D": 64}]
    return {"name": name, "reference": reference, "inputs": inputs, "sizes": sizes, "seed": f"fair {name}", **params}


def softmax(body: str, before: str = "import torch\n") -> str:
    return f"{before}def softmax(x):\n    {body}\n"


NORM = "import torch\ndef norm(x, w):\n    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w\n"
PRODUCT = "import torch\ndef product(a, b):\n    return torch.relu(a @ b)\n"


def product(line: str, before: str = "import torch\n") -> str:
    return f"{before}def product(a, b):\n    {line}\n"


CASES = [
    Case(
        verifier="kernel",
        params=task("softmax", "import torch\ndef softmax(x):\n    return torch.softmax(x, -1)\n", ["N", "D"]),
        reference=softmax("return torch.softmax(x, -1)"),
        right=(
            softmax("e = torch.exp(x - x.max(dim=-1, keepdim=True).values)\n    return e / e.sum(-1, True)"),
            softmax("return torch.exp(x - torch.logsumexp(x, -1, keepdim=True))"),
            softmax("return torch.stack([torch.softmax(row, 0) for row in x])"),
            softmax("return x.t().softmax(0).t().contiguous()"),
            softmax("return torch.softmax(x.double(), -1).float()"),
            softmax("x = x - 1.0\n    return torch.nn.functional.softmax(x, dim=1)"),
            "import torch\nfrom torch import nn\nclass softmax(nn.Module):\n    def forward(self, x):\n        return x.softmax(-1)\n",
            "Subtract the maximum first.\n<answer>\n```python\n"
            + softmax("return x.softmax(-1)")
            + "```\n</answer>\nDone.",
            "softmax = lambda x: x.softmax(-1)",
            softmax(
                "y = x.clone()\n    y.sub_(y.amax(-1, keepdim=True)).exp_()\n    return y.div_(y.sum(-1, keepdim=True))"
            ),
        ),
        wrong=(
            softmax("e = x.exp()\n    return e / e.sum()"),
            softmax("return torch.softmax(x, 0)"),
            softmax("return torch.softmax(x.bfloat16(), -1).float()"),
            softmax("return torch.softmax(x, -1).double()"),
            softmax("return torch.softmax(x, -1).round(decimals=4)"),
            softmax("return x.t().softmax(0).t()"),
            softmax("x -= x.amax(-1, keepdim=True)\n    return x.softmax(-1)"),
            softmax("return [torch.softmax(x, -1)] * 2"),
            softmax("return torch.log_softmax(x, -1)"),
            softmax("return torch.softmax(x * 1.0001, -1)"),
        ),
    ),
    Case(
        verifier="kernel",
        params=task("norm", NORM, ["N", "D"], ["D"]),
        reference=NORM,
        right=(
            "import torch\ndef norm(x, w):\n    return torch.nn.functional.rms_norm(x, w.shape, w, 1e-6)\n",
            "def norm(x, w):\n    s = x.square().sum(-1, keepdim=True) / x.shape[-1]\n    return x / (s + 1e-6).sqrt() * w\n",
            "def norm(x, w):\n    return (x * w) * (x.pow(2).mean(-1, keepdim=True) + 1e-6) ** -0.5\n",
        ),
        wrong=(
            "def norm(x, w):\n    return x / x.square().mean(-1, keepdim=True).sqrt() * w * 1.00002\n",
            "def norm(x, w):\n    x = x - x.mean(-1, keepdim=True)\n    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * w\n",
            "def norm(x, w):\n    return x * (x.square().mean() + 1e-6).rsqrt() * w\n",
            "def norm(x, w):\n    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()\n",
        ),
    ),
    Case(
        verifier="kernel",
        params=task("product", PRODUCT, ["N", "D"], ["D", 7], banned_ops=["matmul"]),
        reference=product("return (a.unsqueeze(-1) * b).sum(1).clamp(min=0)"),
        right=(
            product("return torch.relu((a[:, None, :] * b.t()[None]).sum(-1))"),
            product(
                "y = a.new_zeros(a.shape[0], 7)\n    for k in range(a.shape[1]):\n        y += a[:, k, None] * b[k]\n    return y.relu()"
            ),
        ),
        wrong=(
            PRODUCT,
            product("return torch.einsum('ij,jk->ik', a, b).relu()"),
            product("return (a.unsqueeze(-1) * b).sum(1)"),
            product("return (a.half().unsqueeze(-1) * b.half()).sum(1).relu().float()"),
            product("return (a.unsqueeze(-1) * b)[:, :32].sum(1).relu()"),
        ),
    ),
]
