"""A run that learns from monolingual text: its steps, each of which can be continued."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Dragoman
from tiny_recipe import TINY

from dragoman.base.errors import DataError, RunError
from dragoman.data.files.corpora import read_pairs
from dragoman.runs.corpora import plain_corpora, plain_pairs
from dragoman.runs.files import read_stored
from dragoman.runs.run import RECIPE, WEIGHTS
from dragoman.sizing.options import TrainOptions
from dragoman.studies.back_translation import (
    StepsPlan,
    begin_steps,
    go_on_steps,
    last_chosen,
)
from dragoman.studies.steps import is_begun, refuse_begun
from dragoman.tasks.catalogue import Recipe, Run

PAIRS, LINES = 300, 120


def sentences(seed: str, count: int, letter: str) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(f"{letter}{draw.randrange(30)}" for _ in range(5)) for _ in range(count)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """my.en and my.de, more.en and more.de; one line of more.de has no text."""
    folder = tmp_path_factory.mktemp("text")
    source = sentences("pairs", PAIRS, "w")
    texts = {
        "my.en": source,
        "my.de": [line.replace("w", "q") for line in source],
        "more.en": sentences("source", LINES, "w"),
        "more.de": [*sentences("target", LINES - 1, "q"), "", "q1 q2\tq3"],
    }
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def options_of(files: Path, **more: object) -> TrainOptions:
    # After few updates, a model whose norms stand before its sub-layers writes nothing yet.
    few = ["model.norm=post", "training.updates=60"]
    changes = [*TINY, *few, "text.vocabulary=285", "data.split.dev=0.1"]
    return TrainOptions(
        inputs=[str(files / "my.en"), str(files / "my.de")], mono_target=str(files / "more.de"),
        set_=changes, **more,
    )  # fmt: skip


def begin(folder: Path, options: TrainOptions, epochs: float | None = None) -> list[str]:
    said: list[str] = []
    begin_steps(options, last_chosen(options, said.append), folder, epochs, said.append)
    return said


@pytest.fixture(scope="module")
def trained(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steps") / "run"
    said = begin(folder, options_of(files))
    assert (
        said[0].startswith("reading ")
        and said[1] == "3 steps:"
        and said[-1].startswith("together about")
    )
    assert is_begun(folder)
    outcome = go_on_steps(folder, lambda _: None, "")
    assert outcome is not None and outcome.reason == "finished"
    return folder


def test_the_last_model_learns_from_pairs_and_from_tagged_translations(trained: Path) -> None:
    run = Run.open(trained)
    real, synthetic = run.recipe.data.train
    assert (real.tag, synthetic.tag) == ("", "<bt>")
    assert Path(synthetic.source) == trained / "steps" / "1-backward.tsv"
    # Each line is learned once an epoch, after the text itself: 120 of 300 are fewer than four.
    assert synthetic.weight == 1.0
    pairs = list(read_pairs(synthetic))
    assert len(pairs) == LINES
    assert pairs[-1].target == "q1 q2 q3"  # a tab would be another column
    assert all(pair.source.startswith("<bt> ") or not pair.source for pair in pairs)
    notes = run.notes()
    assert 0 < notes["synthetic"] < notes["pairs"]["train"]
    assert "<bt>" in run.source_text.pieces(run.source_text.encode(["<bt> w1"])[0])
    # What is written never has the tag.
    tag = run.source_text.symbols_of(["<bt>"])
    assert len(tag) == 1 and tag[0] in run.target.forbidden
    # Nothing is held out of synthetic text.
    held = plain_pairs(run.recipe, "dev")
    assert held and not any(pair.source.startswith("<bt>") for pair in held)
    assert len(plain_corpora(run.recipe, "train")) == 2


def test_the_model_that_translates_back_holds_out_the_same_pairs(trained: Path) -> None:
    backward = Run.open(trained / "steps" / "1-backward").recipe
    last = Run.open(trained).recipe
    assert (last.languages.source, last.languages.target) == ("en", "de")
    assert (backward.languages.source, backward.languages.target) == ("de", "en")
    for side in ("dev", "test"):
        turned = [(pair.target, pair.source) for pair in plain_pairs(backward, side)]
        assert turned and turned == [(p.source, p.target) for p in plain_pairs(last, side)]
    assert [text.side for text in backward.data.monolingual] == ["source"]


def test_a_model_that_translates_into_nothing_is_refused(trained: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(trained / "steps", copy / "steps")
    text = copy / "steps" / "1-backward.tsv"
    targets = [line.partition("\t")[2] for line in text.read_text("utf-8").splitlines()]
    text.write_text("".join(f"\t{target}\n" for target in targets), "utf-8")
    with pytest.raises(DataError, match="1-backward translates every line into nothing"):
        go_on_steps(copy, lambda _: None, "")
    text.write_text("".join(f"w1\t{target}\n" for target in targets[:1]), "utf-8")
    assert go_on_steps(copy, lambda _: None, "") is not None


def test_translating_goes_on_after_the_last_whole_line(trained: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(trained, copy)
    weights, text = (copy / WEIGHTS).read_bytes(), copy / "steps" / "1-backward.tsv"
    whole = text.read_bytes()
    for path in [*copy.iterdir()]:
        if path.name != "steps":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert is_begun(copy)
    with pytest.raises(RunError, match="already begun"):
        refuse_begun(copy)
    lines = [line + b"\n" for line in whole.split(b"\n")[:-1]]
    text.unlink()
    # What is there is kept, and half a line is not.
    begun = b"kept\tkept\n" + b"".join(lines[1:40]) + lines[40][:9]
    (copy / "steps" / "1-backward.tsv.part").write_bytes(begun)

    def fail(line: str) -> None:
        if "to train on" in line and "synthetic" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go_on_steps(copy, fail, "")
    assert [path.name for path in copy.iterdir()] == ["steps"]
    go_on_steps(copy, lambda _: None, "")
    assert text.read_bytes() == b"kept\tkept\n" + b"".join(lines[1:])
    assert (copy / WEIGHTS).read_bytes() != weights


def test_other_text_is_not_mixed_with_what_is_translated(
    trained: Path, files: Path, tmp_path: Path
) -> None:
    copy = trained.with_name("copy")
    shutil.copytree(trained, copy)
    (copy / RECIPE).unlink()
    (copy / "steps" / "1-backward.tsv").rename(copy / "steps" / "1-backward.tsv.part")
    text = (files / "more.de").read_bytes()
    (files / "more.de").write_bytes(text + b"q1\n")
    try:
        with pytest.raises(RunError, match="has changed since"):
            go_on_steps(copy, lambda _: None, "")
    finally:
        (files / "more.de").write_bytes(text)


def test_no_more_is_translated_than_the_updates_can_read(files: Path, tmp_path: Path) -> None:
    text = sentences("much", 20_000, "q")
    (tmp_path / "much.de").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    options = options_of(files)
    changes = [*options.set_, "training.updates=20", "plan.tokens_per_update=512"]
    begin(
        tmp_path / "run",
        replace(options, mono_target=str(tmp_path / "much.de"), set_=changes, mono_ratio=9.0),
    )
    (step,) = read_stored(tmp_path / "run" / "steps" / "plan.json", StepsPlan).steps
    # A line has 5 words, and 4 to 20 tokens by the estimate; nine of ten pairs are synthetic.
    assert 20 * 512 * 0.9 / 20 < step.most < 20 * 512 * 0.9 / 4 < step.lines == 20_000


def test_two_rounds_share_the_minutes(files: Path, tmp_path: Path) -> None:
    said = begin(
        tmp_path / "run", options_of(files, mono_source=str(files / "more.en"), minutes=12.0)
    )
    told = "\n".join(said)
    assert "5 steps:" in told and "3. train de to en on 300 pairs and 120 synthetic" in told
    # A third for both models, a sixth for both texts, the rest for the last.
    assert [line.rpartition(": ")[2] for line in said[-6:-1]] == [
        "about 2 minutes", "at most 60 seconds", "about 2 minutes", "at most 60 seconds",
        "about 6 minutes",
    ]  # fmt: skip
    steps = tmp_path / "run" / "steps"
    forward, backward = (
        Recipe.load(steps / f"{name}.toml") for name in ("1-forward", "2-backward")
    )
    assert (forward.languages.source, backward.languages.source) == ("en", "de")


def test_text_of_another_language_is_doubted(files: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.de"
    more.write_text("the cat is in the house and it does not want to go\n" * 50, encoding="utf-8")
    said = begin(tmp_path / "run", replace(options_of(files), mono_target=str(more)))
    (warning,) = [line for line in said if line.startswith("warning")]
    assert warning.endswith("should be German, the language of the target, and reads as English")


def test_sentences_of_dev_are_not_translated(files: Path, tmp_path: Path) -> None:
    dev = files / "my.de"
    held = dev.read_text(encoding="utf-8").splitlines()[0]
    more = tmp_path / "more.de"
    others = sentences("others", 60, "q")
    more.write_text("\n".join([f"{held.upper()}.", *others, ""]), encoding="utf-8")
    for side in ("en", "de"):
        lines = (files / f"my.{side}").read_text(encoding="utf-8").splitlines()
        (tmp_path / f"dev.{side}").write_text(lines[0] + "\n", encoding="utf-8")
        (tmp_path / f"my.{side}").write_text("\n".join(lines[1:]) + "\n", encoding="utf-8")
    options = options_of(tmp_path, dev=(str(tmp_path / "dev.en"), str(tmp_path / "dev.de")))
    folder, said = tmp_path / "run", list[str]()
    begin(folder, options)
    go_on_steps(folder, said.append, "")
    pairs = (folder / "steps" / "1-backward.tsv").read_text(encoding="utf-8").split("\n")
    assert [pair.partition("\t")[2] for pair in pairs[:-1]] == others
    assert any("1 line is also in dev or test and left out" in line for line in said)


@pytest.mark.system
def test_text_of_which_nothing_is_left_is_refused_before_any_training(
    files: Path, tmp_path: Path
) -> None:
    (tmp_path / "held.de").write_text("x1 x2\n", encoding="utf-8")
    (tmp_path / "held.en").write_text("y1 y2\n", encoding="utf-8")
    (tmp_path / "long.de").write_text(f"{'q1 ' * 2000}\n", encoding="utf-8")
    held = str(tmp_path / "held.en"), str(tmp_path / "held.de")
    for name, why in (("held.de", "dev or test set"), ("long.de", "no pair at all")):
        options = replace(options_of(files, dev=held), mono_target=str(tmp_path / name))
        if name == "held.de":  # the dev set itself would be refused as the same file
            options = replace(options, mono_target=str(shutil.copy(held[1], tmp_path / "copy.de")))
        with pytest.raises(DataError, match=why):
            begin(tmp_path / "run", options)
    assert not (tmp_path / "run").exists()


def test_the_command_line_trains_and_resumes(
    dragoman: Dragoman, files: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    settings = [f"--set={change}" for change in options_of(files).set_]
    pairs = files / "my.en", files / "my.de"
    given = ("--mono-target", files / "more.de", "--to", run, *settings)
    said = dragoman("train", *pairs, *given)
    assert said.code == 0, said.err
    assert "step 3:" in said.out and "report:" in said.out
    for path in [*run.iterdir()]:
        if path.name != "steps":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (run / "steps" / "1-backward.tsv").rename(run / "steps" / "1-backward.tsv.part")
    said = dragoman("train", *pairs, *given)
    assert said.code == 1 and "already begun" in said.err
    said = dragoman("resume", run)
    assert said.code == 0 and "step 2:" in said.out, said.err
    for wrong, told in (
        (("--seeds", "1,2"), "--seeds does not work"),
        (("--mono-source", files / "more.de"), "is the same file as"),
        (("--rounds", "2"), "--mono-source FILE"),
    ):
        said = dragoman("train", *pairs, *given[:2], "--to", tmp_path / "other", *wrong)
        assert said.code != 0 and told in said.err
        assert not (tmp_path / "other").exists()
