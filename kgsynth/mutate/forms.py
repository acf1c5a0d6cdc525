"""Other forms of a whole reply, whatever verifies it: the answer is the same, what stands around it is not."""

from __future__ import annotations

import random
from collections.abc import Iterator

from kgsynth.mutate import Variant, inside, tagged
from kgsynth.task import Task

DRAFT = "<think>Perhaps <answer>this</answer>? No, I can do better.</think>\n"


def replies(task: Task, rng: random.Random) -> Iterator[Variant]:
    """The reference's answer with reasoning before it, words after it, in other tags, in a fence, on lines of its own."""
    text = inside(task.reference)
    made = {
        "reply: words around": f"I looked at it step by step.\n\n{tagged(text)}\n\nThat is my answer.",
        "reply: reasoning first": DRAFT + tagged(text),
        "reply: tags in capitals": f"<ANSWER>{text}</ANSWER>",
        "reply: spaces in the tags": f"< answer >{text}</ answer >",
        "reply: bold tags": f"**{tagged(text)}**",
        "reply: lines of its own": tagged(f"\n{text}\n"),
        "reply: fenced": tagged(f"\n```\n{text}\n```\n"),
    }
    for how in rng.sample(list(made), len(made)):
        if "\n```" not in text or "fenced" not in how:
            yield Variant(answer=made[how], how=how)
