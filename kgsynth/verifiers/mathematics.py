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
from kgsynth.verifiers.params import is_number, one_of, only_known, real, texts

KINDS = ("number", "expression", "set", "interval", "tuple", "matrix", "equation")
FORMS = ("any", "value", "simplified", "factored", "expanded")
DOMAINS = ("real", "positive", "integer", "complex")
MAX_TOLERANCE = 0.1
MAX_LENGTH = 2000  # characters of an answer
KNOWN = ("expected", "kind", "tolerance", "variables", "form", "domain", "units")


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
    only_known("mathematics", params, KNOWN)
    given = {name: value for name, value in params.items() if value is not None}
    expected = given.get("expected")
    text = repr(expected) if is_number(expected) else expected
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_LENGTH:
        raise VerifierError(
            f"mathematics: 'expected' must be a number or a non-blank string of at most {MAX_LENGTH} characters, "
            f"not {expected!r:.80}"
        )
    question = {
        "expected": text,
        "kind": one_of("mathematics", {"kind": "expression", **given}, "kind", KINDS),
        "tolerance": real("mathematics", given, "tolerance", 0, 0, MAX_TOLERANCE),
        "variables": texts("mathematics", given, "variables"),
        "units": texts("mathematics", given, "units"),
    }
    for name, choices in (("form", FORMS), ("domain", DOMAINS)):
        if name in given:
            question[name] = one_of("mathematics", given, name, choices)
    return question
