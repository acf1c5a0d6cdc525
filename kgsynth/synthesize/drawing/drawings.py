"""Pictures to be redrawn: each with what it shows, where things stand in it, and what it rests on.

Looking tells what is drawn; the words tell what looking cannot tell to the pixel (margins, steps, widths), so that the
same picture can be written exactly. The data stand in the picture only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from kgsynth.concept import Concept, SourceSpan
from kgsynth.synthesize.drawing import cells, plots
from kgsynth.synthesize.drawing.canvas import Picture, colour_of
from kgsynth.synthesize.drawing.figures import CITED_CHARS, Series, around, is_label, series_of
from kgsynth.synthesize.drawing.geometry import figures_about
from kgsynth.synthesize.drawing.graphs import draw_chain, draw_sets, draw_tree, sets_of
from kgsynth.synthesize.env import SynthesisEnv
from kgsynth.synthesize.material import Material

LAYOUT_OF_BOXES = (
    "Boxes are 30 pixels high with rounded corners (radius 4) and an outline of 2 pixels; they stand in columns 60 pixels apart, the "
    "first 30 pixels from the left, each column centred between top and bottom, 50 pixels from the top of a box to the top of the next; "
    "boxes of a column are equally wide, a multiple of 10. Names are centred, 13 px, baseline 5 pixels below the middle of the box. "
    "Connectors are 2 pixels wide, bend 30 pixels right of the box they leave and end 8 pixels before the next; heads are triangles 9 "
    "pixels long and 10 high with the tip on the box."
)
SIZES = {"easy": 4, "medium": 6, "hard": 8}  # values, boxes or names, by difficulty


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A picture to be redrawn. `others`: the same kind of picture of other data."""

    shown: str  # "a bar chart"
    layout: str  # sentences: where things stand
    picture: Picture
    spans: tuple[SourceSpan, ...]
    concepts: tuple[Concept, ...]
    others: tuple[Picture, ...] = ()


def drawings(scope: str, difficulty: str, material: Material, env: SynthesisEnv) -> Iterator[Drawing]:
    """Every legible drawing about a concept ("concept") or about it among its siblings ("siblings")."""
    size = SIZES[difficulty]
    for drawing in _all(scope, material, env, size):
        if drawing.picture.is_legible() and drawing.picture.width <= 1000 and drawing.picture.height <= 800:
            yield drawing


def _all(scope: str, material: Material, env: SynthesisEnv, size: int) -> Iterator[Drawing]:
    if scope == "concept":
        yield from _neighbours(material.concept, env, size)
        yield from _lineage(material.concept, env)
        yield from _parameters(material)
        yield from figures_about(material, Drawing)
        yield from cells.rows_of(material, size, Drawing)
        yield from cells.timelines_of(material, size, Drawing)
    else:
        yield from _family(material.concept, env, size)
        yield from _sets(material.concept, env, size)
    for series in series_of(scope, material, env, size):
        yield _plot(series)


def _plot(series: Series) -> Drawing:
    draw = plots.draw_line if series.ordered else plots.draw_bars
    ranked = sorted(range(len(series)), key=lambda i: series.values[i])
    order = list(range(len(series)))
    order[ranked[0]], order[ranked[-1]] = ranked[-1], ranked[0]
    colour = colour_of(series.title)
    return Drawing(
        shown=f'a {"line" if series.ordered else "bar"} chart titled "{series.title}" ({series.measure})',
        layout=plots.layout_of_line(series) if series.ordered else plots.layout_of_bars(series),
        picture=draw(series, labelled=True, colour=colour),
        spans=series.spans,
        concepts=series.concepts,
        others=(draw(series.permuted(order), labelled=True, colour=colour),),
    )


def _neighbours(concept: Concept, env: SynthesisEnv, size: int) -> Iterator[Drawing]:
    above, below = _linked(env.graph.parents(concept), concept, env), _linked(env.graph.children(concept), concept, env)
    above = above[:3]
    below = below[: size - len(above)]
    if len(above) + len(below) > 2:
        shown = f'the topic "{concept.name}" between broader and finer ones, as boxes and connectors'
        yield _tree(shown, above, concept, below, env)


def _family(concept: Concept, env: SynthesisEnv, size: int) -> Iterator[Drawing]:
    """A parent and its children, the concept among them."""
    for parent in env.graph.parents(concept):
        group = around(concept, _linked(env.graph.children(parent), parent, env), size)
        if len(group) > 2 and is_label(parent.name) and concept in group:
            shown = f'"{parent.name}" and finer topics with "{concept.name}" among them, as boxes and connectors'
            yield _tree(shown, [], parent, group, env)


def _linked(near: list[Concept], concept: Concept, env: SynthesisEnv) -> list[Concept]:
    """Those neighbours whose edge cites something and whose name can be drawn."""
    return [c for c in near if is_label(c.name) and _cited(c, concept, env)]


def _cited(a: Concept, b: Concept, env: SynthesisEnv) -> tuple[SourceSpan, ...]:
    edge = env.graph.edge(a, b) or env.graph.edge(b, a)
    return edge.spans[:1] if edge else ()


def _tree(shown: str, above: list[Concept], concept: Concept, below: list[Concept], env: SynthesisEnv) -> Drawing:
    names, finer = [c.name for c in above], [c.name for c in below]
    return Drawing(
        shown=shown,
        layout=LAYOUT_OF_BOXES,
        picture=draw_tree(names, concept.name, finer),
        spans=tuple(dict.fromkeys(span for c in (*above, *below) for span in _cited(c, concept, env))),
        concepts=(concept, *above, *below),
        others=(draw_tree(names, concept.name, finer[::-1]),) if len(finer) > 1 else (),
    )


def _lineage(concept: Concept, env: SynthesisEnv) -> Iterator[Drawing]:
    """The concept's chain of broader topics, at most four boxes."""
    chain = [*env.graph.lineage(concept)][-4:]
    cited = [_cited(a, b, env) for a, b in pairwise(chain)]
    if len(chain) > 2 and all(cited) and all(is_label(c.name) for c in chain):
        names = [c.name for c in chain]
        yield Drawing(
            shown=f'the chain of topics that leads to "{concept.name}", as boxes and connectors',
            layout=LAYOUT_OF_BOXES,
            picture=draw_chain(names),
            spans=tuple(dict.fromkeys(span for spans in cited for span in spans)),
            concepts=tuple(chain[::-1]),
            others=(draw_chain([*names[:-2], names[-1], names[-2]]),),
        )


def _parameters(material: Material) -> Iterator[Drawing]:
    """What goes into a documented function."""
    for item in material.calls:
        arguments = item.function.arguments
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        if len(names) > 2 and is_label(item.function.name) and all(map(is_label, names)):
            yield Drawing(
                shown=f'the parameters of "{item.function.dotted}" leading to its name, as boxes and connectors',
                layout=LAYOUT_OF_BOXES,
                picture=draw_tree(names[:8], item.function.name, []),
                spans=(item.page.source.span(0, min(CITED_CHARS, len(item.page.source.text))),),
                concepts=(material.concept,),
                others=(draw_tree([*names[1:8], names[0]], item.function.name, []),),
            )


def _sets(concept: Concept, env: SynthesisEnv, size: int) -> Iterator[Drawing]:
    for sets in sets_of(concept, env, size):
        yield Drawing(
            shown=f'the members documented for "{sets.names[0]}" and "{sets.names[1]}" in two overlapping circles',
            layout="Both circles are filled with 15 % opacity and outlined with 2 pixels in their full colour, centres level; "
            "centres and radius are multiples of 10. The names above end 15 pixels left of the picture's middle and start 15 "
            "pixels right of it. Members are centred, 20 pixels from line to line: those of both in the middle of the picture, the "
            "others one radius left and right of it.",
            picture=draw_sets(sets),
            spans=sets.spans,
            concepts=sets.concepts,
        )  # fmt: skip
