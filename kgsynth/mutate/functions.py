"""`function_tests` and `properties`: the reference rewritten, and mutants of it.

A mutant that passes is run against the reference on inputs that no test has: it is equivalent when nothing tells them apart.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kgsynth.mutate import Mutator, Named, Variant, inside, other_code, python_code, register, rng_of
from kgsynth.mutate.inputs import Given, fresh
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task, VerifierSpec
from kgsynth.verifiers import verify
from kgsynth.verifiers.code.asked import language_of
from kgsynth.verifiers.code.calls import Call, Outcome, run_calls
from kgsynth.verifiers.code.source import read
from kgsynth.verifiers.code.values import decode, same
from kgsynth.verifiers.function_tests import whole

FRESH = 80  # inputs that a mutant is run on
SECONDS = 10.0
CASES = 200  # of a property


def right_code(task: Task, rng: random.Random) -> Iterator[Named]:
    source = read(inside(task.reference))
    if language_of(task) == "python":
        yield from python_code.rewritten(source, str(task.verifier.params.get("name", "")), rng)
    else:
        yield from other_code.rewritten(source, rng)


def wrong_code(task: Task, rng: random.Random) -> Iterator[Named]:
    """Mutants, every fifth a function that does nothing of what was asked for."""
    source, name = read(inside(task.reference)), str(task.verifier.params["name"])
    if language_of(task) != "python":
        yield from other_code.mutants(source, language_of(task), rng)
        return
    stubs = itertools.chain(_one_test(task), python_code.stubs(name, _arity(task), rng))
    for i, mutant in enumerate(python_code.mutants(source, name, rng)):
        if i % 5 == 3:
            yield from (stub for stub, _ in zip(stubs, [0], strict=False))
        yield mutant
    yield from stubs


def _one_test(task: Task) -> Iterator[Named]:
    """Right for the first test, and nothing for all others."""
    test = next(iter(task.verifier.params.get("tests", [])), {})
    if "expect" in test:
        (args, kwargs), value = known_inputs(task)[0], decode(test["expect"])
        head = f"def {task.verifier.params['name']}(*args, **kwargs):\n    if repr((args, kwargs)) == {repr((args, kwargs))!r}:\n"
        yield "right for one test only", f"{head}        return {value!r}\n    return None\n"


def _arity(task: Task) -> int:
    tests = task.verifier.params.get("tests")
    if not tests:
        return len(task.verifier.params["inputs"])
    return max(len(args) + len(kwargs) for args, kwargs in known_inputs(task))


def known_inputs(task: Task) -> list[Given]:
    """The arguments of the hidden tests."""
    tests = task.verifier.params["tests"]
    return [(tuple(decode(test["args"])), decode(test.get("kwargs", ["dict"]))) for test in tests]


def apart_by_calls(task: Task, variant: Variant, sandbox: Sandbox) -> str:
    """An input on which the reference returns, and the answer does something else."""
    params, rng = task.verifier.params, rng_of(task, 0, "fresh inputs")
    given = fresh(known_inputs(task), rng, FRESH)
    ours, theirs = (
        _outcomes(read(text), task, given, sandbox) for text in (inside(task.reference), inside(variant.answer))
    )
    loose = language_of(task) != "python"
    for (args, kwargs), wanted, got in zip(given, ours, theirs, strict=True):
        if wanted.kind == "returned" and got.detail not in ("timeout", "not run") and not _alike(wanted, got, loose):
            shown = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())])
            return f"{params['name']}({shown[:160]}) is another"
    return ""


def _outcomes(source: str, task: Task, given: Sequence[Given], sandbox: Sandbox) -> list[Outcome]:
    params, language = task.verifier.params, language_of(task)
    calls = [Call(args=args, kwargs=kwargs) for args, kwargs in given]
    hash_seed = 1 if language == "python" else None
    return run_calls(
        whole(source, params), params["name"], calls, sandbox,
        seconds=SECONDS, language=language, signature=params.get("signature"), hash_seed=hash_seed,
    )  # fmt: skip


def _alike(a: Outcome, b: Outcome, loose: bool) -> bool:
    return (a.kind, a.detail) == (b.kind, b.detail) and same(a.value, b.value, loose=loose)


def apart_by_properties(task: Task, variant: Variant, sandbox: Sandbox) -> str:
    """Whether more cases of another seed break a property, which the reference keeps there."""
    params = {**task.verifier.params, "seed": int(task.verifier.params["seed"]) + 7919, "cases": CASES}
    wider = replace(task, verifier=VerifierSpec(name="properties", params=params))
    if verify(task.reference, wider, sandbox).score < 1:
        return ""
    verdict = verify(variant.answer, wider, sandbox)
    return "" if verdict.score >= 1 else f"{verdict.reason} in case {verdict.evidence.get('case')} of {CASES} others"


register(Mutator(verifier="function_tests", right=right_code, wrong=wrong_code, apart=apart_by_calls))
register(Mutator(verifier="properties", right=right_code, wrong=wrong_code, apart=apart_by_properties))
