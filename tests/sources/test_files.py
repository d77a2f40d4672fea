"""What may be wrong with recordings and IDX files: one line that names the file and the place."""

from __future__ import annotations

import gzip
import io
import re
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from row_files import RATE, tone, write_bars, write_idx, write_wav

from dragoman.base.errors import DataError
from dragoman.models.encoding import front_end
from dragoman.sources.file_examples import content_of
from dragoman.sources.frames.form import FramesForm, FramesSource
from dragoman.sources.frames.recordings import blocks_of, rate_of, samples_of, standard_input
from dragoman.sources.picture.form import PicturesForm, PictureSource, patches_of
from dragoman.sources.picture.idx import is_idx, read_idx
from dragoman.sources.shared.files import InMemory

soundfile = pytest.importorskip("soundfile")
FRAMES = FramesForm(FramesSource(rate=RATE, bands=20))
PICTURES = PicturesForm(PictureSource(height=8, width=8, patch=4))


def refused(raw: Path | str) -> str:
    """The one line that the form of recordings says of a file."""
    with pytest.raises(DataError) as error:
        FRAMES.encode([str(raw)])
    assert str(raw) in str(error.value) and "\n" not in str(error.value)
    return str(error.value)


def test_a_recording_is_rows(tmp_path: Path) -> None:
    (rows,) = FRAMES.encode([str(write_wav(tmp_path / "a.wav", tone(400, 0.5)))])
    assert rows.shape == (48, 20) and rows.dtype == np.float16
    assert np.abs(rows.astype(float).mean(axis=0)).max() < 1e-2


@pytest.mark.parametrize("ending", ["flac", "ogg", "mp3", "opus"])
def test_other_kinds_of_recordings_are_read(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    kind = {"opus": {"format": "OGG", "subtype": "OPUS"}}.get(ending, {})
    soundfile.write(path, tone(400, 0.5), RATE, **kind)
    (rows,) = FRAMES.encode([str(path)])
    assert len(rows) > 40


def test_several_channels_are_read_as_their_mean(tmp_path: Path) -> None:
    left, right = tone(400, 0.3, 1), tone(900, 0.3, 2)
    both = write_wav(tmp_path / "both.wav", np.stack([left, right], axis=1).ravel(), channels=2)
    mean = write_wav(tmp_path / "mean.wav", (left + right) / 2)
    one, other = FRAMES.encode([str(both), str(mean)])
    assert np.abs(one.astype(float) - other.astype(float)).max() < 0.3


def test_a_missing_an_empty_and_a_foreign_file(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "none.wav")
    (tmp_path / "empty.wav").touch()
    assert "is empty" in refused(tmp_path / "empty.wav")
    (tmp_path / "text.wav").write_text("no sound at all " * 20)
    assert "not a supported recording" in refused(tmp_path / "text.wav")
    assert "is a folder" in refused(tmp_path)


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", tone(400, 0.5))
    path.write_bytes(path.read_bytes()[:3000])
    assert "cut off" in refused(path)
    path.write_bytes(path.read_bytes()[:44])
    refused(path)


@pytest.mark.parametrize("ending", ["flac", "ogg", "opus"])
def test_a_packed_recording_that_is_cut_off(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    kind = {"opus": {"format": "OGG", "subtype": "OPUS"}}.get(ending, {})
    soundfile.write(path, tone(400, 9), RATE, **kind)
    content = path.read_bytes()
    assert len(FRAMES.encode([str(path)])[0]) == 898
    last = content.rfind(b"OggS")
    within = [] if last < 0 else [last + 10, last + 27, last + 30]  # its header, its table
    for length in (len(content) - 1, len(content) * 9 // 10, len(content) // 2, *within):
        path.write_bytes(content[:length])
        assert "cut off" in refused(path)


@pytest.mark.parametrize("ending", ["ogg", "opus"])
def test_pages_that_are_none(tmp_path: Path, ending: str) -> None:
    """libogg would search what is no page for the next one, four bytes at a time."""
    path = tmp_path / f"a.{ending}"
    kind = {"opus": {"format": "OGG", "subtype": "OPUS"}}.get(ending, {})
    soundfile.write(path, tone(400, 9), RATE, **kind)
    content = path.read_bytes()
    last, false = content.rfind(b"OggS"), b"OggS\xff\xff\xff" * 1_000
    path.write_bytes(content + b"TAG" + bytes(125))  # as other formats have it
    assert len(FRAMES.encode([str(path)])[0]) == 898
    path.write_bytes(content + false)
    assert f"no page of an OGG file begins at byte {len(content):,}" in refused(path)
    path.write_bytes(content[:last] + false + content[last:])
    assert f"no page of an OGG file begins at byte {last:,}" in refused(path)
    damaged = bytearray(content)
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    assert f"the page at byte {last:,} has a wrong checksum" in refused(path)


def test_tags_of_mp3_are_not_given_to_its_decoder(capfd: pytest.CaptureFixture[str]) -> None:
    """Which writes a line for each frame that it does not understand."""
    held = io.BytesIO()
    soundfile.write(held, tone(400, 0.5), RATE, format="MP3")
    frames = (b"COMM\0\0\0\x03\0\0" + b"\0a\0") * 300
    size = bytes(len(frames) >> shift & 0x7F for shift in (21, 14, 7, 0))
    tag = b"ID3\x03\0\0" + size + frames

    def rows_of(data: bytes) -> Any:
        return [rows for rows in FRAMES.in_turns(InMemory("a", data)) if rows is not None][-1]

    plain, tagged = rows_of(held.getvalue()), rows_of(tag + tag + held.getvalue())
    np.testing.assert_array_equal(plain, tagged)
    told = capfd.readouterr()
    assert not told.err and not told.out
    with pytest.raises(DataError, match="a has more than 16 tags"):
        rows_of(tag * 17 + held.getvalue())
    with pytest.raises(DataError, match="a is empty"):
        rows_of(tag)


@pytest.mark.parametrize(
    ("start", "kind", "ending"),
    [
        (b"\0\0\0\x20ftypM4A \0\0\0\0", "M4A or another MP4 file", ".m4a"),
        (b"\x1aE\xdf\xa3\x9fB\x86\x81\x01", "WebM or Matroska", ".webm"),
        (b"\xff\xf1P\x80\x02\x1f\xfc", "AAC", ".aac"),
        (b"FORM\0\0\x10\0AIFF", "AIFF", ".aiff"),
    ],
)
def test_a_foreign_kind_names_the_command_that_converts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: bytes, kind: str, ending: str
) -> None:
    """Also where its name says something else: what is in it counts."""
    path = tmp_path / f"a b{ending}"
    path.write_bytes(start + bytes(500))
    told = refused(path)
    assert f"is {kind}, not " in told
    assert f"ffmpeg -i '{path}' '{path.with_suffix('.wav')}'" in told
    monkeypatch.chdir(tmp_path)
    path.rename("-y.mp3")
    assert "ffmpeg -i ./-y.mp3 ./-y.wav" in refused("-y.mp3")


def test_a_file_that_libsndfile_could_read_is_not_opened(tmp_path: Path) -> None:
    for kind in ("VOC", "W64", "NIST", "PAF"):
        soundfile.write(tmp_path / "a.wav", tone(400, 0.5), RATE, format=kind, subtype="PCM_16")
        assert "not a supported recording" in refused(tmp_path / "a.wav"), kind


def test_headers_that_lie(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", tone(400, 0.5))
    content = path.read_bytes()
    for at, size, value, told in (
        (24, 4, 0, ""),  # samples a second
        (24, 4, 999, "999 samples/s"),
        (24, 4, 2_000_000_000, ""),
        (22, 2, 0, ""),  # channels
        (22, 2, 9_999, ""),
        (34, 2, 77, ""),  # bits a sample
        (20, 2, 4_242, ""),  # how they are packed
        (4, 4, 1_000_000, "of 1,000,008 bytes"),
    ):
        lied = bytearray(content)
        lied[at : at + size] = value.to_bytes(size, "little")
        path.write_bytes(lied)
        assert told in refused(path)


def test_a_recording_whose_length_nobody_knew_is_read_to_its_end(tmp_path: Path) -> None:
    """As a program writes it into a pipe."""
    path = write_wav(tmp_path / "a.wav", tone(400, 0.5))
    whole, content = FRAMES.rows(str(path)), bytearray(path.read_bytes())
    for size in (0, 0x7FFFFFFF, 0xFFFFFFFF):
        content[4:8] = size.to_bytes(4, "little")
        content[40:44] = (size or 0xFFFFFFFF).to_bytes(4, "little")
        path.write_bytes(content)
        assert np.array_equal(FRAMES.rows(str(path)), whole), size


@pytest.mark.parametrize(("rate", "channels"), [(44_100, 1), (192_000, 2), (6_000, 1), (48_000, 8)])
def test_any_rate_and_any_channels_become_the_rate_that_is_read(
    tmp_path: Path, rate: int, channels: int
) -> None:
    at, wanted = np.arange(rate) / rate, np.arange(RATE) / RATE
    sound = 0.4 * np.sin(2 * np.pi * 400 * at)
    soundfile.write(tmp_path / "a.wav", np.stack([sound] * channels, 1), rate, subtype="FLOAT")
    found = np.concatenate(list(blocks_of(tmp_path / "a.wav", RATE)))
    assert len(found) == samples_of(tmp_path / "a.wav", RATE) == RATE
    middle = slice(200, -200)  # neither end knows what is beyond it
    assert np.abs(found - 0.4 * np.sin(2 * np.pi * 400 * wanted))[middle].max() < 1e-3


def test_what_the_lower_rate_cannot_hold_is_filtered_away(tmp_path: Path) -> None:
    """A tone of 6 kHz would be heard as one of 2 kHz, if every other sample were dropped."""
    high = 0.4 * np.sin(2 * np.pi * 6_000 * np.arange(16_000) / 16_000)
    path = write_wav(tmp_path / "a.wav", high, rate=16_000)
    found = np.concatenate(list(blocks_of(path, RATE)))
    assert np.abs(found[200:-200]).max() < 1e-3


def test_an_hour_of_another_rate_is_read_in_flat_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are as long as a tenth of a second here: a minute stands for the hour."""
    monkeypatch.setattr("dragoman.sources.frames.recordings._BLOCK", 4_800)
    path = write_wav(tmp_path / "a.wav", np.zeros(60 * 24_000), rate=24_000)
    longest, amount = 0, 0
    for block in blocks_of(path, RATE):
        longest, amount = max(longest, len(block)), amount + len(block)
    assert amount == 60 * RATE and longest < 3 * 4_800


def test_a_recording_that_is_silent_has_rows_and_one_without_samples_is_told(
    tmp_path: Path,
) -> None:
    silent = FRAMES.rows(str(write_wav(tmp_path / "a.wav", np.zeros(4_000))))
    assert len(silent) == 48 and np.abs(silent).max() < 1e-3
    for rate in (RATE, 44_100):
        assert "has no samples" in refused(write_wav(tmp_path / "b.wav", [], rate=rate))


def test_more_than_the_header_tells_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.sources.frames.form.samples_of", lambda raw, rate: 0)
    monkeypatch.setattr("dragoman.sources.shared.rows.MOST_ROWS", 40)
    assert "48 frames" in refused(write_wav(tmp_path / "a.wav", tone(400, 0.5)))


def test_standard_input_is_a_recording_that_is_read_as_often_as_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_wav(tmp_path / "a.wav", tone(400, 0.5))
    whole = FRAMES.rows(str(path))
    standard_input.cache_clear()
    with path.open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        assert rate_of("-") == RATE
        assert all(np.array_equal(FRAMES.rows("-"), whole) for _ in range(2))
    standard_input().close()
    for content, told in ((b"", "standard input is empty"), (b"\0\0\0 ftypM4A ", "dragoman ...")):
        standard_input.cache_clear()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(DataError, match=told):
            FRAMES.rows("-")
        standard_input().close()
    standard_input.cache_clear()


def test_what_is_no_number_is_named_by_its_place(tmp_path: Path) -> None:
    samples = tone(400, 0.5)
    samples[1_234] = np.nan
    soundfile.write(tmp_path / "nan.wav", samples, RATE, subtype="FLOAT")
    assert "sample 1,234" in refused(tmp_path / "nan.wav")


def test_a_sample_far_beyond_one_is_named_with_its_value(tmp_path: Path) -> None:
    samples = tone(400, 0.5)
    samples[77] = 1e30
    soundfile.write(tmp_path / "loud.wav", samples, RATE, subtype="FLOAT")
    assert "sample 77 (at 0.01 s) is 1e+30" in refused(tmp_path / "loud.wav")


@pytest.mark.parametrize("subsample", [2, 4])
def test_every_row_is_labelled_with_the_second_at_which_it_begins(
    subsample: Literal[2, 4],
) -> None:
    form = FramesForm(FramesSource(rate=RATE, bands=20, subsample=subsample))
    front = front_end(form.settings, 8)
    assert front is not None
    for frames in range(1, 41):
        labels = form.row_labels(np.zeros((frames, 20)), front.length(frames))
        assert labels == [f"▁{at / 100:.2f}s" for at in range(0, frames, subsample)], frames


def test_rows_do_not_depend_on_the_front_end() -> None:
    about = FRAMES.settings
    same = about.model_copy(update={"channels": 8, "subsample": 2})
    assert FramesForm(same).fingerprint == FRAMES.fingerprint
    other = about.model_copy(update={"bands": 21})
    assert FramesForm(other).fingerprint != FRAMES.fingerprint
    colour = PICTURES.settings.model_copy(update={"channels": 3})
    assert PicturesForm(colour).fingerprint != PICTURES.fingerprint


@pytest.mark.parametrize("read", [rate_of, lambda path: content_of(str(path)), read_idx])
def test_names_that_lead_to_no_file(tmp_path: Path, read: Callable[[Path], object]) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop.wav").symlink_to(tmp_path / "loop.wav")
    for name, told in (
        ("none.wav", "does not exist"),
        ("loop.wav", "cannot be read: Too many levels"),
        ("file/a.wav", "cannot be read: Not a directory"),
        ("x" * 300, "cannot be read: File name too long"),
        ("a\0b.wav", "cannot be the name of a file"),
        ("\ud800.wav", "cannot be the name of a file"),
    ):
        with pytest.raises(DataError, match=told) as error:
            read(tmp_path / name)
        assert str(error.value).isprintable()


def test_a_source_of_too_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.sources.shared.rows.MOST_ROWS", 40)
    assert "48 frames" in refused(write_wav(tmp_path / "a.wav", tone(400, 0.5)))


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "mp3", "opus"])
def test_two_thousand_damaged_recordings_are_read_or_told(tmp_path: Path, ending: str) -> None:
    path, draw = tmp_path / f"a.{ending}", np.random.default_rng(7)
    kind = {"opus": {"format": "OGG", "subtype": "OPUS"}}.get(ending, {})
    soundfile.write(path, tone(400, 0.6), RATE, **kind)
    whole, told, read = np.frombuffer(path.read_bytes(), np.uint8), 0, 0
    for number in range(2_000):
        damaged = whole[: draw.integers(1, len(whole)) if number % 3 == 0 else None].copy()
        reach = 64 if number % 2 else len(damaged)  # its header, or anywhere
        places = draw.integers(0, min(reach, len(damaged)), draw.integers(1, 9))
        damaged[places] = draw.integers(0, 256, len(places))
        path.write_bytes(damaged.tobytes())
        try:
            read += np.isfinite(FRAMES.rows(str(path)).astype(float)).all()
        except DataError as error:
            told += str(path) in str(error) and str(error).isprintable()
    assert read + told == 2_000 and told > 100, (read, told)


# --- pictures -------------------------------------------------------------------------------------


def test_patches_stand_row_by_row() -> None:
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8, 1)
    patches = patches_of(pixels, 4)
    assert patches.shape == (4, 16)
    assert patches[1].tolist() == pixels[:4, 4:].ravel().tolist()
    assert patches[2].tolist() == pixels[4:, :4].ravel().tolist()


def test_pictures_of_a_file(tmp_path: Path) -> None:
    pictures, labels = write_bars(tmp_path, 5)
    assert is_idx(str(pictures)) and read_idx(labels).shape == (5,)
    first, last = PICTURES.encode([f"{pictures}#0", f"{pictures}#4"])
    assert first.shape == (4, 16) and first.dtype == np.uint8
    assert np.array_equal(last, patches_of(read_idx(pictures)[4][..., None], 4))
    plain = write_idx(tmp_path / "plain.idx", read_idx(pictures))
    assert np.array_equal(read_idx(plain), read_idx(pictures))
    assert content_of(f"{plain}#3") == content_of(f"{pictures}#3") != content_of(f"{plain}#2")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", "type 13"),
        (b"JFIF and so on", "not an IDX file"),
        (struct.pack(">BBBBI", 0, 0, 8, 1, 9) + b"12345", "cut off"),
        (struct.pack(">BBBBI", 0, 0, 8, 1, 3) + b"12345", "damaged"),
        (
            gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 1, 999) + bytes(999), mtime=0)[:-9],
            "cut off",
        ),
        (gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 1, 9) + bytes(10), mtime=0), "damaged"),
        (gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 3, 9), mtime=0), "header needs 16 bytes"),
        (gzip.compress(struct.pack(">BBBBII", 0, 0, 8, 2, 2**31, 3), mtime=0), "more than 4 GiB"),
        (struct.pack(">BBBBI", 0, 0, 8, 3, 9), "header needs 16 bytes and has 8"),
        (struct.pack(">BBBBIII", 0, 0, 8, 3, 2**32 - 1, 0, 5), "is empty: its header says"),
        (struct.pack(">BBBBIII", 0, 0, 8, 3, 0, 2**32 - 1, 2**32 - 1), "0 x 4294967295 x"),
        (struct.pack(">BBBBIII", 0, 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1), "cut off"),
    ],
)
def test_a_damaged_idx_file(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "a.idx"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(told)) as error:
        read_idx(path)
    assert str(path) in str(error.value)


def test_no_more_is_unpacked_than_the_header_says(tmp_path: Path) -> None:
    path = tmp_path / "a.idx.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(struct.pack(">BBBBI", 0, 0, 8, 1, 4))
        for _ in range(64):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="damaged"):
            read_idx(path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_picture_that_there_is_not(tmp_path: Path) -> None:
    pictures, labels = write_bars(tmp_path, 5)
    for raw, told in (
        (f"{pictures}#5", "has 5 pictures, numbered from 0. There is no number 5"),
        (f"{pictures}#{'9' * 5_000}", "There is no number 9999999999999999999…"),
        (f"{pictures}#٣", "does not name a picture"),
        (str(pictures), "does not name a picture"),
        (f"{tmp_path / 'no.idx'}#0", "does not exist"),
        (f"{labels}#0", "pictures have two"),
    ):
        with pytest.raises(DataError, match=re.escape(told)):
            PICTURES.encode([raw])
    wide = write_idx(tmp_path / "wide.idx", np.zeros((2, 8, 12), np.uint8))
    with pytest.raises(DataError, match=r"8 x 12 x 1 .* 8 x 8 x 1"):
        PICTURES.encode([f"{wide}#0"])
