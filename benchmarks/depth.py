"""What residual connections and layer norms are good for: the loss of deep and of shallow models.

    python benchmarks/depth.py                  all of it, some twenty minutes on one core
    python benchmarks/depth.py --tiny           the same in little, to see that it runs

Transformers of N + N layers learn to translate the sentences of the embedded demo corpus, word by
word, all with the same updates, the same rate and the same pairs in the same order: as the paper
has it (post-norm), with pre-norm, without norms, and both kinds without residual connections.
Printed and stored: nats a token on the dev pairs, of each seed. A model that has learned nothing
but how often each word occurs is the row "frequencies".

Written to ``benchmarks/results/depth.json``; docs/results.md shows what came of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from provenance import Watch
from results import Results
from small_trainings import EOS, FIRST, Pair, Plan, heldout, options_of, train, use_one_thread

from dragoman.demo.corpus import DemoPair, demo_corpus

RESULTS = Path(__file__).resolve().parent / "results" / "depth.json"

KINDS: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "pre-norm": {"norm": "pre"},
    "no norm": {"norm": "none"},
    "post-norm, no residual": {"residual": False},
    "pre-norm, no residual": {"norm": "pre", "residual": False},
}
SIZES = {"model_dim": 64, "ffn_dim": 128, "attention": {"num_heads": 4}, "dropout": 0.0}
PLAN = Plan(updates=250, pairs=32, peak=1e-3, warmup=60)
DEPTHS, SEEDS = (2, 6, 12), (1, 2)


def words_of(text: str) -> list[str]:
    """Lower-cased words; the mark at the end is one of them."""
    return [*text[:-1].lower().replace(",", " ,").split(), text[-1]]


def numbered(pairs: Sequence[DemoPair], numbers: dict[str, int]) -> list[Pair]:
    """Words as numbers, those of both languages in one vocabulary."""

    def side(text: str) -> np.ndarray[Any, np.dtype[np.int32]]:
        found = [numbers.setdefault(word, FIRST + len(numbers)) for word in words_of(text)]
        return np.array(found, np.int32)

    return [(side(pair.source), side(pair.target)) for pair in pairs]


def of_frequencies(train_pairs: Sequence[Pair], dev: Sequence[Pair]) -> float:
    """Nats a token of the dev targets by how often each occurs in training."""
    counts = Counter(token for _, target in train_pairs for token in [*target.tolist(), EOS])
    total = sum(counts.values())
    found = [
        -math.log(max(counts[token], 1) / total)
        for _, target in dev
        for token in [*target.tolist(), EOS]
    ]
    return sum(found) / len(found)


def main() -> None:
    tiny, plan, seeds, path = options_of(
        "The loss of deep models, with and without.",
        "a few updates of shallow models",
        PLAN,
        SEEDS,
        RESULTS,
    )
    depths = (1, 2) if tiny else DEPTHS
    use_one_thread()
    corpus, numbers = demo_corpus(), dict[str, int]()
    learned, dev = numbered(corpus.train, numbers), numbered(corpus.dev, numbers)
    results = Results(path, ("kind", "layers", "seed"))
    shared = {"updates": plan.updates, "pairs": plan.pairs}
    watch = Watch()
    row = {"kind": "frequencies", "layers": 0, "seed": 0, "loss": of_frequencies(learned, dev)}
    results.store(row | shared | watch.stamp())
    for seed in seeds:
        for layers in depths:
            for kind, changes in KINDS.items():
                row = {"kind": kind, "layers": layers, "seed": seed}
                if results.has(row):
                    continue
                watch = Watch()
                model = train(
                    {**SIZES, **changes, "encoder_layers": layers, "decoder_layers": layers},
                    FIRST + len(numbers),
                    plan,
                    seed,
                    lambda random, count: [
                        learned[i] for i in random.integers(len(learned), size=count)
                    ],
                )
                row["loss"] = round(heldout(model, dev[:300]), 4)
                print(
                    f"{kind}, {layers}+{layers} layers, seed {seed}: {row['loss']:.3f}", flush=True
                )
                results.store(row | shared | watch.stamp())


if __name__ == "__main__":
    main()
