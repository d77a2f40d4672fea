"""Pictures of two shapes on a coloured ground with captions, what ``results.md`` paints:

    python benchmarks/painted_shapes.py data/shapes

    a small red circle above a large blue square on pink
    a large blue square below a small red circle on pink

writes ``train.tsv``, ``dev.tsv`` and ``test.tsv`` (file, caption) and the pictures beside them. Of
the 3,200 ways to put two of 40 shapes above or beside each other, 100 are held out for dev and 200
for test, on every ground, so that a test asks for combinations that neither the codes nor the
painter nor a judge has seen. Every shape and ground is in training.
"""

from __future__ import annotations

import argparse
import random
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from dragoman.demo.captioned_shapes import RELATIONS, SIDE, CaptionedDrawing, things

GROUNDS = {
    "white": (246, 246, 246), "black": (20, 20, 24), "grey": (150, 150, 150),
    "pink": (250, 180, 200), "brown": (120, 80, 40), "cyan": (120, 220, 230),
}  # fmt: skip
HELD = {"dev": 100, "test": 200}
"""Combinations of each."""


def main() -> None:
    """Write the three lists."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("to", type=Path, help="a new folder")
    given = options.parse_args()
    pairs = [
        CaptionedDrawing((one, other), relation)
        for one, other in product(things(), repeat=2)
        for relation in RELATIONS
    ]
    random.Random(1).shuffle(pairs)
    dev, test = HELD["dev"], HELD["test"]
    parts = {
        "train": [CaptionedDrawing((one,)) for one in things()] + pairs[dev + test :],
        "dev": pairs[:dev],
        "test": pairs[dev : dev + test],
    }
    given.to.mkdir(parents=True)
    for part, drawings in parts.items():
        (given.to / part).mkdir()
        lines = []
        for number, (drawing, ground) in enumerate(product(drawings, GROUNDS)):
            # A file for each caption: a list names no file twice.
            for place, caption in enumerate(drawing.captions):
                name = f"{part}/{number:05}-{place}.png"
                Image.fromarray(pixels(drawing, ground)).save(given.to / name)
                lines.append(f"{name}\t{caption} on {ground}\n")
        (given.to / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")
        print(f"{part}: {len(lines):,} captions of {len(drawings):,} combinations")


def pixels(drawing: CaptionedDrawing, ground: str) -> npt.NDArray[np.uint8]:
    """(32, 32, 3): the shapes over a ground."""
    found = np.empty((SIDE, SIDE, 3), np.float64)
    found[:] = GROUNDS[ground]
    return drawing.over(found)


if __name__ == "__main__":
    main()
