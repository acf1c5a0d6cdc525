"""Whether one answer is right, as far as a task itself shows: no two options that read the same, no planted answer that is nearly right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kgsynth.mutate import inside
from kgsynth.task import Task
from kgsynth.verifiers.text import normalise

DRESS = re.compile(r"[\s\-_'’.,;:!?]+")
OPTION = r"^[ \t]*[(\[]?{}[.):\]][ \t]+(\S.*?)[ \t]*$"


def ambiguity(task: Task) -> str:
    """Why more than one answer is right, or a right one would be called wrong; "" when nothing says so."""
    params = task.verifier.params
    match task.verifier.name:
        case "choice":
            return _same_options(task.prompt, params)
        case "text":
            return _nearly_right(task, params.get("answers"))
        case "listed" if not params.get("ordered"):
            return _repeated(params.get("items"))
    return ""


def texts_of_options(prompt: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Letter -> text: from the parameters, else from lines such as "B. a heap" of the prompt, the last of each."""
    if isinstance(params.get("texts"), Mapping):
        return {str(letter): str(text) for letter, text in params["texts"].items()}
    letters = params.get("options")
    found = {
        str(letter): re.findall(OPTION.format(re.escape(str(letter))), prompt, re.MULTILINE)
        for letter in (letters if isinstance(letters, (list, tuple)) else ())
    }
    return {letter: lines[-1] for letter, lines in found.items() if lines}


def _same_options(prompt: str, params: Mapping[str, Any]) -> str:
    texts = texts_of_options(prompt, params)
    missing = [str(letter) for letter in params.get("options", ()) if str(letter) not in texts]
    if missing and len(texts) > 1:
        return f"the prompt has no option {missing[0]}"
    if twice := _twice(_key(text) for text in texts.values()):
        letters = [letter for letter, text in texts.items() if _key(text) == twice]
        return f"options {' and '.join(letters)} read the same: {texts[letters[0]]!r}"
    return ""


def _nearly_right(task: Task, answers: Any) -> str:
    accepted = {_key(str(answer)): answer for answer in answers} if isinstance(answers, (list, tuple)) else {}
    if task.verifier.params.get("mode") == "exact":
        return ""
    for reply in task.wrong:
        wrong = inside(reply).strip()
        if _key(wrong) in accepted:
            return f"the wrong answer {wrong!r} is the right one {accepted[_key(wrong)]!r} in another spelling"
    return ""


def _repeated(items: Any) -> str:
    if not isinstance(items, (list, tuple)):
        return ""
    spellings = [item if isinstance(item, (list, tuple)) else [item] for item in items]
    twice = _twice(form for accepted in spellings for form in {_key(str(text)) for text in accepted})
    return f"two items of the list are accepted as {twice!r}" if twice else ""


def _key(text: str) -> str:
    """The text without case, white space and punctuation between words."""
    return DRESS.sub("", normalise(text)) or normalise(text)


def _twice(keys: Iterable[str]) -> str:
    return next((key for key, count in Counter(keys).items() if count > 1), "")
