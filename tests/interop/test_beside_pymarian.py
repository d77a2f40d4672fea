"""Beside Marian itself: pymarian trains a model, and translates with it. ``make test-interop``
runs these tests where pymarian has a wheel for the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_run import PAIRS
from sentencepiece import SentencePieceTrainer

from dragoman.engine.settings import TranslatorSettings
from dragoman.interop import marian
from dragoman.interop.folder import import_model
from dragoman.tasks.catalogue import Run

pymarian = pytest.importorskip("pymarian", reason="make test-interop installs pymarian")

LINES = [pair.source for pair in PAIRS.test[:200]]
PLAIN = TranslatorSettings(precision="fp32", whole=True, threads=1)
SHAPE = {
    "type": "transformer", "dim_emb": 48, "transformer_dim_ffn": 96, "transformer_heads": 4,
    "enc_depth": 2, "dec_depth": 2, "tied_embeddings": True,
}  # fmt: skip
TRAINING = {
    "after_batches": 250, "mini_batch": 32, "learn_rate": 0.003, "lr_warmup": 50, "clip_norm": 1,
    "cpu_threads": 1, "workspace": 300, "seed": 1, "quiet": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that pymarian trained for some seconds: few of its outputs are right."""
    made = tmp_path_factory.mktemp("marian") / "toy-en-de"
    made.mkdir()
    texts = [[pair.source for pair in PAIRS.train], [pair.target for pair in PAIRS.train]]
    for name, lines in zip(("en", "de"), texts, strict=True):
        (made / f"{name}.txt").write_text("\n".join(lines) + "\n", "utf-8")
        SentencePieceTrainer.train(
            input=str(made / f"{name}.txt"), model_prefix=str(made / name), vocab_size=150,
            eos_id=0, unk_id=1, bos_id=-1, pad_id=-1, minloglevel=2,
        )  # fmt: skip
        (made / f"{name}.model").rename(made / f"{name}.spm")
    pymarian.Trainer(
        model=str(made / "model.npz"), train_sets=[str(made / "en.txt"), str(made / "de.txt")],
        vocabs=[str(made / "en.spm"), str(made / "de.spm")], beam_size=6, normalize=1,
        **SHAPE, **TRAINING,
    ).train()  # fmt: skip
    (made / "model.npz.optimizer.npz").unlink()
    return made


def answers(folder: Path, lines: list[str], beam: int, alpha: float, **more: Any) -> list[Any]:
    """The parts of the best of each n-best list: pieces, scores of words, score of all."""
    translator = pymarian.Translator(
        models=str(folder / "model.npz"), vocabs=[str(folder / "en.spm"), str(folder / "de.spm")],
        beam_size=beam, normalize=alpha, max_length_factor=12, n_best=True, word_scores=True,
        no_spm_decode=True, mini_batch=1, maxi_batch=1, cpu_threads=1, workspace=200, quiet=True,
        **more,
    )  # fmt: skip
    best: dict[str, Any] = {}
    for line in "\n".join(translator.translate(lines)).splitlines():
        number, *parts = line.split(" ||| ")
        best.setdefault(number, parts)
    return list(best.values())


def imported(folder: Path, to: Path) -> Run:
    import_model(folder, to, ("en", "de"))
    return Run.open(to)


def worst(run: Run, folder: Path) -> float:
    """The greatest difference of log P of a token of 200 given pairs, here and there."""
    pairs = [(pair.source, pair.target) for pair in PAIRS.test[:200]]
    lines = ["\t".join(pair) for pair in pairs]
    given = {"force_decode": True, "allow_unk": True, "tsv": True, "tsv_fields": 2}
    theirs = answers(folder, lines, 1, 0, **given)
    ours = run.open_predictor(PLAIN).score(pairs)
    differences = []
    for one, (_, scores, *_) in zip(ours, theirs, strict=True):
        here = one.token_log_probabilities[:-1]  # they go on behind what is given
        there = [float(score) for score in scores.split()[1 : 1 + len(here)]]
        differences.append(np.abs(np.subtract(here, there)).max(initial=0))
    return float(max(differences))


def test_log_probabilities_are_the_same(folder: Path, tmp_path: Path) -> None:
    assert worst(imported(folder, tmp_path / "run"), folder) < 1e-3


@pytest.mark.parametrize(("name", "value"), [("_EPSILON", 1e-2), ("positions", "sinusoidal")])
def test_a_wrong_setting_would_be_seen(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    if name == "_EPSILON":
        monkeypatch.setattr(marian, name, value)
    run = imported(folder, tmp_path / "run")
    if name == "positions":
        path = run.folder / "recipe.toml"
        path.write_text(path.read_text().replace('kind = "marian"', f'kind = "{value}"'))
        run = Run.open(run.folder)
    assert worst(run, folder) > 1e-3


@pytest.mark.parametrize("beam", [1, 6])
def test_outputs_are_the_same(folder: Path, tmp_path: Path, beam: int) -> None:
    """With a beam also: hypotheses that end leave it, as Marian has it. Outputs that repeat
    themselves up to the limit are not compared, because Marian has another limit."""
    run = imported(folder, tmp_path / "run")
    search = run.recipe.search
    assert (search.beam, search.length_penalty, search.stop) == (6, 1.0, "empty")
    longest = search.model_copy(update={"beam": beam, "max_length": 60})
    theirs = [pieces.split() for pieces, *_ in answers(folder, LINES, beam, 1)]
    ours = run.open_predictor(PLAIN).batch(LINES, settings=longest)
    pairs = [(run.target.names_of(one.ids), other) for one, other in zip(ours, theirs, strict=True)]
    same = [one == other for one, other in pairs if len(other) < 60]
    assert len(same) > 150
    assert np.mean(same) >= 0.995
