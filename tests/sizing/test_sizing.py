"""What two files get when nothing else is said."""

from __future__ import annotations

import itertools
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Dragoman
from hypothesis import given
from hypothesis import strategies as st
from recipe_of_files import recipe_of

from dragoman.base.errors import RecipeError
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.split import side_of
from dragoman.runs.recipe.recipe_text import shipped_recipes
from dragoman.runs.recipe.spec import Spec
from dragoman.sizing import budget
from dragoman.sizing.minutes import for_minutes, too_short, with_updates
from dragoman.sizing.options import languages_of
from dragoman.sizing.size import Size, settings_of
from dragoman.sizing.text_alone import TEXT_TABLE
from dragoman.tasks.catalogue import TASKS, Recipe, Run
from dragoman.tasks.translation.sizes import TABLE, rows_for
from dragoman.training.fastest_way import Throughput
from dragoman.training.minutes import VALIDATIONS

MEASURED = Throughput(10_000.0, 0.5, 10, 1 << 30)


def test_the_table_grows_with_the_corpus() -> None:
    pairs = [row.below for row in TABLE]
    assert pairs == sorted(pairs)
    assert pairs[-1] == float("inf")
    for row, larger in itertools.pairwise(TABLE):
        assert row.vocabulary <= larger.vocabulary
        assert row.model_dim <= larger.model_dim
        assert row.dropout >= larger.dropout


def test_the_documented_table_is_the_one_in_force() -> None:
    docs = Path(__file__).parents[2] / "docs"
    text = "".join(
        (docs / f"{name}.md").read_text(encoding="utf-8")
        for name in ("training", "language-models")
    )
    for row in TABLE:
        below = "more" if row.below == float("inf") else f"{row.below:,}"
        ffn_dim = row.both["ffn_dim"]
        assert (
            f"| {below} | {row.vocabulary:,} | {row.model_dim} | {ffn_dim:,} | {row.heads} "
            f"| {row.layers}+{row.layers} | {row.dropout} | {row.tokens_per_update:,} "
            f"| {row.epochs} |"
        ) in text
    for kind, context, row in TEXT_TABLE:
        below = "more" if row.below == float("inf") else f"{row.below:,}"
        tokens = "characters" if kind == "char" else f"{row.vocabulary:,}"
        assert (
            f"| {below} | {tokens} | {row.model_dim} | {row.heads} | {row.layers} | {row.dropout} "
            f"| {context} | {row.tokens_per_update:,} | {row.epochs} |"
        ) in text


@pytest.mark.parametrize(
    ("paths", "codes"),
    [
        (["my.en", "my.de"], ("en", "de")),
        (["a/b.c/train.en.gz", "train.ko.gz"], ("en", "ko")),
        (["source.txt", "target.txt"], ("und", "und")),
        (["one", "two.de"], ("und", "de")),
        (["pairs.tsv"], ("und", "und")),
    ],
)
def test_languages_from_names(paths: list[str], codes: tuple[str, str]) -> None:
    assert languages_of(paths) == codes


def test_two_files_become_a_whole_recipe(parallel_text: tuple[Path, Path]) -> None:
    recipe, epochs = recipe_of([str(path) for path in parallel_text])
    row = TABLE[0]
    assert epochs == row.epochs
    assert (recipe.languages.source, recipe.languages.target) == ("en", "de")
    assert recipe.model.model_dim == row.model_dim
    sides = [path.read_text(encoding="utf-8") for path in parallel_text]
    words, sources = set(" ".join(sides).split()), set(sides[0].splitlines())
    # No more tokens than the text can have: special and byte tokens, characters, part of the words.
    possible = 259 + len(set("".join("".join(sides).splitlines()))) + len(words) // 2
    # Counted without what is held out.
    assert 0.95 * possible < recipe.text.vocabulary <= min(row.vocabulary, possible + 1)
    assert recipe.data.split.dev == recipe.data.split.test
    assert recipe.data.split.dev == pytest.approx(min(0.05, 1000 / len(sources)), abs=1e-6)
    assert recipe.data.train == (
        CorpusSettings(source=str(parallel_text[0]), target=str(parallel_text[1])),
    )


def test_given_sets_are_not_held_out(parallel_text: tuple[Path, Path]) -> None:
    source, target = map(str, parallel_text)
    recipe, _ = recipe_of([source, target], test=(source, target), languages="eng-deu")
    assert recipe.data.test is not None
    assert recipe.data.split.test == 0.0
    assert recipe.data.split.dev > 0.0
    assert recipe.languages.source == "eng"


def test_another_recipes_sizes(parallel_text: tuple[Path, Path]) -> None:
    recipe, epochs = recipe_of([str(path) for path in parallel_text], base="transformer-base")
    assert epochs is None
    assert recipe.model == Recipe.load("transformer-base").model
    assert recipe.data.train[0].source == str(parallel_text[0])


@pytest.mark.parametrize(
    "base",
    [
        name
        for name in shipped_recipes()
        if (recipe := Recipe.load(name)).task == "translation" and recipe.source.kind == "text"
    ],
)
def test_of_another_recipe_only_its_text_is_replaced(
    parallel_text: tuple[Path, Path], tmp_path: Path, base: str
) -> None:
    learned = Recipe.load(base)
    files = [str(shutil.copy(path, tmp_path / f"{path.suffix[1:]}.txt")) for path in parallel_text]
    recipe, _ = recipe_of(files, base=base)
    text = {name: getattr(recipe.data, name) for name in ("train", "dev", "test", "split")}
    data = learned.data.model_copy(update={**text, "embedded": None})
    assert recipe == learned.model_copy(update={"name": recipe.name, "data": data})
    assert recipe.data.train == (CorpusSettings(source=files[0], target=files[1]),)
    assert recipe.data.dev is None and recipe.data.split.dev > 0
    said, _ = recipe_of(files, base=base, languages="nl-und")
    assert said.languages.source == "nl"
    assert said.languages.target == learned.languages.target


@pytest.mark.parametrize("pairs", [1, 10, 100])
def test_a_tiny_corpus_ends_with_a_note_and_a_report(
    dragoman: Dragoman, tmp_path: Path, pairs: int
) -> None:
    # Copies of one sentence stand on one side of any split, so nothing of it is held out.
    files = [tmp_path / "my.en", tmp_path / "my.de"]
    for path, sentence in zip(files, ("The dog sleeps.", "Der Hund schläft."), strict=True):
        path.write_text(f"{sentence}\n" * pairs, encoding="utf-8")
    run = tmp_path / "run"
    said = dragoman(
        "train", *files, "--to", run, "--set", "training.updates=3", "--set", "model.model_dim=32"
    )
    assert said.code == 0, said.err
    assert "0 dev, 0 test" in said.out
    assert "not validated" in said.out and "no pairs to be measured on" in said.out
    assert "test.en test.de" in said.out
    assert (run / "report.html").is_file()


def test_fine_tuning_takes_model_and_text_from_the_run(
    parallel_text: tuple[Path, Path], tiny_run: Path
) -> None:
    run = Run.open(tiny_run)
    recipe, _ = recipe_of([str(path) for path in parallel_text], start_from=run)
    assert recipe.model == run.recipe.model
    assert recipe.text == run.recipe.text


def test_inputs_that_are_none() -> None:
    with pytest.raises(RecipeError, match="3 inputs"):
        recipe_of(["a", "b", "c"])
    with pytest.raises(RecipeError, match="--dev works only with files"):
        recipe_of(["demo"], dev=("a", "b"))


def test_minutes_are_turned_into_updates() -> None:
    recipe, validation = for_minutes(Recipe.load("multi30k-en-de"), 10, MEASURED, 3.0)
    training = recipe.training
    assert (training.updates, training.minutes) == (1080, 10)  # twenty validations take a minute
    assert validation == 3.0
    # One of them is that of the averaged weights.
    assert training.validate_every == 57 and -(-1080 // 57) + 1 == 20
    assert training.schedule.warmup == 270
    assert with_updates(recipe, 1).training.updates == 1
    assert with_updates(recipe, 900).training.minutes == 0


@given(st.floats(0.1, 100), st.floats(0.0, 1000))
def test_validations_take_at_most_a_tenth_of_the_minutes(minutes: float, validation: float) -> None:
    before = Recipe.load("multi30k-en-de")
    recipe, taken = for_minutes(before, minutes, MEASURED, validation)
    every, sentences = recipe.training.validate_every, recipe.evaluation.dev_sentences
    validations = -(-recipe.training.updates // every) + 1
    assert taken == pytest.approx(validation * sentences / before.evaluation.dev_sentences, rel=0.1)
    # Two are the fewest, of 20 sentences.
    assert validations * taken <= 0.1 * 60 * minutes * 1.1 or (validations, sentences) == (2, 20)
    # An average spans as much of the run however few validations there are.
    snapshots = recipe.training.updates / (recipe.training.snapshot_every or every)
    assert snapshots >= min(recipe.training.updates, 10)


def test_too_short_a_time_is_said_with_the_one_that_it_takes() -> None:
    short, _ = for_minutes(Recipe.load("multi30k-en-de"), 0.2, MEASURED, 0.0)
    warning = too_short(short, MEASURED, 100, 5.0)
    assert warning is not None
    found = re.search(r"--minutes (\d+)", warning)
    assert found is not None
    enough, _ = for_minutes(Recipe.load("multi30k-en-de"), int(found[1]), MEASURED, 0.0)
    assert too_short(enough, MEASURED, 100, 5.0) is None


def test_the_size_follows_from_the_minutes_and_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for pairs in (20_000, 50_000, 500_000, 5_000_000):
        row, widths, said = rows_for(pairs)[0], [], []
        for speed in (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9):

            def measured(task: Spec, family: str, size: Size, speed: float = speed) -> float:
                return speed / size.model_dim

            monkeypatch.setattr(budget, "tokens_per_second", measured)
            size = budget.size_in(
                3, said.append, TASKS["translation"], "transformer", rows_for(pairs),
                5.0, 5.0 * pairs,
            )  # fmt: skip
            widths.append(size.model_dim)
            updates = 0.9 * 180 * (speed / size.model_dim) / size.tokens_per_update
            wanted = budget.UPDATES_WANTED[size.optimizer]
            assert updates >= 0.99 * wanted or size.tokens_per_update == 512
        assert widths == sorted(widths)
        assert widths[0] == TABLE[0].model_dim
        assert size == row  # with time enough
        assert len(said) >= 3 and "width 128, 2+2 layers" in said[0]
        assert said[0].endswith("Even this model will learn little")
        # No speed is told, as the run's own is measured later. The minutes that are told do.
        assert not any("tokens/s" in line for line in said)
        told = [int(found[1]) for line in said if (found := re.search(r"--minutes (\d+)", line))]
        assert told == sorted(told, reverse=True) and told[-1] > 3
        for speed, minutes in zip((1e3, 1e4, 1e5, 1e6), told, strict=False):
            with monkeypatch.context() as patch:
                patch.setattr(
                    budget, "tokens_per_second", lambda _, __, s, v=speed: v / s.model_dim
                )
                rows = rows_for(pairs)
                fitted = budget.size_in(
                    minutes, print, TASKS["translation"], "transformer", rows, 5.0, 5.0 * pairs
                )
                assert fitted.model_dim == row.model_dim


def test_a_short_training_drops_less(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, length = 20_000, 14.0
    row, dropped = rows_for(pairs)[0], []
    task, epoch = TASKS["translation"], length * pairs
    for passes in (1, 10, 30, 60, 1000):

        def measured(*_: object, passes: int = passes) -> float:
            return passes * epoch / (0.9 * 180)

        monkeypatch.setattr(budget, "tokens_per_second", measured)
        for family in ("transformer", "lstm"):
            size = budget.size_in(3, print, task, family, (row,), length, epoch)
            if family == "transformer":
                dropped.append(size.dropout)
            else:  # measured with Muon alone
                assert size.dropout == row.dropout
    assert dropped == sorted(dropped) and dropped[0] == dropped[1] == 0.1
    assert dropped[-1] == row.dropout
    # Empty lines have no tokens; cleaning refuses them later.
    assert budget.size_in(3, print, task, "transformer", (row,), 0.0, 0.0).dropout == row.dropout


@pytest.mark.parametrize(("epochs", "dropout"), [(None, 0.3), (200, 0.3), (24, 0.2), (5, 0.1)])
def test_few_epochs_drop_less(tmp_path: Path, epochs: float | None, dropout: float) -> None:
    for side in ("en", "de"):
        (tmp_path / f"my.{side}").write_text("".join(f"{side} {n}\n" for n in range(500)))
    recipe, _ = recipe_of([str(tmp_path / f"my.{side}") for side in ("en", "de")], epochs=epochs)
    assert recipe.model.model_dump()["dropout"] == dropout


def test_translators_that_muon_trains_have_norms_before_sub_layers() -> None:
    for row in TABLE:
        model = settings_of("transformer", TASKS["translation"], row)
        assert model.sizes["norm"] == ("pre" if row.optimizer == "muon" else "post")


def test_the_size_of_a_text_follows_from_the_minutes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row.size for row in reversed(TEXT_TABLE)]
    widths, said = [], []
    for speed in (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9):

        def measured(task: Spec, family: str, size: Size, speed: float = speed) -> float:
            return speed / size.model_dim

        monkeypatch.setattr(budget, "tokens_per_second", measured)
        size = budget.size_in(10, said.append, TASKS["language-model"], "transformer", rows)
        assert size.peak in {row.peak for row in rows}, "it does not fall with small updates"
        widths.append(size.model_dim)
    assert widths == sorted(widths)
    assert (widths[0], size) == (rows[-1].model_dim, rows[0])
    assert len(said) >= 3 and "width 128, 3 layers, updates of 1,024 tokens" in said[0]


@pytest.mark.parametrize(("device", "tokens"), [("cpu", 64 * 16), ("cuda:0", 4_096)])
def test_a_gpu_is_timed_with_whole_micro_batches(
    device: str, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes as long for a part of one, which would make every size look slow."""
    seen: list[int] = []

    def measured(model: object, objective: object, settings: object, batches: Any, **rest: Any):  # type: ignore[no-untyped-def]
        assert str(rest["ranks"].device) == device
        seen.append(len(batches()[0]().target_out))
        return MEASURED

    monkeypatch.setattr(budget, "own_device", lambda: device)
    monkeypatch.setattr(budget, "measure_throughput", measured)
    size = replace(TABLE[0], tokens_per_update=8_192)
    budget.tokens_per_second(TASKS["translation"], "transformer", size)
    budget.tokens_per_second(TASKS["language-model"], "transformer", size)
    assert seen == [tokens, tokens]


@pytest.mark.slow  # it times models of several sizes
def test_a_long_text_for_few_minutes_is_measured_on_this_machine(tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    text.write_text("A line of a long text.\n" * 150_000, encoding="utf-8")
    said: list[str] = []
    recipe, _ = recipe_of([str(text)], task="language-model", minutes=0.05, say=said.append)
    assert (recipe.model.model_dim, recipe.text.kind) == (192, "bpe"), "words, as many allow them"
    (sized,) = [line for line in said if "width" in line]
    assert "width 192, 4 layers" in sized and "enough for a larger model: width 256" in sized
    said.clear()
    masked, _ = recipe_of([str(text)], task="masked", minutes=0.05, say=said.append)
    assert masked.plan.tokens_per_update == 1_024 and "updates of 1,024 tokens" in " ".join(said)
    assert (masked.plan.context, masked.masking.share) == (64, 0.3), "or it stands still for long"
    assert masked.model.dropout == 0.0
    assert (recipe.plan.context, recipe.masking.share) == (256, 0.15)
    whole, _ = recipe_of([str(text)], task="language-model")
    assert whole.model.model_dim == 256


def test_a_recipe_for_minutes_is_measured_on_this_machine(
    parallel_text: tuple[Path, Path],
) -> None:
    said: list[str] = []
    files = [str(path) for path in parallel_text]
    recipe, _ = recipe_of(files, minutes=0.05, say=said.append)
    assert recipe.plan.tokens_per_update < TABLE[0].tokens_per_update
    assert f"width {recipe.model.model_dim}, 2+2 layers" in said[0]


def test_a_small_text_says_how_it_is_cut_and_holds_some_out(tmp_path: Path) -> None:
    path = tmp_path / "my.en"
    path.write_text(
        "".join(f"This is line number {n} of a small text.\n" for n in range(400)), encoding="utf-8"
    )
    said: list[str] = []
    recipe, _ = recipe_of([str(path)], task="language-model", say=said.append)
    split = recipe.data.split
    sides = [side_of(pair.target, split) for pair in read_pairs(recipe.data.train[0])]
    assert 12 <= len(sides) < 40
    assert sides.count("dev") == sides.count("test") == len(sides) // 12
    told = " ".join(said)
    assert f"400 lines, read as {len(sides)} passages" in told and "--texts text" in told
    said.clear()
    recipe_of([str(path)], task="language-model", texts="text", say=said.append)
    assert "passages" not in " ".join(said)


def test_of_many_texts_a_twentieth_is_held_out_for_each_part(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"line {n}\n" for n in range(1_000)), encoding="utf-8")
    recipe, _ = recipe_of([str(path)], task="language-model", texts="text")
    assert (recipe.data.split.dev, recipe.data.split.test) == (0.05, 0.05)


def test_fewer_validations_leave_as_many_snapshots_to_average() -> None:
    """Where a recipe takes none between its validations."""
    changes = ["training.average_last=5", "training.snapshot_every=0"]
    averaged = Recipe.load("demo").change(changes)
    plain = averaged.change(["training.average_last=0"])
    often = 1_000 // VALIDATIONS
    few = VALIDATIONS // 2
    assert with_updates(averaged, 1_000).training.snapshot_every == 0
    assert with_updates(averaged, 1_000, validations=few).training.snapshot_every == often
    assert with_updates(plain, 1_000, validations=few).training.snapshot_every == 0
