"""Bugs that people make, planted in a source one at a time or two at once, and what they do to known calls.

Mutation operators (DeMillo et al., 1978; Jia and Harman, 2011) chosen for bugs that are found in real code: a comparison off
by one, a wrong bound, swapped arguments, a dropped branch or update, another variable, a missing negation, an early return.
A bug counts when some call comes out differently and some call does not (the rule of SWE-smith, Yang et al., 2025); a change that no call
tells from the original may be none, and is never called one.
"""

from __future__ import annotations

import ast
import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kgsynth.concept import content_id
from kgsynth.mutate.inputs import fresh
from kgsynth.sandbox import Sandbox
from kgsynth.synthesize.inputs import constants_of, spiced
from kgsynth.synthesize.oracle import Probe, Trial, agreeing, alike, trials_of
from kgsynth.verifiers.code.runner import to_json
from kgsynth.verifiers.code.source import tree_of
from kgsynth.verifiers.code.values import decode, encode
from kgsynth.verifiers.function_tests import Call, Outcome, run_calls

STEPS = 20_000  # lines that a call of a changed source may run: counted, not timed, so that it is the same everywhere
SECONDS = 20.0
USUAL, SPICED, FRESH = 24, 24, 16  # calls that bugs are tried on: of those that were found, and near them
MOST_BUGS = 48  # of a function that are tried
LEAST_CAUGHT = 2  # calls that a bug changes, so that one may be shown


@dataclass(frozen=True)
class Bug:
    """A changed source: where the change is, what kind it is."""

    kind: str
    place: int  # number of the change among those of the original source
    line: int  # of the original source
    source: str


@dataclass(frozen=True)
class Judged:
    """A changed source, how its calls ended (by number of the trial), and which of them ended differently."""

    source: str
    trials: tuple[Trial, ...]
    caught_by: frozenset[int]

    @property
    def is_partial(self) -> bool:
        """Some calls tell, more than one, and some do not."""
        return LEAST_CAUGHT <= len(self.caught_by) < len(self.trials)

    def on(self, numbers: Sequence[int]) -> Judged:
        """The judgement on some of the trials, renumbered."""
        place = {n: k for k, n in enumerate(numbers)}
        caught = frozenset(place[n] for n in self.caught_by if n in place)
        return Judged(self.source, tuple(self.trials[n] for n in numbers), caught)


Change = tuple[str, ast.AST, Callable[[], None]]  # kind, the node that is changed, what changes it


def bugs(source: str) -> list[Bug]:
    """Every single change of the functions of a source that leaves another text, each text once."""
    tree = tree_of(source)
    original = ast.unparse(tree)
    found: dict[str, Bug] = {}
    for place, (kind, node, change) in enumerate(_changes(tree)):
        text = _with(tree, node, change)
        if text != original and text not in found:
            found[text] = Bug(kind, place, getattr(node, "lineno", 0), text)
    return list(found.values())


def planted(source: str, places: Sequence[int]) -> str:
    """The source with the changes of these numbers, made one after another."""
    tree = tree_of(source)
    changes = list(_changes(tree))
    for place in places:
        changes[place][2]()
    return ast.unparse(tree)


def _with(tree: ast.Module, node: ast.AST, change: Callable[[], None]) -> str:
    """The text with one change, which is undone."""
    saved = copy.copy(node.__dict__)
    change()
    text = ast.unparse(tree)
    node.__dict__.clear()
    node.__dict__.update(saved)
    return text


def _changes(tree: ast.Module) -> Iterator[Change]:
    """All changes in a fixed order. Each sets attributes of one node, to new objects."""
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            names = _locals(function)
            for node in ast.walk(function):
                for kind, attribute, value in _edits(node, names):
                    yield kind, node, _setter(node, attribute, value)


def _setter(node: ast.AST, attribute: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, attribute, value)


def _locals(function: ast.FunctionDef) -> list[str]:
    """Names of parameters and variables, in order."""
    names = [a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)]
    names += [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys(names))


Edit = tuple[str, str, object]  # kind, attribute, new value


def _edits(node: ast.AST, names: Sequence[str]) -> Iterator[Edit]:
    """Ways to change one node by one attribute."""
    match node:
        case ast.Compare():
            yield from _compared(node)
        case ast.BinOp() | ast.AugAssign():
            yield from (("operator", "op", kind()) for kind in OPERATORS.get(type(node.op), ()))
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod):
                yield "swapped operands", "__dict__", {**node.__dict__, "left": node.right, "right": node.left}
        case ast.BoolOp():
            yield "operator", "op", ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "dropped condition", "values", node.values[:-1] or node.values
            yield "dropped condition", "values", node.values[1:] or node.values
        case ast.Constant():
            yield from _constants(node)
        case ast.Call():
            yield from _called(node)
        case ast.Slice():
            yield from _sliced(node)
        case ast.Name(ctx=ast.Load()) if node.id in names:
            yield from (("wrong variable", "id", other) for other in _beside(node.id, names))
        case ast.Attribute() if node.attr in TWINS:
            yield "wrong method", "attr", TWINS[node.attr]
    yield from _tested(node)
    yield from _blocks(node)


def _compared(node: ast.Compare) -> Iterator[Edit]:
    for other in COMPARISONS.get(type(node.ops[0]), ()):
        yield "comparison", "ops", [other(), *node.ops[1:]]
    if len(node.ops) > 1:
        last = COMPARISONS.get(type(node.ops[-1]), ())
        yield from (("comparison", "ops", [*node.ops[:-1], other()]) for other in last[:1])


def _constants(node: ast.Constant) -> Iterator[Edit]:
    value = node.value
    if type(value) is bool:
        yield "wrong constant", "value", not value
    elif type(value) is int:
        yield "off by one", "value", value + 1
        if value > 0:
            yield "off by one", "value", value - 1
    elif type(value) is float:
        yield "wrong constant", "value", value * 2 if value else 1.0
    elif isinstance(value, str) and len(value) > 1:
        yield "wrong constant", "value", value[:-1]
        yield "wrong constant", "value", value[1:]


def _called(node: ast.Call) -> Iterator[Edit]:
    for i in range(len(node.args) - 1):
        swapped = [*node.args[:i], node.args[i + 1], node.args[i], *node.args[i + 2 :]]
        yield "swapped arguments", "args", swapped
    if len(node.args) > 1 and not isinstance(node.args[-1], ast.Starred):
        yield "missing argument", "args", node.args[:-1]
    if isinstance(node.func, ast.Name) and node.func.id in TWINS:
        yield "wrong function", "func", ast.Name(TWINS[node.func.id], ast.Load())


def _sliced(node: ast.Slice) -> Iterator[Edit]:
    for edge in ("lower", "upper"):
        bound = getattr(node, edge)
        if bound is not None and not isinstance(bound, ast.Constant):
            yield "wrong bound", edge, ast.BinOp(bound, ast.Add(), ast.Constant(1))
            yield "wrong bound", edge, ast.BinOp(bound, ast.Sub(), ast.Constant(1))
        if bound is not None:
            yield "wrong bound", edge, None


def _beside(name: str, names: Sequence[str]) -> list[str]:
    """The variables that were named right before and after."""
    at = names.index(name)
    return [*names[max(0, at - 1) : at], *names[at + 1 : at + 2]]


def _tested(node: ast.AST) -> Iterator[Edit]:
    """A condition turned round, or its `not` forgotten; half of a choice taken always."""
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        test = node.test
        inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
        yield "missing negation", "test", inner or ast.UnaryOp(ast.Not(), test)
    if isinstance(node, ast.If) and node.orelse:
        yield "dropped branch", "orelse", []
    if isinstance(node, ast.Return | ast.Assign) and node.value is not None:
        yield from (("dropped step", "value", inner) for inner in _inside(node.value))


def _inside(value: ast.expr) -> Iterator[ast.expr]:
    """What a step works on: x of f(x), x.f(), x + 1, -x, or the first choice of `a if t else b`."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner)) if not isinstance(inner, ast.Name) or inner.id.islower():
            yield inner
        case ast.Call(func=ast.Name(), args=[inner, *_]) if not isinstance(inner, ast.Starred | ast.GeneratorExp):
            yield inner
        case ast.BinOp(left=left, right=right):
            yield left
            yield right
        case ast.UnaryOp(operand=inner):
            yield inner
        case ast.IfExp(body=body, orelse=orelse):
            yield body
            yield orelse


def _blocks(node: ast.AST) -> Iterator[Edit]:
    """Statements left out, loops left too early, and results returned from inside a loop."""
    for field in ("body", "orelse"):
        block = getattr(node, field, None)
        if not isinstance(block, list):
            continue
        for i, statement in enumerate(block):
            rest = [*block[:i], *block[i + 1 :]] or [ast.Pass()]
            inside = isinstance(node, ast.For | ast.While | ast.If) and isinstance(statement, ast.Assign)
            if inside or isinstance(statement, ast.AugAssign | ast.Expr | ast.Break | ast.Continue):
                yield "dropped update", field, rest
            elif isinstance(statement, ast.If) and not statement.orelse:
                yield "dropped branch", field, rest
            if isinstance(statement, ast.For | ast.While) and isinstance(block[-1], ast.Return):
                looped = copy.copy(statement)
                looped.body = [*statement.body, block[-1]]
                yield "early return", field, [*block[:i], looped, *block[i + 1 :]]
    if isinstance(node, ast.For | ast.While) and not isinstance(node.body[-1], ast.Break | ast.Return):
        yield "early exit", "body", [*node.body, ast.Break()]


COMPARISONS: dict[type[ast.AST], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
OPERATORS: dict[type[ast.AST], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Add, ast.FloorDiv), ast.FloorDiv: (ast.Mult, ast.Mod), ast.Div: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.BitXor: (ast.BitOr,),
    ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,), ast.Pow: (ast.Mult,),
}  # fmt: skip
_PAIRS = (
    "lstrip rstrip, find rfind, startswith endswith, lower upper, split rsplit, partition rpartition, index rindex, min max,"
    " any all, floor ceil, strip lstrip, ljust rjust, islower isupper, isalpha isalnum"
)
TWINS = {a: b for pair in _PAIRS.split(",") for x, y in [pair.split()] for a, b in ((y, x), (x, y))}

JUDGE = """
import sys

class Endless(BaseException):
    pass

def _dispatch(k, args, kwargs):
    if k in ended:
        raise Endless
    if k not in spaces:
        spaces[k] = {"__name__": "solution"}
        exec(SOURCES[k], spaces[k])
    left = [STEPS]

    def trace(frame, event, arg):
        left[0] -= 1
        if left[0] < 0:
            ended.add(k)
            raise Endless
        return trace

    sys.settrace(trace)
    try:
        return spaces[k][NAME](*args, **kwargs)
    finally:
        sys.settrace(None)

spaces, ended = {}, set()
"""


def judged(sources: Sequence[str], name: str, trials: Sequence[Trial], sandbox: Sandbox) -> list[Judged | None]:
    """Every source on every trial, all in one process, twice with different string hashing.

    None for a source that runs on and on, cannot be run, or does not end the same both times.
    """
    program = f"{JUDGE}\nSTEPS, NAME = {STEPS}, {name!r}\nSOURCES = {list(sources)!r}\n"
    calls = [Call(args=(k, list(t.call.args), dict(t.call.kwargs))) for k in range(len(sources)) for t in trials]
    once, again = (_rows(program, calls, len(trials), sandbox, hash_seed) for hash_seed in (1, 2))
    return [_judgement(source, trials, a, b) for source, a, b in zip(sources, once, again, strict=True)]


def stepped(source: str, name: str, calls: Sequence[Call], sandbox: Sandbox) -> list[Trial]:
    """How calls of a source end; those that run on and on fail, and do no harm to the others."""
    program = f"{JUDGE}\nSTEPS, NAME = {STEPS}, {name!r}\nSOURCES = {[source] * len(calls)!r}\n"
    own = [Call(args=(k, list(call.args), dict(call.kwargs))) for k, call in enumerate(calls)]
    outcomes = run_calls(program, "_dispatch", own, sandbox, seconds=SECONDS, hash_seed=1)
    return [Trial(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)]


def _rows(program: str, calls: list[Call], width: int, sandbox: Sandbox, hash_seed: int) -> list[list[Trial]]:
    outcomes = run_calls(program, "_dispatch", calls, sandbox, seconds=SECONDS, hash_seed=hash_seed)
    ended = [Trial(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)]
    return [ended[k : k + width] for k in range(0, len(ended), width)]


def _judgement(source: str, trials: Sequence[Trial], once: list[Trial], again: list[Trial]) -> Judged | None:
    if any(t.outcome.detail in ("Endless", "timeout", "crashed", "out of memory") for t in (*once, *again)):
        return None
    if not all(a.agrees(b.outcome) for a, b in zip(once, again, strict=True)):
        return None
    caught = {n for n, (trial, mine) in enumerate(zip(trials, once, strict=True)) if not trial.agrees(mine.outcome)}
    return Judged(source, tuple(once), frozenset(caught))


def stubs(name: str, trials: Sequence[Trial]) -> list[Judged]:
    """Sources that do nothing of what is asked for: an argument as it came, the commonest result."""
    head = f"def {name}(*args, **kwargs):\n    return "
    shared = range(min(len(t.call.args) for t in trials))
    forms = {f"{head}args[{i}]": [encode(t.call.args[i]) for t in trials] for i in shared}
    results = Counter(to_json(t.outcome.value) for t in trials if t.outcome.kind == "returned")
    commonest = json.loads(results.most_common(1)[0][0]) if results else None
    forms[f"{head}{decode(commonest)!r}"] = [commonest] * len(trials)
    return [
        Judged(
            source,
            tuple(trials),
            frozenset(n for n, t in enumerate(trials) if not t.agrees(Outcome(kind="returned", value=values[n]))),
        )
        for source, values in forms.items()
    ]


def telling(
    trials: Sequence[Trial], wrong: Sequence[Judged], must: Sequence[Judged], most: int, first: Sequence[int] = ()
) -> list[int]:
    """Numbers of at most `most` trials that tell as many wrong sources from the right one as they can: greedily, each
    trial the one that tells the most of those not told yet (Chvatal's set cover, 1979), the first of equals.

    Every source in `must` is told by two, where two tell it, and passes one, where it passes any. `first` are chosen anyway.
    """
    chosen: list[int] = list(first)
    for source in must:
        told = sorted(source.caught_by, key=lambda n: (sum(n in w.caught_by for w in wrong), n))
        passed = [n for n in range(len(trials)) if n not in source.caught_by]
        chosen += [n for n in (*told[-1:], *told[:1], *passed[:1]) if n not in chosen]
    left = [w for w in wrong if w.caught_by and not w.caught_by & set(chosen)]
    while left and len(chosen) < most:
        best = max(range(len(trials)), key=lambda n: (sum(n in w.caught_by for w in left), -n))
        chosen.append(best)
        left = [w for w in left if best not in w.caught_by]
    rest = [n for n in range(len(trials)) if n not in chosen]
    while rest and len(chosen) < most:
        chosen.append(min(rest, key=lambda n: (_seen(trials, chosen, n), n)))
        rest.remove(chosen[-1])
    return sorted(chosen[:most])


def _seen(trials: Sequence[Trial], chosen: Sequence[int], n: int) -> int:
    """How many of the chosen trials end like this one."""
    return sum(trials[c].result == trials[n].result for c in chosen)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """The right version of a function with calls, and wrong versions with the calls that tell them."""

    probe: Probe
    trials: tuple[Trial, ...] = ()
    bugs: tuple[tuple[Bug, Judged], ...] = ()
    stubs: tuple[Judged, ...] = ()

    @property
    def wrong(self) -> list[Judged]:
        return [*(judgement for _, judgement in self.bugs), *self.stubs]


def try_bugs(known: Probe, sandbox: Sandbox, others: Sequence[str] = ()) -> Tried:
    """Widen the calls of a function that was probed, and try its bugs on them, and other sources beside the stubs."""
    subject = known.subject
    usual = alike(known.trials, USUAL)
    trials = [*usual, *_more(known, usual, sandbox)]
    found = sorted(bugs(subject.reference), key=lambda bug: content_id("bug", bug.source))[:MOST_BUGS]
    verdicts = judged([*others, *(bug.source for bug in found)], subject.name, trials, sandbox)
    dull = [*(v for v in verdicts[: len(others)] if v), *stubs(subject.name, trials)]
    kept = tuple((bug, verdict) for bug, verdict in zip(found, verdicts[len(others) :], strict=True) if verdict)
    return Tried(probe=known, trials=tuple(trials), bugs=kept, stubs=tuple(dull))


def _more(known: Probe, usual: Sequence[Trial], sandbox: Sandbox) -> list[Trial]:
    """Calls near the usual ones, with the function's own constants in them, on which the real one and the reference agree."""
    subject = known.subject
    given = [(tuple(t.call.args), dict(t.call.kwargs)) for t in usual if t.outcome.kind == "returned"]
    rng = random.Random(content_id("near", subject.reference))
    constants = constants_of(subject.reference)
    spicy = [(spiced(args, constants, rng), kwargs) for args, kwargs in rng.choices(given, k=SPICED)]
    near = {repr(call): call for call in (*spicy, *fresh([*given, *spicy], rng, FRESH)) if call not in given}
    calls = [Call(args=args, kwargs=kwargs) for args, kwargs in near.values()]
    ended = trials_of(subject.real, subject.name, calls, sandbox)
    short = [t for t in ended if t.outcome.kind == "returned" and t.is_short]
    return agreeing(short, subject.reference, subject.name, subject.forbidden, sandbox)
