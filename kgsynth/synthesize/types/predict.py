"""Predict tasks: what does the last line of an interactive session show?

Why the reward is unarguable: the answer is what CPython printed when the session was run in the sandbox, twice, in two
processes with different string hashing; it is never taken from the documentation's text. Sessions that fail, print
addresses, or read clocks, chance or the machine are not used. Sessions come from the examples of the cited page, as they
are or with changed literals so that the printed answer is in no documentation, and from calls of a documented function. A literal is compared as a Python value of the same type, any other output as text.
"""

from __future__ import annotations

import ast
import asyncio
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kgsynth.concept import content_id
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.material import Material
from kgsynth.synthesize.oracle import Trial, called, known_calls
from kgsynth.synthesize.snippet import UNREPEATABLE, Example, as_session, run_snippets, variations
from kgsynth.synthesize.stdlib import Function
from kgsynth.task import Task, VerifierSpec
from kgsynth.verifiers.code.source import parse, tree_of
from kgsynth.verifiers.literal import literal
from kgsynth.web import Page

VARIED = 2  # tasks with changed literals per documented example
CALLS = 3  # tasks per documented function
CITED = 600  # characters of a function's page that are cited
DULL = frozenset({"''", "b''", "[]", "()", "{}", "0", "False"})  # asked for only when there is no other output
LONG_COPY = 12  # characters; shorter outputs stand in the session by chance
TRIES = 8  # varied sessions run per draft
_LONG_FLOAT = re.compile(r"\d\.\d{7}|\de[-+]?\d")

Session = tuple[str, ...]


Run = tuple[Session, str]  # a session and what its last line printed


@dataclass(frozen=True)
class Origin:
    """Where sessions come from: a documented example as it is (number 0) or varied, or calls of a function."""

    page: Page
    start: int
    end: int
    subject: Example | Function
    number: int


def capacity(material: Material, env: SynthesisEnv) -> int:
    return len(_origins(material))


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    origins = sorted(_origins(material), key=lambda o: _order(sample.seed, o))
    if sample.variant >= len(origins):
        return reject(sample, "material", f"{len(origins)} examples and functions about {material.concept.name!r}")
    origin = origins[sample.variant]
    runs = (
        await _called(sample, origin.subject, env)
        if isinstance(origin.subject, Function)
        else await _shown(sample, origin, env)
    )
    usable = [(code, out) for code, out in runs if not _fault(code, out, env)]
    if not usable:
        return reject(sample, "oracle", _why(origin.subject, runs, env))
    return _task(sample, env, material, origin, usable)


def _origins(material: Material) -> list[Origin]:
    documented = [
        Origin(item.page, item.example.start, item.example.end, item.example, number)
        for item in material.examples
        for number in range(1 + VARIED)
    ]
    called = [
        Origin(item.page, 0, min(len(item.page.source.text), CITED), item.function, number)
        for item in material.calls
        if item.function.name not in UNREPEATABLE
        for number in range(1, 1 + CALLS)
    ]
    return documented + called


def _order(seed: int, origin: Origin) -> tuple[int, str]:
    """As documented first, then the others; seeded within each."""
    return origin.number, content_id("predict", str(seed), origin.page.url, repr(origin.subject))


async def _shown(sample: Sample, origin: Origin, env: SynthesisEnv) -> list[Run]:
    """A documented session in its lean form where that makes no difference; or variations that print something else."""
    assert isinstance(origin.subject, Example)
    lean, full = origin.subject.lean, origin.subject.statements
    varied = variations(lean, rng_of(sample, "vary"), TRIES) if origin.number else []
    outputs = await asyncio.to_thread(run_snippets, [lean, full, *varied], env.sandbox)
    known = outputs[:2]
    if not origin.number:
        return _ran([lean if known[0] == known[1] else full], known[1:])
    new = [None if out in known else out for out in outputs[2:]]
    return _ran(varied, new)


async def _called(sample: Sample, function: Function, env: SynthesisEnv) -> list[Run]:
    """A few calls of a function, with inputs that it is known to accept."""
    trials = await _known_calls(function, env)
    returned = [t for t in trials if t.outcome.kind == "returned"]
    chosen = rng_of(sample, "calls").sample(returned, min(TRIES, len(returned)))
    sessions = [_call_session(function, trial) for trial in chosen]
    runs = _ran(sessions, await asyncio.to_thread(run_snippets, sessions, env.sandbox))
    return sorted(runs, key=lambda run: run[1].strip() in DULL or run[1].strip() in run[0][-1])


async def _known_calls(function: Function, env: SynthesisEnv) -> list[Trial]:
    if function.dotted not in env.calls:
        env.calls[function.dotted] = asyncio.ensure_future(asyncio.to_thread(known_calls, function, env.sandbox))
    return await asyncio.shield(env.calls[function.dotted])


def _call_session(function: Function, trial: Trial) -> Session:
    call = called(function.name, trial.call)
    return (call,) if function.module == "builtins" else (f"from {function.module} import {function.name}", call)


def _ran(sessions: list[Session], outputs: list[str | None]) -> list[Run]:
    return [(code, out) for code, out in zip(sessions, outputs, strict=True) if out is not None]


def _task(sample: Sample, env: SynthesisEnv, material: Material, origin: Origin, usable: list[Run]) -> Task | Rejection:
    (code, output), *others = usable
    value = output.strip("\n")
    prompt = (
        f"Python session:\n{as_session(code)}\nWhat does the last line print? "
        "Write exactly that, nothing else, in <answer></answer>."
    )
    neighbours = [other for _, out in others if not same_output(other := out.strip("\n"), value)]
    return build_task(
        sample,
        env,
        concepts=[material.concept],
        prompt=prompt,
        verifier=VerifierSpec(name="literal", params={"value": value}),
        reference=answered(value),
        wrong=[answered(w) for w in (*near_misses(value, rng_of(sample, "wrong")), *neighbours[:1])],
        spans=[origin.page.source.span(origin.start, origin.end)],
    )


def _fault(code: Session, output: str, env: SynthesisEnv) -> str:
    """Why an output cannot be asked for; empty when it can."""
    text = output.strip("\n")
    faults = {
        "it prints nothing": not text.strip(),
        f"it prints {len(text)} characters": len(text) > env.config.max_output_chars or text.count("\n") > 3,
        "it prints an address or a tag": " at 0x" in text or "answer>" in text,
        "its output has spaces at the edges, which an answer may lose": any(t != t.strip() for t in text.split("\n")),
        "it prints a float of many digits": bool(_LONG_FLOAT.search(text)),
        "it prints something from a set of strings, whose order is not fixed": _unordered(code, text),
        "the output can be read off the session": _copied(code, text),
    }
    return next((fault for fault, found in faults.items() if found), "")


def _unordered(code: Session, text: str) -> bool:
    """Does a set take part, and does the output hold text, whose hashes differ from process to process?"""
    nodes = list(ast.walk(tree_of("\n".join(code))))
    named = any(isinstance(n, ast.Name) and n.id in ("set", "frozenset") for n in nodes)
    sets = named or "set(" in text or any(isinstance(n, ast.Set | ast.SetComp) for n in nodes)
    return sets and bool(re.search(r"[A-Za-z'\"]", text.replace("True", "").replace("False", "")))


def _copied(code: Session, text: str) -> bool:
    """Does the printed text stand in the code, where there is little else to choose from, or is it long, or is it what
    was asked for, or the one argument of a call?"""
    nodes = list(ast.walk(tree_of(code[-1])))
    literals = sum(isinstance(node, ast.Constant) for node in nodes)
    wholes = [n.value for n in nodes if isinstance(n, ast.Expr)]
    wholes += [n.args[0] for n in nodes if isinstance(n, ast.Call) and len(n.args) == 1 and not n.keywords]
    if text.strip() and any(same_output(ast.unparse(whole), text) for whole in wholes):
        return True
    return text in "\n".join(code) and (literals < 2 or len(text) >= LONG_COPY)


def _why(subject: Example | Function, runs: list[Run], env: SynthesisEnv) -> str:
    shown = f"session ending in {subject.lean[-1][:80]!r}" if isinstance(subject, Example) else subject.dotted
    reasons = [_fault(code, out, env) for code, out in runs]
    return f"{shown}: {reasons[0] if reasons else 'it fails, is slow, does not repeat or prints nothing new'}"


def same_output(given: str, value: str) -> bool:
    """Would the verifier take one for the other?"""
    return literal(answered(given), {"value": value}, None).score > 0


def near_misses(value: str, rng: random.Random) -> list[str]:
    """Up to three plausible wrong outputs: off by one, reversed, shortened, another type, another letter."""
    try:
        by_value = [repr(miss) for miss in _value_misses(ast.literal_eval(parse(value, "eval")))]
    except ValueError:
        by_value = []
    rng.shuffle(by_value)
    candidates = [*by_value, *_text_misses(value)]
    return [c for c in dict.fromkeys(candidates) if c.strip() and not same_output(c, value)][:3]


def _value_misses(value: object) -> Iterator[object]:
    if isinstance(value, bool) or value is None:
        yield from (not value, 0, 1)
    elif isinstance(value, int | float | complex):
        yield from (value + 1, value - 1, -value, str(value))
    elif isinstance(value, str | bytes):
        yield from (value[::-1], value[:-1], value.swapcase())
    elif isinstance(value, list | tuple):
        other = tuple(value) if isinstance(value, list) else list(value)
        yield from (value[::-1], value[:-1], other)
        yield from (type(value)([miss, *value[1:]]) for miss in (_value_misses(value[0]) if value else [[0]]))
    elif isinstance(value, dict):
        yield from (
            dict(list(value.items())[:-1]),
            list(value),
            {v: k for k, v in value.items() if isinstance(v, str | int)},
        )
    elif isinstance(value, set | frozenset):
        yield from (list(value), set(list(value)[:-1]))


def _text_misses(value: str) -> Iterator[str]:
    yield value[:-1]
    yield value + value[-1]
    yield repr(value)
    yield value.swapcase()


register(
    TaskType(
        name="predict",
        area="coding",
        why="The answer is what running the session printed, twice.",
        capacity=capacity,
        draft=draft,
    )
)
