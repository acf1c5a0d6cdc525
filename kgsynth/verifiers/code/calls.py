"""Call a function of a solution in a box and learn what came of each call. Nothing is compared here.

The one protocol for all languages: inputs go in as typed JSON (see `runner.py`), lines `[index, kind, form]` come out.
A solution shares its process with the runner and may forge any line. It gains nothing by that: what is expected
never goes in, so that a forged line is one more way of returning a value.
"""

from __future__ import annotations

import json
import marshal
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import ExecResult, Limits, Sandbox
from kgsynth.verifiers.code import c_calls, javascript_calls, runner
from kgsynth.verifiers.code.languages import LANGUAGES
from kgsynth.verifiers.code.source import REFLECTIVE, banned_names, problem
from kgsynth.verifiers.code.values import encode

STARTUP_SECONDS = 5.0  # for a box to start on a busy machine, on top of what the calls may take
OUTPUT_KB = 8192  # of lines about calls
NOT_RUN = "not run"
DETAIL = 200  # characters kept of what a runner says about a failure
RUNNER = Path(runner.__file__).read_text(encoding="utf-8")
COMPILED = marshal.dumps(compile(RUNNER, "run.py", "exec", dont_inherit=True))
# The runner is compiled once here, for boxes with the same Python; any other compiles its text.
STARTER = f"""import marshal, sys
with open("runner" if sys.hexversion == {sys.hexversion} else "runner.py", "rb") as file:
    code = file.read()
exec(marshal.loads(code) if sys.hexversion == {sys.hexversion} else code)
"""

Form = tuple[Any, Any, float | None]  # encoded arguments, encoded keyword arguments, seconds of its own
Start = Callable[[Sequence[int], float, float, Limits], ExecResult]  # calls by number, seconds of all, of each


@dataclass(frozen=True, kw_only=True)
class Call:
    """The arguments of one call: plain Python values that `encode` takes."""

    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None  # its own limit; it then runs in a box of its own


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one call."""

    kind: str  # "returned", "raised" or "failed"
    value: Any = None  # returned: the encoded value
    detail: str = ""  # raised: the exception's type name; failed: a reason, e.g. "timeout", "not encodable"


def run_calls(
    source: str,
    name: str,
    calls: Sequence[Call],
    sandbox: Sandbox,
    *,
    forbidden: Iterable[str] = (),
    seconds: float = 5,
    language: str = "python",
    signature: Mapping[str, Any] | None = None,
    hash_seed: int | None = None,
) -> list[Outcome]:
    """Call `name` of `source` on each of `calls`, in one process in a fresh box; one outcome per call, in order.

    Each call gets fresh copies of its arguments, and half of `seconds` (CPU time, the limit for all of them; three times
    as much on the wall clock); a call with seconds of its own gets a fresh box and those. When the source cannot be run at all every outcome is "failed" with the same
    reason; after a timeout or a crash so are the rest of that box. `signature` is for C (see `c_calls`), `forbidden`
    and `hash_seed` (how strings are hashed, PYTHONHASHSEED) are for Python.
    Raises VerifierError for arguments that cannot be encoded and SandboxError when no box can be made.
    """
    forms = [(encode(tuple(call.args)), encode(dict(call.kwargs)), call.seconds) for call in calls]
    return run_forms(
        source,
        name,
        forms,
        sandbox,
        forbidden=tuple(forbidden),
        seconds=seconds,
        language=language,
        signature=signature,
        hash_seed=hash_seed,
    )


def run_forms(
    source: str,
    name: str,
    forms: Sequence[Form],
    sandbox: Sandbox,
    *,
    forbidden: Sequence[str] = (),
    seconds: float = 5,
    language: str = "python",
    signature: Mapping[str, Any] | None = None,
    hash_seed: int | None = None,
    until: Callable[[int, Outcome], bool] = lambda number, outcome: False,
) -> list[Outcome]:
    """The same for arguments that are encoded already. Once `until` is true of a call, no further box is started."""
    if language == "python":
        start = _python(source, name, forms, sandbox, forbidden, hash_seed)
    elif forbidden or hash_seed is not None:
        raise VerifierError(f"'forbidden' and 'hash_seed' are for python, not for {language}")
    elif language == "javascript":
        start = javascript_calls.prepare(source, name, forms, sandbox)
    elif language == "c":
        start = c_calls.prepare(source, name, forms, sandbox, signature)
    else:
        raise VerifierError(f"unknown language {language!r}; known: {', '.join(LANGUAGES)}")
    if isinstance(start, str):
        return [Outcome(kind="failed", detail=start)] * len(forms)
    told: dict[int, Outcome] = {}
    for numbers, total, each in _boxes(forms, seconds):
        limits = replace(LANGUAGES[language].limits(total, startup=STARTUP_SECONDS), output_kb=OUTPUT_KB)
        told |= _outcomes(start(numbers, total, each, limits), numbers)
        if any(until(number, told[number]) for number in numbers):
            break
    return [told.get(number, Outcome(kind="failed", detail=NOT_RUN)) for number in range(len(forms))]


def check_arguments(args: Any, kwargs: Any, language: str, signature: Any) -> None:
    """Raises VerifierError for encoded arguments that the language does not have."""
    if language == "javascript":
        javascript_calls.check_arguments(args, kwargs)
    elif language == "c":
        c_calls.check_arguments(args, kwargs, signature)


def _boxes(forms: Sequence[Form], seconds: float) -> list[tuple[list[int], float, float]]:
    """(calls by number, seconds for all of them, seconds for each) per box."""
    shared = [number for number, form in enumerate(forms) if form[2] is None]
    alone = [([number], 2 * form[2], form[2]) for number, form in enumerate(forms) if form[2] is not None]
    return [(shared, seconds, seconds / 2), *alone] if shared else alone


def _python(
    source: str, name: str, forms: Sequence[Form], sandbox: Sandbox, forbidden: Sequence[str], hash_seed: int | None
) -> Start | str:
    if reason := problem(source, name, forbidden):
        return reason
    env = None if hash_seed is None else {"PYTHONHASHSEED": str(hash_seed)}

    def start(numbers: Sequence[int], total: float, each: float, limits: Limits) -> ExecResult:
        job = {
            "source": source,
            "name": name,
            "calls": [(number, *forms[number][:2]) for number in numbers],
            "banned": set(banned_names(forbidden)),
            "reflective": REFLECTIVE,
            "seconds": float(total),
            "call_seconds": float(each),
        }
        files = {"run.py": STARTER, "runner": COMPILED, "runner.py": RUNNER, "job": marshal.dumps(job, 4)}
        return sandbox.run([*sandbox.python, "run.py"], files=files, env=env, limits=limits)

    return start


def _outcomes(result: ExecResult, numbers: Sequence[int]) -> dict[int, Outcome]:
    """Read the runner's lines. What is missing failed for the reason that the rest of the result tells."""
    told: dict[int, Outcome] = {}
    for line in result.stdout.split("\n"):
        if row := _row(line):
            told.setdefault(row[0], row[1])
    if -1 in told and told[-1].kind == "failed":  # the source as a whole
        return dict.fromkeys(numbers, told[-1])
    late = result.timed_out or -result.exit_code in (signal.SIGALRM, signal.SIGPROF)
    late = late or any(o.detail == "timeout" for o in told.values() if o.kind == "failed")
    rest = Outcome(kind="failed", detail="timeout" if late else "out of memory" if result.out_of_memory else "crashed")
    return {number: told.get(number, rest) for number in numbers}


def _row(line: str) -> tuple[int, Outcome] | None:
    """One line of the runner, or of a solution that imitates it; None when it is neither."""
    if not line.startswith("["):
        return None
    try:
        index, kind, form = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return None
    if type(index) is not int or kind not in ("returned", "raised", "failed") or not _is_form(form):
        return None
    if kind == "returned":
        return index, Outcome(kind=kind, value=form)
    return index, Outcome(kind=kind, detail=str(form)[:DETAIL])


def _is_form(form: Any, depth: int = 0) -> bool:
    """Whether this is JSON as `encode` makes it: no float, no object, no bottomless nesting."""
    if isinstance(form, list):
        return depth <= 2 * runner.MAX_DEPTH + 2 and all(_is_form(item, depth + 1) for item in form)
    return form is None or isinstance(form, (bool, int, str))
