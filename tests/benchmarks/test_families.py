"""The table of processor families holds what the files of results do, and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from families import FAMILIES, families


def test_the_fastest_other_program_counts(tmp_path: Path) -> None:
    def row(work: str, system: str, kind: str, measure: str | None, by: float) -> dict[str, object]:
        return {"work": work, "system": system, "kind": kind, "measure": measure,
                "ours_is_faster_by": by}  # fmt: skip

    training, translating = FAMILIES["Intel, AMX"]
    loops = [row("train-d256", f"loop {by}", "tuned", None, by) for by in (5.0, 2.5)]
    ours = row("train-d512", "dragoman", "ours", None, 1.0)
    (tmp_path / f"{training}.json").write_text(json.dumps({"rows": [*loops, ours]}))
    work = "translate-d256-beam4"
    rows = [
        row(work, "ctranslate2", "tuned", "speed", 3.25),
        row(work, "ctranslate2", "tuned", "latency-median", 1.75),
        row(work, "ctranslate2", "shipped", "speed", 1.1),
        row(work, "dragoman", "ours", "speed", 1.0),
    ]
    (tmp_path / f"{translating}.json").write_text(json.dumps({"rows": rows}))
    head, _, *lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in families(tmp_path).splitlines()
    ]
    found = {line[0]: dict(zip(head[1:], line[1:], strict=True)) for line in lines}
    told = {name: value for name, value in found["Intel, AMX"].items() if value}
    assert told == {"training, d256": "2.50", "d256, beam4": "3.25", "d256, beam4, one": "1.75"}
    assert not any(found["AVX-VNNI"].values())
