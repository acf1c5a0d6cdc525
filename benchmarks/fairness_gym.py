"""reasoning-gym's data sets (github.com/open-thought/reasoning-gym): which of our verifiers judges each, and whether our
verdicts are those of its scorers, on the oracle's answer and on perturbed ones. A part of `verifier_fairness.py`.

Its scorers give partial credit; full credit (1.0) is what "right" means here.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kgsynth.verifiers import REGISTRY
from tests.fair import reply

Params = Callable[[str], dict[str, Any]]
Row = tuple[str, dict[str, Any], str, str, bool]  # verifier, params, answer, the oracle's, right for its scorer


def mathematics(kind: str, **rest: Any) -> tuple[str, Params]:
    return "mathematics", lambda answer: {"expected": answer, "kind": kind, **rest}


NUMBER = mathematics("number")
TEXT: tuple[str, Params] = ("text", lambda answer: {"answers": [answer]})
LITERAL: tuple[str, Params] = ("literal", lambda answer: {"value": answer})
LISTED: tuple[str, Params] = (
    "listed",
    lambda answer: {"items": [part.strip() for part in answer.split(",")], "ordered": True},
)

NUMBERS = """aiw basic_arithmetic binary_alternation chain_sum count_bits count_primes decimal_arithmetic decimal_chain_sum dice gcd
gsm_symbolic largest_island lcm leg_counting letter_counting maze number_sequence products rectangle_count rotten_oranges simple_equations
simple_geometry complex_arithmetic circuit_logic self_reference number_format coin_flip""".split()
TEXTS = """ab acre base_conversion binary_matrix caesar_cipher calendar_arithmetic color_cube_rotation course_schedule emoji_mystery
family_relationships figlet_font futoshiki game_of_life_halting isomorphic_strings letter_jumble mahjong_puzzle manipulate_matrix mini_sudoku
needle_haystack pool_matrix ransom_note rotate_matrix sentence_reordering spell_backward spiral_matrix string_insertion string_manipulation
string_splitting string_synthesis sudoku syllogism time_intervals tsumego zebra_puzzles arc_1d arc_agi rearc modulo_grid bitwise_arithmetic""".split()
JUDGES: dict[str, tuple[str, Params]] = {
    **dict.fromkeys(NUMBERS, NUMBER),
    **dict.fromkeys(TEXTS, TEXT),
    **dict.fromkeys(("number_sorting", "number_filtering", "list_functions", "game_of_life"), LITERAL),
    "word_sorting": LISTED,
    "word_sequence_reversal": LISTED,
    "fraction_simplification": mathematics("number", form="simplified"),
    "power_function": mathematics("number", tolerance=0.01),
    "polynomial_equations": mathematics("set"),
    "polynomial_multiplication": mathematics("expression", form="expanded"),
    "simple_integration": mathematics("expression"),
    "intermediate_integration": mathematics("expression"),
}
# the rest has many right answers: games, plans and constructions, which `properties` or `world` judge by what they do
# (what explains a difference, whether it does for (data set, answer, right here))
DIFFERENCES: tuple[tuple[str, Callable[[str, str, bool], bool]], ...] = (
    ("its scorer compares the truth of two texts, and every text is true", lambda name, answer, ours: name == "game_of_life_halting"),
    ("its scorer takes the first number in the text, without its minus: a list and -x pass", lambda name, answer, ours: not ours and name == "gsm_symbolic"),
    ("its scorer finds the right answer in a list of answers, or does not mind what follows it", lambda name, answer, ours: not ours and bool(re.search(r" or |, ", answer)) and name in MANY),
    ("its scorer reads the number of days and nothing after it", lambda name, answer, ours: not ours and name == "time_intervals"),
    ("a member that is given twice counts once in a set", lambda name, answer, ours: ours and name == "polynomial_equations"),
    ("its scorer allows a tolerance that its question does not state", lambda name, answer, ours: not ours and name in TOLERANT),
    ("a number may be written otherwise here (-0, a final zero, a separator)", lambda name, answer, ours: ours and name in NUMBERS),
    ("case, white space and a full stop do not count here", lambda name, answer, ours: ours and JUDGES[name][0] in ("text", "listed")),
)  # fmt: skip
MANY = """fraction_simplification intermediate_integration simple_integration polynomial_multiplication word_sorting letter_jumble
spell_backward""".split()
TOLERANT = """coin_flip decimal_arithmetic decimal_chain_sum dice number_format power_function complex_arithmetic number_sorting pool_matrix
polynomial_equations""".split()


def perturbed(answer: str, other: str) -> Iterator[str]:
    """The oracle's answer; then: another item's, a digit changed, a sign changed, something added, half of it, nothing."""
    yield answer
    yield other
    if digits := list(re.finditer(r"\d", answer)):
        last = digits[-1].start()
        yield f"{answer[:last]}{(int(answer[last]) + 1) % 10}{answer[last + 1 :]}"
    yield answer[1:] if answer.startswith("-") else f"-{answer}"
    yield f"{answer}, {other}"
    yield f"{answer} or {other}"
    yield answer[: len(answer) // 2]


def compare(per_dataset: int, show: bool) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import reasoning_gym
        from reasoning_gym.factory import DATASETS
    counts: Counter[str] = Counter()
    for name in sorted(JUDGES):
        rows = list(_rows(reasoning_gym.create_dataset(name, size=per_dataset, seed=7), name))
        found = _compared(name, rows, show)
        counts += found
        print(f"{name:<28}{JUDGES[name][0]:<14}{found['agree']}/{len(rows)}")
    others = sorted(set(DATASETS) - set(JUDGES))
    print(f"not compared, many right answers: {', '.join(others)}")
    for why, count in counts.most_common():
        print(f"{count:>5}  {why}")
    return {
        "datasets": len(JUDGES),
        "answers": sum(counts.values()),
        "agree": counts["agree"],
        "unexplained": counts["unexplained"],
    }


def _compared(name: str, rows: Sequence[Row], show: bool) -> Counter[str]:
    """How many answers are judged alike ("agree"), and how many differences each explanation has."""
    with ThreadPoolExecutor(2) as pool:
        ours = list(pool.map(lambda row: _ours(*row[:3]), rows))
    counts: Counter[str] = Counter()
    for (_, _, answer, oracle, right), mine in zip(rows, ours, strict=True):
        if mine == right:
            counts["agree"] += 1
            continue
        why = next((text for text, holds in DIFFERENCES if holds(name, answer, mine)), "unexplained")
        counts[why] += 1
        if show or why == "unexplained":
            here, there = ("right" if judged else "wrong" for judged in (mine, right))
            print(f"  {name}: {here} here, {there} there [{why}]: {oracle[:60]!r} {answer[:60]!r}")
    return counts


def _rows(dataset: Any, name: str) -> Iterator[Row]:
    """For the perturbed answers of every item."""
    verifier, params = JUDGES[name]
    entries = [entry for entry in dataset if isinstance(entry["answer"], str) and entry["answer"].strip()]
    for i, entry in enumerate(entries):
        if "Integral(" in entry["answer"]:
            print(f"  {name}: the oracle itself is undone, left out: {entry['answer']}")
            continue
        oracle, other = entry["answer"], entries[i - 1]["answer"]
        for answer in dict.fromkeys(perturbed(oracle, other)):
            if answer.strip():
                yield verifier, params(oracle), answer, oracle, _scored(dataset, answer, entry)


def _scored(dataset: Any, answer: str, entry: Any) -> bool:
    try:
        return dataset.score_answer(answer, entry) >= 1.0
    except Exception as error:  # its scorers raise for some answers
        print(f"  its scorer raised {type(error).__name__} for {answer[:40]!r}")
        return False


def _ours(verifier: str, params: dict[str, Any], answer: str) -> bool:
    return REGISTRY[verifier](reply(answer), params, None).score == 1
