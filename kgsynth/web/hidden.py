"""What a page holds but does not show: removed before anything is read, so that nobody is told what no reader sees.

Indirect prompt injection hides in text that only a machine reads (Greshake et al. 2023, arXiv 2302.12173). Removed are
elements hidden by attribute, inline style or a simple rule of an embedded style sheet, comments, and characters without
a glyph: zero-width and direction controls, tag characters and variation selectors (both of which can carry whole
sentences), controls. Not seen: style sheets in other files, scripts, text covered by something else, and text in the
colour of a background that is set elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml.etree import Comment, ProcessingInstruction, strip_elements
from lxml.html import HtmlElement

_NO_GLYPH = (
    *range(0x09), 0x0B, *range(0x0E, 0x20), *range(0x7F, 0xA0), 0xAD, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E,
    0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0,
    *range(0xFFF9, 0xFFFC), 0xFFFE, 0xFFFF, *range(0x1D173, 0x1D17B), *range(0xD800, 0xE000), *range(0xE0000, 0xE0200),
)  # fmt: skip
_REMOVED = dict.fromkeys(_NO_GLYPH) | {0x0C: "\n", 0x85: "\n", 0x2028: "\n", 0x2029: "\n"}
_SUSPECT = frozenset(map(chr, _REMOVED)) | {"\u200c", "\u200d"}
_JOINERS = re.compile("[\u200c\u200d]{2,}|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])")

_HIDING = re.compile(
    r"(?:^|[;\s{])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*(?:0?\.0*[0-5]?|0)\s*(?:[;!]|$)"
    r"|font-size\s*:\s*(?:0?\.\d+|[01](?:\.\d*)?)(?:px|pt|em|rem|%)?\s*(?:[;!]|$)|font\s*:\s*0\b"
    r"|text-indent\s*:\s*-\d{3,}|(?:left|right|top|bottom|margin-left|margin-top)\s*:\s*-\d{4,}(?:px|em|rem|pt)"
    r"|clip(?:-path)?\s*:\s*(?:rect\(\s*0[^)]{0,40}\)|inset\(\s*(?:50|100)%)|transform\s*:\s*scale\(\s*0\s*\)"
    r"|color\s*:\s*transparent|(?:max-)?height\s*:\s*0(?:px)?\s*;(?:[^;]{0,60};)?\s*overflow\s*:\s*hidden)",
    re.IGNORECASE,
)
_EM = re.compile(r"font-size\s*:\s*[01](?:\.\d*)?(?:em|rem)\b", re.IGNORECASE)  # 1em is the size around it
_COLOUR = re.compile(r"(?:^|[;\s])color\s*:\s*([^;!]{1,40})", re.IGNORECASE)
_BACKGROUND = re.compile(r"background(?:-color)?\s*:\s*([^;!]{1,80})", re.IGNORECASE)
_WHITE = re.compile(
    r"^\s*(?:white|snow|#f[a-f0-9]f[a-f0-9]f[a-f0-9]|#fff|rgba?\(\s*25[0-5]\s*,\s*25[0-5]\s*,\s*25[0-5][^)]*\)?)\s*$",
    re.IGNORECASE,
)
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_SELECTOR = re.compile(r"^(\w*)([.#])([\w-]+)$")
_NEVER = frozenset(("html", "body", "head"))  # hidden only until a script has run
_MAY_HIDE = "//*[@hidden or @style or @color]"
_OUT = "kgsynth-out"


def without_invisible(text: str) -> str:
    """Text without characters that have no glyph; joiners stay where a script or an emoji needs them.

    >>> without_invisible("ig\\u200bnore \\U000e0041me")
    'ignore me'
    """
    if _SUSPECT.isdisjoint(text):
        return text
    return _JOINERS.sub("", text.translate(_REMOVED))


def show_only(tree: HtmlElement) -> None:
    """Remove from a parsed page, in place, what a reader of it does not see; the text behind an element stays."""
    drop(tree, list(_hidden(tree)))
    strip_elements(tree, Comment, ProcessingInstruction, with_tail=False)
    whole = tree.text_content()
    if without_invisible(whole) is whole:
        return
    for node in tree.iter():
        if node.text and (text := without_invisible(node.text)) is not node.text:
            node.text = text
        if node.tail and (text := without_invisible(node.tail)) is not node.tail:
            node.tail = text


def drop(tree: HtmlElement, nodes: list[HtmlElement]) -> None:
    """Remove nodes below `tree` and keep the text behind each, in time linear in the tree."""
    for node in nodes:
        if node is not tree and isinstance(node.tag, str):
            node.tag = _OUT
    strip_elements(tree, _OUT, with_tail=False)


def _hidden(tree: HtmlElement) -> Iterator[HtmlElement]:
    classes, ids = _hiding_rules(tree)
    for node in tree.xpath(_MAY_HIDE + ("|//*[@class or @id]" if classes or ids else "")):
        named = (node.get("class") or "").split()
        if node.tag not in _NEVER and (
            node.get("hidden") is not None
            or hides(node.get("style") or "")
            or _is_white(node)
            or any((tag, name) in classes for name in named for tag in ("", node.tag))
            or any((tag, node.get("id")) in ids for tag in ("", node.tag))
        ):
            yield node


def hides(style: str) -> bool:
    """Whether CSS declarations make an element invisible."""
    return bool(style) and bool(_HIDING.search(_EM.sub("", style[:4000])))


def _is_white(node: HtmlElement) -> bool:
    """White text for which neither the element nor one around it sets another background."""
    style = node.get("style") or ""
    colour = _COLOUR.search(style[:4000])
    if not _WHITE.match(colour[1] if colour else (node.get("color") or "")):
        return False
    for at in (node, *node.iterancestors()):
        painted = at.get("bgcolor") or (m[1] if (m := _BACKGROUND.search((at.get("style") or "")[:4000])) else "")
        if painted:
            return bool(_WHITE.match(painted))
    return True


def _hiding_rules(tree: HtmlElement) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """(tag or "", class) and (tag or "", id) that embedded style sheets hide on every screen; `@media` blocks do not count."""
    found: dict[str, set[tuple[str, str]]] = {".": set(), "#": set()}
    for sheet in tree.iter("style"):
        depth, selectors = 0, ""
        pieces = re.split(r"([{}])", _CSS_COMMENT.sub("", sheet.text or ""))
        for text, brace in zip(pieces[::2], pieces[1::2], strict=False):
            if brace == "{":
                depth, selectors = depth + 1, text
                continue
            if depth == 1 and hides(text):
                for selector in selectors.split(","):
                    if simple := _SELECTOR.match(selector.strip()):
                        found[simple[2]].add((simple[1], simple[3]))
            depth = max(0, depth - 1)
    return found["."], found["#"]
