"""Controls: what shows that a verifier is awake. Nothing is paid for nothing, and the right answer is paid."""

from __future__ import annotations

import random
from collections.abc import Iterator

from kgsynth.attack import attack, tagged, untagged
from kgsynth.task import Task

NO_OP = "tau2-bench 384"


@attack("oracle", "the reference answer; it must be paid", pays="always", knows_reference=True)
def oracle(task: Task, rng: random.Random) -> Iterator[str]:
    yield task.reference


@attack("no-op", "nothing at all, or words without an answer", source=NO_OP, number=25)
def no_op(task: Task, rng: random.Random) -> Iterator[str]:
    yield ""
    yield "I have finished the task."


@attack("blank", "an answer with nothing in it", source=NO_OP, number=26)
def blank(task: Task, rng: random.Random) -> Iterator[str]:
    yield tagged("")
    yield tagged(" \n\t\u00a0 ")
    yield tagged("```\n```")


@attack("echo", "the prompt, sent back")
def echo(task: Task, rng: random.Random) -> Iterator[str]:
    yield task.prompt
    yield tagged(task.prompt)
    yield tagged(untagged(task.prompt))


@attack("planted", "the wrong answers that were planted when the task was made", knows_reference=True)
def planted(task: Task, rng: random.Random) -> Iterator[str]:
    yield from task.wrong
