"""What words have to do with a label: two measures, each held to its definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import Dragoman
from implementations import STACKS
from recipe_of_files import recipe_of
from trained_run import trained_run

from dragoman.forms.subwords.text import TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.forms.text_form import TextForm
from dragoman.models.catalogue.classifier import new_classifier
from dragoman.models.settings import ModelSettings
from dragoman.nn.probes import Probe
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.tasks.classification.labeller import Labeller
from dragoman.tasks.classification.reasons import WARNING, Reasons, ReasonWord, reasons, table


class Stretching(Probe):
    """Multiplies what the first layer reads."""

    def __init__(self, factors: torch.Tensor) -> None:
        super().__init__()
        self.factors = factors

    def take_embedded(self, rows: torch.Tensor) -> torch.Tensor:
        return rows * self.factors if len(rows) else rows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("reasons")
    text = "".join(
        f"{'ab'[n % 2]}\t{'dog barks' if n % 2 else 'snow falls'} {n}\n" for n in range(60)
    )
    (folder / "x.tsv").write_text(text, encoding="utf-8")
    changes = ["model.model_dim=16", "model.ffn_dim=16", "model.attention.num_heads=2",
               "training.updates=2", "training.validate_every=0"]  # fmt: skip
    recipe, _ = recipe_of([str(folder / "x.tsv")], task="classification", changes=changes)
    return trained_run(recipe, folder / "run")


def labeller_of(run: Run, settings: ModelSettings) -> Labeller:
    """The run's, with a network of random weights of any kind."""
    labeller = Labeller(run)
    torch.manual_seed(6)
    labeller.network = new_classifier(settings, run.source.size, 2).eval()
    recipe = run.recipe.model_copy(update={"model": settings})
    assert isinstance(recipe, Recipe)
    before = not settings.reads
    symbol = run.source.bos if before else run.source.eos
    labeller.reading = type(labeller.reading)(symbol, before, 64)
    return labeller


@pytest.mark.parametrize("settings", STACKS, ids=lambda one: one.kind)
def test_gradients_are_those_of_small_steps(run: Run, settings: ModelSettings) -> None:
    """e · dlogP/de is how fast log P grows when the embeddings of a word are stretched."""
    labeller = labeller_of(run, settings)
    text = "the dog barks"
    found = reasons(labeller, text)
    assert [word.text for word in found.words] == text.split()
    answer = labeller([text])[0]
    assert found.label == answer.label and found.probability == pytest.approx(answer.probability)
    chosen = labeller.labels.names.index(found.label)
    (tokens,) = run.source.tokens([text])
    ((same, numbers),) = run.source.tokens_of_words([text])
    assert same == tokens
    source = labeller.reading.texts([np.array(tokens, np.int32)])
    shift = 1 if labeller.reading.before else 0

    def stretched(number: int, by: float) -> float:
        factors = torch.ones(source.layout.total, 1)
        for place, at in enumerate(numbers):
            if at == number:
                factors[place + shift] = 1 + by
        network = labeller.network
        with torch.no_grad(), Stretching(factors):
            scores = torch.log_softmax(network.project(network.encode(source).rows)[0].double(), 0)
        return float(scores[chosen])

    for number, word in enumerate(found.words):
        slope = (stretched(number, 1e-3) - stretched(number, -1e-3)) / 2e-3
        assert word.gradient == pytest.approx(slope, abs=2e-3)
    with torch.no_grad(), Probe() as probe:
        labeller.network.encode(source)
    if labeller.network.attentions:
        last = probe.attention[labeller.network.attentions[-1].name][0].mean(dim=(0, 1))
        own = [place + shift for place, at in enumerate(numbers) if at == 1]
        assert found.words[1].attention == pytest.approx(float(last[own].sum()), abs=1e-5)
    else:
        assert all(word.attention is None for word in found.words)


@pytest.mark.parametrize(
    "text",
    ["The dog  sleeps.", "  the dog\nbarks \u3000at\u00a0it ", "개가\t잠을 잔다", "don\u00b4t go"],
)
@pytest.mark.parametrize("lossless", [True, False])
def test_the_tokens_that_were_labelled_are_explained(
    run: Run, monkeypatch: pytest.MonkeyPatch, text: str, lossless: bool
) -> None:
    """A vocabulary that keeps spaces has tokens for them, which belong to the word behind."""
    labeller = labeller_of(run, STACKS[0])
    settings = TextSettings(vocabulary=300, kind="bpe", lossless=lossless)
    learned = learn_vocabulary(["the dog barks at it  twice\nand\tgoes"] * 9, settings)
    form = TextForm(learned, "en")
    monkeypatch.setattr(labeller.engine, "source", form)
    labeller.network = new_classifier(STACKS[0], learned.size, 2).eval()
    (labelled,) = labeller([text])
    found = reasons(labeller, text)
    assert found.probability == pytest.approx(labelled.probability, abs=1e-9)
    assert [word.text for word in found.words] == text.split()
    if found.words[0].attention is not None:
        symbol = 1 - sum(word.attention or 0.0 for word in found.words)
        assert 0 < symbol < 1


def test_a_gradient_that_is_small_is_not_shown_as_nothing() -> None:
    words = ReasonWord("snow", 0, -0.000161, None), ReasonWord("falls", 1, -0.0, None)
    lines = table(Reasons("weather", 1.0, words)).splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["-0.00016", "+0.00000"]


def test_the_verb_warns_that_they_differ(run: Run, dragoman: Dragoman, tmp_path: Path) -> None:
    said = dragoman("classify", run.folder, "dog barks", "", "snow", "--explain")
    assert said.code == 0, said.err
    assert WARNING in said.err
    lines = said.out.splitlines()
    assert lines[1].split() == ["word", "gradient", "attention", "%"]
    assert [line.split()[0] for line in lines[2:4]] == ["dog", "barks"]
