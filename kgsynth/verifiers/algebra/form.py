"""Is an expression worked out, or does it still ask the question?

any         equality is enough
value       no operation is left that exact arithmetic carries out: not 2+2, 2*3, 2^3, sqrt(4), 8/4, sin(pi/6), 3!;
            fractions, roots, logarithms and powers of ten that remain are fine. What the reference leaves is allowed
simplified  "value", fractions in lowest terms, and no more operations than the reference has
factored    a product of factors that have no factors over the rationals
expanded    a sum of terms, like terms collected
"""

from __future__ import annotations

import re
from collections import Counter

import sympy
from sympy import Expr

from kgsynth.verifiers.algebra.equality import UNWORKED
from kgsynth.verifiers.algebra.reading import spell_out

FORMS = ("any", "value", "simplified", "factored", "expanded")
FRACTION = re.compile(r"\\frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(-?\d+)\s*\}")
EAGER = re.compile(r"\\(?:binom|gcd|lcm|max|min|lfloor|lceil|sum|prod|int|lim|det)(?![a-zA-Z])|(?<!\d)!|\d\s*!")


def fits(form: str, text: str, expression: Expr, expected_text: str, expected: Expr) -> bool:
    """Whether the expression, written as `text`, has the form, given how what was expected is written."""
    if form == "any":
        return True
    if form == "factored":
        return is_factored(expression)
    if form == "expanded":
        return is_expanded(expression)
    fine = unfinished(text, expression) <= unfinished(expected_text, expected)
    if form == "value":
        return fine
    return fine and in_lowest_terms(text) and sympy.count_ops(expression) <= sympy.count_ops(expected)


def unfinished(text: str, expression: Expr) -> set[str]:
    """Kinds of operations that could be carried out: "sum", "product", "power", "quotient", "function", "symbolic"."""
    kinds = {kind for node in sympy.postorder_traversal(expression) if (kind := _undone(node))}
    if EAGER.search(text):  # the parser carries these out itself
        kinds.add("function")
    if any(int(bottom) != 0 and int(top) % int(bottom) == 0 for top, bottom in FRACTION.findall(spell_out(text))):
        kinds.add("quotient")
    return kinds


def _undone(node: sympy.Basic) -> str:
    if isinstance(node, UNWORKED):
        return "symbolic"
    if isinstance(node, sympy.Add):
        return "sum" if sum(_is_literal(arg) for arg in node.args) > 1 or _repeats(node) else ""
    if isinstance(node, sympy.Mul):
        return "product" if _is_unworked_product(node) else ""
    if isinstance(node, sympy.Pow):
        return "power" if _is_unworked_power(node) else ""
    if isinstance(node, sympy.Function) and not node.free_symbols:
        done = node.doit()
        return "" if done.has(node.func) and not done.is_Rational else "" if done == sympy.E else "function"
    return ""


def _is_literal(node: sympy.Basic) -> bool:
    """A rational number as one writes it: 3, -3, 3/4."""
    if isinstance(node, sympy.Mul) and all(_is_literal(arg) for arg in node.args):
        return not _is_unworked_product(node)
    return isinstance(node, sympy.Rational) or _is_reciprocal(node)


def _is_reciprocal(node: sympy.Basic) -> bool:
    return isinstance(node, sympy.Pow) and node.args[1] == -1 and isinstance(node.args[0], sympy.Integer)


def _repeats(node: sympy.Add) -> bool:
    """The same term twice: x + x, sqrt(2) + 3 sqrt(2)."""
    bases = Counter(term.doit().as_coeff_Mul()[1] for term in node.args if not _is_literal(term))
    return any(count > 1 for count in bases.values())


def _is_unworked_product(node: sympy.Mul) -> bool:
    args = [arg for arg in node.args if arg not in (1, -1)]
    scientific = [
        arg
        for arg in args
        if isinstance(arg, sympy.Pow) and arg.args[0] == 10 and isinstance(arg.args[1], sympy.Integer)
    ]
    numerators = [arg for arg in args if isinstance(arg, sympy.Rational)]
    reciprocals = [arg for arg in args if _is_reciprocal(arg) and arg not in scientific]
    if len(numerators) > 1 or len(reciprocals) > 1 or 0 in args:
        return True
    if scientific:
        return bool(reciprocals) or len(scientific) > 1
    whole = len(numerators) == 1 and len(reciprocals) == 1 and numerators[0].is_Integer
    return whole and numerators[0] % reciprocals[0].args[0] == 0


def _is_unworked_power(node: sympy.Pow) -> bool:
    base, exponent = node.args
    if not (isinstance(base, sympy.Rational) and isinstance(exponent, sympy.Rational)):
        return bool(not node.free_symbols and node.doit().is_Rational and not _is_reciprocal(node))
    if _is_reciprocal(node) or (base == 10 and exponent.is_Integer):
        return False
    return bool(node.doit().is_Rational)


def in_lowest_terms(text: str) -> bool:
    return all(
        sympy.igcd(int(top), int(bottom)) == 1 and abs(int(bottom)) != 1
        for top, bottom in FRACTION.findall(spell_out(text))
    )


def is_factored(expression: Expr) -> bool:
    """Factors of a product, taken out of powers, are irreducible and without a common number in them."""
    factors = sympy.Mul.make_args(expression)
    if any(isinstance(factor, sympy.Mul) for factor in factors):
        return all(is_factored(factor) for factor in factors)
    bases = [factor.args[0] if isinstance(factor, sympy.Pow) else factor for factor in factors]
    return len(set(bases)) == len(bases) and all(_is_irreducible(base) for base in bases if base.free_symbols)


def _is_irreducible(base: Expr) -> bool:
    try:
        content, factors = sympy.factor_list(base)[:2]
    except sympy.PolynomialError:
        return True
    return abs(content) == 1 and len(factors) == 1 and factors[0][1] == 1


def is_expanded(expression: Expr) -> bool:
    """No product or power has a sum in it, and no two terms can be added up."""
    if any(
        isinstance(node, (sympy.Mul, sympy.Pow)) and _holds_sum(node) for node in sympy.postorder_traversal(expression)
    ):
        return False
    return len(_terms(expression)) == len(sympy.Add.make_args(sympy.expand(expression.doit())))


def _terms(expression: Expr) -> list[Expr]:
    """Of a sum, and of sums in it."""
    if not isinstance(expression, sympy.Add):
        return [expression]
    return [term for part in expression.args for term in _terms(part)]


def _holds_sum(node: sympy.Basic) -> bool:
    if isinstance(node, sympy.Pow):
        return isinstance(node.args[0], sympy.Add) and node.args[1].is_Integer and node.args[1] > 1
    return any(isinstance(arg, sympy.Add) for arg in node.args)
