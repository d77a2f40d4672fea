"""Evaluation of a parser, during training and of a finished run.

Parses are scored against reference trees as EVALB does (``metrics.py``). Tags are scored only if
they are learned (``trees.tags``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from dragoman.base.errors import DataError, DragomanError
from dragoman.base.wording import plural
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.form import Pair
from dragoman.forms.tree import Tree
from dragoman.forms.tree_form import tree_of
from dragoman.metrics.significance import MeasuredSystem
from dragoman.pictures.figure import Cell
from dragoman.pictures.labels import plain_table
from dragoman.pictures.records import TreePair
from dragoman.runs.evaluation_set import own_test_set
from dragoman.runs.run import Run
from dragoman.tasks.parsing.metrics import (
    LENGTHS,
    SHORT,
    Parseval,
    ScoredSentence,
    differing_brackets,
    exact_shares,
    f1s,
    length_name,
    score_parse,
    statistics_of,
)
from dragoman.tasks.parsing.parser import Parse, Parser
from dragoman.tasks.parsing.sizes import label_ends_of
from dragoman.tasks.shared.evaluation import (
    EvaluationRequest,
    ExampleSet,
    PairsEvaluation,
    SearchReport,
    clock,
    sign,
)
from dragoman.tasks.shared.runtime import ComparedRuns
from dragoman.tasks.shared.validation import PairsValidation

logger = logging.getLogger("dragoman")

_COUNTED = (
    "Labelled brackets as EVALB counts them (COLLINS.prm): without punctuation and the bracket "
    "above all, ADVP = PRT."
)
SIGNATURE = f"EVALB:COLLINS|punctuation:reference's tags|top:ignored|short:{SHORT}"


class ParsingValidation(PairsValidation):
    """Scores on dev: ``loss`` (nats per symbol) and ``perplexity`` on all of it; ``f1``,
    ``precision``, ``recall``, ``exact`` and ``tags`` of full searches on a part of it, in
    percent."""

    without = "longer than plan.max_source, plan.max_target or the positions of the model"

    def search(self, pairs: Sequence[Pair]) -> tuple[dict[str, float], Sequence[str]]:
        parser, settings = Parser.over(self.engine()), self.search_settings()
        parses = list(parser.each([pair.source for pair in pairs], settings))
        scores = score_all(pairs, parses).scores
        named = {name: scores[name] for name in ("f1", "precision", "recall", "exact", "tags")}
        return named, [parse.text for parse in parses]


def score_all(pairs: Sequence[Pair], parses: Sequence[Parse]) -> Parseval:
    """Score all parses together against the trees of their pairs."""
    return Parseval.of(score_each(pairs, parses))


def score_each(pairs: Sequence[Pair], parses: Sequence[Parse]) -> list[ScoredSentence]:
    """Score each parse against the tree of its pair."""
    return [
        score_parse(tree_of(pair.target), parse.tree)
        for pair, parse in zip(pairs, parses, strict=True)
    ]


@dataclass(frozen=True)
class ParsingReport(SearchReport):
    """The result of a run on the sentences of some trees."""

    counts: Parseval
    with_tags: bool
    parses: Sequence[Parse]

    @property
    def scores(self) -> dict[str, float]:
        """Return the scores by name, in percent."""
        scores = dict(self.counts.scores)
        if not self.with_tags:
            del scores["tags"]
        return scores

    def table(self) -> str:
        """Return the whole report as plain text."""
        skipped = f"; {self.counts.skipped:,} of punctuation alone" if self.counts.skipped else ""
        amount = self.amount(f"{plural(self.counts.sentences, 'sentence')}{skipped}")
        notes = [self.counts.tables(), "", _COUNTED]
        return self.lines(amount, self.scores, notes)

    def details(self) -> dict[str, Any]:
        return {
            "sentences": len(self.pairs),
            "scores": sign(self.scores, SIGNATURE),
            "parseval": self.counts.to_dict(),
        }


class ParsingEvaluation(PairsEvaluation[ParsingReport]):
    """Parses the sentences of a file or folder of trees, and scores the parses."""

    wanted = "are no trees", "a file of them", "test.mrg"
    one_of = "trees"

    def corpus(self, run: Run, files: Sequence[Path]) -> CorpusSettings:
        return _trees_at(run, files[0])

    def report(self, asked: EvaluationRequest, examples: ExampleSet) -> ParsingReport:
        run, search, pairs = asked.run, asked.search, examples.pairs
        parser = Parser(run, asked.settings(longest=_MAX_TOKENS), search)
        logger.info("%s parses %s", run.folder, plural(len(pairs), "sentence"))
        parses, seconds = clock(lambda: parser(pair.source for pair in pairs))
        return ParsingReport(
            *asked.about(examples.name, seconds),
            f"beam {search.beam}, length penalty {search.length_penalty}", parser.description,
            pairs, [parse.text for parse in parses],
            score_all(pairs, parses), not parser.no_tag, parses,
        )  # fmt: skip


def trees_in(path: Path, like: Run | None = None) -> list[Pair]:
    """Read the trees of a file or a folder, and their words. ``like``: the run whose rule for the
    ends of labels is used. Errors: ``DataError``."""
    return list(read_pairs(_trees_at(like, path)))


def _trees_at(like: Run | None, path: Path) -> CorpusSettings:
    ends = label_ends_of(like.recipe if like is not None else None)
    return CorpusSettings(source=str(path), format="trees", label_ends=ends)


def tree_pair(reference: str, parse: str, no_tag: str) -> TreePair | None:
    """The reference and the parse for a drawing; None if one of them is not a whole tree, such as a
    long sentence in the samples of a run. ``no_tag``: see ``TreeForm.no_tag``."""
    try:
        wanted, given = tree_of(reference), tree_of(parse)
    except DataError:
        return None
    missed, wrong = differing_brackets(wanted, given)
    return TreePair(_set_tag(wanted, no_tag) if no_tag else wanted, given, missed, wrong, no_tag)


def _set_tag(tree: Tree, tag: str) -> Tree:
    """The tree with this tag on every word."""
    if tree.is_leaf:
        return replace(tree, label=tag)
    return replace(tree, children=tuple(_set_tag(child, tag) for child in tree.children))


_MAX_TOKENS = 10_000
"""The most tokens of a sentence: high enough to leave none out."""


_BESIDE = {
    "precision": "precision",
    "recall": "recall",
    "tags": "tags",
    "f1_40": f"F1 (<= {SHORT})",
    "exact_40": f"exact (<= {SHORT})",
}
"""Scores without a significance test in a comparison, and their titles in its table."""


def compare(
    systems: Mapping[str, Sequence[Run]], source: Path | None, references: Sequence[Path]
) -> ComparedRuns:
    """Compare parsers on the same trees by labelled F1 and exact parses, that is by brackets only:
    some runs may have learned tags, others not.

    F1 is computed over the brackets of all sentences, so the test draws sentences with the counts
    of their brackets: matched, in the reference and in the parse (``metrics.py``). ``source``: a
    file or folder of trees; without it, the test set of the runs' recipes, which must be the same.
    """
    if references:
        raise DragomanError("trees contain their sentences. Use only --source")
    runs = [run for system in systems.values() for run in system]
    pairs, test = _own_trees(runs) if source is None else (trees_in(source, runs[0]), source.name)
    report, trees = ParsingEvaluation().report, ExampleSet(pairs, test)
    evaluated = {
        name: [report(EvaluationRequest(run), trees) for run in system]
        for name, system in systems.items()
    }
    sentences = [[score_each(pairs, run.parses) for run in system] for system in evaluated.values()]
    outputs = [system[0].outputs() for system in evaluated.values()]
    tables, details = _not_tested(evaluated)
    return ComparedRuns(
        test, pairs, parse_statistics(sentences), outputs,
        guessed=("f1",), tables=tables, details=details,
    )  # fmt: skip


def _not_tested(
    evaluated: Mapping[str, Sequence[ParsingReport]],
) -> tuple[list[str], dict[str, Any]]:
    """The scores without a significance test and F1 by length, as means over the runs of each
    system: as tables, and as plain values for JSON."""
    (first, *_), *_ = evaluated.values()
    scores = [
        {name: fmean(run.scores[name] for run in system) for name in system[0].scores}
        for system in evaluated.values()
    ]
    f1_by_length = {
        most: [
            100 * fmean(run.counts.by_length[most].f1 for run in system)
            for system in evaluated.values()
        ]
        for most in LENGTHS
        if most in first.counts.by_length
    }
    rows: list[list[Cell]] = [
        [title, *(f"{means[name]:.2f}" if name in means else "-" for means in scores)]
        for name, title in _BESIDE.items()
        if any(name in means for means in scores)
    ]
    lengths: list[list[Cell]] = [
        [length_name(most), *(f"{f1:.2f}" for f1 in values), first.counts.by_length[most].there]
        for most, values in f1_by_length.items()
    ]
    tables = [
        plain_table(("", *evaluated), rows),
        plain_table(("F1 by length", *evaluated, "brackets"), lengths),
    ]
    return tables, {
        "scores": [{"system": name, **mean} for name, mean in zip(evaluated, scores, strict=True)],
        "f1_by_length": {str(most): values for most, values in f1_by_length.items()},
    }


def parse_statistics(
    sentences: Sequence[Sequence[Sequence[ScoredSentence]]],
) -> dict[str, MeasuredSystem]:
    """The statistics from which F1 and the share of exact parses are tested. ``sentences``: for
    each system and each of its runs, the score of each sentence; all runs parsed the same trees."""
    statistics = [[statistics_of(scores) for scores in runs] for runs in sentences]
    return {
        "f1": MeasuredSystem(statistics, f1s, SIGNATURE),
        "exact": MeasuredSystem(statistics, exact_shares, SIGNATURE),
    }


def _own_trees(runs: Sequence[Run]) -> tuple[Sequence[Pair], str]:
    """The test set that all runs share, and its name. Errors: ``DataError``."""
    first, *others = runs
    pairs, name = own_test_set(first)
    if not pairs:
        raise DataError(f"no trees to compare {first.folder} on. Give some: --source test.mrg")
    for run in others:
        if run.recipe.data == first.recipe.data:
            continue
        its, its_name = own_test_set(run)
        if [(pair.source, pair.target) for pair in its] != [(p.source, p.target) for p in pairs]:
            raise DataError(
                f"{run.folder} has another test set ({its_name}, {plural(len(its), 'tree')}) "
                f"than {first.folder} ({name}, {plural(len(pairs), 'tree')}). Set the trees for "
                "all of them: --source FILE"
            )
    return pairs, name
