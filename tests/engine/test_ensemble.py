"""Ensembles of runs: which can translate together, and that they do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from command_line import Dragoman
from untrained_run import untrained_run

import dragoman
from dragoman.base.errors import DragomanError, RunError
from dragoman.demo.corpus import demo_corpus
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.runs.model import build_model
from dragoman.runs.run import load_forms
from dragoman.search.settings import SearchSettings
from dragoman.tasks.catalogue import Recipe
from dragoman.tasks.translation.translator import TranslatorSettings
from dragoman.training.weights import save_weights

SOURCES = ["The dog sleeps.", "", "Who sees the old queen?", "The small man eats the dinosaur."]
FP32 = TranslatorSettings(precision="fp32")
SHORT = SearchSettings(beam=3, n_best=2, max_length=8)
SIZES = ("text.vocabulary=300", "model.model_dim=32")


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "transformer"
    folder.mkdir()
    return untrained_run(folder, *SIZES, "model.ffn_dim=32")


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "recurrent"
    folder.mkdir()
    return untrained_run(folder, *SIZES, recipe_name="demo-recurrent")


def two_sided_run(folder: Path, source_vocabulary: int) -> Path:
    """A run of random weights that reads by a vocabulary of its own."""
    pairs = demo_corpus(train_pairs=600, dev_pairs=1, test_pairs=1).train
    recipe = Recipe.load("demo", [*SIZES, "text.shared=false", "model.tie='target'"])
    folder.mkdir()
    for side, size in (("source", source_vocabulary), ("target", 300)):
        settings = recipe.text.model_copy(update={"vocabulary": size})
        learn_vocabulary((getattr(p, side) for p in pairs), settings).save(folder / f"{side}.model")
    recipe.save(folder / "recipe.toml")
    torch.manual_seed(source_vocabulary)
    model = build_model(recipe, *load_forms(recipe, folder))
    save_weights(folder / "model.safetensors", model.state_dict(), {})
    return folder


def test_different_kinds_translate_together(transformer: Path, recurrent: Path) -> None:
    together = dragoman.load(transformer, FP32, ensemble=[recurrent])
    assert "ensemble of 2" in together.description and together.precision == "fp32"
    found = together.batch(SOURCES, settings=SHORT)
    assert [one.source for one in found] == SOURCES and found[1].text == ""
    for one in found:
        if one.source:
            (scored,) = together.score_ids([one.source], [one.ids])
            count = len(one.token_log_probabilities)
            assert one.token_log_probabilities == pytest.approx(
                scored.token_log_probabilities[:count], abs=1e-4
            )
            assert count >= len(one.ids) > 0
    alone = dragoman.load(transformer, FP32).batch(SOURCES, settings=SHORT)
    assert [one.score for one in alone] != pytest.approx([one.score for one in found])


def test_of_a_run_with_itself_it_is_the_run(transformer: Path) -> None:
    alone = dragoman.load(transformer, FP32).batch(SOURCES, settings=SHORT)
    twice = dragoman.load(transformer, FP32, ensemble=str(transformer))
    for one, other in zip(alone, twice.batch(SOURCES, settings=SHORT), strict=True):
        assert other.text == one.text and other.score == pytest.approx(one.score, abs=1e-4)


def test_each_run_reads_by_its_own_vocabulary(tmp_path: Path) -> None:
    first, other = (two_sided_run(tmp_path / name, n) for name, n in (("a", 200), ("b", 260)))
    together = dragoman.load(first, FP32, ensemble=[other])
    singles = [dragoman.load(run, FP32) for run in (first, other)]
    assert singles[0].source_ids(SOURCES[3]) != singles[1].source_ids(SOURCES[3])
    (mixed,) = together.score([(SOURCES[3], "Der")])
    each = [single.score([(SOURCES[3], "Der")])[0] for single in singles]
    # Of the first token: later ones follow the same prefix too, as all is given.
    for place, value in enumerate(mixed.token_log_probabilities):
        values = torch.tensor([one.token_log_probabilities[place] for one in each])
        assert value == pytest.approx(float(values.exp().mean().log()), abs=1e-4)
    assert len(together.batch(SOURCES, settings=SHORT)) == len(SOURCES)


def test_who_cannot_translate_together_is_told(
    transformer: Path, tmp_path: Path, dragoman: Dragoman
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    other = untrained_run(folder, "text.vocabulary=320", "model.model_dim=32")
    said = dragoman("translate", transformer, "--ensemble", other, "The dog sleeps.")
    assert said.code == 1 and "have different target vocabularies" in said.err, said.err
    assert "320 and 300 tokens" in said.err and not said.out
    said = dragoman("translate", transformer, "--ensemble", tmp_path / "no", "The dog sleeps.")
    assert said.code == 1 and "there is no run folder" in said.err
    said = dragoman("translate", transformer, "--ensemble", transformer, "--shortlist", "Hello.")
    assert said.code == 1 and "an ensemble cannot use a shortlist" in said.err
    letters = tmp_path / "letters"
    letters.mkdir()
    Recipe.load("demo-letters").save(letters / "recipe.toml")
    said = dragoman("translate", transformer, "--ensemble", letters, "The dog sleeps.")
    assert said.code == 1 and "Use runs of the same task" in said.err
    said = dragoman("translate", transformer, other, "The dog sleeps.")
    assert said.code == 1 and "--ensemble" in said.err


def test_an_ensemble_has_no_inside(transformer: Path, recurrent: Path) -> None:
    together = dragoman.load(transformer, FP32, ensemble=[recurrent])
    with pytest.raises(DragomanError, match="has no attention to look at"):
        together("The dog sleeps.", attention=True)
    with pytest.raises(RunError, match="an ensemble cannot use a shortlist"):
        dragoman.load(transformer, TranslatorSettings(shortlist=True), ensemble=[recurrent])


def test_the_verbs_take_it(tiny_run: Path, dragoman: Dragoman, tmp_path: Path) -> None:
    said = dragoman("translate", tiny_run, "--ensemble", tiny_run, "The dog sleeps.")
    assert said.code == 0, said.err
    assert said.out == dragoman("translate", tiny_run, "The dog sleeps.").out
    (tmp_path / "a.en").write_text("The dog sleeps.\nThe man eats.\n", encoding="utf-8")
    (tmp_path / "a.de").write_text("Der Hund schläft.\nDer Mann isst.\n", encoding="utf-8")
    (tmp_path / "b.de").write_text("Ein Hund schläft.\nEin Mann isst.\n", encoding="utf-8")
    before = sorted(path.name for path in tiny_run.iterdir())
    files = (tmp_path / "a.en", tmp_path / "a.de", tmp_path / "b.de")
    said = dragoman("evaluate", tiny_run, *files, "--ensemble", tiny_run, "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert "nrefs:2" in found["scores"]["BLEU"]["signature"]
    assert found["run"] == f"{tiny_run.name} + {tiny_run.name}"
    said = dragoman("evaluate", tiny_run, "--ensemble", tiny_run, "--beam", "1")
    assert said.code == 0 and "ensemble of 2" in said.out, said.err
    assert sorted(path.name for path in tiny_run.iterdir()) == before, "scores are the run's own"
    (tmp_path / "short.de").write_text("Ein Hund schläft.\n", encoding="utf-8")
    said = dragoman("evaluate", tiny_run, *files[:2], tmp_path / "short.de")
    assert said.code == 1 and "short.de has 1 line for 2 sentences" in said.err
