"""A folder of recordings and their texts becomes a run that transcribes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asked_parts import joined
from command_line import Dragoman
from inline_workers import InlineWorkers
from recipe_of_files import recipe_of
from row_files import write_tones

from dragoman.base.errors import RecipeError
from dragoman.cluster import driver
from dragoman.forms.form import Pair
from dragoman.runs import corpora
from dragoman.sources.frames import synthetic_voices
from dragoman.sources.frames.synthetic_voices import Speaker
from dragoman.tasks.catalogue import Recipe
from dragoman.tasks.transcription.transcriber import Transcriber

SMALL = (
    "--set=model.model_dim=32", "--set=model.ffn_dim=32", "--set=model.encoder_layers=1",
    "--set=model.decoder_layers=1", "--set=model.attention.num_heads=2", "--set=model.dropout=0",
    "--set=text.kind=word", "--set=text.byte_fallback=false", "--set=text.vocabulary=10",
    "--set=training.updates=60", "--set=training.validate_every=30", "--set=source.bands=20",
    "--set=training.schedule.peak=1e-2", "--set=training.schedule.warmup=5",
    "--set=training.average_last=0", "--set=training.precision=fp32", "--set=source.subsample=2",
    "--set=plan.tokens_per_update=60",
)  # fmt: skip


@pytest.fixture(scope="module")
def tones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_tones(tmp_path_factory.mktemp("spoken") / "tones", 40)
    for file in root.rglob("*.wav"):
        file.with_suffix(".txt").write_text(f"a {file.parent.name} tone\n")
    return root


def test_a_folder_of_recordings_and_texts_becomes_a_run(
    dragoman: Dragoman, tones: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = dragoman("train", tones, "--to", tmp_path / "run", "--languages", "en", *SMALL)
    assert said.code == 0, said.err
    told = said.out + said.err
    assert "80 recordings, about 0.3 minutes of sound" in told, told
    assert "the speakers are not known" in told
    rising, falling = (next((tones / name).glob("*.wav")) for name in ("rising", "falling"))
    found = dragoman("transcribe", tmp_path / "run", rising, falling)
    assert found.code == 0, found.err
    assert "a rising tone" in found.out and "a falling tone" in found.out, found.out
    document = dragoman("transcribe", tmp_path / "run", rising, "--to", tmp_path / "a.docx")
    assert document.code == 1 and "a.txt, or set --format" in document.err, document.err
    assert not (tmp_path / "a.docx").exists()
    check_parts(dragoman, [rising, falling], tmp_path, monkeypatch)
    measured = dragoman("evaluate", tmp_path / "run")
    assert measured.code == 0 and "WER" in measured.out, measured.out + measured.err
    measured = dragoman("evaluate", tmp_path / "run", tones)
    assert measured.code == 0 and "WER" in measured.out, measured.out + measured.err
    refused = dragoman("evaluate", tmp_path / "run", tmp_path)
    assert refused.code == 1 and "has no recordings with transcripts" in refused.err, refused.err


def check_parts(
    dragoman: Dragoman, recordings: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists of recordings, in parts: what one process writes, and what cannot be heard is told."""
    monkeypatch.setattr(driver, "workers_at", lambda place: InlineWorkers(1).all)
    monkeypatch.chdir(recordings[0].parent.parent)
    names = [str(one.relative_to(Path.cwd())) for one in recordings * 2]
    listed, to = tmp_path / "list.txt", tmp_path / "parts"
    listed.write_text("\n".join([*names, "none.wav", "", names[0]]) + "\n")
    plain = [dragoman("transcribe", tmp_path / "run", one).out.strip() for one in names]
    more = "--on", "local", "--lines", "3"
    heard, call = Counter[str](), Transcriber.__call__

    def counted(self: Transcriber, recording: str, **options: Any) -> Any:
        heard[Path(recording).name] += 1
        return call(self, recording, **options)

    monkeypatch.setattr(Transcriber, "__call__", counted)
    said = dragoman("transcribe", tmp_path / "run", listed, "--to", to, *more)
    assert said.code == 0 and "1 line was not read" in said.err, said.err
    assert joined(to).decode().split("\n") == [*plain, "", "", plain[0], ""]
    # What stands beside one that cannot be heard is not heard again.
    assert [heard[Path(name).name] for name in names] == [1] * 4
    (bad,) = (to / "_dragoman" / "bad-lines.jsonl").read_text().splitlines()
    assert json.loads(bad)["line"] == 5 and "none.wav" in json.loads(bad)["reason"]
    rows = tmp_path / "list.jsonl"
    rows.write_text(json.dumps({"id": 7, "audio": names[1]}) + "\n")
    said = dragoman("transcribe", tmp_path / "run", rows, "--to", tmp_path / "rows", *more)
    assert json.loads(joined(tmp_path / "rows")) == {"id": 7, "audio": names[1], "text": plain[1]}
    for given in (recordings[0], Path.cwd()):
        said = dragoman("transcribe", tmp_path / "run", given, "--to", tmp_path / "no", *more)
        assert said.code == 1 and "take lists of recordings" in said.err, said.err
    monkeypatch.chdir(tmp_path)  # where the names are of other files
    said = dragoman("transcribe", tmp_path / "run", listed, "--to", to, *more)
    assert said.code == 1 and "folder" in said.err, said.err


def test_keys_of_a_list_are_those_that_are_given(tones: Path, tmp_path: Path) -> None:
    lines = [
        json.dumps({"wav": str(path), "audio": "none.wav", "said": "a tone", "text": "no"}) + "\n"
        for path in sorted(tones.rglob("*.wav"))
    ]
    (tmp_path / "list.jsonl").write_text("".join(lines), encoding="utf-8")
    found, _ = recipe_of(
        [str(tmp_path / "list.jsonl")], task="translation", languages="en", keys=("wav", "said")
    )
    (corpus,) = found.data.train
    assert (corpus.source_key, corpus.target_key) == ("wav", "said")


def recipe(*names: Path, **more: str) -> tuple[Recipe, list[str]]:
    told = list[str]()
    found, _ = recipe_of([str(name) for name in names], say=told.append, **more)  # type: ignore[arg-type]
    return found, told


def test_a_list_says_by_which_column_speakers_are_told(tones: Path, tmp_path: Path) -> None:
    listing = tmp_path / "list.csv"
    rows = [
        f"{file},{file.with_suffix('.txt').read_text().strip()},{file.name.split('_')[1]}"
        for file in sorted(tones.rglob("*.wav"))
    ]
    listing.write_text("\n".join(["path,sentence,client_id", *rows]) + "\n")
    made, told = recipe(listing)
    (corpus,) = made.data.train
    assert corpus.format == "spoken" and corpus.groups_by == "group_key = client_id"
    assert made.data.split.dev and made.data.split.test and made.source.kind == "frames"
    assert not any("speakers are not known" in one for one in told)
    by_name, told = recipe(tones, groups="_([a-z]+)_")
    assert by_name.data.train[0].groups_by == "group_pattern = _([a-z]+)_"
    assert not any("speakers are not known" in one for one in told)


def test_what_does_not_go_with_recordings_is_refused(
    dragoman: Dragoman, tones: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.tsv"
    empty.write_text("\n")
    for more, told in (
        (("--test", empty), f"--test {empty}: it contains no recordings"),
        (("--model", "lstm"), "recordings need --model transformer"),
        (("--texts", "file"), "--texts works only with --task language-model"),
        (("--test", tmp_path), f"{tmp_path} has no recordings with transcripts"),
    ):
        said = dragoman("train", tones, "--to", tmp_path / "run", *more)
        assert said.code == 1 and told in said.err, said.err
        assert not (tmp_path / "run").exists()


def test_synthetic_voices_are_more_to_learn_from(
    dragoman: Dragoman, tones: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as many examples for training, none for dev and test; without a program, a refusal."""
    said = list[str]()

    def spoken(texts: Iterator[str], times: int, language: str, folder: Path) -> Iterator[Pair]:
        assert language == "en"
        for line, text in enumerate(texts, start=1):
            said.append(text)
            sound = next((tones / text.split()[1]).glob("*.wav"))
            yield from [Pair(line, str(sound), text)] * times

    monkeypatch.setattr(corpora, "speak_all", spoken)
    voice = Speaker("one", "sh", ())
    monkeypatch.setattr(synthetic_voices, "voices", lambda language: [voice])
    monkeypatch.setattr(synthetic_voices, "_version", lambda program: "1")
    options = ("--languages", "en", *SMALL, "--set=training.updates=1", "--set=data.split.dev=0.1")
    told = dragoman("train", tones, "--to", tmp_path / "plain", *options)
    assert told.code == 0, told.err
    more = dragoman(
        "train", tones, "--to", tmp_path / "more", *options, "--set=data.synthetic_voices=2"
    )
    assert more.code == 0, more.err
    assert "is also spoken 2 times, by 1 synthetic voice of en" in more.out + more.err
    plain, with_voices = (
        json.loads((tmp_path / name / "data.json").read_text())["pairs"]
        for name in ("plain", "more")
    )
    assert with_voices == plain | {"train": 3 * plain["train"]}
    assert len(said) == plain["train"], "neither dev nor test, and each once"
    monkeypatch.setattr(synthetic_voices, "_version", lambda program: "2")
    longer = tmp_path / "more" / "recipe.toml"
    longer.write_text(longer.read_text().replace("updates = 1\n", "updates = 2\n"))
    resumed = dragoman("resume", tmp_path / "more")
    assert resumed.code == 1, resumed.out
    assert "other synthetic voices than those of sh" in resumed.err, resumed.err
    monkeypatch.undo()
    monkeypatch.setattr(synthetic_voices.shutil, "which", lambda name: None)
    synthetic_voices.voices.cache_clear()
    refused = dragoman(
        "train", tones, "--to", tmp_path / "no", *options, "--set=data.synthetic_voices=1"
    )
    assert refused.code == 1 and "apt install espeak-ng flite" in refused.err, refused.err
    assert not (tmp_path / "no").exists()


def test_synthetic_voices_need_recordings_in_their_own_language() -> None:
    recipe = Recipe.load("demo-speech")
    for known in ("und", "en-US", "en"):
        recipe.change([f"languages.source={known}", "data.synthetic_voices=1"])
    with pytest.raises(RecipeError, match="which is 'de' here, and recordings are in 'en'"):
        recipe.change(["languages.target=de", "data.synthetic_voices=1"])
    for name in ("multi30k-en-de", "mnist"):
        with pytest.raises(RecipeError, match="is for transcriptions"):
            Recipe.load(name).change(["data.synthetic_voices=1"])
