"""Diagrams of the concept graph: boxes and arrows, and two overlapping sets.

A `Diagram` is a piece of the graph whose every arrow leads from one column to the next, so that no arrow crosses a box.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kgsynth.concept import Concept, SourceSpan, content_id
from kgsynth.synthesize.drawing.canvas import BLUE, GREY, INK, LINE, ORANGE, Canvas, Picture, text_width
from kgsynth.synthesize.drawing.figures import is_label, own_pages
from kgsynth.synthesize.env import SynthesisEnv

HEIGHT, PITCH, GAP, EDGE = 30, 50, 90, 30  # of a box, between rows, between columns, around all
SIZE = 13  # of the font
MOST_COLUMNS, MOST_ROWS = 4, 8
SOFT = "#eaf1f8"


@dataclass(frozen=True, kw_only=True)
class Diagram:
    """Columns of concepts from coarse to fine, and arrows between neighbouring columns as (from, to) names."""

    title: str
    columns: tuple[tuple[str, ...], ...]
    arrows: tuple[tuple[str, str], ...]
    spans: tuple[SourceSpan, ...]
    concepts: tuple[Concept, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for column in self.columns for name in column)

    def into(self, name: str) -> list[str]:
        return [a for a, b in self.arrows if b == name]

    def out_of(self, name: str) -> list[str]:
        return [b for a, b in self.arrows if a == name]

    def below(self, name: str) -> list[str]:
        """All that arrows lead to from there, in the diagram's order."""
        found: set[str] = set()
        for column in self.columns:
            found |= {n for n in column if set(self.into(n)) & (found | {name})}
        return [n for n in self.names if n in found]

    def ways(self, start: str, end: str) -> int:
        """How many different chains of arrows lead from one to the other."""
        return 1 if start == end else sum(self.ways(n, end) for n in self.out_of(start))


def diagram_of(concept: Concept, env: SynthesisEnv, size: int) -> Diagram | None:
    """At most `size` concepts around this one: its parents, itself, what lies below it and their other parents."""
    graph = env.graph
    chosen = _neighbourhood(concept, env, size)
    level = _columns(chosen, env)
    kept = {i for i in chosen if is_label(graph[i].name)}
    edges = [
        edge
        for i in sorted(kept)
        for parent in graph.parents(i)
        if parent.id in kept and level[i] == level[parent.id] + 1 and (edge := graph.edge(parent, i)) and edge.spans
    ]
    tied = {end for edge in edges for end in (edge.parent, edge.child)}
    if concept.id not in tied or len(tied) < 4:
        return None
    columns = _arranged(tied, level, [(e.parent, e.child) for e in edges], env)
    if len(columns) > MOST_COLUMNS or max(map(len, columns)) > MOST_ROWS:
        return None
    name = {i: graph[i].name for i in tied}
    order = {i: place for place, i in enumerate(i for column in columns for i in column)}
    edges.sort(key=lambda e: (order[e.parent], order[e.child]))
    return Diagram(
        title=f"Topics around {concept.name}",
        columns=tuple(tuple(name[i] for i in column) for column in columns),
        arrows=tuple((name[e.parent], name[e.child]) for e in edges),
        spans=tuple(dict.fromkeys(e.spans[0] for e in edges)),
        concepts=tuple(dict.fromkeys([concept, *(graph[i] for column in columns for i in column)])),
    )


def _neighbourhood(concept: Concept, env: SynthesisEnv, size: int) -> list[str]:
    """Breadth first over parents, children and parents of children; equals in an order that the concept decides."""
    graph, found, front = env.graph, [concept.id], [concept]
    while front and len(found) < size:
        at = front.pop(0)
        near = [*graph.parents(at), *graph.children(at)]
        near.sort(
            key=lambda c: (-len(graph.parents(c)) > -2, -len(graph.children(c)), content_id("near", concept.id, c.id))
        )
        new = [c for c in near if c.id not in found and is_label(c.name)][: max(3, size // 3)]
        found += [c.id for c in new]
        front += new
    return found[:size]


def _columns(chosen: Sequence[str], env: SynthesisEnv) -> dict[str, int]:
    """Each concept's column: its longest chain from above within what is chosen."""
    members, level = set(chosen), dict[str, int]()

    def column(i: str) -> int:
        if i not in level:
            above = [p.id for p in env.graph.parents(i) if p.id in members]
            level[i] = 1 + max(map(column, above)) if above else 0
        return level[i]

    for i in chosen:
        column(i)
    return _pulled(chosen, level, env)


def _pulled(chosen: Sequence[str], level: dict[str, int], env: SynthesisEnv) -> dict[str, int]:
    """What nothing chosen leads to stands next to the nearest thing it leads to."""
    members = set(chosen)
    for i in chosen:
        below = [level[c.id] for c in env.graph.children(i) if c.id in members]
        if below and not any(p.id in members for p in env.graph.parents(i)):
            level[i] = min(below) - 1
    return level


def _arranged(
    tied: set[str], level: Mapping[str, int], edges: Iterable[tuple[str, str]], env: SynthesisEnv
) -> list[list[str]]:
    """Columns in which few arrows cross: each sorted by the middle of its neighbours' rows, to and fro."""
    lowest = min(level[i] for i in tied)
    columns: list[list[str]] = [[] for _ in range(max(level[i] for i in tied) - lowest + 1)]
    for i in sorted(tied, key=lambda i: env.graph[i].name):
        columns[level[i] - lowest].append(i)
    near: dict[str, list[str]] = {i: [] for i in tied}
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    for turn in range(6):
        for column in columns if turn % 2 else reversed(columns):
            row = {i: n - len(c) / 2 for c in columns for n, i in enumerate(c)}
            column.sort(key=lambda i: sum(row[n] for n in near[i]) / max(1, len(near[i])))
    return [column for column in columns if column]


def draw_diagram(diagram: Diagram) -> Picture:
    """Boxes in columns from left to right, straight arrows between them."""
    widths = [math.ceil((max(text_width(n, SIZE) for n in column) + 20) / 10) * 10 for column in diagram.columns]
    rows = max(map(len, diagram.columns))
    canvas = Canvas(2 * EDGE + sum(widths) + GAP * (len(widths) - 1), 40 + EDGE + rows * PITCH)
    canvas.text(20, 25, diagram.title, size=15, bold=True)
    place: dict[str, tuple[float, float, float]] = {}  # left, right, middle
    x = EDGE
    for column, width in zip(diagram.columns, widths, strict=True):
        top = 40 + (rows - len(column)) * PITCH / 2
        for row, name in enumerate(column):
            place[name] = x, x + width, top + row * PITCH + PITCH / 2
        x += width + GAP
    for a, b in diagram.arrows:
        _arrow(canvas, (place[a][1], place[a][2]), (place[b][0], place[b][2]), f"{a} -> {b}")
    for name, (left, right, middle) in place.items():
        box = (left, middle - HEIGHT / 2, right, middle + HEIGHT / 2)
        canvas.rect(box, "mark", SOFT, label=name, radius=4, stroke=BLUE)
        canvas.text((left + right) / 2, middle + 5, name, size=SIZE, anchor="middle")
    return canvas.picture()


def _arrow(canvas: Canvas, start: tuple[float, float], end: tuple[float, float], label: str) -> None:
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1)
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    bx, by = x2 - 10 * ux, y2 - 10 * uy
    canvas.path([start, (bx, by)], "mark", stroke=GREY, width=2, label=label)
    canvas.path([end, (bx - 5 * uy, by + 5 * ux), (bx + 5 * uy, by - 5 * ux)], "mark", fill=GREY, label=label)


def draw_tree(parents: Sequence[str], name: str, children: Sequence[str]) -> Picture:
    """A concept between its parents and its children."""
    return _draw_columns([column for column in (parents, [name], children) if column], name)


def draw_chain(names: Sequence[str]) -> Picture:
    """Concepts in a row, the last one standing out."""
    return _draw_columns([[name] for name in names], names[-1])


def _draw_columns(columns: Sequence[Sequence[str]], main: str) -> Picture:
    """Every box of a column joined to every one of the next, by level and upright lines only; one of two columns has one box."""
    widths = [math.ceil((max(text_width(n, SIZE) for n in column) + 20) / 10) * 10 for column in columns]
    rows = max(map(len, columns))
    canvas = Canvas(2 * EDGE + sum(widths) + 60 * (len(widths) - 1), EDGE + rows * PITCH)
    middles = [[EDGE / 2 + (rows - len(c)) * PITCH / 2 + r * PITCH + PITCH / 2 for r in range(len(c))] for c in columns]
    lefts = [EDGE + sum(widths[:i]) + 60 * i for i in range(len(columns))]
    for i in range(len(columns) - 1):
        _connect(canvas, lefts[i] + widths[i], middles[i], lefts[i + 1], middles[i + 1])
    for column, width, left, ys in zip(columns, widths, lefts, middles, strict=True):
        for text, y in zip(column, ys, strict=True):
            box, strong = (left, y - HEIGHT / 2, left + width, y + HEIGHT / 2), text == main
            canvas.rect(box, "mark", BLUE if strong else SOFT, label=text, radius=4, stroke=BLUE)
            fill = "#ffffff" if strong else INK
            canvas.text(left + width / 2, y + 5, text, size=SIZE, anchor="middle", fill=fill)
    return canvas.picture()


def _connect(canvas: Canvas, start: float, from_: Sequence[float], end: float, to: Sequence[float]) -> None:
    for y1 in from_:
        for y2 in to:
            canvas.path([(start, y1), (start + 30, y1), (start + 30, y2), (end - 8, y2)], "frame", stroke=LINE)
    for y2 in to:
        canvas.path([(end, y2), (end - 9, y2 - 5), (end - 9, y2 + 5)], "frame", fill=LINE)


@dataclass(frozen=True, kw_only=True)
class Sets:
    """What two pages document: names of one only, of both, of the other only."""

    names: tuple[str, str]
    parts: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    spans: tuple[SourceSpan, ...]
    concepts: tuple[Concept, ...]


def sets_of(concept: Concept, env: SynthesisEnv, most: int) -> list[Sets]:
    """The members of a class against those of a sibling; each part has one to `most` names."""
    mine = _members(concept, env)
    siblings = {c.id: c for parent in env.graph.parents(concept) for c in env.graph.children(parent)}
    found = []
    for other in siblings.values() if mine else ():
        theirs = _members(other, env)
        only, both = tuple(m for m in mine if m not in theirs), tuple(m for m in mine if m in theirs)
        parts = only, both, tuple(m for m in theirs if m not in mine)
        if other == concept or not is_label(other.name) or not all(1 <= len(part) <= most for part in parts):
            continue
        found.append(
            Sets(
                names=(concept.name, other.name),
                parts=parts,
                spans=tuple(dict.fromkeys([*mine.values(), *theirs.values()])),
                concepts=(concept, other),
            )
        )
    return found


def _members(concept: Concept, env: SynthesisEnv) -> dict[str, SourceSpan]:
    """Names of what the page about a class documents, with where."""
    for page in own_pages((env.material or {})[concept.id]):
        names = {d.term.rsplit(".", 1)[-1]: d for d in page.definitions if d.term.startswith(f"{page.title}.")}
        return {n: page.source.span(d.start, d.end) for n, d in names.items() if is_label(n)}
    return {}


def draw_sets(sets: Sets) -> Picture:
    """Two overlapping circles with the names inside."""
    high = 10 * max(map(len, sets.parts))  # half the height of the longest column of names
    wide = max(text_width(n, SIZE) for part in sets.parts for n in part) / 2 + 8
    reach, radius = _circles(wide, high)
    head = max(text_width(n, SIZE, bold=True) for n in sets.names)
    half = math.ceil((max(reach + radius, head + 15) + 20) / 10) * 10
    canvas, centre = Canvas(2 * half, 2 * radius + 70), radius + 50
    for x, colour in ((half - reach, BLUE), (half + reach, ORANGE)):
        canvas.circle(x, centre, radius, "mark", colour, stroke=colour, opacity=0.15)
    canvas.text(half - 15, 30, sets.names[0], size=SIZE, anchor="end", bold=True, fill=BLUE)
    canvas.text(half + 15, 30, sets.names[1], size=SIZE, anchor="start", bold=True, fill=ORANGE)
    for names, x in zip(sets.parts, (half - radius, half, half + radius), strict=True):
        for row, name in enumerate(names):
            y = centre + (row - (len(names) - 1) / 2) * 20 + 5
            canvas.text(x, y, name, size=SIZE, anchor="middle")
    return canvas.picture()


def _circles(wide: float, high: float) -> tuple[int, int]:
    """(half the distance of the centres, the radius) of two circles whose three parts hold columns of that half size."""
    bend, reach, radius = 0.0, 0, 0  # bend: how far a circle's side has come in at the end of a column
    for _ in range(8):
        reach = math.ceil((wide + bend) / 10) * 10
        radius = math.ceil(math.hypot(reach + wide, high) / 10) * 10
        bend = radius - math.sqrt(radius**2 - high**2)
    return reach, radius
