"""What is said in recordings: whole ones, long ones in parts, files and folders of captions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Dragoman
from row_files import tone, write_wav
from tiny_cells import tiny_cell

import dragoman as package
from dragoman.base.errors import DataError, RunError
from dragoman.engine.settings import EngineSettings
from dragoman.sources.frames import recordings
from dragoman.sources.frames.cutting import CuttingSettings, RecordingCutter
from dragoman.studies.comparison import compare
from dragoman.studies.systems import ComparisonRequest
from dragoman.tasks.catalogue import Run
from dragoman.tasks.training import train
from dragoman.tasks.transcription.transcriber import Transcriber
from dragoman.tasks.translation import lines
from dragoman.tasks.translation.evaluation import TranslationEvaluation
from dragoman.tasks.translation.translator import Translator

RATE = 8_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned to tell tones apart, and its recordings."""
    folder = tmp_path_factory.mktemp("heard")
    recipe = tiny_cell("translation", "transformer", "frames", folder).change(
        ["training.updates=80", "training.validate_every=80", "languages.target=en"]
    )
    train(recipe, folder / "run", say=lambda _: None, display=False, measure=False)
    parts = [np.zeros(RATE)]
    for number in range(6):
        begin, end = (1800.0, 300.0) if number % 2 else (300.0, 1800.0)
        parts += [tone(begin, 0.2, number, end), np.zeros(RATE)]
    write_wav(folder / "long.wav", np.concatenate(parts), RATE)
    write_wav(folder / "silent.wav", np.zeros(3 * RATE), RATE)
    return folder


@pytest.fixture(scope="module")
def transcriber(folder: Path) -> Transcriber:
    return package.Transcriber(Run.open(folder / "run"))


def test_a_short_recording_is_heard_as_a_translator_hears_it(
    folder: Path, transcriber: Transcriber
) -> None:
    files = sorted((folder / "tones").rglob("*.wav"))[::8]
    translator = Translator(transcriber.run)
    wanted = [one.text for one in translator.batch(map(str, files))]
    assert [str(transcriber(file)) for file in files] == wanted
    assert len(set(wanted)) > 1
    found = transcriber(files[0], beam=1)
    (segment,) = found.segments
    assert (segment.begin, segment.end) == (0, found.seconds) and found.language == "en"


def test_a_long_one_is_cut_at_its_silences(folder: Path, transcriber: Transcriber) -> None:
    told: list[tuple[float, float]] = []
    found = transcriber(folder / "long.wav", progress=lambda *at: told.append(at))
    assert found.seconds == pytest.approx(8.2) and len(found.segments) == 6
    for number, segment in enumerate(found.segments):
        begin = 1 + 1.2 * number
        assert segment.begin == pytest.approx(begin - 0.2, abs=0.03)
        assert segment.end == pytest.approx(begin + 0.4, abs=0.03)
        assert segment.text
    assert told[0][0] == 0 and told[-1] == (found.seconds, found.seconds)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    whole = Transcriber(transcriber.run, cutting=CuttingSettings(longest=60))
    assert len(whole(folder / "long.wav").segments) == 1
    assert len(transcriber.cutter.spans(str(folder / "long.wav"))[0]) == 6


def test_no_span_ends_behind_its_recording(transcriber: Transcriber) -> None:
    """The last of its levels are those of a frame that is cut off."""
    levels = np.full(1_000, -20, np.float32)
    spans, _ = transcriber.cutter.spans_of([levels], 9.994)
    assert spans[-1].end == 9.994


def test_what_is_measured_is_what_is_transcribed(
    folder: Path, transcriber: Transcriber, tmp_path: Path
) -> None:
    """``evaluate``, ``compare`` and ``translate`` cut a long recording as ``transcribe`` does."""
    files = [folder / "long.wav", folder / "silent.wav", *sorted(folder.rglob("tones/*/*.wav"))[:2]]
    wanted = [str(transcriber(file)) for file in files]
    listing = tmp_path / "some.tsv"
    rows = [f"{file}\t{text or 'silence'}" for file, text in zip(files, wanted, strict=True)]
    listing.write_text("".join(f"{row}\n" for row in ("file\ttext", *rows)))
    report = TranslationEvaluation()(transcriber.run, [listing])
    assert report.hypotheses == wanted and len(wanted[0].split()) > 12 and not wanted[1]
    assert report.heard is not None and report.heard.words.rate < 10
    compared = compare(ComparisonRequest([transcriber.run.folder] * 2, listing))
    assert [outputs for [outputs] in compared.outputs.values()] == [wanted, wanted]
    translator = Translator(transcriber.run)
    assert list(map(str, translator.stream(map(str, files)))) == wanted
    assert len(Translator.whole(transcriber.run, EngineSettings()).batch(map(str, files))) == 4


def test_few_rows_of_recordings_are_in_memory_at_once(
    folder: Path, transcriber: Transcriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording is read when those before it have been searched for, and is then let go."""
    translator, told = Translator(transcriber.run), list[str]()
    monkeypatch.setattr(lines, "_ROWS_AT_ONCE", 1)
    passage, each = RecordingCutter.passage, translator.engine.searcher.each
    monkeypatch.setattr(
        RecordingCutter, "passage", lambda own, raw: told.append("read") or passage(own, raw)
    )
    monkeypatch.setattr(
        translator.engine.searcher, "each", lambda *given: told.append("searched") or each(*given)
    )
    found = list(translator.stream([str(folder / "long.wav")] * 3))
    assert told == ["read", "searched"] * 3
    assert len({one.text for one in found}) == 1
    kept = [piece.values for one in found if one.passage for piece in one.passage.pieces]
    assert len(kept) == 18 and not any(kept)


def test_silence_says_nothing(folder: Path, transcriber: Transcriber) -> None:
    found = transcriber(folder / "silent.wav")
    assert (found.text, found.segments, found.seconds) == ("", (), 3)
    assert found.captions("vtt") == "WEBVTT\n\n"
    with pytest.raises(DataError, match=r"nowhere\.wav does not exist"):
        transcriber("nowhere.wav")


def test_captions_go_where_they_are_wanted(
    dragoman: Dragoman, folder: Path, tmp_path: Path
) -> None:
    run, long = folder / "run", folder / "long.wav"
    said = dragoman("transcribe", run, long)
    assert said.code == 0 and len(said.out.splitlines()) == 6, said.err
    assert "8.2 s of sound" in said.err
    said = dragoman("transcribe", run, long, "--to", tmp_path / "long.srt", "--beam", "1", "-q")
    assert said.code == 0 and not said.out and not said.err, said.err
    assert (tmp_path / "long.srt").read_text("utf-8").startswith("1\n00:00:00,8")
    said = dragoman("transcribe", run, long, "--format", "json")
    record = json.loads(said.out)
    assert len(record["segments"]) == 6 and record["language"] == "en"
    short = sorted((folder / "tones" / "rising").iterdir())[:2]
    said = dragoman("transcribe", run, *short)
    assert [line.split("\t")[0] for line in said.out.splitlines()] == list(map(str, short))
    said = dragoman(
        "transcribe", run, *short, "none.wav", "--format", "vtt", "--to", tmp_path / "all"
    )
    assert said.code == 1 and "none.wav does not exist" in said.err
    assert "1 recording of 3 could not be transcribed" in said.err
    names = sorted(one.name for one in (tmp_path / "all").iterdir())
    assert names == sorted(f"{one.stem}.vtt" for one in short)


def test_standard_input(dragoman: Dragoman, folder: Path) -> None:
    recordings.standard_input.cache_clear()
    said = dragoman("transcribe", folder / "run", "-", stdin=(folder / "long.wav").read_bytes())
    assert said.code == 0 and len(said.out.splitlines()) == 6, said.err
    recordings.standard_input().close()
    recordings.standard_input.cache_clear()


def test_mistakes_are_told_in_one_line(dragoman: Dragoman, folder: Path, tmp_path: Path) -> None:
    run, long = folder / "run", folder / "long.wav"
    (tmp_path / "other").mkdir()
    again = write_wav(tmp_path / "other" / "long.wav", np.zeros(RATE), RATE)
    for given, told in (
        ((long, again, "--format", "srt"), "would be mixed"),
        ((long, again, "--to", tmp_path), "would both be written to"),
        ((long, again, "--to", again), "need a folder"),
        ((again, "--to", again), "is the recording itself"),
        (("none.wav", "--to", tmp_path / "x.srt"), "none.wav does not exist"),
    ):
        said = dragoman("transcribe", run, *given, "-q")
        assert said.code == 1 and told in said.err and not said.out, said.err
        assert len(said.err.splitlines()) == 1
    assert not (tmp_path / "x.srt").exists()


def test_other_runs_do_not_transcribe(tmp_path: Path) -> None:
    recipe = tiny_cell("translation", "transformer", "text", tmp_path).change(
        ["training.updates=1", "training.validate_every=0"]
    )
    train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    with pytest.raises(RunError, match="does not transcribe recordings"):
        Transcriber(Run.open(tmp_path / "run"))


def test_runs_are_compared_by_the_words_that_they_hear(
    dragoman: Dragoman, folder: Path, tmp_path: Path
) -> None:
    """The run against one that hears the same in every recording; by speaker, where a column tells
    them."""
    tones = sorted((folder / "tones").rglob("*.wav"))
    copied = tmp_path / tones[0].parent.name / f"copy_{tones[0].name.split('_', 1)[1]}"
    copied.parent.mkdir()
    copied.write_bytes(tones[0].read_bytes())
    tones.append(copied)  # of the same content, which does not make the two a speaker
    rows = [f"{one}\ta {one.parent.name} tone\t{one.stem.split('_')[1]}" for one in tones]
    lists = {}
    for name, columns in (("speakers", 3), ("unknown", 2)):
        lists[name] = tmp_path / f"{name}.tsv"
        head = ("file", "text", "speaker")[:columns]
        lines = ["\t".join(row.split("\t")[:columns]) for row in ("\t".join(head), *rows)]
        lists[name].write_text("".join(f"{line}\n" for line in lines))
    always = tmp_path / "always.txt"
    always.write_text("a rising tone\n" * len(tones))
    for name, drawn in (("speakers", "4 speakers"), ("unknown", f"{len(tones)} recordings")):
        said = dragoman("compare", folder / "run", always, "--source", lists[name])
        assert said.code == 0, said.err
        assert said.out.splitlines()[1].split() == ["system", "WER", "CER"]
        assert f"seed 12345, {drawn}" in said.out
        assert "BLEU " not in said.out and "nothing has learned" not in said.out, said.out
    as_json = ("--source", lists["speakers"], "--json", "--samples", "50")
    found = json.loads(dragoman("compare", folder / "run", always, *as_json).out)
    wer = found["metrics"]["WER"]["systems"]
    assert found["unit"] == "speaker" and wer[0]["value"] < 10 < wer[1]["value"] < 18
    assert found["learned"]
    said = dragoman("compare", always, folder / "run", always, "--source", lists["speakers"])
    assert said.code == 0 and "p=" in said.out
    nothing = dragoman("compare", always, always, "--reference", always)
    assert nothing.code == 0 and "BLEU" in nothing.out
