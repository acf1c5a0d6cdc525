"""The typed JSON in which values enter and leave a box: exact, total, and compared by type."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, OrderedDict
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.errors import VerifierError
from kgsynth.verifiers.code import runner
from kgsynth.verifiers.code.values import decode, encode, same

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text(st.characters()) | st.binary()
    | st.fractions() | st.decimals()
)  # fmt: skip
hashable = st.recursive(
    scalars.filter(lambda v: not (isinstance(v, Decimal) and v.is_snan())), lambda s: st.tuples(s, s)
)
values = st.recursive(
    scalars | st.sets(hashable, max_size=4) | st.frozensets(hashable, max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(hashable, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(values)
def test_codec_is_exact_and_is_json(value: Any) -> None:
    form = encode(value)
    assert json.loads(json.dumps(form)) == form
    json.dumps(form, ensure_ascii=False).encode()  # what a task file does with it
    assert json.loads(runner.to_json(form)) == form
    back = decode(form)
    assert type(back) is type(value)
    assert encode(back) == form
    assert same(form, encode(back), tolerance=0.0)


@settings(deadline=None)
@given(values, values)
def test_codec_tells_values_apart(a: Any, b: Any) -> None:
    """Equal forms only for values that print the same, which for these types means the same."""
    if encode(a) == encode(b) and not _has_set(a):
        assert repr(a) == repr(b)


def _has_set(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_set, (*value, *value.values())))
    return isinstance(value, (set, frozenset)) or (isinstance(value, (list, tuple)) and any(map(_has_set, value)))


DIFFERENT = [
    True,
    1,
    1.0,
    1 + 0j,
    "1",
    b"1",
    Fraction(1),
    Decimal(1),
    Decimal("1.0"),
    [1],
    (1,),
    {1},
    frozenset({1}),
    {1: 1},
]
DIFFERENT += [
    None,
    False,
    0,
    0.0,
    -0.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    b"",
    [],
    (),
    set(),
    {},
    2**53,
    "\ud800",
]


def test_values_of_different_types_are_never_the_same() -> None:
    for i, a in enumerate(DIFFERENT):
        for j, b in enumerate(DIFFERENT):
            assert same(encode(a), encode(b)) is (i == j), (a, b)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (0.1 + 0.2, 0.3, True),
        (1e300, 1e300 * (1 + 1e-10), True),
        (1.0, 1.0 + 1e-8, False),
        (1e-300, 0.0, False),
        (float("nan"), float("nan"), True),
        (float("inf"), 1e308, False),
        ([0.1 + 0.2, 1], [0.3, 1], True),
        ({"a": (0.1 + 0.2,)}, {"a": (0.3,)}, True),
        ({0.1 + 0.2}, {0.3}, False),  # members of sets are compared exactly
        ({1: 2, 3: 4}, {3: 4, 1: 2}, True),
        (complex(0.1 + 0.2, 1), complex(0.3, 1), True),
    ],
)
def test_floats_have_a_relative_tolerance(a: Any, b: Any, equal: bool) -> None:
    assert same(encode(a), encode(b)) is equal
    assert same(encode(b), encode(a)) is equal


class Sly(str):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class SlyInt(int):
    pass


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


class Point(NamedTuple):
    x: int
    y: int


class SlyDict(dict):
    def items(self) -> Any:
        return [("forged", 1)]

    def copy(self) -> Any:
        return {"forged": 1}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Sly("x"), "x"),
        ([SlyInt(1)], [1]),
        (Point(1, 2), (1, 2)),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (IntEnum("Colour", "RED GREEN")(2), 2),
        (SlyDict(a=3), {"a": 3}),
        (type("Items", (list,), {"__iter__": lambda self: iter([9])})([1]), [1]),
        (type("Members", (set,), {})({1, 2}), {1, 2}),
    ],
)
def test_a_value_of_a_subclass_counts_as_what_it_holds(value: Any, plain: Any) -> None:
    assert encode(value) == encode(plain)


@pytest.mark.parametrize("value", [object(), range(3), len, int, CYCLE, bytearray()])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(VerifierError, match="cannot encode"):
        encode(value)


@pytest.mark.parametrize(
    "form", [["lisp"], [], [1], ["int"], ["int", "x"], ["set", ["list"]], ["dict", 1], ["Decimal", "x"]]
)
def test_malformed_forms_are_refused(form: Any) -> None:
    with pytest.raises(VerifierError, match="not an encoded value"):
        decode(form)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x, max_size=4), max_leaves=10
)
tags = st.sampled_from(["float", "complex", "list", "set", "dict", "int"])
forms = plain | st.builds(lambda tag, rest: [tag, *rest], tags, st.lists(plain, max_size=4))


@settings(deadline=None)
@given(forms, forms)
def test_comparing_forged_forms_never_raises(a: Any, b: Any) -> None:
    assert same(a, b) in (True, False)


def test_the_runner_loads_nothing_that_a_bare_interpreter_has_not() -> None:
    """Modules found loaded could be reached by a solution that may not import them."""
    code = "import sys; before = set(sys.modules); exec(compile(open(sys.argv[1]).read(), 'r', 'exec'), {'__name__': 'r'}); print(set(sys.modules) - before)"
    out = subprocess.run([sys.executable, "-I", "-S", "-c", code, runner.__file__], capture_output=True, text=True)
    assert out.stdout == "{'__future__'}\n", out
