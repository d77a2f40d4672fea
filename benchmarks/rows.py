"""Labels of recordings and of pictures by a run, beside baselines that learn from the same files.

    .venv/bin/python benchmarks/rows.py recordings data/fsdd            makes train/ and test/ there
    .venv/bin/python benchmarks/rows.py runs/digits                     a run on recordings
    .venv/bin/python benchmarks/rows.py runs/mnist                      a run on pictures

Recordings: the nearest training recording by the distance of their frames, once squeezed to 20
frames each, once warped in time (dynamic time warping, cosine distance of frames, divided by the
sum of both lengths). Pictures: logistic regression over the pixels, by L-BFGS with a weight decay
that is chosen on 5,000 training pictures, and the nearest training picture. All are given the run's
own training set (dev counted in) and its test set; results go to benchmarks/results/rows.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tarfile
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from provenance import Watch

from dragoman.forms.form import Pair
from dragoman.runs.corpora import plain_corpora
from dragoman.tasks.catalogue import Run
from dragoman.tasks.classification.evaluation import ClassificationEvaluation
from dragoman.tasks.shared.evaluation import EvaluationRequest

RESULTS = Path(__file__).resolve().parent / "results" / "rows.json"
Floats = npt.NDArray[np.float32]
SQUEEZED = 20
DECAYS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)
HELD = 5_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="+", type=Path)
    given = parser.parse_args().what
    if given[0] == Path("recordings"):
        lay_out(given[1])
        return
    rows = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    for folder in given:
        rows = [row for row in rows if row["run"] != folder.name] + measured(Run.open(folder))
        RESULTS.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


def lay_out(folder: Path) -> None:
    """From the recordings of the Free Spoken Digit Dataset, ``recordings.tar.gz`` or a folder
    ``recordings``, to train/DIGIT/*.wav and test/DIGIT/*.wav: index 0 to 4 of each is test."""
    packed = folder / "recordings.tar.gz"
    if packed.exists():
        with tarfile.open(packed) as archive:
            archive.extractall(folder, filter="data")
    for file in sorted(folder.glob("*.wav")) + sorted(folder.glob("recordings/*.wav")):
        digit, _, index = file.stem.split("_")
        side = folder / ("test" if int(index) < 5 else "train") / digit
        side.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, side / file.name)


def measured(run: Run) -> list[dict[str, Any]]:
    """A row for the run, and one for each baseline."""
    watch, found = Watch(), []
    train = list(
        chain.from_iterable(
            corpus.pairs for side in ("train", "dev") for corpus in plain_corpora(run.recipe, side)
        )
    )
    test = ClassificationEvaluation().read_fitting(EvaluationRequest(run)).pairs
    report = ClassificationEvaluation()(run)
    right = round(report.scores["accuracy"] / 100 * len(test))
    found.append(_row(run, "dragoman", right, len(test), report.seconds))
    baselines = RECORDINGS if run.recipe.source.kind == "frames" else PICTURES
    for name, guess in baselines.items():
        began = time.perf_counter()
        chosen = guess(run, train, test)
        right = sum(label == pair.target for label, pair in zip(chosen, test, strict=True))
        found.append(_row(run, name, right, len(test), time.perf_counter() - began))
    about = watch.stamp()
    return [row | about for row in found]


def _row(run: Run, name: str, right: int, count: int, seconds: float) -> dict[str, Any]:
    share = right / count
    spread = 1.96 * (share * (1 - share) / count) ** 0.5
    print(
        f"{run.folder.name:12} {name:30} {100 * share:6.2f} ± {100 * spread:.2f}  {seconds:.1f} s"
    )
    return {
        "run": run.folder.name, "system": name, "right": right, "of": count,
        "accuracy": round(100 * share, 3), "interval": round(100 * spread, 3),
        "seconds": round(seconds, 1),
    }  # fmt: skip


# --- recordings -----------------------------------------------------------------------------------


def _frames(run: Run, pairs: Sequence[Pair]) -> Iterator[Floats]:
    for start in range(0, len(pairs), 64):
        for rows in run.source.encode([pair.source for pair in pairs[start : start + 64]]):
            yield rows.astype(np.float32)


def squeezed_neighbour(run: Run, train: Sequence[Pair], test: Sequence[Pair]) -> list[str]:
    """The nearest by Euclid's distance, each recording brought to as many frames."""

    def squeeze(frames: Floats) -> Floats:
        at = np.linspace(0, len(frames) - 1, SQUEEZED)
        low = np.floor(at).astype(int)
        high, part = np.minimum(low + 1, len(frames) - 1), (at - low)[:, None]
        found: Floats = (frames[low] * (1 - part) + frames[high] * part).astype(np.float32).ravel()
        return found

    known = np.stack([squeeze(one) for one in _frames(run, train)])
    asked = np.stack([squeeze(one) for one in _frames(run, test)])
    return [train[int(n)].target for n in _distances(asked, known).argmin(axis=1)]


def warped_neighbour(run: Run, train: Sequence[Pair], test: Sequence[Pair]) -> list[str]:
    """The nearest by dynamic time warping."""
    known = [_unit(one) for one in _frames(run, train)]
    lengths = np.array([len(one) for one in known])
    grid = np.zeros((len(known), lengths.max(), known[0].shape[1]), np.float32)
    for place, one in enumerate(known):
        grid[place, : len(one)] = one
    last = np.arange(len(known)), lengths
    chosen = []
    for one in _frames(run, test):
        costs = 1 - np.einsum("nsf,tf->tns", grid, _unit(one), optimize=True)
        best = np.full((len(known), grid.shape[1] + 1), np.inf, np.float32)
        best[:, 0] = 0
        for row in costs:  # (N, S)
            reached = np.full_like(best, np.inf)
            below = np.minimum(best[:, 1:], best[:, :-1])
            for s in range(grid.shape[1]):
                reached[:, s + 1] = row[:, s] + np.minimum(below[:, s], reached[:, s])
            best = reached
        chosen.append(train[int((best[last] / (lengths + len(one))).argmin())].target)
    return chosen


def _unit(frames: Floats) -> Floats:
    return frames / np.maximum(np.linalg.norm(frames, axis=1, keepdims=True), 1e-6)


def _distances(asked: Floats, known: Floats) -> Floats:
    squares = (known**2).sum(axis=1)
    found: Floats = squares[None] - 2 * asked @ known.T
    return found


# --- pictures -------------------------------------------------------------------------------------


def _pixels(run: Run, pairs: Sequence[Pair]) -> Floats:
    every = run.source.encode([pair.source for pair in pairs])
    found: Floats = np.stack([rows.reshape(-1) for rows in every]).astype(np.float32) / 255
    return found


def regression(run: Run, train: Sequence[Pair], test: Sequence[Pair]) -> list[str]:
    """Logistic regression over the pixels."""
    names = sorted({pair.target for pair in train})
    pixels = torch.from_numpy(_pixels(run, train))
    labels = torch.tensor([names.index(pair.target) for pair in train])
    asked = torch.from_numpy(_pixels(run, test))

    def fitted(x: torch.Tensor, y: torch.Tensor, decay: float) -> torch.nn.Linear:
        torch.manual_seed(1)
        layer = torch.nn.Linear(x.shape[1], len(names))
        optimizer = torch.optim.LBFGS(
            layer.parameters(), max_iter=200, line_search_fn="strong_wolfe"
        )

        def loss() -> torch.Tensor:
            optimizer.zero_grad()
            found = torch.nn.functional.cross_entropy(layer(x), y)
            found = found + decay * layer.weight.pow(2).sum()
            found.backward()
            return found

        optimizer.step(loss)
        return layer

    order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(1))
    held, rest = order[:HELD], order[HELD:]

    def accuracy(decay: float) -> float:
        with torch.no_grad():
            found = fitted_on_rest[decay](pixels[held]).argmax(1)
        return float((found == labels[held]).float().mean())

    fitted_on_rest = {decay: fitted(pixels[rest], labels[rest], decay) for decay in DECAYS}
    best = max(DECAYS, key=accuracy)
    with torch.no_grad():
        chosen = fitted(pixels, labels, best)(asked).argmax(1)
    return [names[int(one)] for one in chosen]


def nearest_picture(run: Run, train: Sequence[Pair], test: Sequence[Pair]) -> list[str]:
    """The nearest by Euclid's distance."""
    known, asked = _pixels(run, train), _pixels(run, test)
    return [
        train[int(n)].target
        for start in range(0, len(asked), 500)
        for n in _distances(asked[start : start + 500], known).argmin(axis=1)
    ]


RECORDINGS = {
    "nearest neighbour, squeezed": squeezed_neighbour,
    "nearest neighbour, warped": warped_neighbour,
}
PICTURES = {"logistic regression": regression, "nearest neighbour": nearest_picture}

if __name__ == "__main__":
    main()
