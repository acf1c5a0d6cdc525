"""Pictures that are nearly right: one thing changed that anybody sees, so that a verifier must refuse them.

Each takes a picture and gives another one as SVG text. What a picture has nothing of gives "".
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from kgsynth.synthesize.drawing.canvas import BLUE, GREEN, ORANGE, RED, Picture, Shape

MOVED = 12  # pixels
LEAST = 6  # pixels: a smaller mark may be overlooked
SWAPPED = {BLUE: ORANGE, ORANGE: BLUE, GREEN: RED, RED: GREEN}


def spoiled(picture: Picture, rng: random.Random, most: int) -> list[str]:
    """At most `most` of them, seeded: another choice for each task."""
    tried = [spoil(picture, rng) for spoil in rng.sample(WAYS, len(WAYS))]
    return [text for text in dict.fromkeys(tried) if text and text != picture.svg][:most]


def without_a_mark(picture: Picture, rng: random.Random) -> str:
    """Everything that shows one thing is missing."""
    labels = list(dict.fromkeys(shape.label for shape in picture.marks if shape.label and _reach(shape) >= LEAST))
    if len(labels) < 2:
        return ""
    gone = rng.choice(labels)
    return picture.with_shapes(shape for shape in picture.shapes if shape.label != gone).svg


def moved(picture: Picture, rng: random.Random) -> str:
    """What shows the data stands a few pixels to the right; axes and text are where they were."""
    return _transformed(picture, f"translate({MOVED} 0)", ("mark",))


def mirrored(picture: Picture, rng: random.Random) -> str:
    """Left and right exchanged for all but the text."""
    middles = [x for shape in picture.marks for x in _across(shape)]
    if abs(sum(middles) / max(1, len(middles)) - picture.width / 2) < MOVED:
        return ""  # it may look the same
    return _transformed(picture, f"translate({picture.width} 0) scale(-1 1)", ("mark", "frame"))


def smaller(picture: Picture, rng: random.Random) -> str:
    """Everything at nine tenths of its size."""
    return _transformed(picture, "scale(0.9)", ("mark", "frame", "text"))


def recoloured(picture: Picture, rng: random.Random) -> str:
    """Blue for orange and the other way round."""
    return picture.with_shapes(map(_recoloured, picture.shapes)).svg


def retold(picture: Picture, rng: random.Random) -> str:
    """Two texts of the same kind exchanged."""
    texts = [shape for shape in picture.shapes if shape.tag == "text"]
    kind = {id(s): (s.attributes["font-size"], s.attributes["fill"], s.attributes.get("text-anchor")) for s in texts}
    pairs = [(a, b) for a in texts for b in texts if kind[id(a)] == kind[id(b)] and a.text < b.text]
    if not pairs:
        return ""
    one, two = rng.choice(pairs)
    exchanged = {id(one): two.text, id(two): one.text}
    return picture.with_shapes(replace(s, text=exchanged.get(id(s), s.text)) for s in picture.shapes).svg


def wordless(picture: Picture, rng: random.Random) -> str:
    """One text is left out."""
    gone = rng.choice([shape for shape in picture.shapes if shape.tag == "text"])
    return picture.with_shapes(shape for shape in picture.shapes if shape is not gone).svg


WAYS: list[Callable[[Picture, random.Random], str]] = [
    without_a_mark, moved, mirrored, smaller, recoloured, retold, wordless,
]  # fmt: skip


def _across(shape: Shape) -> list[float]:
    """Where a shape begins and ends, from left to right; all corners of a polygon."""
    a = shape.attributes
    if "points" in a:
        return [float(pair.split(",")[0]) for pair in str(a["points"]).split()]
    left = float(a.get("x", 0)) if "x" in a else float(a["cx"]) - float(a["r"])
    return [left, left + float(a.get("width", 0)) if "x" in a else left + 2 * float(a["r"])]


def _reach(shape: Shape) -> float:
    """The smaller side of what a shape covers, or how far a line goes."""
    across = _across(shape)
    wide = max(across) - min(across)
    return min(wide, float(shape.attributes.get("height", wide)))


def _transformed(picture: Picture, transform: str, roles: tuple[str, ...]) -> str:
    def changed(shape: Shape) -> Shape:
        if shape.role not in roles:
            return shape
        return replace(shape, attributes={**shape.attributes, "transform": transform})

    return picture.with_shapes(map(changed, picture.shapes)).svg


def _recoloured(shape: Shape) -> Shape:
    other = {key: SWAPPED.get(str(value), value) for key, value in shape.attributes.items()}
    return replace(shape, attributes=other)
