"""Every model and every fast path that must keep the contract of ``models/interface.py``.

Not a test: ``test_*.py`` of this folder run over ``IMPLEMENTATIONS``. A new kind of model or a new
way to run one gets a line here, and no test of its own for what all have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import pytest
import torch
from torch import Tensor

from dragoman.models.convolutional import Convolutional
from dragoman.models.decoder import Decoder, RecurrentDecoder
from dragoman.models.encoding import Encoder
from dragoman.models.ensemble import Ensemble
from dragoman.models.interface import (
    Advancing,
    DecodeState,
    Memory,
    Model,
    Network,
    Writing,
)
from dragoman.models.prepared import PreparedNetwork, why_not_int8
from dragoman.models.recurrent import Recurrent
from dragoman.models.searched import Constrain
from dragoman.models.settings import (
    ConvolutionalSettings,
    DecoderSettings,
    EncoderSettings,
    ModelSettings,
    RecurrentDecoderSettings,
    RecurrentSettings,
    TransformerSettings,
)
from dragoman.models.transformer.cpu import PreparedTransformer
from dragoman.models.transformer.int8 import Int8Transformer, why_not_here
from dragoman.models.transformer.model import Transformer
from dragoman.native import library
from dragoman.nn.layout import Sequences
from dragoman.nn.settings import AttentionSettings

SOURCE, TARGET = 40, 40
"""Vocabularies; one size, so that tied matrices are possible."""
LABELS = 3
"""What a model that writes nothing may say of a row, where that is no token."""


class Path(Protocol):
    """The whole contract of a model that reads and writes."""

    def encode(self, source: Sequences, /) -> Memory: ...

    def decode(self, target_in: Sequences, memory: Memory, /) -> Tensor: ...

    def project(self, hidden: Tensor, ids: Tensor | None = None, /) -> Tensor: ...

    def start(self, memory: Memory, /) -> DecodeState: ...

    def step(self, tokens: Tensor, state: DecodeState, /) -> Tensor: ...

    def best(
        self, tokens: Tensor, state: DecodeState, k: int, constrain: Constrain | None = None, /
    ) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True)
class Implementation:
    """One model, one way to run it."""

    make: Callable[[], Path]
    dtype: torch.dtype = torch.float64
    alike: float = 1e-9
    """How far its results for the same thing may be apart, as a share of their length, however
    batches and prefixes are cut."""
    as_plain: float = 1e-9
    """How far its steps may be from ``decode``, which computes by the plain model."""


def drawn(model: Network) -> Network:
    """Biases and gains begin at 0 and 1, which would hide a wrong one."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval().requires_grad_(False)


def transformer(**changes: Any) -> Transformer:
    defaults: dict[str, Any] = {
        "model_dim": 16, "ffn_dim": 24, "encoder_layers": 2, "decoder_layers": 2,
        "attention": {"num_heads": 4}, "dropout": 0.0,
    }  # fmt: skip
    model = Transformer(TransformerSettings.model_validate(defaults | changes), SOURCE, TARGET)
    drawn(model)
    return model


def recurrent(**changes: Any) -> Recurrent:
    defaults: dict[str, Any] = {"model_dim": 16, "dropout": 0.0}
    model = Recurrent(RecurrentSettings.model_validate(defaults | changes), SOURCE, TARGET)
    drawn(model)
    return model


_TWO_HEADS = AttentionSettings(num_heads=2)
STACKS: tuple[ModelSettings, ...] = (
    EncoderSettings(model_dim=16, ffn_dim=32, layers=2, attention=_TWO_HEADS),
    DecoderSettings(model_dim=16, ffn_dim=32, layers=2, attention=_TWO_HEADS),
    RecurrentDecoderSettings(model_dim=16, layers=2),
)
"""Of models that are one stack of layers, of each kind."""


def convolutional(**changes: Any) -> Convolutional:
    defaults: dict[str, Any] = {"model_dim": 16, "channels": 12, "dropout": 0.0, "positions": 40}
    model = Convolutional(ConvolutionalSettings.model_validate(defaults | changes), SOURCE, TARGET)
    drawn(model)
    return model


def decoder(**changes: Any) -> Decoder:
    defaults: dict[str, Any] = {
        "model_dim": 16, "ffn_dim": 24, "layers": 2, "attention": {"num_heads": 4}, "dropout": 0.0,
    }  # fmt: skip
    model = Decoder(DecoderSettings.model_validate(defaults | changes), SOURCE, TARGET)
    drawn(model)
    return model


def encoder(outputs: int = TARGET, **changes: Any) -> Encoder:
    defaults: dict[str, Any] = {
        "model_dim": 16, "ffn_dim": 24, "layers": 2, "attention": {"num_heads": 4}, "dropout": 0.0,
    }  # fmt: skip
    model = Encoder(EncoderSettings.model_validate(defaults | changes), SOURCE, outputs)
    drawn(model)
    return model


def recurrent_decoder(**changes: Any) -> RecurrentDecoder:
    defaults: dict[str, Any] = {"model_dim": 16, "layers": 2}
    settings = RecurrentDecoderSettings.model_validate(defaults | changes)
    model = RecurrentDecoder(settings, SOURCE, TARGET)
    drawn(model)
    return model


def int8(**changes: Any) -> Int8Transformer:
    if missing := why_not_here():
        pytest.skip(missing)
    return Int8Transformer(transformer(**{"model_dim": 48, "ffn_dim": 70} | changes))


def prepared(dtype: torch.dtype, **changes: Any) -> PreparedNetwork:
    return PreparedTransformer(transformer(**changes), dtype)


def prepared_in_int8(network: Advancing) -> PreparedNetwork:
    if missing := why_not_int8():
        pytest.skip(missing)
    return PreparedNetwork(network, torch.int8)


def ensemble(*models: Model) -> Ensemble:
    return Ensemble(models)


TRANSFORMERS: dict[str, dict[str, Any]] = {
    "paper": {},
    "pre-norm": {"norm": "pre"},
    "no norm": {"norm": "none"},
    # Little of a token passes through many of such layers.
    "no residual": {"residual": False, "encoder_layers": 1, "decoder_layers": 1},
    "pre-norm, no residual": {
        "norm": "pre", "residual": False, "encoder_layers": 1, "decoder_layers": 1,
    },
    "untied": {"tie": "none"},
    "target tied": {"tie": "target"},
    "free value width": {"attention": {"num_heads": 4, "key_width": 3, "value_width": 5}},
    "sliced heads": {"attention": {"num_heads": 4, "whole_input": False}},
    "unscaled": {"attention": {"num_heads": 2, "scaled": False}},
    "fused": {"attention": {"num_heads": 4, "path": "fused"}},
    "unknown masked": {"attend_unknown": False},
    "learned": {"positions": {"kind": "learned", "maximum": 40}},
    "index": {"positions": {"kind": "index"}},
    "normalised": {"positions": {"kind": "normalised", "maximum": 40}},
    "binary beside": {
        "positions": {"kind": "binary", "combine": "concatenate", "width": 5}, "tie": "none",
    },
    "no positions": {"positions": {"kind": "none"}},
    "next word": {"next_word": True, "tie": "target"},
    "Marian's": {
        "activation": "swish", "output_bias": True, "zero_start": True, "norm_epsilon": 1e-6,
        "positions": {"kind": "marian"},
    },
    "gelu, embeddings as they are": {"activation": "gelu", "scale_embeddings": False},
}  # fmt: skip
RECURRENT: dict[str, dict[str, Any]] = {
    "two and two": {},
    "one and three": {"encoder_layers": 1, "decoder_layers": 3, "tie": "none"},
    "dot": {"attention": "dot"},
    "additive": {"attention": "additive"},
    "input feeding": {"input_feeding": True, "decoder_layers": 3},
    "GNMT": {"attends": "first", "attention": "additive", "decoder_layers": 3},
    "GNMT, input feeding": {"attends": "first", "input_feeding": True, "decoder_layers": 1},
    "variational": {"dropout_kind": "variational"},
    "variational, input feeding": {"dropout_kind": "variational", "input_feeding": True},
    "target tied": {"tie": "target", "encoder_layers": 3, "decoder_layers": 1},
}
CONVOLUTIONAL: dict[str, dict[str, Any]] = {
    "four and three": {},
    "windows of five": {"kernel_width": 5, "tie": "none", "encoder_layers": 1},
    "windows of one": {"kernel_width": 1, "tie": "target", "decoder_layers": 1},
}
FAST: dict[str, dict[str, Any]] = {
    name: TRANSFORMERS[name]
    for name in ("paper", "pre-norm", "no norm", "no residual", "pre-norm, no residual", "untied",
                 "target tied", "free value width", "sliced heads", "unscaled", "unknown masked",
                 "learned", "no positions", "next word", "Marian's",
                 "gelu, embeddings as they are")
}  # fmt: skip
INT8: dict[str, dict[str, Any]] = {
    **{
        name: changes
        for name, changes in FAST.items()
        if name not in ("no norm", "no residual", "pre-norm, no residual", "next word")
    },
    "odd width": {"model_dim": 33, "ffn_dim": 67, "attention": {"num_heads": 3}},
    "six heads": {"model_dim": 66, "attention": {"num_heads": 6}},
    "twelve heads": {"model_dim": 96, "attention": {"num_heads": 12}, "encoder_layers": 1},
    "wide heads": {"model_dim": 64, "attention": {"num_heads": 8, "key_width": 64}},
}
"""Kernels work on several numbers and heads at once: these leave a rest or need several rounds."""

DECODERS: dict[str, dict[str, Any]] = {
    "GPT": {},
    "GPT-2's activation": {"activation": "gelu", "scale_embeddings": False},
    "post-norm": {"norm": "post"},
    "no norm, no residual": {"norm": "none", "residual": False, "layers": 1},
    "untied": {"tie": False, "layers": 1},
    "learned": {"positions": {"kind": "learned", "maximum": 40}},
}

RECURRENT_DECODERS: dict[str, dict[str, Any]] = {
    "ULMFiT": {"hidden_dim": 24, "layers": 3},
    "one layer, untied": {"layers": 1, "tie": False},
}

ENCODERS: dict[str, dict[str, Any]] = {
    "BERT": {"norm": "post"},
    "pre-norm": {},
    "untied": {"tie": False, "layers": 1},
    "labels": {"tie": False, "outputs": LABELS},
    "fused": {"attention": {"num_heads": 4, "path": "fused"}},
    "unknown masked": {"attend_unknown": False},
    "learned": {"positions": {"kind": "learned", "maximum": 40}},
    "normalised": {"positions": {"kind": "normalised"}},
}

READERS: dict[str, Callable[[], Network]] = {
    f"encoder, {n}": lambda c=c: encoder(**c) for n, c in ENCODERS.items()
}
"""Models that read and write nothing."""

NETWORKS: dict[str, Callable[[], Writing]] = {
    **{f"transformer, {n}": lambda c=c: transformer(**c) for n, c in TRANSFORMERS.items()},
    **{f"recurrent, {n}": lambda c=c: recurrent(**c) for n, c in RECURRENT.items()},
    **{f"convolutional, {n}": lambda c=c: convolutional(**c) for n, c in CONVOLUTIONAL.items()},
    **{f"decoder, {n}": lambda c=c: decoder(**c) for n, c in DECODERS.items()},
    **{
        f"recurrent decoder, {n}": lambda c=c: recurrent_decoder(**c)
        for n, c in RECURRENT_DECODERS.items()
    },
}
"""Models that write, as a recipe describes them: the plain ones, which can be trained and looked
into."""

EVERY_NETWORK: dict[str, Callable[[], Network]] = {**NETWORKS, **READERS}

_INT8_AS_PLAIN = 0.06 if library.status().level == "avx2" else 0.05
"""On AVX2 alone weights have fewer steps, so that their products cannot overflow."""

IMPLEMENTATIONS: dict[str, Implementation] = {
    **{name: Implementation(make) for name, make in NETWORKS.items()},
    **{
        f"transformer in int8, {n}": Implementation(
            lambda c=c: int8(**c), torch.float32, alike=1e-5, as_plain=_INT8_AS_PLAIN
        )
        for n, c in INT8.items()
    },
    **{
        f"transformer on prepared torch, {n}": Implementation(
            lambda c=c: prepared(torch.float32, **c), torch.float32, alike=1e-4, as_plain=1e-4
        )
        for n, c in FAST.items()
    },
    **{
        f"recurrent on prepared torch, {n}": Implementation(
            lambda c=c: PreparedNetwork(recurrent(**c), torch.float32),
            torch.float32,
            alike=1e-4,
            as_plain=1e-4,
        )
        for n, c in RECURRENT.items()
        if n in ("two and two", "additive", "input feeding", "GNMT", "target tied")
    },
    **{
        f"convolutional on prepared torch, {n}": Implementation(
            lambda c=c: PreparedNetwork(convolutional(**c), torch.float32),
            torch.float32,
            alike=1e-4,
            as_plain=1e-4,
        )
        for n, c in CONVOLUTIONAL.items()
    },
    **{
        f"{kind} by int8 kernels, {n}": Implementation(
            lambda make=make, c=c: prepared_in_int8(make(**{"model_dim": 48} | c)),
            torch.float32,
            alike=1e-5,
            as_plain=_INT8_AS_PLAIN,
        )
        for kind, make, every in (
            ("recurrent", recurrent, RECURRENT),
            ("convolutional", convolutional, CONVOLUTIONAL),
            ("recurrent decoder", recurrent_decoder, RECURRENT_DECODERS),
        )
        for n, c in every.items()
    },
    "recurrent decoder on prepared torch": Implementation(
        lambda: PreparedNetwork(recurrent_decoder(hidden_dim=24, layers=3), torch.float32),
        torch.float32,
        alike=1e-4,
        as_plain=1e-4,
    ),
    "ensemble of three kinds": Implementation(
        lambda: ensemble(transformer(), recurrent(), decoder())
    ),
    "ensemble of two widths, one masking": Implementation(
        lambda: ensemble(transformer(attend_unknown=False), transformer(model_dim=24))
    ),
    "ensemble on fast paths": Implementation(
        lambda: ensemble(int8(), prepared(torch.float32)), torch.float32, alike=1e-4, as_plain=0.05
    ),
}
