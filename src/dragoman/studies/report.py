"""This module makes the full report of a comparison of trained runs: quality, training cost, speed,
memory, the cost of layers and the sweep of each run. It states the result in sentences
(``verdict``), and has the published results (Vaswani et al., 2017, tables 1 and 2) that
``report_page.py`` shows next to them.

The sentences depend only on the numbers. If a Transformer loses, the first sentence says so.

Operations are counted while plain torch computes: matrix products and convolutions, forward and
backward; a multiplication and an addition count as two (table 2: "training cost"). Sentences are
computed singly, so padding is not counted; nor is recomputation by which a faster implementation
saves memory.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from dragoman.base.errors import RecipeError
from dragoman.data.batches import make_batch
from dragoman.engine.machine import machine_facts
from dragoman.forms.form import Pair
from dragoman.insight.cost import Cost, attention_cost, gated_convolution_cost, recurrence_cost
from dragoman.metrics.significance import SIGNIFICANT, Comparison, SystemScore
from dragoman.models.interface import writing
from dragoman.models.settings import ModelSettings
from dragoman.runs.model import build_model
from dragoman.runs.prepare import Say
from dragoman.runs.run import Run
from dragoman.studies.by_length import ByLength, by_length
from dragoman.studies.comparison import ComparedTranslations, ComparisonReport
from dragoman.studies.records import minutes_of, parameters_of
from dragoman.studies.sweep import PLAN, Sweep
from dragoman.studies.systems import System, TurnPace, measure_in_turns
from dragoman.tasks.shared.progress_made import TrainingSummary
from dragoman.training.losses.loss import smoothed_cross_entropy

_COUNTED, _TIMED = 64, 500
"""The number of sentences that operations are counted on, and that are translated in turns."""

LAYER_OF: dict[str, Callable[[int, ModelSettings], Cost]] = {
    "transformer": lambda n, model: attention_cost(n, model.model_dim),
    "recurrent": lambda n, model: recurrence_cost(n, model.model_dim),
    "convolutional": lambda n, model: gated_convolution_cost(
        n, int(model.sizes["channels"]), int(model.sizes["kernel_width"])
    ),
}
"""The layer that mixes positions, by the kind of model: (length, settings) -> its cost."""
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


@dataclass(frozen=True, kw_only=True)
class Trained(Standing):
    """Training cost, speed and memory of one system, and its result in the comparison."""

    sizes: dict[str, int | str]
    parameters: int
    runs: int
    updates: int
    """The number of updates of its first run."""
    tokens: int
    """Target tokens of its first run."""
    minutes: float
    """Training time, the mean over its runs."""
    operations: float
    """Operations of the whole training: matrix products and convolutions."""
    pace: TurnPace
    layer: Cost | None
    """The cost of one layer that mixes positions, at the mean length of the test sentences."""
    sweep: str | None
    """The folder of the search that chose its settings."""


@dataclass(frozen=True)
class Report:
    """A comparison of systems with all its measurements."""

    compared: ComparisonReport
    trained: tuple[Trained, ...]
    """In the order of the systems."""
    length: int
    """Tokens of a test sentence in the first run's vocabulary, the mean over all."""
    counted: int
    """Test sentences that operations were counted on."""
    best: Comparison
    """BLEU compared with the best system."""
    lengths: ByLength
    sweeps: tuple[Sweep, ...]
    machine: tuple[tuple[str, str], ...]

    @property
    def verdict(self) -> list[str]:
        """Return the result of the comparison in words."""
        return verdict(self.trained, learned=self.compared.quality.learned)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            **self.compared.to_dict(),
            "verdict": self.verdict,
            "trained": [asdict(system) for system in self.trained],
            "against the best": [asdict(score) for score in self.best.scores],
            "tokens_per_sentence": self.length,
            "by source length": self.lengths.to_dict(),
            "sweeps": [
                {"folder": str(sweep.folder), "trials": [r.model_dump() for r in sweep.ranked]}
                for sweep in self.sweeps
            ],
            "paper": {
                "table 1": [asdict(layer) for layer in LAYERS],
                "table 2": [asdict(model) for model in MODELS],
            },
            "machine": dict(self.machine),
        }


def report(translated: ComparedTranslations, say: Say) -> Report:
    """Measure everything that a comparison of runs does not contain yet. No system may be a file,
    because nothing is known of its training.

    Errors: ``RunError`` for a run that cannot translate, or a sweep that is damaged.
    """
    compared, pairs = translated.compared, translated.measured.pairs
    some = pairs[:: max(1, len(pairs) // _COUNTED)][:_COUNTED]
    timed = [pair.source for pair in pairs[:: max(1, len(pairs) // _TIMED)][:_TIMED]]
    say(f"translating {len(timed)} sentences in turns")
    paces = measure_in_turns([system.runs[0].folder for system in compared.systems], timed)
    first = compared.systems[0].runs[0]
    read = first.source.tokens([pair.source for pair in pairs])
    length = round(fmean(len(tokens) + 1 for tokens in read))
    bleu = next(c for c in compared.quality.comparisons if c.metric == "BLEU")
    best = max(bleu.scores, key=lambda score: score.value).system
    against = next(c for c in translated.against(best).comparisons if c.metric == "BLEU")
    scores = {score.system: score for score in against.scores}
    trained = []
    for system, pace in zip(compared.systems, paces, strict=True):
        say(f"counting the operations of {system.name}")
        per_token = operations_per_token(system.runs[0], some)
        trained.append(_describe(system, scores[system.name], pace, per_token, length))
    return Report(
        compared,
        tuple(trained),
        length,
        len(some),
        against,
        by_length(pairs, translated.over),
        tuple(Sweep.open(Path(path)) for path in dict.fromkeys(t.sweep for t in trained) if path),
        tuple(machine_facts()),
    )


def sweep_beside(path: Path) -> Path | None:
    """The folder of the search for a run, if any: ``runs/x-sweep`` for ``runs/x``."""
    named = path if path.name else path.resolve()  # the path of the current folder has no name
    folder = named.with_name(f"{named.name}-sweep")
    return folder if (folder / PLAN).is_file() else None


def _describe(
    system: System, score: SystemScore, pace: TurnPace, per_token: float, length: int
) -> Trained:
    run = system.runs[0]
    model = run.recipe.model
    training = TrainingSummary.of(run)
    cost = LAYER_OF.get(model.kind)
    sweep = sweep_beside(system.path)
    return Trained(
        name=system.name,
        kind=model.kind,
        bleu=score.value,
        p_value=score.p_value,
        sentences_per_second=pace.sentences_per_second,
        sizes=model.sizes,
        parameters=parameters_of(run),
        runs=len(system.runs),
        updates=training.updates,
        tokens=training.tokens,
        minutes=fmean(map(minutes_of, system.runs)),
        operations=per_token * training.tokens,
        curve=tuple(
            CurvePoint(line["update"], line.get("elapsed", 0.0) / 60, line["scores"]["bleu"])
            for line in run.metrics()
            if line["kind"] == "validation"
            and line["weights"] != "average"
            and line["scores"].get("bleu") is not None
        ),
        pace=pace,
        layer=None if cost is None else cost(length, model),
        sweep=None if sweep is None else str(sweep),
        dev=_dev_of(run),
        machine=str(run.notes().get("machine", "")),
    )


def _dev_of(run: Run) -> str:
    """A fingerprint of the dev set and the search: equal for runs whose curves are comparable."""
    data, notes, how = run.recipe.data, run.notes(), run.recipe.evaluation
    if data.embedded is not None:
        dev: object = data.embedded
    elif data.dev is not None:
        dev = notes.get("held_out", {}).get("dev") or data.dev.model_dump_json()
    else:
        corpora = [corpus["sha256"] for corpus in notes.get("corpora", [])]
        dev = corpora, data.split.model_dump_json(), data.cleaning.model_dump_json()
    whole = repr((dev, data.moses, how.dev_sentences, how.dev_beam))
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def operations_per_token(run: Run, pairs: Sequence[Pair]) -> float:
    """Operations of one update for each target token of ``pairs``, end symbols included.

    Errors: ``RunError`` for vocabularies that are missing.
    """
    try:
        # The plain formula replaces torch's fused kernel, whose operations are not counted
        # everywhere.
        recipe = run.recipe.change(["model.attention.path=plain"])
    except RecipeError:
        recipe = run.recipe  # the model has no such setting
    model = writing(build_model(recipe, run.source, run.target))
    read = run.source.tokens([pair.source for pair in pairs])
    written = run.target.tokens([pair.target for pair in pairs])
    counter, tokens = FlopCounterMode(display=False), 0
    with counter, torch.enable_grad():
        for source_ids, target_ids in zip(read, written, strict=True):
            source, target = np.array(source_ids, np.int32), np.array(target_ids, np.int32)
            batch = make_batch([source], [target], run.target.bos, run.target.eos)
            hidden = model.decode(batch.target_in, model.encode(batch.source))
            loss, _ = smoothed_cross_entropy(model.project(hidden), batch.target_out, 0.0)
            loss.backward()
            model.zero_grad()
            tokens += batch.target_tokens
    return float(counter.get_total_flops()) / max(1, tokens)


@dataclass(frozen=True)
class PublishedLayer:
    """A row of table 1 of the paper. n: length, d: width, k: kernel."""

    kind: str
    """The kind of our models that has such layers."""
    name: str
    operations: str
    sequential: str
    path: str


LAYERS = (
    PublishedLayer("transformer", "self-attention", "O(n² · d)", "O(1)", "O(1)"),
    PublishedLayer("recurrent", "recurrent", "O(n · d²)", "O(n)", "O(n)"),
    PublishedLayer("convolutional", "convolutional", "O(k · n · d²)", "O(1)", "O(log_k n)"),
)


@dataclass(frozen=True)
class PublishedModel:
    """A row of table 2 of the paper: newstest2014, and the operations of its training."""

    kind: str
    """The kind of our models that corresponds to it."""
    name: str
    german: float
    """The BLEU score for English to German."""
    french: float
    """The BLEU score for English to French."""
    german_operations: float
    french_operations: float


MODELS = (
    PublishedModel("recurrent", "GNMT + RL (Wu et al., 2016)", 24.6, 39.92, 2.3e19, 1.4e20),
    PublishedModel("convolutional", "ConvS2S (Gehring et al., 2017)", 25.16, 40.46, 9.6e18, 1.5e20),
    PublishedModel("transformer", "Transformer, base", 27.3, 38.1, 3.3e18, 3.3e18),
    PublishedModel("transformer", "Transformer, big", 28.4, 41.8, 2.3e19, 2.3e19),
)
