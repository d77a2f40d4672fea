"""Average precision of boxes, as COCO counts it (pycocotools' ``COCOeval`` of boxes).

For each category, the boxes of all pictures are ranked by score. In this order, each box is matched
with the free reference box that it overlaps most, if the overlap reaches a threshold. The precision
at a recall is the highest at this or any higher recall; its mean at 101 points of recall is the
average precision (AP) of that category and threshold. AP50 has the threshold 0.50; AP is the mean
over 0.50, 0.55 ... 0.95. Both are means over the categories of the reference. At most 100 boxes
count for each picture and category. A reference box that is marked as a crowd counts neither as
missed nor as wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.forms.boxes import Box

THRESHOLDS = np.linspace(0.5, 0.95, 10)
"""The least overlap of two matched boxes, as intersection over union."""
MOST = 100
"""The most boxes of a category that count in one picture."""
_RECALLS = np.linspace(0, 1, 101)
_AREAS = {"": (0.0, 1e10), "_s": (0.0, 32.0**2), "_m": (32.0**2, 96.0**2), "_l": (96.0**2, 1e10)}
"""Limits of the area of boxes, by the suffix of the score: COCO's small, medium, large."""

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ScoredBox:
    """A box that was found, and its score."""

    box: Box
    score: float


@dataclass(frozen=True)
class AveragePrecision:
    """The scores of the boxes in some pictures."""

    pictures: int
    boxes: int
    """The number of boxes in the reference, without crowds."""
    scores: dict[str, float]
    """ap50 and ap; also ap_s, ap_m and ap_l for small, medium and large boxes, if the reference has
    boxes of more than one of these sizes. From 0 to 1."""
    by_label: dict[str, tuple[float, float, int]]
    """For each category AP50, AP, and the number of boxes in the reference."""
    sizes: tuple[str, ...]
    """The sizes of boxes in the reference: s, m, l."""

    def to_dict(self) -> dict[str, Any]:
        """Return the scores by category as plain values, for JSON."""
        rows = {
            label: {"ap50": ap50, "ap": ap, "boxes": boxes}
            for label, (ap50, ap, boxes) in self.by_label.items()
        }
        return {"pictures": self.pictures, "boxes": self.boxes, "categories": rows}


def average_precision(
    references: Sequence[Sequence[Box]], scored: Sequence[Sequence[ScoredBox]]
) -> AveragePrecision:
    """Score the boxes that were found in pictures. ``references`` and ``scored``: a list of boxes
    for each picture, in the same order."""
    single = [box for boxes in references for box in boxes if not box.crowd]
    labels = sorted({box.label for box in single})
    scores, by_label, sizes = {}, {}, []
    for name, area in _AREAS.items():
        means = {
            label: mean
            for label in labels
            if (mean := _of_label(label, references, scored, area)) is not None
        }
        if not name:
            for label, of_thresholds in means.items():
                count = sum(box.label == label for box in single)
                by_label[label] = (float(of_thresholds[0]), float(of_thresholds.mean()), count)
            if means:
                scores["ap50"] = float(np.mean([mean[0] for mean in means.values()]))
        elif means:
            sizes.append(name[1:])
        if means:
            scores[f"ap{name}"] = float(np.mean(list(means.values())))
    if len(sizes) < 2:
        scores = {name: scores[name] for name in ("ap50", "ap") if name in scores}
    return AveragePrecision(len(references), len(single), scores, by_label, tuple(sizes))


def _of_label(
    label: str,
    references: Sequence[Sequence[Box]],
    scored: Sequence[Sequence[ScoredBox]],
    area: tuple[float, float],
) -> Floats | None:
    """Return the AP of a category at each of ``THRESHOLDS``, or None if the reference has no box of
    it that counts. ``area``: the limits of the area of the boxes that count."""
    scores: list[float] = []
    hits: list[Booleans] = []
    ignored: list[Booleans] = []
    wanted = 0
    for boxes, guesses in zip(references, scored, strict=True):
        own = [box for box in boxes if box.label == label]
        ranked = [guess for guess in guesses if guess.box.label == label]
        ranked = sorted(ranked, key=lambda guess: -guess.score)[:MOST]
        counts = np.array([not box.crowd and area[0] <= box.size <= area[1] for box in own], bool)
        wanted += int(counts.sum())
        if ranked:
            hit, ignore = _match(own, counts, [guess.box for guess in ranked], area)
            scores += [guess.score for guess in ranked]
            hits.append(hit)
            ignored.append(ignore)
    if not wanted:
        return None
    if not scores:
        return np.zeros(len(THRESHOLDS))
    order = np.argsort(-np.array(scores), kind="mergesort")
    hit, counted = np.hstack(hits)[:, order], ~np.hstack(ignored)[:, order]
    right = np.cumsum(hit & counted, axis=1, dtype=float)
    wrong = np.cumsum(~hit & counted, axis=1, dtype=float)
    return np.array([_area_under(r, w, wanted) for r, w in zip(right, wrong, strict=True)])


def _match(
    own: Sequence[Box], counts: Booleans, guesses: Sequence[Box], area: tuple[float, float]
) -> tuple[Booleans, Booleans]:
    """Return two arrays (T, G): which of the G boxes ``guesses`` match one of the reference boxes
    ``own`` at each of T thresholds, and which are not counted at all: their reference box does not
    count (``counts``), or they match none and their area is outside ``area``."""
    order = np.argsort(~counts, kind="mergesort")  # boxes that count come first
    own, counts = [own[place] for place in order], counts[order]
    overlaps = _overlaps(guesses, own)
    hit = np.zeros((len(THRESHOLDS), len(guesses)), bool)
    ignored = np.zeros_like(hit)
    for row, threshold in enumerate(THRESHOLDS):
        free = np.ones(len(own), bool)
        for place in range(len(guesses)):
            best, at = min(threshold, 1 - 1e-10), -1
            for number, box in enumerate(own):
                if not free[number] and not box.crowd:
                    continue
                if at >= 0 and counts[at] and not counts[number]:
                    break  # a box that counts is preferred
                if overlaps[place, number] >= best:
                    best, at = overlaps[place, number], number
            if at >= 0:
                hit[row, place], ignored[row, place], free[at] = True, not counts[at], False
    sizes = np.array([box.width * box.height for box in guesses])
    outside = (sizes < area[0]) | (sizes > area[1])
    return hit, ignored | (~hit & outside[None])


def _overlaps(guesses: Sequence[Box], own: Sequence[Box]) -> Floats:
    """Return (G, R): the intersection of each guess with each reference box (``own``), as a share
    of their union; if the reference box is a crowd, as a share of the guess."""
    guess = np.array([box[1:5] for box in guesses], float).reshape(-1, 1, 4)
    reference = np.array([box[1:5] for box in own], float).reshape(1, -1, 4)
    ends = np.minimum(guess[..., :2] + guess[..., 2:], reference[..., :2] + reference[..., 2:])
    sides = np.maximum(ends - np.maximum(guess[..., :2], reference[..., :2]), 0)
    both = sides.prod(-1)
    whole = guess[..., 2:].prod(-1)
    crowds = np.array([box.crowd for box in own], bool)[None]
    union: Floats = np.where(crowds, whole, whole + reference[..., 2:].prod(-1) - both)
    shares: Floats = both / union
    return shares


def _area_under(right: Floats, wrong: Floats, wanted: int) -> float:
    """Return the mean precision at 101 points of recall. ``right`` and ``wrong``: the numbers of
    right and wrong boxes up to each rank; ``wanted``: the number of boxes in the reference."""
    recall = right / wanted
    precision = right / (right + wrong + np.spacing(1))
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    places = np.searchsorted(recall, _RECALLS, side="left")
    reached = places < len(precision)
    return float(precision[places[reached]].sum() / len(_RECALLS))
