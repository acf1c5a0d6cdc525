"""The Kimi-Linear decoder: embedding, layers of (KDA or MLA) and (MLP or experts), norm, head.

Names: B batch, T time, D hidden, V vocabulary, K experts per token.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from trainer.model.cache import Cache, KDACache, MLACache
from trainer.model.config import ModelConfig
from trainer.model.kda import KimiDeltaAttention
from trainer.model.mla import MultiHeadLatentAttention
from trainer.model.moe import MLP, SparseMoE
from trainer.model.norm import RMSNorm


class DecoderLayer(nn.Module):
    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.norm_eps)
        self.self_attn = MultiHeadLatentAttention(config) if config.uses_mla(layer) else KimiDeltaAttention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.norm_eps)
        if config.uses_experts(layer):
            self.block_sparse_moe = SparseMoE(config)
        else:
            self.mlp = MLP(config.hidden_size, config.dense_inner)


class Decoder(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config, layer) for layer in range(config.layers))
        self.norm = RMSNorm(config.hidden_size, config.norm_eps)


class KimiLinear(nn.Module):
    """A causal language model. `forward` is `head(hidden(...))`; training applies the head where there is a loss only.

    Args:
        seed: of the initial weights.
    """

    def __init__(self, config: ModelConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tie_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
        self._initialize(torch.Generator().manual_seed(seed))

    def forward(self, tokens_BT: Tensor, *, lengths_B: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """Logits [B, T, V] of the next token at every position. Arguments as for `hidden`."""
        return self.head(self.hidden(tokens_BT, lengths_B=lengths_B, cache=cache))

    def hidden(
        self,
        tokens_BT: Tensor,
        *,
        lengths_B: Tensor | None = None,
        cache: Cache | None = None,
        replay: Sequence[Tensor] | None = None,
        routes: list[Tensor] | None = None,
    ) -> Tensor:
        """The normalised last hidden state [B, T, D].

        Args:
            tokens_BT: token ids, right-padded with any valid id.
            lengths_B: valid tokens of each row in this call; all T by default. Values at padded positions mean nothing.
            cache: the tokens are taken as the continuation of what it holds, and it is advanced in place.
            replay: routes to follow, one [B, T, K] per mixture-of-experts layer from the bottom.
            routes: a list to which the routes taken are appended, in the form `replay` accepts.
        """
        x_BTD = self.model.embed_tokens(tokens_BT)
        T = tokens_BT.shape[1]
        valid_BT = None if lengths_B is None else torch.arange(T, device=tokens_BT.device) < lengths_B[:, None]
        replays = iter(replay or ())
        for number, layer in enumerate(self.model.layers):
            assert isinstance(layer, DecoderLayer)
            kept = cache.layers[number] if cache is not None else None
            x_BTD = x_BTD + self._attend(layer, layer.input_layernorm(x_BTD), lengths_B, kept, cache)
            inner_BTD = layer.post_attention_layernorm(x_BTD)
            if not self.config.uses_experts(number):
                x_BTD = x_BTD + layer.mlp(inner_BTD)
                continue
            y_BTD, routes_BTK = layer.block_sparse_moe(inner_BTD, valid_BT, next(replays) if replay else None)
            x_BTD = x_BTD + y_BTD
            if routes is not None:
                routes.append(routes_BTK)
        if cache is not None:
            cache.lengths_B = cache.lengths_B + (T if lengths_B is None else lengths_B)
        return self.model.norm(x_BTD)

    def head(self, hidden: Tensor) -> Tensor:
        """Logits [..., V] of hidden states [..., D]."""
        return self.lm_head(hidden)

    def new_cache(self, batch: int) -> Cache:
        """An empty cache on the model's device and in its dtype."""
        weight = self.model.embed_tokens.weight
        return Cache.empty(self.config, batch, device=weight.device, dtype=weight.dtype)

    @staticmethod
    def _attend(
        layer: DecoderLayer,
        x_BTD: Tensor,
        lengths_B: Tensor | None,
        kept: KDACache | MLACache | None,
        cache: Cache | None,
    ) -> Tensor:
        if isinstance(layer.self_attn, MultiHeadLatentAttention):
            assert kept is None or isinstance(kept, MLACache)
            return layer.self_attn(x_BTD, lengths_B, kept, None if cache is None else cache.lengths_B)
        return layer.self_attn(x_BTD, lengths_B, kept)

    @torch.no_grad()
    def _initialize(self, generator: torch.Generator) -> None:
        """Normal weights: 0.1 for the embedding, fan_in^-1/2 for matrices, less where they feed the residual stream."""
        depth = (2 * self.config.layers) ** -0.5
        for name, weight in self.named_parameters():
            if name.endswith(("norm.weight", "A_log", "dt_bias")):
                continue
            if "embed_tokens" in name or "lm_head" in name:
                std = 0.1
            else:
                fan_in = weight[0, 0].numel() if weight.ndim == 3 else weight.shape[-1]
                std = fan_in**-0.5 * (depth if name.endswith(("o_proj.weight", "down_proj.weight", "w2")) else 1.0)
            weight.normal_(0, std, generator=generator)
        for module in self.modules():
            if isinstance(module, KimiDeltaAttention):
                module.reset_gate(generator)


def count_parameters(model: nn.Module, *, active: bool = False) -> int:
    """Parameters of the model, shared ones once; `active` counts only those that one token uses."""
    total = sum(p.numel() for p in model.parameters())
    if active:
        for moe in model.modules():
            if isinstance(moe, SparseMoE):
                routed = sum(p.numel() for p in moe.experts.parameters())
                total -= routed - routed * moe.config.top_k // moe.config.experts
    return total
