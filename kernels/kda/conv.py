"""The short causal depthwise convolution in front of q, k and v."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def short_conv(
    x: Tensor,
    weight: Tensor,
    *,
    activation: bool = True,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """y_t = silu(sum_w weight[:, w] x_{t - (W - 1) + w}), separately per channel.

    Args:
        x: [B, T, D].  weight: [D, W] or [D, 1, W].  activation: whether silu is applied.
        initial_state: [N, W - 1, D], the inputs before the first one; zeros by default.
        lengths: [B] valid tokens of each right-padded row; only the final state depends on it.
        cu_seqlens: [N + 1] boundaries of N sequences packed in one row (B = 1).

    Returns:
        y [B, T, D] and the last W - 1 valid inputs of each sequence [N, W - 1, D], or None.
    """
    if cu_seqlens is not None:
        return _packed(x, weight, cu_seqlens, activation, initial_state, output_final_state)
    B, T, D = x.shape
    taps = weight.reshape(D, -1).T.to(x.dtype)
    before = len(taps) - 1
    history = F.pad(x, (0, 0, before, 0)) if initial_state is None else torch.cat([initial_state.to(x.dtype), x], 1)
    y = _Convolve.apply(history, taps)
    if activation:
        y = F.silu(y)
    if not output_final_state:
        return y, None
    ends = torch.full((B,), T, device=x.device) if lengths is None else lengths
    at = ends[:, None] + torch.arange(before, device=x.device)
    return y, history.gather(1, at[..., None].expand(B, before, D))


class _Convolve(torch.autograd.Function):
    """history [B, W - 1 + T, D] and taps [W, D] -> [B, T, D]; its gradient allocates one buffer, not one per tap."""

    @staticmethod
    def forward(ctx: Any, history: Tensor, taps: Tensor) -> Tensor:
        ctx.save_for_backward(history, taps)
        T = history.shape[1] - len(taps) + 1
        y = history[:, :T] * taps[0]
        for w in range(1, len(taps)):
            y.addcmul_(history[:, w : w + T], taps[w])
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        history, taps = ctx.saved_tensors
        (dy,) = grads
        T = dy.shape[1]
        dhistory, dtaps = torch.zeros_like(history), torch.empty_like(taps)
        for w in range(len(taps)):
            dhistory[:, w : w + T].addcmul_(dy, taps[w])
            dtaps[w] = (dy * history[:, w : w + T]).sum((0, 1))
        return dhistory, dtaps


def _packed(
    x: Tensor, weight: Tensor, cu_seqlens: Tensor, activation: bool, state: Tensor | None, output_final_state: bool
) -> tuple[Tensor, Tensor | None]:
    lengths = cu_seqlens.diff()
    row = torch.repeat_interleave(torch.arange(len(lengths), device=x.device), lengths)
    at = torch.arange(x.shape[1], device=x.device) - cu_seqlens[row]
    padded = x.new_zeros(len(lengths), int(lengths.max()), x.shape[-1]).index_put((row, at), x[0])
    y, state = short_conv(
        padded, weight, activation=activation, initial_state=state,
        output_final_state=output_final_state, lengths=lengths,
    )  # fmt: skip
    return y[row, at][None], state
