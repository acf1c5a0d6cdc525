"""What a task asks for when it asks for code: the language, and the function that is called."""

from __future__ import annotations

from kgsynth.task import Task


def language_of(task: Task) -> str:
    return str(task.verifier.params.get("language", "python"))


def calls_python(task: Task) -> bool:
    """Whether a Python function is asked for, that is called."""
    return task.verifier.name in ("function_tests", "properties") and language_of(task) == "python"


def name_of(task: Task) -> str:
    """The function that the prompt asks for."""
    return str(task.verifier.params.get("name", task.verifier.params.get("function", "solution")))
