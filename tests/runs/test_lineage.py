"""What a run has learned from through the runs that it was begun from, and who is told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import Dragoman
from recipe_of_files import recipe_of
from row_files import write_wav
from tiny_tasks import tiny_recipe_of
from trained_run import trained_run

from dragoman.base.errors import RunError
from dragoman.runs.corpora import plain_pairs
from dragoman.runs.lineage import record_learned, texts_of_run
from dragoman.runs.recipe.recipe import Recipe
from dragoman.studies.comparison import compare
from dragoman.studies.systems import ComparisonRequest
from dragoman.tasks.catalogue import Run
from dragoman.tasks.training import train

pytestmark = pytest.mark.system

SHORT = ("training.updates=1", "training.validate_every=0")


def split_anew(recipe: Recipe, dev: float, test: float) -> Recipe:
    return recipe.change([f"data.split.dev={dev}", f"data.split.test={test}"])


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run, Run]:
    """A translation, one begun from it that holds out some of its text, and one begun from that."""
    folder = tmp_path_factory.mktemp("chain")
    recipe = tiny_recipe_of("translation", folder, *SHORT)
    first = trained_run(split_anew(recipe, 0.0, 0.1), folder / "first")
    further = split_anew(recipe, 0.05, 0.4)
    second = trained_run(further, folder / "second", start_from=first)
    third = trained_run(further, folder / "third", start_from=second)
    return first, second, third


def test_a_chain_of_runs_is_followed_when_text_and_bases_are_gone(
    chain: tuple[Run, Run, Run], dragoman: Dragoman, tmp_path: Path
) -> None:
    first, second, third = chain
    test = plain_pairs(third.recipe, "test")
    learned = {pair.source for pair in plain_pairs(first.recipe, "train")}
    seen = sum(pair.source in learned for pair in test)
    assert 30 < seen < len(test)
    notes = third.notes()
    assert [base["name"] for base in notes["bases"]] == ["second", "first"]
    assert [b["weights"] for b in notes["bases"]] == [second.weights_hash, first.weights_hash]
    assert notes["bases"][1]["corpora"][0]["sha256"] == first.notes()["corpora"][0]["sha256"]
    who = "first, on which third is based,"
    told = f"{who} has learned from {seen} of the {len(test)} test"
    assert told in notes["overlap"] and "second, the run" not in notes["overlap"]
    # Alone, far from its text and from the runs before it.
    run = shutil.copytree(third.folder, tmp_path / "deep" / "er" / "third")
    shutil.copytree(first.folder, tmp_path / "first")
    said = dragoman("evaluate", run, "--set", "max_length=3", "--beam", "1")
    assert said.code == 0 and told in " ".join(said.err.split())
    found = compare(ComparisonRequest([run, run], samples=10)).compared
    assert any(told in warning for warning in found.warnings)
    assert found.unseen is not None and found.unseen.sentences == len(test) - seen
    assert not any("not known" in warning for warning in found.warnings)


def test_new_runs_say_what_their_bases_have_learned(
    chain: tuple[Run, Run, Run], tmp_path: Path, dragoman: Dragoman
) -> None:
    """Of another task, by their parts: texts of either side."""
    first, *_ = chain
    (corpus,) = first.recipe.data.train
    known = {pair.source for pair in plain_pairs(first.recipe, "train")}
    recipe, _ = recipe_of(
        [corpus.source], task="masked", start_from=first, take="encoder",
        changes=[*SHORT, "data.split.test=0.2"],
    )  # fmt: skip
    said: list[str] = []
    train(
        recipe, tmp_path / "filler", start_from=first, take="encoder",
        say=said.append, display=False, measure=False,
    )  # fmt: skip
    run = Run.open(tmp_path / "filler")
    test = plain_pairs(run.recipe, "test")
    lines = [pair.target.split("\n") for pair in test]  # read as passages of lines
    seen = sum(2 * sum(line in known for line in one) >= len(one) for one in lines)
    assert max(map(len, lines)) > 2 and seen > 0
    who = "first, on which filler is based,"
    told = f"{who} has learned from {seen} of the {len(test)} test texts"
    assert any(told in line for line in said)
    found = dragoman("evaluate", run.folder)
    assert found.code == 0 and told in " ".join(found.err.split())
    # And back: lines of which the base has read passages.
    back, _ = recipe_of(
        [corpus.source, str(corpus.target)], task="translation", start_from=run, take="encoder",
        changes=[*SHORT, "data.split.test=0.3"],
    )  # fmt: skip
    new = trained_run(back, tmp_path / "back", start_from=run, take="encoder")
    known = {line for pair in plain_pairs(run.recipe, "train") for line in pair.target.split("\n")}
    test = plain_pairs(new.recipe, "test")
    seen = sum(pair.source in known for pair in test)
    who = "filler, on which back is based,"
    told = f"{who} has learned from {seen} of the {len(test)} test texts"
    assert 10 < seen < len(test) and told in new.notes()["overlap"]
    # The translation that all of it began with is found too.
    assert "first, on which back is based, has learned from" in new.notes()["overlap"]


def test_a_decoder_has_learned_what_its_base_wrote(
    chain: tuple[Run, Run, Run], tmp_path: Path
) -> None:
    first, *_ = chain
    (corpus,) = first.recipe.data.train
    other = tmp_path / "other.fr"
    other.write_text("".join(f"phrase numéro {n}\n" for n in range(200)), "utf-8")
    recipe, _ = recipe_of(
        [str(other), str(corpus.target)], task="translation", start_from=first, take="decoder",
        changes=[*SHORT, "data.split.test=0.2", "text.vocabulary=400"],
    )  # fmt: skip
    new = trained_run(recipe, tmp_path / "new", start_from=first, take="decoder")
    written = {pair.target for pair in plain_pairs(first.recipe, "train")}
    test = plain_pairs(new.recipe, "test")
    seen = sum(pair.target in written for pair in test)
    who = "first, on which new is based,"
    told = f"{who} has learned from {seen} of the {len(test)} test texts"
    assert 10 < seen < len(test) and told in new.notes()["overlap"]


def test_a_base_without_hashes_is_named_as_unknown(
    chain: tuple[Run, Run, Run], tmp_path: Path
) -> None:
    first, second, _ = chain
    old = Run.open(shutil.copytree(first.folder, first.folder.parent / "old"))
    shutil.rmtree(old.folder / "learned")
    new = trained_run(second.recipe, tmp_path / "new", start_from=old)
    told = "old, on which new is based, has learned from any of the"
    assert told in new.notes()["overlap"]
    assert "has no hashes of its texts" in new.notes()["bases"][0]["unknown"]
    found = compare(ComparisonRequest([new.folder, new.folder], samples=10)).compared
    assert any("has no hashes of its texts" in warning for warning in found.warnings)


def test_damaged_hashes_are_named(chain: tuple[Run, Run, Run], tmp_path: Path) -> None:
    run = Run.open(shutil.copytree(chain[2].folder, tmp_path / "run"))
    path = run.folder / "learned" / "0-source"
    path.write_bytes(path.read_bytes()[:-3])
    assert "0-source is damaged" in texts_of_run(run).unknown
    (run.folder / "data.json").write_text('{"bases": [{"name": 3}]}', "utf-8")
    with pytest.raises(RunError, match="damaged"):
        run.notes()


def test_labels_that_all_texts_share_are_no_overlap(tmp_path: Path) -> None:
    """Only texts that training has as well are counted, and by lines of the dev set."""
    recipe = tiny_recipe_of("classification", tmp_path, *SHORT)
    run = trained_run(recipe, tmp_path / "run")
    learned = {pair.source for pair in plain_pairs(run.recipe, "train")}
    assert not any(pair.source in learned for pair in plain_pairs(run.recipe, "test"))
    assert "overlap" not in run.notes()
    (corpus,) = recipe.data.train
    rows = Path(corpus.source).read_text("utf-8").splitlines()
    known = next(row for row in rows if any(text in row for text in learned))
    label = known.partition("\t")[0]
    (tmp_path / "dev.tsv").write_text(f"{known}\n{label}\tnobody has read this\n", "utf-8")
    dev = corpus.model_copy(update={"source": str(tmp_path / "dev.tsv")})
    held = recipe.model_copy(update={"data": recipe.data.model_copy(update={"dev": dev})})
    notes = trained_run(held, tmp_path / "held").notes()
    assert notes["overlap"].startswith("of 2 dev texts, 1 is also in training (lines 1, …)")


def test_numbers_that_several_recordings_say_are_no_overlap(tmp_path: Path) -> None:
    rows = {"train": range(40), "dev": range(40, 44), "test": range(44, 50)}
    for name, numbers in rows.items():
        lines = ["file,text,speaker"]
        for n in numbers:
            write_wav(tmp_path / f"{n}.wav", [(0 if n == 49 else n) / 100] * 400)
            lines.append(f"{n}.wav,{'Read twice' if n in (1, 48) else n % 5},{name}")
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    train, dev, test = (str(tmp_path / f"{name}.csv") for name in rows)
    recipe, _ = recipe_of([train], dev=[dev], test=[test], learns=False)
    notes = record_learned(recipe, tmp_path, [], None, print)
    assert notes["overlap"] == (
        "of 6 test pairs, training also has the source of 1, the target of 2 and the whole pair of "
        "1 (lines 6, 7, …): scores on test may flatter"
    )
