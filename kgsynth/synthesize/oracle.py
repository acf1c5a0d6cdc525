"""Standard-library functions as oracles: which inputs they take, what they return, and that slices of them agree.

Inputs are found by trying (see `inputs.py`), in the sandbox, with the real function. Kept are calls whose result can be
encoded and comes out again in a second process, in opposite order, and from the pure-Python slice. Everything here
depends on the function alone; which of the calls become a task's hidden tests depends on the sample.
"""

from __future__ import annotations

import ast
import copy
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kgsynth.concept import content_id
from kgsynth.sandbox import Sandbox
from kgsynth.synthesize.inputs import NUMERIC, Shape, shapes
from kgsynth.synthesize.slice import bound_names
from kgsynth.synthesize.stdlib import Function
from kgsynth.verifiers.code.source import tree_of
from kgsynth.verifiers.code.values import decode, same
from kgsynth.verifiers.function_tests import Call, Outcome, run_calls

CALLS_PER_SHAPE = 4
MORE_CALLS = 60  # for all shapes kept together
SHAPES_KEPT = 6
MOST_CHARS = 160  # of a call or a result
MUTANTS = 10
ACCEPTED = 0.5  # share of inner results that an outer function must take
CHAIN = "solve"  # the name of a chain of two functions
DISPUTED = 0.1  # share of calls in which the slice may differ; those calls are dropped
SECONDS, MUTANT_SECONDS = 8.0, 1.5
PRESUPPOSES_ORDER = re.compile(r"\b(?:sorted|heap|in order)\b", re.IGNORECASE)
PRESUPPOSES_NUMBERS = re.compile(r"\b(?:numeric|numbers?|real-valued)\b", re.IGNORECASE)
LOOSE = re.compile(r"\b(?:estimate|arbitrary|implementation[- ]\w+|platform)\b", re.IGNORECASE)
CALLABLES = frozenset("function func fn f callback mycmp key predicate factory wrapper wrapped dfunc obj".split())
CLOCK = re.compile(r"\b(?:utcnow|now|today|time_ns|monotonic|perf_counter|localtime|gmtime|ctime|mktime|time\.time)\(")
IDENTITY = frozenset({"operator.is_", "operator.is_not"})  # which equal values are one object is not documented


@dataclass(frozen=True)
class Trial:
    """A call and how it ended: it returned an encodable value or raised."""

    call: Call
    outcome: Outcome

    @property
    def key(self) -> str:
        """The call as text."""
        return repr((self.call.args, self.call.kwargs))

    @property
    def result(self) -> str:
        """How it ended, as text."""
        return repr((self.outcome.kind, self.outcome.value, self.outcome.detail))

    @property
    def is_short(self) -> bool:
        return len(self.key) <= MOST_CHARS and len(self.result) <= MOST_CHARS

    def agrees(self, other: Outcome) -> bool:
        """Same value up to the verifier's tolerance for floats, or same exception."""
        mine = self.outcome
        return (other.kind, other.detail) == (mine.kind, mine.detail) and same(other.value, mine.value)


def called(name: str, call: Call) -> str:
    """The call as it would be typed."""
    arguments = [*map(repr, call.args), *(f"{key}={value!r}" for key, value in call.kwargs.items())]
    return f"{name}({', '.join(arguments)})"


def ended(trial: Trial, s: str = "") -> str:
    """In words: "return 3", "raise ValueError", with an s behind the verb where it is asked for."""
    match trial.outcome.kind:
        case "returned":
            return f"return{s} `{decode(trial.outcome.value)!r}`"
        case "raised":
            return f"raise{s} `{trial.outcome.detail}`"
    return f"give{s} no usable result"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is to be written: a function, or one function applied to the result of another."""

    label: str  # "heapq.merge", "operator.neg(operator.add(a, b))"
    name: str
    real: str  # source that gets it from the standard library
    reference: str  # source that does without
    forbidden: tuple[str, ...]  # modules


@dataclass(frozen=True)
class Mutant:
    """A changed copy of the reference, and the trials (by number) that it answers wrongly."""

    source: str
    caught_by: frozenset[int]


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What is known of a subject. Without trials, `check` and `fault` say why it cannot be used."""

    subject: Subject
    trials: tuple[Trial, ...] = ()
    mutants: tuple[Mutant, ...] = ()
    check: str = ""
    fault: str = ""


def probe(function: Function, sandbox: Sandbox, least: int) -> Probe:
    """Try a function that has a slice. `least` is the number of agreed trials below which it is no use."""
    assert function.slice is not None, function.dotted
    subject = Subject(
        label=function.dotted,
        name=function.name,
        real=real_source(function),
        reference=function.slice.source,
        forbidden=(function.module,),
    )
    if fault := no_oracle(function):
        return Probe(subject=subject, check="oracle", fault=fault)
    trials = known_calls(function, sandbox)
    if _changes_arguments(subject, trials, sandbox):
        fault = f"{subject.label}: it changes its arguments, and tests see only what is returned"
        return Probe(subject=subject, check="oracle", fault=fault)
    return _compared(subject, trials, _mutated(subject), sandbox, least)


def _changes_arguments(subject: Subject, trials: Sequence[Trial], sandbox: Sandbox) -> bool:
    """Whether a call that returned left an argument other than it was, as far as its repr tells."""
    watch = "def _watched(*args, **kwargs):\n    before = repr((args, kwargs))"
    source = f"{subject.real}\n{watch}\n    {subject.name}(*args, **kwargs)\n    return repr((args, kwargs)) != before"
    calls = [t.call for t in trials if t.outcome.kind == "returned"]
    return any(t.outcome.value is True for t in trials_of(source, "_watched", calls, sandbox))


def probe_chain(inner: Probe, outer: Function, call: str, signature: str, sandbox: Sandbox, least: int) -> Probe:
    """Try `outer` on the results of a function that is known: `call` is the inner call in words, e.g. "add(a, b)".

    A planted wrong answer is the inner function alone.
    """
    assert outer.slice is not None, outer.dotted
    first = inner.subject
    head, name = f"def {CHAIN}{signature}:\n    return ", f"{first.name}({call})"
    together = f"{first.reference}\n{outer.slice.source}\n"
    subject = Subject(
        label=f"{outer.dotted}({first.label}({call}))",
        name=CHAIN,
        real=f"{first.real}\nfrom {outer.module} import {outer.name}\n{head}{outer.name}({name})",
        reference=f"{together}{head}{outer.name}({name})",
        forbidden=tuple(dict.fromkeys((*first.forbidden, outer.module))),
    )
    if clash := _clash(first.reference, outer.slice.source):
        return Probe(subject=subject, check="reference", fault=f"{subject.label}: both define {clash!r}")
    calls = [t.call for t in inner.trials if t.outcome.kind == "returned"]
    found = [t for t in trials_of(subject.real, CHAIN, calls, sandbox) if t.outcome.kind == "returned" and t.is_short]
    if len(found) < ACCEPTED * len(calls):
        fault = f"{subject.label}: the outer function takes {len(found)} of {len(calls)} inner results"
        return Probe(subject=subject, check="oracle", fault=fault)
    trials = agreeing(found, subject.real, CHAIN, (), sandbox)
    return _compared(subject, trials, [f"{first.reference}\n{head}{name}"], sandbox, least)


def _clash(a: str, b: str) -> str:
    """A name that two sources define differently; empty when there is none."""
    first, second = ({n: ast.unparse(s) for s in tree_of(t).body for n in bound_names(s)} for t in (a, b))
    return next((name for name in first if name in second and first[name] != second[name]), "")


def _compared(subject: Subject, trials: list[Trial], mutants: Sequence[str], sandbox: Sandbox, least: int) -> Probe:
    """Keep the trials in which the reference agrees; say what is wrong when they are too few or too alike."""
    if len(trials) < least or not _varied(trials):
        fault = f"{subject.label}: {len(trials)} repeatable calls found, or all return the same"
        return Probe(subject=subject, check="oracle", fault=fault)
    agreed = agreeing(trials, subject.reference, subject.name, subject.forbidden, sandbox)
    if len(agreed) < max(least, (1 - DISPUTED) * len(trials)) or not _varied(agreed):
        fault = f"{subject.label}: its reference differs in {len(trials) - len(agreed)} of {len(trials)} calls"
        return Probe(subject=subject, check="reference", fault=fault)
    caught = _caught(subject, mutants, agreed, sandbox)
    return Probe(subject=subject, trials=tuple(agreed), mutants=tuple(caught))


def alike(trials: Sequence[Trial], most: int) -> list[Trial]:
    """The trials whose arguments have the types that are the most frequent, and the next ones while there are fewer than
    `most`: what a function does with odd types is nobody's question. At most `most`, spread evenly."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(repr([types_of(value) for value in trial.call.args]), []).append(trial)
    kept: list[Trial] = []
    for group in sorted(groups.values(), key=len, reverse=True):
        kept += group if len(kept) < most // 2 else []
    return kept[:: -(-len(kept) // most)] if kept else []


def types_of(value: Any) -> Any:
    """The type of a value, for a list or tuple with the types of its items."""
    if isinstance(value, list | tuple):
        return type(value).__name__, sorted({str(types_of(item)) for item in value})
    return type(value).__name__


def known_calls(function: Function, sandbox: Sandbox) -> list[Trial]:
    """Calls of the real function that repeat: with a value that can be encoded, or an exception that is documented."""
    if no_oracle(function):
        return []
    real = real_source(function)
    return agreeing(_accepted(function, real, sandbox), real, function.name, (), sandbox)


def real_source(function: Function) -> str:
    """What defines the real function: an import, or the library's text where a module may have removed a private name."""
    private = function.slice is not None and function.name.startswith("_")
    return function.slice.source if private and function.slice else f"from {function.module} import {function.name}"


def no_oracle(function: Function) -> str:
    """Why a function cannot be tested by its values, as far as that can be told without running it; or empty."""
    if function.dotted in IDENTITY or CALLABLES & set(required(function.arguments)):
        return f"{function.dotted} takes functions, or tells objects apart: no values to test it on"
    if function.slice and CLOCK.search(function.slice.source):
        return f"{function.dotted} looks at the clock: a change of it may be told today and not tomorrow"
    if loose := LOOSE.search(function.doc):
        return f"{function.dotted} is documented loosely ({loose.group()!r}): several results would be right"
    return ""


def required(arguments: ast.arguments) -> list[str]:
    """Names of the parameters without a default."""
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    return names[: len(names) - len(arguments.defaults)]


def _accepted(function: Function, real: str, sandbox: Sandbox) -> list[Trial]:
    """Try many shapes a little, then the accepted ones a lot. Exceptions are kept where the documentation names them."""
    rng = random.Random(content_id("probe", function.dotted))
    in_order = bool(PRESUPPOSES_ORDER.search(function.doc))
    likely = shapes(function.arguments, rng)
    if PRESUPPOSES_NUMBERS.search(function.doc):
        likely = [shape for shape in likely if set(shape.kinds) <= NUMERIC] or likely
    tried = [(shape, shape.call(rng, in_order=in_order)) for shape in likely for _ in range(CALLS_PER_SHAPE)]
    first = trials_of(real, function.name, [call for _, call in tried], sandbox)
    good = [(shape, t) for (shape, _), t in zip(tried, first, strict=True) if t.outcome.kind == "returned"]
    kept = _shapes_kept([shape for shape, _ in good])
    more = [shape.call(rng, in_order=in_order) for shape in kept for _ in range(MORE_CALLS // len(kept))]
    again = trials_of(real, function.name, more, sandbox)
    found = [t for shape, t in good if shape in kept] + again
    usable = [t for t in (*found, *first) if _is_documented(t, function) and (t.outcome.kind == "raised" or t in found)]
    distinct = {t.key: t for t in usable if t.is_short}
    return list(distinct.values())


def _is_documented(trial: Trial, function: Function) -> bool:
    """A value, or an exception that the documentation names."""
    return trial.outcome.kind == "returned" or (trial.outcome.kind == "raised" and trial.outcome.detail in function.doc)


def _shapes_kept(accepted: Sequence[Shape]) -> list[Shape]:
    """Shapes accepted every time or nearly so: those with arguments of one kind, then the likeliest."""
    often = [shape for shape in dict.fromkeys(accepted) if accepted.count(shape) >= CALLS_PER_SHAPE - 1]
    kept = often or list(dict.fromkeys(accepted))
    return sorted(kept, key=lambda shape: len(set(shape.kinds)) > 1)[:SHAPES_KEPT]


def _varied(trials: Sequence[Trial]) -> bool:
    """At least three different results, or both truth values three times each."""
    counts = Counter(t.result for t in trials if t.outcome.kind == "returned")
    truths = all(type(t.outcome.value) is bool for t in trials)
    return len(counts) >= 3 or (truths and len(counts) == 2 and min(counts.values()) >= 3)


def trials_of(
    source: str,
    name: str,
    calls: Sequence[Call],
    sandbox: Sandbox,
    forbidden: Sequence[str] = (),
    seconds: float = SECONDS,
    hash_seed: int = 1,
) -> list[Trial]:
    outcomes = run_calls(source, name, calls, sandbox, forbidden=forbidden, seconds=seconds, hash_seed=hash_seed)
    return [Trial(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)]


def agreeing(trials: list[Trial], source: str, name: str, forbidden: Sequence[str], sandbox: Sandbox) -> list[Trial]:
    """The trials that come out the same from this source, called in opposite order in a process of its own, in which
    strings hash otherwise."""
    others = trials_of(source, name, [t.call for t in reversed(trials)], sandbox, forbidden, hash_seed=2)[::-1]
    return [t for t, other in zip(trials, others, strict=True) if t.agrees(other.outcome)]


def _caught(subject: Subject, mutants: Sequence[str], trials: Sequence[Trial], sandbox: Sandbox) -> Iterator[Mutant]:
    """The mutants that answer a trial differently. All are run in one process under one dispatcher."""
    if not mutants:
        return
    names = [f"_mutant{k}" for k in range(len(mutants))]
    bodies = [_renamed(source, subject.name, name) for source, name in zip(mutants, names, strict=True)]
    dispatcher = f"def _dispatch(k, args, kwargs):\n    return [{', '.join(names)}][k](*args, **kwargs)"
    program = "\n".join([subject.reference, *bodies, dispatcher])
    some = list(enumerate(trials))[:: max(1, len(trials) // 24)]
    calls = [Call(args=(k, list(t.call.args), dict(t.call.kwargs))) for k in range(len(mutants)) for _, t in some]
    ended = trials_of(program, "_dispatch", calls, sandbox, seconds=MUTANT_SECONDS)
    for k, source in enumerate(mutants):
        mine = [trial.outcome for trial in ended[k * len(some) : (k + 1) * len(some)]]
        if any(outcome.kind == "failed" for outcome in mine):
            continue  # it may loop: a slow wrong answer to check, every time
        caught = {n for (n, t), outcome in zip(some, mine, strict=True) if not t.agrees(outcome)}
        if caught:
            yield Mutant(source, frozenset(caught))


def _mutated(subject: Subject) -> list[str]:
    """Mutants (DeMillo et al., 1978): whole sources with one small change in the function itself."""
    tree = tree_of(subject.reference)
    definition = main_definition(tree, subject.name)
    places = [(node, change) for node in ast.walk(definition) for change in _changes(node)]
    rng = random.Random(content_id("mutants", subject.reference))
    found: dict[str, None] = {}
    for node, change in rng.sample(places, min(MUTANTS, len(places))):
        saved = copy.copy(node.__dict__)
        change(node)
        found[ast.unparse(tree)] = None
        node.__dict__.clear()
        node.__dict__.update(saved)
    return [source for source in found if source != subject.reference]


def main_definition(tree: ast.Module, name: str) -> ast.FunctionDef:
    """The definition behind a name, through `name = other`."""
    definitions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and name not in definitions:
            targets = {t.id for t in node.targets if isinstance(t, ast.Name)}
            name = node.value.id if name in targets else name
    return definitions[name]


_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.Add,
    ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


def _changes(node: ast.AST) -> Iterator[Any]:
    """Ways to change one node in place."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in _SWAPS:
        yield lambda n: setattr(n, "op", _SWAPS[type(n.op)]())
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        yield lambda n: setattr(n, "ops", [_SWAPS[type(n.ops[0])](), *n.ops[1:]])
    elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        yield lambda n: setattr(n, "value", n.value + 1 if type(n.value) is int else not n.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield lambda n: setattr(n, "value", n.value[:-1])
    elif isinstance(node, ast.Return) and node.value is not None:
        yield lambda n: setattr(n, "value", ast.UnaryOp(ast.Not(), n.value))


def _renamed(source: str, original: str, name: str) -> str:
    """The main definition of a mutant alone, under another name."""
    tree = tree_of(source)
    definition = main_definition(tree, original)
    definition.name = name
    return ast.unparse(definition)
