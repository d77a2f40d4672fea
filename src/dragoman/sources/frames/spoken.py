"""This module reads recordings with their transcripts, in the layouts that people use.

``folder``: each recording has a .txt file of the same name next to it. ``table``: a
tab-separated or CSV file has a recording, its text and its speaker in each row, in columns that
its first row names or that are numbered; a folder may contain it as metadata.csv. ``lines``:
JSON Lines with the same fields. ``kaldi``: a folder with ``wav.scp``, ``text`` and, if speakers
are known, ``utt2spk`` (https://kaldi-asr.org/doc/data_prep.html).
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dragoman.base.errors import DataError
from dragoman.base.reading import csv_rows
from dragoman.forms.form import Pair
from dragoman.sources.frames.recordings import ENDINGS, FOREIGN_ENDINGS, RECORDINGS
from dragoman.sources.shared.files import check_name, reading, visible_in, with_paths

Layout = Literal["folder", "table", "lines", "kaldi"]
Lines: TypeAlias = Callable[[Path], Iterator[str]]
"""A function that reads the lines of a file (``corpora.read_lines``)."""

_SPEAKERS_OF_KALDI = "utt2spk"
_LISTS = ("metadata.csv", "metadata.tsv", "metadata.jsonl")
"""The names of a list in the folder of its recordings."""
_TABLES = (".tsv", ".tab", ".csv")
_JSON = (".jsonl", ".ndjson", ".json")
_SOUND_IN = ("", "wavs", "clips", "audio")
"""Folders, relative to that of a list, that may contain its recordings."""
_DELIMITERS = "\t|,;"
_FILE_NAMES = (
    "file", "file_name", "filename", "audio_filepath", "audio", "audio_file", "path", "wav",
    "recording",
)  # fmt: skip
_TEXT_NAMES = ("text", "sentence", "transcription", "transcript", "transcriptions")
_SPEAKER_NAMES = ("speaker", "speaker_id", "client_id", "spk", "spk_id", "reader")
_ABOUT = ("readme", "license", "licence", "copying")
"""Beginnings of names of texts about the recordings."""
_LONGEST_TEXT = 1 << 20
"""The most bytes of a transcript."""


def layout_of(root: Path) -> tuple[Layout | None, Path]:
    """Return the layout of recordings and texts, as far as names show it (None if they do not), and
    the list that names the recordings, or else the path itself."""
    if not root.is_dir():
        ending = Path(root.name.removesuffix(".gz")).suffix.lower()
        return ("table" if ending in _TABLES else "lines" if ending in _JSON else None), root
    if (root / "wav.scp").is_file():
        return "kaldi", root
    if (name := next((name for name in _LISTS if (root / name).is_file()), None)) is not None:
        return layout_of(root / name)
    has_text = (file.with_suffix(".txt").is_file() for file in RECORDINGS.among(visible_in(root)))
    return ("folder" if any(has_text) else None), root


def _find_columns(layout: Layout, listing: Path, lines: Lines) -> dict[str, str] | None:
    """Return the keys of a list, from the usual names of columns. Without such names, they are
    empty for a table with recordings in its first column, and None for another list."""
    if layout == "lines":
        first = _record(next(lines(listing), ""))
        names = [name for name, value in (first or {}).items() if isinstance(value, str)]
    else:
        rows = [cells for _, cells in islice(_rows(listing, lines), 2)]
        names = rows[0] if rows else []
        first = dict(zip(names, rows[1], strict=False)) if len(rows) > 1 else None
    file, text, speaker = (
        next((name for wanted in usual for name in names if name.strip().lower() == wanted), None)
        for usual in (_FILE_NAMES, _TEXT_NAMES, _SPEAKER_NAMES)
    )
    if first is None or file is None or text is None or not _is_sound(first[file], listing):
        is_numbered = layout == "table" and len(names) > 1 and _is_sound(names[0], listing)
        return {} if is_numbered else None
    named = {"source_key": file, "target_key": text}
    return named if speaker is None else {**named, "group_key": speaker}


def places_of(root: Path, lines: Lines) -> dict[str, str] | None:
    """Return the keys of a corpus in the format ``spoken``, from the names in it; None if
    nothing shows that it has recordings. Errors: ``DataError`` for a file that cannot be read."""
    match layout_of(root):
        case None, _:
            return None
        case "folder", _:
            return {}
        case "kaldi", _:
            has_speakers = (root / _SPEAKERS_OF_KALDI).is_file()
            return {"group_key": _SPEAKERS_OF_KALDI} if has_speakers else {}
        case layout, listing:
            return _find_columns(layout, listing, lines)


def _is_sound(name: str, listing: Path) -> bool:
    ending = _resolve(name, listing).suffix.lower()
    return ending in ENDINGS or ending in FOREIGN_ENDINGS


def read_spoken(
    root: Path, keys: Sequence[str], columns: Sequence[int], lines: Lines
) -> Iterator[Pair]:
    """Yield a pair for each recording and its transcript; its group is its speaker, if known.

    ``keys``: the keys of the recording, its text and, if known, its speaker in a list;
    ``columns``: the same for a table whose columns have no names, from 1. Errors: ``DataError``
    with file and place for a recording that is missing or listed twice, for one without a text,
    and for a text without a recording.
    """
    layout, listing = layout_of(root)
    match layout:
        case "folder":
            return _beside(root)
        case "kaldi":
            listing = root / "wav.scp"
            pairs = _kaldi(root, lines, keys[2] if len(keys) > 2 else None)
        case "table":
            pairs = _of_table(listing, keys, columns, lines)
        case "lines":
            pairs = _of_lines(listing, keys, lines)
        case None:
            with reading(root):
                root.stat()
            raise DataError(
                f"{root} has no recordings with transcripts. Give a folder in which each recording "
                "has a .txt file of the same name, a list (.tsv, .csv, .jsonl) with the columns "
                "file and text, or a folder in Kaldi's format with the files wav.scp and text"
            )
    return with_paths(pairs, listing, [RECORDINGS])


# --- a folder -------------------------------------------------------------------------------------


def _beside(root: Path) -> Iterator[Pair]:
    texts: dict[Path, Path] = {}
    shown = visible_in(root)
    for number, file in enumerate(RECORDINGS.among(shown), start=1):
        beside = check_name(file).with_suffix(".txt")
        if beside in texts:
            raise DataError(
                f"{file} and {texts[beside]} have the same transcript, {beside}. Keep one"
            )
        texts[beside] = file
        yield Pair(number, str(file), _transcript(beside, file))
    for beside in sorted(file for file in shown if file.suffix == ".txt"):
        if beside not in texts and not beside.name.lower().startswith(_ABOUT):
            raise DataError(
                f"{beside} has no recording of the same name ({', '.join(sorted(ENDINGS))}). Add "
                "it, or move the text away"
            )


def _transcript(beside: Path, file: Path) -> str:
    """Return the transcript in a file, on one line."""
    with reading(beside):
        if not beside.exists():
            raise DataError(
                f"{file} has no transcript. Write it into {beside.name}, or move the recording away"
            )
        with beside.open("rb") as stream:
            content = stream.read(_LONGEST_TEXT + 1)
    if len(content) > _LONGEST_TEXT:
        raise DataError(f"{beside} has more than {_LONGEST_TEXT:,} bytes: it is not a transcript")
    text = content.removeprefix(BOM_UTF8).decode("utf-8", "surrogateescape")
    return " ".join(text.split())


# --- lists ----------------------------------------------------------------------------------------


def _of_table(
    listing: Path, keys: Sequence[str], columns: Sequence[int], lines: Lines
) -> Iterator[Pair]:
    rows = _rows(listing, lines)
    first = next(rows, None)
    if first is None:
        return
    names = [name.strip() for name in first[1]]
    if set(keys) <= set(names):
        places = [names.index(key) for key in keys]
    elif len(keys) > 2 or set(keys) & set(names):
        missing = ", ".join(repr(key) for key in keys if key not in names)
        raise DataError(
            f"{listing}, line {first[0]}: no column {missing}; the columns are {', '.join(names)}"
        )
    else:
        rows = chain([first], rows)
        places = [column - 1 for column in columns]
    for line, cells in rows:
        if len(cells) <= max(places):
            raise DataError(
                f"{listing}, line {line} has no column {max(places) + 1}; its last is {len(cells)}"
            )
        yield _pair(line, listing, [cells[place] for place in places])


def _pair(line: int, listing: Path, values: Sequence[str]) -> Pair:
    """Return a pair of ``values``: the name of a file, its transcript and, if known, its
    speaker."""
    name, text, speaker = (*values, "")[:3]
    path = str(_resolve(name.strip(), listing).absolute()) if name.strip() else ""
    return Pair(line, path, " ".join(text.split()), group=speaker.strip())


def _resolve(name: str, listing: Path) -> Path:
    """Return the file that a list names, which may be in a subfolder or lack its ending."""
    name = name.strip()
    for folder in _SOUND_IN:
        place = listing.parent / folder / name
        for path in (place, *(place.with_name(place.name + ending) for ending in sorted(ENDINGS))):
            try:
                if path.is_file():
                    return path
            except (OSError, ValueError):  # the file's own check reports the error
                return listing.parent / name
    return listing.parent / name


def _rows(listing: Path, lines: Lines) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with its line. Tabs and ``|`` only separate; commas and semicolons are read
    as CSV."""
    read = lines(listing)
    first = next(read, "")
    tabbed = Path(listing.name.removesuffix(".gz")).suffix.lower() != ".csv"
    marks = "\t" if tabbed else _DELIMITERS
    mark = max(marks, key=lambda sign: (first.count(sign), -marks.index(sign)))
    if mark in "\t|":
        for line, text in enumerate(chain([first], read), start=1):
            if text:
                yield line, text.split(mark)
        return
    yield from csv_rows((f"{line}\n" for line in chain([first], read)), mark, str(listing))


def _of_lines(listing: Path, keys: Sequence[str], lines: Lines) -> Iterator[Pair]:
    for line, text in enumerate(lines(listing), start=1):
        if (record := _record(text)) is None:
            raise DataError(f"{listing}, line {line}: it is not a JSON object")
        for key in keys:
            if not isinstance(record.get(key), str):
                has = ", ".join(map(str, record))
                raise DataError(f"{listing}, line {line} has no text at {key!r}, only {has}")
        yield _pair(line, listing, [record[key] for key in keys])


def _record(text: str) -> dict[str, Any] | None:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


# --- Kaldi ----------------------------------------------------------------------------------------


def _kaldi(root: Path, lines: Lines, group_key: str | None) -> Iterator[Pair]:
    """Yield the pairs of a Kaldi folder; the line of a pair is that in ``wav.scp``."""
    if (root / "segments").is_file():
        raise DataError(
            f"{root / 'segments'} splits recordings, which is not supported. Write each "
            "utterance to its own file (Kaldi: extract-segments)"
        )
    sounds, texts = (_table_of(root / name, lines) for name in ("wav.scp", "text"))
    by = {} if group_key is None else _table_of(root / group_key, lines)
    for name, (line, _) in texts.items():
        if name not in sounds:
            raise DataError(f"{root / 'text'}, line {line}: {name} has no recording in wav.scp")
    for name, (line, path) in sounds.items():
        place = f"{root / 'wav.scp'}, line {line}"
        if path.endswith("|"):
            raise DataError(
                f"{place}: {name} is the output of a command, and commands are not run. Write it "
                "to a file (Kaldi: wav-copy)"
            )
        if name not in texts:
            raise DataError(f"{place}: {name} has no line in {root / 'text'}")
        if group_key is not None and name not in by:
            raise DataError(f"{place}: {name} has no line in {root / group_key}")
        speaker = by[name][1] if group_key is not None else ""
        yield Pair(line, str(_from_above(path, root).absolute()), texts[name][1], group=speaker)


def _table_of(path: Path, lines: Lines) -> dict[str, tuple[int, str]]:
    """Return name -> (line, rest of the line). Errors: ``DataError`` for a repeated name."""
    table: dict[str, tuple[int, str]] = {}
    for line, text in enumerate(lines(path), start=1):
        if not text.strip():
            continue
        name, *rest = text.split(maxsplit=1)
        if name in table:
            raise DataError(f"{path}, line {line}: {name} is already in line {table[name][0]}")
        table[name] = line, " ".join(" ".join(rest).split())
    return table


def _from_above(path: str, root: Path) -> Path:
    """Return a file of ``wav.scp``, relative to its folder or to a parent folder in which Kaldi
    was run."""
    above = (root, *islice(root.absolute().parents, 3))
    return next((folder / path for folder in above if (folder / path).is_file()), root / path)
