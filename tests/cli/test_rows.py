"""Recordings and pictures from the command line: trained, measured, asked, looked into, refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import Dragoman
from row_files import write_bars, write_idx, write_pictures, write_tones, write_wav
from tiny_cells import tiny_cell

from dragoman.base.errors import DragomanError
from dragoman.runs.files import read_metrics
from dragoman.runs.run import METRICS
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.shared.evaluation import corpus_like
from dragoman.tasks.training import train

SMALL = (
    "--set=model.model_dim=32", "--set=model.ffn_dim=32", "--set=model.layers=1",
    "--set=model.attention.num_heads=2", "--set=model.dropout=0", "--set=training.updates=40",
    "--set=training.validate_every=20", "--set=training.schedule.peak=1e-2",
    "--set=training.schedule.warmup=5", "--set=plan.tokens_per_update=512",
    "--set=plan.tokens_per_micro_batch=512", "--set=training.precision=fp32",
)  # fmt: skip


@pytest.fixture(scope="module")
def tones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tones")
    write_tones(root / "train", 40)
    write_tones(root / "test", 8, first=100)
    return root


def test_a_folder_of_recordings_becomes_a_run(
    dragoman: Dragoman, tones: Path, tmp_path: Path
) -> None:
    run, files = tmp_path / "run", tones / "test"
    said = dragoman(
        "train", tones / "train", "--task", "classification", "--test", files, "--to", run,
        *SMALL,
    )  # fmt: skip
    assert said.code == 0, said.err
    measured = dragoman("evaluate", run)
    assert measured.code == 0 and "16 recordings" in measured.out, measured.out + measured.err
    assert any(
        line.split()[-1] == "recordings" for line in measured.out.splitlines() if "F1, %" in line
    )
    one = next((files / "rising").glob("*.wav"))
    found = dragoman("classify", run, one, files / "falling")
    lines = [line.split("\t") for line in found.out.splitlines()]
    assert len(lines) == 9 and lines[0][0] == str(one)
    assert [label for _, label, _ in lines] == ["rising"] + ["falling"] * 8
    (tmp_path / "new").mkdir()
    for name in ("a.wav", "c.wav"):
        shutil.copy(one, tmp_path / "new" / name)
    (tmp_path / "new" / "b.wav").write_bytes(one.read_bytes()[:500])
    some = dragoman("classify", run, tmp_path / "new")
    assert [line.split("\t")[0][-5:] for line in some.out.splitlines()] == ["a.wav", "c.wav"]
    assert some.code == 1 and "b.wav is cut off" in some.err
    assert "1 file could not be labelled" in some.err
    learned = dragoman("evaluate", run, tones / "train")
    assert "run has learned from 76 of the 80 test recordings" in learned.err, learned.err
    shutil.copytree(run, tmp_path / "copy")
    compared = dragoman("compare", run, tmp_path / "copy", "--source", tones / "train")
    assert "copy has learned from 76 of the 80 test texts" in compared.out, compared.err
    compared = dragoman("compare", run, tmp_path / "copy")
    assert compared.code == 0 and "has learned" not in compared.out, compared.err
    names = f"{one}\n{files / 'falling'}\n".encode()  # a file and a folder, as arguments have them
    assert dragoman("classify", run, stdin=names).out == found.out
    for arguments, stdin, told in (
        ((), one.read_bytes(), "standard input is not a list of file names"),
        ((), b"\n", "the name of a file is empty"),
        ((one, ""), b"", "the name of a file is empty"),
    ):
        refused = dragoman("classify", run, *arguments, stdin=stdin)
        assert refused.code == 1 and told in refused.err and not refused.out, refused.err
        assert len(refused.err.strip().splitlines()) == 1, refused.err
    looked = dragoman("look", run, one, "--to", tmp_path / "look.csv")
    assert looked.code == 0 and not looked.err, looked.err
    assert "0.02s" in (tmp_path / "look.csv").read_text("utf-8")
    hidden = dragoman("look", run, one, "--hide", "0.02s", "--head-off", "encoder.1.1")
    assert hidden.code == 0, hidden.err
    for verb, *more in (("classify", one, "--explain"), ("figure", "heads")):
        where = ("--run", run) if verb == "figure" else (run,)
        refused = dragoman(verb, *(more[:1] if verb == "figure" else ()), *where,
                           *(() if verb == "figure" else more))  # fmt: skip
        assert refused.code == 1 and "recordings" in refused.err, refused.err
        assert len(refused.err.strip().splitlines()) == 1, refused.err


def test_odd_names_of_recordings(dragoman: Dragoman, tones: Path, tmp_path: Path) -> None:
    """Korean ones, with spaces, ``#`` and bytes that are not UTF-8, and a folder that is called as
    an IDX file is, are read as any other; what does not stay on one line is refused."""
    root, run = tmp_path / "소리 #모음.idx", tmp_path / "런 #1"
    for label, korean in (("falling", "내려가는 소리"), ("rising", "올라가는 #소리")):
        (root / korean).mkdir(parents=True)
        for number, file in enumerate(sorted((tones / "train" / label).glob("*.wav"))):
            speaker = ("김 하나", "박#둘", "이 셋", "최넷")[number % 4]
            shutil.copy(file, root / korean / f"녹음 {number}#_{speaker}_.wav")
    said = dragoman(
        "train", root, "--task", "classification", "--groups", "_(.+)_", "--to", run, *SMALL
    )
    assert said.code == 0 and "4 groups" in said.out + said.err, said.out + said.err
    unreadable = tmp_path / os.fsdecode(b"\xff.wav")
    shutil.copy(root / "내려가는 소리" / "녹음 0#_김 하나_.wav", unreadable)
    found = dragoman("classify", run, root / "올라가는 #소리", unreadable)
    assert found.code == 0, found.err
    lines = [line.split("\t") for line in found.out.splitlines()]
    assert len(lines) == 41 and all(len(line) == 3 for line in lines)
    assert lines[0][:2] == [f"{root}/올라가는 #소리/녹음 0#_김 하나_.wav", "올라가는 #소리"]
    assert lines[-1][:2] == [f"{tmp_path}/\ufffd.wav", "내려가는 소리"]
    (tmp_path / "nothing").mkdir()
    for given, told in (
        (tmp_path / "two\nlines.wav", "control character in its name"),
        (tmp_path / "nothing", "is a folder without recordings"),
        (tmp_path / "없음.wav", "없음.wav does not exist"),
    ):
        refused = dragoman("classify", run, given)
        assert refused.code == 1 and told in refused.err, refused.err
        assert len(refused.err.strip().splitlines()) == 1, refused.err


def test_pictures_become_a_run(dragoman: Dragoman, tmp_path: Path) -> None:
    pictures, labels = write_bars(tmp_path, 200)
    said = dragoman(
        "train", pictures, labels, "--task", "classification", "--to", tmp_path / "run", *SMALL
    )
    assert said.code == 0, said.err
    refused = dragoman("classify", tmp_path / "run", "-", stdin=b"x")
    assert refused.code == 1, refused.out
    assert refused.err.startswith("error: pictures cannot be read from standard input"), refused.err
    found = dragoman("classify", tmp_path / "run", f"{pictures}#3")
    assert found.code == 0 and found.out.startswith(f"{pictures}#3\t"), found.err
    measured = dragoman("evaluate", tmp_path / "run", pictures)
    assert measured.code == 1 and f"{pictures} has no labels" in measured.err, measured.err
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    recipe = tmp_path / "other" / "recipe.toml"
    of_sound, changes = re.subn(r'kind = "picture"(\n.+)+', 'kind = "frames"', recipe.read_text())
    assert changes == 1
    recipe.write_text(of_sound)
    compared = dragoman("compare", tmp_path / "run", tmp_path / "other")
    assert compared.code == 1, compared.out
    assert "run reads patches and" in compared.err and "other frames (source.kind)" in compared.err
    looked = dragoman("look", tmp_path / "run", f"{pictures}#3", "--to", tmp_path / "look.csv")
    assert looked.code == 0 and "1,2" in (tmp_path / "look.csv").read_text("utf-8"), looked.err


def test_a_folder_of_pictures_becomes_a_run(dragoman: Dragoman, tmp_path: Path) -> None:
    photos, run = write_pictures(tmp_path / "photos", 60), tmp_path / "run"
    test = write_pictures(tmp_path / "test", 6, first=200)
    said = dragoman(
        "train", photos, "--task", "classification", "--test", test, "--to", run, *SMALL
    )  # fmt: skip
    assert said.code == 0, said.err
    measured = dragoman("evaluate", run)
    assert measured.code == 0 and "12 pictures" in measured.out, measured.out + measured.err
    one = test / "standing" / "200.png"
    found = dragoman("classify", run, one, test / "lying")
    lines = [line.split("\t") for line in found.out.splitlines()]
    assert len(lines) == 7 and lines[0][0] == str(one), found.err
    assert [label for _, label, _ in lines] == ["standing"] + ["lying"] * 6
    like_a_place = shutil.copy(one, tmp_path / "photos.idx#1.png")
    found = dragoman("classify", run, like_a_place)
    assert found.out.startswith(f"{like_a_place}\tstanding\t"), found.err
    looked = dragoman("look", run, one, "--to", tmp_path / "look.csv")
    assert looked.code == 0 and "1,2" in (tmp_path / "look.csv").read_text("utf-8"), looked.err
    (tmp_path / "nothing").mkdir()
    (tmp_path / "text.png").write_text("no picture")
    for given, told in (
        (tmp_path / "nothing", "is a folder without pictures (.bmp, "),
        (tmp_path / "none.png", "none.png does not exist"),
        (tmp_path / "text.png", "not a supported picture (PNG, "),
    ):
        refused = dragoman("classify", run, given)
        assert refused.code == 1 and told in refused.err, refused.err
        assert len(refused.err.strip().splitlines()) == 1, refused.err


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_a_list_of_pictures_becomes_a_run(dragoman: Dragoman, tmp_path: Path, ending: str) -> None:
    photos, run, listing = tmp_path / "photos", tmp_path / "run", tmp_path / f"list.{ending}"
    files = sorted(write_pictures(photos, 20).rglob("*.*"))
    names = [(str(file.relative_to(tmp_path)), file.parent.name) for file in files]
    made = {
        "tsv": lambda name, label: f"{label}\t{name}",
        "csv": lambda name, label: f'"{name}",{label}',
        "jsonl": lambda name, label: json.dumps({"file": name, "label": label}),
    }[ending]
    listing.write_text("".join(f"{made(*one)}\n" for one in names))
    few = ("--set=training.updates=2", "--set=training.validate_every=2")
    said = dragoman(
        "train", listing, "--task", "classification", "--to", run, *SMALL, *few
    )  # fmt: skip
    assert said.code == 0, said.out + said.err
    recipe = Recipe.load(str(run / "recipe.toml"))
    assert recipe.source.kind == "picture" and recipe.data.train[0].holds == "files"
    found = dragoman("classify", run, photos)
    assert found.code == 0 and len(found.out.splitlines()) == 40, found.err
    listing.write_text(listing.read_text() + f"{made('photos/none.png', 'lying')}\n")
    said = dragoman("train", listing, "--task", "classification", "--to", tmp_path / "b", *SMALL)
    assert said.code == 1 and f"list.{ending}, line 41: " in said.err, said.err
    assert "none.png does not exist" in said.err and not (tmp_path / "b").exists()
    listing.write_text(f"{made('Image File', 'Class')}\n" + listing.read_text())
    said = dragoman("train", listing, "--task", "classification", "--to", tmp_path / "b", *SMALL)
    assert "line 1: " in said.err and "Image File does not exist. Is it the name of a" in said.err
    listing.write_text(f"{made('Image File', 'Class')}\n")
    said = dragoman("train", listing, "--task", "classification", "--to", tmp_path / "b", *SMALL)
    assert said.code == 1 and (ending != "csv" or "a list of recordings or pictures" in said.err)


def test_a_rare_label_of_a_folder_is_not_taken_for_a_column(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    photos = write_pictures(tmp_path / "photos", 12)
    (photos / "bird").mkdir()
    (photos / "lying" / "2.png").rename(photos / "bird" / "2.png")
    shutil.copy(photos / "standing" / "4.png", photos / "lying" / "copy.png")
    few = ("--set=training.updates=1", "--set=training.validate_every=1")
    train = ("train", photos, "--task", "classification", "--to", tmp_path / "run")
    said = dragoman(*train, *SMALL, *few)
    assert "'bird' with 1, too few to learn them\n" in said.out + said.err
    assert "1 training example also occurs with another label" in said.out + said.err


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("cut", "3.jpg is damaged or cut off"),
        ("empty", "3.jpg is empty"),
        ("label", "one label, 'lying'. Give examples with at least two labels"),
        ("all", "has no recording (.flac, .mp3"),
        ("divided", "photos/train --dev {0}/photos/val --test {0}/photos/test --task class"),
        ("library", "reading pictures needs Pillow: "),
    ],
)
def test_a_folder_of_pictures_that_cannot_be_learned(
    dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str, told: str
) -> None:
    photos, run = write_pictures(tmp_path / "photos", 12), tmp_path / "run"
    file = photos / "lying" / "3.jpg"
    if damage == "label":
        shutil.rmtree(photos / "standing")
    elif damage == "all":
        shutil.rmtree(photos)
        photos.mkdir()
    elif damage == "divided":  # as corpora are that come in three parts
        told = told.format(tmp_path)
        shutil.rmtree(photos)
        for part in ("train", "val", "test"):
            write_pictures(photos / part, 3)
    elif damage == "library":
        monkeypatch.setitem(sys.modules, "PIL", None)
    else:
        file.write_bytes(file.read_bytes()[:-60] if damage == "cut" else b"")
    said = dragoman("train", photos, "--task", "classification", "--to", run, *SMALL)
    assert said.code == 1 and told in said.err, said.out + said.err
    errors = [line for line in said.err.splitlines() if told in line]
    assert len(errors) == 1 and "Traceback" not in said.err and not run.exists(), said.err


@pytest.mark.parametrize(
    ("pictures", "told"),
    [
        ((6, 8, 8, 2), "a pixel has one number (grey) or three (colour)"),
        ((6, 8), "has 1 dimension per example; pictures have two"),
        ((6, 2, 2, 2, 2), "has 5 dimensions. At most 4 are allowed"),
        (None, "Give two IDX files, of pictures and of their labels"),
    ],
)
def test_pictures_that_are_none(
    dragoman: Dragoman, tmp_path: Path, pictures: tuple[int, ...] | None, told: str
) -> None:
    files = [write_idx(tmp_path / "labels.idx", [0, 1] * 3)]
    if pictures is not None:
        files.insert(0, write_idx(tmp_path / "pictures.idx", np.zeros(pictures)))
    said = dragoman("train", *files, "--task", "classification", "--to", tmp_path / "run", *SMALL)
    assert said.code == 1 and told in said.err and str(files[0]) in said.err, said.err
    assert len(said.err.strip().splitlines()) == 1 and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_bytes(path.read_bytes()[:900]), "cut off"),
        (lambda path: path.write_bytes(b"text " * 99), "not a supported recording"),
        (lambda path: path.write_bytes(b"\0\0\0 ftypM4A " * 99), "Convert it: ffmpeg -i"),
    ],
)
def test_a_bad_file_is_named_and_nothing_is_written(
    dragoman: Dragoman, tmp_path: Path, damage: object, told: str
) -> None:
    root = write_tones(tmp_path / "tones", 6)
    bad = sorted((root / "falling").glob("*.wav"))[3]
    damage(bad)  # type: ignore[operator]
    said = dragoman("train", root, "--task", "classification", "--to", tmp_path / "run", *SMALL)
    assert said.code == 1 and told in said.err, said.err
    assert str(bad) in said.err
    assert len(said.err.strip().splitlines()) == 1, said.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("side", "damage", "told"),
    [
        ("test", "labels", "test, line 1: 'neither' is not a label of training"),
        ("dev", "labels", "dev, line 1: 'neither' is not a label of training"),
        ("test", "file", "rising_ben_1.wav is cut off"),
        ("dev", "file", "rising_ben_1.wav is cut off"),
    ],
)
def test_what_is_wrong_with_dev_and_test_is_told_before_the_training(
    dragoman: Dragoman, tmp_path: Path, side: str, damage: str, told: str
) -> None:
    write_tones(tmp_path / "train", 6)
    held = write_tones(tmp_path / side, 2) / "rising"
    if damage == "labels":
        shutil.rmtree(held.parent / "falling")
        held.rename(held.parent / "neither")
    else:
        bad = held / "rising_ben_1.wav"
        bad.write_bytes(bad.read_bytes()[:900])
    said = dragoman(
        "train", tmp_path / "train", "--task", "classification", f"--{side}", tmp_path / side,
        "--to", tmp_path / "run", *SMALL,
    )  # fmt: skip
    assert said.code == 1 and told in said.err, said.out + said.err
    assert len(said.err.strip().splitlines()) == 1, said.err
    assert not (tmp_path / "run").exists()


def test_a_group_in_both_parts_is_named_with_both_places(
    dragoman: Dragoman, tones: Path, tmp_path: Path
) -> None:
    asked = (
        "train", tones / "train", "--task", "classification", "--groups", "_([a-z]+)_",
        "--to", tmp_path / "run", *SMALL,
    )  # fmt: skip
    for pattern, why in (("(a", "not a regular expression"), ("a", "0 groups in parentheses")):
        said = dragoman(*asked, "--groups", pattern)
        assert said.code == 1 and f"--groups {pattern}: group_pattern" in said.err, said.err
        assert why in said.err
    said = dragoman(*asked, "--test", tones / "test")
    assert said.code == 1 and "is in test and in training (train, line" in said.err, said.err
    for file in sorted((tones / "test").rglob("*_ada_*.wav")):  # a split takes both for one
        (tmp_path / "upper" / file.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, tmp_path / "upper" / file.parent.name / file.name.replace("ada", "ADA"))
    said = dragoman(*asked, "--groups", "(?i)_([a-z]+)_", "--test", tmp_path / "upper")
    assert said.code == 1 and "the group 'ADA' is in test and in training" in said.err, said.err
    for side, speaker in (("dev", "Zoe"), ("both", "zoe")):  # in neither case in training
        for file in sorted((tones / "test").rglob("*_ada_*.wav")):
            (tmp_path / side / file.parent.name).mkdir(parents=True, exist_ok=True)
            name = file.name.replace("ada", speaker)
            shutil.copy(file, tmp_path / side / file.parent.name / name)
    said = dragoman(*asked, "--groups", "(?i)_([a-z]+)_", "--dev", tmp_path / "dev",
                    "--test", tmp_path / "both")  # fmt: skip
    told = "both, line 1: the group 'zoe' is in test and in dev (dev, line 1). Move the whole group"
    assert said.code == 1 and told in said.err, said.err
    assert not (tmp_path / "run").exists()
    said = dragoman(*asked, "--set=training.updates=2", "--set=training.validate_every=2")
    assert said.code == 0, said.err
    assert "4 groups by group_pattern = _([a-z]+)_" in said.out + said.err
    assert "20 dev, 20 test" in said.out + said.err  # a speaker each
    (tmp_path / "new" / "rising").mkdir(parents=True)
    shutil.copy(next((tones / "test" / "rising").iterdir()), tmp_path / "new" / "rising" / "a.wav")
    measured = dragoman("evaluate", tmp_path / "run", tmp_path / "new")
    assert measured.code == 0 and "1 recording, 2 labels" in measured.out, measured.err
    with pytest.raises(DragomanError, match="is measured on a folder, like in training, not on"):
        corpus_like(Run.open(tmp_path / "run"), [tmp_path / "new"] * 2)


def test_a_million_rows(
    dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.sources.shared.rows.MOST_ROWS", 30)
    root = write_tones(tmp_path / "tones", 6)
    write_wav(root / "falling" / "long_ada_99.wav", np.zeros(8_000))
    said = dragoman("train", root, "--task", "classification", "--to", tmp_path / "run", *SMALL)
    assert said.code == 1 and "98 frames; at most 30" in said.err
    assert not (tmp_path / "run").exists()


def test_a_translator_of_recordings_writes_what_they_say(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    recipe = tiny_cell("translation", "transformer", "frames", tmp_path / "files").change(
        ["training.updates=80", "training.validate_every=80"]
    )
    train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    files = sorted((tmp_path / "files" / "tones").rglob("*.wav"))[:2]
    for given in (files[:1], files[:1] + files[-1:], [files[0].parent]):
        said = dragoman("translate", tmp_path / "run", *given)
        assert said.code == 0 and said.out.startswith("a falling"), said.out + said.err
        assert len(said.out.splitlines()) == (40 if given[0].is_dir() else len(given))
    said = dragoman("translate", tmp_path / "run", stdin=f"{files[0]}\n{files[1]}\n".encode())
    assert said.code == 0 and len(said.out.splitlines()) == 2, said.err
    for arguments, told in (
        (("translate", tmp_path / "run", files[0], "--paragraphs"), "reads recordings"),
        (("translate", tmp_path / "run", files[0], "--warn"), "reads recordings"),
        (("compare", *[tmp_path / "run"] * 2, "--to", tmp_path / "a.html"), "reads recordings"),
    ):
        refused = dragoman(*arguments)
        assert refused.code == 1 and told in refused.err and not refused.out, refused.err
        assert len(refused.err.strip().splitlines()) == 1, refused.err
    (tmp_path / "files" / "test.tsv").write_text(f"{files[0].relative_to(tmp_path / 'files')}\tx\n")
    measured = dragoman("evaluate", tmp_path / "run", tmp_path / "files" / "test.tsv")
    assert measured.code == 0 and "1 recording" in measured.out, measured.out + measured.err
    assert "translating 1 recording" in measured.err, measured.err
    refused = dragoman("shortlist", tmp_path / "run")
    assert refused.code == 1 and "reads no text" in refused.err


@pytest.fixture(scope="module")
def hearing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that writes what tone a recording has: "a rising tone"."""
    folder = tmp_path_factory.mktemp("hearing")
    recipe = tiny_cell("translation", "transformer", "frames", folder)
    train(recipe, folder / "run", say=lambda _: None, display=False, measure=False)
    return folder / "run"


def test_recordings_are_read_by_several_runs_together(
    dragoman: Dragoman, hearing: Path, tmp_path: Path
) -> None:
    one = next((hearing.parent / "tones" / "rising").glob("*.wav"))
    alone, twice = (
        dragoman("translate", hearing, one, "--scores", "--precision", "fp32", *more)
        for more in ((), ("--ensemble", hearing))
    )
    assert alone.code == twice.code == 0, twice.err
    (score, text), (other, same) = (said.out.strip().split("\t") for said in (alone, twice))
    assert text == same and float(score) == pytest.approx(float(other), abs=1e-3)
    shutil.copytree(hearing, tmp_path / "finer")
    recipe = tmp_path / "finer" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("hop_ms = 10.0", "hop_ms = 5.0"))
    refused = dragoman("translate", hearing, one, "--ensemble", tmp_path / "finer")
    assert refused.code == 1 and "hop_ms = 5.0" in refused.err, refused.err
    assert "Use runs with the same section [source]" in refused.err


def test_what_is_heard_is_measured_in_wrong_words(dragoman: Dragoman, hearing: Path) -> None:
    metrics = read_metrics(hearing / METRICS)
    (*_, last) = (line["scores"] for line in metrics if line["kind"] == "validation")
    assert {"wer", "cer", "loss", "bleu"} <= last.keys()
    assert Recipe.load("fsdd-digits").training.metric == "wer"
    measured = dragoman("evaluate", hearing, "--json")
    assert measured.code == 0, measured.err
    found = json.loads(measured.out)
    errors, scores = found["errors"], found["scores"]
    assert errors["words"]["reference"] == 3 * found["sentences"]
    wrong = sum(errors["words"][name] for name in ("substitutions", "deletions", "insertions"))
    assert scores["WER"]["value"] == pytest.approx(100 * wrong / errors["words"]["reference"])
    told = dragoman("evaluate", hearing)
    assert re.search(r"^WER +[\d.]+ %  \d+ substitution", told.out, re.M), told.out
    assert "recordings/s" in told.out
    refused = dragoman("evaluate", hearing, "--robust")
    assert refused.code == 1 and "reads no text" in refused.err
