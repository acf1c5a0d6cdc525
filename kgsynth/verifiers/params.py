"""What every verifier asks of its parameters. Each function raises VerifierError saying what is wrong and what is accepted.

`where` begins the message: the verifier's name, or with it the part of the parameters that is looked at ("programs: test 3").
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from kgsynth.errors import VerifierError

MAX_SECONDS = 600  # of anything that a task may ask to wait for


def only_known(where: str, params: Mapping[str, Any], known: Iterable[str]) -> None:
    """A misspelt parameter must not be ignored."""
    if unknown := sorted(set(params) - set(known), key=str):
        raise VerifierError(f"{where}: unknown parameter {unknown[0]!r}; it reads {', '.join(known)}")


def one_of(where: str, params: Mapping[str, Any], name: str, choices: Iterable[Any], *, required: bool = False) -> Any:
    """params[name], one of `choices`, of the same type; the first of them when it is not there and not required."""
    choices = tuple(choices)
    value = params.get(name, None if required else choices[0])
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise VerifierError(f"{where}: {name!r} must be one of {', '.join(map(repr, choices))}, not {value!r:.80}")
    return value


def whole(where: str, params: Mapping[str, Any], name: str, default: int | None, low: int, high: int) -> int:
    """params[name], an int from `low` to `high`; required when `default` is None."""
    value = params.get(name, default)
    if type(value) is not int or not low <= value <= high:
        raise VerifierError(f"{where}: {name!r} must be a whole number from {low} to {high}, not {value!r:.80}")
    return value


def real(
    where: str,
    params: Mapping[str, Any],
    name: str,
    default: float,
    low: float,
    high: float = sys.float_info.max,
    *,
    excluded: float | None = None,
) -> float:
    """params[name], a number from `low` to `high` but for one of these two, if that is `excluded`. Never NaN."""
    value = params.get(name, default)
    if not is_number(value) or not low <= value <= high or value == excluded:
        but = "" if excluded is None else f" but not {excluded:g}"
        raise VerifierError(f"{where}: {name!r} must be a number from {low:g} to {high:g}{but}, not {value!r:.80}")
    return value


def seconds(where: str, params: Mapping[str, Any], default: float) -> float:
    """params["seconds"], a sensible limit."""
    return real(where, params, "seconds", default, 0, MAX_SECONDS, excluded=0)


def identifier(where: str, params: Mapping[str, Any], name: str) -> str:
    """params[name], the name of a function or class."""
    value = params.get(name)
    if not isinstance(value, str) or not value.isidentifier():
        raise VerifierError(f"{where}: {name!r} must be an identifier, not {value!r:.80}")
    return value


def some(where: str, params: Mapping[str, Any], name: str, of: str) -> list[Any]:
    """params[name], a list that is not empty: what a task does not ask for, every answer has."""
    value = params.get(name)
    if not isinstance(value, (list, tuple)) or not value:
        raise VerifierError(f"{where}: {name!r} must be a list of at least one {of}, not {value!r:.80}")
    return list(value)


def texts(where: str, params: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """params[name], a list of non-blank strings; none when it is not there."""
    value = params.get(name, ())
    return () if value in ([], ()) else spellings(where, name, value)


def spellings(where: str, name: str, value: Any) -> tuple[str, ...]:
    """The value, a non-empty list of non-blank strings."""
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(v, str) and v.strip() for v in value):
        raise VerifierError(f"{where}: {name!r} must be a list of non-blank strings, not {repr(value)[:200]}")
    return tuple(value)


def is_number(value: Any) -> bool:
    """True and False are no numbers."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
