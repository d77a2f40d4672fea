"""A network, and the faster ways to run it, by the kind of its settings (``models/kinds.py``).

Modules are imported when they are asked for: kinds that nobody uses cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dragoman.models.settings import ModelSettings

if TYPE_CHECKING:
    from dragoman.models.fast_path import FastPath
    from dragoman.models.front_ends import SourceInput
    from dragoman.models.interface import Network


_NETWORKS = {
    "transformer": ("transformer.model", "Transformer"),
    "recurrent": ("recurrent.model", "Recurrent"),
    "convolutional": ("convolutional", "Convolutional"),
    "decoder": ("decoder", "Decoder"),
    "encoder": ("encoder", "Encoder"),
    "recurrent-decoder": ("recurrent.decoder", "RecurrentDecoder"),
    "codes": ("picture_codes", "PictureCodes"),
}
"""Of each kind, the module of ``models`` and its class."""

_PATHS = {
    "transformer": "transformer.fast_paths",
    "recurrent": "catalogue.prepared_paths",
    "convolutional": "catalogue.prepared_paths",
    "recurrent-decoder": "catalogue.prepared_paths",
}
"""The module that lists its paths. A kind that is left out runs as it is."""


def _module(name: str) -> Any:
    return import_module(f"dragoman.models.{name}")


def new_network(
    settings: ModelSettings, source_vocabulary: SourceInput, target_vocabulary: int
) -> Network:
    """A model with fresh weights, drawn from torch's generator. ``source_vocabulary``: the number
    of different tokens that it reads, or what its rows are. ``target_vocabulary``: the number of
    its outputs, where it writes nothing."""
    module, name = _NETWORKS[settings.kind]
    network = getattr(_module(module), name)
    made: Network = network(settings, source_vocabulary, target_vocabulary)
    return made


def fast_paths(kind: str) -> tuple[FastPath, ...]:
    """The faster ways to run models of a kind on this machine, the most promising first."""
    paths: tuple[FastPath, ...] = _module(_PATHS[kind]).paths() if kind in _PATHS else ()
    return paths
