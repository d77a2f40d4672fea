"""Text of any script is trained on with nothing else said, however short the time."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_of_files import recipe_of
from scripts import ENGLISH, SCRIPTS, numbers, tree, written

from dragoman.forms.subwords.text import TextSettings
from dragoman.runs.corpora import learn_vocabularies
from dragoman.sizing import budget
from dragoman.sizing.size import Size
from dragoman.tasks.catalogue import TASKS, Run
from dragoman.tasks.training import train

pytestmark = pytest.mark.system

SENTENCES = 1_200
WRITTEN = [task for task in TASKS if TASKS[task].texts and task != "painting"]
"""The tasks that learn from text alone: a painter learns from pictures, too."""
COLUMNS = {"classification": "label,text"}


def files_of(task: str, name: str, folder: Path, sentences: int = SENTENCES) -> list[str]:
    """The files that a person with text in this script would name."""
    script, drawn = SCRIPTS[name], numbers(sentences)
    lines = [written(script, sentence) for sentence in drawn]
    named = {f"my.{script.code}": lines}
    if task == "translation":
        named["my.en"] = [written(ENGLISH, sentence) for sentence in drawn]
    elif task == "classification":
        labels = ("odd" if sentence[0] % 2 else "even" for sentence in drawn)
        named = {"my.tsv": [f"{label}\t{line}" for label, line in zip(labels, lines, strict=True)]}
    elif task == "tagging":
        named = {"my.txt": [" ".join(f"{w}_{len(w)}" for w in line.split()) for line in lines]}
    elif task == "parsing":
        named = {"my.mrg": [tree(script, sentence) for sentence in drawn]}
    for file, content in named.items():
        (folder / file).write_text("\n".join(content) + "\n", encoding="utf-8")
    return [str(folder / file) for file in named]


SMALL = {
    "translation": ("model.model_dim=32", "model.encoder_layers=1", "model.decoder_layers=1"),
    "parsing": ("model.model_dim=32",),
}
"""What makes a training of some updates fast, and leaves the vocabulary as it was chosen."""


def begun(
    task: str, files: list[str], minutes: float | None, run: Path, *changes: str
) -> tuple[TextSettings, list[str]]:
    """From files to the end of a training of some updates -> how its text is cut, and what a person
    read."""
    said: list[str] = []
    brief = ("training.updates=2", "training.validate_every=0", *changes)
    recipe, _ = recipe_of(files, task=task, minutes=minutes, say=said.append, changes=brief)
    train(recipe, run, say=said.append, display=False, measure=False)
    forms = Run.open(run).forms
    for side in TASKS[task].texts:
        text = getattr(forms, side).vocabulary
        assert text.size == recipe.text.vocabulary or recipe.text.kind == "char"
    return recipe.text, said


@pytest.fixture
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that teaches only the smallest model in some minutes; nothing is timed."""

    def speed(_: object, __: str, ___: Size) -> float:
        return 100.0

    monkeypatch.setattr(budget, "tokens_per_second", speed)


FEW = {"Korean", "Chinese", "Thai", "emoji"}
"""Scripts whose words or letters are unlike those of most."""
TRIED = {name: WRITTEN if name in ("Korean", "emoji") else ["translation"] for name in FEW}
"""What each of them is tried with; others do as these, and tasks cut text alike."""


@pytest.mark.usefixtures("slow_machine")
@pytest.mark.parametrize(
    ("name", "task"),
    [
        pytest.param(name, task, marks=() if task in TRIED.get(name, ()) else pytest.mark.slow)
        for name in SCRIPTS
        for task in WRITTEN
        if task == "translation" or name in FEW
    ],
)
def test_a_minute_on_a_slow_machine(name: str, task: str, tmp_path: Path) -> None:
    files = files_of(task, name, tmp_path)
    _, said = begun(task, files, 1, tmp_path / "run", *SMALL.get(task, ()))
    told = [line for line in said if "different characters" in line]
    if task == "translation":
        assert bool(told) == (name in ("Korean", "Japanese", "Chinese")), "said where it matters"
        assert all("written as bytes" in line for line in told)


@pytest.mark.parametrize("task", WRITTEN)
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_vocabulary_of_few_sentences(name: str, task: str, tmp_path: Path) -> None:
    for sentences in (40,) if task in ("classification", "tagging") else (1, 4, 40):
        files = files_of(task, name, tmp_path, sentences)
        recipe, _ = recipe_of(files, task=task, say=lambda _: None, columns=COLUMNS.get(task))
        learn_vocabularies(recipe, tmp_path, lambda _: None)


def test_what_is_said_of_the_vocabulary_stays(tmp_path: Path) -> None:
    files, said = files_of("translation", "Chinese", tmp_path), []
    for change, size in (("text.vocabulary=2500", 2_500), ("text.character_coverage=1.0", 0)):
        recipe, _ = recipe_of(files, changes=(change,), say=said.append)
        assert size in (0, recipe.text.vocabulary)
    assert recipe.text.character_coverage == 1.0
    assert recipe.text.vocabulary > 3_000, "all characters fit in"
    assert len(said) == 1 and "each gets a token" in said[0]
    assert said[0].endswith(f"the vocabulary has {recipe.text.vocabulary:,} tokens, not 2,000")
    learn_vocabularies(recipe, tmp_path, lambda _: None)


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [1, 3, 10])
@pytest.mark.parametrize("task", WRITTEN)
@pytest.mark.parametrize("name", SCRIPTS)
def test_minutes_on_this_machine(name: str, task: str, minutes: float, tmp_path: Path) -> None:
    begun(task, files_of(task, name, tmp_path), minutes, tmp_path / "run")
