from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgsynth.errors import RunError
from trainer.tokenizer import SMALLEST_VOCAB, SPECIALS, Tokenizer

TEXTS = ["def area(width, height):\n    return width * height\n", "the width of the width is the width"] * 3


def test_training_is_deterministic(tmp_path: Path) -> None:
    for name in ("one", "two"):
        Tokenizer.train(TEXTS, vocab_size=300).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@given(st.text())
def test_any_text_comes_back_and_holds_no_special_token(text: str) -> None:
    tokenizer = TOKENIZER
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not set(ids) & {tokenizer.id_of(tag) for tag in SPECIALS}


TOKENIZER = Tokenizer.train(TEXTS, vocab_size=300)


def test_merges_are_learned_and_digits_stay_apart() -> None:
    assert len(TOKENIZER.encode("the width")) < len("the width") / 2
    assert len(TOKENIZER.encode("1234")) == 4
    assert SMALLEST_VOCAB < TOKENIZER.vocab_size <= 300


def test_a_saved_tokenizer_is_the_same_and_still_safe(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path / "t.json")
    loaded = Tokenizer.load(tmp_path / "t.json")
    for text in ("the width <answer>", "naïve 日本 \x00"):
        assert loaded.encode(text) == TOKENIZER.encode(text)


def test_nothing_to_learn_from_leaves_the_bytes() -> None:
    tokenizer = Tokenizer.train([], vocab_size=1000)
    assert tokenizer.vocab_size == SMALLEST_VOCAB
    assert tokenizer.decode(tokenizer.encode("æ")) == "æ"


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("{")
    with pytest.raises(RunError, match=r"t\.json"):
        Tokenizer.load(tmp_path / "t.json")
