"""`function_tests`: call the answer's function in a box and compare what it returns with what is expected, outside.

Expected values never enter the box, so there is nothing in it worth stealing: a solution can only decide what it
reports. The oracle's outputs are made by the same `run_calls` that later runs the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract
from kgsynth.verifiers.code import c_calls, runner
from kgsynth.verifiers.code.calls import NOT_RUN, Call, Form, Outcome, check_arguments, run_calls, run_forms
from kgsynth.verifiers.code.languages import LANGUAGES
from kgsynth.verifiers.code.source import MAX_LENGTH, problem, read
from kgsynth.verifiers.code.values import checked, decode, encode, same
from kgsynth.verifiers.params import identifier, one_of, only_known, seconds, some, texts

__all__ = ["Call", "Outcome", "decode", "encode", "expectation", "function_tests", "run_calls"]

FAILURES = (
    *("syntax error", "no such function", "forbidden import", "load error"),
    *("timeout", "out of memory", "not encodable", "result too large", "crashed"),
)
SHOWN = 200  # characters of a result kept as evidence
OPTIONS = ("name", "forbidden", "seconds", "language", "signature")


@register("function_tests", needs_sandbox=True)
def function_tests(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"name": "gcd", "tests": [{"args", "kwargs", "expect" | "raises", "seconds"?}...], "forbidden": ["math"],
    "seconds": 5, "language": "python" | "javascript" | "c", "signature": {...} for C, "prelude": "import re\\n..."}.

    The prelude is Python that stands before the answer in the same module, for an answer that is a part of one; `name` may
    be one of its functions, which then calls the answer's.

    Scores 1.0 when every test passes, else 0.0. The evidence says how many passed, which failed first and what came
    out there; never what was expected. Raises SandboxError when no box can be made.
    """
    tests, options = _checked(params)
    assert sandbox is not None  # `verify` sees to it
    text, missing = extract(answer, MAX_LENGTH)
    if missing:
        return Verdict(score=0.0, reason=missing)
    loose = options["language"] != "python"
    outcomes = run_forms(
        whole(read(text), params), params["name"], list(map(_form, tests)), sandbox,
        until=lambda number, outcome: not _passes(outcome, tests[number], loose), **options,
    )  # fmt: skip
    passed = [_passes(outcome, test, loose) for outcome, test in zip(outcomes, tests, strict=True)]
    evidence: dict[str, Any] = {"passed": sum(passed), "total": len(tests)}
    if all(passed):
        return Verdict(score=1.0, reason="right", evidence=evidence)
    first = next(i for i, outcome in enumerate(outcomes) if not passed[i] and outcome.detail != NOT_RUN)
    evidence |= {"first_failing": first, "got": shown(outcomes[first])}
    return Verdict(score=0.0, reason=reason_of(outcomes[first]), evidence=evidence)


def whole(source: str, params: Mapping[str, Any]) -> str:
    """The module that is run: the prelude, where there is one, and the answer's source."""
    return f"{params['prelude'].rstrip()}\n\n\n{source}" if params.get("prelude") else source


def expectation(call: Call, outcome: Outcome) -> dict[str, Any]:
    """The test that an answer passes when it does what the oracle did. Raises VerifierError for a failed outcome."""
    test = {"args": encode(tuple(call.args)), "kwargs": encode(dict(call.kwargs))}
    if call.seconds is not None:
        test["seconds"] = call.seconds
    if outcome.kind == "returned":
        return {**test, "expect": outcome.value}
    if outcome.kind == "raised":
        return {**test, "raises": outcome.detail}
    raise VerifierError(f"the oracle failed on {call}: {outcome.detail}; a test needs an oracle that works")


def reason_of(outcome: Outcome) -> str:
    """A code out of a closed list: details may be a solution's own words."""
    if outcome.kind == "failed":
        code = outcome.detail.split(":")[0]
        return code if code in FAILURES else "crashed"
    return "wrong" if outcome.kind == "returned" else "error"


def shown(outcome: Outcome) -> str:
    """What came out, cut short, as evidence."""
    return (runner.to_json(outcome.value) if outcome.kind == "returned" else outcome.detail)[:SHOWN]


def _form(test: Mapping[str, Any]) -> Form:
    return test["args"], test.get("kwargs", ["dict"]), test.get("seconds")


def _passes(outcome: Outcome, test: Mapping[str, Any], loose: bool) -> bool:
    if "raises" in test:
        return outcome.kind == "raised" and outcome.detail == test["raises"]
    return outcome.kind == "returned" and same(outcome.value, test["expect"], loose=loose)


def _checked(params: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], dict[str, Any]]:
    """The tests and the options of `run_forms`. Raises VerifierError for a task without tests and what is not as said."""
    only_known("function_tests", params, (*OPTIONS, "tests", "prelude"))
    options, tests = checked_options("function_tests", params), some("function_tests", params, "tests", "test")
    _check_prelude(params, options)
    for number, test in enumerate(tests):
        _check_test(f"function_tests: test {number}", test, options)
    return tests, options


def _check_prelude(params: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raises VerifierError for a prelude that no answer could stand behind."""
    if "prelude" not in params:
        return
    prelude, name = params["prelude"], params["name"]
    if not isinstance(prelude, str) or options["language"] != "python":
        raise VerifierError(f"function_tests: 'prelude' is a text and for python only, not {prelude!r:.80}")
    if reason := problem(f"{prelude}\n{name} = None\n", name, options["forbidden"]):
        raise VerifierError(f"function_tests: 'prelude' has a {reason}: {prelude[:80]!r}")


def checked_options(label: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """How the answer's function is called: OPTIONS without its name, which is checked too."""
    name, forbidden = identifier(label, params, "name"), texts(label, params, "forbidden")
    language, signature = one_of(label, params, "language", LANGUAGES), params.get("signature")
    if language != "python" and (forbidden or not name.isascii()):
        raise VerifierError(f"{label}: 'forbidden' modules and names in other letters than ASCII are for python only")
    if language == "c":
        c_calls.checked_signature(signature)
    return {
        "forbidden": forbidden,
        "seconds": seconds(label, params, 5),
        "language": language,
        "signature": signature,
    }


def _check_test(label: str, test: Any, options: Mapping[str, Any]) -> None:
    if not isinstance(test, Mapping) or "args" not in test or ("expect" in test) == ("raises" in test):
        raise VerifierError(f"{label} needs 'args' and either 'expect' or 'raises'")
    only_known(label, test, ("args", "kwargs", "expect", "raises", "seconds"))
    args, kwargs = checked(f"{label}: 'args'", test["args"]), checked(label, test.get("kwargs", ["dict"]))
    if not isinstance(args, (list, tuple)) or not isinstance(kwargs, dict) or not all(type(k) is str for k in kwargs):
        raise VerifierError(
            f"{label} has 'args' that are no sequence, or 'kwargs' that are no dict with texts for keys"
        )
    if "expect" in test:
        checked(f"{label}: 'expect'", test["expect"])
    elif not isinstance(test["raises"], str) or not test["raises"].isidentifier():
        raise VerifierError(f"{label}: 'raises' must be the name of an exception, not {test['raises']!r:.80}")
    if test.get("seconds") is not None:
        seconds(label, test, 5)
    check_arguments(test["args"], test.get("kwargs", ["dict"]), options["language"], options["signature"])
