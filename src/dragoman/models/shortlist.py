"""Which target tokens a source can lead to, so that the output layer need not score all of them.

A sentence may use the best candidates of each of its tokens, its own tokens (names are copied),
and the tokens that are frequent everywhere. ``inference/shortlist.py`` learns them.

A shortlist lies in a run as a file derived from it and is keyed by a hash given by the caller.

Shapes: S source vocabulary, C candidates of all source tokens together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from dragoman.atomic import replacing_file
from dragoman.errors import RunError
from dragoman.tensor_file import open_tensors

Integers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Shortlist:
    """Candidates of every source token."""

    always: Integers
    """Tokens that any source may lead to."""
    offsets: Integers
    """(S + 1,): the candidates of token s are ``candidates[offsets[s]:offsets[s + 1]]``."""
    candidates: Integers
    """(C,)"""

    def allowed(self, source: npt.ArrayLike) -> Integers:
        """The target tokens that a source (length,) may use, sorted."""
        parts = [self.always]
        for token in np.unique(np.asarray(source)).tolist():
            parts.append(self.candidates[self.offsets[token] : self.offsets[token + 1]])
        found: Integers = np.unique(np.concatenate(parts))
        return found

    def save(self, path: Path, key: str) -> None:
        """Write it, whole or not at all; ``key`` says what it was derived from."""
        arrays = {"always": self.always, "offsets": self.offsets, "candidates": self.candidates}
        with replacing_file(path) as temporary:
            save_file(arrays, temporary, metadata={"key": key})

    @classmethod
    def load(
        cls, path: Path, key: str, source_vocabulary: int, target_vocabulary: int, eos: int
    ) -> Shortlist | None:
        """Read it; None if there is none or it was derived from something else.

        ``eos``: the end symbol of the target, without which no output would end.

        Errors: ``RunError`` for a damaged file: the native kernels go by what it says.
        """
        if not path.exists():
            return None
        try:
            with open_tensors(path, "I32") as file:
                if file.metadata.get("key") != key:
                    return None
                if set(file.shapes) != {"always", "offsets", "candidates"}:
                    raise RunError(f"{path} is damaged (it is no shortlist)")
                found = cls(*(file.read(name) for name in ("always", "offsets", "candidates")))
            found._check(source_vocabulary, target_vocabulary, eos)
        except RunError as error:
            raise RunError(f"{error}: delete {path} and learn it again") from error
        return found

    def _check(self, source_vocabulary: int, target_vocabulary: int, eos: int) -> None:
        """Errors: ``RunError`` unless every number is one that ``learn`` could have written."""
        offsets = self.offsets
        if any(array.ndim != 1 for array in (self.always, offsets, self.candidates)):
            raise RunError("the shortlist is damaged (it is no list)")
        if len(offsets) != source_vocabulary + 1:
            raise RunError(
                f"the shortlist is damaged (it is for {len(offsets) - 1:,} source tokens, not "
                f"{source_vocabulary:,})"
            )
        ends = offsets[0] == 0 and offsets[-1] == len(self.candidates)
        if not ends or (offsets[1:] < offsets[:-1]).any():
            raise RunError("the shortlist is damaged (its offsets lead out of it)")
        for ids in (self.always, self.candidates):
            if len(ids) and not 0 <= ids.min() <= ids.max() < target_vocabulary:
                raise RunError("the shortlist is damaged (it holds tokens that are none)")
        if eos not in self.always:
            raise RunError("the shortlist is damaged (it lacks the end symbol)")
