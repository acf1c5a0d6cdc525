"""Translate tasks: a library function from Python to JavaScript or C, or from one of these to Python.

Why the reward is unarguable: the hidden tests are outputs of the original, run in Python; the text that is shown and the reference
answer were both seen to agree with it on every one of them, in their own languages, and on every other call that was tried, at
the edges of 32 and 53 bits too. No call is left out but those with values outside the range that the prompt states; where the
languages differ, as in the division of negative numbers, the prompt says whose rules hold. Planted wrong
answers are the text unchanged, bugs of the reference ported with it, and the usual slips (`/` for `//`, `%` of negative
numbers, a sort by text), where a test tells them.

    easy     with the meaning of the arguments and three worked calls
    medium   without the calls
    hard     names that say nothing: f, v1, v2
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgsynth.errors import SandboxError
from kgsynth.sample import Sample
from kgsynth.sandbox import Sandbox
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.bugs import telling
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject
from kgsynth.synthesize.library import functions_about, probed, seeded, source_of, spans_of
from kgsynth.synthesize.material import Material, PageFunction
from kgsynth.synthesize.oracle import Trial, called, ended, main_definition
from kgsynth.synthesize.ported import Ported, may_be_ported, ported
from kgsynth.synthesize.porting import Kind, in_words
from kgsynth.task import DIFFICULTIES, Task, VerifierSpec
from kgsynth.verifiers.code.languages import require
from kgsynth.verifiers.code.source import tree_of
from kgsynth.verifiers.function_tests import Call, expectation

SECONDS = 5
EXAMPLES = 3
WRONG = 8
TITLES = {"python": "Python", "javascript": "JavaScript", "c": "C"}
_usable: weakref.WeakKeyDictionary[Sandbox, tuple[str, ...]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Wish:
    """A function, the language it is shown in and the one that is asked for; one of them is Python."""

    item: PageFunction
    shown: str
    wanted: str

    @property
    def other(self) -> str:
        return self.wanted if self.shown == "python" else self.shown


def languages(sandbox: Sandbox) -> tuple[str, ...]:
    """Those beside Python that the sandbox has; asked once."""
    if sandbox not in _usable:
        _usable[sandbox] = tuple(language for language in ("javascript", "c") if _has(language, sandbox))
    return _usable[sandbox]


def _has(language: str, sandbox: Sandbox) -> bool:
    try:
        require(language, sandbox)
    except SandboxError:
        return False
    return True


def capacity(material: Material, env: SynthesisEnv) -> int:
    return len(_wishes(material, env))


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    if not languages(env.sandbox):
        return reject(sample, "material", "the sandbox has neither node nor gcc: there is no language to translate to")
    wishes = _wishes(material, env)
    order = {wish: seeded("translate", sample.seed, wish.item.function.dotted) for wish in wishes}
    wishes.sort(key=lambda w: (_turn(sample.seed, w), order[w]))
    if sample.variant >= len(wishes):
        return reject(sample, "material", f"{len(wishes)} translations under {material.concept.name!r}")
    wish = wishes[sample.variant]
    known = await probed(wish.item.function, env)
    if known.fault:
        return reject(sample, known.check, known.fault)
    nameless = sample.difficulty == "hard"
    key = f"{wish.other} {nameless} {wish.item.function.dotted}"
    if key not in env.tried:
        work = asyncio.to_thread(ported, known, wish.other, nameless, env.sandbox)
        env.tried[key] = asyncio.ensure_future(work)
    made = await asyncio.shield(env.tried[key])
    return reject(sample, "reference", made) if isinstance(made, str) else _task(sample, material, env, wish, made)


def _turn(seed: int, wish: Wish) -> int:
    """Each function once in one of its directions before any twice; which comes first differs by function and seed."""
    directions = [("python", other) for other in ("javascript", "c")] + [
        (other, "python") for other in ("javascript", "c")
    ]
    directions.sort(key=lambda d: seeded("direction", seed, wish.item.function.dotted, *d))
    return directions.index((wish.shown, wish.wanted))


def _wishes(material: Material, env: SynthesisEnv) -> list[Wish]:
    items = functions_about(material, env, documented=False)
    found = languages(env.sandbox) if items else ()
    pairs = [(i, other) for i in items for other in found if may_be_ported(source_of(i.function), other)]
    return [Wish(i, *pair) for i, other in pairs for pair in (("python", other), (other, "python"))]


def _task(sample: Sample, material: Material, env: SynthesisEnv, wish: Wish, made: Ported) -> Task | Rejection:
    to_python = wish.wanted == "python"
    wrong = made.wrong_python if to_python else made.wrong_port
    chosen = telling(made.trials, [*wrong, *made.wrong_python], (), env.config.most_tests)
    caught = [judgement.source for judgement in wrong if judgement.caught_by & set(chosen)]
    stubborn = [
        stub for stub in made.wrong_python if not stub.caught_by & set(chosen) and "(*args, **kwargs)" in stub.source
    ]
    if not caught or stubborn:
        return reject(sample, "wrong", f"{wish.item.function.dotted}: too few calls tell a wrong translation")
    others = [n for n in range(len(made.trials)) if n not in chosen]
    texts = (made.port.source, made.python) if to_python else (made.python, made.port.source)
    return build_task(
        sample,
        env,
        concepts=[material.concept],
        prompt=_prompt(sample, wish, made, texts[0], [made.trials[n] for n in others[:EXAMPLES]]),
        verifier=VerifierSpec(name="function_tests", params=_params(wish, made, [made.trials[n] for n in chosen])),
        reference=_reply(texts[1]),
        wrong=[_reply(source) for source in _planted(wish, texts[0], caught)],
        spans=spans_of(wish.item, env),
        most_chars=env.config.max_prompt_chars + env.config.max_code_chars,
        hints={"shown_chars": len(texts[0])},
    )


def _planted(wish: Wish, shown: str, caught: Sequence[str]) -> list[str]:
    module, name = wish.item.function.module, wish.item.function.name
    cheat = [f"from {module} import {name} as f\nfrom {module} import {name}"] if wish.wanted == "python" else []
    return [*caught[: WRONG - 2], shown, *cheat]


def _params(wish: Wish, made: Ported, trials: Sequence[Trial]) -> dict[str, object]:
    params: dict[str, object] = {"name": made.name, "language": wish.wanted, "seconds": SECONDS}
    if wish.wanted == "python":
        tests = [expectation(t.call, t.outcome) for t in trials]
        return {**params, "tests": tests, "forbidden": [wish.item.function.module]}
    calls = [Call(args=made.port.arguments(t.call.args)) for t in trials]
    params["tests"] = [expectation(call, t.outcome) for call, t in zip(calls, trials, strict=True)]
    return params if made.port.signature is None else {**params, "signature": made.port.signature}


def _prompt(sample: Sample, wish: Wish, made: Ported, text: str, examples: Sequence[Trial]) -> str:
    source, target = TITLES[wish.shown], TITLES[wish.wanted]
    names = _parameters(made)
    declared = ", ".join(f"{name}: {in_words(kind)}" for name, kind in zip(names, made.kinds, strict=True))
    python = f"`{made.name}({declared}) -> {in_words(made.port.returns)}`"
    wanted = {"python": python, "javascript": f"`{made.name}({', '.join(names)})`", "c": f"`{made.port.head}`"}[
        wish.wanted
    ]
    typed = "" if wish.wanted == "python" else f" In terms of Python's types it is called as {python}."
    calls = "\n".join(f"* `{called(made.name, t.call)}` {ended(t, 's')}" for t in examples)
    worked = f"For example, written in Python:\n\n{calls}\n\n" if sample.difficulty == "easy" and examples else ""
    ban = f" Do not import {wish.item.function.module}." if wish.wanted == "python" else ""
    return (
        f"Translate this {source} code to {target}.\n\n```{wish.shown}\n{text}\n```\n\nYour code must define {wanted} and return the same "
        f"for the same arguments.{typed}{_lengths(wish, made)}{_range(wish, made)} Where the languages differ, as in the division of negative "
        f"numbers, do what the {source} code does; arguments that make it fail are not tested.\n\n{worked}"
        f"Write the complete {target} code in <answer></answer>.{ban}"
    )


def _parameters(made: Ported) -> list[str]:
    return [a.arg for a in main_definition(tree_of(made.python), made.name).args.args]


def _lengths(wish: Wish, made: Ported) -> str:
    """What C has that Python has not."""
    if wish.other != "c":
        return ""
    lists = [name for name, kind in zip(_parameters(made), made.kinds, strict=True) if kind.name == "list"]
    told = "".join(f" `n_{name}` is the length of `{name}`." for name in lists)
    if made.port.returns.name == "tuple":
        told += f" The {len(made.port.returns.items)} values of the result are written to `out` in C."
    return told


def _range(wish: Wish, made: Ported) -> str:
    """What the values of the calls are, where not every value of Python is one of both languages."""
    inside = {k.name for kind in (*made.kinds, made.port.returns) for k in _kinds_in(kind)}
    numbers = " Whole numbers are at most 2**53 - 1 in size, in arguments and results." if "int" in inside else ""
    texts = " Text is ASCII, without the character 0." if wish.other == "c" and inside & {"str", "char"} else ""
    return numbers + texts


def _kinds_in(kind: Kind) -> Iterator[Kind]:
    yield kind
    for item in kind.items:
        yield from _kinds_in(item)


def _reply(source: str) -> str:
    return answered(f"\n{source}\n")


register(
    TaskType(
        name="translate",
        area="coding",
        why="Hidden tests are outputs of the original, on which the shown text and the reference were seen to agree.",
        capacity=capacity,
        draft=draft,
        difficulties=DIFFICULTIES,
    )
)
