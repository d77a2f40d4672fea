"""A run that is tuned on new text learns old text again, and says how it scores on both."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
from command_line import Dragoman
from recipe_of_files import recipe_of
from tiny_recipe import TINY
from trained_run import trained_run

from dragoman.base.errors import DragomanError, RecipeError, RunError
from dragoman.data.plan import Plan
from dragoman.runs.corpora import plain_corpora, plain_pairs, with_text
from dragoman.runs.prepare import check_unchanged, prepare
from dragoman.runs.run import RECIPE, TUNED, TUNING, WEIGHTS
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.tuning import ALPHAS, blend, reading, weights_between
from dragoman.training.weights import load_weights, save_weights


def write_pairs(folder: Path, name: str, words: int, count: int) -> list[str]:
    """Write different sentences of words such as w7, each with a translation -> both files."""
    draw = random.Random(name)
    lines = [" ".join(f"w{draw.randrange(words)}" for _ in range(5)) for _ in range(count)]
    source, target = folder / f"{name}.en", folder / f"{name}.de"
    source.write_text("".join(f"{line}\n" for line in lines))
    target.write_text("".join(f"{line.replace('w', 'v')}\n" for line in lines))
    return [str(source), str(target)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("tuning")
    recipe, _ = recipe_of(
        write_pairs(folder, "old", 40, 900),
        changes=[*TINY, "text.vocabulary=300", "data.split.test=0.1"],
    )
    return trained_run(recipe, folder / "base")


@pytest.fixture(scope="module")
def new(base: Run) -> list[str]:
    return write_pairs(base.folder.parent, "new", 20, 500)


def old_files(base: Run) -> tuple[str, str]:
    return str(base.folder.parent / "old.en"), str(base.folder.parent / "old.de")


@pytest.fixture(scope="module")
def tuned(base: Run, new: list[str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    recipe, _ = recipe_of(
        new, start_from=base, keep=old_files(base), blend=True, changes=["training.updates=8"]
    )
    return trained_run(recipe, tmp_path_factory.mktemp("tuned") / "run", start_from=base)


def old_of(recipe: Recipe) -> Recipe:
    old = recipe.of_old_text
    assert old is not None
    return old


@pytest.mark.system
def test_two_thirds_of_the_pairs_in_the_batches_of_each_epoch_are_old(tuned: Run) -> None:
    store = prepare(tuned.recipe, tuned.folder, lambda _: None).train
    new, old = store.corpora
    assert old.last - old.first > 1.5 * (new.last - new.first)  # the old text is larger
    plan = Plan(store, tuned.recipe.bounded_plan, tuned.recipe.seed)
    examples = [
        example
        for update in range(plan.updates_per_epoch())
        for batch in plan.update(update)
        for example in batch.examples.tolist()
    ]
    share = sum(old.first <= example < old.last for example in examples) / len(examples)
    assert share == pytest.approx(2 / 3, abs=0.02)


def test_it_is_measured_on_the_old_pairs_that_the_run_was_measured_on(
    base: Run, tuned: Run
) -> None:
    old = old_of(tuned.recipe)
    for side in ("dev", "test"):
        assert plain_pairs(old, side) == plain_pairs(base.recipe, side) != []
    held = {pair.source for side in ("dev", "test") for pair in plain_pairs(old, side)}
    learned = {
        pair.source for corpus in plain_corpora(tuned.recipe, "train") for pair in corpus.pairs
    }
    assert learned and not held & learned


def test_the_dev_set_has_as_many_old_pairs_as_new_ones(base: Run, tuned: Run) -> None:
    dev = prepare(tuned.recipe, tuned.folder, lambda _: None).dev
    new = plain_pairs(tuned.recipe, "dev")
    assert dev[: len(new)] == new
    assert 0 < len(dev) - len(new) <= len(new)
    assert set(dev[len(new) :]) <= set(plain_pairs(base.recipe, "dev"))


def test_the_ends_of_a_blend_are_the_weights_themselves(base: Run, tuned: Run) -> None:
    begun, end = tuned.folder / TUNED, base.folder / WEIGHTS
    assert load_weights(begun).tensors.keys() == load_weights(end).tensors.keys()
    other = tuned.folder.parent / "other.safetensors"
    tensors = {name: -3 * tensor for name, tensor in load_weights(end).tensors.items()}
    next(iter(tensors.values())).view(-1)[:50] = -0.0  # what sums with 0 would lose
    save_weights(other, tensors, {})
    for alpha, path in ((0.0, begun), (1.0, other)):
        expected = load_weights(path).tensors
        for name, tensor in weights_between(begun, other, alpha).items():
            assert torch.equal(tensor.view(torch.int32), expected[name].view(torch.int32)), name
    for name, tensor in weights_between(begun, other, 0.25).items():
        mean = 0.75 * load_weights(begun).tensors[name] + 0.25 * tensors[name]
        assert torch.allclose(tensor, mean, atol=1e-6)


def test_a_blend_leaves_out_tuned_weights_that_are_worse_on_both_texts(
    tuned: Run, tmp_path: Path
) -> None:
    recipe, folder = tuned.recipe, tmp_path
    begun = load_weights(tuned.folder / TUNED).tensors
    save_weights(folder / TUNED, begun, {})
    noise = torch.Generator().manual_seed(1)
    worse = {
        name: tensor + torch.randn(tensor.shape, generator=noise) for name, tensor in begun.items()
    }
    save_weights(folder / WEIGHTS, worse, {"weights": "best", "update": "8"})
    forms = prepare(recipe, tuned.folder, lambda _: None).forms
    said: list[str] = []
    blend(recipe, folder, tuned.model(), forms, torch.device("cpu"), said.append)
    assert said[0].startswith("blended: 0 of the tuned weights and 1 of the old ones")
    found = load_weights(folder / WEIGHTS)
    assert found.metadata["weights"] == "blend 0" and found.metadata["alpha"] == "0"
    assert all(torch.equal(found.tensors[name], begun[name]) for name in begun)
    blend(recipe, folder, tuned.model(), forms, torch.device("cpu"), said.append)
    assert len(said) == 1  # it is blended only once, also if the run is resumed


def test_a_blend_is_the_best_for_the_new_text_that_hardly_forgets_the_old(
    tuned: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (TUNED, WEIGHTS):
        tensors = load_weights(tuned.folder / name).tensors
        save_weights(tmp_path / name, tensors, {"weights": "best", "update": "8"})
    new = [4.0 - alpha for alpha in ALPHAS]
    old = [2.0 * (1 + 0.02 * alpha**2) for alpha in ALPHAS]  # 1.5 % at α = 0.866
    losses = iter([loss for pair in zip(new, old, strict=True) for loss in pair])
    monkeypatch.setattr("dragoman.tasks.tuning.loss_on", lambda *_: next(losses))
    forms = prepare(tuned.recipe, tuned.folder, lambda _: None).forms
    blend(tuned.recipe, tmp_path, tuned.model(), forms, torch.device("cpu"), lambda _: None)
    assert load_weights(tmp_path / WEIGHTS).metadata["alpha"] == "0.8"


@pytest.mark.system
def test_the_scores_before_and_after_are_those_of_evaluate(
    base: Run, new: list[str], dragoman: Dragoman, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    said = dragoman(
        "train", *new, "--from", str(base.folder), "--keep", *old_files(base), "--blend",
        "--to", str(run), "--set", "training.updates=8", "--set", "training.validate_every=4",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "blended: " in said.out + said.err
    tuning = json.loads((run / TUNING).read_text())
    assert [domain["name"] for domain in tuning["domains"]] == ["new", "old"]
    opened = Run.open(run)
    for domain, recipe in zip(
        tuning["domains"], (opened.recipe, old_of(opened.recipe)), strict=True
    ):
        pairs = plain_pairs(recipe, "test")
        assert domain["sentences"] == len(pairs)
        files = [tmp_path / f"test.{side}" for side in ("en", "de")]
        files[0].write_text("".join(f"{pair.source}\n" for pair in pairs))
        files[1].write_text("".join(f"{pair.target}\n" for pair in pairs))
        for folder, bleu in zip((base.folder, run), domain["bleu"], strict=True):
            found = dragoman("evaluate", str(folder), *map(str, files), "--json")
            assert json.loads(found.out)["scores"]["BLEU"]["value"] == pytest.approx(bleu)
        assert domain["loss"][0] != domain["loss"][1]
    own = dragoman("evaluate", str(run))
    for out in (said.out, own.out):
        (line,) = [line for line in out.splitlines() if line.startswith("old: ")]
        before, after = tuning["domains"][1]["bleu"]
        assert f"{before:.2f} → {after:.2f}" in line
    assert "Before and after tuning" in (run / "card.md").read_text()
    assert "Before and after tuning" in (run / "report.html").read_text()


def test_a_run_that_only_blends_learns_nothing_of_the_old_text(base: Run, new: list[str]) -> None:
    recipe, _ = recipe_of(new, start_from=base, blend=True)
    assert [corpus.name for corpus in plain_corpora(recipe, "train")] == ["new.en + new.de"]
    assert plain_pairs(old_of(recipe), "test") == plain_pairs(base.recipe, "test")
    assert recipe.training.blend


def test_the_recipe_of_a_tuned_run_says_all_again(tuned: Run) -> None:
    again = Recipe.load(tuned.folder / RECIPE)
    assert again.data.old == tuned.recipe.data.old and again.data.old is not None
    assert Path(again.data.old.train[0].source).is_file()


def test_old_text_that_was_moved_is_found_again(
    tuned: Run, base: Run, new: list[str], tmp_path: Path
) -> None:
    run = Run.open(shutil.copytree(tuned.folder, tmp_path / "run"))
    text = tmp_path / "text"
    text.mkdir()
    for file in (*new, *old_files(base)):
        shutil.copy(file, text)
    old = tuned.recipe.data.old
    assert old is not None
    (gone,) = (
        corpus.model_copy(update={"source": "/gone/old.en", "target": "/gone/old.de"})
        for corpus in old.train
    )
    lost = run.recipe.data.model_copy(update={"old": old.model_copy(update={"train": (gone,)})})
    moved = Run(run.folder, run.recipe.model_copy(update={"data": lost}))
    found = with_text(moved, [text]).recipe
    assert found.data.train == tuned.recipe.data.train
    assert old_of(found).data.train[0].source == str(text / "old.en")
    check_unchanged(found, run.notes(), run.folder, lambda _: None)
    (text / "old.en").write_text("another text\n" * 900)
    with pytest.raises(RunError, match="is not the text"):
        with_text(moved, [text])


def test_mistakes_are_named_in_a_line(base: Run, new: list[str], tmp_path: Path) -> None:
    (tmp_path / "empty.en").write_text("")
    (tmp_path / "empty.de").write_text("")
    empty = str(tmp_path / "empty.en"), str(tmp_path / "empty.de")
    nothing = tmp_path / "nothing.tmx"
    nothing.write_text('<tmx version="1.4"><header srclang="en"/><body/></tmx>')
    few = tuple(write_pairs(tmp_path, "few", 30, 30))
    source, target = old_files(base)
    mistakes = [
        ({"keep": (source, target)}, "--keep works only with --from RUN"),
        ({"blend": True}, "--blend works only with --from RUN"),
        (
            {"keep": (target, source), "start_from": base},
            "its source is de, but the source of en-de is en$",
        ),
        ({"keep": (source, ""), "start_from": base}, "give two files, .*dragoman translate"),
        ({"keep": ("", ""), "start_from": base}, "^--keep: give two files"),
        ({"keep": (source, str(tmp_path / "no.de")), "start_from": base}, r"no\.de"),
        ({"keep": empty, "start_from": base}, r"^\S*empty\.en is empty$"),
        ({"keep": (str(nothing), ""), "start_from": base}, r"--keep \S+: it contains no pairs$"),
        ({"keep": few, "start_from": base}, "30 different pairs are too few .* at least 400$"),
    ]
    for options, told in mistakes:
        with pytest.raises(DragomanError, match=told) as caught:
            recipe_of(new, **options)
        assert "\n" not in str(caught.value)
    texts = str(tmp_path / "empty.en")
    for options in ({"keep": (source, target)}, {"blend": True}):
        with pytest.raises(RecipeError, match="works only with parallel text"):
            recipe_of([texts], task="language-model", **options)


def test_old_text_without_a_run_that_is_tuned_is_refused(tuned: Run, tmp_path: Path) -> None:
    with pytest.raises(DragomanError, match=r"data\.old.*Give that run with --from RUN"):
        trained_run(tuned.recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(RecipeError, match=r"training\.blend needs the old text"):
        old_of(tuned.recipe).change(["training.blend=true"])


@pytest.mark.parametrize("training", [True, False])
def test_a_model_that_is_read_does_not_learn_meanwhile(training: bool) -> None:
    model = torch.nn.Sequential(torch.nn.Dropout(0.5)).train(training)
    with reading(model):  # type: ignore[arg-type]
        assert not model.training and not torch.is_grad_enabled()
        assert torch.equal(model(torch.ones(100)), torch.ones(100))
    assert model.training is training and torch.is_grad_enabled()
