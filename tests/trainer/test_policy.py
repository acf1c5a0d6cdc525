from __future__ import annotations

import torch

from trainer.policy import Replies, TinyPolicy, micro_batches

BATCH = [
    Replies(prompt=tuple(range(30, 35)), replies=((50, 51, 1), (60, 1), (1,))),
    Replies(prompt=tuple(range(70, 91)), replies=((80,) * 19 + (1,),)),
]


def _alone(policy: TinyPolicy, prompt: tuple[int, ...], reply: tuple[int, ...]) -> torch.Tensor:
    """Log-probabilities of one reply by one plain forward, without padding, cache or fork."""
    logits = policy.model(torch.tensor([prompt + reply]))[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(1, torch.tensor(reply)[:, None])[:, 0]


def test_forked_and_padded_equals_each_reply_alone(policy: TinyPolicy) -> None:
    """Neither the neighbours' lengths nor the shared prompt may leak into a reply: values and gradients agree."""
    pairs = [(item.prompt, reply) for item in BATCH for reply in item.replies]
    alone = torch.cat([_alone(policy, *pair) for pair in pairs])
    weights = torch.linspace(-1, 1, len(alone))
    wanted = torch.autograd.grad((alone * weights).sum(), list(policy.model.parameters()), allow_unused=True)
    shared, _ = policy.logprobs(BATCH)
    found = torch.autograd.grad((shared * weights).sum(), list(policy.model.parameters()), allow_unused=True)
    torch.testing.assert_close(shared, alone, rtol=1e-4, atol=1e-4)
    for a, b in zip(found, wanted, strict=True):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_entropy_is_that_of_the_next_token_and_carries_no_gradient(policy: TinyPolicy) -> None:
    _, entropy = policy.logprobs(BATCH[:1])
    assert not entropy.requires_grad
    assert entropy.shape == (6,)
    assert (entropy > 0).all()
    assert (entropy < torch.tensor(float(policy.tokenizer.vocab_size)).log()).all()


def test_micro_batches_hold_everything_once_and_keep_the_limit() -> None:
    batch = [Replies(prompt=(0,) * n, replies=((1,) * (n % 7 + 1),) * 3) for n in range(1, 60)]
    parts = list(micro_batches(batch, max_tokens=300))
    assert sorted(i for part in parts for i in part) == list(range(len(batch)))
    assert len(parts) > 3
    for part in parts:
        longest = max(len(batch[i].prompt) for i in part), max(len(batch[i].replies[0]) for i in part)
        assert len(part) == 1 or len(part) * (longest[0] + 3 * longest[1]) <= 300
