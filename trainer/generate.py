"""Sampling. Each prompt is read once; its state is forked for the K samples; finished rows leave the batch.

R rows = prompts x samples   V vocabulary   T time
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainer.model import Cache, KimiLinear


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """Token ids to continue with at most `budget` tokens. All randomness of its samples comes from `seed`."""

    ids: tuple[int, ...]
    budget: int
    seed: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One sampled reply: the ids as they were drawn, `<|end|>` included where it was reached."""

    ids: tuple[int, ...]
    rollout_logprobs: tuple[float, ...]  # of the distribution the token was drawn from, temperature and top-p applied
    policy_version: tuple[int, ...]  # per token: which weights drew it
    finished: bool  # reached <|end|> within the budget


@torch.no_grad()
def generate(
    model: KimiLinear,
    prompts: Sequence[Prompt],
    *,
    samples: int,
    end: int,
    temperature: float = 1.0,
    top_p: float = 1.0,
    version: int = 0,
    rows: int = 512,
) -> list[list[Sample]]:
    """`samples` replies to each prompt, in order. At most `rows` sequences are decoded together.

    Token t of sample k of a prompt is drawn by the (k, t)-th uniform number of `prompt.seed`: neither the order nor
    the company of the prompts matters. Arithmetic on other batch shapes may still round differently.
    """
    replies: list[list[Sample]] = [[] for _ in prompts]
    for chosen in _batches(prompts, max(1, rows // samples)):
        drawn = _generate_batch(model, [prompts[i] for i in chosen], samples, end, temperature, top_p, version)
        for i, group in zip(chosen, drawn, strict=True):
            replies[i] = group
    return replies


def _batches(prompts: Sequence[Prompt], size: int) -> Iterator[list[int]]:
    """Indices of prompts to decode together: neighbours in budget, then in length."""
    order = sorted(range(len(prompts)), key=lambda i: (prompts[i].budget // 16, len(prompts[i].ids)))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _generate_batch(
    model: KimiLinear, prompts: Sequence[Prompt], k: int, end: int, temperature: float, top_p: float, version: int
) -> list[list[Sample]]:
    budget_R = torch.tensor([p.budget for p in prompts for _ in range(k)])
    uniform_RT = _uniforms(prompts, k, int(budget_R.max()))
    ids_RT = torch.zeros(uniform_RT.shape, dtype=torch.long)
    logprobs_RT = torch.zeros(uniform_RT.shape)
    length_R = torch.zeros(len(budget_R), dtype=torch.long)

    logits_RV, cache = _prefill(model, prompts, k)
    row_R = torch.arange(len(budget_R))  # which row each line of the shrinking batch is
    for t in range(uniform_RT.shape[1]):
        logprobs_RV = sampling_logprobs(logits_RV, temperature, top_p)
        drawn_R = draw(logprobs_RV, uniform_RT[row_R, t])
        ids_RT[row_R, t] = drawn_R
        logprobs_RT[row_R, t] = logprobs_RV.gather(1, drawn_R[:, None])[:, 0]
        length_R[row_R] = t + 1
        going = ((drawn_R != end) & (t + 1 < budget_R[row_R])).nonzero()[:, 0]
        if len(going) == 0:
            break
        if len(going) < len(row_R):
            row_R, drawn_R, cache = row_R[going], drawn_R[going], cache.select(going)
        logits_RV = model(drawn_R[:, None], cache=cache)[:, -1]
    flat = [_sample(ids_RT[r], logprobs_RT[r], int(n), end, version) for r, n in enumerate(length_R)]
    return [flat[i : i + k] for i in range(0, len(flat), k)]


def _prefill(model: KimiLinear, prompts: Sequence[Prompt], k: int) -> tuple[Tensor, Cache]:
    """Logits after each prompt [R, V] and its state, both repeated k times."""
    tokens_PT, length_P = pad([p.ids for p in prompts])
    cache = model.new_cache(len(prompts))
    hidden_PTD = model.hidden(tokens_PT, lengths_B=length_P, cache=cache)
    logits_PV = model.head(hidden_PTD[torch.arange(len(prompts)), length_P - 1])
    return logits_PV.repeat_interleave(k, 0), cache.repeat(k)


def _uniforms(prompts: Sequence[Prompt], k: int, steps: int) -> Tensor:
    """[R, steps] float64 in [0, 1); row k of a prompt is the same whatever `steps` is."""
    rows = [np.random.default_rng([*p.seed, sample]).random(steps) for p in prompts for sample in range(k)]
    return torch.from_numpy(np.stack(rows))


def _sample(ids_T: Tensor, logprobs_T: Tensor, length: int, end: int, version: int) -> Sample:
    ids = tuple(ids_T[:length].tolist())
    return Sample(
        ids=ids,
        rollout_logprobs=tuple(logprobs_T[:length].tolist()),
        policy_version=(version,) * length,
        finished=ids[-1] == end,
    )


def sampling_logprobs(logits_RV: Tensor, temperature: float, top_p: float = 1.0) -> Tensor:
    """Log-probabilities [R, V] of the distribution that is really sampled.

    With top_p < 1 only the smallest set of likeliest tokens that holds that much probability is kept (nucleus
    sampling, arXiv 1904.09751), renormalised; the others have -inf.
    """
    logprobs_RV = (logits_RV.float() / temperature).log_softmax(-1)
    if top_p >= 1:
        return logprobs_RV
    sorted_RV, order_RV = logprobs_RV.sort(-1, descending=True)
    before_RV = sorted_RV.exp().cumsum(-1) - sorted_RV.exp()  # mass of strictly likelier tokens
    kept_RV = torch.empty_like(logprobs_RV).scatter(1, order_RV, sorted_RV.masked_fill(before_RV >= top_p, -torch.inf))
    return kept_RV.log_softmax(-1)


def draw(logprobs_RV: Tensor, uniform_R: Tensor) -> Tensor:
    """Inverse-CDF sampling [R]: the first token whose cumulative probability exceeds the uniform number."""
    cumulative_RV = logprobs_RV.double().exp().cumsum(-1)
    target_R1 = uniform_R[:, None] * cumulative_RV[:, -1:]
    return torch.searchsorted(cumulative_RV, target_R1, right=True)[:, 0].clamp(max=logprobs_RV.shape[1] - 1)


def pad(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Right-padded tokens [B, T] and their lengths [B]. What stands in the padding is never looked at."""
    length_B = torch.tensor([len(s) for s in sequences])
    tokens_BT = torch.zeros(len(sequences), int(length_B.max()), dtype=torch.long)
    for row, sequence in zip(tokens_BT, sequences, strict=True):
        row[: len(sequence)] = torch.tensor(sequence)
    return tokens_BT, length_B
