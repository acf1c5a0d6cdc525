from __future__ import annotations

import asyncio
import doctest
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.errors import WebError
from kgsynth.web import Fetched, Page
from kgsynth.web.extract import decode, extract
from kgsynth.web.pydocs import PythonDocs, described_modules
from kgsynth.web.sentences import first_sentence

PACKAGES = {
    "sqlite3-doc": Path("/usr/share/doc/sqlite3"),
    "postgresql-doc-15": Path("/usr/share/doc/postgresql-doc-15/html"),
    "python3.11-doc": Path("/usr/share/doc/python3.11/html"),
}


def page_of(body: str | bytes, kind: str = "text/html", url: str = "https://example.org/docs/page.html") -> Page:
    return extract(Fetched(url=url, body=body.encode() if isinstance(body, str) else body, content_type=kind))


def assert_offsets(page: Page) -> None:
    """What `Page` promises: every offset points at the text it names."""
    text = page.source.text
    for part in (*page.headings, *page.links):
        assert text[part.start : part.end] == part.text != "", (page.url, part)
    for definition in page.definitions:
        span = text[definition.start : definition.end]
        assert span.startswith(definition.term), (page.url, definition)
        assert span.endswith(definition.text), (page.url, definition)
        assert definition.term, (page.url, definition)
        assert definition.text, (page.url, definition)


# -- structure ---------------------------------------------------------------------------------------------------------


def test_a_page_in_full() -> None:
    page = page_of(
        """<html><head><title>Trees</title><link rel="license" href="https://creativecommons.org/licenses/by/4.0/"></head>
        <body><nav><a href="/">Home</a></nav><main><h1>Trees</h1>
        <p>A <em>tree</em> has one <code>root</code>,   e.g. this.
           It has <a href="../leaf.html">leaves <code>too</code></a>.</p>
        <h2 id="kinds">Kinds of <code>Tree</code><a class="headerlink" href="#kinds">¶</a></h2>
        <dl><dt><a href="heap.html"><code>heap</code></a></dt><dd><p>A partly ordered tree.</p><p>Used in queues.</p></dd>
            <dt>trie</dt><dt>prefix tree</dt><dd>A tree of strings.</dd></dl>
        <ul><li><b>B-tree</b>: a wide tree</li><li>rope -- a tree of text</li><li>plain</li></ul>
        <pre>&gt;&gt;&gt; print("a\\n  b")
a
  b</pre><table><tr><th>op</th><th>cost</th></tr><tr><td>find</td><td>log n</td></tr></table>
        <script>alert(1)</script></main><footer>Imprint</footer></body></html>"""
    )
    assert page.source.text == (
        "# Trees\n\n"
        "A tree has one `root`, e.g. this. It has leaves `too`.\n\n"
        "## Kinds of Tree\n\n"
        "**heap**: A partly ordered tree.\n\nUsed in queues.\n\n"
        "**trie**, **prefix tree**: A tree of strings.\n\n"
        "- B-tree: a wide tree\n- rope -- a tree of text\n- plain\n\n"
        '```python\n>>> print("a\\n  b")\na\n  b\n```\n\n'
        "| op | cost |\n| --- | --- |\n| find | log n |\n"
    )
    assert_offsets(page)
    assert (page.title, page.source.licence) == ("Trees", "CC-BY-4.0")
    assert [(h.level, h.text) for h in page.headings] == [(1, "Trees"), (2, "Kinds of Tree")]
    assert [(link.text, link.url) for link in page.links] == [
        ("leaves `too`", "https://example.org/leaf.html"),
        ("heap", "https://example.org/docs/heap.html"),
    ]
    assert [(d.term, d.text) for d in page.definitions] == [
        ("Trees", "A tree has one `root`, e.g. this."),
        ("heap", "A partly ordered tree."),
        ("trie", "A tree of strings."),
        ("prefix tree", "A tree of strings."),
        ("B-tree", "a wide tree"),
        ("rope", "a tree of text"),
    ]


def test_a_page_that_does_not_mark_its_content() -> None:
    text = "A stack keeps items in order and gives back the one that was put on it last, as a pile of plates does. " * 5
    body = f"""<title>Stack</title><body><div class="navbar"><ul><li><a href="/">Home</a><li><a href="/b">B</a></ul></div>
      <div id="wrap"><div class="text"><h1>Stack</h1><p>{text}</p><p>{text}</p>
      <ul><li><a href="push.html">push</a><li><a href="pop.html">pop</a></ul>
      <dl><dt>top</dt><dd>The item put on last.</dd></dl></div></div>
      <div class="footer">All rights reserved</div></body>"""
    page = page_of(body)
    assert_offsets(page)
    assert [link.text for link in page.links] == ["push", "pop"]  # trafilatura itself drops such lists
    assert [d.term for d in page.definitions] == ["Stack", "top"]
    assert "Home" not in page.source.text
    assert "rights" not in page.source.text


def test_markdown() -> None:
    page = page_of(
        "---\nx: 1\n---\n# Sets\n\nA **set** holds [distinct](distinct.md#a) items.\n\n- `add` -- adds an item\n\n"
        "```\n>>> {1, 1}\n{1}\n```\n",
        "text/markdown; charset=utf-8",
    )
    assert_offsets(page)
    assert page.title == "Sets"
    assert [link.url for link in page.links] == ["https://example.org/docs/distinct.md#a"]
    assert [d.term for d in page.definitions] == ["Sets", "add"]
    assert "```python\n>>> {1, 1}\n{1}\n```" in page.source.text


def test_text_is_kept_as_it_is() -> None:
    body = "Queue notes\r\n\r\n  deque -- both ends\r\nsee https://example.org/q, please\r\n"
    page = page_of(body, "text/plain")
    assert page.source.text == body.replace("\r\n", "\n")
    assert_offsets(page)
    assert page.title == "Queue notes"
    assert [link.url for link in page.links] == ["https://example.org/q"]
    assert [(d.term, d.text) for d in page.definitions] == [("deque", "both ends")]


def test_code_survives_exactly() -> None:
    code = 'def f(x):\n\n    return """```\n    not a fence"""  # a < b & c\n\t# tab'
    page = page_of(
        f"<main><ul><li>An item<pre>{code.replace('&', '&amp;').replace('<', '&lt;')}</pre></li></ul></main>"
    )
    assert f"````\n{code}\n````" in page.source.text


@pytest.mark.parametrize("body", ["", "   ", "<html></html>", "<main><script>1</script></main>", "<nav>Home</nav>"])
def test_a_page_without_text_names_its_url(body: str) -> None:
    with pytest.raises(WebError, match=r"https://example\.org/docs/page\.html: no text found"):
        page_of(body)


def test_other_content_is_refused() -> None:
    with pytest.raises(WebError, match="cannot read content of type application/zip"):
        page_of(b"PK\x03\x04", "application/zip")


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("naïve".encode(), "text/plain", "naïve"),
        ("naïve".encode("latin-1"), "text/plain", "naïve"),
        ("naïve".encode("utf-16"), "text/plain; charset=utf-16", "naïve"),
        (b"<meta charset=iso-8859-15>\xa4", "text/html", "<meta charset=iso-8859-15>€"),
        ("\ufeffx".encode(), "text/plain; charset=no-such", "\ufeffx"),
    ],
)
def test_decode(body: bytes, kind: str, text: str) -> None:
    assert decode(body, kind).lstrip("\ufeff") == text.lstrip("\ufeff")


def test_first_sentence() -> None:
    assert first_sentence("Uses a heap, i.e. a list.  More.") == "Uses a heap, i.e. a list."
    assert first_sentence("Version 3.11 of f.x() is out! Yes.") == "Version 3.11 of f.x() is out!"
    assert first_sentence("no end\n\nAnother paragraph.") == "no end"


# -- properties --------------------------------------------------------------------------------------------------------

INLINE = st.recursive(
    st.sampled_from(["a", " b ", "`", "x -- y", "¶", "&amp;", "Ünï", "\n", ". C", "<br>"]),
    lambda inner: st.tuples(
        st.sampled_from(
            ["<a href='x'>{}</a>", "<code>{}</code>", "<b>{}</b>", "<a href=''>{}</a>", "<span> {} </span>"]
        ),
        st.lists(inner, max_size=3),
    ).map(lambda t: t[0].format("".join(t[1]))),
    max_leaves=6,
)
BLOCK = st.recursive(
    INLINE,
    lambda inner: st.tuples(
        st.sampled_from(["p", "div", "ul", "li", "ol", "dl", "dt", "dd", "h2", "pre", "table", "tr", "td", "b"]),
        st.lists(inner, max_size=4),
    ).map(lambda t: f"<{t[0]}>{''.join(t[1])}</{t[0]}>"),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(BLOCK)
def test_offsets_hold_for_any_html(body: str) -> None:
    try:
        page = page_of(f"<main>{body}</main>")
    except WebError:
        return
    assert_offsets(page)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["text/html", "text/markdown", "text/plain"]))
def test_any_bytes_give_a_page_or_a_web_error(body: bytes, kind: str) -> None:
    try:
        page = page_of(body, kind)
    except WebError:
        return
    assert_offsets(page)


# -- real pages --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def docs() -> PythonDocs:
    return PythonDocs(described_modules())


@pytest.fixture(scope="module")
def built_in(docs: PythonDocs) -> dict[str, Page]:
    return {d.url: page_of(d.read(), d.content_type, d.url) for d in docs.documents()}


def test_offsets_hold_on_every_built_in_page(built_in: dict[str, Page]) -> None:
    for page in built_in.values():
        assert_offsets(page)
        assert page.headings[0].level == 1, page.url


def test_doctests_survive_exactly(docs: PythonDocs, built_in: dict[str, Page]) -> None:
    """Every example that doctest finds in a docstring is found, unchanged, in the fenced code of its page."""
    total = 0
    for symbol in docs.symbols.values():
        wanted = [e for doc in (symbol.doc, *(m["doc"] for m in symbol.methods)) for e in _examples(doc)]
        fences = re.findall(r"^```\w*\n(.*?)\n```$", built_in[symbol.url].source.text, re.DOTALL | re.MULTILINE)
        found = {example for fence in fences for example in _examples(fence)}
        assert set(wanted) <= found, symbol.url
        total += len(wanted)
    assert total > 300


def _examples(text: str) -> list[tuple[str, str]]:
    try:
        return [(e.source, e.want) for e in doctest.DocTestParser().get_examples(text + "\n")]
    except ValueError:  # a transcript that doctest itself does not accept
        return []


@pytest.mark.parametrize("package", PACKAGES)
def test_offsets_hold_on_debian_documentation(package: str) -> None:
    folder = PACKAGES[package]
    if not folder.is_dir():
        pytest.skip(f"the Debian package {package} is not installed")
    files = sorted(f for f in folder.rglob("*.html") if f.stat().st_size < 200_000)
    for file in files[:: max(1, len(files) // 25)]:
        page = page_of(file.read_bytes(), "text/html", file.as_uri())
        assert_offsets(page)
        assert page.title


@pytest.mark.parametrize(
    ("package", "file", "heading", "link", "term"),
    [
        ("python3.11-doc", "library/text.html", "Text Processing Services", "`re` — Regular expression operations", ""),
        ("python3.11-doc", "library/heapq.html", "Priority Queue Implementation Notes", "iterator", "heapq.heapify(x)"),
        ("python3.11-doc", "glossary.html", "Glossary", "iterable", "coroutine"),
        ("postgresql-doc-15", "indexes-types.html", "11.2. Index Types", "bloom", "11.2.1. B-Tree"),
        ("postgresql-doc-15", "plpgsql.html", "Chapter 43. PL/pgSQL — SQL Procedural Language", "43.1. Overview", ""),
        ("sqlite3-doc", "lang_savepoint.html", "2. Savepoints", "ROLLBACK", "2. Savepoints"),
    ],
)
def test_headings_links_and_terms_are_not_lost(package: str, file: str, heading: str, link: str, term: str) -> None:
    path = PACKAGES[package] / file
    if not path.exists():
        pytest.skip(f"the Debian package {package} is not installed")
    page = page_of(path.read_bytes(), "text/html", path.as_uri())
    assert heading in [h.text for h in page.headings]
    assert link in [anchor.text for anchor in page.links]
    assert not term or term in [d.term for d in page.definitions]


def test_the_corpus_and_the_extractor_agree_on_titles() -> None:
    from kgsynth.embed import HashingEmbedder
    from kgsynth.web.corpus import CorpusConfig, open_corpus

    corpus = open_corpus(CorpusConfig(cache=False), HashingEmbedder())
    for hit in asyncio.run(corpus.search("sorting and searching", 10)):
        assert extract(asyncio.run(corpus.fetch(hit.url))).title == hit.title
