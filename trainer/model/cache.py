"""What decoding keeps of the tokens seen so far: a fixed-size state per KDA layer, compressed keys per MLA layer.

Names: B rows, T cached positions, R compressed dims (kv_lora_rank + qk_rope_head_dim).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.model.config import ModelConfig


@dataclass(kw_only=True)
class KDACache:
    """state_BHKV in fp32; conv_BWD holds the last W = kernel - 1 inputs of the short convolutions of q, k and v."""

    state_BHKV: Tensor
    conv_BWD: Tensor


@dataclass(kw_only=True)
class MLACache:
    """kv_BTR: normalised latent and shared key per position; row b is valid up to the cache's lengths_B[b]."""

    kv_BTR: Tensor

    def write(self, new_BTR: Tensor, lengths_B: Tensor, counts_B: Tensor) -> None:
        """Append the first counts_B[b] new positions of each row b behind its lengths_B[b] old ones."""
        B, T, R = new_BTR.shape
        needed = int((lengths_B + counts_B).max()) if B else 0
        held = self.kv_BTR.shape[1]
        if needed > held:
            more = max(needed, 2 * held, 64) - held
            self.kv_BTR = torch.cat([self.kv_BTR, self.kv_BTR.new_zeros(B, more, R)], 1)
        offset = torch.arange(T, device=new_BTR.device)
        row, at = (offset < counts_B[:, None]).nonzero(as_tuple=True)
        if torch.is_grad_enabled():  # autograd may still need the values of the previous call
            self.kv_BTR = self.kv_BTR.clone()
        self.kv_BTR[row, lengths_B[row] + at] = new_BTR[row, at].to(self.kv_BTR.dtype)


class Cache:
    """State of B sequences between calls of `KimiLinear`, which updates it in place.

    Unless gradients are off, they pass through it: several continuations can be trained on one prompt that is read once.

    Attributes:
        lengths_B: tokens seen per row, int64.
        layers: a KDACache or an MLACache per layer of the model.
    """

    def __init__(self, lengths_B: Tensor, layers: list[KDACache | MLACache]) -> None:
        self.lengths_B = lengths_B
        self.layers = layers

    @classmethod
    def empty(
        cls, config: ModelConfig, batch: int, *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> Cache:
        """A cache of no tokens. `dtype` is that of the activations; the recurrent state is always fp32."""
        H, K = config.kda_heads, config.kda_head_dim
        R = config.kv_lora_rank + config.qk_rope_head_dim
        layers: list[KDACache | MLACache] = []
        for layer in range(config.layers):
            if config.uses_mla(layer):
                layers.append(MLACache(kv_BTR=torch.zeros(batch, 0, R, device=device, dtype=dtype)))
            else:
                state = torch.zeros(batch, H, K, K, device=device)
                conv = torch.zeros(batch, config.conv_kernel - 1, 3 * H * K, device=device, dtype=dtype)
                layers.append(KDACache(state_BHKV=state, conv_BWD=conv))
        return cls(torch.zeros(batch, dtype=torch.long, device=device), layers)

    @property
    def batch(self) -> int:
        return len(self.lengths_B)

    def repeat(self, times: int) -> Cache:
        """A new cache with each row `times` times in a row: row b becomes rows b * times ... b * times + times - 1."""
        return self._map(lambda x: x.repeat_interleave(times, dim=0))

    def select(self, rows: Tensor) -> Cache:
        """A new cache of the given rows: int64 indices (repeats allowed) or a boolean mask."""
        return self._map(lambda x: x[rows])

    def _map(self, f: Callable[[Tensor], Tensor]) -> Cache:
        layers: list[KDACache | MLACache] = [
            MLACache(kv_BTR=f(layer.kv_BTR))
            if isinstance(layer, MLACache)
            else KDACache(state_BHKV=f(layer.state_BHKV), conv_BWD=f(layer.conv_BWD))
            for layer in self.layers
        ]
        return Cache(f(self.lengths_B), layers)
