"""CTC ranks what a beam finds: by both scores, in the translator as in the transcriber."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_cells import tiny_cell

from dragoman.base.errors import RecipeError, RunError
from dragoman.engine import ctc_ranking
from dragoman.engine.ctc_ranking import (
    CtcRanking,
    ctc_log_probabilities,
    text_log_probabilities,
)
from dragoman.engine.settings import TranslatorSettings
from dragoman.search.hypothesis import Hypothesis, hypothesis_of
from dragoman.search.settings import SearchSettings
from dragoman.tasks.catalogue import Run
from dragoman.tasks.training import train
from dragoman.tasks.transcription.transcriber import Transcriber
from dragoman.tasks.translation.translator import Translator

KNOWN = torch.log_softmax(torch.tensor([[2.0, 0, 1], [0, 3, 1], [0, 0, 2], [0, 4, 0]]), dim=-1)
"""Of two outputs and the blank."""


def hypothesis(tokens: list[int], score: float) -> Hypothesis:
    return hypothesis_of(tuple(tokens), [score] * (len(tokens) + 1), finished=True)


def test_both_scores_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctc_ranking, "ctc_log_probabilities", lambda *_: KNOWN)
    right, long = hypothesis([0, 1, 1], -0.2), hypothesis([0, 1], -0.1)
    engine: Any = None
    rows = torch.zeros(4, 2).numpy()
    by_ctc = text_log_probabilities(KNOWN, [right.tokens, long.tokens])
    assert by_ctc[0] > by_ctc[1]  # the decoder prefers the other
    for weight in (0.1, 0.5, 0.9):
        joint = [
            (1 - weight) * sum(one.token_log_probabilities) + weight * ctc
            for one, ctc in zip((right, long), by_ctc, strict=True)
        ]
        first, _ = CtcRanking(engine, weight)(rows, [long, right])
        assert first is (right if joint[0] > joint[1] else long)
    assert CtcRanking(engine, 1.0)(rows, [long, right])[0] is right
    assert CtcRanking(engine, 1e-6)(rows, [right, long])[0] is long


def test_what_was_cut_stands_behind_what_was_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its score is without the cost of its end, and so better than those of whole texts."""
    monkeypatch.setattr(ctc_ranking, "ctc_log_probabilities", lambda *_: KNOWN)
    whole = [hypothesis([0, 1, 1], -9.0), hypothesis([0, 1], -8.0)]
    cut = hypothesis_of((0, 1), [-0.1] * 2, finished=False)
    engine: Any = None
    found = CtcRanking(engine, 0.5)(torch.zeros(4, 2).numpy(), [*whole, cut])
    assert found[2] is cut and set(found[:2]) == set(whole)


def test_texts_without_room_come_last_and_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctc_ranking, "ctc_log_probabilities", lambda *_: KNOWN[:1])
    one, two, three = hypothesis([0, 0], -0.1), hypothesis([1, 1], -0.2), hypothesis([1], -9.0)
    engine: Any = None
    ranked = CtcRanking(engine, 0.5)(torch.zeros(1, 2).numpy(), [one, two, three])
    assert ranked == [three, one, two]


def _both_search(transcriber: Transcriber, files: list[Path]) -> None:
    """CTC takes part in the search: the score is that of both, and nothing is ranked again."""
    run, weight = transcriber.run, 0.4
    search = run.recipe.search.model_copy(update={"ctc_weight": weight, "length_penalty": 0.0})
    joint = Translator(run, search_settings=search)
    assert not joint.ctc.ranks
    found = joint.batch(map(str, files))
    heard = Transcriber(run, search_settings=search)
    assert [one.text for one in found] == [str(heard(file)) for file in files]
    decoder = Translator(run, TranslatorSettings(precision="fp32")).engine
    for file, one in zip(files, found, strict=True):
        (values,) = decoder.source.read([str(file)])
        (alone,) = decoder.score([values], [one.ids])
        (ctc,) = text_log_probabilities(ctc_log_probabilities(decoder, values), [one.ids])
        wanted = (1 - weight) * alone.log_probability + weight * ctc
        assert sum(one.token_log_probabilities) == pytest.approx(wanted, abs=0.05)
    greedy = run.recipe.search.model_copy(update={"ctc_weight": 1.0, "beam": 1})
    assert Translator(run, search_settings=greedy)(str(files[0])).text


def test_ctc_searches_in_models_that_have_it(tmp_path: Path) -> None:
    recipe = tiny_cell("translation", "transformer", "frames", tmp_path)
    with pytest.raises(
        RecipeError, match=r"search.ctc_weight works only with CTC.* training.ctc_weight"
    ):
        recipe.change(["search.ctc_weight=0.3"])
    train(
        recipe.change(["training.updates=1"]), tmp_path / "run",
        say=lambda _: None, display=False, measure=False,
    )  # fmt: skip
    search = SearchSettings(ctc_weight=0.3)
    translator = Translator(Run.open(tmp_path / "run"), search_settings=search)
    recording = str(next((tmp_path / "tones").rglob("*.wav")))
    with pytest.raises(RunError, match=r"search.ctc_weight = 0.3, but the model was trained"):
        translator(recording)


def test_translator_and_transcriber_rank_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_cell("translation", "transformer", "frames", tmp_path).change(
        ["training.updates=40", "training.validate_every=40", "training.ctc_weight=0.5"]
    )
    train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    files = sorted((tmp_path / "tones").rglob("*.wav"))[::5]
    transcriber = Transcriber(Run.open(tmp_path / "run"))
    translator = Translator(transcriber.run)
    assert translator.ctc.ranks
    found = translator.batch(map(str, files))
    assert [one.text for one in found] == [str(transcriber(file)) for file in files]
    assert all(not one.alternatives for one in found)  # as many as were asked for
    alone = Translator(transcriber.run, TranslatorSettings(ctc_weight=0))
    assert not alone.ctc.ranks
    several = alone.batch(map(str, files), n_best=alone.search_settings.beam)
    ranking = CtcRanking.of(translator.engine, recipe, 0.5)
    for file, one, all_of_it in zip(files, found, several, strict=True):
        every = [all_of_it, *all_of_it.alternatives]
        (values,) = translator.engine.source.read([str(file)])
        hypotheses = [
            hypothesis_of(each.ids, each.token_log_probabilities, finished=each.finished)
            for each in every
        ]
        assert ranking(values, hypotheses)[0].tokens == one.ids
    _both_search(transcriber, files)
    monkeypatch.setattr(CtcRanking, "__call__", lambda _, values, found: [*found][::-1])
    (last,) = translator.batch([str(files[0])])
    assert last.ids == several[0].alternatives[-1].ids != found[0].ids
    assert str(transcriber(files[0])) == last.text
