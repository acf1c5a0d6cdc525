"""JavaScript and C source, changed as text: tokens are told from strings and comments, nothing else is understood."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from kgsynth.mutate import Named, in_turn

TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`"
    r"|(?P<name>[A-Za-z_$][\w$]*)|(?P<number>(?<![\w.])\d+(?![\w.]))|(?P<op>===|!==|==|!=|<=|>=|=>|->|\+\+|--|&&|\|\||<<|>>|[+\-*/%]=|[<>+\-*/%])",
    re.DOTALL | re.MULTILINE,
)
SWAPS = {
    "===": "!==", "!==": "===", "==": "!=", "!=": "==", "<=": "<", ">=": ">", "<": "<=", ">": ">=", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "/": "*", "%": "+", "+=": "-=", "-=": "+=",
}  # fmt: skip
RETURN = re.compile(r"\breturn\s+([^;\n{}]+);")


def rewritten(source: str, rng: random.Random) -> Iterator[Named]:
    made = {
        "comments added": f"// Written from the description.\n{source.strip()}\n/* That is all. */\n",
        "blank lines": source.replace("\n", "\n\n"),
        "white space at the ends": "\n".join(f"{line}  " for line in source.split("\n")),
    }
    if "\\\n" in source or "`" in source:
        made = {"comments added": made["comments added"]}
    yield from ((how, made[how]) for how in rng.sample(list(made), len(made)))


def mutants(source: str, language: str, rng: random.Random) -> Iterator[Named]:
    """(what is wrong, source), one change each. Some do not compile."""
    groups: dict[str, list[str]] = {}
    for token in TOKEN.finditer(source):
        for how, text in _changes(token, language):
            groups.setdefault(how, []).append(source[: token.start()] + text + source[token.end() :])
    for found in RETURN.finditer(source):
        groups.setdefault("returns a constant", []).append(f"{source[: found.start(1)]}0{source[found.end(1) :]}")
    yield from in_turn(groups, rng)


def _changes(token: re.Match[str], language: str) -> Iterator[Named]:
    op, number = token["op"], token["number"]
    if op in SWAPS and not _is_in_a_while(token):
        yield "another operator", SWAPS[op]
    if op == "*" and language == "javascript":
        yield "another operator", "+"
    if number and not _is_in_a_while(token):
        yield from (
            ("a constant off", str(int(number) + 1)),
            *((("a constant less", str(int(number) - 1)),) if int(number) else ()),
        )


def _is_in_a_while(token: re.Match[str]) -> bool:
    """A changed condition of a loop rarely ends."""
    line = token.string[token.string.rfind("\n", 0, token.start()) + 1 : token.start()]
    return "while" in line
