"""Every kind of model by the name that a recipe gives it: its settings, and its class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Tag

from dragoman.address import found_at
from dragoman.models.settings import (
    ConvolutionalSettings,
    DecoderSettings,
    EncoderSettings,
    ModelSettings,
    RecurrentDecoderSettings,
    RecurrentSettings,
    TransformerSettings,
)

if TYPE_CHECKING:
    from dragoman.models.fast_path import FastPath
    from dragoman.models.interface import Network

KINDS: dict[str, tuple[type[ModelSettings], str]] = {
    "transformer": (TransformerSettings, "dragoman.models.transformer.model.Transformer"),
    "recurrent": (RecurrentSettings, "dragoman.models.recurrent.Recurrent"),
    "convolutional": (ConvolutionalSettings, "dragoman.models.convolutional.Convolutional"),
    "decoder": (DecoderSettings, "dragoman.models.decoder.Decoder"),
    "encoder": (EncoderSettings, "dragoman.models.encoder.Encoder"),
    "recurrent-decoder": (
        RecurrentDecoderSettings,
        "dragoman.models.recurrent.decoder.RecurrentDecoder",
    ),
}
"""Classes by their address: a recipe is read without torch."""

FAST_PATHS = {
    "transformer": "dragoman.models.transformer.fast_paths.paths",
    "recurrent": "dragoman.models.prepared.paths",
    "convolutional": "dragoman.models.prepared.paths",
    "recurrent-decoder": "dragoman.models.prepared.paths",
}
"""The faster ways to run a kind, likewise; a kind that is left out runs as it is."""

DEFAULT = "transformer"
"""The kind of a recipe that names none: all were so before there were others."""


def _kind_of(given: Any) -> Any:
    """Of settings, or of what they are to be made of."""
    kind = given.get("kind", DEFAULT) if isinstance(given, Mapping) else getattr(given, "kind", "")
    return kind if isinstance(kind, str) else ""


if TYPE_CHECKING:
    AnyModel = ModelSettings
else:
    AnyModel = Annotated[
        reduce(or_, (Annotated[settings, Tag(kind)] for kind, (settings, _) in KINDS.items())),
        Discriminator(
            _kind_of,
            custom_error_type="unknown_kind",
            custom_error_message=f"there is no such kind of model; kinds are {', '.join(KINDS)}",
        ),
    ]
"""A field that holds the settings of some kind of model, told by its ``kind``."""


def new_network(settings: ModelSettings, source_vocabulary: int, target_vocabulary: int) -> Network:
    """A model with fresh weights, drawn from torch's generator. ``target_vocabulary``: the number
    of its outputs, where it writes nothing."""
    made: Network = found_at(KINDS[settings.kind][1])(
        settings, source_vocabulary, target_vocabulary
    )
    return made


def fast_paths(kind: str) -> tuple[FastPath, ...]:
    """The faster ways to run models of a kind on this machine, the most promising first."""
    paths: tuple[FastPath, ...] = found_at(FAST_PATHS[kind])() if kind in FAST_PATHS else ()
    return paths
