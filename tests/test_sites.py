"""arXiv and GitHub by their better addresses; the URL that stays is the one to cite."""

from __future__ import annotations

import asyncio
import doctest
from dataclasses import dataclass, field

import pytest

from kgsynth.errors import WebError
from kgsynth.web import Fetched, arxiv, repository, sites
from kgsynth.web.extract import extract
from kgsynth.web.sites import SiteFetcher
from tests.pdfs import pdf
from tests.test_kinds import FILES, tarball

ABS = "https://arxiv.org/abs/2401.00001"


@dataclass
class Shelf:
    """A Fetcher over what is in memory: URL -> (content type, body), or the cause of a failure."""

    pages: dict[str, tuple[str, bytes] | str]
    asked: list[str] = field(default_factory=list)

    async def fetch(self, url: str) -> Fetched:
        self.asked.append(url)
        page = self.pages.get(url, "status")
        if isinstance(page, str):
            raise WebError(f"{url}: {page}", cause=page)
        return Fetched(url=url + "?redirected", body=page[1], content_type=page[0])


def fetch(shelf: Shelf, url: str) -> Fetched:
    return asyncio.run(SiteFetcher(shelf).fetch(url))


@pytest.mark.parametrize(
    "url",
    ["https://arxiv.org/abs/1706.03762", "http://www.arxiv.org/pdf/1706.03762", "https://arxiv.org/pdf/1706.03762.pdf",
     "https://export.arxiv.org/html/1706.03762/", "https://arxiv.org/abs/1706.03762?context=cs"],
)  # fmt: skip
def test_papers(url: str) -> None:
    assert arxiv.rewrite(url) == ["https://arxiv.org/html/1706.03762", "https://arxiv.org/pdf/1706.03762"]
    assert arxiv.cited(url) == "https://arxiv.org/abs/1706.03762"


@pytest.mark.parametrize("found", ["1706.03762v7", "hep-th/9901001", "math.AG/0309136v1", "0704.0001"])
def test_identifiers_of_papers(found: str) -> None:
    assert arxiv.paper(f"https://arxiv.org/abs/{found}") == found


@pytest.mark.parametrize(
    "url",
    ["https://arxiv.org/list/cs.DS/recent", "https://arxiv.org/", "https://arxiv.org.evil.example/abs/1706.03762",
     "https://evil.example/arxiv.org/abs/1706.03762", "ftp://arxiv.org/abs/1706.03762", "https://arxiv.org/abs/../../x"],
)  # fmt: skip
def test_other_addresses_are_no_papers(url: str) -> None:
    assert arxiv.rewrite(url) == []


@pytest.mark.parametrize(
    ("url", "better"),
    [
        ("https://github.com/ada/heaps", "https://codeload.github.com/ada/heaps/tar.gz/HEAD"),
        ("https://github.com/ada/heaps.git", "https://codeload.github.com/ada/heaps/tar.gz/HEAD"),
        ("https://www.github.com/ada/my.heaps/?tab=readme#top", "https://codeload.github.com/ada/my.heaps/tar.gz/HEAD"),
        ("https://github.com/ada/heaps/tree/v1.0", "https://codeload.github.com/ada/heaps/tar.gz/v1.0"),
        ("https://github.com/ada/heaps/blob/main/a/b.md", "https://raw.githubusercontent.com/ada/heaps/main/a/b.md"),
    ],
)
def test_repositories(url: str, better: str) -> None:
    assert sites.rewrite(url) == [better, url]


@pytest.mark.parametrize(
    "url",
    ["https://github.com/ada", "https://github.com/topics/heap", "https://github.com/orgs/ada", "https://github.com/ada/heaps/issues/1",
     "https://github.com.evil.example/ada/heaps", "https://gist.github.com/ada/heaps", "https://github.com/../etc/passwd"],
)  # fmt: skip
def test_other_addresses_are_no_repositories(url: str) -> None:
    assert sites.rewrite(url) == [url]


def test_the_html_of_a_paper_comes_first_and_the_abstract_is_cited() -> None:
    body = b"""<html><head><base href="/html/2401.00001v1/"></head><body><article><h1>Heaps</h1><p>See <a href="S2.html">there</a>.
      </p></article><a id="license-tr" href="https://info.arxiv.org/help/license">License: CC BY 4.0</a></body></html>"""
    shelf = Shelf({"https://arxiv.org/html/2401.00001": ("text/html", body)})
    page = extract(fetch(shelf, ABS))
    assert shelf.asked == ["https://arxiv.org/html/2401.00001"]
    assert (page.url, page.source.licence) == (ABS, "CC-BY-4.0")
    assert page.links[0].url == "https://arxiv.org/html/2401.00001v1/S2.html"


def test_the_pdf_comes_next_then_the_abstract_itself() -> None:
    paper = pdf([["Heaps", "A heap is a tree."]])
    shelf = Shelf({"https://arxiv.org/pdf/2401.00001": ("application/pdf", paper), ABS: ("text/html", b"<p>abstract")})
    assert extract(fetch(shelf, "https://arxiv.org/pdf/2401.00001")).url == ABS
    shelf = Shelf({ABS: ("text/html", b"<p>abstract")})
    assert fetch(shelf, ABS).body == b"<p>abstract"
    assert shelf.asked == ["https://arxiv.org/html/2401.00001", "https://arxiv.org/pdf/2401.00001", ABS]


def test_the_last_failure_is_reported_and_a_rate_limit_ends_the_attempts() -> None:
    with pytest.raises(WebError, match="/abs/") as failure:
        fetch(Shelf({ABS: "robots"}), ABS)
    assert failure.value.cause == "robots"
    shelf = Shelf({"https://arxiv.org/html/2401.00001": "rate limit", ABS: ("text/html", b"<p>abstract")})
    with pytest.raises(WebError) as failure:
        fetch(shelf, ABS)
    assert (failure.value.cause, len(shelf.asked)) == ("rate limit", 1)


def test_a_repository_is_one_request_and_cited_as_itself() -> None:
    shelf = Shelf({"https://codeload.github.com/ada/heaps/tar.gz/HEAD": ("application/x-gzip", tarball(FILES))})
    page = extract(fetch(shelf, "https://github.com/ada/heaps#readme"))
    assert (page.url, page.title, page.source.licence) == ("https://github.com/ada/heaps", "ada/heaps", "MIT")
    assert page.links[0].url == "https://github.com/ada/heaps/blob/HEAD/docs/usage.md"


def test_any_other_url_goes_straight_through() -> None:
    shelf = Shelf({"https://example.org/a": ("text/html", b"<p>a")})
    assert fetch(shelf, "https://example.org/a").url == "https://example.org/a?redirected"


@pytest.mark.parametrize("module", [arxiv, repository])
def test_examples_in_docstrings(module) -> None:
    assert doctest.testmod(module).failed == 0
