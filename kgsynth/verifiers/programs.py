"""`programs`: run the answer as a program, once per test, and compare what it prints with what is expected, outside.

Every test has a fresh box with nothing in it but the program: no test sees what another left behind, and expected
outputs never go in. C is compiled once, in a box of its own. The first failing test ends it, unless partial credit is
asked for: a program that hangs or floods costs one test's limit, not all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import ExecResult, Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract
from kgsynth.verifiers.code.languages import LANGUAGES, binary_command, compile_c, compiler_reason, require
from kgsynth.verifiers.code.printed import COMPARE, lines_of, printed_same
from kgsynth.verifiers.code.source import MAX_LENGTH, parse, read
from kgsynth.verifiers.params import one_of, only_known, real, seconds, some, whole

STARTUP_SECONDS = 2.0  # for a box to start on a busy machine, on top of what the program may take
LEAST_OUTPUT_KB = 256
SHOWN = 200  # characters of an output kept as evidence
MOST_EXIT_CODE = 125  # those above are the shell's own: cannot be run, not found, killed by a signal
KNOWN = ("language", "tests", "compare", "tolerance", "seconds", "memory_mb", "partial")
MODULE = re.compile(r"^[ \t]*(?:import[ \t]+[\w{*'\"]|export[ \t])", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Test:
    """One run of the program and what has to come of it."""

    stdin: str = ""
    stdout: str = ""
    args: tuple[str, ...] = ()
    exit_code: int = 0
    seconds: float = 5.0
    memory_mb: int = 512


@dataclass(frozen=True, kw_only=True)
class Program:
    """A solution that is ready to be started in any box."""

    language: str
    files: Mapping[str, bytes | str]
    command: Callable[[Sequence[str]], list[str]]  # of the arguments
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, test: Test, sandbox: Sandbox) -> ExecResult:
        limits = replace(
            LANGUAGES[self.language].limits(test.seconds, startup=STARTUP_SECONDS),
            memory_mb=test.memory_mb,
            output_kb=LEAST_OUTPUT_KB + len(test.stdout) // 256,
        )
        return sandbox.run(
            self.command(test.args), files=self.files, stdin=test.stdin, env=self.env or None, limits=limits
        )


@register("programs", needs_sandbox=True)
def programs(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"language": "python" | "javascript" | "c", "tests": [{"stdin", "stdout", "args"?, "exit_code"?, "seconds"?}...],
    "compare": "exact" | "tokens" | "lines" | "numbers", "tolerance": 1e-9, "seconds": 5, "memory_mb": 512,
    "partial": false}.

    Scores 1.0 when every test passes, else 0.0, or with `partial` the share of tests that pass. The evidence says how
    many passed, which failed first and what was printed there; never what was expected. Raises SandboxError when no
    box can be made or it has no tool for the language.
    """
    tests, same = _tests(params), _comparison(params)
    assert sandbox is not None  # `verify` sees to it
    text, missing = extract(answer, MAX_LENGTH)
    if missing:
        return Verdict(score=0.0, reason=missing)
    program = prepare(read(text), params["language"], sandbox)
    if isinstance(program, str):
        return Verdict(score=0.0, reason=program, evidence={"passed": 0, "total": len(tests)})
    partial = params.get("partial", False)
    failures = _failures(program, tests, same, sandbox)
    found = list(failures) if partial else [f for f in [next(failures, None)] if f]
    if not found:
        return Verdict(score=1.0, reason="right", evidence={"passed": len(tests), "total": len(tests)})
    first, reason, result = found[0]
    passed = len(tests) - len(found) if partial else first
    evidence = {"passed": passed, "total": len(tests), "first_failing": first, "got": result.stdout[:SHOWN]}
    if result.stderr:
        evidence["stderr"] = result.stderr[-SHOWN:]
    return Verdict(score=passed / len(tests) if partial else 0.0, reason=reason, evidence=evidence)


def prepare(source: str, language: str, sandbox: Sandbox) -> Program | str:
    """The source ready to run, or the reason why it cannot be."""
    require(language, sandbox)
    env = LANGUAGES[language].env
    if language == "c":
        binary = compile_c({"main.c": source}, sandbox)
        if isinstance(binary, ExecResult):
            return compiler_reason(binary)
        return Program(language=language, files={"solution": binary}, command=binary_command)
    if language == "javascript":
        name = "main.mjs" if MODULE.search(source) else "main.js"
        return Program(language=language, files={name: source}, command=lambda args: ["node", name, *args], env=env)
    try:
        parse(source)
    except ValueError:
        return "syntax error"
    return Program(
        language=language, files={"main.py": source}, command=lambda args: [*sandbox.python, "main.py", *args]
    )


def _failures(
    program: Program, tests: Sequence[Test], same: Callable[[str, str], bool], sandbox: Sandbox
) -> Iterator[tuple[int, str, ExecResult]]:
    """(number, reason, result) of each test that does not pass, as they are run."""
    for number, test in enumerate(tests):
        result = program.run(test, sandbox)
        reason = _went_wrong(result, test, program.language)
        if not reason and not same(result.stdout, test.stdout):
            reason = "wrong"
        if reason:
            yield number, reason, result


def _went_wrong(result: ExecResult, test: Test, language: str) -> str:
    """Why the output does not even count; empty when it does."""
    if result.truncated:
        return "output too large"
    if result.out_of_memory:
        return "out of memory"
    if result.timed_out:
        return "timeout"
    if result.exit_code == test.exit_code:
        return ""
    if result.exit_code < 0:
        return "crashed"
    unread = language == "javascript" and re.search(r"^SyntaxError: ", result.stderr, re.MULTILINE)
    return "syntax error" if unread else "exit code"


# ------------------------------------------------------------------------------------------------------- parameters


def _comparison(params: Mapping[str, Any]) -> Callable[[str, str], bool]:
    compare = one_of("programs", params, "compare", COMPARE)
    tolerance = real("programs", params, "tolerance", 1e-9, 0, 1, excluded=1)
    return lambda got, wanted: printed_same(got, wanted, compare, tolerance)


def _tests(params: Mapping[str, Any]) -> list[Test]:
    """Raises VerifierError for what is not as said, and for tests that a program passes by doing nothing."""
    only_known("programs", params, KNOWN)
    one_of("programs", params, "language", LANGUAGES, required=True)
    one_of("programs", params, "partial", (False, True))
    rows = some("programs", params, "tests", "test")
    tests = [_test(f"programs: test {number}", row, params) for number, row in enumerate(rows)]
    if not any(lines_of(test.stdout) or test.exit_code for test in tests):
        raise VerifierError("programs: every test expects no output: a program that does nothing would pass")
    return tests


def _test(label: str, row: Any, params: Mapping[str, Any]) -> Test:
    if not isinstance(row, Mapping) or not isinstance(row.get("stdout"), str):
        raise VerifierError(f"{label} needs 'stdout', the text that is expected")
    stdin, args = row.get("stdin", ""), row.get("args", [])
    if not isinstance(stdin, str):
        raise VerifierError(f"{label}: 'stdin' must be text, not {stdin!r:.80}")
    if not isinstance(args, (list, tuple)) or not all(isinstance(a, str) and "\0" not in a for a in args):
        raise VerifierError(f"{label}: 'args' must be a list of texts without NUL, not {args!r:.80}")
    return Test(
        stdin=stdin,
        stdout=row["stdout"],
        args=tuple(args),
        exit_code=whole(label, row, "exit_code", 0, 0, MOST_EXIT_CODE),
        seconds=seconds(label, row, seconds("programs", params, 5)),
        memory_mb=whole("programs", params, "memory_mb", 512, 64, 1 << 16),
    )
