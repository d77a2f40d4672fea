"""Evaluation of a painter, during training and of a finished run.

A picture is exact if all its codes are those of the true picture. A painted picture cannot be
better than its codes allow, so the RMSE of the true codes, which compares the picture that they
decode to with the true picture, is the lowest possible.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural
from dragoman.forms.form import Pair
from dragoman.sources.file_examples import content_of
from dragoman.sources.picture.codes_form import CodesForm
from dragoman.tasks.painting.form import count_seen
from dragoman.tasks.painting.painter import Bytes, Judge, PaintedPicture, Painter, painting_settings
from dragoman.tasks.shared.evaluation import (
    EvaluationRequest,
    ExampleSet,
    PairsEvaluation,
    SearchReport,
    clock,
    sign,
)
from dragoman.tasks.shared.validation import PairsValidation

logger = logging.getLogger("dragoman")

SIGNATURE = "codes of the true picture"
_COUNTED = (
    "A picture is exact if each of its codes is that of the true picture. RMSE uses pixels from "
    "0 to 255; the RMSE of the true codes is the lowest possible."
)
_JUDGED = (
    "A picture is judged right if {judge} reads one of the captions of the true picture in it. "
    "The judge's own errors count too; see its scores on the true pictures and on the true codes."
)


class PaintingValidation(PairsValidation):
    """Scores on the dev set. ``loss`` (nats per code, with the end symbol) is computed on all
    pairs; ``exact`` and ``codes_right`` on the results of full searches for a part of them."""

    without = "longer than plan.max_source or what the model has positions for"

    def search(self, pairs: Sequence[Pair]) -> tuple[dict[str, float], Sequence[str]]:
        captions, painter = [pair.source for pair in pairs], Painter.over(self.engine())
        pictures = [best for best, *_ in painter.stream(captions, self.search_settings())]
        true = self.forms.target.tokens([pair.target for pair in pairs])
        right = code_scores(true, [picture.ids for picture in pictures])
        return right, [picture.text for picture in pictures]


def code_scores(true: Sequence[Sequence[int]], drawn: Sequence[Sequence[int]]) -> dict[str, float]:
    """Return the share of pictures with all codes right (``exact``), and the share of right codes
    (``codes_right``), from 0 to 1. ``true`` and ``drawn``: the codes of each picture."""
    pairs = list(zip(true, drawn, strict=True))
    exact = sum(list(wanted) == list(painted) for wanted, painted in pairs)
    right = sum(a == b for wanted, painted in pairs for a, b in zip(wanted, painted, strict=False))
    codes = sum(map(len, true))
    return {"exact": exact / max(1, len(pairs)), "codes_right": right / max(1, codes)}


@dataclass(frozen=True)
class PaintingReport(SearchReport):
    """The pictures that a run painted from some captions, and their scores."""

    scores: dict[str, float]
    """The scores of the pictures by name."""
    pictures: Sequence[PaintedPicture]
    seen: int
    """The number of these pictures from which the codes were learned."""
    judge: str = ""
    """The name of the run that judged the pictures; "" without a judge."""
    best_of: int = 1
    """The number of pictures of each caption, from which the judge chose one."""

    def table(self) -> str:
        """Return the whole report as plain text."""
        notes = [_COUNTED]
        if self.judge:
            notes.append(_JUDGED.format(judge=self.judge))
        if self.best_of > 1:
            notes.append(
                f"Of {self.best_of} pictures of each caption, {self.judge} has chosen the one in "
                "which the caption is most probable to it, so its score of them is optimistic."
            )
        if self.seen:
            notes.append(
                f"The codes were learned from {self.seen:,} of these {len(self.pictures):,} "
                "pictures."
            )
        amount = self.amount(plural(len(self.pictures), "caption"))
        return self.lines(amount, self.scores, notes)

    def details(self) -> dict[str, Any]:
        return {
            "scores": sign(self.scores, SIGNATURE),
            "codes_learned_from": self.seen,
            **({"judge": self.judge, "best_of": self.best_of} if self.judge else {}),
        }


class PaintingEvaluation(PairsEvaluation[PaintingReport]):
    """Paints the captions of pictures that are given in the layout of the training files, and
    compares the results with the pictures."""

    wanted = "are no captions", "a list of pictures", "test.tsv"

    def examples(self, asked: EvaluationRequest) -> ExampleSet:
        examples = super().examples(asked)
        if asked.best_of > 1 and asked.judge is None:
            raise DragomanError("--best-of: a judge must choose. Set --judge RUN")
        return examples

    def report(self, asked: EvaluationRequest, examples: ExampleSet) -> PaintingReport:
        run, pairs, best_of = asked.run, examples.pairs, asked.best_of
        judge = None if asked.judge is None else Judge(asked.judge, asked.precision)
        search = asked.search
        painter, form = Painter(run, asked.settings(), search), CodesForm.of(run.forms.target)
        if best_of > 1:
            search = painting_settings(search, best_of, None, search.sampling)
        logger.info("%s paints %s", run.folder, plural(len(pairs), "caption"))
        captions, chooses = [pair.source for pair in pairs], judge if best_of > 1 else None
        pictures, seconds = clock(
            lambda: [best for best, *_ in painter.stream(captions, search, chooses)]
        )
        true = form.tokens([pair.target for pair in pairs])
        scores = code_scores(true, [picture.ids for picture in pictures])
        scored = painter.score_ids(captions, true)
        tokens = sum(len(hypothesis.token_log_probabilities) for hypothesis in scored)
        scores["loss"] = -sum(hypothesis.log_probability for hypothesis in scored) / max(1, tokens)
        wanted = [form.picture_at(pair.target) for pair in pairs]
        decoded, painted = form.pictures(true), [picture.pixels for picture in pictures]
        scores["rmse"], scores["rmse_of_codes"] = _rmse(wanted, painted), _rmse(wanted, decoded)
        if judge is not None:
            judged = {"judged": painted, "judged_of_codes": decoded, "judged_of_true": wanted}
            scores |= {name: share_right(judge, pairs, every) for name, every in judged.items()}
        how = f"beam {search.beam}"
        if search.sampling is not None:
            how = "sampled pictures"
        return PaintingReport(
            *asked.about(examples.name, seconds), how, painter.description, pairs,
            [picture.text for picture in pictures], scores, pictures, count_seen(form.seen, pairs),
            judge.run.folder.name if judge is not None else "", best_of,
        )  # fmt: skip


def share_right(judge: Judge, pairs: Sequence[Pair], pictures: Sequence[Bytes]) -> float:
    """Return the share of ``pictures``, from 0 to 1, in which a judge reads a right caption. Right
    are all captions that ``pairs`` have for the same true picture."""
    captions: dict[str, set[str]] = {}
    for pair in pairs:
        captions.setdefault(content_of(pair.target), set()).add(_plain(pair.source))
    right = sum(
        _plain(read) in captions[content_of(pair.target)]
        for pair, read in zip(pairs, judge.captions(pictures), strict=True)
    )
    return right / max(1, len(pairs))


def _plain(caption: str) -> str:
    """Return a caption in lower case, with single spaces."""
    return " ".join(caption.lower().split())


def _rmse(wanted: Sequence[Bytes], painted: Sequence[Bytes]) -> float:
    return math.sqrt(float(np.square(np.stack(wanted).astype(np.float64) - painted).mean()))
