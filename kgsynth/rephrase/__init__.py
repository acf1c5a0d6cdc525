"""Sources told anew in varied styles, as pre-training text, with everything they say and nothing else.

    async for told in rephrase(sources, RephraseConfig(styles=("questions", "plain")), llm):
        rows = [one.row() for one in told if one.doubt is None]

A model writes where one is configured; else rules do (rules.py), and say so. What is in doubt is rejected, with the reason
(fidelity.py).
"""

from __future__ import annotations

from kgsynth.rephrase.fidelity import REASONS, Doubt, doubts
from kgsynth.rephrase.rules import STYLES, reworded
from kgsynth.rephrase.work import RephraseConfig, Told, author_of, key_of, rephrase, retold

__all__ = [
    "REASONS", "STYLES", "Doubt", "RephraseConfig", "Told", "author_of", "doubts", "key_of", "rephrase", "retold", "reworded",
]  # fmt: skip
