"""Growing from the web, as a user runs it: replayed offline, interrupted and resumed with another model, several processes."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.taxonomy.noise import NoiseConfig
from benchmarks.taxonomy.server import Site, serving
from kgsynth.errors import ConfigError, LLMError, WebError
from kgsynth.graph import ConceptGraph
from kgsynth.ledger import Ledger, Spend
from kgsynth.recipe import Recipe
from kgsynth.stages import grow_graph, open_run
from kgsynth.store import open_store
from tests.web_runs import TREES, contents, spent, web_recipe


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    path = tmp_path / "trees.tsv"
    path.write_text(TREES)
    with serving(path, NoiseConfig(synonyms=0.0)) as running:
        yield running


def calls(site: Site) -> int:
    """What the model was asked, by its own count."""
    return sum(n for kind, n in site.stats()["asked"].items() if not kind.endswith(" repeated"))


def run_once(recipe: Recipe, *, offline: bool = False) -> ConceptGraph:
    with open_run(recipe, offline=offline) as run:
        grow_graph(run)
    return ConceptGraph(open_store(f"sqlite:{recipe.run.folder / 'graph.sqlite'}"))


def test_offline_replays_a_finished_run_byte_for_byte(tmp_path: Path, cache: Path) -> None:
    """From the caches alone: the servers are gone."""
    (tmp_path / "trees.tsv").write_text(TREES)
    with serving(tmp_path / "trees.tsv", NoiseConfig(synonyms=0.3, malformed=0.1)) as site:
        first, again = (web_recipe(tmp_path, site, name) for name in ("first", "again"))
        graph = run_once(first)
        assert calls(site)
    assert len(graph) >= 11
    run_once(again, offline=True)
    one, two = (contents(f"sqlite:{r.run.folder / 'graph.sqlite'}") for r in (first, again))
    assert json.dumps(one, default=bytes.hex) == json.dumps(two, default=bytes.hex)
    assert all(source["retrieved_at"] and source["text"] for source in one["source"])
    ledger = Ledger(again.run.folder / "ledger.sqlite", readonly=True)
    assert (ledger.total.usd, ledger.total.tokens) == (0.0, 0)


def test_offline_says_what_is_missing_and_sends_nothing(tmp_path: Path, cache: Path, site: Site) -> None:
    recipe = web_recipe(tmp_path, site, "new")
    with pytest.raises((LLMError, WebError), match=r"offline|cache"):
        run_once(recipe, offline=True)
    assert not calls(site)


def test_interrupted_and_resumed_with_another_model_the_ledger_adds_up(tmp_path: Path, cache: Path, site: Site) -> None:
    """A cap stops the first model; the second one goes on under a larger cap, and what the first spent still counts."""
    first = web_recipe(tmp_path, site, "run", "llm.max_calls=9", "grow.agents=4", "llm.cache=false")
    run_once(first)
    before = calls(site)
    assert 0 < before <= 9
    second = web_recipe(
        tmp_path, site, "run", "llm.model=stronger", "llm.max_calls=200", "grow.agents=4", "llm.cache=false"
    )
    graph = run_once(second)
    assert len(graph) == 12
    ledger = Ledger(second.run.folder / "ledger.sqlite", readonly=True)
    rows = spent(second)
    assert calls(site) == len(rows) == ledger.total.calls
    models = Counter(row["model"] for row in rows)
    assert models["taxonomy"] == before
    assert models["stronger"] > 0
    for sums in (ledger.by_stage(), ledger.by_model(), ledger.by_concept()):
        assert sum(sums.values(), Spend()).calls == len(rows)
        assert sum(sums.values(), Spend()).usd == pytest.approx(ledger.total.usd)
    assert set(ledger.by_concept()) <= {c.id for c in graph}, "money is spent on concepts of the graph"


def test_a_paid_search_is_charged_to_the_stage_that_searches(tmp_path: Path, cache: Path, site: Site) -> None:
    dear = f'web.providers=[{{ name = "searxng", base_url = "{site.url}", usd_per_1k = 10.0 }}]'
    recipe = web_recipe(tmp_path, site, "run", dear, "grow.max_depth=1")
    with open_run(recipe) as run:
        grow_graph(run)
        grown = run.ledger.by_stage()["grow"]

        async def look_up() -> None:
            async with run.web("synthesize") as (search, _):
                await search.search("something that no agent has searched for", 3)

        asyncio.run(look_up())
        assert run.ledger.by_stage() == {"grow": grown, "synthesize": Spend(calls=1, usd=0.01)}
    searches = [row for row in spent(recipe) if row["kind"] == "search"]
    assert {(row["stage"], bool(row["concept"])) for row in searches} == {("grow", True), ("synthesize", False)}


@pytest.mark.slow
def test_four_processes_grow_what_one_grows(tmp_path: Path, cache: Path, site: Site) -> None:
    alone = run_once(web_recipe(tmp_path, site, "alone"))
    recipe = web_recipe(tmp_path, site, "many", "grow.processes=4", "grow.agents=4")
    many = run_once(recipe)
    assert {c.id for c in many} == {c.id for c in alone}
    notes = Counter(o.note for o in many.store.operations() if o.note.startswith("research of "))
    assert set(notes.values()) == {1}, "each concept once"
    assert many.stats().cycles == 0
    assert many.store.frontier()["waiting"] + many.store.frontier()["leased"] == 0


def test_the_command_line_grows_and_ends_with_json(tmp_path: Path, cache: Path, site: Site) -> None:
    web_recipe(tmp_path, site, "cli")
    command = [sys.executable, "-m", "kgsynth.cli", "grow", str(tmp_path / "recipe.toml"), "run.name=cli"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["concepts"] == 12


@pytest.mark.slow
def test_ctrl_c_stops_all_workers_and_the_same_command_goes_on(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "trees.tsv").write_text(TREES)
    with serving(tmp_path / "trees.tsv", NoiseConfig(synonyms=0.0), delay=0.4) as site:
        recipe = web_recipe(tmp_path, site, "stopped", "grow.processes=2")
        command = [
            sys.executable, "-m", "kgsynth.cli", "grow", str(tmp_path / "recipe.toml"), "run.name=stopped",
            "grow.processes=2",
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while calls(site) <= 2:
            time.sleep(0.1)
        process.send_signal(2)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 130, told
        store = open_store(f"sqlite:{recipe.run.folder / 'graph.sqlite'}")
        assert store.frontier()["leased"] == 0
        store.close()
        assert len(run_once(recipe)) == 12


@pytest.mark.slow
def test_ray_grows_what_one_process_grows(tmp_path: Path, cache: Path, site: Site) -> None:
    pytest.importorskip("ray", reason="the extra `ray`")
    alone = run_once(web_recipe(tmp_path, site, "alone"))
    cluster = run_once(web_recipe(tmp_path, site, "cluster", "grow.processes=2", 'grow.on="ray"'))
    assert {c.id for c in cluster} == {c.id for c in alone}
    notes = Counter(o.note for o in cluster.store.operations() if o.note.startswith("research of "))
    assert set(notes.values()) == {1}


def test_ray_that_is_not_there_is_an_error_that_says_how_to_get_it(tmp_path: Path, cache: Path, site: Site) -> None:
    if importlib.util.find_spec("ray"):
        pytest.skip("Ray is installed")
    with pytest.raises(ConfigError, match=r"kgsynth\[ray\]"):
        run_once(web_recipe(tmp_path, site, "cluster", "grow.processes=2", 'grow.on="ray"'))
