"""Do the tests hold on other processors? Run them under eight combinations of what this one offers.

    make test-matrix
    .venv/bin/python tests/matrix.py tests/nn tests/models

Each combination limits the libraries that multiply matrices (oneDNN, MKL, torch's own loops, the
native kernels) and sets the number of threads, so that every value of each setting occurs at least
once. A test that compares floats bit by bit where the same numbers are computed in another order
passes on one processor and fails on another; this finds it on one machine.

The result of each combination is one line of ``build/test-matrix.jsonl``: a run that was stopped
goes on where it was, and a combination is run again only for another commit or machine. The table
is printed at the end. Exit code 1 if a test failed anywhere. It takes about eight times as long as
``make test``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "build" / "test-matrix.jsonl"

SETTINGS = {
    "oneDNN": "ONEDNN_MAX_CPU_ISA",
    "MKL": "MKL_ENABLE_INSTRUCTIONS",
    "torch": "ATEN_CPU_CAPABILITY",
    "oneDNN in torch": "DRAGOMAN_TEST_ONEDNN",  # tests/conftest.py reads it
    "threads": "OMP_NUM_THREADS",
    "kernels": "DRAGOMAN_NATIVE",
}
"""The columns of the table, and the environment variable that each sets."""

COMBINATIONS = (
    ("AVX2", "AVX2", "avx2", "on", "1", "avx2"),
    ("AVX2", "AVX512", "avx512", "on", "3", "avxvnni"),
    ("AVX512_CORE", "AVX512", "avx512", "on", "2", "avx512"),
    ("AVX512_CORE", "AVX2", "default", "off", "2", "avx512vnni"),
    ("AVX512_CORE", "AVX512", "avx2", "off", "1", "off"),
    ("AVX512_CORE_AMX", "AVX512", "avx512", "on", "1", "amx"),
    ("AVX512_CORE_AMX", "AVX2", "avx2", "on", "3", "off"),
    ("AVX512_CORE_AMX", "AVX512", "avx512", "on", "2", "auto"),
)
"""Values in the order of ``SETTINGS``. ``default`` is torch without vector instructions; a limit
above what the processor has limits nothing."""


def run(combination: tuple[str, ...], tests: list[str]) -> dict[str, Any]:
    """The tests under one combination -> counts, names of the failures, seconds."""
    environment = os.environ | dict(zip(SETTINGS.values(), combination, strict=True))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-n", "2",
                   f"--junitxml={report}", *tests]  # fmt: skip
        code = subprocess.run(command, cwd=ROOT, env=environment).returncode
        if code not in (0, 1) or not report.exists():
            raise SystemExit(
                f"pytest ended with exit code {code}: the combination was not finished"
            )
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    failed = [
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {
        "passed": len(cases) - len(failed) - skipped,
        "failed": failed,
        "skipped": skipped,
        "seconds": round(time.monotonic() - began),
    }


def unsupported(level: str) -> bool:
    """Whether this machine's library lacks the kernels of ``level``."""
    from dragoman.native import loader

    library, _ = loader.load()
    can = () if library is None else library.levels
    return level not in ("auto", "off", *can)


def place() -> tuple[str, str]:
    """The commit ("+" behind it: with changes) and the processor."""
    from dragoman.engine.machine import processor

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    return git("rev-parse", "--short=10", "HEAD") + "+" * bool(
        git("status", "--porcelain", "--untracked-files=no")
    ), processor()


def known(tests: list[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """The combinations that were run here, for this commit and these tests."""
    if not RESULTS.exists():
        return {}
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    here = [*place(), tests]
    return {
        tuple(r["settings"]): r for r in rows if [r["commit"], r["machine"], r["tests"]] == here
    }


def table(rows: list[dict[str, Any]]) -> str:
    heads = [*SETTINGS, "passed", "skipped", "failed", "minutes"]
    lines = [heads, ["---"] * len(heads)]
    for row in rows:
        result = row["result"]
        found = ["not on this processor", "", "", ""]
        if result is not None:
            counts = [result["passed"], result["skipped"], len(result["failed"])]
            found = [f"{count:,}" for count in counts] + [f"{result['seconds'] / 60:.1f}"]
        lines.append([*row["settings"], *found])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("tests", nargs="*", default=["tests"], help="files or folders of tests")
    tests = parser.parse_args().tests
    RESULTS.parent.mkdir(exist_ok=True)
    done = known(tests)
    commit, machine = place()
    for number, combination in enumerate(COMBINATIONS, 1):
        if combination in done:
            continue
        said = ", ".join(f"{k} {v}" for k, v in zip(SETTINGS, combination, strict=True))
        print(f"[{number} of {len(COMBINATIONS)}] {said}", flush=True)
        result = None if unsupported(combination[-1]) else run(combination, tests)
        row = {"settings": combination, "commit": commit, "machine": machine, "tests": tests}
        done[combination] = row | {"result": result}
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(done[combination]) + "\n")
    print(f"\n{machine}, commit {commit}\n\n{table([done[one] for one in COMBINATIONS])}")
    failures = sorted(
        {name for r in done.values() if r["result"] for name in r["result"]["failed"]}
    )
    if failures:
        print("\nFailed in at least one combination:\n" + "\n".join(failures))
        sys.exit(1)


if __name__ == "__main__":
    main()
