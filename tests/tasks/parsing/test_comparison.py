"""Parsers beside each other: the figures of each, the test of their difference, what is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from command_line import Dragoman
from tiny_treebank import treebank, write_treebank
from untrained_run import untrained_run

from dragoman.base.errors import DataError, RunError
from dragoman.forms.tree import Tree
from dragoman.metrics.significance import compare_statistics
from dragoman.studies.comparison import compare_runs
from dragoman.studies.systems import ComparisonRequest
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.parsing import evaluation
from dragoman.tasks.parsing.evaluation import ParsingEvaluation, parse_statistics, trees_in
from dragoman.tasks.parsing.metrics import Parseval, RightBranching, ScoredSentence, score_parse
from dragoman.tasks.parsing.parser import Parse, Parser

pytestmark = pytest.mark.system

SMALL = ("model.ffn_dim=16", "model.attention.num_heads=2", "search.beam=1")
TREES = [*treebank(24, seed=2), Tree("S", (Tree(".", word="."),))]


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trees of several lengths, one of them of punctuation alone."""
    return write_treebank(tmp_path_factory.mktemp("gold") / "gold.mrg", TREES)


def parser(folder: Path, width: int, *changes: str) -> Path:
    """A run of random weights, which are others where the width is another."""
    folder.mkdir(parents=True)
    changes = (*SMALL, f"model.model_dim={width}", *changes)
    return untrained_run(folder, *changes, recipe_name="demo-trees")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One without tags, one with them."""
    folder = tmp_path_factory.mktemp("runs")
    return parser(folder / "plain", 16, "trees.tags=none"), parser(folder / "tagged", 32)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parsers as if they had learned something, the wider ones more: some trees are right."""
    branching = RightBranching(TREES)
    right = {" ".join(tree.words): tree for tree in TREES}

    def each(self: Parser, sentences: Iterable[str]) -> Iterator[Parse]:
        draw = random.Random(self.run.recipe.model.model_dim)
        wrong = 12 / self.run.recipe.model.model_dim
        for sentence in sentences:
            tree = right[sentence]
            yield Parse(branching.parse(tree.words) if draw.random() < wrong else tree, 0.0, ())

    monkeypatch.setattr(Parser, "each", each)


@pytest.mark.slow  # two parsers are trained and measured
@pytest.mark.usefixtures("trained")
def test_each_has_the_figures_that_evaluate_gives_it(
    runs: tuple[Path, Path], gold: Path, dragoman: Dragoman
) -> None:
    options = "--source", gold, "--samples", "50"
    said = dragoman("compare", *runs, *options, "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    alone = [ParsingEvaluation()(Run.open(run), [gold]) for run in runs]
    for number, one in enumerate(alone):
        scores = found["scores"][number]
        assert scores.pop("system") == runs[number].name
        assert scores == pytest.approx(one.scores)
        for metric, name in (("F1", "f1"), ("exact", "exact")):
            tested = found["metrics"][metric]["systems"][number]
            assert tested["value"] == pytest.approx(one.scores[name])
        for most, matched in one.counts.by_length.items():
            assert found["f1_by_length"][str(most)][number] == pytest.approx(matched.f1)
        assert 5 < one.scores["f1"] < 95
    assert "tags" not in found["scores"][0] and "tags" in found["scores"][1]
    assert len(found["f1_by_length"]) == len(alone[0].counts.by_length) > 1
    assert found["metrics"]["F1"]["systems"][1]["p_value"] is not None
    table = dragoman("compare", *runs, *options).out
    row = {line.split()[0]: line.split()[1:] for line in table.splitlines() if line.strip()}
    assert row["tags"] == ["-", f"{alone[1].scores['tags']:.2f}"]
    assert row["precision"] == [f"{one.scores['precision']:.2f}" for one in alone]
    first = min(alone[0].counts.by_length)
    assert row["1-10"][1:3] == [f"{one.counts.by_length[first].f1:.2f}" for one in alone]


@pytest.mark.slow  # two trainings; test_seeds.py has them for translation
@pytest.mark.usefixtures("trained")
def test_runs_of_several_seeds_are_one_system(
    runs: tuple[Path, Path], gold: Path, tmp_path: Path
) -> None:
    several = tmp_path / "several"
    parser(several / "seed-1", 16, "trees.tags=none")
    parser(several / "seed-2", 24, "seed=2", "trees.tags=none")
    compared = compare_runs(ComparisonRequest([runs[0], several], gold, samples=20))
    alone, score = compared.quality.comparisons[0].scores
    one, other = score.runs
    assert one != other and one == alone.value
    assert compared.details["scores"][1]["f1"] == pytest.approx((one + other) / 2)
    assert score.value == pytest.approx((one + other) / 2)


def test_the_test_draws_sentences_with_all_their_brackets() -> None:
    """As scoring each drawn set of parses as a whole, one after another."""
    draw, samples = random.Random(3), 40
    branching = RightBranching(TREES)

    def parses(wrong: float) -> list[ScoredSentence]:
        return [
            score_parse(one, branching.parse(one.words) if draw.random() < wrong else one)
            for one in TREES
        ]

    given = parses(0.8), parses(0.4)
    found = compare_statistics(
        ["a", "b"], parse_statistics([[one] for one in given]), samples=samples, seed=7
    )
    chosen = np.random.default_rng(7).choice(len(TREES), (samples, len(TREES)))
    for comparison, name in zip(found.comparisons, ("f1", "exact"), strict=True):
        values = [score.value for score in comparison.scores]
        assert values == pytest.approx([Parseval.of(one).scores[name] for one in given])
        drawn = np.array([
            [Parseval.of(one[place] for place in row).scores[name] for one in given]
            for row in chosen
        ])  # fmt: skip
        assert comparison.scores[1].mean == pytest.approx(drawn[:, 1].mean())
        apart = np.abs(drawn[:, 1] - drawn[:, 0])
        beyond = np.count_nonzero(apart - apart.mean() > abs(values[1] - values[0]))
        assert comparison.scores[1].p_value == pytest.approx((beyond + 1) / (samples + 1))
    assert found.sentences == len(TREES)


@pytest.mark.usefixtures("trained")
def test_a_run_is_no_other_than_itself(runs: tuple[Path, Path], gold: Path) -> None:
    found = compare_runs(
        ComparisonRequest([runs[0], runs[0]], gold, test="randomisation", samples=20)
    )
    for comparison in found.quality.comparisons:
        assert comparison.scores[1].p_value == 1


def test_what_cannot_be_compared_is_said(
    runs: tuple[Path, Path], gold: Path, dragoman: Dragoman, tmp_path: Path
) -> None:
    other = parser(tmp_path / "other", 16)
    recipe = Run.open(other).recipe.model_dump(mode="json", exclude_none=True)
    files = {"source": str(gold), "format": "trees"}
    recipe["data"] = {"train": [files], "test": files}
    Recipe.parse(recipe).save(other / "recipe.toml")
    labelling = tmp_path / "labels"
    labelling.mkdir()
    small = "model.model_dim=16", "model.ffn_dim=16", "model.attention.num_heads=2"
    untrained_run(labelling, *small, recipe_name="demo-labels")
    for wrong, words in (
        ((runs[0], other), f"{other} has another test set (gold.mrg, 25 trees) than {runs[0]}"),
        ((runs[0], other, "--source", tmp_path / "none.mrg"), "none.mrg does not exist"),
        ((runs[0],), "needs two systems"),
        ((runs[0], gold), f"{gold} is a file"),
        ((*runs, "--source", gold, "--reference", gold), "Use only --source"),
        ((*runs, "--to", tmp_path / "x.html"), "Leave it out"),
        ((*runs, "--test", "t"), "use bootstrap or randomisation"),
        ((runs[0], labelling, "--source", gold), "only runs of the same task"),
    ):
        refused = dragoman("compare", *wrong)
        assert refused.code == 1 and words in refused.err, (wrong, refused)
        assert "Traceback" not in refused.err and not refused.out


@pytest.mark.usefixtures("trained")
def test_runs_with_one_test_set_need_not_be_told_which(
    runs: tuple[Path, Path], gold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo's, in whose place stand the trees of a file."""
    monkeypatch.setattr(evaluation, "own_test_set", lambda run: (trees_in(gold), "the demo"))
    found = compare_runs(ComparisonRequest(runs, samples=10))
    assert found.test == "the demo" and found.quality.sentences == len(TREES)


def test_errors_are_those_of_a_comparison(gold: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="needs two systems"):
        compare_runs(ComparisonRequest([tmp_path], gold))
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="neither a run nor a folder of runs"):
        compare_runs(ComparisonRequest([tmp_path / "empty"] * 2, gold))
