"""Strings of spoken digits, made of the single ones of the Free Spoken Digit Dataset: what the
recipe ``fsdd-digits`` learns from.

    python benchmarks/digit_strings.py free-spoken-digit-dataset/recordings digits --strings 6000

writes ``digits/train.tsv``, ``dev.tsv`` and ``test.tsv`` (recording, text, speaker, begin and end
of each clip in seconds) and the recordings beside them. The clips are divided before strings are
made of them: a clip stands in one of the three alone. Test are clips 0 to 4 of each digit and
speaker, as the data set has it; dev are clips 5 to 9. Each string is of one speaker, with silence
of a random length around each clip.

With ``--unheard NAME`` that speaker's clips are all test, and dev is of the others, or with ``--dev
NAME`` of another speaker, whose clips are not in training either. With ``--more
FOLDER`` there are as many strings again to train on, of the clips of other speakers that are named
alike (``synthetic_voices.py`` makes some).
"""

from __future__ import annotations

import argparse
import random
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.int16]

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
RATE = 8_000
COUNTS = {"train": 3_000, "dev": 150, "test": 300}
"""Strings of each part."""
LONGEST = 7
"""Digits of a string."""
_SILENCE = (0.03, 0.25)
"""Seconds between two clips, from and to."""
_NOISE = 4.0
"""Standard deviation of the noise in silences, of samples of 16 bits."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("recordings", type=Path, help="folder with 7_jackson_32.wav and others")
    options.add_argument("to", type=Path, help="a new folder")
    options.add_argument("--unheard", metavar="SPEAKER", help="all clips of this speaker are test")
    options.add_argument("--dev", metavar="SPEAKER", help="all clips of this speaker are dev")
    options.add_argument("--longest", type=int, default=LONGEST, help="digits of a string")
    options.add_argument("--more", type=Path, help="folder with more clips to train on")
    options.add_argument("--single", action="store_true", help="test and dev are single digits")
    options.add_argument("--strings", type=int, default=COUNTS["train"], help="of training")
    given = options.parse_args()
    draw = random.Random(1)
    parts: dict[str, list[Path]] = {"train": [], "dev": [], "test": []}
    for file in sorted(given.recordings.glob("*_*_*.wav")):
        parts[part_of(file, given.unheard, given.dev)].append(file)
    more = [] if given.more is None else sorted(given.more.glob("*_*_*.wav"))
    given.to.mkdir(parents=True)
    for part, files in parts.items():
        count = given.strings if part == "train" else COUNTS[part]
        one_each = given.single and part != "train"
        longest = given.longest
        strings = (
            [[file] for file in files] if one_each else list(drawn(files, count, longest, draw))
        )
        if part == "train" and more:
            strings += drawn(more, count, longest, draw)
        (given.to / part).mkdir()
        lines = []
        for number, clips in enumerate(strings):
            name = f"{part}/{number:05}.wav"
            samples, times = joined([read(clip) for clip in clips], draw)
            write(given.to / name, samples)
            said = " ".join(WORDS[int(clip.name[0])] for clip in clips)
            lines.append(f"{name}\t{said}\t{speaker(clips[0])}\t{times}\n")
        (given.to / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")


def speaker(file: Path) -> str:
    return file.stem.split("_")[1]


def part_of(file: Path, unheard: str | None, dev: str | None) -> str:
    number = int(file.stem.split("_")[2])
    if unheard is not None and speaker(file) == unheard:
        return "test"
    if dev is not None:
        return "dev" if speaker(file) == dev else "train"
    if number < 5:
        return "test" if unheard is None else "train"
    return "dev" if number < 10 else "train"


def drawn(files: list[Path], count: int, longest: int, draw: random.Random) -> Iterator[list[Path]]:
    """Strings of one speaker each; every clip is used before one is used again."""
    by_speaker: dict[str, list[Path]] = {}
    for file in files:
        by_speaker.setdefault(speaker(file), []).append(file)
    names, waiting = sorted(by_speaker), dict[str, list[Path]]()
    for number in range(count):
        name, wanted, string = names[number % len(names)], draw.randint(1, longest), list[Path]()
        while len(string) < wanted:
            if not waiting.get(name):
                waiting[name] = draw.sample(by_speaker[name], len(by_speaker[name]))
            string.append(waiting[name].pop())
        yield string


def joined(clips: list[Samples], draw: random.Random) -> tuple[Samples, str]:
    """The clips with silence around each, and when each begins and ends: 0.100-0.543 ..."""
    parts, times = [silence(draw)], list[str]()
    at = len(parts[0])
    for clip in clips:
        parts += [clip, silence(draw)]
        times.append(f"{at / RATE:.3f}-{(at + len(clip)) / RATE:.3f}")
        at += len(clip) + len(parts[-1])
    return np.concatenate(parts), " ".join(times)


def silence(draw: random.Random) -> Samples:
    noise = np.random.default_rng(draw.getrandbits(32))
    count = round(RATE * draw.uniform(*_SILENCE))
    return noise.normal(0, _NOISE, count).astype(np.int16)


def read(path: Path) -> Samples:
    with wave.open(str(path)) as file:
        if file.getframerate() != RATE:
            raise SystemExit(f"{path} has {file.getframerate()} samples a second, not {RATE}")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


def write(path: Path, samples: Samples) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.astype("<i2").tobytes())


if __name__ == "__main__":
    main()
