"""Which licence, and on what evidence; never somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import html

from kgsynth.web import Fetched
from kgsynth.web.extract import extract
from kgsynth.web.licence import licence_of, licence_of_header, licence_of_text, name_of, strictest

CC = "https://creativecommons.org/licenses"


def linked_data(json: str) -> str:
    return f'<script type="application/ld+json">{json}</script>'


def found(body: str) -> tuple[str, str]:
    return licence_of(html.document_fromstring(f"<html><body>{body}"))


@pytest.mark.parametrize(
    ("body", "name", "evidence"),
    [
        (f'<link rel="license" href="{CC}/by/4.0/">', "CC-BY-4.0", 'rel="license"'),
        (f'<p>Copy it: <a rel="nofollow license" href="{CC}/by-sa/3.0/de/deed.de">so</a></p>', "CC-BY-SA-3.0", "/by-sa/3.0/"),
        ('<meta name="dcterms.rights" content="Creative Commons Attribution-NonCommercial 4.0">', "CC-BY-NC-4.0", "dcterms"),
        ('<meta property="DC.rights" content="Apache License, Version 2.0">', "Apache-2.0", "Apache License"),
        ('<meta name="dc.rights" content="Ask the abbot">', "Ask the abbot", "abbot"),
        (linked_data('{"@graph": [{"@type": "TechArticle", "license": {"@id": "CC/by-nc-nd/4.0/"}}]}'.replace("CC", CC)), "CC-BY-NC-ND-4.0", "JSON-LD"),
        (f'<div itemscope itemtype="https://schema.org/Article"><a itemprop="license" href="{CC}/by/4.0/">x</a></div>', "CC-BY-4.0", "itemprop"),
        (f'<footer>Text is available under the <a href="{CC}/by-sa/4.0/">Attribution-ShareAlike License</a>; images may differ.</footer>', "CC-BY-SA-4.0", "Text is available"),
        ('<div id="footer">© 2024 The authors. Licensed under the GNU Free Documentation License 1.3.</div>', "GFDL-1.3", "Licensed under"),
        ('<div class="page-footer"><p>Documentation under the BSD 3-Clause licence</p></div>', "BSD-3-Clause", "BSD"),
        ("<!-- SPDX-License-Identifier: MIT --><p>x", "MIT", "SPDX-License-Identifier: MIT"),
        ('<div class="abs-license"><a href="http://arxiv.org/licenses/nonexclusive-distrib/1.0/">view license</a></div>', "arXiv-nonexclusive-1.0", "arxiv.org"),
        ('<a id="license-tr" href="https://info.arxiv.org/help/license">License: CC BY 4.0</a>', "CC-BY-4.0", "License: CC BY 4.0"),
        ('<footer>Released into the public domain: <a href="https://creativecommons.org/publicdomain/zero/1.0/">CC0</a></footer>', "CC0-1.0", "zero"),
    ],
)  # fmt: skip
def test_what_a_page_declares(body: str, name: str, evidence: str) -> None:
    licence, words = found(body)
    assert licence == name
    assert evidence in words
    assert len(words) <= 300


@pytest.mark.parametrize(
    "body",
    [
        "<p>Nothing here.</p>",
        "<p>Choose a licence: the MIT License is short, the GPL is long.</p>",
        f'<figure><img src="a.png"><figcaption><a rel="license" href="{CC}/by/2.0/">CC BY 2.0</a></figcaption></figure>',
        f'<p>Photo by A. Nobody, <a rel="license" href="{CC}/by/2.0/">CC BY 2.0</a></p>',
        f'<blockquote>So it was. <footer>Licensed under <a href="{CC}/by-sa/3.0/">CC BY-SA</a></footer></blockquote>',
        "<footer>Icons by Someone, CC BY 4.0.</footer>",
        linked_data('{"@type": "ImageObject", "license": "CC/by/4.0/"}'.replace("CC", CC)),
        linked_data('{"@type": "Article", "image": {"@type": "ImageObject", "license": "CC/by/4.0/"}}'.replace("CC", CC)),
        "<pre># SPDX-License-Identifier: MIT</pre>",
        '<div class="comments"><div class="footer">my text is CC BY 4.0 licensed</div></div>',
        '<meta name="copyright" content="2020 Foo">',
        '<script type="application/ld+json">{"license": ["' + "[" * 5000,
    ],
)  # fmt: skip
def test_a_licence_of_something_else_is_not_the_pages(body: str) -> None:
    assert found(body) == ("unknown", "")


def test_of_two_the_most_restrictive_holds_and_the_evidence_says_so() -> None:
    licence, words = found(f'<link rel="license" href="{CC}/by/4.0/"><footer>Text under CC BY-NC-SA 4.0</footer>')
    assert licence == "CC-BY-NC-SA-4.0"
    assert "most restrictive" in words
    assert "CC-BY-4.0" in words
    assert strictest([("MIT", "a"), ("unknown", ""), ("GPL-3.0", "b"), ("Apache-2.0", "c")])[0] == "GPL-3.0"
    assert strictest([("CC-BY", "a"), ("CC-BY-4.0", "b")]) == ("CC-BY-4.0", "a")  # the same, once without its version


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Permission is hereby granted, free of charge, to any person\nobtaining a copy ... The above copyright notice", "MIT"),
        ("Permission is hereby granted, free of charge, to any person obtaining a copy of this software", "MIT-0"),
        ("                                 Apache License\n                           Version 2.0, January 2004", "Apache-2.0"),
        ("# Redistribution and use in source and binary forms, with or without\n# modification, are permitted", "BSD-2-Clause"),
        ("Redistribution and use in source and binary forms, with or without modification, are permitted ... Neither the name of",
         "BSD-3-Clause"),
        ("GNU GENERAL PUBLIC LICENSE\n   Version 2, June 1991 ... the GNU Lesser General Public License Version 3", "GPL-2.0"),
        ("GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3, 19 November 2007", "AGPL-3.0"),
        ("GNU LESSER GENERAL PUBLIC LICENSE\nVersion 2.1, February 1999", "LGPL-2.1"),
        ("Mozilla Public License Version 2.0\n====", "MPL-2.0"),
        ("Attribution-ShareAlike 4.0 International\n\n====", "CC-BY-SA-4.0"),
        ("Creative Commons Legal Code\n\nCC0 1.0 Universal", "CC0-1.0"),
        ("This is free and unencumbered software released into the public domain.", "Unlicense"),
        ("A. HISTORY\n\nPYTHON SOFTWARE FOUNDATION LICENSE VERSION 2\n---", "PSF-2.0"),
        ("All rights reserved. Do not copy.", "unknown"),
    ],
)  # fmt: skip
def test_licence_files_are_known_by_their_phrases(text: str, name: str) -> None:
    licence, evidence = licence_of_text(text, "LICENSE")
    assert licence == name
    assert evidence.startswith("LICENSE: ") or name == "unknown"


def test_our_own_licence_is_read() -> None:
    assert licence_of_text((Path(__file__).parents[1] / "LICENSE").read_text())[0] == "Apache-2.0"


@pytest.mark.parametrize(("file", "name"), [("GPL-3", "GPL-3.0"), ("LGPL-2.1", "LGPL-2.1"), ("Apache-2.0", "Apache-2.0"),
                                            ("MPL-2.0", "MPL-2.0"), ("CC0-1.0", "CC0-1.0"), ("BSD", "BSD-3-Clause")])  # fmt: skip
def test_debians_copies_of_common_licences(file: str, name: str) -> None:
    path = Path("/usr/share/common-licenses", file)
    if not path.exists():
        pytest.skip("not a Debian system")
    assert licence_of_text(path.read_text())[0] == name


def test_http_link_header() -> None:
    header = f'<https://example.org/2>; rel=next, <{CC}/by/4.0/>; rel="license"; title="x"'
    assert licence_of_header(header) == ("CC-BY-4.0", f"Link: <{CC}/by/4.0/>; rel=license")
    assert licence_of_header("<https://example.org/2>; rel=next") == ("unknown", "")


def test_names() -> None:
    assert name_of("https://opensource.org/licenses/mit") == "MIT"
    assert name_of("https://www.gnu.org/licenses/gpl-3.0.html") == "GPL-3.0"
    assert name_of("mit") == "MIT"
    assert name_of("a sentence about trees") is None


def test_the_page_carries_licence_and_evidence() -> None:
    body = f'<link rel="license" href="{CC}/by/4.0/"><main><p>A tree has a root.</p></main>'.encode()
    fetched = Fetched(url="https://example.org/t", body=body, content_type="text/html")
    page = extract(fetched)
    assert (page.source.licence, page.licence_evidence[:5]) == ("CC-BY-4.0", "<link")
    header = Fetched(url="https://example.org/t", body=body, content_type="text/html", licence=f"{CC}/by-nc/4.0/", licence_evidence="Link: ...")  # fmt: skip
    assert extract(header).source.licence == "CC-BY-NC-4.0"
    known = Fetched(url="https://example.org/t", body=body, content_type="text/html", licence="PSF-2.0")
    assert extract(known).source.licence == "PSF-2.0"  # the owner of a corpus knows better than its pages
