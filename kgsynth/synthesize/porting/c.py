"""Functions of the subset in C: whole numbers are `long`, lists come with their length, and a pair of numbers goes out through an array."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from kgsynth.synthesize.porting.kinds import BOOL, CHAR, FLOAT, INT, STR, CannotPort, Kind
from kgsynth.synthesize.porting.writer import (
    ATOM,
    COMPARED,
    EQUAL,
    INDENT,
    PLUS,
    TIMES,
    UNARY,
    Code,
    Writer,
    bracketed,
    hoisted,
    same_as,
)  # fmt: skip

HELPERS = {
    "floor_div": "// The quotient is rounded down.\nstatic long floor_div(long a, long b) {\n  long q = a / b;\n"
    "  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;\n}",
    "mod": "// The remainder has the sign of the divisor.\nstatic long mod(long a, long b) {\n  long r = a % b;\n"
    "  return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}",
    "float_mod": "// The remainder has the sign of the divisor.\nstatic double float_mod(double a, double b) {\n  double r = fmod(a, b);\n"
    "  return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}",
    "power": "static long power(long base, long exponent) {\n  long result = 1;\n  for (; exponent > 0; exponent--) {\n    result *= base;\n  }\n"
    "  return result;\n}",
    "shift_left": "static long shift_left(long a, long bits) {\n  return a == 0 ? 0 : a << bits;\n}",
    "shift_right": "static long shift_right(long a, long bits) {\n  return a >> (bits < 63 ? bits : 63);\n}",
    "smaller": "static long smaller(long a, long b) {\n  return a < b ? a : b;\n}",
    "larger": "static long larger(long a, long b) {\n  return a > b ? a : b;\n}",
    "bit_length": "static long bit_length(long a) {\n  long bits = 0;\n  for (; a != 0; a /= 2) {\n    bits++;\n  }\n  return bits;\n}",
    "square_root": "static long square_root(long n) {\n  long root = (long)sqrt((double)n);\n  while (root * root > n) {\n    root--;\n  }\n"
    "  while ((root + 1) * (root + 1) <= n) {\n    root++;\n  }\n  return root;\n}",
}
INCLUDES = ("math.h", "stdbool.h", "stdlib.h", "string.h")
NAMES = {"int": "long", "float": "double", "bool": "bool", "char": "char"}
OUT = "out"


class C(Writer):
    """Numbers and truth values, arrays and text that are read."""

    reserved = frozenset(
        "auto break case char const continue default do double else enum extern float for goto if inline int long register restrict"
        " return short signed sizeof static struct switch typedef union unsigned void volatile while abs labs index rindex round exp"
        " log pow sqrt floor ceil div gamma y0 y1 yn j0 j1 jn remove rename time signal main out bool true false power mod smaller larger"
        " random select read write link shift_left shift_right".split()
    )

    def function(self, name: str) -> str:
        types = self.types
        self.declared |= set(types.parameters)
        late = hoisted(types.function, list(types.parameters))
        self.declared |= set(late)
        first = [f"{self.declaration(self.name(v), types.variables[v])};" for v in late]
        lines = [INDENT + line for line in (*first, *self.body(types.function.body))]
        return "\n".join([f"{self.head(name)} {{", *lines, "}"])

    def head(self, name: str) -> str:
        """long f(const long *a, long n_a)"""
        returns = self.types.returns
        assert returns is not None
        parameters = [part for p, kind in self.types.parameters.items() for part in self._parameter(self.name(p), kind)]
        if returns.name == "tuple":
            parameters.append(f"{NAMES[returns.item.name]} *{OUT}")
        return f"{c_name(returns) if returns.name != 'tuple' else 'void'} {name}({', '.join(parameters)})"

    def _parameter(self, name: str, kind: Kind) -> list[str]:
        if kind.name == "list" and kind.item in (INT, FLOAT):
            return [f"const {c_name(kind.item)} *{name}", f"long n_{name}"]
        return [f"{c_name(kind)}{'' if kind.name == 'str' else ' '}{name}"]

    def constant(self, name: str, value: object) -> str:
        if isinstance(value, list | tuple) and value and all(type(v) in (int, float) for v in value):
            kind = "double" if any(type(v) is float for v in value) else "long"
            return f"static const {kind} {self.name(name)}[] = {{{', '.join(map(repr, value))}}};"
        if type(value) in (int, float):
            return f"static const {'long' if type(value) is int else 'double'} {self.name(name)} = {value!r};"
        if isinstance(value, str):
            return f"static const char *const {self.name(name)} = {self.text(value)[0]};"
        raise CannotPort(f"{name} is no constant of C")

    def declaration(self, name: str, kind: Kind) -> str:
        if kind not in (INT, FLOAT, BOOL, CHAR):
            raise CannotPort(f"a variable that holds a {kind.name}")
        return f"{NAMES[kind.name]} {name}"

    def text(self, value: str) -> Code:
        if not value.isascii() or "\0" in value or not (value.isprintable() or set(value) <= set(" \n\t")):
            raise CannotPort("text that is not ASCII")
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace(
            "\t", "\\t"
        ) + '"', ATOM

    def truth(self, code: Code, kind: Kind) -> Code:
        if kind.name in ("int", "float"):
            return f"{bracketed(code, EQUAL + 1)} != 0", EQUAL
        if kind.name == "str":
            return f"{bracketed(code, ATOM)}[0] != '\\0'", EQUAL
        raise CannotPort(f"the truth of a {kind.name}")

    def _truth_of_list(self, node: ast.expr) -> Code | None:
        if isinstance(node, ast.Name) and self.types.of(node).name == "list":
            return f"n_{self.name(node.id)} != 0", EQUAL
        return None

    def tested(self, node: ast.expr) -> Code:
        return self._truth_of_list(node) or super().tested(node)

    def operated(self, op: ast.operator, left: ast.expr, right: ast.expr) -> Code:
        kind = self.types.of(ast.BinOp(left, op, right))
        if not kind.is_number:
            raise CannotPort(f"a {kind.name} that is put together")
        decimal = kind == FLOAT
        match op:
            case ast.Div():
                cast = "" if self.is_float(left, right) else "(double)"
                return f"{cast}{self.at(left, UNARY if cast else TIMES)} / {self.at(right, TIMES + 1)}", TIMES
            case ast.FloorDiv() if decimal:
                return f"floor({self._decimal(left, TIMES)} / {self.at(right, TIMES + 1)})", ATOM
            case ast.FloorDiv():
                return self._helper("floor_div", left, right)
            case ast.Mod():
                return self._helper("float_mod" if decimal else "mod", left, right)
            case ast.Pow() if decimal:
                return f"pow({self.code(left)}, {self.code(right)})", ATOM
            case ast.Pow():
                if not isinstance(right, ast.Constant):
                    raise CannotPort("a power whose exponent may be negative")
                return self._helper("power", left, right)
            case ast.LShift() | ast.RShift() if not (_is_small(right) and isinstance(left, ast.Name)):
                return self._helper("shift_left" if isinstance(op, ast.LShift) else "shift_right", left, right)
        return self.arithmetic(op, left, right)

    def _decimal(self, node: ast.expr, strength: int) -> str:
        return self.at(node, strength) if self.types.of(node) == FLOAT else f"(double){self.at(node, UNARY)}"

    def _helper(self, name: str, *args: ast.expr) -> Code:
        self.needs.add(name)
        return f"{name}({', '.join(map(self.code, args))})", ATOM

    def compared(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Code:
        a, b = self.types.of(left), self.types.of(right)
        if isinstance(op, ast.In | ast.NotIn):
            return self._member(left, right, isinstance(op, ast.NotIn))
        op = same_as(op)
        if type(op) not in COMPARED:
            raise CannotPort("a comparison that C does not have")
        sign, strength = COMPARED[type(op)]
        if a == b == CHAR:
            return f"{self._char(left)} {sign} {self._char(right)}", strength
        if a.is_text and b.is_text and CHAR not in (a, b):
            return f"strcmp({self.code(left)}, {self.code(right)}) {sign} 0", strength
        if not (a.is_number and b.is_number):
            raise CannotPort(f"a {a.name} compared with a {b.name}")
        return f"{self.at(left, strength + 1)} {sign} {self.at(right, strength + 1)}", strength

    def _char(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            inner = self.text(str(node.value))[0][1:-1].replace('\\"', '"').replace("'", "\\'")
            return f"'{inner}'"
        return self.at(node, ATOM)

    def _member(self, left: ast.expr, right: ast.expr, outside: bool) -> Code:
        """In a text, or one of a few that are listed."""
        a, b = self.types.of(left), self.types.of(right)
        if b.is_text and a == CHAR:
            return f"strchr({self.code(right)}, {self._char(left)}) {'==' if outside else '!='} NULL", EQUAL
        if b.is_text and a.is_text:
            return f"strstr({self.code(right)}, {self.code(left)}) {'==' if outside else '!='} NULL", EQUAL
        if isinstance(right, ast.Tuple | ast.List) and right.elts and isinstance(left, ast.Name):
            op, sign, strength = (ast.NotEq(), "&&", 5) if outside else (ast.Eq(), "||", 4)
            return f" {sign} ".join(bracketed(self.compared(op, left, e), 6) for e in right.elts), strength
        raise CannotPort("membership in something that is worked out")

    def other(self, node: ast.expr) -> Code:
        match node:
            case ast.Subscript(value=ast.Name(id=name) as value, slice=index) if not isinstance(index, ast.Slice):
                if self.types.of(value).name == "tuple" and name in self.types.variables:
                    raise CannotPort("a pair that is kept")
                return f"{self.name(name)}[{self._index(value, index)}]", ATOM
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return f"~{self.at(operand, UNARY)}", UNARY
            case ast.Attribute(attr=attr):
                return {"pi": "M_PI", "e": "M_E", "tau": "(2 * M_PI)", "inf": "INFINITY"}[attr], ATOM
        raise CannotPort(f"`{ast.unparse(node)[:60]}` is outside the subset of C")

    def _index(self, value: ast.Name, index: ast.expr) -> str:
        if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
            return f"{self._length(value)} - {self.at(index.operand, PLUS + 1)}"
        return self.code(index)

    def _length(self, node: ast.expr) -> str:
        kind = self.types.of(node)
        if kind.name == "list" and isinstance(node, ast.Name):
            return f"n_{self.name(node.id)}"
        if kind == STR:
            return f"(long)strlen({self.code(node)})"
        raise CannotPort("the length of what is not kept")

    def each(self, node: ast.For) -> list[str]:
        place, target, source = "k", node.target, node.iter
        if (
            isinstance(source, ast.Call)
            and isinstance(source.func, ast.Name)
            and source.func.id == "enumerate"
            and len(source.args) == 1
        ):
            if not (isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name)):
                raise CannotPort("a loop over pairs that are kept")
            place, target, source = self.name(target.elts[0].id), target.elts[1], source.args[0]
        if not isinstance(source, ast.Name) or not isinstance(target, ast.Name) or (place == "k" and self._uses("k")):
            raise CannotPort("a loop over something that is worked out")
        for name in _targets(node):
            self.check_loop(name, [source], node)
        kind, name = self.types.of(source), self.name(source.id)
        self.declared |= set(_targets(node))
        test = f"{place} < n_{name}" if kind.name == "list" else f"{name}[{place}] != '\\0'"
        item = f"{self.declaration(self.name(target.id), kind.item)} = {name}[{place}];"
        return [f"for (long {place} = 0; {test}; {place}++) {{", INDENT + item, *self.inner(node.body), "}"]

    def _uses(self, name: str) -> bool:
        return name in self.types.variables

    def effect(self, node: ast.Call) -> list[str]:
        raise CannotPort("a list that changes")

    def target(self, node: ast.expr) -> str:
        if isinstance(node, ast.Subscript):
            raise CannotPort("a list that changes")
        if isinstance(node, ast.Name) and self.types.variables[node.id].name not in NAMES:
            raise CannotPort("a text that changes")
        return super().target(node)

    def returned(self, value: ast.expr) -> list[str]:
        returns = self.types.returns
        if returns is not None and returns.name == "tuple":
            if not isinstance(value, ast.Tuple):
                raise CannotPort("a pair that is kept")
            return [*(f"{OUT}[{i}] = {self.code(e)};" for i, e in enumerate(value.elts)), "return;"]
        if returns == CHAR:
            raise CannotPort("a character that is returned")
        return [f"return {self.code(value)};"]

    def unpacked(self, target: ast.Tuple, value: ast.expr) -> list[str]:
        names = [n.id for n in target.elts if isinstance(n, ast.Name)]
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "divmod":
            a, b = value.args
            value = ast.Tuple([ast.BinOp(a, ast.FloorDiv(), b), ast.BinOp(a, ast.Mod(), b)], ast.Load())
        if len(names) != len(target.elts) or not isinstance(value, ast.Tuple):
            raise CannotPort("several values that are no tuple")
        read = [{n.id for n in ast.walk(e) if isinstance(n, ast.Name)} for e in value.elts]
        if not any(name in later for i, name in enumerate(names) for later in read[i + 1 :]):
            return [f"{self.target(t)} = {self.code(e)};" for t, e in zip(target.elts, value.elts, strict=True)]
        kinds = [self.types.of(e) for e in value.elts]
        held = [
            f"{self.declaration(f'new_{n}', k)} = {self.code(e)};"
            for n, k, e in zip(names, kinds, value.elts, strict=True)
        ]
        return [*held, *(f"{self.target(t)} = new_{n};" for t, n in zip(target.elts, names, strict=True))]

    def raised(self, node: ast.Raise) -> list[str]:
        return ["abort();"]

    def call(self, node: ast.Call) -> Code:
        self.types.of(node)
        match node.func:
            case ast.Name(id=name) if name in self.unit.functions:
                if self.unit.types[name].returns not in (INT, FLOAT, BOOL):
                    raise CannotPort("a pair that a function gives to another")
                return f"{self.name(name)}({', '.join(part for a in node.args for part in self._given(a))})", ATOM
            case ast.Name(id=name):
                return self._builtin(self.unit.imported.get(name, name), node.args)
            case ast.Attribute(value=ast.Name(id="math"), attr=attr):
                return self._builtin(f"math.{attr}", node.args)
            case ast.Attribute(value=value, attr="bit_length"):
                return self._helper("bit_length", value)
        raise CannotPort(f"`{ast.unparse(node)[:60]}` is outside the subset of C")

    def _given(self, node: ast.expr) -> list[str]:
        kind = self.types.of(node)
        return [self.code(node), self._length(node)] if kind.name == "list" else [self.code(node)]

    def _builtin(self, name: str, args: Sequence[ast.expr]) -> Code:
        decimal = self.is_float(*args) if args and all(self.types.of(a).is_number for a in args) else False
        first = args[0] if args else None
        match name:
            case "len" if first:
                return self._length(first), UNARY
            case "abs" if first:
                return f"{'fabs' if decimal else 'labs'}({self.code(first)})", ATOM
            case "min" | "max" if len(args) == 2 and decimal:
                return f"f{name}({', '.join(map(self.code, args))})", ATOM
            case "min" | "max" if len(args) == 2:
                return self._helper("smaller" if name == "min" else "larger", *args)
            case "int" if first:
                return (f"(long){self.at(first, UNARY)}", UNARY) if decimal else self.of(first)
            case "float" if first:
                return f"(double){self.at(first, UNARY)}", UNARY
            case "bool" if first:
                return self.tested(first)
            case "ord" if first and self.types.of(first) == CHAR:
                return f"(unsigned char){self._char(first)}", UNARY
            case "math.isqrt" if first:
                return self._helper("square_root", first)
            case "math.floor" | "math.ceil" | "math.trunc" if first:
                return f"(long){name[5:]}({self.code(first)})", UNARY
        if name.startswith("math."):
            return f"{name[5:]}({', '.join(map(self.code, args))})", ATOM
        raise CannotPort(f"{name}() is outside the subset of C")


def c_name(kind: Kind) -> str:
    if kind.name == "str":
        return "const char *"
    if kind.name not in NAMES or kind == CHAR:
        raise CannotPort(f"a {kind.name} of C")
    return NAMES[kind.name]


def _is_small(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value < 32


def _targets(node: ast.For) -> list[str]:
    return [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]
