"""`properties`: call the answer's function on generated inputs and check, outside, what must hold of its results.

The inputs come from a description and a private seed (`code/generated.py`); what must hold is one of the named relations
(`code/relations.py`). The answer runs in one box on the inputs, and in a fresh one whenever it is called again, so that it
cannot carry notes from one call to the other. Properties that a function passes which returns its argument, or always
the same, are refused: such a task would pay for nothing (QuickCheck calls it a vacuous property; Claessen and Hughes,
2000).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgsynth.concept import text_hash
from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract
from kgsynth.verifiers.code import generated, relations
from kgsynth.verifiers.code.calls import Outcome, check_arguments, run_forms
from kgsynth.verifiers.code.relations import RELATIONS, Failed, Trial
from kgsynth.verifiers.code.source import MAX_LENGTH, read
from kgsynth.verifiers.code.values import decode, encode
from kgsynth.verifiers.function_tests import OPTIONS, checked_options, reason_of, shown
from kgsynth.verifiers.params import only_known, some, whole

MOST_CASES = 500
TRUSTED_SECONDS = 20.0  # for a reference or a checker
CONSTANTS: tuple[Any, ...] = (None, 0, 1, True, False, ["float", "0.0"], "", ["list"], ["dict"], ["tuple"])
_sound: set[str] = set()  # hashes of parameters seen to be passed by no stub


@register("properties", needs_sandbox=True)
def properties(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"name": "sort_it", "inputs": [{"kind": "list", "of": {"kind": "integer"}}], "seed": 7, "cases": 40,
    "properties": [{"relation": "sorted"}, {"relation": "permutation", "of": 0}], "examples": [["tuple", ...]...],
    "forbidden", "seconds", "language", "signature" as in `function_tests`}.

    Scores 1.0 when every call returns and every property holds, else 0.0. The evidence names the relation that was
    broken, the case and what came out there. Raises SandboxError when no box can be made.
    """
    name, cases, options = _checked(params)
    assert sandbox is not None  # `verify` sees to it
    _refuse_trivial(params, cases, sandbox)
    text, missing = extract(answer, MAX_LENGTH)
    if missing:
        return Verdict(score=0.0, reason=missing)
    source = read(text)
    outcomes = run_forms(source, name, [(args, ["dict"], None) for args in cases], sandbox, **options)
    for number, outcome in enumerate(outcomes):
        if outcome.kind != "returned" or not _is_value(outcome.value):
            return Verdict(score=0.0, reason=reason_of(outcome), evidence={"case": number, "got": shown(outcome)})
    trial = Trial(
        name=name,
        args=cases,
        results=[outcome.value for outcome in outcomes],
        apply=_of_answer(source, sandbox, options),
        trusted=_trusted(sandbox),
        loose=options["language"] != "python",
    )
    for relation, case in _broken(params["properties"], trial):
        evidence = {"broken": relation, "case": case, "got": shown(outcomes[case])}
        return Verdict(score=0.0, reason="wrong", evidence=evidence)
    return Verdict(score=1.0, reason="right", evidence={"cases": len(cases), "properties": len(params["properties"])})


def _broken(wanted: Sequence[Mapping[str, Any]], trial: Trial) -> Iterator[tuple[str, int]]:
    """(relation, first case) of each property that does not hold, those that need no box first."""
    for each in sorted(wanted, key=lambda each: list(RELATIONS).index(each["relation"])):
        case = RELATIONS[each["relation"]](each, trial)
        if case is not None:
            yield each["relation"], case


def _of_answer(source: str, sandbox: Sandbox, options: Mapping[str, Any]) -> relations.Apply:
    def apply(name: str, cases: Sequence[Any]) -> list[Any]:
        forms = [(args, ["dict"], None) for args in cases]
        try:
            outcomes = run_forms(source, name, forms, sandbox, **options)
        except VerifierError:  # the language has no such argument: it is a result of the answer
            return [Failed()] * len(cases)
        return [outcome.value if outcome.kind == "returned" else Failed() for outcome in outcomes]

    return apply


def _trusted(sandbox: Sandbox) -> Callable[[str, str, Sequence[Any]], list[Outcome]]:
    """Calls a source of ours, on each case once."""
    known: dict[tuple[str, str, str], Outcome] = {}

    def run(source: str, name: str, cases: Sequence[Any]) -> list[Outcome]:
        keys = [(source, name, json.dumps(args)) for args in cases]
        new = {key: (args, ["dict"], None) for key, args in zip(keys, cases, strict=True) if key not in known}
        outcomes = run_forms(source, name, list(new.values()), sandbox, seconds=TRUSTED_SECONDS)
        fresh = dict(zip(new, outcomes, strict=True))
        known.update((key, outcome) for key, outcome in fresh.items() if outcome.kind != "failed")
        return [known.get(key) or fresh[key] for key in keys]

    return run


def _is_value(form: Any) -> bool:
    try:
        decode(form)
    except VerifierError:
        return False
    return True


# ------------------------------------------------------------------------------------------------ functions too simple


def _refuse_trivial(params: Mapping[str, Any], cases: Sequence[Any], sandbox: Sandbox) -> None:
    """Raises VerifierError when a function that does nothing passes. Each set of parameters is tried once."""
    key = text_hash(json.dumps(params, sort_keys=True, default=str))
    if key in _sound:
        return
    trials = [(told, _of_stub(params, cases, stub, sandbox)) for told, stub in _stubs(params)]
    for told, trial in _checked_at_once(params["properties"], trials, sandbox):
        if next(_broken(params["properties"], trial), None) is None:
            raise VerifierError(
                f"properties: a function that {told} passes all of them; add a property that it breaks, or inputs that tell"
            )
    if len(_sound) > 10_000:
        _sound.clear()
    _sound.add(key)


def _of_stub(params: Mapping[str, Any], cases: Sequence[Any], stub: Callable[[Any], Any], sandbox: Sandbox) -> Trial:
    return Trial(
        name=params["name"],
        args=cases,
        results=[stub(args) for args in cases],
        apply=lambda _, given: [stub(args) for args in given],
        trusted=_trusted(sandbox),
        loose=params.get("language", "python") != "python",
    )


def _checked_at_once(
    wanted: Sequence[Mapping[str, Any]], trials: Sequence[tuple[str, Trial]], sandbox: Sandbox
) -> list[tuple[str, Trial]]:
    """The same trials with one memory of what trusted code says, which has seen every checker's cases in one box."""
    trusted = _trusted(sandbox)
    pairs = [["tuple", *pair] for _, trial in trials for pair in zip(trial.args, trial.results, strict=True)]
    for each in wanted:
        if each["relation"] == "checker":
            trusted(each["source"], "check", pairs)
    return [(told, replace(trial, trusted=trusted)) for told, trial in trials]


def _stubs(params: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """(what it does, encoded arguments -> encoded result)."""
    for number in range(len(params["inputs"])):
        yield f"returns its argument {number}", lambda args, i=number: args[min(i + 1, len(args) - 1)]
    told = [each.get(key) for each in params["properties"] for key in ("min", "max") if each.get(key) is not None]
    known = [each["outputs"][0] for each in params["properties"] if each.get("outputs")]
    for form in (*CONSTANTS, *map(encode, told), *known):
        yield f"always returns {repr(form)[:40]}", lambda args, form=form: form


# -------------------------------------------------------------------------------------------------------- parameters


def _checked(params: Mapping[str, Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """(name, encoded arguments per case, options of `run_forms`). Raises VerifierError for what is not as said."""
    only_known("properties", params, (*OPTIONS, "inputs", "properties", "seed", "cases", "examples"))
    options = checked_options("properties", params)
    specs = some("properties", params, "inputs", "description, one per argument")
    wanted = some("properties", params, "properties", "relation")
    for number, spec in enumerate(specs):
        generated.check(f"properties: input {number}", spec)
    for number, each in enumerate(wanted):
        relations.check(f"properties: property {number}", each, specs, options["language"])
    cases = [*_examples(params, len(specs)), *_generated(params, specs)]
    for args in cases:
        check_arguments(args, ["dict"], options["language"], options["signature"])
    return params["name"], cases, options


def _generated(params: Mapping[str, Any], specs: Sequence[Mapping[str, Any]]) -> list[Any]:
    seed, count = params.get("seed"), whole("properties", params, "cases", 40, 1, MOST_CASES)
    if type(seed) is not int:
        raise VerifierError(f"properties: 'seed' must be a whole number, not {seed!r}")
    return [encode(args) for args in generated.inputs(specs, seed, count)]


def _examples(params: Mapping[str, Any], arguments: int) -> list[Any]:
    """Cases given one by one, as encoded tuples of arguments."""
    examples = params.get("examples", [])
    if not isinstance(examples, (list, tuple)) or len(examples) > MOST_CASES:
        raise VerifierError(f"properties: 'examples' must be a list of at most {MOST_CASES} encoded tuples")
    for example in examples:
        args = decode(example)
        if not isinstance(args, tuple) or len(args) != arguments:
            raise VerifierError(f"properties: an example is an encoded tuple of {arguments}, not {example!r:.80}")
    return list(examples)
