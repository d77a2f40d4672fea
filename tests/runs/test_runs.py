"""A run folder through its life: begun, killed, resumed, tuned, damaged; nothing is lost."""

from __future__ import annotations

import fcntl
import json
import os
import re
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import Dragoman
from recipe_of_files import recipe_of
from safetensors.torch import load_file
from tiny_recipe import TINY
from trained_run import trained_run

import dragoman as package
from dragoman.base.atomic import replacing_file
from dragoman.base.errors import DataError, FileError, RunError
from dragoman.forms.form import Pair
from dragoman.models.catalogue.fastest import fastest
from dragoman.runs.evaluation_set import EvaluationSet, nothing_to_measure, own_test_set
from dragoman.runs.lock import lock_folder
from dragoman.runs.run import Forms
from dragoman.runs.user_cache import cache_folder
from dragoman.search.offline import Searcher
from dragoman.sizing.minutes import with_updates
from dragoman.sizing.start_from import for_fine_tuning, gently
from dragoman.tasks import new_run
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.training import resume, train
from dragoman.tasks.translation.validation import TranslationValidation
from dragoman.training.checkpoint import Checkpoints
from dragoman.training.trainer import Trainer

STILL = (
    "training.updates=1", "training.validate_every=0", "training.average_last=0",
    "training.schedule.kind=constant", "training.schedule.peak=1e-12",
    "training.schedule.warmup=0",
)  # fmt: skip
"""One update that changes nothing worth mentioning."""


def copied(run: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run, folder))


def test_a_run_whose_training_folder_is_gone_keeps_its_weights(
    dragoman: Dragoman, tiny_run: Path, tmp_path: Path
) -> None:
    run = copied(tiny_run, tmp_path / "run")
    shutil.rmtree(run / "training")
    before = (run / "model.safetensors").read_bytes()
    said = dragoman("resume", run)
    assert said.code == 1
    assert f"--from {run}" in said.err
    assert (run / "model.safetensors").read_bytes() == before


def test_a_run_does_not_go_on_with_other_text(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tiny_run: Path, tmp_path: Path
) -> None:
    run = copied(tiny_run, tmp_path / "run")
    text = [Path(shutil.copy(path, tmp_path)) for path in parallel_text]
    recipe = Recipe.load(tiny_run / "recipe.toml")
    corpus = recipe.data.train[0].model_copy(
        update={"source": str(text[0]), "target": str(text[1])}
    )
    data = recipe.data.model_copy(update={"train": (corpus,)})
    recipe.model_copy(update={"data": data}).save(run / "recipe.toml")
    resume(run, say=lambda _: None, display=False)  # moved, but the same
    text[0].write_text(text[0].read_text("utf-8").replace("The", "Any"), encoding="utf-8")
    said = dragoman("resume", run)
    assert said.code == 1
    assert "my.en + my.de" in said.err and "has changed since the run was begun" in said.err


def test_dev_text_is_held_to_what_the_run_began_with_and_kept_apart_from_training(
    parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    lines = [path.read_text("utf-8").splitlines(keepends=True) for path in parallel_text]
    files: dict[str, tuple[str, str]] = {}
    for name, rows in (("dev", slice(0, 7)), ("test", slice(5, 6))):
        paths = [tmp_path / f"{name}.{code}" for code in ("en", "de")]
        for path, side in zip(paths, lines, strict=True):
            path.write_text("".join(side[rows]), encoding="utf-8")
        files[name] = (str(paths[0]), str(paths[1]))
    recipe, _ = recipe_of([*map(str, parallel_text)], **files, changes=[*TINY, *STILL])  # type: ignore[arg-type]
    run = tmp_path / "run"
    said: list[str] = []
    train(recipe, run, say=said.append, display=False, measure=False)
    for words in ("7 dev pairs, training also has the source of 7", "1 test pair, "):
        assert sum(words in line for line in said) == 1
        assert words in Run.open(run).notes()["overlap"]
    resume(run, say=lambda _: None, display=False)

    Path(files["test"][0]).write_text("Another line.\n", encoding="utf-8")
    said.clear()
    resume(run, say=said.append, display=False)
    assert any("test text" in line and "changed since the run was begun" in line for line in said)
    with Path(files["dev"][1]).open("a") as dev:
        dev.write("\n")
    with pytest.raises(RunError, match=r"dev text .* changed since the run was begun"):
        resume(run, say=lambda _: None, display=False)


def test_what_a_killed_preparation_left_is_not_taken_up(
    parallel_text: tuple[Path, Path], tiny_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / ".lock").touch()
    shutil.copy(tiny_run / "shared.model", run)  # learned for another recipe, 600 tokens
    recipe, _ = recipe_of([*map(str, parallel_text)], changes=[*STILL, "text.vocabulary=500"])
    small = recipe.change(["model.model_dim=32", "model.ffn_dim=32"])
    train(small, run, say=lambda _: None, display=False, measure=False)
    assert Run.open(run).source_text.size == 500


def test_a_tuned_run_that_was_killed_before_its_first_update_begins_with_the_same_weights(
    parallel_text: tuple[Path, Path],
    tiny_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, run = copied(tiny_run, tmp_path / "start"), tmp_path / "tuned"
    recipe, _ = recipe_of(
        [*map(str, parallel_text)], start_from=Run.open(start), changes=STILL
    )  # fmt: skip

    def killed(trainer: Trainer) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "run", killed)
        with pytest.raises(SystemExit):
            train(
                recipe, run, start_from=Run.open(start), say=lambda _: None, display=False,
                measure=False,
            )  # fmt: skip
    assert not Checkpoints(run / "training").exists
    before = load_file(start / "model.safetensors")
    shutil.rmtree(start)
    resume(run, say=lambda _: None, display=False)
    after = load_file(run / "model.safetensors")
    assert all((before[name] - after[name]).abs().max() < 1e-6 for name in before)


def test_fine_tuning_from_python(
    parallel_text: tuple[Path, Path], tiny_run: Path, tmp_path: Path, measured_shortly: None
) -> None:
    recipe, _ = recipe_of([*map(str, parallel_text)], changes=STILL)
    assert recipe.model.model_dim != 32
    package.train(recipe, tmp_path / "run", start_from=tiny_run, display=False)
    assert Run.open(tmp_path / "run").recipe.model == Run.open(tiny_run).recipe.model


def test_fine_tuning_takes_over_what_the_weights_were_made_for_and_is_gentle() -> None:
    learned = Recipe.load("multi30k-en-de-moses")
    tuned = for_fine_tuning(Recipe(), learned)
    assert tuned.data.moses
    assert (tuned.model, tuned.text, tuned.languages) == (
        learned.model, learned.text, learned.languages,
    )  # fmt: skip
    assert gently(tuned, learned).training.schedule.peak == pytest.approx(5e-4)
    # The paper's schedule has no peak of its own: 512^-0.5 * 4000^-0.5 is its highest rate.
    base = Recipe.load("transformer-base")
    assert gently(tuned, base).training.schedule.peak == pytest.approx(6.99e-5, rel=1e-2)


def test_snapshots_fit_into_a_shorter_run() -> None:
    recipe = Recipe.load("multi30k-en-de")
    before = recipe.training.validate_every / recipe.training.snapshot_every
    training = with_updates(recipe, 1080).training
    assert training.validate_every / training.snapshot_every == before
    never = recipe.change(["training.validate_every=0"])
    assert with_updates(never, 600).training.validate_every == 0


def test_the_film_of_a_run_opens_as_its_model(tiny_run: Path) -> None:
    run = Run.open(tiny_run)
    film = run.film()
    assert [update for update, _ in film][:2] == [0, 1]
    assert film[-1][0] == run.recipe.training.updates
    first, last, model = (
        dict(opened.named_parameters())
        for opened in (run.model(film[0][1]), run.model(film[-1][1]), run.model())
    )
    assert first.keys() == last.keys() == model.keys()
    assert {value.dtype for value in last.values()} == {torch.float32}
    assert any(not torch.equal(first[name], last[name]) for name in first)


def test_commands_in_messages_are_a_shell_s(tiny_run: Path, tmp_path: Path) -> None:
    run = Run.open(shutil.copytree(tiny_run, tmp_path / "two words"))
    with pytest.raises(RunError, match=r"translate '.*/two words' "):
        run.require_task("classification", "which does not label")
    assert f"evaluate '{run.folder}' " in str(nothing_to_measure(run, "is", "a", "b"))


def test_files_can_be_read_by_others_as_usual(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    usual = stat.S_IMODE((tmp_path / "usual").stat().st_mode)
    for path in (p for p in tiny_run.rglob("*") if p.is_file()):
        assert stat.S_IMODE(path.stat().st_mode) == usual, path


def test_two_that_write_one_file_do_not_meet(tmp_path: Path) -> None:
    other = "import sys, pathlib; from dragoman.base.atomic import write_text\n"
    other += "write_text(pathlib.Path(sys.argv[1]), 'theirs')"
    path = tmp_path / "file"
    with replacing_file(path) as temporary:
        temporary.write_text("ours")
        subprocess.run([sys.executable, "-c", other, str(path)], check=True)
        assert path.read_text() == "theirs"
    assert path.read_text() == "ours"


@pytest.mark.parametrize("name", ["scores.json", "metrics.jsonl", "data.json"])
def test_damaged_records_are_named(tiny_run: Path, tmp_path: Path, name: str) -> None:
    from dragoman.tasks.report import write_report

    run = copied(tiny_run, tmp_path / "run")
    (run / name).write_text('{"cut\n', encoding="utf-8")
    with pytest.raises(RunError, match=rf"{name}.* is damaged"):
        write_report(Run.open(run))


def test_json_lines_with_other_keys(dragoman: Dragoman, tmp_path: Path) -> None:
    lines = [{"translation": {"en": f"dog {n}", "de": f"Hund {n}."}} for n in range(40)]
    path = tmp_path / "my.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert "--keys SOURCE TARGET" in dragoman("data", "show", path).err
    said = dragoman("data", "show", path, "--keys", "translation.en", "translation.de")
    assert said.code == 0, said.err
    assert "40" in said.out
    said = dragoman("train", path, path, "--keys", "a", "b", "--to", tmp_path / "run")
    assert said.code == 1 and "--keys works only with" in said.err


def test_what_cannot_be_written_is_told_in_a_line(
    dragoman: Dragoman, tiny_run: Path, tmp_path: Path
) -> None:
    said = dragoman("evaluate", tiny_run, "--output", tmp_path / "nowhere" / "out.de")
    assert said.code == 1 and "there is no folder" in said.err
    command = f"'{sys.executable}' -m dragoman data list > /dev/full"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "error: standard input or output: No space left on device\n"


def test_a_full_disk_while_training_leaves_what_can_be_resumed(
    parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    recipe, _ = recipe_of(
        [*map(str, parallel_text)], changes=[*STILL, "text.vocabulary=600", "training.film=0"]
    )
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        # The kernel itself refuses longer files: the vocabulary fits, a checkpoint does not.
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, before[1]))
        with pytest.raises(FileError, match=r"cannot write .*checkpoint.*File too large"):
            train(recipe, run, say=lambda _: None, display=False, measure=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(run.rglob("checkpoint-*")) and not (run / "model.safetensors").exists()
    resume(run, say=lambda _: None, display=False)
    assert (run / "model.safetensors").is_file()


def test_comparing_needs_two_that_exist(dragoman: Dragoman, tiny_run: Path, tmp_path: Path) -> None:
    said = dragoman("compare", tiny_run)
    assert said.code == 1 and "two systems" in said.err
    said = dragoman("compare", tiny_run, tmp_path / "none.de")
    assert said.code == 1 and "none.de does not exist" in said.err


def test_text_is_told_from_a_recipe(dragoman: Dragoman, parallel_text: tuple[Path, Path]) -> None:
    said = dragoman("train", parallel_text[0])
    assert said.code == 1 and "Give the file of its translations too" in said.err


def test_validation_leaves_out_what_training_would(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.open(tiny_run)
    pairs = [Pair(1, "The dog sleeps.", "Der Hund schläft."), Pair(2, "dog " * 300, "Hund")]
    asked: list[tuple[int, ...]] = []

    def listening(*arguments: Any, **named: Any) -> Searcher:
        asked.append(named["forbidden"])
        return Searcher(*arguments, **named)

    monkeypatch.setattr("dragoman.engine.engine.Searcher", listening)
    found = TranslationValidation(
        run.model(), run.recipe, Forms(run.source, run.target),
        [*pairs, Pair(3, "", "leer")], torch.device("cpu"),
    )  # fmt: skip
    assert [pair.line for pair in found.pairs] == [1]
    assert found.left_out == 2
    with torch.no_grad():
        assert len(found(1).samples) == 1
    # What nobody can read is never an output.
    assert set(asked[0]) == {run.target_text.bos, run.target_text.unknown}


@pytest.mark.parametrize("quick", ["int8", "fp32"])
def test_validation_takes_the_path_that_translating_takes(
    quick: str, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a machine where plain torch was measured faster than the kernels."""
    run = Run.open(tiny_run)
    taken: list[object] = []

    def listening(model: Any, *arguments: Any, **named: Any) -> Searcher:
        taken.append((type(model), type(getattr(model, "model", None))))
        return Searcher(model, *arguments, **named)

    def measured(_: Path, trials: Any) -> dict[str, int]:
        return {name: 1 if name.startswith(quick) else 1000 for name in trials}

    monkeypatch.setattr("dragoman.engine.engine.Searcher", listening)
    monkeypatch.setattr("dragoman.models.catalogue.fastest.microseconds", measured)
    with torch.no_grad():
        TranslationValidation(
            run.model(), run.recipe, Forms(run.source, run.target),
            [Pair(1, "The dog sleeps.", "Der Hund schläft.")], torch.device("cpu"),
        )(1)  # fmt: skip
    translating = fastest(run.model(), remembered=cache_folder())
    searched = translating.searched
    assert taken == [(type(searched), type(getattr(searched, "model", None)))]
    assert quick == "int8" or translating.precision == "fp32"


# ---- one process at a time


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_who_changes_a_run_is_alone_with_it(
    dragoman: Dragoman, tiny_run: Path, tmp_path: Path
) -> None:
    run = copied(tiny_run, tmp_path / "run")
    demo = Recipe.load("demo")
    started, other = tmp_path / "started", tmp_path / "demo"
    with lock_folder(run), lock_folder(started), lock_folder(other):
        demo.save(other / "recipe.toml")
        before = everything(tmp_path)
        for said in (
            dragoman("resume", run),
            dragoman("average", run),
            dragoman("shortlist", run),
            dragoman("train", "demo", "--to", started),  # that is being prepared
            dragoman("demo", "--to", other),
        ):
            assert said.code == 1
            assert f"in use by another process (process {os.getpid()})" in said.err
        assert everything(tmp_path) == before
        # To another file the mean may go at any time.
        assert dragoman("average", run, "--to", tmp_path / "mean.safetensors").code == 0
    assert not (run / ".lock").exists()
    assert dragoman("average", run).code == 0


@pytest.mark.parametrize("where", ["new_run.learn_vocabularies", "training.Trainer.run"])
def test_two_trainings_never_share_a_folder(
    parallel_text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The second begins while the first prepares, or trains; it leaves no trace."""
    folder = tmp_path / "run"
    recipe, _ = recipe_of([*map(str, parallel_text)], changes=[*STILL, "text.vocabulary=600"])
    original = Trainer.run if where == "training.Trainer.run" else new_run.learn_vocabularies

    def meanwhile(*arguments: Any) -> Any:
        before = everything(folder)
        with pytest.raises(RunError, match="in use by another process"):
            train(
                recipe.change(["seed=2"]), folder, say=lambda _: None, display=False, measure=False
            )
        assert everything(folder) == before
        return original(*arguments)

    monkeypatch.setattr(f"dragoman.tasks.{where}", meanwhile)
    train(recipe, folder, say=lambda _: None, display=False, measure=False)
    assert Recipe.load(folder / "recipe.toml").seed == 1


def test_a_half_made_run_is_removed_but_never_what_was_there(
    parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    recipe, _ = recipe_of([*map(str, parallel_text)], changes=[*STILL, "text.vocabulary=50000"])
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "notes.txt").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    for name, error, told in (
        ("new", DataError, "larger than this text supports"),
        ("empty", DataError, "larger than this text supports"),
        ("old", RunError, "old is not a run and contains other files, such as notes.txt"),
        ("file", RunError, "file is a file. Set a folder"),
    ):
        with pytest.raises(error, match=told):
            train(recipe, tmp_path / name, say=lambda _: None, display=False, measure=False)
    assert everything(tmp_path) == {"old/notes.txt": b"mine", "file": b"mine"}
    assert not (tmp_path / "new").exists()


def test_a_lock_whose_folder_is_removed_meanwhile_keeps_nobody_away(tmp_path: Path) -> None:
    """Who waits behind the lock of a folder that goes away gets the lock of the new one."""
    folder = tmp_path / "run"
    real, calls = fcntl.flock, []

    def removed_meanwhile(file: Any, how: int) -> None:
        if not calls:
            shutil.rmtree(folder)
        calls.append(file)
        real(file, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "flock", removed_meanwhile)
        with lock_folder(folder):
            assert len(calls) == 2
            with pytest.raises(RunError, match="in use"), lock_folder(folder):
                pass


# ---- what was lost or moved


def test_resume_makes_lost_weights_again(
    dragoman: Dragoman, tiny_run: Path, tmp_path: Path
) -> None:
    run = copied(tiny_run, tmp_path / "run")
    (run / "model.safetensors").unlink()
    said = dragoman("translate", run, "The dog sleeps.")
    assert said.code == 1 and f"dragoman resume {run}" in said.err
    said = dragoman("resume", run)
    assert said.code == 0, said.err
    assert "is missing or damaged" in said.err
    assert dragoman("translate", run, "The dog sleeps.").code == 0
    # A run that has ended and holds something is left alone: also an average made by hand.
    assert dragoman("average", run, "--last", 1).code == 0
    before = (run / "model.safetensors").read_bytes()
    assert dragoman("resume", run).code == 0
    assert (run / "model.safetensors").read_bytes() == before


def test_a_run_that_was_moved_says_which_line_names_its_text(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tiny_run: Path, tmp_path: Path
) -> None:
    run = copied(tiny_run, tmp_path / "deep" / "er" / "run")
    written = (tiny_run / "recipe.toml").read_text("utf-8")
    (run / "recipe.toml").write_text(written, "utf-8")
    line = next(line for line in written.splitlines() if line.startswith('source = "../'))
    for verb in ("resume", "shortlist"):  # evaluate has the run's own copy of its test set
        said = dragoman(verb, run)
        assert said.code == 1
        told = " ".join(said.err.split())
        assert f"{run / 'recipe.toml'} sets it under data.train, as {line}" in told
    there = os.path.relpath(parallel_text[0], run), os.path.relpath(parallel_text[1], run)
    for side, path in zip(("source", "target"), there, strict=True):
        old = next(line for line in written.splitlines() if line.startswith(f'{side} = "../'))
        written = written.replace(old, f'{side} = "{path}"')
    (run / "recipe.toml").write_text(written, "utf-8")
    assert dragoman("resume", run).code == 0


def test_the_text_of_a_moved_run_is_given_again_and_held_to_its_fingerprint(
    parallel_text: tuple[Path, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    text = [Path(shutil.copy(path, tmp_path / path.name)) for path in parallel_text]
    recipe, _ = recipe_of([*map(str, text)], changes=[*TINY, "training.updates=1"])
    run = trained_run(recipe, tmp_path / "run")
    moved = copied(run.folder, tmp_path / "deep" / "er" / "run")
    (moved / "recipe.toml").write_text((run.folder / "recipe.toml").read_text("utf-8"), "utf-8")
    other, kept = tmp_path / "other", tmp_path / "kept"
    for folder in (other, kept):
        folder.mkdir()
        for path in text:
            shutil.copy(path, folder)
    for path in text:
        path.unlink()
    with (other / text[1].name).open("a", encoding="utf-8") as file:
        file.write("Mehr.\n")
    before = (moved / "recipe.toml").read_text("utf-8")
    for options, words in (
        ((), "does not exist."),
        (("--text", tmp_path / "nowhere"), "nowhere does not exist"),
        (("--text", other), "is not the text that"),
    ):
        said = dragoman("resume", moved, *options)
        assert said.code == 1 and words in " ".join(said.err.split())
        assert (moved / "recipe.toml").read_text("utf-8") == before
    again = copied(moved, tmp_path / "deep" / "again")
    said = dragoman("resume", moved, "--text", kept / text[0].name, "--text", kept / text[1].name)
    assert said.code == 0, said.err
    assert dragoman("resume", moved).code == 0  # written down
    for path in kept.iterdir():  # in the folder of the run
        shutil.copy(path, again)
    assert dragoman("resume", again).code == 0


def test_links_dev_and_test_files_of_a_moved_run_are_found_too(
    parallel_text: tuple[Path, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    """They have the names of the training files, and lie in folders of their own."""
    old = tmp_path / "old"
    lines = [path.read_text("utf-8").splitlines(keepends=True) for path in parallel_text]
    files: dict[str, tuple[str, str]] = {}
    for name, rows in (("train", slice(None)), ("dev", slice(0, 7)), ("test", slice(7, 12))):
        (old / name).mkdir(parents=True)
        paths = [old / name / path.name for path in parallel_text]
        for path, side in zip(paths, lines, strict=True):
            path.write_text("".join(side[rows]), encoding="utf-8")
        files[name] = (str(paths[0]), str(paths[1]))
    links = old / "train" / "my.links"
    links.write_text("0-0\n" * len(lines[0]), encoding="utf-8")
    recipe, _ = recipe_of(
        [*files["train"]], dev=files["dev"], test=files["test"], changes=[*TINY, *STILL]
    )
    (corpus,) = recipe.data.train
    changed = {"train": (corpus.model_copy(update={"links": str(links)}),)}
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update=changed)})
    recipe = recipe.change(["training.guided.weight=0.05"])
    run = trained_run(recipe, tmp_path / "run").folder
    new = Path(shutil.move(old, tmp_path / "new"))
    every = [("--text", new / name) for name in ("train", "dev", "test")]
    for number, texts in enumerate(
        (
            [("--text", new)],
            every,
            every[::-1],  # whose files come first do not match the training text
            [("--text", path) for path in sorted(new.rglob("my.*"))],
        )
    ):
        moved = copied(run, tmp_path / f"moved-{number}")
        said = dragoman("resume", moved, *[word for option in texts for word in option])
        assert said.code == 0, said.err
        data = Recipe.load(moved / "recipe.toml").data
        assert data.train[0].links == str(new / "train" / "my.links")
        for side, found in (("train", data.train[0]), ("dev", data.dev), ("test", data.test)):
            assert found is not None and found.source == str(new / side / parallel_text[0].name)
        said = dragoman("compare", moved, moved, "--samples", "10")
        assert said.code == 0, said.err
    # What is not given is named, and so are links that have changed.
    said = dragoman("resume", run, "--text", new / "dev", "--text", new / "test")
    assert said.code == 1 and "begun with my.links, but --text has no file of that name" in said.err
    (new / "train" / "my.links").rename(new / "hidden")
    shutil.copytree(new, old)
    said = dragoman("resume", run)
    assert said.code == 1 and 'as links = "../old/train/my.links"' in said.err
    links.write_text("0-1\n" * len(lines[0]), encoding="utf-8")
    shutil.rmtree(new)
    said = dragoman("resume", run, "--text", shutil.move(old, new))
    assert said.code == 1 and "is not the text that" in said.err


def test_a_run_that_was_moved_away_from_its_text_is_measured_on_its_own_copy(
    parallel_text: tuple[Path, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    text = [Path(shutil.copy(path, tmp_path / path.name)) for path in parallel_text]
    recipe, _ = recipe_of([*map(str, text)], changes=[*TINY, "training.updates=1"])
    run = trained_run(recipe, tmp_path / "run")
    here, name = own_test_set(run)
    moved = Run.open(shutil.copytree(run.folder, tmp_path / "elsewhere" / "far" / "run"))
    for path in text:
        path.unlink()
    there, same = own_test_set(moved)
    assert [(p.source, p.target) for p in there] == [(p.source, p.target) for p in here]
    assert same == name and len(there) > 9
    said = dragoman("evaluate", moved.folder, "--set", "max_length=3", "--beam", "1")
    assert said.code == 0 and f"{len(there)} sentences" in said.out


def test_sides_that_are_swapped_are_told_before_they_are_measured(
    tiny_run: Path, parallel_text: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    run = Run.open(tiny_run)
    EvaluationSet.of(run, parallel_text)
    assert not caplog.records
    EvaluationSet.of(run, parallel_text[::-1])
    (record,) = caplog.records
    assert "the sides are in the wrong order" in record.getMessage()


def test_a_file_in_place_of_a_run_is_told_where_runs_are(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"a run is a folder, such as {re.escape(str(tiny_run))}"):
        Run.open(tiny_run / "recipe.toml")
    (tmp_path / "my.en").write_text("The dog.\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"a run is a folder, which dragoman train or demo creates"):
        Run.open(tmp_path / "my.en")
