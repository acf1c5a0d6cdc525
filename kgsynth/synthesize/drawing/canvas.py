"""A picture as a list of shapes, written as plain SVG: the same shapes give the same bytes everywhere.

Text is placed by the widths of DejaVu Sans, which the renderer uses for `sans-serif`, so that overlaps are known
without a browser. Nothing is rendered here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import combinations
from typing import Any

from kgsynth.concept import content_id
from kgsynth.task import Image

WHITE, INK, GREY, LINE, GRID = "#ffffff", "#1f2933", "#52606d", "#9aa5b1", "#e4e7eb"
BLUE, ORANGE, GREEN, RED = "#3b6ea8", "#d98032", "#4d9078", "#b5534a"
COLOURS = (BLUE, ORANGE, GREEN, RED)
FONT = "sans-serif"
# Advance widths in thousandths of the font size, from the space to the tilde.
WIDTHS = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636, 636,
    636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
    603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635,
    634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
)  # fmt: skip
BOLDER = 1.14  # bold letters are at most this much wider on the whole
ASCENT, DESCENT = 0.76, 0.24  # of what is drawn above and below the baseline, in font sizes

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True, kw_only=True)
class Shape:
    """An SVG element without children. `role` is "frame" (axes, grid), "mark" (what shows the data) or "text"."""

    tag: str
    role: str
    attributes: Mapping[str, str | float]
    text: str = ""
    label: str = ""  # of a mark: what it stands for

    @property
    def box(self) -> Box:
        """Where a text is drawn. Raises KeyError for other shapes."""
        a = self.attributes
        x, y, size = float(a["x"]), float(a["y"]), float(a["font-size"])
        width = text_width(self.text, size, bold="font-weight" in a)
        left = x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[str(a.get("text-anchor", "start"))]
        return left, y - ASCENT * size, left + width, y + DESCENT * size

    def svg(self) -> str:
        attributes = "".join(f' {name}="{_written(value)}"' for name, value in self.attributes.items())
        return (
            f"<{self.tag}{attributes}>{escape(self.text)}</{self.tag}>" if self.text else f"<{self.tag}{attributes}/>"
        )


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Shapes on nothing, which is white, in the order in which they are painted."""

    width: int
    height: int
    shapes: tuple[Shape, ...] = field(repr=False)

    @property
    def svg(self) -> str:
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}">']
        return "\n".join([*lines, *(shape.svg() for shape in self.shapes), "</svg>"])

    @property
    def image(self) -> Image:
        return Image(source=self.svg, format="svg", width=self.width, height=self.height)

    @property
    def texts(self) -> list[str]:
        return [shape.text for shape in self.shapes if shape.tag == "text"]

    @property
    def marks(self) -> list[Shape]:
        return [shape for shape in self.shapes if shape.role == "mark"]

    def is_legible(self) -> bool:
        """Whether every text lies inside and no two touch."""
        boxes = [shape.box for shape in self.shapes if shape.tag == "text"]
        inside = all(a >= 0 and b >= 0 and c <= self.width and d <= self.height for a, b, c, d in boxes)
        return inside and not any(overlap(a, b) for a, b in combinations(boxes, 2))

    def with_shapes(self, shapes: Iterable[Shape]) -> Picture:
        return replace(self, shapes=tuple(shapes))


class Canvas:
    """Collects shapes; lengths are pixels from the top left corner, angles have no place here."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.shapes: list[Shape] = []

    def add(self, tag: str, role: str, *, text: str = "", label: str = "", **attributes: str | float) -> None:
        named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        self.shapes.append(Shape(tag=tag, role=role, attributes=named, text=text, label=label))

    def rect(self, box: Box, role: str, fill: str, *, label: str = "", radius: int = 0, stroke: str = "") -> None:
        left, top, right, bottom = box
        extra: dict[str, Any] = {"rx": radius} if radius else {}
        extra |= {"stroke": stroke, "stroke_width": 2} if stroke else {}
        self.add("rect", role, label=label, x=left, y=top, width=right - left, height=bottom - top, fill=fill, **extra)

    def line(self, start: tuple[float, float], end: tuple[float, float], role: str = "frame", *, stroke: str = GRID, width: int = 1) -> None:  # fmt: skip
        (x1, y1), (x2, y2) = start, end
        self.add("line", role, x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width)

    def path(self, points: Sequence[tuple[float, float]], role: str, *, stroke: str = "", fill: str = "none", width: int = 2, label: str = "") -> None:  # fmt: skip
        """A run of straight lines; closed when it is filled."""
        written = " ".join(f"{_written(x)},{_written(y)}" for x, y in points)
        paint: dict[str, Any] = {"stroke": stroke, "stroke_width": width} if stroke else {}
        self.add("polygon" if fill != "none" else "polyline", role, label=label, points=written, fill=fill, **paint)

    def circle(self, x: float, y: float, r: float, role: str, fill: str, *, label: str = "", stroke: str = "", opacity: float = 1) -> None:  # fmt: skip
        paint: dict[str, Any] = {"stroke": stroke, "stroke_width": 2} if stroke else {}
        paint |= {"fill_opacity": opacity} if opacity < 1 else {}
        self.add("circle", role, label=label, cx=x, cy=y, r=r, fill=fill, **paint)

    def text(self, x: float, y: float, text: str, *, size: int = 13, anchor: str = "start", fill: str = INK, bold: bool = False) -> None:  # fmt: skip
        """(x, y) is on the baseline."""
        extra: dict[str, Any] = {"text_anchor": anchor} if anchor != "start" else {}
        extra |= {"font_weight": "bold"} if bold else {}
        self.add("text", "text", text=text, x=x, y=y, font_family=FONT, font_size=size, fill=fill, **extra)

    def picture(self) -> Picture:
        return Picture(width=self.width, height=self.height, shapes=tuple(self.shapes))


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Pixels a text takes. Letters outside ASCII count as the widest."""
    units = sum(WIDTHS[ord(c) - 32] if 32 <= ord(c) < 127 else 1000 for c in text)
    return units * size / 1000 * (BOLDER if bold else 1)


def colour_of(text: str) -> str:
    """One of COLOURS, always the same for a text."""
    return COLOURS[int(content_id("colour", text)[-4:], 16) % len(COLOURS)]


def overlap(a: Box, b: Box, gap: float = 0.0) -> bool:
    return a[0] < b[2] + gap and b[0] < a[2] + gap and a[1] < b[3] + gap and b[1] < a[3] + gap


def _written(value: str | float) -> str:
    if isinstance(value, str):
        return escape(value)
    return f"{round(value, 2):g}" if abs(value) < 1e5 else str(round(value))
