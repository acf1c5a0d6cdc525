"""Messages -> token ids and a loss mask. Tags in two layers, after the idea of XTML in the Kimi K3 report.

    turn layer      <|system|> ... <|end|>   <|user|> ... <|end|>   <|assistant|> ... <|end|>
    content layer   inside an assistant turn: <answer> ... </answer>

A tag is one special token. Turn tags come from the role alone; answer tags are recognised in *assistant* messages
only, because those are ours. Whatever a user or system message says stays plain text. Left out: tool calls and
several turns of one rollout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trainer.tokenizer import ANSWER, ANSWER_END, ASSISTANT, SYSTEM, USER, Tokenizer

Role = Literal["system", "user", "assistant"]
_TURN_TAG: dict[str, str] = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}
_CONTENT_TAG = re.compile(f"({re.escape(ANSWER)}|{re.escape(ANSWER_END)})")


@dataclass(frozen=True, kw_only=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """`loss_mask[i]` says whether token i is a target: the assistant's content and the `<|end|>` that closes it."""

    ids: tuple[int, ...]
    loss_mask: tuple[bool, ...]


def encode_chat(messages: Sequence[Message], tokenizer: Tokenizer) -> Encoded:
    """A complete conversation, for supervised training."""
    ids: list[int] = []
    mask: list[bool] = []
    for message in messages:
        body = [*_content(message, tokenizer), tokenizer.end]
        ids += [tokenizer.id_of(_TURN_TAG[message.role]), *body]
        mask += [False] + [message.role == "assistant"] * len(body)
    return Encoded(ids=tuple(ids), loss_mask=tuple(mask))


def encode_prompt(messages: Sequence[Message], tokenizer: Tokenizer) -> tuple[int, ...]:
    """The conversation so far and an opened assistant turn: what the policy continues."""
    return (*encode_chat(messages, tokenizer).ids, tokenizer.id_of(ASSISTANT))


def encode_reply(text: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    """A trusted reply as the policy would sample it: content with its answer tags, then `<|end|>`."""
    return (*_content(Message(role="assistant", content=text), tokenizer), tokenizer.end)


def decode_reply(ids: Sequence[int], tokenizer: Tokenizer) -> str:
    """What a verifier reads: the sampled ids as text, without the closing `<|end|>`."""
    return tokenizer.decode(ids[:-1] if ids and ids[-1] == tokenizer.end else ids)


def _content(message: Message, tokenizer: Tokenizer) -> list[int]:
    if message.role != "assistant":
        return tokenizer.encode(message.content)
    pieces = [piece for piece in _CONTENT_TAG.split(message.content) if piece]
    return [i for p in pieces for i in ([tokenizer.id_of(p)] if _CONTENT_TAG.fullmatch(p) else tokenizer.encode(p))]
