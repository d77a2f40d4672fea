"""What a model says of given outputs, and the gradient of all its parameters at once."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.models.interface import Writing
from dragoman.nn.layout import Sequences


def logits_and_gradient(
    model: Writing, source: Sequences, target: Sequences, slope: Tensor
) -> tuple[Tensor, Tensor]:
    """Logits (P, V) in fp32, and the gradient of their sum times ``slope`` (P, V), flat. Every
    parameter must have one."""
    model.zero_grad()
    logits = model.project(model.decode(target, model.encode(source))).float()
    (logits * slope).sum().backward()
    slopes = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    assert len(slopes) == len(list(model.parameters()))
    return logits.detach(), torch.cat(slopes)
