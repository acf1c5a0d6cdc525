"""Predict tasks: what does the last line of an interactive session show?

Why the reward is unarguable: the answer is what CPython printed when the session was run in the sandbox, twice, in two
processes with different string hashing; it is never taken from the documentation's text. Sessions that fail, print
addresses, or read clocks, chance or the machine are not used. Sessions come from the examples of the cited page, as they
are or with changed literals, so that the printed answer is in no documentation. A literal is compared as a Python value of the same type, any other output as text.
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
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.material import Material
from kgsynth.synthesize.snippet import as_session, run_snippets, variations
from kgsynth.task import Task, VerifierSpec
from kgsynth.verifiers.literal import literal
from kgsynth.web import Page

VARIED = 2  # tasks with changed literals per documented example
TRIES = 8  # varied sessions run per draft
_LONG_FLOAT = re.compile(r"\d\.\d{7}|\de[-+]?\d")
_SETS = re.compile(r"\b(?:frozen)?set\(|\{[^:{}]*\}")

Session = tuple[str, ...]


@dataclass(frozen=True)
class Origin:
    """Where a session comes from: a documented example, as it is or varied."""

    page: Page
    start: int
    end: int
    statements: tuple[str, ...]
    lean: tuple[str, ...]
    number: int  # 0: as documented; 1, 2, ...: varied


def capacity(material: Material, env: SynthesisEnv) -> int:
    return len(_origins(material))


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    origins = sorted(_origins(material), key=lambda o: _order(sample.seed, o))
    if sample.variant >= len(origins):
        return reject(sample, "material", f"{len(origins)} interactive examples about {material.concept.name!r}")
    origin = origins[sample.variant]
    sessions = [origin.lean, origin.statements]
    if origin.number:
        sessions += variations(origin.lean, rng_of(sample, "vary"), TRIES)
    outputs = await asyncio.to_thread(run_snippets, sessions, env.sandbox)
    runs = [run for run in zip(sessions, outputs, strict=True) if run[1] is not None]
    usable = [(code, out) for code, out in runs if not _fault(code, out, env)]
    if origin.number:
        usable = [(code, out) for code, out in usable if code in sessions[2:] and out not in outputs[:2]]
    elif outputs[0] != outputs[1]:
        usable = [(code, out) for code, out in usable if code == origin.statements]
    if not usable:
        return reject(sample, "oracle", _why(sessions[0], runs, env))
    return _task(sample, env, material, origin, *usable[0], [out for _, out in usable[1:]])


def _origins(material: Material) -> list[Origin]:
    return [
        Origin(item.page, item.example.start, item.example.end, item.example.statements, item.example.lean, number)
        for item in material.examples
        for number in range(1 + VARIED)
    ]


def _order(seed: int, origin: Origin) -> tuple[int, str]:
    """As documented first, then varied; seeded within each."""
    return origin.number, content_id("predict", str(seed), origin.page.url, *origin.statements)


def _task(
    sample: Sample,
    env: SynthesisEnv,
    material: Material,
    origin: Origin,
    code: Session,
    output: str,
    others: list[str],
) -> Task | Rejection:
    value = output.strip("\n")
    prompt = (
        f"Python session:\n{as_session(code)}\nWhat does the last line print? "
        "Write exactly that, nothing else, in <answer></answer>."
    )
    wrong = [w for w in near_misses(value, rng_of(sample, "wrong")) if not same_output(w, value)]
    wrong += [o.strip("\n") for o in others if not same_output(o.strip("\n"), value)][:1]
    return build_task(
        sample,
        env,
        concepts=[material.concept],
        prompt=prompt,
        verifier=VerifierSpec(name="literal", params={"value": value}),
        reference=answered(value),
        wrong=[answered(w) for w in wrong],
        spans=[origin.page.source.span(origin.start, origin.end)],
    )


def _fault(code: Session, output: str, env: SynthesisEnv) -> str:
    """Why an output cannot be asked for; empty when it can."""
    text = output.strip("\n")
    if not text.strip():
        return "it prints nothing"
    if len(text) > env.config.max_output_chars or text.count("\n") > 3:
        return f"it prints {len(text)} characters"
    if " at 0x" in text or "<answer>" in text or "</answer>" in text:
        return "it prints an address or a tag"
    if text != text.strip() or any(line != line.rstrip() for line in text.split("\n")):
        return "its output has spaces at the edges, which an answer may lose"
    if _LONG_FLOAT.search(text):
        return "it prints a float of many digits"
    if any(map(_SETS.search, (*code, text))) and re.search(
        r"[A-Za-z'\"]", text.replace("True", "").replace("False", "")
    ):
        return "it prints something from a set of strings, whose order is not fixed"
    if text in code[-1] and sum(isinstance(n, ast.Constant) for n in ast.walk(ast.parse(code[-1]))) < 2:
        return "the output can be read off the last line"
    return ""


def _why(code: Session, runs: list[tuple[Session, str]], env: SynthesisEnv) -> str:
    faults = [fault for session, out in runs if (fault := _fault(session, out, env))]
    reason = (
        faults[0] if faults else "no variation prints anything new" if runs else "it fails, is slow, or does not repeat"
    )
    return f"session ending in {code[-1][:80]!r}: {reason}"


def same_output(given: str, value: str) -> bool:
    """Would the verifier take one for the other?"""
    return literal(answered(given), {"value": value}, None).score > 0


def near_misses(value: str, rng: random.Random) -> list[str]:
    """Up to three plausible wrong outputs: off by one, reversed, shortened, another type, another letter."""
    try:
        by_value = [repr(miss) for miss in _value_misses(ast.literal_eval(value))]
    except (ValueError, SyntaxError):
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
        yield from (value[::-1], value[:-1], value + value[-1:], value.swapcase())
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
