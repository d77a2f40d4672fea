"""The report of a comparison: what is counted is right, and the page says what was measured."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from command_line import Dragoman
from torch.utils.flop_counter import FlopCounterMode
from untrained_run import untrained_run

from dragoman.forms.form import Pair
from dragoman.insight.cost import gated_convolution_cost
from dragoman.models.convolutional import GatedConvolution
from dragoman.models.settings import KINDS, ConvolutionalSettings
from dragoman.studies import records
from dragoman.studies.report import FAMILY_NAMES, LAYER_OF, LAYERS, operations_per_token
from dragoman.studies.sweep import SweepPlan
from dragoman.tasks.catalogue import Run

SMALL = (
    "model.model_dim=32", "model.ffn_dim=48", "model.encoder_layers=2", "model.decoder_layers=1",
    "model.attention.num_heads=4", "text.vocabulary=600",
)  # fmt: skip


def made(folder: Path, *changes: str, recipe_name: str = "demo") -> Run:
    folder.mkdir()
    return Run.open(untrained_run(folder, *changes, recipe_name=recipe_name))


@pytest.mark.parametrize("path", ["plain", "fused"])
def test_operations_are_those_of_the_formula(tmp_path: Path, path: str) -> None:
    """A Transformer's, worked out by hand: 2abc for each product, three times for both passes."""
    run = made(tmp_path / "run", *SMALL, f"model.attention.path={path}")
    pairs = [Pair(1, "The dog sleeps.", "Der Hund schläft."), Pair(2, "The man.", "Der Mann isst.")]
    forward, targets = 0, 0
    d, ff, vocabulary = 32, 48, run.target.size
    for pair in pairs:
        (s,), (t,) = ([len(x) + 1 for x in form.tokens([text])] for form, text in
                      ((run.source, pair.source), (run.target, pair.target)))  # fmt: skip
        encoder = 4 * 2 * s * d * d + 2 * 2 * s * s * d + 2 * 2 * s * d * ff
        crossed = 2 * 2 * t * d * d + 2 * 2 * s * d * d + 2 * 2 * t * s * d
        decoder = 4 * 2 * t * d * d + 2 * 2 * t * t * d + crossed + 2 * 2 * t * d * ff
        forward += 2 * encoder + decoder + 2 * t * d * vocabulary
        targets += t
    assert operations_per_token(run, pairs) == pytest.approx(3 * forward / targets)


def test_operations_of_an_lstm_are_counted_too(tmp_path: Path) -> None:
    pairs = [Pair(1, "The dog sleeps.", "Der Hund schläft.")]

    def counted(width: int) -> float:
        changes = (f"model.model_dim={width}", "text.vocabulary=600")
        run = made(tmp_path / str(width), *changes, recipe_name="demo-recurrent")
        return operations_per_token(run, pairs)

    assert 2.5 < counted(128) / counted(64) < 4  # mostly d², and d V


@pytest.fixture
def systems(tiny_run: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A run, and one that is called an LSTM, with a sweep beside it."""
    one, other = tmp_path / "base", tmp_path / "lstm"
    shutil.copytree(tiny_run, one)
    changes = ("model.model_dim=32", "text.vocabulary=600")
    recipe = made(other, *changes, recipe_name="demo-recurrent").recipe
    plan = SweepPlan(over=["model.dropout=0.1,0.4"], seed=1, trials=2)
    folder = tmp_path / "lstm-sweep"
    records.begin(folder, "sweep.json", plan, recipe, None, print)
    (folder / "records").mkdir()
    for record in (
        records.Record(name="trial-1", changes=[], ended="finished", scores={"loss": 3.25}),
        records.Record(name="trial-2", changes=["model.dropout=0.4"], ended="untrainable"),
    ):
        path = folder / "records" / f"{record.name}.json"
        path.write_text(record.model_dump_json(), encoding="utf-8")
    return one, other


@pytest.mark.slow  # two kinds of model are trained and timed
def test_one_report_of_two_kinds(
    dragoman: Dragoman, systems: tuple[Path, Path], tmp_path: Path, parallel_text: tuple[Path, Path]
) -> None:
    for path in parallel_text:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[:12]
        (tmp_path / path.name).write_text("".join(lines), encoding="utf-8")
    files = ("--source", tmp_path / "my.en", "--reference", tmp_path / "my.de", "--samples", "20")
    said = dragoman("compare", *systems, *files, "--to", tmp_path / "report.html")
    assert said.code == 0, said.err
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    base, lstm = found["trained"]
    assert (base["kind"], lstm["kind"]) == ("transformer", "recurrent")
    assert base["updates"] == 30 and base["operations"] > 0 and len(base["curve"]) == 3
    assert base["layer"]["kind"] == "self-attention" and lstm["layer"]["sequential"] > 1
    for one in (base, lstm):
        assert len(one["pace"]["seconds"]) == 3 and one["pace"]["megabytes"] > 50
    assert lstm["operations"] == 0  # it was not trained
    assert base["sweep"] is None and len(found["sweeps"][0]["trials"]) == 2
    # The words follow from the numbers: neither of these can translate yet.
    scores = {one["system"]: one["value"] for one in found["metrics"]["BLEU"]["systems"]}
    told = found["verdict"][0]
    assert told.startswith("None of them translates yet") and not found["learned"]
    for name, value in scores.items():
        assert re.search(rf"{name} \([^)]*\) {value:.1f}", told)
    assert told in said.out and "nothing has learned yet" in said.out
    assert "Their dev sets differ, so their curves cannot be compared." not in said.out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in (
        "GNMT + RL", "O(n² · d)", "dev BLEU over minutes", "lstm-sweep", "failed", "sentences/s",
        "chrF", "nrefs:1",
    ):  # fmt: skip
        assert words in page, words
    assert "://" not in re.sub(r'xmlns="[^"]+"', "", page)


@pytest.mark.parametrize(
    "kind", [kind for kind, settings in KINDS.items() if settings.reads and settings.writes]
)
def test_every_kind_that_translates_has_words_and_a_layer(kind: str) -> None:
    cost = LAYER_OF[kind](20, KINDS[kind](kind=kind, model_dim=64))
    assert cost.core > 0 and kind in FAMILY_NAMES and kind in {layer.kind for layer in LAYERS}
    assert cost.sequential == (20 if kind == "recurrent" else 1)


@pytest.mark.parametrize("width", [1, 3, 5])
def test_a_gated_convolution_costs_what_the_model_computes(width: int) -> None:
    """Of a block of the model, values and gates; and a signal gets no further in fewer layers."""
    settings = ConvolutionalSettings(channels=16, kernel_width=width, dropout=0.0)
    block, length = GatedConvolution(settings), 13
    with FlopCounterMode(display=False) as counter:
        block(torch.randn(length, width * 16))
    cost = gated_convolution_cost(length, 16, width)
    assert cost.core == cost.whole == counter.get_total_flops() == 4 * width * length * 16**2
    reach = cost.path * (width - 1) // 2
    assert (reach >= length - 1 > reach - (width - 1) // 2) if width > 1 else cost.path == 0


def test_what_no_report_can_be_about(dragoman: Dragoman, tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "said.de").write_text("Hallo.\n", encoding="utf-8")
    said = dragoman("compare", tiny_run, tmp_path / "said.de", "--to", tmp_path / "r.html")
    assert said.code == 1 and "file of translations" in said.err
    said = dragoman("compare", tiny_run, tiny_run, "--to", tmp_path / "r.pdf")
    assert said.code == 1 and ".html" in said.err
    said = dragoman("compare", tiny_run, tiny_run, "--to", tmp_path / "no" / "r.html")
    assert said.code == 1 and "there is no folder" in said.err
    assert not list(tmp_path.glob("r.*"))
