"""Quality by the length of the source: how each system handles long sentences.

Sentences are put into bins by the words of their sources, or by characters for languages without
spaces between words; each bin is scored as a test set of its own. Intervals are those of the
bootstrap over the sentences of the bin (Koehn, 2004).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from dragoman.base.wording import plural
from dragoman.forms.form import Pair
from dragoman.forms.languages import count_spaceless
from dragoman.metrics.significance import Significance
from dragoman.pictures.figure import Cell, DataTable, Figure, Words
from dragoman.pictures.panels import LinePanel, TextPanel
from dragoman.pictures.records import Series

_MAX_BINS = 6
_MIN_SENTENCES = 20
"""The fewest sentences of a bin: BLEU of fewer is noise."""


@dataclass(frozen=True)
class Bin:
    """A span of sentences with similar lengths."""

    least: int
    most: int
    sentences: int
    mean: float
    """The mean length of its sentences."""
    quality: Significance


@dataclass(frozen=True)
class ByLength:
    """All bins, the shortest sentences first."""

    unit: str
    """The unit of lengths: words or characters."""
    bins: tuple[Bin, ...]

    def rows(self) -> tuple[list[str], list[list[Cell]]]:
        """Header and rows of the table: BLEU, with half the 95 % interval."""
        if not self.bins:
            return [], []
        names = [score.system for score in self.bins[0].quality.comparisons[0].scores]
        rows: list[list[Cell]] = []
        for span in self.bins:
            scores = span.quality.comparisons[0].scores
            values = [
                f"{s.value:.2f}" + ("" if s.interval is None else f" ± {s.interval:.2f}")
                for s in scores
            ]
            length = f"{span.least}" if span.least == span.most else f"{span.least}-{span.most}"
            rows.append([length, f"{span.sentences:,}", *values])
        return [f"{self.unit} of the source", "sentences", *names], rows

    def chart(self) -> LinePanel:
        """BLEU of each system over the mean length of a bin."""
        names = [score.system for score in self.bins[0].quality.comparisons[0].scores]
        x = [span.mean for span in self.bins]
        series = [
            Series(name, x, [span.quality.comparisons[0].scores[place].value for span in self.bins])
            for place, name in enumerate(names)
        ]
        return LinePanel("BLEU by source length", series, x_label=self.unit, from_zero=True)

    def figure(self, name: str, test: str) -> Figure:
        """Chart, table and numbers. ``name``: of the files; ``test``: the name of the test set."""
        header, rows = self.rows()
        sentences = plural(sum(span.sentences for span in self.bins), "sentence")
        return Figure(
            name=name,
            title=Words("Quality by source length", "원문 길이에 따른 품질"),
            caption=Words(
                f"{test}, {sentences} in bins by the {self.unit} of the source. "
                "±: half the 95 % interval over the sentences of a bin (bootstrap).",
                f"{test}, 원문 길이로 나눈 문장 "
                f"{sum(span.sentences for span in self.bins):,}개. ±: 부트스트랩 95 % 구간의 절반.",
            ),
            source=Words("Section 4", "4절"),
            panels=[self.chart(), TextPanel("BLEU", header, rows)],
            data=[self.data()],
        )

    def data(self) -> DataTable:
        """The table with unformatted numbers, a row for each bin, system and metric."""
        rows: list[list[Cell]] = [
            [
                span.least, span.most, span.sentences, span.mean, comparison.metric,
                score.system, score.value, "" if score.interval is None else score.interval,
                "" if score.p_value is None else score.p_value,
            ]
            for span in self.bins
            for comparison in span.quality.comparisons
            for score in comparison.scores
        ]  # fmt: skip
        header = [f"least {self.unit}", f"most {self.unit}", "sentences", "mean", "metric"]
        return DataTable([*header, "system", "value", "half", "p"], rows)

    def to_dict(self) -> dict[str, object]:
        """The bins as plain values, for JSON."""
        return {
            "unit": self.unit,
            "bins": [
                {
                    "least": span.least, "most": span.most, "mean": span.mean,
                    **span.quality.to_dict(),
                }
                for span in self.bins
            ],
        }  # fmt: skip


def by_length(pairs: Sequence[Pair], score: Callable[[Sequence[int]], Significance]) -> ByLength:
    """Score each bin of sentences; no bins if there are too few sentences for two. ``score``:
    compares the systems on the pairs at some places."""
    unit, lengths = lengths_of([pair.source for pair in pairs])
    bins = []
    for places in bins_of(lengths):
        inside = [lengths[place] for place in places]
        quality = score(places)
        bins.append(Bin(min(inside), max(inside), len(places), fmean(inside), quality))
    return ByLength(unit, tuple(bins))


def lengths_of(sources: Sequence[str]) -> tuple[str, list[int]]:
    """The unit of lengths, and the length of each source."""
    text = "".join(sources)
    if 2 * count_spaceless(text) > len(text):
        return "characters", [len("".join(source.split())) for source in sources]
    return "words", [len(source.split()) for source in sources]


def bins_of(lengths: Sequence[int]) -> list[list[int]]:
    """The places of the sentences of each bin. Bins are about equally large and do not split
    sentences of one length; the list is empty if there are too few sentences for two bins."""
    wanted = min(_MAX_BINS, len(lengths) // _MIN_SENTENCES)
    if wanted < 2:
        return []
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    bins: list[list[int]] = [[]]
    for place in order:
        last = bins[-1]
        if len(last) * wanted >= len(order) and lengths[place] != lengths[last[-1]]:
            bins.append([])
        bins[-1].append(place)
    if len(bins) > 1 and len(bins[-1]) < _MIN_SENTENCES:
        rest = bins.pop()
        bins[-1] += rest
    return bins if len(bins) > 1 else []
