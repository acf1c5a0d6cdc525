"""What can be said about a solution's source without running it: does it parse, bind the name, import what is banned?

A ban is a rule of the task, not a wall: the wall is the sandbox. This check and `runner.Ban` together stop every
plain way to a banned module and the usual reflective ones; they do not claim to stop every way Python has.
"""

from __future__ import annotations

import ast
import re
import textwrap
import threading
from collections.abc import Iterable, Iterator

MAX_LENGTH = 20_000  # of an answer: the parser survives any text of this length

# Other names under which a module's functions can be had; `_name` and `_pyname` go without saying.
TWINS = {
    "os.path": {"posixpath", "ntpath", "genericpath"},
    "re": {"_sre", "sre_compile", "sre_parse", "sre_constants"},
    "hashlib": {"_md5", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_blake2"},
    "pickle": {"_compat_pickle"},
    "math": {"cmath"},
}
# Modules that load others by name, run text as code, or show what is loaded. Under a ban they are banned too.
LOADERS = {
    "bdb", "builtins", "cProfile", "code", "codeop", "ctypes", "_ctypes", "doctest", "gc", "imp", "_imp", "importlib", "inspect",
    "_frozen_importlib", "_frozen_importlib_external", "marshal", "modulefinder", "multiprocessing", "os", "pdb",
    "pickle", "_pickle", "pkgutil", "posix", "_posixsubprocess", "profile", "pty", "pydoc", "rlcompleter", "runpy",
    "shelve", "subprocess", "test", "timeit", "trace", "traceback", "unittest", "zipimport",
}  # fmt: skip
# Attributes that lead from an object to the module or frame it came from. Text that names one is a way to it as well.
REFLECTIVE = {
    "__builtins__", "__closure__", "__code__", "__getattribute__", "__globals__", "__import__", "__loader__",
    "__self__", "__spec__", "__subclasses__", "_getframe", "ag_frame", "cr_frame", "f_back", "f_builtins",
    "f_globals", "f_locals", "gi_frame", "meta_path", "path_hooks", "tb_frame",
}  # fmt: skip


_one_at_a_time = threading.Lock()


def read(text: str) -> str:
    """An answer as source: without the indentation that all its lines share."""
    return textwrap.dedent(text).strip() + "\n"


def parse(source: str, mode: str = "exec", tries: int = 3) -> ast.AST:
    """The syntax tree of a text from anywhere. Raises ValueError, and only that, for one that Python does not parse.

    A text nested too deep is refused in a way that depends on the stack. Some releases of 3.11 and 3.12 keep the depth in
    one counter for all threads and raise SystemError when two parse at once (cpython issue 106905): so one parses at a
    time here, and what another library's thread disturbs is tried again.
    """
    try:
        with _one_at_a_time:
            return ast.parse(source, mode=mode)
    except SystemError as error:
        if tries > 1:
            return parse(source, mode, tries - 1)
        raise ValueError(f"not Python: {error}") from error
    except (SyntaxError, RecursionError, MemoryError, OverflowError) as error:
        raise ValueError(f"not Python: {error}") from error


def tree_of(source: str) -> ast.Module:
    """The same for a whole file."""
    tree = parse(source)
    assert isinstance(tree, ast.Module)
    return tree


def banned_names(forbidden: Iterable[str]) -> frozenset[str]:
    """Every module name that a ban on `forbidden` covers; empty when nothing is forbidden."""
    names = {twin for name in forbidden for twin in (name, f"_{name}", f"_py{name}", *TWINS.get(name, ()))}
    return frozenset(names | LOADERS) if names else frozenset()


def problem(source: str, name: str, forbidden: Iterable[str] = ()) -> str:
    """ "" or the reason why running it is pointless: syntax error, no such function, forbidden import."""
    try:
        nodes = list(ast.walk(parse(source)))
    except ValueError:
        return "syntax error"
    banned = banned_names(forbidden)
    if banned and any(_breaks(node, banned) for node in nodes):
        return "forbidden import"
    bound = {found for node in nodes for found in _binds(node)}
    return "" if name in bound or "*" in bound else "no such function"


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.alias(name=name, asname=asname):
            yield asname or name.split(".")[0]


def _breaks(node: ast.AST, banned: frozenset[str]) -> bool:
    """Whether this node imports a banned module or reaches for one in a way that has no other use."""
    match node:
        case ast.Import(names=aliases):
            return any(_covers(banned, alias.name) for alias in aliases)
        case ast.ImportFrom(module=module, names=aliases):
            parts = (f"{module}.{alias.name}" for alias in aliases)
            return _covers(banned, module or "") or any(_covers(banned, part) for part in parts)
        case ast.Call(func=ast.Name(id="__import__"), args=[ast.Constant(value=str(wanted)), *_]):
            return _covers(banned, wanted)
        case ast.Attribute(value=ast.Name(id="sys"), attr="modules"):
            return True
        case ast.Attribute(attr=attr):
            return attr in REFLECTIVE
        case ast.MatchClass(kwd_attrs=attrs):
            return bool(REFLECTIVE & set(attrs))
        case ast.Name(id=name):
            return name in REFLECTIVE - {"__import__"}
        case ast.Constant(value=str(text)):
            return not REFLECTIVE.isdisjoint(re.findall(r"\w+", text))
    return False


def _covers(banned: frozenset[str], module: str) -> bool:
    parts = module.split(".")
    return any(".".join(parts[: i + 1]) in banned for i in range(len(parts)))
