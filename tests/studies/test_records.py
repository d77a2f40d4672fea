"""Several trainings: what a record says of each."""

from __future__ import annotations

from dragoman.studies.records import scores_of_weights


def test_the_scores_are_those_of_the_weights_that_were_kept() -> None:
    """At the last update the present weights are validated, and then the mean of the last ones."""
    validations = [
        {"update": 20, "weights": "current", "scores": {"loss": 3.0, "bleu": None}},
        {"update": 30, "weights": "ema", "scores": {"loss": 2.0}},
        {"update": 30, "weights": "average", "scores": {"loss": 1.5}},
    ]
    kept = {
        update: scores_of_weights(validations, {"weights": weights, "update": str(update)})
        for weights, update in (("best", 30), ("best", 20))
    }
    assert kept == {30: {"loss": 2.0}, 20: {"loss": 3.0}}
    assert scores_of_weights(validations, {"weights": "average", "update": "30"}) == {"loss": 1.5}
    assert scores_of_weights(validations, {"weights": "last", "update": "25"}) == {}
    assert scores_of_weights([], {}) == {}
