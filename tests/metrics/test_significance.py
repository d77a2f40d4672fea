"""The paired tests: the same p-values as sacreBLEU's own, and the right verdict on known cases."""

from __future__ import annotations

import itertools
import json
import math
import random

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from dragoman.errors import DataError
from dragoman.metrics.significance import Significance, Test, compare_systems
from dragoman.metrics.translation import ALL_METRICS, MetricName

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


def of(outcome: Significance, metric: MetricName) -> dict[str, float | None]:
    (comparison,) = [each for each in outcome.comparisons if each.metric == metric]
    return {score.system: score.p_value for score in comparison.scores}


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
@pytest.mark.parametrize(("errors", "longest"), [(0.2, 12), (0.93, 12), (0.3, 3)])
def test_agrees_with_sacrebleu(
    test: Test, errors: float, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 93 % of errors some samples match no 4-gram, so smoothing is tested too; among short
    sentences some samples have no 4-gram at all."""
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    given, references = systems(
        4, 25, longest, base=errors, other=errors * 0.95, third=errors * 0.8
    )
    samples = 120
    theirs = PairedTest(
        list(given.items()),
        {"BLEU": BLEU(), "chrF": CHRF(), "chrF++": CHRF(word_order=2), "TER": TER()},
        [references],
        test_type="bs" if test == "bootstrap" else "ar",
        n_samples=samples,
    )()[1]
    ours = compare_systems(given, references, "de", test=test, metrics=ALL_METRICS, samples=samples)
    names: dict[MetricName, str] = {"BLEU": "BLEU", "chrF": "chrF2", "chrF++": "chrF2++"}
    for comparison in ours.comparisons:
        expected = theirs[names.get(comparison.metric, comparison.metric)]
        for score, result in zip(comparison.scores, expected, strict=True):
            assert not isinstance(result, str)
            assert score.value == pytest.approx(result.score)
            assert score.p_value == pytest.approx(result.p_value)
            if test == "randomisation":
                assert score.mean is None and result.mean is None
            else:  # sacreBLEU sums in float32 here
                assert score.mean == pytest.approx(result.mean, rel=1e-5)
                assert score.interval == pytest.approx(result.ci, rel=1e-4)


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_tells_a_better_system_from_a_lucky_one(test: Test) -> None:
    given, references = systems(15, 200, base=0.3, equal=0.3, better=0.2)
    outcome = compare_systems(given, references, "de", test=test, samples=500)
    for metric in ("BLEU", "chrF"):
        p_values = of(outcome, metric)
        assert p_values["base"] is None
        assert p_values["equal"] is not None and p_values["equal"] > 0.1
        assert p_values["better"] is not None and p_values["better"] < 0.01


def test_randomisation_comes_near_all_exchanges() -> None:
    """Of seven lines there are 128 exchanges: count those whose difference is larger."""
    given, references = systems(23, 7, base=0.5, other=0.3)

    def ter(lines: tuple[str, ...]) -> float:
        return float(TER().corpus_score(lines, [references]).score)

    pairs = list(zip(given["base"], given["other"], strict=True))
    seen = abs(ter(tuple(given["base"])) - ter(tuple(given["other"])))
    larger = 0
    for exchange in itertools.product((0, 1), repeat=7):
        one = tuple(pair[which] for pair, which in zip(pairs, exchange, strict=True))
        two = tuple(pair[1 - which] for pair, which in zip(pairs, exchange, strict=True))
        larger += abs(ter(one) - ter(two)) > seen + 1e-9
    assert 10 < larger < 100  # else this would test nothing
    outcome = compare_systems(
        given, references, "de", test="randomisation", metrics=("TER",), samples=20_000
    )
    assert of(outcome, "TER")["other"] == pytest.approx(larger / 128, abs=0.015)


def test_the_same_system_never_differs() -> None:
    given, references = systems(6, 30, base=0.3)
    twice = {"one": given["base"], "two": given["base"]}
    bootstrap = compare_systems(twice, references, "de", samples=50)
    exchanged = compare_systems(twice, references, "de", test="randomisation", samples=50)
    # sacreBLEU says 1 / 51 here: no sample differs by more than nothing.
    for outcome in (bootstrap, exchanged):
        assert of(outcome, "BLEU")["two"] == 1.0
        assert "*" not in outcome.table().splitlines()[2]
        assert outcome.comparisons[0].scores[0].value == outcome.comparisons[0].scores[1].value


def test_table_and_json() -> None:
    given, references = systems(7, 120, base=0.4, better=0.05)
    outcome = compare_systems(given, references, "de", samples=100, seed=3)
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


def test_seed_decides_the_draws() -> None:
    given, references = systems(8, 40, base=0.3, other=0.28)
    one, same, other = (
        compare_systems(given, references, "de", samples=60, seed=seed) for seed in (1, 1, 2)
    )
    assert one == same
    assert of(one, "BLEU") != of(other, "BLEU") or of(one, "chrF") != of(other, "chrF")


def test_needs_two_systems_of_the_right_length() -> None:
    with pytest.raises(DataError, match="two systems"):
        compare_systems({"one": ["a"]}, ["a"], "de")
    with pytest.raises(DataError, match="short: 1 translations but 2 references"):
        compare_systems({"one": ["a", "b"], "short": ["a"]}, ["a", "b"], "de")
