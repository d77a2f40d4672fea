"""Runs of former versions open, and say the same.

``format-1`` was written by version 0.1.0 of November 2026 (commit 1b2af15): a run of some
seconds, and what that program made of some sentences. ``format-1-recurrent`` likewise (commit
9b5a57c), with random weights: an LSTM from before it had choices.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import Dragoman

import dragoman
from dragoman.engine.settings import TranslatorSettings
from dragoman.runs.run import Run
from dragoman.search.settings import SearchSettings
from dragoman.tasks.report import summarise

OLD = Path(__file__).parent / "format-1"
OLD_LSTM = Path(__file__).parent / "format-1-recurrent"
SAID = json.loads((OLD / "said.json").read_text(encoding="utf-8"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    shutil.copytree(OLD, tmp_path / "old")
    return tmp_path / "old" / "run"


def test_an_old_run_translates_as_it_did(run: Path) -> None:
    translator = dragoman.load(run, TranslatorSettings(precision="fp32"))
    settings = SearchSettings(beam=4, n_best=2)
    told = SAID["translations"]
    for before, now in zip(
        told, translator.batch([one["source"] for one in told], settings=settings), strict=True
    ):
        assert (now.text, list(now.ids)) == (before["text"], before["tokens"])
        assert now.score == pytest.approx(before["score"], abs=1e-5)
        for (text, score), other in zip(before["alternatives"], now.alternatives, strict=True):
            assert other.text == text
            assert other.score == pytest.approx(score, abs=1e-5)


def test_an_old_lstm_does_as_it_did() -> None:
    said = json.loads((OLD_LSTM / "said.json").read_text(encoding="utf-8"))
    translator = dragoman.load(OLD_LSTM / "run", TranslatorSettings(precision="fp32"))
    told = said["translations"]
    for before, now in zip(told, translator.batch([one["source"] for one in told]), strict=True):
        assert (now.text, list(now.ids)) == (before["text"], before["tokens"])
        assert now.score == pytest.approx(before["score"], abs=1e-4)
    (scored,) = translator.score([("The dog sleeps.", "Der Hund schläft.")])
    assert scored.token_log_probabilities == pytest.approx(said["scored"], abs=1e-5)


def test_an_old_run_scores_as_it_did(run: Path) -> None:
    translator = dragoman.load(run, TranslatorSettings(precision="fp32"))
    (scored,) = translator.score([("The dog sleeps.", "Der Hund schläft.")])
    assert scored.token_log_probabilities == pytest.approx(SAID["scored"], abs=1e-5)


def test_an_old_run_is_told_of(run: Path) -> None:
    told = summarise(Run.open(run))
    assert [score.name for score in told.scores][:1] == ["BLEU"]
    assert ("updates", "3 of 700") in told.facts


def test_an_old_training_goes_on_or_says_why_not(run: Path, dragoman: Dragoman) -> None:
    recipe = run / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("updates = 700", "updates = 800"))
    weights = (run / "model.safetensors").read_bytes()
    said = dragoman("resume", run)
    assert said.code == 1
    assert "dropout" in said.err and "--from" in said.err
    assert (run / "model.safetensors").read_bytes() == weights
