"""Pictures are varied within the limits that were given, and alike wherever they are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_cells import tiny_cell
from tiny_tasks import tiny_recipe_of
from torch.nn import functional as F

from dragoman.base.errors import RecipeError
from dragoman.runs.corpora import learn_vocabularies
from dragoman.runs.prepare import prepare
from dragoman.sources.augment import PictureAugmentSettings, _places, read_at, vary
from dragoman.sources.picture.form import patches_of, pixels_from
from dragoman.tasks.catalogue import runtime_of

PIXELS = np.random.default_rng(0).integers(0, 256, (13, 9, 3), dtype=np.uint8)
ALL = {
    "shift": 0.2, "rotation": 30, "scale": 0.3, "shear": 0.2, "bend": 0.1, "flip": True,
    "contrast": 0.3, "brightness": 0.1, "erase": 0.3,
}  # fmt: skip


def places(seed: int, **given: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """(H, W, 2): the row and column of the old picture, counted from the middle."""
    settings = PictureAugmentSettings.model_validate(given)
    rows, columns = _places((13, 9), settings, np.random.default_rng(seed))
    return np.stack([rows - 6, columns - 4], -1)


def test_nothing_is_varied_unless_it_is_asked_for() -> None:
    off = PictureAugmentSettings()
    assert not off.is_on and (vary(PIXELS, off, 3) == PIXELS).all()
    for name, value in ALL.items():
        one = PictureAugmentSettings.model_validate({name: value})
        before = PIXELS.copy()
        found = [vary(PIXELS, one, seed) for seed in range(8)]
        assert one.is_on and any((some != PIXELS).any() for some in found), name
        assert all((vary(PIXELS, one, seed) == found[seed]).all() for seed in range(8))
        assert (before == PIXELS).all() and all(some.shape == PIXELS.shape for some in found)


def test_places_between_pixels_are_read_as_torch_reads_them() -> None:
    rng = np.random.default_rng(1)
    rows = rng.uniform(-4, 17, (6, 5)).astype(np.float32)
    columns = rng.uniform(-4, 13, (6, 5)).astype(np.float32)
    grid = torch.from_numpy(np.stack([columns / 8 * 2 - 1, rows / 12 * 2 - 1], -1))
    picture = torch.from_numpy(PIXELS).permute(2, 0, 1)[None].float()
    wanted = F.grid_sample(picture, grid[None], padding_mode="border", align_corners=True)
    found = read_at(PIXELS, rows, columns)
    assert np.abs(found - wanted[0].permute(1, 2, 0).numpy()).max() < 0.51


@pytest.mark.parametrize("seed", range(20))
def test_a_movement_stays_within_its_limit(seed: int) -> None:
    still = places(seed)
    assert np.abs(still - np.stack(np.indices((13, 9)), -1) + [6, 4]).max() == 0
    moved = places(seed, shift=0.2) - still
    assert np.ptp(moved.reshape(-1, 2), axis=0).max() < 1e-5, "every pixel alike"
    assert (np.abs(moved[0, 0]) <= [0.2 * 13, 0.2 * 9]).all()
    # A rotation keeps distances, and turns by no more than was allowed.
    turned = places(seed, rotation=30)
    lengths = [np.linalg.norm(one.reshape(-1, 2), axis=1) for one in (still, turned)]
    assert np.abs(lengths[0] - lengths[1]).max() < 1e-4
    angle = np.arctan2(turned[6, 8, 0], turned[6, 8, 1])
    assert 0 < abs(np.degrees(angle)) <= 30
    larger = places(seed, scale=0.25)[0, 0] / still[0, 0]
    assert larger[0] == pytest.approx(larger[1]) and 0.8 <= larger[0] <= 1.25
    sheared = places(seed, shear=0.2) - still
    assert np.abs(sheared[..., 0]).max() == 0
    assert np.abs(sheared[..., 1]).max() <= 0.2 * 6 + 1e-5 and np.abs(sheared[6]).max() == 0
    bent = places(seed, bend=0.1) - still
    assert (np.abs(bent).max(axis=(0, 1)) <= np.array([1.3, 0.9]) + 1e-5).all()
    assert np.ptp(bent.reshape(-1, 2), axis=0).min() > 0, "parts against each other"


def test_movements_reach_both_sides_of_their_limits() -> None:
    moved = [(places(seed, shift=0.2) - places(seed))[0, 0] / [13, 9] for seed in range(300)]
    shifts = np.array(moved)
    assert (shifts.min(axis=0) < -0.18).all() and (shifts.max(axis=0) > 0.18).all()
    assert (np.abs(shifts.mean(axis=0)) < 0.03).all()


def test_every_second_picture_is_mirrored() -> None:
    flip = PictureAugmentSettings(flip=True)
    found = [vary(PIXELS, flip, seed) for seed in range(200)]
    mirrored = sum((one == PIXELS[:, ::-1]).all() for one in found)
    assert mirrored + sum((one == PIXELS).all() for one in found) == 200
    assert 70 < mirrored < 130


def test_a_rectangle_is_hidden_and_no_more_than_allowed() -> None:
    blank = np.zeros((40, 30, 3), np.uint8)
    erase = PictureAugmentSettings(erase=0.25)
    shares = []
    for seed in range(200):
        hit = vary(blank, erase, seed).any(axis=2)
        rows, columns = np.flatnonzero(hit.any(axis=1)), np.flatnonzero(hit.any(axis=0))
        shares.append(len(rows) * len(columns) / hit.size)
        if len(rows):
            inside = hit[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            assert inside.mean() > 0.97, "noise has a zero of three here and there"
    assert max(shares) < 0.28 and 70 < sum(share > 0 for share in shares) <= 130


def test_light_changes_no_more_than_allowed() -> None:
    grey = np.full((4, 4, 1), 100, np.uint8)
    grey[0] = 140
    for seed in range(50):
        lit = vary(grey, PictureAugmentSettings(brightness=0.1), seed).astype(int) - grey
        assert abs(lit).max() <= 26 and np.ptp(lit) == 0
        found = vary(grey, PictureAugmentSettings(contrast=0.5), seed).astype(int)
        assert 19 <= found[0, 0, 0] - found[1, 0, 0] <= 61


def test_a_picture_is_varied_by_seed_update_and_example_alone(tmp_path: Path) -> None:
    recipe = tiny_cell("classification", "encoder", "picture", tmp_path / "files").change(
        ["training.picture_augment.shift=0.3", "training.picture_augment.rotation=40"]
    )
    (tmp_path / "run").mkdir()
    learn_vocabularies(recipe, tmp_path / "run", lambda _: None)
    found = prepare(recipe, tmp_path / "run", lambda _: None)
    examples = runtime_of(recipe.spec).parts().examples(found.train, recipe, found.forms)

    def read(update: int, *numbers: int) -> list[np.ndarray[tuple[int], np.dtype[np.uint8]]]:
        source = examples.batch(update, numbers).source
        return [part.numpy() for part in source.values.split(list(source.layout.lengths))]

    for number, rows in zip((4, 0, 2), read(3, 4, 0, 2), strict=True):
        assert np.array_equal(read(3, number)[0], rows)
        assert not np.array_equal(read(4, number)[0], rows)
        stored = found.train.values("source", number)
        assert not np.array_equal(stored, rows)
        pixels = pixels_from(rows, 8, 8, 4)
        assert np.array_equal(patches_of(pixels, 4), rows)


@pytest.mark.parametrize("source", ["text", "frames", "line"])
def test_it_goes_with_pictures_alone(source: str, tmp_path: Path) -> None:
    recipe = tiny_cell("classification", "encoder", source, tmp_path)
    with pytest.raises(RecipeError, match="varies pictures, not source"):
        recipe.change(["training.picture_augment.flip=true"])


def test_boxes_are_not_varied_with_their_pictures(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"a detector must learn from unchanged pictures"):
        tiny_recipe_of("detection", tmp_path).change(["training.picture_augment.shift=0.1"])
