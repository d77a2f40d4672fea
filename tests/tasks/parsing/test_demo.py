"""``dragoman demo --task parse``, so small that it learns in seconds."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import Dragoman

from dragoman.base.errors import RecipeError
from dragoman.demo.trees import SHOWN
from dragoman.forms.tree_form import tree_of
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.parsing.verb import PICTURES, count_attachments

SHORT = (
    "model.model_dim=64", "model.ffn_dim=128", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.dropout=0.0", "trees.tags=none", "plan.tokens_per_update=1024",
    "plan.tokens_per_micro_batch=1024", "training.updates=350", "training.validate_every=350",
    "training.schedule.warmup=60", "training.schedule.peak=6e-3", "training.precision=fp32",
    "evaluation.dev_sentences=4", "search.beam=1",
)  # fmt: skip


@pytest.mark.slow  # 600 sentences are parsed: half a minute, the longest of all
def test_a_parser_from_nothing(dragoman: Dragoman, tmp_path: Path) -> None:
    to = tmp_path / "trees"
    changes = [word for change in SHORT for word in ("--set", change)]
    said = dragoman("demo", "--task", "parse", "--to", to, *changes)
    assert said.code == 0, said.err
    assert "synthetic" in said.out and "600 sentences whose combinations were held out" in said.out
    (ours,) = re.findall(r"^this parser +([\d.]+)", said.out, re.MULTILINE)
    (shape,) = re.findall(r"^right-branching +([\d.]+)", said.out, re.MULTILINE)
    assert float(ours) > 1.2 * float(shape) > 20
    assert float(ours) == pytest.approx(Run.open(to).scores()["scores"]["f1"]["value"], abs=0.06)
    sentences = [" ".join(tree.words) for tree in SHOWN]
    for sentence in sentences:  # so small a parser may put one node alone below the first
        tree = rf"\n  {re.escape(sentence)}  \((right|wrong)\)\n  S(\n  ├─| ─) "
        assert re.search(tree, said.out)
    for name, sentence in zip(PICTURES, sentences, strict=False):
        shown = [text.text for text in ElementTree.parse(to / name).getroot().iter() if text.text]
        assert [word for word in shown if word in sentence.split()] == sentence.split()
    assert (to / "report.html").is_file()
    # What it names next can be done.
    assert dragoman("parse", to, "The old queen likes the cat that sleeps .", "--draw").code == 0
    # Another demo may take its place.
    refused = dragoman("demo", "--task", "parse", "--to", to, "--set", "training.updates=no")
    assert (
        refused.code == 1 and "training.updates" in refused.err and (to / "recipe.toml").is_file()
    )


def test_attachments_are_counted_by_what_holds_the_phrase() -> None:
    low = tree_of("(S (VP (V sees) (NP (NP (N it)) (PP (IN with) (NP (N eyes))))))")
    high = tree_of("(S (VP (V sees) (NP (N it)) (PP (IN with) (NP (N eyes)))))")
    assert count_attachments([low, high], [low, high]) == (2, 2, 1)
    assert count_attachments([low, high], [high, high]) == (1, 2, 1)


def test_each_embedded_corpus_is_of_its_tasks() -> None:
    for name, corpus, other in (
        ("demo-trees", "demo", "demo-trees"), ("demo", "demo-trees", "demo"),
        ("demo-labels", "demo-trees", "demo"),
    ):  # fmt: skip
        with pytest.raises(RecipeError, match=f'"{corpus}" is not a corpus for .*use "{other}"'):
            Recipe.load(name, [f"data.embedded={corpus}"])
