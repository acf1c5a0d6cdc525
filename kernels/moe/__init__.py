"""Mixture of experts: choose, compute, combine. No token is ever dropped and an expert may be empty.

    router.py           logits -> Routing (expert indices, weights, loads)
    grouped_matmul.py   rows sorted by expert times each expert's matrix
    reference.py        expert after expert, token after token: the oracle

Names: T tokens, D model dim, F inner dim, E experts, K experts per token.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.moe.grouped_matmul import grouped_matmul, permute, unpermute
from kernels.moe.reference import reference_moe
from kernels.moe.router import Routing, route

__all__ = ["Routing", "grouped_matmul", "moe", "reference_moe", "route"]


def moe(x: Tensor, routing: Routing, w1: Tensor, w3: Tensor, w2: Tensor) -> Tensor:
    """sum_k weight_k * w2[e_k] (silu(w1[e_k] x) * w3[e_k] x), differentiable in x, the weights and the experts.

    Args:
        x: [T, D].  w1, w3: [E, F, D].  w2: [E, D, F].
        routing: what `route` returned for these tokens.

    Returns:
        [T, D].
    """
    E, inner, D = w1.shape
    if x.shape != (len(routing.indices_TK), D) or w3.shape != w1.shape or w2.shape != (E, D, inner):
        raise ValueError(
            f"moe: x {tuple(x.shape)}, {len(routing.indices_TK)} routed tokens, w1 {tuple(w1.shape)}, "
            f"w3 {tuple(w3.shape)} and w2 {tuple(w2.shape)} do not fit together"
        )
    order, ends = routing.order(E)
    top_k = routing.indices_TK.shape[1]
    weights = routing.weights_TK.flatten().index_select(0, order).to(x.dtype)
    gate, up = grouped_matmul(permute(x, order, top_k), torch.cat([w1, w3], 1), ends).split(inner, -1)
    inner_rows = F.silu(gate) * (up * weights[:, None])  # weighted where the rows are narrowest
    return unpermute(grouped_matmul(inner_rows, w2, ends), order, top_k)


class _Callable(ModuleType):
    """Lets `kernels.moe(...)` be called although `kernels.moe` is this package."""

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        return moe(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
