"""The expert who is asked: knows the taxonomy, reads the question as a model would, and answers from what it is shown.

A question is recognised by the name of the schema that its reply must have; what it is about is read from its words. To
follow a change of the agents' questions, change `ANSWERS` and the patterns below.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.taxonomy.names import Names
from benchmarks.taxonomy.noise import Noise, Told
from benchmarks.taxonomy.truth import Taxonomy

_FIELD = re.compile(r"^(Concept|Path|Domain|Definition): (.*)$", re.MULTILINE)
_PAGE = re.compile(r'<page number="(\d+)"[^>]*>\n(.*?)\n</page>', re.DOTALL)
_PAIR = re.compile(r"^([AB]): (.*)$", re.MULTILINE)
_LISTED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_NONE = "-"  # how a question writes a missing definition


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The concept of a question, in its words."""

    name: str
    definition: str
    above: tuple[str, ...]  # names on the way from the root, without its own
    domain: str


@dataclass
class Oracle:
    """Answers as JSON values. `counts`: what was proposed, by kind of noise; what was left out since no page said it."""

    taxonomy: Taxonomy
    noise: Noise
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = Names(self.taxonomy, self.noise.used)

    def answer(self, schema: str, text: str) -> dict[str, Any]:
        """The reply to a question. Raises KeyError when it is of no known kind."""
        return ANSWERS[schema](self, text)

    def meant(self, asked: Asked) -> str | None:
        return self.names.meant(asked.name, asked.definition, asked.above[-1:], asked.domain)

    # the questions

    def queries(self, text: str) -> dict[str, Any]:
        """The name as asked, and the name by which the expert knows the concept."""
        asked = read_place(text)
        concept = self.meant(asked)
        known = self.taxonomy[concept].label if concept else asked.name
        return {"queries": [asked.name, f"{known} kinds and techniques"]}

    def proposals(self, text: str) -> dict[str, Any]:
        """Children that a page speaks of, and what the noise adds."""
        concept = self.meant(read_place(text))
        pages = [(int(number), page) for number, page in _PAGE.findall(text)]
        items = [self._proposal(told, pages) for told in self.noise.proposals(concept)] if concept else []
        return {"items": [item for item in items if item is not None]}

    def _proposal(self, told: Told, pages: list[tuple[int, str]]) -> dict[str, Any] | None:
        page = next((number for number, page in pages if told.quote in page), None)
        outcome = "not on a page" if page is None and told.concept else told.kind
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        if page is None and told.concept:
            return None
        return {
            "name": told.name, "definition": told.definition, "page": page or 0, "quote": told.quote,
            "aliases": self._also_called(told, pages), "keywords": [],
        }  # fmt: skip

    def _also_called(self, told: Told, pages: list[tuple[int, str]]) -> list[str]:
        """Other names, when a page tells them."""
        spellings = self.taxonomy[told.concept].spellings if told.concept else ()
        listed = f"Also called: {'; '.join(spellings[1:])}."
        if len(spellings) < 2 or not any(listed in page for _, page in pages):
            return []
        return [s for s in spellings if s != told.name][:8]

    def sameness(self, text: str) -> dict[str, Any]:
        """The truth. Names that mean several concepts, with nothing to tell which, are the same when one name is."""
        (a, described_a), (b, described_b) = (self._split(line) for _, line in _PAIR.findall(text)[:2])
        ours, theirs = self.names.meant(a, described_a), self.names.meant(b, described_b)
        same = ours == theirs if ours or theirs else a.casefold() == b.casefold()
        return {"relation": "same" if same else "different", "reason": "by the taxonomy"}

    def judgements(self, text: str) -> dict[str, Any]:
        """Of each listed concept: a leaf is atomic, and so is what nobody has described."""
        asked, listed = read_place(text), text.partition("Judge each of these")[2]
        return {"items": [self._judged(int(n), *self._split(line), asked) for n, line in _LISTED.findall(listed)]}

    def _judged(self, number: int, name: str, definition: str, parent: Asked) -> dict[str, Any]:
        concept = self.names.meant(name, definition, (parent.name,), parent.domain)
        if concept is None or self.taxonomy.is_leaf(concept):
            return {"number": number, "verdict": "atomic", "criterion": "details only", "reason": "nothing is finer"}
        kinds = len(self.taxonomy.children[concept])
        return {"number": number, "verdict": "expand", "criterion": "has kinds", "reason": f"it has {kinds} kinds"}

    def atomicity(self, text: str) -> dict[str, Any]:
        concept = self.meant(read_place(text))
        atomic = concept is None or self.taxonomy.is_leaf(concept)
        return {"atomic": atomic, "reason": "nothing is finer" if atomic else "it has kinds"}

    def _split(self, line: str) -> tuple[str, str]:
        """ "name -- definition" -> both; a name may hold dashes itself."""
        parts = line.split(" -- ")
        ways = [(" -- ".join(parts[:i]), " -- ".join(parts[i:])) for i in range(1, len(parts) + 1)]
        name, definition = next((way for way in ways if self.names.owners(way[0])), ways[0])
        return name.strip(), "" if definition.strip() == _NONE else definition.strip()


ANSWERS: dict[str, Callable[[Oracle, str], dict[str, Any]]] = {
    "Queries": Oracle.queries,
    "Proposals": Oracle.proposals,
    "Sameness": Oracle.sameness,
    "Judgements": Oracle.judgements,
    "Atomicity": Oracle.atomicity,
}


def read_place(text: str) -> Asked:
    """The lines "Concept: ...", "Path: ...", "Domain: ...", "Definition: ..." of a question."""
    found: dict[str, str] = {}
    for name, value in _FIELD.findall(text.partition("<page ")[0]):
        found.setdefault(name, value.strip())
    name, definition = found.get("Concept", ""), found.get("Definition", _NONE)
    way = found.get("Path", "").removesuffix(name).rstrip("> ").split(" > ")
    return Asked(
        name=name, definition="" if definition == _NONE else definition, domain=found.get("Domain", ""),
        above=tuple(step for step in way if step),
    )  # fmt: skip


def schema_name(request: dict[str, Any]) -> str:
    """The name of the reply's schema: of the response format, of a tool, or of the schema written into the last message."""
    schema = request.get("response_format", {}).get("json_schema", {}).get("name")
    tools = [tool["function"]["name"] for tool in request.get("tools", [])]
    titles = re.findall(r'"title": "(\w+)"', json.dumps(request["messages"][-1]["content"]).replace('\\"', '"'))
    known = [name for name in (schema, *tools, *titles) if name in ANSWERS]
    return known[0] if known else schema or "?"
