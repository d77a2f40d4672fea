"""Quality by source length: bins of sentences, each scored as a test set of its own."""

from __future__ import annotations

import csv
import io
import itertools
import random
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest
import sacrebleu

from dragoman.forms.form import Pair
from dragoman.metrics.significance import Significance, compare_systems
from dragoman.pictures.figure import csv_files, figure_svg
from dragoman.studies.by_length import bins_of, by_length, lengths_of
from dragoman.studies.comparison import lines_at

WORDS = (*"abcdefgh", "Hund", "Katze", "Haus", "See", "der", "die", "im")


def sentences(count: int) -> list[str]:
    draw = random.Random(1)
    return [" ".join(draw.choices(WORDS, k=draw.randint(3, 30))) for _ in range(count)]


def worse(lines: list[str], rate: float) -> list[str]:
    """Each word is another one so often, oftener the longer the sentence is."""
    draw = random.Random(2)
    return [
        " ".join(
            draw.choice(WORDS) if draw.random() < rate * len(line.split()) / 30 else word
            for word in line.split()
        )
        for line in lines
    ]


def test_each_bin_is_a_test_set_of_its_own() -> None:
    lines = sentences(200)
    outputs = {"good": [worse(lines, 0.2)], "bad": [worse(lines, 0.8), worse(lines, 0.9)]}
    pairs = [Pair(n, line.upper(), line) for n, line in enumerate(lines, 1)]

    def score(places: Sequence[int]) -> Significance:
        systems = {name: lines_at(runs, places) for name, runs in outputs.items()}
        return compare_systems(systems, lines_at([lines], places), "de", samples=300)

    found = by_length(pairs, score)
    assert found.unit == "words" and 2 < len(found.bins) <= 6
    assert sum(one.sentences for one in found.bins) == 200
    ends = [(one.least, one.most) for one in found.bins]
    assert all(before[1] < after[0] for before, after in itertools.pairwise(ends))
    for one in found.bins:
        inside = [n for n, line in enumerate(lines) if one.least <= len(line.split()) <= one.most]
        assert one.sentences == len(inside) >= 20
        assert one.mean == pytest.approx(sum(len(lines[n].split()) for n in inside) / len(inside))
        bleu, _ = one.quality.comparisons
        for score in bleu.scores:
            alone = [
                sacrebleu.corpus_bleu([run[n] for n in inside], [[lines[n] for n in inside]]).score
                for run in outputs[score.system]
            ]
            assert score.value == pytest.approx(sum(alone) / len(alone))
    header, rows = found.rows()
    assert header == ["words of the source", "sentences", "good", "bad"]
    assert rows[0][0] == f"{ends[0][0]}-{ends[0][1]}" and "±" in str(rows[0][2])
    figure = found.figure("x-by-length", "test.de")
    ElementTree.fromstring(figure_svg(figure))
    (content,) = csv_files(figure).values()
    table = list(csv.DictReader(io.StringIO(content)))
    assert len(table) == len(found.bins) * 2 * 2
    assert float(table[0]["value"]) == pytest.approx(
        found.bins[0].quality.comparisons[0].scores[0].value, rel=1e-6
    )
    lost = [one.quality.comparisons[0].scores[1].value for one in found.bins]
    assert lost[0] > lost[-1], "what gets worse with length is seen"


@pytest.mark.parametrize("count", [39, 60, 61, 120, 1000])
def test_bins_hold_every_sentence_once(count: int) -> None:
    draw = random.Random(count)
    lengths = [draw.randint(1, 40) for _ in range(count)]
    bins = bins_of(lengths)
    if count < 40:
        assert bins == []
        return
    assert sorted(place for one in bins for place in one) == list(range(count))
    assert 2 <= len(bins) <= 6 and min(map(len, bins)) >= 20
    assert bins_of([7] * count) == [], "sentences of one length are one bin"


def test_sentences_without_spaces_are_counted_in_characters() -> None:
    assert lengths_of(["犬が 寝る。", "猫。"]) == ("characters", [5, 2])
    assert lengths_of(["고양이가 잔다.", "개."]) == ("words", [2, 1])
    assert by_length([Pair(1, "a", "b")], lambda places: pytest.fail("no bin is scored")).bins == ()
