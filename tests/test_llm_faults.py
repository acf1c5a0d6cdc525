"""OpenAIChat against an endpoint that misbehaves on purpose: retries, breaker, pace, fallbacks."""

from __future__ import annotations

import asyncio
import email.utils
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from kgsynth.errors import BudgetError, LLMError
from kgsynth.llm.config import EndpointConfig
from kgsynth.llm.endpoint import retry_after
from kgsynth.llm.pace import Pace
from tests.asking import GREEN, AskColour, FakeTime, chat, green, one, run
from tests.fake_openai import FakeOpenAI, Response, completion, empty_choices, faulty, malformed, refusal, stalled

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
        async with pace.slot(lambda: True) as (taken_at, _):
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


# --- what peers got wrong -------------------------------------------------------------------------------------------


def test_a_steady_429_ends_for_every_question_with_its_cause() -> None:
    """NVIDIA-NeMo/DataDesigner#575: back-off under a steady 429 never ended."""
    time = FakeTime()
    with FakeOpenAI(lambda _: refusal(429, "slow down", retry_after="30")) as server:
        outcomes = run(
            chat(server, time=time, concurrency=8, max_attempts=5), *(AskColour(thing=str(i)) for i in range(60))
        )
        assert all(isinstance(outcome, LLMError) and "HTTP 429: slow down" in str(outcome) for outcome in outcomes)
        assert 32 <= len(server.requests) <= 32 + 8  # the breaker, and what was in flight when it opened


def test_a_slow_endpoint_is_waited_for_in_the_queue() -> None:
    """NVIDIA-NeMo/DataDesigner#551: a fixed time limit of the queue killed calls to slow endpoints."""
    slow = Response(body=completion('{"colour": "green"}').body, delay=0.2)
    with FakeOpenAI(lambda _: slow) as server:
        llm = chat(server, concurrency=1, timeout_s=0.5, max_attempts=1)
        assert run(llm, *(AskColour(thing=str(i)) for i in range(5))) == [GREEN] * 5  # the last waits for 0.8 s
        assert len(server.requests) == 5


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (refusal(503, "overloaded"), "HTTP 503: overloaded"),
        (refusal(401, "bad key"), "HTTP 401: bad key"),
        (Response(body=b"<html>"), "a malformed response"),
    ],
)
def test_a_run_in_which_everything_fails_names_the_cause(fault: Response, cause: str) -> None:
    """NVIDIA-NeMo/DataDesigner#382: a run in which every call failed blamed the configuration."""
    with FakeOpenAI(lambda _: fault) as server:
        outcomes = run(chat(server), *(AskColour(thing=str(i)) for i in range(100)))
    assert all(isinstance(outcome, LLMError) for outcome in outcomes)
    assert all(cause in str(outcome) and "'fake'" in str(outcome) for outcome in outcomes)


# --- fallbacks ------------------------------------------------------------------------------------------------------


def fallback(server: FakeOpenAI, model: str, **settings: Any) -> EndpointConfig:
    return EndpointConfig(model=model, base_url=server.url, **settings)


def test_a_fallback_answers_while_the_first_is_down_and_is_left_when_it_recovers(tmp_path: Path) -> None:
    down = threading.Event()
    down.set()
    with (
        FakeOpenAI(lambda r: refusal(500, "down") if down.is_set() else green(r)) as first,
        FakeOpenAI(green) as second,
    ):
        time = FakeTime()
        prices = {"usd_per_1m_prompt": 1.0, "usd_per_1m_completion": 0.0}
        others = (fallback(second, "spare", usd_per_1m_prompt=100.0, usd_per_1m_completion=0.0),)
        llm = chat(first, tmp_path, time, max_attempts=2, concurrency=1, fallbacks=others, **prices)

        async def scenario() -> None:
            for i in range(10):
                assert await llm.ask(AskColour(thing=f"down {i}")) == GREEN
            assert len(first.requests) == 6  # then its breaker is open
            assert len(second.requests) == 10
            down.clear()
            await time.sleep(61)
            for i in range(5):
                assert await llm.ask(AskColour(thing=f"up {i}")) == GREEN
            assert (len(first.requests), len(second.requests)) == (11, 10)
            await llm.close()

        asyncio.run(scenario())
    assert {request["model"] for request in second.requests} == {"spare"}
    spent = llm.ledger.by_model()
    assert (spent["fake"].calls, spent["spare"].calls) == (11, 10)
    assert (spent["fake"].usd, spent["spare"].usd) == (pytest.approx(5 * 10 / 1e6), pytest.approx(10 * 10 * 100 / 1e6))


def test_a_model_that_cannot_keep_the_form_is_replaced_for_that_question() -> None:
    with FakeOpenAI(lambda _: "no JSON") as first, FakeOpenAI(green) as second:
        llm = chat(first, fallbacks=(fallback(second, "spare"),))
        assert run(llm, AskColour()) == [GREEN]
        assert (len(first.requests), len(second.requests)) == (3, 1)
        assert second.requests[0]["messages"] == AskColour().messages()  # not the conversation with the first


def test_when_all_endpoints_fail_each_is_named_with_its_cause() -> None:
    with (
        FakeOpenAI(lambda _: refusal(401, "no such key")) as first,
        FakeOpenAI(lambda _: refusal(503, "busy")) as second,
    ):
        with FakeOpenAI(green) as closed:
            pass
        llm = chat(first, fallbacks=(fallback(second, "b"), fallback(closed, "c")), max_attempts=2)
        (outcome,) = run(llm, AskColour())
    assert type(outcome) is LLMError
    for part in (
        "all 3 endpoints failed",
        "'fake'",
        "HTTP 401: no such key",
        "'b'",
        "HTTP 503: busy",
        "'c'",
        "no connection",
    ):
        assert part in str(outcome)


def test_each_endpoint_gets_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-first")
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    with (
        FakeOpenAI(lambda _: refusal(500)) as first,
        FakeOpenAI(lambda _: refusal(500)) as other,
        FakeOpenAI(green) as last,
    ):
        others = (fallback(other, "b", api_key_env="OTHER_KEY"), fallback(last, "c"))
        assert run(chat(first, max_attempts=1, fallbacks=others), AskColour()) == [GREEN]
        sent = [server.headers[0]["authorization"] for server in (first, other, last)]
    assert sent == ["Bearer sk-first", "Bearer sk-other", "Bearer none"]


def test_a_resumed_run_prefers_the_endpoint_that_was_paid_for_the_answer(tmp_path: Path) -> None:
    down = threading.Event()
    down.set()
    with FakeOpenAI(lambda r: refusal(500) if down.is_set() else green(r)) as first, FakeOpenAI(green) as second:
        others = (fallback(second, "spare"),)
        assert run(chat(first, tmp_path, max_attempts=1, fallbacks=others), AskColour()) == [GREEN]
        down.clear()
        assert run(chat(first, tmp_path, fallbacks=others), AskColour()) == [GREEN]
        assert (len(first.requests), len(second.requests)) == (1, 1)


def test_a_budget_is_not_evaded_by_a_fallback() -> None:
    with FakeOpenAI(green) as first, FakeOpenAI(green) as second:
        llm = chat(first, max_calls=1, fallbacks=(fallback(second, "spare"),))
        answered, refused = run(llm, AskColour(thing="a"), AskColour(thing="b"))
        assert answered == GREEN
        assert isinstance(refused, BudgetError)
        assert len(second.requests) == 0
