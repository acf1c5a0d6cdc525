from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urldefrag

import numpy as np
import pytest
from numpy.typing import NDArray

from kgsynth.embed import HashingEmbedder
from kgsynth.errors import CorpusError, WebError
from kgsynth.web import Page
from kgsynth.web.chapters import read_chapters
from kgsynth.web.corpus import Corpus, CorpusConfig, open_corpus
from kgsynth.web.extract import extract
from kgsynth.web.folders import debian_licence
from kgsynth.web.pydocs import ROOT, python_documents
from kgsynth.web.search import tokens
from kgsynth.web.vectors import PageVectors

FOLDOC = Path("/usr/share/dictd/foldoc.index")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return open_corpus(CorpusConfig(cache=False), HashingEmbedder())


@pytest.fixture(scope="module")
def pages(corpus: Corpus) -> dict[str, Page]:
    return {url: read(corpus, url) for url in corpus.urls()}


def read(corpus: Corpus, url: str) -> Page:
    return extract(asyncio.run(corpus.fetch(url)))


def search(corpus: Corpus, query: str, k: int = 5) -> list[str]:
    return [hit.title for hit in asyncio.run(corpus.search(query, k))]


def folder(path: Path, **settings) -> Corpus:
    return open_corpus(CorpusConfig(builtin=False, paths=(str(path),), cache=False, **settings), HashingEmbedder())


# -- the documentation of the running Python ---------------------------------------------------------------------------


def test_built_in_pages_are_the_same_every_time() -> None:
    assert python_documents() == python_documents()


def test_describing_the_library_is_silent_and_imports_nothing_here() -> None:
    code = (
        "import sys\nfrom kgsynth.web.pydocs import python_documents\n"
        "before = set(sys.modules); assert len(python_documents()) > 1500\n"
        "new = set(sys.modules) - before\nassert not new & {'mailbox', 'wave', 'ftplib', 'modulefinder'}, new"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")


def test_no_module_with_side_effects_is_named_in_the_chapters() -> None:
    named = {entry.target.split(".")[0] for c in read_chapters() for g in c.groups for entry in g.entries}
    refused = (
        "antigravity this idlelib tkinter turtle turtledemo test lib2to3 __main__ msilib winreg ensurepip readline"
    )
    assert not named & set(refused.split())


def test_pages_of_every_kind_exist(corpus: Corpus) -> None:
    urls = set(corpus.urls())
    assert corpus.pages == len(urls) > 1500
    for part in ("chapters/text-processing", "topics/integers", "library/heapq", "library/heapq.merge"):
        assert f"{ROOT}/{part}" in urls
    assert {f"{ROOT}/library/collections.Counter", f"{ROOT}/library/builtins.str", f"{ROOT}/library/os.path"} <= urls


def test_no_link_is_dead(pages: dict[str, Page]) -> None:
    links = {(page.url, link.url) for page in pages.values() for link in page.links}
    assert len(links) > 5000
    assert not [pair for pair in links if urldefrag(pair[1]).url not in pages and not pair[1].startswith("http")]


def test_every_page_is_reached_from_the_first_chapter_by_definitions_alone(pages: dict[str, Page]) -> None:
    seen, waiting = set(), [f"{ROOT}/chapters/python"]
    while waiting:
        url = waiting.pop()
        if url not in seen:
            seen.add(url)
            waiting += [target for _, _, target in triples(pages[url]) if target in pages]
    assert seen == pages.keys()


def triples(page: Page) -> list[tuple[str, str, str]]:
    """(term, explanation, link target) of the definitions whose term is a link."""
    at = {link.start: urldefrag(link.url).url for link in page.links}
    return [(d.term, d.text, at[d.start]) for d in page.definitions if d.start in at]


def test_a_chapter_gives_terms_sentences_and_targets(pages: dict[str, Page]) -> None:
    page = pages[f"{ROOT}/chapters/data-types"]
    sentence = "The heapq module keeps a list ordered as a priority queue."
    assert ("heapq", sentence, f"{ROOT}/library/heapq") in triples(page)
    assert page.source.licence == "Apache-2.0"
    headings = [h.text for h in page.headings]
    assert headings[:2] == ["Data types", "Dates and times"]
    explained = {d.term: d.text for d in page.definitions}
    assert explained["Containers"] == "Containers organise objects for a particular pattern of access."


def test_a_module_page_gives_its_functions_and_classes(pages: dict[str, Page]) -> None:
    page = pages[f"{ROOT}/library/textwrap"]
    targets = {term: target for term, _, target in triples(page)}
    assert targets["textwrap.dedent"] == f"{ROOT}/library/textwrap.dedent"
    assert targets["textwrap.TextWrapper"] == f"{ROOT}/library/textwrap.TextWrapper"
    assert page.source.licence == "PSF-2.0"
    assert page.title == "textwrap"


def test_a_class_page_gives_bases_subclasses_and_methods(pages: dict[str, Page]) -> None:
    page = pages[f"{ROOT}/library/builtins.LookupError"]
    assert {f"{ROOT}/library/builtins.KeyError", f"{ROOT}/library/builtins.IndexError"} <= {
        target for _, _, target in triples(page)
    }
    assert f"{ROOT}/library/builtins.Exception" in {link.url for link in page.links}
    methods = {d.term: d.text for d in pages[f"{ROOT}/library/builtins.str"].definitions}
    assert methods["str.join"].startswith("Concatenate any number of strings.")
    assert "encoding" not in methods  # a parameter is not a concept


def test_a_topic_page_gives_sections_and_mentions(pages: dict[str, Page]) -> None:
    page = pages[f"{ROOT}/topics/comparisons"]
    assert "Value comparisons" in [h.text for h in page.headings]
    mentioned = {link.url for link in page.links}
    assert {f"{ROOT}/topics/objects", f"{ROOT}/library/decimal.Decimal", f"{ROOT}/topics/operator-summary"} <= mentioned


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("heapq", "heapq"),
        ("text processing", "Text processing"),
        ("for statement", "for statement"),
        ("integer literals", "Integer literals"),
        ("str.join", "str"),
        ("LRU cache", "functools.lru_cache"),
        ("priority queue", "queue.PriorityQueue"),
        ("merge sorted inputs into a single sorted output", "heapq.merge"),
        ("Dict", "dict"),
        ("sorting", "sorted"),
    ],
)
def test_search_finds_the_page_first(corpus: Corpus, query: str, title: str) -> None:
    assert search(corpus, query)[0] == title


@pytest.mark.parametrize("query", ["xyzzy plugh", "", "  ", "?!"])
def test_search_without_a_match_is_empty(corpus: Corpus, query: str) -> None:
    assert search(corpus, query) == []


def test_search_gives_at_most_k_hits_best_first(corpus: Corpus) -> None:
    hits = asyncio.run(corpus.search("sort a list of numbers", 7))
    assert len(hits) == 7
    assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    assert all(h.url in corpus.urls() and h.snippet for h in hits)


def test_searches_at_the_same_time_agree_with_searches_one_by_one(corpus: Corpus) -> None:
    queries = ["heap", "regular expression", "sorted list", "file path", "random choice"] * 4

    async def together() -> list[list[str]]:
        return [[h.url for h in hits] for hits in await asyncio.gather(*(corpus.search(q, 4) for q in queries))]

    alone = [[h.url for h in asyncio.run(corpus.search(q, 4))] for q in queries]
    assert asyncio.run(together()) == alone


def test_fetch_ignores_the_fragment_and_refuses_unknown_pages(corpus: Corpus) -> None:
    fetched = asyncio.run(corpus.fetch(f"{ROOT}/library/builtins.str#join"))
    assert fetched.url == f"{ROOT}/library/builtins.str"
    assert fetched.retrieved_at.endswith("+00:00")
    with pytest.raises(WebError, match=r"https://example\.org/x: not in the offline corpus"):
        asyncio.run(corpus.fetch("https://example.org/x"))


def test_tokens() -> None:
    assert tokens("the queue.PriorityQueue of threads") == [
        "queue.priorityqueue",
        "queu",
        "priority",
        "queu",
        "thread",
    ]
    assert tokens("sorts sorted sorting parse parsing string formatted") == [
        *["sort"] * 3,
        *["pars"] * 2,
        "string",
        "format",
    ]
    assert tokens("is it") == ["is", "it"]  # only stop words: they are what is asked for


# -- folders -----------------------------------------------------------------------------------------------------------


def test_a_folder_of_html_markdown_and_text(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    html = "<title>Heaps</title><link rel=license href='https://creativecommons.org/licenses/by-sa/4.0/'><main><h1>Heaps</h1>"
    (tmp_path / "a page.html").write_text(html + "<p>A heap is a tree. See <a href='sub/b.md'>B-trees</a>.</p></main>")
    (tmp_path / "sub" / "b.md").write_text(
        "# B-trees\n\nA B-tree is a balanced tree. Back to [heaps](../a%20page.html).\n"
    )
    (tmp_path / "notes.txt").write_bytes("Caf\xe9 notes\n\nradix -- the base of a number system".encode("latin-1"))
    (tmp_path / "data.bin").write_bytes(b"\0\1")
    corpus = folder(tmp_path)
    heaps, notes, trees = corpus.urls()
    assert heaps == f"file://{tmp_path}/a%20page.html"
    assert search(corpus, "B-trees")[0] == "B-trees"
    assert [link.url for link in read(corpus, heaps).links] == [trees]
    assert [link.url for link in read(corpus, trees).links] == [heaps]
    assert read(corpus, heaps).source.licence == "CC-BY-SA-4.0"
    assert read(corpus, trees).source.licence == "unknown"
    assert read(corpus, notes).title == "Café notes"
    assert [d.term for d in read(corpus, notes).definitions] == ["radix"]


def test_the_licence_of_the_config_is_for_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<link rel=license href='https://apache.org/licenses/LICENSE-2.0'><p>Some text.</p>"
    )
    corpus = folder(tmp_path, licence="GFDL-1.3")
    assert asyncio.run(corpus.fetch(corpus.urls()[0])).licence == "GFDL-1.3"


def test_files_that_cannot_be_used_are_reported_not_fatal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "good.txt").write_text("A good page about stacks and queues.")
    (tmp_path / "big.html").write_text("<p>" + "x" * 3000 + "</p>")
    (tmp_path / "empty.md").write_text(" \n")
    (tmp_path / "binary.txt").write_bytes(b"abc\0def")
    (tmp_path / "dangling.html").symlink_to(tmp_path / "nowhere.html")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "again.txt").symlink_to(tmp_path / "good.txt")
    corpus = folder(tmp_path, max_file_kb=2)
    assert corpus.pages == 1
    reasons = {Path(path).name: reason for path, reason in corpus.skipped}
    assert set(reasons) == {"big.html", "empty.md", "binary.txt", "dangling.html"}
    assert "max_file_kb = 2" in reasons["big.html"]
    assert "dangling.html" in caplog.text


def test_a_file_that_disappears_is_a_web_error(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("Here today, gone tomorrow.")
    corpus = folder(tmp_path)
    file.unlink()
    with pytest.raises(WebError, match="can no longer be read"):
        asyncio.run(corpus.fetch(corpus.urls()[0]))


def test_nothing_to_read_is_a_corpus_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"holds no \.htm.* file"):
        folder(tmp_path)
    with pytest.raises(CorpusError, match="does not exist"):
        folder(tmp_path / "missing")
    with pytest.raises(CorpusError, match="the corpus has no page"):
        open_corpus(CorpusConfig(builtin=False), HashingEmbedder())


# -- dictd databases ---------------------------------------------------------------------------------------------------


ENTRIES = {
    (
        "stack",
        "LIFO",
    ): "stack\nLIFO\n\n   <programming> A list in which items are {pushed} and\n   popped at one end.  See {queue}.\n",
    (
        "queue",
    ): "queue\n\n   A list that is {LIFO} no more.\n\n   Like so:\n\n      head <- [ ] <- tail\n        grows here\n",
}


def write_dictionary(path: Path, compressed: bool) -> Path:
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

    def number(n: int) -> str:
        return (number(n // 64) if n >= 64 else "") + digits[n % 64]

    data, lines = b"", ["00-database-info\tA\tB", "a line without numbers"]
    for words, text in ENTRIES.items():
        lines += [f"{word}\t{number(len(data))}\t{number(len(text.encode()))}" for word in words]
        data += text.encode()
    (path / "small.index").write_text("\n".join(sorted(lines)) + "\n")
    file = path / ("small.dict.dz" if compressed else "small.dict")
    file.write_bytes(gzip.compress(data) if compressed else data)
    return path / "small.index"


@pytest.mark.parametrize("compressed", [False, True])
def test_dictd_entries_are_pages_with_links(tmp_path: Path, compressed: bool) -> None:
    index = write_dictionary(tmp_path, compressed)
    corpus = folder(index, licence="GFDL-1.1")
    queue, stack = corpus.urls()
    page = read(corpus, stack)
    assert page.title == "stack"
    assert page.definitions[0].text == "A list in which items are pushed and popped at one end."
    assert [(link.text, link.url) for link in page.links] == [("queue", queue)]
    assert [link.url for link in read(corpus, queue).links] == [stack]  # LIFO is the same entry
    assert "```\n      head <- [ ] <- tail\n        grows here\n```" in read(corpus, queue).source.text
    assert search(corpus, "LIFO")[0] == "stack"
    assert [reason for _, reason in corpus.skipped] == ["not an index line: 'a line without numbers'"]


def test_a_torn_dictd_database_is_a_corpus_error(tmp_path: Path) -> None:
    index = write_dictionary(tmp_path, True)
    file = tmp_path / "small.dict.dz"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(CorpusError, match=r"small\.dict\.dz cannot be read"):
        folder(index)
    file.unlink()
    with pytest.raises(CorpusError, match=r"there is no small\.dict"):
        folder(index)


@pytest.mark.skipif(not FOLDOC.exists(), reason="the Debian package dict-foldoc is not installed")
def test_foldoc() -> None:
    corpus = folder(FOLDOC)
    assert corpus.pages > 10_000
    assert search(corpus, "binary search")[0] == "binary search"
    page = read(corpus, asyncio.run(corpus.search("abstract data type", 1))[0].url)
    assert page.source.licence == "GFDL-1.1"
    assert {"data abstraction", "stack"} <= {link.text for link in page.links}


@pytest.mark.parametrize(
    ("path", "licence"),
    [
        ("/usr/share/doc/sqlite3/index.html", "public-domain"),
        ("/usr/share/doc/postgresql-doc-15/html/index.html", "PostgreSQL"),
        ("/usr/share/doc/python3.11/html/index.html", "PSF-2.0"),
    ],
)
def test_licences_of_debian_packages(path: str, licence: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"the Debian package with {path} is not installed")
    assert debian_licence(Path(path)) == licence


# -- page vectors ------------------------------------------------------------------------------------------------------


class CountingEmbedder(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__(32)
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        return super().embed(texts)


def test_a_page_is_embedded_once_even_over_runs(tmp_path: Path) -> None:
    first, second = CountingEmbedder(), CountingEmbedder()
    vectors = PageVectors(first, tmp_path)
    asked, rows = vectors.embed("q", ["a", "b", "a"])
    assert first.texts == ["q", "a", "b"]
    vectors.embed("r", ["b"])
    assert first.texts == ["q", "a", "b", "r"]
    vectors.save()
    again = PageVectors(second, tmp_path).embed("q", ["a", "b", "a"])
    assert second.texts == ["q"]
    assert np.array_equal(again[0], asked)
    assert np.array_equal(again[1], rows)


@pytest.mark.parametrize("damage", [b"", b"PK\3\4 torn", None])
def test_a_torn_vector_file_is_rebuilt(tmp_path: Path, damage: bytes | None) -> None:
    vectors = PageVectors(CountingEmbedder(), tmp_path)
    vectors.embed("q", ["a", "b"])
    vectors.save()
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-50] if damage is None else damage)
    embedder = CountingEmbedder()
    rebuilt = PageVectors(embedder, tmp_path)
    rebuilt.embed("q", ["a", "b"])
    rebuilt.save()
    assert embedder.texts == ["q", "a", "b"]
    final = CountingEmbedder()
    PageVectors(final, tmp_path).embed("q", ["a", "b"])
    assert final.texts == ["q"]


def test_two_writers_keep_each_others_vectors(tmp_path: Path) -> None:
    one, two = PageVectors(CountingEmbedder(), tmp_path), PageVectors(CountingEmbedder(), tmp_path)
    one.embed("q", ["a"])
    two.embed("q", ["b"])
    one.save()
    two.save()
    embedder = CountingEmbedder()
    PageVectors(embedder, tmp_path).embed("q", ["a", "b"])
    assert embedder.texts == ["q"]


def test_killing_a_writer_leaves_a_whole_file_or_none(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom kgsynth.embed import HashingEmbedder\n"
        "from kgsynth.web.vectors import PageVectors\n"
        "vectors = PageVectors(HashingEmbedder(32), Path(sys.argv[1]))\n"
        "for i in range(10**6):\n    vectors.embed('q', [f'{i}-{j}' for j in range(50)]); vectors.save(); print(i, flush=True)"
    )
    for rounds in (1, 3):
        child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        for _ in range(rounds):
            child.stdout.readline()
        time.sleep(0.003 * rounds)
        child.kill()
        child.wait()
        embedder = CountingEmbedder()
        PageVectors(embedder, tmp_path).embed("q", [f"0-{j}" for j in range(50)])
        assert embedder.texts == ["q"]


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    vectors = PageVectors(CountingEmbedder(), tmp_path / "file" / "cache")
    vectors.embed("q", ["a"])
    vectors.save()
    with contextlib.suppress(OSError):
        os.listdir(tmp_path / "file" / "cache")
        pytest.fail("the cache folder cannot exist")
