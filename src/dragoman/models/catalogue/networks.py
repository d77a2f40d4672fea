"""A network, and the faster ways to run it, by the kind of its settings (``models/settings.py``).

The classes need torch, and the lists of paths do not: modules are imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.models.settings import ModelSettings

if TYPE_CHECKING:
    from dragoman.models.encoding import SourceInput
    from dragoman.models.fast_path import FastPath
    from dragoman.models.interface import Network

_PREPARED = ("recurrent", "convolutional", "recurrent-decoder")
"""The kinds whose networks are laid out once for translating (``models/prepared.py``)."""


def new_network(
    settings: ModelSettings, source_vocabulary: SourceInput, target_vocabulary: int
) -> Network:
    """A model with fresh weights, drawn from torch's generator. ``source_vocabulary``: the number
    of different tokens that it reads, or what its rows are. ``target_vocabulary``: the number of
    its outputs, where it writes nothing."""
    from dragoman.models.convolutional import Convolutional
    from dragoman.models.decoder import Decoder
    from dragoman.models.encoding import Encoder
    from dragoman.models.picture_codes import PictureCodes
    from dragoman.models.recurrent import Recurrent
    from dragoman.models.recurrent_decoder import RecurrentDecoder
    from dragoman.models.transformer.model import Transformer

    networks: dict[str, Any] = {
        "transformer": Transformer,
        "recurrent": Recurrent,
        "convolutional": Convolutional,
        "decoder": Decoder,
        "encoder": Encoder,
        "recurrent-decoder": RecurrentDecoder,
        "codes": PictureCodes,
    }
    made: Network = networks[settings.kind](settings, source_vocabulary, target_vocabulary)
    return made


def fast_paths(kind: str) -> tuple[FastPath, ...]:
    """The faster ways to run models of a kind on this machine, the most promising first; none where
    the kind runs as it is."""
    if kind == "transformer":
        from dragoman.models.transformer import fast_paths

        return fast_paths.paths()
    if kind in _PREPARED:
        from dragoman.models import prepared

        return prepared.paths()
    return ()
