"""`programs`: what is printed in Python, JavaScript and C, compared in four ways, one fresh box a test."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.errors import SandboxError, VerifierError
from kgsynth.sandbox import ExecResult, Sandbox
from kgsynth.verifiers import Verdict
from kgsynth.verifiers.code.languages import LANGUAGES, require
from kgsynth.verifiers.code.printed import COMPARE, printed_same
from tests.scoring import score, tagged

ADD = {
    "python": "a, b = map(int, input().split())\nprint(a + b)",
    "javascript": "const [a, b] = require('fs').readFileSync(0, 'utf8').split(' ').map(Number)\nconsole.log(a + b)",
    "c": '#include <stdio.h>\nint main(void) { int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b); return 0; }',
}
TESTS = [{"stdin": f"{i} {i + 1}\n", "stdout": f"{2 * i + 1}\n"} for i in range(3)]


def judged(source: str, sandbox: Sandbox, language: str = "python", **params: Any) -> Verdict:
    return score("programs", {"language": language, "tests": TESTS, **params}, tagged(source), sandbox)


@pytest.mark.parametrize("language", ADD)
def test_a_right_program_passes_and_a_wrong_one_does_not(language: str, sandbox: Sandbox) -> None:
    verdict = judged(ADD[language], sandbox, language)
    assert (verdict.score, verdict.reason, verdict.evidence) == (1.0, "right", {"passed": 3, "total": 3})
    wrong = judged(
        ADD[language].replace("a + b", "a * 2 + (b > 2 ? 2 : 1)" if language != "python" else "a + b + b // 3"),
        sandbox,
        language,
    )
    assert (wrong.score, wrong.reason) == (0.0, "wrong")
    assert wrong.evidence["first_failing"] == 2
    assert wrong.evidence["got"].strip() == "6"


REASONS = [
    ("python", "print(1", "syntax error"),
    ("c", "int main(void) { return 0", "syntax error"),
    ("c", "int f(void) { return 0; }", "syntax error"),
    ("javascript", "const [a", "syntax error"),
    ("python", "import sys\nprint(1)\nsys.exit(1)", "exit code"),
    ("c", "int main(void) { return 7; }", "exit code"),
    ("javascript", "undefined.x", "exit code"),
    ("c", "int main(void) { *(volatile int *)0 = 1; }", "crashed"),
    ("python", "while True: pass", "timeout"),
    ("python", "import time\ntime.sleep(60)", "timeout"),
    ("javascript", "const a = []\nwhile (true) a.push(new Array(1e6).fill(1))", "out of memory"),
    ("python", "print('x' * 10**6)", "output too large"),
    ("python", "", "empty"),
]


@pytest.mark.parametrize(("language", "source", "reason"), REASONS)
def test_reasons(language: str, source: str, reason: str, sandbox: Sandbox) -> None:
    verdict = judged(source, sandbox, language, seconds=0.3, memory_mb=256)
    assert (verdict.score, verdict.reason) == (0.0, reason)


def test_arguments_and_exit_codes(sandbox: Sandbox) -> None:
    source = "import sys\nprint(sys.argv[1:])\nsys.exit(len(sys.argv))"
    tests = [{"stdout": "['a b', '-x']", "args": ["a b", "-x"], "exit_code": 3}]
    assert judged(source, sandbox, tests=tests).score == 1
    assert judged(source, sandbox, tests=[{**tests[0], "exit_code": 0}]).reason == "exit code"
    in_c = '#include <stdio.h>\nint main(int n, char **a) { printf("%s", a[1]); return n; }'
    assert judged(in_c, sandbox, "c", tests=[{"stdout": "a 'b'", "args": ["a 'b'"], "exit_code": 2}]).score == 1


def test_a_module_in_javascript(sandbox: Sandbox) -> None:
    source = "import fs from 'fs'\nconst [a, b] = fs.readFileSync('/dev/stdin', 'utf8').split(' ').map(Number)\nconsole.log(a + b)"
    assert judged(source, sandbox, "javascript").score == 1


def test_partial_credit_runs_every_test(sandbox: Sandbox) -> None:
    source = ADD["python"] + "\nassert b != 2"
    verdict = judged(source, sandbox, partial=True)
    assert verdict.score == pytest.approx(2 / 3)
    assert (verdict.reason, verdict.evidence["passed"], verdict.evidence["first_failing"]) == ("exit code", 2, 1)
    assert judged(source, sandbox).score == 0


def test_the_first_failing_test_ends_it(sandbox: Sandbox) -> None:
    """Ten tests of a program that hangs cost the time of one."""
    start = time.monotonic()
    assert judged("import time\ntime.sleep(60)", sandbox, tests=TESTS * 10, seconds=0.2).reason == "timeout"
    assert time.monotonic() - start < 10


def test_a_limit_of_a_single_test(sandbox: Sandbox) -> None:
    source = "import time\nn = float(input())\nwhile time.process_time() < n: pass\nprint(n)"
    tests = [{"stdin": "0", "stdout": "0.0", "seconds": 0.2}, {"stdin": "1.2", "stdout": "1.2", "seconds": 6}]
    assert judged(source, sandbox, tests=tests).score == 1
    verdict = judged(source, sandbox, tests=[{**tests[1], "seconds": 0.2}])
    assert verdict.reason == "timeout"


def test_nothing_passes_from_one_test_to_the_next(sandbox: Sandbox) -> None:
    """A file, a shared memory segment or a process that stays would be seen by the second run."""
    source = """
import os
seen = [p for p in ("/work/mark", "/tmp/mark", "/dev/shm/mark") if os.path.exists(p)]
for path in ("/work/mark", "/tmp/mark", "/dev/shm/mark"):
    try:
        open(path, "w").write("x")
    except OSError:
        pass
if os.fork() == 0:
    os.setsid()
    os.execvp("sleep", ["sleep", "30"])
running = [p for p in os.listdir("/proc") if p.isdigit() and "sleep\\x0030" in open(f"/proc/{p}/cmdline").read()]
print(seen, len(running) < 2)
"""
    assert judged(source, sandbox, tests=[{"stdout": "[] True"}] * 3).score == 1


def test_compiling_is_harmless(sandbox: Sandbox) -> None:
    """The compiler runs in a box that holds nothing but the source, and under limits."""
    main = "\nint main(void) { return 0; }"
    bombs = [
        '#include "/etc/passwd"' + main,
        '#include "/dev/stdin"\n#include "/proc/self/environ"' + main,
        '#include "main.c"\n#include "main.c"' + main,
        "char a[1L << 34] = {1};" + main,
        'asm(".incbin \\"/dev/zero\\"");' + main,
        "#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(A(A(x)))))\nint a[] = {B(B(1,))};" + main,
        "#error\n" * 900,
    ]
    start = time.monotonic()
    for bomb in bombs:
        verdict = judged(bomb, sandbox, "c")
        assert verdict.score == 0
        assert verdict.reason in ("syntax error", "timeout", "out of memory", "wrong"), (bomb, verdict)
    assert time.monotonic() - start < 60


def test_a_missing_tool_is_named_once_asked(sandbox: Sandbox) -> None:
    class Bare:
        """A sandbox in which there is nothing: what `run` says of a command that is not found."""

        name, python = "bare", ("python3",)

        def run(self, argv: Any, **_: Any) -> ExecResult:
            return sandbox.run(["no-such-" + argv[0], *argv[1:]])

    for language, command in (("javascript", "nodejs"), ("c", "gcc")):
        with pytest.raises(SandboxError, match=f"sudo apt-get install {command}"):
            judged(ADD[language], Bare(), language)  # type: ignore[arg-type]
    for language in LANGUAGES:
        require(language, sandbox)


BAD: list[dict[str, Any]] = [
    {"language": "cobol"},
    {"tests": []},
    {"tests": [{"stdin": "1"}]},
    {"tests": [{"stdout": "1", "stdin": 1}]},
    {"tests": [{"stdout": " \n"}, {"stdout": ""}]},
    {"tests": [{"stdout": "1", "args": "x"}]},
    {"tests": [{"stdout": "1", "args": ["\0"]}]},
    {"tests": [{"stdout": "1", "exit_code": -9}]},
    {"tests": [{"stdout": "1", "seconds": 0}]},
    {"compare": "roughly"},
    {"tolerance": "1"},
    {"tolerance": 1},
    {"partial": 1},
    {"memory_mb": 1},
    {"memory": 64},
    {"seconds": True},
]


@pytest.mark.parametrize("params", BAD)
def test_unusable_parameters_are_an_error(params: dict[str, Any], sandbox: Sandbox) -> None:
    with pytest.raises(VerifierError, match="programs: "):
        judged("print(1)", sandbox, **params)


# ------------------------------------------------------------------------------------------------- comparing output

PRINTED = [
    ("exact", "a b\nc\n", "a b\nc", True),
    ("exact", "a b  \r\nc\n\n\n", "a b\nc", True),
    ("exact", " a", "a", False),
    ("exact", "a  b", "a b", False),
    ("exact", "a\n\nb", "a\nb", False),
    ("exact", "\na", "a", False),
    ("exact", "A", "a", False),
    ("tokens", "a\n b\tc", "a b c", True),
    ("tokens", "ab c", "a b c", False),
    ("tokens", "a b c d", "a b c", False),
    ("tokens", "1.0", "1", False),
    ("lines", "b\na\n", "a\nb", True),
    ("lines", "a\na\nb", "a\nb", False),
    ("lines", "a b", "b a", False),
    ("numbers", "3.0000000001 x", "3.0 x", True),
    ("numbers", "1e3 +4 .5", "1000.0 4 0.5", True),
    ("numbers", "3", "3.0", True),
    ("numbers", "3.1", "3.0", False),
    ("numbers", "1000000000001", "1000000000000", False),  # whole numbers may not differ
    ("numbers", "1e-12", "0.0", True),
    ("numbers", "nan", "1.0", False),
    ("numbers", "NaN", "nan", False),
    ("numbers", "inf", "1e400", False),
    ("numbers", "1e400", "1e400", True),
    ("numbers", "1_0", "10", False),
    ("numbers", "٣", "3", False),
    ("numbers", "0x3", "3", False),
    ("numbers", "1.0 2.0", "1.0", False),
    ("numbers", "y", "x", False),
]


@pytest.mark.parametrize(("compare", "got", "wanted", "right"), PRINTED)
def test_printed(compare: str, got: str, wanted: str, right: bool) -> None:
    assert printed_same(got, wanted, compare, 1e-9) is right


def test_tolerance_is_absolute_or_relative() -> None:
    assert printed_same("0.004", "0.0", "numbers", 0.01)
    assert printed_same("1005.0", "1000.0", "numbers", 0.01)
    assert not printed_same("1011.0", "1000.0", "numbers", 0.01)


@settings(deadline=None)
@given(st.text(), st.text())
def test_comparing_is_total(a: str, b: str) -> None:
    for compare in COMPARE:
        assert printed_same(a, a, compare, 1e-9)
        assert printed_same(a, b, compare, 0.0) in (True, False)


def test_comparing_is_linear() -> None:
    for text in ("1" * 300_000 + "x", "1." * 150_000, "1e" * 150_000, "\n" * 300_000, " " * 300_000 + "1"):
        for compare in COMPARE:
            assert not printed_same(text, "1 2", compare, 1e-9)
