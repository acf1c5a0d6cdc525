"""Text -> unit vectors. `sentence-transformers` with a model that is packaged, so that it works offline.

`hashing` is for machines without torch and for fast tests: character n-grams hashed into a fixed width. It knows
spelling, not meaning, and its name says so wherever it is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    name: str
    dim: int

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[N, dim], rows of length 1. An empty list gives [0, dim]."""
        ...
