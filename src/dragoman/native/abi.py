"""The structs that Python and C++ pass to each other, as in ``src/abi.h``.

``difference`` compares sizes and places of all fields with what the compiler made of that header
(``src/abi.cpp``); a library that lays out anything otherwise is not used. Arrays of the records
that a search consists of are numpy's: ``np.dtype(Group)``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import c_bool, c_double, c_float, c_int, c_int32, c_int64, c_uint64, c_void_p
from typing import Any

POINTER, WHOLE, REAL, SEED = c_void_p, c_int64, c_float, c_uint64


def _fields(*declarations: tuple[Any, ...]) -> tuple[tuple[str, Any], ...]:
    """The fields of a struct from declarations as in C: a type, and the names that have it."""
    return tuple((name, kind) for kind, *names in declarations for name in names)


class Attention(ctypes.Structure):
    """The sizes and addresses for the attention kernels."""

    _fields_ = _fields(
        (POINTER, "query_offsets", "key_offsets", "query_names"),
        (WHOLE, "sentences", "heads", "key_width", "value_width"),
        (WHOLE, "query_row", "key_row", "value_row", "out_row", "causal"),
        (REAL, "scale", "rate"),
        (SEED, "seed"),
    )


class Part(ctypes.Structure):
    """One of the weights whose outputs stand side by side, where its gradient goes."""

    _fields_ = (("weight", POINTER), ("bias", POINTER), ("outputs", WHOLE), ("add", WHOLE))


ACTIVATIONS = ("relu", "swish", "gelu")
"""Activation functions, in the order of their numbers in ``src/abi.h``."""


class Shape(ctypes.Structure):
    """Sizes and choices of a Transformer."""

    _fields_ = _fields(
        (c_int32, "model_dim", "ffn_dim", "heads", "key_width", "value_width"),
        (c_int32, "encoder_layers", "decoder_layers", "source_vocabulary", "target_vocabulary"),
        (c_int32, "pre_norm"),
        (c_int32, "hidden_token"),  # a token that nothing may attend to; -1: none
        (c_int32, "one_embedding"),  # whether source and target share theirs
        (c_int32, "zero_token"),  # a target token whose embedding is zero; -1: none
        (c_int32, "activation"),  # of the feed-forward layers: its place in ACTIVATIONS
    )


class Factors(ctypes.Structure):
    """The factors and divisors of a Transformer."""

    _fields_ = (("attention", c_float), ("embedding", c_float), ("epsilon", c_float))


class Group(ctypes.Structure):
    """One search of a batch and its limits."""

    _fields_ = (
        ("rows", WHOLE),  # live hypotheses
        ("width", WHOLE),  # how many may be live
        ("length", WHOLE),  # tokens chosen, the same for all its rows
        ("limit", WHOLE),  # most tokens
        ("least", WHOLE),  # fewest tokens
        ("prefix", WHOLE),  # how many tokens are given
        ("ngram", WHOLE),  # no run of this many tokens twice; 0: no limit
        ("ended", WHOLE),  # hypotheses that have ended
        ("quota", WHOLE),  # ended hypotheses at which it stops
        ("alpha", c_double),  # of the length penalty ((shift + length) / (shift + 1))^alpha
        ("shift", c_double),
        ("ceiling", c_double),  # the greatest length penalty that it can reach
        ("worst", c_double),  # score of the worst of its n best ended; -inf while fewer
        ("key", c_uint64),  # of its random numbers
        ("next_rows", WHOLE),  # live hypotheses after this step
        ("keep", WHOLE),  # how many ended hypotheses are kept
        ("done", c_bool),  # done with this step
        ("splits", c_bool),  # becomes one group per hypothesis at its first free token
        ("draws", c_bool),  # samples
        ("recorded", c_bool),  # someone wants to see its steps
        ("special", c_bool),  # asks for anything that not every search does
        ("shrinks", c_bool),  # each that has ended leaves room for one less
    )


class Looked(ctypes.Structure):
    """One continuation that a group looks at."""

    _fields_ = (
        ("candidate", WHOLE),  # row x k + place: which of the (N, k) candidates
        ("token", WHOLE),
        ("total", c_double),  # log-probability of the whole; -inf where there is none
        ("ends", c_bool),  # ended by this step
        ("goes_on", c_bool),  # live after this step
    )


class Ended(ctypes.Structure):
    """One hypothesis that has ended and is worth keeping."""

    _fields_ = (
        ("group", WHOLE),
        ("row", WHOLE),
        ("length", WHOLE),  # tokens, the end symbol not counted
        ("end", c_double),  # log-probability of the end symbol
    )


class Found(ctypes.Structure):
    """The hypothesis that a native run of steps found for a group that keeps one."""

    _fields_ = (
        ("length", WHOLE),  # tokens, the end symbol not counted; -1: nothing
        ("end", c_double),  # log-probability of the end symbol; NaN: it was cut
    )


class Live(ctypes.Structure):
    """The addresses of the arrays of a search."""

    _fields_ = _fields(
        (POINTER, "groups", "looked", "ended", "found", "found_tokens", "found_log_probabilities"),
        (POINTER, "tokens", "log_probabilities", "totals", "last", "parents"),
        (WHOLE, "places", "columns"),
    )


class Step(ctypes.Structure):
    """The functions by which native code takes steps; valid until the state is changed."""

    _fields_ = _fields((POINTER, "best", "select", "state", "positions"), (WHOLE, "known"))


class Run(ctypes.Structure):
    """The arguments and results of a native run of steps."""

    _fields_ = _fields(
        (WHOLE, "groups", "rows", "k", "eos", "steps", "enough"),
        (POINTER, "log_probabilities", "ids", "forbidden"),
        (WHOLE, "count", "any_done", "wrong"),
    )


STRUCTS = (
    Attention, Part, Shape, Factors, Group, Looked, Ended, Found, Live, Step, Run,
)  # fmt: skip


# fmt: off
FUNCTIONS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "attention_forward": ((*[POINTER] * 6,), None),
    "attention_backward": ((*[POINTER] * 7, WHOLE, POINTER, WHOLE, POINTER, WHOLE), None),
    "attention_pairs_forward": ((*[POINTER] * 6,), None),
    "attention_pairs_backward": ((*[POINTER] * 7, WHOLE, POINTER, WHOLE, POINTER, WHOLE), None),
    "decode_model_new": ((*[POINTER] * 2,), POINTER),
    "decode_model_pack": ((*[POINTER] * 2,), None),
    "decode_model_parts": ((*[POINTER] * 3,), c_int),
    "decode_model_free": ((POINTER,), None),
    "decode_model_width": ((POINTER,), c_int),
    "decode_model_shortlist": ((POINTER, POINTER, c_int, POINTER, POINTER), None),
    "decode_encode": ((*[POINTER] * 3, c_int, *[POINTER] * 3), c_int),
    "decode_state_new": ((POINTER,), POINTER),
    "decode_state_free": ((POINTER,), None),
    "decode_state_rows": ((POINTER,), c_int),
    "decode_state_lengths": ((POINTER, POINTER), None),
    "decode_state_allowed": ((POINTER, POINTER), None),
    "decode_state_admit": ((*[POINTER] * 3, c_int, POINTER, POINTER), None),
    "decode_state_select": ((POINTER, POINTER, c_int), c_int),
    "decode_step": ((POINTER, POINTER, c_int, c_int, POINTER, c_int, POINTER), c_int),
    "decode_best": (
        (POINTER, POINTER, c_int, c_int, POINTER, c_int, c_int, POINTER, POINTER), c_int),
    "dropout": ((*[POINTER] * 3, WHOLE, WHOLE, REAL, SEED, POINTER), None),
    "embedding_forward": ((*[POINTER] * 5, WHOLE, WHOLE, REAL, REAL, SEED, POINTER), None),
    "embedding_backward": ((*[POINTER] * 3, *[WHOLE] * 3, REAL, REAL, SEED, POINTER), None),
    "int8_new": ((POINTER, POINTER, c_int, c_int, c_int), POINTER),
    "int8_free": ((POINTER,), None),
    "int8_columns": ((POINTER,), c_int),
    "int8_rows": ((POINTER, POINTER, WHOLE, c_int, c_int, POINTER, WHOLE), None),
    "int8_best": ((POINTER, POINTER, WHOLE, c_int, c_int, POINTER, POINTER), None),
    "int8_gated": ((POINTER, POINTER, WHOLE, c_int, POINTER), None),
    "int8_lstm": ((*[POINTER] * 3, c_int, POINTER, POINTER), None),
    "int8_recur": (
        (POINTER, POINTER, WHOLE, POINTER, POINTER, c_int, c_int, *[POINTER] * 3, WHOLE, POINTER),
        None),
    "look": ((*[POINTER] * 8, *[c_int] * 4, REAL), None),
    "orthogonal": ((*[POINTER] * 3, WHOLE), None),
    "packed_words": ((WHOLE, WHOLE), WHOLE),
    "pack_weights": ((POINTER, POINTER, WHOLE, WHOLE, POINTER, POINTER), None),
    "linear_forward": ((POINTER, WHOLE, *[POINTER] * 3, *[WHOLE] * 4), None),
    "linear_relu": ((POINTER, WHOLE, *[POINTER] * 3, *[WHOLE] * 4, REAL, SEED, POINTER), None),
    "linear_backward_input": (
        (POINTER, WHOLE, POINTER, POINTER, *[WHOLE] * 4, POINTER, WHOLE, REAL), None),
    "linear_backward_weight": ((POINTER, WHOLE, POINTER, WHOLE, POINTER, *[WHOLE] * 3), None),
    "cross_entropy_slopes": ((WHOLE, WHOLE), WHOLE),
    "cross_entropy": ((POINTER, WHOLE, *[POINTER] * 3, *[WHOLE] * 3, REAL, *[POINTER] * 5), None),
    "lstm_forward": ((POINTER, WHOLE, *[POINTER] * 7, WHOLE, WHOLE), None),
    "lstm_backward": ((POINTER, WHOLE, POINTER, WHOLE, *[POINTER] * 7, *[WHOLE] * 3), None),
    "additive_forward": ((*[POINTER] * 5, *[WHOLE] * 4), None),
    "additive_backward": ((*[POINTER] * 8, *[WHOLE] * 4), None),
    "norm_sums": ((WHOLE, WHOLE), WHOLE),
    "norm_forward": ((*[POINTER] * 7, WHOLE, WHOLE, REAL, REAL, SEED, POINTER), None),
    "norm_backward": ((*[POINTER] * 8, WHOLE, WHOLE, REAL, SEED, POINTER, POINTER), None),
    "beam_expand": ((POINTER, WHOLE, POINTER, POINTER, WHOLE, WHOLE, POINTER, WHOLE, WHOLE), WHOLE),
    "beam_judge": ((POINTER, WHOLE), WHOLE),
    "beam_move": ((POINTER, WHOLE, WHOLE, POINTER, WHOLE), WHOLE),
    "beam_run": ((*[POINTER] * 3,), None),
}
# fmt: on
"""Arguments and result of every function, by its name without ``dragoman``, instruction set and the
type of its elements. A test compares them with the sources."""


def at(struct: ctypes.Structure) -> int:
    """Its address, valid while ``struct`` is alive."""
    return ctypes.addressof(struct)


def signature(name: str) -> tuple[tuple[Any, ...], Any]:
    """The signature of a function; ``norm_forward_bf16`` and ``norm_forward_fp32`` share one."""
    return FUNCTIONS[name.removesuffix("_fp32").removesuffix("_bf16")]


class _TableLine(ctypes.Structure):
    """One line of the table of abi.cpp."""

    _fields_ = (("name", ctypes.c_char_p), ("offset", c_int64), ("size", c_int64))


def difference(handle: ctypes.CDLL) -> str | None:
    """The first struct that a library lays out otherwise than this file; None if there is none."""
    table = handle.dragoman_abi
    table.argtypes, table.restype = (), ctypes.POINTER(_TableLine)
    theirs: dict[str, list[tuple[str, int, int]]] = {}
    for name, offset, size in _entries(table()):
        if offset < 0:
            theirs[name] = fields = [("", 0, size)]
        else:
            fields.append((name, offset, size))
    for struct in STRUCTS:
        places = ((name, getattr(struct, name)) for name, *_ in struct._fields_)
        ours = [("", 0, ctypes.sizeof(struct)), *((n, p.offset, p.size) for n, p in places)]
        if theirs.get(struct.__name__) != ours:
            return struct.__name__
    return None


def _entries(table: ctypes._Pointer[_TableLine]) -> Iterator[tuple[str, int, int]]:
    i = 0
    while table[i].name is not None:
        yield table[i].name.decode(), table[i].offset, table[i].size
        i += 1
