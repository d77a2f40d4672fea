"""The baselines of parsing, beside what they are defined as."""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from random_trees import random_tree
from tiny_treebank import treebank

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import tables
from parsing import beaten, pair_of
from parsing_baselines import Grammar, _rules_of, look_of

from dragoman.forms.tree import Tree
from dragoman.tasks.parsing.metrics import Parseval, RightBranching, score_parse

TREES = treebank(150)


def log_p(tree: Tree, grammar: Grammar, trees: list[Tree]) -> float:
    """Of a tree, by the counts of its rules, one after the other."""
    counts: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for one in trees:
        for rewritten, children in _rules_of(one, ""):
            counts[rewritten][children] += 1
    tops = Counter(one.label for one in trees)
    total = math.log(tops[tree.label] / len(trees))
    for rewritten, children in _rules_of(tree, ""):
        total += math.log(counts[rewritten][children] / sum(counts[rewritten].values()))
    for leaf in tree.leaves():
        assert leaf.word is not None
        costs = {grammar.names[tag]: cost for tag, cost in grammar.tags_of(leaf.word)}
        total += costs[leaf.label]
    return total


def test_the_best_tree_costs_what_its_rules_cost_and_no_tree_costs_less() -> None:
    grammar = Grammar.count(TREES)
    for tree in TREES[:40]:
        found = grammar.best(tree.words)
        assert found is not None
        score, best = found
        assert best.words == tree.words
        assert score == pytest.approx(log_p(best, grammar, TREES), abs=1e-3)
        assert score >= log_p(tree, grammar, TREES) - 1e-3


def test_it_is_the_best_of_all_trees() -> None:
    """Every tree of three symbols over four words, however deep its unary chains may be."""
    draw = random.Random(3)
    trees = [random_tree(draw, draw.randint(1, 5), 2) for _ in range(40)]
    grammar = Grammar.count(trees)
    binary, unary = grammar._binary, grammar._unary

    def best(symbol: int, words: tuple[str, ...], chain: int) -> float:
        found = [-math.inf]
        if len(words) == 1:
            found += [cost for tag, cost in grammar.tags_of(words[0]) if tag == symbol]
        if chain:
            found += [
                float(cost) + best(int(child), words, chain - 1)
                for parent, child, cost in zip(unary.rewritten, unary.left, unary.cost, strict=True)
                if parent == symbol
            ]
        for rule in np.flatnonzero(binary.rewritten == symbol).tolist():
            for cut in range(1, len(words)):
                left = best(int(binary.left[rule]), words[:cut], 3)
                if left > -math.inf:
                    right = best(int(binary.right[rule]), words[cut:], 3)
                    found.append(float(binary.cost[rule]) + left + right)
        return max(found)

    known = [tree.words for tree in trees if len(tree.words) == 3][:3]
    for words in known:
        every = [
            float(cost) + best(symbol, tuple(words), 3)
            for symbol, cost in enumerate(grammar._tops)
            if cost > -math.inf
        ]
        found = grammar.best(words)
        assert found is not None and found[0] >= max(every) - 1e-4
        assert found[0] == pytest.approx(log_p(found[1], grammar, trees), abs=1e-3)


def test_probabilities_sum_to_one() -> None:
    grammar = Grammar.count(TREES)
    sums: Counter[int] = Counter()
    for rules in (grammar._binary, grammar._unary):
        for parent, cost in zip(rules.rewritten.tolist(), rules.cost.tolist(), strict=True):
            sums[parent] += math.exp(cost)
    assert all(total == pytest.approx(1, abs=1e-5) for total in sums.values()) and len(sums) > 5


def test_what_was_never_seen_is_parsed_by_how_it_looks() -> None:
    assert look_of("Zorblatt-ing") == "? capital hyphen ing" and look_of("3.4") == "? digit"
    found = Grammar.count(TREES).best(["the", "wug", "sleeps", "."])
    assert found is not None and found[1].words == ["the", "wug", "sleeps", "."]


def test_a_grammar_does_better_than_a_shape_and_the_bootstrap_says_so() -> None:
    train, test = TREES[:100], TREES[100:]
    grammar, branching = Grammar.count(train), RightBranching(train)
    found = [grammar.best(tree.words) for tree in test]
    pcfg = [score_parse(tree, best[1]) for tree, best in zip(test, found, strict=True) if best]
    shape = [score_parse(tree, branching.parse(tree.words)) for tree in test]
    assert len(pcfg) == len(test)
    assert Parseval.of(pcfg).scores["f1"] > 80 > Parseval.of(shape).scores["f1"] > 10
    assert beaten(pcfg, shape) == 0 and beaten(shape, pcfg) == 1
    assert beaten(pcfg, pcfg) == 1
    pair = pair_of("pcfg", pcfg, "shape", shape)
    f1 = [Parseval.of(one).scores["f1"] for one in (shape, pcfg)]
    assert pair["runs"] == ["shape", "pcfg"] and pair["F1"]["values"] == pytest.approx(f1)
    assert pair["F1"]["p_value"] < 0.01 and pair_of("a", pcfg, "b", pcfg)["F1"]["p_value"] == 1


def test_the_table_shows_each_pair_of_runs_where_one_was_tested() -> None:
    path = Path(tables.HERE) / "results" / "parsing.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    results["rows"] = [{**row, "pairs": []} for row in results["rows"]]
    alone = tables.parsing(results)
    assert "Each pair" not in alone
    tested = {"values": [70.0, 72.5], "p_value": 0.012}
    pair = {"runs": ["one", "other"], "samples": 1000, "F1": tested, "exact": tested}
    results["rows"][-1]["pairs"] = [pair]
    assert tables.parsing(results).startswith(alone)
    assert "| `one` and `other` | F1 | 70.00 | 72.50 | 0.0120 |" in tables.parsing(results)
