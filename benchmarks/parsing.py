"""Parsers beside each other, right-branching trees and a PCFG, on the same trees.

    dragoman train wsj-sample
    dragoman train wsj-sample-lstm
    python benchmarks/parsing.py runs/wsj-sample runs/wsj-sample-lstm

For each run: its parses of its test trees, those of a PCFG with parent annotation that is counted
over the run's own training trees (``parsing_baselines.py``), and right-branching ones, scored as
EVALB does; of each difference in F1 the share of paired bootstrap samples that have it the other
way round. Each pair of the runs whose test trees are the same is tested as ``dragoman compare``
does. Printed whoever wins, and written to ``benchmarks/results/parsing.json``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parsing_baselines import Grammar
from results import measure_runs
from tables import tests_of

from dragoman.forms.tree import Tree
from dragoman.forms.tree_form import tree_of
from dragoman.metrics.significance import compare_statistics, resample
from dragoman.runs.prepare import prepare
from dragoman.runs.run import Run
from dragoman.tasks.parsing import metrics
from dragoman.tasks.parsing.evaluation import ParsingEvaluation, parse_statistics

RESULTS = Path(__file__).resolve().parent / "results" / "parsing.json"
Scored = Sequence[metrics.ScoredSentence]
SAMPLES = 1000


def beaten(ours: Scored, other: Scored) -> float:
    """The share of bootstrap samples of the sentences in which the F1 of ``ours`` is not higher."""
    statistics = [[metrics.statistics_of(sentences)] for sentences in (ours, other)]
    f1, of_other = resample(statistics, metrics.f1s, SAMPLES, seed=1)
    return float((f1 <= of_other).mean())


class Parsers:
    """Measures runs one after another, and tests each against those before it."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[list[Tree], list[metrics.ScoredSentence]]] = {}
        """Of each run, by its name: the references, and its parses against them."""

    def __call__(self, run: Run) -> dict[str, Any]:
        """Figures of the run, of both baselines, and the tests."""
        row, references, sentences = measured(run)
        row["pairs"] = [
            pair_of(run.folder.name, sentences, name, others)
            for name, (trees, others) in self._before.items()
            if trees == references and name != run.folder.name
        ]
        self._before[run.folder.name] = references, sentences
        return row


def pair_of(name: str, sentences: Scored, other: str, others: Scored) -> dict[str, Any]:
    """Two runs on the same trees: F1 and exact parses of both, and how likely a difference as large
    is if they are equally good."""
    quality = compare_statistics(
        [other, name], parse_statistics([[others], [sentences]]), samples=SAMPLES
    )
    found = {
        {"f1": "F1"}.get(comparison.metric, comparison.metric): {
            "values": [score.value for score in comparison.scores],
            "p_value": comparison.scores[1].p_value,
        }
        for comparison in quality.comparisons
    }
    return {"runs": [other, name], "samples": SAMPLES, **found}


def measured(run: Run) -> tuple[dict[str, Any], list[Tree], list[metrics.ScoredSentence]]:
    """Figures of the run and of both baselines, the test trees, and its parses against them."""
    store = prepare(run.recipe, run.folder, lambda _: None).train
    train = [tree_of(store.text("target", example)) for example in range(len(store))]
    ours = ParsingEvaluation()(run)
    references = [tree_of(pair.target) for pair in ours.pairs]
    began = time.perf_counter()
    grammar, branching = Grammar.count(train), metrics.RightBranching(train)
    parses: dict[str, list[Tree]] = {"ours": [parse.tree for parse in ours.parses]}
    parses["right-branching"] = [branching.parse(tree.words) for tree in references]
    found = [grammar.best(tree.words) for tree in references]
    parses["pcfg"] = [
        parses["right-branching"][place] if best is None else best[1]
        for place, best in enumerate(found)
    ]
    seconds = time.perf_counter() - began
    scored = {
        name: [metrics.score_parse(*both) for both in zip(references, trees, strict=True)]
        for name, trees in parses.items()
    }
    row = {
        "train_trees": len(train),
        "test_trees": len(references),
        "pcfg": {
            "symbols": len(grammar.names),
            "without_a_tree": sum(best is None for best in found),
            "seconds": round(seconds, 1),
        },
        "scores": {name: metrics.Parseval.of(one).scores for name, one in scored.items()},
        "bootstrap_not_higher": {
            name: beaten(scored["ours"], sentences)
            for name, sentences in scored.items()
            if name != "ours"
        },
    }
    return row, references, scored["ours"]


def table(row: dict[str, Any]) -> str:
    """All of them, one below the other."""
    counts = f"{row['train_trees']:,} trees to learn from, {row['test_trees']:,} to parse"
    lines = [
        f"{row['run']}, {row['trained_minutes']} minutes; {counts}",
        f"{'':<24} {'F1':>7} {'prec.':>7} {'recall':>7} {'exact':>7}",
    ]
    for name, scores in row["scores"].items():
        figures = (scores[key] for key in ("f1", "precision", "recall", "exact"))
        lines.append(
            f"{row['run'] if name == 'ours' else name:<24} "
            + " ".join(f"{value:7.2f}" for value in figures)
        )
    for name, share in row["bootstrap_not_higher"].items():
        lines.append(f"F1 not above that of {name} in {share:.1%} of bootstrap samples")
    for pair in row["pairs"]:
        both = " and ".join(pair["runs"])
        lines += [
            f"{metric} of {both}: {found['values'][0]:.2f} and {found['values'][1]:.2f}, "
            f"p = {found['p_value']:.4f}"
            for metric, found in tests_of(pair)
        ]
    if missed := row["pcfg"]["without_a_tree"]:
        lines.append(f"the PCFG has no tree for {missed:,}: the right-branching one is taken")
    return "\n".join(lines)


if __name__ == "__main__":
    measure_runs(RESULTS, __doc__ or "", "parsers", Parsers(), table)
