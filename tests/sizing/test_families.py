"""``--model``: the same size of a Transformer, an LSTM or convolutions, for text of one's own."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import Dragoman
from recipe_of_files import recipe_of
from tiny_scenes import write_scenes
from tiny_shapes import write_blocks
from tiny_treebank import treebank, write_treebank

from dragoman.base.errors import RecipeError
from dragoman.forms.sides import Forms
from dragoman.models.settings import TransformerSettings
from dragoman.sizing import budget
from dragoman.sizing.size import FAMILIES, settings_of
from dragoman.tasks.catalogue import TASKS
from dragoman.tasks.training import train
from dragoman.tasks.translation.sizes import TABLE

KINDS = {
    ("translation", "transformer"): "transformer",
    ("translation", "lstm"): "recurrent",
    ("translation", "conv"): "convolutional",
    ("language-model", "transformer"): "decoder",
    ("language-model", "lstm"): "recurrent-decoder",
    ("masked", "transformer"): "encoder",
    ("classification", "transformer"): "encoder",
    ("classification", "lstm"): "recurrent-decoder",
    ("tagging", "transformer"): "encoder",
    ("tagging", "lstm"): "recurrent-decoder",
    ("parsing", "transformer"): "transformer",
    ("parsing", "lstm"): "recurrent",
    ("detection", "transformer"): "transformer",
    ("codes", "transformer"): "codes",
    ("painting", "transformer"): "transformer",
}


@pytest.mark.parametrize(("rows", "layers"), [(1, 2), (2, 2), (3, 3)])
def test_an_lstm_has_two_layers_at_least(rows: int, layers: int) -> None:
    row = replace(TABLE[0], layers=rows, dropout=0.1)
    model = settings_of("lstm", TASKS["translation"], row).model_dump()
    assert (model["encoder_layers"], model["decoder_layers"]) == (layers, layers)
    assert model["dropout"] == 0.067, "two thirds of a Transformer's"


@pytest.fixture(scope="module")
def files(
    parallel_text: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """What there is to learn from, by task."""
    folder = tmp_path_factory.mktemp("files")
    source, target = map(str, parallel_text)
    lines = parallel_text[0].read_text(encoding="utf-8").splitlines()
    labels = "".join(f"{'long' if len(line) > 30 else 'short'}\t{line}\n" for line in lines)
    (folder / "my.tsv").write_text(labels, encoding="utf-8")
    write_treebank(folder / "my.mrg", treebank(200))
    alone = [source]
    return {
        "translation": [source, target], "language-model": alone, "masked": alone,
        "classification": [str(folder / "my.tsv")], "parsing": [str(folder / "my.mrg")],
        "tagging": [str(folder / "my.mrg")],
        "detection": [str(write_scenes(folder / "scenes", 40))],
        "codes": [str(write_blocks(folder))], "painting": [str(write_blocks(folder))],
    }  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_the_families_that_can_do_it(
    files: dict[str, list[str]], task: str, family: str, tmp_path: Path
) -> None:
    brief = ("training.updates=1", "training.validate_every=0", "training.average_last=0")
    if (task, family) not in KINDS:
        with pytest.raises(RecipeError, match=rf"--model {family}\b.*transformer"):
            recipe_of(files[task], task=task, model=family)
        return
    recipe, _ = recipe_of(files[task], task=task, model=family, changes=brief)
    assert recipe.model.kind == KINDS[task, family]
    usual, _ = recipe_of(files[task], task=task)
    assert recipe.model.model_dim == usual.model.model_dim
    assert recipe.plan == usual.plan
    if family != "transformer" and task != "parsing":
        train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)


def test_families_are_of_one_size() -> None:
    """Width and layers are the row's; parameters differ by less than two and a half times."""
    task = TASKS["translation"]
    for row in TABLE:
        sizes = []
        for family in FAMILIES:
            settings = settings_of(family, task, row)
            sides = SimpleNamespace(size=1_000)
            network = task.new_network(settings, Forms(sides, sides))  # type: ignore[arg-type]
            sizes.append(sum(p.numel() for p in network.parameters()) - 1_000 * row.model_dim)
            assert settings.model_dim == row.model_dim
        assert max(sizes) < 2.5 * min(sizes)


def test_minutes_are_measured_with_the_family(
    files: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def speed(_: object, family: str, __: object) -> float:
        asked.append(family)
        return 100.0

    monkeypatch.setattr(budget, "tokens_per_second", speed)
    pairs = files["translation"]
    recipe, _ = recipe_of(pairs, minutes=1, model="lstm", say=lambda _: None)
    assert (recipe.model.kind, recipe.model.model_dim) == ("recurrent", TABLE[0].model_dim)
    assert set(asked) == {"lstm"}
    monkeypatch.undo()
    assert budget.tokens_per_second(TASKS["translation"], "conv", TABLE[0]) > 0


def test_the_heads_of_a_small_transformer_that_parses_are_64_wide(
    files: dict[str, list[str]],
) -> None:
    """The row is that of an LSTM, which has one head."""
    recipe, _ = recipe_of(files["parsing"], model="transformer")
    assert isinstance(recipe.model, TransformerSettings)
    assert (recipe.model.model_dim, recipe.model.attention.num_heads) == (128, 2)


@pytest.mark.parametrize("task", TASKS)
def test_a_family_that_there_is_not_is_refused_by_every_task(
    task: str, files: dict[str, list[str]]
) -> None:
    for minutes in (None, 1):
        with pytest.raises(RecipeError, match=r"^--model perceptron: .*lstm"):
            recipe_of(files[task], task=task, model="perceptron", minutes=minutes)


def test_another_kind_of_model_is_asked_for_by_one_word(
    dragoman: Dragoman, files: dict[str, list[str]], tmp_path: Path
) -> None:
    pairs = files["translation"]
    said = dragoman("train", *pairs, "--set", "model.kind=recurrent", "--to", tmp_path / "run")
    assert said.code == 1 and "--model (one of transformer, lstm, conv)" in said.err
    assert len(said.err.splitlines()) <= 2
    same = ("--set", "model.kind=transformer", "--set", "training.update=9")
    said = dragoman("train", *pairs, *same, "--to", tmp_path / "run")
    assert (
        said.code == 1 and "unknown key 'training.update'" in said.err and "--model" not in said.err
    )
    for recipe in (["demo"], [*pairs, "--recipe", "demo"]):
        said = dragoman("train", *recipe, "--model", "lstm", "--to", tmp_path / "run")
        assert said.code == 1 and "--model" in said.err
    said = dragoman("train", *pairs, "--model", "gru", "--to", tmp_path / "run")
    assert said.code == 1 and "use one of transformer, lstm, conv" in said.err


def test_columns_of_pairs(dragoman: Dragoman, tmp_path: Path) -> None:
    table = tmp_path / "my.tsv"
    lines = (f"{n}\tThe dog {n} sleeps.\tDer Hund {n} schläft.\tok\n" for n in range(60))
    table.write_text("".join(lines), encoding="utf-8")
    recipe, _ = recipe_of([str(table)], columns="3,2", dev=[str(table)])
    for corpus in (recipe.data.train[0], recipe.data.dev):
        assert corpus is not None and (corpus.source_column, corpus.target_column) == (3, 2)
    shown = dragoman("data", "show", table, "--columns", "2,3", "--languages", "en-de")
    assert shown.code == 0 and "240 words" in shown.out
    for wrong, words in (
        ("2", "two numbers such as 2,3"),
        ("2,2", "two different columns"),
        ("0,1", "2,3"),
    ):
        said = dragoman("data", "show", table, "--columns", wrong)
        assert said.code == 1 and words in said.err
    text = table.read_text(encoding="utf-8").replace("ok", "no", 9)
    table.write_text(text, encoding="utf-8")
    labels, _ = recipe_of([str(table)], task="classification", columns="2,4")
    corpus = labels.data.train[0]
    assert (corpus.source_column, corpus.target_column) == (2, 4)


def test_parts_are_named_in_one_order(dragoman: Dragoman, tmp_path: Path) -> None:
    """Whichever of them the first pair falls into."""
    pairs = [f"The dog number {n} sleeps.\tDer Hund Nummer {n} schläft.\n" for n in range(100)]
    table = tmp_path / "pairs.tsv"
    for first in range(0, 100, 10):
        table.write_text("".join(pairs[first:] + pairs[:first]), encoding="utf-8")
        said = dragoman("data", "show", table, "--languages", "en-de").out
        names = re.findall(r"(\w+) \d+", next(one for one in said.splitlines() if "parts" in one))
        assert names == ["train", "dev", "test"]


def test_data_of_every_task_is_shown(dragoman: Dragoman, files: dict[str, list[str]]) -> None:
    for task, named in files.items():
        shown = dragoman("data", "show", *named, "--task", task)
        assert shown.code == 0, shown.err
        assert "kept" in shown.out
    shown = dragoman("data", "show", *files["classification"], "--task", "classification")
    assert "labels: 2 different" in shown.out and "short" in shown.out
    assert "warning" not in shown.out
    table = Path(files["classification"][0]).with_name("with-header.tsv")
    rows = Path(files["classification"][0]).read_text(encoding="utf-8")
    table.write_text("label\ttext\n" + rows, encoding="utf-8")
    shown = dragoman("data", "show", table, "--task", "classification")
    assert "such as 'label' with 1" in shown.out and "the name of a column" in shown.out


def test_labels_among_pairs_are_said(
    dragoman: Dragoman, files: dict[str, list[str]], tmp_path: Path
) -> None:
    table = tmp_path / "my.tsv"
    rows = Path(files["classification"][0]).read_text(encoding="utf-8").splitlines()
    # A label is much shorter than its text, so that most of these are dropped, but not all.
    long = [f"{row} {'and so on ' * 9}" for row in rows]
    for content in (long, [*long, "short\tThe dog sleeps."]):
        table.write_text("\n".join(content) + "\n", encoding="utf-8")
        shown = dragoman("data", "show", table)
        told = " ".join((shown.out + shown.err).split())
        assert "these look like labels" in told and "--task classification" in told
        assert "Nothing looks wrong" not in told
    assert "cleaning drops" in told and "Check the file and the columns" in told
    said = dragoman("train", table, "--set", "plan.max_source=1", "--to", tmp_path / "run")
    assert "these look like labels" in said.out
