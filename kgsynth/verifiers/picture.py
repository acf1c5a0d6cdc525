"""`picture`: a picture described in SVG or HTML, against the picture that was asked for.

The answer is rendered in a box (headless Chromium, no network, no scripts) and compared outside. It is right when it
is within every limit: in colour, tone, structure and edges (`pictures.distance`), and for HTML in its words
(`pictures.words`). What a page asks for or is made of is judged by what the browser read, not by its text. Left out:
how the document is written, and what a page does when it is used.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract
from kgsynth.verifiers.params import one_of, only_known, real, whole

if TYPE_CHECKING:
    import numpy as np

    from kgsynth.verifiers.pictures.render import Rendering
    from kgsynth.verifiers.pictures.words import Word

LIMITS = {
    "svg": {"colour": 8.0, "tone": 4.0, "structure": 0.15, "edges": 0.1},
    "html": {"colour": 20.0, "tone": 8.0, "structure": 0.3, "edges": 0.2, "words": 0.5},
}
SHIFT = {"svg": 1, "html": 3}  # pixels
MOST_SHIFT = 16
KNOWN = ("format", "reference", "width", "height", "limits", "shift", "size", "alpha", "images", "graded", "max_chars")
MAX_CHARS = 20_000  # of the answer: a picture stamped pixel by pixel does not fit
MOST_CHARS = 1_000_000  # that a task may allow
MAX_ELEMENTS = 2000
SIDES = (16, 1024)  # pixels
SAME_SIZE = 1.0  # CSS pixels; when fitted, 2 % of the ratio of the sides
PARTLY = 0.9  # the most that a picture over a limit gets
RASTER = {"image", "img", "feimage", "picture", "video", "canvas", "input image"}
SVG_TAG = re.compile(r"<(?:[\w.-]{1,40}:)?svg\b")
MOVING = {"animate", "animatetransform", "animatemotion", "set", "marquee", "progress moving"}
REFUSED = {"foreignobject", "iframe", "frame", "frameset", "object", "embed", "applet", "fencedframe", "meta refresh"}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Checked parameters with the reference as it looks."""

    form: str
    width: int
    height: int
    limits: Mapping[str, float]
    shift: int
    fit: bool
    backdrops: tuple[float, ...]
    images: bool
    max_chars: int
    graded: bool
    pixels: np.ndarray = field(repr=False)  # (height, width, 4) bytes
    words: list[Word]
    trivial: Mapping[str, float]  # the smallest distance of a picture with nothing on it, per measure


@register("picture", needs_sandbox=True)
def picture(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"format": "svg" | "html", "reference": {"source": text, also of that format} | {"png": base64, "lines"},
    "width", "height"} and optionally {"limits": {measure: largest distance}, "shift": pixels, "size": "exact" | "fit",
    "alpha", "images", "graded": bools, "max_chars"}.

    Scores 1.0 within all limits, else 0.0; with "graded" up to 0.9 by how far it is from an empty picture (0.0) to
    the limits. Reasons: "right", "different", "partly", "blank", "malformed", "entities", "raster image",
    "external reference", "forbidden element", "animation", "wrong size", "too complex", "timeout", "out of memory",
    "crash", "not text" and those of the answer's form. Raises VerifierError for bad parameters and for limits that a
    picture with nothing on it meets, SandboxError when nothing can be rendered here.
    """
    assert sandbox is not None  # `verify` sees to it
    wanted = _wanted(_canonical(params), sandbox)
    text, reason = extract(answer, wanted.max_chars)
    if reason := reason or _refused(text, wanted.form):
        return Verdict(score=0.0, reason=reason)
    from kgsynth.verifiers.pictures.render import render

    size = (wanted.width, wanted.height)
    seen = render(text.strip(), wanted.form, *size, sandbox, fit=wanted.fit, images=wanted.images)
    if reason := seen.failed or _offence(seen, wanted):
        return Verdict(score=0.0, reason=reason)
    return _judged(seen, wanted)


def reference(source: str, form: str, width: int, height: int, sandbox: Sandbox) -> dict[str, Any]:
    """A "reference" for params, rendered here and now: {"png": base64, "lines": lines of text with their places}.

    Fonts of this machine become part of it: {"source": source} instead is rendered where the answer is.
    Raises VerifierError when the source cannot be rendered or breaks a rule that holds for answers.
    """
    from kgsynth.verifiers.pictures.distance import encode

    seen = _rendered_reference(source, form, width, height, sandbox, images=False)
    return {"png": base64.b64encode(encode(seen.pixels)).decode(), "lines": list(seen.lines)}


def _refused(text: str, form: str) -> str:
    """Why a document is not even rendered, or ""."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "not text"
    if "\0" in text:
        return "not text"
    if form == "svg" and "<!entity" in text.lower():
        return "entities"
    return "malformed" if form == "svg" and not SVG_TAG.search(text) else ""  # seen without a browser


def _offence(seen: Rendering, wanted: Wanted) -> str:
    """The rule that a document breaks, or ""."""
    elements = set(seen.elements)
    local = tuple(address for address in seen.requests if address.startswith("data:"))
    checks = {
        "malformed": "parsererror" in elements or (wanted.form == "svg" and seen.root != "svg"),
        "forbidden element": elements & REFUSED,
        "raster image": not wanted.images and (local or elements & RASTER),
        "external reference": len(local) < len(seen.requests),
        "animation": elements & MOVING,
        "too complex": len(seen.elements) > MAX_ELEMENTS,
        "wrong size": wanted.form == "svg" and not _right_size(seen.own_size, wanted),
    }
    return next((reason for reason, found in checks.items() if found), "")


def _right_size(own: tuple[float, float] | None, wanted: Wanted) -> bool:
    if own is None or min(own) < 1:
        return False
    if wanted.fit:
        return abs(own[0] / own[1] * wanted.height / wanted.width - 1) <= 0.02
    return abs(own[0] - wanted.width) <= SAME_SIZE and abs(own[1] - wanted.height) <= SAME_SIZE


def _judged(seen: Rendering, wanted: Wanted) -> Verdict:
    from kgsynth.verifiers.pictures.words import MAX_WORDS, words

    page = words(seen.lines)
    if len(page) > MAX_WORDS:
        return Verdict(score=0.0, reason="too complex")
    found = _distances(seen.pixels, page, wanted)
    evidence = {"distances": {measure: round(value, 4) for measure, value in found.items()}}
    if all(found[measure] <= limit for measure, limit in wanted.limits.items()):
        return Verdict(score=1.0, reason="right", evidence=evidence)
    if all(found[measure] >= least - 1e-9 for measure, least in wanted.trivial.items()):
        return Verdict(score=0.0, reason="blank", evidence=evidence)
    score = round(PARTLY * _quality(found, wanted), 4) if wanted.graded else 0.0
    return Verdict(score=score, reason="partly" if score else "different", evidence=evidence)


def _distances(pixels: np.ndarray, page: list[Word], wanted: Wanted) -> dict[str, float]:
    """Every limited measure; over several backdrops the worst."""
    from kgsynth.verifiers.pictures.distance import distances, over
    from kgsynth.verifiers.pictures.words import wrong_words

    every = [distances(over(pixels, b), over(wanted.pixels, b), shift=wanted.shift) for b in wanted.backdrops]
    found = {measure: max(each[measure] for each in every) for measure in every[0]}
    if "words" in wanted.limits:
        found["words"] = wrong_words(page, wanted.words)
    return found


def _quality(found: Mapping[str, float], wanted: Wanted) -> float:
    """The geometric mean, over all measures but the worst spot's, of the way from an empty picture to the limit."""
    parts = [
        min(1.0, max(0.0, (least - found[measure]) / (least - wanted.limits[measure])))
        for measure, least in wanted.trivial.items()
        if measure != "colour" and least > wanted.limits[measure]
    ]
    return math.prod(parts) ** (1 / len(parts)) if parts else 0.0


def _canonical(params: Mapping[str, Any]) -> str:
    try:
        return json.dumps(params, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise VerifierError(f"picture: params must be plain JSON: {error}") from error


@functools.lru_cache(maxsize=64)
def _wanted(canonical: str, sandbox: Sandbox) -> Wanted:
    """Check the parameters, draw the reference, and see that an empty picture is rejected. Once per task."""
    params = json.loads(canonical)
    only_known("picture", params, KNOWN)
    form = one_of("picture", params, "format", LIMITS, required=True)
    fit = one_of("picture", params, "size", ("exact", "fit") if form == "svg" else ("exact",)) == "fit"
    alpha, images, graded = (one_of("picture", params, f, (False, True)) for f in ("alpha", "images", "graded"))
    width, height = (whole("picture", params, side, None, *SIDES) for side in ("width", "height"))
    pixels, page = _reference(params.get("reference"), form, width, height, sandbox, images)
    checked = Wanted(
        form=form,
        width=width,
        height=height,
        limits=_limits(params, form),
        shift=whole("picture", params, "shift", SHIFT[form], 0, MOST_SHIFT),
        fit=fit,
        backdrops=(1.0, 0.0) if alpha else (1.0,),
        images=images,
        max_chars=whole("picture", params, "max_chars", MAX_CHARS, 1, MOST_CHARS),
        graded=graded,
        pixels=pixels,
        words=page,
        trivial={},
    )
    return _with_trivial(checked)


def _limits(params: Mapping[str, Any], form: str) -> dict[str, float]:
    given = params.get("limits", {})
    if not isinstance(given, Mapping):
        raise VerifierError(f"picture: 'limits' must map measures to numbers, not {given!r:.80}")
    only_known("picture: 'limits'", given, LIMITS["html"])
    return LIMITS[form] | {measure: float(real("picture: 'limits'", given, measure, 0, 0)) for measure in given}


def _reference(
    given: Any, form: str, width: int, height: int, sandbox: Sandbox, images: bool
) -> tuple[np.ndarray, list[Word]]:
    try:
        from kgsynth.verifiers.pictures.distance import decode
        from kgsynth.verifiers.pictures.words import words
    except ImportError as error:
        raise VerifierError(f"pictures need {error.name}: pip install 'kgsynth[verify]'") from error
    if isinstance(given, Mapping) and set(given) == {"source"} and isinstance(given["source"], str):
        seen = _rendered_reference(given["source"], form, width, height, sandbox, images=images)
        return seen.pixels, words(seen.lines)
    if not isinstance(given, Mapping) or not isinstance(given.get("png"), str) or set(given) - {"png", "lines"}:
        raise VerifierError('picture: \'reference\' must be {"source": text} or {"png": base64, "lines": [...]}')
    try:
        pixels = decode(base64.b64decode(given["png"], validate=True))
        page = words(given.get("lines", []))
    except (ValueError, TypeError, KeyError) as error:
        raise VerifierError(f"picture: the reference cannot be read: {error}") from error
    if pixels.shape[:2] != (height, width):
        raise VerifierError(f"picture: the reference is {pixels.shape[1]} x {pixels.shape[0]}, not {width} x {height}")
    return pixels, page


def _rendered_reference(
    source: str, form: str, width: int, height: int, sandbox: Sandbox, *, images: bool
) -> Rendering:
    from kgsynth.verifiers.pictures.render import render

    if reason := _refused(source, form):
        raise VerifierError(f"picture: the reference is refused: {reason}")
    seen = render(source.strip(), form, width, height, sandbox, images=images)
    if seen.failed or seen.requests or {"parsererror"} & set(seen.elements):
        raise VerifierError(f"picture: the reference cannot be rendered: {seen.failed or seen.requests or 'malformed'}")
    return seen


def _with_trivial(wanted: Wanted) -> Wanted:
    """Measure pictures with nothing on them. Raises VerifierError when one of them is within the limits."""
    import numpy as np

    from kgsynth.verifiers.pictures.distance import background, over

    flat = over(wanted.pixels, 1.0)
    colours = [background(flat), flat.mean(axis=(0, 1)), np.ones(3)]
    pictures = [np.uint8(np.append(np.round(c * 255), 255)) + np.zeros_like(wanted.pixels) for c in colours]
    every = [_distances(pixels, [], wanted) for pixels in (*pictures, np.zeros_like(wanted.pixels))]
    for found in every:
        if all(found[measure] <= limit for measure, limit in wanted.limits.items()):
            raise VerifierError(f"picture: a picture with nothing on it is within the limits {dict(wanted.limits)}")
    trivial = {measure: min(found[measure] for found in every) for measure in wanted.limits}
    return dataclasses.replace(wanted, trivial=trivial)
