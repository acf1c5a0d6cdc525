"""The forget gate of KDA: raw gate input -> log decay per token, head and channel."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def kda_gate(g: Tensor, A_log: Tensor, dt_bias: Tensor | None = None, lower_bound: float | None = None) -> Tensor:
    """Log decay (<= 0) of the raw gate g [..., HV, K].

    With z = g + dt_bias:
        unbounded (Kimi-Linear-48B):    -exp(A_log) * softplus(z)
        bounded (Kimi K3, lb = -5):     lower_bound * sigmoid(exp(A_log) * z)

    Args:
        A_log: HV values in any shape, one per head.  dt_bias: HV * K values, or None.
        lower_bound: None for the unbounded gate, else a negative number.

    Returns:
        [..., HV, K] in fp32, or fp64 for fp64 input.
    """
    HV, K = g.shape[-2:]
    dtype = torch.promote_types(g.dtype, torch.float32)
    z = g.to(dtype) if dt_bias is None else g.to(dtype) + dt_bias.to(dtype).view(HV, K)
    rate = A_log.to(dtype).reshape(HV, 1).exp()
    if lower_bound is None:
        return -rate * F.softplus(z)
    if lower_bound >= 0:
        raise ValueError(f"kda_gate: lower_bound must be negative, got {lower_bound}")
    return lower_bound * torch.sigmoid(rate * z)
