"""How often the warnings of ``translate --warn`` are right.

    python benchmarks/doubtful.py demo runs/demo
    python benchmarks/doubtful.py judged runs/multi30k data/multi30k

``demo``: sentences of the demo's test set whose translation is equal to the reference are right;
compound sentences (``compound_sentences.py``), of which the run has read none, are counted where
the translation lacks most words of a clause. ``judged``: outputs that a person has judged before
the warnings were run; text that may not be copied is known by its place and by a hash of source and
output, so only outputs that this run gives too are counted, and their number is told.

Shares with 95 % intervals (Wilson, 1927).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from compound_sentences import compound, loses_a_part

import dragoman
from dragoman.demo.corpus import demo_corpus
from dragoman.tasks.translation.result import Translation
from dragoman.tasks.translation.translator import Translator

JUDGED = Path(__file__).resolve().parent / "judged-multi30k.tsv"
"""A line for each: file, line from 1, hash, judgement (right, omits, wrong)."""
SEED, COMPOUNDS = 2026, 400


def interval(found: int, of: int) -> tuple[float, float]:
    """Of a share."""
    z, share = 1.96, found / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    whole = 1 + z * z / of
    return max(0.0, middle - half) / whole, (middle + half) / whole


def report(name: str, translator: Translator, found: Sequence[Translation]) -> None:
    """How many have a warning, and of which kinds."""
    if not found:
        print(f"{name}: none")
        return
    codes = [{one.code for one in some} for some in translator.proofread(found)]
    kinds = {"any": sum(map(bool, codes))}
    for code in ("omitted", "length", "unknown"):
        kinds[code] = sum(code in some for some in codes)
    print(f"{name}: {len(found)} outputs")
    for kind, count in kinds.items():
        least, greatest = (100 * end for end in interval(count, len(found)))
        share = 100 * count / len(found)
        print(f"  {kind:8} {count:4}  {share:5.1f} %  ({least:.1f} to {greatest:.1f})")


def of_demo(translator: Translator) -> None:
    """The two lists of the demo."""
    test = demo_corpus().test
    outputs = translator.batch([pair.source for pair in test])
    equal = [one for one, pair in zip(outputs, test, strict=True) if one.text == pair.target]
    report("equal to the reference", translator, equal)
    random = Random(SEED)
    asked = [compound(random, 2 + n % 2) for n in range(COMPOUNDS)]
    outputs = translator.batch([one.source for one in asked])
    lost = [o for o, one in zip(outputs, asked, strict=True) if loses_a_part(o.text, one.parts)]
    report("compound sentences that lost a clause", translator, lost)


def of_judged(translator: Translator, folder: Path, judged: Path) -> None:
    """The judged outputs that this run gives too."""
    wanted: dict[str, dict[int, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    with judged.open(encoding="utf-8") as lines:
        for name, line, digest, judgement in csv.reader(lines, delimiter="\t"):
            wanted[name][int(line)][digest] = judgement  # runs give different outputs
    for name, of_file in wanted.items():
        with gzip.open(folder / name, "rt", encoding="utf-8") as text:
            sources = text.read().splitlines()
        numbers = sorted(of_file)
        outputs = translator.batch([sources[number - 1] for number in numbers])
        same: dict[str, list[Translation]] = defaultdict(list)
        for number, output in zip(numbers, outputs, strict=True):
            judgement = of_file[number].get(hashed(output.source, output.text))
            if judgement is not None:
                same[judgement].append(output)
        total = sum(map(len, same.values()))
        print(f"{name}: of {len(numbers)} judged sentences {total} have outputs of this run")
        for judgement in ("right", "omits", "wrong"):
            report(judgement, translator, same[judgement])


def hashed(source: str, output: str) -> str:
    """What a judged output is known by."""
    return hashlib.sha256(f"{source}\t{output}".encode()).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description="How often the warnings are right.")
    parser.add_argument("what", choices=("demo", "judged"))
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path, nargs="?", help="of the files that were judged")
    options = parser.parse_args()
    translator = dragoman.load(options.run)
    kinds: dict[str, Callable[[], None]] = {
        "demo": lambda: of_demo(translator),
        "judged": lambda: of_judged(translator, options.folder, JUDGED),
    }
    kinds[options.what]()


if __name__ == "__main__":
    main()
