"""This module keeps the word links of all training examples in one file.

Words are counted from 0. A word begins with a piece that follows a space.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from dragoman.base.atomic import replacing_file
from dragoman.base.errors import RunError
from dragoman.base.tensor_file import open_tensors
from dragoman.forms.form import Form
from dragoman.forms.subwords.sampling import SPACE
from dragoman.forms.subwords.text import Text
from dragoman.metrics.alignment import Links

Integers = npt.NDArray[np.int32]
Booleans = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


class WordLinks:
    """The word links of N examples."""

    def __init__(self, offsets: Integers, source: Integers, target: Integers) -> None:
        """``source`` and ``target`` are the words of each link; those of example n are
        ``offsets[n]:offsets[n + 1]``."""
        self._offsets, self._source, self._target = offsets, source, target

    @classmethod
    def of(cls, examples: Iterable[Links]) -> WordLinks:
        """Collect the links of all examples, in their order."""
        sizes, links = [0], []
        for example in examples:
            links += sorted(example)
            sizes.append(len(links))
        pairs = np.array(links, np.int32).reshape(-1, 2)
        columns = (np.ascontiguousarray(pairs[:, side]) for side in (0, 1))
        return cls(np.array(sizes, np.int32), *columns)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, example: int) -> tuple[Integers, Integers]:
        """Return the source words and the target words of an example's links."""
        part = slice(self._offsets[example], self._offsets[example + 1])
        return self._source[part], self._target[part]

    @property
    def linked(self) -> int:
        """The number of examples with a link."""
        return int((np.diff(self._offsets) > 0).sum())

    def save(self, path: Path, key: str) -> None:
        """Write the links, all or nothing; ``key`` identifies their origin."""
        arrays = {"offsets": self._offsets, "source": self._source, "target": self._target}
        with replacing_file(path) as temporary:
            save_file(arrays, temporary, metadata={"key": key})

    @classmethod
    def load(cls, path: Path, key: str, examples: int) -> WordLinks | None:
        """Read the links; None if there is no file, or its key differs.

        Errors: ``RunError`` for a damaged file.
        """
        if not path.exists():
            return None
        with open_tensors(path, "I32") as file:
            if file.metadata.get("key") != key:
                return None
            if set(file.shapes) != {"offsets", "source", "target"}:
                raise RunError(f"{path} is damaged: it contains no links. Delete it")
            offsets, source, target = (file.read(n) for n in ("offsets", "source", "target"))
        whole = (
            offsets.shape == (examples + 1,)
            and source.ndim == 1
            and source.shape == target.shape
            and offsets[0] == 0
            and offsets[-1] == len(source)
            and not (np.diff(offsets) < 0).any()
            and min(source.min(initial=0), target.min(initial=0)) >= 0
        )
        if not whole:
            raise RunError(f"{path} is damaged: its links point outside of the file. Delete it")
        return cls(offsets, source, target)


def word_starts(vocabulary: Text) -> Booleans:
    """Return (V,) flags, True if a token begins a word."""
    return np.array(
        [piece.startswith(SPACE) for piece in vocabulary.pieces(range(vocabulary.size))]
    )


def starts_of(form: Form) -> Booleans:
    """Return (V,) flags, True if a token begins a word. Without a vocabulary all are True."""
    if form.vocabulary is None:
        return np.ones(form.size, np.bool_)
    return word_starts(form.vocabulary)


def words_of(tokens: Sequence[int] | npt.NDArray[np.integer], starts: Booleans) -> Numbers:
    """Return (length,) the number of each token's word. Those before the first space are a word."""
    begins = starts[np.asarray(tokens, np.int64)]
    begins[:1] = True
    return begins.cumsum() - 1
