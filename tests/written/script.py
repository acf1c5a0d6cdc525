"""The scripted model: it writes the cases, and solves and judges what others wrote as an honest expert who errs one time in ten."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.written.cases import Case

ERRS = 0.1
PASSAGE = re.compile(r'<passage number="(\d+)"[^>]*>\n(.*?)\n</passage>', re.DOTALL)
OPTION = re.compile(r"^([A-D])\. (.+)$", re.MULTILINE)
NUMBER = re.compile(r"(?:attempt|examiner) number (\d+)")
OBJECTIONS = ("standalone", "entailment", "leak", "ambiguous")


@dataclass
class Model:
    """A script for FakeOpenAI. `planted[type, name of the concept, variant]` is what it writes when asked for that one."""

    planted: dict[tuple[str, str, int], Case]
    errs: float = ERRS
    seed: int = 0
    by_question: dict[str, Case] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plant(self.planted)

    def plant(self, planted: Mapping[tuple[str, str, int], Case]) -> None:
        self.planted = dict(planted)
        for case in planted.values():
            if case.question:
                self.by_question.setdefault(case.question, case)

    def __call__(self, request: dict[str, Any]) -> str | dict[str, Any]:
        system, asked = (message["content"] for message in request["messages"][:2])
        if "exam tasks from quoted documentation" in system:
            return self.write(asked)
        number = int(NUMBER.findall(system)[0])
        case = self.case_of(asked)
        rng = random.Random(f"{self.seed} {case.question} {number} {'examiner' in system}")
        if "examiner" in system:
            return judged(case, rng, self.errs)
        return {"reasoning": "", "action": "answer", "text": self.solved(case, asked, rng)}

    def write(self, asked: str) -> str | dict[str, Any]:
        kind = {"Path": "written_hops"}.get(asked[:4]) or (
            "written_code" if "pure Python function" in asked else "written"
        )
        name = asked.split("\n")[0].split(" > ")[-1].removeprefix("Concept: ")
        (variant,) = re.findall(r"[Nn]umber (\d+) about", asked)
        case = self.planted.get((kind, name, int(variant) - 1))
        if case is None:
            return "I have no further question about this."
        if isinstance(case.reply, str):
            return case.reply
        found = [(int(number), " ".join(text.split())) for number, text in PASSAGE.findall(asked)]
        where = "hops" if "hops" in case.reply else "evidence"
        numbered = [{"passage": place(found, quote["quote"]), **quote} for quote in case.reply[where]]
        return {**case.reply, where: numbered}

    def case_of(self, asked: str) -> Case:
        questions = [question for question in self.by_question if question in asked]
        return self.by_question[max(questions, key=len)]

    def solved(self, case: Case, asked: str, rng: random.Random) -> str:
        """What goes between the answer tags. From memory alone nothing is known: the facts are in the sources."""
        if "from what you know" in asked or (case.type == "written_hops" and not all_shown(case, asked)):
            return ""
        right = rng.random() >= self.errs
        answer = rng.choice(case.truth if right else case.others)
        letters = {text: letter for letter, text in OPTION.findall(asked)}
        return letters.get(answer, rng.choice("ABCD")) if letters else answer


def all_shown(case: Case, asked: str) -> bool:
    """Whether the source of every hop is there."""
    assert not isinstance(case.reply, str)
    return all(" ".join(hop["quote"].split()) in " ".join(asked.split()) for hop in case.reply["hops"])


def place(passages: Sequence[tuple[int, str]], quote: str) -> int:
    """The passage that a quotation is from, the first when none has it."""
    return next((number for number, text in passages if " ".join(quote.split()) in text), 0)


def judged(case: Case, rng: random.Random, errs: float) -> dict[str, Any]:
    flaws = set(case.flaws)
    if rng.random() < errs:
        flaws = set() if flaws else {rng.choice(OBJECTIONS)}
    others = list(case.also or ("something else",)) if "ambiguous" in flaws else []
    return {
        "standalone": "standalone" not in flaws, "entailed": "entailment" not in flaws, "leaks": "leak" in flaws,
        "other_answers": others, "reason": json.dumps(sorted(flaws)),
    }  # fmt: skip
