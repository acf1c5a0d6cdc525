"""`benchmarks/grow_taxonomy.py`: any taxonomy's file is read or refused with its place, a graph is scored rightly, and the real loop
grows tiny taxonomies through every kind of noise."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import grow_taxonomy
from benchmarks.taxonomy import sources
from benchmarks.taxonomy.names import Names
from benchmarks.taxonomy.noise import Noise, NoiseConfig, shortened
from benchmarks.taxonomy.oracle import Oracle, read_place, schema_name
from benchmarks.taxonomy.pages import Pages, longest
from benchmarks.taxonomy.score import Score, score
from benchmarks.taxonomy.server import serving
from benchmarks.taxonomy.truth import Taxonomy, TrueConcept
from benchmarks.taxonomy.tsv import read_tsv, write_tsv
from kgsynth.concept import Concept
from kgsynth.errors import ConfigError
from tests.web_runs import TREES


def parsed(tmp_path: Path, text: str | bytes) -> Taxonomy:
    path = tmp_path / "taxonomy.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_tsv(path)


# reading


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("\n", "\r").encode(),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: "\n".join('"' + line.replace("\t", '"\t"') + '"' for line in text.splitlines()).encode(),
        lambda text: text.replace("\n", "\n\n").encode(),
        lambda text: "\n".join("\t".join(reversed(line.split("\t"))) + "\tmore" for line in text.splitlines()).encode(),
    ],
    ids=["crlf", "cr", "bom", "utf-16", "quoted", "empty lines", "other columns"],
)
def test_every_way_to_write_it_is_one_taxonomy(tmp_path: Path, change: Any) -> None:
    assert list(parsed(tmp_path, change(TREES))) == list(parsed(tmp_path, TREES))


def test_what_is_left_out_or_joined(tmp_path: Path) -> None:
    found = parsed(
        tmp_path,
        'id\tlabel\tparents\na\tA "quoted" name\t\nb\tbees\ta|a| gone |b\nb\thoneybees\tc\n'
        'c\tthird\tb\nd\t...\t\ne\tunterminated\t"x\n',
    )
    assert {c.id: (c.label, c.synonyms, c.parents) for c in found} == {
        "a": ('A "quoted" name', (), ()),
        "b": ("bees", ("honeybees",), ("a",)),
        "c": ("third", (), ("b",)),
        "d": ("d", (), ()),  # "..." is no name
        "e": ("unterminated", (), ()),
    }
    assert found.notes == [
        "1 rows repeat an id: joined",
        "2 parents are not in the file: left out",
        "1 concepts are their own parent: left out",
        "1 edges would close a cycle: left out",
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1, column 'id': is missing"),
        ("id\tlabel\n", "line 2, column 'id'"),
        ("id,label\na,b\n", "columns are separated by tabs"),
        ("id\tname\na\tb\n", "line 1, column 'label': is missing"),
        ("id\tlabel\tid\na\tb\tc\n", "line 1, column 'id': is there twice"),
        ("id\tlabel\na\tb\n\n\tc\n", "line 4, column 'id': is empty"),
        ("id\tlabel\n...\t()\n", "line 2, column 'label'"),
        ("id\tlabel\na\tb\tc\td\n", "line 2, column 3: 'c' is beyond the 2 columns"),
        ('id\tlabel\na\t"two\nlines"\nb\tc\td\n', "line 4, column 3"),
        (b"id\tlabel\na\tb\nc\tna\xefve\n", "line 3, column 2: byte 0xef is no UTF-8"),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_column(tmp_path: Path, text: str | bytes, where: str) -> None:
    with pytest.raises(ConfigError) as error:
        parsed(tmp_path, text)
    assert where in str(error.value)
    assert "taxonomy.tsv" in str(error.value)


def test_a_cycle_far_down_and_a_deep_chain(tmp_path: Path) -> None:
    rows = [f"n{i}\tlink {i}\t{f'n{i - 1}' if i else 'n5999'}" for i in range(6000)]
    found = parsed(tmp_path, "id\tlabel\tparents\n" + "\n".join(rows))
    assert found.notes == ["1 edges would close a cycle: left out"]
    assert max(found.depths.values()) == 5999
    assert len(found.from_the_leaves) == 6000
    assert len(found.first(10)) == 10


def test_edam_is_written_and_read_back(tmp_path: Path) -> None:
    classes = sources.edam()
    write_tsv(tmp_path / "edam.tsv", classes)
    found = read_tsv(tmp_path / "edam.tsv")
    assert list(found) == classes
    assert sorted(r.label for r in found.roots) == ["Operation", "Topic"]
    assert found.notes == []
    assert len(found) > 700
    with pytest.raises(ConfigError, match="no part 'tools'"):
        sources.edam(["tools"])


# scoring

TRUTH = Taxonomy(
    [
        TrueConcept(id="a", label="alpha"),
        TrueConcept(id="b", label="beta", synonyms=("bee",), parents=("a",)),
        TrueConcept(id="c", label="gamma", parents=("b",), definition="The third letter."),
        TrueConcept(id="g", label="gamma", parents=("a",), definition="A kind of ray."),
    ]
)


def judged(concepts: Sequence[Concept], edges: Sequence[str], used: Sequence[tuple[str, str]] = ()) -> Score:
    """`edges` by place: "02" is an edge from the first concept to the third."""
    pairs = [(concepts[int(a)].id, concepts[int(b)].id) for a, b in edges]
    return score(concepts, pairs, TRUTH, Names(TRUTH, used))


def grown(name: str, definition: str = "", sense: str = "", atomic: bool = False) -> Concept:
    return Concept(name=name, domain="alpha", definition=definition, sense=sense, atomic=atomic)


def test_the_truth_itself_scores_full_marks() -> None:
    c, g = grown("Gamma", "The third letter.", "", True), grown("gamma", "A kind of ray.", "ray", True)
    found = judged([grown("alpha"), grown("bee"), c, g], ["01", "12", "03"])
    for rates in (found.nodes, found.edges, found.reachability, found.atomicity):
        assert (rates.precision, rates.recall, rates.f1) == (1, 1, 1)
    assert (found.cycles, found.duplicate_rate) == (0, 0)


def test_a_duplicate_a_stranger_and_a_lost_concept() -> None:
    found = judged([grown("alpha"), grown("beta"), grown("bee"), grown("delta", atomic=True)], ["01", "02", "13"])
    assert (found.nodes.right, found.nodes.grown, found.nodes.true) == (2, 4, 4)
    assert found.duplicate_rate == 0.25
    assert (found.edges.right, found.edges.grown, found.edges.true) == (1, 3, 3)
    # grown: alpha > beta, alpha > delta, beta > delta; true: alpha > beta, gamma, gamma', beta > gamma
    assert (found.reachability.right, found.reachability.grown, found.reachability.true) == (1, 3, 4)
    assert (found.atomicity.grown, found.atomicity.precision) == (0, 1.0)


def test_an_edge_that_skips_a_level_is_wrong_but_true_in_reach() -> None:
    found = judged([grown("alpha"), grown("beta"), grown("gamma", "The third letter.")], ["01", "02"])
    assert (found.edges.right, found.edges.grown) == (1, 2)
    assert (found.reachability.right, found.reachability.grown) == (2, 2)


def test_cycles_are_counted_and_do_not_stop_the_rest() -> None:
    found = judged([grown("alpha"), grown("beta"), grown("gamma", "A kind of ray.")], ["01", "10", "02", "22"])
    assert found.cycles == 2
    assert found.reachability.right == 2  # alpha > beta, alpha > gamma'


def test_one_name_of_two_concepts_is_told_by_spelling_definition_and_parent() -> None:
    names = Names(TRUTH, [("b", "Gamma-rays"), ("g", "gamma rays")])
    assert names.meant("gamma", "A kind of ray.") == "g"
    assert names.meant("gamma", "A kind") == "g"  # cut short
    assert names.meant("gamma", "", ["bee"]) == "c"
    assert names.meant("gamma", "", ["alpha"]) == "g"
    assert names.meant("gamma rays", "") == "g"
    assert names.meant("Gamma-rays", "") == "b"
    assert names.meant("delta") is None


# noise


def test_noise_depends_on_seed_and_concept_only(tmp_path: Path) -> None:
    taxonomy = parsed(tmp_path, TREES)
    settings: dict[str, Any] = dict.fromkeys(
        ("synonyms", "repeated", "respellings", "missing", "invented", "reversed"), 0.5
    )
    first, again = Noise(taxonomy, NoiseConfig(**settings)), Noise(taxonomy, NoiseConfig(**settings))
    ids = list(taxonomy.concepts)
    assert {i: first.proposals(i) for i in ids} == {i: again.proposals(i) for i in reversed(ids)}
    other = Noise(taxonomy, NoiseConfig(**{**settings, "seed": 1}))
    assert any(first.proposals(i) != other.proposals(i) for i in ids)
    without = Noise(taxonomy, NoiseConfig(**{**settings, "invented": 0.0}))
    assert all([t for t in first.proposals(i) if t.kind != "invented"] == list(without.proposals(i)) for i in ids)
    with pytest.raises(ConfigError, match=r"--missing 1\.5"):
        NoiseConfig(missing=1.5)


def test_no_respelling_is_another_concepts_name() -> None:
    taxonomy = Taxonomy(sources.edam())
    noise = Noise(taxonomy, NoiseConfig(synonyms=0, respellings=0.5, acronyms=0.5, repeated=0.5, invented=0.2))
    labels = Names(taxonomy)
    for concept, name in noise.used:
        assert set(labels.owners(name)) <= {concept} or name == taxonomy[concept].label
        assert len(name) <= 80
    assert {t.kind for c in taxonomy for t in noise.proposals(c.id)} == {
        "label", "respellings", "acronyms", "repeated", "invented"}  # fmt: skip


def test_a_long_name_is_cut_between_words() -> None:
    assert shortened("word " * 30) == ("word " * 16).strip()
    assert len(shortened("x" * 200)) == 80


# the servers


def test_the_server_speaks_its_protocols_and_ends_with_its_starter(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text(TREES)
    with serving(tmp_path / "t.tsv", NoiseConfig(), aliases=True) as site:
        found = fetch(f"{site.url}/search?q=arborescences&format=json")
        assert json.loads(found)["results"][0]["title"] == "trees"
        page = fetch(json.loads(found)["results"][0]["url"])
        assert "Also called: tree structures; arborescences." in page
        assert "no child is smaller" in page
        assert "Disallow: /search" in fetch(f"{site.url}/robots.txt")
        for missing in ("/concept/99", "/concept/x", "/nothing"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                fetch(site.url + missing)
        assert site.stats()["counts"] == {"searches": 1, "pages": 1}
    with pytest.raises(urllib.error.URLError):
        fetch(site.url)


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.read().decode()


def test_questions_are_recognised_by_schema_tool_and_words() -> None:
    user = [{"role": "system", "content": ""}, {"role": "user", "content": 'x "title": "Queries"'}]
    assert schema_name({"response_format": {"json_schema": {"name": "Sameness"}}, "messages": user}) == "Sameness"
    assert schema_name({"tools": [{"function": {"name": "Proposals"}}], "messages": user}) == "Proposals"
    assert schema_name({"messages": user}) == "Queries"
    place = read_place(
        'Concept: a > b\nPath: r > m > a > b\nDomain: r\nDefinition: -\n\n<page number="0">\nConcept: other'
    )
    assert (place.name, place.above, place.domain, place.definition) == ("a > b", ("r", "m"), "r", "")


def test_the_expert_only_says_what_a_page_says(tmp_path: Path) -> None:
    taxonomy = parsed(tmp_path, TREES)
    oracle = Oracle(taxonomy, Noise(taxonomy, NoiseConfig(synonyms=0)))
    about = "Concept: hash tables\nPath: data structures > hash tables\nDomain: data structures\nDefinition: -\n\n"
    assert oracle.proposals(about)["items"] == []
    page = '<page number="3" url="u">\n**chaining**: A list of records for every slot of the table.\n</page>'
    (item,) = oracle.proposals(about + page)["items"]
    assert (item["name"], item["page"], item["quote"]) == (
        "chaining",
        3,
        "A list of records for every slot of the table.",
    )


# the whole way


def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, *options: str) -> dict[str, Any]:
    (tmp_path / "in.tsv").write_text(text)
    code = grow_taxonomy.main(["--taxonomy", str(tmp_path / "in.tsv"), "--embed", "hashing", *options])
    assert code == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_without_noise_the_graph_is_the_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(tmp_path, capsys, TREES, "--synonyms", "0", "--keep", str(tmp_path / "kept"), "--min-node-f1", "1")
    for part in ("nodes", "edges", "reachability", "atomicity"):
        assert found[part] == {"precision": 1, "recall": 1, "f1": 1}, part
    assert (found["cycles"], found["duplicates"], found["mistakes"]) == (0, 0, {})
    assert (tmp_path / "kept" / "graph.sqlite").exists()


def test_every_spelling_noise_leaves_one_concept_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--synonyms 1 --respellings 0.5 --acronyms 0.5 --repeated 0.4 --aliases-on-page".split()
    found = run(tmp_path, capsys, TREES, *options)
    assert found["proposed"]["synonyms"] >= 5
    assert found["proposed"]["repeated"] >= 2
    assert found["nodes"]["recall"] == 1
    assert found["cycles"] == 0


def test_missing_and_invented_children(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(tmp_path, capsys, TREES, "--missing", "0.2", "--invented", "0.5", "--seed", "3")
    mistakes = found["mistakes"]
    assert found["proposed"]["invented"] > mistakes["not in the truth"] > 0, "those without a quote are refused"
    assert mistakes["missing: left out by the noise"] > 0
    assert found["nodes"]["recall"] < 1


def test_reversed_edges_close_no_cycle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(tmp_path, capsys, TREES, "--reversed", "1")
    assert found["proposed"]["reversed"] > 3
    assert found["cycles"] == 0
    assert found["nodes"]["recall"] == 1


def test_malformed_replies_are_repaired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(tmp_path, capsys, TREES, "--malformed", "0.2", "--synonyms", "0")
    assert found["cost"]["calls that were repeated"] > 0
    assert found["nodes"]["f1"] == 1


def test_refused_requests_are_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(tmp_path, capsys, TREES, "--errors", "0.1", "--limit", "6", "--synonyms", "0")
    assert any(key.startswith("fault ") for key in found["cost"])
    assert found["nodes"]["f1"] == 1


def test_a_bound_that_is_not_met_is_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.tsv").write_text(TREES)
    options = ["--taxonomy", str(tmp_path / "in.tsv"), "--embed", "hashing", "--missing", "1", "--min-node-f1", "0.97"]
    assert grow_taxonomy.main([*options, "--out", str(tmp_path / "out.json")]) == 1
    assert json.loads((tmp_path / "out.json").read_text())["missed"] == ["min_node_f1 0.97: 0.1538"]
    assert grow_taxonomy.main(["--taxonomy", str(tmp_path / "none.tsv")]) == 2


ODD = {
    "no definitions": "id\tlabel\tparents\nr\tr oot\t\n" + "".join(f"a{i}\tname {i} of it\tr\n" for i in range(8)),
    "equal definitions": "id\tlabel\tparents\tdefinition\nr\troot\t\tSame words for all of them.\n"
    + "".join(f"a{i}\tterm {chr(97 + i) * 4}\tr\tSame words for all of them.\n" for i in range(8)),
    "only roots": "id\tlabel\n" + "".join(f"a{i}\tname {chr(97 + i) * 5}\n" for i in range(8)),
    "a chain": "id\tlabel\tparents\n" + "".join(f"a{i}\tlink {chr(97 + i) * 5}\ta{i - 1}\n" for i in range(12)),
    "one label": "id\tlabel\tparents\tdefinition\nr\troot\t\t\n"
    + "".join(f"a{i}\tsame\tr\tIt is about {chr(97 + i) * 6} and {chr(107 + i) * 7} only.\n" for i in range(6)),
    "odd names": "id\tlabel\tparents\nr\t<b>root & co</b>\t\na\t数据结构\tr\nb\tÄpfel “und” Birnen\tr\nc\tf(x) -- g\tr\n"
    f"d\tConcept: x > y\tr\ne\t{'long ' * 40}\tr\nf\t1. first\tr\ng\ta|b\tr\nh\t<page number=7>\tr\ni\t`code`\tr\n",
}


@pytest.mark.parametrize("kind", ODD)
def test_any_taxonomy_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    found = run(tmp_path, capsys, ODD[kind], "--repeated", "0.3", "--invented", "0.1")
    assert found["cycles"] == 0
    assert found["stopped"] == "frontier empty"
    if kind not in ("one label", "equal definitions"):
        assert found["nodes"]["recall"] == 1, found["mistakes"]


def test_ctrl_c_leaves_no_server_behind(tmp_path: Path) -> None:
    command = [sys.executable, grow_taxonomy.__file__, "--made-up", "600", "--embed", "hashing"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
    )
    try:
        while not list(tmp_path.glob("grow-taxonomy-*/ledger*")):
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(20) == 130
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert not list(tmp_path.glob("grow-taxonomy-*"))


def test_pages_bound_their_own_length(tmp_path: Path) -> None:
    taxonomy = parsed(tmp_path, TREES)
    pages = Pages(taxonomy, aliases=True)
    texts = [re.sub(r"<[^>]+>", "", pages.html(number)) for number in range(len(taxonomy))]
    assert len(taxonomy) * 10 < max(map(len, texts)) <= longest(taxonomy)
