"""Plots of series: bars, lines, points. Every length is a whole number of pixels per step of the axis.

A picture's marks carry the label they stand for, so that what is drawn can be compared with the data without rendering.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

from kgsynth.synthesize.drawing.canvas import BLUE, GREY, GRID, INK, LINE, Canvas, Picture, overlap, text_width
from kgsynth.synthesize.drawing.figures import Series

SMALL, TITLE = 12, 15  # font sizes
TOP, RIGHT, BOTTOM, LEFT = 60, 40, 50, 60  # margins of the plot
HIGH, WIDE = 250, 480  # about what the plot itself takes
ROW, THICK = 30, 20  # of horizontal bars


@dataclass(frozen=True, kw_only=True)
class Axis:
    """From 0 to `end` in whole steps; `pixels` per step."""

    step: float
    steps: int
    pixels: int

    @property
    def end(self) -> float:
        return self.step * self.steps

    @property
    def length(self) -> int:
        return self.pixels * self.steps

    def at(self, value: float) -> float:
        """Pixels from the axis' start."""
        return value / self.step * self.pixels

    @property
    def scale(self) -> float:
        """Pixels per unit."""
        return self.pixels / self.step

    @property
    def ticks(self) -> list[float]:
        return [self.step * i for i in range(self.steps + 1)]


def axis_for(most: float, room: int) -> Axis:
    """The axis with 3 to 7 steps of 1, 2 or 5 times a power of ten that reaches `most`."""
    power = 10 ** math.floor(math.log10(most)) / 10
    for factor in (1, 2, 5, 10, 20, 50, 100):
        if (steps := math.ceil(round(most / (factor * power), 6))) <= 7:
            return Axis(step=factor * power, steps=steps, pixels=room // steps // 10 * 10)
    raise ValueError(f"no axis for {most}")


def number(value: float) -> str:
    return f"{round(value, 3):g}" if abs(value) < 1e5 else str(int(value))


def draw_bars(series: Series, *, labelled: bool = False, colour: str = BLUE) -> Picture:
    """Upright bars where the labels fit below them, else lying ones. `labelled`: with the value at each end."""
    widest = max(text_width(label, SMALL) for label in series.labels)
    slot = min(100, WIDE // len(series) // 10 * 10)
    if widest <= slot - 6:
        return _upright(series, slot, labelled, colour)
    return _lying(series, math.ceil((widest + 20) / 10) * 10, labelled, colour)


def axis_of_bars(series: Series) -> Axis:
    """The value axis that `draw_bars` uses."""
    widest = max(text_width(label, SMALL) for label in series.labels)
    upright = widest <= min(100, WIDE // len(series) // 10 * 10) - 6
    return axis_for(max(series.values), HIGH if upright else WIDE - 80)


def _upright(series: Series, slot: int, labelled: bool, colour: str) -> Picture:
    axis = axis_for(max(series.values), HIGH)
    canvas = Canvas(_width(series, LEFT + slot * len(series) + RIGHT), TOP + axis.length + BOTTOM)
    base = TOP + axis.length
    right = LEFT + slot * len(series)
    _head(canvas, series)
    _grid(canvas, axis, base, right)
    for i, (label, value) in enumerate(zip(series.labels, series.values, strict=True)):
        middle, top = LEFT + slot * i + slot / 2, base - axis.at(value)
        half = (slot - 20) / 2
        canvas.rect((middle - half, top, middle + half, base), "mark", colour, label=label)
        canvas.text(middle, base + 20, label, size=SMALL, anchor="middle", fill=INK)
        if labelled:
            canvas.text(middle, top - 5, number(value), size=SMALL, anchor="middle", fill=GREY)
    canvas.line((LEFT, base), (right, base), stroke=LINE, width=2)
    return canvas.picture()


def _lying(series: Series, left: int, labelled: bool, colour: str) -> Picture:
    axis = axis_for(max(series.values), WIDE - 80)
    bottom = TOP + ROW * len(series)
    canvas = Canvas(_width(series, left + axis.length + RIGHT), bottom + BOTTOM)
    _head(canvas, series)
    for tick in axis.ticks:
        x = left + axis.at(tick)
        if tick:  # the axis is there
            canvas.line((x, TOP), (x, bottom))
        canvas.text(x, bottom + 20, number(tick), size=SMALL, anchor="middle", fill=GREY)
    for i, (label, value) in enumerate(zip(series.labels, series.values, strict=True)):
        top, end = TOP + ROW * i + (ROW - THICK) / 2, left + axis.at(value)
        canvas.rect((left, top, end, top + THICK), "mark", colour, label=label)
        canvas.text(left - 10, top + 14, label, size=SMALL, anchor="end")
        if labelled:
            canvas.text(end + 5, top + 14, number(value), size=SMALL, fill=GREY)
    canvas.line((left, TOP), (left, bottom), stroke=LINE, width=2)
    return canvas.picture()


def line_axis(series: Series) -> Axis:
    return axis_for(max(series.values), HIGH)


def draw_line(series: Series, *, labelled: bool = False, colour: str = BLUE) -> Picture:
    """Points at equal distances, joined by straight lines."""
    axis = line_axis(series)
    slot = max(_slot(series), min(80, WIDE // len(series) // 10 * 10))
    canvas = Canvas(_width(series, LEFT + slot * len(series) + RIGHT), TOP + axis.length + BOTTOM)
    base, right = TOP + axis.length, LEFT + slot * len(series)
    _head(canvas, series)
    _grid(canvas, axis, base, right)
    canvas.line((LEFT, base), (right, base), stroke=LINE, width=2)
    points = [(LEFT + slot * i + slot / 2, base - axis.at(value)) for i, value in enumerate(series.values)]
    canvas.path(points, "mark", stroke=colour)
    for i, ((x, y), label) in enumerate(zip(points, series.labels, strict=True)):
        canvas.circle(x, y, 4, "mark", colour, label=label)
        canvas.text(x, base + 20, label, size=SMALL, anchor="middle")
        if labelled:
            higher = min(at[1] for at in points[max(0, i - 1) : i + 2]) < y and base - y >= 30
            canvas.text(
                x, y + 20 if higher else y - 10, number(series.values[i]), size=SMALL, anchor="middle", fill=GREY
            )
    return canvas.picture()


def _slot(series: Series) -> int:
    widest = max(text_width(label, SMALL) for label in series.labels)
    return math.ceil((widest + 8) / 10) * 10


def draw_points(across: Series, up: Series, *, colour: str = BLUE) -> Picture:
    """A scatter plot of two measures of the same things, each point named at its right where that is free."""
    x_axis, y_axis = axis_for(max(across.values), 420), axis_for(max(up.values), HIGH)
    canvas = Canvas(max(LEFT + x_axis.length + 140, _title_width(across.title)), TOP + y_axis.length + 70)
    base = TOP + y_axis.length
    right = LEFT + x_axis.length
    canvas.text(20, 25, across.title, size=TITLE, bold=True)
    canvas.text(20, 45, f"{up.measure} (up) against {across.measure} (across)", size=SMALL, fill=GREY)
    _grid(canvas, y_axis, base, right)
    for tick in x_axis.ticks:
        x = LEFT + x_axis.at(tick)
        if tick:
            canvas.line((x, TOP), (x, base))
        canvas.text(x, base + 20, number(tick), size=SMALL, anchor="middle", fill=GREY)
    canvas.text(right, base + 45, across.measure, size=SMALL, anchor="end", fill=GREY)
    canvas.line((LEFT, TOP), (LEFT, base), stroke=LINE, width=2)
    canvas.line((LEFT, base), (right, base), stroke=LINE, width=2)
    for label, a, b in zip(across.labels, across.values, up.values, strict=True):
        x, y = LEFT + x_axis.at(a), base - y_axis.at(b)
        canvas.circle(x, y, 5, "mark", colour, label=label)
        canvas.text(x + 9, y + 4, label, size=SMALL)
    return canvas.picture()


def axes_of_points(across: Series, up: Series) -> tuple[Axis, Axis]:
    return axis_for(max(across.values), 420), axis_for(max(up.values), HIGH)


def points_are_apart(picture: Picture) -> bool:
    """Whether no point touches another or the name of another."""
    discs = [(float(m.attributes["cx"]), float(m.attributes["cy"])) for m in picture.marks]
    boxes = [(x - 7, y - 7, x + 7, y + 7) for x, y in discs]
    names = [s.box for s in picture.shapes if s.tag == "text"]
    return not any(overlap(a, b) for a, b in combinations(boxes, 2)) and not any(
        overlap(box, name) for box in boxes for name in names
    )


def _head(canvas: Canvas, series: Series) -> None:
    canvas.text(20, 25, series.title, size=TITLE, bold=True)
    canvas.text(20, 45, series.measure, size=SMALL, fill=GREY)


def _grid(canvas: Canvas, axis: Axis, base: float, right: float) -> None:
    for tick in axis.ticks:
        y = base - axis.at(tick)
        if tick:  # the axis is there
            canvas.line((LEFT, y), (right, y), stroke=GRID)
        canvas.text(LEFT - 10, y + 4, number(tick), size=SMALL, anchor="end", fill=GREY)


def _width(series: Series, least: int) -> int:
    return max(least, _title_width(series.title))


def _title_width(title: str) -> int:
    return math.ceil((text_width(title, TITLE, bold=True) + 40) / 10) * 10


def layout_of_bars(series: Series) -> str:
    """Where `draw_bars` puts things, labelled, for whoever is to redraw it."""
    widest, axis = max(text_width(label, SMALL) for label in series.labels), axis_of_bars(series)
    slot = min(100, WIDE // len(series) // 10 * 10)
    if widest <= slot - 6:
        return (
            f"{_upright_frame(axis, slot, len(series))} Bars are {slot - 20} pixels wide, each in the middle of its slot; values are centred, "
            "baseline 5 pixels above their bar."
        )
    left = math.ceil((widest + 20) / 10) * 10
    return (
        f"{HEADS} The axis line is at x = {left}, 2 pixels wide, from y = {TOP} to {TOP + ROW * len(series)}; a step of the axis is "
        f"{axis.pixels} pixels, with a gridline of 1 pixel (none at 0) and its number centred 20 pixels below it. Each label has {ROW} pixels with a bar "
        f"of {THICK} in their middle; labels end 10 pixels left of the axis, values start 5 pixels right of their bar, baselines 14 "
        "pixels below the bar's top."
    )


def layout_of_line(series: Series) -> str:
    slot = max(_slot(series), min(80, WIDE // len(series) // 10 * 10))
    return (
        f"{_upright_frame(line_axis(series), slot, len(series))} Points are circles of radius 4 in the middle of their slots, joined by a "
        "line of 2 pixels; values are centred, baseline 10 pixels above their point, or 20 below it where a neighbour is higher and the "
        "base line at least 30 pixels below."
    )


HEADS = "The title's baseline starts at (20, 25), the unit's at (20, 45)."


def _upright_frame(axis: Axis, slot: int, n: int) -> str:
    base = TOP + axis.length
    return (
        f"{HEADS} The base line is at y = {base}, 2 pixels wide, from x = {LEFT} to {LEFT + slot * n}; a step of the axis is {axis.pixels} "
        f"pixels, with a gridline of 1 pixel (none at 0); its number ends at x = {LEFT - 10}, baseline 4 pixels below the line. Each label has a slot of "
        f"{slot} pixels and is centred there, baseline 20 pixels below the base line."
    )
