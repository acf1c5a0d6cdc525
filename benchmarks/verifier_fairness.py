"""Are right answers accepted and wrong ones rejected? Our cases, math-verify's examples and reasoning-gym's data sets.

    python benchmarks/verifier_fairness.py [--math-verify FOLDER] [--per-dataset 5] [--show]

Sections: (1) the cases of tests/fair, per verifier; (2) the examples in math-verify's own tests (FOLDER: the `tests` of
a checkout of github.com/huggingface/Math-Verify), judged by `mathematics`; (3) the oracle answers of reasoning-gym's data
sets and perturbed ones, our verdict against its scorer's. Every difference falls under a named explanation, or is
counted as unexplained. The last line is one line of JSON.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox, open_sandbox
from kgsynth.verifiers import REGISTRY, Verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import fairness_gym
from tests.fair import judged, load, reply

# ----------------------------------------------------------------------------------------------------------- our cases


def our_cases(sandbox: Sandbox) -> dict[str, Any]:
    """Per module of tests/fair: right ones accepted, wrong ones rejected."""
    table: dict[str, Any] = {}
    print(f"{'verifier':<18}{'right':>7}{'accepted':>10}{'wrong':>7}{'rejected':>10}")
    for module, cases in load().items():
        right = [(case, answer) for case in cases for answer in (case.reference, *case.right)]
        wrong = [(case, answer) for case in cases for answer in case.wrong]

        def score(row: Any) -> float:
            case, answer = row
            return judged(case, answer, sandbox).score

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            accepted, rejected = sum(pool.map(score, right)), len(wrong) - sum(pool.map(score, wrong))
        table[module] = {"right": len(right), "accepted": int(accepted), "wrong": len(wrong), "rejected": int(rejected)}
        print(f"{module:<18}{len(right):>7}{accepted:>10.0f}{len(wrong):>7}{rejected:>10.0f}")
    return table


# ------------------------------------------------------------------------------------------------ math-verify's examples


@dataclass(frozen=True, kw_only=True)
class Example:
    """One line of a table in math-verify's tests."""

    gold: str
    answer: str
    right: bool
    precision: int | None = None


def math_verify_examples(folder: Path) -> Iterator[Example]:
    """The rows of every `parametrize("gold, pred, expected...")`, read without running anything."""
    for path in sorted(folder.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "parametrize"):
                continue
            names = re.split(r"\s*,\s*", ast.literal_eval(node.args[0]))
            if names[:2] == ["gold", "pred"] and isinstance(node.args[1], ast.List):
                yield from _rows(names, node.args[1])


def _rows(names: list[str], table: ast.List) -> Iterator[Example]:
    for element in table.elts:
        try:
            row = dict(zip(names, ast.literal_eval(element), strict=True))
        except ValueError:  # computed, not written down
            continue
        if row.get("strict") is not False:
            right = row["expected"] if "expected" in row else row["result"]
            yield Example(gold=row["gold"], answer=row["pred"], right=bool(right), precision=row.get("precision"))


PROSE = re.compile(
    r"(?<!\\)\b[A-Za-z']{3,}\b[^\\]*\s.*[A-Za-z]{2,}|^[A-Za-z]{4,}\s|\\text\{[^}]* [^}]*\}|[^\x00-\x7f]{2,}"
)


def answer_part(text: str) -> str:
    """What math-verify would look at in a whole solution: its boxes, else its last formula. Ours is asked for the answer
    alone: it stands between tags, and prose around it is no part of it."""
    text = text.replace("\\\\", "\\") if "matrix" not in text and "array" not in text else text
    boxes = [box for start in re.finditer(r"\\boxed\s*\{", text) if (box := _balanced(text, start.end() - 1))]
    if boxes:
        return ", ".join(dict.fromkeys(boxes)) if text.count("\\boxed") < 6 else boxes[-1]
    formulas = re.findall(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|\$([^$]+)\$", text, re.DOTALL)
    return "".join(formulas[-1]) if formulas and PROSE.search(text) else text


def _balanced(text: str, start: int) -> str:
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[start + 1 : at].strip()
    return ""


def kinds_of(gold: str) -> list[str]:
    """The kinds that a gold answer may be of, the likeliest first: the examples do not say."""
    plain = gold.replace("$", "").strip()
    if "matrix" in plain or "array" in plain:
        return ["matrix"]
    if re.search(r"\\cup|\\infty\s*[)\],]|^[\[(][^,]*,[^,]*\]$|^\[", plain):
        return ["interval", "tuple"]
    if re.search(r"<|>|\\[lg]eq?(?![a-z])", plain):
        return ["interval", "equation"]
    if re.search(r"[,;]|\\pm|\\{| or | and ", plain):
        return ["number", "tuple", "set", "interval"]
    left, equals, _ = plain.partition("=")
    return (
        ["equation", "expression"]
        if equals and len(left.strip()) > 1
        else ["number", "expression", "interval", "set", "equation"]
    )


def judged_example(example: Example) -> tuple[str, Verdict | None]:
    """(kind, verdict), right under any kind that the gold answer may be of."""
    gold, answer = answer_part(example.gold), answer_part(example.answer)
    found: tuple[str, Verdict | None] = ("", None)
    for kind in kinds_of(gold):
        params = {
            "expected": gold,
            "kind": kind,
            "tolerance": 10.0**-example.precision if example.precision else 0,
            "form": "any",
        }
        try:
            verdict = REGISTRY["mathematics"](reply(answer), params, None)
        except VerifierError:
            continue
        if verdict.score:
            return kind, verdict
        found = found if found[1] else (kind, verdict)
    return found


# (what explains a difference, whether it does for (example, our verdict))
Explanation = tuple[str, Callable[[Example, Verdict | None], bool]]
EXPLANATIONS: tuple[Explanation, ...] = (
    ("math-verify calls different values equal (1 - 1/e and 1 + 1/e)", lambda e, v: e.right and "mathrm{e}" in e.gold + e.answer),
    ("the gold answer is words, a letter or a time: for the verifiers text, choice, span", lambda e, v: v is None and bool(re.search(r"\\text|:|^\W*[A-Za-z]\W*$|[a-z]{3}", answer_part(e.gold)))),
    ("the gold answer is no mathematics that can be read (two answers for two questions, torn LaTeX)", lambda e, v: v is None),
    ("working is shown and one side of it is false (x = 5+5+1 = 7 = 11)", lambda e, v: e.right and bool(re.search(r"=.*(=|\\approx)", e.answer)) and v is not None and v.reason in ("wrong", "wrong form")),
    ("only an approximation is given and no tolerance allows it", lambda e, v: e.right and v is not None and v.reason in ("wrong", "wrong form") and bool(re.search(r"\\approx|\d\.\d", e.answer))),
    ("an answer hidden in working or among several: give it alone between the tags", lambda e, v: e.right and v is not None and v.reason in ("several answers", "too long", "unreadable", "other variables") and (len(e.answer) > 60 or bool(PROSE.search(e.answer)) or v.reason == "several answers")),
    ("a set where a tuple, interval or equation is asked for, or the other way round", lambda e, v: e.right and v is not None and v.reason in ("other kind", "unreadable", "wrong", "several answers") and bool(re.search(r"[,;{]", e.gold))),
    ("an inequality counts as the interval when it is solved; math-verify wants the interval's notation", lambda e, v: not e.right and bool(re.search(r"<|>|\\[lg]e", e.answer + e.gold))),
    ("math-verify reads an inline formula on one line only", lambda e, v: not e.right and "\n" in e.answer),
    ("two boxes in running text, which this benchmark joins", lambda e, v: not e.right and e.gold.count("boxed") > 1),
    ("math-verify wants the whole equation; here the value of a name is enough", lambda e, v: not e.right and "=" in e.gold),
)  # fmt: skip


def compare_with_math_verify(folder: Path, show: bool) -> dict[str, Any]:
    examples = list(dict.fromkeys(math_verify_examples(folder)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        judged = list(pool.map(judged_example, examples))
    counts: Counter[str] = Counter()
    for example, (kind, verdict) in zip(examples, judged, strict=True):
        if (verdict is not None and verdict.score == 1) == example.right:
            counts["agree"] += 1
            continue
        why = next((name for name, holds in EXPLANATIONS if holds(example, verdict)), "unexplained")
        counts[why] += 1
        if show or why == "unexplained":
            reason = verdict.reason if verdict else "not readable"
            print(
                f"  {'right' if example.right else 'wrong'} for math-verify, {kind} {reason!r} here [{why}]: {example.gold[:80]!r} {example.answer[:100]!r}"
            )
    for why, count in counts.most_common():
        print(f"{count:>5}  {why}")
    return {"examples": len(examples), "agree": counts["agree"], "unexplained": counts["unexplained"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--math-verify", type=Path, help="the folder `tests` of a checkout of Math-Verify")
    parser.add_argument("--per-dataset", type=int, default=5, help="items of each data set of reasoning-gym")
    parser.add_argument("--show", action="store_true", help="print the explained differences too")
    arguments = parser.parse_args()
    sandbox = open_sandbox()
    try:
        found: dict[str, Any] = {"cases": our_cases(sandbox)}
    finally:
        sandbox.close()
    if arguments.math_verify:
        print("\nmath-verify's examples")
        found["math_verify"] = compare_with_math_verify(arguments.math_verify, arguments.show)
    print("\nreasoning-gym's data sets")
    found["reasoning_gym"] = fairness_gym.compare(arguments.per_dataset, arguments.show)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
