"""`mathematics`: numbers, expressions, sets, intervals, tuples, matrices and equations, equal by value, in any fair notation.

Read with math-verify's parser and decided by value (`algebra/`), in a process of its own: parsers and algebra hang and
eat memory on what a model may write, and libraries that bound themselves with signals work in the main thread only.
An answer is data there, never code: its characters and commands are a closed list, nothing on its way evaluates
text, and the process refuses to compile any, to write a file, to start a program and to open a socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.algebra import client
from kgsynth.verifiers.answer import extract

KINDS = ("number", "expression", "set", "interval", "tuple", "matrix", "equation")
FORMS = ("any", "value", "simplified", "factored", "expanded")
DOMAINS = ("real", "positive", "integer", "complex")
MAX_TOLERANCE = 0.1
MAX_LENGTH = 2000  # characters of an answer
OPTIONS = ("expected", "kind", "tolerance", "variables", "form", "domain", "units")


@register("mathematics")
def mathematics(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"expected": "\\\\frac{1}{2}", "kind": "number", ...}, in LaTeX or plain text.

    kind: number, expression (with variables), set (finite), interval (any set of reals), tuple, matrix, equation (and
        inequality). A list where one value is wanted is "several answers".
    tolerance: relative, at most 0.1, for numbers; none: exact, 0.33 is not 1/3.
    form: "any", "value", "simplified", "factored", "expanded"; default "value" for numbers (2+2 is not 4 yet), "any"
        for what has variables.
    variables: names that the value may be given to ("x = 5"); the order of a tuple.
    domain: "real", "positive", "integer" or "complex" variables.
    units: spellings of the unit; it may be left out, another one is wrong. None: any unit is dropped.

    Reasons beside those of `answer.py`: see `algebra/rejection.py`. Raises VerifierError for bad params, SandboxError
    when it could not be judged (its process was killed, or the machine is too busy).
    """
    question = _question(params)
    text, missing = extract(answer, MAX_LENGTH)
    if missing:
        return Verdict(score=0.0, reason=missing)
    reply = client.calculator.ask({**question, "answer": text})
    if fault := reply.get("fault"):
        raise VerifierError(f"mathematics: 'expected' cannot be used: {fault}")
    return Verdict(score=float(reply["reason"] == "right"), reason=reply["reason"], evidence={"read": text[:200]})


def _question(params: Mapping[str, Any]) -> dict[str, Any]:
    expected, tolerance = params.get("expected"), params.get("tolerance") or 0
    kind, variables, units = params.get("kind", "expression"), params.get("variables") or [], params.get("units") or []
    number = isinstance(expected, (int, float)) and not isinstance(expected, bool)
    text = repr(expected) if number else expected
    faults = {
        f"'expected' must be a non-blank string of at most {MAX_LENGTH} characters or a number, not {expected!r:.80}": not (
            isinstance(text, str) and text.strip() and len(text) <= MAX_LENGTH
        ),
        f"'kind' must be one of {', '.join(KINDS)}, not {kind!r}": kind not in KINDS,
        f"'tolerance' must be a relative error between 0 and {MAX_TOLERANCE}, not {tolerance!r}": isinstance(
            tolerance, bool
        )
        or not isinstance(tolerance, (int, float))
        or not 0 <= tolerance <= MAX_TOLERANCE,
        f"'form' must be one of {', '.join(FORMS)}, not {params.get('form')!r}": (params.get("form") or "any")
        not in FORMS,
        f"'domain' must be one of {', '.join(DOMAINS)}, not {params.get('domain')!r}": (params.get("domain") or "real")
        not in DOMAINS,
        f"'variables' must be a list of names, not {variables!r}": not _are_texts(variables),
        f"'units' must be a list of spellings, not {units!r}": not _are_texts(units),
        f"unknown parameters {sorted(set(params) - set(OPTIONS))}; known: {', '.join(OPTIONS)}": set(params)
        - set(OPTIONS),
    }
    for fault, found in faults.items():
        if found:
            raise VerifierError(f"mathematics: {fault}")
    chosen = {name: params[name] for name in ("form", "domain") if params.get(name)}
    return {"expected": text, "kind": kind, "tolerance": tolerance, "variables": variables, "units": units, **chosen}


def _are_texts(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and all(isinstance(value, str) and value.strip() for value in values)
