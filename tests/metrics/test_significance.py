"""The paired tests: the same p-values as sacreBLEU's own, and the right verdict on known cases."""

from __future__ import annotations

import itertools
import json
import math
import random
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from dragoman.base.errors import DataError
from dragoman.metrics.significance import Significance, Test, compare_systems
from dragoman.metrics.translation import ALL_METRICS, MetricName

Floats = NDArray[np.float64]

WORDS = [
    "der",
    "die",
    "das",
    "Hund",
    "Katze",
    "läuft",
    "schläft",
    "im",
    "Garten",
    "nicht",
    "und",
    "müde",
]
OTHERS = ["ein", "eine", "Vogel", "Maus", "rennt", "liegt", "am", "Fluss", "nie", "oder", "wach"]


def systems(
    seed: int, lines: int, longest: int = 12, /, **errors: float
) -> tuple[dict[str, list[str]], list[str]]:
    """Translations with the given shares of wrong words, and the references."""
    draw = random.Random(seed)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(lines)]
    spoilt = {
        name: [
            " ".join(
                draw.choice(OTHERS) if draw.random() < share else word
                for word in (line.split() * 2)[: max(1, len(line.split()) + draw.randint(-2, 2))]
            )
            for line in references
        ]
        for name, share in errors.items()
    }
    return spoilt, references


def alone(given: dict[str, list[str]]) -> dict[str, list[list[str]]]:
    """Systems of one run each."""
    return {name: [lines] for name, lines in given.items()}


def of(outcome: Significance, metric: MetricName) -> dict[str, float | None]:
    (comparison,) = [each for each in outcome.comparisons if each.metric == metric]
    return {score.system: score.p_value for score in comparison.scores}


def with_ties(differences: Floats, seen: float) -> float:
    return (np.count_nonzero(differences >= seen - 1e-6) + 1) / (len(differences) + 1)


def exchanged(score: Callable[[list[str]], float], one: list[str], other: list[str]) -> float:
    """The share of all exchanges of lines that make a difference as large, by trying each."""
    seen, beyond = abs(score(one) - score(other)), 0
    for exchange in itertools.product((False, True), repeat=len(one)):
        lines = [[b, a] if e else [a, b] for e, a, b in zip(exchange, one, other, strict=True)]
        beyond += abs(score([a for a, _ in lines]) - score([b for _, b in lines])) > seen - 1e-9
    return beyond / 2 ** len(one)


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
@pytest.mark.parametrize(
    ("errors", "longest", "missing"), [(0.2, 12, 0), (0.2, 12, 2), (0.93, 12, 0), (0.3, 3, 0)]
)
def test_agrees_with_sacrebleu(
    test: Test, errors: float, longest: int, missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 93 % of errors some samples match no 4-gram, so smoothing is tested too; among short
    sentences some samples have no 4-gram at all; where words are missing brevity is penalised.
    sacreBLEU's p-values are those with ties counted."""
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    monkeypatch.setattr("sacrebleu.significance._compute_p_value", with_ties)
    given, references = systems(
        4, 60, longest, base=errors, other=errors * 0.95, third=errors * 0.8
    )
    if missing:
        given = {
            name: [" ".join(line.split()[:-missing]) for line in lines]
            for name, lines in given.items()
        }
    samples = 120
    theirs = PairedTest(
        list(given.items()),
        {"BLEU": BLEU(), "chrF": CHRF(), "chrF++": CHRF(word_order=2), "TER": TER()},
        [references],
        test_type="bs" if test == "bootstrap" else "ar",
        n_samples=samples,
    )()[1]
    ours = compare_systems(
        alone(given), [references], "de", test=test, metrics=ALL_METRICS, samples=samples
    )
    names: dict[MetricName, str] = {"BLEU": "BLEU", "chrF": "chrF2", "chrF++": "chrF2++"}
    for comparison in ours.comparisons:
        expected = theirs[names.get(comparison.metric, comparison.metric)]
        for score, result in zip(comparison.scores, expected, strict=True):
            assert not isinstance(result, str)
            assert score.value == pytest.approx(result.score)
            assert score.p_value == pytest.approx(result.p_value)
            assert score.differing is None or score.differing > 12
            if test == "randomisation":
                assert score.mean is None and result.mean is None
            else:  # sacreBLEU sums in float32 here
                assert score.mean == pytest.approx(result.mean, rel=1e-5)
                assert score.interval == pytest.approx(result.ci, rel=1e-4)


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_tells_a_better_system_from_a_lucky_one(test: Test) -> None:
    given, references = systems(15, 200, base=0.3, equal=0.3, better=0.2)
    outcome = compare_systems(alone(given), [references], "de", test=test, samples=500)
    for metric in ("BLEU", "chrF"):
        p_values = of(outcome, metric)
        assert p_values["base"] is None
        assert p_values["equal"] is not None and p_values["equal"] > 0.1
        assert p_values["better"] is not None and p_values["better"] < 0.01


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
@pytest.mark.parametrize("lines", [1, 5, 6])
@pytest.mark.parametrize("alike", [0, 9])
def test_few_lines_that_differ_are_exchanged_in_all_ways(
    test: Test, lines: int, alike: int
) -> None:
    """Whatever else is in the test set, if both systems translate it alike."""
    given, references = systems(23, lines, base=0.8, other=0.2)
    same, further = systems(24, alike, same=0.4)
    metrics: dict[MetricName, BLEU | CHRF | TER] = {"BLEU": BLEU(), "chrF": CHRF(), "TER": TER()}
    outcome = compare_systems(
        {name: [both + same["same"]] for name, both in given.items()},
        [references + further], "de", test=test, metrics=list(metrics), samples=20,
    )  # fmt: skip
    for name, metric in metrics.items():
        expected = exchanged(
            lambda some, metric=metric: float(  # type: ignore[misc]
                metric.corpus_score(some + same["same"], [references + further]).score
            ),
            given["base"], given["other"],
        )  # fmt: skip
        assert of(outcome, name)["other"] == pytest.approx(expected)
    (first, second, *_) = [c.scores[1].differing for c in outcome.comparisons]
    assert first == second == lines
    told = f" of other: {lines} of {lines + alike} sentence"
    assert told in outcome.table() and outcome.to_dict()["notes"] == list(outcome.notes)
    cannot = "with fewer than 6 it cannot be below 0.05"
    assert (cannot in outcome.table(), "* differs" in outcome.table()) == (lines < 6, lines > 5)
    interval = outcome.comparisons[0].scores[0].interval
    assert (interval is not None) == (test == "bootstrap" and lines + alike > 5)


def test_exact_p_values_are_those_of_scipy() -> None:
    """Without insertions and with as many words in every line TER is a mean over lines."""
    scipy = pytest.importorskip("scipy.stats", reason="scipy is for development")
    draw = random.Random(3)
    reference = [WORDS] * 9
    base, other = (
        [[word if draw.random() < right else "x" for word in line] for line in reference]
        for right in (0.45, 0.5)
    )
    wrong = [[line.count("x") for line in lines] for lines in (base, other)]
    expected = scipy.permutation_test(
        wrong, lambda a, b, axis: abs(a.mean(axis) - b.mean(axis)), permutation_type="samples",
        alternative="greater", n_resamples=np.inf, vectorized=True,
    ).pvalue  # fmt: skip
    outcome = compare_systems(
        {name: [list(map(" ".join, lines))] for name, lines in (("a", base), ("b", other))},
        [list(map(" ".join, reference))], "de", metrics=("TER",),
    )  # fmt: skip
    assert of(outcome, "TER")["b"] == pytest.approx(expected) and 0.01 < expected < 0.5


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_one_line_of_many_is_no_difference(test: Test) -> None:
    _, references = systems(5, 200, 12)
    other = [*references[:-1], "x " + references[-1]]
    outcome = compare_systems(
        {"a": [references], "b": [other]}, [references], "de", test=test, metrics=ALL_METRICS
    )
    assert [c.scores[1].p_value for c in outcome.comparisons] == [1] * 4
    assert "*" not in outcome.table()


def test_ties_are_counted() -> None:
    """Of thirteen lines that are wrong in turns all exchanges have a difference as large."""
    references = ["der Hund"] * 13
    one, other = (
        ["der Hund" if n % 2 == odd else "x y" for n in range(13)] for odd in (0, 1)
    )  # fmt: skip
    outcome = compare_systems(
        {"a": [one], "b": [other]}, [references], "de", test="randomisation", metrics=("TER",),
        samples=50,
    )  # fmt: skip
    assert of(outcome, "TER")["b"] == 1


def test_of_several_runs_each_is_exchanged_with_each() -> None:
    given, references = systems(25, 7, one=0.7, two=0.5, better=0.3)
    metric = TER()

    def score(lines: Sequence[str]) -> float:
        return float(metric.corpus_score(lines, [references]).score)

    differences = []
    for exchange in itertools.product((0, 1), repeat=7):
        pairs = []
        for name in ("one", "two"):
            both = given[name], given["better"]
            first, second = ([both[e ^ n][k] for k, e in enumerate(exchange)] for n in (0, 1))
            pairs.append(score(first) - score(second))
        differences.append(abs(sum(pairs) / 2))
    expected = sum(d > differences[0] - 1e-9 for d in differences) / len(differences)
    groups = {"low": [given["one"], given["two"]], "high": [given["better"]]}
    outcome = compare_systems(groups, [references], "de", metrics=("TER",), samples=20)
    assert of(outcome, "TER")["high"] == pytest.approx(expected) and expected < 0.5


def test_the_same_system_never_differs() -> None:
    given, references = systems(6, 30, base=0.3)
    twice = {"one": given["base"], "two": given["base"]}
    bootstrap = compare_systems(alone(twice), [references], "de", samples=50)
    exchanged = compare_systems(alone(twice), [references], "de", test="randomisation", samples=50)
    for outcome in (bootstrap, exchanged):
        assert of(outcome, "BLEU")["two"] == 1.0
        assert "*" not in outcome.table().splitlines()[2]
        assert outcome.comparisons[0].scores[0].value == outcome.comparisons[0].scores[1].value


def test_table_and_json() -> None:
    given, references = systems(7, 120, base=0.4, better=0.05)
    outcome = compare_systems(alone(given), [references], "de", samples=100, seed=3)
    table = outcome.table().splitlines()
    assert table[0].split() == ["system", "BLEU", "chrF"]
    assert table[1].startswith("base (baseline)") and "±" in table[1] and "p=" not in table[1]
    assert table[2].count("*") == 2
    assert "paired bootstrap, 100 samples, seed 3, 120 sentences" in table[3]
    assert "tok:13a" in table[4]
    read = json.loads(json.dumps(outcome.to_dict()))
    better = read["metrics"]["BLEU"]["systems"][1]
    assert better["system"] == "better" and better["p_value"] < 0.05
    assert not math.isnan(better["interval"])


def test_decomposed_text_is_compared_as_composed_text() -> None:
    given, references = systems(12, 20, base=0.3, other=0.2)
    composed = compare_systems(alone(given), [references], "de", metrics=ALL_METRICS, samples=20)
    for side in (0, 1):
        lines, right = dict(given), list(references)
        if side:
            right = [unicodedata.normalize("NFD", line) for line in right]
        else:
            lines["other"] = [unicodedata.normalize("NFD", line) for line in lines["other"]]
        found = compare_systems(alone(lines), [right], "de", metrics=ALL_METRICS, samples=20)
        for one, expected in zip(found.comparisons, composed.comparisons, strict=True):
            assert one.scores == expected.scores
            assert one.signature == f"{expected.signature}|unicode:NFC"


def test_seed_decides_the_draws() -> None:
    given, references = systems(8, 40, base=0.3, other=0.28)
    one, same, other = (
        compare_systems(alone(given), [references], "de", samples=60, seed=seed)
        for seed in (1, 1, 2)
    )
    assert one == same
    assert of(one, "BLEU") != of(other, "BLEU") or of(one, "chrF") != of(other, "chrF")


def test_needs_two_systems_of_the_right_length() -> None:
    with pytest.raises(DataError, match="two systems"):
        compare_systems({"one": [["a"]]}, [["a"]], "de")
    with pytest.raises(DataError, match="short: 1 translation but 2 references"):
        compare_systems({"one": [["a", "b"]], "short": [["a"]]}, [["a", "b"]], "de")


def test_several_references_are_sacrebleus() -> None:
    given, first = systems(9, 30, base=0.4, other=0.2)
    _, second = systems(10, 30, base=0.1)
    ours = compare_systems(
        alone(given), [first, second], "de", test="bootstrap", metrics=ALL_METRICS, samples=20
    )
    for comparison, metric in zip(
        ours.comparisons, (BLEU(), CHRF(), CHRF(word_order=2), TER()), strict=True
    ):
        for score in comparison.scores:
            expected = metric.corpus_score(given[score.system], [first, second])
            assert score.value == pytest.approx(expected.score), comparison.metric
        assert "nrefs:2" in comparison.signature
    with pytest.raises(DataError, match="base: 30 translations but 29 references"):
        compare_systems(alone(given), [first, second[:-1]], "de")


def test_a_group_of_runs_scores_their_mean_on_every_drawn_test_set() -> None:
    given, references = systems(11, 60, one=0.5, two=0.4, better=0.1, best=0.05)
    groups = {"low": [given["one"], given["two"]], "high": [given["better"], given["best"]]}
    outcome = compare_systems(groups, [references], "de", metrics=("chrF",), samples=80)
    low, high = outcome.comparisons[0].scores
    values = [CHRF().corpus_score(lines, [references]).score for lines in groups["high"]]
    assert high.runs == pytest.approx(values)
    assert high.value == pytest.approx(sum(values) / 2)
    assert high.deviation == pytest.approx(abs(values[0] - values[1]) / math.sqrt(2))
    assert high.p_value is not None and high.p_value < 0.05 and low.p_value is None
    # The samples of a group are the means of those of its runs.
    each = compare_systems(alone(given), [references], "de", metrics=("chrF",), samples=80)
    means = {score.system: score.mean for score in each.comparisons[0].scores}
    assert low.mean == pytest.approx(((means["one"] or 0) + (means["two"] or 0)) / 2)
    assert f"sd {high.deviation:.2f} of 2" in outcome.table()
    assert outcome.to_dict()["metrics"]["chrF"]["systems"][1]["deviation"] == high.deviation
    # Copies of one run are that run, with no deviation.
    copies = {"low": [given["one"]] * 3, "high": [given["best"]]}
    same = compare_systems(copies, [references], "de", metrics=("chrF",), samples=80)
    once = compare_systems(
        alone({"low": given["one"], "high": given["best"]}),
        [references], "de", metrics=("chrF",), samples=80,
    )  # fmt: skip
    assert same.comparisons[0].scores[0].deviation == pytest.approx(0.0)
    assert same.comparisons[0].scores[1] == once.comparisons[0].scores[1]
    with pytest.raises(DataError, match="low has 3 runs"):
        compare_systems(copies, [references], "de", test="randomisation", samples=5)
