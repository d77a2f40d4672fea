"""tesseract as a peer: what is given to it and taken from it, by a double; and itself where it is
installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import tesseract

from dragoman.base.errors import DragomanError
from dragoman.metrics.word_errors import WordErrors
from dragoman.sources.line import DrawingSettings, draw_text

LINES = [
    "Two dogs run through the snow.", "A man in a blue shirt is standing on a ladder.",
    "Children play football in the park.", "Three people sit at a table outside a house.",
]  # fmt: skip

DOUBLE = """\
#!{python}
import sys
from PIL import Image
listing, to, *options = sys.argv[1:]
assert to == "stdout" and options == ["--psm", "7", "-l", "eng", "--dpi", "300"], options
for name in open(listing).read().split("\\n")[:-1]:
    width, height = Image.open(name).size
    print(f"{{width}}  x\\n{{height}}\\n", end="{end}")
sys.exit({code})
"""


def pictures(folder: Path) -> list[str]:
    names = [str(folder / f"{number}.png") for number in range(len(LINES))]
    for name, text in zip(names, LINES, strict=True):
        Image.fromarray(draw_text(text, 24, DrawingSettings(slant=0, blur=0))).save(name)
    return names


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, end: str, code: int = 0) -> None:
    program = folder / "tesseract"
    program.write_text(DOUBLE.format(python=sys.executable, end=end, code=code))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_each_picture_has_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = pictures(tmp_path)
    install(tmp_path, monkeypatch, "\\f")
    assert tesseract.is_here()
    wanted = []
    for name in names:
        with Image.open(name) as image:
            wanted.append(f"{3 * image.width} x {3 * image.height}")
    assert tesseract.read_lines_of(names) == wanted


def test_what_goes_wrong_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = pictures(tmp_path)
    install(tmp_path, monkeypatch, "")
    with pytest.raises(DragomanError, match="1 texts of 4 pictures"):
        tesseract.read_lines_of(names)
    install(tmp_path, monkeypatch, "\\f", code=3)
    with pytest.raises(DragomanError, match="tesseract: "):
        tesseract.read_lines_of(names)


@pytest.mark.slow
@pytest.mark.skipif(not tesseract.is_here(), reason="tesseract is not installed")
def test_it_reads_what_the_program_draws(tmp_path: Path) -> None:
    read = tesseract.read_lines_of(pictures(tmp_path))
    assert WordErrors.of(LINES, read).characters.rate < 30, read
