"""Runs inside the box: calls a solution's function on given inputs and reports what came out, as typed JSON.

The text of this file is what `calls.run_calls` sends into the box, so it imports nothing of ours and, of the
standard library, only what the interpreter has loaded anyway: a module that this file loads is one that a solution
finds ready. The first half, the codec, is used outside as well (`values.py`).

A solution runs in the same process and can read and forge everything here. That is harmless: expected values
never come in, and what it reports is compared outside.

Left out: values of any other type (they are reported as "not encodable"), and identity: a list that occurs twice
in a value comes back as two equal lists.
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]  (signal would load enum, functools, ...)
import posix
import sys
from time import monotonic, process_time

TYPE_CHECKING = False  # typing would have to be loaded for the real one
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any, NoReturn

MAX_DEPTH, MAX_ITEMS, MAX_TEXT = 64, 100_000, 1 << 18


class NotEncodable(ValueError):
    """A value is not made of the types the codec knows, or is too deep or too large."""


# ----------------------------------------------------------------------------------------------------- the codec
#
# None, bool, str and ints below 2**53 are themselves in JSON. Everything else is a list that begins with its type:
#   ["int", "0x..."]  ["float", repr]  ["complex", repr, repr]  ["bytes", hex]  ["surrogates", UTF-16 hex]
#   ["list", item...]  ["tuple", item...]  ["set", item...]  ["frozenset", item...]  ["dict", [key, value]...]
#   ["Fraction", hex, hex]  ["Decimal", str]


def encode(value: Any, depth: int = 0, budget: list[int] | None = None) -> Any:
    """The JSON form of a value of the known types; one of a subclass counts as what it extends. Raises NotEncodable."""
    budget = budget if budget is not None else [MAX_ITEMS]
    budget[0] -= 1
    if depth > MAX_DEPTH or budget[0] < 0:
        raise NotEncodable("nested too deep" if depth > MAX_DEPTH else "too many items")
    kind = type(value)
    if value is None or kind is bool or (kind is int and -(2**53) < value < 2**53):
        return value
    if kind is str:
        return value if _is_unicode(value) else ["surrogates", value.encode("utf-16-be", "surrogatepass").hex()]
    if kind in SCALARS:
        return [kind.__name__, *SCALARS[kind](value)]
    if kind is list or kind is tuple:
        return [kind.__name__, *[encode(item, depth + 1, budget) for item in value]]
    if kind is set or kind is frozenset:
        return [kind.__name__, *sorted([encode(item, depth + 1, budget) for item in value], key=to_json)]
    if kind is dict:
        return ["dict", *[[encode(k, depth + 1, budget), encode(v, depth + 1, budget)] for k, v in value.items()]]
    if kind.__module__ == "fractions" and kind is _number("fractions", "Fraction"):
        return ["Fraction", hex(value.numerator), hex(value.denominator)]
    if kind.__module__ == "decimal" and kind is _number("decimal", "Decimal"):
        return ["Decimal", str(value)]
    for base, copy in PLAIN:
        if base in kind.__mro__:
            return encode(copy(value), depth, budget)
    raise NotEncodable("a value of type " + repr(kind.__name__))


# What a value of a subclass holds, asked of the base's own methods: Counter, namedtuple and IntEnum are answers like others.
PLAIN: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
    (bytes, bytes.__bytes__),
    (dict, dict.copy),
    (list, list.copy),
    (tuple, lambda value: tuple.__getitem__(value, slice(None))),
    (set, lambda value: {*set.__iter__(value)}),
    (frozenset, lambda value: frozenset([*frozenset.__iter__(value)])),
)
SCALARS: dict[type, Callable[[Any], list[str]]] = {
    int: lambda value: [hex(value)],
    float: lambda value: [repr(value)],
    complex: lambda value: [repr(value.real), repr(value.imag)],
    bytes: lambda value: [value.hex()],
}
BUILD: dict[str, Callable[..., Any]] = {
    "int": lambda text: int(text, 16),
    "float": float,
    "complex": lambda real, imag: complex(float(real), float(imag)),
    "bytes": bytes.fromhex,
    "surrogates": lambda text: bytes.fromhex(text).decode("utf-16-be", "surrogatepass"),
    "list": lambda *items: [decode(item) for item in items],
    "tuple": lambda *items: tuple([decode(item) for item in items]),
    "set": lambda *items: {decode(item) for item in items},
    "frozenset": lambda *items: frozenset([decode(item) for item in items]),
    "dict": lambda *items: {decode(key): decode(value) for key, value in items},
    "Fraction": lambda top, bottom: _number("fractions", "Fraction")(int(top, 16), int(bottom, 16)),
    "Decimal": lambda text: _number("decimal", "Decimal")(text),
}


def decode(form: Any) -> Any:
    """Inverse of `encode`: a fresh value. Raises ValueError, TypeError or KeyError for what `encode` cannot make."""
    if type(form) is not list:
        return form
    return BUILD[form[0]](*form[1:])


def to_json(form: Any) -> str:
    """ASCII JSON of an encoded value: the json module would bring re, functools, collections, ... with it."""
    if form is None or type(form) is bool:
        return {None: "null", True: "true", False: "false"}[form]
    if type(form) is int:
        return str(form)
    if type(form) is str:
        return '"' + "".join([c if " " <= c <= "~" and c not in '"\\' else _escape(c) for c in form]) + '"'
    return "[" + ",".join([to_json(item) for item in form]) + "]"


def _escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(["\\u" + units[i : i + 4] for i in range(0, len(units), 4)])


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


_numbers: dict[str, Any] = {}


def _number(module: str, name: str) -> Any:
    """Fraction or Decimal, loaded when first met and kept: later the module may be banned."""
    if name not in _numbers:
        _numbers[name] = getattr(__import__(module), name)
    return _numbers[name]


# ---------------------------------------------------------------------------------------- banned modules, at run time
#
# While a ban holds, the solution's own imports go through `Ban.load`. It refuses banned modules and hands out copies
# of the others without their module attributes, without what they took from a banned module, and without what
# follows names in text. The modules themselves stay whole: `from typing import List` works although typing uses a
# banned functools. Text does not become code: it could not be checked.

HIDDEN = {
    "modules", "meta_path", "path_hooks", "_getframe", "_current_frames", "settrace", "setprofile",
    "attrgetter", "methodcaller", "Formatter", "ForwardRef", "get_type_hints",
}  # fmt: skip


class ForbiddenImport(ImportError):
    """The solution asked for a banned module."""


class Ban:
    """The banned modules: `banned` with everything under them."""

    def __init__(self, banned: set[str], reflective: set[str]) -> None:
        import builtins

        self.banned = banned
        self.reflective = reflective
        self.real_import = builtins.__import__
        self.builtins = {**vars(builtins), "__import__": self.load, "getattr": self.attribute}
        self.builtins |= dict.fromkeys(("eval", "exec", "compile"), self.run)

    def covers(self, name: object) -> bool:
        parts = name.split(".") if isinstance(name, str) else []
        return any(".".join(parts[: i + 1]) in self.banned for i in range(len(parts)))

    def load(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType:
        for asked in (name, *[name + "." + str(item) for item in fromlist or ()]):
            if self.covers(asked):
                raise ForbiddenImport(asked)
        return self.copy(self.real_import(name, globals, locals, fromlist, level))

    def copy(self, module: ModuleType) -> ModuleType:
        public = getattr(module, "__all__", ())
        kept = {name: value for name, value in vars(module).items() if not self.hides(module, name, value, public)}
        for name, value in kept.items():
            if type(value) is type(sys):
                kept[name] = self.copy(value)
        if "__all__" in kept:
            kept["__all__"] = [name for name in public if name in kept]
        twin = type(sys)(module.__name__)
        vars(twin).update(kept)
        return twin

    def hides(self, module: ModuleType, name: str, value: Any, public: Sequence[str]) -> bool:
        if type(value) is type(sys):
            below = value.__name__.startswith(module.__name__ + ".")
            return self.covers(value.__name__) or not (below or name in public)
        return name in HIDDEN or name in ("__loader__", "__spec__") or self.covers(getattr(value, "__module__", None))

    def run(self, *args: object, **kwargs: object) -> NoReturn:
        raise ForbiddenImport("text run as code")

    def attribute(self, owner: object, name: str, *default: object) -> Any:
        if name in self.reflective:
            raise ForbiddenImport(name)
        return getattr(owner, name, *default)


# -------------------------------------------------------------------------------------------------------- the calls

# A limit is CPU time, so that a busy machine fails nobody; who waits may take PATIENCE times as long on the wall clock.

PATIENCE = 3
SLACK = 0.05  # seconds from a limit to its alarm
CLOCKS = (
    (_signal.SIGPROF, _signal.ITIMER_PROF, process_time, 1),
    (_signal.SIGALRM, _signal.ITIMER_REAL, monotonic, PATIENCE),
)
arm, on = _signal.setitimer, _signal.signal  # a solution may replace those of the module


class TooLarge(ValueError):
    """A result is longer than anybody wants to read."""


class Late(BaseException):
    """A call is over its time."""


def late(signal: int, frame: object) -> NoReturn:
    raise Late


def limited(seconds: float, function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[str, Any]:
    """("returned", value), ("raised", type name) or ("failed", reason). Who swallows the alarm is late all the same."""
    seconds = max(seconds, 1e-6)
    ends = [now() + factor * seconds + SLACK for _, _, now, factor in CLOCKS]
    try:
        try:
            for signal, timer, _, factor in CLOCKS:
                on(signal, late)
                arm(timer, factor * seconds)
            value = function(*args, **kwargs)
        finally:
            for _, timer, _, _ in CLOCKS:
                arm(timer, 0)
        in_time = all(now() <= end for (_, _, now, _), end in zip(CLOCKS, ends, strict=True))
        return ("returned", value) if in_time else ("failed", "timeout")
    except Late:
        return "failed", "timeout"
    except ForbiddenImport:
        return "failed", "forbidden import"
    except BaseException as error:
        return "raised", type(error).__name__


def load(job: dict[str, Any]) -> tuple[str, Any]:
    """Execute the solution. (kind, function or reason) as of `limited`."""
    module = type(sys)("solution")
    sys.modules["solution"] = sys.modules["__main__"] = module
    if job["banned"]:
        for _, args, kwargs in job["calls"]:  # load the number types while they still can be
            decode(["list", args, kwargs])
        module.__dict__["__builtins__"] = Ban(job["banned"], job["reflective"]).builtins

    def execute() -> None:
        exec(compile(job["source"], "<solution>", "exec", dont_inherit=True), module.__dict__)

    kind, detail = limited(job["call_seconds"], execute)
    if kind == "raised":
        return "failed", "syntax error" if detail == "SyntaxError" else "load error: " + detail
    if kind == "returned" and not callable(module.__dict__.get(job["name"])):
        return "failed", "no such function"
    return kind, module.__dict__.get(job["name"]) if kind == "returned" else detail


def call(function: Callable[..., Any], args: Any, kwargs: Any, seconds: float) -> tuple[str, Any]:
    """One call on fresh copies of its arguments. (kind, encoded value or reason)."""
    kind, value = limited(seconds, function, *decode(args), **decode(kwargs))
    if kind != "returned":
        return kind, value
    kind, form = limited(seconds, coded, value)
    if kind == "returned":
        return kind, form
    return "failed", {"NotEncodable": "not encodable", "TooLarge": "result too large"}.get(form, form)


def coded(value: Any) -> Any:
    """The value's form. Raises TooLarge for one over MAX_TEXT characters of JSON."""
    if type(value) in (str, bytes) and len(value) > MAX_TEXT:
        raise TooLarge
    form = encode(value)
    if len(to_json(form)) > MAX_TEXT:
        raise TooLarge
    return form


def main() -> None:
    """Read the job, report one line per call on the original stdout; the solution's own output goes nowhere."""
    import marshal

    with open("job", "rb") as file:
        job = marshal.load(file)
    report, nowhere = posix.dup(1), posix.open("/dev/null", posix.O_RDWR)
    posix.dup2(nowhere, 1)
    posix.dup2(nowhere, 2)
    write, leave = posix.write, posix._exit

    def say(index: int, kind: str, form: Any) -> None:
        line = (to_json([index, kind, form]) + "\n").encode()
        while line:
            line = line[write(report, line) :]

    end = process_time() + job["seconds"]
    kind, function = load(job)
    if kind == "failed":
        say(-1, kind, function)
    else:
        for index, args, kwargs in job["calls"]:
            kind, form = call(function, args, kwargs, min(job["call_seconds"], end - process_time()))
            say(index, kind, form)
            if form == "timeout" and kind == "failed":
                break
    leave(0)  # threads, exit handlers and buffers of the solution have no say any more


if __name__ == "__main__":
    main()
