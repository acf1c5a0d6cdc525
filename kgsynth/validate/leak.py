"""Whether a task gives its answer or its tests away, in anything that the policy gets to see.

That is the prompt, the words in its pictures, and the files of a world. The parameters of the verifier, the names of the
concepts and the figures of a task are not shown to a policy; a figure that is the answer is refused all the same, since people
plot and filter by figures. Not a leak: letters of a choice, names of functions, the words of a span, the items of an unordered
list, which have to be there; a short number or value, which turns up by chance; a document of a long context, in which the
answer is to be found. A history of changes is the business of whoever makes one (`kgsynth.export`).
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from kgsynth.errors import VerifierError
from kgsynth.mutate import inside
from kgsynth.task import Task
from kgsynth.verifiers.code.source import tree_of
from kgsynth.verifiers.code.values import decode
from kgsynth.verifiers.text import normalise

LONG_LITERAL = 12  # characters; a shorter printed value turns up in a prompt by chance
LONG_NUMBER = 6  # digits; a shorter number does
LONG_FORMULA = 5  # characters that are not white space
LONG_SOURCE = 40  # likewise
CONTEXT = 6000  # characters; in a longer prompt the answer is to be found, and what is asked stands at its end
QUESTION = 1500
MOST_SHOWN = 0.5  # of the hidden tests
FEW_WORDS = 3  # of a picture, besides the answer: with more, the answer is one of several that are seen
UNSEEN = {"defs", "style", "script", "title", "desc", "metadata", "symbol", "clipPath", "mask"}
CODE = ("function_tests", "properties", "programs", "world")


def leak(task: Task) -> str:
    """What gives the answer away and where; "" when nothing does."""
    asked = task.prompt if len(task.prompt) <= CONTEXT else task.prompt[-QUESTION:]
    if _says_it(task, asked):
        return "the prompt contains its answer"
    if task.verifier.name in CODE and (shown := _tests_shown(task)):
        return shown
    for number, image in enumerate(task.images):
        if _shows_it(task, words_of_picture(image.source)):
            return f"picture {number} contains the answer"
    return _in_files(task) or _in_figures(task)


# the prompt


def _says_it(task: Task, prompt: str) -> bool:
    """Whether the answer can be copied from a text."""
    params = task.verifier.params
    match task.verifier.name:
        case "text":
            return any(_says(prompt, str(answer)) for answer in _listed(params.get("answers")))
        case "choice":
            return _names_its_letter(prompt, params)
        case "listed" if params.get("ordered"):
            items = [str([*_listed(item), item][0]) for item in _listed(params.get("items"))]
            return len(items) > 1 and any(_says(prompt, mark.join(items)) for mark in (", ", " ", "; ", "\n", " -> "))
        case "literal":
            value = str(params.get("value", "")).strip()
            return len(value) >= LONG_LITERAL and value in prompt
        case "number":
            return _says_number(prompt, params)
        case "json_schema":
            expected = params.get("expected")
            document = expected.get("", "") if isinstance(expected, Mapping) else ""
            value = _spaceless(json.dumps(document, ensure_ascii=False))
            return len(value) >= LONG_LITERAL and value in _spaceless(prompt)
        case "mathematics":
            return _says_formula(prompt, str(params.get("expected", "")))
        case "picture":
            reference = params.get("reference")
            source = _spaceless(str(reference.get("source", ""))) if isinstance(reference, Mapping) else ""
            return len(source) >= LONG_SOURCE and source in _spaceless(prompt)
        case "function_tests" | "properties" | "programs" | "world":
            return any(source in _spaceless(prompt) for source in _sources(task))
    return False


def _listed(value: Any) -> Sequence[Any]:
    """The value if it is a list; the verifier itself refuses what is none."""
    return value if isinstance(value, (list, tuple)) else ()


def _says(prompt: str, answer: str) -> bool:
    """Whether the answer stands in the prompt as whole words."""
    return bool(re.search(rf"(?<!\w){re.escape(normalise(answer))}(?!\w)", normalise(prompt)))


def _spaceless(text: str) -> str:
    return "".join(text.split())


def _names_its_letter(prompt: str, params: Mapping[str, Any]) -> bool:
    """Whether the prompt says which letter is right, or marks that option."""
    for letter in {
        str(one) for one in [*_listed(params.get("correct")), params.get("correct")] if isinstance(one, str)
    }:
        mark = re.escape(letter)
        said = rf"\b(?:answer|solution|correct(?: option| choice| letter)?)\s*(?:is|:|=)\s*[*(\[]*{mark}\b(?![,/]| or )"
        marked = rf"^[ \t]*[(\[]?{mark}[.):\]][^\n]*(?:\(correct\)|\[correct\]|✓|✔|<-- ?correct)"
        if re.search(said, prompt) or re.search(marked, prompt, re.MULTILINE | re.IGNORECASE):
            return True
    return False


def _says_number(prompt: str, params: Mapping[str, Any]) -> bool:
    """Whether a long number, or a quantity with its unit, stands in the prompt."""
    value, unit, plain = str(params.get("value", "")).strip(), str(params.get("unit") or ""), prompt.replace(",", "")
    digits = sum(map(str.isdigit, value))
    return (digits >= LONG_NUMBER and _says(plain, value)) or (
        bool(unit) and digits > 1 and params.get("unit_use") != "forbidden" and _says(plain, f"{value} {unit}")
    )


def _says_formula(prompt: str, expected: str) -> bool:
    """Whether what is expected stands in the prompt: letter by letter when it is a formula, as whole digits when it is long."""
    bare = _spaceless(expected).strip("$")
    if re.fullmatch(r"-?[\d.,]+", bare):
        return sum(map(str.isdigit, bare)) >= LONG_NUMBER and _says(prompt.replace(",", ""), bare.replace(",", ""))
    letters = r"\s*".join(map(re.escape, bare))
    return len(bare) >= LONG_FORMULA and bool(re.search(rf"(?<![\w\\]){letters}(?!\s*[\w^])", prompt))


# code


def _sources(task: Task) -> Iterator[str]:
    """The reference without white space: as it is written, and as Python writes it."""
    source = inside(task.reference)
    forms = [source]
    with contextlib.suppress(ValueError, RecursionError):
        forms.append(ast.unparse(tree_of(source)))
    yield from (form for form in map(_spaceless, forms) if len(form) >= LONG_SOURCE)


def _tests_shown(task: Task) -> str:
    """Whether so many hidden tests stand in the prompt that they could be looked up there."""
    tests, prompt = _listed(task.verifier.params.get("tests")), _spaceless(task.prompt)
    shown = sum(any(form in prompt for form in _test_forms(task, test)) for test in tests)
    return (
        f"the prompt shows {shown} of {len(tests)} hidden tests" if tests and shown / len(tests) >= MOST_SHOWN else ""
    )


def _test_forms(task: Task, test: Any) -> list[str]:
    """How a test could be shown, without white space: a call, or an input with its output after it."""
    try:
        if task.verifier.name == "programs":
            shown = _spaceless(str(test["stdin"])), _spaceless(str(test["stdout"]))
            return [mark.join(shown) for mark in ("", "->", "Output:", "```Output:```", "``````")] if all(shown) else []
        kwargs = decode(test.get("kwargs", ["dict"]))
        arguments = [*map(repr, decode(test["args"])), *(f"{key}={value!r}" for key, value in kwargs.items())]
    except (KeyError, TypeError, AttributeError, VerifierError):
        return []  # the verifier says what is wrong with it
    if "expect" not in test:
        return []
    call = _spaceless(f"{task.verifier.params.get('name')}({', '.join(arguments)})")
    return [
        _spaceless(f"{call}{mark}{decode(test['expect'])!r}") for mark in ("", "==", "->", "=>", "returns", "is", "#")
    ]


# what else is seen


def words_of_picture(source: str) -> list[str]:
    """The pieces of text that a picture shows, by its document; what is hidden in it by style is counted too."""
    try:
        return [text for text in _texts(ElementTree.fromstring(source.strip())) if text.strip()]
    except ElementTree.ParseError:
        bare = re.sub(r"(?is)<(style|script|title)\b.*?</\1>|<!--.*?-->", " ", source)
        return [text.strip() for text in re.split(r"<[^>]*>", bare) if text.strip()]


def _texts(element: ElementTree.Element) -> Iterator[str]:
    if str(element.tag).rpartition("}")[2] in UNSEEN:
        return
    yield element.text or ""
    for child in element:
        yield from _texts(child)
        yield child.tail or ""


def _shows_it(task: Task, words: Sequence[str]) -> bool:
    """Whether a picture says the answer and little else. One of several labels may be the answer: it has to be found."""
    if task.verifier.name in ("picture", "choice", "span") or not words:
        return False
    others = [text for text in words if not _says_it(task, text)]
    return len(others) < len(words) and len(others) < FEW_WORDS


def _in_files(task: Task) -> str:
    """Whether the files of a world, which the policy may read, hold the script that is asked for or the one that judges."""
    if task.verifier.name != "world":
        return ""
    held = _spaceless(json.dumps(task.verifier.params.get("files", {}), ensure_ascii=False))
    hidden = [
        str(check.get("python", ""))
        for check in _listed(task.verifier.params.get("checks"))
        if isinstance(check, Mapping)
    ]
    for source in (*_sources(task), *map(_spaceless, hidden)):
        if len(source) >= LONG_SOURCE and json.dumps(source, ensure_ascii=False)[1:-1] in held.replace("\\n", ""):
            return "a file of the world holds the answer or the code that judges it"
    return ""


def _in_figures(task: Task) -> str:
    """Whether a figure about the task is its answer."""
    if task.verifier.name not in ("number", "mathematics"):
        return ""
    value = str(task.verifier.params.get("value", task.verifier.params.get("expected", ""))).strip()
    if sum(map(str.isdigit, value)) < LONG_NUMBER - 2:
        return ""
    try:
        named = [name for name, figure in task.hints.items() if float(figure) == float(value)]
    except ValueError:
        return ""  # a formula
    return f"the figure {named[0]!r} is the answer" if named else ""
