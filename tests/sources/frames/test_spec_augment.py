"""SpecAugment: what is hidden is as much as was allowed, and the same wherever it is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_cells import tiny_cell

from dragoman.base.errors import RecipeError
from dragoman.data.plan import Plan
from dragoman.runs.corpora import learn_vocabularies
from dragoman.runs.prepare import prepare
from dragoman.sources.augment import SpecAugmentSettings, mask, stretch
from dragoman.tasks.catalogue import Recipe, runtime_of
from dragoman.tasks.shared.examples import TrainingBatches

ROWS = np.ones((100, 20), np.float16)


def test_masks_are_no_wider_than_allowed_and_of_every_width() -> None:
    settings = SpecAugmentSettings(time_masks=1, time_width=7)
    widths = set()
    for seed in range(200):
        found = mask(ROWS, settings, seed)
        hidden = np.flatnonzero((found == 0).all(axis=1))
        assert found.sum() == 20 * (100 - len(hidden))
        assert not len(hidden) or hidden[-1] - hidden[0] == len(hidden) - 1
        widths.add(len(hidden))
    assert widths == set(range(8))
    assert (ROWS == 1).all()  # a copy is masked
    settings = SpecAugmentSettings(band_masks=1, band_width=5)
    hidden_bands = [int((mask(ROWS, settings, s) == 0).all(axis=0).sum()) for s in range(200)]
    assert set(hidden_bands) == set(range(6))


def test_every_place_is_hidden_and_a_short_recording_is_not_hidden_whole() -> None:
    settings = SpecAugmentSettings(time_masks=2, time_width=50, band_masks=2, band_width=30)
    hidden = sum((mask(ROWS, settings, seed) == 0).astype(int) for seed in range(300))
    assert hidden.min() > 0
    short = np.ones((10, 4))
    only_time = SpecAugmentSettings(time_masks=2, time_width=50)
    for seed in range(100):
        assert (mask(short, only_time, seed) == 0).all(axis=1).sum() <= 4
    for shape in ((1, 4), (3, 1)):
        assert mask(np.ones(shape), settings, 1).shape == shape


def test_a_recording_is_stretched_within_its_limit_and_keeps_its_ends() -> None:
    rows = np.cumsum(np.ones((101, 3), np.float32), axis=0)
    for length in (60, 101, 130):
        found = stretch(rows, length)
        assert found.shape == (length, 3) and found.dtype == np.float32
        assert np.allclose(
            found[:, 0], np.interp(np.linspace(0, 100, length), range(101), rows[:, 0])
        )
    settings = SpecAugmentSettings(stretch=0.2)
    lengths = [len(mask(rows, settings, seed)) for seed in range(300)]
    assert min(lengths) in (81, 82) and max(lengths) in (120, 121)
    assert abs(float(np.mean(lengths)) - 101) < 3
    assert settings.is_on and mask(np.ones((1, 4)), settings, 3).shape == (1, 4)


CELLS = [("translation", "transformer"), ("classification", "encoder")]


@pytest.mark.parametrize(("task", "kind"), CELLS)
def test_a_recording_is_masked_by_seed_update_and_example_alone(
    task: str, kind: str, tmp_path: Path
) -> None:
    recipe = tiny_cell(task, kind, "frames", tmp_path / "files").change(
        ["training.spec_augment.time_masks=2", "training.spec_augment.band_masks=1"]
    )
    (tmp_path / "run").mkdir()
    learn_vocabularies(recipe, tmp_path / "run", lambda _: None)
    found = prepare(recipe, tmp_path / "run", lambda _: None)
    examples = runtime_of(recipe.spec).parts().examples(found.train, recipe, found.forms)

    def read(update: int, *numbers: int) -> list[np.ndarray[tuple[int], np.dtype[np.float16]]]:
        source = examples.batch(update, numbers).source
        return [part.numpy() for part in source.values.split(list(source.layout.lengths))]

    together = read(3, 4, 0, 2)
    for number, rows in zip((4, 0, 2), together, strict=True):
        (alone,) = read(3, number)
        assert np.array_equal(alone, rows)
        assert not np.array_equal(alone, read(4, number)[0])
        assert not np.array_equal(alone, found.train.values("source", number))
        assert (alone == 0).any()
    lengths = found.train.lengths["source"].tolist()
    of_one_length = [n for n, length in enumerate(lengths) if length == lengths[0]]
    masks = {(rows == 0).tobytes() for rows in read(3, *of_one_length)}
    assert len(masks) > len(of_one_length) / 2  # each its own
    other = recipe.model_copy(update={"seed": 2})
    changed = runtime_of(recipe.spec).parts().examples(found.train, other, found.forms)
    assert not np.array_equal(changed.batch(3, [4, 0, 2]).source.values, np.concatenate(together))
    batches = TrainingBatches(Plan(examples, recipe.bounded_plan, recipe.seed), examples)
    one, again = (np.concatenate([m().source.values.numpy() for m in batches(7)]) for _ in range(2))
    assert np.array_equal(one, again)


def test_text_and_pictures_are_not_masked(tmp_path: Path) -> None:
    recipe = tiny_cell("translation", "transformer", "picture", tmp_path)
    with pytest.raises(RecipeError, match=r"spec_augment hides parts of recordings"):
        recipe.change(["training.spec_augment.band_masks=1"])


def test_coefficients_are_masked_in_time_alone(tmp_path: Path) -> None:
    recipe = tiny_cell("translation", "transformer", "frames", tmp_path)
    values = recipe.model_dump(mode="json", exclude_none=True)
    values["source"] = {"kind": "frames", "features": "mfcc"}
    made = Recipe.parse(values).change(["training.spec_augment.time_masks=1"])
    with pytest.raises(RecipeError, match=r"band_masks hides bands"):
        made.change(["training.spec_augment.band_masks=1"])
