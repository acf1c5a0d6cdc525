"""Every kind of content gives a page: PDF, notebooks, snapshots of repositories; broken ones a WebError, in bounded time."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Mapping

import pytest

from kgsynth.errors import WebError
from kgsynth.web import Fetched, Page
from kgsynth.web.confined import run_confined
from kgsynth.web.extract import extract
from kgsynth.web.fetch import ENDINGS, VAGUE
from tests.pdfs import pdf, stream_object
from tests.test_extract import assert_offsets

SNAPSHOT = "https://codeload.github.com/ada/heaps/tar.gz/HEAD"


def page_of(body: bytes, kind: str, url: str = "https://example.org/papers/stacks") -> Page:
    page = extract(Fetched(url=url, body=body, content_type=kind))
    assert_offsets(page)
    return page


def assert_ends(body: bytes, kind: str) -> None:
    """In a sound page, or in an error that says which page it was."""
    try:
        outcome = page_of(body, kind).url
    except WebError as error:
        outcome = str(error)
    assert "https://example.org/papers/stacks" in outcome


# -- PDF ---------------------------------------------------------------------------------------------------------------

PAGES = [
    ["Stacks and Queues", "Journal of Lists 7", "1 Introduction . . . . . . . . . 1", "2 Queues ........... 2", "1 Introduction",
     "A stack is a linear structure that gives back the item that was put on it last, as a pile of",
     "plates does. It is also called a LIFO queue in older text-", "books. See https://example.org/lists for more.", "1"],
    ["Stacks and Queues", "Journal of Lists 7", "2 Queues", "A queue is first in, first out.", "2"],
    ["Stacks and Queues", "Journal of Lists 7", "2.1 Deques", "A deque has two ends.", "3"],
    ["Stacks and Queues", "Journal of Lists 7", "And that is all.", "4"],
]  # fmt: skip
OUTLINE = [("Introduction", 0), ("Queues", 1), ("2.1 Deques", 2), ("Nowhere to be found", 2)]


def test_a_pdf_in_full() -> None:
    page = page_of(pdf(PAGES, title="Stacks and Queues", outline=OUTLINE), "application/pdf")
    assert page.title == "Stacks and Queues"
    assert [(h.level, h.text) for h in page.headings] == [
        (1, "Stacks and Queues"), (2, "1 Introduction"), (2, "2 Queues"), (2, "2.1 Deques"),
    ]  # fmt: skip
    assert "as a pile of plates does. It is also called a LIFO queue in older textbooks." in page.source.text
    assert "....." not in page.source.text
    assert "Journal of Lists" not in page.source.text  # a running head
    assert [link.url for link in page.links] == ["https://example.org/lists"]


def test_a_pdf_is_known_by_its_bytes_and_titled_by_its_first_line() -> None:
    page = page_of(
        pdf([["Heaps in Practice", "A heap is a tree."]], title="Microsoft Word - x.docx"), "application/octet-stream"
    )
    assert (page.title, [h.text for h in page.headings]) == ("Heaps in Practice", ["Heaps in Practice"])


def test_text_in_a_pdf_that_nobody_sees_is_not_read() -> None:
    lines = ["A heap is a tree.", ("1 g", "WHITE"), ("/F1 0.2 Tf", "TINY"), "Its root is the least item."]
    text = page_of(pdf([lines]), "application/pdf").source.text
    assert "WHITE" not in text
    assert "TINY" not in text
    assert "A heap is a tree." in text
    assert "least item" in text


@pytest.mark.parametrize(
    "body",
    [
        b"%PDF-1.7",
        b"%PDF-1.7\n" + b"[" * 500_000,
        b"%PDF-1.7\n" + b"<<" * 500_000,
        pdf(PAGES)[:700],
        pdf([[]]),
        pdf(PAGES).replace(b"/Parent 2 0 R", b"/Parent 4 0 R"),
        pdf(PAGES).replace(b"/Kids [4 0 R", b"/Kids [2 0 R"),
    ],
    ids=["empty", "arrays", "dictionaries", "cut", "no text", "own parent", "own child"],
)
def test_broken_pdfs_end(body: bytes) -> None:
    assert_ends(body, "application/pdf")


def test_a_pdf_bomb_is_given_up_on() -> None:
    """One page whose content stream unpacks to 160 MB of text operators."""
    packer = zlib.compressobj(9)
    piece = b"BT /F1 11 Tf 1 0 0 1 60 60 Tm (bomb) Tj ET\n" * 25_000
    packed = b"".join(packer.compress(piece) for _ in range(150)) + packer.flush()
    body = pdf([stream_object(packed, b"/Filter /FlateDecode")])
    with pytest.raises(WebError) as failure:
        run_confined("child_pdf.py", body, "https://example.org/bomb.pdf", seconds=2)
    assert "https://example.org/bomb.pdf" in str(failure.value)


def test_a_page_in_place_of_a_pdf_is_read_as_a_page() -> None:
    page = page_of(b"<!DOCTYPE html><title>Sign in</title><main><p>Please sign in.</p></main>", "application/pdf")
    assert page.title == "Sign in"


# -- by name -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", VAGUE)
@pytest.mark.parametrize(
    ("end", "body"), [(".txt", b"Sets"), (".rst", b"Sets"), (".md", b"# Sets"), (".ipynb", b""), (".pdf", b"")]
)
def test_what_is_fetched_by_its_ending_can_be_read(end: str, body: bytes, kind: str) -> None:
    """Whatever a server calls it; `fetch.py` takes these types for the sake of the name."""
    body = body or (notebook(4) if end == ".ipynb" else pdf([["Sets", "A set has no order."]]))
    assert end in ENDINGS
    assert "Sets" in page_of(body, kind, f"https://example.org/sets{end}").source.text


# -- notebooks ---------------------------------------------------------------------------------------------------------

CODE = "%matplotlib inline\nprint('```')\n"


def notebook(version: int) -> bytes:
    text = {
        "cell_type": "markdown",
        "metadata": {},
        "source": ["A **set** holds [items](items.html).\n", "\n", "It has no order."],
    }
    outputs = [{"output_type": "stream", "text": ["SECRET OUTPUT"]}]
    if version == 4:
        cells = [{"cell_type": "markdown", "source": "# Sets"}, text,
                 {"cell_type": "code", "source": CODE, "outputs": outputs, "execution_count": 1}, {"cell_type": "raw", "source": "RAW"}]  # fmt: skip
        return json.dumps({"nbformat": 4, "metadata": {"kernelspec": {"language": "python"}}, "cells": cells}).encode()
    cells = [{"cell_type": "heading", "level": 1, "source": ["Sets"]}, text,
             {"cell_type": "code", "language": "python", "input": [CODE], "outputs": outputs}]  # fmt: skip
    return json.dumps({"nbformat": 3, "metadata": {}, "worksheets": [{"cells": cells}]}).encode()


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("kind", ["application/x-ipynb+json", "text/plain", "application/octet-stream"])
def test_notebooks(version: int, kind: str) -> None:
    page = page_of(notebook(version), kind, "https://raw.githubusercontent.com/o/r/main/sets.ipynb")
    assert page.title == "Sets"
    assert f"````python\n{CODE.rstrip()}\n````" in page.source.text
    assert "OUTPUT" not in page.source.text
    assert "RAW" not in page.source.text
    assert [link.url for link in page.links] == ["https://raw.githubusercontent.com/o/r/main/items.html"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b"null", b"[" * 100_000, b'{"cells": 3}', b'{"cells": [1, null, {"cell_type": 4, "source": 5}]}',
     b'{"cells": [{"cell_type": "heading", "level": "x", "source": ["a", 1]}], "metadata": []}', b'{"worksheets": [3, {"cells": {}}]}'],
)  # fmt: skip
def test_broken_notebooks(body: bytes) -> None:
    assert_ends(body, "application/x-ipynb+json")


# -- repositories ------------------------------------------------------------------------------------------------------

MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy. The above copyright notice"
FILES = {
    "LICENSE": MIT,
    "README.md": "# heaps\n\nA **heap** is a tree. See [usage](docs/usage.md).",
    "docs/usage.md": "# Usage\n\nPush with [push](../src/push.py).",
    "docs/guide.rst": "Guide\n=====\n\nPop takes the ``least`` item.\n",
    "notebooks/intro.ipynb": notebook(4).decode(),
    "pyproject.toml": '[project]\nname = "heaps"\n',
    "src/push.py": "SOURCE = 1",
    "data.csv": "1,2,3",
    ".env": "SECRET=1",
}


def tarball(files: Mapping[str, str | bytes], *extra: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(
        fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT, pax_headers={"comment": "0" * 40}
    ) as archive:
        for name, text in files.items():
            data = text.encode() if isinstance(text, str) else text
            info = tarfile.TarInfo(f"heaps-0123abc/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in extra:
            archive.addfile(info)
    return out.getvalue()


def test_a_repository_in_full() -> None:
    page = page_of(tarball(FILES), "application/x-gzip", SNAPSHOT)
    text = page.source.text
    assert page.title == "ada/heaps"
    assert (page.source.licence, page.licence_evidence[:40]) == ("MIT", "LICENSE: Permission is hereby granted, f")
    parts = ["A heap is a tree.", "## Files", "src/push.py", "## docs/guide.rst", "Pop takes the `least` item.", "## docs/usage.md",
             "## notebooks/intro.ipynb", "## pyproject.toml"]  # fmt: skip
    assert [text.find(part) for part in parts] == sorted(text.find(part) for part in parts)
    assert all(part in text for part in parts)
    assert [h.text for h in page.headings][:2] == ["heaps", "Files"]
    assert [link.url for link in page.links][:2] == [
        "https://github.com/ada/heaps/blob/HEAD/docs/usage.md",
        "https://github.com/ada/heaps/blob/HEAD/src/push.py",
    ]
    assert "SOURCE" not in text
    assert "SECRET" not in text
    assert "1,2,3" not in text


def test_the_same_snapshot_under_the_address_a_person_cites() -> None:
    assert page_of(tarball(FILES), "application/x-gzip", "https://github.com/ada/heaps").title == "ada/heaps"


def test_a_snapshot_that_is_not_compressed() -> None:
    assert page_of(gzip.decompress(tarball(FILES)), "application/x-tar", SNAPSHOT).source.licence == "MIT"


def test_licences_in_folders_are_other_peoples() -> None:
    files = {**FILES, "licenses/numpy.txt": "GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007"}
    assert page_of(tarball(files), "application/gzip", SNAPSHOT).source.licence == "MIT"
    manifest = {"README.md": "# x", "pyproject.toml": '[project]\nlicense = "Apache-2.0"\n'}
    assert page_of(tarball(manifest), "application/gzip", SNAPSHOT).source.licence == "Apache-2.0"


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def test_links_devices_and_names_that_lead_out_are_passed_over(tmp_path) -> None:
    bad = [
        member("heaps-0123abc/../../etc/passwd.md"),
        member("/etc/absolute.md"),
        member("heaps-0123abc/secret.md", tarfile.SYMTYPE, "/etc/passwd"),
        member("heaps-0123abc/hard.md", tarfile.LNKTYPE, "/etc/passwd"),
        member("heaps-0123abc/fifo.md", tarfile.FIFOTYPE),
        member("heaps-0123abc/zero.md", tarfile.CHRTYPE),
    ]
    text = page_of(tarball({"README.md": "# heaps"}, *bad), "application/gzip", SNAPSHOT).source.text
    assert not any(word in text for word in ("passwd", "absolute", "secret", "hard", "fifo", "zero"))


def test_bombs_end_as_short_listings() -> None:
    many = tarball({"README.md": "# heaps", **{f"docs/{i}.md": f"text {i}" for i in range(20_001)}})
    page = page_of(many, "application/gzip", SNAPSHOT)
    assert "not read further" in page.source.text
    assert len(page.source.text) < 200_000
    zeros = tarball({"README.md": "# heaps", "big.bin": bytes(130 << 20)})
    assert len(zeros) < 1 << 20
    assert "MiB unpacked" in page_of(zeros, "application/gzip", SNAPSHOT).source.text


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(b"no tar", mtime=0),
        b"\x1f\x8b",
        b"\x1f\x8b" + b"\0" * 50,
        tarball(FILES)[:200],
        gzip.compress(bytes(10 << 20), mtime=0),
    ],
)
def test_broken_archives_are_web_errors(body: bytes) -> None:
    with pytest.raises(WebError, match="codeload"):
        page_of(body, "application/gzip", SNAPSHOT)


def test_a_damaged_archive_gives_what_could_be_read() -> None:
    body = tarball({"README.md": "# heaps\n\nA heap.", "noise.bin": bytes(range(256)) * 4000})
    assert (
        "A heap."
        in page_of(body[: len(body) // 2] if len(body) > 4000 else body[:-20], "application/gzip", SNAPSHOT).source.text
    )
