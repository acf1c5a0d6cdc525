"""What every task must say, whatever verifies it."""

from __future__ import annotations

from xml.etree import ElementTree

from kgsynth.task import DIFFICULTIES, GRANULARITIES, SCOPES, Image, Task
from kgsynth.verifiers import REGISTRY

SIDES = (16, 4096)  # pixels of a picture in a prompt
MOST_CHARS = 1_000_000  # of the document that draws it


def fault(task: Task) -> str:
    """What is missing or malformed; "" when nothing is."""
    try:
        task.to_json().encode()
    except (ValueError, TypeError) as error:
        return f"it cannot be written as JSON: {error}"
    provenance = task.provenance
    faults = {
        "the prompt is blank": not task.prompt.strip(),
        f"granularity {task.granularity!r} is none of {', '.join(GRANULARITIES)}": task.granularity
        not in GRANULARITIES,
        f"scope {task.scope!r} is none of {', '.join(SCOPES)}": task.scope not in SCOPES,
        f"difficulty {task.difficulty!r} is none of {', '.join(DIFFICULTIES)}": task.difficulty not in DIFFICULTIES,
        f"there is no verifier {task.verifier.name!r}": task.verifier.name not in REGISTRY,
        "it names no concept": not provenance.concepts,
        "it has no source span": not provenance.spans,
        "a source span has no text": not all(span.text.strip() for span in provenance.spans),
        "spans and licences do not pair up": len(provenance.spans) != len(provenance.licences),
        "spans and dates do not pair up": bool(provenance.dates) and len(provenance.spans) != len(provenance.dates),
        "the reference is blank": not task.reference.strip(),
    }
    found = [what for what, is_so in faults.items() if is_so]
    found += [what for image in task.images if (what := _undrawable(image))]
    return found[0] if found else ""


def _undrawable(image: Image) -> str:
    """Why a picture could not be rendered for the prompt."""
    if image.format not in ("svg", "html"):
        return f"a picture's format is {image.format!r}, neither svg nor html"
    if not all(type(side) is int and SIDES[0] <= side <= SIDES[1] for side in (image.width, image.height)):
        return (
            f"a picture has {image.width!r} x {image.height!r} pixels; sides are whole, from {SIDES[0]} to {SIDES[1]}"
        )
    if not image.source.strip() or len(image.source) > MOST_CHARS or "\0" in image.source:
        return f"the document of a picture is blank, holds NUL or is over {MOST_CHARS} characters"
    return _not_svg(image.source) if image.format == "svg" else ""


def _not_svg(source: str) -> str:
    if "<!entity" in source.lower():
        return "the document of a picture defines entities"
    try:
        root = ElementTree.fromstring(source.strip())
    except ElementTree.ParseError as error:
        return f"the document of a picture is no SVG: {error}"
    return "" if str(root.tag).rpartition("}")[2] == "svg" else f"the document of a picture is <{root.tag}>, no SVG"
