"""`dragoman prepare` by two workers beside two commands that prepare half of the text each:

    python benchmarks/preparing.py [--pairs 200000] [--turns 3]

Both ways take turns, and what is compared is the time on the clock, so the machine must have two
idle cores. The processor seconds hold on a busy machine too: those of the driver are spent before,
between and behind the stages, by one process, so two workers take at least

    driver + workers / 2

seconds on the clock. The text is of invented words, about twelve a sentence.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
RECIPE = """
name = "invented"
[languages]
source = "en"
target = "de"
[data.split]
dev = 0.002
test = 0.002
[text]
vocabulary = 8000
sample_sentences = 20000
[[data.train]]
source = "{stem}.en"
target = "{stem}.de"
"""
COMMAND = """
import resource, sys
from dragoman.cli.app import main
try:
    main()
finally:
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        found = resource.getrusage(who)
        print(found.ru_utime + found.ru_stime)
"""


class Took(NamedTuple):
    """Seconds."""

    clock: float
    driver: float
    workers: float


def write_pairs(stem: Path, pairs: int, draw: random.Random) -> None:
    """Two files of sentences, and a recipe of them."""
    syllables = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "er")]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(60_000)]
    often = list(accumulate(1 / (rank + 3) for rank in range(len(words))))
    for side in ("en", "de"):
        with open(f"{stem}.{side}", "w", encoding="utf-8") as file:
            for _ in range(pairs):
                some = draw.choices(words, cum_weights=often, k=draw.randint(5, 20))
                file.write(f"{' '.join(some)}.\n")
    Path(f"{stem}.toml").write_text(RECIPE.format(stem=stem))


def prepared(stems: list[Path], workers: int) -> Took:
    """One command for each, all at once."""
    began, processes = time.monotonic(), []
    for stem in stems:
        shutil.rmtree(to := Path(f"{stem}-to"), ignore_errors=True)
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", COMMAND, "prepare", f"{stem}.toml", "--to", str(to),
                 "--on", f"local:{workers}", "--quiet"],
                stdout=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
    told = [process.communicate()[0].split()[-2:] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit("a command failed")
    driver, of_workers = (sum(map(float, column)) for column in zip(*told, strict=True))
    return Took(time.monotonic() - began, driver, of_workers)


def main() -> None:
    """Print each turn, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        draw, here = random.Random(1), Path(folder)
        write_pairs(here / "whole", given.pairs, draw)
        halves = [here / "half1", here / "half2"]
        for stem in halves:
            write_pairs(stem, given.pairs // 2, draw)
        ratios = []
        print(f"{'':<26}{'clock':>8}{'driver':>8}{'workers':>9}")
        for _ in range(given.turns):
            together, apart = prepared([here / "whole"], 2), prepared(halves, 1)
            for name, took in (("two workers", together), ("two commands, one each", apart)):
                print(f"{name:<26}{took.clock:>8.1f}{took.driver:>8.1f}{took.workers:>9.1f}",
                      flush=True)  # fmt: skip
            ratios.append(apart.clock / together.clock)
        print(f"two workers reach {100 * median(ratios):.0f} % of two commands (by the clock)")


if __name__ == "__main__":
    main()
