"""Complete tasks: write the one function whose body was taken out of a module of the standard library.

Why the reward is unarguable: the hidden tests are outputs of the module as it was, called at the function itself or at a
function of the module that reaches it; every one of them changes when the function does nothing. The answer stands in the
module where the original stood, and may not import it. Mutants of the original that a hidden test tells are planted as
wrong, with stubs. The documentation is the module's own, and worked calls say what it leaves open.

    easy     the module as far as it is needed, five worked calls
    medium   the same, three worked calls
    hard     of the other functions only the signatures, two worked calls
"""

from __future__ import annotations

import ast
import asyncio
import copy
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.bugs import Judged, Tried, judged, telling
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject
from kgsynth.synthesize.library import (
    functions_about,
    module_functions,
    says_too_little,
    seeded,
    source_of,
    spans_of,
    spare,
    tried,
    worked,
)
from kgsynth.synthesize.material import Material, PageFunction
from kgsynth.synthesize.oracle import Trial
from kgsynth.synthesize.stdlib import Function, source_path
from kgsynth.task import DIFFICULTIES, Task, VerifierSpec
from kgsynth.verifiers.code.source import tree_of
from kgsynth.verifiers.function_tests import expectation

SECONDS = 5
SHOWN = {"easy": 5, "medium": 3, "hard": 2}  # worked calls
LEAST_DOC = 45  # characters: less leaves too much open
WRONG = 8


@dataclass(frozen=True)
class Wish:
    """A function to be written, the function that the tests call (itself, or one that reaches it), and the one whose
    slice of the module is shown."""

    item: PageFunction
    entry: Function
    around: Function

    @property
    def is_bare(self) -> bool:
        """Is there nothing else of the module to see?"""
        return len(tree_of(source_of(self.around)).body) == 1


@dataclass(frozen=True, kw_only=True)
class Hole:
    """A module without one function: what stands before the answer, what is shown, and the function that was there."""

    prelude: str
    shown: str
    original: str  # the function alone
    whole: str  # both


def capacity(material: Material, env: SynthesisEnv) -> int:
    return len(_wishes(material, env))


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    wishes = _wishes(material, env)
    wishes.sort(key=lambda w: (w.is_bare, seeded("complete", sample.seed, w.item.function.dotted, w.entry.dotted)))
    if sample.variant >= len(wishes):
        return reject(sample, "material", f"{len(wishes)} functions to write under {material.concept.name!r}")
    wish = wishes[sample.variant]
    known = await tried(wish.entry, env)
    if known.probe.fault:
        return reject(sample, known.probe.check, known.probe.fault)
    hole = _hole(wish, sample.difficulty)
    reached, nothing = await asyncio.to_thread(_reached, wish, hole, known, env)
    shown = SHOWN[sample.difficulty]
    if len(reached) < env.config.least_tests + shown:
        fault = f"{wish.entry.dotted}: {len(reached)} calls depend on {wish.item.function.name}"
        return reject(sample, "oracle", fault)
    return _task(sample, material, env, wish, known, hole, reached, nothing)


def _wishes(material: Material, env: SynthesisEnv) -> list[Wish]:
    """Every function by itself, and through the first function that reaches it; what is public and stands alone is for
    `implement`."""
    found = []
    for item in functions_about(material, env):
        function = item.function
        if len(function.doc) >= LEAST_DOC and _defines(function, function.name):
            callers = [f for f in _callers(function) if len(source_of(f)) <= env.config.max_code_chars]
            alone = Wish(item, function, (callers or [function])[0])
            found += [alone] if function.name.startswith("_") or not alone.is_bare else []
            found += [Wish(item, caller, caller) for caller in callers[:1]]
    return found


def _callers(function: Function) -> list[Function]:
    others = [f for f in module_functions(function.module) if f.name != function.name and _defines(f, function.name)]
    return sorted(others, key=lambda f: (f.name.startswith("_"), len(source_of(f))))


def _defines(function: Function, name: str) -> bool:
    """Has the function's slice a definition of this name?"""
    return f"def {name}(" in source_of(function)


def _hole(wish: Wish, difficulty: str) -> Hole:
    name, body = wish.item.function.name, tree_of(source_of(wish.around)).body
    (original,) = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    hollow = copy.copy(original)
    doc = textwrap.indent(wish.item.function.doc, "    ").lstrip()
    hollow.body = [ast.Expr(ast.Constant(f"{doc}\n    " if "\n" in doc else doc)), ast.Expr(ast.Constant(...))]
    shown = [hollow if node is original else _outline(node) if difficulty == "hard" else node for node in body]
    prelude = "\n".join(ast.unparse(node) for node in body if node is not original)
    return Hole(
        prelude=prelude,
        shown=_laid_out(shown),
        original=ast.unparse(original),
        whole=f"{prelude}\n{ast.unparse(original)}",
    )


def _laid_out(body: Sequence[ast.stmt]) -> str:
    """With blank lines around functions and classes."""
    parts = [
        (f"\n{ast.unparse(n)}\n" if isinstance(n, ast.FunctionDef | ast.ClassDef) else ast.unparse(n)) for n in body
    ]
    return "\n".join(parts).replace("\n\n\n", "\n\n").strip()


def _outline(node: ast.stmt) -> ast.stmt:
    """A function without its body; anything else as it is."""
    if isinstance(node, ast.FunctionDef):
        node = copy.copy(node)
        node.body = [ast.Expr(ast.Constant(...))]
    return node


def _reached(wish: Wish, hole: Hole, known: Tried, env: SynthesisEnv) -> tuple[list[int], list[Judged]]:
    """Numbers of the calls that need the function, and functions in its place that do nothing, judged on these.

    No call at all when the original behind the prelude does not do what it did in the module.
    """
    sources = [
        hole.original,
        f"def {wish.item.function.name}(*args, **kwargs):\n    raise NotImplementedError",
        *_nothing(wish),
    ]
    modules = [f"{hole.prelude}\n{source}" for source in sources]
    whole, none, *others = judged(modules, wish.entry.name, known.trials, env.sandbox)
    if whole is None or none is None or whole.caught_by:
        return [], []
    reached = sorted(none.caught_by)
    return reached, [other.on(reached) for other in others if other]


def _task(
    sample: Sample,
    material: Material,
    env: SynthesisEnv,
    wish: Wish,
    known: Tried,
    hole: Hole,
    reached: Sequence[int],
    nothing: Sequence[Judged],
) -> Task | Rejection:
    pool = [known.trials[n] for n in reached]
    wrong = _wrong(wish, known, reached)
    dull = [*nothing, *(stub.on(reached) for stub in known.stubs)]
    if not wrong:
        return reject(sample, "wrong", f"{wish.item.function.dotted}: no change of it that a call tells")
    shown = SHOWN[sample.difficulty]
    chosen = telling(pool, [*wrong, *dull], (), min(env.config.most_tests, len(pool) - shown))
    examples = spare(pool, chosen, wrong, shown)
    if fault := says_too_little([wish.item.function], examples):
        return reject(sample, "material", fault)
    caught = [judgement.source for judgement in wrong if judgement.caught_by & set(chosen)]
    if not all(stub.caught_by & set(chosen) for stub in dull) or not caught:
        return reject(
            sample, "wrong", f"{wish.entry.dotted}: an argument as it came, or nothing at all, passes every test"
        )
    function, tests = wish.item.function, [expectation(pool[n].call, pool[n].outcome) for n in chosen]
    params = {"name": wish.entry.name, "tests": tests, "forbidden": [function.module], "seconds": SECONDS}
    if hole.prelude:
        params["prelude"] = hole.prelude + "\n"
    return build_task(
        sample,
        env,
        concepts=[material.concept],
        prompt=_prompt(sample, wish, hole, examples),
        verifier=VerifierSpec(name="function_tests", params=params),
        reference=_reply(hole.original),
        wrong=[_reply(source) for source in (*caught[: WRONG - 3], *_nothing(wish), _import(wish))],
        spans=spans_of(wish.item, env),
        most_chars=env.config.max_prompt_chars + env.config.max_code_chars,
        hints={"context_chars": len(hole.prelude), "through_a_caller": float(wish.entry is not function)},
    )


def _wrong(wish: Wish, known: Tried, reached: Sequence[int]) -> list[Judged]:
    """The original with one bug, where a call tells it: the function alone."""
    name = wish.item.function.name
    rest = _without(tree_of(known.probe.subject.reference), name)
    found = []
    for bug, judgement in known.bugs:
        tree = tree_of(bug.source)
        if judgement.caught_by and _without(tree, name) == rest:
            (mutant,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
            within = judgement.on(reached)
            found.append(Judged(ast.unparse(mutant), within.trials, within.caught_by))
    return sorted(found, key=lambda judgement: len(judgement.caught_by))


def _without(tree: ast.Module, name: str) -> list[str]:
    return [ast.unparse(n) for n in tree.body if not (isinstance(n, ast.FunctionDef) and n.name == name)]


def _nothing(wish: Wish) -> list[str]:
    head = f"def {wish.item.function.name}(*args, **kwargs):\n    "
    return [f"{head}...", f"{head}return args[0]"]


def _import(wish: Wish) -> str:
    return f"from {wish.item.function.module} import {wish.item.function.name}"


def _prompt(sample: Sample, wish: Wish, hole: Hole, examples: Sequence[Trial]) -> str:
    function = wish.item.function
    file = "/".join(function.module.split("."))
    path = source_path(function.module)
    file += "/__init__.py" if path and path.name == "__init__.py" else ".py"
    told = f"When it is complete:\n\n{worked(wish.entry.name, examples)}\n\n" if examples else ""
    outlined = sample.difficulty == "hard" and "def " in hole.prelude
    bodies = " Of the other functions only the signatures are shown." if outlined else ""
    return (
        f"This is a part of the file `{file}` of Python's standard library, as far as it is needed. The body of "
        f"`{function.name}` is missing.{bodies}\n\n```python\n{hole.shown}\n```\n\n{told}"
        f"Write the function `{function.name}`, and nothing else of the file, in <answer></answer>: it will be put into the "
        f"file in the place of the incomplete one. Do not import {function.module}."
    )


def _reply(source: str) -> str:
    return answered(f"\n{source}\n")


register(
    TaskType(
        name="complete",
        area="coding",
        why="Hidden tests are outputs of the module as it was; each of them changes when the function does nothing.",
        capacity=capacity,
        draft=draft,
        difficulties=DIFFICULTIES,
    )
)
