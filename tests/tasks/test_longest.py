"""A model that has learned so many positions reads and writes no more, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_of_files import recipe_of
from untrained_run import untrained_run

import dragoman
from dragoman.base.errors import DataError, SearchError
from dragoman.data.plan import PlanSettings
from dragoman.engine.settings import TranslatorSettings
from dragoman.search.settings import SearchSettings
from dragoman.tasks.training import train
from dragoman.tasks.translation.aligner import Aligner
from dragoman.tasks.translation.translator import Translator

POSITIONS = 12
FP32 = TranslatorSettings(precision="fp32")
LINE = "The small man who sees the big woman eats the old dinosaur, because the king is tired. " * 3
KINDS = {
    "convolutional": ("demo-convolutional", f"model.positions={POSITIONS}"),
    "transformer": ("demo", "model.positions.kind=learned", f"model.positions.maximum={POSITIONS}"),
}


@pytest.fixture(params=KINDS)
def translator(request: pytest.FixtureRequest, tmp_path: Path) -> Translator:
    name, *changes = KINDS[request.param]
    run = untrained_run(tmp_path, *changes, recipe_name=name)
    return dragoman.load(run, FP32)


def test_longer_input_is_cut_and_no_output_is_longer(translator: Translator) -> None:
    pieces = translator.engine.cut([LINE], whole=True)[0].pieces
    assert len(pieces) > 5 and max(len(piece.values) for piece in pieces) <= POSITIONS
    found = translator(LINE, settings=SearchSettings(beam=2, max_length=50))
    assert found.text
    values = pieces[0].values
    assert translator.engine.request(values, SearchSettings()).limit == POSITIONS - 1
    asked = translator.engine.request(values, SearchSettings(beam=1, max_length=50))
    assert asked.limit == POSITIONS - 1
    (hypotheses,) = translator.engine.search([asked])
    assert len(hypotheses[0].tokens) <= POSITIONS - 1


def test_more_than_it_can_write_is_refused(translator: Translator) -> None:
    with pytest.raises(
        SearchError, match="min_length is 20, but this model writes at most 11 tokens"
    ):
        translator("The man.", settings=SearchSettings(min_length=20, max_length=50))


def test_a_pair_that_is_too_long_is_not_scored(translator: Translator) -> None:
    with pytest.raises(DataError, match=f"line 1: .* {POSITIONS - 1} tokens at most are scored"):
        translator.score([(LINE, "Der Mann.")])


def test_a_pair_that_is_too_long_gets_no_links(
    translator: Translator, caplog: pytest.LogCaptureFixture
) -> None:
    pairs = [("The man.", "Der Mann."), (LINE, "Der Mann.")]
    short, long = Aligner(translator.engine)(pairs)
    assert short and not long
    assert f"more than {POSITIONS - 1}, gets no links" in caplog.text


def test_an_ensemble_ends_where_one_of_it_ends(translator: Translator, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = untrained_run(tmp_path / "other", recipe_name="demo-recurrent")
    together = dragoman.load(other, FP32, ensemble=[translator.run.folder])
    found = together(LINE, settings=SearchSettings(beam=1, max_length=50))
    assert found.text and together.engine.longest == POSITIONS


def test_longer_pairs_are_left_out_of_training(
    parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    changes = [
        "model.model_dim=16", "model.channels=16", f"model.positions={POSITIONS}",
        "text.vocabulary=200", "training.updates=3", "training.validate_every=3",
    ]  # fmt: skip
    said: list[str] = []
    recipe, _ = recipe_of(
        [str(path) for path in parallel_text], base="demo-convolutional", changes=changes
    )
    train(recipe, tmp_path / "run", say=said.append, display=False)
    (left_out,) = [line for line in said if "left out" in line]
    assert f"longer than {POSITIONS} source or {POSITIONS} target tokens" in left_out
    assert "model.positions" in left_out
    assert PlanSettings(max_source=8).within(POSITIONS, POSITIONS).max_source == 8
