"""The policy: Kimi-Linear (KDA and MLA layers, mixture of experts), its configuration and its decoding cache."""

from trainer.model.cache import Cache
from trainer.model.config import ModelConfig, tiny
from trainer.model.kimi_linear import KimiLinear, count_parameters
from trainer.model.moe import router_metrics, update_router_bias

__all__ = ["Cache", "KimiLinear", "ModelConfig", "count_parameters", "router_metrics", "tiny", "update_router_bias"]
