"""Under which licence a page says it stands, with the words that say so.

Looked at: `rel="license"`, rights in `<meta>` (Dublin Core), "license" in schema.org JSON-LD and microdata, Creative
Commons and other links or sentences in a footer or licence box, `SPDX-License-Identifier:`, the licence box of arXiv, and
the text of LICENSE files, which are known by the phrases they cannot do without. Names are those of the SPDX list where
it has one. A licence speaks for the page only where the page speaks about itself: what stands in a figure, a quotation,
a code sample, a comment or a sentence about an image is somebody else's licence. Nothing declared is "unknown"; when
declarations disagree, the most restrictive one holds and the evidence says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from lxml.html import HtmlElement

UNKNOWN = "unknown"
EVIDENCE = 300  # characters
_BOXES = 200  # looked at per page

_CC_WORDS = {"attribution": "BY", "noncommercial": "NC", "sharealike": "SA", "noderivatives": "ND", "noderivs": "ND"}
_BSD = {"2": "BSD-2-Clause", "3": "BSD-3-Clause", "simplified": "BSD-2-Clause", "freebsd": "BSD-2-Clause"}
_SPDX_CASE = {
    name.lower(): name
    for name in "0BSD AGPL-3.0 Apache-2.0 Artistic-2.0 BSD-2-Clause BSD-3-Clause BSL-1.0 CC0-1.0 EPL-2.0 EUPL-1.2 GPL-2.0 GPL-3.0"
    " ISC LGPL-2.1 LGPL-3.0 MIT MIT-0 MPL-2.0 OFL-1.1 PostgreSQL PSF-2.0 Python-2.0 Unlicense WTFPL Zlib".split()
}

# In an address or in words; the first that matches names the licence.
_NAMES = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"creativecommons\.org/licenses/((?:by|nc|nd|sa)(?:-(?:nc|nd|sa)){0,2})(?:/(\d\.\d))?", lambda m: _cc(m[1], m[2])),
        (r"creativecommons\.org/publicdomain/zero", "CC0-1.0"),
        (r"creativecommons\.org/publicdomain/mark", "CC-PDM-1.0"),
        (r"arxiv\.org/licenses/nonexclusive-distrib|arXiv\.org perpetual,? non-?exclusive", "arXiv-nonexclusive-1.0"),
        (r"apache\.org/licenses/LICENSE-2\.0|\bApache(?: Software)? Licen[sc]e,? ?(?:\(?v(?:ersion)? ?)?2(?:\.0)?|\bApache-2\.0\b", "Apache-2.0"),
        (r"docs\.python\.org/\S{0,40}license|\bPython Software Foundation Licen[sc]e|\bPSF-2\.0\b", "PSF-2.0"),
        (r"gnu\.org/licenses/(?:old-licenses/)?(fdl|agpl|lgpl|gpl)(?:-(\d\.\d))?", lambda m: _gnu(m[1], m[2])),
        (r"\bGNU Free Documentation Licen[sc]e(?:,? \(?(?:v(?:ersion)? ?)?(\d(?:\.\d)?))?|\bGFDL(?:[ -](\d\.\d))?", lambda m: _gnu("fdl", m[1] or m[2])),
        (r"\bGNU Affero General Public Licen[sc]e(?:,? \(?(?:v(?:ersion)? ?)?(\d(?:\.\d)?))?|\bAGPL(?:[ -]?v?(\d(?:\.\d)?))?", lambda m: _gnu("agpl", m[1] or m[2])),
        (r"\bGNU (?:Lesser|Library) General Public Licen[sc]e(?:,? \(?(?:v(?:ersion)? ?)?(\d(?:\.\d)?))?|\bLGPL(?:[ -]?v?(\d(?:\.\d)?))?", lambda m: _gnu("lgpl", m[1] or m[2])),
        (r"\bGNU General Public Licen[sc]e(?:,? \(?(?:v(?:ersion)? ?)?(\d(?:\.\d)?))?|\bGPL(?:[ -]?v?(\d(?:\.\d)?))?\b", lambda m: _gnu("gpl", m[1] or m[2])),
        (r"mozilla\.org/\S{0,9}MPL/2\.0|\bMozilla Public Licen[sc]e(?:,? \(?v(?:ersion)?\.? ?2(?:\.0)?)?|\bMPL[ -]2\.0\b", "MPL-2.0"),
        (r"(?:opensource\.org/licen[sc]es?|spdx\.org/licenses)/([\w.+-]{1,40}?)(?:\.html|\.php)?/?(?=$|[\s\"'<>)#?])", lambda m: _spdx(m[1])),
        (r"SPDX-License-Identifier:\s{0,9}([\w.+-]{1,40})", lambda m: _spdx(m[1])),
        (r"\bCC0\b(?: ?1\.0)?|\bCreative Commons (?:Zero|CC0)", "CC0-1.0"),
        (r"\bCC[ -]((?:BY)(?:[ -](?:NC|ND|SA)){0,2})\b(?:[ -]?(\d\.\d))?", lambda m: _cc(m[1].replace(" ", "-"), m[2])),
        (r"\bCreative Commons (?:- )?((?:(?:Attribution|Non-?Commercial|Share-?Alike|No-?Deriv(?:ative)?s)(?:[ ,/–-]{1,3}|\b)){1,3})"
         r"(?:Licen[sc]e,? ?)?(?:\(?v(?:ersion)? ?)?(\d\.\d)?", lambda m: _cc_words(m[1], m[2])),
        (r"unlicense\.org|\bThe Unlicense\b", "Unlicense"),
        (r"postgresql\.org/about/licen[cs]e|\bPostgreSQL Licen[sc]e\b", "PostgreSQL"),
        (r"\bMIT(?:/Expat)? Licen[sc]e\b|\bLicen[sc]e:? MIT\b|\bmit-license\.org\b|\bMIT-licen[sc]ed\b", "MIT"),
        (r"\b(2|3|Simplified|FreeBSD)(?:-| )?(?:Clause)?(?:-| )BSD\b|\bBSD[ -](2|3)[ -]Clause", lambda m: _BSD[(m[1] or m[2]).lower()]),
        (r"\bBSD(?:-style)? Licen[sc]e\b", "BSD"),
        (r"\bISC Licen[sc]e\b", "ISC"),
        (r"\b(?:placed|released|dedicated|is) (?:in|into|to) the public domain\b", "public-domain"),
    )
)  # fmt: skip

# The text of a licence: what it opens with or cannot do without. The earliest in a file is the file's own.
_TEXTS = tuple(
    (re.compile(pattern.replace(" ", r"[\s*#>/;-]{1,80}"), re.IGNORECASE), name)
    for pattern, name in (
        (r"GNU AFFERO GENERAL PUBLIC LICENSE Version (3)\b", "AGPL-3.0"),
        (r"GNU LESSER GENERAL PUBLIC LICENSE Version (2\.1|3)\b", "LGPL-{}"),
        (r"GNU LIBRARY GENERAL PUBLIC LICENSE Version (2)\b", "LGPL-2.0"),
        (r"GNU GENERAL PUBLIC LICENSE Version (1|2|3)\b", "GPL-{}"),
        (r"GNU Free Documentation License Version (1\.\d)\b", "GFDL-{}"),
        (r"Apache License Version 2\.0", "Apache-2.0"),
        (r"Mozilla Public License(?: Version| v\.?)? (2\.0)", "MPL-2.0"),
        (r"PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2", "PSF-2.0"),
        (r"Creative Commons CC0|CC0 1\.0 Universal", "CC0-1.0"),
        (r"\b(Attribution(?: (?:NonCommercial|ShareAlike|NoDerivatives|NoDerivs)){0,2}) (\d\.\d)\b", "CC"),
        (r"This is free and unencumbered software released into the public domain", "Unlicense"),
        (r"Permission is hereby granted,? free of charge,? to any person obtaining a copy", "MIT"),
        (r"Permission to use,? copy,? modify,? and\/?(?: or)? ?distribute this software for any purpose with or without fee is hereby granted", "ISC"),
        (r"Permission to use,? copy,? modify,? and distribute this software and its documentation for any purpose", "PostgreSQL"),
        (r"Redistribution and use in source and binary forms,? with or without modification,? are permitted", "BSD"),
        (r"Boost Software License Version 1\.0", "BSL-1.0"),
        (r"Eclipse Public License v ?(2\.0)", "EPL-2.0"),
        (r"SPDX-License-Identifier: ([\w.+-]{1,40})", "SPDX"),
    )
)  # fmt: skip

# How much each kind forbids, the least first; what is not known to permit anything comes last.
_RANKS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"CC0|Unlicense|CC-PDM|public-domain|0BSD|MIT-0|WTFPL|blessing",
        r"MIT|BSD|Apache|PSF|Python|ISC|PostgreSQL|Zlib|BSL-1|OFL|Artistic|CC-BY(?:-\d|$)",
        r"MPL|LGPL|EPL|EUPL",
        r"GPL|GFDL|CC-BY-SA",
        r"AGPL",
        r"CC-BY-ND",
        r"CC-BY-NC(?:-\d|$)",
        r"CC-BY-NC-SA",
        r"CC-BY-NC-ND",
        r"arXiv-nonexclusive",
    )
)
_IMAGE = re.compile(
    r"\b(?:photo(?:graph)?s?|images?|pictures?|icons?|logos?|figures?|illustrations?|videos?|fonts?|artwork|thumbnails?|banner|"
    r"clip ?art|emoji|favicon|screenshots?|maps?|Fotos?|Bild(?:er)?|imagen(?:es)?)\b",
    re.IGNORECASE,
)
_ITSELF = re.compile(
    r"\b(?:text|content|contents|pages?|(?:web)?sites?|work|article|documentation|docs|manual|book|material|wiki|post|paper|tutorial|"
    r"except|inhalte?|contenu|contenido|texte?)\b",
    re.IGNORECASE,
)
_SOMEBODY_ELSES = frozenset("figure figcaption blockquote q cite pre code samp picture video audio".split())
_BOX = re.compile(r"(?:^|[\s_-])(?:footer|foot|licen[cs]e\w*|copyright|copyleft|rights|colophon|legal|imprint)(?:$|[\s_-])", re.IGNORECASE)  # fmt: skip
_OTHER_BOX = re.compile(r"(?:^|[\s_-])(?:comments?|gallery|thumb\w*|image\w*|caption|credits?|attribution|embed|card|media|quote)(?:$|[\s_-])", re.IGNORECASE)  # fmt: skip
_MAY_BE_BOX = "//footer|//*[@role='contentinfo']|//*[not(self::html or self::body or self::main or self::article) and ({})]".format(
    " or ".join(f"contains(concat(@class, ' ', @id), '{part}')" for part in "oot icen opyr opyl ights oloph egal mprint".split())
)  # fmt: skip
_META = re.compile(r"(?:dc|dcterms)[.:](?:rights|license|rights\.license|rightsholder\.license)|licen[cs]e|cc:license|copyright|rights", re.IGNORECASE)  # fmt: skip
_MEDIA_TYPE = re.compile(r"(?:Image|Video|Audio|Media)Object|Photograph|Comment|Review|Quotation|Person|Organization|ImageGallery", re.IGNORECASE)  # fmt: skip
_SPDX_COMMENT = re.compile(r"SPDX-License-Identifier:\s{0,9}[\w.+-]{1,40}")


class Declared(NamedTuple):
    """One declaration found."""

    name: str
    evidence: str  # the words or the tag, at most EVIDENCE characters


def licence_of(tree: HtmlElement) -> tuple[str, str]:
    """(name, evidence) of a parsed page, comments and footers still in it; ("unknown", "") when it declares nothing."""
    return strictest(_declarations(tree))


def licence_of_text(text: str, where: str = "") -> tuple[str, str]:
    """(name, evidence) of the text of a LICENSE file, or of a text that carries an SPDX line near its start."""
    found = min(((m.start(), m, name) for pattern, name in _TEXTS if (m := pattern.search(text[:60_000]))), default=None, key=lambda f: f[0])  # fmt: skip
    if found is None:
        return UNKNOWN, ""
    _, match, name = found
    return _text_name(name, match, text), _cut(f"{where}: {match[0]}" if where else match[0])


def licence_of_header(link: str) -> tuple[str, str]:
    """(name, evidence) of an HTTP `Link` header (RFC 8288) with rel=license; ("unknown", "") without one."""
    for target, parameters in re.findall(r"<([^<>]{1,2000})>([^<]{0,500})", link[:20_000]):
        if re.search(r""";\s{0,9}rel\s{0,9}=\s{0,9}"?[^"]{0,60}\blicense\b""", parameters, re.IGNORECASE):
            return name_of(target) or target[:120], _cut(f"Link: <{target}>; rel=license")
    return UNKNOWN, ""


def name_of(text: str) -> str | None:
    """The licence an address or a sentence names; None when it names none that is known here.

    >>> name_of("https://creativecommons.org/licenses/by-sa/4.0/deed.de"), name_of("the Apache License, Version 2.0")
    ('CC-BY-SA-4.0', 'Apache-2.0')
    """
    if text.strip().lower() in _SPDX_CASE:
        return _SPDX_CASE[text.strip().lower()]
    for pattern, name in _NAMES:
        if match := pattern.search(text[:4000]):
            return name if isinstance(name, str) else name(match)
    return None


def strictest(found: Iterable[Declared | tuple[str, str]]) -> tuple[str, str]:
    """The declaration that forbids most; if others name another licence, the evidence names them too."""
    declared = [Declared(*d) for d in found if d[0] != UNKNOWN]
    if not declared:
        return UNKNOWN, ""
    first = max(declared, key=lambda d: _rank(d.name))
    if others := sorted({d.name for d in declared if not _agree(d.name, first.name)}):
        return first.name, _cut(
            f"{_cut(first.evidence, 200)} (the most restrictive; also declared: {', '.join(others)})"
        )
    return max((d.name for d in declared if _agree(d.name, first.name)), key=len), first.evidence


# -- where a page speaks about itself ----------------------------------------------------------------------------------


def _declarations(tree: HtmlElement) -> Iterator[Declared]:
    yield from _marked(tree)
    yield from _metadata(tree)
    yield from _linked_data(tree)
    for comment in tree.xpath("//comment()[contains(., 'SPDX-License-Identifier:')]")[:20]:
        if match := _SPDX_COMMENT.search(comment.text or ""):
            yield from _named(match[0], f"<!-- {match[0]} -->")
    yield from _boxes(tree)


def _marked(tree: HtmlElement) -> Iterator[Declared]:
    """`rel="license"` (HTML 4.6.7.9) and `itemprop="license"`."""
    for node in tree.xpath("//*[contains(concat(' ', @rel, ' '), ' license ') or @itemprop='license']")[:200]:
        value = " ".join((node.get("href") or node.get("content") or node.text_content()).split())
        if value and not _is_somebody_elses(node):
            mark = "rel" if node.get("rel") else "itemprop"
            name = name_of(value) or name_of(node.text_content()) or value[:120]
            yield Declared(name, _cut(f'<{node.tag} {mark}="license" href="{value}">'))


def _metadata(tree: HtmlElement) -> Iterator[Declared]:
    for node in tree.xpath("//meta[@content]"):
        key = node.get("name") or node.get("property") or ""
        value = " ".join(node.get("content").split())
        if value and _META.fullmatch(key):
            name = name_of(value)
            free_text = value[:120] if key.lower().startswith(("dc", "licen")) else ""
            if name or free_text:
                yield Declared(name or free_text, _cut(f'<meta name="{key}" content="{value}">'))


def _linked_data(tree: HtmlElement) -> Iterator[Declared]:
    """schema.org JSON-LD: the license of the page and of what it is about, not of its images."""
    for script in tree.xpath("//script[@type='application/ld+json']")[:20]:
        try:
            data = json.loads(script.text or "")
        except (ValueError, RecursionError):
            continue
        for item in _items(data):
            for value in _as_list(item.get("license")):
                value = value.get("@id") or value.get("url") or value.get("name") if isinstance(value, dict) else value
                if isinstance(value, str) and value.strip():
                    yield Declared(name_of(value) or value[:120], _cut(f'JSON-LD "license": "{value}"'))


def _items(data: Any) -> Iterator[dict[str, Any]]:
    for item in _as_list(data):
        if isinstance(item, dict) and not any(_MEDIA_TYPE.search(str(kind)) for kind in _as_list(item.get("@type"))):
            yield item
            for inner in (*_as_list(item.get("@graph")), *_as_list(item.get("mainEntity"))):
                if isinstance(inner, dict) and not any(
                    _MEDIA_TYPE.search(str(k)) for k in _as_list(inner.get("@type"))
                ):
                    yield inner


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _boxes(tree: HtmlElement) -> Iterator[Declared]:
    """Links and sentences in footers and licence boxes."""
    last, seen = None, 0
    for node in tree.xpath(_MAY_BE_BOX):
        if seen == _BOXES:
            return
        if not _is_box(node) or (last is not None and last in node.iterancestors()):
            continue
        text = " ".join(node.text_content().split())
        if len(text) < 20_000 and not _is_somebody_elses(node):
            last, seen = node, seen + 1
            yield from _box(node, text)


def _box(node: HtmlElement, text: str) -> Iterator[Declared]:
    for link in node.xpath("descendant-or-self::a[@href]")[:200]:
        name = name_of(link.get("href")) if not _is_somebody_elses(link) else None
        around = " ".join((link.getparent() if link is not node else link).text_content().split())
        if name and _about_itself(around):
            yield Declared(name, _cut(f'<a href="{link.get("href")}"> in: {around}'))
    for sentence in re.split(r"(?<=[.;])\s", text):
        name = name_of(sentence)
        if name and len(sentence) < 1000 and _about_itself(sentence) and re.search(r"licen[cs]|rights|©|copyright|public domain|CC", sentence, re.IGNORECASE):  # fmt: skip
            yield Declared(name, _cut(sentence))


def _is_box(node: HtmlElement) -> bool:
    named = f"{node.get('class') or ''} {node.get('id') or ''}"
    return node.tag == "footer" or node.get("role") == "contentinfo" or (len(named) > 1 and bool(_BOX.search(named)))


def _about_itself(sentence: str) -> bool:
    return not _IMAGE.search(sentence) or bool(_ITSELF.search(sentence))


def _is_somebody_elses(node: HtmlElement) -> bool:
    """Inside a figure, a quotation, a sample or a box for pictures and comments, or about an image."""
    for at in (node, *node.iterancestors()):
        named = f"{at.get('class') or ''} {at.get('id') or ''}"
        if at.tag in _SOMEBODY_ELSES or _MEDIA_TYPE.search(at.get("itemtype") or ""):
            return True
        if at.tag not in ("body", "html", "head") and len(named) > 1 and _OTHER_BOX.search(named) and not _is_box(at):
            return True
    if node.tag in ("link", "meta"):
        return False
    parent = node.getparent()
    around = (
        parent.text_content() if parent is not None and parent.tag not in ("body", "main", "article", "div") else ""
    )
    return len(around) < 1000 and not _about_itself(around)


def _named(text: str, evidence: str) -> Iterator[Declared]:
    if name := name_of(text):
        yield Declared(name, _cut(evidence))


# -- names -------------------------------------------------------------------------------------------------------------


def _cc(parts: str, version: str | None) -> str:
    return f"CC-{parts.upper()}" + (f"-{version}" if version else "")


def _cc_words(words: str, version: str | None) -> str:
    parts = [_CC_WORDS.get(w, "ND") for w in re.findall(r"[a-z]+", words.lower().replace("non-", "non").replace("-alike", "alike").replace("no-", "no"))]  # fmt: skip
    return _cc("-".join(dict.fromkeys(parts)), version)


def _gnu(kind: str, version: str | None) -> str:
    name = {"fdl": "GFDL"}.get(kind.lower(), kind.upper())
    return f"{name}-{version if '.' in version else version + '.0'}" if version else name


def _spdx(name: str) -> str:
    return _SPDX_CASE.get(name.lower(), name)


def _text_name(name: str, match: re.Match[str], text: str) -> str:
    if name == "CC":
        return _cc_words(re.sub(r"[\s*#>/;-]+", " ", match[1]), match[2])
    if name == "SPDX":
        return _spdx(match[1])
    if name == "BSD":
        return "BSD-3-Clause" if re.search(r"neither\s+the\s+names?", text[match.start() : match.start() + 4000], re.IGNORECASE) else "BSD-2-Clause"  # fmt: skip
    if name == "MIT" and not re.search(r"above\s+copyright\s+notice", text[match.start() : match.start() + 2000], re.IGNORECASE):  # fmt: skip
        return "MIT-0"
    return name.format(match[1] if "." in match[1] else f"{match[1]}.0") if "{}" in name else name


def _rank(name: str) -> int:
    return next((i for i, pattern in reversed(list(enumerate(_RANKS))) if pattern.match(name)), len(_RANKS))


def _agree(one: str, other: str) -> bool:
    """Equal, or one only leaves out the version."""
    short, long = sorted((one, other), key=len)
    return one == other or (long.startswith(f"{short}-") and long[len(short) + 1].isdigit())


def _cut(text: str, size: int = EVIDENCE) -> str:
    text = " ".join(text.split())
    return text if len(text) <= size else text[: size - 1] + "…"
