"""What is measured of a parser: while it trains, and of a finished run.

Parses are scored against reference trees as EVALB does (``metrics.py``). Tags count only where they
are learned (``trees.tags``).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.base.wording import plural
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.engine.search_settings import for_test_set
from dragoman.engine.settings import EngineSettings
from dragoman.forms.form import Pair
from dragoman.forms.tree import Tree
from dragoman.forms.tree_form import tree_of
from dragoman.pictures.records import TreePair
from dragoman.runs.run import Run
from dragoman.runs.scores import scores_of, signed
from dragoman.tasks.parsing.metrics import SHORT, Parseval, ScoredSentence, score_parse, unmatched
from dragoman.tasks.parsing.parser import Parse, Parser
from dragoman.tasks.parsing.sizes import label_ends_of
from dragoman.tasks.parsing.spec import PARSING
from dragoman.tasks.shared.evaluation_report import SearchReport, keep_figures, measured_on, timed
from dragoman.tasks.shared.validation import (
    PairsValidation,
    loss_scores,
    next_token_loss,
    samples_of,
)
from dragoman.training.records import Evaluation

logger = logging.getLogger("dragoman")

_COUNTED = (
    "Labelled brackets as EVALB counts them (COLLINS.prm): without punctuation and the bracket "
    "above all, ADVP = PRT."
)
SIGNATURE = f"EVALB:COLLINS|punctuation:reference's tags|top:ignored|short:{SHORT}"


class ParsingValidation(PairsValidation):
    """``loss`` (nats per symbol) and ``perplexity`` on all of dev; ``f1``, ``precision``,
    ``recall``, ``exact`` and ``tags`` of real parses of a part of it, in percent."""

    without = "longer than plan.max_source, plan.max_target or what the model has positions for"

    def __call__(self, update: int) -> Evaluation:
        losses = loss_scores(*next_token_loss(self))
        some = self.some()
        parser, settings = Parser.over(self.engine()), self.search_settings()
        parses = list(parser.each([pair.source for pair in some], settings))
        scores = score_all(some, parses).scores
        named = {name: scores[name] for name in ("f1", "precision", "recall", "exact", "tags")}
        return Evaluation(losses | named, samples_of(some, [parse.text for parse in parses]))


def score_all(pairs: Sequence[Pair], parses: Sequence[Parse]) -> Parseval:
    """Parses against the trees of their pairs."""
    return Parseval.of(score_each(pairs, parses))


def score_each(pairs: Sequence[Pair], parses: Sequence[Parse]) -> list[ScoredSentence]:
    """Each parse against the tree of its pair."""
    return [
        score_parse(tree_of(pair.target), parse.tree)
        for pair, parse in zip(pairs, parses, strict=True)
    ]


@dataclass(frozen=True)
class ParsingReport(SearchReport):
    """What a run makes of the sentences of some trees."""

    found: Parseval
    with_tags: bool
    pairs: Sequence[Pair]
    parses: Sequence[Parse]

    @property
    def scores(self) -> dict[str, float]:
        """By name, in percent."""
        scores = dict(self.found.scores)
        if not self.with_tags:
            del scores["tags"]
        return scores

    def table(self) -> str:
        """Plain text."""
        skipped = f"; {self.found.skipped:,} of punctuation alone" if self.found.skipped else ""
        amount = self.amount(f"{plural(self.found.sentences, 'sentence')}{skipped}")
        notes = [self.found.tables(), "", _COUNTED]
        return self.lines(amount, scores_of(PARSING, self.scores), notes)

    def outputs(self) -> Sequence[str]:
        """The parses, each on one line."""
        return [parse.text for parse in self.parses]

    def details(self) -> dict[str, Any]:
        return {
            "sentences": len(self.pairs),
            "scores": signed(self.scores, SIGNATURE),
            "parseval": self.found.to_dict(),
        }


def evaluate_run(
    run: Run,
    files: Sequence[Path] = (),
    changes: Sequence[str] = (),
    *,
    precision: str = "auto",
) -> ParsingReport:
    """Parse the sentences of some trees and score the parses.

    ``files``: a file or folder of trees; without one it is the recipe's test set. ``changes`` are
    ``key=value``, merged into the recipe's search settings. The figures on the
    recipe's own test set, by the recipe's own settings, are written to the run's scores.json.
    Errors: ``RunError`` for a run, ``DataError`` for files that cannot be used, ``DragomanError``
    for several files.
    """
    wanted = "are no trees", "a file of them", "test.mrg"
    pairs, test = measured_on(run, files, _trees_at, wanted, "trees")
    result = evaluate_on(run, pairs, test, changes, precision)
    if not files:
        keep_figures(run, result, pairs, changes, precision)
    return result


def trees_in(path: Path, like: Run | None = None) -> list[Pair]:
    """The trees of a file or a folder of files, and their words; labels end where those that
    ``like`` has learned do. Errors: ``DataError``."""
    return list(read_pairs(_trees_at(like, [path])))


def _trees_at(like: Run | None, files: Sequence[Path]) -> CorpusSettings:
    ends = label_ends_of(like.recipe if like is not None else None)
    return CorpusSettings(source=str(files[0]), format="trees", label_ends=ends)


def evaluate_on(
    run: Run, pairs: Sequence[Pair], test: str, changes: Sequence[str] = (), precision: str = "auto"
) -> ParsingReport:
    """As ``evaluate_run``, on trees that are read already; ``test``: what they are called."""
    search = for_test_set(run.recipe, changes)
    settings = EngineSettings.model_validate({"precision": precision, "longest": _MAX_TOKENS})
    parser = Parser(run, settings, search)
    logger.info("%s parses %s", run.folder, plural(len(pairs), "sentence"))
    parses, seconds = timed(lambda: parser(pair.source for pair in pairs))
    return ParsingReport(
        run.folder.name, run.weights_summary, test, seconds,
        f"beam {search.beam}, length penalty {search.length_penalty}", parser.description,
        score_all(pairs, parses), not parser.no_tag, pairs, parses,
    )  # fmt: skip


def tree_pair(reference: str, parse: str, no_tag: str) -> TreePair | None:
    """Both as they are drawn beside each other; None if one of them is no whole tree, as that of a
    long sentence among a run's samples. ``no_tag``: see ``TreeForm.no_tag``."""
    try:
        wanted, given = tree_of(reference), tree_of(parse)
    except DataError:
        return None
    missed, wrong = unmatched(wanted, given)
    return TreePair(_tagged(wanted, no_tag) if no_tag else wanted, given, missed, wrong, no_tag)


def _tagged(tree: Tree, tag: str) -> Tree:
    """With this tag on every word."""
    if tree.is_leaf:
        return replace(tree, label=tag)
    return replace(tree, children=tuple(_tagged(child, tag) for child in tree.children))


_MAX_TOKENS = 10_000
"""Tokens of a sentence that is measured: none is left out."""
