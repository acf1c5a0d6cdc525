"""OpenAIChat against an endpoint that misbehaves on purpose: retries, breaker, pace, fallbacks."""

from __future__ import annotations

import asyncio
import email.utils
import json
import threading
from typing import Any

import pytest

from kgsynth.errors import LLMError
from kgsynth.llm.endpoint import retry_after
from kgsynth.llm.pace import Pace
from tests.asking import GREEN, AskColour, FakeTime, chat, green, one, run
from tests.fake_openai import FakeOpenAI, Response, empty_choices, faulty, malformed, refusal, stalled

# --- faults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        refusal(429),
        refusal(500),
        refusal(503, retry_after="0"),
        refusal(408),
        malformed(),
        empty_choices(),
        Response(body=b"<html>gateway</html>", content_type="text/html"),
        Response(body=b'["a list"]'),
        Response(body=b'{"choices": "none"}'),
    ],
    ids=["429", "500", "503", "408", "malformed", "empty", "html", "list", "choices"],
)
def test_a_passing_fault_is_retried_after_a_backoff(fault: Response) -> None:
    outcome, requests, time, _ = one(faulty(green, {0: fault, 1: fault}))
    assert outcome == GREEN
    assert len(requests) == 3
    first, second = time.slept
    assert 0.5 <= first <= 1.0 <= second <= 2.0


def test_a_stalled_response_times_out_and_is_retried() -> None:
    outcome, requests, _, llm = one(faulty(green, {0: stalled()}), timeout_s=0.3)
    assert outcome == GREEN
    assert len(requests) == 2
    assert llm.ledger.total.calls == 2


@pytest.mark.parametrize(("value", "pause"), [("7", 7.0), (email.utils.formatdate(1009, usegmt=True), 9.0)])
def test_retry_after_is_honoured_in_both_forms(value: str, pause: float) -> None:
    outcome, _, time, _ = one(faulty(green, {0: refusal(429, retry_after=value)}))
    assert outcome == GREEN
    assert time.slept == [pause]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("86400", 60.0), ("-3", 0.0), ("soon", None), ("nan", None), ("", None), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0)],
)
def test_retry_after_is_capped_and_nonsense_is_ignored(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}, now=1000.0) == seconds


@pytest.mark.parametrize(
    ("status", "fix"),
    [(401, "environment variable MY_KEY"), (404, "base_url and model"), (403, "may not use the model")],
)
def test_what_no_retry_can_cure_ends_at_once_and_names_the_fix(
    status: int, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    outcome, requests, time, _ = one(lambda _: refusal(status, "bad key sk-secret"), api_key_env="MY_KEY")
    assert isinstance(outcome, LLMError)
    assert len(requests) == 1
    assert time.slept == []
    for part in (f"HTTP {status}", "'fake'", "http://127.0.0.1", fix, "bad key ***"):
        assert part in str(outcome)
    assert "sk-secret" not in str(outcome)


def test_exhausted_credit_is_not_retried() -> None:
    body = json.dumps({"error": {"message": "quota", "code": "insufficient_quota"}}).encode()
    outcome, requests, _, _ = one(lambda _: Response(status=429, body=body))
    assert len(requests) == 1
    assert "out of credit" in str(outcome)


@pytest.mark.parametrize(("fault", "cause"), [(refusal(429), "HTTP 429"), (refusal(502), "HTTP 502")])
def test_a_steady_fault_ends_with_its_cause_after_bounded_attempts(fault: Response, cause: str) -> None:
    outcome, requests, time, _ = one(lambda _: fault, max_attempts=4)
    assert isinstance(outcome, LLMError)
    assert f"4 attempts, the last with {cause}" in str(outcome)
    assert len(requests) == 4
    assert len(time.slept) == 3


def test_nobody_listening_is_an_error_that_names_the_address() -> None:
    with FakeOpenAI(green) as server:
        pass
    (outcome,) = run(chat(server, max_attempts=2), AskColour())
    assert isinstance(outcome, LLMError)
    assert server.url in str(outcome)
    assert "is the server running" in str(outcome)


def test_the_breaker_stops_all_questions_and_closes_after_a_success() -> None:
    broken = threading.Event()
    broken.set()
    with FakeOpenAI(lambda r: refusal(500, "down") if broken.is_set() else green(r)) as server:
        time = FakeTime()
        llm = chat(server, time=time, max_attempts=2, concurrency=1)  # opens after 6 failures in a row

        async def scenario() -> None:
            failures = [await asyncio.gather(llm.ask(AskColour()), return_exceptions=True) for _ in range(10)]
            assert all(isinstance(failure, LLMError) for (failure,) in failures)
            assert len(server.requests) == 6
            assert "6 calls in a row failed" in str(failures[-1][0])
            assert "HTTP 500" in str(failures[-1][0])
            broken.clear()
            await time.sleep(61)
            assert await llm.ask(AskColour()) == GREEN
            assert await llm.ask(AskColour(thing="sky")) == GREEN

        asyncio.run(scenario())


# --- pace -----------------------------------------------------------------------------------------------------------


def test_no_more_requests_than_the_limit_are_in_flight() -> None:
    most, now, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2)

    def script(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        both.wait(timeout=10)  # passes only when two requests are in flight
        with lock:
            now -= 1
        return {"colour": "green"}

    with FakeOpenAI(script) as server:
        assert run(chat(server, concurrency=2), *(AskColour(thing=str(i)) for i in range(8))) == [GREEN] * 8
    assert most == 2


def test_a_429_halves_the_limit_once_per_burst_and_successes_bring_it_back() -> None:
    async def scenario() -> None:
        time = FakeTime()
        pace = Pace(8, breaker=100, clock=lambda: time.now, sleep=time.sleep)
        taken_at = time.now
        time.now += 1
        for _ in range(5):  # five answers of one burst
            pace.throttled(taken_at, 3.0)
        assert pace.limit == 4
        async with pace.slot(lambda: True) as taken_at:
            assert time.slept == [3.0]
        pace.throttled(taken_at, 0.0)
        assert pace.limit == 2
        for _ in range(40):
            pace.succeeded()
        assert pace.limit == 8

    asyncio.run(scenario())


def test_a_burst_of_429_is_survived_by_all_questions() -> None:
    faults = {n: refusal(429, retry_after="2") for n in range(6)}
    with FakeOpenAI(faulty(green, faults)) as server:
        llm = chat(server, concurrency=8)
        assert run(llm, *(AskColour(thing=str(i)) for i in range(12))) == [GREEN] * 12
        assert len(server.requests) == 18
