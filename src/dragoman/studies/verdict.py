"""The result of a comparison in words that follow only from its numbers.

If a Transformer loses, the first sentence says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.metrics.significance import SIGNIFICANT

FAMILY_NAMES = {
    "transformer": "a Transformer",
    "recurrent": "an LSTM with attention",
    "convolutional": "a convolutional model",
}
"""The kinds of models, in words."""


_TRANSLATES = 1.0
"""The BLEU below which a system does not translate yet."""


@dataclass(frozen=True)
class CurvePoint:
    """A validation of a run in the course of its training."""

    update: int
    minutes: float
    value: float
    """The BLEU score on the dev sentences."""


@dataclass(frozen=True)
class Standing:
    """The result of a system in the comparison."""

    name: str
    kind: str
    """The kind of model as in a recipe; "" for a file of translations."""
    bleu: float
    p_value: float | None
    """The p-value of the difference to the best system; None for the best one."""
    curve: Sequence[CurvePoint] = ()
    """BLEU on dev, of its first run."""
    sentences_per_second: float | None = None
    dev: str = ""
    """A fingerprint of the dev set and the search; curves are comparable only if it is the same."""
    machine: str = ""
    """The processor that trained it; "" if that was not recorded."""

    @property
    def described(self) -> str:
        """The name and the kind of the system."""
        family = FAMILY_NAMES.get(self.kind, f"of kind {self.kind}" if self.kind else "")
        return f"{self.name} ({family})" if family else self.name


def verdict(standings: Sequence[Standing], *, learned: bool = True) -> list[str]:
    """Sentences on quality, learning and speed of two or more systems. There is no winner if none
    has ``learned`` anything."""
    ranked = sorted(standings, key=lambda system: -system.bleu)
    if not learned:
        scores = ", ".join(f"{system.described} {system.bleu:.1f}" for system in ranked)
        none = f"None of them translates yet (BLEU: {scores}), so none is better than another."
        return [none, *_speed(standings)]
    return [_quality(ranked), *_learning(standings), *_speed(standings)]


def _quality(ranked: Sequence[Standing]) -> str:
    best, *others = ranked
    transformers = [system for system in ranked if system.kind == "transformer"]
    kinds = {system.kind for system in ranked}
    behind = "; ".join(_place_behind(best, system) for system in others)
    highest = f"{best.described} has the highest BLEU, {best.bleu:.1f}; {behind}."
    if not transformers or len(kinds) < 2:
        return highest
    champion = transformers[0]
    if champion is best:
        rivals = [system for system in others if system.kind != "transformer"]
        if rivals and all(map(_is_sure, rivals)):
            return f"The Transformer won: {highest}"
        return f"The Transformer is ahead, but not significantly ahead of all: {highest}"
    if _is_sure(champion):
        return f"The Transformer lost: {highest}"
    return f"The Transformer did not win: {highest}"


def _is_sure(system: Standing) -> bool:
    """Return whether the difference to the best system is significant."""
    return system.p_value is not None and system.p_value < SIGNIFICANT


def _place_behind(best: Standing, system: Standing) -> str:
    gap = f"{system.described} has {system.bleu:.1f}, {best.bleu - system.bleu:.1f} less"
    if system.p_value is None:
        return gap
    luck = "" if _is_sure(system) else ", which may be luck"
    return f"{gap} (p = {system.p_value:.3f}{luck})"


def common_level(standings: Sequence[Standing]) -> float | None:
    """A dev BLEU that all systems reached: 95 % of the lowest maximum. None without curves, or if a
    system hardly translates."""
    tops = [max((point.value for point in system.curve), default=0.0) for system in standings]
    level = 0.95 * min(tops, default=0.0)
    return level if level >= _TRANSLATES else None


def minutes_to(system: Standing, level: float) -> float:
    """Minutes of training until dev BLEU was ``level``, interpolated linearly between validations.

    A validation of the untrained model is not needed: every curve begins at 0 BLEU and 0 minutes.
    """
    before = CurvePoint(0, 0.0, 0.0)
    for point in system.curve:
        if point.value >= level:
            share = (level - before.value) / max(point.value - before.value, 1e-12)
            return before.minutes + share * (point.minutes - before.minutes)
        before = point
    return math.inf


def _learning(standings: Sequence[Standing]) -> list[str]:
    trained = [system for system in standings if system.curve]
    if len(trained) < 2:
        return []
    if len({system.dev for system in trained}) > 1:
        return ["Their dev sets differ, so their curves cannot be compared."]
    level = common_level(trained)
    if level is None:
        return []
    if len({system.machine for system in trained}) > 1:
        return ["They were trained on different machines, so their minutes cannot be compared."]
    times = sorted(((minutes_to(system, level), system) for system in trained), key=lambda x: x[0])
    (least, first), *rest = times
    slower = ", ".join(
        f"{system.described} {minutes:.1f} ({minutes / max(least, 1e-9):.1f} times as long)"
        for minutes, system in rest
    )
    where = "" if first.machine else " It is not known whether one machine trained all of them."
    sentence = (
        f"To {level:.1f} BLEU on dev, which all of them reached, {first.described} took the least "
        f"time, {least:.1f} minutes; {slower}.{where}"
    )
    return [sentence]


def _speed(standings: Sequence[Standing]) -> list[str]:
    timed = [(speed, system) for system in standings if (speed := system.sentences_per_second)]
    if len(timed) < 2:
        return []
    (most, first), *rest = sorted(timed, key=lambda pair: -pair[0])
    others = ", ".join(f"{system.described} {speed:,.0f}" for speed, system in rest)
    return [f"{first.described} translates the most sentences a second, {most:,.0f}; {others}."]
