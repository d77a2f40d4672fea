"""What guessing scores, and from which scores on a model counts as having begun to learn.

These are two questions. Whether a score is above that of a guess decides whether one model may be
called better than another (``studies``): below, their difference is one between guesses. Whether a
run has begun is a stricter one: the verdict at its end (``tasks/verdict.py``) sends a user back to
training, who wants to use the model.

A guess does not look at the source, or at the words before. It knows the answers of training
(``learned_answers``), and never those that it is measured on:

* a label: always the most frequent one;
* a translation: always the one that is most like all others, by chrF; and at least 1 BLEU;
* what is said in a recording: always the most frequent text, or nothing;
* a tree: right-branching brackets (``metrics/right_branching.py``).

A loss has a stricter guess, so that no other is better: each token, tag or label as often as it is
among those that are measured, which costs the entropy of that distribution, H = -Σ p log p nats; of
masked tokens, the most frequent one is always chosen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, islice

from dragoman.errors import DragomanError
from dragoman.measure import Measure
from dragoman.metrics.perplexity import perplexity
from dragoman.recipe import Recipe
from dragoman.runs.corpora import plain_corpora

MIN_ANSWERS = 10
"""The fewest answers on which a guess that knows them all means anything."""
MIN_TOKENS = 100
"""The same of tokens."""
_READ, _ANSWERS = 100_000, 2_000
"""Training examples that are read for a guess, and how many of them it knows."""


def learned_answers(recipe: Recipe) -> list[str]:
    """Some targets of a recipe's training examples, spread over the first ``_READ``; none where its
    text is no longer there."""
    try:
        pairs = chain.from_iterable(corpus.pairs for corpus in plain_corpora(recipe, "train"))
        found = [pair.target for pair in islice(pairs, _READ)]
    except DragomanError:
        return []
    return found[:: -(-len(found) // _ANSWERS) or 1]


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
