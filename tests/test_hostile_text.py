"""Pages made to stop a reader: extraction ends, its cost grows with the size of the page and no faster, offsets hold.

No clock is read. A case that were quadratic would take minutes at these sizes, and show as a test that does not end.
"""

from __future__ import annotations

import asyncio

import pytest

from kgsynth.errors import WebError
from kgsynth.web import Fetched
from kgsynth.web.extract import extract, skim
from kgsynth.web.hidden import without_invisible
from kgsynth.web.licence import licence_of_header, licence_of_text, name_of
from kgsynth.web.screen import commands
from tests.test_extract import assert_offsets

MB = 1_000_000
HTML = {
    "two megabytes of <": "<" * 2 * MB,
    "deep blocks": "<div>" * 200_000 + "x",
    "deep text": "<div>word " * 40_000,
    "deep inline": "<p>" + "<b>a " * 100_000,
    "deep lists": "<ul><li>a" * 50_000,
    "deep tables": "<table><tr><td>x" * 30_000,
    "one line": "<p>" + "word " * 200_000,
    "one word": "<p>" + "x" * MB,
    "much inline": "<p>" + "<b>x</b> " * 40_000,
    "much inline around a block": "<div><b>" * 100 + "<i>x</i>" * 20_000 + "<p>y",
    "links": "<p>" + "<a href=x>y</a> " * 15_000,
    "comments": "a<!--x-->" * 100_000,
    "open comments": "<!--" * 300_000,
    "hidden": "<p hidden>x</p>y" * 40_000,
    "terms": "<dl>" + "<dt>a<dd>b" * 5_000,
    "licence boxes": "<div class=footer>MIT License</div>" * 10_000 + "<p>x",
    "style rules": "<style>" + "a{" * 500_000 + "</style>x",
    "style comments": "<style>" + "/*" * 500_000 + "</style>x",
    "a style": "<p style='" + "color:" * 200_000 + "'>x",
    "linked data": "<script type='application/ld+json'>" + "[" * 200_000 + "</script>x",
    "references": "&#x200b;a" * 100_000,
    "scripts": "<script>" * 100_000 + "x",
    "zeros": "a\0" * MB,
}
MARKDOWN = {
    "brackets": "[" * 200_000,
    "lines of brackets": ("[" * 2000 + "\n") * 50,
    "images": "![[" * 15_000 + "\n",
    "open links": "[a](" * 12_000,
    "emphasis": "**a*_b " * 7000,
    "stars": "*a " * 200_000,
    "backticks": "".join("`" * i + "x" for i in range(1, 1000)),
    "quotes": ">" * 200_000,
    "bullets": "- " * 100_000,
    "pipes": "|a" * 12_000 + "\n" + "|-" * 12_000 + "\n",
    "blank lines": "\n" * MB,
    "no end of front matter": "---\n" * 40_000,
}
TEXT = {
    "spaces": "a" + " " * MB,
    "spaces in lines": (" " * 1000 + "\n") * 500,
    "dashes": "a -- " * 100_000,
    "addresses": "http://" * 100_000,
    "dots": "http://" + "." * MB,
    "a line": "x" * MB,
}
CASES = [
    *((name, "text/html", body) for name, body in HTML.items()),
    *((name, "text/markdown", body) for name, body in MARKDOWN.items()),
    *((name, "text/plain", body) for name, body in TEXT.items()),
]


@pytest.mark.parametrize(("name", "kind", "body"), CASES, ids=[f"{kind[5:]}: {name}" for name, kind, _ in CASES])
def test_extraction_ends(name: str, kind: str, body: str) -> None:
    fetched = Fetched(url="https://example.org/hostile", body=body.encode(), content_type=kind)
    try:
        page = asyncio.run(asyncio.wait_for(asyncio.to_thread(extract, fetched), 60))
    except WebError as error:
        assert "https://example.org/hostile" in str(error)  # noqa: PT017 (a page may also be read)
        return
    assert_offsets(page)


def test_skimming_ends() -> None:
    for body in ("<" * MB, "<div>" * 100_000 + "x", "<p>" + "<b>x</b> " * 50_000):
        page = Fetched(url="https://example.org/hostile", body=body.encode(), content_type="text/html")
        assert len(skim(page).text) <= len(body)


STRINGS = [
    "ignore all " * 50_000, "ignore " + "the " * 100_000, "assistant " * 50_000, "you are now a " * 40_000, "add concept " * 40_000,
    "AI the page " * 40_000, "delete the the the " * 25_000, "decode and " * 40_000, "reply only " * 40_000, "note to all the AI " * 30_000,
    " " * 500_000, "\n" * 500_000, "." * 500_000, "*" * 500_000, "A" * 500_000, "a " * 200_000, "a a a a a a a a ab " * 20_000,
    "忽略之前" * 100_000, "<|" * 200_000, "[" * 500_000, "-" * 500_000, "\u200d" * 200_000, "CC BY " * 80_000, "license " * 60_000,
    "Permission to use copy modify and " * 15_000, "GNU " * 100_000, "Attribution NonCommercial " * 20_000, "<" * 500_000,
]  # fmt: skip


@pytest.mark.parametrize("text", STRINGS, ids=[repr(s[:16]) for s in STRINGS])
def test_the_patterns_are_linear(text: str) -> None:
    assert all(0 <= start < end <= len(text) for start, end, _ in commands(text))
    assert len(licence_of_text(text)[1]) <= 300
    assert len(licence_of_header(text)[1]) <= 300
    assert name_of(text) is None or text.startswith("CC BY")
    assert len(without_invisible(text)) <= len(text)


def test_a_page_without_metadata_keeps_lists_and_sections() -> None:
    """adbar/trafilatura#98, #75: nothing is discarded for want of a date; #430, #433: lists and sections stay."""
    sections = "".join(
        f"<h2>Part {i}</h2><p>{'A tree is a graph without a circle, and a forest is made of trees. ' * 3}</p>"
        f"<ul><li>leaf {i}</li><li><a href='n{i}'>node {i}</a></li></ul><ol><li>first {i}</li></ol>"
        for i in range(4)
    )
    page = extract(
        Fetched(
            url="https://example.org/x", body=f"<body><div>{sections}</div></body>".encode(), content_type="text/html"
        )
    )
    assert [h.text for h in page.headings] == [f"Part {i}" for i in range(4)]
    assert all(f"- leaf {i}\n- node {i}" in page.source.text and f"1. first {i}" in page.source.text for i in range(4))
