"""A Kimi Delta Attention layer, with the parameter names of Kimi-Linear.

Names: B batch, T time, D hidden, H heads, K head dim (of keys and values alike).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import kernels
from trainer.model.cache import KDACache
from trainer.model.config import ModelConfig
from trainer.model.norm import GatedRMSNorm


class KimiDeltaAttention(nn.Module):
    """q, k, v by short convolutions; per-channel forget gate (f); per-head write strength (b); output gate (g)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        D, H, K = config.hidden_size, config.kda_heads, config.kda_head_dim
        self.heads, self.head_dim, self.lower_bound = H, K, config.lower_bound
        self.q_proj = nn.Linear(D, H * K, bias=False)
        self.k_proj = nn.Linear(D, H * K, bias=False)
        self.v_proj = nn.Linear(D, H * K, bias=False)
        self.q_conv1d = nn.Conv1d(H * K, H * K, config.conv_kernel, groups=H * K, bias=False)
        self.k_conv1d = nn.Conv1d(H * K, H * K, config.conv_kernel, groups=H * K, bias=False)
        self.v_conv1d = nn.Conv1d(H * K, H * K, config.conv_kernel, groups=H * K, bias=False)
        self.f_a_proj = nn.Linear(D, K, bias=False)
        self.f_b_proj = nn.Linear(K, H * K, bias=False)
        self.b_proj = nn.Linear(D, H, bias=False)
        self.g_a_proj = nn.Linear(D, K, bias=False)
        self.g_b_proj = nn.Linear(K, H * K, bias=False)
        self.A_log = nn.Parameter(torch.empty(1, 1, H, 1))
        self.dt_bias = nn.Parameter(torch.empty(H * K))
        self.o_norm = GatedRMSNorm(K, config.norm_eps)
        self.o_proj = nn.Linear(H * K, D, bias=False)

    @torch.no_grad()
    def reset_gate(self, generator: torch.Generator | None = None) -> None:
        """Start with decays per token spread log-uniformly over 0.001 .. 0.1 per channel, as Mamba-2 does."""
        rate = torch.empty_like(self.A_log)
        if self.lower_bound is None:
            rate.uniform_(1, 16, generator=generator)
        else:
            rate.fill_(1)
        self.A_log.copy_(rate.log())
        dt = torch.empty_like(self.dt_bias).uniform_(math.log(1e-3), math.log(1e-1), generator=generator).exp()
        if self.lower_bound is None:
            self.dt_bias.copy_(dt.expm1().log())  # softplus(dt_bias) = dt
        else:
            self.dt_bias.copy_(torch.logit(dt / -self.lower_bound))

    def forward(self, x_BTD: Tensor, lengths_B: Tensor | None, cache: KDACache | None) -> Tensor:
        B, T, _ = x_BTD.shape
        H, K = self.heads, self.head_dim
        qkv, f, g, b = self._project(x_BTD)
        conv_weight = torch.cat([self.q_conv1d.weight, self.k_conv1d.weight, self.v_conv1d.weight])
        qkv, conv_state = kernels.short_conv(
            qkv, conv_weight, initial_state=cache.conv_BWD if cache else None,
            output_final_state=cache is not None, lengths=lengths_B,
        )  # fmt: skip
        q, k, v = (x.view(B, T, H, K) for x in qkv.split(H * K, -1))
        f = self.f_b_proj(f).view(B, T, H, K)
        beta = b.sigmoid()
        gate = {"A_log": self.A_log, "dt_bias": self.dt_bias, "lower_bound": self.lower_bound, "l2norm": True}
        if cache is not None and T == 1 and lengths_B is None:
            o, state = kernels.kda_decode(q, k, v, f, beta, cache.state_BHKV, **gate)
        else:
            o, state = kernels.kda(
                q, k, v, f, beta, **gate, lengths=lengths_B,
                initial_state=cache.state_BHKV if cache else None, output_final_state=cache is not None,
            )  # fmt: skip
        if cache is not None:
            assert state is not None
            assert conv_state is not None
            cache.state_BHKV, cache.conv_BWD = state, conv_state
        o = self.o_norm(o, self.g_b_proj(g).view(B, T, H, K))
        return self.o_proj(o.flatten(-2))

    def _project(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """q, k and v before the convolution side by side, and the inputs of the three gates: one product for all."""
        parts = (self.q_proj, self.k_proj, self.v_proj, self.f_a_proj, self.g_a_proj, self.b_proj)
        out = F.linear(x_BTD, torch.cat([part.weight for part in parts]))
        HK = self.heads * self.head_dim
        qkv, f, g, b = out.split([3 * HK, self.head_dim, self.head_dim, self.heads], -1)
        return qkv, f, g, b
