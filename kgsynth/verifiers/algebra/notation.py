"""Plain text, Unicode and the many dialects of LaTeX, brought into one dialect. Strings to strings, nothing is computed.

The dialect: `\\frac{a}{b}`, `\\sqrt{a}`, `\\cdot`, braces around exponents and subscripts, `\\le`, `\\ge`, `\\ne`, `\\{`, no spacing
commands, no `\\left`; the words "or" and "and" stand alone.
"""

from __future__ import annotations

import re
import unicodedata

from kgsynth.verifiers.algebra.rejection import Rejection

SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
SYMBOLS = {
    "−": "-", "–": "-", "×": r" \cdot ", "·": r" \cdot ", "⋅": r" \cdot ", "∙": r" \cdot ", "÷": "/", "∕": "/", "⁄": "/",
    "≤": r" \le ", "⩽": r" \le ", "≥": r" \ge ", "⩾": r" \ge ", "≠": r" \ne ", "≈": r" \approx ", "≃": r" \approx ",
    "∞": r" \infty ", "∪": r" \cup ", "∩": r" \cap ", "∈": r" \in ", "∅": r" \emptyset ", "±": r" \pm ", "∨": " or ",
    "∧": " and ", "ℝ": r" \mathbb{R} ", "ℤ": r" \mathbb{Z} ", "π": r" \pi ", "°": r"^{\circ}", "º": r"^{\circ}", "∖": r" \setminus ",
    "⟨": r" \langle ", "⟩": r" \rangle ", "√": "sqrt", "∛": "cbrt", "′": "'", "…": r"\ldots", "\u00a0": " ", "\u202f": " ",
    "\u2009": " ", "α": r" \alpha ", "β": r" \beta ", "γ": r" \gamma ", "δ": r" \delta ", "ε": r" \epsilon ", "θ": r" \theta ",
    "λ": r" \lambda ", "μ": r" \mu ", "ρ": r" \rho ", "σ": r" \sigma ", "τ": r" \tau ", "φ": r" \phi ", "ω": r" \omega ",
}  # fmt: skip
COMMANDS = {
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "leq": "le", "leqslant": "le", "geq": "ge", "geqslant": "ge", "neq": "ne",
    "times": "cdot", "lor": "or", "land": "and", "vee": "or", "wedge": "and", "varnothing": "emptyset", "simeq": "approx",
    "lbrace": "{", "rbrace": "}", "vert": "|", "lvert": "|", "rvert": "|", "mid": "|", "lbrack": "[", "rbrack": "]", "backslash":
    "setminus", "dbinom": "binom", "tbinom": "binom", "degree": "circ", "to": "rightarrow", "infin": "infty", "lt": "<", "gt": ">",
    "R": "mathbb{R}", "reals": "mathbb{R}", "smallsetminus": "setminus", "arctg": "arctan", "tg": "tan", "ctg": "cot", "colon": ":",
}  # fmt: skip
BARE = ("{", "}", "|", "[", "]", "<", ">", ":", "or", "and")  # what such a command becomes without its backslash
DROPPED = re.compile(
    r"\\(?:left|right|middle|displaystyle|textstyle|limits|bigl?|bigr|Bigl?|Bigr|biggl?|biggr)(?![a-zA-Z])\.?|\\!\s*"
)
SPACING = re.compile(r"(?<!\\)\\[,;: ]|~|\\q?quad(?![a-zA-Z])|\\\n|\\thinspace(?![a-zA-Z])")
FONTS = re.compile(
    r"\\(?:mathrm|mathit|mathbf|mathsf|operatorname|textbf|textit|textrm|textnormal|mbox|rm)\*?\s*\{([^{}]*)\}"
)
NAMES = "arcsin arccos arctan arcsinh arccosh arctanh sinh cosh tanh sin cos tan cot sec csc ln log exp sqrt pi infty max min".split()
GREEK = "alpha beta gamma delta epsilon theta lambda mu rho sigma tau phi omega".split()
INVERSE = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}
WORDS = {
    **{name: name for name in NAMES + GREEK},
    **INVERSE,
    "infinity": "infty",
    "inf": "infty",
    "oo": "infty",
    "Infinity": "infty",
}
WORD = re.compile(rf"(?<![\\a-zA-Z])(?:{'|'.join(sorted(WORDS, key=len, reverse=True))})(?![a-zA-Z])")
TOWER = re.compile(r"\^\{([^{}]*)\}\s*\^\{([^{}]*(?:\{[^{}]*\})?)\}(?!\s*\^)")  # a^b^c is a^(b^c)
OPENERS, CLOSERS = "({[", ")}]"
MAX_NESTING = 60


def normalise(text: str) -> str:
    """The text in the one dialect. Raises Rejection for characters that cannot be part of mathematics."""
    text = _commands(_characters(text))
    text = _calls(_words(text))
    text = re.sub(r"\^\s*(-?\d+|-?[a-zA-Z](?![a-zA-Z]))", r"^{\1}", text)
    while (tower := TOWER.sub(r"^{\1^{\2}}", text)) != text:
        text = tower
    text = re.sub(r"_\s*(\d+|[a-zA-Z](?![a-zA-Z]))", r"_{\1}", text)
    text = re.sub(r"\\frac\s*(\d|[a-zA-Z](?![a-zA-Z]))\s*(?=[\d{a-zA-Z])", r"\\frac{\1}", text)
    text = re.sub(r"(\\frac\s*\{[^{}]*\})\s*(\d|[a-zA-Z])", r"\1{\2}", text)
    text = re.sub(r"\\sqrt\s*(\d+|[a-zA-Z](?![a-zA-Z]))", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\d.,])\d{1,3}(?:\s\d{3})+(?!\d|\s*/)", lambda m: re.sub(r"\s", "", m[0]), text)
    check_nesting(text)
    return " ".join(text.split())


def check_nesting(text: str) -> None:
    """Raises Rejection when brackets are nested too deep: every reader here is recursive."""
    depth = 0
    for char in text:
        depth += (char in OPENERS) - (char in CLOSERS)
        if depth > MAX_NESTING:
            raise Rejection("too large")


def _characters(text: str) -> str:
    text = text.replace("²⁄", "2/").replace("\u2044", "/")
    text = re.sub(f"[{''.join(SUPERSCRIPTS)}]+", lambda m: "^{" + "".join(SUPERSCRIPTS[c] for c in m[0]) + "}", text)
    text = re.sub(f"[{''.join(SUBSCRIPTS)}]+", lambda m: "_{" + "".join(SUBSCRIPTS[c] for c in m[0]) + "}", text)
    text = re.sub("[¼-¾⅐-⅞]", _vulgar, text)
    text = re.sub("[" + re.escape("".join(SYMBOLS)) + "]", lambda m: SYMBOLS[m[0]], text)
    text = unicodedata.normalize("NFKC", text)
    if any(ord(char) > 126 or (ord(char) < 32 and char not in "\t\n\r") for char in text):
        raise Rejection("unreadable")
    return text


def _vulgar(match: re.Match[str]) -> str:
    """½ -> \\frac{1}{2}."""
    top, bottom = unicodedata.normalize("NFKC", match[0]).split("⁄")
    return rf"\frac{{{top}}}{{{bottom}}}"


def _commands(text: str) -> str:
    text = (
        re.sub(r"\\\\(?=[a-zA-Z]{2})(?!begin|end|hline)", r"\\", text)
        if "matrix" not in text and "array" not in text
        else text
    )
    text = re.sub(r"(?<=[R}])\s*\\\s+(?=\\?\{)", r" \\setminus ", text)
    text = SPACING.sub(" ", DROPPED.sub("", text).replace(r"{,}", ","))
    text = re.sub(r"\\(?:text|mathrm|mathit)\s*\{\s*([ei])\s*\}", r"\1", text)
    text = re.sub(r"\\(?:text|mathrm|mbox)\s*\{\s*,?\s*(or|and)\s*\}", r" \1 ", text)
    text = FONTS.sub(lambda m: rf"\text{{{m[1]}}}", text)
    text = re.sub(r"\\text\{\s*(arc\w+|sinh?|cosh?|tanh?|ln|log)\s*\}", r"\\\1", text)
    return re.sub(r"\\([a-zA-Z]+)", _command, text)


def _command(match: re.Match[str]) -> str:
    name = COMMANDS.get(match[1], match[1])
    if name in ("{", "}"):
        return "\\" + name
    return f" {name} " if name in BARE else f"\\{name}"


def _words(text: str) -> str:
    """Names of functions and constants get their backslash; programmers' operators become mathematicians'."""
    text = re.sub(r"(?<![\\a-zA-Z])log_?(2|10)\s*(?=\()", r"\\log_{\1}", text)
    text = WORD.sub(lambda m: "\\" + WORDS[m[0]], text)
    text = re.sub(r"(?<=\d)(pi|sqrt)(?![a-zA-Z])", r"\\\1", text)
    text = (
        text.replace("**", "^")
        .replace("<=", r" \le ")
        .replace(">=", r" \ge ")
        .replace("!=", r" \ne ")
        .replace("==", "=")
    )
    text = re.sub(r"~\s*=|~", r" \\approx ", text)
    text = text.replace("*", r" \cdot ")
    return re.sub(r"(?<![a-zA-Z\\])(\d+(?:\.\d+)?|\.\d+)[eE]([+-]?\d{1,4})(?![\d.a-zA-Z])", r"\1 \\cdot 10^{\2}", text)


def _calls(text: str) -> str:
    """`\\sqrt(a)`, `cbrt(a)`, `abs(a)`, `\\exp(a)` and `^(a)` with their round brackets as the dialect writes them."""
    for name, before, after in (
        (r"\sqrt", r"\sqrt{", "}"),
        ("cbrt", r"\sqrt[3]{", "}"),
        ("abs", "|", "|"),
        ("^", "^{", "}"),
        (r"\exp", "e^{", "}"),
    ):
        start = 0
        while (found := _find_call(text, name, start)) is not None:
            begin, opening, end = found
            text = f"{text[:begin]}{before}{text[opening + 1 : end]}{after}{text[end + 1 :]}"
            start = begin + len(before)
    return re.sub(r"(?<![\\a-zA-Z])cbrt\s*(\d+)", r"\\sqrt[3]{\1}", text)


def _find_call(text: str, name: str, start: int) -> tuple[int, int, int] | None:
    """(start of the name, its opening bracket, the closing one) of the first `name(...)` from `start` on."""
    pattern = rf"(?<![a-zA-Z]){re.escape(name)}\s*\(" if name.isalpha() else rf"{re.escape(name)}\s*\("
    for match in re.compile(pattern).finditer(text, start):
        if (end := closing(text, match.end() - 1)) is not None:
            return match.start(), match.end() - 1, end
    return None


def closing(text: str, opening: int) -> int | None:
    """Where the bracket that opens at `opening` closes."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] in OPENERS) - (text[at] in CLOSERS)
        if depth == 0:
            return at
    return None
