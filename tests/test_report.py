"""report.html, made from a run folder that is written here file by file, and opened in a browser where there is one."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kgsynth.concept import Concept, Decision, Edge, Source
from kgsynth.errors import RunError
from kgsynth.ledger import Ledger, Spend
from kgsynth.report import count, data, duration, write_report
from kgsynth.report.layout import layered, spread
from kgsynth.store import Change, open_store
from kgsynth.task import Provenance, Task, VerifierSpec

pytest.importorskip("plotly")

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
OFFLINE = "offline-extractive (no model)"
WORDS = "list dict set queue heap tree graph string regex path thread lock event task future iterator".split()


def hostile_or(text: str, hostile: bool) -> str:
    return HOSTILE + text if hostile else text


def make_graph(path: Path, *, concepts: int, seed: int = 0, hostile: bool = False) -> list[Concept]:
    """A random DAG over three domains with a source behind every edge."""
    rng = random.Random(seed)
    domains = ["algorithms", "concurrency", "text"]
    made = [Concept(name=d, domain=d, definition=f"Everything about {d}.") for d in domains]
    source = Source(
        url="javascript:document.title='owned'" if hostile else "https://docs.python.org/3/library/heapq.html",
        title=hostile_or("heapq", hostile),
        text=hostile_or("A heap is a binary tree whose parents are not larger than their children.", hostile),
        licence=hostile_or("PSF-2.0", hostile),
    )
    edges = []
    for i in range(len(domains), concepts):
        first = made[rng.randrange(max(1, i // 4)) if i > 12 else i % 3]
        name = hostile_or(f"{rng.choice(WORDS)} {rng.choice(WORDS)} {i}", hostile)
        text = hostile_or(f"A {rng.choice(WORDS)} that keeps what a {rng.choice(WORDS)} needs, in order.", hostile)
        made.append(Concept(name=name, domain=first.domain, definition=text, atomic=i > concepts // 3))
        parents = {first.id, *(c.id for c in rng.sample(made[: max(3, i // 6)], 1) if rng.random() < 0.15)}
        edges += [Edge(parent=p, child=made[-1].id, spans=(source.span(0, 60),)) for p in sorted(parents)]
    close = (("neighbour", hostile_or("priority queue", hostile)), ("similarity", 0.81))
    decisions = (
        Decision(
            kind="dedup", subject=hostile_or("heap", hostile), outcome="alias", reason="same name", evidence=close
        ),
        Decision(
            kind="drop", subject=hostile_or("heaps", hostile), outcome="unsupported", reason="quote not on the page"
        ),
        Decision(kind="licence", subject=source.url, outcome=source.licence, reason=hostile_or("its footer", hostile)),
    )
    store = open_store(f"sqlite:{path}")
    store.commit(Change(sources=(source,), concepts=tuple(made), edges=tuple(edges), decisions=decisions))
    store.close()
    return made


def make_tasks(concepts: list[Concept], n: int, *, hostile: bool = False) -> list[Task]:
    kinds = [
        ("choice", VerifierSpec(name="choice", params={"correct": "B", "options": ["A", "B"]}), "B", "A"),
        ("predict", VerifierSpec(name="literal", params={"value": "[1, 2]"}), "[1, 2]", "[2, 1]"),
        ("cloze", VerifierSpec(name="text", params={"answers": ["heap"]}), "heap", "tree"),
    ]
    source = Source(
        url="https://docs.python.org/3/", title="Python", text="A heap is a binary tree.", licence="PSF-2.0"
    )
    tasks = []
    for i in range(n):
        kind, verifier, right, wrong = kinds[i % 3]
        concept = concepts[i % len(concepts)]
        origin = Provenance(
            concepts=(concept.id,), names=(concept.name,), spans=(source.span(0, 24),), licences=("PSF-2.0",),
            author="programmatic", index=i,
        )  # fmt: skip
        tasks.append(
            Task(
                type=kind,
                domain=concept.domain,
                granularity=("broad", "middle", "atomic")[i % 3 if i % 5 else 0],
                prompt=hostile_or(f"Question {i}: what does this print?\n\nprint(sorted([2, 1]))\n", hostile),
                verifier=verifier,
                reference=f"<answer>{right}</answer>",
                wrong=(f"<answer>{wrong}</answer>",),
                provenance=origin,
            )
        )  # fmt: skip
    return tasks


def write_lines(path: Path, rows: list[Any]) -> None:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def make_run(folder: Path, *, concepts: int = 40, tasks: int = 30, hostile: bool = False) -> Path:
    """A finished run, as kgsynth and the trainer leave it."""
    (folder / "train").mkdir(parents=True)
    (folder / "config.toml").write_text('[run]\nname = "demo"\n\n[store]\nurl = ""\n')
    made = make_graph(folder / "graph.sqlite", concepts=concepts, hostile=hostile)
    write_lines(folder / "tasks.jsonl", [t.to_json() for t in make_tasks(made, tasks, hostile=hostile)])
    checks = ["unique", "material", "wrong", "oracle"]
    rejected: list[Any] = [
        {"index": 100 + i, "type": "cloze", "check": checks[min(3, i % 7)], "message": hostile_or(f"case {i}", hostile)}
        for i in range(23)
    ]
    write_lines(folder / "rejected.jsonl", [*rejected, {"index": -1, "check": "exhausted", "message": "no more"}])
    rng = random.Random(1)
    sft = [{"stage": "sft", "step": s, "loss": 4.5 * 0.985**s + rng.random() * 0.2} for s in range(1, 151)]
    rl = [
        {
            "stage": "rl", "step": s, "reward": min(0.9, 0.2 + s / 120 + rng.random() * 0.1), "unanimous": rng.random(),
            "reply_tokens": 20 + rng.random() * 8, "entropy": 1.2 - s / 90, "loss": float("nan"),
        }
        for s in range(1, 61)
    ]  # fmt: skip
    write_lines(folder / "metrics.jsonl", [*sft, {"stage": "eval", "step": 0, "train_reward": 0.21}, *rl])
    stages: list[Any] = [
        {"stage": "grow", "seconds": 12.5, "ended": "stopped", "counts": {"concepts": 10}, "brain": OFFLINE},
        {"stage": "grow", "seconds": 21.0, "ended": "done", "counts": {"concepts": concepts}, "brain": OFFLINE},
        {"stage": "synthesize", "seconds": 45.0, "ended": "done", "counts": {"kept": tasks}, "brain": OFFLINE},
        {"stage": "sft", "seconds": 75.2, "counts": {"train": 24}},
        {"stage": "eval", "seconds": 9.0, "counts": {}},
        {"stage": "rl", "seconds": 131.0, "counts": {}},
    ]
    write_lines(folder / "stages.jsonl", stages)
    result = {
        "reward_before": 0.21, "reward_after": 0.68, "heldout_before": 0.18, "heldout_after": 0.44,
        "stderr_before": 0.03, "stderr_after": 0.04, "heldout_stderr_before": 0.05, "heldout_stderr_after": 0.06,
        "by_type_before": {"choice": 0.4, "predict": 0.1}, "by_type_after": {"choice": 0.9, "predict": 0.5},
        "parameters": 1234567, "train": 24, "held_out": 6,
    }  # fmt: skip
    (folder / "train" / "result.json").write_text(json.dumps(result))
    return folder


class Page(HTMLParser):
    """What a browser would make of the file: scripts with their attributes, handlers, links, visible text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.text: list[str] = []
        self._inside = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif self._inside != "style":
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    @property
    def data(self) -> Any:
        return json.loads(self.scripts[0][1])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "demo")


@pytest.fixture(scope="module")
def page(finished: Path) -> Page:
    return Page(write_report(finished))


def test_the_report_holds_every_part_of_a_finished_run(page: Page) -> None:
    for words in (
        OFFLINE, "No language model was used", "57% of 53 drafts", "0.18 → 0.44", "4 min 54 s",
        "PSF-2.0", "dedup: alias", "unique", "case 0", "Planted wrong answer, 1 of 1", "the letter of one option",
        "1,234,567",
    ):  # fmt: skip
        assert words in page.words, words
    assert "not run yet" not in page.words
    drawn = page.data
    assert len(drawn["graph"]["nodes"]) == 40
    assert drawn["counts"]["types"] == ["choice", "predict", "cloze"]
    assert drawn["evaluation"][1] == {
        "split": "held-out tasks", "before": 0.18, "after": 0.44, "stderr_before": 0.05, "stderr_after": 0.06,
    }  # fmt: skip
    assert len(drawn["rl"]["reward"]) == 60
    assert "loss" not in drawn["rl"]  # NaN only
    assert [row["seconds"] for row in drawn["times"]] == [33.5, 45.0, 75.2, 9.0, 131.0]


def test_a_concept_knows_its_place_its_quotes_and_its_tasks(page: Page) -> None:
    graph = page.data["graph"]
    edge = graph["edges"][0]
    source, url, text = edge["quotes"][0]
    assert text.startswith("A heap is a binary tree")
    assert graph["sources"][source] == {"url": url, "title": "heapq", "licence": "PSF-2.0"}
    assert graph["tasks"][graph["nodes"][3]["tasks"][0]]["prompt"].startswith("Question 3")
    assert graph["nodes"][edge["from"]]["level"] < graph["nodes"][edge["to"]]["level"]
    assert graph["nodes"][edge["from"]]["y"] < graph["nodes"][edge["to"]]["y"]


def test_the_file_stands_alone_and_lets_only_its_own_scripts_run(page: Page) -> None:
    assert len(page.scripts) == 3
    policy = next(value for tag, name, value in page.attributes if tag == "meta" and "default-src" in (value or ""))
    assert policy is not None
    assert "default-src 'none'" in policy
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    texts = [text for attrs, text in page.scripts if attrs.get("type") != "application/json"]
    assert {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts} == allowed
    assert not [a for a in page.attributes if a[1] == "src" or (a[0] == "link" and a[1] == "href")]


def test_hostile_names_and_texts_are_inert(tmp_path: Path) -> None:
    page = Page(write_report(make_run(tmp_path / "demo", concepts=12, tasks=6, hostile=True)))
    assert len(page.scripts) == 3
    assert HOSTILE in page.data["graph"]["nodes"][5]["name"]
    assert "<script>document.title" in page.words
    assert not [a for a in page.attributes if a[1].startswith("on") or a[0] == "img"]
    assert not [a for a in page.attributes if a[1] == "href" and not re.match(r"https?://|#", a[2] or "")]


def chromium(path: Path) -> str:
    """The page's DOM after its scripts have run, in a real browser."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        pytest.skip("no Chromium here")
    profile = path.parent / "profile"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    command = [program, *options, f"--user-data-dir={profile}", "--virtual-time-budget=3000", "--dump-dom"]
    return subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=120).stdout


def test_a_browser_draws_hostile_data_and_runs_none_of_it(tmp_path: Path) -> None:
    dom = chromium(write_report(make_run(tmp_path / "demo", concepts=12, tasks=6, hostile=True)))
    assert "<title>demo · kgsynth report</title>" in dom
    assert dom.count('class="point"') > 12  # nodes and bars
    assert "Pick a concept" in dom


def test_an_empty_folder_gives_a_report_that_says_so(tmp_path: Path) -> None:
    page = Page(write_report(tmp_path))
    for part in ("Growing the graph", "Making tasks", "Training", "Stages"):
        assert f"{part}: not run yet" in page.words
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html"]


def test_a_run_at_work_shows_what_is_there(tmp_path: Path) -> None:
    make_graph(tmp_path / "graph.sqlite", concepts=5)
    write_lines(tmp_path / "metrics.jsonl", [{"stage": "sft", "step": 1, "loss": 4.0}])
    page = Page(write_report(tmp_path))
    assert "RL: not run yet" in page.words
    assert "Making tasks: not run yet" in page.words
    assert page.data["graph"]["stats"]["concepts"] == 5


def test_torn_and_damaged_files_are_survived(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "demo", concepts=5, tasks=6)
    for name in ("tasks.jsonl", "rejected.jsonl", "metrics.jsonl", "stages.jsonl"):
        with (folder / name).open("a") as file:
            file.write('{"stage": "rl", "st')
    page = Page(write_report(folder))
    assert "left out" not in page.words
    for name in ("tasks.jsonl", "metrics.jsonl"):
        with (folder / name).open("a") as file:
            file.write("\n[1]\nnull\n" + '"\\ud800"\n')
    (folder / "train" / "result.json").write_text('{"reward_bef')
    (folder / "config.toml").write_text("[run\n")
    (folder / "graph.sqlite").write_bytes(b"not a database, for certain" * 200)
    page = Page(write_report(folder))
    assert "metrics.jsonl: 4 lines could not be read" in page.words
    assert "tasks.jsonl: 4 lines are left out" in page.words
    assert "the graph could not be read" in page.words
    assert "Growing the graph: not run yet" not in page.words
    assert (folder / "metrics.jsonl").read_text().endswith('"\\ud800"\n')  # nothing is mended by reading


def test_evaluations_without_a_result_come_from_the_metrics(tmp_path: Path) -> None:
    rows = [{"stage": "eval", "step": s, "train_reward": r, "held_out_reward": r / 2} for s, r in ((0, 0.2), (60, 0.6))]
    write_lines(tmp_path / "metrics.jsonl", rows)
    found = data.evaluation(data.read_run(tmp_path))
    assert [(row["before"], row["after"]) for row in found] == [(0.2, 0.6), (0.1, 0.3)]


def test_model_calls_are_summed_and_secrets_in_addresses_are_hidden(tmp_path: Path) -> None:
    row = {"stage": "grow", "calls": 1, "prompt_tokens": 1000, "completion_tokens": 200, "usd": 0.25, "reply": "x"}
    write_lines(tmp_path / "ledger.jsonl", [row, row])
    (tmp_path / "config.toml").write_text('[store]\nurl = "bolt://neo4j:hunter2@127.0.0.1:1"\n')
    write_lines(tmp_path / "stages.jsonl", [{"stage": "grow", "seconds": 1, "counts": {}, "brain": "openai:tiny"}])
    path = write_report(tmp_path)
    page = Page(path)
    assert "$0.50" in page.words
    assert "2,000" in page.words
    assert "openai:tiny" in page.words
    assert "No language model" not in page.words
    assert "hunter2" not in path.read_text()


def test_spending_is_read_from_a_ledger_that_is_being_written(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for stage in ("grow", "grow", "synthesize"):
        number = ledger.reserve(Spend(calls=1, usd=1.0), stage=stage, model="m")
        assert number is not None
        ledger.settle(number, Spend(calls=1, prompt_tokens=700, usd=0.25), "ok")
    ledger.reserve(Spend(calls=1, usd=9.0), stage="grow", model="m")  # in flight
    ledger.record("cached", stage="grow", model="m", key="k", reply="x")
    run = data.read_run(tmp_path)
    assert run.notes == []
    assert {row["stage"]: (row["calls"], row["prompt_tokens"], row["usd"]) for row in data.spending(run.ledger)} == {
        "grow": (2, 1400, 0.5), "synthesize": (1, 700, 0.25),
    }  # fmt: skip
    page = Page(write_report(tmp_path))
    assert "$0.75" in page.words
    assert "3 calls" in page.words


def test_a_ledger_that_cannot_be_read_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("money")
    run = data.read_run(tmp_path)
    assert run.ledger == []
    assert "ledger.sqlite" in run.notes[0]


def test_a_missing_folder_is_an_error_that_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="kgsynth run"):
        write_report(tmp_path / "nowhere")


def test_spread_keeps_the_gap_and_moves_as_little_as_possible() -> None:
    assert spread([0.0, 5.0], 1.0) == [0.0, 5.0]
    assert spread([1.0, 1.0, 1.0], 1.0) == [0.0, 1.0, 2.0]
    assert spread([0.0, 0.0, 10.0], 2.0) == [-1.0, 1.0, 10.0]


def test_layout_untangles_a_crossing_and_never_puts_two_nodes_in_one_place() -> None:
    levels = {"a": 0, "b": 0, "x": 1, "y": 1}
    place = layered(levels, [("a", "y"), ("b", "x")])
    assert (place["a"][0] < place["b"][0]) == (place["y"][0] < place["x"][0])
    rng = random.Random(0)
    levels = {str(i): min(4, i.bit_length() // 2) for i in range(1000)}
    names = list(levels)
    edges = [(p, c) for c in names for p in rng.sample(names, 3) if levels[p] < levels[c]]
    place = layered(levels, edges)
    assert place == layered(levels, edges)
    spots = {(round(x, 6), round(y, 6)) for x, y in place.values()}
    assert len(spots) == 1000
    assert layered({}, []) == {}


def test_numbers_in_words() -> None:
    assert [duration(s) for s in (4.21, 75, 7300)] == ["4.2 s", "1 min 15 s", "2 h 1 min"]
    assert [count(n) for n in (None, 12345)] == ["–", "12,345"]
