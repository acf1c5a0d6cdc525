"""What every verifier asks of its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kgsynth.errors import VerifierError


def only_known(verifier: str, params: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raises VerifierError naming a parameter that the verifier does not read: a misspelt one must not be ignored."""
    if unknown := sorted(set(params) - set(known), key=str):
        raise VerifierError(f"{verifier}: unknown parameter {unknown[0]!r}; it reads {', '.join(known)}")


def one_of(verifier: str, params: Mapping[str, Any], name: str, choices: tuple[Any, ...]) -> Any:
    """params[name], which must be one of `choices`, of the same type; the first of them when it is not there."""
    value = params.get(name, choices[0])
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise VerifierError(f"{verifier}: {name!r} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def spellings(verifier: str, name: str, value: Any) -> tuple[str, ...]:
    """A non-empty list of non-blank strings. Raises VerifierError for anything else."""
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(v, str) and v.strip() for v in value):
        raise VerifierError(f"{verifier}: {name!r} must be a list of non-blank strings, not {repr(value)[:200]}")
    return tuple(value)
