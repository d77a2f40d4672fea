"""Minimum Bayes risk: the candidate that is chosen is the one that sacreBLEU's chrF chooses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import sacrebleu
from command_line import Dragoman
from untrained_run import untrained_run

import dragoman
from dragoman.base.errors import DragomanError
from dragoman.engine.settings import TranslatorSettings
from dragoman.search.hypothesis import Hypothesis, hypothesis_of
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.tasks.translation.result import Translation, candidates_of, expected_chrf
from dragoman.tasks.translation.translator import Translator

SOURCES = ["The dog sleeps.", "Who sees the old queen?", "The small man eats the dinosaur."]
SAMPLING = SearchSettings(n_best=2, max_length=7, sampling=SamplingSettings(seed=3, top_k=20))
BEAM = SearchSettings(beam=3, n_best=2, max_length=6)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    return untrained_run(folder, "text.vocabulary=300", "model.model_dim=32", "model.ffn_dim=32")


def load(run: Path, mbr: int) -> Translator:
    return dragoman.load(run, TranslatorSettings(precision="fp32", mbr=mbr))


def by_sacrebleu(candidates: list[Translation], weights: list[float]) -> dict[str, float]:
    """Each text's expected chrF."""
    metric = sacrebleu.CHRF()
    return {
        one.text: sum(
            weight * metric.sentence_score(one.text, [other.text]).score
            for other, weight in zip(candidates, weights, strict=True)
        )
        / sum(weights)
        for one in candidates
    }


@pytest.mark.parametrize("settings", [SAMPLING, BEAM], ids=["samples", "n best"])
def test_the_candidate_that_the_others_agree_with_most_is_given(
    run: Path, settings: SearchSettings
) -> None:
    agreed = load(run, 12).batch(SOURCES, settings=settings)
    every = load(run, 0).batch(SOURCES, settings=candidates_of(settings, 12))
    differ = 0
    for source, found, best in zip(SOURCES, agreed, every, strict=True):
        candidates = [best, *best.alternatives]
        assert len(candidates) == 12
        weights = [1.0] * 12
        if settings.sampling is None:
            weights = [math.exp(sum(one.token_log_probabilities)) for one in candidates]
        expected = by_sacrebleu(candidates, weights)
        ranked = sorted(expected, key=lambda text: -expected[text])
        assert found.source == source and found.expected_chrf == pytest.approx(expected[ranked[0]])
        assert expected[found.text] == pytest.approx(expected[ranked[0]])
        assert [one.expected_chrf for one in found.alternatives] == pytest.approx(
            [expected[ranked[1]]]
        )
        differ += found.text != best.text
    assert differ or settings is BEAM, "it could be the most probable one else"


def of(text: str, log_probability: float) -> tuple[str, Hypothesis]:
    return text, hypothesis_of([5], [log_probability], finished=True)


def test_a_text_that_was_drawn_twice_counts_twice_and_a_probable_one_more() -> None:
    texts, hypotheses = zip(*[of("abcd", -9.0), of("xyz", -1.0), of("abcd", -9.0)], strict=True)
    drawn = expected_chrf(texts, hypotheses, sampled=True)
    assert drawn == pytest.approx([200 / 3, 100 / 3, 200 / 3])
    share = 1 / (1 + 2 * math.exp(-8))
    listed = expected_chrf(texts, hypotheses, sampled=False)
    assert listed == pytest.approx([100 * (1 - share), 100 * share, 100 * (1 - share)])


def test_how_many_are_searched_for() -> None:
    assert candidates_of(BEAM, 8).beam == candidates_of(BEAM, 8).n_best == 8
    assert candidates_of(BEAM.model_copy(update={"beam": 20}), 8).beam == 20
    assert candidates_of(SAMPLING, 8).beam == SAMPLING.beam
    assert candidates_of(SAMPLING, 1).n_best == 2


def test_the_verbs_take_it(tiny_run: Path, dragoman: Dragoman) -> None:
    lines = b"The dog sleeps.\n\nThe man eats.\n"
    said = dragoman("translate", tiny_run, "--mbr", "6", "--n-best", "2", stdin=lines)
    assert said.code == 0, said.err
    rows = [line.split("\t") for line in said.out.splitlines()]
    assert {number for number, *_ in rows} <= {"1", "2"} and len(rows[1]) == 3
    assert all(0 <= float(row[2]) <= 100 for row in rows)
    said = dragoman("translate", tiny_run, "--mbr", "6", "--temperature", "1", "--scores",
                    "--set", "sampling.seed=4", "The dog sleeps.")  # fmt: skip
    assert said.code == 0 and 0 <= float(said.out.split("\t")[0]) <= 100, said.err
    said = dragoman("translate", tiny_run, "--mbr", "9999", "The dog sleeps.")
    assert said.code == 1 and "--mbr" in said.err and "1024" in said.err
    with pytest.raises(DragomanError, match="mbr"):
        TranslatorSettings.check(mbr=-1)
