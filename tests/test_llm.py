"""OpenAIChat against a real local HTTP server that misbehaves on purpose; the ledger; reply extraction."""

from __future__ import annotations

import asyncio
import email.utils
import json
import random
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel

from kgsynth.errors import BudgetError, ConfigError, LLMError, LLMReplyError, RunError
from kgsynth.llm import Question
from kgsynth.llm.ledger import Caps, Ledger, Spend
from kgsynth.llm.openai import LLMConfig, OpenAIChat, retry_after
from kgsynth.llm.pace import Pace
from kgsynth.llm.reply import parse_reply, strict_schema
from tests.fake_openai import (
    FakeOpenAI,
    Response,
    Script,
    completion,
    empty_choices,
    faulty,
    malformed,
    refusal,
    stalled,
)

ROOT = Path(__file__).parents[1]


class Part(BaseModel):
    name: str
    weight: int = 1


class Colour(BaseModel):
    colour: Literal["red", "green"]
    parts: list[Part] = []
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class AskColour(Question[Colour]):
    reply: ClassVar[type[BaseModel]] = Colour
    thing: str = "grass"

    def messages(self) -> list[dict[str, str]]:
        return [{"role": "system", "content": "Name a colour."}, {"role": "user", "content": self.thing}]


def green(request: dict[str, Any]) -> dict[str, Any]:
    return {"colour": "green"}


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def chat(server: FakeOpenAI, folder: Path | None = None, time: FakeTime | None = None, **settings: Any) -> OpenAIChat:
    config = LLMConfig(**{"kind": "openai", "model": "fake", "base_url": server.url, "timeout_s": 5.0, **settings})
    time = time or FakeTime()
    return OpenAIChat(
        config, folder, rng=random.Random(0), sleep=time.sleep, clock=lambda: time.now, now=lambda: time.now
    )


def run(llm: OpenAIChat, *questions: AskColour) -> list[Any]:
    """Replies or exceptions, in the order of the questions, asked at once."""

    async def ask_all() -> list[Any]:
        try:
            return await asyncio.gather(*(llm.ask(q) for q in questions), return_exceptions=True)
        finally:
            await llm.close()

    return asyncio.run(ask_all())


def one(script: Script, **settings: Any) -> tuple[Any, list[dict[str, Any]], FakeTime, OpenAIChat]:
    """Ask one question of a scripted endpoint: the outcome, the requests, the time slept, the client."""
    time = FakeTime()
    with FakeOpenAI(script) as server:
        llm = chat(server, time=time, **settings)
        (outcome,) = run(llm, AskColour())
        return outcome, server.requests, time, llm


GREEN = Colour(colour="green")


# --- the plain path -------------------------------------------------------------------------------------------------


def test_a_question_becomes_one_request_and_a_validated_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    with FakeOpenAI(green) as server:
        llm = chat(server, api_key_env="MY_KEY", temperature=0.7)
        assert run(llm, AskColour()) == [GREEN]
        (request,) = server.requests
        assert server.headers[0]["authorization"] == "Bearer sk-secret"
    assert (request["model"], request["temperature"], request["max_tokens"]) == ("fake", 0.7, 4096)
    assert request["messages"] == AskColour().messages()
    assert request["response_format"]["json_schema"]["strict"] is True
    assert (llm.name, llm.uses_model) == ("openai:fake", True)
    assert "sk-secret" not in repr(llm.config)


def test_one_client_serves_one_event_loop_after_another() -> None:
    with FakeOpenAI(green) as server:
        llm = chat(server)
        assert asyncio.run(llm.ask(AskColour(thing="a"))) == GREEN  # the loop is closed, the client is not
        assert asyncio.run(llm.ask(AskColour(thing="b"))) == GREEN


def test_strict_schema_closes_every_object_and_requires_every_property() -> None:
    schema = strict_schema(Colour)
    assert schema["required"] == ["colour", "parts", "note"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Part"]["required"] == ["name", "weight"]
    assert schema["properties"]["parts"]["items"] == {"$ref": "#/$defs/Part"}
    assert '"default"' not in json.dumps(schema)


# --- what an endpoint accepts ---------------------------------------------------------------------------------------


def accepting(*formats: str | None) -> Script:
    """An endpoint that takes only these response formats (None: the field must be absent)."""

    def script(request: dict[str, Any]) -> dict[str, Any] | Response:
        sent = request.get("response_format", {}).get("type")
        return {"colour": "green"} if sent in formats else refusal(400, f"response_format {sent} is not supported")

    return script


@pytest.mark.parametrize(("formats", "tries"), [(["json_schema"], 1), (["json_object"], 2), ([None], 3)])
def test_the_richest_accepted_format_is_found_and_remembered(formats: list[str | None], tries: int) -> None:
    with FakeOpenAI(accepting(*formats)) as server:
        llm = chat(server)

        async def ask_in_turn() -> list[Colour]:
            return [await llm.ask(AskColour(thing=thing)) for thing in "abc"]

        assert asyncio.run(ask_in_turn()) == [GREEN] * 3
        assert len(server.requests) == tries + 2
        schema_in_prompt = "JSON schema" in server.requests[-1]["messages"][-1]["content"]
        assert schema_in_prompt == (formats != ["json_schema"])
        assert [m["role"] for m in server.requests[-1]["messages"]] == ["system", "user"]


def test_parameters_that_a_model_refuses_are_given_up() -> None:
    def reasoning_model(request: dict[str, Any]) -> dict[str, Any] | Response:
        if "max_tokens" in request:
            return refusal(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        if "temperature" in request:
            return refusal(400, "Unsupported value: 'temperature' does not support 0.2 with this model.")
        return {"colour": "green"}

    outcome, requests, _, _ = one(reasoning_model)
    assert outcome == GREEN
    assert requests[-1]["max_completion_tokens"] == 4096
    assert requests[-1]["response_format"]["type"] == "json_schema"


def test_a_400_about_something_else_ends_at_once_and_teaches_nothing() -> None:
    def script(request: dict[str, Any]) -> dict[str, Any] | Response:
        too_long = request["messages"][1]["content"].startswith("long")
        return refusal(400, "context length exceeded") if too_long else {"colour": "green"}

    with FakeOpenAI(script) as server:
        llm = chat(server)
        (failure,) = run(llm, AskColour(thing="long"))
        assert isinstance(failure, LLMError)
        assert "HTTP 400" in str(failure)
        assert "context length exceeded" in str(failure)
        assert run(llm, AskColour()) == [GREEN]
        assert server.requests[-1]["response_format"]["type"] == "json_schema"


# --- replies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"colour": "green"}',
        'Sure! Here it is:\n```json\n{"colour": "green"}\n```\nAnything else?',
        '<think>{"colour": "red"} or not?</think>\n{"colour": "green"}',
        'A set {of words} and then {"colour": "green", "extra": {"a": "}"}} done',
        '{"colour": "blue"} is wrong, so {"colour": "green"}',
    ],
)
def test_a_reply_is_found_inside_the_usual_wrapping(text: str) -> None:
    assert parse_reply(text, Colour) == GREEN


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("I would rather not.", "no complete JSON object"),
        ('{"colour": "gre', "no complete JSON object"),
        ('{"colour": "blue"}', "colour: Input should be 'red' or 'green'"),
        ('{"colour": "green", "note": "\\ud800"}', "surrogate"),
        ('{"colour": "green", "parts": [{"name": "x", "weight": NaN}]}', "no complete JSON object"),
        ("[" * 100_000, "no complete JSON object"),
        ("{" * 100_000, "no complete JSON object"),
    ],
)
def test_an_unusable_reply_says_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("(", r"\(")):
        parse_reply(text, Colour)


def test_a_bad_reply_is_sent_back_with_the_error_and_repaired() -> None:
    bad = json.dumps({"colour": "blue"})
    outcome, requests, _, _ = one(faulty(green, {0: completion(bad)}))
    assert outcome == GREEN
    assert len(requests) == 2
    assistant, user = requests[1]["messages"][-2:]
    assert assistant == {"role": "assistant", "content": bad}
    assert "Input should be 'red' or 'green'" in user["content"]


def test_after_two_repairs_the_question_fails_and_may_be_asked_anew(tmp_path: Path) -> None:
    with FakeOpenAI(faulty(green, {n: completion("no") for n in range(3)})) as server:
        llm = chat(server, tmp_path)
        (failure,) = run(llm, AskColour())
        assert isinstance(failure, LLMReplyError)
        assert "Colour in 3 turns" in str(failure)
        assert len(server.requests) == 3
        assert run(chat(server, tmp_path), AskColour()) == [GREEN]
        assert len(server.requests) == 4


def test_a_refusal_by_the_model_counts_as_a_bad_reply() -> None:
    outcome, requests, _, _ = one(faulty(green, {0: completion(None, refusal="I cannot help with that.")}))
    assert outcome == GREEN
    assert requests[1]["messages"][-2]["content"] == "I cannot help with that."


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


# --- the ledger -----------------------------------------------------------------------------------------------------


def test_money_and_tokens_are_counted_per_stage(tmp_path: Path) -> None:
    with FakeOpenAI(faulty(green, {0: refusal(500)})) as server:
        llm = chat(server, tmp_path, usd_per_1m_prompt=2.0, usd_per_1m_completion=10.0)
        assert run(llm, AskColour()) == [GREEN]
    spent = Spend(calls=2, prompt_tokens=10, completion_tokens=4, usd=(10 * 2 + 4 * 10) / 1e6)
    assert llm.ledger.stages == {"grow": spent}
    rows = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert [row["outcome"][:8] for row in rows] == ["HTTP 500", "ok"]
    assert Ledger(tmp_path / "ledger.jsonl").total == spent


def test_tokens_that_are_not_reported_are_estimated() -> None:
    _, _, _, llm = one(lambda _: completion('{"colour": "green"}', usage=False))
    assert llm.ledger.total.prompt_tokens > 10
    assert llm.ledger.total.completion_tokens == 9


@pytest.mark.parametrize(
    "settings",
    [
        {"max_calls": 2},
        {"max_tokens": 3000, "max_reply_tokens": 1400},
        {"max_usd": 0.0045, "max_reply_tokens": 1400, "usd_per_1m_prompt": 0.0, "usd_per_1m_completion": 2.0},
    ],
    ids=["calls", "tokens", "usd"],
)
def test_a_cap_is_enforced_before_the_call(settings: dict[str, Any], tmp_path: Path) -> None:
    def dear(request: dict[str, Any]) -> Response:
        body = json.loads(completion('{"colour": "green"}').body)
        body["usage"] = {"prompt_tokens": 100, "completion_tokens": 700, "total_tokens": 800}
        return Response(body=json.dumps(body).encode())

    with FakeOpenAI(dear) as server:
        outcomes = run(chat(server, tmp_path, **settings), *(AskColour(thing=str(i)) for i in range(5)))
        answered = [outcome for outcome in outcomes if outcome == GREEN]
        assert len(answered) == len(server.requests) == 2
        assert all(isinstance(outcome, BudgetError) for outcome in outcomes if outcome != GREEN)
        resumed = chat(server, tmp_path, **settings)
        assert run(resumed, AskColour(thing=str(outcomes.index(GREEN)))) == [GREEN]
        (refused,) = run(resumed, AskColour(thing="new"))
        assert isinstance(refused, BudgetError)
        assert next(iter(settings)) in str(refused)
        assert len(server.requests) == 2


def test_a_reservation_that_may_be_given_back_is_waited_for() -> None:
    ledger = Ledger(caps=Caps(max_tokens=1000))
    expected = Spend(calls=1, completion_tokens=600)
    assert ledger.reserve(expected)
    assert not ledger.reserve(expected)
    ledger.settle(expected, {"stage": "grow", "outcome": "ok", "completion_tokens": 100})
    assert ledger.reserve(expected)
    ledger.settle(expected, {"stage": "grow", "outcome": "ok", "completion_tokens": 500})
    with pytest.raises(BudgetError, match="max_tokens = 1000 is reached: 2 calls, 600 tokens"):
        ledger.reserve(expected)


def test_a_cancelled_question_gives_its_reservation_back(tmp_path: Path) -> None:
    with FakeOpenAI(lambda _: stalled()) as server:
        llm = chat(server, tmp_path, timeout_s=30.0)

        async def scenario() -> None:
            task = asyncio.create_task(llm.ask(AskColour()))
            while not server.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await llm.close()

        asyncio.run(scenario())
    assert llm.ledger.reserved == Spend()
    assert llm.ledger.total.calls == 1


def test_a_torn_last_line_is_cut_off_and_any_other_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    ledger.settle(Spend(), {"stage": "grow", "outcome": "ok", "prompt_tokens": 5, "key": "k", "reply": "é\u2028"})
    with path.open("a") as file:
        file.write('{"stage": "grow", "prompt_tok')
    again = Ledger(path)
    assert again.total == Spend(calls=1, prompt_tokens=5)
    assert again.reply("k") == "é\u2028"
    again.settle(Spend(), {"stage": "synthesize", "outcome": "ok", "prompt_tokens": 7})
    assert Ledger(path).total.prompt_tokens == 12
    path.write_text('broken\n{"stage": "grow"}\n')
    with pytest.raises(RunError, match=r"ledger\.jsonl:1 is not a ledger line"):
        Ledger(path)


def test_a_question_that_was_answered_is_never_asked_again(tmp_path: Path) -> None:
    with FakeOpenAI(faulty(green, {0: completion("bad")})) as server:
        assert run(chat(server, tmp_path), AskColour()) == [GREEN]
        assert run(chat(server, tmp_path, max_reply_tokens=99), AskColour()) == [GREEN]
        assert len(server.requests) == 2  # the bad reply and its repair are both replayed
        assert run(chat(server, tmp_path, temperature=0.9), AskColour()) == [GREEN]
        assert len(server.requests) == 3  # other parameters are another question


KILLED = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.test_llm import AskColour, LLMConfig, OpenAIChat
llm = OpenAIChat(LLMConfig(kind="openai", model="fake", base_url=sys.argv[2], concurrency=2), Path(sys.argv[3]))
async def main():
    await asyncio.gather(*(llm.ask(AskColour(thing=str(i))) for i in range(6)))
asyncio.run(main())
"""


def test_a_killed_run_asks_nothing_twice_that_was_answered(tmp_path: Path) -> None:
    proceed = threading.Event()

    def stuck_after_four(request: dict[str, Any]) -> dict[str, Any]:
        if len(server.requests) > 4:
            proceed.wait(timeout=30)
        return {"colour": "green"}

    with FakeOpenAI(stuck_after_four) as server:
        command = [sys.executable, "-c", KILLED, str(ROOT), server.url, str(tmp_path)]
        process = subprocess.Popen(command)
        ledger = tmp_path / "ledger.jsonl"
        while process.poll() is None and (not ledger.exists() or ledger.read_bytes().count(b"\n") < 4):
            proceed.wait(0.02)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        answered = len(ledger.read_text().splitlines())
        proceed.set()
        before = len(server.requests)
        assert run(chat(server, tmp_path), *(AskColour(thing=str(i)) for i in range(6))) == [GREEN] * 6
        assert answered == 4
        assert len(server.requests) - before == 2


# --- configuration --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": "chatgpt"}, "kind = 'chatgpt' is unknown"),
        ({"kind": "openai"}, "model is missing"),
        ({"base_url": "localhost:8000"}, "base_url = 'localhost:8000' is no address"),
        ({"base_url": "http://user:pass@host/v1"}, "user name or password"),
        ({"concurrency": 0}, "concurrency = 0 must be above 0"),
        ({"max_usd": -1.0}, "max_usd = -1.0 must not be negative"),
        ({"max_usd": 1.0}, "max_usd needs the prices"),
    ],
)
def test_a_contradictory_config_names_the_key(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        LLMConfig(**settings)
    assert "pass" not in str(error.value).replace("password", "")


def test_an_impossible_key_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-sécret")
    with pytest.raises(ConfigError, match="MY_KEY") as error:
        OpenAIChat(LLMConfig(kind="openai", model="m", api_key_env="MY_KEY"))
    assert "cret" not in str(error.value)


def test_the_offline_kind_is_not_ours() -> None:
    with pytest.raises(ConfigError, match="OpenAIChat needs"):
        OpenAIChat(LLMConfig())
