"""Pictures with captions that tests draw themselves, in a list. Not a test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from dragoman.models.picture_codes import PictureCodes
from dragoman.models.settings import CodesSettings
from dragoman.pictures.bitmaps import png_of
from dragoman.sources.picture.codes_form import CODES, CodeSymbols
from dragoman.sources.picture.form import PictureSource
from dragoman.training.weights import save_weights

SIDE = 16
_COLOURS = {"red": (220, 40, 40), "green": (40, 160, 70), "blue": (40, 80, 200)}
_PLACES = {"above": (0, 4), "below": (8, 4), "left": (4, 0), "right": (4, 8)}


def write_blocks(folder: Path, copies: int = 1, name: str = "blocks.tsv") -> Path:
    """White pictures of 16 x 16 with a block of 8 x 8 in one of three colours and four places, each
    ``copies`` times. -> the list, beside whose name is the folder of the pictures."""
    pictures = folder / Path(name).stem
    pictures.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(copies):
        for colour, rgb in _COLOURS.items():
            for place, (top, left) in _PLACES.items():
                pixels = np.full((SIDE, SIDE, 3), 250, np.uint8)
                pixels[top : top + 8, left : left + 8] = rgb
                pixels[0, 0, 0] = number  # none is the copy of another
                file = pictures / f"{colour}-{place}-{number}.png"
                file.write_bytes(png_of(pixels))
                lines.append(f"{pictures.name}/{file.name}\ta {colour} block {place}\n")
    path = folder / name
    path.write_text("".join(lines), encoding="utf-8")
    return path


def write_codes(folder: Path, patch: int = 8) -> Path:
    """What a painter takes of a run that has learned codes; these have learned nothing, but differ
    from picture to picture."""
    settings = CodesSettings(model_dim=8, blocks=1)
    source = PictureSource(height=SIDE, width=SIDE, channels=3, patch=patch)
    torch.manual_seed(1)
    save_weights(folder / "model.safetensors", PictureCodes(settings, source).state_dict(), {})
    model = settings.model_dump(mode="json")
    CodeSymbols(settings.levels, source, model, "").save(folder / CODES)
    return folder
