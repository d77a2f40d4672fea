"""Spoken digits of synthetic voices, as more speakers for ``digit_strings.py``.

    python benchmarks/synthetic_voices.py synthetic
    python benchmarks/digit_strings.py recordings digits --unheard george --more synthetic

espeak-ng speaks with its accents of English and its voices, flite with its own (on Debian: ``apt
install espeak-ng flite``). One that is not installed is named and left out. Each clip is cut at its
silence and has a rate, a pitch and a loudness of its own. Named as those of the Free Spoken Digit
Dataset are: ``7_espeak-us-f3_2.wav``; needs ``dragoman[sound]``.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from digit_strings import RATE, WORDS, Samples, write

from dragoman.sources.frames.synthetic_voices import FLITE, VARIANTS, as_recorded, manner

ACCENTS = ("en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-029")


def main() -> None:
    """Write the clips."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("to", type=Path, help="a new folder")
    options.add_argument("--clips", type=int, default=3, help="of each digit and voice")
    given = options.parse_args()
    draw = random.Random(1)
    given.to.mkdir(parents=True)
    speakers = list(voices())
    if not speakers:
        raise SystemExit("neither espeak-ng nor flite is installed: apt install espeak-ng flite")
    written = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, command in speakers:
            for digit, word in enumerate(WORDS):
                for number in range(given.clips):
                    file = Path(folder) / "clip.wav"
                    subprocess.run(
                        [*command, *manner(command[0], draw), *said(command[0], word, file)],
                        check=True,
                        capture_output=True,
                    )
                    clip = as_recorded(read_at(file), RATE, draw)
                    if clip is None:
                        raise SystemExit(f"{name} says nothing of {word!r}")
                    write(given.to / f"{digit}_{name}_{number}.wav", clip)
                    written += 1
    print(f"{written:,} clips of {len(speakers)} voices in {given.to}")


def voices() -> Iterator[tuple[str, list[str]]]:
    """The name of each voice and how its program is called."""
    if shutil.which("espeak-ng") is None:
        print("espeak-ng is not installed: left out", file=sys.stderr)
    else:
        for place, variant in enumerate(VARIANTS):
            # Each voice with two accents, so that all accents are spoken by as many.
            for accent in (ACCENTS[place % 6], ACCENTS[(place + 3) % 6]):
                name = f"espeak-{accent.removeprefix('en-')}-{variant}"
                yield name, ["espeak-ng", "-v", f"{accent}+{variant}"]
    if shutil.which("flite") is None:
        print("flite is not installed: left out", file=sys.stderr)
    else:
        for voice in FLITE:
            yield f"flite-{voice}", ["flite", "-voice", voice]


def said(program: str, word: str, file: Path) -> list[str]:
    """The word and where its sound is written."""
    return ["-w", str(file), word] if program == "espeak-ng" else ["-t", word, "-o", str(file)]


def read_at(path: Path) -> Samples:
    """Its samples at the rate of the strings."""
    import soxr

    with wave.open(str(path)) as file:
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    resampled: Samples = soxr.resample(samples, rate, RATE)
    return resampled


if __name__ == "__main__":
    main()
