"""`function_tests`: call the answer's function in a box and compare what it returns with what is expected, outside.

Expected values never enter the box, so there is nothing in it worth stealing: a solution can only decide what it
reports. The oracle's outputs are made by the same `run_calls` that later runs the answers.
"""

from __future__ import annotations

import inspect
import json
import marshal
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import PYTHON, ExecResult, Limits, Sandbox
from kgsynth.verifiers import Verdict, register, runner
from kgsynth.verifiers.answer import extract
from kgsynth.verifiers.source import MAX_LENGTH, REFLECTIVE, banned_names, problem, read
from kgsynth.verifiers.values import decode, encode, same

__all__ = ["Call", "Outcome", "decode", "encode", "expectation", "function_tests", "run_calls"]

STARTUP_SECONDS = 5.0  # for a box to start on a busy machine, on top of what the calls may take
FAILURES = (
    *("syntax error", "no such function", "forbidden import", "load error"),
    *("timeout", "out of memory", "not encodable", "result too large", "crashed"),
)
SHOWN = 200  # characters of a result kept as evidence


@dataclass(frozen=True, kw_only=True)
class Call:
    """The arguments of one call: plain Python values that `encode` takes."""

    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one call."""

    kind: str  # "returned", "raised" or "failed"
    value: Any = None  # returned: the encoded value
    detail: str = ""  # raised: the exception's type name; failed: a reason, e.g. "timeout", "not encodable"


@register("function_tests", needs_sandbox=True)
def function_tests(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"name": "gcd", "tests": [{"args", "kwargs", "expect" | "raises"}...], "forbidden": ["math"], "seconds": 5}.

    Scores 1.0 when every test passes, else 0.0. The evidence says how many passed, which failed first and what came
    out there; never what was expected. Raises SandboxError when no box can be made.
    """
    name, tests, forbidden, seconds = _checked(params)
    assert sandbox is not None  # `verify` sees to it
    text, missing = extract(answer, MAX_LENGTH)
    if missing:
        return Verdict(score=0.0, reason=missing)
    calls = [(test["args"], test.get("kwargs", ["dict"])) for test in tests]
    outcomes = _run(read(text), name, calls, sandbox, forbidden=forbidden, seconds=seconds)
    passed = [_passes(outcome, test) for outcome, test in zip(outcomes, tests, strict=True)]
    evidence: dict[str, Any] = {"passed": sum(passed), "total": len(tests)}
    if all(passed):
        return Verdict(score=1.0, reason="right", evidence=evidence)
    first = passed.index(False)
    evidence |= {"first_failing": first, "got": _shown(outcomes[first])}
    return Verdict(score=0.0, reason=_reason(outcomes[first]), evidence=evidence)


def run_calls(
    source: str,
    name: str,
    calls: Sequence[Call],
    sandbox: Sandbox,
    *,
    forbidden: Iterable[str] = (),
    seconds: float = 5,
) -> list[Outcome]:
    """Call `name` of `source` on each of `calls`, in one process in a fresh box; one outcome per call, in order.

    Each call gets fresh copies of its arguments, and half of `seconds` (the limit for all of them). When the source
    cannot be run at all every outcome is "failed" with the same reason; after a timeout or a crash so are the rest.
    Raises VerifierError for arguments that cannot be encoded and SandboxError when no box can be made.
    """
    forms = [(encode(tuple(call.args)), encode(dict(call.kwargs))) for call in calls]
    return _run(source, name, forms, sandbox, forbidden=tuple(forbidden), seconds=seconds)


def expectation(call: Call, outcome: Outcome) -> dict[str, Any]:
    """The test that an answer passes when it does what the oracle did. Raises VerifierError for a failed outcome."""
    test = {"args": encode(tuple(call.args)), "kwargs": encode(dict(call.kwargs))}
    if outcome.kind == "returned":
        return {**test, "expect": outcome.value}
    if outcome.kind == "raised":
        return {**test, "raises": outcome.detail}
    raise VerifierError(f"the oracle failed on {call}: {outcome.detail}; a test needs an oracle that works")


def _run(
    source: str,
    name: str,
    calls: Sequence[tuple[Any, Any]],
    sandbox: Sandbox,
    *,
    forbidden: Sequence[str],
    seconds: float,
) -> list[Outcome]:
    if reason := problem(source, name, forbidden):
        return [Outcome(kind="failed", detail=reason)] * len(calls)
    nonce = secrets.token_hex(16)
    job = {
        "source": source,
        "name": name,
        "calls": list(calls),
        "banned": set(banned_names(forbidden)),
        "reflective": REFLECTIVE,
        "nonce": nonce,
        "seconds": float(seconds),
        "call_seconds": seconds / 2,
    }
    limits = Limits(
        seconds=seconds + STARTUP_SECONDS, cpu_seconds=math.ceil(seconds) + 1, processes=8, disk_mb=64, output_kb=8192
    )
    with sandbox.create(limits) as box:
        box.write("run.py", inspect.getsource(runner))
        box.write("job", marshal.dumps(job))
        result = box.exec([*PYTHON, "-S", "run.py"])
    return _outcomes(result, nonce, len(calls))


def _outcomes(result: ExecResult, nonce: str, count: int) -> list[Outcome]:
    """Read the runner's lines. What is missing failed for the reason that the rest of the result tells."""
    told: dict[int, Outcome] = {}
    for line in result.stdout.split("\n"):
        if line.startswith(nonce) and (row := _row(line.removeprefix(nonce))):
            told.setdefault(row[0], row[1])
    if -1 in told:
        return [told[-1]] * count
    late = result.timed_out or any(o.detail == "timeout" for o in told.values() if o.kind == "failed")
    rest = Outcome(kind="failed", detail="timeout" if late else "out of memory" if result.out_of_memory else "crashed")
    return [told.get(i, rest) for i in range(count)]


def _row(line: str) -> tuple[int, Outcome] | None:
    """One line of the runner, or of a solution that imitates it; None when it is neither."""
    try:
        index, kind, form = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return None
    if type(index) is not int or kind not in ("returned", "raised", "failed") or not _is_form(form):
        return None
    if kind == "returned":
        return index, Outcome(kind=kind, value=form)
    return index, Outcome(kind=kind, detail=str(form)[:SHOWN])


def _is_form(form: Any, depth: int = 0) -> bool:
    """Whether this is JSON as `encode` makes it: no float, no object, no bottomless nesting."""
    if isinstance(form, list):
        return depth <= 2 * runner.MAX_DEPTH + 2 and all(_is_form(item, depth + 1) for item in form)
    return form is None or isinstance(form, (bool, int, str))


def _passes(outcome: Outcome, test: Mapping[str, Any]) -> bool:
    if "raises" in test:
        return outcome.kind == "raised" and outcome.detail == test["raises"]
    return outcome.kind == "returned" and same(outcome.value, test["expect"])


def _reason(outcome: Outcome) -> str:
    """A code out of a closed list: details may be a solution's own words."""
    if outcome.kind == "failed":
        code = outcome.detail.split(":")[0]
        return code if code in FAILURES else "crashed"
    return "wrong" if outcome.kind == "returned" else "error"


def _shown(outcome: Outcome) -> str:
    return (runner.to_json(outcome.value) if outcome.kind == "returned" else outcome.detail)[:SHOWN]


def _checked(params: Mapping[str, Any]) -> tuple[str, list[Mapping[str, Any]], tuple[str, ...], float]:
    """The parameters. Raises VerifierError for what is missing or of the wrong form, and for a task without tests."""
    name, tests = params.get("name"), params.get("tests")
    forbidden, seconds = params.get("forbidden", []), params.get("seconds", 5)
    if not isinstance(name, str) or not name.isidentifier():
        raise VerifierError(f"function_tests: 'name' must be an identifier, not {name!r}")
    if not isinstance(tests, (list, tuple)) or not tests:
        raise VerifierError("function_tests: 'tests' must be a list of at least one test: none would accept anything")
    for number, test in enumerate(tests):
        _check_test(f"function_tests: test {number}", test)
    if not isinstance(forbidden, (list, tuple)) or not all(isinstance(module, str) for module in forbidden):
        raise VerifierError(f"function_tests: 'forbidden' must be a list of module names, not {forbidden!r}")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= 600:
        raise VerifierError(f"function_tests: 'seconds' must be a number between 0 and 600, not {seconds!r}")
    return name, list(tests), tuple(forbidden), seconds


def _check_test(label: str, test: Any) -> None:
    if not isinstance(test, Mapping) or "args" not in test or ("expect" in test) == ("raises" in test):
        raise VerifierError(f"{label} needs 'args' and either 'expect' or 'raises'")
    try:
        args, kwargs = decode(test["args"]), decode(test.get("kwargs", ["dict"]))
    except VerifierError as error:
        raise VerifierError(f"{label}: {error}") from error
    if not isinstance(args, (list, tuple)) or not isinstance(kwargs, dict):
        raise VerifierError(f"{label} has 'args' that are no sequence or 'kwargs' that are no dict")
