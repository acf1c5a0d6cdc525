"""Kimi Delta Attention (Kimi Linear, arXiv 2510.26692): one interface over its implementations.

    reference.py     the recurrence, token by token: the oracle
    torch_chunk.py   the chunked form in torch: what trains on a CPU
    gate.py          raw gate -> log decay
    conv.py          the short convolution before q, k and v

Names: B batch, T time, H query heads, HV value heads (a multiple of H), K key dim, V value dim, N sequences.
"""

from __future__ import annotations

import math
import sys
from types import ModuleType
from typing import Any, Literal

import torch
from torch import Tensor

from kernels.kda.conv import short_conv
from kernels.kda.gate import kda_gate
from kernels.kda.reference import recurrent_kda
from kernels.kda.torch_chunk import chunk_kda

__all__ = ["chunk_kda", "kda", "kda_decode", "kda_gate", "recurrent_kda", "short_conv"]

Backend = Literal["torch", "reference"]


def kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    scale: float | None = None,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    lower_bound: float | None = None,
    l2norm: bool = False,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    backend: Backend = "torch",
) -> tuple[Tensor, Tensor | None]:
    """Gated delta-rule attention over whole sequences, differentiable in every floating input.

    Per head, with a = exp(g):  S <- diag(a) S;  S <- S + beta k (v - k^T S);  o = scale * q^T S.

    Args:
        q, k: [B, T, H, K].  v: [B, T, HV, V].  beta: [B, T, HV] in [0, 1].
        g: [B, T, HV, K]. Log decay (<= 0) when `A_log` is None, else the raw gate input, see `kda_gate`.
        scale: on q; K**-0.5 by default.
        A_log, dt_bias: [HV] and [HV * K], the parameters of the gate.
        lower_bound: a negative number. With `A_log` it selects the bounded gate. Without it promises g >= lower_bound,
            which lets the chunked form use one factorisation instead of pairwise decays; a broken promise gives
            wrong or non-finite output.
        l2norm: normalise q and k to x / sqrt(sum(x^2) + 1e-6) first.
        initial_state: [N, HV, K, V]; zeros by default.
        lengths: [B] valid tokens of each right-padded row. What stands in the padding cannot matter, NaN included:
            it leaves the state alone, gets output zero and gradient zero.
        cu_seqlens: [N + 1] boundaries of N sequences packed in one row (B = 1), from 0 to T.
        backend: "torch" (chunked) or "reference" (the recurrence).

    Returns:
        o [B, T, HV, V] in the dtype of v, and the final state [N, HV, K, V] (fp32, or fp64 for fp64 inputs) or None.

    Raises:
        ValueError: shapes disagree, or `lengths` and `cu_seqlens` are both given.
    """
    _check(q, k, v, g, beta, initial_state, lengths, cu_seqlens)
    if cu_seqlens is not None:
        return _packed(
            q, k, v, g, beta, cu_seqlens=cu_seqlens, scale=scale, A_log=A_log, dt_bias=dt_bias,
            lower_bound=lower_bound, l2norm=l2norm, initial_state=initial_state,
            output_final_state=output_final_state, backend=backend,
        )  # fmt: skip
    if lengths is not None:
        valid = torch.arange(q.shape[1], device=q.device)[None] < lengths[:, None]
        q, k, v, g, beta = (_keep(x, valid) for x in (q, k, v, g, beta))
    if A_log is not None:
        g = kda_gate(g, A_log, dt_bias, lower_bound)
        g = g if lengths is None else _keep(g, valid)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if backend == "reference":
        o, state = recurrent_kda(q, k, v, g, beta, scale=scale, l2norm=l2norm, initial_state=initial_state)
    else:
        o, state = chunk_kda(
            q, k, v, g, beta, scale=scale, l2norm=l2norm, initial_state=initial_state, lower_bound=lower_bound
        )
    return o.to(v.dtype), state if output_final_state else None


def kda_decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    state: Tensor,
    *,
    scale: float | None = None,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    lower_bound: float | None = None,
    l2norm: bool = False,
) -> tuple[Tensor, Tensor]:
    """The recurrence for T >= 1 new tokens of every sequence. Arguments as for `kda`; T is expected to be small.

    Returns:
        o [B, T, HV, V] and the new state [B, HV, K, V]; `state` itself is not changed.
    """
    _check(q, k, v, g, beta, state, None, None)
    if A_log is not None:
        g = kda_gate(g, A_log, dt_bias, lower_bound)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    o, state = recurrent_kda(q, k, v, g, beta, scale=scale, l2norm=l2norm, initial_state=state)
    return o.to(v.dtype), state


def _packed(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, *, cu_seqlens: Tensor, **options: Any
) -> tuple[Tensor, Tensor | None]:
    """Unpack the sequences into right-padded rows, run, and pack the outputs again."""
    lengths = cu_seqlens.diff()
    row = torch.repeat_interleave(torch.arange(len(lengths), device=q.device), lengths)
    at = torch.arange(q.shape[1], device=q.device) - cu_seqlens[row]
    longest = int(lengths.max())

    def unpack(x: Tensor) -> Tensor:
        return x.new_zeros(len(lengths), longest, *x.shape[2:]).index_put((row, at), x[0])

    o, state = kda(*map(unpack, (q, k, v, g, beta)), lengths=lengths, **options)
    return o[row, at][None], state


def _keep(x: Tensor, valid: Tensor) -> Tensor:
    """x [B, T, ...] with zeros where valid [B, T] is false; a NaN there stays out of the gradients as well."""
    return x.masked_fill(~valid.view(*valid.shape, *(1,) * (x.ndim - 2)), 0)


def _check(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor,
    state: Tensor | None, lengths: Tensor | None, cu_seqlens: Tensor | None,
) -> None:  # fmt: skip
    (B, T, H, K), (HV, V) = q.shape, v.shape[2:]
    wanted = {"k": (k, (B, T, H, K)), "v": (v, (B, T, HV, V)), "g": (g, (B, T, HV, K)), "beta": (beta, (B, T, HV))}
    for name, (x, shape) in wanted.items():
        if tuple(x.shape) != shape:
            raise ValueError(f"kda: {name} has shape {tuple(x.shape)}, expected {shape} from q and v")
    if HV % H:
        raise ValueError(f"kda: {HV} value heads are not a multiple of {H} query heads")
    if cu_seqlens is not None:
        if lengths is not None:
            raise ValueError("kda: give lengths (padded rows) or cu_seqlens (one packed row), not both")
        if B != 1 or int(cu_seqlens[0]) != 0 or int(cu_seqlens[-1]) != T:
            raise ValueError(f"kda: cu_seqlens must run from 0 to T={T} over a batch of one, got B={B}, {cu_seqlens}")
    N = B if cu_seqlens is None else len(cu_seqlens) - 1
    if state is not None and tuple(state.shape) != (N, HV, K, V):
        raise ValueError(f"kda: the state has shape {tuple(state.shape)}, expected {(N, HV, K, V)}")


class _Callable(ModuleType):
    """Lets `kernels.kda(...)` be called although `kernels.kda` is this package."""

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        return kda(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
