"""Figures and statements of the pages, held against what they come from."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.serving.http.limits import LimitSettings
from dragoman.tasks import program

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
EXPERIMENTS = ROOT / "docs" / "experiments"
RECORDS = {"results.md", "experiments.md", "decisions.md"}
"""Pages that say what was measured once."""


def page(name: str) -> str:
    """Its text, each run of spaces and line ends as one space."""
    folder = ROOT if name.isupper() or name in ("README.md", "SECURITY.md") else ROOT / "docs"
    return " ".join((folder / name).read_text(encoding="utf-8").split())


def pages() -> dict[str, str]:
    paths = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/ko").glob("*.md")]
    return {
        path.relative_to(ROOT).as_posix(): " ".join(path.read_text(encoding="utf-8").split())
        for path in paths
        if path.name not in RECORDS
    }


def rows(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((RESULTS / f"{name}.json").read_text())["rows"]
    return found


def translating(measure: str, system: str, *files: str) -> Iterator[float]:
    """How many times as fast dragoman is, with random weights."""
    for file in files:
        for row in rows(file):
            is_it = (row["system"], row["measure"]) == (system, measure)
            if is_it and row["kind"] != "shipped" and "multi30k" not in row["work"]:
                yield row["ours_is_faster_by"]


def span(values: Iterator[float], digits: int = 1) -> str:
    found = sorted(values)
    return f"{found[0]:.{digits}f} to {found[-1]:.{digits}f}"


FILES = ("translate", "translate-avx2", "translate-avxvnni", "translate-amx")


def test_speeds_of_translating_are_those_of_the_benchmark() -> None:
    all_of_them = span(translating("speed", "ctranslate2", *FILES))
    assert f"translates {all_of_them} times as many sentences" in page("README.md")
    machines = page("machines.md")
    of = {name: span(translating("speed", "ctranslate2", name)) for name in FILES}
    assert f"{of['translate']} times as fast on AMD with AVX-512" in machines
    with_avx2 = span(translating("speed", "ctranslate2", "translate-avx2", "translate-avxvnni"))
    assert f"{with_avx2} times with AVX2 and AVX-VNNI" in machines
    assert f"{of['translate-amx']} times with AMX" in machines
    one = span(translating("latency-median", "ctranslate2", *FILES))
    assert f"compared with tuned CTranslate2: {one} times as fast" in machines


def test_what_a_compiler_gains_is_what_was_measured() -> None:
    translated = list(translating("speed", "dragoman, no compiler", *FILES))
    translated += [
        row["ours_is_faster_by"]
        for row in rows("translate")
        if row["system"] == "dragoman, no compiler" and row["measure"] == "speed"
    ]
    trained = [
        min(
            row["ours_is_faster_by"]
            for row in rows(name)
            if row["system"] == "dragoman, plain torch" and row["work"] == "train-d256"
        )
        for name in ("train", "train-avx2", "train-amx", "train-intel")
    ]
    text = page("install.md")
    assert f"translation is {span(iter(translated))} times as fast" in text
    assert f"training {min(trained):.2f} to {max(trained):.1f} times" in text


def test_beside_the_speed_stands_the_quality() -> None:
    best = {}
    for row in rows("translate"):
        is_it = row["work"] == "translate-multi30k-d256-beam4" and row["measure"] == "speed"
        if is_it and row["kind"] != "shipped" and row["vocabulary"] == "full":
            best[row["system"]] = max(row["bleu_by_alpha"].values())
    for name in ("README.md", "machines.md", "coming-from.md"):
        text = page(name)
        said = f"CTranslate2 scores {best['ctranslate2']} BLEU and dragoman {best['dragoman']}"
        assert said in text, name


def test_the_speed_of_training_names_the_fastest_other_program() -> None:
    peers = [row for row in rows("train") if row["kind"] != "ours" and row["work"] == "train-d256"]
    fastest = max(peers, key=lambda row: row["median"])
    assert fastest["system"] == "hugging-face-marian"
    results = page("results.md")
    assert f"| {fastest['ours_is_faster_by']} times as many tokens per second" in results
    assert f"{fastest['median']:,}" in results


def test_tasks_that_compare_refuses_are_named() -> None:
    assert set(program.NOT_COMPARED) == {"detection", "codes", "painting"}
    assert "compare detectors, painters and their codes" in page("tasks.md")


def test_every_task_has_a_view_that_the_page_of_tasks_does_not_deny() -> None:
    served = {kind.task for kind in program.serving_tasks().runs}
    assert set(program.TRAINED_AS) - served == {"codes"}
    assert "only `codes` has none of them" in page("tasks.md")
    assert len(program.TRAINED_AS) == 9


def test_the_limits_of_the_server_are_those_of_its_settings() -> None:
    limits, text = LimitSettings(), page("SECURITY.md")
    for said in (
        f"one request | {limits.characters:,} |",
        f"of one document | {limits.body_bytes:,}; {limits.file_bytes:,} |",
        f"cost of one request | {limits.token_steps:,} ",
        f"answer it | {limits.seconds:.0f} |",
        f"same time | {limits.requests_per_minute:,}; {limits.concurrent} |",
        f"one address | {limits.connections:,}; {limits.connections_each} |",
        f"in one request | {limits.pixels:,}; {limits.sound_seconds:.0f} |",
    ):
        assert said in text


def test_layers_are_drawn_in_one_place_as_the_test_of_imports_has_them() -> None:
    levels = runpy.run_path(str(ROOT / "tests" / "test_imports.py"))["LEVEL_OF"]
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (drawn,) = re.findall(r"^```\n(cli → .*?)^```", text, re.MULTILINE | re.DOTALL)
    names = [re.split(r",\s*", part.strip()) for part in drawn.split("→")]
    heights = [levels[name.strip()] for part in names for name in part]
    assert heights == sorted(heights, reverse=True)
    folders = {path.stem for path in (ROOT / "src" / "dragoman").glob("[a-z]*") if path.is_dir()}
    folders &= set(levels)
    assert folders <= {name.strip() for part in names for name in part}
    assert "cli →" not in page("how-it-is-built.md")


def test_every_signature_of_the_reference_is_whole() -> None:
    text = runpy.run_path(str(ROOT / "docs" / "api.py"))["api_page"]()
    signatures = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(signatures) > 20
    for signature in signatures:
        assert signature.count("(") == signature.count(")"), signature
        assert signature.count("[") == signature.count("]"), signature


def test_every_result_of_a_machine_says_which() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for section in text.split("\n## ")[2:]:
        title = section.partition("\n")[0]
        is_timed = re.search(r"\d (?:s|ms|MB|seconds|minutes)\b|\bseeds\b", section)
        assert not is_timed or re.search(r"Zen [45]|Xeon|EPYC|Intel", section), title


def test_each_old_office_format_has_its_own_conversion() -> None:
    (row,) = re.findall(r"^\|.*`\.xls`.*`\.ppt`.*$", (ROOT / "docs/documents.md").read_text(), re.M)
    assert all(kind in row for kind in ("docx", "xlsx", "pptx"))


def test_what_one_can_expect_is_on_record() -> None:
    """Every score of the page that says what to expect stands in a record."""
    tried = (page.read_text(encoding="utf-8") for page in EXPERIMENTS.glob("*.md"))
    record = " ".join([page("results.md"), *tried])
    text = (ROOT / "docs" / "expect.md").read_text(encoding="utf-8")
    captions = text.partition("## Captions")[2].partition("## Documentation")[0]
    scores = re.findall(r"\| (\d\d\.\d) \|", captions)
    assert len(scores) >= 6
    for score in [*scores, "48.4", "98.3", "27.0", "6.6", "3.9"]:
        assert score in text and re.search(rf"(?<![\d.]){re.escape(score)}", record), score
    (outputs, right, left_out) = re.findall(r"the (575) .*?\| (\d+) \| (\d+) \|", captions)[0]
    for count in (outputs, right, left_out):
        assert count in record


NOT_TRUE = {
    r"have no view": "every task but codes has one",
    r"not measured yet": "results.md has BLEU of a translator of pictures",
    r"[Ss]peed was measured only on CPUs": "training was measured on a GPU",
    r"does not build the web page": "pip builds it, unless editable",
    r"<this repository>": "ADDRESS, as elsewhere",
    r"pip install 'dragoman\[": "it is on no package index",
    r"Formerly|formerly": "nothing was released before",
    r"들여다보기\*\*, \*\*학습 기록\*\*, \*\*그림\*\*은 언제나": "Look is of runs of text",
    r"58 MB": "57.6 MB were measured",
    r"`look` works for every task|`compare`, `look`": "see tasks.md and look.md",
    r"has all figures": "the benchmarks have them",
    r"four or five sentences in a hundred": "it was counted on ten pages, before others existed",
}
"""What pages said and was not so, each with the reason."""


@pytest.mark.parametrize("pattern", NOT_TRUE)
def test_what_was_not_true_does_not_come_back(pattern: str) -> None:
    found = [name for name, text in pages().items() if re.search(pattern, text)]
    assert not found, NOT_TRUE[pattern]


def test_the_demo_has_its_machine_wherever_its_minutes_are_told() -> None:
    for name in ("README.md", "first-translator.md"):
        text = page(name)
        assert re.search(r"two minutes on two cores with AVX-512", text), name
        assert "AMD EPYC, Zen 5, November 2026" in text, name
