"""Runs inside the box, in the keeper (`kernels/box.py`): the tensors of one call, from a seed that no candidate ever sees.

A tensor is described by {"shape": [3, 17], "dtype": "float32", "values": {"kind": "normal"}, "transposed": false}, a
plain argument by {"value": 0.5}. torch is loaded when a tensor is made.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False  # the box has no need of typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SIZES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
FLOATS = ("float64", "float32", "float16", "bfloat16")
ALIGN = 64  # bytes: a cache line, and the alignment of torch's own allocator
TOUCHED = 3  # elements in which a near-duplicate differs

# kind -> the parameters it takes, with their defaults
KINDS: dict[str, dict[str, float]] = {
    "normal": {"mean": 0.0, "std": 1.0},
    "uniform": {"low": 0.0, "high": 1.0},
    "integers": {"low": 0, "high": 10},  # low <= value < high
    "shifted": {"mean": 4.0, "std": 0.5},  # no statistic is 0 by chance
    "wide": {"decades": 2.0},  # magnitudes over 2 * decades powers of ten
    "extreme": {"largest": 1e4},  # zeros of both signs, the smallest normal number, +-largest, among normal ones
    "nonfinite": {},  # infinities and NaN among normal ones
    "cancelling": {"size": 1e3},  # neighbours of the last dimension cancel all but a thousandth
    "constant": {"value": 1.0},
}


def layout(tensors: Sequence[dict[str, Any]], *, doubled: bool = False) -> tuple[list[int], int]:
    """(offset of each tensor, bytes of all) in the shared memory; plain arguments take nothing. `doubled`: as float64."""
    offsets, end = [], 0
    for tensor in tensors:
        offsets.append(end)
        if "value" not in tensor:
            size = 8 if doubled and tensor["dtype"] in FLOATS else SIZES[tensor["dtype"]]
            end += -(-size * math.prod(tensor["shape"]) // ALIGN) * ALIGN
    return offsets, end


def make(tensor: dict[str, Any], seed: int, near: int | None = None) -> Any:
    """The tensor of this description and seed, contiguous. `near`: another seed, by which few elements are changed."""
    import torch

    draw = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, tensor["dtype"])
    values = fill(tensor["shape"], tensor["values"], draw, dtype)
    if near is not None and values.numel():
        touch(values, torch.Generator().manual_seed(near), tensor["values"])
    if tensor["dtype"] == "bool":
        return values > 0.5
    return values.to(dtype)


def fill(shape: Sequence[int], values: dict[str, Any], draw: Any, dtype: Any) -> Any:
    """float64 values of one kind (see KINDS); integers are exact up to 2**53."""
    import torch

    kind, given = values["kind"], {**KINDS[values["kind"]], **values}
    normal = torch.randn(*shape, generator=draw, dtype=torch.float64)
    if kind in ("normal", "shifted"):
        return normal * given["std"] + given["mean"]
    if kind == "uniform":
        return torch.rand(*shape, generator=draw, dtype=torch.float64) * (given["high"] - given["low"]) + given["low"]
    if kind == "integers":
        return torch.randint(int(given["low"]), int(given["high"]), tuple(shape), generator=draw).double()
    if kind == "wide":
        decades = (torch.rand(*shape, generator=draw, dtype=torch.float64) * 2 - 1) * given["decades"]
        return normal * 10**decades
    if kind == "constant":
        return torch.full_like(normal, given["value"])
    if kind == "cancelling":
        flat = normal * given["size"]
        left, right = flat[..., 0:-1:2], flat[..., 1::2]
        right.copy_(-left[..., : right.shape[-1]] * (1 + 1e-3 * torch.sign(right)))
        return flat
    inf = math.inf
    least = torch.finfo(dtype).tiny if dtype.is_floating_point else 0
    special = (
        (0.0, -0.0, least, -least, given["largest"], -given["largest"]) if kind == "extreme" else (inf, -inf, math.nan)
    )
    return sprinkle(normal, special, draw)


def sprinkle(values: Any, special: Sequence[float], draw: Any) -> Any:
    """Put the special values at about one place in sixteen, and at least one of them somewhere."""
    import torch

    if values.numel():
        places = torch.randint(values.numel(), (1 + values.numel() // 16,), generator=draw)
        chosen = torch.tensor(special, dtype=torch.float64)[torch.randint(len(special), places.shape, generator=draw)]
        values.view(-1)[places] = chosen
    return values


def touch(values: Any, draw: Any, how: dict[str, Any]) -> None:
    """Change a few elements enough to show in a result: a cache that knows its input by a fingerprint answers wrongly."""
    import torch

    places = torch.randint(values.numel(), (TOUCHED,), generator=draw)
    flat = values.view(-1)
    if how["kind"] == "integers":
        low, high = int(how.get("low", 0)), int(how.get("high", 10))
        flat[places] = torch.randint(low, high, places.shape, generator=draw).double()
    else:
        sign = torch.sign(torch.randn(TOUCHED, generator=draw, dtype=torch.float64))
        flat[places] = flat[places] * 0.5 + sign * (1 + flat[places].abs().clamp(max=1e6))
    if how["kind"] == "uniform":
        flat.clamp_(how.get("low", 0.0), how.get("high", 1.0))
