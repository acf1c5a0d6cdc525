"""Answers that need no solution. Tests that a function passes which returns a constant or an argument pay for nothing: one
public set paid every trial (marin 7784)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.mutate import inside, tagged
from kgsynth.task import Task
from kgsynth.verifiers.code.asked import calls_python, name_of
from kgsynth.verifiers.code.printed import printed_same
from kgsynth.verifiers.code.source import tree_of
from kgsynth.verifiers.code.values import decode, same

GUESSES = {
    "text": ("0", "1", "None", "yes", "no", "true", "unknown", "answer", "the"),
    "choice": ("None", "all of the above", "none of them"),
    "number": ("0", "1", "-1", "10", "100", "2"),
    "span": ("0", "the", "0-1", "none"),
    "listed": ("none", "0", "[]", "1", "a, b", "1, 2, 3"),
    "json_schema": ("{}", "[]", "null", "0", "true", '""'),
    "mathematics": ("0", "1", "x"),
    "literal": ("None", "True", "False", "0", "1", "[]", "{}", "()", "''", "-1"),
}

FENCED = re.compile(r"```[\w+-]*\n(.*?)```", re.DOTALL)
MOST = 6  # code blocks of a prompt, and functions of a block


def guesses(task: Task) -> Iterator[str]:
    """The commonest constant answers of the task's verifier, without those that are its answer by chance."""
    right = {_key(inside(task.reference)), *map(_key, _right(task.verifier.params))}
    yield from (tagged(text) for text in GUESSES.get(task.verifier.name, ()) if _key(text) not in right)


def blocks(task: Task) -> list[str]:
    """The code blocks of a prompt."""
    return [block.strip("\n") for block in FENCED.findall(task.prompt)][:MOST]


def functions(source: str) -> list[str]:
    """The functions that a Python source defines."""
    try:
        return [node.name for node in tree_of(source).body if isinstance(node, ast.FunctionDef)]
    except ValueError:
        return []


def borrowed(task: Task) -> Iterator[str]:
    """Another Python function that the prompt shows, under the name that is asked for: a task of which that is paid asks for
    nothing but to find it."""
    name = name_of(task)
    for block in blocks(task) if calls_python(task) else ():
        for other in functions(block)[:MOST]:
            if other != name:
                yield tagged(f"\n{block}\n\n\ndef {name}(*args, **kwargs):\n    return {other}(*args, **kwargs)\n")


def _right(params: Mapping[str, Any]) -> Iterator[str]:
    for name in ("answers", "items", "correct"):
        value = params.get(name, ())
        yield from map(str, value if isinstance(value, (list, tuple)) else [value])
    yield from (str(params[name]) for name in ("value", "expected") if name in params)


def _key(text: str) -> str:
    """Without what may stand around a value; a number without the zeros that say nothing."""
    key = "".join(text.split()).strip("`*$.'\"").casefold()
    try:
        return f"{float(key):g}"
    except ValueError:
        return key


def needs_no_solution(task: Task) -> str:
    """Which function or program passes every test without doing anything; "" when none does. Nothing is run."""
    params = task.verifier.params
    tests = params.get("tests")
    if not isinstance(tests, (list, tuple)) or not tests:
        return ""
    try:
        if task.verifier.name == "function_tests":
            return _constant_function(tests, loose=params.get("language", "python") != "python")
        if task.verifier.name == "programs":
            return _constant_program(tests, str(params.get("compare", "exact")))
    except (KeyError, TypeError, AttributeError, VerifierError):
        return ""  # the verifier says what is wrong with them
    return ""


def _constant_function(tests: Sequence[Mapping[str, Any]], *, loose: bool) -> str:
    if raising := [test["raises"] for test in tests if "raises" in test]:
        return (
            f"a function that always raises {raising[0]} passes every test"
            if set(raising) == {raising[0]} and len(raising) == len(tests)
            else ""
        )
    first = tests[0]["expect"]
    if all(same(test["expect"], first, loose=loose) for test in tests):
        return f"a function that always returns {decode(first)!r:.60} passes every test"
    for place in range(max(len(test["args"]) - 1 for test in tests)):
        if all(
            place + 1 < len(test["args"]) and same(test["args"][place + 1], test["expect"], loose=loose)
            for test in tests
        ):
            return f"a function that returns its argument {place + 1} as it came passes every test"
    return ""


def _constant_program(tests: Sequence[Mapping[str, Any]], compare: str) -> str:
    if any(test.get("exit_code") for test in tests):
        return ""
    outputs = [str(test["stdout"]) for test in tests]
    if all(printed_same(output, outputs[0], compare, 1e-9) for output in outputs):
        return f"a program that always prints {outputs[0]!r:.60} passes every test"
    if all(printed_same(str(test.get("stdin", "")), str(test["stdout"]), compare, 1e-9) for test in tests):
        return "a program that prints its input passes every test"
    return ""
