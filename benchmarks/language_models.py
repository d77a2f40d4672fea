"""Language models beside an n-gram with the same vocabulary, on the same held-out text.

    dragoman train movie-reviews --minutes 60
    dragoman train movie-reviews-lstm --minutes 60
    python benchmarks/language_models.py runs/movie-reviews runs/movie-reviews-lstm

For each run: an interpolated modified Kneser–Ney 5-gram (``kneser_ney.py``) is counted over the
run's own training tokens, and both are measured on the run's test set, end symbols counted: the
n-gram with all of the text before a token, the run as ``dragoman evaluate`` reads it. Printed
whoever wins, and written to ``benchmarks/results/language-models.json``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from kneser_ney import KneserNey
from results import measure_runs
from run_texts import held_out_texts, training_tokens

from dragoman.runs.run import Run
from dragoman.tasks.language_model.evaluation import LanguageModelEvaluation
from dragoman.tasks.shared.surprisal import Length

RESULTS = Path(__file__).resolve().parent / "results" / "language-models.json"
ORDER = 5


def measured(run: Run) -> dict[str, Any]:
    """Perplexity and bits per byte of the run, and of the n-gram."""
    form = run.forms.written
    train = training_tokens(run)
    began = time.perf_counter()
    baseline = KneserNey.train(train, ORDER, form.size, form.bos, form.eos)
    texts = held_out_texts(run)
    written = form.tokens(texts)
    nll = -float(baseline.log_probabilities(written, form.eos).sum())
    seconds = time.perf_counter() - began
    prepared = zip(map(form.prepare, texts), written, strict=True)
    length = sum((Length.of(form.vocabulary, *one) for one in prepared), Length())
    ours = LanguageModelEvaluation()(run)
    assert ours.length == length, "both are measured on the same text"
    return {
        "train_tokens": sum(map(len, train)) + len(train),
        "test_tokens": length.tokens,
        "test_bytes": length.bytes,
        "vocabulary": form.size,
        "ours": ours.scores,
        "ngram": length.scores(nll) | {"order": ORDER, "seconds": round(seconds, 1)},
    }


def table(row: dict[str, Any]) -> str:
    """Both, side by side."""
    less = 1 - row["ours"]["perplexity"] / row["ngram"]["perplexity"]
    sizes = f"{row['vocabulary']:,} tokens, {row['test_tokens']:,} to predict"
    lines = [
        f"{row['run']}, {row['trained_minutes']} minutes; {sizes}",
        f"{'':<24} perplexity  bits per byte",
    ]
    for name, scores in ((row["run"], row["ours"]), (f"{ORDER}-gram", row["ngram"])):
        perplexity, bits = scores["perplexity"], scores["bits_per_byte"]
        lines.append(f"{name:<24} {perplexity:10.2f}  {bits:13.4f}")
    side = "below" if less > 0 else "above"
    lines.append(f"perplexity of the run: {abs(less):.1%} {side} that of the n-gram")
    return "\n".join(lines)


if __name__ == "__main__":
    measure_runs(RESULTS, __doc__ or "", "language models", measured, table)
