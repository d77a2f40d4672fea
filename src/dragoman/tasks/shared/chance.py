"""What guessing scores, and from which scores on a model counts as having begun to learn.

These are two questions. Whether a score is above that of a guess decides whether one model may be
called better than another (``studies``): below, their difference is one between guesses. Whether a
run has begun is a stricter one: the verdict at its end (``tasks/verdict.py``) sends a user back to
training, who wants to use the model.

A guess does not look at the source, or at the words before. It knows the answers as a whole, as no
real guess could, so that a model that beats it has learned something:

* a token: each one as often as it is in the text, which costs the entropy of that distribution,
  H = -Σ p log p nats a token; of masked tokens, the most frequent one is always chosen;
* a label: always the most frequent one;
* a translation: always the reference that is most like all others, by chrF; and at least 1 BLEU;
* a tree: right-branching brackets (``metrics/right_branching.py``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from dragoman.measure import Measure
from dragoman.metrics.perplexity import perplexity

MIN_ANSWERS = 10
"""The fewest answers on which a guess that knows them all means anything."""
MIN_TOKENS = 100
"""The same of tokens."""


def has_learned(
    scores: Mapping[str, float], chance: Mapping[str, float], name: str, measure: Measure
) -> bool:
    """Whether a score is better than that of a guess, where that is known."""
    if name not in scores or name not in chance:
        return True
    return measure.is_better(scores[name], chance[name])


def of_tokens(texts: Iterable[Iterable[int]]) -> dict[str, float]:
    """Of tokens, and of one end symbol for each text."""
    counts: Counter[int] = Counter()
    for tokens in texts:
        counts.update(map(int, tokens))
        counts[-1] += 1
    if counts.total() < MIN_TOKENS:
        return {}
    loss = entropy(counts.values())
    return {"loss": loss, "perplexity": perplexity(loss)}


def entropy(counts: Iterable[int]) -> float:
    """Of how often each of some answers is right, in nats."""
    found = [count for count in counts if count]
    total = sum(found)
    return -math.fsum(count / total * math.log(count / total) for count in found)
