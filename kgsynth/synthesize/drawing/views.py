"""The pictures that a concept's material gives: each drawn, named, cited, with the questions it can answer.

Only legible pictures count: all text inside, none of it touching another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kgsynth.concept import Concept, SourceSpan
from kgsynth.synthesize.drawing.asked import Question, about_bars, about_diagram, about_points, about_sets
from kgsynth.synthesize.drawing.canvas import Picture, colour_of
from kgsynth.synthesize.drawing.figures import Series, pairs_of, series_of
from kgsynth.synthesize.drawing.graphs import diagram_of, draw_diagram, draw_sets, sets_of
from kgsynth.synthesize.drawing.plots import (
    axes_of_points,
    axis_of_bars,
    draw_bars,
    draw_line,
    draw_points,
    line_axis,
    points_are_apart,
)
from kgsynth.synthesize.env import SynthesisEnv
from kgsynth.synthesize.material import Material

SIZES = {"easy": 5, "medium": 7, "hard": 9}  # values, boxes or names, by difficulty


@dataclass(frozen=True, kw_only=True)
class View:
    """A picture, what to call it, what may be asked about it and what it rests on."""

    shown: str  # 'a bar chart with the title "..."'
    picture: Picture
    questions: tuple[Question, ...]
    spans: tuple[SourceSpan, ...]
    concepts: tuple[Concept, ...]


def views(scope: str, difficulty: str, material: Material, env: SynthesisEnv) -> Iterator[View]:
    """Every legible picture about a concept ("concept") or about it among its siblings ("siblings")."""
    size = SIZES[difficulty]
    for view in _plots(scope, material, env, size):
        if view.picture.is_legible() and view.questions:
            yield view
    for view in _diagrams(material, env, size) if scope == "concept" else _sets(material, env, size):
        if view.picture.is_legible():
            yield view


def _plots(scope: str, material: Material, env: SynthesisEnv, size: int) -> Iterator[View]:
    for series in series_of(scope, material, env, size):
        colour = colour_of(series.title)
        if series.ordered:
            asked = about_bars(series, line_axis(series), "point")
            yield _of_series(series, "line chart", draw_line(series, colour=colour), asked)
        else:
            yield _of_series(
                series, "bar chart", draw_bars(series, colour=colour), about_bars(series, axis_of_bars(series))
            )
    for across, up in pairs_of(scope, material, env, size):
        picture = draw_points(across, up, colour=colour_of(across.title))
        if points_are_apart(picture):
            asked = about_points(across, up, axes_of_points(across, up))
            yield _of_series(across, "scatter plot", picture, asked)


def _of_series(series: Series, form: str, picture: Picture, asked: Iterator[Question]) -> View:
    return View(
        shown=f'a {form} with the title "{series.title}" ({picture.texts[1]})',
        picture=picture,
        questions=tuple(asked),
        spans=series.spans,
        concepts=series.concepts,
    )


def _diagrams(material: Material, env: SynthesisEnv, size: int) -> Iterator[View]:
    if diagram := diagram_of(material.concept, env, 2 * size):
        yield View(
            shown=f'a diagram with the title "{diagram.title}"',
            picture=draw_diagram(diagram),
            questions=tuple(about_diagram(diagram)),
            spans=diagram.spans,
            concepts=diagram.concepts,
        )


def _sets(material: Material, env: SynthesisEnv, size: int) -> Iterator[View]:
    for sets in sets_of(material.concept, env, size):
        yield View(
            shown=f'the members documented for "{sets.names[0]}" and "{sets.names[1]}" in two overlapping circles',
            picture=draw_sets(sets),
            questions=tuple(about_sets(sets)),
            spans=sets.spans,
            concepts=sets.concepts,
        )
