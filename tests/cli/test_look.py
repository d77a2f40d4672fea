"""``dragoman look`` and ``dragoman figure`` as a user calls them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import Dragoman
from needs_png import needs_png
from untrained_run import untrained_run

from dragoman.engine import engine
from dragoman.insight.figures.captions import captions
from dragoman.insight.subject import Subject
from dragoman.models.catalogue.fastest import as_it_is
from dragoman.tasks.catalogue import Run

SENTENCE = "The small man eats the dinosaur."


def test_look_shows_one_attention_and_writes_all(
    dragoman: Dragoman, tiny_run: Path, tmp_path: Path
) -> None:
    page = tmp_path / "pages" / "look.html"
    said = dragoman("look", tiny_run, SENTENCE, "--to", page)
    assert said.code == 0, said.err
    assert "cross-attention, layer 2, mean of the heads" in said.out
    assert "dinosaur." in said.out
    assert str(page.name) in said.out.replace("\n", "")
    assert "https://" not in page.read_text(encoding="utf-8")
    assert "attention-records" in page.read_text(encoding="utf-8")
    rows = tmp_path / "look.csv"
    assert dragoman("look", tiny_run, SENTENCE, "--to", rows, "--pieces").code == 0
    with rows.open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert {row["attention"] for row in read} == {"encoder", "decoder", "cross"}
    one = [
        r
        for r in read
        if (r["attention"], r["layer"], r["head"], r["row"]) == ("cross", "1", "1", "0")
    ]
    assert sum(float(row["weight"]) for row in one) == pytest.approx(1, abs=1e-5)


def test_the_verbs_have_one_translation(
    dragoman: Dragoman, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the fast path, here of a model that rounds a lot, which the plain model reads."""
    rounded = Run.open(tiny_run).model()
    torch.manual_seed(5)
    for weights in rounded.parameters():
        weights.data += 0.3 * weights.std(correction=0) * torch.randn_like(weights)
    chosen = engine.without_torch

    def path(*arguments: Any) -> Any:
        return as_it_is(rounded) if arguments[3] == "auto" else chosen(*arguments)

    monkeypatch.setattr(engine, "without_torch", path)
    translated = dragoman("translate", tiny_run, SENTENCE).out.strip()
    plain = dragoman("translate", tiny_run, SENTENCE, "--precision", "fp32").out.strip()
    assert translated != plain
    said = dragoman("look", tiny_run, SENTENCE, "--hide", "man")
    assert said.code == 0, said.err
    out = " ".join(said.out.split())
    assert out.startswith(translated)
    assert f"Alone, the plain model writes: {plain}" in out
    said = dragoman("look", tiny_run, SENTENCE, "--target", translated)
    assert "Alone" not in said.out, "what is given is looked at, whoever would write it"
    subject = Subject.open(Run.open(tiny_run), SENTENCE)
    assert subject.output.text == translated
    assert subject.plain.own_output(SENTENCE).text == plain


@pytest.mark.parametrize("kind", ["recurrent", "convolutional"])
def test_look_into_a_model_that_attends_to_its_source_alone(
    dragoman: Dragoman, tmp_path: Path, kind: str
) -> None:
    run = untrained_run(tmp_path, "search.max_length=8", recipe_name=f"demo-{kind}")
    said = dragoman("look", run, SENTENCE)
    assert said.code == 0, said.err
    assert "cross-attention, layer" in said.out
    assert "encoder" not in said.out, "no head is offered that is not there"
    page, rows = tmp_path / "look.html", tmp_path / "look.csv"
    for path in (page, rows):
        assert dragoman("look", run, SENTENCE, "--to", path).code == 0
    assert {line.split(",")[0] for line in rows.read_text("utf-8").splitlines()[1:]} == {"cross"}
    refused = dragoman("look", run, SENTENCE, "--kind", "encoder")
    assert refused.code == 1
    assert "no such attention. Use one of cross" in refused.err


def test_what_if_from_the_command_line(dragoman: Dragoman, tiny_run: Path, tmp_path: Path) -> None:
    page = tmp_path / "look.html"
    said = dragoman(
        "look", tiny_run, SENTENCE, "--hide", "man", "--hide", "2", "--head-off", "cross.1.2",
        "--prefix", "Das", "--kind", "encoder", "--layer", "1", "--head", "3", "--to", page,
    )  # fmt: skip
    assert said.code == 0, said.err
    out = " ".join(said.out.split())
    assert "hidden: “man”, “small”" in out
    assert "heads off: cross.1.2" in out
    assert "encoder, layer 1, head 3, under the change" in out
    assert "under the change" in out
    assert "What if" in page.read_text(encoding="utf-8")


def test_alignment_against_links(dragoman: Dragoman, tiny_run: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    gold.write_text("0-0 1-1\n", encoding="utf-8")
    said = dragoman("look", tiny_run, SENTENCE, "--target", "Der kleine Mann", "--gold", gold)
    assert said.code == 0, said.err
    assert "AER" in said.out and "an oracle" in said.out
    gold.write_text("1-1 6-3\n", encoding="utf-8")
    said = dragoman("look", tiny_run, SENTENCE, "--target", "Der kleine Mann", "--gold", gold)
    assert said.code == 1 and "6 and 3 words" in said.err
    one = dragoman(
        "look", tiny_run, SENTENCE, "--target", "Der kleine Mann", "--gold", gold, "--gold-base", 1
    )
    assert one.code == 0 and "AER" in one.out, one.err
    gold.write_text("0-0\n1-1\n", encoding="utf-8")
    said = dragoman("look", tiny_run, SENTENCE, "--gold", gold)
    assert said.code == 1
    assert "2 lines" in said.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((SENTENCE, "--hide", "cat"), "3 man"),
        ((SENTENCE, "--head-off", "cross.9.1"), "2 layers"),
        ((SENTENCE, "--kind", "middle"), "encoder, decoder, cross"),
        ((SENTENCE, "--layer", "7"), "2 layers"),
        ((SENTENCE, "--to", "x.pdf"), ".html"),
        ((SENTENCE, "--importance"), "dragoman evaluate"),
        (("  ",), "empty"),
        (("word " * 2000,), "tokens"),
    ],
)
def test_mistakes_get_one_message(
    dragoman: Dragoman, tiny_run: Path, arguments: tuple[str, ...], told: str
) -> None:
    said = dragoman("look", tiny_run, *arguments)
    assert said.code == 1
    assert said.err.startswith("error: ")
    assert told in said.err


def test_figures_by_name(dragoman: Dragoman, tiny_run: Path, tmp_path: Path) -> None:
    said = dragoman("figure", "--list")
    assert [line.split()[0] for line in said.out.splitlines()] == list(captions())
    path = tmp_path / "new" / "i.svg"
    said = dragoman("figure", "position-identity", "--to", path)
    assert said.code == 0, said.err
    assert "cos(a − b)" in said.out
    assert "§3.5" in said.out
    assert path.read_text(encoding="utf-8").startswith("<svg")
    assert (tmp_path / "new" / "i.csv").is_file()


@needs_png
def test_a_figure_of_a_run_as_png(dragoman: Dragoman, tiny_run: Path, tmp_path: Path) -> None:
    said = dragoman(
        "figure", "mask", "--run", tiny_run, "--sentence", SENTENCE, "--to", tmp_path / "m.png"
    )
    assert said.code == 0, said.err
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    assert str(tiny_run) in said.out.replace("\n", "")


def test_figure_mistakes(dragoman: Dragoman, tiny_run: Path) -> None:
    said = dragoman("figure", "posision-index")
    assert said.code == 1
    assert "position-index" in said.err
    said = dragoman("figure", "mask")
    assert said.code == 1
    assert "runs/demo" in said.err
    assert dragoman("figure").code == 2
    assert dragoman("figure", "scale", "--to", "x.pdf").code == 1
    said = dragoman("figure", "lookup", "--run", tiny_run)
    assert "--sentence" in said.err


def test_an_empty_sentence_is_refused_for_one_figure_and_for_all(
    dragoman: Dragoman, tiny_run: Path, tmp_path: Path
) -> None:
    for what in (("mask",), ("--all", tmp_path / "book")):
        said = dragoman("figure", *what, "--run", tiny_run, "--sentence", " ")
        assert said.code == 1 and "--sentence is empty" in said.err
    assert not (tmp_path / "book").exists()


@pytest.mark.system
def test_all_figures_that_need_no_run(dragoman: Dragoman, tmp_path: Path) -> None:
    said = dragoman("figure", "--all", tmp_path / "book")
    assert said.code == 0, said.err
    assert "left out" in said.out
    page = (tmp_path / "book" / "index.html").read_text(encoding="utf-8")
    assert page.count("<section id=") == 10
    for name in ("scale.svg", "scale.png", "scale.csv", "cost-measured.csv"):
        assert (tmp_path / "book" / name).stat().st_size > 0
