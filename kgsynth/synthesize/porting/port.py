"""From a plain Python source to a whole source in another language, with what a caller has to know of it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kgsynth.synthesize.porting import c, javascript
from kgsynth.synthesize.porting.kinds import FLOAT, INT, CannotPort, Kind
from kgsynth.synthesize.porting.plain import without_else
from kgsynth.synthesize.porting.typing import Unit
from kgsynth.verifiers.code.source import tree_of

ARRAYS = {INT: "long[]", FLOAT: "double[]"}
SCALARS = {"int": "long", "float": "double", "bool": "bool", "str": "char*", "char": "char*"}


@dataclass(frozen=True, kw_only=True)
class Port:
    """A source in another language; `signature` and `head` are for C."""

    source: str
    returns: Kind
    signature: dict[str, Any] | None = None
    head: str = ""

    def arguments(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments of a call as the port takes them: lists with their length, room for a pair that comes out."""
        if self.signature is None:
            return tuple(args)
        given = [part for a in args for part in ([list(a), len(a)] if isinstance(a, list) else [a])]
        if self.returns.name != "tuple":
            return tuple(given)
        return (*given, [0.0 if self.returns.item == FLOAT else 0] * len(self.returns.items))


def port(source: str, name: str, kinds: Sequence[Kind], language: str) -> Port:
    """The plain source in JavaScript or C, for arguments of these types. Raises CannotPort."""
    unit = Unit(without_else(tree_of(source)))
    try:
        returns = unit.called(name, kinds)
    except (KeyError, ValueError, RecursionError) as error:
        raise CannotPort(f"{name}: {error}") from error
    writer = javascript.JavaScript if language == "javascript" else c.C
    writers = [writer(unit, unit.types[function]) for function in unit.order]
    functions = [w.function(w.name(f)) for w, f in zip(writers, unit.order, strict=True)]
    constants = [writers[0].constant(n, ast.literal_eval(unit.assigned[n])) for n in sorted(unit.constants)]
    helpers = javascript.HELPERS if language == "javascript" else c.HELPERS
    needed = {need for w in writers for need in w.needs}
    used = [text for need, text in helpers.items() if need in needed]
    whole = "\n\n".join([*(["\n".join(constants)] if constants else []), *used, *functions])
    if language == "javascript":
        return Port(source=whole, returns=returns)
    includes = "\n".join(f"#include <{header}>" for header in c.INCLUDES if _uses(header, whole))
    main = writers[unit.order.index(name)]
    assert isinstance(main, c.C)
    return Port(
        source=f"{includes}\n\n{whole}" if includes else whole,
        returns=returns,
        signature=_signature(kinds, returns),
        head=main.head(main.name(name)),
    )


def _signature(kinds: Sequence[Kind], returns: Kind) -> dict[str, Any]:
    """See `verifiers/code/c_calls.py`."""
    arguments = [part for kind in kinds for part in _types(kind)]
    if returns.name == "tuple":
        return {"arguments": [*arguments, ARRAYS[returns.item]], "returns": len(arguments)}
    return {"arguments": arguments, "returns": SCALARS[returns.name]}


def _types(kind: Kind) -> list[str]:
    if kind.name == "list":
        if kind.item not in ARRAYS:
            raise CannotPort(f"a list of {kind.item.name} in C")
        return [ARRAYS[kind.item], "long"]
    if kind.name not in SCALARS:
        raise CannotPort(f"a {kind.name} in C")
    return [SCALARS[kind.name]]


SIGNS = {"math.h": ("sqrt(", "pow(", "floor(", "ceil(", "fabs(", "fmod(", "fmin(", "fmax(", "log", "exp", "sin(", "cos(", "tan(", "M_", "trunc(", "INFINITY"), "stdbool.h": ("bool", "true", "false"), "stdlib.h": ("abort(", "labs("), "string.h": ("str", "NULL")}  # fmt: skip


def _uses(header: str, text: str) -> bool:
    return any(sign in text for sign in SIGNS[header])
