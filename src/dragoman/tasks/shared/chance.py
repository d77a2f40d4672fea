"""What guessing scores, and from which scores on a model counts as having begun to learn.

These are two questions. Whether a score is above that of a guess decides whether one model may be
called better than another (``studies``): below, their difference is one between guesses. Whether a
run has begun is a stricter one: the verdict at its end (``learned.py``) sends a user back to
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
from collections.abc import Iterable, Mapping, Sequence

from dragoman.data.corpora import Pair
from dragoman.forms.tree_form import tree_of
from dragoman.measure import Measure
from dragoman.metrics.chrf import pairwise_chrf
from dragoman.metrics.parseval import Parseval, score_parse
from dragoman.metrics.perplexity import perplexity
from dragoman.metrics.right_branching import RightBranching
from dragoman.metrics.translation import evaluate_translation
from dragoman.recipe import Recipe
from dragoman.runs.run import Forms
from dragoman.task import TASKS
from dragoman.tasks.shared.code_length import Length

BEGUN_BLEU, BEGUN_F1 = 5.0, 40.0
"""Below them a translator, or a parser, has hardly begun: trainings that were watched passed them
where the score begins to climb (docs/experiments.md, "Minutes that do not teach")."""
LEAST_BLEU = 1.0
"""The least BLEU that counts as more than a guess, even where the best guess scores less: of two
models with 0.7 and 0.0 neither translates, however significant the difference."""
_FEWEST = 10
"""The fewest answers on which a guess that knows them all means anything."""
_FEWEST_TOKENS = 100
"""The same of tokens."""
_ALIKE = 200
"""References among which the most typical one is searched for: all pairs are compared."""


def chance_of(recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
    """What guessing scores on ``pairs``, by the names that validation gives these scores; nothing
    where there are too few of them."""
    task = TASKS[recipe.task]
    if task.target == "label":
        return chance_of_labels([pair.target for pair in pairs])
    if "source" not in task.sides:
        texts = [pair.target for pair in pairs]
        return _of_texts(forms, texts) if task.writes else _of_masked(forms, texts)
    costs = _of_tokens(forms.target.encode([pair.target for pair in pairs]))
    if task.target == "tree":
        return costs | chance_of_trees(pairs)
    tokenizer = "none" if recipe.data.moses else None
    references = [[pair.target for pair in pairs]]
    return costs | chance_of_translations(references, recipe.languages.target, tokenizer)


def has_learned(
    scores: Mapping[str, float], chance: Mapping[str, float], name: str, measure: Measure
) -> bool:
    """Whether a score is better than that of a guess, where that is known."""
    if name not in scores or name not in chance:
        return True
    return measure.is_better(scores[name], chance[name])


def chance_of_labels(labels: Sequence[str]) -> dict[str, float]:
    """Of the right labels of some texts; nothing where these are too few or all the same."""
    if len(labels) < _FEWEST or len(set(labels)) < 2:
        return {}
    counts = Counter(labels)
    accuracy, macro_f1 = of_majority(list(counts.values()))
    loss = _entropy(counts.values())
    return {"accuracy": 100 * accuracy, "macro_f1": 100 * macro_f1, "loss": loss}


def of_majority(counts: Sequence[int]) -> tuple[float, float]:
    """Accuracy and macro F1, as shares, of always answering the most frequent label. ``counts``: of
    the texts of each label that occurs."""
    share = max(counts) / sum(counts)
    return share, 2 * share / (1 + share) / len(counts)


def chance_of_trees(pairs: Sequence[Pair]) -> dict[str, float]:
    """Of the trees of some sentences; nothing where these are too few."""
    if len(pairs) < _FEWEST:
        return {}
    trees = [tree_of(pair.target) for pair in pairs]
    guess = RightBranching(trees)
    found = Parseval.of(score_parse(tree, guess.parse(tree.words)) for tree in trees).scores
    return {name: found[name] for name in ("f1", "precision", "recall", "exact")}


def chance_of_translations(
    references: Sequence[Sequence[str]], language: str, tokenizer: str | None = None
) -> dict[str, float]:
    """Of references as ``evaluate_translation`` takes them."""
    lines = references[0]
    if len(lines) < _FEWEST:
        return {"bleu": LEAST_BLEU}
    some = list(lines[:: max(1, len(lines) // _ALIKE)])[:_ALIKE]
    usual = some[int(pairwise_chrf(some).mean(axis=1).argmax())]
    scores = evaluate_translation(
        [usual] * len(lines), references, language, tokenizer=tokenizer, metrics=("BLEU", "chrF")
    )
    return {"bleu": max(LEAST_BLEU, scores["BLEU"]), "chrf": scores["chrF"]}


def _of_texts(forms: Forms, texts: Sequence[str]) -> dict[str, float]:
    """Of texts that stand alone, end symbols counted."""
    vocabulary = forms.written.vocabulary
    written = vocabulary.encode(texts)
    if not (costs := _of_tokens(written)):
        return {}
    length = Length.sum(
        Length.of(vocabulary, text, tokens) for text, tokens in zip(texts, written, strict=True)
    )
    return costs | length.scores(costs["loss"] * length.tokens)


def _of_masked(forms: Forms, texts: Sequence[str]) -> dict[str, float]:
    counts = Counter(
        int(token) for tokens in forms.written.vocabulary.encode(texts) for token in tokens
    )
    if counts.total() < _FEWEST_TOKENS:
        return {}
    loss = _entropy(counts.values())
    most = max(counts.values()) / counts.total()
    return {"loss": loss, "perplexity": perplexity(loss), "accuracy": most}


def _of_tokens(texts: Iterable[Iterable[int]]) -> dict[str, float]:
    """Of tokens, and of one end symbol for each text."""
    counts: Counter[int] = Counter()
    for tokens in texts:
        counts.update(map(int, tokens))
        counts[-1] += 1
    if counts.total() < _FEWEST_TOKENS:
        return {}
    loss = _entropy(counts.values())
    return {"loss": loss, "perplexity": perplexity(loss)}


def _entropy(counts: Iterable[int]) -> float:
    """In nats."""
    found = [count for count in counts if count]
    total = sum(found)
    return -math.fsum(count / total * math.log(count / total) for count in found)
