"""Draws images/speed.svg from the benchmark's results: python docs/speed.py

Sentences a second of each program over the same trained weights, greedy search. A test compares the
picture with ``benchmarks/results/translate.json``. Ratios are those of turns, which the load of a
shared machine changes less than rates.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoman.pictures.labels import escape
from dragoman.pictures.theme import svg

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "translate.json"
PICTURE = ROOT / "docs" / "images" / "speed.svg"
WORK = "translate-multi30k-d256-greedy"
_SYSTEMS = {
    ("dragoman", "ours"): "dragoman",
    ("ctranslate2", "tuned"): "CTranslate2, tuned",
    ("ctranslate2", "shipped"): "CTranslate2, as shipped",
    ("hugging-face", "tuned"): "Hugging Face, tuned",
    ("hugging-face", "shipped"): "Hugging Face, as shipped",
}
_CONDITIONS = (
    "The same weights in every program (3+3 layers, width 256, Multi30k); "
    "two cores of an AMD EPYC with AVX-512"
)
_LEFT, _RIGHT, _TOP, _STEP, _BAR, _WIDTH = 196.0, 64.0, 66.0, 30.0, 18.0, 680.0


def bars() -> list[tuple[str, float, float]]:
    """Name, sentences a second, and dragoman's ratio to it in turns, of each program."""
    found = {(row["system"], row["kind"]): row for row in rows()}
    shown = [(name, found[which]) for which, name in _SYSTEMS.items()]
    return [(name, row["median"], row.get("ours_is_faster_by") or 1.0) for name, row in shown]


def rows() -> list[dict[str, Any]]:
    """Those of the benchmark that the picture shows."""
    return [
        row
        for row in json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
        if row.get("work") == WORK and row.get("measure") == "speed" and row["vocabulary"] == "full"
    ]


def speed_svg() -> str:
    """The picture."""
    values = bars()
    most = max(value for _, value, _ in values)
    machine, date = rows()[0]["machine"], rows()[0]["date"]
    version = {row["system"]: row["version"] for row in rows()}
    drawn = [
        '<text x="12" y="26" font-weight="600">Sentences translated per second</text>',
        f'<text class="muted small" x="12" y="46">{_CONDITIONS}</text>',
    ]
    for place, (name, value, ratio) in enumerate(values):
        top = _TOP + place * _STEP
        long = value / most * (_WIDTH - _LEFT - _RIGHT)
        middle = top + _BAR / 2 + 4.5
        said = f"{value:,.0f}" if place == 0 else f"{value:,.0f} (dragoman × {ratio:.2f} in turns)"
        size = f'width="{long:.1f}" height="{_BAR:.0f}" rx="2"'
        drawn += [
            f'<text x="{_LEFT - 10:.0f}" y="{middle:.1f}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="f{int(place == 0)}" x="{_LEFT:.0f}" y="{top:.0f}" {size}/>',
            f'<text x="{_LEFT + long + 8:.1f}" y="{middle:.1f}">{said}</text>',
        ]
    height = _TOP + len(values) * _STEP + 22
    assert {row["unit"] for row in rows()} == {"sentences/s"}
    assert all(part in machine for part in ("EPYC", "AVX512", "2 cores")), machine
    drawn.append(
        f'<text class="muted small" x="12" y="{height - 12:.0f}">Measured {date}, greedy search '
        f"(default: beam 4), CTranslate2 {version['ctranslate2']}, transformers "
        f"{version['hugging-face']}</text>"
    )
    told = "; ".join(f"{name} {value:,.0f}" for name, value, _ in values)
    title = f"Sentences translated a second: {told}"
    return svg("".join(drawn), _WIDTH, height, escape(title), alone=True)


if __name__ == "__main__":
    PICTURE.write_text(speed_svg(), encoding="utf-8")
