"""Python source rewritten so that it does the same, and changed in one place so that it does not.

Mutants are those of Offutt et al. (1996): comparisons, arithmetic, connectors, constants and bounds, conditions, statements and
arguments. Endless loops are avoided where it is easy: conditions of `while` stay as they are.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Iterator

from kgsynth.mutate import Named, in_turn
from kgsynth.verifiers.code.source import tree_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
Change = tuple[str, Callable[[ast.AST], None]]

COMPARISONS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.FloorDiv, ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift, ast.Pow)
UNNAMED = (
    ast.Global,
    ast.Nonlocal,
    ast.ClassDef,
    ast.Lambda,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Import,
    ast.ImportFrom,
    ast.ExceptHandler,
)
NAMES_READ = {"locals", "vars", "eval", "exec", "dir"}


# the same in other words


def rewritten(source: str, name: str, rng: random.Random) -> Iterator[Named]:
    """(what was done, source) of sources that do the same. None when it does not parse."""
    try:
        tree = tree_of(source)
    except ValueError:
        return
    made = {
        "reformatted": ast.unparse(tree),
        "comments added": _commented(source),
        "locals renamed": _over(tree, _renamed),
        "type annotations": _over(tree, _annotated),
        "docstrings": _over(tree, _documented),
        "a statement that does nothing": _over(tree, _padded),
    }
    if name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}:
        made["a function around it"] = (
            f"{source.rstrip()}\n\n_first = {name}\n\n\ndef {name}(*args, **kwargs):\n    return _first(*args, **kwargs)\n"
        )
    yield from ((how, made[how]) for how in rng.sample(list(made), len(made)))


def _over(tree: ast.Module, change: Callable[[Function], None]) -> str:
    tree = copy.deepcopy(tree)
    for node in ast.walk(tree):
        if isinstance(node, Function):
            change(node)
    return ast.unparse(ast.fix_missing_locations(tree))


def _commented(source: str) -> str:
    body = source.strip("\n")
    return f"# Written from the description.\n\n{body}\n\n# No state is kept between calls.\n"


def _renamed(function: Function) -> None:
    """Give the names that a simple function binds itself new ones."""
    inner = [node for node in ast.walk(function) if node is not function]
    if any(isinstance(node, UNNAMED) or (isinstance(node, ast.Name) and node.id in NAMES_READ) for node in inner):
        return
    arguments = {node.arg for node in inner if isinstance(node, ast.arg)}
    patterns = {
        getattr(node, "name", None) or getattr(node, "rest", None)
        for node in inner
        if isinstance(node, ast.MatchAs | ast.MatchStar | ast.MatchMapping)
    }
    bound = (
        {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        - arguments
        - patterns
    )
    for node in inner:
        if isinstance(node, ast.Name) and node.id in bound:
            node.id = f"my_{node.id}"


def _annotated(function: Function) -> None:
    for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        argument.annotation = argument.annotation or ast.Name("object", ast.Load())
    function.returns = function.returns or ast.Name("object", ast.Load())


def _documented(function: Function) -> None:
    if ast.get_docstring(function) is None:
        function.body.insert(0, ast.Expr(ast.Constant("Does what was asked for.")))


def _padded(function: Function) -> None:
    function.body.insert(1 if ast.get_docstring(function) is not None else 0, ast.Pass())


# nearly the same


def mutants(source: str, name: str, rng: random.Random) -> Iterator[Named]:
    """(what is wrong, source), one change each, different kinds of change in turn."""
    try:
        tree = tree_of(source)
    except ValueError:
        return
    fixed = _kept_as_is(tree)
    groups: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        for how, change in _changes(node) if node not in fixed else ():
            groups.setdefault(how, []).append(_with(tree, node, change))
    yield from in_turn(
        {how: [s for s in dict.fromkeys(made) if s and s != ast.unparse(tree)] for how, made in groups.items()}, rng
    )


def stubs(name: str, arguments: int, rng: random.Random) -> Iterator[Named]:
    """Functions that do nothing of what was asked for."""
    head = f"def {name}(*args, **kwargs):\n    return "
    values = ["None", "0", "1", "True", "False", "''", "[]", "{}", "()", "-1"]
    chosen = rng.sample(values, len(values))
    places = list(range(arguments))
    for i in range(max(len(chosen), len(places))):
        yield from (
            (f"returns argument {places[i] + 1}", f"{head}(*args, *kwargs.values(), None)[{places[i]}]\n")
            for _ in places[i : i + 1]
        )
        yield from (("returns a constant", f"{head}{value}\n") for value in chosen[i : i + 1])


def _kept_as_is(tree: ast.Module) -> set[ast.AST]:
    """Nodes whose change would hang a function, or say nothing: conditions of `while`, docstrings, annotations, decorators."""
    kept: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.While):
            kept |= set(ast.walk(node.test)) | {inner for inner in node.body if isinstance(inner, ast.AugAssign)}
            kept |= {part for inner in node.body if isinstance(inner, ast.AugAssign) for part in ast.walk(inner)}
        if isinstance(node, Function):
            parts = [
                *node.decorator_list,
                node.returns,
                *(a.annotation for a in (*node.args.args, *node.args.kwonlyargs)),
            ]
            kept |= {inner for part in parts if part for inner in ast.walk(part)}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            kept |= {node, node.value}
        if isinstance(node, ast.Raise) and node.exc:
            kept |= {inner for inner in ast.walk(node.exc) if isinstance(inner, ast.Constant | ast.JoinedStr)}
        if isinstance(node, ast.JoinedStr):
            kept |= set(node.values) & {v for v in node.values if isinstance(v, ast.Constant)}
    return kept


def _with(tree: ast.Module, node: ast.AST, change: Callable[[ast.AST], None]) -> str:
    """The source when one node is changed in place; the tree stays as it was."""
    saved = {key: list(value) if isinstance(value, list) else value for key, value in node.__dict__.items()}
    try:
        change(node)
        return ast.unparse(ast.fix_missing_locations(tree))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return ""
    finally:
        node.__dict__.clear()
        node.__dict__.update(saved)


def _set(**fields: object) -> Callable[[ast.AST], None]:
    return lambda node: node.__dict__.update(fields)


def _changes(node: ast.AST) -> Iterator[Change]:
    """What can be wrong about one node."""
    match node:
        case ast.Compare(ops=[op, *rest]) if type(op) in COMPARISONS:
            yield "another comparison", _set(ops=[COMPARISONS[type(op)](), *rest])
            if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                yield (
                    "the comparison turned",
                    _set(ops=[{ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}[type(op)](), *rest]),
                )
        case ast.BinOp(op=op, left=left, right=right) if type(op) in ARITHMETIC:
            yield "another operator", _set(op=ARITHMETIC[type(op)]())
            if isinstance(op, ORDERED):
                yield "operands swapped", _set(left=right, right=left)
        case ast.AugAssign(op=op) if type(op) in ARITHMETIC:
            yield "another operator", _set(op=ARITHMETIC[type(op)]())
        case ast.BoolOp(op=op, values=values):
            yield "and for or", _set(op=ast.Or() if isinstance(op, ast.And) else ast.And())
            yield "a condition left out", _set(values=[*values[1:], ast.Constant(isinstance(op, ast.And))])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "a condition negated", _set(op=ast.Not(), operand=ast.UnaryOp(ast.Not(), operand))
        case ast.UnaryOp(op=ast.USub()):
            yield "a sign off", _set(op=ast.UAdd())
        case ast.If(test=test) | ast.IfExp(test=test):
            yield "a condition negated", _set(test=ast.UnaryOp(ast.Not(), test))
            yield "a branch never taken", _set(test=ast.Constant(False))
            yield from _left_out(node.body) if isinstance(node, ast.If) else ()
        case ast.Constant(value=bool(value)):
            yield "a constant off", _set(value=not value)
        case ast.Constant(value=int(value)):
            yield from (("a constant off", _set(value=value + 1)), ("a constant less", _set(value=value - 1)))
        case ast.Constant(value=float(value)):
            yield "a constant off", _set(value=value + 1.0)
        case ast.Constant(value=str(value)) if value:
            yield "a text off", _set(value=value[:-1])
        case _:
            yield from _larger_changes(node)


def _larger_changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Return(value=value) if value is not None:
            yield "returns nothing", _set(value=None)
            if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
                yield "a call left out", _set(value=value.args[0])
        case ast.Slice(lower=lower, upper=upper) if lower or upper:
            yield from (("a bound left out", _set(lower=None)) for _ in [1] if lower)
            yield from (("a bound left out", _set(upper=None)) for _ in [1] if upper)
        case ast.Call(args=[first, second, *rest]) if not any(isinstance(a, ast.Starred) for a in (first, second)):
            yield "arguments swapped", _set(args=[second, first, *rest])
        case ast.Call(keywords=[_, *rest]):
            yield "an argument left out", _set(keywords=rest)
        case ast.Call(func=ast.Name(id="range"), args=[stop]):
            yield "a loop too short", _set(args=[ast.BinOp(stop, ast.Sub(), ast.Constant(1))])
        case ast.FunctionDef(body=body) | ast.For(body=body) | ast.With(body=body):
            yield from _left_out(body)
        case ast.comprehension(ifs=[_, *rest]):
            yield "a filter left out", _set(ifs=rest)


def _left_out(body: list[ast.stmt]) -> Iterator[Change]:
    for i, statement in enumerate(body):
        if _may_go(statement):
            yield "a statement left out", _set(body=[*body[:i], *body[i + 1 :]] or [ast.Pass()])


def _may_go(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.AugAssign | ast.If | ast.Raise | ast.For | ast.Delete | ast.Continue)
