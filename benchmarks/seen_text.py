"""Text that is hard to read, translated from its picture and from its letters.

    python benchmarks/seen_text.py --pixels runs/multi30k-en-de-pixels \\
        --reader runs/multi30k-en-reader --text runs/multi30k-en-de \\
        data/multi30k/test_2016_flickr.en.gz data/multi30k/test_2016_flickr.de.gz

For each condition the English is spoiled: the picture is blurred or speckled, or neighbouring
letters of its words change places. It is then translated by the run that reads pictures, by the
chain of a reader of lines and a translator of text, and, where its letters are known, by the
translator of text alone. BLEU is that of ``dragoman evaluate``; CER is that of the reader, and of
tesseract where it is installed, which reads the same pictures three times as large and stands in a
chain as the reader does.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import tesseract

import dragoman
from dragoman.data.files.corpora import read_lines
from dragoman.metrics.translation import evaluate_translation
from dragoman.metrics.word_errors import WordErrors
from dragoman.sources.line import DrawingSettings, LineSource, draw_text

HEIGHT = 20
"""Of pictures, in pixels, where no run reads them."""
CONDITIONS = {
    "clean": (DrawingSettings(), 0.0),
    "blur of 1 pixel": (DrawingSettings(blur=1.0), 0.0),
    "blur of 2 pixels": (DrawingSettings(blur=2.0), 0.0),
    "speckle on 5 %": (DrawingSettings(speckle=0.05), 0.0),
    "speckle on 20 %": (DrawingSettings(speckle=0.2), 0.0),
    "letters swapped in 10 % of words": (DrawingSettings(), 0.1),
    "letters swapped in 30 % of words": (DrawingSettings(), 0.3),
}
"""How a text is drawn, and in how many of its words two letters change places. Blur and speckle are
limits: each text gets a share of them, drawn evenly."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("--pixels", type=Path, help="a run that translates pictures of lines")
    options.add_argument("--reader", type=Path, help="a run that reads lines")
    options.add_argument("--text", type=Path, help="a run that translates text")
    options.add_argument(
        "--lines", type=int, default=1_000, help="the first so many of the test set"
    )
    options.add_argument("source", type=Path)
    options.add_argument("target", type=Path)
    given = options.parse_args()
    sources = list(read_lines(given.source))[: given.lines]
    references = list(read_lines(given.target))[: given.lines]
    runs = {
        name: dragoman.load(path)
        for name, path in (("pixels", given.pixels), ("reader", given.reader), ("text", given.text))
        if path is not None
    }

    def bleu(hypotheses: Sequence[str]) -> float:
        return evaluate_translation(hypotheses, [references], "de", metrics=("BLEU",))["BLEU"]

    peer = tesseract.version() if tesseract.is_here() else None
    print(peer or "tesseract is not installed: its CER is left out", file=sys.stderr)
    for condition, (drawing, share) in CONDITIONS.items():
        draw = random.Random(1)
        spoiled = [swapped(line, share, draw) for line in sources]
        found: dict[str, object] = {"condition": condition}
        with tempfile.TemporaryDirectory() as folder:
            pictures = pictures_of(spoiled, drawing, runs, Path(folder))
            if "pixels" in runs:
                found["pixels"] = bleu([str(one) for one in runs["pixels"].stream(pictures)])
            if "reader" in runs:
                read = [str(one) for one in runs["reader"].stream(pictures)]
                found["CER"] = WordErrors.of(spoiled, read).characters.rate
                if "text" in runs:
                    found["chain"] = bleu([str(one) for one in runs["text"].stream(read)])
            if peer is not None:
                by_peer = tesseract.read_lines_of(pictures)
                found["CER of tesseract"] = WordErrors.of(spoiled, by_peer).characters.rate
                if "text" in runs:
                    found["chain of tesseract"] = bleu(
                        [str(one) for one in runs["text"].stream(by_peer)]
                    )
        if "text" in runs:
            found["text"] = bleu([str(one) for one in runs["text"].stream(spoiled)])
        print(json.dumps(found), flush=True)


def pictures_of(
    texts: Sequence[str],
    drawing: DrawingSettings,
    runs: dict[str, dragoman.Translator],
    folder: Path,
) -> list[str]:
    """The names of files with the texts, as high as the runs read them."""
    from PIL import Image

    sources = (one.run.recipe.source for one in runs.values())
    height = next((one.height for one in sources if isinstance(one, LineSource)), HEIGHT)
    names = []
    for number, text in enumerate(texts):
        names.append(str(folder / f"{number:05}.png"))
        Image.fromarray(draw_text(text, height, drawing)).save(names[-1])
    return names


def swapped(line: str, share: float, draw: random.Random) -> str:
    """The line, in which two neighbouring letters inside a word change places in such a share of
    the words that have four letters or more."""
    words = line.split(" ")
    for place, word in enumerate(words):
        if len(word) >= 4 and draw.random() < share:
            at = draw.randrange(1, len(word) - 2)
            words[place] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return " ".join(words)


if __name__ == "__main__":
    main()
