"""The faster ways to run a Transformer: int8 by native kernels, bf16 and fp32 on plain torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch

from dragoman.models.fast_path import FastPath
from dragoman.models.interface import Model
from dragoman.models.settings import TransformerSettings
from dragoman.models.shortlist import Shortlist
from dragoman.models.transformer import int8
from dragoman.models.transformer.cpu import CpuTransformer
from dragoman.models.transformer.model import Transformer
from dragoman.native import library
from dragoman.native.processor import no_bf16_units
from dragoman.nn.layout import Sequences

UNITS = {
    "avx512": "on AVX512-VNNI, keys and values on bf16 units",
    "avx512vnni": "on AVX512-VNNI, without bf16 units",
    "avxvnni": "on AVX-VNNI, two thirds as fast as AVX512-VNNI",
    "avx2": "on AVX2 alone, at half the speed of AVX512-VNNI",
}
"""What the int8 kernels run on at each of ``library.LEVELS``."""


def _int8(model: Transformer, shortlist: Shortlist | None) -> Model:
    return int8.Int8Transformer(model, shortlist, checked=True)


def _plain(dtype: torch.dtype, model: Transformer, _: Shortlist | None) -> Model:
    return CpuTransformer(model, dtype)


def _why_not_int8(settings: Any) -> str | None:
    return int8.why_not_here() if settings is None else int8.why_not(settings)


def _trial(make: Callable[[Any, None], Model]) -> Callable[[], None]:
    """A small model that reads some sentences and writes some tokens, one way or another."""
    settings = TransformerSettings(model_dim=256, ffn_dim=1024, encoder_layers=1, decoder_layers=1)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        plain = Transformer(settings, 2000, 2000).eval()
    model = make(plain, None)
    source = Sequences.of([torch.arange(3, 15)] * 16)
    tokens = torch.ones(16, 1, dtype=torch.int64)

    def work() -> None:
        with torch.no_grad():
            state = model.start(model.encode(source))
            for _ in range(6):
                model.best(tokens, state, 1)

    return work


def _path(precision: Literal["bf16", "fp32"], why_not: Callable[[Any], str | None]) -> FastPath:
    """On plain torch."""
    make = partial(_plain, {"bf16": torch.bfloat16, "fp32": torch.float32}[precision])
    return FastPath(
        precision,
        make=make,
        why_not=why_not,
        trial=partial(_trial, make),
        line=lambda: f"{precision} on plain torch",
        units=lambda: f"{precision} on plain torch",
    )


PATHS = (
    FastPath(
        "int8",
        make=_int8,
        why_not=_why_not_int8,
        trial=partial(_trial, _int8),
        line=lambda: f"int8, native kernels for {library.status().level}",
        units=lambda: f"int8 {UNITS[str(library.status().level)]}",
        takes_shortlist=True,
    ),
    _path("bf16", lambda _: no_bf16_units()),
    _path("fp32", lambda _: None),
)
"""The first is the fastest nearly everywhere; the others too stand in order."""
