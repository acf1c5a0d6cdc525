"""Small deterministic tasks of the four types, from arithmetic, strings and toy graphs, for the trainer's tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from kgsynth.concept import content_id
from kgsynth.task import Provenance, Task, TaskSet, VerifierSpec
from kgsynth.verifiers.function_tests import encode

SYLLABLES = "ba co di fu ga he ki lo mu na pe qui ro su ta ve xo zi".split()
KINDS = ["choice"] * 7 + ["predict"] * 5 + ["cloze"] * 4 + ["implement"] * 4


def build_tasks(n: int, *, seed: int = 0, kinds: Sequence[str] = KINDS) -> TaskSet:
    """n tasks, each of a concept of its own: 35 % choice, 25 % predict, 20 % cloze, 20 % implement."""
    makers: dict[str, Callable[[random.Random, str], dict]] = {
        "choice": _choice, "predict": _predict, "cloze": _cloze, "implement": _implement,
    }  # fmt: skip
    tasks = []
    for i in range(n):
        rng = random.Random(f"{seed}-{i}")
        name = f"{_word(rng)} {i}"
        kind = kinds[i * 7 % len(kinds)]
        concept = content_id("c", name)
        made = Provenance(concepts=(concept,), names=(name,), spans=(), licences=(), author="programmatic", index=i)
        fields = makers[kind](rng, name)
        tasks.append(Task(type=kind, domain="toy", granularity="atomic", provenance=made, **fields))
    return TaskSet(tasks)


def reply(answer: str) -> str:
    return f"<answer>{answer}</answer>"


def _word(rng: random.Random) -> str:
    return "".join(rng.choice(SYLLABLES) for _ in range(3))


def _choice(rng: random.Random, name: str) -> dict:
    words, letters = [_word(rng) for _ in range(4)], "ABCD"
    right = rng.randrange(4)
    edges = ", ".join(f"{_word(rng)} -> {w}" for w in words if w != words[right])
    options = "\n".join(f"{letter}. {word}" for letter, word in zip(letters, words, strict=True))
    return {
        "prompt": f"In the concept graph of {name} these edges hold: {edges}.\n"
        f"Which of these concepts is narrower than {name}?\n{options}\n"
        "Reply with the letter inside <answer></answer>.",
        "verifier": VerifierSpec(name="choice", params={"correct": letters[right], "options": list(letters)}),
        "reference": reply(letters[right]),
        "wrong": tuple(reply(letter) for letter in letters if letter != letters[right]),
    }


def _predict(rng: random.Random, name: str) -> dict:
    items = [rng.randrange(20) for _ in range(rng.randrange(3, 6))]
    code = rng.choice(
        ["sorted(items)", "items[::-1]", "max(items) - min(items)", "len(items) * items[0]", "sum(items)"]
    )
    value = repr(eval(code, {"items": items}))
    return {
        "prompt": f"# {name}\nWhat does this Python program print?\n```python\nitems = {items}\nprint({code})\n```\n"
        "Reply with the printed text inside <answer></answer>.",
        "verifier": VerifierSpec(name="literal", params={"value": value}),
        "reference": reply(value),
        "wrong": (reply(value + "0"),),
    }


def _cloze(rng: random.Random, name: str) -> dict:
    words = [_word(rng) for _ in range(20)]
    place = rng.randrange(4, 18)
    term = words[place]
    passage = " ".join("____" if i == place else word for i, word in enumerate(words))
    return {
        "prompt": f'A page about {name} says: "{passage}, as {term[:2]}... is called."\n'
        "Which word stands in the blank? Reply with the word inside <answer></answer>.",
        "verifier": VerifierSpec(name="text", params={"answers": [term]}),
        "reference": reply(term),
        "wrong": (reply("not " + term),),
    }


def _implement(rng: random.Random, name: str) -> dict:
    function, k = _word(rng), rng.randrange(2, 9)
    body, solve = rng.choice(
        [
            (f"    return [x * {k} for x in items]", lambda xs: [x * k for x in xs]),
            (f"    return [x for x in items if x > {k}]", lambda xs: [x for x in xs if x > k]),
            (f"    total = {k}\n    for x in items:\n        total += x\n    return total", lambda xs: k + sum(xs)),
            (f"    return sorted(items, reverse=True)[:{k}]", lambda xs: sorted(xs, reverse=True)[:k]),
        ]
    )
    words = {"x *": "each item times", "x for": "the items above", "total": "the sum plus", "sorted": "the largest"}
    what = next(text for mark, text in words.items() if mark in body)
    inputs = [[rng.randrange(20) for _ in range(n)] for n in (0, 3, 5)]
    tests = [{"args": encode((xs,)), "kwargs": encode({}), "expect": encode(solve(xs))} for xs in inputs]
    return {
        "prompt": f"Topic: {name}. Write a Python function {function}(items) that returns {what} {k}.\n"
        "Reply with the code inside <answer></answer>.",
        "verifier": VerifierSpec(name="function_tests", params={"name": function, "tests": tests, "seconds": 5}),
        "reference": reply(f"def {function}(items):\n{body}"),
        "wrong": (reply(f"def {function}(items):\n    return None"),),
    }
