"""The fast paths of the kinds whose networks are ``Advancing``: prepared for plain torch.

An LSTM of the usual sizes stands for all of them in the trial that says what a path is worth here.
"""

from __future__ import annotations

from typing import Literal

import torch

from dragoman.models.fast_path import TRIAL_TOKENS, FastPath, on_plain_torch
from dragoman.models.interface import Advancing, Model
from dragoman.models.prepared import Prepared
from dragoman.models.recurrent.model import Recurrent
from dragoman.models.settings import RecurrentSettings
from dragoman.models.shortlist import Shortlist


def paths() -> tuple[FastPath, ...]:
    """In bf16 and in fp32."""
    return on_plain_torch(_make, _small, "prepared")


def _make(precision: Literal["bf16", "fp32"], network: Advancing, _: Shortlist | None) -> Model:
    return Prepared(network, {"bf16": torch.bfloat16, "fp32": torch.float32}[precision])


def _small() -> Recurrent:
    settings = RecurrentSettings(model_dim=256, encoder_layers=1, decoder_layers=1)
    return Recurrent(settings, TRIAL_TOKENS, TRIAL_TOKENS)
