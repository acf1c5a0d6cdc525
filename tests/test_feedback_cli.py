"""`kgsynth feedback`: what it prints, what it changes, what it says without results, and that a kill leaves all or nothing."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kgsynth.cli import main
from kgsynth.concept import Concept
from kgsynth.doctor import examine
from kgsynth.feedback import FeedbackConfig
from kgsynth.graph import ConceptGraph
from kgsynth.recipe import TABLES, load_recipe
from kgsynth.stages import grow_graph, open_run
from kgsynth.store import GraphStore, open_store
from tests.test_graph_cli import evaluation, task
from tests.test_grow import write_pages
from trainer.config import load_recipe as load_trainer

MADE = 4  # tasks about each tested concept, with the 8 replies of `evaluation` to each
RESULTS = {"tries": 1.0, "open addressing": 0.0, "heaps": 0.5}

Feedback = Callable[..., str]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe whose run has grown, made tasks and been trained on: its files are as `kgsynth` and `trainer` write them."""
    home = tmp_path_factory.mktemp("trained")
    (home / "pages").mkdir()
    recipe = home / "recipe.toml"
    recipe.write_text(
        f'[run]\nname = "one"\ndir = "{home}"\n[corpus]\nbuiltin = false\ncache = false\npaths = ["{write_pages(home / "pages")}"]\n'
        '[embed]\nmodel = "hashing"\n[grow]\nseeds = [{ name = "data structures", domain = "data" }]\n'
    )
    with open_run(load_recipe(recipe)) as run:
        grow_graph(run)
        tested = {name: run.graph.find(name)[0] for name in RESULTS}
    write_results(home / "one", tested)
    return home


def write_results(folder: Path, tested: dict[str, Concept]) -> None:
    made = {name: [task(100 * place + n, of) for n in range(MADE)] for place, (name, of) in enumerate(tested.items())}
    (folder / "tasks.jsonl").write_text("".join(t.to_json() + "\n" for tasks in made.values() for t in tasks))
    rates = {t.id: RESULTS[name] for name, tasks in made.items() for t in tasks}
    (folder / "train").mkdir()
    (folder / "train" / "eval_after.json").write_text(
        json.dumps({"train": evaluation(rates), "held_out": evaluation({})})
    )


@pytest.fixture
def home(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    for settings in ("recipe.toml", "one/config.toml"):
        text = (tmp_path / settings).read_text()
        (tmp_path / settings).write_text(text.replace(str(trained), str(tmp_path)))
    return tmp_path


@pytest.fixture
def feedback(home: Path, capsys: pytest.CaptureFixture[str]) -> Feedback:
    """Runs it and returns what it said."""

    def told(*args: str, code: int = 0) -> str:
        assert main(["feedback", str(home / "recipe.toml"), *args]) == code
        said = capsys.readouterr()
        return said.out if code == 0 else said.err

    return told


def last(said: str) -> dict[str, Any]:
    return json.loads(said.splitlines()[-1])


def opened(home: Path) -> closing[GraphStore]:  # type: ignore[type-var]
    return closing(open_store(f"sqlite:{home / 'one' / 'graph.sqlite'}"))


def test_it_says_what_it_would_do_and_does_nothing(home: Path, feedback: Feedback) -> None:
    feedback()
    with opened(home) as store:
        before = (store.version(), store.frontier(), len(store.decisions()))
    said = feedback()
    lines = said.splitlines()
    (tries,) = (line for line in lines if "research again" in line and "tries" in line)
    assert [word in tries for word in ("0.9", "32", "mastered, and nothing finer is known")] == [True] * 3
    (probing,) = (line for line in lines if "coarser tasks first" in line)
    assert "open addressing" in probing
    assert "hash tables" in probing, "where tasks should be instead"
    assert "1 to research again, 0 for finer tasks, 1 for coarser ones" in said
    assert (
        "the next `kgsynth grow` researches 1 concept, 1 of them re-opened by --apply; first, by breadth: tries" in said
    )
    assert "grow.order='[\"feedback\"]'" in said
    row = last(said)
    assert {k: row[k] for k in ("tried", "reopen", "finer", "coarser", "applied")} == {
        "tried": 3, "reopen": 1, "finer": 0, "coarser": 1, "applied": 0
    }  # fmt: skip
    assert row["next"]["waiting"] == 1
    with opened(home) as store:
        assert (store.version(), store.frontier(), len(store.decisions())) == before


def test_applied_grown_and_undone(home: Path, feedback: Feedback, capsys: pytest.CaptureFixture[str]) -> None:
    said = feedback("--apply")
    op = last(said)["applied"]
    assert op > 0
    assert f"applied as operation {op}" in said
    again = feedback("--apply")
    assert last(again)["applied"] == 0
    assert "nothing was re-opened" in again
    with opened(home) as store:
        assert [ConceptGraph(store)[i.concept].name for i in store.waiting()] == ["tries"]
        assert examine(store) == []
    assert main(["undo", str(home / "one"), str(op)]) == 0
    with opened(home) as store:
        assert (store.frontier()["waiting"], ConceptGraph(store).find("tries")[0].atomic) == (0, True)
    assert main(["undo", str(home / "one")]) == 0
    (home / "pages" / "tries.md").write_text(
        "# Tries\n\nThis page is about tries.\n\n- **radix trees**: Radix trees join what has one child.\n"
    )
    assert main(["grow", str(home / "recipe.toml"), "grow.order=['feedback']"]) == 0
    capsys.readouterr()
    with opened(home) as store:
        graph = ConceptGraph(store)
        assert [c.name for c in graph.children(graph.find("tries")[0])] == ["radix trees"]
        assert examine(store) == []


def test_json_has_every_finding_and_nothing_else_is_printed(feedback: Feedback) -> None:
    (line,) = feedback("--json").splitlines()
    found = {f["name"]: f for f in json.loads(line)["findings"]}
    assert {name: (f["verdict"], f["step"]) for name, f in found.items()} == {
        "tries": ("mastered", "reopen"), "open addressing": ("hopeless", "coarser"), "heaps": ("learnable", "keep")
    }  # fmt: skip
    assert (found["tries"]["attempts"], found["tries"]["right"], found["tries"]["tasks"]) == (32.0, 32.0, 4)
    assert len(found["open addressing"]["others"]) == 1


def test_thresholds_and_limits_come_from_the_recipe(feedback: Feedback) -> None:
    assert last(feedback("feedback.min_attempts=33"))["reopen"] == 0
    assert last(feedback("feedback.mastered=0.95", "feedback.confidence=0.99"))["reopen"] == 0
    deep = last(feedback("grow.max_depth=2", "--json"))
    assert any("raise [grow] max_depth" in f["reason"] for f in deep["findings"])
    assert "the graph is full" in feedback("grow.max_concepts=3")
    assert "[feedback] mastered must be between 0 and 1, not 2.0" in feedback("feedback.mastered=2.0", code=1)
    assert "unknown key 'master'" in feedback("feedback.master=0.9", code=1)


def test_without_results_it_says_how_to_get_some(home: Path, feedback: Feedback) -> None:
    shutil.rmtree(home / "one" / "train")
    said = feedback(code=1)
    assert said.startswith("kgsynth: RunError: no task of sqlite:")
    assert "train on them first: `trainer run" in said
    assert said.count("\n") == 1
    assert "has no graph yet; make one with `kgsynth run" in feedback("run.name=another", code=1)


def test_the_trainer_reads_a_recipe_with_every_table(home: Path) -> None:
    """The loop has one recipe: what is the graph's business in it, settings of feedback too, is not the trainer's."""
    recipe = home / "recipe.toml"
    tables = [f"[{name}]\n" for name in TABLES if f"[{name}]" not in recipe.read_text()]
    assert "[feedback]\n" in tables
    recipe.write_text(recipe.read_text() + "".join(tables))
    assert load_recipe(recipe).feedback == FeedbackConfig()
    assert load_trainer(recipe).run_dir == home / "one"


def test_help_teaches_the_loop(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["feedback", "--help"])
    said = capsys.readouterr().out
    words = ("grow -> synthesize -> train -> feedback -> grow", "kgsynth run", "trainer run", "--apply", "kgsynth undo")
    assert [word in said for word in words] == [True] * len(words)


def test_killed_between_the_advice_and_its_commit_nothing_has_happened(home: Path, feedback: Feedback) -> None:
    """Another writer holds the graph, so the process that announced to apply can only wait: there it is killed."""
    feedback()  # the graph knows the pass rates
    graph = home / "one" / "graph.sqlite"
    with opened(home) as store:
        before = (store.version(), store.frontier(), store.decisions())
    writer = sqlite3.connect(graph, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    command = [sys.executable, "-m", "kgsynth.cli", "feedback", str(home / "recipe.toml"), "--apply"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        while "applying to" not in (line := process.stdout.readline()):
            assert line, "it ended without a word"
        time.sleep(0.3)
        assert process.poll() is None, "it waits for the other writer"
        process.kill()
    writer.execute("ROLLBACK")
    writer.close()
    with opened(home) as store:
        assert (store.version(), store.frontier(), store.decisions()) == before
        assert examine(store) == []
    assert last(feedback("--apply"))["applied"] == before[0] + 1
    assert last(feedback("--apply"))["applied"] == 0


def test_a_second_run_on_the_same_graph_is_the_next_round(
    home: Path, feedback: Feedback, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own tasks, the pass rates of both: what the first round has shown is not forgotten."""
    feedback("--apply")
    assert main(["grow", str(home / "recipe.toml")]) == 0
    capsys.readouterr()
    more = (f"store.url=sqlite:{home / 'one' / 'graph.sqlite'}", "run.name=two", "grow.max_concepts=900")
    (home / "two").mkdir()
    shutil.copy(home / "one" / "tasks.jsonl", home / "two" / "tasks.jsonl")
    row = last(feedback(*more))
    assert (row["tried"], row["reopen"]) == (3, 0), "nothing new was tried"
