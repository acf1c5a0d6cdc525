"""Implement tasks: write a documented standard-library function, or a chain of two, without their modules.

Why the reward is unarguable: the specification is the functions' own documentation with two or three calls that are no
tests but tell the same wrong versions (documentation of fewer than a dozen words is refused without them), and every hidden test is an output of
the real functions, run in the sandbox. Only calls count whose result is the same in two processes, in any order, and from
a second, pure-Python version (the reference); exceptions are tested only where the documentation names them. The modules
themselves are forbidden imports, so that `from heapq import merge` earns nothing. Planted wrong answers are a constant,
each argument as it came, mutants of the reference (or the chain without its second function) that fail a test of the
task, and that import.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kgsynth.concept import Concept, content_id
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.bugs import Judged, telling, try_bugs
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.inputs import likely_kinds
from kgsynth.synthesize.library import probed, says_too_little, span_of, spare, worked
from kgsynth.synthesize.material import Material, PageFunction
from kgsynth.synthesize.oracle import (
    CHAIN,
    PRESUPPOSES_NUMBERS,
    PRESUPPOSES_ORDER,
    Mutant,
    Probe,
    Trial,
    no_oracle,
    probe_chain,
    required,
)
from kgsynth.synthesize.stdlib import Function
from kgsynth.task import Task, VerifierSpec
from kgsynth.verifiers.code.values import decode
from kgsynth.verifiers.function_tests import expectation

SECONDS = 5
SHOWN = 3  # calls with their results in the prompt, at most; none of the tests
HEADING = "For example:"
MUTANTS = 4  # planted as wrong answers
RAISING = 2  # tests that expect an exception, at most
CHAINED = 3  # chains per function
OUTERS = 6  # outer functions tried for one chain
OUTER_CHARS = 300  # of an outer function's reference
DOC_CHARS = 350  # of each function in a chain
LENGTH_STEP = 200  # references are drawn in steps of this many characters, short ones first


@dataclass(frozen=True)
class Wish:
    """A function alone (number 0) or as the inner one of a chain."""

    item: PageFunction
    number: int


def capacity(material: Material, env: SynthesisEnv) -> int:
    return len(_wishes(material, env))


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    wishes = sorted(_wishes(material, env), key=lambda wish: _order(sample.seed, wish))
    if sample.variant >= len(wishes):
        return reject(sample, "material", f"{len(wishes)} functions to write under {material.concept.name!r}")
    wish = wishes[sample.variant]
    known = await probed(wish.item.function, env)
    if known.fault:
        return reject(sample, known.check, known.fault)
    if wish.number:
        return await _chained(sample, material.concept, env, wish, known)
    return await _task(sample, env, [material.concept], _prompt(wish.item.function), [wish.item], known)


def _wishes(material: Material, env: SynthesisEnv) -> list[Wish]:
    most = env.config.max_prompt_chars
    usable = [i for i in material.functions if len(_prompt(i.function)) <= most and not no_oracle(i.function)]
    return [Wish(item, number) for item in usable for number in range(1 + CHAINED * _can_be_inner(item.function))]


def _order(seed: int, wish: Wish) -> tuple[int, int, str]:
    function = wish.item.function
    return wish.number, _length(function) // LENGTH_STEP, content_id("implement", str(seed), function.dotted)


def _length(function: Function) -> int:
    return len(function.slice.source) if function.slice else 0


async def _chained(sample: Sample, concept: Concept, env: SynthesisEnv, wish: Wish, inner: Probe) -> Task | Rejection:
    """Apply the first outer function that takes the inner one's results and leaves them different enough."""
    function = wish.item.function
    pool = {i.function.dotted: (c, i) for c, i in _outers(env)}
    order = sorted(pool, key=lambda dotted: content_id("outer", str(sample.seed), function.dotted, dotted))
    faults = [f"{function.dotted}: no outer function documented in the graph"]
    for dotted in order[wish.number - 1 :: CHAINED][:OUTERS]:
        other, item = pool[dotted]
        call = _arguments(function)
        work = (inner, item.function, call, function.signature, env.sandbox, env.config.least_tests)
        tried = await asyncio.to_thread(probe_chain, *work)
        if not tried.fault and len(tried.subject.reference) <= env.config.max_reference_chars:
            prompt = _chain_prompt(function, item.function, call)
            return await _task(sample, env, [concept, other], prompt, [wish.item, item], tried)
        faults.append(tried.fault or f"{tried.subject.label}: the reference is too long")
    return reject(sample, "oracle", faults[-1])


def _can_be_inner(function: Function) -> bool:
    return len(function.doc) <= DOC_CHARS and "..." not in function.signature


def _outers(env: SynthesisEnv) -> Iterator[tuple[Concept, PageFunction]]:
    """Functions that take one value and presuppose nothing about it."""
    for material in (env.material or {}).values():
        for item in material.functions:
            function = item.function
            takes = required(function.arguments)
            presupposes = PRESUPPOSES_ORDER.search(function.doc) or PRESUPPOSES_NUMBERS.search(function.doc)
            short = len(function.doc) <= DOC_CHARS and _length(function) <= OUTER_CHARS
            general = len(takes) == 1 and len(likely_kinds(takes[0], None)) > 1 and not presupposes
            if general and short and not no_oracle(function):
                yield material.concept, item


def _arguments(function: Function) -> str:
    """The parameters of a function, passed on: "a, b, *rest, key=key"."""
    arguments = function.arguments
    plain = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    rest = [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    named = [f"{a.arg}={a.arg}" for a in arguments.kwonlyargs]
    return ", ".join([*plain, *rest, *named, *([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])])


async def _task(
    sample: Sample,
    env: SynthesisEnv,
    concepts: Sequence[Concept],
    prompt: str,
    items: Sequence[PageFunction],
    known: Probe,
) -> Task | Rejection:
    subject = known.subject
    known, wrong = await asyncio.to_thread(_sharpened, known, env)
    most = min(env.config.most_tests, max(env.config.least_tests, len(known.trials) - SHOWN))
    first = choose_tests(known.trials, most // 3, rng_of(sample, "tests"))
    chosen = telling(known.trials, wrong, (), most, first)
    if echoed := _always_echoed([known.trials[n] for n in chosen]):
        return reject(
            sample, "wrong", f"{subject.label}: returning argument {echoed[0] + 1} as it came passes every test"
        )
    functions = [item.function for item in items]
    examples = _fitting(
        spare(known.trials, chosen, wrong, SHOWN), subject.name, env.config.max_prompt_chars - len(prompt)
    )
    if fault := says_too_little(functions, examples):
        return reject(sample, "material", fault)
    tests = [expectation(known.trials[n].call, known.trials[n].outcome) for n in chosen]
    params = {"name": subject.name, "tests": tests, "forbidden": list(subject.forbidden), "seconds": SECONDS}
    return build_task(
        sample,
        env,
        concepts=concepts,
        prompt=_with_calls(prompt, subject.name, examples),
        verifier=VerifierSpec(name="function_tests", params=params),
        reference=_reply(subject.reference),
        wrong=[_reply(source) for source in wrong_sources(known, chosen)],
        spans=list(dict.fromkeys(map(span_of, items))),
    )


def _sharpened(known: Probe, env: SynthesisEnv) -> tuple[Probe, list[Judged]]:
    """The same with more calls, and with wrong versions that these tell."""
    tried = try_bugs(known, env.sandbox, [mutant.source for mutant in known.mutants])
    wrong = sorted((judgement for judgement in tried.wrong if judgement.caught_by), key=lambda j: len(j.caught_by))
    mutants = tuple(Mutant(judgement.source, judgement.caught_by) for judgement in wrong)
    return replace(known, trials=tried.trials, mutants=mutants), wrong


def _prompt(function: Function) -> str:
    return (
        f"Write the Python function {function.name}{function.signature}. It behaves like {function.dotted}:\n\n"
        f"{_doc(function)}\n\nDo not import {function.module}. Write the source in <answer></answer>."
    )


def _with_calls(prompt: str, name: str, examples: Sequence[Trial]) -> str:
    """The calls stand before the last paragraph, which says how to answer."""
    told, _, ask = prompt.rpartition("\n\n")
    return f"{told}\n\n{HEADING}\n\n{worked(name, examples)}\n\n{ask}" if examples else prompt


def _fitting(examples: Sequence[Trial], name: str, room: int) -> list[Trial]:
    """The shortest of the examples, as many as there is room for, in their order."""
    kept = list(examples)
    while kept and len(f"\n\n{HEADING}\n\n{worked(name, kept)}") > room:
        kept.remove(max(kept, key=lambda trial: len(trial.key) + len(trial.result)))
    return kept


def _chain_prompt(inner: Function, outer: Function, call: str) -> str:
    modules = " or ".join(dict.fromkeys((inner.module, outer.module)))
    told = "\n\n".join(f"{f.dotted}{f.signature}: {_doc(f)}" for f in dict.fromkeys((inner, outer)))
    return (
        f"Write the Python function {CHAIN}{inner.signature}. It returns {outer.dotted}({inner.dotted}({call})):\n\n"
        f"{told}\n\nDo not import {modules}. Write the source in <answer></answer>."
    )


def _doc(function: Function) -> str:
    return textwrap.dedent(function.doc).strip()


def _reply(source: str) -> str:
    return answered(f"\n{source}\n")


def choose_tests(trials: Sequence[Trial], most: int, rng: random.Random) -> list[int]:
    """Numbers of trials: those that return no argument and those that do in turn, in each every different result once
    before any twice; a few documented exceptions."""
    order = rng.sample(range(len(trials)), len(trials))
    seen: Counter[str] = Counter()
    ranked = []
    for n in order:
        seen[trials[n].result] += 1
        ranked.append((seen[trials[n].result], n))
    returned = [n for _, n in sorted(ranked) if trials[n].outcome.kind == "returned"]
    raised = [n for _, n in sorted(ranked) if trials[n].outcome.kind == "raised"][:RAISING]
    echoes = [n for n in returned if _echoed(trials[n])]
    others = [n for n in returned if n not in set(echoes)]
    mixed = [n for pair in itertools.zip_longest(others, echoes) for n in pair if n is not None]
    return sorted([*mixed[: most - len(raised)], *raised])


def wrong_sources(known: Probe, chosen: Sequence[int]) -> Iterator[str]:
    """Sources that fail a chosen test, each for another reason."""
    trials = [known.trials[n] for n in chosen]
    head = f"def {known.subject.name}(*args, **kwargs):"
    commonest = Counter(_plain(t) for t in trials if t.outcome.kind == "returned").most_common(1)[0][0]
    yield f"{head}\n    return {commonest}"
    for position in range(min(len(trial.call.args) for trial in trials)):
        yield f"{head}\n    return args[{position}]"
    caught = [mutant.source for mutant in known.mutants if mutant.caught_by & set(chosen)]
    yield from caught[:MUTANTS]
    yield known.subject.real


def _always_echoed(trials: Sequence[Trial]) -> list[int]:
    """Positions of the arguments that are the result of every trial."""
    return sorted(set.intersection(*map(_echoed, trials)))


def _echoed(trial: Trial) -> set[int]:
    """Positions of the arguments that are the result."""
    result = _plain(trial) if trial.outcome.kind == "returned" else None
    return {position for position, value in enumerate(trial.call.args) if repr(value) == result}


def _plain(trial: Trial) -> str:
    return repr(decode(trial.outcome.value))


register(
    TaskType(
        name="implement",
        area="coding",
        why="Hidden tests are outputs of the documented function itself, compared outside the sandbox.",
        capacity=capacity,
        draft=draft,
    )
)
