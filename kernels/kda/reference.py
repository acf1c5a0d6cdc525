"""The KDA recurrence, one token at a time: the oracle for every other implementation, and the decode step."""

from __future__ import annotations

import torch
from torch import Tensor


def recurrent_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    scale: float,
    l2norm: bool = False,
    initial_state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """S_t = (I - beta k k^T) diag(exp g) S_{t-1} + beta k v^T and o_t = scale * S_t^T q_t, in fp32 or fp64.

    Args:
        q, k: [B, T, H, K].  v: [B, T, HV, V].  g: [B, T, HV, K], log decay.  beta: [B, T, HV].
        initial_state: [B, HV, K, V]; zeros by default.

    Returns:
        o [B, T, HV, V] and the final state [B, HV, K, V].
    """
    dtype = torch.promote_types(v.dtype, torch.float32)
    q, k, v, g, beta = (x.to(dtype) for x in (q, k, v, g, beta))
    if l2norm:
        q, k = unit(q), unit(k)
    (B, T, H, K), (HV, V) = q.shape, v.shape[2:]
    q, k = (x.repeat_interleave(HV // H, dim=2) if HV != H else x for x in (q, k))
    state = v.new_zeros(B, HV, K, V) if initial_state is None else initial_state.to(dtype)
    decay, outputs = g.exp(), []
    for t in range(T):
        state = state * decay[:, t, :, :, None]
        recalled = k[:, t, :, None] @ state
        update = (v[:, t, :, None] - recalled) * beta[:, t, :, None, None]
        state = state + k[:, t, :, :, None] * update
        outputs.append(scale * (q[:, t, :, None] @ state)[:, :, 0])
    return torch.stack(outputs, 1) if outputs else v.new_zeros(B, 0, HV, V), state


def unit(x: Tensor) -> Tensor:
    """x / sqrt(sum(x^2) + 1e-6) over the last dimension, as the released models normalise q and k."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)
