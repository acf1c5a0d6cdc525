"""The short convolution against torch's own, with state, padding and packing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

import kernels
from kernels.testing import assert_close


def _inputs(B: int = 2, T: int = 9, D: int = 5, W: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(B, T, D, generator=generator, dtype=torch.float64)
    return x, torch.randn(D, 1, W, generator=generator, dtype=torch.float64)


def test_equals_a_padded_depthwise_convolution_with_its_gradients() -> None:
    x, weight = (leaf.requires_grad_() for leaf in _inputs())
    expected = F.silu(F.conv1d(F.pad(x.mT, (3, 0)), weight, groups=5).mT)
    actual, none = kernels.short_conv(x, weight)
    assert none is None
    assert_close("y", actual, expected, max_error=1e-12, rms_error=1e-12)
    cotangent = torch.randn_like(expected)
    for a, e in zip(
        torch.autograd.grad(actual, (x, weight), cotangent),
        torch.autograd.grad(expected, (x, weight), cotangent),
        strict=True,
    ):
        assert_close("gradient", a, e, max_error=1e-12, rms_error=1e-12)


def test_state_continues_right_padded_rows() -> None:
    x, weight = _inputs(B=3)
    lengths = torch.tensor([9, 4, 1])
    whole, last = kernels.short_conv(x, weight, output_final_state=True)
    _, state = kernels.short_conv(x, weight, lengths=lengths - 1, output_final_state=True)
    assert last is not None
    assert state is not None
    at = (lengths - 1)[:, None, None].expand(3, 1, 5)
    step, after = kernels.short_conv(x.gather(1, at), weight, initial_state=state, output_final_state=True)
    assert_close("y", step, whole.gather(1, at), max_error=1e-12, rms_error=1e-12)
    assert after is not None
    assert torch.equal(after[0], last[0])
    assert torch.equal(after[2], torch.cat([torch.zeros(2, 5).double(), x[2, :1]]))


def test_packed_sequences_do_not_see_each_other() -> None:
    x, weight = _inputs(B=1)
    bounds = torch.tensor([0, 2, 3, 9])
    initial = torch.randn(3, 3, 5, dtype=torch.float64)
    y, state = kernels.short_conv(x, weight, cu_seqlens=bounds, initial_state=initial, output_final_state=True)
    assert state is not None
    for n in range(3):
        piece = slice(int(bounds[n]), int(bounds[n + 1]))
        alone, last = kernels.short_conv(x[:, piece], weight, initial_state=initial[n : n + 1], output_final_state=True)
        assert last is not None
        assert_close("y", y[:, piece], alone, max_error=1e-12, rms_error=1e-12)
        assert torch.equal(state[n : n + 1], last)
