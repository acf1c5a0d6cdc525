"""The shape of a Kimi-Linear model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from kgsynth.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Defaults are those of Kimi-Linear-48B-A3B. Layer numbers in `full_attn_layers` count from 1, as in its config.

    Attributes:
        full_attn_layers: the layers that use MLA; every other one uses KDA.
        qk_rope_head_dim: the part of the MLA key that is shared by all heads. Not rotated: the model has no positional
            encoding, the name is the checkpoint's.
        gate: "softplus" (unbounded, Kimi-Linear) or "bounded" (Kimi K3): see `kernels.kda_gate`.
        gate_lower_bound: log decay per token at which the bounded gate saturates.
        mla_output_gate: multiply the MLA output by sigmoid(g_proj(x)) (Kimi K3).
        first_dense_layers: that many layers at the bottom have a dense MLP in place of experts.
        routed_scaling: factor on the renormalised weights of the routed experts.
    """

    vocab_size: int = 163840
    hidden_size: int = 2304
    layers: int = 27
    full_attn_layers: tuple[int, ...] = (4, 8, 12, 16, 20, 24, 27)
    norm_eps: float = 1e-5
    tie_embeddings: bool = False
    # KDA
    kda_heads: int = 32
    kda_head_dim: int = 128
    conv_kernel: int = 4
    gate: Literal["softplus", "bounded"] = "softplus"
    gate_lower_bound: float = -5.0
    # MLA
    mla_heads: int = 32
    kv_lora_rank: int = 512
    qk_nope_head_dim: int = 128
    qk_rope_head_dim: int = 64
    v_head_dim: int = 128
    mla_output_gate: bool = False
    # feed-forward
    first_dense_layers: int = 1
    dense_inner: int = 9216
    experts: int = 256
    top_k: int = 8
    shared_experts: int = 1
    moe_inner: int = 1024
    router_score: Literal["sigmoid", "softmax"] = "sigmoid"
    expert_groups: int = 1
    top_groups: int = 1
    renormalize: bool = True
    routed_scaling: float = 2.446

    def __post_init__(self) -> None:
        numbered = set(range(1, self.layers + 1))
        if not set(self.full_attn_layers) <= numbered:
            raise ConfigError(
                f"model.full_attn_layers {self.full_attn_layers}: layers are numbered from 1 to {self.layers}"
            )
        for name in ("vocab_size", "hidden_size", "layers", "kda_heads", "kda_head_dim", "mla_heads", "conv_kernel"):
            if getattr(self, name) < 1:
                raise ConfigError(f"model.{name} must be at least 1, got {getattr(self, name)}")
        if self.gate not in ("softplus", "bounded") or self.router_score not in ("sigmoid", "softmax"):
            raise ConfigError(
                f"model.gate is softplus or bounded and model.router_score is sigmoid or softmax, "
                f"got {self.gate!r} and {self.router_score!r}"
            )
        if self.gate_lower_bound >= 0:
            raise ConfigError(f"model.gate_lower_bound must be negative, got {self.gate_lower_bound}")
        if self.experts % self.expert_groups or self.top_k > self.experts // self.expert_groups * self.top_groups:
            raise ConfigError(
                f"model.top_k {self.top_k} of {self.experts} experts does not fit {self.top_groups} of "
                f"{self.expert_groups} groups"
            )

    def uses_mla(self, layer: int) -> bool:
        """Whether layer (from 0) is one of `full_attn_layers` (from 1)."""
        return layer + 1 in self.full_attn_layers

    def uses_experts(self, layer: int) -> bool:
        return layer >= self.first_dense_layers

    @property
    def lower_bound(self) -> float | None:
        return self.gate_lower_bound if self.gate == "bounded" else None


def tiny(vocab_size: int = 1024, **changes: Any) -> ModelConfig:
    """About a million parameters, made to train on two CPU cores: three KDA layers, then a gated MLA layer.

    Two KDA heads of 64 learned to recall pairs seen earlier in fewer steps than four of 32, for 5 % more time each.
    """
    return replace(
        ModelConfig(
            vocab_size=vocab_size,
            hidden_size=128,
            layers=4,
            full_attn_layers=(4,),
            tie_embeddings=True,
            kda_heads=2,
            kda_head_dim=64,
            gate="bounded",
            mla_heads=4,
            kv_lora_rank=64,
            qk_nope_head_dim=24,
            qk_rope_head_dim=8,
            v_head_dim=32,
            mla_output_gate=True,
            dense_inner=256,
            experts=8,
            top_k=2,
            shared_experts=1,
            moe_inner=64,
            routed_scaling=1.0,
        ),
        **changes,
    )
