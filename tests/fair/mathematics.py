"""`mathematics`: notations of right answers, and what is nearly one."""

from __future__ import annotations

from typing import Any

from tests.fair import Case


def case(
    kind: str, expected: str, right: tuple[str, ...], wrong: tuple[str, ...], *, reference: str = "", **params: Any
) -> Case:
    params = {"expected": expected, "kind": kind, **params}
    return Case(verifier="mathematics", params=params, reference=reference or expected, right=right, wrong=wrong)


NUMBERS = [
    case(
        "number",
        r"\frac{1}{2}",
        right=(
            "1/2", "0.5", ".5", "0.50", r"\frac12", r"\dfrac{1}{2}", r"\tfrac{1}{2}", "$\\frac{1}{2}$", r"\(\frac{1}{2}\)", r"\boxed{\frac{1}{2}}",
            "½", "2/4", "50%", r"50\%", "50 percent", "x = 1/2", "x = 0.5", "The answer is 1/2.", "1/2 = 0.5", "**1/2**", "+1/2", "(1/2)", "Answer: 1/2", "Answer $ \\frac12 $",
            r"\frac{1}{2} = 0.5", "The final answer is $\\boxed{\\frac{1}{2}}$.", r"$$\frac{1}{2}$$", "x=\\frac{1}{2}=0.5", "１/２",
        ),
        wrong=(
            "1/3", "2", "-1/2", "0.05", "0.51", "0.4999999999", "5%", "50", "1, 2", "1/2 or 1/3", "1/2, 1/3", "{1/2, 1/3}", r"\pm\frac{1}{2}", "1/2 = 1/3",
            "0.5 = 5", r"\boxed{1/2} \boxed{1/3}", r"\boxed{\frac12} or \boxed{\frac13}", "any real number", "x", "x = x", "0 < x < 1", "[0, 1]", "1-1/2", "2-3/2",
            r"\frac{1}{4}+\frac{1}{4}", "True", "1/2 + x - x", "1/2 + 0x", "0/0", "oo", "nan", r"\infty", "1/0", "1/2 if x else 1/3", "half", "(1/2", "1/2)", "1 2",
            r"\sin(\pi/6)", r"\sqrt{1/4}", "1/2!", "one of 1/2 and 1/3", "not 1/2", "1/2?", "0.5\\text{ or so}", "1/2\\text{ million}", "{1/2}{1/3}",
        ),
    ),
    case(
        "number",
        "4",
        right=("4", "4.0", "+4", "4.", "04", "x = 4", "4 = x", "2 + 2 = 4", "2+2=\\boxed{4}", "$4$", r"4 \text{ apples}", "4 cm", "4cm", r"4\,\mathrm{m}", "$4", "\\$4"),
        wrong=(
            "2+2", "2*2", "2^2", r"\sqrt{16}", "8/2", "5 - 1", "3!-2", "4!", "3", "40", "-4", "(2)(2)", r"2 \cdot 2", "2 + 2 = 5", "4 = 2 + 3", "4 and 5", "4;5", "4x", "4 x",
            "4/1 + 0", r"\log_2 16", r"\binom{4}{1}", "|-4|", r"\lfloor 4.5 \rfloor", "4i", "{4}+1", "4e1", "4\\%", "4 thousand", r"4 \text{ thousand}", "four or five", "4...", "IV",
        ),
    ),
    case(
        "number",
        "1234567.5",
        right=("1,234,567.5", "1 234 567.5", "1{,}234{,}567.5", r"1\,234\,567.5", "1.2345675e6", r"1.2345675 \times 10^6", r"1.2345675\cdot10^{6}", r"1,\!234,\!567.5", r"1,\! 234,\! 567.5", "\\$1,234,567.50"),
        wrong=("1,234,567", "1,234,567.6", "1.234.567,5", "12,34,567.5", "0,1234567.5", "1,234567.5", "1234567,5,0", "1.2345675e5", "1, 234, 567.5", "123456.75"),
    ),
    case(
        "number",
        r"2\sqrt{3}",
        right=("2√3", "2*sqrt(3)", "2sqrt(3)", r"\sqrt{12}", r"2\sqrt3", r"\frac{6}{\sqrt{3}}", r"2 \cdot 3^{1/2}", r"2\sqrt{3} \approx 3.46", r"x = 2\sqrt{3}", r"\sqrt{12} = 2\sqrt{3}", "sqrt(12)"),
        wrong=(r"3\sqrt{2}", "3.46", "3.4641016151377544", r"\approx 3.46", r"2\sqrt{3} \approx 3.6", r"\sqrt{6}", r"\pm 2\sqrt{3}", r"-2\sqrt{3}", r"2\sqrt{3}i", r"\sqrt{3}+\sqrt{3}", "2*3^0.5001"),
    ),
    case(
        "number",
        r"\frac{7}{2}",
        right=("3 1/2", r"3\frac{1}{2}", "3½", "3.5", "7/2", "3,5", r"3 \frac12", r"\frac{14}{4}", "350%"),
        wrong=("3/2", "31/2", r"3 \cdot \frac{1}{2}", "3 1/3", "2/7", r"-3\frac{1}{2}", r"3+\frac{1}{2}", "3, 5"),
    ),
    case("number", "-3.5", right=(r"-3\frac{1}{2}", "-7/2", "−3.5", r"\frac{-7}{2}", r"-\frac72", r"\frac{7}{-2}", "-3 1/2"), wrong=("3.5", "-2.5", "--3.5", "3.5-", "-3-0.5")),
    case(
        "number",
        r"\frac{\pi}{3}",
        right=("π/3", "pi/3", r"\pi/3", r"\frac{1}{3}\pi", "60°", r"60^\circ", "60 degrees", r"\frac{\pi}{3} \text{ rad}"),
        wrong=("π", "1.0472", "3/π", "30°", "60", r"\frac{\pi}{6}", r"\arccos(\frac12)", r"\frac{\pi}{3}+2\pi k", "p/3"),
    ),
    case("number", r"30^\circ", right=("30°", "30 degrees", "30", r"30^{\circ}", "30º", r"\frac{\pi}{6}", r"30\degree"), wrong=("60°", r"\frac{\pi}{3}", "30%", "300", r"30 \text{ cm}")),
    case("number", r"25\%", right=("25%", "25 percent", "25 pct", r"25 \text{ percent}", "25", "0.25", "1/4", r"25\ \%"), wrong=("2.5%", "0.25%", "2500", "75%", "0.025", "25°")),
    case("number", r"\frac{1}{3}", right=("0.(3)", r"0.\overline{3}", "1/3", "⅓", r"33\frac{1}{3}\%"), wrong=("0.33", "0.333333", "0.3333333333333333333333", "33%", "3/9 - 0", "1:2")),
    case(
        "number",
        "9.81",
        right=("9.81", "9.8", "9.80665", "9.81 m/s^2", r"9.81\,\mathrm{m/s^2}"),
        wrong=("9.5", "10.9", "-9.81", "9.7..9.9", r"9.81 \pm 5", "9 or 10", "[9, 10]", "981", "nan", "inf", r"9.81 + \infty"),
        tolerance=0.01,
    ),
    case("number", "12", right=("12 cm", "12cm", "12", r"12\text{ cm}", "12 centimetres", r"12\,\mathrm{cm}"), wrong=("12 m", "12 mm", r"12 \text{ km}", "12 cm^2", "0.12 m", "12%"), units=["cm", "centimetres"]),
    case("number", r"\ln 2", right=(r"\ln(2)", "ln 2", "log(2)", r"\frac{\ln 4}{2}"), wrong=(r"\ln 3", "0.693", r"\log_{10} 2", r"\log_2 2", "2", "-ln(1/2) + 1")),
    case("number", r"1 + \sqrt{2}", right=(r"\sqrt{2}+1", r"\frac{1}{\sqrt{2}-1}", "1+√2", "sqrt(2) + 1"), wrong=(r"\sqrt{3}", r"1-\sqrt{2}", r"1 \pm \sqrt{2}", "2.414", r"\sqrt{2}+1+0")),
    case("number", "3+4i", right=("3 + 4i", "4i + 3", r"3+4\mathrm{i}"), wrong=("3-4i", "5", "3+4j", "4+3i", "7i", "(3, 4)")),
    case("number", "0", right=("0", "0.0", "0.00", "x = 0", "-0"), wrong=("1e-30", "x - x", "1-1", r"\emptyset", "nothing", "0, 1", "o", r"\sin \pi", "0.0000001")),
    case("number", r"\infty", right=("∞", "infinity", r"+\infty", r"\infty"), wrong=(r"-\infty", "nan", "1/0", "10^{100}", r"\infty-\infty", "undefined")),
    case("number", r"-\infty", right=("-∞", "-infinity", "-oo", r"x = -\infty"), wrong=(r"\infty", r"\pm\infty", "0", r"-\infty+\infty")),
    case("number", "1024", right=("1024", "1,024", r"1.024 \times 10^3"), wrong=("2^{10}", "32^2", "4^5", r"2^{10}\cdot 1", "1000")),
    case("number", "2^{100}", right=("2^100", "2**100", "1267650600228229401496703205376", "4^{50}"), wrong=("2^{101}", "1.2676506e30", "1267650600228229401496703205377", "2^{99}+2^{99}")),
]  # fmt: skip

EXPRESSIONS = [
    case(
        "expression",
        "x^2 + 2x + 1",
        right=("(x+1)^2", "x**2 + 2*x + 1", "1 + 2x + x²", r"(x+1)(x+1)", "y = x^2+2x+1", "f(x) = x^2 + 2x + 1", r"x \cdot x + 2x + 1", "x(x+2)+1", r"\left(x+1\right)^{2}", "$x^2+2x+1$", r"x^{2}+2\,x+1"),
        wrong=(
            "x^2 + 2x", "x^2 + 2x - 1", "(x-1)^2", "y^2 + 2y + 1", "x^2 + 2x + 1 + y - y", "(x+1)^2, x", "x^2+2x+1 = 0", "x = x", "(x+1)^{2.0001}", "x+1", "4", "(x+1)^2 or (x-1)^2",
            "f(x)", "x^2+2x+C", "x2+2x+1", "2x^2+2x+1", "X^2+2X+1", "x^2+2x+1 m", "x^2+2x+1 + f(x) - f(x)", r"x^2+2x+1+\lfloor |x|/1000 \rfloor", r"x^2+2x+\max(1, x/1000)", "x^{2} m",
        ),
    ),
    case("expression", r"\sin(2x)", right=(r"2\sin x\cos x", "2sin(x)cos(x)", "sin 2x", r"\sin 2x", r"2\sin(x)\cos(x)", r"\cos(\frac{\pi}{2}-2x)"), wrong=(r"2\sin x", r"\sin^2 x", r"\cos 2x", r"\sin x \cos x", "sin(2y)", r"|\sin 2x|")),
    case("expression", r"\frac{x+1}{x-1}", right=("(x+1)/(x-1)", r"1+\frac{2}{x-1}", r"\frac{-x-1}{1-x}", r"\frac{x^2+x}{x^2-x}"), wrong=("x+1/x-1", r"\frac{x-1}{x+1}", "(x+1)(x-1)", r"\frac{x+1}{x+1}")),
    case("expression", r"2\ln x", right=(r"\ln x^2", "ln(x^2)", "2 ln(x)", "2*log(x)"), wrong=(r"(\ln x)^2", r"\ln 2x", r"\ln x + 2", r"\ln^2 x"), domain="positive"),
    case("expression", "|x|", right=(r"\sqrt{x^2}", "abs(x)", r"\left|x\right|", r"\lvert x \rvert"), wrong=("x", "-x", r"\pm x", "x^2")),
    case("expression", "6x^2 - 5x", right=("6x^2-5x", "-5x+6x²", "x(6x-5)"), wrong=("6x^2+5x", "6x-5", "x^2", "6x^2 - 5x + C")),
    case("expression", r"\frac{n(n+1)}{2}", right=("n(n+1)/2", r"\frac{n^2+n}{2}", r"\frac12 n(n+1)", "(n^2+n)/2", "0.5n^2+0.5n"), wrong=(r"\frac{n(n-1)}{2}", r"\sum_{k=1}^{n-1} k", "n(n+1)", "n^2/2"), domain="integer"),
    case("expression", "x^2 - 5x + 6", right=("(x-2)(x-3)", "(x-3)(x-2)", "(3-x)(2-x)"), wrong=("x^2-5x+6", "(x-1)(x-6)", "(x-2)(x+3)", "x(x-5)+6", "(x-2)(x-3)+0"), form="factored", reference="(x-2)(x-3)"),
    case("expression", "x^2 - 5x + 6", right=("x^2-5x+6", "6 - 5x + x^2"), wrong=("(x-2)(x-3)", "x^2-2x-3x+6", "x(x-5)+6"), form="expanded"),
    case("expression", r"\frac{3}{4}x", right=("3x/4", r"\frac{3x}{4}", "0.75x"), wrong=(r"\frac{6}{8}x", "x/4+x/2", "x-x/4"), form="simplified"),
    case("expression", "ab^2c", right=("a b^2 c", r"c \cdot a \cdot b^2", "a*b**2*c"), wrong=("abc", "a^2bc", "(abc)^2", "ab2c")),
    case("expression", r"x_1 + x_2", right=("x_2+x_1", "x_{1}+x_{2}", "x₁ + x₂"), wrong=("x_1 + x_3", "x_1x_2", "2x", "x_{12}")),
    case("expression", r"e^{-x}", right=("exp(-x)", r"\exp(-x)", r"\frac{1}{e^x}", "e^(-x)", r"\mathrm{e}^{-x}"), wrong=("e^x", "-e^x", "e^{-2x}", "e-x")),
    case("expression", r"2\pi r", right=("2πr", "2*pi*r", r"\pi \cdot 2r", "C = 2 pi r"), wrong=(r"\pi r^2", r"2\pi", "6.28r", r"\pi r")),
]  # fmt: skip

COLLECTIONS = [
    case(
        "set",
        r"\{-2, 3\}",
        right=("{3, -2}", "-2, 3", "3 and -2", "x = -2 or x = 3", "x=3, x=-2", r"x \in \{-2, 3\}", r"x_1 = -2, x_2 = 3", "-2; 3", r"\{3,-2\}", "$x=-2$ or $x=3$", r"x=-2 \text{ or } x=3", "x = -2, 3"),
        wrong=("3", "-2", "{-2, 3, 4}", "{2, 3}", "-2, 3, 5", "x = -2 or y = 3", "(-2, 3)", "[-2, 3]", r"\emptyset", r"\mathbb{R}", "all real numbers", "-2 < x < 3", "{-2, 3, x}", "{-2, 1+2}", r"\{-2\} \cup \{4\}", "-2 3"),
    ),
    case("set", r"\{-\sqrt{2}, \sqrt{2}\}", right=(r"\pm\sqrt{2}", "±√2", r"x = \pm \sqrt{2}", "√2, -√2", r"\{\sqrt2, -\sqrt2\}"), wrong=(r"\sqrt{2}", r"\pm 2", "±1.414", r"\pm\sqrt{2}, 0")),
    case("set", r"\{1,2,3\}", right=("{3,2,1}", "1, 2, and 3", "{1, 1, 2, 3}", "1,2,3", r"\{1\}\cup\{2,3\}"), wrong=("{1,2}", "{1,2,3,4}", "1..3", "{1,2,3,...}", "123", "1+2+3")),
    case("set", r"\{2m, 3m\}", right=("3m, 2m", "2m or 3m"), wrong=("2, 3", "{2 m, 3}", "5m")),
    case("set", "{1.41, 2}", right=("2, 1.41", "1.414, 2"), wrong=("1.4, 1.41, 1.42, 2", "1, 2", "1.41"), tolerance=0.01),
    case("set", r"\emptyset", right=("∅", "{}", "no solution", r"\varnothing", "no real solutions", r"\{\}", r"\text{no solution}"), wrong=("0", "{0}", r"\{\emptyset\}", "x", r"\mathbb{R}", "all reals")),
    case("set", r"\{(1,2),(2,1)\}", right=("(2,1), (1,2)", "(x, y) = (1, 2) or (2, 1)", r"\boxed{(1,2)} and \boxed{(2,1)}", "{(1, 2), (2, 1)}", "(1,2) and (2,1)"), wrong=("(1,2)", "{1,2}", "(1,2),(1,2)", "(1,2),(2,1),(0,0)", "(1,2),(2,2)")),
    case("set", r"\{1000, 2000\}", right=("1,000 and 2,000", "{1,000, 2,000}", "1000, 2000", "1 000; 2 000"), wrong=("1, 0, 2", "1000", "{1000, 2000, 0}")),
    case(
        "tuple",
        "(1, -2)",
        right=("(1,-2)", "[1, -2]", "1, -2", "x = 1, y = -2", "y = -2, x = 1", "(x, y) = (1, -2)", r"\langle 1, -2 \rangle", r"\begin{pmatrix}1\\-2\end{pmatrix}", "<1, -2>", "x=1 and y=-2", r"\left(1,-2\right)", "(1; -2)"),
        wrong=("(-2, 1)", "{1, -2}", "(1, 2)", "(1, -2, 0)", "x = -2, y = 1", "(y, x) = (1, -2)", "1", "(1, -2), (3, 4)", "(1,-2) or (2,1)", "x=1", "-1", "x = 1, x = -2", "(1, 1-3)"),
        variables=["x", "y"],
    ),
    case("tuple", r"(\frac{1}{2}, \sqrt{2}, \pi)", right=("(0.5, √2, π)", "(1/2, sqrt(2), pi)", r"\left(\frac12,\sqrt2,\pi\right)"), wrong=("(0.5, 1.414, 3.14)", "(√2, 1/2, π)", "(1/2, √2)")),
    case(
        "matrix",
        r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
        right=("[[1,2],[3,4]]", r"\begin{bmatrix}1&2\\3&4\end{bmatrix}", r"\left[\begin{array}{cc}1&2\\3&4\end{array}\right]", r"A = \begin{pmatrix}1 & 2 \\ 3 & 4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}^T", r"\frac{1}{2}\begin{pmatrix}2&4\\6&8\end{pmatrix}", r"$\begin{pmatrix}1.0&2\\3&4\end{pmatrix}$"),
        wrong=(r"\begin{pmatrix}1&3\\2&4\end{pmatrix}", "[[1,2],[3,5]]", "[1,2,3,4]", r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "-2", r"\begin{pmatrix}1&2\end{pmatrix}", r"2\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[[1,2],[3,4],[5,6]]", "[[1,2],[3]]"),
    ),
]  # fmt: skip

INTERVALS = [
    case(
        "interval",
        "(1, 3]",
        right=("(1,3]", "1 < x <= 3", "1 < x ≤ 3", r"x \in (1, 3]", "]1, 3]", "x > 1 and x <= 3", r"\{x \mid 1 < x \le 3\}", r"3 \ge x > 1", r"\left(1, 3\right]", r"1<x\leq 3", "{x : 1 < x <= 3}", r"\{x \in \mathbb{R} \mid 1 < x \leq 3\}"),
        wrong=("[1, 3]", "(1, 3)", "[1, 3)", "(3, 1]", "(1, 4]", "1 < x < 3", "x > 1", "x <= 3", "x > 1 or x <= 3", "(1, 3] ∪ {5}", r"\mathbb{R}", "{1, 3}", "{2, 3}", "3", "(x-1)(x-3) <= 0", "2 < 2x <= 6", r"\emptyset", "1 < x <= 3 or y = 0"),
    ),
    case(
        "interval",
        r"(-\infty, 1) \cup (2, \infty)",
        right=("(-∞,1) ∪ (2,∞)", "x < 1 or x > 2", "(-oo, 1) U (2, oo)", r"x<1 \text{ or } x>2", "(2, ∞) ∪ (-∞, 1)", r"x \in (-\infty,1)\cup(2,\infty)", "x>2 or x<1", "(-inf, 1) ∪ (2, inf)"),
        wrong=("x < 1 and x > 2", "(1, 2)", "(-∞,1] ∪ [2,∞)", "x < 1", "x ≠ 1", "x^2 - 3x + 2 > 0", "(-∞, ∞)", "(−∞,1) ∩ (2,∞)", "1 > x > 2", "[-∞, 1) ∪ (2, ∞)"),
    ),
    case("interval", r"\mathbb{R} \setminus \{2\}", right=("x ≠ 2", r"x \neq 2", "(-∞,2) ∪ (2,∞)", "all real numbers except 2", r"\mathbb{R} - \{2\}", "x < 2 or x > 2", "R \\ {2}"), wrong=(r"\mathbb{R}", "x = 2", r"x \ne 3", "all real numbers", "x > 2", r"x \ne 2, 3")),
    case("interval", r"\mathbb{R}", right=("all real numbers", "(-∞, ∞)", "ℝ", r"x \in \mathbb{R}", r"(-\infty, +\infty)", "all reals"), wrong=("x", "x = x", "0", "(0, ∞)", r"\mathbb{Z}", "any")),
    case("interval", r"[\frac{1}{2}, \infty)", right=("x >= 1/2", "[0.5, ∞)", "x ≥ ½", "[1/2, oo)", r"0.5 \le x", "[0.5; ∞["), wrong=("(0.5, ∞)", "x > 1/2", "[2, ∞)", "2x >= 1", "[0.5, 10^9)", "x <= 1/2")),
]  # fmt: skip

EQUATIONS = [
    case(
        "equation",
        "y = 2x + 1",
        right=("2x - y = -1", "y - 2x - 1 = 0", "2x + 1 = y", "y=1+2x", "2y = 4x + 2", r"x = \frac{y-1}{2}", "y - 1 = 2x", "$y=2x+1$", "y = 2(x+1) - 1"),
        wrong=("y = 2x - 1", "y = 2x", "2x + 1", "x = x", "0 = 0", "1 = 1", "y = y", "y = 2x + 1 + z", "y > 2x + 1", "(y-2x-1)^2 = 0", "y = 2x+1 or y = x", "y = 2x + 1 = 5", "(y-2x-1)(x-y)=0", "f(x) = 2x+1", "x = 2y + 1", "True", "0(y-2x-1)=0"),
    ),
    case("equation", "x^2 + y^2 = 25", right=("y^2 + x^2 = 25", "x^2 = 25 - y^2", "25 = x²+y²", "x^2+y^2-25=0"), wrong=("x^2+y^2=5", "x + y = 5", "x^2-y^2=25", "x^2+y^2 <= 25", "x^2+y^2=25, x=0")),
    case("equation", "2x + y < 4", right=("y < 4 - 2x", "4 > 2x + y", "-2x - y > -4", "4x + 2y < 8"), wrong=("2x + y > 4", "2x + y <= 4", "2x + y = 4", "y > 4 - 2x", "-2x - y < -4", "0 < 1", "x < x + 1")),
    case("equation", "x = 5", right=("x=5", "5 = x", "x - 5 = 0", "2x = 10"), wrong=("x = 4", "y = 5", "x = x", "x^2 = 25", "5", "x = 5 or x = 6")),
]  # fmt: skip

CASES = NUMBERS + EXPRESSIONS + COLLECTIONS + INTERVALS + EQUATIONS
