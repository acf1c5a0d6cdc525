"""Repair tasks: find and mend the bug that was planted in a function of the standard library.

Why the reward is unarguable: the function as it was passes every hidden test, because the tests are its own outputs; the
bug fails at least one of them and passes at least one (SWE-smith's rule), so that neither the code as it is shown nor a
guess earns anything. Any change that makes the function do what it did is right. Planted wrong answers are the code
unchanged, a mend of one bug of two, the shown call as a special case, other bugs in the place of this one, and the import
of the original, which is forbidden.

    easy     one bug, and a call with what it should return and what it does
    medium   one bug, a call that goes wrong, and two other calls with their right results
    hard     two bugs, and three calls with their right results
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.bugs import Bug, Judged, Tried, judged, planted, telling
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject
from kgsynth.synthesize.library import (
    documented,
    functions_about,
    same_call,
    says_too_little,
    seeded,
    spans_of,
    spare,
    tried,
    worked,
)
from kgsynth.synthesize.material import Material, PageFunction
from kgsynth.synthesize.oracle import Trial, called, ended
from kgsynth.task import DIFFICULTIES, Task, VerifierSpec
from kgsynth.verifiers.code.values import decode
from kgsynth.verifiers.function_tests import expectation

SECONDS = 5
PER_FUNCTION = 3  # tasks, each with a bug of its own
WORKED = {"easy": 0, "medium": 2, "hard": 3}  # calls with what the function returned before the bug
PAIRS = 8  # of bugs, tried for a hard task
WRONG = 8


@dataclass(frozen=True)
class Wish:
    """The how-manieth bug of a function."""

    item: PageFunction
    number: int


@dataclass(frozen=True)
class Plant:
    """A source with its bugs, and what is left of them when one of two is mended."""

    shown: Judged
    kinds: tuple[str, ...]
    lines: tuple[int, ...]
    halves: tuple[Judged, ...] = ()


def capacity(material: Material, env: SynthesisEnv) -> int:
    return PER_FUNCTION * len(functions_about(material, env))


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    wishes = [Wish(item, n) for item in functions_about(material, env) for n in range(PER_FUNCTION)]
    wishes.sort(key=lambda w: (w.number, seeded("repair", sample.seed, w.item.function.dotted)))
    if sample.variant >= len(wishes):
        return reject(sample, "material", f"{len(wishes)} bugs to plant under {material.concept.name!r}")
    wish = wishes[sample.variant]
    known = await tried(wish.item.function, env)
    if known.probe.fault:
        return reject(sample, known.probe.check, known.probe.fault)
    plants = await _plants(sample, known, env)
    if wish.number >= len(plants):
        fault = f"{wish.item.function.dotted}: {len(plants)} bugs that some calls tell and some do not"
        return reject(sample, "wrong", fault)
    return _task(sample, material, env, wish.item, known, plants[wish.number])


async def _plants(sample: Sample, known: Tried, env: SynthesisEnv) -> list[Plant]:
    """What may be planted, in an order of the seed's, each kind once before any twice."""
    usable = [(bug, judgement) for bug, judgement in known.bugs if judgement.is_partial]
    usable.sort(key=lambda row: (_crashes(row[1]), seeded("plant", sample.seed, row[0].source)))
    if sample.difficulty != "hard":
        return _by_kind([Plant(judgement, (bug.kind,), (bug.line,)) for bug, judgement in usable])
    pairs = [(a, b) for a, b in itertools.combinations(usable, 2) if a[0].line != b[0].line]
    pairs.sort(key=lambda pair: seeded("pair", sample.seed, pair[0][0].source, pair[1][0].source))
    return _by_kind(await asyncio.to_thread(_doubled, pairs[:PAIRS], known, env))


def _crashes(buggy: Judged) -> bool:
    """Is it told by errors alone? Those say where the bug is."""
    return all(buggy.trials[n].outcome.kind != "returned" for n in buggy.caught_by)


def _by_kind(plants: Sequence[Plant]) -> list[Plant]:
    counts: dict[tuple[str, ...], int] = {}
    order = []
    for plant in plants:
        counts[plant.kinds] = counts.get(plant.kinds, 0) + 1
        order.append(counts[plant.kinds])
    return [plants[i] for i in sorted(range(len(plants)), key=lambda i: order[i])]


def _doubled(pairs: Sequence[Sequence[tuple[Bug, Judged]]], known: Tried, env: SynthesisEnv) -> list[Plant]:
    """Pairs of bugs that show together and alone: a mend of one must not look like a mend of both."""
    subject = known.probe.subject
    sources = [planted(subject.reference, [bug.place for bug, _ in pair]) for pair in pairs]
    found = []
    for pair, both in zip(pairs, judged(sources, subject.name, known.trials, env.sandbox), strict=True):
        kinds, lines = tuple(bug.kind for bug, _ in pair), tuple(bug.line for bug, _ in pair)
        halves = tuple(half for _, half in pair)
        if both and both.is_partial and both.source not in {half.source for half in halves}:
            found.append(Plant(both, kinds, lines, halves))
    return found


def _task(
    sample: Sample, material: Material, env: SynthesisEnv, item: PageFunction, known: Tried, plant: Plant
) -> Task | Rejection:
    subject, trials = known.probe.subject, known.trials
    wrong = [plant.shown, *plant.halves, *_others(known, plant)]
    shown = _example(plant.shown, trials) if sample.difficulty != "hard" else None
    hidden = [n for n in range(len(trials)) if shown is None or not same_call(trials[n], trials[shown])]
    pool, seen = [trials[n] for n in hidden], [source.on(hidden) for source in wrong]
    right = WORKED[sample.difficulty]
    most = min(env.config.most_tests, max(env.config.least_tests, len(pool) - right))
    chosen = telling(pool, seen, seen[: 1 + len(plant.halves)], most)
    caught = [judgement.source for judgement in seen if judgement.caught_by & set(chosen)]
    missed = {plant.shown.source, *(half.source for half in (*plant.halves, *known.stubs))} - set(caught)
    if missed or not seen[0].is_partial:
        return reject(sample, "wrong", f"{subject.label}: too few calls tell the bug, or an argument as it came")
    examples = spare(pool, chosen, seen, right)
    if right and (fault := says_too_little([item.function], examples)):
        return reject(sample, "material", fault)
    tests = [expectation(pool[n].call, pool[n].outcome) for n in chosen]
    params = {"name": subject.name, "tests": tests, "forbidden": list(subject.forbidden), "seconds": SECONDS}
    special = [_special_case(plant.shown.source, subject.name, trials[shown])] if shown is not None else []
    return build_task(
        sample,
        env,
        concepts=[material.concept],
        prompt=_prompt(sample, item, plant, trials, shown, examples),
        verifier=VerifierSpec(name="function_tests", params=params),
        reference=_reply(subject.reference),
        wrong=[_reply(s) for s in (*[caught[0], *special, *caught[1:]][: WRONG - 1], _import(item))],
        spans=spans_of(item, env),
        most_chars=env.config.max_prompt_chars + env.config.max_code_chars,
        hints={"bugs": len(plant.kinds), "telling_tests": sum(n in seen[0].caught_by for n in chosen)},
    )


def _others(known: Tried, plant: Plant) -> Iterator[Judged]:
    """Other bugs, those on the lines of the planted ones first: wrong mends of the right place. Then stubs."""
    planted_ones = {plant.shown.source, *(half.source for half in plant.halves)}
    order = sorted(range(len(known.bugs)), key=lambda n: (known.bugs[n][0].line not in plant.lines, n))
    others = [known.bugs[n][1] for n in order]
    yield from (other for other in (*others, *known.stubs) if other.source not in planted_ones and other.caught_by)


def _example(buggy: Judged, trials: Sequence[Trial]) -> int:
    """The shortest call that goes wrong by returning something else; else the shortest that goes wrong."""
    return min(
        buggy.caught_by,
        key=lambda n: (
            trials[n].outcome.kind != "returned",
            buggy.trials[n].outcome.kind == "failed",
            len(trials[n].key),
            n,
        ),
    )


def _prompt(
    sample: Sample,
    item: PageFunction,
    plant: Plant,
    trials: Sequence[Trial],
    shown: int | None,
    examples: Sequence[Trial],
) -> str:
    function = item.function
    bug = "two bugs" if len(plant.kinds) > 1 else "one bug"
    told = _told(sample, function.name, plant.shown.trials[shown], trials[shown]) if shown is not None else ""
    right = (
        f"Without the bug{'s' if len(plant.kinds) > 1 else ''}:\n\n{worked(function.name, examples)}\n\n"
        if examples
        else ""
    )
    return (
        f"Below is `{function.name}` from Python's `{function.module}` module, with {bug} planted in it.\n\n"
        f"```python\n{plant.shown.source}\n```\n\nIts documentation:\n\n{documented(function)}\n\n{told}{right}"
        f"Fix {'both bugs' if len(plant.kinds) > 1 else 'the bug'}. Write the complete corrected code in <answer></answer>. "
        f"Do not import {function.module}."
    )


def _told(sample: Sample, name: str, got: Trial, expected: Trial) -> str:
    call = called(name, expected.call)
    if sample.difficulty == "easy":
        return f"For example, `{call}` should {ended(expected)}, but it {ended(got, 's')}.\n\n"
    return f"For example, `{call}` {ended(got, 's')}, which is wrong.\n\n"


def _special_case(source: str, name: str, trial: Trial) -> str:
    """The buggy source, patched for the call that is shown."""
    call = trial.call
    known = f"(args, kwargs) == ({tuple(call.args)!r}, {dict(call.kwargs)!r})"
    value = repr(decode(trial.outcome.value)) if trial.outcome.kind == "returned" else "None"
    return (
        f"{source}\n_first = {name}\n\ndef {name}(*args, **kwargs):\n    if {known}:\n        return {value}\n"
        "    return _first(*args, **kwargs)"
    )


def _import(item: PageFunction) -> str:
    return f"from {item.function.module} import {item.function.name}"


def _reply(source: str) -> str:
    return answered(f"\n{source}\n")


register(
    TaskType(
        name="repair",
        area="coding",
        why="Hidden tests are outputs of the function before the bug was planted; the bug fails some and passes some.",
        capacity=capacity,
        draft=draft,
        difficulties=DIFFICULTIES,
    )
)
