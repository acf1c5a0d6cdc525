"""Is a result right? Compared outside every box: a candidate's bytes with a reference in fp64.

Errors are relative to the root mean square of what is expected. What is allowed follows the reference itself: a
multiple of the error that it makes in the task's own precision, so that sums in another order pass and half precision
does not. NaN matches nothing but NaN, and an infinity only itself.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kgsynth.errors import VerifierError
from kgsynth.verifiers.kernels.data import FLOATS

if TYPE_CHECKING:
    from numpy.typing import NDArray

EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
TIMES_MAX, TIMES_RMS = 16.0, 8.0  # of the reference's own error
# (max, rms) of the format's epsilon: another algorithm may be somewhat worse conditioned; single precision still tells
# itself from half, bfloat16 and TF32 (epsilon 2**-10 and more) by a factor of sixteen
FLOOR = {"float64": (256.0, 64.0), "float32": (256.0, 64.0), "float16": (16.0, 4.0), "bfloat16": (16.0, 4.0)}
CHECKED = 0.5  # of the elements must be finite in the task's precision: or the task checks next to nothing


@dataclass(frozen=True, kw_only=True)
class Error:
    """How far a result is from the reference, and what is allowed; all relative to the expected RMS."""

    reason: str = ""  # "" it passes; else "wrong", "wrong shape", "wrong dtype", "wrong layout", "wrong device"
    max: float = 0.0
    rms: float = 0.0
    allowed_max: float = 0.0
    allowed_rms: float = 0.0

    def shown(self) -> dict[str, Any]:
        return {key: float(f"{value:.3g}") for key, value in vars(self).items() if key != "reason"}


def compare(
    got: Sequence[Mapping[str, Any]],
    native: Sequence[Mapping[str, Any]],
    exact: Sequence[Mapping[str, Any]],
    tolerance: Mapping[str, float],
) -> Error:
    """The outputs of one call of a candidate, of the reference, and of the reference in fp64. The worst error of them."""
    if len(got) != len(native):
        return Error(reason="wrong shape")
    errors = [_compare(*three, tolerance) for three in zip(got, native, exact, strict=True)]
    return max(errors, key=lambda e: (bool(e.reason), e.max / (e.allowed_max or 1)), default=Error())


def _compare(
    got: Mapping[str, Any], native: Mapping[str, Any], exact: Mapping[str, Any], tolerance: Mapping[str, float]
) -> Error:
    if reason := _form(got, native):
        return Error(reason=reason)
    actual, usual, expected = array(got), array(native), array(exact)
    if actual.shape != expected.shape:
        return Error(reason="wrong shape")
    if native["dtype"] not in FLOATS:
        return Error() if bool((actual == usual).all()) else Error(reason="wrong", max=math.inf, rms=math.inf)
    return _floats(actual, usual, expected, native["dtype"], tolerance)


def _form(got: Mapping[str, Any], native: Mapping[str, Any]) -> str:
    if list(got["shape"]) != list(native["shape"]):
        return "wrong shape"
    if got["dtype"] != native["dtype"]:
        return "wrong dtype"
    if got["device"] != native["device"]:
        return "wrong device"
    count = math.prod(native["shape"])
    strides = [
        pair
        for pair, length in zip(zip(got["stride"], native["stride"], strict=True), native["shape"], strict=True)
        if length > 1
    ]
    return "wrong layout" if count and any(a != b for a, b in strides) else ""


def _floats(
    actual: NDArray[Any], usual: NDArray[Any], expected: NDArray[Any], dtype: str, tolerance: Mapping[str, float]
) -> Error:
    import numpy as np

    finite = np.isfinite(usual) & np.isfinite(expected)
    odd_matches = same_kind(actual, usual) | same_kind(actual, expected)
    if not bool((finite | odd_matches).all()) or not bool(np.isfinite(actual[finite]).all()):
        return Error(reason="wrong", max=math.inf, rms=math.inf)
    if not finite.any():
        return Error()
    scale = max(float(np.sqrt(np.mean(np.square(expected[finite])))), 1e-300)
    largest, rms = _deviation(actual[finite], expected[finite], scale)
    own_max, own_rms = _deviation(usual[finite], expected[finite], scale)
    allowed_max = tolerance.get("max", TIMES_MAX * own_max + FLOOR[dtype][0] * EPS[dtype])
    allowed_rms = tolerance.get("rms", TIMES_RMS * own_rms + FLOOR[dtype][1] * EPS[dtype])
    passes = largest <= allowed_max and rms <= allowed_rms
    return Error(
        reason="" if passes else "wrong", max=largest, rms=rms, allowed_max=allowed_max, allowed_rms=allowed_rms
    )


def _deviation(actual: NDArray[Any], expected: NDArray[Any], scale: float) -> tuple[float, float]:
    import numpy as np

    difference = np.abs(actual - expected) / scale
    return float(difference.max()), float(np.sqrt(np.mean(np.square(difference))))


def same_kind(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Elementwise: both finite, both NaN, or the same infinity."""
    import numpy as np

    infinite = np.isinf(left) & np.isinf(right) & (np.signbit(left) == np.signbit(right))
    return (np.isfinite(left) & np.isfinite(right)) | (np.isnan(left) & np.isnan(right)) | infinite


def array(output: Mapping[str, Any]) -> NDArray[Any]:
    """The bytes of an output as numbers, floats as float64. bfloat16 is the upper half of float32."""
    import numpy as np

    raw, dtype = base64.b64decode(output["data"]), output["dtype"]
    if dtype == "bfloat16":
        flat = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        flat = np.frombuffer(raw, dtype)
    return (flat.astype(np.float64) if dtype in FLOATS else flat).reshape(output["shape"])


def check_reference(native: Sequence[Mapping[str, Any]], exact: Sequence[Mapping[str, Any]]) -> None:
    """Raises VerifierError for a reference by which nothing can be judged."""
    import numpy as np

    if not native:
        raise VerifierError("kernel: the reference returns no tensor")
    for usual, precise in zip(native, exact, strict=True):
        if usual["shape"] != precise["shape"]:
            raise VerifierError("kernel: the reference returns other shapes in float64 than in the dtypes of the task")
        if usual["dtype"] in FLOATS and math.prod(usual["shape"]):
            finite = np.isfinite(array(usual)) & np.isfinite(array(precise))
            if finite.mean() < CHECKED:
                raise VerifierError("kernel: most of what the reference returns is not finite; choose tamer values")
