"""Makes networks, and lists the faster ways to run them, by the kind of their settings
(``models/settings.py``).

The networks need torch; the lists of paths do not. Modules are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.models.settings import ModelSettings

if TYPE_CHECKING:
    from dragoman.models.encoding import SourceInput
    from dragoman.models.fast_path import FastPath
    from dragoman.models.interface import Network

_PREPARED = ("recurrent", "convolutional", "recurrent-decoder")
"""The kinds whose networks are laid out once for inference (``models/prepared.py``)."""


def new_network(
    settings: ModelSettings, source_vocabulary: SourceInput, target_vocabulary: int
) -> Network:
    """Make a model with new weights, drawn from torch's generator. ``source_vocabulary``: the
    number of different tokens that it reads, or the settings of its rows. ``target_vocabulary``:
    the number of tokens that it writes or, for a model that writes nothing, of its outputs."""
    from dragoman.models.convolutional import Convolutional
    from dragoman.models.decoder import Decoder, RecurrentDecoder
    from dragoman.models.encoding import Encoder
    from dragoman.models.picture_codes import PictureCodes
    from dragoman.models.recurrent import Recurrent
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
    """Return the faster ways to run models of a kind on this machine, the most promising first;
    empty for a kind that only plain torch runs."""
    if kind == "transformer":
        from dragoman.models.transformer import fast_paths

        return fast_paths.paths()
    if kind in _PREPARED:
        from dragoman.models import prepared

        return prepared.paths()
    return ()
