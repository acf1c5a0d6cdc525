"""What a kernel task says, checked: the reference, the tensors it takes at which sizes, bounds, bans, and the speed asked.

Private seeds come from here: every call's seed is derived from the task's with a key that no box ever holds.
"""

from __future__ import annotations

import ast
import hashlib
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from kgsynth.errors import VerifierError
from kgsynth.verifiers.code.source import parse, problem
from kgsynth.verifiers.kernels.data import FLOATS, KINDS, SIZES, layout
from kgsynth.verifiers.params import MAX_SECONDS, identifier, is_number, one_of, only_known, real, some, whole

USUAL = ("normal", "shifted", "wide")  # kinds of values when the task names none
MOST_BYTES = 64 << 20  # of the inputs of one call, and of the results of one run
KNOWN = (
    "name", "reference", "init", "weights", "inputs", "sizes", "seed", "repeats", "tolerance", "banned_ops",
    "imports", "device", "threads", "seconds", "speed",
)  # fmt: skip
KNOWN_SPEED = {"target", "sizes", "flops", "bytes", "peak", "calls"}
# Operators by which a library does the work of a matrix product.
MATMUL = (
    "mm", "bmm", "addmm", "addbmm", "baddbmm", "mv", "addmv", "dot", "vdot", "inner", "linear", "matmul", "_addmm_activation",
    "_int_mm", "_scaled_mm", "_grouped_mm", "convolution", "_convolution", "mkldnn_convolution", "convolution_overrideable",
    "_cdist_forward", "_euclidean_dist", "scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention", "_trilinear",
)  # fmt: skip
GROUPS = {"matmul": MATMUL}


@dataclass(frozen=True, kw_only=True)
class Speed:
    """What is asked of the speed. Times are seconds."""

    targets: tuple[float, ...]  # of reference time / candidate time, ascending
    sizes: tuple[Mapping[str, int], ...]
    flops: str  # of one call, an expression in the names of the sizes; "" unknown
    moved: str  # bytes that one call must move; "" those of its results
    peak: Mapping[str, float]  # {"flops": per second, "bytes": per second}; what is missing is measured
    calls: int  # timed in one run, for each size


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A kernel task."""

    name: str
    reference: str
    init: tuple[Any, ...]
    weights: tuple[Mapping[str, Any], ...]
    inputs: tuple[Mapping[str, Any], ...]
    sizes: tuple[Mapping[str, int], ...]
    seed: int | str
    repeats: int
    tolerance: Mapping[str, float]
    banned: tuple[str, ...]
    imports: tuple[str, ...]
    device: str
    threads: int
    seconds: float
    speed: Speed | None

    def variants(self) -> int:
        """In how many ways the inputs are filled."""
        return max([1, *[len(kinds(tensor)) for tensor in self.inputs if "shape" in tensor]])

    def tensors(self, size: Mapping[str, int], variant: int) -> list[dict[str, Any]]:
        """The arguments of a call, as `data.make` takes them."""
        return [resolve(tensor, size, variant) for tensor in self.inputs]

    def resolved_weights(self) -> list[dict[str, Any]]:
        return [resolve(weight, {}, 0) for weight in self.weights]

    def seed_of(self, *labels: object) -> int:
        """A private seed: nothing that was seen of one tells anything of another."""
        text = repr((self.seed, self.name, self.reference, labels)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big")


def resolve(tensor: Mapping[str, Any], size: Mapping[str, int], variant: int) -> dict[str, Any]:
    if "value" in tensor:
        return {"value": tensor["value"]}
    chosen = kinds(tensor)[variant % len(kinds(tensor))]
    shape = [evaluate(length, size) for length in tensor["shape"]]
    named = {"name": tensor["name"]} if "name" in tensor else {}
    return {
        "shape": [int(length) for length in shape],
        "dtype": tensor.get("dtype", "float32"),
        "values": chosen,
        "transposed": bool(tensor.get("transposed", False)),
        **named,
    }


def kinds(tensor: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ways to fill a tensor, each {"kind": ..., parameters}."""
    usual = USUAL if tensor.get("dtype", "float32") in FLOATS else ("integers",)
    given = tensor.get("values", usual)
    listed = [given] if isinstance(given, (str, Mapping)) else list(given)
    return [{"kind": one} if isinstance(one, str) else dict(one) for one in listed]


OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def evaluate(expression: object, size: Mapping[str, int]) -> float:
    """A number, or an expression in + - * / // and the names of the sizes. Raises VerifierError for any other."""
    if is_number(expression):
        return cast(float, expression)

    def value(node: ast.AST) -> float:
        match node:
            case ast.Expression(body=body):
                return value(body)
            case ast.Constant(value=int(number)) | ast.Constant(value=float(number)):
                return number
            case ast.Name(id=name) if name in size:
                return size[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](value(left), value(right))
        raise ValueError("it is made of more than + - * / //, numbers and the names of the sizes")

    try:
        return value(parse(str(expression)[:500], mode="eval"))
    except (ValueError, ZeroDivisionError, RecursionError) as error:
        raise VerifierError(f"kernel: cannot evaluate {expression!r:.80} for {dict(size)}: {error}") from error


# --------------------------------------------------------------------------------------------------------- checks


def spec_of(params: Mapping[str, Any]) -> Spec:
    """The task. Raises VerifierError for whatever is missing, unknown, contradictory or too large."""
    only_known("kernel", params, KNOWN)
    name, reference = identifier("kernel", params, "name"), params.get("reference")
    if not isinstance(reference, str) or problem(reference, name):
        raise VerifierError(f"kernel: 'reference' must be Python source that defines {name!r}")
    if "seed" not in params or not isinstance(params["seed"], (int, str)):
        raise VerifierError("kernel: 'seed' must be a private number or text; it is never shown to a model")
    spec = Spec(
        name=name,
        reference=reference,
        init=tuple(_sequence(params, "init", ())),
        weights=tuple(_tensors(params, "weights", named=True)),
        inputs=tuple(_tensors(params, "inputs")),
        sizes=_sizes(params),
        seed=params["seed"],
        repeats=whole("kernel", params, "repeats", 3, 1, 100),
        tolerance=_tolerance(params.get("tolerance", {})),
        banned=tuple(_operators(_sequence(params, "banned_ops", ()))),
        imports=tuple(map(str, _sequence(params, "imports", ()))),
        device=one_of("kernel", params, "device", ("cpu", "cuda")),
        threads=whole("kernel", params, "threads", 1, 1, 64),
        seconds=real("kernel", params, "seconds", 20.0, 0.1, MAX_SECONDS),
        speed=_speed(params["speed"], params) if params.get("speed") else None,
    )
    _check_room(spec)
    return spec


def _sequence(params: Mapping[str, Any], key: str, default: Sequence[Any]) -> Sequence[Any]:
    value = params.get(key, default)
    if not isinstance(value, (list, tuple)):
        raise VerifierError(f"kernel: {key!r} must be a list, not {value!r:.80}")
    return value


def _tensors(params: Mapping[str, Any], key: str, *, named: bool = False) -> Iterator[Mapping[str, Any]]:
    tensors = _sequence(params, key, ())
    if not named and not any(isinstance(tensor, Mapping) and "shape" in tensor for tensor in tensors):
        raise VerifierError(f"kernel: {key!r} must describe at least one tensor, e.g. {{'shape': ['N', 64]}}")
    for index, tensor in enumerate(tensors):
        label = f"kernel: {key}[{index}]"
        if not isinstance(tensor, Mapping) or ("shape" in tensor) == ("value" in tensor):
            raise VerifierError(f"{label} needs either 'shape' or 'value'")
        if named and (not isinstance(tensor.get("name"), str) or "shape" not in tensor):
            raise VerifierError(f"{label} needs 'shape' and the 'name' it has in the module's state_dict")
        if not named and "name" in tensor:
            raise VerifierError(f"{label}: inputs are passed by position and have no 'name'")
        if "shape" in tensor:
            _check_tensor(label, tensor)
        yield tensor


def _check_tensor(label: str, tensor: Mapping[str, Any]) -> None:
    if not isinstance(tensor["shape"], (list, tuple)):
        raise VerifierError(f"{label}: 'shape' must be a list of numbers and expressions, not {tensor['shape']!r:.80}")
    if tensor.get("dtype", "float32") not in SIZES:
        raise VerifierError(f"{label}: unknown dtype {tensor['dtype']!r:.80}; known: {', '.join(SIZES)}")
    if tensor.get("transposed") and len(tensor["shape"]) < 2:
        raise VerifierError(f"{label}: only a tensor of two dimensions or more can be 'transposed'")
    if not kinds(tensor):
        raise VerifierError(f"{label}: 'values' must name at least one kind")
    for values in kinds(tensor):
        kind = values.get("kind")
        if kind not in KINDS or set(values) - {"kind"} - set(KINDS[kind]):
            raise VerifierError(f"{label}: unknown values {values!r:.80}; known: {KINDS}")
        if any(not is_number(v) for k, v in values.items() if k != "kind"):
            raise VerifierError(f"{label}: the parameters of values are numbers, not {values!r:.80}")


def _sizes(params: Mapping[str, Any]) -> tuple[Mapping[str, int], ...]:
    sizes = some("kernel", {"sizes": [{}], **params}, "sizes", "{name: length}")
    for size in sizes:
        if not isinstance(size, Mapping) or not all(type(v) is int and 0 <= v < 1 << 40 for v in size.values()):
            raise VerifierError(f"kernel: a size is a {{name: whole number}}, not {size!r:.80}")
    return tuple(sizes)


def _tolerance(tolerance: object) -> Mapping[str, float]:
    if not isinstance(tolerance, Mapping) or set(tolerance) - {"max", "rms"}:
        raise VerifierError(
            f"kernel: 'tolerance' may have 'max' and 'rms', each of the expected RMS, not {tolerance!r}"
        )
    return {key: real("kernel: 'tolerance'", tolerance, key, 0, 0, 1e3) for key in tolerance}


def _operators(names: Sequence[Any]) -> Iterator[str]:
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise VerifierError(f"kernel: 'banned_ops' holds names of aten operators or {sorted(GROUPS)}, not {name!r}")
        yield from GROUPS.get(name, (name,))


def _speed(speed: object, params: Mapping[str, Any]) -> Speed:
    if not isinstance(speed, Mapping) or set(speed) - KNOWN_SPEED or "target" not in speed:
        raise VerifierError(f"kernel: 'speed' needs 'target' and may have {sorted(KNOWN_SPEED)}, not {speed!r:.80}")
    given = speed["target"]
    targets = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    targets = tuple(real("kernel", {"target": target}, "target", 0, 1.05, 1e6) for target in targets)
    if not targets or list(targets) != sorted(set(targets)):
        raise VerifierError(f"kernel: the targets of the speed must ascend, not {given!r:.80}")
    peak = speed.get("peak", {})
    if not isinstance(peak, Mapping) or set(peak) - {"flops", "bytes"}:
        raise VerifierError(f"kernel: 'peak' may have 'flops' and 'bytes', each per second, not {peak!r:.80}")
    return Speed(
        targets=targets,
        sizes=_sizes({**params, **speed}),
        flops=str(speed.get("flops", "")),
        moved=str(speed.get("bytes", "")),
        peak={key: real("kernel: 'peak'", peak, key, 0, 1e-3, 1e18) for key in peak},
        calls=whole("kernel: 'speed'", speed, "calls", 9, 3, 1000),
    )


def _check_room(spec: Spec) -> None:
    """All sizes can be worked out, and fit."""
    spec.resolved_weights()
    for size in (*spec.sizes, *(spec.speed.sizes if spec.speed else ())):
        for variant in range(spec.variants()):
            tensors = spec.tensors(size, variant)
            if any(min(t["shape"], default=0) < 0 for t in tensors if "shape" in t):
                raise VerifierError(f"kernel: a shape has a negative length at {dict(size)}")
            total = layout(tensors, doubled=True)[1]
            if total > MOST_BYTES or not math.isfinite(total):
                raise VerifierError(
                    f"kernel: the inputs at {dict(size)} take {total >> 20} MB in float64; make them smaller than {MOST_BYTES >> 20} MB"
                )
        if spec.speed:
            for expression in filter(None, (spec.speed.flops, spec.speed.moved)):
                evaluate(expression, size)
