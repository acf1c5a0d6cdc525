"""Attacks: what a policy that wants the reward, and not the solution, would send. A catalogue of named tricks, one registry.

    Attack       a trick: what it does, who has seen it, which tasks it applies to, and the replies it makes for one
    CONTROLS     no-op, blank, echo, planted: nothing may be paid for them; oracle: must be paid
    campaign.py  every attack that applies, on every task of a set

A reply is made from what an attacker can know: the prompt, and the form of answers that it asks for. Some attacks are handed
the reference on purpose (`knows_reference`): an answer that is right, hidden among others, must earn nothing either.

The tricks against code are dangerous to run outside a sandbox. They are sent only to verifiers that have one.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from kgsynth.errors import VerifierError
from kgsynth.task import Task
from kgsynth.verifiers.answer import CLOSE, OPEN, extract

Pays = Literal["never", "once", "always"]  # "once": a guess at each option; one of the replies is right by chance
About = Literal["task", "reply", "grader"]
Answers = Callable[[Task, random.Random], Iterable[str]]

OURS = "ours"
# What the tricks of a file are about, unless they say so themselves: the task (its tests, its prompt), the form of a reply, or the
# grader and its box, which are the same for all tasks of a type.
PARTS: dict[str, About] = {
    "controls": "task", "forms": "reply", "texts": "reply", "functions": "grader", "searches": "grader",
    "harm": "grader", "programs": "grader", "kernels": "task", "worlds": "grader", "pictures": "grader", "guesses": "task",
}  # fmt: skip
LONGEST = 1 << 30  # no limit, for `extract`: references are ours


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One trick. The replies depend on (seed, task, name) only."""

    name: str
    trick: str  # what it does, in words
    source: str  # who has seen it: a project and number, or "ours"
    number: int  # in the list of known hacks in docs/attacks.md; 0: not in it
    applies: Callable[[Task], bool]
    make: Answers
    pays: Pays = "never"
    knows_reference: bool = False
    about: About = "task"
    slow: bool = False  # its replies take the grader's time until a limit is reached

    def answers(self, task: Task, seed: int = 0) -> list[str]:
        """The hostile replies to this task, whole, as a model would send them."""
        return list(self.make(task, random.Random(f"{seed}:{task.id}:{self.name}")))


REGISTRY: dict[str, Attack] = {}


def attack(
    name: str,
    trick: str,
    *,
    source: str = OURS,
    number: int = 0,
    applies: Callable[[Task], bool] = lambda task: True,
    pays: Pays = "never",
    knows_reference: bool = False,
    about: About | None = None,
    slow: bool = False,
) -> Callable[[Answers], Answers]:
    """Class a function as the maker of the replies of attack `name`. `about`: None is what its file is about, see PARTS.

    Raises VerifierError when the name is taken.
    """

    def add(make: Answers) -> Answers:
        if name in REGISTRY:
            raise VerifierError(f"attack {name!r} is registered twice")
        REGISTRY[name] = Attack(
            name=name, trick=trick, source=source, number=number, applies=applies, make=make, pays=pays,
            knows_reference=knows_reference, about=about or PARTS.get(make.__module__.rpartition(".")[2], "task"), slow=slow,
        )  # fmt: skip
        return make

    return add


def attacks_on(task: Task) -> list[Attack]:
    """Every attack that applies to a task, controls first."""
    return [found for found in REGISTRY.values() if found.applies(task)]


def verified_by(*names: str) -> Callable[[Task], bool]:
    """Whether a task's verifier is one of these."""
    return lambda task: task.verifier.name in names


def tagged(text: str) -> str:
    return f"{OPEN}{text}{CLOSE}"


def untagged(text: str) -> str:
    """A prompt without the tags that it shows."""
    return text.replace(OPEN, "").replace(CLOSE, "")


def inside(reply: str) -> str:
    """What a reply of ours has between its tags, or all of it when it has none."""
    return extract(reply, LONGEST)[0].strip() or reply.strip()


for _part in PARTS:  # each registers its tricks, in this order
    importlib.import_module(f"{__name__}.{_part}")
