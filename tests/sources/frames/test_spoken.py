"""Recordings and what is said in them, in every layout, and what may be wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from row_files import tone, write_wav

from dragoman.base.errors import DataError
from dragoman.data.files.corpora import corpus_fingerprint, read_lines, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.sources.frames.spoken import layout_of, places_of

SAID = ["one two", "three", "four five six"]


def clips(root: Path, count: int = 3) -> list[Path]:
    return [write_wav(root / f"{n}.wav", tone(300 + 50 * n, 0.2, n)) for n in range(count)]


def spoken(root: Path, **more: str | int) -> list[tuple[str, str, str]]:
    corpus = CorpusSettings(source=str(root), format="spoken", **more)  # type: ignore[arg-type]
    return [(Path(p.source).name, p.target, p.group) for p in read_pairs(corpus)]


def named(speakers: tuple[str, ...] = ("ada", "ben", "ada")) -> list[tuple[str, str, str]]:
    return [(f"{n}.wav", said, by) for n, (said, by) in enumerate(zip(SAID, speakers, strict=True))]


def told(root: Path, why: str, **more: str | int) -> None:
    with pytest.raises(DataError, match=why) as error:
        spoken(root, **more)
    assert "\n" not in str(error.value)


def beside(root: Path) -> Path:
    for file, said in zip(clips(root), SAID, strict=True):
        file.with_suffix(".txt").write_text(f" {said.replace(' ', chr(10))}\n")
    return root


def test_a_text_beside_each_recording(tmp_path: Path) -> None:
    beside(tmp_path)
    (tmp_path / "README.txt").write_text("about")
    assert layout_of(tmp_path)[0] == "folder"
    assert [one[:2] for one in spoken(tmp_path)] == [one[:2] for one in named()]
    (tmp_path / "9.txt").write_text("nobody says it")
    told(tmp_path, r"9\.txt has no recording of the same name")
    (tmp_path / "9.txt").unlink()
    (tmp_path / "2.txt").unlink()
    told(tmp_path, r"2\.wav has no transcript\. Write it into 2\.txt")
    (tmp_path / "1.wav").rename(tmp_path / "1.flac")
    write_wav(tmp_path / "1.wav", tone(300, 0.2))
    told(tmp_path, r"1\.wav and .*1\.flac have the same transcript")


def test_a_pattern_with_a_slash_tells_the_speaker_by_the_folder(tmp_path: Path) -> None:
    beside(tmp_path / "ada")
    beside(tmp_path / "ben")
    found = spoken(tmp_path, group_pattern="^([^/]+)/")
    assert [group for _, _, group in found] == ["ada"] * 3 + ["ben"] * 3


@pytest.mark.parametrize(
    ("name", "mark", "columns"),
    [
        ("list.tsv", "\t", ("path", "sentence", "client_id")),
        ("list.csv", ",", ("file", "text", "speaker")),
        ("list.csv", ";", ("file", "text", "speaker")),
        ("metadata.csv", "|", ("file_name", "transcription", "speaker_id")),
    ],
)
def test_a_table_names_its_columns(
    tmp_path: Path, name: str, mark: str, columns: tuple[str, str, str]
) -> None:
    clips(tmp_path / "clips")
    rows = [(by, said, file) for file, said, by in named()]
    listing = tmp_path / name
    head = mark.join(reversed(columns))
    listing.write_text("\n".join([head, *(mark.join(row) for row in rows)]) + "\n")
    given = tmp_path if name == "metadata.csv" else listing
    keys = dict(zip(("source_key", "target_key", "group_key"), columns, strict=True))
    assert places_of(given, read_lines) == keys
    assert spoken(given, **keys) == named()
    told(given, r"line 1: no column 'nobody'", **(keys | {"group_key": "nobody"}))
    with listing.open("a") as file:
        file.write(f"ada{mark}again{mark}1.wav\n")
    told(given, rf"{name}, line 5: .*1\.wav is already in line 3", **keys)
    listing.write_text(f"{head}\nada{mark}gone{mark}9.wav\n")
    told(given, rf"{name}, line 2: .*9\.wav does not exist", **keys)
    listing.write_text(f"{head}\nada{mark}short\n")
    told(given, rf"{name}, line 2 has no column 3; its last is 2", **keys)


def test_a_table_without_names_of_columns(tmp_path: Path) -> None:
    """As LJSpeech has it: without endings, its recordings in a folder of their own."""
    clips(tmp_path / "wavs")
    listing = tmp_path / "metadata.csv"
    listing.write_text('0|"1|one two|ada\n1|3|three|ben\n2|4|four five six|ada\n')
    assert places_of(tmp_path, read_lines) == {}
    assert spoken(tmp_path, target_column=3, group_column=4) == named()
    listing.write_text("one,two\n")
    assert places_of(tmp_path, read_lines) is None


def test_a_list_may_be_named_from_the_folder_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clips(tmp_path / "inside")
    rows = [f"{file}\t{said}" for file, said, _ in named()]
    (tmp_path / "inside" / "list.tsv").write_text("\n".join(["file\ttext", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    found = spoken(Path("inside/list.tsv"), source_key="file", target_key="text")
    assert [one[:2] for one in found] == [one[:2] for one in named()]


def test_a_table_of_texts_names_no_recordings(tmp_path: Path) -> None:
    listing = tmp_path / "a.tsv"
    listing.write_text("text\tfile\none\ttwo\n")
    assert places_of(listing, read_lines) is None


def test_json_lines(tmp_path: Path) -> None:
    clips(tmp_path)
    listing = tmp_path / "list.jsonl"
    records = [
        {"audio_filepath": file, "duration": 0.2, "text": said, "speaker": by}
        for file, said, by in named()
    ]
    listing.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    keys = {"source_key": "audio_filepath", "target_key": "text", "group_key": "speaker"}
    assert places_of(listing, read_lines) == keys
    assert spoken(listing, **keys) == named()
    told(listing, r"line 1 has no text at 'duration'", **(keys | {"target_key": "duration"}))
    listing.write_text("[1]\n")
    told(listing, r"line 1: it is not a JSON object", **keys)


def kaldi(root: Path) -> Path:
    clips(root / "wav")
    data = root / "data" / "train"
    data.mkdir(parents=True)
    (data / "wav.scp").write_text("".join(f"u{n} wav/{n}.wav\n" for n in range(3)))
    (data / "text").write_text("".join(f"u{n} {said}\n" for n, said in enumerate(SAID)))
    (data / "utt2spk").write_text("u0 ada\nu1 ben\nu2 ada\n")
    return data


def test_a_data_folder_of_kaldi(tmp_path: Path) -> None:
    data = kaldi(tmp_path)
    assert layout_of(data)[0] == "kaldi"
    assert spoken(data, group_key="utt2spk") == named()
    for file, more, why in (
        ("text", "u7 nobody\n", r"text, line 4: u7 has no recording in wav\.scp"),
        ("text", "u1 again\n", r"text, line 4: u1 is already in line 2"),
        ("wav.scp", "u3 wav/0.wav\n", r"wav\.scp, line 4: u3 has no line in .*text"),
        ("wav.scp", "u3 sph2pipe x.sph |\n", r"line 4: u3 is the output of a command"),
        ("segments", "u0 r 0 1\n", r"segments splits recordings"),
    ):
        before = (data / file).read_text() if (data / file).exists() else None
        (data / file).write_text((before or "") + more)
        told(data, why, group_key="utt2spk")
        (data / file).write_text(before) if before is not None else (data / file).unlink()
    (data / "utt2spk").write_text("u0 ada\n")
    told(data, r"wav\.scp, line 2: u1 has no line in .*utt2spk", group_key="utt2spk")
    (data / "wav.scp").write_text("u0 wav/0.wav\nu1 wav/0.wav\nu2 wav/9.wav\n")
    told(data, r"wav\.scp, line 2: .*0\.wav is already in line 1")


def test_what_holds_no_recordings_with_texts(tmp_path: Path) -> None:
    clips(tmp_path / "a")
    assert layout_of(tmp_path)[0] is None
    told(tmp_path, "has no recordings with transcripts")
    told(tmp_path / "none", "none does not exist")


def test_what_is_said_is_fingerprinted(tmp_path: Path) -> None:
    corpus = CorpusSettings(source=str(beside(tmp_path)), format="spoken")
    before = corpus_fingerprint(corpus)
    (tmp_path / "README.txt").write_text("about")
    assert corpus_fingerprint(corpus) == before
    (tmp_path / "1.txt").write_text("something else")
    assert corpus_fingerprint(corpus) != before
