"""The optimizer of both loops: Muon for weight matrices, AdamW for the rest, one learning-rate schedule.

Muon (K. Jordan et al., 2024; scaled as in Moonlight, arXiv 2502.16982) orthogonalises the momentum of a matrix.
Embeddings, the output head, stacked expert weights, vectors and scalars are AdamW's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from trainer.config import OptimizerConfig


class Optimizer:
    """Steps a model whose gradients are set; `state_dict` holds all that a resumed run needs."""

    def __init__(self, model: nn.Module, config: OptimizerConfig, *, steps: int) -> None:
        self._config, self._steps, self._step = config, steps, 0
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        matrices = [p for name, p in model.named_parameters() if p.requires_grad and _is_matrix(name, p)]
        matrices = matrices if config.name == "muon" else []
        chosen = {id(p) for p in matrices}
        others = [p for p in self._parameters if id(p) not in chosen]
        decay = config.weight_decay
        self._parts: list[tuple[float, torch.optim.Optimizer]] = [
            (config.adamw_lr, torch.optim.AdamW(others, lr=config.adamw_lr, betas=(0.9, 0.95), weight_decay=decay))
        ]
        if matrices:
            muon = torch.optim.Muon(matrices, lr=config.lr, weight_decay=decay, adjust_lr_fn="match_rms_adamw")
            self._parts.append((config.lr, muon))

    def step(self) -> float:
        """Clip, update, clear the gradients. Returns the gradient norm before clipping."""
        norm = float(nn.utils.clip_grad_norm_(self._parameters, self._config.clip_norm))
        scale = self._schedule()
        for lr, part in self._parts:
            for group in part.param_groups:
                group["lr"] = lr * scale
            part.step()
            part.zero_grad(set_to_none=True)
        self._step += 1
        return norm

    def _schedule(self) -> float:
        """Linear warm-up, then linear to `final` at the last step."""
        warm = min(1.0, (self._step + 1) / max(1, self._config.warmup))
        return warm * (1 - (1 - self._config.final) * self._step / max(1, self._steps))

    def state_dict(self) -> dict[str, Any]:
        return {"step": self._step, "parts": [part.state_dict() for _, part in self._parts]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._step = state["step"]
        for (_, part), saved in zip(self._parts, state["parts"], strict=True):
            part.load_state_dict(saved)


def _is_matrix(name: str, parameter: nn.Parameter) -> bool:
    return parameter.ndim == 2 and min(parameter.shape) > 1 and not any(part in name for part in ("embed", "head"))
