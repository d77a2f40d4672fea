"""A translator that reads pictures of lines: texts are drawn for it, and files are read as they."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from command_line import Dragoman
from PIL import Image
from tiny_cells import tiny_cell

from dragoman import load
from dragoman.base.errors import RecipeError, RunError
from dragoman.data.files.corpora import corpus_fingerprint, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.runs.files import read_metrics
from dragoman.runs.run import METRICS
from dragoman.sources.line import DRAWN, DrawingSettings, draw_text
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.training import train
from dragoman.tasks.translation.evaluation import TranslationEvaluation

WORDS = {"red": "rot", "green": "grün", "blue": "blau", "white": "weiß"}
DRAWING = {"smallest": 0.6, "largest": 0.8, "slant": 0.1, "blur": 0.5}
CHANGES = (
    "data.split.dev=0.1",
    "data.split.test=0",
    "training.updates=120",
    "plan.context=128",
    "training.schedule.peak=4e-3",
    "model.norm=pre",
    "training.metric=loss",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It has learned four words, from two files, one of them compressed."""
    folder = tmp_path_factory.mktemp("lines")
    recipe = tiny_cell("translation", "transformer", "line", folder)
    english = [word for word in WORDS for _ in range(12)]
    with gzip.open(folder / "words.en.gz", "wt") as file:
        file.writelines(f"{word}{'.' * (n % 4)}\n" for n, word in enumerate(english))
    (folder / "words.de").write_text("".join(f"{WORDS[word]}\n" for word in english), "utf-8")
    corpus = {
        "source": str(folder / "words.en.gz"), "target": str(folder / "words.de"), "holds": "drawn",
    }  # fmt: skip
    values = recipe.model_dump(mode="json", exclude_none=True)
    values["data"]["train"] = [corpus]
    values["source"] |= {"height": 16, "channels": 8}
    values["source"]["drawing"] = DRAWING
    values["text"] = {"kind": "word", "byte_fallback": False, "vocabulary": 12}
    made = Recipe.parse(values, CHANGES)
    train(made, folder / "run", say=lambda _: None, display=False, measure=False)
    return folder / "run"


def test_pictures_and_drawn_texts_are_translated(
    run: Path, tmp_path: Path, dragoman: Dragoman
) -> None:
    drawing = DrawingSettings.model_validate(DRAWING)
    for word in WORDS:
        Image.fromarray(255 - draw_text(word, 16, drawing)).save(tmp_path / f"{word}.png")
    translator = load(run)
    found = [str(one) for one in translator.batch([DRAWN + word for word in WORDS])]
    assert found == list(WORDS.values())
    pictures = [str(tmp_path / f"{word}.png") for word in WORDS]
    assert [str(one) for one in translator.batch(pictures)] == found, "dark paper"
    told = dragoman("translate", run, *pictures)
    assert (told.code, told.out.splitlines()) == (0, found), told.err
    looked = dragoman("look", run, pictures[0])
    assert looked.code == 0 and "4px" in looked.out
    told = dragoman("translate", run, tmp_path / "none.png")
    assert told.code == 1 and "none.png does not exist" in told.err


def test_two_files_are_drawn_and_measured(run: Path, tmp_path: Path) -> None:
    for name, words in (("t.en", WORDS), ("t.de", WORDS.values())):
        (tmp_path / name).write_text("".join(f"{word}\n" for word in words), "utf-8")
    report = TranslationEvaluation()(Run.open(run), [tmp_path / "t.en", tmp_path / "t.de"])
    assert report.hypotheses == list(WORDS.values())
    assert report.pairs[0].source == "drawn:red"


def test_an_example_is_its_text_and_equal_ones_are_one_group(tmp_path: Path) -> None:
    listing = tmp_path / "some.tsv"
    listing.write_text("a dog\tein Hund\na cat\teine Katze\na dog\tHund\n", "utf-8")
    corpus = CorpusSettings(source=str(listing), holds="drawn")
    first, second, third = read_pairs(corpus)
    assert first.source == "drawn:a dog" and first.target == "ein Hund"
    assert first.group == third.group != second.group
    before = corpus_fingerprint(corpus)
    listing.write_text("a dog\tein Hund\na cow\teine Kuh\na dog\tHund\n", "utf-8")
    assert corpus_fingerprint(corpus) != before


def test_recipes_that_cannot_be_are_told(tmp_path: Path) -> None:
    values = tiny_cell("translation", "transformer", "line", tmp_path).model_dump(
        mode="json", exclude_none=True
    )
    drawn_corpus = values["data"]["train"][0]
    for changes, why in (
        ({"source": {"kind": "picture"}}, "to be drawn line by line"),
        ({"source": {"kind": "text"}}, "names files, but the model reads text"),
        ({"source": {"kind": "line", "drawing": {"fonts": []}}}, "fonts is empty"),
        ({"source": {"kind": "line", "drawing": {"smallest": 0.9}}}, "smaller than smallest"),
        (
            {"data": {**values["data"], "train": [{**drawn_corpus, "format": "folders"}]}},
            "format folders has no text that could be drawn",
        ),
    ):
        with pytest.raises(RecipeError, match=why):
            Recipe.parse(values | changes)


def test_a_reader_is_measured_in_wrong_words_and_a_translator_begins_with_its_encoder(
    tmp_path: Path,
) -> None:
    words = "".join(f"{word} {other}\n" for word in WORDS for other in WORDS)
    (tmp_path / "words.txt").write_text(words, "utf-8")
    recipe = tiny_cell("translation", "transformer", "line", tmp_path)
    values = recipe.model_dump(mode="json", exclude_none=True)
    listed = {"source": str(tmp_path / "words.txt"), "holds": "drawn"}
    values["data"]["train"] = [listed | {"target": listed["source"]}]
    values["data"]["cleaning"] = {"identical": False}
    values["languages"] = {"source": "en", "target": "en"}
    changes = ("training.updates=4", "training.validate_every=2", "training.ctc_weight=0.5")
    reader = Recipe.parse(values, [*CHANGES, *changes])
    train(reader, tmp_path / "reader", say=lambda _: None, display=False, measure=False)
    lines = list(read_metrics(tmp_path / "reader" / METRICS))
    scores = next(line["scores"] for line in lines if line["kind"] == "validation")
    assert {"bleu", "wer", "cer"} <= set(scores)
    report = TranslationEvaluation()(Run.open(tmp_path / "reader"), [tmp_path / "words.txt"] * 2)
    assert report.heard is not None and "16 pictures" in report.table()
    heads = [line.split()[0] for line in report.table().splitlines() if line]
    assert heads.index("WER") < heads.index("BLEU"), "what is read letter by letter comes first"

    values["languages"] = {"source": "en", "target": "de"}
    told: list[str] = []
    base = Run.open(tmp_path / "reader")
    translating = Recipe.parse(values, [*CHANGES, "training.updates=1", "training.average_last=0"])
    train(
        translating, tmp_path / "run", start_from=base, take="encoder", say=told.append,
        display=False, measure=False,
    )  # fmt: skip
    assert "wer" not in str(list(read_metrics(tmp_path / "run" / METRICS))).lower()
    (fit,) = (line for line in told if "parameters of the new model" in line)
    assert "did not fit" not in fit
    taken = json.loads((tmp_path / "run" / "data.json").read_text())["start"]
    own = [name for name in base.model().state_dict() if name.startswith(("front_end", "encoder"))]
    assert taken["tensors"] == len(own) and len([one for one in own if "front_end" in one]) > 4
    other = Recipe.parse(values, [*CHANGES, "source.height=9"])
    with pytest.raises(RunError, match="another section source"):
        train(
            other, tmp_path / "other", start_from=base, take="encoder", say=told.append,
            display=False, measure=False,
        )  # fmt: skip
