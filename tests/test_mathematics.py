"""`mathematics`: parameters, forms and units; and that no answer runs code, hangs, or depends on what else goes on."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kgsynth.errors import SandboxError, VerifierError
from kgsynth.verifiers import REGISTRY, Verdict
from kgsynth.verifiers.algebra import client
from kgsynth.verifiers.answer import FORM_REASONS

REASONS = {"right", "wrong", "unreadable", "several answers", "other kind", "wrong form", "other variables"} | {
    "undefined",
    "too large",
    "timeout",
    *FORM_REASONS,
}


def judged(answer: str, expected: Any = "4", kind: str = "number", **params: Any) -> Verdict:
    return REGISTRY["mathematics"](f"<answer>{answer}</answer>", {"expected": expected, "kind": kind, **params}, None)


# ------------------------------------------------------------------------------------------------------------ the task


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"expected": ""},
        {"expected": "  "},
        {"expected": None},
        {"expected": True},
        {"expected": ["4"]},
        {"expected": "4" * 2001},
        {"expected": "4", "kind": "nonsense"},
        {"expected": "4", "tolerance": -0.1},
        {"expected": "4", "tolerance": 0.5},
        {"expected": "4", "tolerance": float("nan")},
        {"expected": "4", "tolerance": "1%"},
        {"expected": "4", "tolerance": True},
        {"expected": "4", "form": "pretty"},
        {"expected": "4", "domain": "quaternion"},
        {"expected": "4", "variables": "x"},
        {"expected": "4", "units": [" "]},
        {"expected": "4", "precision": 3},
    ],
)
def test_unusable_parameters_are_an_error(params: dict[str, Any]) -> None:
    with pytest.raises(VerifierError, match="mathematics"):
        REGISTRY["mathematics"]("<answer>4</answer>", params, None)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("number", "x + 1"),
        ("number", "four"),
        ("number", "1, 2"),
        ("number", "\\frac{1"),
        ("expression", "x = y = "),
        ("set", """ __import__("os") """),
        ("interval", "5"),
        ("tuple", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"),
        ("matrix", "(1, 2)"),
        ("equation", "2x + 1"),
    ],
)
def test_what_is_expected_must_be_of_its_kind(kind: str, expected: str) -> None:
    with pytest.raises(VerifierError, match="'expected' cannot be used"):
        judged("4", expected, kind)


def test_numbers_may_be_given_as_numbers() -> None:
    assert judged("4", 4).score == 1
    assert judged("1/4", 0.25).score == 1
    assert judged("1.2e-7", 1.2e-7).score == 1


def test_evidence_does_not_hold_what_was_expected() -> None:
    assert "31415" not in str(judged("3", 31415))


@pytest.mark.parametrize(
    ("form", "right", "wrong_form"),
    [
        ("any", ["2x+4", "2(x+2)", "x+x+4", "2x+2+2"], []),
        ("value", ["2x+4", "2(x+2)"], ["2x+2+2", "x+x+4", "2x+2^2"]),
        ("expanded", ["2x+4", "4+2x"], ["2(x+2)", "x+x+4"]),
        ("factored", ["2(x+2)", "(x+2)2"], ["2x+4"]),
        ("simplified", ["2x+4"], ["2x+2+2", "\\frac{4x}{2}+4"]),
    ],
)
def test_forms(form: str, right: list[str], wrong_form: list[str]) -> None:
    for answer in right:
        assert judged(answer, "2x+4", "expression", form=form).reason == "right", answer
    for answer in wrong_form:
        assert judged(answer, "2x+4", "expression", form=form).reason == "wrong form", answer


def test_lowest_terms_are_asked_for_by_simplified_only() -> None:
    assert judged("6/8", "3/4").reason == "right"
    assert judged("6/8", "3/4", form="simplified").reason == "wrong form"


def test_tolerance_is_relative() -> None:
    assert judged("1010", "1000", tolerance=0.01).score == 1
    assert judged("1011", "1000", tolerance=0.01).score == 0
    assert judged("0.0001", "0", tolerance=0.1).score == 0


def test_domains() -> None:
    assert judged("\\ln x^2", "2\\ln x", "expression").score == 1  # wherever 2 ln x is a real number
    assert judged("2\\ln x", "\\ln x^2", "expression").score == 0  # not for negative x
    assert judged("2\\ln x", "\\ln x^2", "expression", domain="positive").score == 1
    assert judged("(-1)^n", "\\cos(n\\pi)", "expression", domain="integer").score == 1
    assert judged("(-1)^n", "\\cos(n\\pi)", "expression").score == 0
    assert judged("\\sqrt{x^2}", "x", "expression", domain="complex").score == 0


# ------------------------------------------------------------------------------------------------------- hostile answers

PAYLOAD = "__import__('os').system('touch {file}')"
PLACES = (
    "{0}", "\\text{{{0}}}", "\\frac{{{0}}}{{2}}", "\\sqrt[{0}]{{4}}", "x_{{{0}}}", "{{{0}, 4}}", "({0}, 4)", "[[{0}]]", "4 = {0}", "{0} = 4", "4 \\text{{{0}}}",
    "\\operatorname{{{0}}}(4)", "\\mathrm{{{0}}}", "\\begin{{pmatrix}}{0}\\end{{pmatrix}}", "4\\%{0}", "\\sum_{{{0}=1}}^{{4}} 1", "\\log_{{{0}}} 4", "\\binom{{{0}}}{{1}}", "f({0})", "|{0}|",
    "x \\in {0}", "\\boxed{{{0}}}", "${0}$", "4e{0}", "0.({0})", "4^{{{0}}}", "lambda: {0}", "(lambda: {0})()", "\\left({0}\\right)", "4; {0}", "4\n{0}", "4 if {0} else 5", "eval(\"{0}\")",
    "\\overline{{{0}}}", "\\begin{{array}}{{{0}}}4\\end{{array}}", "\\lim_{{x \\to {0}}} x", "{0}^\\circ", "1 < {0} < 3", "\\{{x | {0}\\}}", "sqrt({0})", "exp({0})", "Symbol('x', {0})", "@{0}",
)  # fmt: skip


def test_no_place_in_an_answer_runs_code(tmp_path: Path) -> None:
    payload = PAYLOAD.format(file=tmp_path / "ran")
    for kind, expected in (("number", "4"), ("set", "4"), ("interval", "(1, 2)")):
        with ThreadPoolExecutor(4) as pool:
            verdicts = pool.map(lambda place: judged(place.format(payload), expected, kind), PLACES)  # noqa: B023
        assert {verdict.score for verdict in verdicts} == {0.0}
    assert not list(tmp_path.iterdir())


WATCH = """
import sys
from kgsynth.verifiers.algebra import server
from kgsynth.verifiers.algebra.judge import judge
from tests.fair.mathematics import CASES
from tests.test_mathematics import PAYLOAD, PLACES
for kind, expected, answer in server.WARM_UP:
    judge({"kind": kind, "expected": expected, "answer": answer})
caught = []
def hook(event, arguments):
    try:
        server.refuse(event, arguments)
    except PermissionError:
        caught.append((event, str(arguments)[:200]))
sys.addaudithook(hook)
for case in CASES[::4]:
    for answer in (case.reference, *case.right[:3], *case.wrong[:3]):
        judge({**case.params, "answer": answer})
for place in PLACES:
    judge({"kind": "expression", "expected": "4", "answer": place.format(PAYLOAD.format(file="/nowhere"))})
assert not caught, caught
eval("caught.append('the hook sees eval')")
assert len(caught) == 2, caught
"""


def test_nothing_on_the_way_of_an_answer_compiles_text() -> None:
    """Without the hook that refuses it, too: nothing tries."""
    run = subprocess.run([sys.executable, "-c", WATCH], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr[-2000:]


BOMBS = (
    "9**9**9", "9^{9^{9^{9}}}", "9**9**9**9**9", "(((9!)!)!)!", "10^{10^{10}}", "\\binom{1000000000}{500000000}", "\\sqrt[9^{99}]{9^{9^9}}", "e^{e^{e^{e^{e}}}}", "2^{-10^{10}}", "1" * 1500, "(" * 900 + ")" * 900,
    "\\frac{1}{" * 200 + "2" + "}" * 200, "-" * 1900 + "4", "4" + "!" * 500, "\\sqrt{" * 50 + "4" + "}" * 50, "+".join(["1"] * 900), "^".join(["x"] * 500), "\\left(" * 300, "{" * 1000, "4" + "^2" * 100, "|" * 999,
    "\\gamma" * 300, "\\text{" * 300, "a_" * 900, ",".join("1" * 900), "\\begin{matrix}" * 50, "\\boxed{" * 250, "$" * 999, "\\" * 1999, "x=" * 900, "0." + "3" * 1900, "1e9999", "4e999999999", "\\pm" * 500 + "4", "0.(" + "1" * 900 + ")",
)  # fmt: skip


def test_bombs_are_rejected() -> None:
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda bomb: judged(bomb, "x", "expression"), BOMBS))
    assert {verdict.score for verdict in verdicts} == {0.0}
    assert {verdict.reason for verdict in verdicts} <= REASONS


SLOW = "\\sum_{k=1}^{10000000000} \\frac{1}{k^{k}+k}"


def test_too_much_cpu_time_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CPU_SECONDS", 1)
    assert judged(SLOW).reason == "timeout"
    assert judged("4").reason == "right"


def test_too_much_wall_clock_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CPU_SECONDS", 60)
    monkeypatch.setattr(client, "WALL_SECONDS", 1)
    with pytest.raises(SandboxError, match="too busy"):
        judged(SLOW)


def test_what_is_expected_must_be_quick_to_judge() -> None:
    with pytest.raises(VerifierError, match="cannot be used: too large"):
        judged("4", "9^{9^{9^9}}")


def test_the_memory_of_a_question_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MEMORY_MB", 1)
    assert judged("+".join(["x"] * 900), "x", "expression").reason == "too large"
    assert judged("x", "x", "expression").reason == "right"


HOSTILE = (
    "x" * 10_000_000,
    "\0",
    "\ud800",
    "(" * 100_000,
    "\u202e4",
    "4\u200b",
    "4\ufeff",
    "𝟜",
    "④",
    "４",
    "٤",
    "\x1b[31m4",
    "<answer>",
    "\\\\",
    "%",
    "^",
    "_",
    "&",
    "#",
    "=",
    ",",
    "{}{",
    "}{",
)


@pytest.mark.parametrize("answer", HOSTILE, ids=lambda answer: ascii(answer[:12]))
def test_odd_answers_never_raise(answer: str) -> None:
    for kind in ("number", "set", "matrix", "equation", "interval", "tuple"):
        expected = {"interval": "(1, 2)", "matrix": "[[4]]", "equation": "x = 4"}.get(kind, "4")
        verdict = judged(answer, expected, kind)
        assert verdict.reason in REASONS
        assert verdict.score == (unicodedata_digit(answer) and kind in ("number", "set", "tuple"))


def unicodedata_digit(answer: str) -> bool:
    """Fair spellings of 4: its compatibility form is the digit."""
    return answer in ("𝟜", "④", "４")


# ----------------------------------------------------------------------------------------------------------- the process


def test_verdicts_in_threads() -> None:
    answers = ["4", "5", "2+2", "9**9**9", "4.0", "x"] * 10
    with ThreadPoolExecutor(8) as pool:
        reasons = [verdict.reason for verdict in pool.map(judged, answers)]
    assert reasons == ["right", "wrong", "wrong form", "too large", "right", "other variables"] * 10


def test_a_killed_process_is_replaced() -> None:
    assert judged("4").score == 1
    process = client.calculator._process
    assert process is not None
    threading.Timer(0.05, process.kill).start()
    assert all(judged("4").score == 1 for _ in range(30))
    assert client.calculator._process is not process


def test_a_forked_worker_has_its_own_process() -> None:
    assert judged("4").score == 1
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert [verdict.score for verdict in pool.map(judged, ["4", "5", "4"])] == [1, 0, 1]


CHILD = """
import os, signal
from kgsynth.verifiers import REGISTRY
from kgsynth.verifiers.algebra import client
assert REGISTRY["mathematics"]("<answer>4</answer>", {"expected": "4", "kind": "number"}, None).score == 1
print(client.calculator._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_ends_with_its_parent_and_knows_no_secret() -> None:
    environment = {**os.environ, "API_KEY": "a secret"}
    assert judged("4").score == 1
    process = client.calculator._process
    assert process is not None
    assert b"a secret" not in Path(f"/proc/{process.pid}/environ").read_bytes()
    run = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == -signal.SIGKILL, run.stderr
    deadline = time.monotonic() + 30
    while _runs(int(run.stdout)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(int(run.stdout))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
