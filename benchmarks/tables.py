"""Write the tables of README.md from results/*.json, so that no figure is copied by hand.

    python benchmarks/tables.py

Each table stands between a line ``<!-- name -->`` and a line ``<!-- end -->``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from cost import table as cost_table

HERE = Path(__file__).resolve().parent
Row = dict[str, Any]


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


def number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def by_work(rows: Iterable[Row]) -> dict[str, list[Row]]:
    works: dict[str, list[Row]] = {}
    for row in rows:
        works.setdefault(row["work"], []).append(row)
    return works


def train(results: Row) -> str:
    parts = []
    for work, rows in by_work(results["rows"]).items():
        header = ["", "kind", "precision", "target tokens/s", "ours is faster by", "memory, MB",
                  "loss held out", "share of the bf16 rate"]  # fmt: skip
        cells = [
            (
                row["system"], row["kind"], row["precision"], number(row["median"]),
                f"{row['first_is_faster_by']:.2f}", number(row["memory_mb"]),
                number(row["held_out_nll"], 3),
                f"{100 * row['share_of_bf16_matrix_rate']:.0f} %",
            )
            for row in rows
        ]  # fmt: skip
        parts.append(f"`{work}`\n\n{markdown(header, cells)}")
    return "\n\n".join(parts)


def translate(results: Row) -> str:
    def key(row: Row) -> tuple[str, str, str]:
        return row["system"], row["kind"], row["vocabulary"]

    parts = []
    for work, rows in by_work(results["rows"]).items():
        latency = {(key(r), r["measure"]): r["median"] for r in rows if r["measure"] != "speed"}
        speeds = [row for row in rows if row["measure"] == "speed"]
        header = ["", "kind", "vocabulary", "precision", "sentences/s", "ours is faster by", "BLEU",
                  "same as ours", "memory, MB", "one sentence, ms: median", "95th"]  # fmt: skip
        cells = [
            (
                *key(row), row["precision"], number(row["median"], 0 if row["median"] > 99 else 1),
                f"{row['ours_is_faster_by']:.2f}", number(row["bleu"], 2),
                _same(row), number(row["memory_mb"]),
                number(latency.get((key(row), "latency-median")), 2),
                number(latency.get((key(row), "latency-p95")), 2),
            )
            for row in speeds
        ]  # fmt: skip
        parts.append(f"`{work}` ({speeds[0]['weights']} weights)\n\n{markdown(header, cells)}")
    return "\n\n".join(parts)


def _same(row: Row) -> str:
    """Shortlists of random tokens say nothing about outputs."""
    is_random = row["weights"] == "random" and row["vocabulary"] == "shortlist"
    return "" if is_random else f"{100 * row['identical_to_ours']:.1f} %"


def serve(results: Row) -> str:
    loads = [("arrays", results["arrays"]), ("single sentences", results["single"]),
             ("single sentences", results["single_eight_clients"])]  # fmt: skip
    header = ["", "clients", "seconds", "requests", "errors", "sentences/s", "p50, ms", "p95, ms",
              "processor seconds: clients", "server"]  # fmt: skip
    cells = [
        (
            f"{name} of {load['sentences_each']}" if name == "arrays" else name, load["clients"],
            number(load["seconds"]), number(load["requests"]), load["errors"],
            number(load["sentences_per_second"]), number(load["p50_ms"], 1),
            number(load["p95_ms"], 1), number(load["client_cpu_seconds"], 1),
            number(load["server_cpu_seconds"], 1),
        )
        for name, load in loads
    ]  # fmt: skip
    before, after = results["offline_sentences_per_second"]
    memory = results["memory_mib"]
    first, last = memory["over_time"][0], memory["over_time"][-1]
    share = results["arrays_share_of_offline"]
    of_free = results["arrays_share_of_offline_on_free_cores"]
    return markdown(header, cells) + (
        f"\n\nOffline, the same sentences: {before:,.0f} sentences/s before, {after:,.0f} after. "
        f"The arrays had {100 * share:.1f} % of that, {100 * of_free:.1f} % of what the clients "
        f"left free. Memory {first:.0f} MiB at first, {last:.0f} at last, {memory['most']:.0f} at "
        "most."
    )


def minutes(results: Row) -> str:
    parts = []
    for name, points in results.items():
        if isinstance(points, list):
            cells = [
                (number(p["minutes"], 1), number(p["updates"]), f"{p['bleu']:.1f}") for p in points
            ]
            parts.append(f"{name}\n\n{markdown(('minutes', 'updates', 'BLEU'), cells)}")
    return "\n\n".join(parts)


TABLES: dict[str, Callable[[Row], str]] = {
    "train": train,
    "minutes": minutes,
    "translate": translate,
    "serve": serve,
    "cost": cost_table,
}


def main() -> None:
    readme = HERE / "README.md"
    text = readme.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        path = HERE / "results" / f"{name}.json"
        if not path.exists():
            continue
        results = json.loads(path.read_text(encoding="utf-8"))
        body = table(results)
        if name in ("train", "minutes", "translate"):
            body = f"Measured on: {results['machine']}.\n\n{body}"
        begin, end = f"<!-- {name} -->", "<!-- end -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"README.md has no {begin} … {end}")
        text = pattern.sub(lambda _: f"{begin}\n\n{body.strip()}\n\n{end}", text)  # noqa: B023
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
