"""The fast paths of LSTMs and of convolutional models: prepared, in int8, bf16 or fp32."""

from __future__ import annotations

from functools import cache, partial
from typing import Literal

import torch

from dragoman.models.convolutional import Convolutional
from dragoman.models.fast_path import TRIAL_TOKENS, FastPath, on_plain_torch, trial
from dragoman.models.interface import Advancing, Model
from dragoman.models.prepared import PreparedNetwork
from dragoman.models.recurrent.model import Recurrent
from dragoman.models.settings import ConvolutionalSettings, RecurrentSettings
from dragoman.models.shortlist import Shortlist
from dragoman.native import int8 as native
from dragoman.native import library, loader
from dragoman.native.measured import measures
from dragoman.nn.layout import Sequences

ROWS = 256
"""Of a batch: torch costs a step as much for 64 rows as for these (docs/experiments.md)."""


def _make(
    precision: Literal["int8", "bf16", "fp32"], network: Advancing, _: Shortlist | None
) -> Model:
    dtypes = {"int8": torch.int8, "bf16": torch.bfloat16, "fp32": torch.float32}
    return PreparedNetwork(network, dtypes[precision])


def _small() -> Recurrent:
    settings = RecurrentSettings(model_dim=256, encoder_layers=1, decoder_layers=1)
    return Recurrent(settings, TRIAL_TOKENS, TRIAL_TOKENS)


def why_not_int8(level: str | None = None) -> str | None:
    """Why the int8 kernels of ``level`` (None: of the one in use) run no network here; None if they
    can."""
    if not library.available():
        return library.status().reason
    with library.using(level):
        if not native.supported():
            return "the native library has no int8 products for this processor"
        agree = _agrees(loader.level_in_use())
    return None if agree else "its kernels do not agree with plain torch on this machine"


@cache
def _agrees(level: str | None) -> bool:
    """Whether the kernels of the level in use and plain torch give tiny models the same logits;
    once a process for each."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        recurrent = RecurrentSettings(model_dim=34, attends="first", attention="additive")
        convolutional = ConvolutionalSettings(model_dim=34, channels=40)
        source = Sequences.of([torch.arange(3, 10), torch.arange(20, 22)])
        tokens = torch.tensor([[1, 5, 9], [1, 60, 3]])
        for plain in (Recurrent(recurrent, 70, 70), Convolutional(convolutional, 70, 70)):
            fast = PreparedNetwork(plain.eval(), torch.int8)
            expected = plain.step(tokens, plain.start(plain.encode(source)))
            found = fast.step(tokens, fast.start(fast.encode(source)))
            values, ids = fast.best(tokens, fast.start(fast.encode(source)), 3)
            told = found.log_softmax(dim=-1).gather(1, ids)
            if not (found - expected).norm() < 0.05 * expected.norm():
                return False
            if not torch.allclose(values, told, atol=1e-3):
                return False
    return True


def _by_kernels(level: str | None) -> FastPath:
    make = partial(_make, "int8")

    return FastPath(
        "int8",
        make=make,
        why_not=lambda _: why_not_int8(level),
        trial=partial(trial, _small, make),
        line=lambda: f"int8, native kernels for {level}, between them torch",
        units=lambda: f"int8 by kernels for {level}",
        level=level,
        rows=ROWS,
        trial_name=f"prepared int8 {level}",
    )


def paths() -> tuple[FastPath, ...]:
    """In int8 by the kernels of each instruction set that has some (of the best alone where nothing
    is measured), in bf16 and in fp32."""
    levels = loader.decoding_levels() or (None,)
    by_kernels = [_by_kernels(level) for level in (levels if measures() else levels[:1])]
    return (*by_kernels, *on_plain_torch(_make, _small, "prepared", ROWS))
