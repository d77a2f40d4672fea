"""One table of what was measured of each family of processors: ours over the fastest other program.

The rows come from the files of results, one file for each family and kind of work; what a file does
not hold stays empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]

FAMILIES = {
    "AMD, AVX-512 with bf16": ("train", "translate"),
    "AVX2 alone": ("train-avx2", "translate-avx2"),
    "AVX-VNNI": (None, "translate-avxvnni"),
    "Intel, AMX": ("train-amx", "translate-amx"),
    "Intel, AVX-512 with bf16, without AMX": ("train-intel", None),
}
"""The files of each: of training and of translating."""

WORKS = ("d256-greedy", "d256-beam4", "d512-greedy", "d512-beam4")


def families(folder: Path) -> str:
    """The table, in Markdown."""
    heads = ["", *(f"training, {n}" for n in ("d256", "d512"))]
    heads += [f"{work.replace('-', ', ')}{more}" for work in WORKS for more in ("", ", one")]
    lines = [heads, ["---"] * len(heads)]
    for name, (training, translating) in FAMILIES.items():
        lines.append([name, *_trained(folder, training), *_translated(folder, translating)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _trained(folder: Path, file: str | None) -> Iterator[str]:
    rows = _rows(folder, file)
    for size in ("d256", "d512"):
        peers = [row for row in rows if row["work"] == f"train-{size}" and row["kind"] != "ours"]
        yield _least(peers)


def _translated(folder: Path, file: str | None) -> Iterator[str]:
    rows = _rows(folder, file)
    for work in WORKS:
        peers = [
            row
            for row in rows
            if row["work"] == f"translate-{work}"
            and (row["kind"], row["system"]) == ("tuned", "ctranslate2")
        ]
        yield _least([row for row in peers if row["measure"] == "speed"])
        yield _least([row for row in peers if row["measure"] == "latency-median"])


def _least(peers: list[Row]) -> str:
    return f"{min(row['ours_is_faster_by'] for row in peers):.2f}" if peers else ""


def _rows(folder: Path, file: str | None) -> list[Row]:
    if file is None or not (path := folder / f"{file}.json").exists():
        return []
    found: list[Row] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return found
