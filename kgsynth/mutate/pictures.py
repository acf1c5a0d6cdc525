"""`picture`: the same document serialised otherwise; one of its elements dropped, moved, recoloured or resized, a word changed.

An element may be tiny or behind another one: a variant that is paid is rendered, and counts when what is seen differs.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

from kgsynth.mutate import Mutator, Named, Variant, in_turn, inside, register
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task
from kgsynth.verifiers.picture import SHIFT

SVG = "http://www.w3.org/2000/svg"
SHAPES = {"rect", "circle", "ellipse", "line", "polyline", "polygon", "path", "text", "use", "g"}
HEX = re.compile(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b")
BLOCK = re.compile(r"<(div|p|li|h[1-6]|span|td|th|button|tr)\b[^>]*>[^<]*</\1>")
PIXELS = re.compile(r"(?<![\w.])(\d{2,3})px")
WORDS = re.compile(r"(?<=>)[^<>{}]*?[A-Za-z]{3,}[^<>{}]*(?=<)")
VISIBLE, LEAST = 48, 64  # of 255 in a channel; pixels that must differ, a window of 8 x 8

ElementTree.register_namespace("", SVG)


def _is_svg(task: Task) -> bool:
    return task.verifier.params.get("format") == "svg"


def _tree(text: str) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(text.strip())
    except ElementTree.ParseError:
        return None


def _written(root: ElementTree.Element) -> str:
    return ElementTree.tostring(root, encoding="unicode")


# the same


def right_picture(task: Task, rng: random.Random) -> Iterator[Named]:
    text = inside(task.reference).strip()
    made = {"colours in another notation": HEX.sub(_as_rgb, text) if "url(#" not in text else text}
    root = _tree(text) if _is_svg(task) else None
    if root is not None:
        made["serialised again"] = _written(root)
        made["attributes in another order"] = _written(_reordered(root))
        made["a comment"] = re.sub(r"(<svg\b[^>]*>)", r"\1<!-- drawn by hand -->", text, count=1)
    elif not _is_svg(task):
        made["a comment"] = re.sub(r"(<body\b[^>]*>)", r"\1<!-- a page -->", text, count=1)
        made["other quotes"] = re.sub(r'="([^"\'<>]*)"', r"='\1'", text)
    yield from ((how, made[how]) for how in rng.sample(list(made), len(made)) if made[how] != text)


def _as_rgb(found: re.Match[str]) -> str:
    return f"rgb({', '.join(map(str, _channels(found[0])))})"


def _channels(colour: str) -> tuple[int, int, int]:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    red, green, blue = (int(digits[i : i + 2], 16) for i in (0, 2, 4))
    return red, green, blue


def _reordered(root: ElementTree.Element) -> ElementTree.Element:
    root = copy.deepcopy(root)
    for element in root.iter():
        items = list(element.attrib.items())[::-1]
        element.attrib.clear()
        element.attrib.update(items)
    return root


# nearly the same


def wrong_picture(task: Task, rng: random.Random) -> Iterator[Named]:
    text = inside(task.reference).strip()
    root = _tree(text) if _is_svg(task) else None
    yield from in_turn(_of_svg(task, root) if root is not None else _of_text(text), rng)


def _of_svg(task: Task, root: ElementTree.Element) -> dict[str, list[str]]:
    width, height = (int(task.verifier.params[side]) for side in ("width", "height"))
    shapes = [i for i, element in enumerate(root.iter()) if _name(element) in SHAPES]
    changes: dict[str, Callable[[ElementTree.Element], None]] = {
        "an element moved": lambda e: _transform(e, f"translate({width / 6:g} {height / 6:g})"),
        "an element recoloured": _recolour,
        "an element resized": lambda e: _transform(e, "scale(0.7)"),
    }
    groups = {how: [_with(root, i, change) for i in shapes] for how, change in changes.items()}
    groups["an element dropped"] = [_without(root, i) for i in shapes]
    return groups


def _name(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _with(root: ElementTree.Element, number: int, change: Callable[[ElementTree.Element], None]) -> str:
    root = copy.deepcopy(root)
    change(list(root.iter())[number])
    return _written(root)


def _without(root: ElementTree.Element, number: int) -> str:
    root = copy.deepcopy(root)
    gone = list(root.iter())[number]
    for parent in root.iter():
        if gone in list(parent):
            parent.remove(gone)
    return _written(root)


def _transform(element: ElementTree.Element, how: str) -> None:
    element.set("transform", f"{how} {element.get('transform', '')}".strip())


def _recolour(element: ElementTree.Element) -> None:
    """The element, and what is in it, in a colour that is far from its own."""
    for inner in element.iter():
        for name in ("fill", "stroke"):
            colour = inner.get(name)
            if colour not in (None, "none") or (name == "fill" and inner is element):
                other = "#ff00ff" if not colour or not HEX.fullmatch(colour) else _opposite(colour)
                inner.set("style", f"{inner.get('style', '')};{name}:{other}".lstrip(";"))


def _opposite(colour: str) -> str:
    return "#" + "".join(f"{255 - c if abs(255 - 2 * c) > 80 else (c + 128) % 256:02x}" for c in _channels(colour))


def _of_text(text: str) -> dict[str, list[str]]:
    """Changes of a page: as text, for browsers read what no parser of markup does."""
    return {
        "an element dropped": [_cut(text, found, "") for found in BLOCK.finditer(text)],
        "a colour off": [_cut(text, found, _opposite(found[0])) for found in HEX.finditer(text)],
        "a size off": [_cut(text, found, f"{int(found[1]) * 2}px") for found in PIXELS.finditer(text)],
        "a text off": [_cut(text, found, re.sub(r"[A-Za-z]{3,}", "Wxyz", found[0])) for found in WORDS.finditer(text)],
    }


def _cut(text: str, found: re.Match[str], other: str) -> str:
    return text[: found.start()] + other + text[found.end() :]


# whether it looks the same


def apart_by_pixels(task: Task, variant: Variant, sandbox: Sandbox) -> str:
    """How many pixels of two renderings differ plainly, and not only along lines as thin as the shift that the task allows."""
    import numpy as np
    from scipy.ndimage import binary_erosion

    from kgsynth.verifiers.pictures.distance import over

    ours, theirs = (_rendered(task, inside(reply), sandbox) for reply in (task.reference, variant.answer))
    if ours.shape != theirs.shape:
        return "its size is another"
    backdrops = (1.0, 0.0) if task.verifier.params.get("alpha") else (1.0,)  # as the verifier sees them
    off = np.max([abs(over(ours, b) - over(theirs, b)).max(axis=2) for b in backdrops], axis=0)
    differ = off * 255 > VISIBLE
    shift = int(task.verifier.params.get("shift", SHIFT[task.verifier.params["format"]]))
    solid = int((binary_erosion(differ, iterations=shift) if shift else differ).sum())
    return f"{int(differ.sum())} pixels are another, {differ.mean():.1%}" if solid >= LEAST else ""


def _rendered(task: Task, document: str, sandbox: Sandbox) -> Any:
    from kgsynth.verifiers.pictures.render import render

    params = task.verifier.params
    return render(document.strip(), params["format"], params["width"], params["height"], sandbox).pixels


register(Mutator(verifier="picture", right=right_picture, wrong=wrong_picture, apart=apart_by_pixels, most=4))
