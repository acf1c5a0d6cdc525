"""Which experts a token visits, and how much each of them counts.

The selection bias (auxiliary-loss-free balancing, arXiv 2408.15664; DeepSeek-V3, arXiv 2412.19437) decides *which*
experts are chosen and never how much they weigh. Replayed routes (arXiv 2510.11370) fix the indices; their weights
are gathered from the live scores of *all* experts, so that the router still gets its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Routing:
    """indices_TK int64 (distinct per token), weights_TK in fp32."""

    indices_TK: Tensor
    weights_TK: Tensor

    def loads_E(self, experts: int) -> Tensor:
        """How many tokens each expert gets, [E] int64."""
        return torch.bincount(self.indices_TK.flatten(), minlength=experts)

    def order(self, experts: int) -> tuple[Tensor, Tensor]:
        """The T * K token-expert pairs sorted by expert (stable), and each expert's end among them, [E] int32."""
        return self.indices_TK.flatten().argsort(stable=True), self.loads_E(experts).cumsum(0).to(torch.int32)


def route(
    logits_TE: Tensor,
    *,
    top_k: int,
    bias_E: Tensor | None = None,
    score: Literal["sigmoid", "softmax"] = "sigmoid",
    groups: int = 1,
    top_groups: int = 1,
    renormalize: bool = True,
    scaling: float = 1.0,
    replay_TK: Tensor | None = None,
) -> Routing:
    """Score in fp32, choose the top k experts of score + bias, weigh them by their unbiased score.

    Args:
        bias_E: for the selection only; no gradient passes through it.
        groups, top_groups: experts in equal groups, of which only the `top_groups` whose two best experts have the
            highest sum can be chosen.
        renormalize: make the weights of a token sum to `scaling`.
        replay_TK: indices to use instead of choosing.

    Raises:
        ValueError: the experts cannot be grouped or chosen like that, or the replayed routes have another shape.
    """
    T, E = logits_TE.shape
    if not 1 <= top_k <= E // groups * top_groups or E % groups or not 1 <= top_groups <= groups:
        raise ValueError(f"route: cannot choose {top_k} of {E} experts in {top_groups} of {groups} groups")
    logits_TE = logits_TE.float() if logits_TE.dtype != torch.float64 else logits_TE
    scores_TE = logits_TE.sigmoid() if score == "sigmoid" else logits_TE.softmax(-1)
    if replay_TK is None:
        indices_TK = _choose(scores_TE.detach(), bias_E, top_k, groups, top_groups)
    elif replay_TK.shape == (T, top_k):
        indices_TK = replay_TK.long()
    else:
        raise ValueError(f"route: replayed routes have shape {tuple(replay_TK.shape)}, expected {(T, top_k)}")
    weights_TK = scores_TE.gather(1, indices_TK)
    if renormalize:
        weights_TK = weights_TK / (weights_TK.sum(-1, keepdim=True) + 1e-20)
    return Routing(indices_TK=indices_TK, weights_TK=weights_TK * scaling)


def _choose(scores_TE: Tensor, bias_E: Tensor | None, top_k: int, groups: int, top_groups: int) -> Tensor:
    choice_TE = scores_TE if bias_E is None else scores_TE + bias_E
    if groups > 1:
        T, E = choice_TE.shape
        best = choice_TE.view(T, groups, -1).topk(min(2, E // groups), dim=-1).values.sum(-1)
        open_TG = torch.zeros_like(best, dtype=torch.bool).scatter(1, best.topk(top_groups, dim=-1).indices, True)
        choice_TE = choice_TE.masked_fill(~open_TG.repeat_interleave(E // groups, 1), -torch.inf)
    return choice_TE.topk(top_k, dim=-1).indices
