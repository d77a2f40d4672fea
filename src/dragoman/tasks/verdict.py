"""Says in sentences whether a training run was successful, for people to whom its scores say
little.

A run that had too little time or text ends like any other, with a report and a score. The verdict
says if it has learned its task at all: by its score on dev, by the score of guessing alone, and by
whether its outputs follow its input.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable

from dragoman.base.measure import LOSS
from dragoman.base.wording import plural, shorten
from dragoman.runs.run import Run
from dragoman.sizing.minutes import min_tokens
from dragoman.tasks.catalogue import runtime_of
from dragoman.tasks.shared.progress_made import TEXT, TrainingSummary

_ALIKE, _MORE_ALIKE = 0.4, 0.25
"""Outputs are alike if they share this many of their letter triples, and this many more than the
references of the same sources do."""
_MIN_OUTPUTS = 3
"""The least number of outputs that are compared."""
_OFTEN = 20
"""The number of epochs after which a run may know its training text by heart."""
_BY_HEART = 1.0
"""A run knows its training text by heart if its loss on dev is higher than that on its training
text by more than this, in nats."""
_ONCE = 0.95
"""Below this number of epochs, a part of the training text was never seen."""
_FEW = 20
"""The number of examples below which a share may be off by more than 20 points (95 %
confidence)."""
_MAX_MINUTES = 1e6
"""The most minutes that are shown: a damaged record may hold any number."""
_SHOWN = 60


def verdict(run: Run) -> list[str]:
    """Return sentences that say if a run has hardly learned its task, or if its outputs do not
    follow its input; an empty list for any other run."""
    sentences, training = [], TrainingSummary.of(run)
    if why := hardly_learned(run, training):
        advice = _advice(run, training) if training.tokens else ""  # no training is recorded
        sentences.append(f"This run {why}. {advice}".rstrip())
    if alike := _same_words(run, training):
        such = shorten(alike, _SHOWN)
        sentences.append(f"It writes much the same words whatever it reads, such as “{such}”.")
    return sentences


def hardly_learned(run: Run, training: TrainingSummary) -> str:
    """Say that a run "has hardly learned to" do its task, and why; empty for any other run."""
    why = runtime_of(run.task).hardly_learned(run, training)
    return f"has hardly learned to {run.task.verbs[0][0]}: {why}" if why else ""


def cautions(run: Run, epochs: float) -> list[str]:
    """Say if a run was trained for less than one of its ``epochs``, or has held-out sets so small
    that their scores say little. The list is empty for any other run."""
    reasons = []
    if epochs < _ONCE:
        reasons.append(f"it has learned from {100 * epochs:.2g} % of its {run.task.noun}")
    noun = run.task.noun.removesuffix("s")
    counts = run.notes().get("pairs", {})
    for part, what in (("dev", "its weights were chosen by"), ("test", "it was measured on")):
        if 0 < counts.get(part, 0) < _FEW:
            reasons.append(f"{what} {plural(counts[part], noun)}")
    if not reasons:
        return []
    *first, last = reasons
    listed = f"{', '.join(first)} and {last}" if first else last
    return [f"This run has seen little, so take its scores with care: {listed}."]


def _advice(run: Run, training: TrainingSummary) -> str:
    """Advise what would improve the run: more text or more time."""
    notes, dev = run.notes().get(TEXT, {}), training.scores.get("loss")
    epochs = training.tokens / notes["tokens"] if notes.get("tokens") else 0.0
    if epochs >= _OFTEN and dev is not None and dev > training.nll + _BY_HEART:
        return (
            f"It has seen its {run.task.noun} {epochs:.0f} times and knows them by heart "
            f"(loss {LOSS.text(training.nll)} on them, {LOSS.text(dev)} on dev): more of "
            "them would help, more minutes would not."
        )
    more = training.seconds
    wanted = min_tokens(
        run.task, run.recipe.model.model_dim, notes.get("length", 0.0),
        notes.get("tokens") or math.inf, run.recipe.training.optimizer.kind,
    )  # fmt: skip
    longer = ""
    if training.tokens < wanted:
        more *= wanted / training.tokens - 1
    else:
        longer = (
            f"It has seen {training.tokens:,} {run.task.counted}, and such a model usually begins "
            f"after about {wanted:,.0f}: this one takes longer. "
        )
    minutes, in_all = (
        math.ceil(min(max(1.0, seconds / 60), _MAX_MINUTES))
        for seconds in (more, training.seconds + more)
    )
    return (
        f"{longer}About {plural(minutes, 'more minute')} of training would help: train again with "
        f"--minutes {in_all}, or raise training.updates in its recipe.toml and resume it."
    )


def _same_words(run: Run, training: TrainingSummary) -> str | None:
    """Return one output of a run that writes much the same for each sample; None for other runs."""
    if not run.task.writes_text:
        return None
    samples = [*training.samples, *run.scores().get("samples", [])]
    by_source = {sample["source"]: sample for sample in samples if sample["translation"].strip()}
    if len(by_source) < _MIN_OUTPUTS:
        return None
    outputs, references = (
        _alike(row[side] for row in by_source.values()) for side in ("translation", "reference")
    )
    if outputs < max(_ALIKE, references + _MORE_ALIKE):
        return None
    return str(next(iter(by_source.values()))["translation"])


def _alike(texts: Iterable[str]) -> float:
    """The share of letter triples that two of the texts have in common, averaged over all pairs."""
    triples = [Counter(zip(text, text[1:], text[2:], strict=False)) for text in texts]
    shared = [
        2 * (first & second).total() / max(1, first.total() + second.total())
        for first, second in itertools.combinations(triples, 2)
    ]
    return sum(shared) / len(shared)
