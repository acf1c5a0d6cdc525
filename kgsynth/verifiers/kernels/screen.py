"""What can be said about a kernel's source without running it.

This is the first line of defence and the weaker one: it names the trick in words that help. What gets past it meets the
box, where there is nothing to find, no clock to forge and no operator that is banned (`kernels/box.py`).
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator

from kgsynth.verifiers.code.source import REFLECTIVE, parse

IMPORTS = {
    "__future__", "abc", "collections", "dataclasses", "enum", "functools", "itertools", "math", "operator", "torch", "triton",
    "typing", "typing_extensions", "numbers",
}  # fmt: skip
# Parts of torch that reach into the interpreter, files, other processes or the dispatcher; "*" brings modules in unnamed.
INNER = {
    "library", "_C", "_ops", "_dynamo", "_inductor", "hub", "load", "save", "multiprocessing", "distributed", "package",
    "overrides", "profiler", "serialization", "storage", "futures", "classes", "cpp_extension", "from_file",
    "set_num_threads", "set_num_interop_threads", "set_flush_denormal", "set_default_dtype", "set_default_device",
    "set_default_tensor_type", "tensorboard", "fx", "*",
}  # fmt: skip
# Attributes without a use in a kernel: what knows a tensor by its memory, delays work, or makes clocks.
ODD = {
    "elapsed_time", "__torch_function__", "__torch_dispatch__", "_make_subclass", "_make_wrapper_subclass", "as_subclass",
    "untyped_storage", "data_ptr", "_version", "_cdata", "__class__", "__dict__", "__getattr__", "__weakref__",
    "attrgetter", "methodcaller",
}  # fmt: skip
# Other modules as attributes of those that are allowed (torch.os, enum.bltns): they lead to the whole interpreter.
STRANGERS = set(sys.stdlib_module_names) | {
    "bltns", "copymodule", "mp", "np", "python_multiprocessing", "reducer", "reduction", "stdlib_re", "sympy", "torchgen",
}  # fmt: skip
# Of these, words that tensors and classes use as well: refused of a module only, and not of torch and its operators.
WORDS = {
    "array", "cache", "chunk", "code", "copy", "np", "profile", "queue", "random", "reduction", "select", "signal",
    "string", "test", "time", "token", "trace", "types",
}  # fmt: skip
OWNERS = {"torch", "Tensor", "aten", "functional", "tl", "language"}
ESCAPES = {  # out of torch, where no operator is banned
    "numpy", "from_numpy", "__array__", "__array_interface__", "__dlpack__", "tolist", "frombuffer",
}  # fmt: skip
LOWERED = {"set_float32_matmul_precision", "allow_tf32", "allow_fp16_reduced_precision_reduction", "autocast"}
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "open",
    "globals",
    "locals",
    "vars",
    "breakpoint",
    "input",
    "setattr",
    "delattr",
}


def screen(source: str, name: str, *, imports: Iterable[str] = (), banned: bool = False) -> tuple[str, str]:
    """("", "") or (reason, what and where). `imports`: modules allowed beyond the usual; `banned`: operators are."""
    try:
        tree = parse(source)
    except ValueError as error:
        return "syntax error", str(error)[:80]
    nodes = list(ast.walk(tree))
    modules = {bound for node in nodes for bound in _modules(node)}
    ours = _of_torch(nodes)
    allowed = IMPORTS | set(imports)
    odd = ODD | REFLECTIVE | (ESCAPES if banned else set())
    strangers = STRANGERS - allowed
    for node in nodes:
        found = _forbidden(node, allowed, odd, modules, ours) or _strange(node, odd, strangers, modules)
        if found := found or _evasive(node, nodes):
            return found[0], f"{found[1]} in line {getattr(node, 'lineno', 0)}"
    if not any(bound == name for node in nodes for bound in _binds(node)):
        return "no such function", name
    return _empty(nodes, name)


def _forbidden(
    node: ast.AST, allowed: set[str], odd: set[str], modules: set[str], ours: set[str]
) -> tuple[str, str] | None:
    match node:
        case ast.Import(names=aliases):
            return _first("forbidden import", (a.name for a in aliases if not _may(a.name, allowed)))
        case ast.ImportFrom(module=module, names=aliases, level=level):
            names = (f"{module}.{alias.name}" for alias in aliases)
            return _first("forbidden import", (n for n in names if level or not _may(n, allowed)))
        case ast.Attribute(attr=attr) | ast.Name(id=attr) if attr in LOWERED:
            return "precision downgrade", attr
        case ast.Attribute(ctx=ast.Store() | ast.Del()) if _root(node) in modules:
            return "patched module", ast.unparse(node)[:60]
        case ast.Attribute(attr=attr) if attr in odd or _is_inner(node, ours):
            return "forbidden name", attr
        case ast.Name(id=attr) if attr in CALLS or attr in odd:
            return "forbidden name", attr
        case ast.FunctionDef(name=attr) if attr in odd:
            return "forbidden name", attr
    return None


def _strange(node: ast.AST, odd: set[str], strangers: set[str], modules: set[str]) -> tuple[str, str] | None:
    """A module that is none of those allowed, or an odd attribute, had as an attribute in any way that Python has."""
    match node:
        case ast.ImportFrom(module=module, names=aliases):
            owner = str(module).rpartition(".")[2]
            names = (alias.name for alias in aliases)
            return _first("forbidden import", (n for n in names if n in odd or _leads_out(n, owner, strangers)))
        case ast.Attribute(attr=attr, value=value):
            owner = ast.unparse(value).rpartition(".")[2] if _root(node) in modules else ""
            return ("forbidden name", attr) if _leads_out(attr, owner, strangers) else None
        case ast.Call(func=ast.Name(id="getattr"), args=args):
            plain = len(args) > 1 and _is_plain(args[1], odd | strangers)
            return None if plain else ("forbidden name", "getattr")
        case ast.MatchClass(kwd_attrs=names):
            return _first("forbidden name", (n for n in names if n in odd | strangers))
    return None


def _leads_out(name: str, owner: str, strangers: set[str]) -> bool:
    """Whether an attribute is a foreign module; `owner` is the last part of the module it is of, "" for any object."""
    return name in strangers and (name not in WORDS or (owner != "" and owner not in OWNERS))


def _evasive(node: ast.AST, nodes: list[ast.AST]) -> tuple[str, str] | None:
    """A second way when the first fails, and classes that borrow their work."""
    match node:
        case ast.Name(id="getattr") if not any(isinstance(n, ast.Call) and n.func is node for n in nodes):
            return "forbidden name", "getattr"
        case ast.Try(handlers=handlers, body=body) if not all(
            isinstance(s, (ast.Import, ast.ImportFrom)) for s in body
        ):
            if any(_does_work(handler) for handler in handlers):
                return "fallback", "an exception handler that goes on"
        case ast.With(items=items) if any("suppress" in ast.unparse(item.context_expr) for item in items):
            return "fallback", "suppress"
        case ast.ClassDef(bases=bases):
            bound = {name for n in nodes for name in _binds(n)} | set(dir(builtins))
            unknown = (base.id for base in bases if isinstance(base, ast.Name) and base.id not in bound)
            return _first("inherits reference", unknown)
    return None


def _does_work(handler: ast.ExceptHandler) -> bool:
    return not all(isinstance(statement, ast.Raise) for statement in handler.body)


def _empty(nodes: list[ast.AST], name: str) -> tuple[str, str]:
    """A function, or a class's forward, that has nothing but docstrings, `pass` and `...`."""
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name and all(map(_is_idle, node.body)):
            return "empty body", name
    return "", ""


def _is_idle(statement: ast.AST) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _may(module: str, allowed: set[str]) -> bool:
    parts = module.split(".")
    own = any(".".join(parts[:i]) in allowed for i in range(1, len(parts) + 1))
    return own and (parts[0] != "torch" or INNER.isdisjoint(parts)) and not any(p.startswith("_") for p in parts[1:])


def _is_inner(node: ast.Attribute, ours: set[str]) -> bool:
    """torch.something that no kernel needs, or torch._something, under any name of torch; tl.load is another thing."""
    odd = node.attr in INNER or (node.attr.startswith("_") and not node.attr.endswith("_"))
    return odd and not ours.isdisjoint(ast.unparse(node.value).split("."))


def _of_torch(nodes: list[ast.AST]) -> set[str]:
    """Names of torch and of what is in it: those that imports bind, and other names of these."""
    ours = {"torch"}
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                ours |= {alias.asname for alias in aliases if alias.asname and alias.name.split(".")[0] == "torch"}
            case ast.ImportFrom(module=str(module), names=aliases) if module.split(".")[0] == "torch":
                ours |= {alias.asname or alias.name for alias in aliases}
            case ast.Assign(value=value, targets=[ast.Name(id=name)]) if _root(value) in ours:
                ours.add(name)
    return ours


def _is_plain(node: ast.AST, odd: set[str]) -> bool:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return not node.value.startswith("_") and node.value not in odd | INNER | LOWERED


def _first(reason: str, found: Iterable[str]) -> tuple[str, str] | None:
    return next(((reason, name[:60]) for name in found), None)


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _modules(node: ast.AST) -> Iterator[str]:
    """Names that imports bind."""
    match node:
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name.split(".")[0] for alias in aliases)


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.ImportFrom() | ast.Import():
            yield from _modules(node)
