"""Page vectors kept on disk between runs, one file per embedder, keyed by the text that was embedded.

A file is replaced in one step (written beside, then renamed) and is merged with what another process wrote meanwhile, so
a reader never sees half of one. A file that cannot be read is ignored and replaced; losing one only costs time.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import weakref
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kgsynth.concept import text_hash
from kgsynth.embed import Embedder
from kgsynth.files import cache_folder as cache_folder

SAVE_EVERY = 128  # new vectors


class PageVectors:
    """text -> vector through an embedder, remembered in memory and, with a folder, on disk."""

    def __init__(self, embedder: Embedder, folder: Path | None) -> None:
        self.embedder = embedder
        name = re.sub(r"[^\w.-]+", "_", embedder.name)[-80:]
        tag = text_hash(f"{embedder.name} {embedder.dim}")[:8]
        self._file = folder / f"vectors-{name}-{tag}.npz" if folder else None
        self._known = _load(self._file, embedder.dim)
        self._saved = len(self._known)
        weakref.finalize(self, _save, self._file, self._known, embedder.dim)

    def embed(self, query: str, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """[dim] of the query (not remembered) and [N, dim] of the texts."""
        keys = [text_hash(text) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        rows = self.embedder.embed([query, *new.values()])
        self._known.update(zip(new, rows[1:], strict=True))
        if len(self._known) - self._saved >= SAVE_EVERY:
            self.save()
        return rows[0], np.stack([self._known[key] for key in keys]) if keys else rows[1:]

    def save(self) -> None:
        """Write what is known, merged with what is on disk. Does nothing without a folder."""
        _save(self._file, self._known, self.embedder.dim)
        self._saved = len(self._known)


def _load(file: Path | None, dim: int) -> dict[str, NDArray[np.float32]]:
    if file is None:
        return {}
    try:
        with np.load(file, allow_pickle=False) as data:
            keys, rows = data["keys"], np.asarray(data["rows"], np.float32)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return {}
    usable = rows.ndim == 2 and rows.shape == (len(keys), dim) and bool(np.isfinite(rows).all())
    return {str(key): row for key, row in zip(keys, rows, strict=True)} if usable else {}


def _save(file: Path | None, known: dict[str, NDArray[np.float32]], dim: int) -> None:
    if file is None or not known:
        return
    on_disk = _load(file, dim)
    if known.keys() <= on_disk.keys():
        return
    merged = {**on_disk, **known}
    with contextlib.suppress(OSError):  # a full or read-only disk: the next run embeds again
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.stem, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as out:
                np.savez(out, keys=np.array(list(merged)), rows=np.stack(list(merged.values())))
            os.replace(name, file)
        except BaseException:
            os.unlink(name)
            raise
