"""Training examples, loss and evaluation of an autoencoder of pictures, during training and of a
finished run.

RMSE: the root of the mean squared error of the pixels, from 0 to 255. Perplexity: exp of the
entropy of the codes of all pictures together, the number of equally frequent codes with the same
entropy. A code that fills most places carries few bits, and a painter guesses it easily.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from dragoman.base.wording import plural
from dragoman.data.batches import ExampleBatch, Values, rows_of, with_symbol
from dragoman.data.store import TokenStore
from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.models.interface import Network
from dragoman.models.picture_codes import PictureCodes, scale_bytes
from dragoman.nn.layout import Sequences
from dragoman.runs.recipe.recipe import Recipe
from dragoman.sources.picture.codes_form import CodesForm
from dragoman.tasks.shared.evaluation import (
    EvaluationReport,
    EvaluationRequest,
    ExampleSet,
    PairsEvaluation,
    sign,
)
from dragoman.tasks.shared.examples import Examples
from dragoman.tasks.shared.validation import Validation
from dragoman.training.losses.objectives import Sums
from dragoman.training.records import Evaluation


@dataclass(frozen=True)
class PictureBatch(ExampleBatch):
    """A micro-batch of whole pictures, cut into patches."""

    source: Sequences
    """(P, F) the bytes of the patches."""
    ids: tuple[int, ...]
    """The number of each picture in the store."""

    def summary(self) -> str:
        """The size of the batch, in words."""
        patches = plural(self.source.layout.total, "patch", "patches")
        return f"{plural(len(self), 'picture')}, {patches}"

    def part(self, first: int, last: int) -> PictureBatch:
        return PictureBatch(rows_of(self.source, first, last), self.ids[first:last])


class Pictures(Examples):
    """The training examples: pictures (``tasks.shared.examples.Examples``)."""

    def __init__(self, store: TokenStore, recipe: Recipe, forms: Forms) -> None:
        super().__init__(store)
        self.lengths = {"target": store.lengths["source"] - 1}

    def batch(self, update: int, examples: Sequence[int]) -> PictureBatch:
        pictures = [self._store.values("source", example) for example in examples]
        return PictureBatch(with_symbol(pictures, None), tuple(map(int, examples)))


class SquaredError:
    """The mean squared error of the pixels of a picture, from -1 to 1."""

    def __init__(self, model: Network, smoothing: float) -> None:
        """There are no labels to smooth."""

    def __call__(self, model: Network, batch: PictureBatch) -> Sums:
        decoded = model.project(model.encode(batch.source).rows).float()
        error = F.mse_loss(decoded, scale_bytes(batch.source.values, decoded.dtype))
        loss = error * len(batch)
        return Sums(loss, loss.detach(), len(batch))


SIGNATURE = "pixels 0-255, all channels"
_TOGETHER = 256

Bytes = npt.NDArray[np.uint8]


@dataclass
class CodesTally:
    """Counts over some pictures, added batch by batch."""

    count: int
    """The number of different codes that exist."""

    def __post_init__(self) -> None:
        self._seen = np.zeros(self.count, np.int64)
        self._squares, self._values = 0.0, 0

    def add(self, patches: Bytes, decoded: Bytes, codes: npt.NDArray[np.int64]) -> None:
        """Add some pictures, the pictures decoded from their codes, and these codes."""
        self._squares += float(np.square(patches.astype(np.float64) - decoded).sum())
        self._values += patches.size
        self._seen += np.bincount(codes.ravel(), minlength=self.count)

    @property
    def scores(self) -> dict[str, float]:
        """Return the scores of the codes by name."""
        error = self._squares / max(1, self._values)
        shares = self._seen[self._seen > 0] / max(1, self._seen.sum())
        entropy = float(-(shares * np.log(shares)).sum())
        return {
            "rmse": math.sqrt(error),
            "code_perplexity": math.exp(entropy),
            "codes_used": float(len(shares)),
            "code_bits": entropy / math.log(2),
            "loss": error * (2 / 255) ** 2,
        }


def tally_of(
    network: PictureCodes, pictures: Sequence[Values], count: int, device: Any = "cpu"
) -> CodesTally:
    """Encode and decode pictures, and count over them; ``count`` is that of the tally."""
    tally = CodesTally(count)
    with torch.inference_mode():
        for first in range(0, len(pictures), _TOGETHER):
            patches = torch.from_numpy(np.concatenate(pictures[first : first + _TOGETHER]))
            codes = network.codes(patches.to(device))
            decoded = network.pictures(codes)
            tally.add(patches.numpy(), decoded.cpu().numpy(), codes.cpu().numpy())
    return tally


class CodesValidation(Validation[Values]):
    """All scores, on all of dev."""

    without = "of another size"

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[Values]]:
        return list(pairs), self.forms.source.encode([pair.source for pair in pairs])

    def __call__(self, update: int) -> Evaluation:
        assert isinstance(self.model, PictureCodes)
        count = CodesForm.of(self.forms.target).symbols.count
        return Evaluation(tally_of(self.model, self.batches, count, self.device).scores, ())


@dataclass(frozen=True)
class CodesReport(EvaluationReport):
    """The quality of the codes of some pictures."""

    pictures: int
    places: int
    codes: int
    scores: dict[str, float]
    """The scores of the codes by name."""
    chance: float
    """The RMSE if every picture were replaced by the mean of all these pictures."""

    def table(self) -> str:
        """Return the whole report as plain text."""
        bits = self.scores["code_bits"] * self.places
        pictures, codes = plural(self.pictures, "picture"), plural(self.places, "code")
        amount = f"{pictures}, {codes} each, one of {self.codes:,}; {self.seconds:.1f} s"
        note = (
            f"The mean of these pictures instead of each has RMSE {self.chance:.2f}. Codes by "
            f"their frequency take {bits:,.0f} bits a picture."
        )
        return self.lines(amount, self.scores, [note])

    def details(self) -> dict[str, Any]:
        return {
            "pictures": self.pictures,
            "codes": {"places": self.places, "count": self.codes},
            "scores": sign(self.scores, SIGNATURE),
            "chance": {"rmse": self.chance},
        }


class CodesEvaluation(PairsEvaluation[CodesReport]):
    """Encodes and decodes some pictures, given in the layout of the training files."""

    wanted = "are no pictures", "a list of pictures", "test.tsv"

    def report(self, asked: EvaluationRequest, examples: ExampleSet) -> CodesReport:
        run, pairs = asked.run, examples.pairs
        began = time.perf_counter()
        symbols, network = CodesForm.of(run.forms.target).symbols, run.model()
        assert isinstance(network, PictureCodes)
        read = run.source.encode([pair.source for pair in pairs])
        scores = tally_of(network, read, symbols.count).scores
        return CodesReport(
            *asked.about(examples.name, time.perf_counter() - began), len(pairs),
            symbols.places, symbols.count, scores, error_of_mean(np.stack(read)),
        )  # fmt: skip


def error_of_mean(pictures: Bytes) -> float:
    """RMSE of some pictures (N, ...) of bytes against their mean."""
    wide = pictures.astype(np.float64)
    return float(np.sqrt(np.square(wide - wide.mean(0)).mean()))
