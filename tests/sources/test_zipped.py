"""Pictures in a ZIP file: the same examples as of the folder that was packed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from recipe_of_files import recipe_of

from dragoman.base.errors import DataError
from dragoman.data.files.corpora import corpus_fingerprint, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.pictures.bitmaps import png_of
from dragoman.sources.file_examples import content_of
from dragoman.sources.picture.form import PicturesForm, PictureSource

LABELS = ("고양이", "big dog")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(1)
    for label in LABELS:
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(3):
            pixels = draw.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            (tmp_path / "photos" / label / f"{number} 사진.png").write_bytes(png_of(pixels))
    return tmp_path / "photos"


def packed(folder: Path, around: str = "") -> Path:
    """The ZIP file of a folder, with what macOS adds."""
    to = folder.with_suffix(".zip")
    with zipfile.ZipFile(to, "w") as archive:
        for file in sorted(folder.rglob("*.*")):
            archive.write(file, around + file.relative_to(folder).as_posix())
        archive.writestr("__MACOSX/photos/._1.png", b"of macOS")
        archive.writestr(f"{around}.DS_Store", b"hidden")
    return to


def pairs_of(source: Path) -> list[tuple[str, str]]:
    """Label and content of each picture, whatever its name."""
    corpus = CorpusSettings(source=str(source), format="folders")
    return sorted((pair.target, content_of(pair.source)) for pair in read_pairs(corpus))


@pytest.mark.parametrize("around", ["", "photos/"])
def test_a_zip_is_what_its_folder_is(folder: Path, around: str) -> None:
    assert pairs_of(packed(folder, around)) == pairs_of(folder)


def test_its_pictures_are_those_of_the_files(folder: Path) -> None:
    form = PicturesForm(PictureSource(height=8, width=8, channels=3, patch=4))
    archive = packed(folder)
    for label in LABELS:
        inside, file = f"{archive}#{label}/1 사진.png", folder / label / "1 사진.png"
        assert (form.rows(inside) == form.rows(str(file))).all()


def test_a_recipe_of_it(folder: Path) -> None:
    recipe, _ = recipe_of([str(packed(folder))], task="classification")
    (corpus,) = recipe.data.train
    assert corpus.format == "folders" and corpus.source.endswith("photos.zip")
    assert isinstance(recipe.source, PictureSource) and recipe.source.channels == 3


def test_another_content_is_another_corpus(folder: Path) -> None:
    corpus = CorpusSettings(source=str(packed(folder)), format="folders")
    before = corpus_fingerprint(corpus)
    assert corpus_fingerprint(corpus) == before
    (folder / LABELS[0] / "0 사진.png").write_bytes(png_of(np.zeros((8, 8, 3), np.uint8)))
    packed(folder)
    assert corpus_fingerprint(corpus) != before


def test_names_in_utf_8_that_do_not_say_so(tmp_path: Path) -> None:
    to = tmp_path / "old.zip"
    with zipfile.ZipFile(to, "w") as archive:
        for label in ("aa", "bb"):
            archive.writestr(f"{label}/1.png", png_of(np.zeros((8, 8, 3), np.uint8)))
    data = to.read_bytes().replace(b"aa/1.png", "é/1.png".encode())
    to.write_bytes(data)
    assert {label for label, _ in pairs_of(to)} == {"é", "bb"}


def test_what_cannot_be_read_is_told(folder: Path, tmp_path: Path) -> None:
    archive = packed(folder)
    form = PicturesForm(PictureSource(height=8, width=8, channels=3, patch=4))
    with pytest.raises(DataError, match="has no file"):
        form.rows(f"{archive}#nothing.png")
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a/1.png", bytes(40 << 20))
    with pytest.raises(DataError, match="too much for a picture"):
        form.rows(f"{bomb}#a/1.png")
    (tmp_path / "no.zip").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"no\.zip is damaged or not a ZIP file"):
        pairs_of(tmp_path / "no.zip")
    whole = archive.read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cut\.zip is damaged"):
        pairs_of(tmp_path / "cut.zip")
    damaged = bytearray(whole)
    at = damaged.index(b"IDAT")
    damaged[at + 8] ^= 255
    (tmp_path / "bad.zip").write_bytes(damaged)
    with pytest.raises(DataError, match=r"bad\.zip#.* is damaged"):
        pairs_of(tmp_path / "bad.zip")
    unknown = bytearray(whole)
    unknown[unknown.index(b"PK\x01\x02") + 6] = 255  # the version that is needed to unpack it
    (tmp_path / "new.zip").write_bytes(unknown)
    with pytest.raises(DataError, match=r"new\.zip is damaged or not a ZIP file: zip file version"):
        pairs_of(tmp_path / "new.zip")
    with zipfile.ZipFile(tmp_path / "lzma.zip", "w", zipfile.ZIP_LZMA) as made:
        made.writestr("a/1.png", whole)
    damaged = bytearray((tmp_path / "lzma.zip").read_bytes())
    damaged[60:90] = bytes(30)
    (tmp_path / "lzma.zip").write_bytes(damaged)
    with pytest.raises(DataError, match=r"lzma\.zip#.* is damaged"):
        form.rows(f"{tmp_path}/lzma.zip#a/1.png")
    with zipfile.ZipFile(tmp_path / "texts.zip", "w") as made:
        made.writestr("a/1.txt", "text")
    with pytest.raises(DataError, match="unpack the archive"):
        pairs_of(tmp_path / "texts.zip")
    with zipfile.ZipFile(tmp_path / "flat.zip", "w") as made:
        made.writestr("1.png", b"x")
        made.writestr("a/2.png", b"x")
    with pytest.raises(DataError, match="next to the folders of labels"):
        pairs_of(tmp_path / "flat.zip")
