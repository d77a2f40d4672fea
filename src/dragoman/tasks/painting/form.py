"""The codes of pictures that a painter writes, which another run has learned: where they are, the
form that converts between them and pictures, and the pictures from which they were learned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from dragoman.base.errors import DataError, RunError
from dragoman.base.reading import hash_of_file, read_bytes
from dragoman.data.split import hash_of
from dragoman.forms.form import Pair
from dragoman.sources.file_examples import content_of
from dragoman.sources.picture.codes_form import CODES, WEIGHTS, Coder, CodesForm, CodeSymbols

LEARNED = "codes.learned"
"""The file in a painter's run with hashes of the pictures that its codes were learned from."""
_MOST = 1 << 32
"""The most bytes of a file of hashes."""


def codes_run(name: str | None) -> Path:
    """Return the run folder ``name``, which must have codes. Errors: ``DataError`` without a name,
    ``RunError`` for a folder without codes."""
    if name is None:
        raise DataError(
            "a painter needs the codes of another run. Create it with dragoman train FILES "
            "--task codes, and set --codes RUN (painting.codes)"
        )
    run = Path(name)
    if not run.is_dir():
        raise RunError(f"there is no run folder {run} (painting.codes)")
    if not (run / CODES).is_file():
        raise RunError(
            f"{run} has no codes of pictures. Create a run that has: dragoman train FILES --task "
            "codes"
        )
    return run


def form_of_codes(folder: Path) -> CodesForm:
    """Return the object that converts between the pictures of a painter and their codes, read from
    the run folder ``folder``. Errors: ``RunError``."""
    symbols, weights = CodeSymbols.load(folder / CODES), folder / WEIGHTS
    return CodesForm(symbols, partial(_coder, symbols, weights), weights, folder / LEARNED)


def _coder(symbols: CodeSymbols, weights: Path) -> Coder:
    from dragoman.models.picture_codes import PictureCoder
    from dragoman.training.weights import open_weights, weights_in

    if not weights.is_file():
        raise RunError(f"{weights} is missing, and the painter needs it. Restore the file")
    if hash_of_file(weights) != symbols.weights:
        raise RunError(
            f"{weights} is not the file that the painter was trained with ({CODES} has another "
            "hash). Restore the file"
        )
    with open_weights(weights) as opened:
        return PictureCoder.of(symbols, weights_in(opened), str(weights))


def count_seen(known: Path | None, pairs: Sequence[Pair]) -> int:
    """Return how many pictures of ``pairs`` have a hash that is in the file ``known``; 0 without a
    file. Errors: ``RunError`` if the file is damaged."""
    if known is None or not known.is_file() or not pairs:
        return 0
    content = read_bytes(known, _MOST)
    if len(content) % 8:
        raise RunError(f"{known} is damaged: {len(content):,} bytes are not a multiple of 8")
    wanted = np.array([hash_of(content_of(pair.target)) for pair in pairs], np.uint64)
    return int(np.isin(wanted, np.frombuffer(content, "<u8")).sum())
