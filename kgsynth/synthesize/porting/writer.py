"""What JavaScript and C write alike: blocks, loops, assignments, conditions and arithmetic."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from kgsynth.synthesize.porting.kinds import BOOL, FLOAT, INT, CannotPort, Kind
from kgsynth.synthesize.porting.typing import Types, Unit

INDENT = "  "
ATOM, UNARY, TIMES, PLUS, SHIFT, LESS, EQUAL, BITAND, BITXOR, BITOR, AND, OR, CHOICE, NONE = range(14, 0, -1)
BINARY: dict[type[ast.operator], tuple[str, int]] = {
    ast.Add: ("+", PLUS), ast.Sub: ("-", PLUS), ast.Mult: ("*", TIMES), ast.LShift: ("<<", SHIFT), ast.RShift: (">>", SHIFT),
    ast.BitAnd: ("&", BITAND), ast.BitOr: ("|", BITOR), ast.BitXor: ("^", BITXOR),
}  # fmt: skip
COMPARED: dict[type[ast.cmpop], tuple[str, int]] = {
    ast.Lt: ("<", LESS), ast.LtE: ("<=", LESS), ast.Gt: (">", LESS), ast.GtE: (">=", LESS), ast.Eq: ("==", EQUAL), ast.NotEq: ("!=", EQUAL),
}  # fmt: skip

Code = tuple[str, int]  # an expression and how tightly it holds together


class Writer:
    """One function in another language. What is not shared is left to `JavaScript` and `C`."""

    reserved: frozenset[str] = frozenset()

    def __init__(self, unit: Unit, types: Types) -> None:
        self.unit, self.types = unit, types
        self.declared: set[str] = set()
        self.needs: set[str] = set()  # helpers

    # what the languages add

    def declaration(self, name: str, kind: Kind) -> str: ...

    def call(self, node: ast.Call) -> Code: ...

    def other(self, node: ast.expr) -> Code: ...

    def operated(self, op: ast.operator, left: ast.expr, right: ast.expr) -> Code: ...

    def compared(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Code: ...

    def truth(self, code: Code, kind: Kind) -> Code: ...

    def each(self, node: ast.For) -> list[str]: ...

    def effect(self, node: ast.Call) -> list[str]: ...

    def returned(self, value: ast.expr) -> list[str]: ...

    def unpacked(self, target: ast.Tuple, value: ast.expr) -> list[str]: ...

    def raised(self, node: ast.Raise) -> list[str]: ...

    def text(self, value: str) -> Code: ...

    # statements

    def body(self, statements: Sequence[ast.stmt]) -> list[str]:
        return [line for statement in statements for line in self.statement(statement)]

    def inner(self, statements: Sequence[ast.stmt]) -> list[str]:
        return [INDENT + line for line in self.body(statements)]

    def statement(self, node: ast.stmt) -> list[str]:
        match node:
            case ast.Assign(targets=[ast.Tuple() as target], value=value):
                return self.unpacked(target, value)
            case ast.Assign(targets=[target], value=value):
                return [f"{self.target(target)} = {self.code(value)};"]
            case ast.AugAssign(target=target, op=op, value=value):
                return [self._changed(target, op, value)]
            case ast.If():
                return self._if(node)
            case ast.While(test=test, body=body):
                return [f"while ({self.condition(test)}) {{", *self.inner(body), "}"]
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=args), target=ast.Name(id=name)):
                return self._counted(name, args, node)
            case ast.For():
                return self.each(node)
            case ast.Return(value=ast.expr() as value):
                return self.returned(value)
            case ast.Break():
                return ["break;"]
            case ast.Continue():
                return ["continue;"]
            case ast.Pass() | ast.Assert():
                return []
            case ast.Raise():
                return self.raised(node)
            case ast.Expr(value=ast.Call() as call):
                return self.effect(call)
        raise CannotPort(f"`{ast.unparse(node)[:60]}` is outside the subset")

    def target(self, node: ast.expr) -> str:
        """What is assigned to, with its declaration where it is the first time."""
        if isinstance(node, ast.Name) and node.id not in self.declared:
            self.declared.add(node.id)
            return self.declaration(self.name(node.id), self.types.variables[node.id])
        return self.code(node)

    def _changed(self, target: ast.expr, op: ast.operator, value: ast.expr) -> str:
        """`x += y`; what has no operator of its own is written out."""
        read = ast.parse(ast.unparse(target), mode="eval").body
        whole, _ = self.operated(op, read, value)
        sign = BINARY.get(type(op), ("", 0))[0]
        left = self.code(read)
        if sign and whole.startswith(f"{left} {sign} "):
            return f"{left} {sign}= {self.code(value)};"
        return f"{left} = {whole};"

    def _if(self, node: ast.If) -> list[str]:
        lines = [f"if ({self.condition(node.test)}) {{", *self.inner(node.body)]
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            first, *rest = self._if(node.orelse[0])
            return [*lines, f"}} else {first}", *rest]
        return [*lines, "} else {", *self.inner(node.orelse), "}"] if node.orelse else [*lines, "}"]

    def _counted(self, name: str, args: Sequence[ast.expr], node: ast.For) -> list[str]:
        self.check_loop(name, args, node)
        start, stop = (args[0], args[1]) if len(args) > 1 else (ast.Constant(0), args[0])
        step = ast.literal_eval(args[2]) if len(args) > 2 and _is_literal(args[2]) else 1 if len(args) < 3 else 0
        if step == 0:
            raise CannotPort("a range with a step that is no literal")
        name = self.name(name)
        move = f"{name}++" if step == 1 else f"{name}--" if step == -1 else f"{name} += {step}"
        head = f"{self.declaration(name, INT)} = {self.code(start)}; {name} {'<' if step > 0 else '>'} {self.at(stop, PLUS)}; {move}"
        return [f"for ({head}) {{", *self.inner(node.body), "}"]

    def check_loop(self, name: str, bounds: Sequence[ast.expr], node: ast.For) -> None:
        """The variable lives in the loop only, and neither it nor the bounds change in there."""
        inside = [n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name)]
        used = [n for n in ast.walk(self.types.function) if isinstance(n, ast.Name) and n.id == name]
        read = {n.id for b in bounds for n in ast.walk(b) if isinstance(n, ast.Name)}
        stored = {n.id for n in inside if isinstance(n.ctx, ast.Store)} | _grown(node.body)
        loops = [n for n in ast.walk(self.types.function) if isinstance(n, ast.For) and name in _names(n.target)]
        within = {id(n) for loop in loops for n in ast.walk(loop)}
        if name in self.types.parameters or any(id(n) not in within for n in used) or (stored & (read | {name})):
            raise CannotPort(f"the loop over {name} changes what it goes over, or is looked at later")

    # expressions

    def code(self, node: ast.expr) -> str:
        return self.of(node)[0]

    def at(self, node: ast.expr, strength: int) -> str:
        """In brackets where it would otherwise fall apart."""
        return bracketed(self.of(node), strength)

    def of(self, node: ast.expr) -> Code:
        match node:
            case ast.Constant(value=bool(value)):
                return ("true" if value else "false"), ATOM
            case ast.Constant(value=int(value)):
                return str(value), ATOM if value >= 0 else UNARY
            case ast.Constant(value=float(value)):
                return repr(value), ATOM
            case ast.Constant(value=str(value)):
                return self.text(value)
            case ast.Name(id=name):
                return self.name(name), ATOM
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._negated(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self.at(operand, UNARY + (not isinstance(operand, ast.Name | ast.Constant)))}", UNARY
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.of(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return self.operated(op, left, right)
            case ast.BoolOp(op=op, values=values):
                return self._joined(op, values)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._chained([left, *others], ops)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"{self.condition(test, OR)} ? {self.at(body, OR)} : {self.at(orelse, CHOICE)}", CHOICE
            case ast.Call():
                return self.call(node)
        return self.other(node)

    def name(self, name: str) -> str:
        return f"{name}_" if name in self.reserved else name

    def condition(self, node: ast.expr, strength: int = NONE) -> str:
        """An expression of which only the truth counts."""
        return bracketed(self.tested(node), strength)

    def tested(self, node: ast.expr) -> Code:
        match node:
            case ast.BoolOp(op=op, values=values):
                sign, strength = ("&&", AND) if isinstance(op, ast.And) else ("||", OR)
                return f" {sign} ".join(self.condition(v, AND if sign == "&&" else AND + 1) for v in values), strength
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._negated(operand)
        kind = self.types.of(node)
        return self.of(node) if kind == BOOL else self.truth(self.of(node), kind)

    def _negated(self, operand: ast.expr) -> Code:
        """`!(a < b)` is `a >= b` for whole numbers, and `x !== 0` is turned round."""
        code, strength = self.tested(operand)
        for sign, opposite in ((" === ", " !== "), (" !== ", " === "), (" == ", " != "), (" != ", " == ")):
            if strength == EQUAL and code.count(sign) == 1 and not isinstance(operand, ast.BoolOp):
                return code.replace(sign, opposite), EQUAL
        return f"!{bracketed((code, strength), UNARY)}", UNARY

    def _joined(self, op: ast.boolop, values: Sequence[ast.expr]) -> Code:
        if any(self.types.of(value) != BOOL for value in values):
            raise CannotPort("`and` and `or` of values that are no truth values")
        return self.tested(ast.BoolOp(op, list(values)))

    def _chained(self, parts: Sequence[ast.expr], ops: Sequence[ast.cmpop]) -> Code:
        """`a < b < c` is `a < b && b < c`, where b is simple enough to stand there twice."""
        pairs = [self.compared(op, a, b) for op, a, b in zip(ops, parts, parts[1:], strict=False)]
        if len(pairs) == 1:
            return pairs[0]
        if not all(isinstance(part, ast.Name | ast.Constant) for part in parts[1:-1]):
            raise CannotPort("a chain of comparisons over something that is worked out")
        return " && ".join(bracketed(pair, AND + 1) for pair in pairs), AND

    def arithmetic(self, op: ast.operator, left: ast.expr, right: ast.expr) -> Code:
        """+ - * and the bitwise ones, as they are."""
        sign, strength = BINARY[type(op)]
        tight = strength + 1 if isinstance(op, ast.Sub | ast.LShift | ast.RShift) else strength
        loose = PLUS + 1 if strength <= SHIFT else strength  # people forget how tightly << and & hold
        if strength <= SHIFT:
            return f"{self.at(left, loose)} {sign} {self.at(right, loose)}", strength
        return f"{self.at(left, strength)} {sign} {self.at(right, tight)}", strength

    def is_float(self, *nodes: ast.expr) -> bool:
        return any(self.types.of(node) == FLOAT for node in nodes)


def bracketed(code: Code, strength: int) -> str:
    return code[0] if code[1] >= strength else f"({code[0]})"


def same_as(op: ast.cmpop) -> ast.cmpop:
    """`is` between numbers or texts is taken for `==`: whether they are one object nobody should ask."""
    return ast.Eq() if isinstance(op, ast.Is) else ast.NotEq() if isinstance(op, ast.IsNot) else op


def hoisted(function: ast.FunctionDef, parameters: Sequence[str]) -> list[str]:
    """Variables that are first assigned inside a block but used outside of it: they are declared at the top."""
    found: dict[str, None] = {}
    loops = {name for n in ast.walk(function) if isinstance(n, ast.For) for name in _names(n.target)}
    inside = {
        n.id
        for c in ast.walk(function)
        if isinstance(c, ast.comprehension)
        for n in ast.walk(c.target)
        if isinstance(n, ast.Name)
    }
    seen: set[str] = set()
    for statement in function.body:
        if isinstance(statement, ast.Assign):
            seen |= {name for target in statement.targets for name in _names(target)}
        else:
            found |= dict.fromkeys(n for n in _stored(statement) if n not in seen)
    return [name for name in found if name not in {*parameters, *loops, *inside}]


def _stored(node: ast.AST) -> Iterator[str]:
    yield from (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _names(target: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _grown(body: Sequence[ast.stmt]) -> set[str]:
    """Lists that a method changes."""
    calls = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    changing = {"append", "extend", "insert", "pop", "sort", "reverse"}
    return {
        c.func.value.id
        for c in calls
        if isinstance(c.func, ast.Attribute) and c.func.attr in changing and isinstance(c.func.value, ast.Name)
    }


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True
