"""`programs`: the reference rewritten, and mutants of it; one that passes is run on inputs that no test has."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from kgsynth.mutate import Mutator, Named, Variant, inside, other_code, python_code, register, rng_of
from kgsynth.mutate.functions import right_code
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task
from kgsynth.verifiers.code.asked import language_of
from kgsynth.verifiers.code.source import read
from kgsynth.verifiers.programs import Program, Test, prepare

FRESH = 12  # inputs; each is a box
NUMBER = re.compile(r"(?<![\w.])-?\d+(?![\w.])")
PRINTED = {
    "python": "print('0')",
    "javascript": "console.log('0');",
    "c": '#include <stdio.h>\nint main(void) { puts("0"); return 0; }',
}


def wrong_program(task: Task, rng: random.Random) -> Iterator[Named]:
    source, language = read(inside(task.reference)), language_of(task)
    mutants = (
        python_code.mutants(source, "", rng) if language == "python" else other_code.mutants(source, language, rng)
    )
    for i, mutant in enumerate(mutants):
        if i == 3:
            yield "prints a constant", PRINTED[language]
        yield mutant


def apart_by_runs(task: Task, variant: Variant, sandbox: Sandbox) -> str:
    """An input on which the reference ends well, and the answer prints something else."""
    ours, theirs = (
        prepare(read(text), language_of(task), sandbox) for text in (inside(task.reference), inside(variant.answer))
    )
    if not isinstance(ours, Program) or not isinstance(theirs, Program):
        return "it does not even start"
    seconds = float(task.verifier.params.get("seconds", 5))
    for stdin, args in _fresh(task, rng_of(task, 0, "fresh inputs")):
        test = Test(stdin=stdin, args=args, seconds=seconds)
        wanted, got = ours.run(test, sandbox), theirs.run(test, sandbox)
        if wanted.ok and wanted.stdout.strip() and (got.stdout.split() != wanted.stdout.split() or not got.ok):
            return f"it prints something else for {stdin[:120]!r}"
    return ""


def _fresh(task: Task, rng: random.Random) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Inputs of the tests with one of their numbers, not the first one, which often counts the others, replaced by another."""
    tests = [(str(test.get("stdin", "")), tuple(test.get("args", ()))) for test in task.verifier.params["tests"]]
    numbers = [found[0] for stdin, _ in tests for found in NUMBER.finditer(stdin)]
    known = {stdin for stdin, _ in tests}
    for _ in range(FRESH):
        stdin, args = rng.choice(tests)
        places = list(NUMBER.finditer(stdin))
        if not places:
            continue
        place = rng.choice(places[1:] or places)
        made = stdin[: place.start()] + rng.choice(numbers) + stdin[place.end() :]
        if made not in known:
            known.add(made)
            yield made, args


register(Mutator(verifier="programs", right=right_code, wrong=wrong_program, apart=apart_by_runs, most=8))
