"""Error bounds for kernels: the largest and the root-mean-square deviation, both relative to the expected RMS."""

from __future__ import annotations

import torch
from torch import Tensor


def errors(actual: Tensor, expected: Tensor) -> tuple[float, float]:
    """(max, rms) of actual - expected, divided by the RMS of expected, computed in fp64."""
    actual, expected = actual.detach(), expected.detach()
    difference = actual.double() - expected.double()
    size = expected.double().square().mean().sqrt().clamp_min(1e-30)
    return float(difference.abs().max() / size), float(difference.square().mean().sqrt() / size)


def assert_close(name: str, actual: Tensor, expected: Tensor, *, max_error: float, rms_error: float) -> None:
    """Raise AssertionError, saying by how much, unless both bounds of `errors` hold and all values are finite."""
    assert actual.shape == expected.shape, f"{name}: shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    assert bool(torch.isfinite(actual).all()), f"{name}: {int((~torch.isfinite(actual)).sum())} values are not finite"
    largest, rms = errors(actual, expected)
    assert largest <= max_error, f"{name}: max error {largest:.2e} > {max_error:.0e} of the RMS"
    assert rms <= rms_error, f"{name}: rms error {rms:.2e} > {rms_error:.0e} of the RMS"
