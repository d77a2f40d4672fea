"""tesseract (https://github.com/tesseract-ocr/tesseract) as a peer of a reader of lines, where it
is installed (Debian: apt install tesseract-ocr)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dragoman.base.errors import DragomanError

ENLARGED = 3
"""Times by which pictures are enlarged: it wants letters of 20 pixels or more."""
_ONE_LINE = "7"
"""Its mode of page segmentation for a picture of one line."""
_PAGE_END = "\f"


def is_here() -> bool:
    """Whether there is a tesseract on the path."""
    return shutil.which("tesseract") is not None


def version() -> str:
    """The first line of what it says of itself."""
    told = subprocess.run(["tesseract", "--version"], capture_output=True, text=True, check=True)
    return (told.stdout or told.stderr).splitlines()[0]


def read_lines_of(pictures: Sequence[str], language: str = "eng") -> list[str]:
    """What stands in pictures of one line each, in one call.

    Errors: ``DragomanError`` with what it says, and where it gives another number of texts.
    """
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        names = []
        for number, picture in enumerate(pictures):
            names.append(str(Path(folder, f"{number:05}.png")))
            with Image.open(picture) as image:
                size = image.width * ENLARGED, image.height * ENLARGED
                image.convert("L").resize(size, Image.Resampling.LANCZOS).save(names[-1])
        listing = Path(folder, "pictures.txt")
        listing.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        command = ["tesseract", str(listing), "stdout", "--psm", _ONE_LINE, "-l", language]
        ran = subprocess.run([*command, "--dpi", "300"], capture_output=True, check=False)
    if ran.returncode:
        raise DragomanError(f"tesseract: {ran.stderr.decode(errors='replace').strip()[-500:]}")
    texts = ran.stdout.decode(errors="replace").split(_PAGE_END)
    if len(texts) == len(pictures) + 1 and not texts[-1].strip():
        texts.pop()
    if len(texts) != len(pictures):
        raise DragomanError(f"tesseract read {len(texts):,} texts of {len(pictures):,} pictures")
    return [" ".join(text.split()) for text in texts]
