"""What a user names is understood, or named for what it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from recipe_of_files import recipe_of
from row_files import write_idx
from untrained_run import untrained_run

from dragoman.base.errors import DataError, DragomanError, RecipeError, RunError
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.languages import CODES, COUNTRIES
from dragoman.runs.evaluation_set import EvaluationSet, own_test_set
from dragoman.runs.run import TEST
from dragoman.sizing.options import TrainOptions, given_language, given_languages, languages_of
from dragoman.sources.picture.form import PictureSource
from dragoman.studies.systems import System, require_one_test_set
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.from_files import name_of
from dragoman.tasks.inspection import inspect_data


def test_the_ending_of_a_name_is_a_language_if_it_is_the_code_of_one() -> None:
    for ending in ("srt", "xml", "md", "log", "htm"):
        assert languages_of([f"my.{ending}", "my.de.gz"]) == ("und", "de")
    assert languages_of(["my.en", "my.deu"]) == ("en", "deu")


def test_a_country_is_not_taken_for_a_language(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"mv my\.kr\.gz my\.ko\.gz\. Or .* --languages"):
        languages_of(["my.en", "my.kr.gz"])
    for wrong, right in (("english-korean", "en-ko"), ("en-jp", "en-ja"), ("English-de", "en-de")):
        with pytest.raises(RecipeError, match=f"--languages {right}$"):
            given_languages(wrong, ["my.a", "my.b"])
    for named in (lambda: given_languages("en-kr", ["a", "b"]), lambda: given_language("kr", "a")):
        with pytest.raises(
            RecipeError, match=r"--languages (en-)?ko \(kr is Kanuri; .* use kau\)$"
        ):
            named()
    with pytest.raises(RecipeError, match=r"--languages ko$"):
        given_language("Korean", "a")
    for wrong in ("en-../x", "e-de", "en-\x1b[2J", "en-de-"):
        with pytest.raises(RecipeError, match=r"use language codes, such as en-de$"):
            given_languages(wrong, [])
    assert given_languages("pt_BR-zh-Hans", []) == ("pt_BR", "zh-Hans")
    for code in {*CODES, "kau"} - {"kr"}:
        assert given_languages(f"en-{code}", ["my.a", "my.b"]) == ("en", code)
    assert not {*COUNTRIES} & CODES - {"kr"}


FOLDERS = {
    "recordings need": (("a.wav", "b.wav"), r"2 recordings, .* \(\.txt\) .* next to each"),
    "recordings by label": (("yes/a.wav", "no/b.wav"), "--task classification$"),
    "pictures": (("a.png", "b.png"), "2 pictures, .* a folder for each label"),
    "pictures by label": (("cat/a.png", "dog/b.png"), "--task classification$"),
    "boxes": (("a.png", "b.json"), "--task detection$"),
    "trees": (("a.mrg",), "--task parsing$"),
    "two sides": (("my.en.gz", "my.de.gz"), r"dragoman train .*my\.de\.gz .*my\.en\.gz$"),
    "texts": (("a.txt", "b.txt"), "--task language-model$"),
    "a run": (("recipe.toml", "model.safetensors"), "dragoman resume "),
    "nothing": ((), "a folder without texts, recordings, pictures or trees$"),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_without_a_task_is_looked_into(name: str, tmp_path: Path) -> None:
    files, said = FOLDERS[name]
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(b"x")
    with pytest.raises(RecipeError, match=said):
        recipe_of([str(tmp_path)])


def test_one_recording_without_its_text_is_named(tmp_path: Path) -> None:
    for name in ("a.wav", "b.wav", "b.txt"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(DataError, match=r"a\.wav has no transcript. Write it into a\.txt"):
        recipe_of([str(tmp_path)])


def test_a_folder_that_is_missing_and_a_task_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("recordings").mkdir()
    with pytest.raises(RecipeError, match=r"no file or folder recording/. Did you mean recordings"):
        recipe_of(["recording/"])
    (Path("recordings") / "a.wav").touch()
    for languages in (None, "en"):
        with pytest.raises(RecipeError, match="but no labels"):
            recipe_of(["recordings"], languages=languages)
    with pytest.raises(RecipeError, match=r"--task transcription: .*Leave it out"):
        recipe_of(["recordings"], task="transcription")
    with pytest.raises(RecipeError, match="Did you mean --task translation"):
        recipe_of(["recordings"], task="translate")


@pytest.mark.parametrize(
    ("name", "start", "what"),
    [
        ("a.docx", b"PK\x03\x04[Content_Types].xml", "an Office document"),
        ("a.mo", b"\xde\x12\x04\x95" + bytes(40), "a compiled catalogue of messages"),
        ("a.html", b"<!doctype html>\n<p>A dog.</p>\n", "is HTML"),
        ("a.txt", b"A dog.\n", "is one file of text"),
    ],
)
def test_one_file_is_named_for_what_it_is(
    name: str, start: bytes, what: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(start)
    for languages in (None, "en-de"):
        with pytest.raises(DragomanError, match=what):
            recipe_of([str(tmp_path / name)], languages=languages)


@pytest.mark.parametrize("task", ["parsing", "detection", "language-model", "masked"])
def test_a_file_that_is_missing_is_no_recipe_where_the_task_is_named(task: str) -> None:
    with pytest.raises(DragomanError, match=r"missing\.x does not exist$"):
        recipe_of(["missing.x"], task=task)
    for languages in (None, "en-de"):
        with pytest.raises(
            DragomanError, match="neither a file, nor a folder, nor an included recipe"
        ):
            recipe_of(["missing.x"], languages=languages)


@pytest.mark.parametrize("keys", [("source", "target"), ("en", "de")])
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_records_is_told_from_lines_of_them(
    keys: tuple[str, str], indent: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"en": "a", "de": "b"}], indent=indent))
    corpus = CorpusSettings(source=str(path), source_key=keys[0], target_key=keys[1])
    with pytest.raises(DataError, match=r"a JSON array. Convert it to one record per line"):
        list(read_pairs(corpus))


def test_a_model_of_markup_is_made_and_the_doubt_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    for name, text in (
        ("po.txt", 'msgid "A dog."\nmsgstr "Ein Hund."\n\n'),
        ("plain.html", "A dog sleeps.\nA cat sees it.\n"),
    ):
        (tmp_path / name).write_text(text * 50)
        recipe, _ = recipe_of([str(tmp_path / name)], task="language-model", say=said.append)
        assert recipe.task == "language-model" and recipe.languages.target != "txt"
    (warning,) = (line for line in said if line.startswith("warning"))
    assert "catalogue of messages" in warning


def test_one_file_with_both_sides_is_a_test_set(tmp_path: Path) -> None:
    run = Run.open(untrained_run(tmp_path))
    (tmp_path / "pairs.tsv").write_text("A dog.\tEin Hund.\nA cat.\tEine Katze.\n")
    found = EvaluationSet.of(run, [tmp_path / "pairs.tsv"])
    assert found.references == [["Ein Hund.", "Eine Katze."]]
    for name, what in (("a.po", "PO file"), ("a.xlf", "damaged"), ("a.en", r"\.tsv")):
        (tmp_path / name).write_text("A dog.\n")
        with pytest.raises(DragomanError, match=what):
            EvaluationSet.of(run, [tmp_path / name])


def test_evaluate_is_told_where_one_file_has_its_sides(tmp_path: Path) -> None:
    run = Run.open(untrained_run(tmp_path))
    table, records = tmp_path / "pairs.tsv", tmp_path / "pairs.jsonl"
    table.write_text("1\tEin Hund.\tA dog.\n2\tEine Katze.\tA cat.\n")
    records.write_text('{"t": {"en": "A dog.", "de": "Ein Hund."}}\n' * 2)
    found = EvaluationSet.of(run, [table], columns="3,2")
    assert [pair.source for pair in found.pairs] == ["A dog.", "A cat."]
    assert found.references == [["Ein Hund.", "Eine Katze."]]
    found = EvaluationSet.of(run, [records], keys=("t.en", "t.de"))
    assert found.references == [["Ein Hund."] * 2]
    for files, columns, keys, words in (
        ([table, table], "3,2", None, "one .tsv file"),
        ([], "3,2", None, "one .tsv file"),
        ([records], "3,2", None, "one .tsv file"),
        ([table], None, ("a", "b"), "one .jsonl file"),
        ([table], "3,2", ("a", "b"), "Use only one"),
        ([table], "label,text", None, "two numbers"),
    ):
        with pytest.raises(DragomanError, match=words):
            EvaluationSet.of(run, files, columns, keys)


def test_test_sets_of_other_languages_are_seen_by_their_references(tmp_path: Path) -> None:
    runs = []
    for number, word in enumerate(("Bär", "Ba\N{COMBINING DIAERESIS}r", "狗")):
        folder = tmp_path / str(number)
        folder.mkdir()
        untrained_run(folder, "languages.target=und", "data.split.test=0.1")
        runs.append(Run.open(folder))
        lines = [{"source": f"Dog {n}.", "target": f"{word} {n}."} for n in range(30)]
        (folder / TEST).write_text("".join(json.dumps(line) + "\n" for line in lines))
        recipe = runs[-1].recipe
        data = recipe.data.model_copy(
            update={"embedded": None, "train": (CorpusSettings(source="gone", target="gone too"),)}
        )
        recipe.model_copy(update={"data": data}).save(folder / "recipe.toml")
        runs[-1] = Run.open(folder)
    one, same, other = (System(run.folder.name, (run,), run.folder) for run in runs)
    pairs, _ = own_test_set(runs[0])
    require_one_test_set([one, same], pairs)
    with pytest.raises(RunError, match="different references for the same source in 30 of 30"):
        require_one_test_set([one, same, other], pairs)


def test_languages_that_are_not_known_are_not_said_to_look_right(tmp_path: Path) -> None:
    lines = [f"A dog sees {n} cats.\tEin Hund sieht {n} Katzen.\n" for n in range(200)]
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    corpus = CorpusSettings(source=str(tmp_path / "pairs.tsv"))
    for codes, looked_at in ((("und", "und"), False), (("en", "de"), True)):
        recipe = Recipe.load("demo").model_copy(deep=True)
        recipe = recipe.change([f"languages.source={codes[0]}", f"languages.target={codes[1]}"])
        data = recipe.data.model_copy(update={"embedded": None, "train": (corpus,)})
        found = inspect_data(recipe.model_copy(update={"data": data}))
        assert found.languages_looked_at is looked_at
        assert ("was not checked" in found.text()) is not (looked_at or bool(found.warnings))


def test_a_run_is_called_by_its_file_or_by_the_languages_of_two(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("my.en", "my.de", "wsj.mrg", "some.txt")]
    for path in files:
        Path(path).write_text("a\n", encoding="utf-8")
    source, target, trees, text = files

    def called(*names: str, task: str | None = None, languages: str | None = None) -> str | None:
        return name_of(TrainOptions(inputs=list(names), task=task, languages=languages))

    assert called(source, target) == "en-de"
    assert called(source, target, languages="en-und") == "my"
    assert called(text, languages="en-ko") == "en-ko" and called(trees, languages="en-ko") == "wsj"
    assert called(text, task="language-model", languages="en") == "some"
    assert called(trees, languages="en") == "wsj"
    assert called(str(tmp_path), languages="en") == tmp_path.name  # recordings and their texts
    assert called("demo") is None


@pytest.mark.parametrize(
    ("side", "patch"), [(28, 4), (14, 7), (10, 2), (25, 5), (9, 3), (11, 1), (20, 4), (6, 2)]
)
def test_pictures_are_cut_into_patches_that_fill_them(
    side: int, patch: int, tmp_path: Path
) -> None:
    pictures = write_idx(tmp_path / "some-images-idx3-ubyte", np.zeros((4, side, side)))
    labels = write_idx(tmp_path / "some-labels-idx1-ubyte", [0, 1, 0, 1])
    recipe, _ = recipe_of([str(pictures), str(labels)], task="classification")
    assert isinstance(recipe.source, PictureSource)
    assert recipe.source.patch == patch
