"""Feature files of CMU Sphinx, as AN4 comes: mel-frequency cepstral coefficients, frame by frame.

Shapes: T frames, 13 coefficients.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dragoman.base.errors import DataError
from dragoman.sources.frames.recordings import Floats
from dragoman.sources.frames.settings import COEFFICIENTS
from dragoman.sources.shared.files import unusable

FEATURE_FILE = ".mfc"
"""Ending of a file that holds coefficients."""
_LARGEST = 50 << 20
"""Bytes of a feature file: nearly three hours of sound."""


def read_features(path: Path) -> Floats:
    """(T, 13) of a feature file of Sphinx: the number of floats, and these, in either order of
    bytes. Errors: ``DataError`` for a file that is missing or damaged."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        raise unusable(path, error) from error
    if len(content) > _LARGEST:
        raise DataError(f"{path} has more than the {_LARGEST:,} bytes that are read: cut it")
    count = (len(content) - 4) // 4
    orders = (one for one in "><" if content[:4] == np.array(count, f"{one}i4").tobytes())
    order = next(orders, None)
    if order is None or count <= 0 or count % COEFFICIENTS or len(content) % 4:
        raise DataError(
            f"{path} is damaged or no feature file of {COEFFICIENTS} coefficients a frame: its "
            f"{len(content):,} bytes do not go with the number that they begin with"
        )
    found = np.frombuffer(content[4:], f"{order}f4").astype(np.float32)
    found = found.reshape(-1, COEFFICIENTS)
    if not (right := np.isfinite(found)).all():
        frame = int(np.argwhere(~right)[0][0])
        raise DataError(f"{path}: frame {frame:,} holds what is not a number")
    return found
