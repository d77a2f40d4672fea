"""Processor time of a translation in parts beside the reckoning of docs/scale.md:

    python benchmarks/in_parts.py [--few 4000] [--many 24000] [--times 3] [--workers 1,2]

Seconds = what the plain verb takes for the lines + what each worker costs. Both are measured with
few lines, and what follows for many is compared with what is measured there. Processor time of the
whole tree of processes, the least of several turns, so that other programs on the machine matter
little. The run has random weights; the demo's sentences are translated greedily.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "doubles")]
os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}


def seconds(command: list[str], to: Path, times: int) -> float:
    """Processor seconds of a command and of all that it starts, at least."""
    found = []
    for _ in range(times):
        shutil.rmtree(to, ignore_errors=True)
        if to.is_file():
            to.unlink()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, "--to", str(to), "--quiet"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def main() -> None:
    """Print the table."""
    from untrained_run import untrained_run

    from dragoman.demo.corpus import demo_corpus

    parser = argparse.ArgumentParser()
    for name, value in (("few", 4000), ("many", 24000), ("times", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--workers", default="1,2,3,4")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "run").mkdir()
        untrained_run(here / "run", "search.max_length=20")
        pairs = demo_corpus(train_pairs=2000, dev_pairs=1, test_pairs=1).train
        files = {}
        for lines in (given.few, given.many):
            files[lines] = here / f"{lines}.txt"
            some = (pairs[n % len(pairs)].source for n in range(lines))
            files[lines].write_text("".join(f"{one}\n" for one in some), encoding="utf-8")

        def of(lines: int, workers: int) -> float:
            command = [sys.executable, "-m", "dragoman", "translate", str(here / "run")]
            command += [str(files[lines])]
            if workers:
                command += ["--on", f"local:{workers}", "--lines", "2000"]
            return seconds(command, here / "out", given.times)

        plain = {lines: of(lines, 0) for lines in files}
        alone = of(given.few, 1)
        begin, cost = alone - plain[given.few], of(given.few, 2) - alone
        print(f"plain: {plain[given.few]:.2f} s for {given.few:,} lines, "
              f"{plain[given.many]:.2f} s for {given.many:,}; a worker {cost:.2f} s, "
              f"parts {begin:.2f} s")  # fmt: skip
        print(f"{'workers':>8}{'reckoned':>10}{'measured':>10}{'apart':>8}")
        for workers in map(int, given.workers.split(",")):
            reckoned = plain[given.many] + begin + cost * (workers - 1)
            measured = of(given.many, workers)
            apart = 100 * (measured / reckoned - 1)
            print(f"{workers:>8}{reckoned:>10.2f}{measured:>10.2f}{apart:>7.1f}%", flush=True)


if __name__ == "__main__":
    main()
