"""How near the times of words (``dragoman transcribe --words``) are to those of the clips of which
strings of digits are made.

    python benchmarks/word_times.py runs/fsdd-digits data/digits/test.tsv

Strings that are heard as they were said count. Clips have some silence at their ends, which words
have not.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from dragoman.tasks.catalogue import Run
from dragoman.tasks.transcription.transcriber import Transcriber

_NEAR = 0.06
"""Seconds."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("run", type=Path)
    options.add_argument("listing", type=Path, help="of benchmarks/digit_strings.py")
    given = options.parse_args()
    transcriber, off, right = Transcriber(Run.open(given.run)), list[float](), 0
    lines = given.listing.read_text(encoding="utf-8").splitlines()
    for line in lines:
        name, said, _, times = line.split("\t")
        found = transcriber(given.listing.parent / name, words=True)
        words = [word for segment in found.segments for word in segment.words]
        if found.text != said or len(words) != len(said.split()):
            continue
        right += 1
        for word, clip in zip(words, times.split(), strict=True):
            begin, end = map(float, clip.split("-"))
            off += [abs(word.begin - begin), abs(word.end - end)]
    errors = np.array(off)
    print(f"{right:,} of {len(lines):,} strings, {len(errors):,} begins and ends of words")
    middle, most = (1000 * np.quantile(errors, share) for share in (0.5, 0.95))
    print(f"median {middle:.0f} ms, 95 % within {most:.0f} ms")
    print(f"{100 * (errors <= _NEAR).mean():.1f} % within {1000 * _NEAR:.0f} ms")


if __name__ == "__main__":
    main()
