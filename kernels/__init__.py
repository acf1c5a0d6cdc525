"""Kimi Delta Attention and mixture-of-experts operators.

    kernels.kda(q, k, v, g, beta, ...)                 whole sequences, differentiable
    kernels.kda_decode(q, k, v, g, beta, state, ...)   new tokens from a state
    kernels.short_conv(x, weight, ...)                 causal depthwise convolution with state
    kernels.route(logits, ...)                         which experts, with which weights
    kernels.moe(x, routing, w1, w3, w2)                the routed SwiGLU experts

Importing this package loads neither torch nor triton; a name is loaded on first use. `kernels.kda` and `kernels.moe`
are subpackages that can also be called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernels.kda import kda, kda_decode, kda_gate, short_conv
    from kernels.moe import Routing, moe, route

_HOME = {
    "kda_decode": "kernels.kda",
    "kda_gate": "kernels.kda",
    "short_conv": "kernels.kda",
    "Routing": "kernels.moe",
    "route": "kernels.moe",
}

__all__ = ["Routing", "kda", "kda_decode", "kda_gate", "moe", "route", "short_conv"]


def __getattr__(name: str) -> Any:
    if name in ("kda", "moe"):
        return import_module(f"kernels.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'kernels' has no attribute {name!r}")
