"""Small web pages made of real content: cards, a table, an article with navigation, a form. HTML and CSS without scripts.

Every block has a stated size, so a page's height is known without a browser. `build` gives a page's document again from
changed content or another accent colour: that is how nearly right pages are made.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from kgsynth.concept import Concept, SourceSpan
from kgsynth.synthesize.drawing.canvas import BLUE, GREEN, GREY, GRID, INK, ORANGE, RED, colour_of, text_width
from kgsynth.synthesize.drawing.figures import CITED_CHARS, around, introduction, is_label, own_pages, short
from kgsynth.synthesize.env import SynthesisEnv
from kgsynth.synthesize.material import Material, PageFunction
from kgsynth.web.sentences import sentence_end

SIZES = {"easy": 3, "medium": 4, "hard": 6}  # cards, rows, entries or fields, by difficulty
TEXT_CHARS = (12, 84)  # of a sentence in a card
WIDTH = 640
BASE = (
    f"*{{box-sizing:border-box}}body{{margin:0;background:#ffffff;color:{INK};font:14px/20px sans-serif}}"
    "h1,h2,p,ul{margin:0;padding:0}"
)
OTHER = {BLUE: ORANGE, ORANGE: BLUE, GREEN: RED, RED: GREEN}

Items = tuple[tuple[str, str], ...]  # (name, text)


@dataclass(frozen=True, kw_only=True)
class WebPage:
    """A page to be rebuilt. build(heading, items, accent) is its document."""

    shown: str
    layout: str  # sizes and places in words; "{accent}" stands for the accent colour
    heading: str
    items: Items
    build: Callable[[str, Items, str], str]
    height: int
    spans: tuple[SourceSpan, ...]
    concepts: tuple[Concept, ...]

    @property
    def accent(self) -> str:
        return colour_of(self.heading)

    @property
    def html(self) -> str:
        return self.build(self.heading, self.items, self.accent)

    def spoiled(self, rng: random.Random, most: int) -> list[str]:
        """Pages with one thing changed that anybody sees, another choice for each task."""
        i, j = rng.sample(range(len(self.items)), 2)
        swapped = list(self.items)
        swapped[i], swapped[j] = swapped[j], swapped[i]
        crossed = [(name, self.items[{i: j, j: i}.get(k, k)][1]) for k, (name, _) in enumerate(self.items)]
        tried = [
            self.build(self.heading, tuple(swapped), self.accent),
            self.build(self.heading, self.items[:-1], self.accent),
            self.build(self.heading, self.items, OTHER[self.accent]),
            self.build(self.heading, tuple(crossed), self.accent),
            self.html.replace("body{margin:0;", "body{margin:0;zoom:.85;"),
            self.html.replace("body{margin:0;", "body{margin:0;transform:scaleX(-1);"),
            self.html.replace("<style>", "<style>p,li,td,label{display:none}", 1),
        ]
        rng.shuffle(tried)
        return [html for html in dict.fromkeys(tried) if html != self.html][:most]


def pages(scope: str, difficulty: str, material: Material, env: SynthesisEnv) -> Iterator[WebPage]:
    """Every page about a concept ("concept") or about it among its siblings ("siblings")."""
    size = SIZES[difficulty]
    if scope == "siblings":
        for parent in env.graph.parents(material.concept):
            group = [c for c in env.graph.children(parent) if _entry(parent, c, env)]
            if material.concept in group and is_label(parent.name):
                among = f', "{material.concept.name}" among them'
                yield from _of_group(parent, around(material.concept, group, size), env, among)
        return
    yield from _articles(material, size)
    group = [c for c in env.graph.children(material.concept) if _entry(material.concept, c, env)][:size]
    if is_label(material.concept.name):
        yield from _of_group(material.concept, group, env)
    for item in material.calls:
        yield from _form(item, material.concept, size)


def _entry(parent: Concept, child: Concept, env: SynthesisEnv) -> tuple[str, str, SourceSpan] | None:
    """(name, first sentence, its span) of what a source says about a child, if it fits a card."""
    edge = env.graph.edge(parent, child)
    for span in edge.spans if edge else ():
        text = _sentence(introduction(span.text))
        if text and is_label(child.name):
            return child.name, text, span
    return None


def _sentence(text: str) -> str:
    """The first sentence as plain text; "" when it is too long, too short, or not plain."""
    sentence = " ".join(text[: sentence_end(text, 0)].replace("`", "").split())
    fits = TEXT_CHARS[0] <= len(sentence) <= TEXT_CHARS[1] and sentence.isascii() and sentence.isprintable()
    return sentence if fits and not set(sentence) & set("*|[]\\") else ""


def _of_group(parent: Concept, group: Sequence[Concept], env: SynthesisEnv, among: str = "") -> Iterator[WebPage]:
    entries = [entry for c in group if (entry := _entry(parent, c, env))]
    if len(entries) < 3:
        return
    items: Items = tuple((name, text) for name, text, _ in entries)
    rest = {"spans": tuple(dict.fromkeys(span for *_, span in entries)), "concepts": (parent, *group)}
    rows = (len(items) + 1) // 2
    yield WebPage(
        shown=f'a page of cards about parts of "{parent.name}"{among}', heading=parent.name, items=items, build=cards,
        layout=CARDS, height=56 + 24 + rows * 112 + 8, **rest,
    )  # fmt: skip
    if any(text_width(short(name), 14, bold=True) > 150 for name, _ in items):
        return
    items = tuple((short(name), text) for name, text in items)
    yield WebPage(
        shown=f'a page with a table of parts of "{parent.name}"{among}', heading=parent.name, items=items, build=table,
        layout=TABLE, height=24 + 32 + 16 + 40 * (len(items) + 1) + 24, **rest,
    )  # fmt: skip


def _articles(material: Material, size: int) -> Iterator[WebPage]:
    """A page's own entries beside a navigation that lists them."""
    for page in own_pages(material):
        if not is_label(page.title):
            continue
        entries = {d.term.rsplit(".", 1)[-1]: d for d in reversed(page.definitions) if d.term != page.title}
        kept = [(n, _sentence(d.text), d) for n, d in reversed(entries.items()) if is_label(n) and _sentence(d.text)]
        for start in range(0, len(kept) - size + 1, size):
            part = kept[start : start + size]
            if all(text_width(name, 14) <= 150 for name, _, _ in part):
                yield WebPage(
                    shown=f'an article about "{page.title}" beside a navigation column',
                    layout=ARTICLE,
                    heading=page.title,
                    items=tuple((name, text) for name, text, _ in part),
                    build=article,
                    height=24 + 32 + 16 + 76 * len(part) + 24,
                    spans=tuple(page.source.span(d.start, d.end) for _, _, d in part),
                    concepts=(material.concept,),
                )


def _form(item: PageFunction, concept: Concept, size: int) -> Iterator[WebPage]:
    """A form that asks for a documented function's arguments, with its defaults filled in."""
    a = item.function.arguments
    positional = [*a.posonlyargs, *a.args]
    defaults = [None] * (len(positional) - len(a.defaults)) + [ast.unparse(d) for d in a.defaults]
    given = [*zip(positional, defaults, strict=True)]
    given += [(arg, d and ast.unparse(d)) for arg, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    items = tuple((arg.arg, default or "") for arg, default in given)[: size + 2]
    if len(items) < 3 or not all(is_label(name) and (not text or is_label(text)) for name, text in items):
        return
    source = item.page.source
    yield WebPage(
        shown=f'a form for the arguments of "{item.function.dotted}", defaults filled in',
        layout=FORM,
        heading=item.function.dotted,
        items=items,
        build=form,
        height=24 + 32 + 16 + 48 * len(items) + 40 + 24,
        spans=(source.span(0, min(CITED_CHARS, len(source.text))),),
        concepts=(concept,),
    )


CARDS = (
    "A bar of 56 pixels in {accent} across the top holds the heading in white, bold 20 px, 24 pixels from the left, centred from top to "
    "bottom. 24 pixels below it and from each side the cards stand in two columns, 288 x 96 pixels, 16 apart, with a border of 1 pixel in "
    f"{GRID}, a left border of 4 pixels in {{accent}}, rounded by 6 pixels and padded by 12; names are bold in {INK}, texts below them in {GREY}."
)
TABLE = (
    f"24 pixels from the top and the sides stands the heading, bold 20 px in {INK}, 32 pixels high; 16 below it a table of 592 pixels: rows are 40 "
    "pixels high, the first column is 180 pixels wide, cells are padded by 12 at the sides, text is in their middle from top to bottom and "
    "left-aligned. The head row says Topic and Meaning in bold white on {accent}; below, names are bold, texts 12 px, and every second row "
    f"(the second, the fourth) is on #f3f5f7. Rows end with a line of 1 pixel in {GRID}, inside their height."
)
ARTICLE = (
    "The left column, 180 pixels wide and as high as the page, is #f3f5f7 and lists the names in {accent}, each 28 pixels high (line height too), from "
    "24 pixels below the top, 20 from the left. 24 pixels to the right of the column and below the top stands the heading, bold 20 px, 32 pixels high; "
    f"16 below it come the entries, each 76 pixels high: the name bold in {INK}, then its text in {GREY}; the texts end 24 pixels before the right side."
)
FORM = (
    f"24 pixels from the top and the left stands the heading, bold 20 px in {INK}, 32 pixels high; 16 below it one row of 48 pixels for each "
    f"argument: its name in a label of 160 pixels in {GREY}, then a box of 300 x 32 pixels with a border of 1 pixel in #9aa5b1, rounded by 4, with the "
    "default in it 10 pixels from the left; label and box are centred in the first 32 pixels of the row. Below, 24 pixels from the left, a "
    "button of 120 x 40 pixels in {accent}, rounded by 4, says Call in bold white, centred."
)


def cards(heading: str, items: Items, accent: str) -> str:
    style = (
        f"header{{height:56px;line-height:56px;padding-left:24px;background:{accent};color:#ffffff;font-size:20px;font-weight:bold}}"
        "main{display:grid;grid-template-columns:288px 288px;gap:16px;padding:24px}"
        f".card{{height:96px;padding:12px;border:1px solid {GRID};border-left:4px solid {accent};border-radius:6px}}"
        f".card h2{{font-size:14px;line-height:20px}}.card p{{color:{GREY}}}"
    )
    body = "\n".join(f'<div class="card"><h2>{escape(n)}</h2><p>{escape(t)}</p></div>' for n, t in items)
    return _document(style, f"<header>{escape(heading)}</header>\n<main>\n{body}\n</main>")


def table(heading: str, items: Items, accent: str) -> str:
    style = (
        "body{padding:24px}h1{font-size:20px;line-height:32px;margin-bottom:16px}"
        "table{width:592px;border-collapse:separate;border-spacing:0;table-layout:fixed}"
        f"th,td{{height:40px;padding:0 12px;text-align:left;border-bottom:1px solid {GRID};vertical-align:middle}}"
        f"th{{background:{accent};color:#ffffff}}td{{font-size:12px;line-height:16px}}td:first-child{{font-size:14px;font-weight:bold}}"
        "tr:nth-child(odd) td{background:#f3f5f7}.first{width:180px}"
    )
    rows = "\n".join(f"<tr><td>{escape(n)}</td><td>{escape(t)}</td></tr>" for n, t in items)
    head = '<tr><th class="first">Topic</th><th>Meaning</th></tr>'
    return _document(style, f"<h1>{escape(heading)}</h1>\n<table>\n{head}\n{rows}\n</table>")


def article(heading: str, items: Items, accent: str) -> str:
    style = (
        "body{display:flex;min-height:100vh}nav{width:180px;background:#f3f5f7;padding:24px 0 0 20px}"
        f"ul{{list-style:none}}li{{height:28px;line-height:28px;color:{accent}}}"
        "main{width:460px;padding:24px 24px 0 24px}h1{font-size:20px;line-height:32px;margin-bottom:16px}"
        f"section{{height:76px}}h2{{font-size:14px;line-height:20px}}p{{color:{GREY}}}"
    )
    links = "".join(f"<li>{escape(n)}</li>" for n, _ in items)
    body = "\n".join(f"<section><h2>{escape(n)}</h2><p>{escape(t)}</p></section>" for n, t in items)
    return _document(style, f"<nav><ul>{links}</ul></nav>\n<main>\n<h1>{escape(heading)}</h1>\n{body}\n</main>")


def form(heading: str, items: Items, accent: str) -> str:
    style = (
        "body{padding:24px}h1{font-size:20px;line-height:32px;margin-bottom:16px}"
        f".row{{display:flex;height:48px}}label{{width:160px;line-height:32px;color:{GREY}}}"
        ".box{width:300px;height:32px;line-height:30px;padding-left:10px;border:1px solid #9aa5b1;border-radius:4px}"
        f".button{{width:120px;height:40px;line-height:40px;text-align:center;font-weight:bold;color:#ffffff;background:{accent};border-radius:4px}}"
    )
    rows = "\n".join(
        f'<div class="row"><label>{escape(n)}</label><div class="box">{escape(t)}</div></div>' for n, t in items
    )
    return _document(style, f'<h1>{escape(heading)}</h1>\n{rows}\n<div class="button">Call</div>')


def _document(style: str, body: str) -> str:
    return f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><style>{BASE}{style}</style></head>\n<body>\n{body}\n</body>\n</html>'
