"""The type of every expression of a plain source, found by running over its functions until nothing changes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from kgsynth.synthesize.porting.kinds import (
    ANY,
    BOOL,
    CHAR,
    FLOAT,
    INT,
    NONE,
    STR,
    CannotPort,
    Kind,
    joined,
    kind_of,
    listed,
)  # fmt: skip

PASSES = 4
MATH = {
    **dict.fromkeys("sqrt exp log log2 log10 sin cos tan asin acos atan sinh cosh tanh fabs".split(), FLOAT),
    **dict.fromkeys("floor ceil trunc isqrt".split(), INT),
}
CONSTANTS = frozenset({"pi", "e", "tau", "inf"})
METHODS: Mapping[str, Callable[[Kind], Kind]] = {
    **dict.fromkeys("lower upper strip lstrip rstrip replace join".split(), lambda kind: STR),
    **dict.fromkeys("startswith endswith isdigit isspace isalpha isupper islower".split(), lambda kind: BOOL),
    **dict.fromkeys("find rfind".split(), lambda kind: INT),
    "split": lambda kind: listed(STR),
    "append": lambda kind: NONE, "extend": lambda kind: NONE, "insert": lambda kind: NONE, "reverse": lambda kind: NONE,
    "sort": lambda kind: NONE, "pop": lambda kind: kind.item,
    "partition": lambda kind: Kind("tuple", (STR, STR, STR)), "rpartition": lambda kind: Kind("tuple", (STR, STR, STR)),
    "format": lambda kind: STR, "bit_length": lambda kind: INT,
}  # fmt: skip
ON_TEXT = frozenset(
    "lower upper strip lstrip rstrip replace join startswith endswith isdigit isspace isalpha isupper islower find rfind split"
    " partition rpartition format".split()
)


class Types:
    """Types of one function's variables, for given types of its arguments."""

    def __init__(self, unit: Unit, function: ast.FunctionDef, kinds: Sequence[Kind]) -> None:
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        if len(names) != len(kinds) or function.args.kwonlyargs or function.decorator_list:
            raise CannotPort(f"{function.name} is called with {len(kinds)} arguments, not {len(names)}")
        self.unit, self.function = unit, function
        self.parameters = dict(zip(names, kinds, strict=True))
        self.variables: dict[str, Kind] = dict(self.parameters)
        self.returns: Kind | None = None
        for _ in range(PASSES):
            before = (dict(self.variables), self.returns)
            self._block(function.body)
            if before == (self.variables, self.returns):
                break
        if self.returns in (None, NONE):
            raise CannotPort(f"{function.name} returns nothing")

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._bind(target, self.of(value))
            case ast.AugAssign(target=target, op=op, value=value):
                read = ast.copy_location(ast.parse(ast.unparse(target), mode="eval").body, target)
                self._bind(target, self.of(ast.BinOp(read, op, value)))
            case ast.If(test=test) | ast.While(test=test):
                self.of(test)
                self._block(node.body)
                self._block(node.orelse)
            case ast.For(target=target, iter=source, body=body, orelse=[]):
                self._bind(target, self.item_of(source))
                self._block(body)
            case ast.Return(value=ast.expr() as value):
                kind = self.of(value)
                self.returns = kind if self.returns is None else joined(self.returns, kind)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=args)):
                self._changed(name, attr, [self.of(a) for a in args])
            case ast.Raise() | ast.Pass() | ast.Break() | ast.Continue() | ast.Assert():
                return
            case _:
                raise CannotPort(f"`{ast.unparse(node)[:60]}` is outside the subset")

    def _changed(self, name: str, attr: str, given: Sequence[Kind]) -> None:
        """A list after `append` and its like."""
        kind = self.variables.get(name)
        if kind is None or kind.name != "list" or METHODS.get(attr) is None or METHODS[attr](kind) != NONE:
            raise CannotPort(f"{name}.{attr}() is outside the subset")
        new = {"append": given[:1], "insert": given[1:2], "extend": [k.item for k in given]}.get(attr, [])
        self.variables[name] = listed(joined(kind.item, *new))

    def _bind(self, target: ast.expr, kind: Kind) -> None:
        match target:
            case ast.Name(id=name):
                self.variables[name] = joined(self.variables[name], kind) if name in self.variables else kind
            case ast.Tuple(elts=elts):
                items = kind.items if kind.name == "tuple" else (kind.item,) * len(elts)
                if len(items) != len(elts):
                    raise CannotPort(f"{len(items)} values for {len(elts)} names")
                for part, item in zip(elts, items, strict=True):
                    self._bind(part, item)
            case ast.Subscript(value=ast.Name(id=name), slice=index) if not isinstance(index, ast.Slice):
                self.of(index)
                if self.of(target.value).name != "list":
                    raise CannotPort("only items of lists can be set")
                self.variables[name] = listed(joined(self.variables[name].item, kind))
            case _:
                raise CannotPort(f"`{ast.unparse(target)}` cannot be assigned to")

    def item_of(self, source: ast.expr) -> Kind:
        """The type of what a loop goes over, one at a time."""
        match source:
            case ast.Call(func=ast.Name(id="range"), args=args):
                self._all(args, INT)
                return INT
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner]):
                return Kind("tuple", (INT, self.item_of(inner)))
            case ast.Call(func=ast.Name(id="reversed"), args=[inner]):
                return self.item_of(inner)
            case ast.Call(func=ast.Name(id="zip"), args=[a, b]):
                return Kind("tuple", (self.item_of(a), self.item_of(b)))
        return self.of(source).item

    def _all(self, nodes: Sequence[ast.expr], kind: Kind) -> None:
        for node in nodes:
            if joined(kind, self.of(node)) != kind:
                raise CannotPort(f"`{ast.unparse(node)}` is no {kind.name}")

    def of(self, node: ast.expr) -> Kind:
        """The type of an expression. Raises CannotPort outside the subset."""
        match node:
            case ast.Constant(value=value):
                return CHAR if isinstance(value, str) and len(value) == 1 else kind_of(value)
            case ast.Name(id=name):
                return self._name(name)
            case ast.UnaryOp(op=op, operand=operand):
                return BOOL if isinstance(op, ast.Not) and self.of(operand) else self._signed(op, self.of(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self._operated(op, self.of(left), self.of(right))
            case ast.BoolOp(values=values):
                return joined(*map(self.of, values))
            case ast.Compare(left=left, comparators=others):
                for part in (left, *others):
                    self.of(part)
                return BOOL
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.of(test)
                return joined(self.of(body), self.of(orelse))
            case ast.List(elts=elts):
                return listed(joined(ANY, *map(self.of, elts)))
            case ast.Tuple(elts=elts):
                return Kind("tuple", tuple(map(self.of, elts)))
            case ast.Subscript(value=value, slice=index):
                return self._subscript(self.of(value), index)
            case ast.JoinedStr(values=values):
                return self._formatted(values)
            case ast.Call():
                return self._called(node)
            case ast.ListComp(elt=elt, generators=[generator]) | ast.GeneratorExp(elt=elt, generators=[generator]):
                return listed(self._inside(generator, elt))
            case ast.Attribute(value=ast.Name(id="math"), attr=attr) if attr in CONSTANTS:
                return FLOAT
        raise CannotPort(f"`{ast.unparse(node)[:60]}` is outside the subset")

    def _inside(self, generator: ast.comprehension, elt: ast.expr) -> Kind:
        """Variables of a comprehension are its own: no other may have their names."""
        if isinstance(generator.target, ast.Name) and generator.target.id in self.parameters:
            raise CannotPort(f"{generator.target.id} is a parameter and a variable of a comprehension")
        self._bind(generator.target, self.item_of(generator.iter))
        for test in generator.ifs:
            self.of(test)
        return self.of(elt)

    def _name(self, name: str) -> Kind:
        if name in self.variables:
            return self.variables[name]
        return self.unit.constant(name)

    def _signed(self, op: ast.unaryop, kind: Kind) -> Kind:
        if kind.name not in ("int", "float") or (isinstance(op, ast.Invert) and kind != INT):
            raise CannotPort(f"a sign before a {kind.name}")
        return kind

    def _operated(self, op: ast.operator, a: Kind, b: Kind) -> Kind:
        if isinstance(op, ast.Add) and a.is_text and b.is_text:
            return STR
        if isinstance(op, ast.Add) and a.name == b.name == "list":
            return joined(a, b)
        if isinstance(op, ast.Mult) and a.is_text and b == INT:
            return STR
        if isinstance(op, ast.Mult) and a.name == "list" and b == INT:
            return a
        bitwise = isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor | ast.LShift | ast.RShift)
        if a.name == "bool" or b.name == "bool":
            a, b = (INT if k == BOOL else k for k in (a, b))
        if not (a.is_number and b.is_number) or (bitwise and (a, b) != (INT, INT)) or isinstance(op, ast.MatMult):
            raise CannotPort(f"{type(op).__name__} of a {a.name} and a {b.name}")
        return FLOAT if isinstance(op, ast.Div) else joined(a, b)

    def _subscript(self, kind: Kind, index: ast.expr) -> Kind:
        if isinstance(index, ast.Slice):
            if index.step is not None or kind.name not in ("str", "char", "list"):
                raise CannotPort("a slice with a step, or of a tuple")
            self._all([part for part in (index.lower, index.upper) if part is not None], INT)
            return STR if kind.is_text else kind
        if kind.name == "tuple" and isinstance(index, ast.Constant) and type(index.value) is int:
            return kind.items[index.value] if -len(kind.items) <= index.value < len(kind.items) else kind.item
        self._all([index], INT)
        return kind.item

    def _formatted(self, values: Sequence[ast.expr]) -> Kind:
        parts = [part for part in values if isinstance(part, ast.FormattedValue)]
        if any(
            p.format_spec or p.conversion != -1 or self.of(p.value).name not in ("int", "str", "char") for p in parts
        ):
            raise CannotPort("a format other than plain text and whole numbers")
        return STR

    def _called(self, node: ast.Call) -> Kind:
        match node:
            case ast.Call(func=ast.Name(id=name), args=args) if name in self.unit.functions:
                return self.unit.called(name, [self.of(a) for a in args])
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._builtin(self.unit.imported.get(name, name), args)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=attr), args=args, keywords=[]) if (
                "math" not in self.variables
            ):
                return self._builtin(f"math.{attr}", args)
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args, keywords=[]) if attr in METHODS:
                return self._method(self.of(value), attr, args)
        raise CannotPort(f"`{ast.unparse(node)[:60]}` is outside the subset")

    def _method(self, kind: Kind, attr: str, args: Sequence[ast.expr]) -> Kind:
        kinds = [self.item_of(a) if attr == "join" else self.of(a) for a in args]
        if attr in ON_TEXT and (not kind.is_text or (attr != "format" and not all(k.is_text for k in kinds))):
            raise CannotPort(f".{attr}() of a {kind.name}")
        if attr == "format" and not all(k.name in ("int", "str", "char") for k in kinds):
            raise CannotPort("a format other than plain text and whole numbers")
        if attr not in ON_TEXT and attr != "bit_length" and kind.name != "list":
            raise CannotPort(f".{attr}() of a {kind.name}")
        return METHODS[attr](kind)

    def _builtin(self, name: str, args: Sequence[ast.expr]) -> Kind:
        if name.startswith("math.") and name[5:] in MATH:
            self._all(args, FLOAT)
            return MATH[name[5:]]
        match name, len(args):
            case ("len", 1):
                if self.of(args[0]).name not in ("str", "char", "list"):
                    raise CannotPort("the length of what has none")
                return INT
            case ("min" | "max", 1):
                return self._number(self.item_of(args[0]))
            case ("min" | "max", 2 | 3):
                return self._number(joined(*map(self.of, args)))
            case ("sum", 1):
                return self._number(self.item_of(args[0]))
            case ("abs", 1):
                return self._number(self.of(args[0]))
            case ("int", 1) if self.of(args[0]).is_number:
                return INT
            case ("float", 1) if self.of(args[0]).is_number:
                return FLOAT
            case ("bool", 1):
                self.of(args[0])
                return BOOL
            case ("str", 1) if self.of(args[0]).name in ("int", "str", "char"):
                return STR
            case ("ord", 1):
                joined(CHAR, self.of(args[0]))
                return INT
            case ("chr", 1):
                self._all(args, INT)
                return CHAR
            case ("any" | "all", 1):
                self.item_of(args[0])
                return BOOL
            case ("sorted", 1):
                item = self.item_of(args[0])
                return listed(item if item.is_text else self._number(item))
            case ("list", 1):
                return listed(self.item_of(args[0]))
            case ("list", 0):
                return listed(ANY)
            case ("divmod", 2):
                kind = self._number(joined(*map(self.of, args)))
                return Kind("tuple", (kind, kind))
        raise CannotPort(f"{name}() of {len(args)} arguments is outside the subset")

    def _number(self, kind: Kind) -> Kind:
        if kind.name not in ("int", "float"):
            raise CannotPort(f"a {kind.name} where a number is needed")
        return kind


class Unit:
    """A plain source: its functions, each for one choice of types, its constants and what it imports of `math`."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        self.assigned = {
            n.targets[0].id: n.value
            for n in tree.body
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
        }
        self.imported = {
            alias.asname or alias.name: f"math.{alias.name}"
            for n in tree.body
            if isinstance(n, ast.ImportFrom) and n.module == "math"
            for alias in n.names
        }
        self.types: dict[str, Types] = {}
        self.order: list[str] = []  # of functions, callees first
        self.constants: dict[str, Kind] = {}
        self._open: list[str] = []

    def called(self, name: str, kinds: Sequence[Kind]) -> Kind:
        """The type that a function returns for these arguments. Raises CannotPort when it has two uses, or calls itself."""
        if name in self._open:
            raise CannotPort(f"{name} calls itself")
        if name in self.types:
            known = list(self.types[name].parameters.values())
            if any(joined(a, b) != a for a, b in zip(known, kinds, strict=True)):
                raise CannotPort(f"{name} is called with arguments of different types")
        else:
            self._open.append(name)
            self.types[name] = Types(self, self.functions[name], kinds)
            self._open.pop()
            self.order.append(name)
        returns = self.types[name].returns
        assert returns is not None
        return returns

    def constant(self, name: str) -> Kind:
        if name not in self.assigned:
            raise CannotPort(f"{name} is outside the subset")
        try:
            kind = kind_of(ast.literal_eval(self.assigned[name]))
        except ValueError as error:
            raise CannotPort(f"{name} is no constant of the subset") from error
        self.constants[name] = kind
        return kind
