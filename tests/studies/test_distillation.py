"""A student learns what its teachers translate; its steps can be continued."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from command_line import Dragoman
from recipe_of_files import recipe_of
from sacrebleu import sentence_chrf
from tiny_recipe import TINY

from dragoman.base.atomic import write_text
from dragoman.base.errors import RunError
from dragoman.data.files.corpora import read_pairs
from dragoman.runs.corpora import plain_corpora, plain_pairs
from dragoman.runs.prepare import prepare
from dragoman.runs.run import RECIPE, VERDICT, WEIGHTS
from dragoman.sizing.options import DistilOptions
from dragoman.studies.distillation import (
    begin_distilling,
    closest,
    go_on_distilling,
    student_recipe,
)
from dragoman.studies.steps import is_begun, refuse_begun
from dragoman.tasks import teachers as teaching
from dragoman.tasks.catalogue import Run
from dragoman.tasks.report import write_report
from dragoman.tasks.shared.examples import Pairs
from dragoman.tasks.teachers import predictions_of
from dragoman.tasks.training import train

UPDATES = "training.updates=4"


def quietly(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def target_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """my.de, the translations of my.en beside it: 300 pairs of short lines."""
    folder, draw = tmp_path_factory.mktemp("text"), random.Random(1)
    lines = ["".join(f" w{draw.randrange(30)}" for _ in range(draw.randrange(2, 5)))[1:] + "\n"
             for _ in range(300)]  # fmt: skip
    (folder / "my.en").write_text("".join(lines), encoding="utf-8")
    (folder / "my.de").write_text("".join(lines).replace("w", "q"), encoding="utf-8")
    return folder / "my.de"


@pytest.fixture(scope="module")
def teachers(target_file: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs that differ by their seed. They have learned where translations end."""
    folder = tmp_path_factory.mktemp("teachers")
    pairs = [str(target_file.with_suffix(".en")), str(target_file)]
    changes = ("text.vocabulary=285", "training.updates=60", "training.validate_every=60")
    recipe, _ = recipe_of(pairs, changes=[*TINY, *changes, "data.split.dev=0.1"])
    for seed in (1, 2):
        seeded = recipe.change([f"seed={seed}"])
        train(seeded, folder / f"seed-{seed}", say=quietly, display=False, measure=False)
    return [folder / "seed-1", folder / "seed-2"]


def begin(folder: Path, teachers: list[Path], **options: object) -> list[str]:
    chosen = DistilOptions(runs=teachers, **{"set_": [UPDATES], **options})
    said: list[str] = []
    recipe = student_recipe([Run.open(teacher) for teacher in teachers], chosen)
    begin_distilling(recipe, folder, chosen, said.append)
    return said


@pytest.fixture(scope="module")
def student(teachers: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("distilled") / "one"
    said = begin(
        folder, teachers, n_best=3, real_weight=2.0, set_=[UPDATES, "model.model_dim=16"], seed=5
    )
    assert [line.partition(":")[0] for line in said[:2]] == ["step 1", "step 2"]
    assert "lines with 2 teachers" in said[0] and said[2].startswith("together about")
    assert is_begun(folder)
    outcome = go_on_distilling(folder, quietly, "")
    assert outcome is not None and outcome.reason == "finished"
    return folder


def test_it_learns_the_translation_that_is_closest_to_the_reference(
    student: Path, teachers: list[Path]
) -> None:
    real, synthetic = Run.open(student).recipe.data.train
    (corpus,) = plain_corpora(Run.open(teachers[0]).recipe, "train")
    pairs, written = list(corpus.pairs), list(read_pairs(synthetic))
    assert [pair.source for pair in pairs] == [pair.source for pair in written]
    first, second = map(Run.open, teachers)
    together = first.open_predictor(ensemble=[second])
    choices = 0
    for pair, own in list(zip(pairs, written, strict=True))[:12]:
        best = together(pair.source, n_best=3)
        texts = [choice.text for choice in (best, *best.alternatives) if choice.finished]
        scores = [sentence_chrf(text, [pair.target]).score for text in texts]
        assert own.target == (texts[scores.index(max(scores))] if texts else "")
        choices += len(set(scores)) > 1
    assert choices
    assert (real.weight, synthetic.weight, synthetic.tag) == (2.0, 1.0, "")


def test_the_student_is_a_run_of_its_own_size_with_the_text_of_its_teachers(
    student: Path, teachers: list[Path]
) -> None:
    run, first = Run.open(student), Run.open(teachers[0])
    assert (run.recipe.model.model_dim, first.recipe.model.model_dim) == (16, 32)
    assert run.recipe.seed == 5
    assert run.source_text.pieces(range(285)) == first.source_text.pieces(range(285))
    assert [Path(teacher.run) for teacher in run.recipe.data.teachers] == teachers
    for side in ("dev", "test"):  # nothing is held out of what the teachers wrote
        assert plain_pairs(run.recipe, side) == plain_pairs(first.recipe, side)
    notes = run.notes()
    assert 0 < notes["synthetic"] < notes["pairs"]["train"]
    assert [base["name"] for base in notes["bases"]] == [path.name for path in teachers]
    write_report(run, attention=())
    card = (student / "card.md").read_text(encoding="utf-8")
    assert "/seed-1, teachers" in card and "/seed-2\n" in card.partition("- teachers: ")[2]


def cut(whole: Path, to: Path) -> bytes:
    """Copy a student as it was when half of the lines were translated -> all of them."""
    shutil.copytree(whole / "steps", to / "steps")
    written = to / "steps" / "teachers.tsv"
    content = written.read_bytes()
    lines = content.splitlines(keepends=True)
    begun = b"kept\tkept\n" + b"".join(lines[1:150]) + lines[150][:4]
    written.with_name("teachers.tsv.part").write_bytes(begun)
    written.unlink()
    return b"kept\tkept\n" + b"".join(lines[1:])


def test_it_goes_on_after_the_last_whole_line(student: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    whole = cut(student, copy)
    assert is_begun(copy)
    with pytest.raises(RunError, match="already begun"):
        refuse_begun(copy)

    def fail(line: str) -> None:
        if "to train on" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go_on_distilling(copy, fail, "")
    assert [path.name for path in copy.iterdir()] == ["steps"]
    assert (copy / "steps" / "teachers.tsv").read_bytes() == whole
    go_on_distilling(copy, quietly, "")
    assert (copy / WEIGHTS).is_file() and not is_begun(copy)


def test_other_text_and_other_teachers_are_not_mixed(
    student: Path, teachers: list[Path], target_file: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    cut(student, copy)
    for path in (target_file, teachers[1] / WEIGHTS):
        content = path.read_bytes()
        path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
        try:
            with pytest.raises(RunError, match="has changed since"):
                go_on_distilling(copy, quietly, "")
        finally:
            path.write_bytes(content)
    assert (copy / "steps" / "teachers.tsv.part").stat().st_size > 0


def test_the_first_of_the_closest_texts_is_taken() -> None:
    reference = "The cat eats the fish."
    texts = ["", "The dog.", "The cat eats fish.", "The cat eats fish.", "A cat"]
    scores = [sentence_chrf(text, [reference]).score for text in texts]
    assert closest(texts, reference) == texts[scores.index(max(scores))] == texts[2]
    assert closest([""], reference) == ""
    assert closest(["b", "a"], "c") == "b"


def test_the_steps_share_the_minutes_and_weak_teachers_are_named(
    teachers: list[Path], tmp_path: Path
) -> None:
    teacher = tmp_path / "teacher"
    shutil.copytree(teachers[0], teacher)
    write_text(teacher / VERDICT, '{"said": ["It writes nothing."]}')
    warning, *said = begin(tmp_path / "run", [teacher], minutes=0.1)
    assert warning == f"warning: {teacher}: It writes nothing."
    assert "with 1 teacher: about" in said[0]
    assert said[-1] == "together about 6 seconds"


def test_runs_that_cannot_teach_are_refused(
    teachers: list[Path], run_of: Callable[..., Run], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    for other, told in (
        (tmp_path / "none", "there is no run folder"),
        (run_of("language-model", "text", "decoder").folder, "which cannot teach a translator"),
        (run_of("translation", "frames", "transformer").folder, "which reads files"),
        (run_of("translation", "text", "transformer").folder, "have different target voc"),
        (teachers[0] / "training" / "..", "given twice"),
    ):
        with pytest.raises(RunError, match=told):
            begin(folder, [teachers[0], other])
    moved = tmp_path / "moved"
    shutil.copytree(teachers[0], moved)
    recipe = (moved / RECIPE).read_text(encoding="utf-8")
    (moved / RECIPE).write_text(recipe.replace("my.de", "gone.de"), encoding="utf-8")
    with pytest.raises(RunError, match=r"gone\.de does not exist"):
        begin(folder, [moved])
    generated = recipe.partition("[[data.train]]")[0].replace("[data]", '[data]\nembedded = "demo"')
    with pytest.raises(RunError, match="has learned from text that dragoman generates"):
        begin(folder, [_with_recipe(moved, generated)])
    with pytest.raises(RunError, match="Use the same section text"):
        begin(folder, teachers, set_=["text.vocabulary=500"])
    assert not folder.exists()
    (tmp_path / "moved" / "other.txt").write_text("x", encoding="utf-8")
    with pytest.raises(RunError, match="is already a run"):
        begin(moved, teachers)


def _with_recipe(folder: Path, text: str) -> Path:
    (folder / RECIPE).write_text(text, encoding="utf-8")
    return folder


def test_predictions_are_kept_to_the_bit(student: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked for first, and however the text is kept."""
    recipe = Run.open(student).recipe
    prepared = prepare(recipe, student, quietly)
    store, cpu = prepared.train, torch.device("cpu")
    pairs = Pairs(store, recipe, prepared.forms)
    said = list[str]()
    first, second = (predictions_of(recipe, pairs, store, cpu, said.append) for _ in range(2))
    assert not said  # a run that has ended asks for no batch
    monkeypatch.setattr(teaching, "MOST_KEPT", 1)
    anew = predictions_of(recipe, pairs, store, cpu, quietly)
    batches = [pairs.batch(1, ids) for ids in ([3, 40, 5], [200], [5, 3], [41, 4, 40])]
    for batch in batches[::-1]:
        second(batch)
    drawn = torch.get_rng_state()
    for batch in batches:
        kept, predicted = first(batch), anew(batch)
        assert torch.equal(torch.get_rng_state(), drawn), "an update draws as without teachers"
        assert all(map(torch.equal, kept, second(batch)))
        assert torch.equal(kept.tokens, predicted.tokens)
        torch.testing.assert_close(
            kept.probabilities, predicted.probabilities, atol=1e-3, rtol=1e-3
        )
    assert [line.endswith(f"predict {len(store):,} pairs once") for line in said] == [True, True]


@pytest.mark.system
def test_the_command_line_distils_and_resumes(
    dragoman: Dragoman, teachers: list[Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    said = dragoman("distil", *teachers, "--to", run, "--set", UPDATES)
    assert said.code == 0, said.err
    assert "step 2:" in said.out and "report:" in said.out
    resumed = tmp_path / "resumed"
    cut(run, resumed)
    said = dragoman("distil", *teachers, "--to", resumed)
    assert said.code == 1 and "already begun" in said.err
    said = dragoman("resume", resumed)
    assert said.code == 0 and "step 1:" in said.out, said.err
    wrong = dragoman("distil", *teachers, "--minutes", "1", "--epochs", "1")
    assert wrong.code == 2 and "not both" in wrong.err
