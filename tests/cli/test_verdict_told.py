"""Whoever uses a run that has hardly learned is told so, in one line, whatever the verb."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Dragoman
from every_task import run_of_every_task

SAID = "This run has hardly learned it."
TEXTS = {"fill": "the ___ sees .", "parse": "the dog sees .", "paint": "a red block"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return run_of_every_task(tmp_path_factory.mktemp("told"))


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        ("translate", "translation-text"), ("write", "language-model-text"),
        ("fill", "masked-text"), ("classify", "classification-text"), ("parse", "parsing-text"),
        ("tag", "tagging-text"), ("paint", "painting-text"), ("detect", "detection-picture"),
        ("transcribe", "translation-frames"),
    ],
)  # fmt: skip
def test_it_is_told_in_one_line(
    dragoman: Dragoman, folders: dict[str, Path], tmp_path: Path, verb: str, name: str
) -> None:
    run = folders[name]
    note = run / "verdict.json"
    given = [TEXTS.get(verb, "dog cat bread")]
    if name.endswith("frames"):
        given = [str(next(run.parent.rglob("*.wav")))]
    elif name.endswith("picture"):
        given = [str(next(run.parent.rglob("*.png")))]
    to = ["--to", str(tmp_path / "out.png")] if verb == "paint" else []
    for said in ([], [SAID]):
        note.write_text(json.dumps({"said": said}), encoding="utf-8")
        told = dragoman(verb, run, *given, *to)
        assert told.code == 0, told.err
        assert told.err.splitlines().count(f"{run}: {SAID}") == len(said)
        assert SAID not in told.out


def test_a_document_too(dragoman: Dragoman, folders: dict[str, Path], tmp_path: Path) -> None:
    run, page = folders["translation-text"], tmp_path / "page.html"
    page.write_text("<p>The dog sleeps.</p>", encoding="utf-8")
    (run / "verdict.json").write_text(json.dumps({"said": [SAID]}), encoding="utf-8")
    told = dragoman("translate", run, page, "--to", tmp_path / "to.html")
    assert told.code == 0 and told.err.count(SAID) == 1
    quiet = dragoman("translate", run, page, "--to", tmp_path / "two.html", "--quiet")
    assert quiet.code == 0 and SAID not in quiet.err
