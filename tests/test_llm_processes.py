"""Runs of several processes, killed with -9 in the middle of their requests: the ledger adds up and caps hold."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgsynth.errors import BudgetError
from kgsynth.ledger import LOST, Ledger
from tests.asking import GREEN, AskColour, chat, run
from tests.fake_openai import FakeOpenAI

ROOT = Path(__file__).parents[1]
GIVE_UP_S = 60.0


def asking(
    server: FakeOpenAI, folder: Path, *, name: str, askers: int, questions: int, max_calls: int
) -> subprocess.Popen[str]:
    given = [server.url, str(folder), "old", name, str(askers), str(questions), str(max_calls)]
    return subprocess.Popen([sys.executable, "-m", "tests.asking", *given], cwd=ROOT, stderr=subprocess.PIPE, text=True)


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + GIVE_UP_S
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


class Stuck:
    """A script that answers `answers` requests and keeps the rest waiting until it is let go."""

    def __init__(self, answers: int) -> None:
        self.left, self.let_go, self._lock = answers, threading.Event(), threading.Lock()

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.left -= 1
            stuck = self.left < 0
        if stuck:
            self.let_go.wait(GIVE_UP_S)
        return {"colour": "green"}


def killed_with_two_in_flight(server: FakeOpenAI, script: Stuck, folder: Path, max_calls: int) -> None:
    """A process of model "old" with two askers that got four answers and is killed while two requests are under way."""
    process = asking(server, folder, name="q", askers=2, questions=3, max_calls=max_calls)
    wait_until(lambda: len(server.requests) == 6 or process.poll() is not None)
    wait_until(lambda: Ledger(folder / "ledger.sqlite", readonly=True).total.calls == 4)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    script.let_go.set()


QUESTIONS = [AskColour(thing=f"q {asker} {i}") for asker in range(2) for i in range(3)]


def test_a_killed_run_asks_nothing_twice_that_was_answered(tmp_path: Path) -> None:
    script = Stuck(4)
    with FakeOpenAI(script) as server:
        killed_with_two_in_flight(server, script, tmp_path, max_calls=100)
        llm = chat(server, tmp_path, model="old")
        assert run(llm, *QUESTIONS) == [GREEN] * 6
        assert len(server.requests) == llm.ledger.total.calls == 6 + 2
    assert Counter(row["outcome"] for row in llm.ledger.rows()) == {"ok": 6, LOST: 2}
    lost = [row for row in llm.ledger.rows() if row["outcome"] == LOST]
    assert all(row["estimated"] and row["completion_tokens"] == 4096 for row in lost)  # each may have been a full reply


def test_a_run_resumed_with_another_model_counts_both(tmp_path: Path) -> None:
    script = Stuck(4)
    with FakeOpenAI(script) as server:
        killed_with_two_in_flight(server, script, tmp_path, max_calls=10)
        llm = chat(server, tmp_path, model="new", max_calls=10)
        outcomes = run(llm, *QUESTIONS)
        assert outcomes.count(GREEN) == 4
        assert sum(isinstance(outcome, BudgetError) for outcome in outcomes) == 2
        counted = Counter(request["model"] for request in server.requests)
    assert counted == {"old": 6, "new": 4}
    assert {model: spent.calls for model, spent in llm.ledger.by_model().items()} == counted


@pytest.mark.parametrize("seed", [0, 1])
def test_four_processes_never_pass_a_cap_and_two_of_them_are_killed(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    cap = 100

    def slow(request: dict[str, Any]) -> dict[str, Any]:
        time.sleep(rng.uniform(0.0, 0.05))
        return {"colour": "green"}

    with FakeOpenAI(slow) as server:
        processes = [asking(server, tmp_path, name=str(n), askers=4, questions=1000, max_calls=cap) for n in range(4)]
        victims = rng.sample(processes, 2)
        for victim in victims:
            at = len(server.requests) + rng.randint(5, 30)
            wait_until(lambda at=at: len(server.requests) >= at)
            victim.send_signal(signal.SIGKILL)
        ended = {process: process.communicate(timeout=GIVE_UP_S)[1] for process in processes}
        received = len(server.requests)
    for process, errors in ended.items():
        assert process.returncode == (-signal.SIGKILL if process in victims else 0), errors
    ledger = Ledger(tmp_path / "ledger.sqlite", readonly=True)
    outcomes = Counter(row["outcome"] for row in ledger.rows())
    assert set(outcomes) <= {"ok", LOST}
    assert ledger.total.calls == cap
    assert outcomes["ok"] <= received <= cap
    assert cap - received <= outcomes[LOST] <= 2 * 4
