"""The one format of answers: which replies have an answer, which answer that is, and what is taken off around it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.verifiers.answer import CLOSE, FORM_REASONS, MAX_LENGTH, OPEN, extract, strip_fence, unwrap

ANSWERS = [
    ("<Answer>B</Answer>", "B"),
    ("<ANSWER>B</answer>", "B"),
    ("< answer >B</ answer >", "B"),
    ("<answer\n>B< /answer>", "B"),
    ("**<answer>B</answer>**", "B"),
    ("`<answer>B</answer>`", "B"),
    ("```\n<answer>B</answer>\n```", "B"),
    ("The answer is A, no:\n\n<answer>B</answer>\n\nSo B it is.", "B"),
    ("<answer>```json\n{}\n```</answer>", "{}"),
    ("<answer>~~~\n  x\n~~~</answer>", "  x"),
    ("<answer>````\n```\n````</answer>", "```"),
    ("<answer>a < b > c</answer>", "a < b > c"),
    ("<answer>\x00\ud800</answer>", "\x00\ud800"),
    # reasoning
    ("<think>is it <answer>A</answer>?</think><answer>B</answer>", "B"),
    ("<think>the tag <answer> opens it</think><answer>B</answer>", "B"),
    ("<thinking>A</thinking> <answer>B</answer>", "B"),
    ("<THINK><answer>A</answer></THINK><answer>B</answer>", "B"),
    ("<think>1</think> so <think><answer>A</answer></think> <answer>B</answer>", "B"),
    ("is it <answer>A</answer>?</think><answer>B</answer>", "B"),
    ("it goes into <answer> tags</think><answer>B</answer>", "B"),
    ("<answer>B</answer><think>but what if <answer>A</answer></think>", "B"),
    ("<answer>B</answer><think>never closed <answer>A</answer>", "B"),
    ("<think>a <think> b</think></think><answer>B</answer>", "B"),
    ("<answer>print('<think>')</answer>", "print('<think>')"),
    ("<answer>print('</think>')</answer>", "print('</think>')"),
    ("<think>x</think><answer>'<think></think>'</answer>", "'<think></think>'"),
]

NO_ANSWERS = [
    ("no tags", "no answer tag"),
    ("&lt;answer&gt;B&lt;/answer&gt;", "no answer tag"),
    ("<ans\u200bwer>B</ans\u200bwer>", "no answer tag"),
    ("<answer id='1'>B</answer>", "no answer tag"),
    ("<final_answer>B</final_answer>", "no answer tag"),
    ("<an\u017fwer>B</an\u017fwer>", "no answer tag"),  # a long s, which case folding takes for an s
    ("<answer>B", "no answer tag"),
    ("</answer>B<answer>", "no answer tag"),
    ("<think><answer>B</answer></think>", "no answer tag"),
    ("<think>never closed <answer>B</answer>", "no answer tag"),
    ("<answer>B</answer></think>", "no answer tag"),  # all of it was reasoning
    ("<answer>A</answer><answer>B</answer>", "several answers"),
    ("<answer>B</answer><answer>B</answer>", "several answers"),
    ("<answer>A</answer><ANSWER>B</ANSWER>", "several answers"),
    ("<answer>A<answer>B</answer></answer>", "several answers"),
    ("<answer>B</answer></answer>", "several answers"),
    ("```\n<answer>A</answer>\n```\n<answer>B</answer>", "several answers"),
    ("<!-- <answer>A</answer> --><answer>B</answer>", "several answers"),
    ("Reply in <answer></answer>. <answer>B</answer>", "several answers"),
    ("<think>x</think><answer>A</answer></think><answer>B</answer>", "several answers"),
    ("<answer></answer>", "empty"),
    ("<answer>\u00a0\n</answer>", "empty"),
    ("<answer>~~~\n\n~~~</answer>", "empty"),
    (f"<answer>{'x' * (MAX_LENGTH + 1)}</answer>", "too long"),
]


@pytest.mark.parametrize(("reply", "text"), ANSWERS)
def test_the_answer_of_a_reply(reply: str, text: str) -> None:
    assert extract(reply) == (text, "")


@pytest.mark.parametrize(("reply", "reason"), NO_ANSWERS)
def test_a_reply_without_one_answer(reply: str, reason: str) -> None:
    assert extract(reply) == ("", reason)


pieces = st.lists(
    st.sampled_from([OPEN, CLOSE, "<think>", "</think>", "A", "B", "\n", "```", "<Answer >", "<", ">", "/"]) | st.text()
)


@settings(deadline=None)
@given(pieces.map("".join))
def test_every_reply_has_an_answer_or_a_reason(reply: str) -> None:
    text, reason = extract(reply)
    assert (reason in FORM_REASONS) if reason else text.strip()


@settings(deadline=None)
@given(st.text(), st.text(), st.text())
def test_text_around_the_tags_changes_nothing(before: str, answer: str, after: str) -> None:
    alone = extract(OPEN + answer + CLOSE)
    assert "<" in before + answer + after or extract(before + OPEN + answer + CLOSE + after) == alone


@settings(deadline=None)
@given(pieces.map("".join), pieces.map("".join))
def test_what_is_in_the_reasoning_changes_nothing(thought: str, reply: str) -> None:
    assert "</think" in thought or extract(f"<think>{thought}</think>{reply}") == extract(f"<think></think>{reply}")


@pytest.mark.parametrize(
    "reply",
    [
        OPEN * 100_000,
        CLOSE * 100_000,
        (OPEN + CLOSE) * 100_000,
        "<think>" * 100_000 + "</think>" * 100_000,
        f"{OPEN}x</think>" * 50_000,
        "<" + " " * 10_000_000 + "answer>",
        "< " * 1_000_000,
        "x" * 10_000_000,
    ],
    ids=lambda reply: reply[:20],
)
def test_a_flood_of_tags_is_no_answer(reply: str) -> None:
    assert extract(reply)[0] == ""


UNWRAPPED = [
    ("**B**", "B"),
    ("***B***.", "B"),
    ("`x`", "x"),
    ("``` x ```", "x"),
    ("'don't'", "don't"),
    ('"a", "b"', '"a", "b"'),
    ("**a** and **b**", "**a** and **b**"),
    ("$x$ and $y$", "$x$ and $y$"),
    ("“a”.", "a"),
    ("$\\boxed{\\frac{1}{2}}$", "\\frac{1}{2}"),
    ("\\text{\\textbf{a}} b", "a b"),
    ("\\(x\\)", "x"),
    ("Answer: B", "B"),
    ("**Answer:** B", "B"),
    ("**Final answer**: **B**", "B"),
    ("The correct option is B", "B"),
    ("The answer is not B", "not B"),
    ("answers: B", "answers: B"),
    ("Answer:", "Answer:"),
    ("...", "..."),
    ("**", "**"),
    ("''", "''"),
    ("**kwargs", "**kwargs"),
    ("\\text{}", "\\text{}"),
]


@pytest.mark.parametrize(("text", "bare"), UNWRAPPED)
def test_unwrap(text: str, bare: str) -> None:
    assert unwrap(text) == bare


@settings(deadline=None)
@given(st.lists(st.sampled_from(["**", "`", "'", '"', "$", "“", "”", ".", " ", "\\text{", "}", "answer:", "a", "b"])))
def test_unwrap_ends_and_never_empties(parts: list[str]) -> None:
    text = "".join(parts)
    assert unwrap(unwrap(text)) == unwrap(text)
    assert bool(unwrap(text)) == bool(text.strip())
    assert strip_fence(text) == text
