"""Seeds from a file: which are taken, that a run keeps them, and what is said of a file that is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kgsynth.concept import Concept
from kgsynth.errors import ConfigError
from kgsynth.recipe import load_recipe
from kgsynth.seeds import read_seeds
from kgsynth.store import browse
from kgsynth.store.labels import domain_label

RECIPE = Path(__file__).with_name("small.toml")


def test_the_builtin_file_has_a_dozen_good_seeds_for_each_of_eight_domains() -> None:
    seeds = read_seeds("builtin")
    assert set(Counter(seed["domain"] for seed in seeds).values()) == {12}
    assert len({seed["domain"] for seed in seeds}) == 8
    assert len({Concept(**seed).id for seed in seeds}) == len(seeds), "no two of them are the same concept"
    for seed in seeds:
        assert seed["definition"].endswith(".")
        assert len(seed["definition"].split()) >= 7, seed
        assert not seed["definition"].lower().startswith((seed["name"].lower(), "the study of " + seed["name"].lower()))


def test_each_of_its_domains_has_a_colour_of_its_own() -> None:
    labels = {domain_label(seed["domain"]) for seed in read_seeds("builtin")}
    colours = {label: browse.style().split(f"node.{label} {{")[1].split(";")[0] for label in labels}
    assert len(set(colours.values())) == len(labels)


def test_they_come_after_the_seeds_of_the_recipe() -> None:
    recipe = load_recipe(RECIPE, ["grow.seeds_file=builtin", 'grow.seeds_domains=["physics", "biology"]'])
    assert [seed.domain for seed in recipe.grow.seeds] == ["data", "functions", *["physics"] * 12, *["biology"] * 12]
    alone = load_recipe(RECIPE, ["grow.seeds=[]", "grow.seeds_file=builtin"])
    assert len(alone.grow.seeds) == 96


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[[seeds]]\nname = "knots"\ndomain = "sailing"\n')
    recipe = load_recipe(RECIPE, ["grow.seeds=[]", f'grow.seeds_file="{mine}"'])
    assert [(seed.name, seed.domain) for seed in recipe.grow.seeds] == [("knots", "sailing")]


@pytest.mark.parametrize(
    ("content", "override", "says"),
    [
        ("", "", "holds \\[\\[seeds\\]\\] tables"),
        ('[[seed]]\nname = "a"\n', "", "holds \\[\\[seeds\\]\\] tables"),
        ('seeds = ["a"]', "", "holds \\[\\[seeds\\]\\] tables"),
        ('[[seeds]]\nname = "a"\ndomain = "b"\n', 'grow.seeds_domains=["c"]', "has no domain 'c'; known: b"),
        ('[[seeds]]\nname = "a"\ndomain = "b"\n', "grow.seeds_domains=b", "has no domain 'b'"),
        ('[[seeds]]\nname = "a"\ndomain = "b"\nkind = 1\n', "", "unknown key 'kind'"),
        ('[[seeds]]\nname = "a"\n', "", "domain"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, content: str, override: str, says: str) -> None:
    (tmp_path / "seeds.toml").write_text(content)
    with pytest.raises(ConfigError, match=says):
        load_recipe(RECIPE, [f'grow.seeds_file="{tmp_path}/seeds.toml"', *([override] if override else [])])


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        load_recipe(RECIPE, ["grow.seeds_file=nowhere.toml"])
    with pytest.raises(ConfigError, match="seeds_file must be"):
        load_recipe(RECIPE, ['grow.seeds_domains=["physics"]'])
