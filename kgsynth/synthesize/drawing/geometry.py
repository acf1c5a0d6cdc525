"""Figures of mathematical concepts: a right triangle, an angle in a circle, a rectangle of squares, Pascal's triangle.

Which figure a concept has is known by the documented function it is named after; the numbers are chosen by its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kgsynth.concept import content_id
from kgsynth.synthesize.drawing.canvas import BLUE, GREY, INK, LINE, ORANGE, Canvas, Picture
from kgsynth.synthesize.drawing.figures import own_pages
from kgsynth.synthesize.material import Material

if TYPE_CHECKING:
    from kgsynth.synthesize.drawing.drawings import Drawing

SOFT = "#eaf1f8"
TRIPLES = ((3, 4, 5), (5, 12, 13), (8, 6, 10), (4, 3, 5), (12, 5, 13), (6, 8, 10))
ANGLES = (30, 45, 60, 120, 135, 150)
RECTANGLES = ((8, 6), (9, 6), (12, 8), (10, 4), (9, 3), (12, 9))
CITED = 400  # characters


def figures_about(material: Material, make: type[Drawing]) -> Iterator[Drawing]:
    """The figure of the function a concept is named after, with two choices of numbers."""
    name = material.concept.name.rsplit(".", 1)[-1]
    for draw in (draw for draw, names in FIGURES.items() if name in names.split()):
        for page in own_pages(material)[:1]:
            for number in range(2):
                choice = int(content_id("figure", material.concept.id, str(number))[-6:], 16)
                picture, shown, layout = draw(choice)
                yield make(
                    shown=shown,
                    layout=layout,
                    picture=picture,
                    spans=(page.source.span(0, min(CITED, len(page.source.text))),),
                    concepts=(material.concept,),
                    others=(draw(choice + 1)[0],),
                )


def triangle(choice: int) -> tuple[Picture, str, str]:
    a, b, c = TRIPLES[choice % len(TRIPLES)]
    unit = 200 // max(a, b) // 10 * 10
    canvas = Canvas(60 + 200 + 60, 60 + 200 + 60)
    right, top = 60 + a * unit, 260 - b * unit
    canvas.path([(60, 260), (right, 260), (right, top)], "mark", fill=SOFT, stroke=BLUE, label="triangle")
    canvas.path([(right - 12, 260), (right - 12, 248), (right, 248)], "mark", stroke=GREY, width=1, label="angle")
    canvas.text(60 + a * unit / 2, 285, str(a), size=14, anchor="middle")
    canvas.text(right + 10, 260 - b * unit / 2, str(b), size=14)
    canvas.text(60 + a * unit / 2 - 10, 260 - b * unit / 2 - 10, str(c), size=14, anchor="end", fill=BLUE)
    layout = (
        f"The left corner is at (60, 260), a unit of length is {unit} pixels; the right angle is at the lower right, marked by an open "
        "square of 12 pixels, 1 pixel wide; the outline is 2 pixels wide. The number below is centred under its side with the "
        "baseline at 285; the one at the right starts 10 pixels right of its side, baseline at the side's middle; the third one ends "
        "10 pixels left of the middle of its side, baseline 10 pixels above it."
    )
    return canvas.picture(), "a right triangle with the lengths of its sides", layout


def angle(choice: int) -> tuple[Picture, str, str]:
    degrees = ANGLES[choice % len(ANGLES)]
    x, y = 150 + 100 * math.cos(math.radians(degrees)), 150 - 100 * math.sin(math.radians(degrees))
    canvas = Canvas(300, 300)
    canvas.line((30, 150), (270, 150), stroke=LINE, width=1)
    canvas.line((150, 30), (150, 270), stroke=LINE, width=1)
    canvas.add("circle", "frame", cx=150, cy=150, r=100, fill="none", stroke=GREY, stroke_width=2)
    canvas.path([(150, 150), (x, y)], "mark", stroke=BLUE, width=3, label="radius")
    canvas.path([(x, y), (x, 150)], "mark", stroke=ORANGE, width=3, label="height")
    canvas.circle(x, y, 6, "mark", BLUE, label="point")
    canvas.text(150, 290, f"{degrees} degrees", size=14, anchor="middle", fill=INK)
    layout = (
        "The centre is (150, 150) and the radius 100 pixels; the circle is 2 pixels wide, both axes are 1 pixel wide and reach 120 pixels "
        "from the centre. From the centre a line of 3 pixels leads to the point at that angle, counted anticlockwise from the right; "
        "the point is a circle of radius 6; a line of 3 pixels leads from it straight to the horizontal axis. The text is centred at "
        "x = 150, baseline at 290."
    )
    return canvas.picture(), "an angle in a circle with its sine", layout


def squares(choice: int) -> tuple[Picture, str, str]:
    across, up = RECTANGLES[choice % len(RECTANGLES)]
    side, unit = math.gcd(across, up), 20
    canvas = Canvas(360, 280)
    for i in range(across // side):
        for j in range(up // side):
            left, top = 60 + i * side * unit, 40 + j * side * unit
            box = (left, top, left + side * unit, top + side * unit)
            canvas.rect(box, "mark", BLUE if (i + j) % 2 else SOFT, stroke=BLUE, label=f"{i} {j}")
    canvas.text(60 + across * unit / 2, 40 + up * unit + 25, str(across), size=14, anchor="middle")
    canvas.text(45, 40 + up * unit / 2 + 5, str(up), size=14, anchor="end")
    layout = (
        "The upper left corner is at (60, 40), a unit of length is 20 pixels. The squares, each with an outline of 2 pixels, are filled in "
        "turns like a chessboard. The lower number is centred, baseline 25 pixels below; the left one ends at x = 45, baseline 5 "
        "pixels below the middle."
    )
    return canvas.picture(), "a rectangle filled with the largest equal squares", layout


def pascal(choice: int) -> tuple[Picture, str, str]:
    rows = 4 + choice % 4
    canvas = Canvas(400, 40 + 40 * rows)
    for n in range(rows):
        for k in range(n + 1):
            x, y = 200 + (2 * k - n) * 25, 40 + 40 * n
            fill = ORANGE if n == rows - 1 else BLUE
            canvas.circle(x, y, 17, "mark", SOFT, stroke=fill, label=f"{n} {k}")
            canvas.text(x, y + 5, str(math.comb(n, k)), size=13, anchor="middle")
    layout = (
        "The topmost circle is centred at (200, 40); rows are 40 pixels apart and circles of a row 50 pixels, each with radius 17 and an "
        "outline of 2 pixels. The numbers are centred, baseline 5 pixels below the circle's centre."
    )
    return canvas.picture(), "Pascal's triangle", layout


FIGURES: dict[Callable[[int], tuple[Picture, str, str]], str] = {
    triangle: "hypot dist",
    angle: "sin cos tan radians degrees atan2 asin acos atan polar phase rect",
    squares: "gcd lcm",
    pascal: "comb binomialvariate combinations factorial perm",
}
