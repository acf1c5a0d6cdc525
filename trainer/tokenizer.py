"""A small byte-level BPE, trained on the run's own prompts and references and saved with the run.

Special tokens have ids of their own that no text can reach: `encode` treats the characters `<answer>` or `<|end|>`
like any others, so a prompt cannot forge a turn. Only `trainer.chat` places special ids, by `id_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from tokenizers import Tokenizer as BPE
from tokenizers import decoders, models, pre_tokenizers, trainers

from kgsynth.errors import RunError
from kgsynth.files import write_atomically

PAD, END = "<|pad|>", "<|end|>"
SYSTEM, USER, ASSISTANT = "<|system|>", "<|user|>", "<|assistant|>"
ANSWER, ANSWER_END = "<answer>", "</answer>"
SPECIALS = (PAD, END, SYSTEM, USER, ASSISTANT, ANSWER, ANSWER_END)
SMALLEST_VOCAB = len(SPECIALS) + 256  # every byte has a token


class Tokenizer:
    """Text <-> token ids. `encode` never returns a special id; `decode` shows them as their tags."""

    def __init__(self, bpe: BPE) -> None:
        bpe.encode_special_tokens = True  # the tags are plain characters when they occur in a text
        self._bpe = bpe
        vocabulary = bpe.get_vocab()
        self._ids = {tag: vocabulary[tag] for tag in SPECIALS}

    @classmethod
    def train(cls, texts: Iterable[str], *, vocab_size: int) -> Self:
        """Learn merges from the texts alone. The same texts give the same tokenizer; digits are never merged."""
        bpe = BPE(models.BPE())
        digits, byte_level = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)
        bpe.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])  # pyright: ignore[reportAttributeAccessIssue]
        bpe.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
        learner = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=list(SPECIALS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        bpe.train_from_iterator(texts, learner)
        return cls(bpe)

    @property
    def vocab_size(self) -> int:
        return self._bpe.get_vocab_size()

    @property
    def pad(self) -> int:
        return self._ids[PAD]

    @property
    def end(self) -> int:
        """Ends every turn; when the policy samples it, the reply is finished."""
        return self._ids[END]

    def id_of(self, tag: str) -> int:
        """The id of a special token, one of SPECIALS."""
        return self._ids[tag]

    def encode(self, text: str) -> list[int]:
        return self._bpe.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        return self._bpe.decode(list(ids), skip_special_tokens=False)

    def save(self, path: Path) -> None:
        write_atomically(path, self._bpe.to_str(pretty=True))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises RunError when the file is missing or not a tokenizer."""
        try:
            return cls(BPE.from_file(str(path)))
        except Exception as error:  # the library raises bare Exception
            raise RunError(f"cannot read the tokenizer {path}: {error}; train again in a fresh run folder") from error
