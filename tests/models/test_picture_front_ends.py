"""What stands before the first layer of a model that reads pictures."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from torch.nn import functional as F

from dragoman.models.encoding import front_end
from dragoman.models.front_ends import StemFrontEnd
from dragoman.nn.layout import Sequences
from dragoman.sources.picture.form import PictureSource, patches_of

STEM = PictureSource(height=8, width=12, channels=3, patch=4, stem="convolutions", stem_channels=5)


def test_convolutions_go_over_the_whole_picture() -> None:
    """A picture that is put together again from its patches is the picture."""
    torch.manual_seed(0)
    made = front_end(STEM, 16)
    assert isinstance(made, StemFrontEnd) and len(made.convolutions) == 2
    pictures = torch.randint(0, 256, (2, 8, 12, 3), dtype=torch.uint8)
    patches = [torch.from_numpy(patches_of(one.numpy(), 4)) for one in pictures]
    grid = pictures.permute(0, 3, 1, 2).float() / 127.5 - 1
    for convolution in made.convolutions:
        grid = F.conv2d(grid, convolution.weight, convolution.bias, 2, 1).relu()  # type: ignore[arg-type]
    assert grid.shape == (2, 5, 2, 3)
    with torch.no_grad():
        found = made(Sequences.of(patches)).values
        wanted = made.out(grid.flatten(2).transpose(1, 2).reshape(12, 5))
    assert torch.allclose(found, wanted, atol=1e-5)


def test_patches_that_are_not_read_change_nothing() -> None:
    torch.manual_seed(0)
    made = front_end(STEM, 16)
    assert made is not None
    patches = torch.randint(0, 256, (6, 48), dtype=torch.uint8)
    with torch.no_grad():
        whole = made(Sequences.of([patches])).values
        for sources in ([patches[:4], patches], [patches[:4]], [patches[:4], patches[:2]]):
            found = made(Sequences.of(sources))
            assert found.layout.lengths == tuple(map(len, sources))
            for one, rows in zip(sources, found.values.split(found.layout.lengths), strict=True):
                assert torch.allclose(rows, whole[: len(one)], atol=1e-6)


def test_convolutions_halve_until_a_patch_is_one_place() -> None:
    with pytest.raises(ValidationError, match=r"2, 4, 8, 16 or 32 pixels, not 7"):
        PictureSource(patch=7, stem="convolutions")
