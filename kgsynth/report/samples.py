"""Tasks of each type as the report shows them: what the policy sees, what is right, what is not, why, and where it is from."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from kgsynth.report.forms import form_of, in_words
from kgsynth.synthesize import TYPES
from kgsynth.task import Image, Task

Row = dict[str, Any]

SAMPLES = 3  # tasks shown in full, per type
QUOTE = 500  # characters of a quote
QUOTES = 6  # passages of a task that are shown
PROMPT, ANSWER, PARAMS = 6000, 1500, 3000  # characters that are shown whole


def samples(tasks: Sequence[Task]) -> list[Row]:
    """Per type (by area, then name): type, area, why, count, and a few rows, evenly spaced over the order of their making."""
    by_type: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_type[task.type].append(task)
    groups = [
        {
            "type": kind,
            "area": TYPES[kind].area if kind in TYPES else "",
            "why": TYPES[kind].why if kind in TYPES else "",
            "count": len(found),
            "rows": [_sample(found[i * len(found) // SAMPLES]) for i in range(SAMPLES)]
            if len(found) > SAMPLES
            else list(map(_sample, found)),
        }
        for kind, found in by_type.items()
    ]
    return sorted(groups, key=lambda group: (group["area"], group["type"]))


def _sample(task: Task) -> Row:
    quotes = list(_quotes(task))
    return {
        "task": task,
        "prompt": middle_out(task.prompt, PROMPT),
        "length": len(task.prompt),
        "pictures": [_picture(image) for image in task.images],
        "form": f"{form_of(task.verifier)} inside <answer>…</answer>",
        "verifier": in_words(task.verifier),
        "params": middle_out(json.dumps(task.verifier.params, ensure_ascii=False, indent=1), PARAMS),
        "reference": middle_out(task.reference, PROMPT),
        "wrong": [middle_out(wrong, ANSWER) for wrong in task.wrong],
        "quotes": quotes[:QUOTES],
        "more_quotes": len(quotes) - QUOTES,
    }


def _picture(image: Image) -> Row:
    """An SVG as an address that an <img> shows and in which nothing runs; an HTML page has none."""
    coded = base64.b64encode(image.source.encode("utf-8", errors="replace")).decode()
    address = f"data:image/svg+xml;base64,{coded}" if image.format == "svg" else ""
    return {"address": address, "format": image.format.upper(), "width": image.width, "height": image.height}


def _quotes(task: Task) -> Iterator[Row]:
    """Every passage once, with where, under which licence and when."""
    origin, seen = task.provenance, set[tuple[str, str]]()
    for number, span in enumerate(origin.spans):
        if (span.url, span.text) not in seen:
            seen.add((span.url, span.text))
            yield {
                "url": span.url,
                "href": web_address(span.url),
                "licence": origin.licences[number] if number < len(origin.licences) else "unknown",
                "date": origin.dates[number] if number < len(origin.dates) else "",
                "text": span.text[:QUOTE],
            }


def middle_out(text: str, most: int) -> str:
    """The text, or its two ends with how much is left out between them."""
    if len(text) <= most:
        return text
    head, left_out = most * 2 // 3, len(text) - most
    return f"{text[:head]}\n\n… {left_out:,} characters left out …\n\n{text[head + left_out :]}"


def web_address(url: str) -> str | None:
    """The url when a browser may follow it: http or https, nothing else (a page may call itself `javascript:...`)."""
    try:
        return url if urlsplit(url).scheme in ("http", "https") else None
    except ValueError:
        return None
