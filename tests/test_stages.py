"""Whole runs: killed anywhere, done twice, in Neo4j, with a model. Small, but real: the built-in corpus, the sandbox, files."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kgsynth.doctor import examine
from kgsynth.errors import LLMError, RunError
from kgsynth.graph import ConceptGraph
from kgsynth.recipe import Recipe, load_recipe
from kgsynth.run import RunFolder
from kgsynth.stages import grow_graph, load_kept, make_tasks, open_run
from kgsynth.store import GraphStore, open_store
from kgsynth.summary import summarize
from tests.bolt import bolt_url  # noqa: F401
from tests.fake_openai import FakeOpenAI, completion, faulty, malformed, refusal, stalled
from tests.test_grow import model, write_pages

RECIPE = Path(__file__).with_name("small.toml")


def contents(store: GraphStore) -> tuple[list[Any], list[Any]]:
    """Everything a graph says, in order."""
    graph = ConceptGraph(store)
    return list(graph), [(e.parent, e.child, e.spans) for e in graph.edges()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The small run, not interrupted."""
    recipe = load_recipe(RECIPE, [f"run.dir={tmp_path_factory.mktemp('runs')}"])
    with open_run(recipe) as run:
        grow_graph(run)
        make_tasks(run)
    return RunFolder(recipe.run.folder)


def graph_of(folder: RunFolder) -> tuple[list[Any], list[Any]]:
    store = open_store(f"sqlite:{folder / 'graph.sqlite'}")
    try:
        return contents(store)
    finally:
        store.close()


def test_the_small_run_keeps_its_promises(whole: RunFolder) -> None:
    recipe = load_recipe(RECIPE, [f"run.dir={whole.path.parent}"])
    summary = summarize(recipe)
    assert (summary["concepts"], summary["cycles"], summary["unsupported_edges"]) == (60, 0, 0)
    assert summary["tasks"] == 16
    assert set(summary["tasks_by_type"]) == {"choice", "cloze", "implement", "predict"}
    assert all(task.provenance.spans and task.provenance.licences for task in load_kept(whole))
    assert {row["stage"] for row in whole.rows("stages.jsonl")} == {"grow", "synthesize"}
    with closing(open_store(f"sqlite:{whole / 'graph.sqlite'}")) as store:
        assert {task.id for task in store.tasks()} == {task.id for task in load_kept(whole)}
        assert examine(store) == []


def test_a_finished_run_is_left_alone(whole: RunFolder) -> None:
    before = {p.name: p.read_bytes() for p in whole.path.glob("*.jsonl")}
    with open_run(load_recipe(RECIPE, [f"run.dir={whole.path.parent}"])) as run:
        assert grow_graph(run) is None
        assert len(make_tasks(run)) == 16
    assert {p.name: p.read_bytes() for p in whole.path.glob("*.jsonl")} == before


def test_another_configuration_is_refused_and_a_harmless_one_is_not(whole: RunFolder) -> None:
    here = f"run.dir={whole.path.parent}"
    with open_run(load_recipe(RECIPE, [here, "grow.agents=1"])) as run:
        assert grow_graph(run) is None
    with (
        pytest.raises(RunError, match=r"grow\.max_depth: 4 -> 5"),
        open_run(load_recipe(RECIPE, [here, "grow.max_depth=5"])),
    ):
        pass


def test_tasks_before_a_graph_are_an_error_that_says_what_comes_first(tmp_path: Path) -> None:
    recipe = load_recipe(RECIPE, [f"run.dir={tmp_path}"])
    with pytest.raises(RunError, match=r"is empty; grow it first, with `kgsynth grow`"), open_run(recipe) as run:
        make_tasks(run)


@contextmanager
def killed(command: list[str], after: float, log: Path) -> Iterator[bool]:
    """Runs a command and kills it with -9 after a while, all of its process group; yields whether it had finished."""
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    yield process.returncode == 0
    assert process.returncode in (0, -signal.SIGKILL), log.read_text()[-2000:]


@pytest.mark.slow
def test_killed_twenty_times_the_run_ends_the_same(whole: RunFolder, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kgsynth.cli", "run", str(RECIPE), f"run.dir={tmp_path}"]
    folder, rng, log = RunFolder(tmp_path / "small"), random.Random(7), tmp_path / "log"
    kills = 0
    while kills < 20:
        with killed(command, rng.uniform(0.5, 4.0), log) as finished:
            if finished:
                break
            kills += 1
    subprocess.run(command, check=True, capture_output=True)
    assert kills >= 3, "too fast to be killed: the moments say nothing"
    assert graph_of(folder) == graph_of(whole)
    assert [t.id for t in load_kept(folder)] == [t.id for t in load_kept(whole)]
    rejected = [(row["index"], row["check"]) for row in folder.rows("rejected.jsonl")]
    assert rejected == [(row["index"], row["check"]) for row in whole.rows("rejected.jsonl")]


def test_ctrl_c_gives_leases_back_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kgsynth.cli", "grow", str(RECIPE), f"run.dir={tmp_path}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "small" / "graph.sqlite").exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (0, 130), said
    if process.returncode == 130:
        assert "the same command goes on from here" in said
        assert "Traceback" not in said
    store = open_store(f"sqlite:{tmp_path / 'small' / 'graph.sqlite'}")
    assert store.frontier()["leased"] == 0
    store.close()


@pytest.mark.neo4j
def test_the_same_growth_in_neo4j_gives_the_same_graph(whole: RunFolder, tmp_path: Path, bolt_url: str) -> None:  # noqa: F811
    recipe = load_recipe(RECIPE, [f"run.dir={tmp_path}", f"store.url={bolt_url}"])
    with open_run(recipe) as run:
        grow_graph(run)
        assert contents(run.graph.store) == graph_of(whole)
        tasks = make_tasks(run)
    assert [t.id for t in tasks] == [t.id for t in load_kept(whole)]


# With a model, over real HTTP


def teacher(request: dict[str, Any]) -> dict[str, Any]:
    """Grows as `tests.test_grow.model` does, and writes a task from the first line of a passage that defines a term."""
    text = request["messages"][1]["content"]
    if "Write one question" not in text:
        return model(request)
    passages = re.findall(r'<passage number="(\d+)" [^>]*>\n(.*?)\n</passage>', text, re.DOTALL)
    number, (term, said) = next(
        (int(n), found[0])
        for n, body in passages
        if (found := re.findall(r"^- \**(.*?)\**: (.*)$", body, re.MULTILINE))
    )
    asked = re.search(r"question number (\d+)", text)
    assert asked
    return {
        "type": "text",
        "question": f"Question {asked[1]}: which term is it of which one says what follows? {said.replace(term, 'It')[5:]}",
        "answer": term,
        "wrong": ["a stack", "a queue", "a graph"],
        "evidence": [{"passage": number, "quote": f"{term}: {said}"}],
    }


def with_model(server: FakeOpenAI, tmp_path: Path, *more: str) -> Recipe:
    pages = tmp_path / "pages"
    if not pages.exists():
        pages.mkdir()
        write_pages(pages)
    settings = [
        f"run.dir={tmp_path}", f"run.name=model-{len(list(tmp_path.iterdir()))}", "corpus.builtin=false",
        f'corpus.paths=["{pages}"]', "corpus.cache=false", "grow.agents=1", "synthesize.drafts=1",
        'grow.seeds=[{name="data structures", domain="data"}]', "sample.tasks=8", "sample.types={written=1.0}", "sample.scopes={concept=1.0}",
        "llm.kind=openai", "llm.model=fake", f"llm.base_url={server.url}", *more,
    ]  # fmt: skip
    return load_recipe(RECIPE, settings)


def made(recipe: Recipe) -> tuple[list[Any], list[str]]:
    with open_run(recipe) as run:
        grow_graph(run)
        tasks = make_tasks(run)
        return contents(run.graph.store)[0], [task.id for task in tasks]


def test_faults_of_an_endpoint_lose_and_repeat_no_work(tmp_path: Path) -> None:
    with FakeOpenAI(teacher) as server:
        clean = made(with_model(server, tmp_path))
        asked = len(server.requests)
    assert len(clean[1]) >= 4, "the model's tasks must pass the same validation"
    bad_json = completion('{"queries": ["data')
    faults = {0: refusal(429, "slow", retry_after="0"), 3: malformed(), 5: refusal(500), 7: stalled(3.0)}
    writing = asked - 4  # among the requests that write tasks
    with FakeOpenAI(
        faulty(teacher, {**faults, writing: refusal(500), writing + 2: refusal(429, retry_after="0")})
    ) as server:
        recipe = with_model(server, tmp_path, "llm.timeout_s=1.0")
        assert made(recipe) == clean
        assert len(server.requests) == asked + len(faults) + 2
    with FakeOpenAI(faulty(teacher, {0: bad_json})) as server:
        assert made(with_model(server, tmp_path)) == clean
        assert len(server.requests) == asked + 1


def test_a_run_that_a_dead_endpoint_ended_goes_on_without_asking_twice(tmp_path: Path) -> None:
    with FakeOpenAI(teacher) as server:
        clean = made(with_model(server, tmp_path))
        asked = len(server.requests)
    dies = {n: refusal(401, "key expired") for n in range(asked - 5, asked + 100)}
    with FakeOpenAI(faulty(teacher, dies)) as server:
        recipe = with_model(server, tmp_path)
        with pytest.raises(LLMError, match="key expired"):
            made(recipe)
        answered = len(server.requests) - 1
        server.script = teacher
        assert made(recipe) == clean
        assert len(server.requests) == asked + 1
        assert answered == asked - 5
