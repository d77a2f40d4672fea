"""Guided alignment from a recipe to the verb: whose links, which head, and a run that goes on."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recipe_of_files import recipe_of
from tiny_recipe import TINY
from torch import Tensor

import dragoman
from dragoman.base.errors import DataError, RecipeError, RunError
from dragoman.base.tensor_file import open_tensors
from dragoman.data.batches import Batch
from dragoman.data.word_links import WordLinks, word_starts, words_of
from dragoman.engine.alignment_head import AligningHead
from dragoman.metrics.alignment import Gold
from dragoman.runs.links import FILE
from dragoman.runs.prepare import prepare
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.training import resume, train
from dragoman.tasks.translation.aligner import Aligner, TextAligner
from dragoman.training.losses.objectives import GuidedAlignment


def write(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def few(parallel_text: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Files of some pairs, where nothing has to be learned from them."""
    folder = tmp_path_factory.mktemp("few")
    return [
        str(write(folder / path.name, path.read_text(encoding="utf-8").splitlines()[:60]))
        for path in parallel_text
    ]


GUIDED = (*TINY, "training.guided.weight=1.0", "training.guided.head=3")
FEW = ("text.vocabulary=340",)


def made_links(folder: Path) -> WordLinks:
    run = Run.open(folder)
    examples = run.notes()["pairs"]["train"]
    path = folder / "training" / FILE
    with open_tensors(path, "I32") as file:
        key = file.metadata["key"]
    found = WordLinks.load(path, key, examples)
    assert found is not None
    return found


@pytest.mark.slow  # a model of words is learned
def test_a_head_is_taught_and_then_used(parallel_text: tuple[Path, Path], tmp_path: Path) -> None:
    """After some updates the head that was taught agrees with its teacher, as no other does."""
    changes = [
        *GUIDED, "training.updates=200", "training.validate_every=0",
        "training.schedule.kind='cosine'", "training.schedule.peak=3e-3",
    ]  # fmt: skip
    recipe, _ = recipe_of([str(path) for path in parallel_text], changes=changes)
    said: list[str] = []
    train(recipe, tmp_path / "run", say=said.append, display=False, measure=False)
    assert any("pairs have links" in line for line in said)
    aligner = Aligner.open(Run.open(tmp_path / "run"))
    # Two decoder layers: the last but one is the first.
    assert aligner.head == AligningHead("having read", 0, 2)
    lines = [path.read_text(encoding="utf-8").splitlines()[:60] for path in parallel_text]
    pairs = list(zip(*lines, strict=True))
    teacher = list(TextAligner(Run.open(tmp_path / "run"))(pairs))
    gold = [Gold(links, links) for links in teacher]
    taught = aligner.measure(pairs, gold, 0)
    assert "on 60 pairs" in taught.how
    other = Aligner.open(Run.open(tmp_path / "run"), AligningHead("having read", 1, 0))
    assert taught.quality.error_rate < 0.45
    assert other.measure(pairs, gold, 0).quality.error_rate > 0.6
    # Whoever asks the engine how tokens are aligned, the server say, is answered by that head.
    engine = dragoman.load(tmp_path / "run").engine
    source, target = (
        engine.source.tokens(["The dog sleeps."])[0],
        engine.target.tokens(["Der Hund."])[0],
    )
    ((weights,),) = engine.attention.align([(source, target)])
    record = engine.attention.record([*source, engine.source.eos], target)
    np.testing.assert_allclose(weights, record.cross[0, 2, 1:, :-1], atol=1e-5)


@pytest.mark.slow  # two trainings; test_resume.py stops others
def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    few: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the links have to be made again."""
    changes = (*GUIDED, *FEW, "training.updates=5", "training.validate_every=0")
    recipe, _ = recipe_of(few, changes=changes)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert train(recipe, whole, say=lambda _: None, display=False, measure=False).update == 5
    labels, calls = GuidedAlignment.labels, iter(range(1000))

    def interrupted(self: GuidedAlignment, batch: Batch) -> Tensor:
        if (cut / "recipe.toml").exists() and next(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return labels(self, batch)

    monkeypatch.setattr(GuidedAlignment, "labels", interrupted)
    assert train(recipe, cut, say=lambda _: None, display=False, measure=False).update == 3
    (cut / "training" / FILE).unlink()
    assert resume(cut, say=lambda _: None, display=False).update == 5
    for name in ("model.safetensors", f"training/{FILE}"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes(), name
    (cut / "training" / FILE).write_bytes((whole / "training" / FILE).read_bytes()[:-4])
    with pytest.raises(RunError, match=r"alignment\.safetensors is damaged"):
        resume(cut, say=lambda _: None, display=False)


def test_links_that_are_given_reach_their_examples(
    parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    """Cleaning drops lines and the split holds some out: each example keeps its line's links, but
    where the vocabulary knows nothing of a word, so that others are counted."""
    pairs = list(
        zip(*(p.read_text(encoding="utf-8").splitlines()[:80] for p in parallel_text), strict=True)
    )
    unknown = "\u200b "
    pairs = [(unknown * (n % 5 == 1) + s, t) for n, (s, t) in enumerate(pairs)]
    pairs[3:3] = [("", "Leer."), ("zu lang " * 400, "x")]
    sources, targets = (
        write(tmp_path / f"my.{n}", [p[k] for p in pairs]) for k, n in enumerate(("en", "de"))
    )
    known = [
        f"{n % max(1, len(s.split()))}-{n % max(1, len(t.split()))}"
        for n, (s, t) in enumerate(pairs)
    ]
    links = write(tmp_path / "my.links", known)
    recipe = Recipe.parse(
        {
            "data": {
                "train": [{"source": str(sources), "target": str(targets), "links": str(links)}],
                "split": {"dev": 0.1, "test": 0.1},
            },
            "languages": {"source": "en", "target": "de"},
        },
        [*GUIDED, "text.vocabulary=340", "training.updates=2", "training.validate_every=0"],
    )
    train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    found = made_links(tmp_path / "run")
    run = Run.open(tmp_path / "run")
    assert 40 < len(found) < 80 and 0 < found.linked < len(found)
    store = prepare(run.recipe, run.folder, lambda _: None).train
    of_text = {
        (s, t): "" if s.startswith(unknown) else line
        for (s, t), line in zip(pairs, known, strict=True)
    }
    for example in range(len(store)):
        text = store.text("source", example), store.text("target", example)
        assert " ".join(f"{s}-{t}" for s, t in zip(*found[example], strict=True)) == of_text[text]
    write(links, [*known[:-1], "0-99"])
    with pytest.raises(DataError, match=r"my\.links, line 82: the link 0-99 is outside"):
        train(recipe, tmp_path / "other", say=lambda _: None, display=False, measure=False)
    for wrong in (known[:20], [*known, "0-0"]):
        write(links, wrong)
        with pytest.raises(DataError, match=rf"has {len(wrong)} lines but my\.en .* 82 pairs"):
            train(recipe, tmp_path / "other", say=lambda _: None, display=False, measure=False)
    assert not (tmp_path / "other").exists()


def test_recipes_that_cannot_be_guided() -> None:
    with pytest.raises(RecipeError, match="has no source"):
        Recipe.load("demo-letters", ["training.guided.weight=0.1"])
    corpus = {"source": "a", "target": "b", "links": "c"}
    with pytest.raises(RecipeError, match=r"data\.moses"):
        Recipe.parse({"data": {"train": [corpus], "moses": True}})


def test_links_are_of_pairs_alone() -> None:
    """Beside trees or labels they would be ignored."""
    guided = {"training": {"guided": {"weight": 0.05}}}
    for task, corpus, more, words in (
        ("parsing", {"source": "a.mrg", "format": "trees"}, {"model": {"tie": "target"}} | guided,
         r"a\.mrg: links \(my\.links\) .* a parser does not have. Leave links out; what a head"),
        ("classification", {"source": "a.tsv"}, {"model": {"kind": "encoder"}}, "Leave links out"),
        ("language-model", {"source": "a.txt", "format": "text"}, {"model": {"kind": "decoder"}},
         "a language.model does not have. Leave links out$"),
    ):  # fmt: skip
        recipe = {"task": task, "data": {"train": [corpus]}, **more}
        assert Recipe.parse(recipe).task == task
        with pytest.raises(RecipeError, match=words):
            Recipe.parse(recipe | {"data": {"train": [corpus | {"links": "my.links"}]}})


def test_a_head_that_there_is_not_is_refused_with_the_recipe(few: list[str]) -> None:
    """Before anything is written or measured, also where trainings are many: a sweep, an ablation
    read recipes first."""
    for changes, words in (
        (["training.guided.layer=3"], r"guided\.layer = 3: this model attends to its source in 2"),
        (["training.guided.head=5"], r"guided\.head = 5: layer 1 of this model has 4"),
    ):
        with pytest.raises(RecipeError, match=words):
            recipe_of(few, changes=[*GUIDED, *FEW, *changes])
    for changes in (["model.decoder_layers=1"], ["training.guided.layer=2"]):
        recipe_of(few, changes=[*GUIDED, *FEW, *changes])
    pairs: dict[str, Any] = {"data": {"train": [{"source": "a.tsv"}]}}
    for model, head, words in (
        ({"kind": "recurrent"}, 2, r"guided\.head = 2: layer 1 of this model has 1"),
        ({"kind": "encoder"}, 1, r"needs a head that attends to a source.* Set .*weight = 0"),
    ):
        task = "classification" if model["kind"] == "encoder" else "translation"
        asked = {"training": {"guided": {"weight": 1.0, "head": head}}}
        with pytest.raises(RecipeError, match=words):
            Recipe.parse({"task": task, "model": model, **pairs, **asked})


def test_words_are_told_from_their_tokens(tiny_run: Path) -> None:
    vocabulary = Run.open(tiny_run).target_text
    starts = word_starts(vocabulary)
    for text in ("Der kleine Hund schläft nicht.", "Unglaublich!", ""):
        ids = vocabulary.encode_lists([text])[0]
        words = words_of(ids, starts)
        assert len(words) == len(ids)
        assert (words[-1] + 1 if len(words) else 0) == len(text.split())
        tokens, numbers = Run.open(tiny_run).target.tokens_of_words([text])[0]
        assert (tokens, numbers) == (ids, words.tolist())
