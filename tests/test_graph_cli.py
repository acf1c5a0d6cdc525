"""The commands that care for a graph, as one types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kgsynth.annotate import annotate
from kgsynth.cli import main
from kgsynth.concept import Concept, Edge
from kgsynth.errors import ConfigError, RunError
from kgsynth.store import Change, GraphStore, open_store
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.task import Provenance, Task, VerifierSpec
from kgsynth.where import find_graph
from tests.test_push import fill, image
from trainer.eval import Evaluation

A, B, C = (Concept(name=name, domain="d") for name in ("binary tree", "heap", "priority queue"))


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A file with a graph of four operations; the last one is a merge."""
    path = tmp_path / "graph.sqlite"
    with closing(open_store(f"sqlite:{path}")) as store:
        store.commit(Change(concepts=(A, B, C), edges=(Edge(parent=A.id, child=B.id),), note="first"))
        more = Concept(name="Heap", domain="d", aliases=("binary heap",), definition="A tree in order.", atomic=False)
        store.commit(Change(concepts=(more,), note="the page on [heaps]"))
        store.commit(Change(edges=(Edge(parent=A.id, child=C.id),)))
        store.commit(Change(merges=((B.id, C.id),), note="they are one"))
    return path


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def told(*args: str, code: int = 0) -> str:
        """What a command prints: on stdout when it succeeds, else on stderr."""
        assert main(args) == code
        said = capsys.readouterr()
        return said.err if code == 1 else said.out

    return told


# which graph


def test_a_graph_is_found_by_every_name_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "small"
    folder.mkdir(parents=True)
    EmbeddedStore(folder / "graph.sqlite").close()
    (tmp_path / "small.toml").write_text('[run]\nname = "small"\n[grow]\nmax_concepts = 3\n')
    (tmp_path / "far.toml").write_text('[store]\nurl = "bolt://far:7687"\n')
    here = f"sqlite:{folder / 'graph.sqlite'}"
    assert find_graph(str(folder)) == find_graph(str(folder / "graph.sqlite")) == find_graph(here) == here
    assert find_graph("small.toml") == "sqlite:runs/small/graph.sqlite"
    (folder / "config.toml").write_text('[run]\nname = "small"\ndir = "elsewhere"\n[store]\nurl = ""\n')
    assert find_graph(str(folder)) == here, "a run folder that was moved"
    (folder / "config.toml").write_text('[store]\nurl = "bolt://far:7687"\n')
    assert find_graph(str(folder)) == find_graph("far.toml") == find_graph("bolt://far:7687") == "bolt://far:7687"
    assert find_graph("new.sqlite", new=True) == find_graph("sqlite:new.sqlite", new=True) == "sqlite:new.sqlite"


@pytest.mark.parametrize(
    ("text", "new", "says"),
    [
        ("nothing", False, "there is no graph 'nothing': check the path; a graph is named by sqlite:PATH, bolt"),
        ("nothing.sqlite", False, "there is no graph 'nothing.sqlite'"),
        ("nothing", True, "call a new file \\*.sqlite"),
        ("no/where.sqlite", True, "the folder of no/where.sqlite does not exist; make no"),
        ("gone.toml", False, "cannot read recipe gone.toml"),
        ("young.toml", False, "its run has no graph yet .*kgsynth grow"),
        ("empty.sqlite", False, "empty.sqlite is an empty file, not a graph"),
    ],
)
def test_what_is_no_graph_is_told_what_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, new: bool, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "young.toml").write_text('[run]\nname = "young"\n')
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(ConfigError, match=says):
        find_graph(text, new=new)
    assert sorted(os.listdir(tmp_path)) == ["empty.sqlite", "young.toml"]


# the log


def test_the_log_lists_operations(graph: Path, told: Callable[..., str]) -> None:
    said = told("log", str(graph))
    lines = [line.split("│") for line in said.splitlines() if line.startswith("│")]
    assert [[line[i].strip() for i in (1, 3, 4, 5, 6)] for line in lines] == [
        ["1", "commit", "first", "3", "1"],
        ["2", "commit", "the page on [heaps]", "1", "0"],
        ["3", "commit", "", "0", "1"],
        ["4", "commit", "they are one", "2", "1"],
    ]
    assert "operations 3 to 4" in told("log", str(graph), "--last", "2")


def test_the_log_lists_at_least_one_operation(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for last in ("0", "-5", "x"):
        with pytest.raises(SystemExit) as stop:
            main(["log", str(graph), "--last", last])
        assert (stop.value.code, "argument --last" in capsys.readouterr().err) == (2, True)


def test_the_log_of_an_empty_graph(tmp_path: Path, told: Callable[..., str]) -> None:
    with closing(open_store(f"sqlite:{tmp_path / 'graph.sqlite'}")):
        pass
    assert told("log", str(tmp_path)).endswith("has no operations yet\n")


def test_undo_takes_back_the_last_operation_and_twice_does_it_again(graph: Path, told: Callable[..., str]) -> None:
    with closing(open_store(f"sqlite:{graph}")) as store:
        before = store.concepts(), store.edges()
    said = told("undo", str(graph))
    assert "operation 4 (commit, 2 concepts, 1 edge: they are one) is taken back, as operation 5" in said
    with closing(open_store(f"sqlite:{graph}")) as store:
        assert [c.name for c in store.concepts()] == ["binary tree", "heap", "priority queue"]
    told("undo", str(graph))
    with closing(open_store(f"sqlite:{graph}")) as store:
        assert (store.concepts(), store.edges()) == before


def test_a_dry_run_says_what_is_in_the_way_and_changes_nothing(graph: Path, told: Callable[..., str]) -> None:
    with closing(open_store(f"sqlite:{graph}")) as store:
        before = image(store)
    said = told("undo", str(graph), "3", "--dry-run")
    assert "would take back operation 3" in said
    assert "  edge binary tree -> priority queue" in said
    assert "in the way: operation 4 (commit, 2 concepts, 1 edge: they are one)" in said
    assert "undo operation 4 first" in told("undo", str(graph), "3", code=1)
    assert "in the way" not in told("undo", str(graph), "--dry-run")
    with closing(open_store(f"sqlite:{graph}")) as store:
        assert image(store) == before


def test_undo_of_what_never_was(graph: Path, told: Callable[..., str]) -> None:
    for args in (["99"], ["0"], ["99", "--dry-run"], [str(10**30)], ["--", str(-(10**30))]):
        assert "there is no operation" in told("undo", str(graph), *args, code=1)


def test_history_shows_the_versions_of_a_concept(graph: Path, told: Callable[..., str]) -> None:
    said = told("history", str(graph), "Heaps")
    for part in (
        "name: heap",
        "aliases: +binary heap",
        "definition: A tree in order.",
        "atomic: False",
        "+priority queue",
    ):
        assert part in said
    assert "binary heap, " not in said.partition("+priority queue")[2], "only what is new in a version"


def test_history_of_a_concept_that_was_folded_or_removed(graph: Path, told: Callable[..., str]) -> None:
    said = told("history", str(graph), C.id)
    assert f"{C.id}, folded into 'heap' ({B.id})" in said
    assert "removed" in said
    with closing(open_store(f"sqlite:{graph}")) as store:
        store.commit(Change(remove=(A.id,)))
    assert "removed" in told("history", str(graph), "binary tree")
    assert "no concept has ever answered to 'unheard of'" in told("history", str(graph), "unheard of", code=1)


# copies


def test_push_prints_its_figures(tmp_path: Path, told: Callable[..., str]) -> None:
    with closing(open_store(f"sqlite:{tmp_path / 'a.sqlite'}")) as store:
        fill(store, 60)
    figures = json.loads(told("push", str(tmp_path / "a.sqlite"), str(tmp_path / "b.sqlite")).splitlines()[-1])
    with closing(open_store(f"sqlite:{tmp_path / 'b.sqlite'}")) as copy:
        assert figures["concepts"] == len(copy.concepts())
        assert figures["edges"] == len(copy.edges())
        assert figures["operations"] == copy.version()
        assert figures["sources"] == len(copy.sources())
        assert figures["embeddings"] == len(copy.embeddings()[1])
        assert figures["tasks"] == len(copy.tasks())
    assert figures["concepts_per_second"] > 0
    said = told("push", str(tmp_path / "a.sqlite"), str(tmp_path / "b.sqlite"))
    assert "both hold the same, nothing was to do" in said


def test_ctrl_c_stops_a_push_that_goes_on_with_the_same_command(tmp_path: Path, told: Callable[..., str]) -> None:
    with closing(open_store(f"sqlite:{tmp_path / 'a.sqlite'}")) as store:
        fill(store, 600)
    code = (
        "import sys; from kgsynth import push; push.BATCH = 20\n"
        "from kgsynth.store.embedded import EmbeddedStore; load = EmbeddedStore.load\n"
        "def told(*args, **kwargs): load(*args, **kwargs); print(flush=True)\n"
        "EmbeddedStore.load = told; from kgsynth.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "push", str(tmp_path / "a.sqlite"), str(tmp_path / "b.sqlite")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, said = child.communicate()
    assert (child.returncode, said) == (130, "kgsynth: stopped; the same command goes on from here\n")
    assert "is an unfinished copy" in told("log", str(tmp_path / "b.sqlite"), code=1)
    told("push", str(tmp_path / "a.sqlite"), str(tmp_path / "b.sqlite"))
    assert "operations 1 to" in told("log", str(tmp_path / "b.sqlite"))


def test_backup_and_restore(tmp_path: Path, graph: Path, told: Callable[..., str]) -> None:
    file = tmp_path / "kept.sqlite"
    assert "at operation 4 (2 concepts)" in told("backup", str(graph), str(file))
    assert "make " in told("backup", str(graph), str(tmp_path / "no" / "kept.sqlite"), code=1)
    told("undo", str(graph))
    assert "say --replace" in told("restore", str(file), str(graph), code=1)
    kept = json.loads(told("restore", str(file), str(graph), "--replace").splitlines()[-1])["kept"]
    assert "operations 1 to 4" in told("log", str(graph))
    assert "operations 1 to 5" in told("log", kept)
    told("restore", str(file), str(tmp_path / "new.sqlite"))
    assert "operations 1 to 4" in told("log", str(tmp_path / "new.sqlite"))
    assert "there is no graph" in told("restore", str(tmp_path / "nothing.sqlite"), str(graph), code=1)


# tasks and pass rates


def task(i: int, *concepts: Concept) -> Task:
    ids = tuple(c.id for c in concepts)
    return Task(
        type="cloze", domain="d", granularity="broad", prompt=f"What is {i}?", verifier=VerifierSpec(name="text"), reference="x",
        wrong=(), provenance=Provenance(concepts=ids, names=ids, spans=(), licences=(), author="test"),
    )  # fmt: skip


def evaluation(rates: dict[str, float]) -> dict[str, object]:
    """As the trainer writes it."""
    return vars(
        Evaluation(
            reward=0.5, stderr=0.1, by_type={}, pass_rates=rates, attempts=dict.fromkeys(rates, 8), tasks=len(rates), failed=0,
            truncated=0.0, reply_tokens=1.0,
        )
    )  # fmt: skip


def test_tasks_and_pass_rates_are_in_the_graph(tmp_path: Path, graph: Path) -> None:
    one, two, three = task(1, A), task(2, C, A), task(3, B)
    train = tmp_path / "train"
    train.mkdir()

    def known(store: GraphStore) -> list[tuple[float | None, int, str]]:
        return [(t.pass_rate, t.attempts, t.policy) for t in store.tasks()]

    with closing(open_store(f"sqlite:{graph}")) as store:
        assert annotate(store, tmp_path, [one, two, three]) == 3
        assert annotate(store, tmp_path, [one, two, three]) == 0
        assert known(store) == [(None, 0, "")] * 3
        assert [t.id for t in store.tasks(B.id)] == [two.id, three.id], "two tests a concept that was folded into B"
        before = {"train": evaluation({one.id: 0.25}), "held_out": evaluation({two.id: 0.0})}
        (train / "eval_before.json").write_text(json.dumps(before))
        assert annotate(store, tmp_path, [one, two, three]) == 2
        assert known(store) == [(0.25, 8, "sft"), (0.0, 8, "sft"), (None, 0, "")]
        after = {"train": evaluation({one.id: 0.75}), "held_out": evaluation({two.id: 1.0})}
        (train / "eval_after.json").write_text(json.dumps(after))
        assert annotate(store, tmp_path, [one, two, three]) == 2
        assert known(store) == [(0.75, 8, "rl"), (1.0, 8, "rl"), (None, 0, "")]
        (train / "eval_after.json").write_text("{")
        with pytest.raises(RunError, match=r"eval_after.json is damaged .*train again"):
            annotate(store, tmp_path, [one])


def test_the_annotate_command_needs_a_run_and_says_what_it_did(tmp_path: Path, told: Callable[..., str]) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'[run]\nname = "small"\ndir = "{tmp_path}"\n')
    assert "has no graph yet; make one with `kgsynth run" in told("annotate", str(recipe), code=1)
    folder = tmp_path / "small"
    folder.mkdir()
    with closing(open_store(f"sqlite:{folder / 'graph.sqlite'}")) as store:
        store.commit(Change(concepts=(A,)))
    (folder / "tasks.jsonl").write_text(task(1, A).to_json() + "\n")
    assert json.loads(told("annotate", str(recipe))) == {"tasks": 1, "tried": 0, "changed": 1}
    assert json.loads(told("annotate", str(recipe))) == {"tasks": 1, "tried": 0, "changed": 0}
