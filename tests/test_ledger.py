"""The ledger: money and replies of a run, caps, what a kill leaves; in one process and in several."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kgsynth.errors import BudgetError, RunError
from kgsynth.ledger import Caps, Ledger, Spend
from tests.asking import GREEN, AskColour, chat, green, one, run
from tests.fake_openai import FakeOpenAI, Response, completion, faulty, refusal, stalled

ROOT = Path(__file__).parents[1]


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
