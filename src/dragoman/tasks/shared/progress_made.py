"""The scores of guessing, a summary of the training records, and the scores from which a model
counts as having begun to learn.

These are two criteria. A model may be called better than another only if it scores above a guess
(``studies``); a difference between two models below a guess means nothing. Whether a run has begun
to learn is a stricter criterion: the verdict at its end (``tasks/verdict.py``) sends users who want
a working model back to training.

A guess ignores the source and the words before. It knows the training answers
(``training_answers``), but never the test answers:

* a label: always the most frequent one;
* a translation: always the one that is most similar to all others, by chrF; its BLEU counts as 1 if
  it is lower;
* a transcript: always the most frequent text, or nothing;
* a tree: right-branching brackets (``tasks/parsing/metrics.py``).

The guess for a loss is stricter, the best possible one: it gives each token, tag or label its
frequency in the test set, which costs the entropy of that distribution, H = -Σ p log p nats. The
guess for masked tokens is always the most frequent one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np

from dragoman.base.errors import DragomanError
from dragoman.base.measure import LOSS, Measure, perplexity
from dragoman.data.store import Tokens, TokenStore
from dragoman.metrics.chrf import pairwise_chrf
from dragoman.metrics.translation import evaluate_translation
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import Run

_OF_GUESSING = 0.9
"""A loss above this share of the cost of guessing by frequency counts as hardly learned."""
_COUNTED = 2_000_000
"""The number of tokens from which frequencies are counted."""

TEXT = "text"
"""The key of ``text_notes`` in the notes of a run."""


@dataclass(frozen=True)
class TrainingSummary:
    """A summary of the training records of a run."""

    tokens: int
    seconds: float
    nll: float
    """The mean loss of the last updates, in nats."""
    scores: dict[str, float]
    """The best value of each score on dev; for a loss, the lowest."""
    samples: Sequence[dict[str, str]]
    """The samples of the last validation."""
    updates: int
    """The number of updates; 0 if no training is recorded."""

    @classmethod
    def of(cls, run: Run) -> TrainingSummary:
        tokens, updates, seconds, nlls = 0, 0, 0.0, list[float]()
        scores: dict[str, float] = {}
        samples: Sequence[dict[str, str]] = ()
        for record in run.metrics():
            if record["kind"] == "update":
                tokens += record["tokens"]
                updates = record["update"]
                seconds = record["elapsed"]
                nlls += [] if record["nll"] is None else [record["nll"]]
                continue
            samples = record.get("samples", ())
            for name, value in record["scores"].items():
                measure = run.task.metrics.get(name)
                if value is None or measure is None:
                    continue
                if name not in scores or measure.is_better(value, scores[name]):
                    scores[name] = value
        last = nlls[-max(1, len(nlls) // 20) :]
        return cls(tokens, seconds, sum(last) / max(1, len(last)), scores, samples, updates)


def below(
    measure: Measure,
    least: float,
    on_dev: float | None,
    on_test: float | None,
    verb: str = "learn",
) -> str | None:
    """Say why a run has hardly learned, by its score on dev or, without one, on the test set. None
    if the score is good enough. ``least``: the worst score of a model that has begun to learn, or
    to do ``verb``."""
    value, where = (on_test, "the test set") if on_dev is None else (on_dev, "dev")
    if value is None or not measure.is_better(least, value):
        return None
    side = "above" if measure.better == "lower" else "below"
    return (
        f"{measure.called} {measure.text(value)} on {where}, {side} the "
        f"{measure.text(least)} of a model that has begun to {verb}"
    )


def by_frequency(run: Run, training: TrainingSummary) -> str | None:
    """Say why a run has hardly learned, if guessing tokens by their frequency alone gives nearly
    the same loss; otherwise None."""
    guess, loss = run.notes().get(TEXT, {}).get("by_frequency"), training.scores.get("loss")
    if not guess or loss is None or loss < _OF_GUESSING * guess:
        return None
    return (
        f"its loss on dev is {LOSS.text(loss)} nats a token, and token frequencies alone give "
        f"{LOSS.text(guess)}"
    )


def on_test(run: Run, name: str) -> float | None:
    """A score of the last evaluation; None if there was none."""
    score = run.scores().get("scores", {}).get(name)
    return None if score is None else float(score["value"])


def text_notes(store: TokenStore, side: str, vocabulary: int | None, dev: Sequence[Tokens]) -> Any:
    """Notes on the text that a run learns to write: ``tokens`` of an epoch and the mean ``length``
    of an example, end symbols counted. With the size of a ``vocabulary`` they include
    ``by_frequency``, the cost of guessing the tokens of ``dev``, in nats per token."""
    tokens = store.total(side) + len(store)
    notes: dict[str, float] = {"tokens": tokens, "length": round(tokens / len(store), 2)}
    if vocabulary is not None and any(map(len, dev)):
        counts, read = np.ones(vocabulary), 0
        for example in range(len(store)):
            some = store.tokens(side, example)
            counts += np.bincount(some, minlength=vocabulary)
            read += len(some)
            if read >= _COUNTED:
                break
        cost = -np.log(counts / counts.sum())
        dev_tokens = np.concatenate(dev)
        notes["by_frequency"] = round(float(cost[dev_tokens].mean()), 4)
    return notes


MIN_ANSWERS = 10
"""The fewest test answers for which the score of a guess is meaningful."""
MIN_TOKENS = 100
"""The fewest test tokens for which the loss of a guess is meaningful."""
_READ, _ANSWERS = 100_000, 2_000
"""The number of training examples that are read for a guess, and the number that it keeps."""


def training_answers(recipe: Recipe) -> list[str]:
    """Some targets of the training examples, spread over the first ``_READ``; empty if the text is
    no longer available."""
    from dragoman.runs.corpora import plain_corpora

    try:
        pairs = chain.from_iterable(corpus.pairs for corpus in plain_corpora(recipe, "train"))
        targets = [pair.target for pair in islice(pairs, _READ)]
    except DragomanError:
        return []
    return targets[:: -(-len(targets) // _ANSWERS) or 1]


def has_learned(
    scores: Mapping[str, float], chance: Mapping[str, float], name: str, measure: Measure
) -> bool:
    """True if a score is better than that of a guess, or if either is unknown."""
    if name not in scores or name not in chance:
        return True
    return measure.is_better(scores[name], chance[name])


def of_tokens(texts: Iterable[Iterable[int]]) -> dict[str, float]:
    """The scores of a guess that predicts each token by its frequency in ``texts`` alone. One end
    symbol is counted for each text."""
    counts: Counter[int] = Counter()
    for tokens in texts:
        counts.update(map(int, tokens))
        counts[-1] += 1
    if counts.total() < MIN_TOKENS:
        return {}
    loss = entropy(counts.values())
    return {"loss": loss, "perplexity": perplexity(loss)}


def entropy(counts: Iterable[int]) -> float:
    """The entropy of a distribution, in nats, from the count of each answer."""
    positive = [count for count in counts if count]
    total = sum(positive)
    return -math.fsum(count / total * math.log(count / total) for count in positive)


MIN_BLEU = 1.0
"""The least BLEU that counts as more than a guess, even if the best guess scores less: of two
models with 0.7 and 0.0, neither translates, however significant the difference."""
_ALIKE = 200
"""The number of texts among which the most typical one is searched for: all pairs are compared."""


def chance_of_translations(
    references: Sequence[Sequence[str]],
    learned: Sequence[str],
    language: str,
    tokenizer: str | None = None,
) -> dict[str, float]:
    """The scores of a guess that always gives the most typical translation. ``references`` are
    those of ``evaluate_translation``; ``learned`` are training targets (``training_answers``)."""
    lines = references[0]
    if len(lines) < MIN_ANSWERS or not learned:
        return {"bleu": MIN_BLEU}
    some = list(learned[:: max(1, len(learned) // _ALIKE)])[:_ALIKE]
    usual = some[int(pairwise_chrf(some).mean(axis=1).argmax())]
    scores = evaluate_translation(
        [usual] * len(lines), references, language, tokenizer=tokenizer, metrics=("BLEU", "chrF")
    )
    return {"bleu": max(MIN_BLEU, scores["BLEU"]), "chrf": scores["chrF"]}
