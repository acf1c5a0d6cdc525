"""Library functions in Python and in another language, with calls on which both do the same.

A port is kept only when it was seen to agree on every call: the plain Python with the real function, and the port with both.
No call is left out but those whose arguments or result are outside the range that the prompt states: whole numbers below 2**53
in size, and in C text of ASCII. Beside the usual calls there are some at the edges of 32 bits and of that range.
"""

from __future__ import annotations

import ast
import contextlib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kgsynth.concept import content_id
from kgsynth.errors import VerifierError
from kgsynth.mutate.inputs import fresh
from kgsynth.sandbox import Sandbox
from kgsynth.synthesize.bugs import Judged, bugs, judged, stepped, stubs
from kgsynth.synthesize.inputs import constants_of, spiced
from kgsynth.synthesize.oracle import Probe, Trial, called, trials_of
from kgsynth.synthesize.porting import CannotPort, Kind, Port, is_portable, kind_of, plain, port, renamed
from kgsynth.verifiers.code.calls import check_arguments
from kgsynth.verifiers.code.source import tree_of
from kgsynth.verifiers.code.values import decode, encode, same
from kgsynth.verifiers.function_tests import Call, Outcome, run_calls

LEAST = 12  # calls on which all agree
MOST_INT = 2**53 - 1  # in size: whole numbers up to here are exact in every language
EDGES = (
    2**31,
    2**32,
    MOST_INT,
    -1,
    -(2**31),
    -(2**32),
    -MOST_INT,
    2**31 - 1,
    2**32 - 1,
    2**52 + 1,
    0,
)  # for whole numbers
EDGED = 44  # calls with them
GROUPS = 4  # choices of argument types that are tried
MORE = 30  # calls beside those of the probe
MOST_BUGS = 30
SECONDS = 8.0
PORTED = {"javascript": 4, "c": 2}  # bugs that are ported, per task


@dataclass(frozen=True, kw_only=True)
class Ported:
    """A function twice. `trials` are calls of the Python version; the wrong ones are judged on them."""

    name: str
    python: str
    port: Port
    kinds: tuple[Kind, ...]
    trials: tuple[Trial, ...]
    wrong_python: tuple[Judged, ...]
    wrong_port: tuple[Judged, ...]


def may_be_ported(source: str, language: str) -> bool:
    """Before any type is known."""
    return is_portable(source, language) and not re.search(
        r"^(?:import|from) (?!math\b|__future__|typing|numbers)", source, re.MULTILINE
    )


def ported(known: Probe, language: str, nameless: bool, sandbox: Sandbox) -> Ported | str:
    """The function in another language, or why there is none that agrees. `nameless` takes the names out of the source."""
    faults: list[str] = []
    for kinds, trials in _groups(known):
        try:
            name, source = known.subject.name, plain(known.subject.reference, known.subject.name, len(kinds))
            if nameless:
                name, source = "f", renamed(source, name)
            made = _agreed(name, source, port(source, name, kinds, language), kinds, trials, known, language, sandbox)
        except CannotPort as error:
            made = str(error)
        if isinstance(made, Ported):
            return made
        faults.append(made)
    return f"{known.subject.label}: {[*faults, 'no calls whose arguments the other languages have'][0]}"


def _groups(known: Probe) -> list[tuple[tuple[Kind, ...], list[Trial]]]:
    """Calls by the types of their arguments, the commonest first."""
    groups: dict[tuple[Kind, ...], list[Trial]] = {}
    for trial in known.trials:
        if trial.outcome.kind == "returned" and not trial.call.kwargs:
            with contextlib.suppress(CannotPort):
                kinds = tuple(map(kind_of, trial.call.args))
                if kinds and not any(kind.is_open for kind in kinds):
                    groups.setdefault(kinds, []).append(trial)
    return sorted(groups.items(), key=lambda row: -len(row[1]))[:GROUPS]


def _agreed(
    name: str,
    source: str,
    made: Port,
    kinds: tuple[Kind, ...],
    trials: list[Trial],
    known: Probe,
    language: str,
    sandbox: Sandbox,
) -> Ported | str:
    usual = [*trials, *_more(known, trials, sandbox)]
    edged = _edged(known, name, source, trials, sandbox)
    agreed = [t for t in (*usual, *edged) if _has(t, kinds, made.returns) and _fits(t, made, language)]
    if len(agreed) < LEAST:
        return f"{len(agreed)} calls whose values {language} has"
    plainly = [got.outcome for got in _python(name, source, agreed, sandbox)]
    if odd := [t for t, outcome in zip(agreed, plainly, strict=True) if not t.agrees(outcome)]:
        return f"its plain version differs in {called(name, odd[0].call)}"
    ends = run_port(made.source, name, made, agreed, language, sandbox)
    if odd := [t for t, outcome in zip(agreed, ends, strict=True) if not _agrees(t, outcome)]:
        return f"its port differs in {called(name, odd[0].call)}"
    wrong = _wrong_python(name, source, agreed, sandbox)
    slips = _slips(name, made, agreed, language, sandbox)
    theirs = [*slips, *_wrong_ports(name, wrong, kinds, made, agreed, language, sandbox)]
    dull = stubs(name, agreed)
    return Ported(
        name=name, python=source, port=made, kinds=kinds, trials=tuple(agreed), wrong_python=(*wrong, *dull), wrong_port=tuple(theirs)
    )  # fmt: skip


def _more(known: Probe, trials: Sequence[Trial], sandbox: Sandbox) -> list[Trial]:
    """Calls near those that are known, as of the real function."""
    rng = random.Random(content_id("port", known.subject.reference))
    given = [(tuple(t.call.args), dict(t.call.kwargs)) for t in trials]
    constants = constants_of(known.subject.reference)
    spicy = [(spiced(args, constants, rng), kwargs) for args, kwargs in rng.choices(given, k=MORE)]
    near = {repr(call): call for call in (*spicy, *fresh([*given, *spicy], rng, MORE)) if call not in given}
    calls = [Call(args=args, kwargs=kwargs) for args, kwargs in near.values()]
    return [t for t in trials_of(known.subject.real, known.subject.name, calls, sandbox) if t.is_short]


def _edged(known: Probe, name: str, source: str, trials: Sequence[Trial], sandbox: Sandbox) -> list[Trial]:
    """Calls with whole numbers at the edges, as of the real function; none that would run on and on."""
    rng = random.Random(content_id("edges", known.subject.reference))
    given = [tuple(t.call.args) for t in trials]
    made = [_at_edge(rng.choice(given), edge, place, rng) for place in range(len(given[0])) for edge in EDGES]
    made += [
        _at_edge(args, edge, 1, rng)
        for edge in EDGES
        for args in [_at_edge(rng.choice(given), edge, 0, rng)]
        if len(args) > 1
    ]
    fresh_ones = {repr(args): args for args in made if args not in given}
    calls = [Call(args=args) for args in [*fresh_ones.values()][:EDGED]]
    ending = [t.call for t in stepped(source, name, calls, sandbox) if t.outcome.kind == "returned"]
    return trials_of(known.subject.real, known.subject.name, ending, sandbox)


def _at_edge(args: tuple[Any, ...], edge: int, place: int, rng: random.Random) -> tuple[Any, ...]:
    """The arguments with a whole number in this place, or one of a list there, at the edge; else as they were."""
    value = args[place]
    if type(value) is int:
        value = edge
    elif isinstance(value, list) and value and all(type(item) is int for item in value):
        at = rng.randrange(len(value))
        value = [*value[:at], edge, *value[at + 1 :]]
    return (*args[:place], value, *args[place + 1 :])


def _has(trial: Trial, kinds: Sequence[Kind], returns: Kind) -> bool:
    """Are its values of the types that were settled on, very strictly what is returned?"""
    if trial.outcome.kind != "returned":
        return False
    try:
        given = [_is(kind_of(value), kind) for value, kind in zip(trial.call.args, kinds, strict=True)]
        return all(given) and _is(kind_of(decode(trial.outcome.value)), returns)
    except (CannotPort, ValueError):
        return False


def _is(found: Kind, kind: Kind) -> bool:
    """Is a value of this type one of that type? An empty list is one of any."""
    if kind.name == "optional":
        return found.name == "none" or _is(found, kind.items[0])
    if found.name == "any" or found == kind or (found.is_text and kind.is_text):
        return True
    if found.name != kind.name or not kind.items:
        return False
    return len(found.items) == len(kind.items) and all(map(_is, found.items, kind.items))


def _fits(trial: Trial, made: Port, language: str) -> bool:
    """Are the arguments and the result in the range that the prompt states? Text in C is ASCII, so that its length is the
    number of letters."""
    values = [*_single(trial.call.args), *_single(decode(trial.outcome.value))]
    if any(type(value) is int and abs(value) > MOST_INT for value in values):
        return False
    texts = [value for value in values if isinstance(value, str)]
    if language == "c" and not all(text.isascii() and "\0" not in text for text in texts):
        return False
    try:
        check_arguments(encode(made.arguments(trial.call.args)), ["dict"], language, made.signature)
    except VerifierError:
        return False
    return True


def _single(value: Any) -> Iterator[Any]:
    """What is in lists and tuples, however deep."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _single(item)
    else:
        yield value


def _python(name: str, source: str, trials: Sequence[Trial], sandbox: Sandbox) -> list[Trial]:
    return trials_of(source, name, [t.call for t in trials], sandbox, hash_seed=2)


def run_port(
    source: str, name: str, made: Port, trials: Sequence[Trial], language: str, sandbox: Sandbox
) -> list[Outcome]:
    """What a source in the other language makes of the calls."""
    calls = [Call(args=made.arguments(t.call.args)) for t in trials]
    return run_calls(source, name, calls, sandbox, seconds=SECONDS, language=language, signature=made.signature)


def _agrees(trial: Trial, outcome: Outcome) -> bool:
    return outcome.kind == "returned" and same(outcome.value, trial.outcome.value, loose=True)


def _wrong_python(name: str, source: str, trials: Sequence[Trial], sandbox: Sandbox) -> list[Judged]:
    """Bugs of the Python version, and division as other languages have it."""
    sources = [
        bug.source for bug in sorted(bugs(source), key=lambda bug: content_id("port bug", bug.source))[:MOST_BUGS]
    ]
    found = judged([*_as_elsewhere(source), *sources], name, trials, sandbox)
    return [judgement for judgement in found if judgement and judgement.caught_by]


def _as_elsewhere(source: str) -> Iterator[str]:
    """Whole-number division that rounds towards zero, a remainder with the sign of the dividend."""
    for op, function in ((ast.FloorDiv, "int({} / {})"), (ast.Mod, "int(math.fmod({}, {}))")):
        tree = _Divided(op, function).visit(tree_of(source))
        text = ast.unparse(ast.fix_missing_locations(tree))
        if text != ast.unparse(tree_of(source)):
            yield f"import math\n{text}"


class _Divided(ast.NodeTransformer):
    def __init__(self, op: type[ast.operator], form: str) -> None:
        self.op, self.form = op, form

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, self.op):
            return node
        made = tree_of(self.form.format(f"({ast.unparse(node.left)})", f"({ast.unparse(node.right)})")).body[0]
        assert isinstance(made, ast.Expr)
        return made.value


SLIPS = {
    "javascript": (
        ("return r !== 0 && (r < 0) !== (b < 0) ? r + b : r + 0;", "return r;"), ("Math.floor(", "Math.trunc("), ("Math.floor(", "("),
        (".slice(", ".substr("), (".sort((x, y) => x - y)", ".sort()"), ("replaceAll(", "replace("),
    ),
    "c": (
        ("return r != 0 && (r < 0) != (b < 0) ? r + b : r;", "return r;"),
        ("return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;", "return q;"), ("(double)", ""), ("long ", "char "), ("double ", "float "),
    ),
}  # fmt: skip


def _slips(name: str, made: Port, trials: Sequence[Trial], language: str, sandbox: Sandbox) -> list[Judged]:
    """Mistakes that people make when they port, where a call tells them."""
    sources = [made.source.replace(right, wrong) for right, wrong in SLIPS[language] if right in made.source]
    return [j for source in sources[:3] if (j := _judged_port(source, name, made, trials, language, sandbox)).caught_by]


def _judged_port(
    source: str, name: str, made: Port, trials: Sequence[Trial], language: str, sandbox: Sandbox
) -> Judged:
    outcomes = run_port(source, name, made, trials, language, sandbox)
    caught = {n for n, (t, outcome) in enumerate(zip(trials, outcomes, strict=True)) if not _agrees(t, outcome)}
    return Judged(
        source, tuple(replace(t, outcome=o) for t, o in zip(trials, outcomes, strict=True)), frozenset(caught)
    )


def _wrong_ports(
    name: str,
    wrong: Sequence[Judged],
    kinds: Sequence[Kind],
    made: Port,
    trials: Sequence[Trial],
    language: str,
    sandbox: Sandbox,
) -> list[Judged]:
    """Ports of the bugs that the fewest calls tell, and that return something all the same."""
    found: list[Judged] = []
    for bug in sorted(wrong, key=lambda judgement: len(judgement.caught_by)):
        if len(found) == PORTED[language] or any(bug.trials[n].outcome.kind != "returned" for n in bug.caught_by):
            continue
        try:
            source = port(bug.source, name, kinds, language).source
        except CannotPort:
            continue
        judgement = _judged_port(source, name, made, trials, language, sandbox)
        found += [judgement] if judgement.caught_by and source not in {f.source for f in found} else []
    return found
