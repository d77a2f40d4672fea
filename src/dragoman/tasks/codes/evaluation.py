"""What is measured of codes: while they are learned, and of a finished run.

RMSE: the root of the mean squared error of the pixels, which count from 0 to 255. Perplexity: of
the codes of all pictures together, exp of their entropy: so many codes as are as good as equally
frequent. A code that most places have makes few bits, and is easily guessed by a painter.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.pair import Pair
from dragoman.errors import DragomanError
from dragoman.forms.codes.codes_form import CodesForm
from dragoman.forms.rows.pictures_form import PicturesForm
from dragoman.models.picture_codes import PictureCoder, PictureCodes
from dragoman.plural import plural
from dragoman.runs.evaluation_set import nothing_to_measure, own_test_set
from dragoman.runs.lineage import warn_of_learned
from dragoman.runs.run import Run
from dragoman.runs.scores import keep_scores, scores_of, signed
from dragoman.specs.codes import CODES_TASK
from dragoman.tasks.codes.learning import PictureBatch, picture_batch
from dragoman.tasks.shared.evaluation_report import EvaluationReport
from dragoman.tasks.shared.given_files import corpus_like
from dragoman.tasks.shared.validation import Validation
from dragoman.training.records import Evaluation

SIGNATURE = "pixels 0-255, all channels"
_TOGETHER = 256

Bytes = npt.NDArray[np.uint8]


@dataclass
class CodesTally:
    """What is counted of some pictures, part by part."""

    count: int
    """How many codes there are."""

    def __post_init__(self) -> None:
        self._seen = np.zeros(self.count, np.int64)
        self._squares, self._values = 0.0, 0

    def add(self, patches: Bytes, told: Bytes, codes: npt.NDArray[np.int64]) -> None:
        """Some pictures, what their codes tell of them, and these codes."""
        self._squares += float(np.square(patches.astype(np.float64) - told).sum())
        self._values += patches.size
        self._seen += np.bincount(codes.ravel(), minlength=self.count)

    @property
    def scores(self) -> dict[str, float]:
        """By name."""
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


class CodesValidation(Validation[PictureBatch]):
    """All scores of all of dev, whose pictures are whole."""

    without = "of another size"

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[PictureBatch]]:
        read = self.forms.source.encode([pair.source for pair in pairs])
        parts = range(0, len(read), _TOGETHER)
        return list(pairs), [picture_batch(read[n : n + _TOGETHER]) for n in parts]

    def __call__(self, update: int) -> Evaluation:
        model, target = self.model, self.forms.target
        assert isinstance(model, PictureCodes) and isinstance(target, CodesForm)
        tally = CodesTally(target.symbols.count)
        with torch.inference_mode():
            for batch in self.batches:
                patches = batch.source.values.to(self.device)
                codes = model.codes(patches)
                told = model.pictures(codes)
                tally.add(patches.cpu().numpy(), told.cpu().numpy(), codes.cpu().numpy())
        return Evaluation(tally.scores, ())


@dataclass(frozen=True)
class CodesReport(EvaluationReport):
    """What codes keep of some pictures."""

    pictures: int
    places: int
    codes: int
    scores: dict[str, float]
    """By name."""
    chance: float
    """RMSE of the mean of all these pictures in place of each."""

    def table(self) -> str:
        """Plain text."""
        bits = self.scores["code_bits"] * self.places
        pictures, codes = plural(self.pictures, "picture"), plural(self.places, "code")
        amount = f"{pictures}, {codes} each, one of {self.codes:,}; {self.seconds:.1f} s"
        told = (
            f"The mean of these pictures in place of each has RMSE {self.chance:.2f}. Codes by "
            f"their frequency take {bits:,.0f} bits a picture."
        )
        scores = scores_of(CODES_TASK, self.scores)
        return "\n".join([self.head, amount, "", scores, "", told])

    def details(self) -> dict[str, Any]:
        return {
            "pictures": self.pictures,
            "codes": {"places": self.places, "count": self.codes},
            "scores": signed(self.scores, SIGNATURE),
            "chance": {"rmse": self.chance},
        }


def evaluate_run(
    run: str | Path | Run,
    files: Sequence[Path] = (),
    changes: Sequence[str] = (),
    *,
    keep: bool = True,
) -> CodesReport:
    """Turn some pictures into codes and back.

    ``files``: laid out as the training files are; without any, it is the recipe's test set, and
    with ``keep`` the figures are written to the run's scores.json.
    Errors: ``RunError`` for a run, ``DataError`` for files that cannot be used, ``DragomanError``
    for changes of a search, which there is not, and where there is nothing to measure on.
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    opened.require_task("codes", "which makes no codes of pictures")
    if changes:
        raise DragomanError(
            f"--set {changes[0]}: {opened.folder} makes codes, which are not searched for"
        )
    if files:
        pairs, test = list(read_pairs(corpus_like(opened, files))), files[0].name
    else:
        pairs, test = own_test_set(opened)
    if not pairs:
        raise nothing_to_measure(opened, "are no pictures", "a list of pictures", "test.tsv")
    warn_of_learned(opened, pairs)
    began = time.perf_counter()
    report = _measured(opened, pairs, test, began)
    if keep and not files:
        keep_scores(opened, report.to_dict(), own=True)
    return report


def _measured(run: Run, pairs: Sequence[Pair], test: str, began: float) -> CodesReport:
    source, target, network = run.forms.source, run.forms.target, run.model()
    assert isinstance(source, PicturesForm) and isinstance(target, CodesForm)
    assert isinstance(network, PictureCodes)
    symbols = target.symbols
    coder, tally = PictureCoder(network, symbols.places), CodesTally(symbols.count)
    read = []
    for first in range(0, len(pairs), _TOGETHER):
        patches = np.stack(source.encode([one.source for one in pairs[first : first + _TOGETHER]]))
        codes = coder.codes(patches)
        tally.add(patches, coder.pictures(codes), codes)
        read.append(patches)
    return CodesReport(
        run.folder.name, run.weights_summary, test, time.perf_counter() - began,
        len(pairs), symbols.places, symbols.count, tally.scores,
        error_of_mean(np.concatenate(read)),
    )  # fmt: skip


def error_of_mean(pictures: Bytes) -> float:
    """RMSE of the mean of some pictures in place of each: (N, ...) of bytes."""
    wide = pictures.astype(np.float64)
    return float(np.sqrt(np.square(wide - wide.mean(0)).mean()))
