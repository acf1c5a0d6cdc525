"""Multi-head latent attention without positional encoding (DeepSeek-V2, arXiv 2405.04434; Kimi Linear).

Training and prefill expand the compressed keys and values; with cached positions the query is moved into the latent
space instead ("absorbed"), so that only the compressed form is ever stored or read.

Names: B batch, T new positions, S cached positions, H heads, N nope dims, P shared ("rope") dims, L latent, V value dims.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trainer.model.cache import MLACache
from trainer.model.config import ModelConfig
from trainer.model.norm import RMSNorm

LATENT_EPS = 1e-6  # the released models normalise the latent with this one, not with `norm_eps`


class MultiHeadLatentAttention(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        D, H = config.hidden_size, config.mla_heads
        self.heads, self.latent = H, config.kv_lora_rank
        self.nope, self.shared, self.value = config.qk_nope_head_dim, config.qk_rope_head_dim, config.v_head_dim
        self.scale = (self.nope + self.shared) ** -0.5
        self.q_proj = nn.Linear(D, H * (self.nope + self.shared), bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(D, self.latent + self.shared, bias=False)
        self.kv_a_layernorm = RMSNorm(self.latent, LATENT_EPS)
        self.kv_b_proj = nn.Linear(self.latent, H * (self.nope + self.value), bias=False)
        self.g_proj = nn.Linear(D, H * self.value, bias=False) if config.mla_output_gate else None
        self.o_proj = nn.Linear(H * self.value, D, bias=False)

    def forward(self, x_BTD: Tensor, lengths_B: Tensor | None, cache: MLACache | None, past_B: Tensor | None) -> Tensor:
        """past_B: positions already in the cache, None without a cache. Padding sits on the right, so that causality
        hides it from every valid position."""
        B, T, _ = x_BTD.shape
        q_BHTK = self.q_proj(x_BTD).view(B, T, self.heads, -1).transpose(1, 2)
        latent, shared = self.kv_a_proj_with_mqa(x_BTD).split([self.latent, self.shared], -1)
        kv_BTR = torch.cat([self.kv_a_layernorm(latent), shared], -1)
        if cache is None or past_B is None:
            o_BHTV = self._expanded(q_BHTK, kv_BTR)
        else:
            fresh = cache.kv_BTR.shape[1] == 0
            counts_B = torch.full_like(past_B, T) if lengths_B is None else lengths_B
            cache.write(kv_BTR, past_B, counts_B)
            o_BHTV = self._expanded(q_BHTK, kv_BTR) if fresh else self._absorbed(q_BHTK, cache.kv_BTR, past_B)
        o = o_BHTV.transpose(1, 2).reshape(B, T, -1)
        return self.o_proj(o if self.g_proj is None else o * self.g_proj(x_BTD).sigmoid())

    def _expanded(self, q_BHTK: Tensor, kv_BTR: Tensor) -> Tensor:
        B, H, T, _ = q_BHTK.shape
        latent, shared = kv_BTR.split([self.latent, self.shared], -1)
        k, v = self.kv_b_proj(latent).view(B, T, H, -1).transpose(1, 2).split([self.nope, self.value], -1)
        k = torch.cat([k, shared[:, None].expand(B, H, T, self.shared)], -1)
        return F.scaled_dot_product_attention(q_BHTK, k, v, is_causal=True, scale=self.scale)

    def _absorbed(self, q_BHTK: Tensor, kv_BSR: Tensor, past_B: Tensor) -> Tensor:
        T, S = q_BHTK.shape[2], kv_BSR.shape[1]
        key_HNL, value_HVL = self.kv_b_proj.weight.view(self.heads, -1, self.latent).split([self.nope, self.value], 1)
        q, q_shared = q_BHTK.split([self.nope, self.shared], -1)
        q_BHTR = torch.cat([q @ key_HNL, q_shared], -1)
        last_BT = past_B[:, None] + torch.arange(T, device=past_B.device)
        visible = torch.arange(S, device=past_B.device) <= last_BT[:, None, :, None]
        scores = (q_BHTR @ kv_BSR[:, None].mT * self.scale).masked_fill(~visible, -torch.inf)
        return scores.softmax(-1) @ kv_BSR[:, None, :, : self.latent] @ value_HVL.mT
