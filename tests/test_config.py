"""Recipes: strict, typed, and errors that name the key."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgsynth.config import RunConfig, build, build_all, flatten, read_toml, to_toml
from kgsynth.errors import ConfigError
from kgsynth.recipe import load_recipe

RECIPES = sorted((Path(__file__).resolve().parents[1] / "recipes").glob("*.toml"))


@dataclass(frozen=True, kw_only=True)
class Inner:
    name: str
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Outer:
    steps: int = 3
    fast: bool = False
    items: tuple[Inner, ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    inner: Inner = field(default_factory=lambda: Inner(name="x"))
    cap: int | None = None


def test_builds_nested_tables() -> None:
    table = tomllib.loads(
        'steps = 5\nitems = [{name = "a", weight = 2}]\nshares = {x = 1}\ncap = 7\ninner = {name = "b"}'
    )
    assert build(Outer, table, "[t]") == Outer(
        steps=5, items=(Inner(name="a", weight=2.0),), shares={"x": 1.0}, cap=7, inner=Inner(name="b")
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stepz = 5", r"\[t\]: unknown key 'stepz'; did you mean 'steps'"),
        ("steps = 'five'", r"\[t\] steps must be of type int, not 'five'"),
        ("steps = true", r"\[t\] steps must be of type int, not True"),
        ("fast = 1", r"\[t\] fast must be of type bool"),
        ("items = [{weight = 1.0}]", r"\[t\] items\[0\].*name"),
        ("items = [{name = 'a', wait = 1}]", r"\[t\] items\[0\]: unknown key 'wait'"),
        ("items = 3", r"\[t\] items must be a list"),
        ("shares = {x = nan}", r"\[t\] shares.x must be a finite number, not nan"),
        ("shares = {x = 'much'}", r"\[t\] shares.x must be of type float"),
        ("cap = 'x'", r"\[t\] cap must be int"),
    ],
)
def test_refuses_bad_values_by_name(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(Outer, tomllib.loads(text), "[t]")


def test_refuses_unknown_tables_but_not_ignored_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown table \[grwo\]; did you mean 'grow'"):
        build_all({"grwo": {}}, {"grow": Outer})
    assert build_all({"trainer": {"x": 1}}, {"run": RunConfig}, ignore={"trainer"}) == {"run": RunConfig()}


def test_overrides(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text("[run]\nname = 'a'\n")
    tables = read_toml(path, ["run.name=b c", "sample.seed=3", "grow.agent.pages=2"])
    assert tables == {"run": {"name": "b c"}, "sample": {"seed": 3}, "grow": {"agent": {"pages": 2}}}
    for bad in ("seed=3", "sample.seed", "run.name.x=1"):
        with pytest.raises(ConfigError, match="override"):
            read_toml(path, [bad])


def test_unreadable_recipes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.toml: No such file"):
        read_toml(tmp_path / "no.toml")
    (tmp_path / "bad.toml").write_text("[run\n")
    with pytest.raises(ConfigError, match=r"bad\.toml is not valid TOML"):
        read_toml(tmp_path / "bad.toml")


values = st.recursive(
    st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values, max_size=4))
def test_toml_out_and_in(table: dict) -> None:
    assert tomllib.loads(to_toml({"t": table})).get("t", {}) == table


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ('run.name=""', r"\[run\] name must be the name of a folder"),
        ("run.name=../elsewhere", r"\[run\] name must be the name of a folder"),
        ("grow.lease_seconds=-1", r"\[grow\] lease_seconds must be above 0"),
        ("grow.agent.children=0", r"\[grow.agent\] children must be at least 1"),
        ("sample.types={riddle=1}", r"unknown task type 'riddle'; known: chart, choice"),
        (
            "sample.types={written=1}",
            r'asks for written, .*set \[llm\] kind = "openai" with its model and base_url, or drop',
        ),
        ('sample.quota=[{weight=1, type="written_hops"}]', r"asks for written_hops, which a model writes"),
        ('sample.quota=[{weight=1, type="riddle"}]', r"unknown task type 'riddle'"),
        (
            "synthesize.limits.context_tokens=[8000, -5]",
            r"\[synthesize.limits\] context_tokens must be numbers of at least",
        ),
        ("synthesize.limits.context_tokens=[]", r"context_tokens must be numbers of at least 1000, not \[\]"),
        ("synthesize.limits.max_prompt_chars=0", r"\[synthesize.limits\] max_prompt_chars must be at least 1, not 0"),
        ("synthesize.limits.least_tests=0", r"least_tests must be at least 1, not 0"),
        ("synthesize.limits.least_tests=13", r"most_tests \(12\) must not be below least_tests \(13\)"),
        ("synthesize.sandbox=none", r"\[synthesize\] sandbox must be one of 'bubblewrap'"),
        ("synthesize.samples_per_task=inf", r"samples_per_task must be a finite number"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_before_anything_is_made(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_recipe(RECIPES[0], [override])


def test_types_that_a_model_writes_are_taken_with_one_or_with_no_weight() -> None:
    model = ["llm.kind=openai", "llm.model=m", "llm.base_url=http://localhost:9/v1"]
    assert load_recipe(RECIPES[0], [*model, "sample.types={written=1}"]).sample.types == {"written": 1}
    assert load_recipe(RECIPES[0], ["sample.types={choice=1, written=0}"]).sample.types == {"choice": 1, "written": 0}


def test_flatten() -> None:
    assert flatten({"a": {"b": 1, "c": {"d": 2}}, "e": 3}) == {"a.b": 1, "a.c.d": 2, "e": 3}


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.name)
def test_shipped_recipes_load_and_survive_a_round_trip(path: Path, tmp_path: Path) -> None:
    recipe = load_recipe(path)
    copy = tmp_path / "copy.toml"
    copy.write_text(to_toml(recipe.tables))
    assert load_recipe(copy) == recipe
