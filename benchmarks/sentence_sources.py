"""Which of several sources a sentence is from: labelled examples, made of files of sentences.

    python benchmarks/sentence_sources.py data/mono-en/{abc,brown,lj,movie,state}*.txt.gz \\
        --to data/sentence-sources
    dragoman train sentence-sources

Each file (plain or gzip, a sentence a line) is a label, its name up to the first dot. They differ
in casing and in how they are tokenised, which would tell them apart at once, so both are made equal
first: everything is lower-cased, and what is no letter becomes a space; ``didn't`` and ``didn ' t``
are ``didn t`` both. Words are left. Sentences of fewer than 6 words or more than 60 are passed
over, and repeated ones.

Files are cut into blocks of 100 lines, of which every tenth is for dev and every tenth for test, so
that a held-out sentence rarely has a neighbour in training; it may still be of the same document.
Written are ``train.tsv``, ``dev.tsv``, ``test.tsv`` (text, tab, label), and ``train-100.tsv`` and
``train-1000.tsv`` with so many of the training examples, drawn at random, to learn from few;
``train.txt`` has the texts of ``train.tsv`` without their labels, for models that read first.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dragoman.data.files.corpora import read_lines

FEW = (100, 1000)
BLOCK = 100
SHORTEST, LONGEST = 6, 60
_NO_LETTER = re.compile(r"[^a-z]+")

Example = tuple[str, str]


def plain(sentence: str) -> str:
    """Its words in lower case, whoever tokenised it."""
    return _NO_LETTER.sub(" ", sentence.lower()).strip()


def part_of(line: int) -> str:
    """Where the sentence on a line (from 0) goes."""
    return {0: "test", 1: "dev"}.get(line // BLOCK % 10, "train")


def examples(lines: Iterable[str], label: str) -> Iterator[tuple[str, Example]]:
    """The part and the example of each sentence that is fit; a repeated one once."""
    seen = set()
    for line, sentence in enumerate(lines):
        text = plain(sentence)
        if SHORTEST <= len(text.split()) <= LONGEST and text not in seen:
            seen.add(text)
            yield part_of(line), (text, label)


def write(path: Path, rows: Sequence[Example]) -> None:
    """Text, tab, label, a line each."""
    path.write_text("".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")


def main() -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--to", type=Path, required=True, help="The folder to write into.")
    parser.add_argument("--seed", type=int, default=1, help="Of the order, and of the few.")
    given = parser.parse_args()
    parts: dict[str, list[Example]] = {"train": [], "dev": [], "test": []}
    for path in given.files:
        for part, example in examples(read_lines(path), path.name.split(".")[0]):
            parts[part].append(example)
    given.to.mkdir(parents=True, exist_ok=True)
    for name, rows in parts.items():
        random.Random(given.seed).shuffle(rows)
        write(given.to / f"{name}.tsv", rows)
        counts = Counter(label for _, label in rows)
        told = ", ".join(f"{label} {count:,}" for label, count in sorted(counts.items()))
        print(f"{name}: {len(rows):,} ({told})")
    texts = "".join(f"{text}\n" for text, _ in parts["train"])
    (given.to / "train.txt").write_text(texts, encoding="utf-8")
    for few in FEW:
        write(given.to / f"train-{few}.tsv", parts["train"][:few])


if __name__ == "__main__":
    main()
