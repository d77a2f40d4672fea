"""Times of words: the best way by brute force, and words of a made recording where they are."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from command_line import Dragoman
from row_files import tone, write_wav
from tiny_cells import tiny_cell

from dragoman.base.errors import RunError
from dragoman.sources.frames.cutting import Span
from dragoman.tasks.catalogue import Run
from dragoman.tasks.training import train
from dragoman.tasks.transcription.transcriber import HeardWord, Transcriber, best_rows, time_words

OUTPUTS = 3
RATE = 8_000


def by_brute_force(known: np.ndarray, tokens: list[int]) -> float:  # type: ignore[type-arg]
    """log P of the best way to spread the tokens over the rows."""
    rows, outputs = known.shape
    best = -np.inf
    for way in itertools.product(range(outputs), repeat=rows):
        merged = [one for one, _ in itertools.groupby(way) if one != outputs - 1]
        # Of equal tokens without a blank between them one is left.
        if merged == tokens:
            best = max(best, sum(known[row, one] for row, one in enumerate(way)))
    return float(best)


@pytest.mark.parametrize("tokens", [[0], [0, 1], [1, 1], [2, 0, 2], [0, 0, 1]], ids=str)
def test_the_best_way_is_the_best_of_all(tokens: list[int]) -> None:
    for seed in range(5):
        draw = np.random.default_rng(seed)
        known = np.log(draw.dirichlet(np.ones(OUTPUTS + 1), size=6))
        found = best_rows(known, tokens)
        assert found is not None
        way = np.full(6, OUTPUTS)
        behind = 0
        for token, (begin, end) in zip(tokens, found, strict=True):
            assert behind <= begin < end
            way[begin:end], behind = token, end
        score = float(known[np.arange(6), way].sum())
        assert score == pytest.approx(by_brute_force(known, tokens))


def test_no_way_where_there_is_no_room() -> None:
    known = np.log(np.full((2, OUTPUTS + 1), 0.25))
    assert best_rows(known, [1, 1]) is None
    assert best_rows(known, [1, 2, 0]) is None
    assert best_rows(known, []) == []
    assert best_rows(known, [1, 2]) == [(0, 1), (1, 2)]


def test_words_meet_in_the_pause_between_them() -> None:
    """Rows that are sure of a word anywhere within it give the same times."""
    samples = np.zeros(2 * RATE, np.float32)
    samples[: 2 * RATE] += np.random.default_rng(1).normal(0, 1e-4, 2 * RATE).astype(np.float32)
    for begin, end in ((0.2, 0.6), (0.9, 1.2), (1.5, 1.8)):
        samples[round(begin * RATE) : round(end * RATE)] += tone(400, end - begin)
    words = [HeardWord(text, slice(n, n + 1), 0.9) for n, text in enumerate("abc")]
    for rows in ([(6, 14), (23, 29), (38, 44)], [(10, 11), (26, 27), (40, 41)]):
        found = time_words(words, rows, 0.04, samples, RATE, Span(3.0, 5.0))
        for word, (begin, end) in zip(found, ((0.2, 0.6), (0.9, 1.2), (1.5, 1.8)), strict=True):
            assert word.begin == pytest.approx(3 + begin, abs=0.021)
            assert word.end == pytest.approx(3 + end, abs=0.021)
        assert [word.text for word in found] == ["a", "b", "c"]


def test_a_run_with_ctc_tells_times(dragoman: Dragoman, tmp_path: Path) -> None:
    recipe = tiny_cell("translation", "transformer", "frames", tmp_path).change(
        ["training.updates=80", "training.validate_every=80"]
    )
    with_ctc = recipe.change(["training.ctc_weight=0.3"])
    train(with_ctc, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    transcriber = Transcriber(Run.open(tmp_path / "run"))
    parts = [np.zeros(RATE), tone(300, 0.2, 0, 1800), np.zeros(RATE), tone(1800, 0.2, 1, 300)]
    long = write_wav(tmp_path / "long.wav", np.concatenate([*parts, np.zeros(RATE)]), RATE)
    found = transcriber(long, words=True)
    assert len(found.segments) == 2
    for segment in found.segments:
        assert " ".join(word.text for word in segment.words) == segment.text
        times = [at for word in segment.words for at in (word.begin, word.end)]
        assert times == sorted(times)
        assert segment.begin <= times[0] and times[-1] <= segment.end + 1e-9
        assert all(0 < word.confidence <= 1 for word in segment.words if word.confidence)
    said = dragoman("transcribe", tmp_path / "run", long, "--words", "--format", "json")
    assert said.code == 0 and '"probability"' in said.out, said.err
    said = dragoman("transcribe", tmp_path / "run", long, "--words")
    assert said.code == 1 and "--words works only with --format json" in said.err


def test_a_run_without_ctc_has_none(tmp_path: Path) -> None:
    recipe = tiny_cell("translation", "transformer", "frames", tmp_path).change(
        ["training.updates=1", "training.validate_every=0"]
    )
    train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    with pytest.raises(RunError, match="trained without CTC"):
        Transcriber(Run.open(tmp_path / "run"))(tmp_path / "none.wav", words=True)
