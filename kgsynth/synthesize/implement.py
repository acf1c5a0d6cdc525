"""Implement tasks: write a documented standard-library function without its module.

Why the reward is unarguable: the specification is the function's own documentation, and every hidden test is an output of
the real function, run in the sandbox. Only calls count whose result is the same in two processes, in any order, and from a
second, pure-Python version (the reference); exceptions are tested only where the documentation names them. The module
itself is a forbidden import, so that `from heapq import merge` earns nothing. Planted wrong answers are a constant, the
first argument, a mutant of the reference that fails a test of the task, and that import.
"""

from __future__ import annotations

import asyncio
import random
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from kgsynth.concept import SourceSpan, content_id
from kgsynth.sample import Sample
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.material import Material, PageFunction
from kgsynth.synthesize.oracle import Probe, Trial, probe
from kgsynth.synthesize.stdlib import Function
from kgsynth.task import Task, VerifierSpec
from kgsynth.verifiers.function_tests import expectation
from kgsynth.verifiers.values import decode

SECONDS = 5
RAISING = 2  # tests that expect an exception, at most
LENGTH_STEP = 200  # references are drawn in steps of this many characters, short ones first


def capacity(material: Material, env: SynthesisEnv) -> int:
    return len(_usable(material, env))


def _usable(material: Material, env: SynthesisEnv) -> list[PageFunction]:
    return [item for item in material.functions if len(_prompt(item.function)) <= env.config.max_prompt_chars]


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    found = sorted(_usable(material, env), key=lambda item: _order(sample.seed, item.function))
    if sample.variant >= len(found):
        return reject(sample, "material", f"{len(found)} pure functions documented under {material.concept.name!r}")
    item = found[sample.variant]
    probed = await _probed(item.function, env)
    if probed.fault:
        return reject(sample, probed.check, probed.fault)
    return _task(sample, env, material, item, probed)


def _order(seed: int, function: Function) -> tuple[int, str]:
    return _length(function) // LENGTH_STEP, content_id("implement", str(seed), function.dotted)


def _length(function: Function) -> int:
    return len(function.slice.source) if function.slice else 0


async def _probed(function: Function, env: SynthesisEnv) -> Probe:
    """Probed once per run; drafts that want the same function at the same time wait for one probe."""
    if function.dotted not in env.probes:
        work = asyncio.to_thread(probe, function, env.sandbox, env.config.least_tests)
        env.probes[function.dotted] = asyncio.ensure_future(work)
    return await asyncio.shield(env.probes[function.dotted])


def _task(sample: Sample, env: SynthesisEnv, material: Material, item: PageFunction, probed: Probe) -> Task | Rejection:
    function = item.function
    assert function.slice is not None, function.dotted
    chosen = choose_tests(probed.trials, env.config.most_tests, rng_of(sample, "tests"))
    tests = [expectation(probed.trials[n].call, probed.trials[n].outcome) for n in chosen]
    params = {"name": function.name, "tests": tests, "forbidden": [function.module], "seconds": SECONDS}
    return build_task(
        sample,
        env,
        concepts=[material.concept],
        prompt=_prompt(function),
        verifier=VerifierSpec(name="function_tests", params=params),
        reference=_reply(function.slice.source),
        wrong=[_reply(source) for source in wrong_sources(function, probed, chosen)],
        spans=[_span(item)],
    )


def _prompt(function: Function) -> str:
    return (
        f"Write the Python function {function.name}{function.signature}. It behaves like {function.dotted}:\n\n"
        f"{textwrap.dedent(function.doc).strip()}\n\n"
        f"Do not import {function.module}. Write the source in <answer></answer>."
    )


def _reply(source: str) -> str:
    return answered(f"\n{source}\n")


def _span(item: PageFunction) -> SourceSpan:
    """The page from where the documentation text begins."""
    text = item.page.source.text
    opening = r"\s+".join(map(re.escape, item.function.doc.split()[:4]))
    match = re.search(opening, text)
    start = match.start() if match else 0
    return item.page.source.span(start, min(len(text), start + max(200, len(item.function.doc))))


def choose_tests(trials: Sequence[Trial], most: int, rng: random.Random) -> list[int]:
    """Numbers of trials: every different result once before any twice, results that are not the first argument first,
    a few documented exceptions."""
    order = rng.sample(range(len(trials)), len(trials))
    seen: Counter[str] = Counter()
    ranked = []
    for n in order:
        seen[trials[n].result] += 1
        ranked.append((seen[trials[n].result], _is_echo(trials[n]), n))
    returned = [n for *_, n in sorted(ranked) if trials[n].outcome.kind == "returned"]
    raised = [n for *_, n in sorted(ranked) if trials[n].outcome.kind == "raised"][:RAISING]
    return sorted([*returned[: most - len(raised)], *raised])


def wrong_sources(function: Function, probed: Probe, chosen: Sequence[int]) -> Iterator[str]:
    """Sources that fail a chosen test, each for another reason."""
    trials = [probed.trials[n] for n in chosen]
    head = f"def {function.name}(*args, **kwargs):"
    commonest = Counter(_plain(t) for t in trials if t.outcome.kind == "returned").most_common(1)[0][0]
    yield f"{head}\n    return {commonest}"
    if not all(map(_is_echo, trials)):
        yield f"{head}\n    return args[0]"
    caught = [mutant.source for mutant in probed.mutants if mutant.caught_by & set(chosen)]
    yield from caught[:2]
    yield f"from {function.module} import {function.name}"


def _is_echo(trial: Trial) -> bool:
    """Is the result the first argument?"""
    return trial.outcome.kind == "returned" and bool(trial.call.args) and _plain(trial) == repr(trial.call.args[0])


def _plain(trial: Trial) -> str:
    return repr(decode(trial.outcome.value))
