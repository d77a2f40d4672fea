"""Dev and test files of one's own, for every task whose data are files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Dragoman
from recipe_of_files import recipe_of
from row_files import write_wav
from tiny_treebank import treebank, write_treebank

from dragoman.base.errors import DataError, DragomanError, RecipeError
from dragoman.console.options import pad_options
from dragoman.runs.corpora import plain_pairs
from dragoman.runs.recipe.recipe import Recipe


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Training, dev and test files of each task."""
    for name, first, count in (("train", 0, 60), ("dev", 60, 8), ("test", 70, 9)):
        some = range(first, first + count)
        (tmp_path / f"{name}.en").write_text("".join(f"The dog sees {n} cats.\n" for n in some))
        (tmp_path / f"{name}.de").write_text("".join(f"Der Hund sieht {n} Katzen.\n" for n in some))
        (tmp_path / f"{name}.pairs.tsv").write_text("".join(f"a {n}\tein {n}\n" for n in some))
        rows = [f"{'odd' if n % 2 else 'even'}\tThe number is {n} .\n" for n in some]
        (tmp_path / f"{name}.tsv").write_text("".join(rows))
        asked = [{"text": f"It is {n}.", "label": "odd" if n % 2 else "even"} for n in some]
        lines = "".join(f"{json.dumps(one)}\n" for one in asked)
        (tmp_path / f"{name}.jsonl").write_text(lines)
        (tmp_path / f"{name}.txt").write_text(
            "".join(f"Line {n} of very many.\n" * 40 for n in some)
        )
        write_treebank(tmp_path / f"{name}.mrg", treebank(80)[first : first + count])
    return tmp_path


def asked(files: Path, task: str | None, ending: str, **others: object) -> Recipe:
    """What naming one file for each part gives."""
    dev, test = [[str(files / f"{name}.{ending}"), ""] for name in ("dev", "test")]
    recipe, _ = recipe_of(
        [str(files / f"train.{ending}")], task=task, dev=dev, test=test, **others  # type: ignore[arg-type]
    )  # fmt: skip
    return recipe


@pytest.mark.parametrize(
    ("task", "ending"),
    [
        (None, "pairs.tsv"), ("classification", "tsv"), ("classification", "jsonl"),
        ("language-model", "txt"), ("masked", "txt"), ("parsing", "mrg"), (None, "mrg"),
    ],
)  # fmt: skip
def test_one_file_is_read_as_the_training_file_is(
    files: Path, task: str | None, ending: str
) -> None:
    data = asked(files, task, ending).data
    assert data.dev is not None and data.test is not None
    assert (data.split.dev, data.split.test) == (0, 0)
    for corpus, name in ((data.dev, "dev"), (data.test, "test")):
        assert corpus.source == str(files / f"{name}.{ending}")
        assert corpus == data.train[0].model_copy(update={"source": corpus.source})


def test_without_them_a_part_is_held_out(files: Path) -> None:
    for task, ending in (("parsing", "mrg"), ("language-model", "txt"), ("masked", "txt")):
        recipe, _ = recipe_of([str(files / f"train.{ending}")], task=task)
        assert recipe.data.dev is None and recipe.data.split.dev > 0
        recipe, _ = recipe_of(
            [str(files / f"train.{ending}")], task=task, dev=[str(files / f"dev.{ending}")]
        )
        assert recipe.data.dev is not None and recipe.data.split.dev == 0 < recipe.data.split.test


@pytest.mark.parametrize("task", ["translation", "classification", "tagging", "masked"])
def test_what_is_held_out_of_few_examples_is_never_empty(tmp_path: Path, task: str) -> None:
    """Of 12 corpora of 40 to 51 examples each, by a share of their hashes some would have none."""
    for count in range(40, 52):
        path = tmp_path / f"few{count}.tsv"
        rows = [f"{count} times {n}\t{'odd' if n % 2 else 'even'}" for n in range(count)]
        if task == "tagging":
            rows = [f"word{n}of{count}\tNOUN\nruns\tVERB\n" for n in range(count)]
        if task == "masked":
            rows = [f"The {count} dogs of number {n} run.\n" for n in range(count)]
        path.write_text("".join(f"{row}\n" for row in rows))
        recipe, _ = recipe_of([str(path)], task=task)
        sides = [len(plain_pairs(recipe, side)) for side in ("train", "dev", "test")]
        assert min(sides) > 0, (count, sides)
        if task != "masked":
            assert sides[1:] == [round(0.05 * count)] * 2


def test_of_a_text_that_is_cut_into_few_passages_a_part_is_held_out(tmp_path: Path) -> None:
    """What is counted are its passages as they are learned from, long ones too."""
    for long in (1, 8):
        for count in range(560, 620, 5):
            path = tmp_path / f"{count}-{long}.txt"
            line = "the dog sees the house and runs" * long
            path.write_text("".join(f"Line {n} of {count}: {line}.\n" for n in range(count)))
            recipe, _ = recipe_of([str(path)], task="language-model")
            train, dev, test = (len(plain_pairs(recipe, side)) for side in ("train", "dev", "test"))
            assert train + dev + test < 400, "they are few"
            assert dev == test == round(0.05 * (train + dev + test)), (count, train, dev, test)


@pytest.mark.parametrize("speakers", [["anna2"], ["bob"], ["bob", "anna2"], ["bob", "eve", "anna"]])
def test_recordings_of_few_speakers_are_held_out(tmp_path: Path, speakers: list[str]) -> None:
    """Of one or two speakers, recordings of each, whatever the hashes of their names say."""
    rows = ["file,text,speaker"]
    for number in range(60):
        write_wav(tmp_path / f"{number}.wav", [number / 100] * 400)
        rows.append(f"{number}.wav,It is {number},{speakers[number % len(speakers)]}")
    (tmp_path / "list.csv").write_text("\n".join(rows) + "\n")
    said: list[str] = []
    recipe, _ = recipe_of([str(tmp_path / "list.csv")], say=said.append)
    sides = [plain_pairs(recipe, side) for side in ("train", "dev", "test")]
    wanted = [54, 3, 3] if len(speakers) < 3 else [20, 20, 20]
    assert [len(pairs) for pairs in sides] == wanted
    assert any("too few to hold" in line for line in said) == (len(speakers) < 3)


def test_labelled_recordings_of_unknown_speakers_are_told(tmp_path: Path) -> None:
    for number in range(60):
        folder = tmp_path / "clips" / ("no" if number % 2 else "yes")
        folder.mkdir(parents=True, exist_ok=True)
        write_wav(folder / f"anna{number % 3}_{number}.wav", [number / 100] * 400)
    for groups, is_told in ((None, True), ("(anna.)", False)):
        said: list[str] = []
        recipe_of([str(tmp_path / "clips")], task="classification", groups=groups, say=said.append)
        assert any("the speakers are not known" in line for line in said) == is_told, said


def test_two_files_beside_one_and_one_beside_two(files: Path) -> None:
    en, de = str(files / "dev.en"), str(files / "dev.de")
    recipe, _ = recipe_of([str(files / "train.pairs.tsv")], dev=(en, de))
    assert recipe.data.dev is not None and recipe.data.dev.target == de
    train = [str(files / "train.en"), str(files / "train.de")]
    recipe, _ = recipe_of(train, dev=[str(files / "dev.pairs.tsv")])
    assert recipe.data.dev is not None and recipe.data.dev.target is None
    recipe, _ = recipe_of(
        [str(files / "train.tsv")], task="classification", dev=[str(files / "dev.jsonl")]
    )
    assert recipe.data.dev is not None and recipe.data.dev.source_key == "text"


def test_what_does_not_fit_is_said(files: Path) -> None:
    (files / "empty.mrg").write_text("")
    (files / "blank.mrg").write_text("\n")
    (files / "bad.tsv").write_text("no tab\n")
    for task, train, dev, words in (
        ("parsing", "train.mrg", ("dev.mrg", "dev.mrg"), "--dev .*: give one file, or a folder"),
        (
            "language-model",
            "train.txt",
            ("dev.txt", "dev.txt"),
            "--dev .*: give one file, or a folder",
        ),
        ("parsing", "train.mrg", ("none.mrg",), "none.mrg does not exist"),
        ("parsing", "train.mrg", ("empty.mrg",), "empty.mrg is empty"),
        ("parsing", "train.mrg", ("blank.mrg",), "it contains no trees"),
        ("parsing", "train.mrg", ("dev.txt",), "dev.txt, line 1: "),
        ("classification", "train.tsv", ("bad.tsv",), "bad.tsv, line 1: there is no tab"),
        (None, "train.pairs.tsv", ("dev.txt",), "dev.txt: one file for both sides must be"),
    ):
        named = [str(files / name) for name in dev]
        with pytest.raises(DragomanError, match=words) as raised:
            recipe_of([str(files / train)], task=task, dev=named)
        assert isinstance(raised.value, DataError | RecipeError)


def test_columns_are_of_one_table(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("my.en", "my.de")]
    for name in names:
        Path(name).write_text("a b c\n" * 9, encoding="utf-8")
    for inputs, task in ((names, "translation"), (names, "classification"), (names[:1], "masked")):
        with pytest.raises(RecipeError, match="--columns sets the columns of source and target"):
            recipe_of(inputs, task=task, columns="1,2")


def test_an_option_takes_one_word_or_two() -> None:
    for given, expected in (
        ("a.en a.de --dev d.en d.de --to x", "a.en a.de --dev d.en d.de --to x"),
        ("a.tsv --dev d.tsv --test t.tsv", "a.tsv --dev d.tsv - --test t.tsv -"),
        ("--dev d.tsv a.tsv", "--dev d.tsv - a.tsv"),
        ("--test=t.mrg.gz a.mrg.gz", "--test t.mrg.gz - a.mrg.gz"),
        ("a.txt --task masked --dev d.txt", "a.txt --task masked --dev d.txt -"),
        ("a.en a.de --dev", "a.en a.de --dev"),
        ("a.en --dev --to x", "a.en --dev --to x"),
        ("-- --dev a", "-- --dev a"),
    ):
        words = [word.replace("-", "") if word == "-" else word for word in expected.split()]
        assert pad_options(given.split(), ("--dev", "--test")) == words


def test_the_command_line_trains_and_measures_on_them(
    files: Path, dragoman: Dragoman, tmp_path: Path
) -> None:
    changes = ("model.model_dim=16", "model.ffn_dim=16", "training.updates=2",
               "training.validate_every=2", "model.attention.num_heads=2")  # fmt: skip
    said = dragoman(
        "train", files / "train.tsv", "--task", "classification", "--to", tmp_path / "run",
        "--dev", files / "dev.tsv", "--test", files / "test.tsv",
        *(word for change in changes for word in ("--set", change)),
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "60 texts to train on, 8 dev, 9 test" in said.out
    scores = json.loads((tmp_path / "run" / "scores.json").read_text(encoding="utf-8"))
    assert scores["test"] == "test.tsv"
    missing = dragoman("train", files / "train.mrg", "--dev", files / "none.mrg")
    assert missing.code == 1 and "none.mrg does not exist" in missing.err
    alone = dragoman("train", files / "train.mrg", "--dev")
    assert alone.code == 2 and "--dev" in alone.err
