"""Rows sorted by expert, each times its expert's matrix; and the permutation there and back."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def grouped_matmul(rows: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """rows[start_e : end_e] @ weight[e]^T for every expert e, differentiable in rows and weight.

    Args:
        rows: [M, D], sorted by expert.  weight: [E, N, D].
        ends: [E] int32, cumulative; ends[-1] = M. Equal neighbours are an empty expert.

    Returns:
        [M, N].
    """
    if rows.dtype == torch.float64:  # torch's operator has no double kernel
        starts = [0, *ends.tolist()]
        return torch.cat([rows[a:b] @ w.T for a, b, w in zip(starts, starts[1:], weight, strict=False)])
    return _ContiguousGrad.apply(F.grouped_mm(rows, weight.mT, offs=ends))


def permute(x: Tensor, order: Tensor, top_k: int) -> Tensor:
    """x [T, D] -> one row per token-expert pair, in the given order of the pairs: [T * K, D]."""
    return _Permute.apply(x, order, top_k)


def unpermute(rows: Tensor, order: Tensor, top_k: int) -> Tensor:
    """The adjoint of `permute`: the rows of each token's pairs, summed: [T * K, D] -> [T, D]."""
    return _Unpermute.apply(rows, order, top_k)


class _ContiguousGrad(torch.autograd.Function):
    """Identity; hands on a contiguous gradient, because grouped_mm's backward rejects an expanded one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0].contiguous()


class _Permute(torch.autograd.Function):
    """A gather whose gradient is a gather and a sum too, where indexing would scatter and add."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, top_k: int) -> Tensor:
        ctx.save_for_backward(order)
        ctx.top_k = top_k
        return x.index_select(0, order // top_k)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return unpermute(grads[0], ctx.saved_tensors[0], ctx.top_k), None, None


class _Unpermute(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor, top_k: int) -> Tensor:
        ctx.save_for_backward(order)
        ctx.top_k = top_k
        back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        return rows.index_select(0, back).view(-1, top_k, rows.shape[-1]).sum(1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return permute(grads[0], ctx.saved_tensors[0], ctx.top_k), None, None
