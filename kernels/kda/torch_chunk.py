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
* any gate: 4 x 4 blocks on the diagonal use the decay of every pair, masked before exp; the blocks left of them refer
  to the first row of the later block, so that every exponent is <= 0.

Names: N chunks in time, R = batch x heads, C = 16 tokens, K and V dims.
"""

from __future__ import annotations

import math
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
    state = v.new_zeros(B * HV, K, V) if initial_state is None else initial_state.to(dtype).reshape(B * HV, K, V)
    if lower_bound is not None and -lower_bound * CHUNK <= MAX_EXPONENT:
        shift = -lower_bound * CHUNK / 2
        parts = _FactoredScores.apply(q, k, g, scale, shift)
    else:
        shift = 0.0
        parts = _pairwise_scores(q * scale, k, g)
    o, state = _DeltaChunks.apply(*parts, v, beta, state, math.exp(-shift))
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


def _pairwise_scores(q: Tensor, k: Tensor, g: Tensor) -> tuple[Tensor, ...]:
    """What `_DeltaChunks` needs, for any g <= 0: (k exp G, q exp G, k exp(G_C - G), exp G_C, A, P).

    The scores A and P are sum_d x_id k_jd exp(G_id - G_jd) with x = k and x = q, [N, R, C, C]; finite but meaningless
    above the diagonal. Every difference of G is summed from its own terms, so that nothing cancels after a reset.
    """
    *lead, C, K = k.shape
    at = torch.arange(C, device=k.device)
    first = at[::BLOCK]

    def decay(after: Tensor, upto: Tensor) -> Tensor:
        """exp of the sum of g over after < m <= upto, [N, R, *shape of after, K]; zero where after > upto."""
        after, upto = torch.broadcast_tensors(after, upto)
        terms = ((at > after[..., None]) & (at <= upto[..., None])).flatten(0, -2).to(g.dtype)
        total = (terms @ g).view(*lead, *after.shape, K)
        return total.masked_fill((after > upto)[..., None], -torch.inf).exp()

    # left of the diagonal blocks: from the first row of the block to i, times from j to that first row
    rows = torch.stack([k, q], -3).view(*lead, 2, C // BLOCK, BLOCK, K)
    before_block = torch.where(at < first[:, None], at, C)
    keys = k[..., None, :, :] * decay(before_block, first[:, None])
    left = (rows * decay(first[:, None], at.view(-1, BLOCK))[..., None, :, :, :]) @ keys[..., None, :, :, :].mT

    # on them: the decay of every pair
    in_block = at.view(-1, BLOCK)
    keys = k.view(*lead, C // BLOCK, 1, BLOCK, K) * decay(in_block[:, None, :], in_block[:, :, None])
    diagonal = (rows.movedim(-4, -2) @ keys.mT).movedim(-2, -4)  # [..., 2, block, row, column]

    on_diagonal = torch.eye(C // BLOCK, dtype=k.dtype, device=k.device)[:, None, :, None]
    scores = left.view(*lead, 2, C // BLOCK, BLOCK, C // BLOCK, BLOCK) + diagonal[..., None, :] * on_diagonal
    A, P = scores.view(*lead, 2, C, C).unbind(-3)
    grow = decay(torch.full_like(at, -1), at)
    return k * grow, q * grow, k * decay(at, at[-1:]), grow[..., -1:, :], A, P


class _FactoredScores(torch.autograd.Function):
    """The same for a bounded gate, where k exp G and q exp G are larger by the constant exp(shift).

    With y = x exp(G) the gradient of G is y dy, and with y = x exp(-G) it is -y dy: no product is differentiated twice.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, g: Tensor, scale: float, shift: float) -> tuple[Tensor, ...]:
        G = g.cumsum(-2)
        last = G[..., -1:, :].clone()
        grow = G.add_(shift).exp_()
        k_in, q_in = k * grow, (q * grow).mul_(scale)
        k_over = k / grow
        both = torch.cat([k_in, q_in], -2)
        A, P = (both @ k_over.mT).split(CHUNK, -2)
        decay, ctx.scale, ctx.shift = last.exp(), scale, shift
        ctx.save_for_backward(grow, both, k_over, decay)
        return k_in, q_in, k_over * (decay * math.exp(shift)), decay, A, P

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        dk_in, dq_in, dk_out, ddecay, dA, dP = grads
        grow, both, k_over, decay = ctx.saved_tensors
        dscores = torch.cat([dA, dP], -2)
        dboth = _flat(torch.cat([dk_in, dq_in], -2)).baddbmm_(_flat(dscores), _flat(k_over)).view_as(both)
        dk_out = dk_out * (decay * math.exp(ctx.shift))
        dk_over = dscores.mT @ both + dk_out
        dk_in, dq_in = dboth.split(CHUNK, -2)
        dq = (dq_in * grow).mul_(ctx.scale)
        dk = (dk_in * grow).addcdiv_(dk_over, grow)
        dG_in, dG_q = (dboth * both).split(CHUNK, -2)
        dG = (dG_in + dG_q).addcmul_(dk_over, k_over, value=-1)
        dG[..., -1:, :] += (dk_out * k_over).sum(-2, keepdim=True) + ddecay * decay
        return dq, dk, dG.flip(-2).cumsum(-2).flip(-2), None, None


class _DeltaChunks(torch.autograd.Function):
    """The delta rule over all chunks, given the scores: the solve, the loop over chunks and the outputs.

    Forward keeps the state at each chunk's start; backward walks the chunks once more, from the last to the first.
    """

    @staticmethod
    def forward(
        ctx: Any, k_in: Tensor, q_in: Tensor, k_out: Tensor, decay: Tensor, A: Tensor, P: Tensor,
        v: Tensor, beta: Tensor, state: Tensor, undo: float,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        N, R, C, V = v.shape
        K = k_in.shape[-1]
        decay, P = decay.mT, P.tril()
        eye = torch.eye(C, dtype=A.dtype, device=A.device).expand_as(A)
        X = torch.linalg.solve_triangular((beta * A).tril_(-1), eye, upper=False, unitriangular=True)
        kv = torch.cat([k_in, v], -1)
        W, U = ((X * beta.mT) @ kv).split([K, V], -1)
        states, writes = v.new_empty(N + 1, R, K, V), v.new_empty(N, R, C, V)
        states[0] = state
        for n in range(N):
            torch.baddbmm(U[n], W[n], states[n], alpha=-undo, out=writes[n])
            torch.mul(states[n], decay[n], out=states[n + 1]).baddbmm_(k_out[n].mT, writes[n])
        o = _flat(P @ writes).baddbmm_(_flat(q_in), _flat(states[:-1]), alpha=undo)
        ctx.undo = undo
        ctx.save_for_backward(q_in, k_out, decay, A, P, beta, X, W, kv, states, writes)
        return o.view_as(v), states[-1].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        do, dstate = grads
        q_in, k_out, decay, A, P, beta, X, W, kv, states, writes = ctx.saved_tensors
        N, K, undo = len(q_in), q_in.shape[-1], ctx.undo
        dwrites, dstates = P.mT @ do, torch.empty_like(states)
        dstates[-1] = dstate
        from_q = (q_in.mT @ do).mul_(undo)
        for n in reversed(range(N)):
            dwrites[n].baddbmm_(k_out[n], dstates[n + 1])
            torch.addcmul(from_q[n], dstates[n + 1], decay[n], out=dstates[n])
            dstates[n].baddbmm_(W[n].mT, dwrites[n], alpha=-undo)
        dk_out = writes @ dstates[1:].mT
        ddecay = (states[:-1] * dstates[1:]).sum(-1, keepdim=True).mT
        dq_in, dW = (torch.cat([do, -dwrites], -2) @ states[:-1].mT).mul_(undo).split(CHUNK, -2)
        dP = (do @ writes.mT).tril_()

        dWU = torch.cat([dW, dwrites], -1)
        dk_in, dv = ((X * beta.mT).mT @ dWU).split([K, dwrites.shape[-1]], -1)
        dM = dWU @ kv.mT
        dA = (X.mT @ (dM * beta.mT) @ X.mT).tril_(-1).neg_()
        dbeta = (dM * X).sum(-2, keepdim=True).mT + (dA * A).sum(-1, keepdim=True)
        return dk_in, dq_in, dk_out, ddecay, dA * beta, dP, dv, dbeta, dstates[0], None
