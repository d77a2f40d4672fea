"""How fast each way of this machine trains, for three shapes, and which is taken.

    python benchmarks/ways.py               some minutes; best on a quiet machine
    python benchmarks/tables.py             writes the table into README.md

A way is a set of kernels (one instruction set's, or plain torch), a precision and a number of
threads. Ways take turns, and the least time of each counts, as before a training
(``training/fastest_way.py``) but for longer: forward and backward on random sentences, the
optimizer's step aside. Results go to ``benchmarks/results/ways.json``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from provenance import Watch, machine
from results import Results

from dragoman.engine.ways import SHAPES, TRAINING_HEAD, measure_shape, training_rows
from dragoman.native.allocator import keep_memory
from dragoman.pictures.labels import plain_table
from dragoman.training.fastest_way import Timing

RESULTS = Path(__file__).resolve().parent / "results" / "ways.json"
KEY = ("work", "machine")

THOROUGHLY = Timing(least=20.0, most=120.0, passes=1000, longest=1.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=[shape.name for shape in SHAPES], action="append")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    keep_memory()
    print(machine())
    results = Results(arguments.results, KEY)
    for shape in SHAPES:
        if shape.name not in (arguments.shape or shape.name):
            continue
        watch = Watch()
        rows = training_rows(measure_shape(shape, THOROUGHLY))
        print(f"\n{shape.name}\n{plain_table(TRAINING_HEAD, rows)}", flush=True)
        results.store({"work": shape.name, "ways": rows} | watch.stamp())
    print(f"written to {arguments.results}")


if __name__ == "__main__":
    main()
