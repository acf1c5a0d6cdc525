"""Neo4j Browser on a concept graph: our files as they are read by it, in a real one, and saved queries that answer."""

from __future__ import annotations

import html
import io
import itertools
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgsynth.cli import main
from kgsynth.concept import Concept, Edge, Source
from kgsynth.store import Change, FrontierItem, GraphStore, TaskRecord, browse, local, open_store, queries
from kgsynth.store.labels import concept_labels, domain_label
from tests.bolt import neo4j_server  # noqa: F401
from tests.chromium import CONTROL, Browser, browser  # noqa: F401

SCHEMAS = Path(__file__).parents[1] / "graph_schemas"
PAGE = Source(
    url="http://a.test/trees", title="Trees", licence="CC0-1.0", text="A heap is a tree. A trie is a tree. " * 9
)


def concept(name: str, domain: str = "data", **more: Any) -> Concept:
    return Concept(name=name, domain=domain, definition=f"what {name} is", **more)


TREE = [
    concept(n) for n in ("structures", "trees", "heaps", "binary heap", "sift-down", "swap")
]  # a chain of six levels
TRIE = concept("tries", "text and words", atomic=True)
LEAF = concept("hole", atomic=True, atomic_reason="no part")
SAME = concept("binary heaps, folded")
WORDS = concept("words", "text and words")


def fill(store: GraphStore) -> None:
    """A small graph in which every saved query finds something."""
    span = PAGE.span(0, 17)
    chain = [Edge(parent=a.id, child=b.id, spans=(span,)) for a, b in itertools.pairwise(TREE)]
    shared = [Edge(parent=TREE[1].id, child=TRIE.id, spans=(span,)), Edge(parent=WORDS.id, child=TRIE.id)]
    deepest = [Edge(parent=TREE[-1].id, child=LEAF.id, spans=(span,)), Edge(parent=TREE[2].id, child=SAME.id)]
    everything = (*TREE, TRIE, LEAF, SAME, WORDS)
    waiting = tuple(FrontierItem(concept=c.id, depth=1) for c in (TRIE, LEAF))
    store.commit(
        Change(sources=(PAGE,), concepts=everything, edges=(*chain, *shared, *deepest), enqueue=waiting, note="grown")
    )
    store.commit(Change(merges=((TREE[3].id, SAME.id),), done=(LEAF.id,), note="the same thing twice"))
    vectors = np.eye(len(everything), 16, dtype=np.float32) + 0.05
    vectors[2] = vectors[3] + 0.01  # two that may be the same
    store.put_embeddings("test", [c.id for c in everything], vectors)
    store.put_tasks(
        TaskRecord(id=f"t{i}", type="predict", domain="data", granularity="atomic", prompt="?", concepts=(c.id,),
                   pass_rate=rate, attempts=8)
        for i, (c, rate) in enumerate([(TRIE, 0.25), (TREE[2], 1.0), (LEAF, None)])
    )  # fmt: skip


@pytest.fixture
def grown(neo4j_server: local.LocalServer) -> Iterator[GraphStore]:  # noqa: F811
    store = open_store(neo4j_server.url)
    fill(store)
    yield store
    store.close()


def ask(server: local.LocalServer, query: Any) -> list[dict[str, Any]]:
    from neo4j import GraphDatabase

    with GraphDatabase.driver(server.url, notifications_min_severity="OFF") as driver:
        return [record.data() for record in driver.execute_query(query, database_="neo4j").records]


# the files


def test_there_are_at_least_twelve_questions_and_each_has_one_answer() -> None:
    saved = browse.saved_queries()
    assert len(saved) >= 12
    assert len({query.title for query in saved}) == len(saved)
    assert sum(query.text.count("RETURN") for query in saved) >= len(saved)
    text = (SCHEMAS / "queries.cypher").read_text()
    assert len(re.findall(r";$", text, re.M)) == len(saved), "every statement of the file is one of them"
    for query in saved:
        assert "LIMIT" in query.text or "count(" in query.text, f"{query.title} may drown the Browser"


def test_the_zip_holds_a_favourite_for_each() -> None:
    with zipfile.ZipFile(io.BytesIO(browse.saved_zip())) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert all(re.fullmatch(r"kgsynth/[a-z0-9-]+\.cypher", name) for name in texts)
    assert [text.splitlines()[0] for text in texts.values()] == [f"// {q.title}" for q in browse.saved_queries()]


def test_every_label_has_a_style_and_a_strange_domain_gets_one() -> None:
    domains = ["data", "Ships & boats", "naïve physics", "", "Ships & boats"]
    text = browse.style(domains)
    labels = [*concept_labels(level=0, atomic=True, domain="data"), *(f"Level{n}" for n in range(6))]
    for label in [*labels, *map(domain_label, domains), "Concept", "Source", "Task"]:
        assert len(re.findall(rf"^node\.{label} {{$", text, re.M)) == 1, label
    assert (
        text.index("node.Concept") < text.index("node.Level0") < text.index("node.Atomic") < text.index("node.Domain_")
    )
    rules = re.findall(r"^([a-z]+(?:\.\w+)?) \{\n((?:  [a-z-]+: [^;\n:]+;\n)+)\}$", text, re.M)
    assert "".join(f"{name} {{\n{body}}}\n" for name, body in rules) == re.sub(r"\n\n", "\n", text), (
        "only what it parses"
    )


def test_levels_are_bounded_and_domains_become_names() -> None:
    assert [concept_labels(level=n, atomic=None, domain="d")[0] for n in (0, 4, 5, 99)] == [
        "Level0",
        "Level4",
        "Level5",
        "Level5",
    ]
    assert domain_label("C++ / Rust") == domain_label("c  rust ") == "Domain_c_rust"
    assert domain_label("生物学") == "Domain_生物学"
    assert domain_label("--") == "Domain_none"


def test_the_files_are_written_for_any_other_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neo4j", "files", str(tmp_path / "for" / "browser")]) == 0
    written = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert sorted(written) == ["guide.html", "saved-queries.zip", "style.grass"]
    guide = Path(written["guide.html"]).read_text()
    assert guide.count("<slide") == len(browse.saved_queries())
    assert all(html.escape(query.title) in guide for query in browse.saved_queries())
    assert "&gt;(:Concept)" in guide, "queries are text, not markup"


# on a server


@pytest.mark.neo4j
def test_every_saved_query_answers(grown: GraphStore, neo4j_server: local.LocalServer) -> None:  # noqa: F811
    answers = {query.title: ask(neo4j_server, query.text) for query in browse.saved_queries()}
    silent = [title for title, rows in answers.items() if not rows]
    assert silent == ["Which names mean more than one concept?"], "no two concepts of this graph share a name"
    text = json.dumps(answers, default=str)
    assert "the same thing twice" in text
    assert "CC0-1.0" in text

    def first(title: str) -> dict[str, Any]:
        return answers[title][0]

    assert first("Which edges have no source?") == {"parent": "words", "child": "tries", "domain": "text and words"}
    assert first("What waits to be researched?")["concept"] == "tries"
    assert first("What was merged, and why?")["into"] == "binary heap"
    assert first("Which concepts may be the same?").keys() >= {"concept", "other", "score"}
    assert {first("Which concepts may be the same?")[k] for k in ("concept", "other")} == {"heaps", "binary heap"}
    assert first("How high is the pass rate of each branch?")["pass_rate"] == 0.25
    branches = {row["branch"]: row for row in answers["Which branches are thin?"]}
    assert (branches["words"]["concepts"], branches["structures"]["concepts"]) == (1, 7)
    assert (branches["words"]["tasks"], branches["structures"]["tasks"]) == (1, 3)


@pytest.mark.neo4j
def test_a_name_asks_about_that_concept(grown: GraphStore, neo4j_server: local.LocalServer) -> None:  # noqa: F811
    text = {query.title: query.text for query in browse.saved_queries()}
    named = text["Which sentences justify this concept, and under which licence?"].replace("''", "'heaps'", 1)
    rows = ask(neo4j_server, named)
    assert [(row["parent"], row["page"], row["licence"]) for row in rows] == [("trees", "Trees", "CC0-1.0")]
    assert json.loads(rows[0]["quotes"])[0]["text"] == "A heap is a tree."


@pytest.mark.neo4j
def test_the_labels_are_what_the_readme_says(grown: GraphStore, neo4j_server: local.LocalServer) -> None:  # noqa: F811
    grown.commit(Change(concepts=(concept("all"),), edges=(Edge(parent=concept("all").id, child=TREE[0].id),)))
    found = ask(neo4j_server, "MATCH (c:Concept) RETURN c.id AS id, labels(c) AS labels, c.level AS level")
    levels = grown.levels()
    assert levels[LEAF.id] == 7
    for node in found:
        c = grown.concept(node["id"])
        assert c is not None
        wanted = concept_labels(level=levels[c.id], atomic=c.atomic, domain=c.domain)
        assert sorted(node["labels"]) == sorted(["Concept", *wanted])
        assert node["level"] == levels[c.id]


@pytest.mark.neo4j
def test_the_schema_file_is_what_the_store_makes(neo4j_server: local.LocalServer) -> None:  # noqa: F811
    open_store(neo4j_server.url).close()
    text = re.sub(r"^//.*\n", "", (SCHEMAS / "constraints.cypher").read_text(), flags=re.M)
    statements = [s.strip() for s in text.split(";") if s.strip()]
    assert statements == [*queries.CONSTRAINTS.values(), *queries.INDEXES.values()]
    shown = {
        row["name"] for row in ask(neo4j_server, "SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name")
    }
    assert shown >= set(re.findall(r"^CREATE (?:TEXT )?(?:CONSTRAINT|INDEX) (\w+)", text, re.M))


DROP = """(async () => {
  const content = await (await fetch('/browser/kgsynth/saved-queries.zip')).blob()
  const carried = new DataTransfer()
  carried.items.add(new File([content], 'saved-queries.zip'))
  const place = document.querySelector('[data-testid=main]')
  for (const kind of ['dragenter', 'dragover', 'drop'])
    place.dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: carried}))
})()"""

CIRCLES = """Object.fromEntries([...document.querySelectorAll('svg g.node')].map(node => {
  const circle = node.querySelector('circle.b-outline'), attribute = name => circle.getAttribute(name)
  const caption = [...node.querySelectorAll('text.caption')].map(t => t.textContent.trim()).join(' ')
  return [caption, [attribute('fill'), 2 * attribute('r'), attribute('stroke'), attribute('stroke-width')]]
}))"""


@pytest.mark.neo4j
@pytest.mark.slow
def test_a_real_browser_shows_the_graph_in_our_style(
    grown: GraphStore, neo4j_server: local.LocalServer, browser: Browser, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    """Style and guide come up by themselves; a click in the guide and Ctrl+Enter run a saved query."""
    browse.write_files(neo4j_server.browser_files, local.domains(neo4j_server))
    browser.goto(neo4j_server.http_url)
    browser.wait_for("document.querySelector('[data-testid=guidesDrawer] pre.runnable')")
    browser.wait_for("(localStorage.getItem('neo4j.grass') || '').includes('Domain_text_and_words')")
    browser.click("[data-testid=guidesDrawer] pre.runnable")
    browser.wait_for("document.querySelector('.monaco-editor').textContent.includes('Level0')")
    browser.click(".monaco-editor .view-line")
    browser.press("Enter", CONTROL)
    browser.wait_for("document.querySelectorAll('svg g.node').length >= 5")
    circles = browser.evaluate(CIRCLES)
    assert set(circles) == {"structures", "trees", "heaps", "tries", "words"}
    assert circles["structures"] == ["#4C78A8", 128, "#FFFFFF", "2px"]
    assert circles["trees"] == ["#4C78A8", 100, "#FFFFFF", "2px"]
    assert circles["tries"] == [browse.PALETTE[0][0], 80, "#1B2A33", "4px"], "another domain, level 2, atomic"
    assert circles["words"] == [browse.PALETTE[0][0], 128, "#FFFFFF", "2px"]

    browser.evaluate(DROP)
    saved = "JSON.parse(localStorage.getItem('neo4j.documents')).map(d => d.content)"
    browser.wait_for(f"{saved}.some(text => text.includes('Domain') || text.includes(':Concept'))")
    kept = {text.splitlines()[0][3:] for text in browser.evaluate(saved)}
    assert kept >= {query.title for query in browse.saved_queries()}
    browser.click("[data-testid=navigationFavorites]")
    browser.wait_for("[...document.querySelectorAll('div, span')].some(e => e.textContent.trim() === 'kgsynth')")
    assert browser.screenshot(tmp_path / "browser.png").stat().st_size > 20_000
    assert browser.errors == []
