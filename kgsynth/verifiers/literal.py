"""`literal`: what a snippet prints. Equal text, or equal Python literals of equal types."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract
from kgsynth.verifiers.code.source import parse
from kgsynth.verifiers.code.values import encode, same
from kgsynth.verifiers.params import only_known

MAX_DEPTH = 60
CODE = re.compile(r"`([^`\n]+)`")


@register("literal")
def literal(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"value": "[1, 2]"}. `[1,2]` is right too, also in code marks; `(1, 2)`, `[1.0, 2]`, `[True, 2]` are not."""
    only_known("literal", params, ("value",))
    value = params.get("value")
    if not isinstance(value, str) or not value.strip():
        raise VerifierError(f"literal: 'value' must be a non-blank string, not {value!r}")
    given, missing = extract(answer)
    if missing:
        return Verdict(score=0.0, reason=missing)
    right = any(form == value.strip() or _equal_literals(form, value) for form in {given.strip(), _bare(given)})
    return Verdict(score=float(right), reason="right" if right else "wrong")


def _bare(text: str) -> str:
    """The text without one pair of code marks around it."""
    code = CODE.fullmatch(text.strip())
    return code[1].strip() if code else text.strip()


def _equal_literals(a: str, b: str) -> bool:
    """Floats are compared exactly here: both sides are texts somebody wrote."""
    try:
        return same(_parse(a), _parse(b), tolerance=0.0)
    except (ValueError, TypeError, MemoryError, RecursionError, VerifierError):
        return False


def _parse(text: str) -> Any:
    """The encoded value of a literal whose integers are in decimal, as Python prints them: 0xff copied from a snippet
    answers nothing. Brackets are counted first: the parser's own limit is deeper than its stack."""
    depth = deepest = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise ValueError("nested too deep")
    text = text.strip()
    tree = parse(text, "eval")
    lines = re.split(rb"\r\n|\r|\n", text.encode())  # once: ast.get_source_segment would do it for every integer
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is int):
        if lines[node.lineno - 1][node.col_offset : node.end_col_offset] != str(node.value).encode():
            raise ValueError("an integer that is not written in decimal")
    return encode(ast.literal_eval(tree))
