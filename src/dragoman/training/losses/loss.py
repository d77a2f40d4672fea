"""Cross-entropy with label smoothing (paper §5.4), without ever holding all logits.

The logits of a batch, P x V, are by far the largest tensor of an update. Here the decoder's hidden
states are projected piece by piece. The gradient of each piece is computed immediately after its
loss, while its logits are still in the cache, so neither the forward nor the backward pass keeps
any logits.

With smoothing ε, the target distribution is 1 - ε on the right token plus ε / V on every token::

    loss = -(1 - ε) log p[target] - ε / V · Σ_v log p[v]

This is torch's definition; the authors' own program spreads ε over the V - 1 wrong tokens. The
losses are summed over tokens, in nats; the trainer divides the sum once per update.

Shapes: P packed rows, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.native.pointers import returning_gradients

Project = Callable[[Tensor], Tensor]
"""A function from hidden states (P, D) to logits (P, V)."""

CrossEntropy = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""A function from hidden states (P, D) and targets (P,) to two sums over P: of the smoothed loss,
and of the loss without smoothing (nll).

Only the sum of the smoothed loss can be differentiated.
"""


class SoftTargets(NamedTuple):
    """Distributions over the vocabulary that a model learns in part: for example, those of a
    teacher."""

    weight: float
    """The share of these distributions in the target distribution, λ; that of the right token is
    1 - λ."""
    of_rows: Callable[[int, int], tuple[Tensor, Tensor | None]]
    """A function that returns the distributions of the rows from the first number to the second,
    last excluded: probabilities (p, V) and None, or those of the likeliest tokens (p, K) and these
    tokens (p, K); then the rest is spread evenly over the vocabulary."""


_LOGITS_AT_ONCE = {"cpu": 1 << 23, "cuda": 1 << 27}


def smoothed_cross_entropy(
    logits: Tensor,
    targets: Tensor,
    smoothing: float,
    others: Tensor | None = None,
    shares: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the sum of the smoothed loss and the sum of the loss without smoothing (nll), computed
    by the plain formula from logits (P, V).

    ``others``: other targets (P,), whose loss is mixed with that of ``targets``, which has
    ``shares`` (P,) of the whole (Zhang et al., 2018).
    """
    log_probabilities = torch.log_softmax(logits.float(), dim=-1)  # (P, V)
    each = -log_probabilities.gather(-1, targets[:, None])[:, 0]
    if others is not None and shares is not None:
        other = -log_probabilities.gather(-1, others[:, None])[:, 0]
        each = shares * each + (1 - shares) * other
    nll = each.sum()
    uniform = -log_probabilities.mean(dim=-1).sum()
    return (1 - smoothing) * nll + smoothing * uniform, nll.detach()


class PiecewiseCrossEntropy:
    """Computes the ``smoothed_cross_entropy`` of ``project(hidden)`` for a few rows at a time."""

    def __init__(
        self,
        project: Project,
        parameters: Iterable[Tensor],
        smoothing: float,
        logits_at_once: int | None = None,
    ) -> None:
        """Prepare the loss. ``project``: the function from hidden states to logits; ``parameters``:
        at least the parameters that ``project`` uses; you can pass all parameters of the model;
        ``logits_at_once``: the most logits that are in memory at once, by default chosen for the
        device."""
        self.project = project
        self.smoothing = smoothing
        self._logits_at_once = logits_at_once
        self._candidates = tuple(p for p in parameters if p.requires_grad)
        self._used: tuple[Tensor, ...] | None = None
        self._rows = 0

    def __call__(
        self, hidden: Tensor, targets: Tensor, soft: SoftTargets | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the sums of the smoothed loss and of the nll as fp64 scalars. ``hidden`` (P, D),
        ``targets`` (P,). ``soft`` has a part in the loss while gradients are computed."""
        if self._used is None:
            self._used = self._look_at(hidden)
        if torch.is_grad_enabled():
            return _Pieces.apply(  # type: ignore[no-any-return, no-untyped-call]
                self.project, self._rows, self.smoothing, targets, soft, hidden, *self._used
            )
        loss = nll = torch.zeros((), dtype=torch.float64, device=hidden.device)
        for rows, ids in zip(hidden.split(self._rows), targets.split(self._rows), strict=True):
            piece_loss, piece_nll = smoothed_cross_entropy(self.project(rows), ids, self.smoothing)
            loss, nll = loss + piece_loss, nll + piece_nll
        return loss, nll

    def _look_at(self, hidden: Tensor) -> tuple[Tensor, ...]:
        """Project one row to find out which parameters the projection uses, and how many logits it
        makes for each row. Return these parameters."""
        with torch.enable_grad(), returning_gradients():
            logits = self.project(hidden[:1].detach().requires_grad_())
            gradients = torch.autograd.grad(logits.sum(), self._candidates, allow_unused=True)
        budget = self._logits_at_once or _LOGITS_AT_ONCE.get(hidden.device.type, 1 << 24)
        self._rows = max(budget // logits.shape[-1], 1)
        pairs = zip(self._candidates, gradients, strict=True)
        return tuple(p for p, gradient in pairs if gradient is not None)


class _Pieces(torch.autograd.Function):
    """Computes the loss and, in the same forward pass, its gradients. ``backward`` only multiplies
    these gradients by the incoming gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        project: Project,
        rows: int,
        smoothing: float,
        targets: Tensor,
        soft: SoftTargets | None,
        hidden: Tensor,
        *parameters: Tensor,
    ) -> tuple[Tensor, Tensor]:
        loss = torch.zeros((), dtype=torch.float64, device=hidden.device)
        nll = torch.zeros_like(loss)
        hidden_gradient = torch.empty_like(hidden)
        sums = [torch.zeros_like(p) for p in parameters]
        for start in range(0, len(hidden), rows):
            stop = start + rows
            piece = hidden[start:stop].detach().requires_grad_()
            with torch.enable_grad():
                logits = project(piece)
                wanted = (None, None) if soft is None else soft.of_rows(start, start + len(piece))
                weight = soft.weight if soft else 0.0
                piece_loss, piece_nll = _Piece.apply(  # type: ignore[no-untyped-call]
                    logits, targets[start:stop], smoothing, *wanted, weight
                )
            with returning_gradients():
                gradients = torch.autograd.grad(piece_loss, (piece, *parameters))
            loss += piece_loss.detach()
            nll += piece_nll
            hidden_gradient[start:stop] = gradients[0]
            torch._foreach_add_(sums, gradients[1:])
        ctx.save_for_backward(hidden_gradient, *sums)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [saved * grads[0].to(saved.dtype) for saved in ctx.saved_tensors]
        return None, None, None, None, None, *scaled


class _Piece(torch.autograd.Function):
    """Computes the loss of one piece, and keeps its gradient for ``backward``, instead of the
    tensors that autograd would keep.

    d loss / d logits = softmax - (1 - λ) (ε / V + (1 - ε) [v = target]) - λ soft
    """

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        targets: Tensor,
        smoothing: float,
        soft: Tensor | None,
        likely: Tensor | None,
        weight: float,
    ) -> tuple[Tensor, Tensor]:
        """``soft``, ``likely``: distributions as ``SoftTargets.of_rows`` returns them, whose share
        in the target distribution is ``weight``."""
        # A cast of its own: log_softmax(bf16, dtype=float32) is three times slower on a CPU.
        log_probabilities = torch.log_softmax(logits.float(), dim=-1)  # (p, V)
        target = targets[:, None]
        nll = -log_probabilities.gather(-1, target).sum(dtype=torch.float64)
        uniform = -log_probabilities.mean(dim=-1).sum(dtype=torch.float64)
        loss, hard = (1 - smoothing) * nll + smoothing * uniform, 1 - weight
        if soft is not None:
            if likely is None:
                of_soft = -(soft * log_probabilities).sum(dtype=torch.float64)
            else:
                of_soft = -(soft * log_probabilities.gather(-1, likely)).sum(dtype=torch.float64)
                rest = 1 - soft.sum(dim=-1, keepdim=True)  # (p, 1)
                of_soft -= (rest[:, 0] * log_probabilities.mean(dim=-1)).sum(dtype=torch.float64)
            loss = hard * loss + weight * of_soft
        gradient = log_probabilities.exp_()
        if smoothing:
            gradient -= hard * smoothing / logits.shape[-1]
        gradient.scatter_add_(-1, target, gradient.new_full(target.shape, hard * (smoothing - 1)))
        if soft is not None and likely is not None:
            gradient -= weight * rest / logits.shape[-1]
            gradient.scatter_add_(-1, likely, -weight * soft)
        elif soft is not None:
            gradient -= weight * soft
        ctx.save_for_backward(gradient.to(logits.dtype))
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        # Only ``_Pieces`` asks, and with 1.
        (gradient,) = ctx.saved_tensors
        return gradient, None, None, None, None, None
