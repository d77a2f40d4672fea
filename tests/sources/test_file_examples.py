"""Corpora whose examples are files: folders of labels, IDX files, lists; and groups."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from recipe_of_files import recipe_of
from row_files import tone, write_bars, write_idx, write_pictures, write_tones, write_wav

from dragoman.base.errors import DataError
from dragoman.data.files.corpora import corpus_fingerprint, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.split import SplitSettings, side_of_pair
from dragoman.sources.file_examples import content_of, left_out_warning


def folders(root: Path, **more: str) -> CorpusSettings:
    return CorpusSettings(source=str(root), format="folders", **more)  # type: ignore[arg-type]


def test_a_folder_stands_for_a_label(tmp_path: Path) -> None:
    root = write_tones(tmp_path, 3)
    (root / "rising" / "notes.txt").write_text("not a recording")
    (root / "rising" / ".hidden.wav").write_bytes(b"x")
    write_wav(root / "rising" / "more" / "deep.WAV", tone(1800, 0.2))
    pairs = list(read_pairs(folders(root)))
    assert [pair.line for pair in pairs] == list(range(1, 8))
    assert [pair.target for pair in pairs] == ["falling"] * 3 + ["rising"] * 4
    assert all(Path(pair.source).is_file() for pair in pairs)


def test_folders_without_recordings_or_with_some_beside_them(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text("text")
    with pytest.raises(DataError, match="has no recording"):
        list(read_pairs(folders(tmp_path)))
    for name, told in (("none", "does not exist"), ("a/b.txt", "b.txt is a file. Give a folder")):
        with pytest.raises(DataError, match=told):
            list(read_pairs(folders(tmp_path / name)))
    write_wav(tmp_path / "lone.wav", tone(400, 0.2))
    with pytest.raises(DataError, match="next to the folders of labels"):
        list(read_pairs(folders(tmp_path)))


def test_what_is_left_out_of_a_folder_with_both_kinds_is_told(tmp_path: Path) -> None:
    root = write_tones(tmp_path, 3)
    assert left_out_warning(root) == ""
    (root / "rising" / "cover.JPG").write_bytes(b"x")
    told = left_out_warning(root)
    assert (
        "has 6 recordings and 1 picture, but a model reads only one kind, so the pictures" in told
    )
    said: list[str] = []
    recipe_of([str(root)], task="classification", say=said.append)
    assert [line for line in said if "are left out" in line] == [f"warning: {told}"]
    for number in range(9):
        (root / "rising" / f"{number}.png").write_bytes(b"x")
    assert "has 10 pictures and 6 recordings" in left_out_warning(root)


def test_sound_that_is_not_read_is_told_unless_it_is_converted(tmp_path: Path) -> None:
    root = write_tones(tmp_path, 2)
    (root / "falling" / "more.m4a").write_bytes(b"\0\0\0 ftypM4A ")
    with pytest.raises(DataError, match=r"more.m4a is M4A, .* ffmpeg -i .*more.m4a .*more.wav"):
        list(read_pairs(folders(root)))
    write_wav(root / "falling" / "more.wav", tone(1800, 0.2))
    assert len(list(read_pairs(folders(root)))) == 5


def test_pictures_and_recordings_are_told_by_which_there_are_more(tmp_path: Path) -> None:
    root = write_pictures(tmp_path, 2)
    write_wav(root / "lying" / "song.wav", tone(400, 0.2))
    (root / "lying" / "film.mp4").write_bytes(b"not looked at")
    pairs = list(read_pairs(folders(root)))
    assert [pair.target for pair in pairs] == ["lying"] * 2 + ["standing"] * 2
    assert {Path(pair.source).suffix for pair in pairs} == {".png", ".jpg"}
    assert len({pair.group for pair in pairs}) == 4
    (root / "lying" / "film.mp4").unlink()
    write_tones(root, 4)
    assert {Path(pair.source).suffix for pair in read_pairs(folders(root))} == {".wav"}


def test_pictures_that_are_not_read_are_told_unless_they_are_converted(tmp_path: Path) -> None:
    root = write_pictures(tmp_path, 2)
    (root / "lying" / "more.HEIC").write_bytes(b"x")
    with pytest.raises(DataError, match=r"more.HEIC is HEIC, .* magick .*more.HEIC .*more.png"):
        list(read_pairs(folders(root)))
    shutil.copy(root / "lying" / "0.png", root / "lying" / "more.png")
    assert len(list(read_pairs(folders(root)))) == 5


def test_copies_stand_on_one_side_whatever_their_names(tmp_path: Path) -> None:
    root, settings = write_tones(tmp_path / "a", 20), SplitSettings(dev=0.3, test=0.3)
    before = {Path(p.source).name: side_of_pair(p, settings) for p in read_pairs(folders(root))}
    assert len(set(before.values())) == 3
    moved = tmp_path / "b"
    for number, file in enumerate(sorted(root.rglob("*.wav"))):
        (moved / file.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, moved / file.parent.name / f"{number:03}-{file.name}")
    after = {Path(p.source).name[4:]: side_of_pair(p, settings) for p in read_pairs(folders(moved))}
    assert after == before


def test_a_folder_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a label would be missing, and nobody would know. (To root every folder is open.)"""
    root = write_tones(tmp_path, 2)
    reads, looks = os.scandir, Path.stat

    def scandir(path: Any = ".") -> Any:
        if str(path).endswith("rising"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return reads(path)

    def stat(self: Path, **more: Any) -> Any:
        if self.suffix == ".wav":
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return looks(self, **more)

    for place, name, instead, told in (
        (os, "scandir", scandir, "rising"),
        (Path, "stat", stat, "falling_ada_0.wav"),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(place, name, instead)
            with pytest.raises(DataError, match=rf"{told} cannot be read: Permission denied"):
                list(read_pairs(folders(root)))


def test_names_that_a_system_takes_apart_are_those_that_people_write(tmp_path: Path) -> None:
    for form in ("NFC", "NFD"):
        name = unicodedata.normalize(form, "소리/녹음_김철수_1.wav")  # type: ignore[arg-type]
        write_wav(tmp_path / name, tone(400, 0.2))
    assert len(list(tmp_path.iterdir())) == 2
    pattern = unicodedata.normalize("NFC", "_([가-힣]+)_")
    pairs = list(read_pairs(folders(tmp_path, group_pattern=pattern)))
    assert [(pair.target, pair.group) for pair in pairs] == [("소리", "김철수")] * 2


def test_a_group_stays_on_one_side(tmp_path: Path) -> None:
    root, settings = write_tones(tmp_path, 40), SplitSettings(dev=0.3, test=0.3)
    pairs = list(read_pairs(folders(root, group_pattern="_([a-z]+)_")))
    assert {pair.group for pair in pairs} == {"ada", "ben", "eva", "tom"}
    sides = {(pair.group, side_of_pair(pair, settings)) for pair in pairs}
    assert len(sides) == 4
    with pytest.raises(DataError, match=re.escape("line 1: 'x_([0-9]+)' (group_pattern)")):
        list(read_pairs(folders(root, group_pattern="x_([0-9]+)")))


def test_columns_and_keys_tell_groups_of_texts_too(tmp_path: Path) -> None:
    tabbed, lines = tmp_path / "a.tsv", tmp_path / "a.jsonl"
    tabbed.write_text("one\teins\tanna\ntwo\tzwei\tben\n")
    record = {"source": "one", "target": "eins", "by": {"speaker": "anna"}}
    lines.write_text(json.dumps(record) + "\n")
    found = read_pairs(CorpusSettings(source=str(tabbed), group_column=3))
    assert [pair.group for pair in found] == ["anna", "ben"]
    (pair,) = read_pairs(CorpusSettings(source=str(lines), group_key="by.speaker"))
    assert pair.group == "anna"
    with pytest.raises(DataError, match="no column 4"):
        list(read_pairs(CorpusSettings(source=str(tabbed), group_column=4)))


def test_a_list_names_files_from_where_it_lies(tmp_path: Path) -> None:
    write_tones(tmp_path / "clips", 2)
    listing = tmp_path / "list.tsv"
    names = sorted(file.relative_to(tmp_path) for file in (tmp_path / "clips").rglob("*.wav"))
    listing.write_text("".join(f"{name}\tsaid {n}\n" for n, name in enumerate(names)))
    corpus = CorpusSettings(source=str(listing), holds="files")
    assert [Path(p.source) for p in read_pairs(corpus)] == [tmp_path / name for name in names]
    for line, told in (
        ("clips/none.wav\tx", "line 5: .*none.wav does not exist"),
        ("clips\tx", "line 5: .*clips is a folder"),
        (" \tx", "line 5: the name of the file is empty"),
        (f"{names[1]}\tx", "line 5: .* is already in line 2"),
        (f"clips/../{names[1]}\tx", "line 5: .* is already in line 2"),
        (f"{tmp_path / names[1]}\tx", "line 5: .* is already in line 2"),
        ("x" * 300 + "\tx", "line 5: .* cannot be read: File name too long"),
        ("list.tsv/a.wav\tx", "line 5: .* cannot be read: Not a directory"),
    ):
        damaged = tmp_path / "damaged.tsv"
        damaged.write_text(listing.read_text() + line + "\n")
        with pytest.raises(DataError, match=f"damaged.tsv, {told}"):
            list(read_pairs(corpus.model_copy(update={"source": str(damaged)})))


@pytest.mark.parametrize("name", ["a\0b.wav", "a\nb.wav", "a\tb.wav", "a\u2028b.wav"])
def test_a_name_that_is_more_than_one_line_is_refused(tmp_path: Path, name: str) -> None:
    listing = tmp_path / "list.jsonl"
    listing.write_text(json.dumps({"source": name, "target": "x"}) + "\n")
    corpora = [CorpusSettings(source=str(listing), holds="files")]
    if "\0" not in name:
        write_wav(tmp_path / "clips" / "label" / name, tone(400, 0.2))
        corpora.append(folders(tmp_path / "clips"))
    for corpus in corpora:
        with pytest.raises(DataError, match="control character in its name") as error:
            list(read_pairs(corpus))
        assert str(error.value).isprintable()


def test_a_pipe_in_a_list_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.wav")
    (tmp_path / "list.tsv").write_text("a.wav\tx\n")
    with pytest.raises(DataError, match=r"line 1: .*a\.wav is a pipe or a device"):
        list(read_pairs(CorpusSettings(source=str(tmp_path / "list.tsv"), holds="files")))


@pytest.mark.parametrize("pattern", ["_(zzz)?", "_(z*)"])
def test_a_pattern_that_finds_an_empty_group_tells_none(tmp_path: Path, pattern: str) -> None:
    root = write_tones(tmp_path, 2)
    with pytest.raises(DataError, match=r"line 1: .*does not match 'falling_ada_0.wav'"):
        list(read_pairs(folders(root, group_pattern=pattern)))


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ({"source": "a.jsonl", "group_column": 3}, "group_column is only for tab-separated files"),
        ({"source": "a.csv", "group_column": 3}, "group_column is only for tab-separated files"),
        ({"source": "a", "format": "folders", "group_column": 3}, "group_column is only for"),
        ({"source": "a.tsv", "group_key": "by"}, "group_key is only for JSON Lines, not for a.tsv"),
        ({"source": "a.jsonl", "target": "b.jsonl", "group_key": "by"}, "group_key is only for"),
    ],
)
def test_groups_that_a_format_cannot_tell_are_refused(about: dict[str, str], told: str) -> None:
    """They would be passed over, and a speaker stand on both sides of the split."""
    with pytest.raises(ValueError, match=told):
        CorpusSettings(**about)  # type: ignore[arg-type]
    CorpusSettings(source="a.txt", format="tsv", group_column=3)
    CorpusSettings(source="a.json.gz", group_key="by")


def test_a_file_is_read_for_its_hash_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opened = write_wav(tmp_path / "a.wav", tone(400, 0.2)), list[Path]()
    is_read = Path.open

    def watched(self: Path, *given: Any, **more: Any) -> Any:
        opened.append(self)
        return is_read(self, *given, **more)

    monkeypatch.setattr(Path, "open", watched)
    first = content_of(str(path))
    assert content_of(str(path)) == first and opened == [path]
    write_wav(path, tone(500, 0.2))
    os.utime(path, ns=(1, 1))
    assert content_of(str(path)) != first and len(opened) == 2


def test_what_a_file_holds_is_fingerprinted(tmp_path: Path) -> None:
    root = write_tones(tmp_path / "clips", 2)
    listing = tmp_path / "list.tsv"
    names = sorted(file.relative_to(tmp_path) for file in root.rglob("*.wav"))
    listing.write_text("".join(f"{name}\tx\n" for name in names))
    corpora = [folders(root), CorpusSettings(source=str(listing), holds="files")]
    before = [corpus_fingerprint(corpus) for corpus in corpora]
    write_wav(tmp_path / names[0], tone(777, 0.2))
    changed = [corpus_fingerprint(corpus) for corpus in corpora]
    assert all(one != other for one, other in zip(before, changed, strict=True))
    (root / "falling").rename(root / "deep")  # another label
    assert corpus_fingerprint(corpora[0]) != changed[0]


@pytest.mark.parametrize("name", ["clips.idx#1.wav", "a-idx1-ubyte.gz#2 b.wav", "clips.idx#1"])
def test_a_name_like_a_place_in_an_idx_file_is_that_of_a_file(tmp_path: Path, name: str) -> None:
    path = write_wav(tmp_path / "a" / name, tone(400, 0.2))
    other = write_wav(tmp_path / "a" / "other.wav", tone(500, 0.2))
    (tmp_path / "list.tsv").write_text(f"a/{name}\tx\na/other.wav\ty\n")
    corpora = [CorpusSettings(source=str(tmp_path / "list.tsv"), holds="files")]
    if path.suffix == ".wav":
        corpora.append(folders(tmp_path))
    for corpus in corpora:
        before = corpus_fingerprint(corpus)
        groups = {pair.source: pair.group for pair in read_pairs(corpus)}
        assert groups == {str(one): content_of(str(one)) for one in (path, other)}
        assert len(set(groups.values())) == 2
        write_wav(path, tone(600 + len(before), 0.3 + 0.1 * corpora.index(corpus)))
        assert corpus_fingerprint(corpus) != before


def test_pictures_and_labels_of_idx_files(tmp_path: Path) -> None:
    pictures, labels = write_bars(tmp_path, 6)
    pairs = list(read_pairs(CorpusSettings(source=str(pictures), target=str(labels))))
    assert [pair.source for pair in pairs] == [f"{pictures}#{n}" for n in range(6)]
    assert {pair.target for pair in pairs} <= {"0", "1"}
    few = write_idx(tmp_path / "few-labels-idx1-ubyte", [0, 1])
    with pytest.raises(DataError, match=r"6 pictures and .* 2 labels"):
        list(read_pairs(CorpusSettings(source=str(pictures), target=str(few))))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"group_pattern": "(a)(b)"}, "2 groups in parentheses"),
        ({"group_pattern": "(a"}, "not a regular expression"),
        ({"group_pattern": "(a)", "group_column": 3}, "give one of"),
    ],
)
def test_groups_that_cannot_be_told(tmp_path: Path, more: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        folders(tmp_path, **more)
    with pytest.raises(ValueError, match="corpora of files"):
        CorpusSettings(source="a.tsv", group_pattern="(a)")
