"""The part of report.html on growth and its cost: a real run that goes on with another model, and each figure by hand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kgsynth.concept import Concept, Decision, Edge, Source
from kgsynth.embed import HashingEmbedder
from kgsynth.graph import ConceptGraph
from kgsynth.grow.agent import AgentConfig
from kgsynth.grow.grow import GrowConfig, grow
from kgsynth.ledger import Ledger
from kgsynth.llm.openai import LLMConfig, OpenAIChat
from kgsynth.recipe import load_recipe
from kgsynth.report import cost, growth, usd, write_report
from kgsynth.store import Skeleton
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.summary import summarize
from kgsynth.web.corpus import CorpusConfig, open_corpus
from kgsynth.web.read import Reader
from tests.chromium import browser  # noqa: F401
from tests.fake_openai import FakeOpenAI
from tests.test_grow import SEEDS, model, write_pages
from tests.test_report import Page, make_graph, write_lines

pytest.importorskip("plotly")


def grown(folder: Path, pages: Path, config: LLMConfig) -> str:
    """Grow in the run folder with a model; why it stopped."""
    embedder = HashingEmbedder()
    corpus = open_corpus(CorpusConfig(builtin=False, paths=(str(pages),), cache=False), embedder)
    store = EmbeddedStore(folder / "graph.sqlite")

    async def work() -> str:
        brain = OpenAIChat(config, folder)
        settings = GrowConfig(seeds=SEEDS, agents=1, agent=AgentConfig(pages=2))
        try:
            report = await grow(
                ConceptGraph(store), settings, llm=brain, search=corpus, reader=Reader(corpus), embedder=embedder
            )
            return report.stopped
        finally:
            await brain.close()

    try:
        return asyncio.run(work())
    finally:
        store.close()


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that a cap stopped, and that went on with another model at another price."""
    folder = tmp_path_factory.mktemp("runs") / "money"
    folder.mkdir()
    pages = write_pages(tmp_path_factory.mktemp("pages"))
    with FakeOpenAI(model) as server:
        small = LLMConfig(
            kind="openai", model="small", base_url=server.url, cache=False, max_calls=7,
            usd_per_1m_prompt=100.0, usd_per_1m_completion=1000.0,
        )  # fmt: skip
        assert grown(folder, pages, small).startswith("budget: [llm] max_calls = 7")
        large = replace(small, model="large", max_calls=None, usd_per_1m_prompt=1.0, usd_per_1m_completion=2.0)
        assert grown(folder, pages, large) == "frontier empty"
    write_lines(folder / "stages.jsonl", [{"stage": "grow", "seconds": 1, "counts": {}, "brain": "openai:large"}])
    return folder


def test_a_run_that_went_on_with_another_model_shows_what_a_kept_concept_cost(resumed: Path) -> None:
    ledger = Ledger(resumed / "ledger.sqlite", readonly=True)
    page = Page(write_report(resumed))
    spent, concepts = page.data["cost"], len(page.data["graph"]["nodes"])
    assert spent["kept"] == concepts > 8
    assert [(m["model"], m["calls"]) for m in spent["models"]] == [("small", 7), ("large", ledger.total.calls - 7)]
    for key in ("calls", "prompt_tokens", "completion_tokens", "usd"):
        assert sum(m[key] for m in spent["models"]) == pytest.approx(getattr(ledger.total, key))
        assert sum(s[key] for s in spent["spent_on"]) == pytest.approx(getattr(ledger.total, key))
    assert spent["per_concept"]["usd"] == pytest.approx(ledger.total.usd / concepts)
    assert spent["per_concept"]["calls"] == pytest.approx(ledger.total.calls / concepts)
    curves = spent["over_time"]["models"]
    assert curves["small"][-1] + curves["large"][-1] == pytest.approx(ledger.total.usd, abs=1e-5)
    assert spent["over_time"]["each"][-1] == pytest.approx(ledger.total.usd / concepts, abs=1e-5)
    assert {s["what"] for s in spent["spent_on"]} == {
        "concepts with finer ones below"
    }  # atomic ones are not researched
    for words in ("What growing cost", "small", "large", usd(ledger.total.usd), usd(ledger.total.usd / concepts)):
        assert words in page.words


def test_the_summary_says_the_same(resumed: Path) -> None:
    recipe = load_recipe("recipes/demo.toml", [f"run.dir={resumed.parent}", "run.name=money"])
    total, row = Ledger(resumed / "ledger.sqlite", readonly=True).total, summarize(recipe)
    assert (row["calls"], row["tokens"]) == (total.calls, total.tokens)
    assert row["cost_usd"] == pytest.approx(total.usd, abs=1e-6)
    assert row["usd_per_concept"] == pytest.approx(total.usd / row["concepts"], abs=1e-8)
    assert row["calls_per_concept"] == pytest.approx(total.calls / row["concepts"], abs=1e-3)
    assert (row["atomic"], row["refused_edges"]) == (4, 1)


def test_growth_ends_at_the_graph_as_it_is(resumed: Path) -> None:
    page = Page(write_report(resumed))
    grown, graph = page.data["growth"], page.data["graph"]
    line = grown["timeline"]
    assert (line["concepts"][-1], line["edges"][-1]) == (len(graph["nodes"]), len(graph["edges"]))
    assert line["concepts"] == sorted(line["concepts"])
    assert line["concepts"][0] == 1  # the seed
    assert [sum(at) for at in zip(*line["groups"].values(), strict=True)] == line["concepts"]
    assert line["by"] == "seed"  # of one domain
    assert sum(b["concepts"] for b in grown["branches"]["fat"]) == len(graph["nodes"]) - 1
    assert (
        sum(b["usd"] for b in grown["branches"]["fat"]) < page.data["cost"]["total"]["usd"]
    )  # the seed's own is not there
    assert "edge refused: it would close a cycle" in [r["what"] for r in grown["refused"]]
    assert {"details only", "has parts"} <= {c["criterion"] for c in grown["criteria"]}
    assert "heaps → trees" in page.words


def test_an_offline_run_has_no_money_and_an_old_one_less(tmp_path: Path) -> None:
    make_graph(tmp_path / "graph.sqlite", concepts=15)
    page = Page(write_report(tmp_path))
    assert page.data["cost"] is None
    assert "What growing cost" not in page.words
    assert "Branches, fattest first" in page.words
    # the ledger of an earlier version: no concept, no time, no price
    write_lines(tmp_path / "ledger.jsonl", [{"stage": "grow", "prompt_tokens": 1000, "calls": 1}] * 6)
    page = Page(write_report(tmp_path))
    assert page.data["cost"]["over_time"] is None
    assert page.data["cost"]["per_concept"]["calls"] == pytest.approx(0.4)
    assert "No money is on record" in page.words
    assert "400 tokens" in page.words
    assert "$" not in page.words.partition("What growing cost")[2].partition("Sample tasks")[0]


def test_a_folder_with_nothing_has_no_such_section(tmp_path: Path) -> None:
    assert "Growth" not in Page(write_report(tmp_path)).words.split()


def test_pauses_are_no_work() -> None:
    clock, resumed = growth.work_clock([0.0, 120.0, 90_000.0, 90_060.0])
    assert [clock(at) for at in (0.0, 120.0, 500.0, 90_000.0, 90_060.0)] == [0.0, 2.0, 2.0, 2.0, 3.0]
    assert resumed == [2.0]
    assert growth.work_clock([])[0](5.0) == 0.0


def skeleton(edges: list[tuple[int, int]], levels: list[int], atomic: list[int]) -> Skeleton:
    n = len(levels)
    parents, children = (np.asarray([e[i] for e in edges], np.int32) for i in (0, 1))
    return Skeleton(
        op=1, ids=[f"c{i}" for i in range(n)], names=[f"name {i}" for i in range(n)], domains=["d"] * n,
        levels=np.asarray(levels, np.int32), atomic=np.asarray(atomic, np.int8), parents=parents, children=children,
    )  # fmt: skip


def test_branches_by_hand() -> None:
    # 0 -> 1 -> {3, 4}, 3 -> 5; 0 -> 2; 2 -> 5 as a second way; 6 is a seed alone
    found = skeleton([(0, 1), (0, 2), (1, 3), (1, 4), (3, 5), (2, 5)], [0, 1, 1, 2, 2, 3, 0], [0, 0, -1, 0, 1, 1, 1])
    rows = [{"stage": "grow", "concept": c, "usd": 0.5, "calls": 2} for c in ("c1", "c3", "c2", "c0")]
    branches = growth.branches(found, [*rows, {"stage": "synthesize", "concept": "c1", "usd": 9.0, "calls": 1}])
    assert (branches["total"], branches["largest"], branches["alone"], branches["paid"]) == (3, 4, 1, True)
    first, second, third = branches["fat"]
    assert (first["name"], first["concepts"], first["depth"]) == ("name 1", 4, 3)
    assert (first["atomic"], first["children"], first["usd"], first["calls"]) == (0.5, 1.5, 1.0, 4)
    assert (second["name"], second["atomic"], second["children"], second["alone"]) == ("name 2", None, 1, False)
    assert (third["name"], third["alone"], third["children"]) == ("name 6", True, None)


def test_many_branches_are_shown_from_both_ends() -> None:
    edges = [(0, i) for i in range(1, 31)] + [(1, 31), (1, 32), (2, 33)]
    branches = growth.branches(skeleton(edges, [0] + [1] * 30 + [2] * 3, [0, 0, 0] + [1] * 27 + [0, 1, 1, 1]), [])
    assert [b["name"] for b in branches["fat"]][:2] == ["name 1", "name 2"]
    assert branches["thin"][0]["name"] == "name 30"  # as thin as the others, but not atomic
    assert len(branches["thin"]) == len(branches["fat"]) == growth.BRANCHES


def test_small_groups_of_a_stack_are_one() -> None:
    found = skeleton([], [0] * 30, [0] * 30)
    group, by = growth.groups(replace(found, domains=[f"d{i % 12}" for i in range(30)]))
    assert by == "domain"
    assert len(set(group.values())) == growth.SERIES + 1
    assert sum(name == "other" for name in group.values()) == 8


def test_every_refusal_has_its_words() -> None:
    def drop(subject: str, outcome: str, *evidence: tuple[str, str]) -> Decision:
        return Decision(
            kind="drop", subject=subject, outcome=outcome, reason=f"because of {subject}", evidence=evidence
        )

    ends = (("parent", "c1"), ("child", "c9"))
    decisions = [
        drop("x", "unsupported"), drop("x2", "unsupported"), drop("y", "hostile"), drop("http://z", "copy"),
        drop("http://a", "unread", ("cause", "robots")), drop("http://b", "unread", ("cause", "timeout")),
        drop("q", "unsearched", ("cause", "quota")), drop("c9", "dropped", ("name", "nine")), drop("e1", "dropped", *ends),
        drop("c1", "given up"), drop("c1", "something else"),
        Decision(kind="cycle", subject="e", outcome="refused", reason="it would close a cycle", evidence=(*ends,)),
        Decision(kind="dedup", subject="d", outcome="new", reason="-"),
    ]  # fmt: skip
    rows = {row["what"]: row for row in growth.refused(decisions, {"c1": "one"})}
    assert next(iter(rows)) == "proposed, but no page says so"
    assert rows["proposed, but no page says so"]["count"] == 2
    assert rows["proposed, but no page says so"]["examples"] == ["x", "x2"]
    assert rows["concept left out: the graph was full"]["examples"] == ["nine"]
    assert rows["edge left out: the graph was full"]["examples"] == ["one → nine"]
    assert rows["edge refused: it would close a cycle"]["examples"] == ["one → nine"]
    assert rows["concept given up after its last attempt"]["examples"] == ["one"]
    assert {"page could not be read: robots", "page could not be read: timeout", "search failed: quota",
            "page is a copy of one that was read", "proposed with a quote that gives orders", "something else"} <= set(rows)  # fmt: skip
    assert sum(row["count"] for row in rows.values()) == len(decisions) - 1


def test_pairs_where_mistakes_would_be() -> None:
    def dedup(one: str, outcome: str, other: str, similarity: float) -> Decision:
        evidence = (("neighbour", other), ("similarity", similarity))
        return Decision(kind="dedup", subject=one, outcome=outcome, reason="-", evidence=evidence)

    decisions = [
        dedup("heaps", "exact", "heap", 0.2), dedup("BST", "acronym", "binary search tree", 0.7),
        dedup("hash map", "vector", "hash table", 0.88), dedup("map", "vector", "dictionary", 0.87),
        dedup("left join", "new", "right join", 0.95), dedup("queue", "new", "tree", 0.4),
        Decision(kind="dedup", subject="twin", outcome="exact", reason="proposed twice"),
    ]  # fmt: skip
    rules = growth.rules(decisions)
    assert [(r["rule"], r["count"]) for r in rules] == [
        ("new", 2), ("same name", 2), ("acronym", 1), ("same meaning, by vectors", 2),
    ]  # fmt: skip
    assert rules[1]["pairs"] == []  # another spelling of the same name tells nothing
    assert [p["one"] for p in rules[3]["pairs"]] == ["map", "hash map"]
    assert [p["one"] for p in growth.kept_apart(decisions)] == ["left join", "queue"]


def test_criteria_are_read_from_any_brain() -> None:
    reasons = [
        ("openai:org/m:latest: has kinds: three of them: a, b, c", "expand"), ("openai:m: one exercise: so: it is", "atomic"),
        ("offline-extractive (no model): researched: no finer concepts are supported by 3 pages read", "atomic"),
        ("openai:m: researched: 3 finer concepts are supported by 3 pages read", "expand"), ("old words", "atomic"),
    ]  # fmt: skip
    decisions = [Decision(kind="atomic", subject="c", outcome=outcome, reason=reason) for reason, outcome in reasons]
    assert {(r["criterion"], r["verdict"]) for r in growth.criteria(decisions)} == {
        ("has kinds", "expand"), ("one exercise", "atomic"), ("read: nothing finer was found", "atomic"),
        ("read: finer concepts were found", "expand"), ("no criterion given", "atomic"),
    }  # fmt: skip


def test_licences_of_cited_pages() -> None:
    source = Source(url="http://a", title="a", text="twelve letters and more", licence="MIT")
    a, b = Concept(name="a", domain="d"), Concept(name="b", domain="d")
    edge = Edge(parent=a.id, child=b.id, spans=(source.span(0, 5), source.span(2, 9)))
    known = [Decision(kind="licence", subject=u, outcome="MIT", reason="LICENSE") for u in ("http://a", "http://b")]
    (row,) = growth.cited_licences(known, [edge])
    assert row == {"licence": "MIT", "pages": 2, "edges": 1, "evidence": "LICENSE", "url": "http://a"}


def test_searches_are_money_and_no_model_calls() -> None:
    rows = [
        {"stage": "grow", "kind": "llm", "model": "m", "calls": 1, "prompt_tokens": 10, "usd": 0.5, "outcome": "ok"},
        {"stage": "grow", "kind": "search", "model": "brave", "calls": 1, "usd": 0.25, "outcome": "ok"},
        {"stage": "grow", "kind": "llm", "model": "m", "calls": 1, "usd": 0.0, "outcome": "HTTP 429"},
        {"stage": "grow", "kind": "llm", "model": "m", "calls": 0, "usd": 0.0, "outcome": "cached"},
        {"stage": "synthesize", "kind": "llm", "model": "m", "calls": 4, "usd": 1.0, "outcome": "ok"},
    ]
    spent = cost.cost(rows, kept=[{"id": "c", "atomic": None}], born=[], tasks=2)
    assert spent is not None
    total = spent["total"]
    assert (total["calls"], total["searches"], total["usd"]) == (2, 1, 0.75)
    assert (spent["failed"], spent["cached"]) == (1, 1)
    assert [(s["stage"], s["made"], s["thing"]) for s in spent["stages"]] == [
        ("grow", 1, "concept"),
        ("synthesize", 2, "task"),
    ]
    assert cost.cost(rows[-1:], kept=[], born=[], tasks=0) is None


def test_small_prices_keep_three_figures() -> None:
    assert [usd(x) for x in (0, 12.345, 0.5, 0.00012345)] == ["$0", "$12.35", "$0.500", "$0.000123"]


def test_a_browser_draws_it_wide_and_narrow(resumed: Path, browser) -> None:  # noqa: F811
    browser.goto(write_report(resumed).as_uri())
    for chart in ("growth-ops", "growth-time", "rules", "criteria", "cost-time", "cost-each"):
        browser.wait_for(f"document.querySelector('#{chart} .main-svg')")
    name = browser.evaluate(
        "(() => { const a = document.querySelector('.branches a'); a.click(); return a.textContent })()"
    )
    browser.wait_for(f"document.querySelector('#panel h3').textContent === {json.dumps(name)}")
    browser.call("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=False)
    browser.wait_for("document.querySelector('#growth-ops .main-svg').clientWidth < 420")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 420
    assert browser.errors == []
