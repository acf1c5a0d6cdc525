"""What the verifiers ask for and pay, in words for people: what stands between the answer tags, and when it is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgsynth.task import VerifierSpec

WORDS = {  # verifier -> (what goes into the answer tag, what is right); docs/verifiers.md has the whole of it
    "text": ("a word or phrase", "it is one of the accepted spellings; case, spacing and Unicode form do not count"),
    "choice": ("the letter of one option", "it is the letter of the right option"),
    "number": ("a number", "it is the same quantity, in any notation and any unit that converts"),
    "span": ("words of the given text", "they are the words of an accepted span, or its offsets"),
    "listed": ("a list of items", "it has all items and nothing else"),
    "json_schema": ("one JSON document", "it fits the schema and has the expected values in their places"),
    "mathematics": ("an expression, in LaTeX or plain text", "its value equals what is expected, and it is worked out"),
    "literal": ("a Python literal", "it equals the expected value, with the same types"),
    "function_tests": ("source that defines the function", "every hidden call returns, or raises, what is expected"),
    "programs": ("the source of a program", "it prints what is expected for every hidden input, and ends well"),
    "properties": ("source that defines the function", "every stated relation holds on generated inputs"),
    "kernel": ("source of the function or module", "it agrees with the PyTorch reference on hidden sizes and seeds"),
    "world": ("a script", "the files that it leaves behind fulfil every check"),
    "picture": (
        "the source of the picture",
        "it looks like the reference, in colour, tone, structure, edges and words",
    ),
}
FORMS = {name: form for name, (form, _) in WORDS.items()}
LANGUAGES = {"python": "Python", "javascript": "JavaScript", "c": "C", "sh": "shell"}


def form_of(spec: VerifierSpec) -> str:
    """What goes into the answer tag, with the language or format where the task names one."""
    form, params = FORMS.get(spec.name, "text"), spec.params
    if spec.name == "picture":
        return f"{str(params.get('format', 'svg')).upper()} source of the picture"
    language = LANGUAGES.get(str(params.get("language", "python")))
    if spec.name in ("function_tests", "programs", "properties", "world") and language:
        return form.replace("source", f"{language} source", 1).replace("a script", f"a {language} script")
    return form


def in_words(spec: VerifierSpec) -> str:
    """One sentence: "function_tests: right when every hidden call returns, ... (12 tests; forbidden: math)"."""
    if spec.name not in WORDS:
        return f"{spec.name}: a verifier that is not installed here"
    figures = "; ".join(_figures(spec.params))
    return f"{spec.name}: right when {WORDS[spec.name][1]}" + (f" ({figures})" if figures else "")


def _figures(params: Mapping[str, Any]) -> list[str]:
    """What can be said of the parameters without giving the answer away."""
    found = [
        f"{len(params[key])} {key}"
        for key in ("tests", "checks", "properties", "options", "items")
        if isinstance(params.get(key), list)
    ]
    if params.get("forbidden"):
        found.append("forbidden: " + ", ".join(map(str, params["forbidden"])))
    found += [f"{key} tolerance {params[key]}" for key in ("absolute", "relative") if params.get(key)]
    if params.get("seconds"):
        found.append(f"{params['seconds']:g} s a test" if isinstance(params["seconds"], (int, float)) else "")
    return [text for text in found if text]
