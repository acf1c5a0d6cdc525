"""Rows of cells (a list from an example, with its indices) and timelines (versions that a page names)."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kgsynth.synthesize.drawing.canvas import BLUE, GREY, INK, LINE, Canvas, Picture, text_width
from kgsynth.synthesize.drawing.figures import is_label, own_pages
from kgsynth.synthesize.material import Material
from kgsynth.verifiers.code.source import tree_of

if TYPE_CHECKING:
    from kgsynth.synthesize.drawing.drawings import Drawing

SOFT = "#eaf1f8"
ITEM = r"(?:'[^'\n]{1,10}'|-?\d+(?:\.\d+)?)"
ROWS = re.compile(rf"\[\s*{ITEM}(?:\s*,\s*{ITEM}){{3,11}}\s*\]")
VERSION = re.compile(r"(New|Changed|Added|Deprecated) (?:in|since) (?:version |Python )?3\.(\d{1,2})\b", re.IGNORECASE)
FEWEST = 3


def rows_of(material: Material, size: int, make: type[Drawing]) -> Iterator[Drawing]:
    """The first lists in the examples of a concept's page, as numbered cells."""
    for page in own_pages(material):
        found: dict[tuple[str, ...], tuple[int, int]] = {}
        for match in ROWS.finditer(page.source.text):
            items = _items(match.group())
            if items and 4 <= len(items) <= size + 4 and len(set(items)) > 2:
                found.setdefault(items, match.span())
        for items, span in found.items():
            yield make(
                shown=f'a list in the examples of "{page.title}" as a row of numbered cells',
                layout="Cells touch, are 40 pixels high, have an outline of 2 pixels and are equally wide, a multiple of 10; the first "
                "starts at (30, 60). Items are centred, baseline 25 pixels below the top; indices are centred below the cells, "
                "baseline 60 pixels below the top. The title starts at (30, 30).",
                picture=draw_cells(f"A list in the examples of {page.title}", items),
                spans=(page.source.span(*span),),
                concepts=(material.concept,),
                others=(draw_cells(f"A list in the examples of {page.title}", (*items[1:], items[0])),),
            )  # fmt: skip


def _items(text: str) -> tuple[str, ...]:
    try:
        value = ast.literal_eval(tree_of(text.strip()).body[0].value)  # type: ignore[attr-defined]
    except (ValueError, IndexError, AttributeError):
        return ()
    items = tuple(str(item) for item in value)
    return items if all(is_label(item) and item.strip() == item for item in items) else ()


def draw_cells(title: str, items: tuple[str, ...]) -> Picture:
    wide = max(40, math.ceil((max(text_width(i, 14) for i in items) + 16) / 10) * 10)
    width = max(60 + wide * len(items), math.ceil((text_width(title, 15, bold=True) + 60) / 10) * 10)
    canvas = Canvas(width, 140)
    canvas.text(30, 30, title, size=15, bold=True)
    for i, item in enumerate(items):
        left = 30 + wide * i
        canvas.rect((left, 60, left + wide, 100), "mark", SOFT, stroke=BLUE, label=str(i))
        canvas.text(left + wide / 2, 85, item, size=14, anchor="middle")
        canvas.text(left + wide / 2, 120, str(i), size=12, anchor="middle", fill=GREY)
    return canvas.picture()


def timelines_of(material: Material, size: int, make: type[Drawing]) -> Iterator[Drawing]:
    """The versions that a concept's page says something was new or changed in."""
    for page in own_pages(material):
        named: dict[int, tuple[str, tuple[int, int]]] = {}
        for match in VERSION.finditer(page.source.text):
            named.setdefault(int(match[2]), (match[1].lower(), match.span()))
        versions = sorted(named)[: size + 2]
        if len(versions) < FEWEST or not is_label(page.title):
            continue
        told = [(version, named[version][0]) for version in versions]
        yield make(
            shown=f'a timeline of the versions named on the page about "{page.title}"',
            layout="The line is 2 pixels thick, from (40, 90), 80 pixels for each minor version, beginning with the first and ending with "
            "the last one shown; each point is a filled circle of radius 6 on it, what happened is centred 20 pixels above the "
            "line, the version 30 pixels below it (baselines). The title starts at (20, 30).",
            picture=draw_timeline(f"Versions named on the page about {page.title}", told),
            spans=tuple(page.source.span(*named[v][1]) for v in versions),
            concepts=(material.concept,),
        )  # fmt: skip


def draw_timeline(title: str, told: list[tuple[int, str]]) -> Picture:
    first, last = told[0][0], told[-1][0]
    step = 80
    width = max(80 + step * (last - first), math.ceil((text_width(title, 15, bold=True) + 40) / 10) * 10)
    canvas = Canvas(width, 140)
    canvas.text(20, 30, title, size=15, bold=True)
    canvas.line((40, 90), (40 + step * (last - first), 90), stroke=LINE, width=2)
    for version, word in told:
        x = 40 + step * (version - first)
        canvas.circle(x, 90, 6, "mark", BLUE, label=f"3.{version}")
        canvas.text(x, 70, word, size=12, anchor="middle", fill=GREY)
        canvas.text(x, 120, f"3.{version}", size=13, anchor="middle", fill=INK)
    return canvas.picture()
