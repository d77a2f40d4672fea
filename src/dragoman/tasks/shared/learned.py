"""What a training has achieved, in words for readers whom its figures tell little.

A run that was given too little time or text ends like any other, with a report and a score. Whether
it has learned its task at all is said here: by its score on dev, by what guessing alone would
reach, and by whether its outputs follow what it reads.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.address import found_at
from dragoman.data.store import Store, Tokens
from dragoman.measure import BLEU, LOSS, Measure, percent
from dragoman.plural import plural
from dragoman.runs.run import Run
from dragoman.shortened import shortened
from dragoman.sizing.pairs import least_tokens
from dragoman.tasks.shared.chance import BEGUN_BLEU, BEGUN_F1, of_majority

_OF_GUESSING = 0.9
"""A loss above so much of what guessing by frequency costs is hardly learned."""
_SURE = 2.0
"""Standard errors by which a labeller is better than one that always says the most frequent
label."""
_ALIKE, _MORE_ALIKE = 0.4, 0.25
"""Outputs are alike if they share so many of their letter triples, and so many more than the
references of the same sources do."""
_FEWEST = 3
"""Outputs that are compared."""
_OFTEN = 20
"""Epochs after which a run may know its training text by heart."""
_BY_HEART = 1.0
"""Nats by which its loss on dev is then above that of training."""
_MOST_MINUTES = 1e6
"""The most minutes that are shown: a damaged record may hold any number."""
_COUNTED = 2_000_000
"""Tokens that frequencies are counted over."""
_SHOWN = 60

TEXT = "text"
"""Among the notes of a run: what ``text_notes`` finds."""


def verdict(run: Run) -> list[str]:
    """Sentences about a run that has hardly learned its task, or whose outputs do not follow what
    it reads; none about any other run."""
    said, training = [], _Training.of(run)
    if why := found_at(run.task.learned)(run, training):
        verb = run.task.verbs[0][0]
        advice = _advice(run, training) if training.tokens else ""  # not recorded
        said.append(f"This run has hardly learned to {verb}: {why}. {advice}".rstrip())
    if alike := _same_words(run, training):
        such = shortened(alike, _SHOWN)
        said.append(f"It writes much the same words whatever it reads, such as “{such}”.")
    return said


@dataclass(frozen=True)
class _Training:
    """What the records of a run say of its training."""

    tokens: int
    seconds: float
    nll: float
    """The loss of the last updates, in nats."""
    scores: dict[str, float]
    """The best of each score on dev; of a loss the lowest."""
    samples: Sequence[dict[str, str]]
    """Of the last validation."""

    @classmethod
    def of(cls, run: Run) -> _Training:
        tokens, seconds, nlls = 0, 0.0, list[float]()
        scores: dict[str, float] = {}
        samples: Sequence[dict[str, str]] = ()
        for record in run.metrics():
            if record["kind"] == "update":
                tokens += record["tokens"]
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
        return cls(tokens, seconds, sum(last) / max(1, len(last)), scores, samples)


def by_bleu(run: Run, training: _Training) -> str | None:
    """Why a run has hardly learned to translate; None if it has, or nothing measured it."""
    return _below(BLEU, BEGUN_BLEU, training.scores.get("bleu"), _on_test(run, "BLEU"))


def by_f1(run: Run, training: _Training) -> str | None:
    """The same of a parser."""
    f1 = run.task.metrics["f1"]
    return _below(f1, BEGUN_F1, training.scores.get("f1"), _on_test(run, "f1"))


def _below(
    measure: Measure, least: float, on_dev: float | None, on_test: float | None
) -> str | None:
    """By the score on dev, or where there is none by that on the test set."""
    value, where = (on_test, "the test set") if on_dev is None else (on_dev, "dev")
    if value is None or value >= least:
        return None
    return (
        f"{measure.called} {measure.written(value)} on {where}, below the "
        f"{measure.written(least)} of a model that has begun to learn"
    )


def by_frequency(run: Run, training: _Training) -> str | None:
    """The same of a run that predicts tokens of a text: it knows little but frequencies."""
    guess, loss = run.notes().get(TEXT, {}).get("by_frequency"), training.scores.get("loss")
    if not guess or loss is None or loss < _OF_GUESSING * guess:
        return None
    return (
        f"its loss on dev is {LOSS.written(loss)} nats a token, and token frequencies alone give "
        f"{LOSS.written(guess)}"
    )


def by_majority(run: Run, training: _Training) -> str | None:
    """The same of a run that labels: it is no better than the most frequent label."""
    scores = run.scores()
    labels = scores.get("labels", [])
    texts = sum(one["texts"] for one in labels)
    if not texts:
        return None
    accuracy = sum(one["texts"] * one["recall"] for one in labels) / texts
    most = max(labels, key=lambda one: one["texts"])
    present = [one for one in labels if one["texts"]]
    f1 = sum(one["f1"] for one in present) / len(present)
    share, guessed = of_majority([one["texts"] for one in present])
    error = math.sqrt(share * (1 - share) / texts)
    if accuracy > share + _SURE * error or f1 > guessed + _SURE * error + 0.05:
        return None
    if columns := scores.get("confusion", []):
        chosen = [sum(row[k] for row in columns) for k in range(len(labels))]
        if max(chosen) == sum(chosen):
            always = labels[chosen.index(max(chosen))]["label"]
            return f"it gives every text the label {always!r}"
    shown = percent("accuracy", share=True)
    return (
        f"accuracy {shown.written(accuracy)}, and always answering {most['label']!r} gives "
        f"{shown.written(share)}"
    )


def _on_test(run: Run, name: str) -> float | None:
    found = run.scores().get("scores", {}).get(name)
    return None if found is None else float(found["value"])


def _advice(run: Run, training: _Training) -> str:
    """What would teach it more: text, or time."""
    notes, dev = run.notes().get(TEXT, {}), training.scores.get("loss")
    epochs = training.tokens / notes["tokens"] if notes.get("tokens") else 0.0
    if epochs >= _OFTEN and dev is not None and dev > training.nll + _BY_HEART:
        return (
            f"It has seen its {run.task.noun} {epochs:.0f} times and knows them by heart "
            f"(loss {LOSS.written(training.nll)} on them, {LOSS.written(dev)} on dev): more of "
            "them would help, more minutes would not."
        )
    more = training.seconds
    wanted = least_tokens(
        run.task, run.recipe.model.model_dim, notes.get("length", 0.0),
        notes.get("tokens") or math.inf,
    )  # fmt: skip
    if training.tokens < wanted:
        more *= wanted / training.tokens - 1
    minutes, in_all = (
        math.ceil(min(max(1.0, seconds / 60), _MOST_MINUTES))
        for seconds in (more, training.seconds + more)
    )
    return (
        f"About {plural(minutes, 'more minute')} of training would help: train anew with "
        f"--minutes {in_all}, or raise training.updates in its recipe.toml and resume it."
    )


def _same_words(run: Run, training: _Training) -> str | None:
    """One of the outputs of a run that writes much the same for each of its samples."""
    if not run.task.writes or run.task.target != "text":
        return None
    samples = [*training.samples, *run.scores().get("samples", [])]
    by_source = {one["source"]: one for one in samples if one["translation"].strip()}
    if len(by_source) < _FEWEST:
        return None
    outputs, references = (
        _alike(one[side] for one in by_source.values()) for side in ("translation", "reference")
    )
    if outputs < max(_ALIKE, references + _MORE_ALIKE):
        return None
    return str(next(iter(by_source.values()))["translation"])


def _alike(texts: Iterable[str]) -> float:
    """The share of letter triples that two of the texts have in common, averaged over all pairs."""
    triples = [Counter(zip(text, text[1:], text[2:], strict=False)) for text in texts]
    shared = [
        2 * (one & other).total() / max(1, one.total() + other.total())
        for one, other in itertools.combinations(triples, 2)
    ]
    return sum(shared) / len(shared)


def text_notes(store: Store, side: str, vocabulary: int | None, dev: Sequence[Tokens]) -> Any:
    """What a run notes of the text that it learns to write: ``tokens`` of an epoch and the mean
    ``length`` of an example, end symbols counted; with a ``vocabulary``, what it costs
    ``by_frequency`` to guess the tokens of ``dev``, in nats each."""
    lengths = store.lengths[side]
    tokens = int(lengths.sum(dtype=np.int64)) + len(lengths)
    notes: dict[str, float] = {"tokens": tokens, "length": round(tokens / len(lengths), 2)}
    if vocabulary is not None and any(map(len, dev)):
        counts, seen = np.ones(vocabulary), 0
        for example in range(len(store)):
            some = store.tokens(side, example)
            counts += np.bincount(some, minlength=vocabulary)
            seen += len(some)
            if seen >= _COUNTED:
                break
        cost = -np.log(counts / counts.sum())
        asked = np.concatenate(dev)
        notes["by_frequency"] = round(float(cost[asked].mean()), 4)
    return notes
