"""Feed-forward layers: the dense SwiGLU MLP and the mixture of experts with its balancing bias.

Names: B batch, T time, D hidden, E experts, K experts per token, M = B * T tokens.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import kernels
from trainer.model.config import ModelConfig


class MLP(nn.Module):
    """SwiGLU: down(silu(gate(x)) * up(x)) (arXiv 2002.05202)."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        both = F.linear(x, torch.cat([self.gate_proj.weight, self.up_proj.weight]))
        gate, up = both.chunk(2, -1)
        return self.down_proj(F.silu(gate) * up)


class Router(nn.Module):
    """`weight` scores the experts; `e_score_correction_bias` is added for the selection only, and never by autograd."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.experts, config.hidden_size))
        self.e_score_correction_bias: Tensor
        self.register_buffer("e_score_correction_bias", torch.zeros(config.experts))


class Experts(nn.Module):
    """All routed experts of a layer in three tensors; a released checkpoint has `experts.N.w1` (w2, w3) apiece."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        E, D, inner = config.experts, config.hidden_size, config.moe_inner
        self.w1 = nn.Parameter(torch.empty(E, inner, D))
        self.w2 = nn.Parameter(torch.empty(E, D, inner))
        self.w3 = nn.Parameter(torch.empty(E, inner, D))


class SparseMoE(nn.Module):
    """Shared experts for every token plus the routed ones.

    Attributes:
        loads_E: tokens each expert got in training mode since the last `update_router_bias`.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.gate = Router(config)
        self.experts = Experts(config)
        shared = config.shared_experts * config.moe_inner
        self.shared_experts = MLP(config.hidden_size, shared) if shared else None
        self.loads_E: Tensor
        self.register_buffer("loads_E", torch.zeros(config.experts, dtype=torch.long), persistent=False)

    def forward(self, x_BTD: Tensor, valid_BT: Tensor | None, replay_BTK: Tensor | None) -> tuple[Tensor, Tensor]:
        """The layer's output [B, T, D] and the routes it took [B, T, K]."""
        config = self.config
        x_MD = x_BTD.flatten(0, 1)
        routing = kernels.route(
            x_MD.float() @ self.gate.weight.float().T,
            top_k=config.top_k,
            bias_E=self.gate.e_score_correction_bias,
            score=config.router_score,
            groups=config.expert_groups,
            top_groups=config.top_groups,
            renormalize=config.renormalize,
            scaling=config.routed_scaling,
            replay_TK=None if replay_BTK is None else replay_BTK.flatten(0, 1),
        )
        if self.training:
            taken = routing.indices_TK if valid_BT is None else routing.indices_TK[valid_BT.flatten()]
            self.loads_E += torch.bincount(taken.flatten(), minlength=config.experts)
        y_MD = kernels.moe(x_MD, routing, self.experts.w1, self.experts.w3, self.experts.w2)
        if self.shared_experts is not None:
            y_MD = y_MD + self.shared_experts(x_MD)
        return y_MD.view_as(x_BTD), routing.indices_TK.view(*x_BTD.shape[:2], -1)


@torch.no_grad()
def update_router_bias(model: nn.Module, rate: float = 1e-3) -> None:
    """Move each expert's selection bias by `rate` towards the mean load, and start counting anew.

    Auxiliary-loss-free balancing (arXiv 2408.15664): bias += rate * sign(mean load - load). Call it after the
    optimizer's step, outside autograd; a layer that saw no token since the last call stays as it is.
    """
    for layer in model.modules():
        if isinstance(layer, SparseMoE):
            loads_E = layer.loads_E.float()
            layer.gate.e_score_correction_bias += rate * (loads_E.mean() - loads_E).sign()
            layer.loads_E.zero_()


def router_metrics(model: nn.Module) -> dict[str, float]:
    """Balance since the last `update_router_bias`, averaged over the layers; empty when nothing was counted.

    Returns:
        router_max_load: load of the busiest expert over the mean load (1 is perfect balance, E is collapse).
        router_idle: share of the experts that got no token.
    """
    loads = [layer.loads_E.float() for layer in model.modules() if isinstance(layer, SparseMoE)]
    loads = [load for load in loads if load.sum() > 0]
    if not loads:
        return {}
    return {
        "router_max_load": sum(float(load.max() / load.mean()) for load in loads) / len(loads),
        "router_idle": sum(float((load == 0).float().mean()) for load in loads) / len(loads),
    }
