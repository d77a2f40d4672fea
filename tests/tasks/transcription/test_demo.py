"""``dragoman demo --task transcribe``, so small that it learns in seconds."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import Dragoman
from tiny_cells import tiny_cell

from dragoman.demo.corpus import Split
from dragoman.pictures.records import Heatmap
from dragoman.pictures.terminal import rows_text
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.training import train
from dragoman.tasks.transcription import demo as spoken
from dragoman.tasks.transcription.demo import PICTURE, write_spoken

TINY: dict[Split, int] = {"train": 24, "dev": 4, "test": 6}
SHORT = (
    "model.model_dim=32", "model.ffn_dim=32", "model.encoder_layers=1", "source.bands=20",
    "source.channels=4", "model.attention.num_heads=2", "training.updates=4",
    "training.validate_every=4", "training.schedule.warmup=2", "training.average_last=0",
    "training.precision=fp32", "evaluation.dev_sentences=4", "search.beam=2",
)  # fmt: skip


def test_a_run_from_nothing(
    dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way, with a training that is over at once; what it learns is tested below."""
    monkeypatch.setattr(spoken, "SIZES", TINY)
    monkeypatch.chdir(tmp_path)
    changes = [word for change in SHORT for word in ("--set", change)]
    to = tmp_path / "runs" / "demo-transcribe"
    recordings = tmp_path / "runs" / "demo-transcribe-recordings"
    # A demo that was here before, which this one replaces.
    Recipe.load("demo-speech").save(_made(to) / "recipe.toml")
    (_made(recordings) / "NOTICE.txt").touch()
    (recordings / "older.wav").touch()
    said = dragoman("demo", "--task", "transcribe", *changes)
    assert said.code == 0, said.err
    assert "synthetic" in said.out and "WER" in said.out and "Speaking 34 sentences" in said.out
    assert "6 sentences whose combinations were held out" in said.out
    assert len(list(recordings.rglob("*.wav"))) == 34
    assert "synthetic" in (recordings / "NOTICE.txt").read_text()
    assert Run.open(to).task.called == "transcriber"
    root = ElementTree.parse(to / PICTURE).getroot()
    assert {"Filter bank", "CTC"} <= {text.text for text in root.iter()}
    assert (to / "report.html").is_file()
    # What it names next can be done.
    (step,) = re.findall(r"transcribe (runs/\S+) (runs/\S+)/test/\*\.wav", said.out)
    one = sorted((tmp_path / step[1] / "test").glob("*.wav"))[0]
    assert dragoman("transcribe", step[0], one, "--format", "json", "--words").code == 0


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def test_what_the_demo_did_not_make_is_left_alone(
    dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spoken, "SIZES", TINY)
    (tmp_path / "own-recordings").mkdir()
    (tmp_path / "own-recordings" / "a.wav").write_text("mine")
    said = dragoman("demo", "--task", "transcribe", "--to", tmp_path / "own")
    assert said.code == 1 and "was not created by a demo of recordings" in said.err
    assert (tmp_path / "own-recordings" / "a.wav").is_file() and not (tmp_path / "own").exists()
    (tmp_path / "run").mkdir()
    Recipe.load("fsdd-digits").save(tmp_path / "run" / "recipe.toml")
    said = dragoman("demo", "--task", "transcribe", "--to", tmp_path / "run")
    assert said.code == 1 and "is not a demo" in said.err
    assert not (tmp_path / "run-recordings").exists()


def test_a_voice_that_was_not_heard_is_understood(tmp_path: Path) -> None:
    """A toy: four words, each alone, by eight voices. It learns them in some seconds, and hears
    them said by four others."""
    words = ("dog", "lion", "snake", "queen")
    parts: dict[Split, tuple[spoken.Spoken, ...]] = {
        name: tuple(
            spoken.Spoken(word, spoken.Voice.of(voice), voice) for voice in voices for word in words
        )
        for name, voices in (("train", range(8)), ("dev", range(8, 10)), ("test", range(30, 34)))
    }  # type: ignore[assignment]
    write_spoken(tmp_path / "sound", parts)
    cell = tiny_cell("translation", "transformer", "frames", tmp_path)
    lists = {
        name: f'{{source = "{tmp_path}/sound/{name}.tsv", holds = "files", group_column = 3}}'
        for name in parts
    }
    recipe = cell.change(
        [
            f"data.train=[{lists['train']}]", f"data.dev={lists['dev']}",
            f"data.test={lists['test']}", "training.updates=80", "training.validate_every=80",
            "training.ctc_weight=0.5",
        ]
    )  # fmt: skip
    train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    from dragoman.tasks.translation.evaluation import TranslationEvaluation

    found = TranslationEvaluation()(Run.open(tmp_path / "run")).heard
    assert found is not None and found.words.reference == 16
    assert found.words.errors <= 2, found.hypotheses


def test_many_columns_are_added_where_they_fall_together() -> None:
    weights = np.zeros((2, 40))
    weights[0, 4], weights[1, 30:34] = 0.9, 0.24
    heatmap = Heatmap(["a", "<dog>"], [str(place) for place in range(40)], weights)
    lines = rows_text(heatmap, 60).plain.splitlines()
    assert [line.split()[0] for line in lines] == ["a", "<dog>"]
    assert [line.index(mark) for line, mark in zip(lines, "█▒", strict=True)] == [7 + 4, 7 + 30]
    assert "▓" in rows_text(heatmap, 27).plain.splitlines()[1] or (
        "█" in rows_text(heatmap, 27).plain
    )
