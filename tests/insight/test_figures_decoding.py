"""Figures of decoding, and figures whose sliders were moved: against plain arithmetic."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dragoman.base.errors import DragomanError
from dragoman.insight.figures.catalogue import FIGURES, make_figure, sliders_of, validate
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import csv_files
from dragoman.search.hypothesis import hypothesis_of
from dragoman.tasks.catalogue import Run

Rows = list[dict[str, str]]
Read = Callable[[str], dict[str, Rows]]
SENTENCE = "The small man eats the dinosaur."


@pytest.fixture(scope="module")
def subject(tiny_run: Path) -> Subject:
    return Subject.open(Run.open(tiny_run), SENTENCE)


@pytest.fixture(scope="module")
def tables(subject: Subject) -> Read:
    """Name of a figure -> its CSV files as they would be read again, by the table's name."""

    def read(name: str) -> dict[str, Rows]:
        files = csv_files(make_figure(name, subject))
        return {
            file.removeprefix(name).removesuffix(".csv").removeprefix("-"): list(
                csv.DictReader(io.StringIO(content))
            )
            for file, content in files.items()
        }

    return read


def test_temperature_divides_logits(tables: Read) -> None:
    """Each column is the softmax of logits over T, up to what other tokens take."""
    read = tables("temperature")
    logits = np.array([float(row["logit"]) for row in read[""]])
    for column in ("T = 0.5", "T = 1", "T = 2"):
        shares = np.array([float(row[column]) for row in read[""]])
        assert (shares > 0).all() and shares.sum() <= 1 + 1e-9
        expected = (logits[0] - logits) / float(column.removeprefix("T = "))
        assert np.allclose(np.log(shares[0] / shares), expected, atol=1e-5)
    entropies = [float(row["entropy"]) for row in read["curve"]]
    assert entropies == sorted(entropies), "warmer is never surer"


def test_length_penalty_against_equation_14(tables: Read) -> None:
    read = tables("length-penalty")
    for row in read[""]:
        divisor = ((5 + int(row["tokens"])) / 6) ** 0.6
        assert float(row["score"]) == pytest.approx(float(row["log P"]) / divisor, rel=1e-6)
    by_alpha = {float(row["alpha"]): row for row in read["scores"]}
    for row in read[""]:
        assert float(by_alpha[0.0][row["number"]]) == pytest.approx(float(row["log P"]))


def test_a_sentence_that_was_asked_for_is_the_one_shown(subject: Subject) -> None:
    pairs = (("the dog sees the cat", ""), (SENTENCE, ""), ("the man eats", ""))
    asked = Subject(subject.predictor, SENTENCE, pairs, True)
    assert asked.candidates == (asked,)
    free = Subject(subject.predictor, SENTENCE, pairs)
    assert [one.sentence for one in free.candidates] == [SENTENCE, pairs[0][0], pairs[2][0]]
    spread = {}
    for one in free.candidates:
        made = make_figure("temperature", Subject(one.predictor, one.sentence, (), True))
        (entropy,) = (row[1] for row in made.data[1].rows if row[0] == 1.0)
        spread[one.sentence] = float(entropy)
    least_sure = max(spread, key=spread.__getitem__)
    assert f"“{least_sure}”" in make_figure("temperature", free).notes[0].english


def test_lines_that_cross_are_counted(subject: Subject) -> None:
    """Of hypotheses made up here: with α at 2 twelve tokens overtake six, and 24 all others."""
    asked = Subject(subject.predictor, SENTENCE, (), True)
    vars(asked)["hypotheses"] = tuple(
        hypothesis_of([7] * (length - 1), [total / length] * length, finished=True)
        for length, total in ((12, -4.0), (6, -5.0), (12, -6.0), (24, -9.0), (25, -9.5))
    )
    made = make_figure("length-penalty", asked)
    tokens = [row[2] for row in made.data[0].rows]
    assert sorted(map(str, tokens)) == ["12", "24", "6"], "one of each length, none over twice 12"
    scores = {row[0]: [float(cell) for cell in row[1:]] for row in made.data[1].rows}
    assert scores[0.0] == sorted(scores[0.0], reverse=True)
    assert scores[2.0][2] > scores[2.0][0] > scores[2.0][1]
    assert made.notes[0].english.startswith(f"“{SENTENCE}” 2 pairs of lines cross between")
    changes = re.search(r"best at α = ([\d.]+)\.", made.notes[0].english)
    assert changes is not None
    at = float(changes[1])
    assert scores[at][2] > scores[at][0] and scores[round(at - 0.05, 2)][2] < scores[at][0]


def test_no_lines_cross(subject: Subject) -> None:
    asked = Subject(subject.predictor, SENTENCE, (), True)
    vars(asked)["hypotheses"] = (hypothesis_of([7, 7], [-1.0] * 3, finished=True),)
    (note,) = make_figure("length-penalty", asked).notes
    assert "No lines cross" in note.english and "만나는 곡선이 없습니다" in note.korean


def test_matrices_cut_into_other_heads(subject: Subject) -> None:
    """One head of all columns is the plain formula over the joined matrices; its own number of
    heads is what was trained; sums stay."""
    as_trained = make_figure("heads", subject)
    heads = subject.run.recipe.model.attention.num_heads
    again = make_figure("heads", subject, {"heads": heads})
    assert csv_files(as_trained) == csv_files(again)
    tables = {table.name: table for table in make_figure("heads", subject, {"heads": 1}).data}
    parts = [table for table in as_trained.data if table.name.startswith("query-")]
    joined = np.concatenate([np.array([row[1:] for row in one.rows], float) for one in parts], 1)
    whole = np.array([row[1:] for row in tables["query-1"].rows], float)
    assert np.array_equal(joined, whole)
    with pytest.raises(DragomanError, match="cannot be cut"):
        make_figure("heads", subject, {"heads": 7})


def test_sliders_reach_what_they_move(subject: Subject) -> None:
    for name in FIGURES:
        for slider in sliders_of(name, subject):
            assert slider.start in slider.values, (name, slider.name)
    for values in ({"layer": 2.0, "head": 3.0}, {"layer": 1.0, "head": 0.0}):
        made = make_figure("attention-cross", subject, validate("attention-cross", subject, values))
        drawn = made.panels[1].to_dict()["title"]
        head = "mean of the heads" if values["head"] == 0 else f"head {values['head']:.0f}"
        assert f"layer {values['layer']:.0f}, {head}" in drawn
    for name, wrong in (("mask", {"layer": 9.0}), ("mask", {"width": 1.0}), ("scale", {"d": 1.0})):
        with pytest.raises(DragomanError):
            validate(name, subject, wrong)


@pytest.mark.parametrize("dimension", [2, 8, 64])
def test_the_identity_holds_at_any_width(dimension: int) -> None:
    made = make_figure(
        "position-identity", None, validate("position-identity", None, {"dimension": dimension})
    )
    for row in made.data[0].rows:
        distance = float(row[0])
        expected = sum(
            np.cos(distance / 10000 ** (2 * k / dimension)) for k in range(dimension // 2)
        )
        assert np.allclose([float(cell) for cell in row[1:]], expected, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["position-index", "position-normalised", "position-binary", "position-sinusoidal"]
)
def test_an_encoding_of_any_size(name: str) -> None:
    values = validate(name, None, {"dimension": 4, "length": 8})
    panels = [panel.to_dict() for panel in make_figure(name, None, values).panels]
    similarity = [panel for panel in panels if panel.get("title", "").startswith("Similarity")]
    assert similarity[0]["values"]["shape"] == [8, 8]
