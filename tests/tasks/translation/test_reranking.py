"""The n best in the order of two models together."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Dragoman
from untrained_run import untrained_run

from dragoman.base.errors import RunError
from dragoman.forms.form import Pair, Passage, Piece
from dragoman.runs.corpora import plain_pairs
from dragoman.search.hypothesis import length_penalty
from dragoman.search.settings import SearchSettings
from dragoman.tasks.catalogue import Run
from dragoman.tasks.shared.surprisal import Scorer
from dragoman.tasks.translation.reranking import Reranker, choose_weight, doubts_of, reorder
from dragoman.tasks.translation.result import Translation

ALPHA = 0.6
SEARCH = SearchSettings(length_penalty=ALPHA)


def candidates(*scored: tuple[str, list[float]]) -> Translation:
    """The n best of one source, from text and log P of each token."""
    made = [
        Translation("x", text, sum(costs) / length_penalty(len(costs), ALPHA), tuple(costs))
        for text, costs in scored
    ]
    first, *others = sorted(made, key=lambda one: -one.score)
    return Translation(
        "x", first.text, first.score, first.token_log_probabilities, alternatives=tuple(others)
    )


def texts(translation: Translation) -> list[str]:
    return [translation.text, *(other.text for other in translation.alternatives)]


def test_the_order_is_that_of_the_sum() -> None:
    given = candidates(("a", [-1.0, -1.0]), ("b", [-1.0, -1.5]), ("c", [-3.0]))
    assert texts(reorder(given, [-9.0, -2.0, -1.0], 0.0, SEARCH)) == texts(given) == ["a", "b", "c"]
    found = reorder(given, [-9.0, -2.0, -1.0], 0.5, SEARCH)
    assert texts(found) == ["b", "c", "a"]
    assert found.score == pytest.approx((-2.5 + 0.5 * -2.0) / length_penalty(2, ALPHA))
    assert found.alternatives[0].score == pytest.approx(-3.0 + 0.5 * -1.0)


class Judge:
    """A language model that knows what it likes."""

    def __init__(self, liked: Sequence[str]) -> None:
        self.liked = liked

    def judge(self, translations: Sequence[Translation]) -> Any:
        return [
            (one, [0.0 if t in self.liked else -9.0 for t in texts(one)]) for one in translations
        ]


def test_a_weight_is_chosen_by_what_it_gains() -> None:
    right, wrong = "the small dog sees a cat .", "cat small the sees dog a ."
    given = candidates((wrong, [-1.0]), (right, [-2.0]))
    recipe = SimpleNamespace(languages=SimpleNamespace(target="en"))
    translator: Any = SimpleNamespace(
        batch=lambda sources: [given for _ in sources], run=SimpleNamespace(recipe=recipe)
    )
    pairs = [Pair(n, "x", right) for n in range(3)]
    helpful: Any = Judge([right])
    weight, found = choose_weight(translator, helpful, pairs, SEARCH)
    assert found[0.0] < found[weight] == pytest.approx(100)
    assert weight == min(w for w in found if 9 * w > 1)  # no more than it takes
    useless: Any = Judge([wrong])
    assert choose_weight(translator, useless, pairs, SEARCH)[0] == 0.0


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model of random weights, which prefers some letters to others."""
    small = ("model.model_dim=16", "model.ffn_dim=16", "model.layers=1")
    return untrained_run(tmp_path_factory.mktemp("lm"), *small, recipe_name="demo-letters")


def test_the_command_line_reranks(tiny_run: Path, letters: Path, dragoman: Dragoman) -> None:
    asked = ("translate", tiny_run, "The dog sleeps.", "-q", "--set", "length_penalty=0")
    plain = dragoman(*asked, "--n-best", "10").out
    first = [line.split("\t")[1] for line in plain.splitlines()]
    how = (*asked, "--rerank", letters)
    same = dragoman(*how, "--n-best", "3", "--rerank-weight", "0")
    assert same.code == 0, same.err
    assert [line.split("\t")[1] for line in same.out.splitlines()] == first[:3]
    scorer = Scorer(Run.open(letters), 256, 128)
    liked = max(first, key=lambda text: next(iter(scorer([text]))).log_probability)
    heavy = dragoman(*how, "--rerank-weight", "10000")
    assert heavy.out == f"{liked}\n"
    chosen = dragoman(*asked[:3], "--rerank", letters)
    assert chosen.code == 0 and "--rerank-weight" in chosen.err
    # As many as the training was validated on, taken from all of the dev set.
    recipe = Run.open(tiny_run).recipe
    dev = sum(1 for _ in plain_pairs(recipe, "dev"))
    told = re.search(r"on (\d+) dev pairs", chosen.err)
    assert told and int(told[1]) == len(range(0, dev, dev // recipe.evaluation.dev_sentences)) < dev


def test_nothing_and_one_sentence_are_put_in_order_too(
    tiny_run: Path, letters: Path, dragoman: Dragoman
) -> None:
    how = ("translate", tiny_run, "--rerank", letters, "--rerank-weight", "0.5")
    assert dragoman(*how, stdin=b"").out == ""
    said = dragoman(*how, stdin=b"\nThe dog sleeps.\n\n")
    lines = said.out.splitlines()
    assert said.code == 0 and len(lines) == 3 and lines[0] == lines[2] == ""
    assert "has its own vocabulary (" in said.err
    assert "vocabulary" not in dragoman(*how, "-q", stdin=b"The dog.").err
    one = dragoman(*how, "--n-best", "1", "--set", "sampling.temperature=1", stdin=b"The dog.")
    assert one.code == 0 and one.out.startswith("1\t") and one.out.count("\n") == 1


def test_what_the_model_cannot_read_is_not_likely(letters: Path) -> None:
    run = Run.open(letters)
    scorer = Scorer(run, 256, 128)
    plain, strange = "Der Hund.", "Der 漢字."
    costs = [found.log_probability for found in scorer([plain, strange])]
    found = Reranker(run, "de").log_probabilities([plain, strange])
    assert found[0] == pytest.approx(costs[0])
    assert found[1] == pytest.approx(costs[1] - len("漢字".encode()) * 8 * math.log(2))


def test_a_language_that_nobody_knows_is_said(tiny_run: Path, letters: Path) -> None:
    known, unknown = Run.open(tiny_run), Run.open(letters)
    assert not any("not known" in words for words in doubts_of(known, unknown))
    languages = unknown.recipe.languages.model_copy(update={"target": "und"})
    recipe = unknown.recipe.model_copy(update={"languages": languages})
    (first, _) = doubts_of(known, Run(unknown.folder, recipe))
    assert f"the language that {letters} writes is not known" in first


def test_what_cannot_judge_is_said(tiny_run: Path, letters: Path, dragoman: Dragoman) -> None:
    for wrong, words in (
        (("--rerank", tiny_run), "Set --rerank to a language model"),
        (("--rerank-weight", "1"), "needs a language model. Set --rerank RUN"),
        (("--rerank", letters, "--paragraphs"), "Leave --paragraphs out"),
    ):
        said = dragoman("translate", tiny_run, "The dog.", *wrong)
        assert said.code == 1 and words in said.err and not said.out
    for number, words in (("nan", "--rerank-weight"), ("inf", "use a number, such as 0.2")):
        said = dragoman("translate", tiny_run, "x", "--rerank", letters, "--rerank-weight", number)
        assert said.code and words in said.err
    with pytest.raises(RunError, match="writes de, but the translations are en"):
        Reranker(Run.open(letters), "en")


def test_the_n_best_of_a_line_are_made_of_those_of_its_sentences() -> None:
    """Against all that the candidates of three sentences make together."""
    parts = [
        candidates(("a", [-1.0]), ("b", [-1.5]), ("c", [-4.0])),
        candidates(("d", [-2.0]), ("e", [-2.1]), ("f", [-2.2])),
        candidates(("g", [-1.0])),
    ]
    pieces = tuple(Piece("x", gap, (1,)) for gap in (" ", "  ", ""))
    found = Translation.join("x x  x", Passage("- ", pieces), parts)
    every = product(*([one, *one.alternatives] for one in parts))
    best = sorted(every, key=lambda chosen: -sum(one.score for one in chosen))
    assert texts(found) == [f"- {a.text} {b.text}  {c.text}" for a, b, c in best[:3]]
    assert [one.score for one in found.alternatives] == pytest.approx(
        [sum(one.score for one in chosen) for chosen in best[1:3]]
    )
    samples = Translation.join("x x  x", Passage("", pieces[:2]), parts[:2], drawn=True)
    assert texts(samples) == ["a d  ", "b e  ", "c f  "]
    empty = Translation.join(" ", Passage(" ", ()), [])
    assert texts(empty) == [" "]


def test_what_was_cut_stands_behind_what_was_ended() -> None:
    """In the n best of a line by a language model, and of all that its sentences make together,
    though the score of what was cut, which lacks its end, is the best."""

    def cut(one: Translation) -> Translation:
        return replace(one, finished=False)

    a, b = candidates(("a", [-2.0]), ("b", [-3.0])), candidates(("c", [-1.0]), ("d", [-1.5]))
    short = cut(candidates(("short", [-0.1])))
    first = replace(a, alternatives=(*a.alternatives, short))
    assert texts(reorder(first, [-1.0, -1.0, -1.0], 0.5, SEARCH)) == ["a", "b", "short"]
    pieces = (Piece("x", " ", (1,)), Piece("x", "", (1,)))
    found = Translation.join("x x", Passage("", pieces), [first, b])
    every = [
        (one.finished and other.finished, one.score + other.score, f"{one.text} {other.text}")
        for one, other in product((first, *first.alternatives), (b, *b.alternatives))
    ]
    assert texts(found) == [text for *_, text in sorted(every, reverse=True)[:3]]
    assert texts(found)[2] == "b c"


def test_of_a_line_of_several_sentences_each_is_put_in_order() -> None:
    parts = [candidates(("a", [-1.0]), ("b", [-2.0])), candidates(("c", [-1.0]), ("d", [-2.0]))]
    passage = Passage("", (Piece("x", " ", (1,)), Piece("y", "", (1,))))
    given = Translation.join("x y", passage, parts)
    costs = [-9.0, -1.0, -2.0, -2.5]
    assert texts(reorder(given, costs, 0.0, SEARCH))[0] == "a c"
    found = reorder(given, costs, 1.0, SEARCH)
    assert texts(found) == ["b c", "b d"] and len(found.parts) == 2


def test_a_line_of_two_sentences_is_reranked_and_has_its_n_best(
    tiny_run: Path, letters: Path, dragoman: Dragoman
) -> None:
    """The run has learned from single sentences, so that the line is cut."""
    asked = ("translate", tiny_run, "-q", "--set", "length_penalty=0")
    line, how = "The dog sleeps. The cat sleeps.", ("--rerank", letters, "--rerank-weight", "9999")
    sentences = ("The dog sleeps.", "The cat sleeps.")
    first, second = (dragoman(*asked, one, *how).out.strip() for one in sentences)
    assert dragoman(*asked, line, *how).out == f"{first} {second}\n"
    assert dragoman(*asked, line).out != f"{first} {second}\n"
    rows = [row.split("\t") for row in dragoman(*asked, line, "--n-best", "4").out.split("\n")[:-1]]
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    scores = [float(row[2]) for row in rows]
    assert scores == sorted(scores, reverse=True) and len({row[1] for row in rows}) > 1
    drawn = dragoman(*asked, line, "--n-best", "4", "--temperature", "1").out.split("\n")
    assert len(drawn) == 5 and not drawn[-1]
