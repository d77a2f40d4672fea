"""A network, and the faster ways to run it, by the kind of its settings (``models/kinds.py``).

Modules are imported when they are asked for: kinds that nobody uses cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dragoman.models.settings import ModelSettings

if TYPE_CHECKING:
    from dragoman.models.fast_path import FastPath
    from dragoman.models.front_ends import SourceInput
    from dragoman.models.interface import Network


def _transformer() -> type[Network]:
    from dragoman.models.transformer.model import Transformer

    return Transformer


def _recurrent() -> type[Network]:
    from dragoman.models.recurrent import Recurrent

    return Recurrent


def _convolutional() -> type[Network]:
    from dragoman.models.convolutional import Convolutional

    return Convolutional


def _decoder() -> type[Network]:
    from dragoman.models.decoder import Decoder

    return Decoder


def _encoder() -> type[Network]:
    from dragoman.models.encoder import Encoder

    return Encoder


def _recurrent_decoder() -> type[Network]:
    from dragoman.models.recurrent.decoder import RecurrentDecoder

    return RecurrentDecoder


def _codes() -> type[Network]:
    from dragoman.models.picture_codes import PictureCodes

    return PictureCodes


def _transformer_paths() -> tuple[FastPath, ...]:
    from dragoman.models.transformer.fast_paths import paths

    return paths()


def _prepared_paths() -> tuple[FastPath, ...]:
    from dragoman.models.catalogue.prepared_paths import paths

    return paths()


_NETWORKS: dict[str, Callable[[], Any]] = {
    "transformer": _transformer,
    "recurrent": _recurrent,
    "convolutional": _convolutional,
    "decoder": _decoder,
    "encoder": _encoder,
    "recurrent-decoder": _recurrent_decoder,
    "codes": _codes,
}

_PATHS: dict[str, Callable[[], tuple[FastPath, ...]]] = {
    "transformer": _transformer_paths,
    "recurrent": _prepared_paths,
    "convolutional": _prepared_paths,
    "recurrent-decoder": _prepared_paths,
}
"""A kind that is left out runs as it is."""


def new_network(
    settings: ModelSettings, source_vocabulary: SourceInput, target_vocabulary: int
) -> Network:
    """A model with fresh weights, drawn from torch's generator. ``source_vocabulary``: the number
    of different tokens that it reads, or what its rows are. ``target_vocabulary``: the number of
    its outputs, where it writes nothing."""
    made: Network = _NETWORKS[settings.kind]()(settings, source_vocabulary, target_vocabulary)
    return made


def fast_paths(kind: str) -> tuple[FastPath, ...]:
    """The faster ways to run models of a kind on this machine, the most promising first."""
    return _PATHS[kind]() if kind in _PATHS else ()
