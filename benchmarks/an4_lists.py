"""Lists of AN4, CMU's corpus of spelled and dictated words: what the recipe ``an4`` learns from.

    python benchmarks/an4_lists.py an4 data/an4

reads ``train.tsv`` and ``test.tsv`` of a folder (id, speaker, frames, transcript; a header line),
or the ``etc`` folder of CMU's own distribution, and finds the feature files (``.mfc``) below it.
It writes ``train.tsv``, ``dev.tsv`` and ``test.tsv`` with a file, its transcript and its speaker on
each line. Dev is all that ten of the 74 speakers of the training set say. ``train-phones.tsv`` and
``dev-phones.tsv`` have phones in place of words, by the dictionary ``an4.dic``, for ``an4-phones``.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DEV_SPEAKERS = 10
_ALTERNATIVE = re.compile(r"\(\d+\)$")
_LETTER_A = "EY"
"""Nearly each A is spelled; the dictionary has the article first."""
_SPOKEN = re.compile(r"(?:<s> )?(.*?)(?: </s>)? \(([^)]+)\)\s*$")


class Utterance(NamedTuple):
    """One line of a list."""

    name: str
    speaker: str
    words: str


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("an4", type=Path, help="the folder of AN4")
    options.add_argument("to", type=Path, help="a new folder")
    given = options.parse_args()
    files = {file.stem: file.resolve() for file in given.an4.rglob("*.mfc")}
    learned, test = list(utterances(given.an4, "train")), list(utterances(given.an4, "test"))
    missing = [one.name for one in learned + test if one.name not in files]
    if missing:
        raise SystemExit(
            f"{given.an4} has no {missing[0]}.mfc ({len(missing):,} of {len(learned + test):,} "
            "feature files are missing): unpack its archives first"
        )
    speakers = sorted({one.speaker for one in learned})
    dev = set(random.Random(1).sample(speakers, DEV_SPEAKERS))
    parts = {
        "train": [one for one in learned if one.speaker not in dev],
        "dev": [one for one in learned if one.speaker in dev],
        "test": test,
    }
    dictionary = next(given.an4.rglob("an4.dic"), None)
    if dictionary is None:
        raise SystemExit(f"{given.an4} has no an4.dic, which tells the phones of words")
    given.to.mkdir(parents=True)
    said = phones(dictionary)
    for part, found in parts.items():
        lines = [f"{files[one.name]}\t{one.words}\t{one.speaker}\n" for one in found]
        (given.to / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")
        if part != "test":
            spoken = [" ".join(said[word] for word in one.words.split()) for one in found]
            lines = [
                f"{files[one.name]}\t{text}\t{one.speaker}\n"
                for one, text in zip(found, spoken, strict=True)
            ]
            (given.to / f"{part}-phones.tsv").write_text("".join(lines), encoding="utf-8")
        print(f"{part}: {len(found)} utterances of {len({one.speaker for one in found})} speakers")


def utterances(an4: Path, part: str) -> Iterator[Utterance]:
    """Of ``part``, train or test, in their order."""
    if (table := an4 / f"{part}.tsv").is_file():
        for line in table.read_text(encoding="utf-8").splitlines()[1:]:
            name, speaker, _, words = line.split("\t")
            yield Utterance(name, speaker, words)
        return
    for line in (an4 / "etc" / f"an4_{part}.transcription").read_text().splitlines():
        found = _SPOKEN.match(line)
        if found is None:
            raise SystemExit(f"{an4}: no transcript in {line!r}")
        name = found[2]
        yield Utterance(name, name.split("-")[1], found[1])


def phones(dictionary: Path) -> dict[str, str]:
    """Each word -> its phones, as they are pronounced first."""
    found: dict[str, str] = {}
    for line in dictionary.read_text(encoding="utf-8").splitlines():
        if line.strip():
            word, said = line.split(maxsplit=1)
            found.setdefault(_ALTERNATIVE.sub("", word), " ".join(said.split()))
    return found | {"A": _LETTER_A}


if __name__ == "__main__":
    main()
