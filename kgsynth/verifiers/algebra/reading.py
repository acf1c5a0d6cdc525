"""One part of an answer -> a sympy expression that is not evaluated, with the parser that math-verify uses.

The parser (latex2sympy2-extended) guesses at juxtaposition: "(2)(3)" is 5 for it, a mixed number; "1/2 x" is 1/(2x);
"x^T" is x. What it gets here has its products written out, and what it would misread is not given to it at all.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import sympy
from latex2sympy2_extended.latex2sympy2 import ConversionConfig, _Latex2Sympy
from sympy.core.function import AppliedUndef

from kgsynth.verifiers.algebra.rejection import Rejection

COMMANDS = frozenset(
    "frac sqrt cdot pi infty sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh arcsinh arccosh arctanh "
    "ln log exp binom sum prod int lim rightarrow lfloor rfloor lceil rceil max min gcd lcm det alpha beta gamma delta epsilon "
    "varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon phi varphi chi psi omega Delta Theta Lambda Xi "
    "Sigma Phi Psi Omega ell overline pm".split()
)
CONFIG = ConversionConfig(interpret_as_mixed_fractions=False, lowercase_symbols=False)
ALLOWED = re.compile(r"[0-9A-Za-z\s+\-*/^_=(){}\[\]|.,!\\]*")
CALLED = "fgh"  # letters that before a bracket are functions, not factors
MAX_DIGITS, MAX_LOG10 = 1000, 10_000  # of a number in the text; of the size of a power
MIXED = re.compile(r"(?<![\d.}^_\])])(\d+)\s*\\frac\{(\d+)\}\{(\d+)\}")
MIXED_PLAIN = re.compile(r"(?<![\d.}^_/\])])(\d+)\s+(\d+)\s*/\s*(\d+)(?![\d./^!])")
QUOTIENT = re.compile(r"(?<![\d.^/_}!)a-zA-Z])(?<![/^]\s)(\d+)\s*/\s*(\d+)(?![\d./^!])(?!\s*[/^!])")
REPEATING = re.compile(r"(\d*)\.(\d*)(?:\\overline\s*\{(\d+)\}|\((\d+)\))")
NATURAL_LOG = re.compile(r"\\log(?!\s*_)(?![a-zA-Z])")


class ExactReader(_Latex2Sympy):
    """math-verify's parser, but a decimal is the fraction that it is, and its text does not go through `eval`, as it
    does in `sympy.Number(text)`."""

    def parse_number(self, text: str) -> sympy.Expr:
        return sympy.Rational(Fraction(text.replace(",", "")))


def read(text: str, *, log_base_10: bool = False) -> sympy.Expr:
    """The expression as written. `log` without a base is natural unless said. Raises Rejection: "unreadable", "too large"
    and "several answers" (plus-minus)."""
    _check(text)
    spelled = spell_out(text if log_base_10 else NATURAL_LOG.sub(r"\\ln", text))
    try:
        expression = ExactReader(config=CONFIG).parse(spelled)
    except (MemoryError, RecursionError):
        raise
    except SystemError as error:  # how the interpreter sometimes says that there is no memory
        raise MemoryError from error
    except Exception as error:  # the parser raises all kinds of things
        raise Rejection("unreadable") from error
    if not isinstance(expression, sympy.Expr):
        raise Rejection("other kind")
    expression = _imaginary(expression)
    check_size(expression)
    return expression


def _check(text: str) -> None:
    if not text.strip() or not ALLOWED.fullmatch(text):
        raise Rejection("unreadable")
    if set(re.findall(r"\\([a-zA-Z]+)", text)) - COMMANDS or re.search(r"\\(?![a-zA-Z])|\\lim(?![a-zA-Z_]|\s*_)", text):
        raise Rejection("unreadable")
    if r"\pm" in text:
        raise Rejection("several answers")
    if re.search(r"\^\s*(?:\{\s*)?(?:T|\\circ)(?![a-zA-Z])|\d\s+\.?\d(?!\s*\d*\s*/)|\d\.\d*\.|(?<![\w}\\])_", text):
        raise Rejection("unreadable")
    if re.search(rf"\d{{{MAX_DIGITS},}}|\\binom\W*\d{{5,}}", text):
        raise Rejection("too large")


def spell_out(text: str) -> str:
    """Mixed numbers as fractions, quotients of whole numbers as fractions, products of brackets with their dot."""
    text = REPEATING.sub(_repeating, text)
    text = MIXED_PLAIN.sub(_mixed, MIXED.sub(_mixed, text))
    text = QUOTIENT.sub(r"\\frac{\1}{\2}", text)
    text = re.sub(r"(?<![\d.])\.(?=\d)", "0.", text)
    text = re.sub(r"(?<=\d)\.(?!\d)", "", text)
    text = re.sub(r"\)\s*(?=[(\d])", r") \\cdot ", text)
    text = re.sub(r"(?<![\d.])(?<!_)(\d+(?:\.\d+)?)\s*\(", r"\1 \\cdot (", text)
    return re.sub(r"(?<![a-zA-Z\\])([a-zA-Z]*[a-eij-zA-Z])\s*\((?![^()]*\)\s*=)", _product, text)


def _product(match: re.Match[str]) -> str:
    """`x(2)` is a product; `f(2)` is not."""
    return match[0] if match[1] in CALLED else rf"{match[1]} \cdot ("


def _mixed(match: re.Match[str]) -> str:
    whole, top, bottom = map(int, match.groups())
    return rf"\frac{{{whole * bottom + top}}}{{{bottom}}}" if top < bottom else match[0]


def _repeating(match: re.Match[str]) -> str:
    """0.1(6), 0.1\\overline{6} -> \\frac{15}{90}."""
    whole, fixed, period = match[1] or "0", match[2], match[3] or match[4]
    top = int(whole + fixed + period) - int(whole + fixed or "0")
    return rf"\frac{{{top}}}{{{(10 ** len(period) - 1) * 10 ** len(fixed)}}}"


def _imaginary(expression: Any) -> Any:
    """i is the imaginary unit, I a letter like others; the parser has it the other way round."""
    bound = {symbol for node in expression.atoms(sympy.Sum, sympy.Product) for symbol in node.variables}
    i = sympy.Symbol("i")
    with sympy.evaluate(False):
        if sympy.I in expression.atoms(sympy.I.func):
            expression = expression.xreplace({sympy.I: sympy.Symbol("I")})
        return expression if i in bound or i not in expression.free_symbols else expression.xreplace({i: sympy.I})


def check_size(expression: sympy.Expr) -> None:
    """Raises Rejection when working it out would need numbers of more than MAX_LOG10 digits."""
    for node in sympy.postorder_traversal(expression):
        if isinstance(
            node, (sympy.Pow, sympy.exp, sympy.factorial, sympy.binomial, sympy.gamma, sympy.sinh, sympy.cosh)
        ):
            sizes = [_size(arg) for arg in node.args]
            if isinstance(node, sympy.Pow):
                digits = sizes[1] * max(abs(math.log10(sizes[0])) if sizes[0] else 0.0, 0.0 if sizes[0] == 1 else 0.01)
            else:
                digits = 3 * max(sizes)
            if digits > MAX_LOG10:
                raise Rejection("too large")


def _size(expression: Any) -> float:
    """The absolute value, roughly; of what has letters in it, 1 (a letter to a high power is cheap)."""
    try:
        return abs(complex(expression.evalf(8))) if not expression.free_symbols else 1.0
    except OverflowError:
        return math.inf
    except TypeError:  # an integral or a sum that has no number yet
        return 1.0


def is_applied(expression: sympy.Expr) -> bool:
    """Whether it contains a function that is only a letter: it has no values."""
    return bool(expression.atoms(AppliedUndef))


def letters(expression: sympy.Expr) -> set[str]:
    """Names of its variables and of functions that are only a letter."""
    functions = {str(call.func) for call in expression.atoms(AppliedUndef)}
    return functions | {str(symbol) for symbol in expression.free_symbols}
