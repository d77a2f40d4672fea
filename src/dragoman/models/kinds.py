"""The settings of every kind of model, by the name that a recipe gives it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Tag

from dragoman.models.settings import (
    CodesSettings,
    ConvolutionalSettings,
    DecoderSettings,
    EncoderSettings,
    ModelSettings,
    RecurrentDecoderSettings,
    RecurrentSettings,
    TransformerSettings,
)

KINDS: dict[str, type[ModelSettings]] = {
    "transformer": TransformerSettings,
    "recurrent": RecurrentSettings,
    "convolutional": ConvolutionalSettings,
    "decoder": DecoderSettings,
    "encoder": EncoderSettings,
    "recurrent-decoder": RecurrentDecoderSettings,
    "codes": CodesSettings,
}
"""``models/catalogue/networks.py`` has the networks: a recipe is read without torch."""

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
        reduce(or_, (Annotated[settings, Tag(kind)] for kind, settings in KINDS.items())),
        Discriminator(
            _kind_of,
            custom_error_type="unknown_kind",
            custom_error_message=f"there is no such kind of model; kinds are {', '.join(KINDS)}",
        ),
    ]
"""A field that holds the settings of some kind of model, told by its ``kind``."""
