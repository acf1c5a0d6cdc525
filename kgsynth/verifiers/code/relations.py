"""What a property may say about a function, judged outside its process, on encoded values.

    equals        {"reference": source} or {"outputs": [...]}: the result, up to "tolerance", is what a trusted Python
                  function of the same name returns (it runs in a box of its own), or what was computed earlier
    checker       {"source": source}: a trusted `check(args, result)` returns True, in a box that never saw the answer
    round trip    {"inverse": "decode"}: that function of the answer, in a fresh box, leads back to the argument
    idempotent    f(f(x)) is f(x)             involution   f(f(x)) is x           (the second call in a fresh box)
    commutative   f(a, b) is f(b, a)          monotone     x <= y implies f(x) <= f(y), or >= with "reverse"
    sorted        the result is in order ("reverse": in falling order)
    permutation   the result has the items (or characters) of argument "of", each as often
    length        the result has as many items as argument "of"
    type          {"type": "list"}            bounds       {"min": 0, "max": 9}, either may be missing

A relation says which case breaks it first. Values come from an answer: they may be of any type and any size the codec
takes, and comparing them raises nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.verifiers.code import runner
from kgsynth.verifiers.code.calls import Outcome
from kgsynth.verifiers.code.generated import SIMPLE
from kgsynth.verifiers.code.values import TOLERANCE, decode, same
from kgsynth.verifiers.params import identifier, is_number, only_known, whole

SIZED = ("list", "tuple", "text", "bytes", "dict")
UNORDERED = (TypeError, ValueError, ArithmeticError, RecursionError, VerifierError)
Apply = Callable[[str, Sequence[Any]], Sequence[Any]]  # a function's name, tuples of arguments -> results, None: failed


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A function, the arguments it was called on and what came out: all values are encoded."""

    name: str
    args: Sequence[Any]  # ["tuple", ...] per case
    results: Sequence[Any]
    apply: Apply  # calls a function of the answer, in a fresh box; Failed() where it returns nothing
    trusted: Callable[[str, str, Sequence[Any]], list[Outcome]]  # the same for a source of ours
    loose: bool = False  # see `values.same`

    def same(self, a: Any, b: Any, tolerance: float = TOLERANCE) -> bool:
        return same(a, b, tolerance, loose=self.loose)


class Failed:
    """Stands for the result of a call that returned nothing; it is equal to no value."""


Relation = Callable[[Mapping[str, Any], Trial], "int | None"]


def _first(holds: Iterable[bool]) -> int | None:
    """The number of the first case that breaks the property."""
    return next((number for number, held in enumerate(holds) if not held), None)


def _equals(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    outputs = wanted.get("outputs")
    if outputs is None:
        outputs = _reference_outputs(wanted["reference"], trial)
    if len(outputs) != len(trial.results):
        raise VerifierError(f"properties: {len(outputs)} 'outputs' for {len(trial.results)} cases")
    tolerance = wanted.get("tolerance", TOLERANCE)
    return _first(trial.same(a, b, tolerance) for a, b in zip(trial.results, outputs, strict=True))


def _reference_outputs(source: str, trial: Trial) -> list[Any]:
    outcomes = trial.trusted(source, trial.name, trial.args)
    for number, outcome in enumerate(outcomes):
        if outcome.kind != "returned":
            raise VerifierError(f"properties: the reference fails on case {number}: {outcome.kind} {outcome.detail}")
    return [outcome.value for outcome in outcomes]


def _checker(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    pairs = [["tuple", args, result] for args, result in zip(trial.args, trial.results, strict=True)]
    outcomes = trial.trusted(wanted["source"], "check", pairs)
    broken = ("syntax error", "no such function", "load error")
    if outcomes and all(o.kind == "failed" and o.detail.split(":")[0] in broken for o in outcomes):
        raise VerifierError(f"properties: the checker cannot be run: {outcomes[0].detail}")
    return _first(o.kind == "returned" and o.value is True for o in outcomes)


def _round_trip(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    back = trial.apply(wanted["inverse"], [["tuple", result] for result in trial.results])
    return _first(trial.same(a, args[1]) for a, args in zip(back, trial.args, strict=True))


def _idempotent(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    again = trial.apply(trial.name, [["tuple", result] for result in trial.results])
    return _first(trial.same(a, b) for a, b in zip(again, trial.results, strict=True))


def _involution(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    return _round_trip({"inverse": trial.name}, trial)


def _commutative(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    swapped = trial.apply(trial.name, [["tuple", b, a] for _, a, b in trial.args])
    return _first(trial.same(a, b) for a, b in zip(swapped, trial.results, strict=True))


def _monotone(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    order = sorted(range(len(trial.args)), key=lambda number: decode(trial.args[number][1]))
    fits = _in_order([trial.results[number] for number in order], wanted)
    return order[fits] if fits is not None else None


def _sorted(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    parts = map(_items, trial.results)
    return _first(items is not None and _in_order(items, wanted) is None for items in parts)


def _in_order(forms: Sequence[Any], wanted: Mapping[str, Any]) -> int | None:
    """The number of the first item that is out of order, or cannot be compared with the one before."""
    try:
        values = [decode(form) for form in forms]
    except UNORDERED:
        return 0
    for number, (a, b) in enumerate(pairwise(values), 1):
        try:
            if not (a >= b if wanted.get("reverse") else a <= b):
                return number
        except UNORDERED:
            return number
    return None


def _permutation(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    of = 1 + wanted.get("of", 0)
    pairs = zip(trial.results, trial.args, strict=True)
    return _first(_counted(result, trial.loose) == _counted(args[of], trial.loose) for result, args in pairs)


def _counted(form: Any, loose: bool) -> Counter[str] | float:
    """How often each item occurs. What has no items is equal to nothing: NaN."""
    items = _items(form)
    if items is None:
        return float("nan")
    return Counter(runner.to_json(_plain(item) if loose else item) for item in items)


def _items(form: Any) -> list[Any] | None:
    """The items of a list or tuple, the characters of a text; None for any other value."""
    if isinstance(form, list) and form[:1] in (["list"], ["tuple"]):
        return form[1:]
    value = decode(form) if isinstance(form, str) or (isinstance(form, list) and form[:1] == ["surrogates"]) else None
    return list(value) if value is not None else None


def _plain(form: Any) -> Any:
    """One spelling for numbers that are the same in a language with one kind of them."""
    if not isinstance(form, list) or form[:1] != ["float"]:
        return form
    value = float(form[1])
    return int(value) if value.is_integer() and abs(value) < 2**53 else ["float", repr(value)]


def _length(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    of = 1 + wanted.get("of", 0)
    pairs = zip(trial.results, trial.args, strict=True)
    return _first(_size(r) == _size(args[of]) for r, args in pairs)


def _size(form: Any) -> int:
    try:
        return len(decode(form))
    except UNORDERED:
        return -1


def _type(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    return _first(_type_name(result) == wanted["type"] for result in trial.results)


def _type_name(form: Any) -> str:
    if isinstance(form, list):
        return "str" if form[:1] == ["surrogates"] else str(form[0]) if form else ""
    return type(form).__name__ if form is not None else "None"


def _bounds(wanted: Mapping[str, Any], trial: Trial) -> int | None:
    low, high = wanted.get("min", float("-inf")), wanted.get("max", float("inf"))
    return _first(_within(result, low, high) for result in trial.results)


def _within(form: Any, low: float, high: float) -> bool:
    try:
        value = decode(form)
        return not isinstance(value, bool) and bool(low <= value <= high)
    except UNORDERED:
        return False


RELATIONS: dict[str, Relation] = {
    "type": _type,
    "bounds": _bounds,
    "length": _length,
    "sorted": _sorted,
    "permutation": _permutation,
    "monotone": _monotone,
    "equals": _equals,
    "idempotent": _idempotent,
    "involution": _involution,
    "commutative": _commutative,
    "round trip": _round_trip,
    "checker": _checker,
}
KEYS = {
    "type": ("type",),
    "bounds": ("min", "max"),
    "length": ("of",),
    "sorted": ("reverse",),
    "permutation": ("of",),
    "monotone": ("reverse",),
    "equals": ("reference", "outputs", "tolerance"),
    "idempotent": (),
    "involution": (),
    "commutative": (),
    "round trip": ("inverse",),
    "checker": ("source",),
}
ARITY = {"idempotent": 1, "involution": 1, "round trip": 1, "monotone": 1, "commutative": 2}


def check(label: str, wanted: Any, inputs: Sequence[Mapping[str, Any]], language: str) -> None:
    """Raises VerifierError unless this is a property of a function with these inputs."""
    relation = str(wanted.get("relation")) if isinstance(wanted, Mapping) else None
    if relation not in RELATIONS:
        raise VerifierError(f"{label} needs 'relation', one of {', '.join(RELATIONS)}; not {wanted!r:.80}")
    only_known(f"{label} ({relation})", wanted, ("relation", *KEYS[relation]))
    if ARITY.get(relation, len(inputs)) != len(inputs):
        raise VerifierError(f"{label}: {relation} is for functions of {ARITY[relation]} arguments, not {len(inputs)}")
    if relation == "round trip" and language == "c":
        raise VerifierError(f"{label}: a round trip needs a second signature: not in c")
    _check_texts(label, relation, wanted)
    _check_numbers(label, relation, wanted, inputs)


def _check_texts(label: str, relation: str, wanted: Mapping[str, Any]) -> None:
    for key in {"type": ["type"], "checker": ["source"]}.get(relation, []):
        if not isinstance(wanted.get(key), str) or not wanted[key]:
            raise VerifierError(f"{label}: {relation} needs {key!r}, a text")
    if relation == "round trip":
        identifier(label, wanted, "inverse")
    if relation == "equals":
        reference, outputs = wanted.get("reference"), wanted.get("outputs")
        if (reference is None) == (outputs is None):
            raise VerifierError(f"{label}: equals needs either 'reference', a source, or 'outputs', a list")
        if not isinstance(reference or "", str) or not isinstance(outputs or [], (list, tuple)):
            raise VerifierError(f"{label}: 'reference' must be a source and 'outputs' a list of encoded values")
        for output in outputs or ():
            decode(output)


def _check_numbers(label: str, relation: str, wanted: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]]) -> None:
    for key in ("min", "max", "tolerance"):
        if not is_number(wanted.get(key, 0)):
            raise VerifierError(f"{label}: {key!r} must be a number, not {wanted[key]!r}")
    if relation == "bounds" and not {"min", "max"} & set(wanted):
        raise VerifierError(f"{label}: bounds needs 'min' or 'max'")
    if relation == "monotone" and (inputs[0]["kind"] not in SIMPLE or inputs[0].get("special")):
        raise VerifierError(f"{label}: monotone is for {', '.join(SIMPLE)} (not special), which have an order")
    if relation not in ("length", "permutation"):
        return
    of = whole(label, wanted, "of", 0, 0, len(inputs) - 1)  # the number of an argument
    if inputs[of]["kind"] not in (("list", "tuple", "text") if relation == "permutation" else SIZED):
        raise VerifierError(f"{label}: argument {of} is of kind {inputs[of]['kind']} and has no items")
