"""The ledger: money and replies of a run, caps, what a death leaves, what an earlier version wrote."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kgsynth.errors import BudgetError, RunError
from kgsynth.ledger import LOST, Caps, Ledger, Spend
from tests.asking import GREEN, AskColour, Colour, chat, green, one, run
from tests.fake_openai import FakeOpenAI, Response, completion, faulty, refusal, stalled

ROOT = Path(__file__).parents[1]
CALL = Spend(calls=1, prompt_tokens=100, completion_tokens=500, usd=0.5)


def pay(ledger: Ledger, spent: Spend = CALL, *, key: str = "", reply: str | None = None, **about: str) -> None:
    number = ledger.reserve(spent, **{"stage": "grow", "model": "m", **about})
    assert number is not None
    ledger.settle(number, spent, "ok", key=key, reply=reply)


# --- through the client ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AskLate(AskColour):
    stage = "synthesize"


def test_money_and_tokens_are_counted_by_stage_concept_and_model(tmp_path: Path) -> None:
    with FakeOpenAI(faulty(green, {0: refusal(500)})) as server:
        llm = chat(server, tmp_path, usd_per_1m_prompt=2.0, usd_per_1m_completion=10.0)
        assert run(llm, AskColour(), concept="c1") == [GREEN]
        assert run(llm, AskLate(thing="sky"), concept="c2") == [GREEN]
    answer = Spend(calls=1, prompt_tokens=10, completion_tokens=4, usd=(10 * 2 + 4 * 10) / 1e6)
    assert llm.ledger.by_stage() == {"grow": answer + Spend(calls=1), "synthesize": answer}
    assert llm.ledger.by_concept() == {"c1": answer + Spend(calls=1), "c2": answer}
    again = Ledger(tmp_path / "ledger.sqlite", readonly=True)
    assert again.by_model() == {"fake": again.total} == {"fake": answer + answer + Spend(calls=1)}
    assert [row["outcome"] for row in again.rows()] == ["HTTP 500: refused", "ok", "ok"]


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


def test_a_question_that_was_answered_is_never_asked_again(tmp_path: Path) -> None:
    with FakeOpenAI(faulty(green, {0: completion("bad")})) as server:
        assert run(chat(server, tmp_path), AskColour()) == [GREEN]
        assert run(chat(server, tmp_path, max_reply_tokens=99), AskColour()) == [GREEN]
        assert len(server.requests) == 2  # the bad reply and its repair are both replayed
        assert run(chat(server, tmp_path, temperature=0.9), AskColour()) == [GREEN]
        assert len(server.requests) == 3  # other parameters are another question


# --- alone ----------------------------------------------------------------------------------------------------------


def test_a_reservation_that_may_be_given_back_is_waited_for() -> None:
    ledger = Ledger(caps=Caps(max_tokens=1000))
    most = Spend(calls=1, completion_tokens=600)
    number = ledger.reserve(most, stage="grow", model="m")
    assert number is not None
    assert ledger.reserve(most, stage="grow", model="m") is None
    ledger.settle(number, Spend(calls=1, completion_tokens=100), "ok")
    pay(ledger, replace(most, completion_tokens=500))
    with pytest.raises(BudgetError, match="max_tokens = 1000 is reached: 2 calls, 600 tokens"):
        ledger.reserve(most, stage="grow", model="m")


def test_a_search_shares_the_money_but_not_the_calls() -> None:
    ledger = Ledger(caps=Caps(max_calls=1, max_usd=1.0))
    price = Spend(calls=1, usd=0.3)

    async def search(fails: bool = False) -> None:
        async with ledger.charge(price, stage="grow", concept="c", model="tavily"):
            if fails:
                raise OSError("no route")

    asyncio.run(search())
    asyncio.run(search())
    with pytest.raises(OSError, match="no route"):
        asyncio.run(search(fails=True))
    with pytest.raises(BudgetError, match="max_usd"):
        asyncio.run(search())
    pay(ledger, Spend(calls=1, usd=0.05))
    assert (ledger.spent.calls, ledger.total.calls) == (1, 4)
    assert ledger.spent.usd == pytest.approx(0.95) == ledger.total.usd
    assert ledger.by_model()["tavily"].calls == 3
    assert ledger.by_model()["tavily"].usd == pytest.approx(0.9)
    assert [(row["kind"], row["outcome"], row["estimated"]) for row in ledger.rows()] == [
        ("search", "ok", 0), ("search", "ok", 0), ("search", "OSError: no route", 1), ("llm", "ok", 0),
    ]  # fmt: skip
    with pytest.raises(BudgetError, match="max_calls = 1"):
        ledger.reserve(Spend(calls=1), stage="grow", model="m")


def test_a_search_waits_for_what_another_one_may_leave() -> None:
    ledger = Ledger(caps=Caps(max_usd=1.0))
    number = ledger.reserve(Spend(calls=1, usd=0.8), stage="grow", model="m")
    assert number is not None

    async def scenario() -> None:
        async def search() -> None:
            async with ledger.charge(Spend(calls=1, usd=0.5), stage="grow", model="exa"):
                pass

        waiting = asyncio.create_task(search())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        ledger.settle(number, Spend(calls=1, usd=0.1), "ok")
        await waiting

    asyncio.run(scenario())
    assert ledger.total.usd == pytest.approx(0.6)


def test_what_costs_nothing_is_taken_whatever_the_caps_say() -> None:
    ledger = Ledger(caps=Caps(max_calls=0))
    ledger.record("cached", stage="grow", model="m", key="k", reply="x")
    assert ledger.reply("k") == "x"
    assert ledger.total == Spend()
    assert [row["outcome"] for row in ledger.rows()] == ["cached"]


def test_the_newest_reply_counts_until_it_is_forgotten() -> None:
    ledger = Ledger()
    pay(ledger, key="k", reply="old")
    pay(ledger, key="k", reply="é\u2028")
    assert ledger.reply("k") == "é\u2028"
    ledger.forget(["k", "never asked"])
    assert ledger.reply("k") is None
    assert ledger.total.calls == 2


def test_sums_stay_right_over_many_rows(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for i in range(300):
        pay(ledger, replace(CALL, prompt_tokens=i), stage=f"s{i % 2}", concept=f"c{i % 7}", model=f"m{i % 3}")
    rows = ledger.rows()
    for by, sums in (("stage", ledger.by_stage()), ("concept", ledger.by_concept()), ("model", ledger.by_model())):
        assert {name: spent.prompt_tokens for name, spent in sums.items()} == {
            name: sum(row["prompt_tokens"] for row in rows if row[by] == name) for name in {row[by] for row in rows}
        }
    assert ledger.reserved == Spend()


# --- several processes ----------------------------------------------------------------------------------------------

RESERVE = """
import sys, time
from pathlib import Path
from kgsynth.ledger import Ledger, Spend
number = Ledger(Path(sys.argv[1])).reserve(Spend(calls=1, completion_tokens=600), stage="grow", concept="c", model="m")
print(number, flush=True)
time.sleep(60)
"""


def reserving(path: Path) -> tuple[subprocess.Popen[str], int]:
    """A process that reserves 600 tokens and hangs; and the number of its reservation."""
    process = subprocess.Popen([sys.executable, "-c", RESERVE, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_a_reservation_of_a_killed_process_is_spent_and_never_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    process, _ = reserving(path)
    ledger = Ledger(path, caps=Caps(max_tokens=1000))
    most = Spend(calls=1, completion_tokens=600)
    with process:
        assert ledger.reserve(most, stage="grow", model="m") is None  # it is at work
        assert ledger.total == Spend()
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and a zombie still
        onlooker = Ledger(path, readonly=True)
        assert onlooker.total == onlooker.by_concept()["c"] == most
        with pytest.raises(BudgetError, match="max_tokens = 1000 is reached: 1 calls, 600 tokens"):
            ledger.reserve(most, stage="grow", model="m")
    assert ledger.reserved == Spend()
    (row,) = ledger.rows()
    assert (row["outcome"], row["estimated"], row["completion_tokens"]) == (LOST, 1, 600)
    assert onlooker.rows() == [row]


def test_a_process_taken_for_dead_may_settle_late(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    process, number = reserving(path)
    process.kill()
    process.communicate()
    late = Ledger(path)
    assert late.total.tokens == 600
    late.settle(number, Spend(calls=1, completion_tokens=7), "ok", key="k", reply="x")
    assert late.total == Spend(calls=1, completion_tokens=7)
    assert [row["outcome"] for row in late.rows()] == ["ok"]


def test_looking_changes_nothing_and_needs_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nowhere"):
        Ledger(tmp_path / "nowhere.sqlite", readonly=True)
    assert list(tmp_path.iterdir()) == []
    pay(Ledger(tmp_path / "ledger.sqlite"))
    onlooker = Ledger(tmp_path / "ledger.sqlite", readonly=True)
    with pytest.raises(RunError, match="readonly"):
        pay(onlooker)
    assert onlooker.total == CALL


def test_a_file_that_is_no_ledger_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("money " * 1000)
    with pytest.raises(RunError, match="move it away"):
        Ledger(tmp_path / "ledger.sqlite")


# --- the lines of an earlier version --------------------------------------------------------------------------------

OLD = [
    {"time": 5.0, "stage": "grow", "model": "old", "outcome": "HTTP 500", "calls": 1},
    {"time": 6.0, "stage": "grow", "model": "old", "outcome": "ok", "calls": 1, "prompt_tokens": 10, "usd": 0.25,
     "key": "a", "reply": "x"},
    {"time": 7.0, "stage": "synthesize", "model": "old", "outcome": "ok", "calls": 1, "completion_tokens": 3, "key": "b",
     "reply": "y", "estimated": True},
    {"calls": 0, "stage": "grow", "outcome": "forgotten", "forget": ["b"]},
]  # fmt: skip


def test_an_old_ledger_is_read_in_once_without_its_torn_last_line(tmp_path: Path) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in OLD)
    (tmp_path / "ledger.jsonl").write_text(lines + '{"stage": "grow", "calls": 1, "outcome": "o')
    for _ in range(2):
        ledger = Ledger(tmp_path / "ledger.sqlite", caps=Caps(max_calls=3))
        assert ledger.by_stage() == {
            "grow": Spend(calls=2, prompt_tokens=10, usd=0.25),
            "synthesize": Spend(calls=1, completion_tokens=3),
        }
        assert (ledger.reply("a"), ledger.reply("b")) == ("x", None)
        assert [row["time"] for row in ledger.rows()] == [5.0, 6.0, 7.0]
        with pytest.raises(BudgetError):
            ledger.reserve(CALL, stage="grow", model="m")


def test_a_bad_line_of_an_old_ledger_is_refused_and_nothing_is_made_of_it(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_text('broken\n{"stage": "grow"}\n')
    for _ in range(2):
        with pytest.raises(RunError, match=r"ledger\.jsonl:1 is not a ledger line"):
            Ledger(tmp_path / "ledger.sqlite")
    (tmp_path / "ledger.jsonl").write_text('{"stage": "grow"}\n')
    assert Ledger(tmp_path / "ledger.sqlite").total.calls == 1


def test_an_answer_from_an_old_ledger_is_not_asked_for_again(tmp_path: Path) -> None:
    """The key is what earlier versions made: SHA-256 of the JSON of model, temperature, messages and schema."""
    parts = ["fake", 0.2, AskColour().messages(), Colour.model_json_schema()]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    row = {"stage": "grow", "outcome": "ok", "key": key, "reply": '{"colour": "green"}'}
    (tmp_path / "ledger.jsonl").write_text(json.dumps(row) + "\n")
    with FakeOpenAI(green) as server:
        assert run(chat(server, tmp_path), AskColour()) == [GREEN]
        assert server.requests == []
