"""Functions of the subset in JavaScript. Numbers are of one kind: whole ones are exact below 2**53.

The bitwise operators of JavaScript see 32 bits only, so that they are applied to BigInts.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence

from kgsynth.synthesize.porting.kinds import BOOL, FLOAT, INT, CannotPort, Kind
from kgsynth.synthesize.porting.writer import (
    ATOM,
    COMPARED,
    EQUAL,
    INDENT,
    OR,
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
    "mod": "// The remainder has the sign of the divisor.\nfunction mod(a, b) {\n  const r = a % b;\n"
    "  return r !== 0 && (r < 0) !== (b < 0) ? r + b : r + 0;\n}",
    "bitLength": "function bitLength(n) {\n  return n === 0 ? 0 : Math.abs(n).toString(2).length;\n}",
    "squareRoot": "function squareRoot(n) {\n  const root = Math.floor(Math.sqrt(n));\n  return root * root > n ? root - 1 : root;\n}",
    "partition": "function partition(text, mark) {\n  const at = text.indexOf(mark);\n"
    '  return at < 0 ? [text, "", ""] : [text.slice(0, at), mark, text.slice(at + mark.length)];\n}',
    "rpartition": "function rpartition(text, mark) {\n  const at = text.lastIndexOf(mark);\n"
    '  return at < 0 ? ["", "", text] : [text.slice(0, at), mark, text.slice(at + mark.length)];\n}',
}
METHODS = {
    "lower": "toLowerCase()", "upper": "toUpperCase()", "strip": "trim()", "lstrip": "trimStart()", "rstrip": "trimEnd()",
    "startswith": "startsWith", "endswith": "endsWith", "find": "indexOf", "rfind": "lastIndexOf",
}  # fmt: skip
MATH = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "fabs": "abs"}
TESTS = {"isdigit": r"/^[0-9]+$/", "isspace": r"/^\s+$/", "isalpha": r"/^\p{L}+$/u"}


BITWISE: dict[type[ast.operator], str] = {
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


class JavaScript(Writer):
    """`const` and `let`, template strings, arrays for lists and tuples."""

    reserved = frozenset(
        "arguments async await case catch class const debugger default delete do enum eval export extends finally function"
        " implements import in instanceof interface let new null package private protected public static super switch this"
        " throw try typeof undefined var void with yield mod partition rpartition squareRoot bitLength".split()
    )

    def function(self, name: str) -> str:
        types = self.types
        self.declared |= set(types.parameters)
        late = hoisted(types.function, list(types.parameters))
        self.declared |= set(late)
        first = [f"let {', '.join(map(self.name, late))};"] if late else []
        lines = [INDENT + line for line in (*first, *self.body(types.function.body))]
        head = f"function {name}({', '.join(map(self.name, types.parameters))}) {{"
        return "\n".join([head, *lines, "}"])

    def constant(self, name: str, value: object) -> str:
        return f"const {self.name(name)} = {json.dumps(value, ensure_ascii=False)};"

    def declaration(self, name: str, kind: Kind) -> str:
        return f"let {name}"

    def text(self, value: str) -> Code:
        return json.dumps(value, ensure_ascii=False), ATOM

    def truth(self, code: Code, kind: Kind) -> Code:
        if kind.name in ("int", "float"):
            return f"{bracketed(code, EQUAL + 1)} !== 0", EQUAL
        if kind.is_text:
            return f'{bracketed(code, EQUAL + 1)} !== ""', EQUAL
        if kind.name == "list":
            return f"{bracketed(code, ATOM)}.length !== 0", EQUAL
        raise CannotPort(f"the truth of a {kind.name}")

    def operated(self, op: ast.operator, left: ast.expr, right: ast.expr) -> Code:
        a, b = self.types.of(left), self.types.of(right)
        self.types.of(ast.BinOp(left, op, right))
        match op:
            case ast.Add() if a.name == "list":
                return f"[...{self.code(left)}, ...{self.code(right)}]", ATOM
            case ast.Mult() if a.is_text:
                return f"{self.at(left, ATOM)}.repeat(Math.max(0, {self.code(right)}))", ATOM
            case ast.Mult() if a.name == "list":
                return self._repeated(left, right)
            case ast.Div():
                return f"{self.at(left, TIMES)} / {self.at(right, TIMES + 1)}", TIMES
            case ast.FloorDiv():
                return f"Math.floor({self.at(left, TIMES)} / {self.at(right, TIMES + 1)})", ATOM
            case ast.Mod():
                self.needs.add("mod")
                return f"mod({self.code(left)}, {self.code(right)})", ATOM
            case ast.Pow():
                if (a, b) == (INT, INT) and not isinstance(right, ast.Constant):
                    raise CannotPort("a power whose exponent may be negative")
                return f"{self.at(left, ATOM)} ** {self.at(right, UNARY)}", TIMES + 0
            case ast.LShift() if power := _power_of_two(right):
                return f"{self.at(left, TIMES)} * {power}", TIMES
            case ast.RShift() if power := _power_of_two(right):
                return f"Math.floor({self.at(left, TIMES)} / {power})", ATOM
        if type(op) in BITWISE and (a, b) != (BOOL, BOOL):
            return f"Number(BigInt({self.code(left)}) {BITWISE[type(op)]} BigInt({self.code(right)}))", ATOM
        return self.arithmetic(op, left, right)

    def _repeated(self, left: ast.expr, right: ast.expr) -> Code:
        if isinstance(left, ast.List) and len(left.elts) == 1 and self.types.of(left.elts[0]).name != "list":
            return f"new Array({self.code(right)}).fill({self.code(left.elts[0])})", ATOM
        raise CannotPort("a list of more than one item, repeated")

    def compared(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Code:
        a, b = self.types.of(left), self.types.of(right)
        if isinstance(op, ast.In | ast.NotIn):
            if b.name == "tuple" and not b.items:
                raise CannotPort("membership in nothing")
            inside = f"{self.at(right, ATOM)}.includes({self.code(left)})"
            return (inside, ATOM) if isinstance(op, ast.In) else (f"!{inside}", UNARY)
        if isinstance(op, ast.Is | ast.IsNot) and "none" in (a.name, b.name):
            return (
                f"{self.at(left, EQUAL + 1)} {'===' if isinstance(op, ast.Is) else '!=='} {self.at(right, EQUAL + 1)}",
                EQUAL,
            )
        op = same_as(op)
        if type(op) not in COMPARED or not ((a.is_number and b.is_number) or (a.is_text and b.is_text)):
            raise CannotPort(f"`{ast.unparse(ast.Compare(left, [op], [right]))[:60]}` is outside the subset")
        sign, strength = COMPARED[type(op)]
        sign = sign + "=" if strength == EQUAL else sign
        return f"{self.at(left, strength + 1)} {sign} {self.at(right, strength + 1)}", strength

    def other(self, node: ast.expr) -> Code:
        match node:
            case ast.Constant(value=None):
                return "null", ATOM
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return f"-{self.at(operand, UNARY + 1)} - 1", PLUS
            case ast.List(elts=elts) | ast.Tuple(elts=elts):
                return f"[{', '.join(map(self.code, elts))}]", ATOM
            case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper)):
                bounds = [self.code(lower) if lower else "0", *([self.code(upper)] if upper else [])]
                return f"{self.at(value, ATOM)}.slice({', '.join(bounds)})", ATOM
            case ast.Subscript(value=value, slice=index):
                return self._item(value, index), ATOM
            case ast.JoinedStr(values=values):
                return self._template(values), ATOM
            case ast.ListComp(elt=elt, generators=[generator]) | ast.GeneratorExp(elt=elt, generators=[generator]):
                return self._comprehension(elt, generator), ATOM
            case ast.Attribute(attr=attr):
                return {"pi": "Math.PI", "e": "Math.E", "tau": "(2 * Math.PI)", "inf": "Infinity"}[attr], ATOM
        raise CannotPort(f"`{ast.unparse(node)[:60]}` is outside the subset")

    def _item(self, value: ast.expr, index: ast.expr) -> str:
        """From the end with `at`, where the number may be negative."""
        negative = any(isinstance(n, ast.USub | ast.Sub) for n in ast.walk(index)) and not isinstance(
            index.__dict__.get("ctx"), ast.Store
        )
        plain = f"{self.at(value, ATOM)}[{self.code(index)}]"
        return f"{self.at(value, ATOM)}.at({self.code(index)})" if negative else plain

    def target(self, node: ast.expr) -> str:
        if isinstance(node, ast.Subscript):
            if any(isinstance(n, ast.USub) for n in ast.walk(node.slice)):
                raise CannotPort("an item counted from the end is set")
            return f"{self.at(node.value, ATOM)}[{self.code(node.slice)}]"
        return super().target(node)

    def _template(self, values: Sequence[ast.expr]) -> str:
        parts = [
            f"${{{self.code(v.value)}}}"
            if isinstance(v, ast.FormattedValue)
            else json.dumps(str(v.value))[1:-1].replace('\\"', '"').replace("`", "\\`")
            for v in values
            if isinstance(v, ast.FormattedValue | ast.Constant)
        ]
        return f"`{''.join(parts)}`"

    def _comprehension(self, elt: ast.expr, generator: ast.comprehension) -> str:
        source, name = self._array(generator.iter), self._pattern(generator.target)
        for test in generator.ifs:
            source += f".filter(({name}) => {self.condition(test, OR)})"
        same = isinstance(elt, ast.Name) and elt.id == name
        return source if same and generator.ifs else f"{source}.map(({name}) => {self.at(elt, OR)})"

    def _pattern(self, target: ast.expr) -> str:
        if isinstance(target, ast.Tuple):
            return f"[{', '.join(map(self._pattern, target.elts))}]"
        if not isinstance(target, ast.Name):
            raise CannotPort("a loop over something that is no name")
        return self.name(target.id)

    def _array(self, node: ast.expr) -> str:
        """Something with `map` and `filter`."""
        match node:
            case ast.Call(func=ast.Name(id="range"), args=[stop]):
                return f"Array.from({{length: {self.code(stop)}}}, (_, k) => k)"
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner]):
                return f"{self._array(inner)}.map((item, k) => [k, item])"
            case ast.Call(func=ast.Name(id="reversed"), args=[inner]):
                return f"{self._array(inner)}.reverse()"
            case ast.Call(func=ast.Name(id="zip"), args=[a, b]):
                if self.types.of(a).name != "list" or self.types.of(b).name != "list":
                    raise CannotPort("pairs of what are no lists")
                return f"{self.at(a, ATOM)}.slice(0, {self.at(b, ATOM)}.length).map((item, k) => [item, {self.at(b, ATOM)}[k]])"
        kind = self.types.of(node)
        return f"[...{self.code(node)}]" if kind.is_text else self.at(node, ATOM)

    def each(self, node: ast.For) -> list[str]:
        names = [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]
        for name in names:
            self.check_loop(name, [node.iter], node)
        self.declared |= set(names)
        match node.iter:
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner]) if self.types.item_of(inner):
                source = f"{bracketed((self._array(inner), ATOM), ATOM)}.entries()"
            case ast.Call(func=ast.Name(id="zip" | "reversed")):
                source = self._array(node.iter)
            case _:
                source = self.code(node.iter)
        return [f"for (const {self._pattern(node.target)} of {source}) {{", *self.inner(node.body), "}"]

    def effect(self, node: ast.Call) -> list[str]:
        assert isinstance(node.func, ast.Attribute)
        owner, args = self.code(node.func.value), node.args
        match node.func.attr, args:
            case "append", [item]:
                return [f"{owner}.push({self.code(item)});"]
            case "extend", [items]:
                return [f"{owner}.push(...{self.code(items)});"]
            case "insert", [place, item]:
                return [f"{owner}.splice({self.code(place)}, 0, {self.code(item)});"]
            case "reverse", []:
                return [f"{owner}.reverse();"]
            case "sort", []:
                return [f"{owner}.sort({self._order(self.types.of(node.func.value).item)});"]
        raise CannotPort(f".{node.func.attr}() with {len(args)} arguments is outside the subset")

    def _order(self, item: Kind) -> str:
        return "" if item.is_text else "(x, y) => x - y"

    def returned(self, value: ast.expr) -> list[str]:
        return [f"return {self.code(value)};"]

    def unpacked(self, target: ast.Tuple, value: ast.expr) -> list[str]:
        names = [n.id for n in target.elts if isinstance(n, ast.Name)]
        new = [name for name in names if name not in self.declared]
        known = [f"let {', '.join(map(self.name, new))};"] if new and len(new) < len(target.elts) else []
        self.declared |= set(names)
        let = "let " if new and not known else ""
        return [*known, f"{let}[{', '.join(map(self.target, target.elts))}] = {self.code(value)};"]

    def raised(self, node: ast.Raise) -> list[str]:
        message = node.exc.args[0] if isinstance(node.exc, ast.Call) and node.exc.args else None
        told = json.dumps(message.value) if isinstance(message, ast.Constant) and isinstance(message.value, str) else ""
        return [f"throw new Error({told});"]

    def call(self, node: ast.Call) -> Code:
        kind = self.types.of(node)
        match node.func:
            case ast.Name(id=name) if name in self.unit.functions:
                return f"{self.name(name)}({', '.join(map(self.code, node.args))})", ATOM
            case ast.Name(id=name):
                return self._builtin(self.unit.imported.get(name, name), node.args, kind)
            case ast.Attribute(value=ast.Name(id="math"), attr=attr):
                return self._builtin(f"math.{attr}", node.args, kind)
            case ast.Attribute(value=value, attr=attr):
                return self._method(value, attr, node.args)
        raise CannotPort(f"`{ast.unparse(node)[:60]}` is outside the subset")

    def _builtin(self, name: str, args: Sequence[ast.expr], kind: Kind) -> Code:
        if name == "math.isqrt":
            self.needs.add("squareRoot")
            return f"squareRoot({self.code(args[0])})", ATOM
        if name.startswith("math."):
            return f"Math.{MATH.get(name[5:], name[5:])}({', '.join(map(self.code, args))})", ATOM
        first = args[0] if args else None
        match name:
            case "len" if first:
                return f"{self.at(first, ATOM)}.length", ATOM
            case "min" | "max" if len(args) == 1 and first:
                return f"Math.{name}(...{self.code(first)})", ATOM
            case "min" | "max" | "abs":
                return f"Math.{name}({', '.join(map(self.code, args))})", ATOM
            case "sum" if first:
                return f"{self._array(first)}.reduce((x, y) => x + y, 0)", ATOM
            case "int" if first:
                return (f"Math.trunc({self.code(first)})", ATOM) if self.types.of(first) == FLOAT else self.of(first)
            case "float" if first:
                return self.of(first)
            case "bool" if first:
                return self.tested(first)
            case "str" if first:
                return f"String({self.code(first)})", ATOM
            case "ord" if first:
                return f"{self.at(first, ATOM)}.codePointAt(0)", ATOM
            case "chr" if first:
                return f"String.fromCodePoint({self.code(first)})", ATOM
            case "any" | "all" if isinstance(first, ast.GeneratorExp | ast.ListComp) and not first.generators[0].ifs:
                test, way = self.condition(first.elt, OR), "some" if name == "any" else "every"
                generator = first.generators[0]
                return f"{self._array(generator.iter)}.{way}(({self._pattern(generator.target)}) => {test})", ATOM
            case "sorted" if first:
                return f"[...{self.code(first)}].sort({self._order(kind.item)})", ATOM
            case "list":
                return (f"[...{self.code(first)}]" if first else "[]"), ATOM
            case "divmod":
                self.needs.add("mod")
                a, b = args
                return (
                    f"[Math.floor({self.at(a, TIMES)} / {self.at(b, TIMES + 1)}), mod({self.code(a)}, {self.code(b)})]",
                    ATOM,
                )
        raise CannotPort(f"{name}() is outside the subset")

    def _method(self, value: ast.expr, attr: str, args: Sequence[ast.expr]) -> Code:
        owner, given = self.at(value, ATOM), [self.code(a) for a in args]
        kind = self.types.of(value)
        match attr, given:
            case (("lower" | "upper" | "strip" | "lstrip" | "rstrip"), []):
                return f"{owner}.{METHODS[attr]}", ATOM
            case (("startswith" | "endswith" | "find" | "rfind"), [one]):
                return f"{owner}.{METHODS[attr]}({one})", ATOM
            case "replace", [old, new]:
                return f"{owner}.replaceAll({old}, () => {new})", ATOM
            case "join", [_]:
                return f"{self._array(args[0])}.join({owner})", ATOM
            case (("partition" | "rpartition"), [mark]):
                self.needs.add(attr)
                return f"{attr}({self.code(value)}, {mark})", ATOM
            case "split", [mark]:
                return f"{owner}.split({mark})", ATOM
            case "split", []:
                return f'{owner}.split(/\\s+/).filter((word) => word !== "")', ATOM
            case (("isdigit" | "isspace" | "isalpha"), []):
                return f"{TESTS[attr]}.test({owner})", ATOM
            case "pop", []:
                return f"{owner}.pop()", ATOM
            case "pop", ["0"]:
                return f"{owner}.shift()", ATOM
            case "bit_length", []:
                self.needs.add("bitLength")
                return f"bitLength({self.code(value)})", ATOM
            case "format", _ if isinstance(value, ast.Constant):
                return self._formatted(str(value.value), args), ATOM
        raise CannotPort(f".{attr}() of a {kind.name} with {len(args)} arguments is outside the subset")

    def _formatted(self, text: str, args: Sequence[ast.expr]) -> str:
        parts = text.split("{}")
        if len(parts) != len(args) + 1 or "{" in "".join(parts) or "}" in "".join(parts):
            raise CannotPort("a format other than {}")
        values: list[ast.expr] = [ast.Constant(parts[0])]
        for argument, part in zip(args, parts[1:], strict=True):
            values += [ast.FormattedValue(argument, -1), ast.Constant(part)]
        return self._template(values)


def _power_of_two(exponent: ast.expr) -> str:
    """2 to the power of a small constant, "" for any other exponent."""
    value = exponent.value if isinstance(exponent, ast.Constant) else None
    return str(2**value) if isinstance(value, int) and 0 <= value < 16 else ""
