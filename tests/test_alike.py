"""Copies are found; pages that only share a template are not."""

from __future__ import annotations

import pytest

from kgsynth.concept import Source
from kgsynth.web import Fetched, Page
from kgsynth.web.alike import jaccard, shingles, unlike
from kgsynth.web.extract import extract

SORTS = {
    "merge": "divides the list in two halves, sorts each of them in the same way and merges them into one, always taking the"
    " smaller of the two first items; it needs memory for a copy of the list but keeps equal items in order",
    "heap": "builds a heap of all items and takes the largest from its root again and again, which needs no memory besides the"
    " list itself and a logarithmic number of steps for each item that is taken out of it",
    "quick": "chooses one item as a pivot, moves what is smaller before it and what is larger behind it, and goes on with both"
    " parts; a bad pivot in every step makes it quadratic, so that a random one is chosen",
}  # fmt: skip


def page(text: str, url: str = "https://example.org/p") -> Page:
    return Page(source=Source(url=url, title="", text=text))


def article(name: str) -> str:
    return f"The {name} sort {SORTS[name]}. " + " ".join(
        f"Step {i} of {name}: {SORTS[name][i * 7 :]}." for i in range(6)
    )


def man_page(name: str, text: str) -> str:
    return (
        f"{name}(1) General Commands Manual\n\nNAME {name} - {text}\n\nSYNOPSIS {name} [OPTION]... [FILE]...\n\n"
        f"DESCRIPTION {text}. With no FILE, or when FILE is -, read standard input. Mandatory arguments to long options are"
        f" mandatory for short options too. --help display this help and exit --version output version information and exit"
        f"\n\nSEE ALSO The full documentation for {name} is maintained as a Texinfo manual."
    )


def test_mirrors_print_versions_and_other_headers_are_dropped() -> None:
    text = article("merge")
    first, other = page(text), page(article("heap"))
    mirror = page(text, "https://mirror.example.net/p")
    printed = page(text.upper().replace(". ", ".\n\n") + "\nPrinted from example.org", "https://example.org/p?print=1")
    headed = page(
        "Example University, Department of Lists, Course 101\n\n" + text + "\n\nLast changed in May", "https://e/x"
    )
    kept, dropped = unlike([first, other, mirror, printed, headed])
    assert kept == [first, other]
    assert [(d, k) for d, k, _ in dropped] == [(mirror, first), (printed, first), (headed, first)]
    assert dropped[0][2] == 1.0
    assert all(0.7 <= share < 1 for _, _, share in dropped[1:])


def test_pages_that_share_a_template_stay() -> None:
    pages = [page(man_page(f"{name}sort", text)) for name, text in SORTS.items()]
    assert unlike(pages) == (pages, [])


def test_print_version_of_an_html_page() -> None:
    body = f"<h1>Sorting</h1><p>{article('quick')}</p><h2>See also</h2><ul><li><a href='h'>heap</a></ul>"
    web = f"<title>Sorting</title><nav>Home | Blog</nav><main>{body}</main><footer>Contact</footer>"
    pages = [
        extract(Fetched(url=f"https://example.org/{i}", body=html.encode(), content_type="text/html"))
        for i, html in enumerate((web, f"<title>Sorting (print)</title><body>{body}</body>"))
    ]
    assert [d.url for d, _, _ in unlike(pages)[1]] == ["https://example.org/1"]


def test_jaccard_is_exact() -> None:
    a, b = shingles("one two three four five six seven"), shingles("one two three four five six eight")
    assert (len(a), jaccard(a, b), jaccard(a, a), jaccard(a, frozenset())) == (3, 0.5, 1.0, 0.0)
    assert shingles("Tree!") == shingles("tree") != shingles("")
    assert jaccard(shingles("堆栈是一种数据结构"), shingles("堆栈是一种数据结构。")) == 1.0


def test_pages_without_text_are_not_alike_and_thresholds_are_checked() -> None:
    assert len(unlike([page(""), page("")])[0]) == 2
    with pytest.raises(ValueError, match="threshold"):
        unlike([], 0)
