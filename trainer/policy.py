"""A policy: something that samples replies and can say, differentiably, how likely a reply was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from trainer.generate import Prompt, Sample, generate, pad
from trainer.model import KimiLinear
from trainer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Replies:
    """A prompt and one or more replies to it, as token ids."""

    prompt: tuple[int, ...]
    replies: tuple[tuple[int, ...], ...]


class Policy(Protocol):
    """What rollouts and evaluation need of a policy."""

    tokenizer: Tokenizer
    version: int  # grows by one with each update

    def generate(self, prompts: Sequence[Prompt], *, samples: int, temperature: float) -> list[list[Sample]]: ...


class TinyPolicy:
    """The from-scratch model with its tokenizer, in this process."""

    def __init__(self, model: KimiLinear, tokenizer: Tokenizer, *, rows: int = 512) -> None:
        self.model, self.tokenizer, self.version, self._rows = model, tokenizer, 0, rows

    def generate(self, prompts: Sequence[Prompt], *, samples: int, temperature: float) -> list[list[Sample]]:
        self.model.eval()
        return generate(
            self.model,
            prompts,
            samples=samples,
            end=self.tokenizer.end,
            temperature=temperature,
            version=self.version,
            rows=self._rows,
        )

    def logprobs(self, batch: Sequence[Replies], *, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
        """Log-probability and (detached) entropy of every reply token, both [N], in nats, batch order.

        The temperature must be the sampler's, or the ratio of the two is not 1 before the first update.
        """
        self.model.train()
        logits_NV = _reply_logits(self.model, batch).float() / temperature
        logprobs_NV = logits_NV.log_softmax(-1)
        targets_N = torch.tensor([i for item in batch for reply in item.replies for i in reply])
        with torch.no_grad():
            entropy_N = -(logprobs_NV.exp() * logprobs_NV).sum(-1)
        return logprobs_NV.gather(1, targets_N[:, None])[:, 0], entropy_N


def _reply_logits(model: KimiLinear, batch: Sequence[Replies]) -> Tensor:
    """Logits [N, V] that predict each reply token, computed at no other position.

    Each prompt is read once and its state forked for its replies, as in sampling; gradients pass through the fork.
    """
    tokens_PT, length_P = pad([item.prompt for item in batch])
    cache = model.new_cache(len(batch))
    last_PD = model.hidden(tokens_PT, lengths_B=length_P, cache=cache)[torch.arange(len(batch)), length_P - 1]

    row_R = torch.tensor([p for p, item in enumerate(batch) for _ in item.replies])
    replies = [reply for item in batch for reply in item.replies]
    inputs_RT, length_R = pad([reply[:-1] or reply for reply in replies])  # the last token predicts nothing
    rest_RTD = model.hidden(inputs_RT, lengths_B=length_R, cache=cache.select(row_R))
    hidden_RTD = torch.cat([last_PD[row_R, None], rest_RTD], 1)
    predicted_R1 = torch.tensor([[len(reply)] for reply in replies])
    return model.head(hidden_RTD[torch.arange(hidden_RTD.shape[1]) < predicted_R1])


def micro_batches(batch: Sequence[Replies], *, max_tokens: int) -> Iterator[list[int]]:
    """Indices of items to run together: neighbours in length, at most `max_tokens` padded tokens unless alone."""

    def cost(items: list[Replies]) -> int:
        prompts = len(items) * max(len(item.prompt) for item in items)
        return prompts + sum(len(item.replies) for item in items) * max(map(_longest_reply, items))

    order = sorted(range(len(batch)), key=lambda i: (_longest_reply(batch[i]) // 16, len(batch[i].prompt)))
    chosen: list[int] = []
    for i in order:
        if chosen and cost([batch[j] for j in (*chosen, i)]) > max_tokens:
            yield chosen
            chosen = []
        chosen.append(i)
    if chosen:
        yield chosen


def _longest_reply(item: Replies) -> int:
    return max(map(len, item.replies))
