"""The forms in which a model may ask: what it must give for each, what the program checks, and what verifier decides.

text         a term that stands in the quotation, with other spellings
number       a quantity that stands in the quotation, with its unit
mathematics  a value that a second derivation, run in the sandbox, gives too
choice       one of four options
literal      what a snippet of Python shows: it is run
listed       several terms that stand in the quotations
span         one sentence of a passage that the prompt shows
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pydantic import BaseModel, Field

from kgsynth.concept import SourceSpan
from kgsynth.errors import ValidationError, VerifierError
from kgsynth.retrieve import Passage
from kgsynth.sample import Sample
from kgsynth.sandbox import Sandbox
from kgsynth.synthesize.env import answered, rng_of
from kgsynth.synthesize.evidence import Quote, check_guess, proved, says
from kgsynth.synthesize.snippet import UNREPEATABLE, run_snippets
from kgsynth.task import VerifierSpec
from kgsynth.verifiers import REGISTRY, units
from kgsynth.verifiers.code.source import tree_of
from kgsynth.verifiers.function_tests import Call, decode, run_calls
from kgsynth.verifiers.number import judge, wanted
from kgsynth.verifiers.text import normalise
from kgsynth.verifiers.units import UnitError
from kgsynth.web.screen import is_clean
from kgsynth.web.sentences import sentence_end

LETTERS = "ABCD"
SHOWN = 700  # characters of a passage that a span task shows
NUMBER = re.compile(r"(?<![\w.,])[-+]?\d[\d.,]*(?:\s?[x×]\s?10\^?-?\d+)?")
FOLLOWING = 4  # words after a number that may belong to its unit
NO_UNITS = frozenset("a in at as are is to per by of times".split())  # words that also name units
WORK = (ast.BinOp, ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
STATING = frozenset("int float str complex Fraction Decimal tuple list set solve".split())  # calls that compute nothing
FORMULA = re.compile(r"[=^√∑]|\\frac|\b(?:formula|equation|sum|product|square|root|probability|logarithm)\b")


class Written(BaseModel):
    """A question with its only right answer and the words that prove it. Fields that a form does not use stay empty."""

    type: Literal["text", "number", "mathematics", "choice", "literal", "listed", "span"]
    question: str = Field(min_length=15, max_length=700)
    answer: str = Field(min_length=1, max_length=400)
    wrong: list[str] = Field(min_length=3, max_length=6, description="plausible answers that are certainly wrong")
    evidence: list[Quote] = Field(min_length=1, max_length=4, description="the words that prove the answer")
    aliases: list[str] = Field(default_factory=list, max_length=6, description="text: other spellings of the answer")
    unit: str = Field(default="", max_length=40, description="number: its unit, e.g. 'm/s^2'")
    nouns: list[str] = Field(default_factory=list, max_length=4, description="number without unit: what is counted")
    tolerance: float = Field(default=0.0, ge=0, le=0.05, description="number: relative; 0 is exact")
    items: list[str] = Field(default_factory=list, max_length=12, description="listed: the parts of the answer")
    ordered: bool = Field(default=False, description="listed: does their order count?")
    kind: Literal["number", "expression", "set", "interval", "tuple", "matrix", "equation"] = "number"
    code: str = Field(default="", max_length=2000, description="Python, for mathematics and literal")


@dataclass(frozen=True, kw_only=True)
class Scored:
    """How a question is put and scored."""

    ending: str  # of the prompt
    verifier: VerifierSpec
    reference: str
    wrong: tuple[str, ...]
    told: tuple[str, ...] = ()  # what the question must not contain


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a form works with."""

    sample: Sample
    reply: Written
    passages: Sequence[Passage]
    spans: Sequence[SourceSpan]
    sandbox: Sandbox


@dataclass(frozen=True, kw_only=True)
class Form:
    """One way to ask."""

    wish: str  # what the model is told to give
    scored: Callable[[Given], Scored]  # raises ValidationError
    fits: Callable[[str], bool] = lambda text: True  # could passages with this text support it?


def fitting(passages: Sequence[Passage]) -> list[str]:
    """The forms that these passages may support."""
    text = "\n".join(passage.span.text for passage in passages)
    return [name for name, form in FORMS.items() if form.fits(text)]


def scored(given: Given) -> Scored:
    """Raises ValidationError: quote, unit, trivial, oracle, vacuous, wrong or form."""
    made = FORMS[given.reply.type].scored(given)
    _check_wrong(made)
    return made


def _check_wrong(made: Scored) -> None:
    """A wrong answer that the verifier accepts is a right one, or the verifier is too generous."""
    verifier = REGISTRY[made.verifier.name]
    try:
        for answer in made.wrong:
            if verifier(answer, made.verifier.params, None).score:
                raise ValidationError("wrong", f"a wrong answer counts as right: {answer!r}")
    except VerifierError as error:
        raise ValidationError("form", str(error)) from error


def text(given: Given) -> Scored:
    answers = [given.reply.answer.strip(), *(alias.strip() for alias in given.reply.aliases)]
    check_guess(answers[0])
    proved(answers[0], given.spans)
    return Scored(
        ending="Write the term in <answer></answer>.",
        verifier=VerifierSpec(name="text", params={"answers": list(dict.fromkeys(filter(None, answers)))}),
        reference=answered(answers[0]),
        wrong=tuple(answered(w.strip()) for w in given.reply.wrong),
        told=tuple(answers),
    )


def number(given: Given) -> Scored:
    reply = given.reply
    value, unit = reply.answer.strip(), reply.unit.strip()
    value = value.removesuffix(unit).strip() if unit else value
    params: dict[str, Any] = {"value": value, "relative": reply.tolerance}
    params |= {"unit": unit} if unit else {"nouns": [n.casefold() for n in reply.nouns]} if reply.nouns else {}
    try:
        asked = wanted(params)
    except VerifierError as error:
        raise ValidationError("form", str(error)) from error
    if not any(judge(quantity, asked) == "right" for span in given.spans for quantity in _quantities(span.text)):
        raise ValidationError("quote", f"no quotation gives {value} {unit}".rstrip())
    left_out = [] if unit else [u for u in _units_after(value, given.spans) if not says(reply.question, u)]
    if left_out:
        raise ValidationError("unit", f"the quotation gives {value} in {left_out[0]}, the answer without a unit")
    wrong = [f"{w} {unit}".strip() if re.fullmatch(r"[-+\d.,/ ]+", w) else w for w in reply.wrong]
    wrong += [slip for slip in (f"{s} {unit}".strip() for s in _slips(value)) if judge(slip, asked) != "right"]
    within = f", to within {100 * reply.tolerance:g} %" if reply.tolerance else ""
    return Scored(
        ending=f"Write the number {'with its unit' if unit else 'alone'}{within} in <answer></answer>.",
        verifier=VerifierSpec(name="number", params=params),
        reference=answered(f"{value} {unit}".strip()),
        wrong=tuple(map(answered, dict.fromkeys(wrong))),
        told=(value,),
    )


def _quantities(quoted: str) -> Iterator[str]:
    """Every number of a quotation, alone and with the words after it."""
    for found in NUMBER.finditer(quoted):
        words = quoted[found.end() :].split()[:FOLLOWING]
        figure = found[0].rstrip(".,")
        for count in range(len(words) + 1):
            yield " ".join([figure, *words[:count]]).rstrip(".,;:)")


def _units_after(value: str, spans: Sequence[SourceSpan]) -> Iterator[str]:
    """Names of units that follow the value in a quotation."""
    for span in spans:
        for found in re.finditer(rf"(?<![\w.,]){re.escape(value)}\s?([A-Za-zµΩ°%]+)", span.text):
            try:
                if found[1].casefold() not in NO_UNITS and units.parse(found[1]):
                    yield found[1]
            except UnitError:
                continue


def _slips(value: str) -> Iterator[str]:
    """A power of ten off, one off, half."""
    try:
        exact = Fraction(value.replace(",", ""))
    except (ValueError, ZeroDivisionError):
        return
    for slip in (exact * 10, exact + 1, exact / 2, exact / 10):
        if slip != exact:
            yield str(slip) if slip.denominator == 1 else f"{float(slip):.6g}"


def mathematics(given: Given) -> Scored:
    """The answer is right when a program that does not know it computes the same."""
    reply, params = given.reply, {"expected": given.reply.answer.strip(), "kind": given.reply.kind}
    if _is_vacuous(reply.code):
        raise ValidationError("vacuous", "the derivation computes nothing")
    (outcome,) = run_calls(reply.code, "solve", [Call()], given.sandbox)
    found = decode(outcome.value) if outcome.kind == "returned" else None
    if found is None:
        raise ValidationError("oracle", f"the derivation fails: {outcome.detail or 'it returns nothing'}")
    rounding = {"tolerance": 1e-9} if reply.kind == "number" else {}
    try:
        agreed = REGISTRY["mathematics"](answered(str(found)), {**params, **rounding, "form": "any"}, None)
    except VerifierError as error:
        raise ValidationError("form", str(error)) from error
    if agreed.score != 1:
        raise ValidationError("oracle", f"the derivation gives {found!s:.80}, the answer is {reply.answer!r}")
    return Scored(
        ending="Write the exact result, worked out, in <answer></answer>.",
        verifier=VerifierSpec(name="mathematics", params=params),
        reference=answered(params["expected"]),
        wrong=tuple(answered(w.strip()) for w in reply.wrong),
        told=(params["expected"],) if len(params["expected"]) > 3 else (),
    )


def _is_vacuous(code: str) -> bool:
    """Does a derivation only state its result? Raises ValidationError "oracle" when it is no Python."""
    try:
        nodes = list(ast.walk(tree_of(code)))
    except ValueError as error:
        raise ValidationError("oracle", f"the derivation is no Python: {error}") from error
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return not called - STATING and not any(isinstance(node, WORK) for node in nodes)


def choice(given: Given) -> Scored:
    options = [given.reply.answer.strip(), *(w.strip() for w in given.reply.wrong[:3])]
    if len({normalise(option) for option in options}) < len(options):
        raise ValidationError("wrong", "two options are the same")
    right = options[0]
    rng_of(given.sample, "letters").shuffle(options)
    texts = dict(zip(LETTERS, options, strict=True))
    correct = next(letter for letter, option in texts.items() if option == right)
    lines = "\n".join(f"{letter}. {option}" for letter, option in texts.items())
    return Scored(
        ending=f"{lines}\nReply with the letter in <answer></answer>.",
        verifier=VerifierSpec(name="choice", params={"correct": correct, "options": list(LETTERS), "texts": texts}),
        reference=answered(correct),
        wrong=tuple(answered(letter) for letter in LETTERS if letter != correct),
        told=(right,),
    )


def literal(given: Given) -> Scored:
    """What the snippet shows decides, not what the model says that it shows."""
    reply = given.reply
    try:
        tree = tree_of(reply.code)
    except ValueError as error:
        raise ValidationError("oracle", f"the snippet is no Python: {error}") from error
    if named := UNREPEATABLE & {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}:
        raise ValidationError("oracle", f"what the snippet shows depends on more than the snippet: {min(named)}")
    statements = [ast.unparse(node) for node in tree.body]
    (printed,) = run_snippets([statements], given.sandbox) if statements else (None,)
    if not printed or not printed.strip():
        raise ValidationError("oracle", "the snippet fails, shows nothing, or not the same every time")
    params = {"value": printed.strip()}
    if not REGISTRY["literal"](answered(reply.answer), params, None).score:
        raise ValidationError("oracle", f"the snippet shows {printed.strip()[:80]!r}, the answer is {reply.answer!r}")
    return Scored(
        ending=f"```python\n{reply.code.strip()}\n```\nWrite the exact value that its last line shows in <answer></answer>.",
        verifier=VerifierSpec(name="literal", params=params),
        reference=answered(printed.strip()),
        wrong=tuple(answered(w.strip()) for w in reply.wrong),
    )


def listed(given: Given) -> Scored:
    reply, items = given.reply, [item.strip() for item in given.reply.items if item.strip()]
    if len({normalise(item) for item in items}) < max(2, len(items)):
        raise ValidationError("form", f"a list needs at least two different items, not {items}")
    for item in items:
        proved(item, given.spans)
    others = [w.strip() for w in reply.wrong]
    lists = [items[:-1], [others[0], *items[1:]], [*items, others[0]], [*items[:-1], others[1]]]
    lists += [items[::-1], [*items[1:], items[0]]] if reply.ordered else []
    order = ", in this order," if reply.ordered else ""
    return Scored(
        ending=f"Write the {len(items)} items{order} in <answer></answer>, separated by semicolons.",
        verifier=VerifierSpec(name="listed", params={"items": items, "ordered": reply.ordered}),
        reference=answered("; ".join(items)),
        wrong=tuple(answered("; ".join(wrong)) for wrong in lists if wrong != items),
        told=() if reply.ordered else tuple(items),
    )


def span(given: Given) -> Scored:
    """The answer is a whole sentence, so that where it begins and ends is no matter of taste."""
    at, whole = given.reply.evidence[0].passage, given.spans[0]
    passage = given.passages[at].span
    start, end = whole.start - passage.start, whole.end - passage.start
    sentences = list(_sentences(passage.text))
    mine = next((i for i, (a, b) in enumerate(sentences) if (a, b) == (start, end)), None)
    if mine is None or normalise(given.reply.answer) != normalise(whole.text):
        raise ValidationError("quote", "the answer and the first quotation must be one whole sentence of a passage")
    low, high = _window(sentences, mine)
    shown = passage.text[low:high]
    others = [passage.text[a:b] for i, (a, b) in enumerate(sentences) if i != mine and low <= a and b <= high]
    if not others or not is_clean(shown):
        raise ValidationError(
            "material" if not others else "injection", "no passage that can be shown around the sentence"
        )
    return Scored(
        ending=f"\n{shown}\n\nCopy the one sentence that answers this, word for word, into <answer></answer>.",
        verifier=VerifierSpec(name="span", params={"source": shown, "spans": [[start - low, end - low]]}),
        reference=answered(whole.text),
        wrong=tuple(map(answered, others)),
    )


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Offsets of the sentences, paragraph by paragraph."""
    for paragraph in re.finditer(r"\S.*?(?=\n\s*\n|\s*\Z)", text, re.DOTALL):
        at, last = paragraph.span()
        while at < last:
            stop = min(last, sentence_end(text, at))
            yield at, stop
            at = stop + len(text[stop:last]) - len(text[stop:last].lstrip())


def _window(sentences: Sequence[tuple[int, int]], mine: int) -> tuple[int, int]:
    """As many sentences around one as may be shown."""
    first = last = mine
    while True:
        wider = [(first - 1, last), (first, last + 1)]
        fit = [(a, b) for a, b in wider if a >= 0 and b < len(sentences) and sentences[b][1] - sentences[a][0] <= SHOWN]
        if not fit:
            return sentences[first][0], sentences[last][1]
        first, last = min(fit, key=lambda ends: abs(ends[0] + ends[1] - 2 * mine))


FORMS = {
    "text": Form(wish="answer: a term that stands in a quotation; aliases: every other spelling that is as right.", scored=text),
    "number": Form(
        wish="answer: a number that stands in a quotation; unit: its unit (or nouns: what is counted); tolerance: relative, "
        "0 unless the passage rounds.",
        scored=number,
        fits=lambda text: bool(re.search(r"\d", text)),
    ),
    "mathematics": Form(
        wish="pose a problem whose rule a passage states. answer: the exact result, in LaTeX or plain; kind: what it is; code: a Python "
        "function solve() that works the result out from what the question gives and returns it (a number, or text).",
        scored=mathematics,
        fits=lambda text: bool(FORMULA.search(text)),
    ),
    "choice": Form(wish="answer: the text of the right option; wrong: exactly three others of like length.", scored=choice),
    "literal": Form(
        wish="code: a short Python snippet without imports of files, clocks or chance, whose last line is an expression; question: what it "
        "shows, without the snippet, which is put below; answer: what the last line shows.",
        scored=literal,
        fits=lambda text: ">>>" in text,
    ),
    "listed": Form(
        wish="items: two to six terms that stand in quotations and are all of their kind; ordered: whether their order is asked for; "
        "answer: the items in one line; wrong: terms that do not belong.",
        scored=listed,
    ),
    "span": Form(
        wish="the reader is shown the passage and must find a sentence. answer and first quote: that whole sentence; question: what "
        "only this sentence answers.",
        scored=span,
    ),
}  # fmt: skip
