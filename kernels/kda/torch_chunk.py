"""KDA in chunks of 16 tokens, in torch: batched matrix products and one short loop over chunks.

With G the running sum of g inside a chunk, and A_ij = beta_i sum_d k_id k_jd exp(G_id - G_jd) below the diagonal:

    M  = (I + A)^-1 diag(beta)                    each token's update, the earlier ones of its chunk subtracted
    V' = M V - M (K exp G) S                      what the chunk writes, given the state S at its start
    O  = scale ((Q exp G) S + P V')               P_ij = sum_d q_id k_jd exp(G_id - G_jd), the diagonal included
    S' = diag(exp G_C) S + (K exp(G_C - G))^T V'

(Kimi Linear, arXiv 2510.26692, section 3.) The hazard is exp(G_i - G_j): as a product exp(G_i) exp(-G_j) its second
factor overflows once a chunk decays by more than exp(88). Two ways around it:

* a bounded gate, 16 |lower_bound| <= 80: both exponents are shifted by the *constant* |lower_bound| * 8, so no
  factor leaves [e^-40, e^40] (for -5). A constant, unlike a row in the middle of the chunk, keeps earlier outputs
  independent of later gates, bit for bit.
* any gate: 4 x 4 blocks on the diagonal use pairwise decays, masked before exp; the blocks left of them refer to the
  first row of the later block, so that every exponent is <= 0.

Names: N chunks in time, R = batch x heads, C = 16 tokens, K and V dims.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.kda.reference import unit

CHUNK = 16
BLOCK = 4
MAX_EXPONENT = 80.0  # exp(88.7) overflows fp32


def chunk_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    scale: float,
    l2norm: bool = False,
    initial_state: Tensor | None = None,
    lower_bound: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The same function as `recurrent_kda`, with the same arguments, for long sequences and for training.

    Args:
        lower_bound: the promise g >= lower_bound, or None. Allows the faster of the two forms.
    """
    dtype = torch.promote_types(v.dtype, torch.float32)
    (B, T, HV, V), K = v.shape, k.shape[-1]
    q, k, v, g, beta = (_to_chunks(x.to(dtype), HV) for x in (q, k, v, g, beta[..., None]))
    if l2norm:
        q, k = unit(q), unit(k)
    G = g.cumsum(-2)
    bounded = lower_bound is not None and -lower_bound * CHUNK <= MAX_EXPONENT
    shift = -lower_bound * CHUNK / 2 if bounded and lower_bound is not None else 0.0
    grow = (G + shift).exp()  # exp(G) up to the constant exp(shift), which leaves again in `_scan`
    q_in, k_in = q * (grow * scale), k * grow
    last = G[..., -1:, :]
    if bounded:
        k_out = k / grow
        A, P = _factored_scores(k_in, q_in, k_out)
        k_out = k_out * (last + shift).exp()
    else:
        A, P = _pairwise_scores(k, q * scale, G)
        k_out = k * (last - G).exp()
    M = _UnitLowerInverse.apply((beta * A).tril(-1)) * beta.mT
    W, U = (M @ torch.cat([k_in, v], -1)).split([K, V], -1)
    state = v.new_zeros(B * HV, K, V) if initial_state is None else initial_state.to(dtype).reshape(B * HV, K, V)
    states, writes, state = _scan(W, U, k_out, last.exp().mT, state, shift)
    o = torch.baddbmm(_flat(P.tril() @ writes), _flat(q_in), _flat(states), alpha=_undo(shift))
    o = o.view(-1, B, HV, CHUNK, V).permute(1, 0, 3, 2, 4).reshape(B, -1, HV, V)[:, :T]
    return o, state.view(B, HV, K, V)


def _to_chunks(x: Tensor, HV: int) -> Tensor:
    """[B, T, H, D] -> [N, B * HV, CHUNK, D], zeros after T: they decay nothing and write nothing."""
    B, T, H, D = x.shape
    x = F.pad(x, (0, 0, 0, 0, 0, -T % CHUNK)).view(B, -1, CHUNK, H, D).permute(1, 0, 3, 2, 4)
    if HV != H:
        x = x.repeat_interleave(HV // H, dim=2)
    return x.reshape(-1, B * HV, CHUNK, D)


def _flat(x: Tensor) -> Tensor:
    return x.reshape(-1, *x.shape[-2:])


def _undo(shift: float) -> float:
    return float(torch.tensor(-shift, dtype=torch.float64).exp())


def _scan(
    W: Tensor, U: Tensor, k_out: Tensor, decay: Tensor, state: Tensor, shift: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Carry the state over the chunks: the states at their starts, what they write, and the last state."""
    states, writes = [], []
    for W_n, U_n, k_n, decay_n in zip(W.unbind(), U.unbind(), k_out.mT.unbind(), decay.unbind(), strict=True):
        states.append(state)
        writes.append(torch.baddbmm(U_n, W_n, state, alpha=-_undo(shift)))
        state = torch.baddbmm(state * decay_n, k_n, writes[-1])
    return torch.stack(states), torch.stack(writes), state


def _factored_scores(k_in: Tensor, q_in: Tensor, k_out: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of k and of q with k, where the two decay factors of a pair can be applied apart."""
    A, P = (torch.cat([k_in, q_in], -2) @ k_out.mT).split(CHUNK, -2)
    return A, P


def _pairwise_scores(k: Tensor, q: Tensor, G: Tensor) -> tuple[Tensor, Tensor]:
    """sum_d x_id k_jd exp(G_id - G_jd) with x = k and x = q over the pairs i >= j, for any G that does not grow.

    All arguments are [..., C, K], the results [..., C, C], finite but meaningless above the diagonal.
    """
    *lead, C, K = k.shape
    rows = torch.stack([k, q], -3).view(*lead, 2, C // BLOCK, BLOCK, K)
    G_rows = G.view(*lead, C // BLOCK, BLOCK, K)
    first = G_rows[..., :1, :]
    at = torch.arange(C, device=k.device)

    # left of the diagonal blocks: exp(G_i - first) exp(first - G_j)
    not_before = (at >= at[::BLOCK, None])[..., None]
    keys = k[..., None, :, :] * (first - G[..., None, :, :]).masked_fill(not_before, -torch.inf).exp()
    left = (rows * (G_rows - first).exp()[..., None, :, :, :]) @ keys[..., None, :, :, :].mT

    # on them: the decay of every pair
    after = ~torch.ones(BLOCK, BLOCK, dtype=torch.bool, device=k.device).tril()[..., None]
    decay = (G_rows[..., :, None, :] - G_rows[..., None, :, :]).masked_fill(after, -torch.inf).exp()
    keys = k.view(*lead, C // BLOCK, 1, BLOCK, K) * decay
    diagonal = (rows.movedim(-4, -2) @ keys.mT).movedim(-2, -4)  # [..., 2, block, row, column]

    on_diagonal = torch.eye(C // BLOCK, dtype=k.dtype, device=k.device)[:, None, :, None]
    scores = left.view(*lead, 2, C // BLOCK, BLOCK, C // BLOCK, BLOCK) + diagonal[..., None, :] * on_diagonal
    A, P = scores.view(*lead, 2, C, C).unbind(-3)
    return A, P


class _UnitLowerInverse(torch.autograd.Function):
    """(I + A)^-1 of strictly lower triangular A [..., C, C]. The gradient reuses the inverse X: dA = -X^T dX X^T."""

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand_as(A)
        X = torch.linalg.solve_triangular(A, eye, upper=False, unitriangular=True)
        ctx.save_for_backward(X)
        return X

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (X,) = ctx.saved_tensors
        return -(X.mT @ grads[0] @ X.mT)
