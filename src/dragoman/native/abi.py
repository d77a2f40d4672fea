"""What Python and C++ hand to each other: every struct once, as ``src/`` lays it out."""

from __future__ import annotations

import ctypes

POINTER, WHOLE = ctypes.c_void_p, ctypes.c_int64


class Step(ctypes.Structure):
    """How native code lets a model take steps. Good until its state is told to do anything else."""

    _fields_ = (
        ("best", POINTER),
        ("select", POINTER),
        ("state", POINTER),
        ("positions", POINTER),
        ("known", WHOLE),
    )


class Shape(ctypes.Structure):
    """Sizes and choices of a Transformer for ``decode_model_new``."""

    _fields_ = tuple(
        (name, ctypes.c_int32)
        for name in (
            "model_dim", "ffn_dim", "heads", "key_width", "value_width",
            "encoder_layers", "decoder_layers", "source_vocabulary", "target_vocabulary",
            "pre_norm", "hidden_token",
        )
    )  # fmt: skip


class Factors(ctypes.Structure):
    """Numbers that a Transformer multiplies or divides by."""

    _fields_ = (
        ("attention", ctypes.c_float),
        ("embedding", ctypes.c_float),
        ("epsilon", ctypes.c_float),
    )
