"""The Korean of the page, held to the glossary and the style of docs/korean.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from korean_sentences import is_in_korean, names_in_korean, patterns_in_korean

ROOT = Path(__file__).parents[2]
HANGUL = re.compile("[가-힣]")
GLOSSARY = (ROOT / "docs" / "korean.md").read_text(encoding="utf-8")


def sources() -> list[Path]:
    """Everything that speaks Korean to people; the segmentation of Korean text does not."""
    places = ("web/src/**/*.ts", "web/src/**/*.svelte", "src/dragoman/**/*.py", "docs/ko/*.md")
    found = [path for place in places for path in ROOT.glob(place)]
    found.append(ROOT / "src/dragoman/insight/figures/captions.toml")
    return [path for path in found if path.name != "segmentation.py"]


def korean() -> list[tuple[str, str]]:
    """Place and line of all Korean."""
    return [
        (f"{path.relative_to(ROOT)}:{number}", line)
        for path in sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if HANGUL.search(line)
    ]


def glossary() -> list[tuple[list[str], list[str]]]:
    """Terms that are used, and terms that are not."""
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| ([^|]*) ?\|$", GLOSSARY, re.MULTILINE)
    return [
        (re.split(r"[,;] ", used.strip()), [one for one in unused.strip().split(", ") if one])
        for used, unused in rows
        if used.strip() not in ("한국어", "---")
    ]


def test_one_term_for_one_thing() -> None:
    unused = [term for _, terms in glossary() for term in terms]
    assert len(unused) > 20
    wrong = [
        f"{place}: {term}: {line.strip()}"
        for place, line in korean()
        for term in unused
        if term in line
    ]
    assert not wrong, "\n".join(wrong)


def test_the_terms_are_in_use() -> None:
    """A glossary of words that nobody reads would hold nothing."""
    text = " ".join(line for _, line in korean())
    for used, _ in glossary():
        assert any(re.sub(r"\(RMS\)", "", term) in text for term in used), used


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("합니다체", r"(?<!니)다\."),
        ("two particles in one", r"[이가을를은는와과로]\([이가을를은는와과로]\)|\([으이]\)"),
        (
            "a particle that depends on what is put in",
            r"\}”(?:이|가|을|를|은|는|과|와|로|으로)(?![가-힣])|\}(?:이|을|은|과|로|으로)(?![가-힣])",
        ),
    ],
    ids=["sentences", "two", "particles"],
)
def test_one_style(what: str, pattern: str) -> None:
    wrong = [f"{place}: {line.strip()}" for place, line in korean() if re.search(pattern, line)]
    assert not wrong, f"{what}:\n" + "\n".join(wrong)


def said_of_runs() -> list[str]:
    """What a server says of runs in English: facts, limits, names of curves, filters, tables."""
    from dragoman.data.cleaning import CleaningSettings
    from dragoman.data.split import Overlap
    from dragoman.demo.corpus import NOTICE
    from dragoman.forms.form import Pair
    from dragoman.pictures.curves import charts_of
    from dragoman.sources.frames.form import FramesSource
    from dragoman.sources.line import LineSource
    from dragoman.sources.picture.form import PictureSource
    from dragoman.tasks.catalogue import TASKS

    read = FramesSource(), LineSource(), PictureSource()
    tasks = [*TASKS.values()]
    tasks += [TASKS[task].of(one) for task in ("translation", "classification") for one in read]
    records: list[dict[str, object]] = [
        {"kind": "update", "update": 1, "nll": 1.0, "learning_rate": 1.0, "gradient_norm": 1.0,
         "tokens_per_second": 1.0},
    ]  # fmt: skip
    charts = []
    for task in tasks:
        scores = dict.fromkeys([*task.metrics, "nll"], 1.0)
        validations: list[dict[str, object]] = [
            {"kind": "validation", "update": 1, "weights": weights, "scores": scores, "best": True}
            for weights in ("current", "ema", "average")
        ]
        charts += charts_of([*records, *validations], task)
    drawn = {
        text
        for chart in charts
        for text in (chart.title, chart.x_label, chart.y_label, chart.marked_as)
    } | {series.name for chart in charts for series in chart.series}
    limits = {text for task in tasks for text in task.limits}
    scored = {
        measure.called
        for task in tasks
        for measure in (*task.metrics.values(), *task.finished.values())
    }
    filters = {name.removeprefix("max_") for name in CleaningSettings.model_fields}
    counted = {task.counted for task in tasks}
    facts = {f"{one} seen" for one in counted} | {f"1.5 minutes, 1,000 {one}/s" for one in counted}
    facts |= {f"48 numbers a {one.noun_of_row}; 10 labels" for one in read}
    facts |= {f"48 numbers a {one.noun_of_row}; 1,000 target bpe tokens" for one in read}
    nouns = {task.noun for task in tasks}
    tables = nouns | {noun.capitalize() for noun in nouns}
    tables |= {f"1,000 {noun} read, 1 kept" for noun in nouns}
    tables |= {f"the held-out test set, 1,000 {noun.replace('pair', 'sentence')}" for noun in nouns}
    overlap = Overlap(1000, 3, 2, 1, 0, (Pair(7, "a", "b"),))
    told = [overlap.summary(part) for part in ("dev", "test")]
    return [
        text
        for text in (NOTICE, *limits, *scored, *drawn, *filters, *facts, *tables, *told)
        if text
    ]


def test_what_a_server_says_of_runs_has_korean() -> None:
    """In ``web/src/run``, word for word, or by a pattern of it."""
    said = said_of_runs()
    assert len(said) > 20 and len(names_in_korean()) > 40 and len(patterns_in_korean()) > 5
    score = r"(BLEU|chrF(\+\+)?|TER|WER|CER|F1|RMSE|AP|AP50)(, %)?"
    assert not [one for one in said if not is_in_korean(one) and not re.fullmatch(score, one)]
