"""How Transformers do on inputs longer than any of their training, by how positions are told.

    python benchmarks/longer.py                 all of it, some twenty minutes on one core
    python benchmarks/longer.py --tiny          the same in little, to see that it runs

Two things are learned, from random letters in sequences of 1 to 20: to copy them, and to write them
in reverse. Then sequences of 10, 20, 21, ... 60 are asked for. The paper chose sinusoids because
they "may allow the model to extrapolate to sequence lengths longer than the ones encountered during
training" (§3.5). Printed and stored, for each kind of position and seed: the share of letters that
are right, the letters before each given (teacher forcing), and the share of sequences that are
right as a whole.

Written to ``benchmarks/results/longer.json`` and drawn in ``longer.svg`` beside it;
docs/results.md shows the means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from provenance import Watch
from results import Results
from small_trainings import FIRST, Pair, Plan, Tokens, batch_of, options_of, train, use_one_thread

from dragoman.models.transformer.model import Transformer
from dragoman.pictures.chart import chart_svg
from dragoman.pictures.records import Chart, Series

RESULTS = Path(__file__).resolve().parent / "results" / "longer.json"

LETTERS, LONGEST = 26, 20
KINDS = ("sinusoidal", "learned", "index", "normalised", "binary", "none")
LENGTHS = (10, 20, 21, 25, 30, 40, 60)
TASKS: dict[str, Callable[[Tokens], Tokens]] = {"copy": lambda x: x, "reverse": lambda x: x[::-1]}
SIZES = {
    "model_dim": 64, "ffn_dim": 128, "encoder_layers": 2, "decoder_layers": 2,
    "attention": {"num_heads": 4}, "dropout": 0.0,
}  # fmt: skip
PLAN = Plan(updates=800, pairs=32, peak=2e-3, warmup=100)
SEEDS, ASKED = (1, 2, 3), 200


def sequences(
    random: np.random.Generator, lengths: Sequence[int], made: Callable[[Tokens], Tokens]
) -> list[Pair]:
    """Pairs of random letters, and what is to be written for them."""
    letters = [random.integers(FIRST, FIRST + LETTERS, n).astype(np.int32) for n in lengths]
    return [(one, np.ascontiguousarray(made(one))) for one in letters]


def right(model: Transformer, pairs: Sequence[Pair]) -> tuple[float, float]:
    """Shares of letters, ends counted, and of whole sequences that are right."""
    with torch.inference_mode():
        batch = batch_of(pairs)
        hidden = model.decode(batch.target_in, model.encode(batch.source))
        hits = model.project(hidden).argmax(dim=-1) == batch.target_out
    of_each = hits.split([len(target) + 1 for _, target in pairs])
    whole = [bool(one.all()) for one in of_each]
    return float(hits.double().mean()), sum(whole) / len(whole)


def draw(results: Results) -> Path:
    """The shares of letters of sequences that are copied, means over the seeds -> the file."""
    series = []
    for kind in KINDS:
        rows = [row for row in results.rows() if (row["task"], row["positions"]) == ("copy", kind)]
        if rows:
            means = [100 * fmean(row["letters"][str(length)] for row in rows) for length in LENGTHS]
            series.append(Series(kind, list(LENGTHS), means))
    title = f"Letters copied rightly, percent; trained on at most {LONGEST}"
    path = results.path.with_suffix(".svg")
    chart = Chart(title, series, x_label="letters of a sequence", from_zero=True)
    path.write_text(chart_svg(chart), encoding="utf-8")
    return path


def main() -> None:
    tiny, plan, seeds, path = options_of(
        "Inputs longer than those of training.",
        "a few updates, two kinds, one seed",
        PLAN,
        SEEDS,
        RESULTS,
    )
    kinds, asked = (KINDS[:2], 4) if tiny else (KINDS, ASKED)
    use_one_thread()
    results = Results(path, ("task", "positions", "seed"))
    for seed in seeds:
        for task, made in TASKS.items():
            for kind in kinds:
                row: dict[str, Any] = {"task": task, "positions": kind, "seed": seed}
                if results.has(row):
                    continue
                watch = Watch()

                def drawn(random: np.random.Generator, count: int) -> list[Pair]:
                    return sequences(random, random.integers(1, LONGEST + 1, count), made)  # noqa: B023

                model = train(
                    {**SIZES, "positions": {"kind": kind}}, FIRST + LETTERS, plan, seed, drawn
                )
                found = {
                    length: right(
                        model, sequences(np.random.default_rng(length), [length] * asked, made)
                    )
                    for length in LENGTHS
                }
                row["letters"] = {str(length): round(one[0], 4) for length, one in found.items()}
                row["whole"] = {str(length): round(one[1], 4) for length, one in found.items()}
                row |= {"updates": plan.updates, "longest": LONGEST}
                print(f"{task}, {kind}, seed {seed}: {row['letters']}", flush=True)
                results.store(row | watch.stamp())
    print(draw(results))


if __name__ == "__main__":
    main()
