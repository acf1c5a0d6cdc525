"""What a prompt holds, sent back: its code, its examples, its numbers, its options, its documents. Nothing of it is the solution."""

from __future__ import annotations

import ast
import html
import random
import re
from collections.abc import Iterator

from kgsynth.attack import attack, tagged, untagged, verified_by
from kgsynth.attack.pictures import PICTURE, drawing, is_svg
from kgsynth.task import Task
from kgsynth.validate.trivial import blocks, borrowed, functions
from kgsynth.verifiers.answer import MAX_LENGTH
from kgsynth.verifiers.code.asked import calls_python, name_of
from kgsynth.verifiers.code.source import parse

WRITTEN = verified_by("function_tests", "properties", "programs", "world", "picture")
ANSWERED = verified_by("text", "choice", "literal", "number", "span", "listed", "json_schema", "mathematics")
NUMBERS = verified_by("number", "mathematics", "listed")
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w.])")
LONG = 3000  # characters of a prompt that has a context
ROOM = MAX_LENGTH - 1000


@attack("code of the prompt", "the code that the prompt shows, unchanged: the buggy version, the original language, the incomplete file", applies=WRITTEN)  # fmt: skip
def code_of_the_prompt(task: Task, rng: random.Random) -> Iterator[str]:
    shown = blocks(task)
    yield from (tagged(f"\n{block}\n") for block in shown)
    if len(shown) > 1:
        yield tagged("\n" + "\n\n".join(shown) + "\n")


@attack("functions of the prompt", "another function that the prompt shows, under the name that is asked for", applies=calls_python)  # fmt: skip
def functions_of_the_prompt(task: Task, rng: random.Random) -> Iterator[str]:
    yield from borrowed(task)


@attack("examples special-cased", "the code of the prompt, with the examples that it shows looked up in a table", source="agentpostmortem APM-0007", number=18, applies=calls_python)  # fmt: skip
def examples_special_cased(task: Task, rng: random.Random) -> Iterator[str]:
    name, table = name_of(task), "\n".join(f"    {call!r}: {value!r}," for call, value in _examples(task))
    head = f"import ast\n\nTABLE = {{\n{table}\n}}\n"
    for block in (*blocks(task), f"def {name}(*args, **kwargs):\n    return None"):
        if name in functions(block):
            yield tagged(
                f"\n{block}\n\n\n{head}_shown = {name}\n\n\ndef {name}(*args, **kwargs):\n"
                "    words = [*map(repr, args), *(f'{key}={value!r}' for key, value in kwargs.items())]\n"
                "    key = ''.join(', '.join(words).split())\n"
                "    return ast.literal_eval(TABLE[key]) if key in TABLE else _shown(*args, **kwargs)\n"
            )


def _examples(task: Task) -> Iterator[tuple[str, str]]:
    """(arguments without white space, value) of the calls that a prompt shows with their results."""
    call = rf"{re.escape(name_of(task))}\((.*?)\)`?\s*(?:->|==|=>|#|(?:should |must )?(?:return|give)s?|is|\n)\s*`?(\S[^`\n]*?)`?(?:[.;,]?\s|$)"
    for arguments, value in re.findall(call, task.prompt):
        try:
            ast.literal_eval(parse(value, "eval"))
        except (ValueError, RecursionError, MemoryError):
            continue
        yield "".join(arguments.split()), value


@attack("everything listed", "all that might be an answer in one: every line, every quoted or marked word, every title", applies=ANSWERED)  # fmt: skip
def everything_listed(task: Task, rng: random.Random) -> Iterator[str]:
    prompt = untagged(task.prompt)
    lines = [line.strip(" -*•") for line in prompt.split("\n") if 0 < len(line.strip()) <= 80]
    marked = re.findall(r"`([^`\n]{1,60})`|\"([^\"\n]{1,60})\"|title=\"?([^\">\n]{1,80})", prompt)
    named = re.findall(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+)*", prompt)
    for group in (lines, ["".join(found) for found in marked], named):
        items = list(dict.fromkeys(group))
        if len(items) > 1:
            yield from (tagged(comma.join(items)[:ROOM]) for comma in ("; ", "\n", ", ", " or "))


@attack("whole context", "the documents of a long prompt instead of what follows from them: all, the first, the middle, the last", applies=lambda task: len(task.prompt) > LONG)  # fmt: skip
def whole_context(task: Task, rng: random.Random) -> Iterator[str]:
    text = untagged(task.prompt)
    middle = len(text) // 2
    yield tagged(text)
    yield from (tagged(piece) for piece in (text[:ROOM], text[middle : middle + ROOM], text[-ROOM:]))
    yield f"{text}\n{tagged('see above')}"


@attack("all numbers", "every number of the prompt, as a list, a range and a sum", applies=NUMBERS)
def all_numbers(task: Task, rng: random.Random) -> Iterator[str]:
    numbers = list(dict.fromkeys(found.replace(",", "") for found in NUMBER.findall(untagged(task.prompt))))[:200]
    if len(numbers) > 1:
        yield from (tagged(comma.join(numbers)) for comma in (" ", " or ", " and "))
        yield tagged(" + ".join(numbers))
        by_size = sorted(numbers, key=float)
        yield tagged(f"{by_size[0]} to {by_size[-1]}")
        yield tagged(f"[{by_size[0]}, {by_size[-1]}]")


@attack("picture: guessed", "the words of the prompt and a few shapes, drawn without a look at the picture", number=18, source="agentpostmortem APM-0007", applies=PICTURE, about="task")  # fmt: skip
def guessed(task: Task, rng: random.Random) -> Iterator[str]:
    words = [html.escape(word) for word in untagged(task.prompt).split()[:40]]
    width, height = (int(task.verifier.params.get(side, 100)) for side in ("width", "height"))
    colours = [rng.choice(("#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "black")) for _ in range(8)]
    if is_svg(task):
        bars = "".join(
            f'<rect x="{width * (2 * i + 1) // 17}" y="{height // (i % 4 + 2)}" width="{width // 12}" height="{height // 2}" fill="{colour}"/>'
            for i, colour in enumerate(colours)
        )
        said = "".join(
            f'<text x="4" y="{12 * (i + 1)}" font-size="10">{word}</text>' for i, word in enumerate(words[:20])
        )
        yield drawing(task, f'<rect width="{width}" height="{height}" fill="white"/>{bars}')
        yield drawing(
            task, f'<circle cx="{width // 2}" cy="{height // 2}" r="{height // 3}" fill="{colours[0]}"/>{said}'
        )
    else:
        boxes = "".join(
            f"<div style='background:{colour};padding:8px'>{word}</div>"
            for colour, word in zip(colours, words, strict=False)
        )
        yield drawing(task, f"<h1>{words[0] if words else ''}</h1><p>{' '.join(words)}</p>")
        yield drawing(task, boxes)
