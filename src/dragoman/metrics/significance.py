"""Tests of significance: is one system better than another, or merely luckier on this test set?

Two tests, both over the same sentences for both systems:

- *paired bootstrap* (Koehn, 2004, "Statistical Significance Tests for Machine Translation
  Evaluation"): score both systems on many test sets drawn from this one with replacement. It also
  gives the 95 % interval of each score.
- *approximate randomisation* (Riezler and Maxwell, 2005): exchange the outputs of the two systems
  sentence by sentence at random and see how often chance alone makes a difference as large.

A system may be several runs of one recipe that differ by their seed alone. Its score is then the
mean over its runs, on every drawn test set as on this one, and their standard deviation stands
beside. The p-value is about the sentences, the deviation about the seeds: neither says what the
other does.

The procedure and the random draws are those of sacreBLEU's paired tests (``sacrebleu --paired-bs``
and ``--paired-ar``), but each metric is computed for many samples at once from the statistics of
the sentences, in about half the time. The p-values depart from sacreBLEU's in two ways:

- a sample whose difference is as large as the one that is seen counts as well, within rounding.
  sacreBLEU counts larger ones alone, and so finds one differing sentence of many significant;
- where the systems differ in at most 12 sentences, both tests give the exact p-value, over all 2ⁿ
  exchanges of these (Fisher, 1935): among so few no sample tells anything new. Two of the exchanges
  always have the difference that is seen, so that p is at least 2 / 2ⁿ: of fewer than six sentences
  it is never below 0.05. Intervals over fewer than six are not given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.base.wording import plural
from dragoman.metrics.chrf import f_score
from dragoman.metrics.translation import (
    MetricName,
    References,
    bleu_tokenizer,
    build_metric,
    check_lengths,
    compose,
    form_of,
)

Test = Literal["bootstrap", "randomisation"]
DEFAULT_SAMPLES: dict[Test, int] = {"bootstrap": 1_000, "randomisation": 10_000}
SIGNIFICANT = 0.05
"""The p-value below which a difference is marked in the table."""

_FEWEST = 6
"""The fewest differing units of which a p-value may be below ``SIGNIFICANT``."""
_ALL_EXCHANGED = 12
"""The most differing units for which all exchanges are tried."""
_ROUNDING = 1e-9
"""Scores from 0 to 100 that differ by less than this are equal."""

_Array = NDArray[np.float64]
_ROWS_AT_ONCE = 250


@dataclass(frozen=True, slots=True)
class SystemScore:
    """One system under one metric. The first system is the baseline and has no p-value."""

    system: str
    value: float
    """The mean score over its runs."""
    p_value: float | None = None
    """The probability of so large a difference from the baseline if the two are equally good."""
    differing: int | None = None
    """The number of units whose statistics differ from the baseline's."""
    mean: float | None = None
    """The mean over the bootstrap samples; None under randomisation and for few units."""
    interval: float | None = None
    """Half the width of the 95 % interval around the mean."""
    runs: tuple[float, ...] = ()
    """The score of each of its runs, if it has several."""

    @property
    def deviation(self) -> float | None:
        """The standard deviation over its runs (of a sample: divided by one less); None for one."""
        return float(np.std(self.runs, ddof=1)) if len(self.runs) > 1 else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The scores of all systems under one metric."""

    metric: str
    signature: str
    scores: tuple[SystemScore, ...]
    less_is_better: bool = False

    @property
    def best(self) -> float:
        """The best score of any system."""
        values = [score.value for score in self.scores]
        return min(values) if self.less_is_better else max(values)


@dataclass(frozen=True, slots=True)
class Significance:
    """The outcome of one paired test over some metrics."""

    test: Test
    samples: int
    seed: int
    sentences: int
    """The number of units (``unit`` names one)."""
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()
    unlearned: frozenset[str] = frozenset()
    """Systems that have hardly learned anything: no difference between two of them is marked."""
    unit: str = "sentence"
    """The name of the unit that is drawn or exchanged as a whole."""

    @property
    def learned(self) -> bool:
        """True if any of the systems has learned something."""
        return any(score.system not in self.unlearned for score in self.comparisons[0].scores)

    @property
    def marks(self) -> bool:
        """True if any difference could be marked."""
        return any(
            score.differing >= _FEWEST and self._is_comparable(score)
            for comparison in self.comparisons
            for score in comparison.scores
            if score.differing is not None
        )

    @property
    def method(self) -> str:
        """The method by which the p-values were found, in words."""
        test = {"bootstrap": "paired bootstrap", "randomisation": "approximate randomisation"}
        return (
            f"{test[self.test]}, {plural(self.samples, 'sample')}, seed {self.seed}, "
            f"{plural(self.sentences, self.unit)}; p counts ties (sacreBLEU's does not)"
        )

    def _is_comparable(self, score: SystemScore) -> bool:
        return not {self.comparisons[0].scores[0].system, score.system} <= self.unlearned

    def table(self) -> str:
        """Plain text: one row for each system, one column for each metric; an asterisk marks
        p < 0.05."""
        names = [score.system for score in self.comparisons[0].scores]
        columns = [["system", *names]]
        columns[0][1] += " (baseline)"
        for comparison in self.comparisons:
            columns.append([comparison.metric, *(self._cell(score) for score in comparison.scores)])
        widths = [max(len(cell) for cell in column) for column in columns]
        rows = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in zip(*columns, strict=True)
        ]
        legend = self.method
        if self.marks:
            legend += f"; * differs from the baseline (p < {SIGNIFICANT})"
        if any(score.runs for comparison in self.comparisons for score in comparison.scores):
            legend += "; sd: standard deviation over the runs of a system"
        signatures = [f"{each.metric}: {each.signature}" for each in self.comparisons]
        return "\n".join([*rows, legend, *signatures, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain values, for JSON."""
        return {
            "test": self.test,
            "samples": self.samples,
            "seed": self.seed,
            "sentences": self.sentences,
            "unit": self.unit,
            "metrics": {
                comparison.metric: {
                    "signature": comparison.signature,
                    "systems": [
                        asdict(score) | {"deviation": score.deviation}
                        for score in comparison.scores
                    ],
                }
                for comparison in self.comparisons
            },
            "notes": list(self.notes),
        }

    def _cell(self, score: SystemScore) -> str:
        text = f"{score.value:.2f}"
        if score.deviation is not None:
            text += f" sd {score.deviation:.2f} of {len(score.runs)}"
        if score.mean is not None:
            text += f" ({score.mean:.2f} ± {score.interval:.2f})"
        if score.p_value is not None:
            marked = score.p_value < SIGNIFICANT and self._is_comparable(score)
            text += f" p={score.p_value:.4f}" + ("*" if marked else "")
        return text


def compare_systems(
    systems: Mapping[str, Sequence[Sequence[str]]],
    references: References,
    language: str,
    test: Test = "bootstrap",
    metrics: Sequence[MetricName] = ("BLEU", "chrF"),
    tokenizer: str | None = None,
    samples: int | None = None,
    seed: int = 12345,
) -> Significance:
    """Test each system against the first one.

    ``systems`` maps a name to its translations of the same sentences, in the order of the
    references: those of each of its runs, ``[lines]`` where it has one. ``samples`` is the number
    of test sets drawn or of exchanges tried (1,000 and 10,000 unless said). The default seed is
    sacreBLEU's.

    Raises:
        DataError: fewer than two systems, translations and references that do not pair up, or an
            exchange of outputs with a system of several runs.
    """
    if len(systems) < 2:
        raise DataError(f"A comparison needs two systems or more, not {len(systems)}.")
    for name, runs in systems.items():
        try:
            for translations in runs:
                check_lengths(translations, references)
        except DataError as error:
            raise DataError(f"{name}: {error}") from error
    chosen, notes = bleu_tokenizer(language, tokenizer) if "BLEU" in metrics else ("", ())
    form = form_of(*references, *(lines for runs in systems.values() for lines in runs))
    references = list(map(compose, references))
    measured: dict[str, MeasuredSystem] = {}
    for name in metrics:
        metric = build_metric(name, chosen, language)
        # sacreBLEU's own tests, which have no public way to the statistics either, call this.
        statistics = [
            [
                np.asarray(
                    metric._extract_corpus_statistics(compose(lines), references), np.float64
                )
                for lines in runs
            ]
            for runs in systems.values()
        ]
        measured[name] = MeasuredSystem(
            statistics, _SCORERS[name], f"{metric.get_signature()}{form}", name == "TER"
        )
    return compare_statistics(list(systems), measured, test, samples, seed, notes)


# The two tests. Statistics are arrays (N sentences, K numbers); a scorer takes sums (M, K) to (M,).

_Scorer = Callable[[_Array], _Array]


class MeasuredSystem(NamedTuple):
    """One metric, with the statistics of all systems; these are summed over sentences before they
    are scored."""

    statistics: list[list[_Array]]
    """(N sentences, K numbers) of each run of each system."""
    score: _Scorer
    """Sums (M, K) -> scores (M,), for many test sets at once."""
    signature: str
    less_is_better: bool = False


def compare_statistics(
    names: list[str],
    measured: Mapping[str, MeasuredSystem],
    test: Test = "bootstrap",
    samples: int | None = None,
    seed: int = 12345,
    notes: tuple[str, ...] = (),
    unit: str = "sentence",
) -> Significance:
    """Test each of the systems ``names`` against the first one, by each metric of ``measured``.
    ``unit``: the name of what each row of the statistics describes, in the singular.

    Errors: ``DataError`` for an exchange of outputs with a system of several runs.
    """
    count = samples or DEFAULT_SAMPLES[test]
    comparisons, sentences = [], 0
    for name, metric in measured.items():
        for system, runs in zip(names, metric.statistics, strict=True):
            if len(runs) > 1 and test == "randomisation":
                raise DataError(
                    f"{system} has {len(runs)} runs, and approximate randomisation exchanges the "
                    "outputs of two. Compare systems of several runs by the bootstrap"
                )
        sentences = len(metric.statistics[0][0])
        scores = _score_systems(names, metric, test, count, seed)
        comparisons.append(Comparison(name, metric.signature, scores, metric.less_is_better))
    notes = (*notes, *_exact_notes(comparisons, plural(sentences, unit)))
    return Significance(test, count, seed, sentences, tuple(comparisons), notes, unit=unit)


def _exact_notes(comparisons: Sequence[Comparison], units: str) -> list[str]:
    """Say which p-values are exact, and why some cannot be small. ``units``: the number of all
    units, in words."""
    metrics: dict[tuple[str, int], list[str]] = {}
    for comparison in comparisons:
        for score in comparison.scores:
            if score.differing is not None and score.differing <= _ALL_EXCHANGED:
                metrics.setdefault((score.system, score.differing), []).append(comparison.metric)
    return [
        f"{', '.join(names)} of {system}: {differing} of {units} "
        f"{'differs' if differing == 1 else 'differ'} from the baseline, so p is exact, over "
        f"{plural(2**differing, 'exchange')}"
        + (
            f"; with fewer than {_FEWEST} it cannot be below {SIGNIFICANT}"
            if differing < _FEWEST
            else ""
        )
        for (system, differing), names in metrics.items()
    ]


def resample(
    statistics: list[list[_Array]], score: _Scorer, samples: int, seed: int
) -> list[_Array]:
    """The scores of each system, (samples,), on test sets drawn with replacement from this one, the
    same for all of them; the mean over the runs of a system.

    ``statistics``: as those of ``MeasuredSystem``.
    """
    sentences = len(statistics[0][0])
    drawn = np.random.default_rng(seed).choice(sentences, size=(samples, sentences), replace=True)
    sampled = [np.empty(samples) for _ in statistics]
    for start in range(0, samples, _ROWS_AT_ONCE):
        rows = drawn[start : start + _ROWS_AT_ONCE]
        # How often each sentence was drawn, (rows, N): sums of statistics are then one product.
        times = np.stack([np.bincount(row, minlength=sentences) for row in rows]).astype(float)
        for values, system in zip(sampled, statistics, strict=True):
            scores = [score(times @ run) for run in system]
            values[start : start + len(rows)] = np.mean(scores, axis=0)
    return sampled


def _score_systems(
    names: list[str], measured: MeasuredSystem, test: Test, samples: int, seed: int
) -> tuple[SystemScore, ...]:
    """All systems under one metric, and how far chance alone sets each apart from the first."""
    statistics, score = measured.statistics, measured.score
    drawn = resample(statistics, score, samples, seed) if test == "bootstrap" else []
    results: list[SystemScore] = []
    for place, (name, system) in enumerate(zip(names, statistics, strict=True)):
        runs = tuple(float(score(run.sum(0)[None])[0]) for run in system)
        value, p_value, differing, mean, interval = float(np.mean(runs)), None, None, None, None
        if drawn and len(system[0]) >= _FEWEST:
            mean, interval = _interval(drawn[place])
        if results:
            differing, p_value = _exact_p_value(statistics[0], system, score)
            if p_value is None:
                if drawn:
                    differences = np.abs(drawn[place] - drawn[0])
                    differences -= differences.mean()
                else:
                    differences = _exchange(statistics[0], system, score, samples, seed)
                p_value = _p_value(differences, abs(value - results[0].value))
        several = runs if len(runs) > 1 else ()
        results.append(SystemScore(name, value, p_value, differing, mean, interval, several))
    return tuple(results)


def _exchange(
    baseline: list[_Array], system: list[_Array], score: _Scorer, samples: int, seed: int
) -> _Array:
    """(samples,): how far apart two systems are after random exchanges of their outputs."""
    size = samples, len(baseline[0])
    drawn = np.random.default_rng(seed).integers(2, size=size, dtype=bool)
    return np.concatenate([
        _differences(baseline, system, score, drawn[start : start + _ROWS_AT_ONCE])
        for start in range(0, samples, _ROWS_AT_ONCE)
    ])  # fmt: skip


def _differences(
    baseline: list[_Array], system: list[_Array], score: _Scorer, exchanged: NDArray[Any]
) -> _Array:
    """(M,): how far apart the scores are after each of some exchanges of units, (M, N); the mean
    over all pairs of a run of one and a run of the other."""
    gaps = []
    for run in baseline:
        for other in system:
            sums = other.sum(0) + exchanged.astype(float) @ (run - other)
            gaps.append(score(sums) - score(run.sum(0) + other.sum(0) - sums))
    differences: _Array = np.abs(np.mean(gaps, axis=0))
    return differences


def _exact_p_value(
    baseline: list[_Array], system: list[_Array], score: _Scorer
) -> tuple[int, float | None]:
    """Return the number of units in which the systems differ, and the share of all exchanges of
    these that make a difference as large; None in place of the share if too many units differ."""
    differ = np.any([(run != other).any(axis=1) for run in baseline for other in system], axis=0)
    count = int(differ.sum())
    if count > _ALL_EXCHANGED:
        return count, None
    # The last row, which is never exchanged, has what is alike.
    ours, theirs = (
        [np.vstack([run[differ], run[~differ].sum(0)]) for run in runs]
        for runs in (baseline, system)
    )
    exchanges = np.arange(1 << count)[:, None] >> np.arange(count + 1) & 1
    differences = _differences(ours, theirs, score, exchanges)
    return count, float(np.mean(differences >= differences[0] - _ROUNDING))


def _interval(values: _Array) -> tuple[float, float]:
    """Mean and half the 95 % interval, one fortieth cut off at each end."""
    ordered = np.sort(values)
    cut = len(ordered) // 40
    return float(ordered.mean()), float(ordered[len(ordered) - cut - 1] - ordered[cut]) / 2


def _p_value(differences: _Array, seen: float) -> float:
    """Return the share of samples with a difference as large as the one that is seen. One is added
    to both counts, so the share is never 0. It is 1 if the systems score the same."""
    if seen < _ROUNDING:
        return 1.0
    beyond = np.count_nonzero(differences >= seen - _ROUNDING)
    return float((beyond + 1) / (len(differences) + 1))


# The metrics over sums of statistics, (M, K) to (M,), for many samples at once.


def _bleu(sums: _Array) -> _Array:
    """BLEU with the exponential smoothing of mteval-v13a, sacreBLEU's default."""
    hypothesis, reference, correct, total = sums[:, 0], sums[:, 1], sums[:, 2:6], sums[:, 6:10]
    logarithms = np.zeros(len(sums))
    halves = np.ones(len(sums))
    possible = correct.any(axis=1)
    for order in range(4):
        possible &= total[:, order] > 0
        none = correct[:, order] == 0
        halves = np.where(none, halves * 2, halves)
        matched = np.where(none, 1 / halves, correct[:, order])
        logarithms += np.log(100 * matched / np.maximum(total[:, order], 1)) / 4
    # No penalty (exponent 0) for what is longer than the reference.
    penalty = np.minimum(0, 1 - reference / np.maximum(hypothesis, 1))
    return np.where(possible, np.exp(logarithms + penalty), 0.0)


def _ter(sums: _Array) -> _Array:
    """Edits per word of the reference."""
    edits, length = sums[:, 0], sums[:, 1]
    rate = edits / np.maximum(length, np.finfo(float).tiny)
    return 100 * np.where(length > 0, rate, (edits > 0).astype(float))


_SCORERS: dict[MetricName, _Scorer] = {
    "BLEU": _bleu,
    "chrF": f_score,
    "chrF++": f_score,
    "TER": _ter,
}
