"""Python made plain before it is translated: parameters that no call gives are settled, and loops have no `else`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from kgsynth.synthesize.oracle import main_definition
from kgsynth.synthesize.porting.kinds import CannotPort
from kgsynth.synthesize.porting.typing import METHODS
from kgsynth.verifiers.code.source import tree_of

ALLOWED = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Import, ast.ImportFrom, ast.alias, ast.Assign, ast.AugAssign, ast.If,
    ast.While, ast.For, ast.Return, ast.Break, ast.Continue, ast.Expr, ast.Raise, ast.Pass, ast.Assert, ast.Delete, ast.Constant,
    ast.Name, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Attribute, ast.Subscript, ast.Slice,
    ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.comprehension, ast.JoinedStr, ast.FormattedValue, ast.keyword,
    ast.ClassDef, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


NOT_IN_C = (ast.ListComp, ast.GeneratorExp, ast.JoinedStr, ast.Slice, ast.Delete)
CALLED = frozenset(
    "len min max sum abs int float bool str ord chr any all sorted list divmod range enumerate reversed zip".split()
)
CALLED_IN_C = frozenset("len min max abs int float bool ord divmod range enumerate".split())


@lru_cache(maxsize=2048)
def is_portable(source: str, language: str) -> bool:
    """Is it made of the right statements, expressions and calls, as far as that can be seen without types?"""
    tree = tree_of(source)
    nodes = list(ast.walk(tree))
    functions = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    classes = {n.name for n in tree.body if isinstance(n, ast.ClassDef) if all(isinstance(s, ast.Pass) for s in n.body)}
    if len(functions) + len(classes) != sum(isinstance(n, ast.FunctionDef | ast.ClassDef) for n in nodes):
        return False
    imported = {
        a.asname or a.name for n in nodes if isinstance(n, ast.ImportFrom) if n.module == "math" for a in n.names
    }
    raised = {id(n.exc) for n in nodes if isinstance(n, ast.Raise)}
    calls = [n.func for n in nodes if isinstance(n, ast.Call) and id(n) not in raised]
    known = functions | imported | (CALLED_IN_C if language == "c" else CALLED)
    if not all(isinstance(n, ALLOWED) for n in nodes) or (
        language == "c" and any(isinstance(n, NOT_IN_C) for n in nodes)
    ):
        return False
    starred = any(isinstance(n, ast.arguments) and (n.vararg or n.kwarg) for n in nodes)
    return not starred and all(_is_known(call, known, language) for call in calls)


def _is_known(call: ast.expr, names: Collection[str], language: str) -> bool:
    match call:
        case ast.Name(id=name):
            return name in names
        case ast.Attribute(value=ast.Name(id="math")):
            return True
        case ast.Attribute(attr=attr):
            return attr == "bit_length" if language == "c" else attr in METHODS
    return False


def plain(source: str, name: str, given: int) -> str:
    """The source for calls with `given` positional arguments, the others settled by their defaults."""
    tree = tree_of(source)
    function = main_definition(tree, name)
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(parameters) - len(arguments.defaults)) + list(arguments.defaults)
    dropped = dict(zip((p.arg for p in parameters[given:]), defaults[given:], strict=True))
    dropped |= {p.arg: d for p, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)}
    if any(default is None for default in dropped.values()):
        raise CannotPort(f"{name} needs more than {given} arguments")
    function.args = ast.arguments(
        posonlyargs=[], args=[ast.arg(p.arg) for p in parameters[:given]], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    settled = {key: value for key, value in dropped.items() if value is not None}
    function.body = _settle(function.body, settled)
    return ast.unparse(ast.fix_missing_locations(tree))


def _settle(body: list[ast.stmt], settled: Mapping[str, ast.expr]) -> list[ast.stmt]:
    nodes = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Name)]
    stored = {n.id for n in nodes if isinstance(n.ctx, ast.Store)}
    fixed = {k: v for k, v in settled.items() if k not in stored}
    folded = _flat([_Fold(settled, fixed).visit(statement) for statement in body])
    read = {n.id for s in folded for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    first = [
        ast.Assign(targets=[ast.Name(k, ast.Store())], value=v)
        for k, v in settled.items()
        if k in stored and k in read and not _is_none(v)
    ]
    return [*first, *folded] or [ast.Pass()]


def _flat(found: Sequence[ast.stmt | list[ast.stmt] | None]) -> list[ast.stmt]:
    """One list; what stands behind a `return` is gone."""
    flat = [s for item in found for s in (item if isinstance(item, list) else [item]) if s is not None]
    ends = [i for i, s in enumerate(flat) if isinstance(s, ast.Return | ast.Raise)]
    return flat[: ends[0] + 1] if ends else flat


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


class _Fold(ast.NodeTransformer):
    """Puts constants in the place of settled parameters, and takes the branch that is left."""

    def __init__(self, settled: Mapping[str, ast.expr], fixed: Mapping[str, ast.expr]) -> None:
        self.settled, self.fixed = settled, fixed

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.fixed[node.id] if isinstance(node.ctx, ast.Load) and node.id in self.fixed else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        left, right = node.left, node.comparators[0]
        value = self.settled.get(left.id) if isinstance(left, ast.Name) else None
        if value is not None and len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot) and _is_none(right):
            return ast.Constant(_is_none(value) is isinstance(node.ops[0], ast.Is))
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        ends = isinstance(node.op, ast.Or)
        values: list[ast.expr] = []
        for value in map(self.visit, node.values):
            if isinstance(value, ast.Constant) and type(value.value) is bool:
                if value.value is ends:
                    values.append(value)
                    break
                continue
            values.append(value)
        if not values:
            return ast.Constant(not ends)
        return values[0] if len(values) == 1 else ast.BoolOp(node.op, values)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        test = self.visit(node.test)
        body, orelse = _flat([self.visit(s) for s in node.body]), _flat([self.visit(s) for s in node.orelse])
        if isinstance(test, ast.Constant):
            return body if test.value else orelse
        return ast.If(test, body or [ast.Pass()], orelse)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test, body, orelse = map(self.visit, (node.test, node.body, node.orelse))
        if isinstance(test, ast.Constant):
            return body if test.value else orelse
        return ast.IfExp(test, body, orelse)


def without_else(tree: ast.Module) -> ast.Module:
    """`while ...: ... else: ...` with a flag instead of the `else`."""
    return ast.fix_missing_locations(_NoElse().visit(tree))


class _NoElse(ast.NodeTransformer):
    count = 0

    def _loop(self, node: ast.For | ast.While) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not node.orelse:
            return node
        if not _leaves(node.body):
            return [node, *_without_orelse(node)]
        self.count += 1
        flag = "stopped" if self.count == 1 else f"stopped{self.count}"
        node.body = _marked(node.body, flag)
        after = ast.If(ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load())), node.orelse, [])
        node.orelse = []
        return [ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(False)), node, after]

    visit_For = visit_While = _loop

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        """`a = b = 0`, as two statements."""
        if len(node.targets) > 1 and isinstance(node.value, ast.Constant | ast.UnaryOp | ast.Name):
            return [ast.Assign([target], node.value) for target in node.targets]
        return node


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Is there a break of this very loop?"""
    return any(
        isinstance(s, ast.Break) or (isinstance(s, ast.If) and (_leaves(s.body) or _leaves(s.orelse))) for s in body
    )


def _without_orelse(node: ast.For | ast.While) -> list[ast.stmt]:
    """Takes the `else` off, for it to follow the loop."""
    after, node.orelse = node.orelse, []
    return after


def _marked(body: list[ast.stmt], flag: str) -> list[ast.stmt]:
    """The flag is set before every break of this loop."""
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Break):
            found.append(ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(True)))
        elif isinstance(statement, ast.If):
            statement = ast.If(statement.test, _marked(statement.body, flag), _marked(statement.orelse, flag))
        found.append(statement)
    return found


def renamed(source: str, name: str) -> str:
    """The source with names that say nothing: f for the function, g, h, ... for its helpers, v1, v2, ... for variables."""
    tree = tree_of(source)
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    ordered = sorted(functions, key=lambda n: n.name != name)
    if len(ordered) > len(LETTERS):
        raise CannotPort(f"{name} has {len(ordered) - 1} helpers")
    calls = {n.name: letter for n, letter in zip(ordered, LETTERS, strict=False)}
    for function in functions:
        names = [a.arg for a in ast.walk(function) if isinstance(a, ast.arg)]
        names += [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        _rename(function, {**calls, **{old: f"v{i}" for i, old in enumerate(dict.fromkeys(names), 1)}})
    return ast.unparse(tree)


LETTERS = "fghpqrst"


def _rename(function: ast.FunctionDef, names: Mapping[str, str]) -> None:
    function.name = names[function.name]
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)
