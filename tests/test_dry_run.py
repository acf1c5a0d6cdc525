"""What a dry run says, against figures worked out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from kgsynth.concept import Concept, Decision
from kgsynth.dry_run import plan_of
from kgsynth.dry_run.estimate import spread, tokens_of
from kgsynth.ledger import Ledger, Spend
from kgsynth.llm.questions import SYSTEM, PlanQueries
from kgsynth.llm.reply import schema_text
from kgsynth.recipe import Recipe, load_recipe
from kgsynth.store import Change, FrontierItem, open_store

MODEL = """
[llm]
kind = "openai"
model = "m"
base_url = "http://localhost:1/v1"
api_key_env = "KGSYNTH_TEST_KEY"
usd_per_1m_prompt = 1.0
usd_per_1m_completion = 10.0
"""


def recipe(folder: Path, text: str = "", **grow: Any) -> Recipe:
    path = folder / "recipe.toml"
    settings = {"max_concepts": 1000, "max_depth": 2, "agents": 2, **grow}
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    path.write_text(
        f'[run]\nname = "x"\ndir = "{folder}"\n[grow]\nseeds = [{{ name = "trees", domain = "data" }}]\n'
        + "agent = { queries = 2, children = 10, pages = 3, page_chars = 4000, hits_per_query = 5 }\n"
        + "\n".join(lines)
        + "\n"
        + text
    )
    return load_recipe(path)


def test_a_graph_spreads_level_by_level() -> None:
    # 1 adds 3, of which 1.5 are researched and add 4.5
    assert spread({0: 1}, 1, 3.0, 1.5, 1000, 2) == (2, 8, "max_depth = 2")
    # 10 would add 30, but there is room for 5; of those 2.5 are researched, and add nothing
    assert spread({0: 10}, 10, 3.0, 1.5, 15, 6) == (12, 15, "max_concepts = 15")
    # two begin below the others
    assert spread({0: 1, 1: 2}, 10, 2.0, 2.0, 1000, 2) == (1 + 4, 10 + 2 + 8, "max_depth = 2")
    assert spread({}, 7, 2.0, 2.0, 1000, 3) == (0, 7, "nothing finer is found any more")


def test_without_a_model_there_is_nothing_to_pay(tmp_path: Path) -> None:
    plan = plan_of(recipe(tmp_path))
    # each researched one adds 0.5 * 10 * 0.6 = 3, all of them are researched: 1 + 3 of 1 + 3 + 9
    assert (plan.expected.researched, plan.expected.concepts) == (4, 13)
    assert (plan.expected.searches, plan.expected.pages, plan.expected.calls) == (8, 12, 0)
    assert (plan.most.researched, plan.most.concepts) == (11, 111)
    assert (plan.expected.usd, plan.seconds, plan.questions) == (0.0, None, ())
    text = plan.describe()
    assert "no model is asked" in text
    assert "the offline corpus" in text
    assert "$" not in text
    assert not (tmp_path / "x").exists()  # nothing is written


def test_tokens_and_price_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KGSYNTH_TEST_KEY", raising=False)
    plan = plan_of(recipe(tmp_path, MODEL, agents=2), seconds_per_call=4.0)
    assert plan.expected.researched == 2  # 1, then 3 of which 1.5 are not atomic
    by_kind = {q.kind: q for q in plan.questions}
    assert {kind: q.calls for kind, q in by_kind.items()} == {
        "PlanQueries": 2, "Propose": 2, "JudgeAtomic": 2, "SameConcept": 0,
    }  # fmt: skip
    assert by_kind["PlanQueries"].completion_tokens == 30  # two queries of 15
    assert by_kind["Propose"].completion_tokens == 550  # five proposals of 110
    bare = by_kind["Propose"].prompt_tokens - 3000  # 3 pages of 4000 characters, four a token
    assert 200 < bare < 900
    prompt = 2 * sum(by_kind[kind].prompt_tokens for kind in ("PlanQueries", "Propose", "JudgeAtomic"))
    assert plan.expected.prompt_tokens == prompt
    assert plan.expected.completion_tokens == 2 * (30 + 550 + 225)
    assert plan.expected.usd == pytest.approx((prompt * 1.0 + 1610 * 10.0) / 1e6)
    assert plan.seconds == pytest.approx(2 / (2 / (3 * 4.0)))  # two agents, 3 calls of 4 s each
    assert "held up by 2 agents" in plan.pace
    assert plan.missing == ("the environment variable KGSYNTH_TEST_KEY is not set (a local server may not need it)",)
    assert json.loads(json.dumps(plan.to_json()))["expected"]["usd"] == plan.expected.usd


def test_a_question_is_measured_in_its_own_words() -> None:
    question = PlanQueries(concept=Concept(name="trees", domain="data"), n=2)
    said = sum(len(m["content"]) for m in question.messages())
    assert said > len(SYSTEM)
    assert tokens_of(question, more=400) == math.ceil((said + len(schema_text(question.reply)) + 400) / 4)


def test_an_unknown_price_is_said_and_not_taken_for_nothing(tmp_path: Path) -> None:
    plan = plan_of(recipe(tmp_path, MODEL.replace("usd_per_1m_prompt = 1.0", "")))
    assert plan.expected.usd is None
    assert plan.most.usd is None
    assert "unknown" in plan.describe()
    assert any("price of m is not known" in note for note in plan.notes)


def test_the_cap_that_is_reached_first_is_named(tmp_path: Path) -> None:
    plan = plan_of(recipe(tmp_path, MODEL + "max_calls = 100\nmax_usd = 0.01\n", max_depth=6))
    calls, usd = plan.caps
    assert (calls.name, calls.limit, calls.stops_after) == ("max_calls", 100, None)
    assert calls.planned == plan.expected.calls < 100
    assert usd.stops_after == math.floor(plan.expected.researched * 0.01 / (plan.expected.usd or 0))
    assert plan.ends.startswith(f"the cap max_usd = 0.01, after about {usd.stops_after} of")


def test_providers_share_the_queries_and_their_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    web = """
[web]
providers = [
  { name = "brave", share = 3, max_queries = 5 },
  { name = "arxiv", share = 1 },
  { name = "searxng", share = 1 },
]
"""
    plan = plan_of(recipe(tmp_path, web, max_depth=3, agents=100))
    assert plan.expected.researched == 13  # 1 + 3 + 9
    assert [(p.name, p.queries) for p in plan.providers] == [("brave", 16), ("arxiv", 5), ("searxng", 5)]
    assert plan.expected.usd == pytest.approx(16 * 5.0 / 1000)  # the list price of Brave
    assert "brave: 16 queries are expected and max_queries = 5" in plan.notes[0]
    assert any("BRAVE_API_KEY is not set" in line for line in plan.missing)
    assert any("searxng: base_url is missing" in line for line in plan.missing)
    # arXiv takes a query every 3 s, and gets a fifth of two per concept
    assert plan.seconds == pytest.approx(13 * 2 / 5 * 3)
    assert "the pace of arxiv" in plan.pace


def begin(folder: Path, researched: int, waiting: int) -> None:
    """A run that has researched some concepts, and what it paid for them."""
    concepts = [Concept(name="trees", domain="data"), *(Concept(name=f"tree {i}", domain="data") for i in range(29))]
    store = open_store(f"sqlite:{folder / 'graph.sqlite'}")
    queued = tuple(FrontierItem(concept=c.id, depth=min(i, 1)) for i, c in enumerate(concepts[: researched + waiting]))
    decision = Decision(kind="dedup", subject="x", outcome="new", reason="-")
    store.commit(Change(concepts=tuple(concepts), decisions=(decision,), enqueue=queued))
    store.commit(Change(done=tuple(c.id for c in concepts[:researched])))
    store.close()
    ledger = Ledger(folder / "ledger.sqlite")
    for i in range(researched):
        number = ledger.reserve(Spend(calls=1), stage="grow", model="m", concept=concepts[i].id)
        assert number is not None
        ledger.settle(number, Spend(calls=4, prompt_tokens=2000, completion_tokens=300, usd=0.001), "ok")
    number = ledger.reserve(Spend(calls=1, usd=0.5), stage="synthesize", model="m")
    assert number is not None
    ledger.settle(number, Spend(calls=1, prompt_tokens=10, completion_tokens=10, usd=0.5), "ok")


def test_a_run_that_has_begun_is_planned_by_what_it_took(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    begin(tmp_path / "x", researched=10, waiting=5)
    plan = plan_of(recipe(tmp_path, MODEL + "max_usd = 1.0\n"))
    assert (plan.begun.researched, plan.begun.waiting, plan.begun.concepts) == (10, 5, 30)
    assert plan.measured
    assert plan.expected.researched == 5  # those at depth 1, below which nothing is researched
    assert plan.expected.concepts == 30 + round(5 * 2.9)  # 29 were added by 10
    assert (plan.expected.calls, plan.expected.prompt_tokens, plan.expected.completion_tokens) == (20, 10_000, 1500)
    assert plan.expected.usd == pytest.approx(10_000 / 1e6 + 15_000 / 1e6)
    assert sum(q.calls for q in plan.questions) == pytest.approx(20, abs=2)
    (cap,) = plan.caps
    assert cap.spent == pytest.approx(10 * 0.001 + 0.5)  # by all stages
    assert "goes on: 10 concepts are researched and stay so, 5 wait" in plan.describe()
    assert "measured on 10 researched concepts" in plan.describe()


def test_a_finished_run_has_nothing_to_do(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    begin(tmp_path / "x", researched=10, waiting=0)
    plan = plan_of(recipe(tmp_path, MODEL))
    assert (plan.expected.researched, plan.expected.calls, plan.expected.usd) == (0, 0, 0.0)
    assert plan.begun.in_words.startswith("finished")
    assert plan.ends == "nothing is left to research"


def test_a_server_is_not_asked(tmp_path: Path) -> None:
    plan = plan_of(recipe(tmp_path, '[store]\nurl = "bolt://127.0.0.1:1"\n'))
    assert "is not asked in a dry run" in plan.begun.in_words
    assert plan.expected.researched == 4


def test_a_damaged_store_is_said(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "graph.sqlite").write_bytes(b"not a database, for certain" * 200)
    assert "not known" in plan_of(recipe(tmp_path)).begun.in_words
