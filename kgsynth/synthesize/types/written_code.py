"""Functions to write from a specification that a language model wrote, with its own reference and its own test inputs.

Why the reward is unarguable: the model says what to compute and on which inputs; what comes out is never its word, but what
its reference returns in the sandbox, twice, with different string hashing and in opposite order. Some of these calls are
shown in the prompt as examples, the others are hidden. Tests that tell nothing are refused: a constant, an argument
as it came, and at least half of the bugs that can be planted into the reference must fail, and so must every wrong solution
that the model wrote. Whether the specification says what the reference does is for independent solvers to find
(`kgsynth.consensus`).
"""

from __future__ import annotations

import ast
import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from kgsynth.concept import Concept
from kgsynth.errors import ValidationError
from kgsynth.llm import Question
from kgsynth.llm.questions import quoted
from kgsynth.retrieve import Passage
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.asking import Source, asked_of, passages_of
from kgsynth.synthesize.bugs import bugs, judged
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.evidence import DIFFICULTY, SYSTEM, Quote, check_question, cited
from kgsynth.synthesize.material import Material
from kgsynth.synthesize.oracle import Trial
from kgsynth.task import Task, VerifierSpec
from kgsynth.verifiers.code.source import tree_of
from kgsynth.verifiers.code.values import decode
from kgsynth.verifiers.function_tests import Call, expectation, run_calls

MOST = 2  # tasks about a concept
SECONDS = 5
EXAMPLES = 2  # calls shown in the prompt
SHOWN = 120  # characters of a call or a result that is shown
BUGS = 12  # tried against the tests
CAUGHT = 0.5  # share of them that the tests must catch


class WrittenCode(BaseModel):
    """A function to write, a reference for it, and calls to test it with."""

    name: str = Field(pattern=r"^[a-z_][a-z0-9_]{1,40}$", description="of the function")
    specification: str = Field(
        min_length=60,
        max_length=900,
        description="everything a programmer must know, with every edge case that is tested",
    )
    reference: str = Field(min_length=20, max_length=2000, description="its Python source, without comments")
    calls: list[str] = Field(
        min_length=8, max_length=24, description="calls with literal arguments, e.g. 'f([3, 1], key=2)': edge cases too"
    )
    wrong: list[str] = Field(
        min_length=1, max_length=4, description="sources with a mistake that people make, each failing one of the calls"
    )
    evidence: list[Quote] = Field(min_length=1, max_length=3, description="the words of a passage that state the rule")


@dataclass(frozen=True, kw_only=True)
class WriteFunction(Question[WrittenCode]):
    """Write a function task that applies what these passages say about a concept."""

    reply: ClassVar[type[BaseModel]] = WrittenCode
    stage: ClassVar[str] = "synthesize"
    concept: Concept
    ancestors: tuple[Concept, ...]
    passages: tuple[Passage, ...]
    variant: int = 0
    difficulty: str = "medium"

    def messages(self) -> list[dict[str, str]]:
        path = " > ".join([*(a.name for a in reversed(self.ancestors)), self.concept.name])
        passages = "\n\n".join(quoted("passage", i, p.span.text, title=p.title) for i, p in enumerate(self.passages))
        wish = (
            "Write a task that asks for one pure Python function which applies a rule that a passage states. The specification is "
            "complete: types, rounding, order of results, what happens for empty and impossible input. It names no passage and "
            "holds no source. The function reads and changes nothing but its arguments and returns plain values (numbers, text, "
            "lists, tuples, dicts, sets, None). The reference does what the specification says and imports nothing but math, "
            f"fractions, itertools, collections, re and string. {DIFFICULTY[self.difficulty]} Number {self.variant + 1} about "
            "this concept: leave the obvious first ideas to the others."
        )
        about = f"Concept: {path}"
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"{about}\n\n{passages}\n\n{wish}"}]


def capacity(material: Material, env: SynthesisEnv) -> int:
    return MOST if env.llm.uses_model and material.pages else 0


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    try:
        source = await passages_of(sample, [material.concept], env)
        question = WriteFunction(
            concept=material.concept, ancestors=source.ancestors, passages=source.passages,
            variant=sample.variant, difficulty=sample.difficulty,
        )  # fmt: skip
        reply = await asked_of(question, env)
        return await asyncio.to_thread(_made, sample, env, source, reply)
    except ValidationError as error:
        return reject(sample, error.check, str(error))


def _made(sample: Sample, env: SynthesisEnv, source: Source, reply: WrittenCode) -> Task | Rejection:
    """Raises ValidationError."""
    spans = cited(reply.evidence, source.passages)
    check_question(reply.specification, ())
    signature = _signature(reply)
    trials = _trials(reply, env)
    order = rng_of(sample, "tests").sample(range(len(trials)), len(trials))
    shown = [trials[n] for n in order if _is_short(trials[n])][:EXAMPLES]
    hidden = [trials[n] for n in order if trials[n] not in shown][: env.config.most_tests]
    if len(hidden) < env.config.least_tests:
        raise ValidationError(
            "oracle", f"{len(trials)} calls end the same every time, {len(hidden)} can be hidden tests"
        )
    wrong = [*_stubs(reply.name, hidden), *reply.wrong, *_caught(reply, hidden, env)]
    examples = "\n".join(f">>> {_text(reply.name, t.call)}\n{decode(t.outcome.value)!r}" for t in shown)
    return build_task(
        sample,
        env,
        concepts=source.concepts,
        prompt=f"Write the Python function {signature}. {reply.specification.strip()}\n\n{examples}\n\n"
        "Write the source in <answer></answer>.",
        verifier=VerifierSpec(
            name="function_tests",
            params={"name": reply.name, "tests": [expectation(t.call, t.outcome) for t in hidden], "seconds": SECONDS},
        ),
        reference=answered(f"\n{reply.reference.strip()}\n"),
        wrong=[answered(f"\n{source.strip()}\n") for source in wrong[:10]],
        spans=list(dict.fromkeys(spans)),
        author=env.llm.name,
    )  # fmt: skip


def _signature(reply: WrittenCode) -> str:
    """`name(arguments)` of the reference. Raises ValidationError "reference"."""
    try:
        body = tree_of(reply.reference).body
    except ValueError as error:
        raise ValidationError("reference", f"the reference is no Python: {error}") from error
    found = next((n for n in body if isinstance(n, ast.FunctionDef) and n.name == reply.name), None)
    if found is None:
        raise ValidationError("reference", f"the reference defines no function {reply.name}")
    return f"{reply.name}({ast.unparse(found.args)})"


def _trials(reply: WrittenCode, env: SynthesisEnv) -> list[Trial]:
    """The calls that end the same twice: with a value, or with an exception that the specification names."""
    calls = list({_text(reply.name, call): call for call in map(_call, reply.calls)}.values())
    once = run_calls(reply.reference, reply.name, calls, env.sandbox, seconds=SECONDS, hash_seed=1)
    again = run_calls(reply.reference, reply.name, calls[::-1], env.sandbox, seconds=SECONDS, hash_seed=2)[::-1]
    trials = [Trial(call, outcome) for call, outcome in zip(calls, once, strict=True)]
    kept = [t for t, other in zip(trials, again, strict=True) if t.agrees(other) and _is_specified(t, reply)]
    results = Counter(t.result for t in kept)
    if len(results) < 3 and not (len(results) == 2 and min(results.values()) >= 3):
        raise ValidationError(
            "vacuous" if kept else "oracle", f"{len(kept)} calls end well, with {len(results)} results"
        )
    return kept


def _call(text: str) -> Call:
    """Raises ValidationError "form" for anything but a call with literal arguments."""
    try:
        (node,) = tree_of(text.strip()).body
        call = getattr(node, "value", None)
        if not isinstance(call, ast.Call) or any(keyword.arg is None for keyword in call.keywords):
            raise ValueError("no plain call")
        kwargs = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        return Call(args=[ast.literal_eval(argument) for argument in call.args], kwargs=kwargs)
    except (ValueError, TypeError) as error:
        raise ValidationError("form", f"{text[:80]!r} is no call with literal arguments: {error}") from error


def _is_specified(trial: Trial, reply: WrittenCode) -> bool:
    raised = trial.outcome.kind == "raised" and re.search(rf"\b{trial.outcome.detail}\b", reply.specification)
    return trial.outcome.kind == "returned" or bool(raised)


def _is_short(trial: Trial) -> bool:
    return trial.outcome.kind == "returned" and len(trial.key) <= SHOWN and len(trial.result) <= SHOWN


def _text(name: str, call: Call) -> str:
    arguments = [*map(repr, call.args), *(f"{key}={value!r}" for key, value in call.kwargs.items())]
    return f"{name}({', '.join(arguments)})"


def _stubs(name: str, hidden: Sequence[Trial]) -> list[str]:
    """The commonest result, and each argument as it came. Raises ValidationError "vacuous" when one passes every test."""
    results = [repr(decode(t.outcome.value)) if t.outcome.kind == "returned" else None for t in hidden]
    for position in range(min(len(t.call.args) for t in hidden)):
        if [repr(t.call.args[position]) for t in hidden] == results:
            raise ValidationError("vacuous", f"returning argument {position + 1} as it came passes every test")
    head = f"def {name}(*args, **kwargs):\n    return"
    commonest = Counter(filter(None, results)).most_common(1)
    echoes = [f"{head} args[{position}]" for position in range(min(1, *(len(t.call.args) for t in hidden)))]
    return [*(f"{head} {value}" for value, _ in commonest), *echoes]


def _caught(reply: WrittenCode, hidden: Sequence[Trial], env: SynthesisEnv) -> list[str]:
    """Sources with a bug that the tests catch, the hardest to catch first. Raises ValidationError "vacuous"."""
    planted: list[Any] = bugs(reply.reference)
    some = planted[:: max(1, -(-len(planted) // BUGS))]
    found = [j for j in judged([bug.source for bug in some], reply.name, hidden, env.sandbox) if j is not None]
    caught = sorted((j for j in found if j.caught_by), key=lambda j: len(j.caught_by))
    if len(caught) < CAUGHT * len(found) or not caught:
        raise ValidationError(
            "vacuous", f"the tests catch {len(caught)} of {len(found)} bugs planted into the reference"
        )
    return [j.source for j in caught[:4]]


register(
    TaskType(
        name="written_code",
        area="coding",
        why="Hidden tests are what the reference returns in the sandbox; bugs planted into it fail them.",
        capacity=capacity,
        draft=draft,
        difficulties=("easy", "medium", "hard"),
        uses_model=True,
    )
)
