"""Mixup, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_cells import tiny_cell
from torch import Tensor
from torch.nn import functional as F

from dragoman.base.errors import RecipeError
from dragoman.data.labelled import LabelledBatch
from dragoman.runs.corpora import learn_vocabularies
from dragoman.runs.prepare import prepare
from dragoman.sources.augment import mixing
from dragoman.tasks.catalogue import runtime_of
from dragoman.tasks.shared.examples import LabelledTexts
from dragoman.training.losses.loss import smoothed_cross_entropy


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> tuple[LabelledTexts, LabelledTexts]:
    """The pictures of a small corpus, mixed and as they are."""
    folder = tmp_path_factory.mktemp("bars")
    plain = tiny_cell("classification", "encoder", "picture", folder)
    found = []
    for number, recipe in enumerate((plain.change(["training.picture_augment.mixup=0.4"]), plain)):
        (folder / str(number)).mkdir()
        learn_vocabularies(recipe, folder / str(number), lambda _: None)
        prepared = prepare(recipe, folder / str(number), lambda _: None)
        made = runtime_of(recipe.spec).parts().examples
        found.append(made(prepared.train, recipe, prepared.forms))
    return found[0], found[1]  # type: ignore[return-value]


def test_a_picture_is_mixed_with_the_one_that_is_drawn(
    examples: tuple[LabelledTexts, LabelledTexts],
) -> None:
    mixing_, plain = examples
    numbers = [3, 0, 7, 11]
    batch, own = mixing_.batch(5, numbers), plain.batch(5, numbers)
    assert batch.others is not None and batch.shares is not None
    assert own.others is None and torch.equal(batch.labels, own.labels)
    size = own.source.layout.lengths[0]

    def rows(one: LabelledBatch) -> Tensor:
        return one.source.values.reshape(len(one), size, -1).float()

    count = len(plain.lengths["target"])
    every = plain.batch(5, range(count))
    for place, share in enumerate(batch.shares.tolist()):
        wanted = rows(every) + share * (rows(own)[place] - rows(every))
        near = (wanted - rows(batch)[place]).abs().amax(dim=(1, 2)) <= 0.51
        assert near.any()  # pictures of a label may be alike
        assert int(batch.others[place]) in every.labels[near].tolist()
    assert not torch.equal(rows(batch), rows(own))
    # The same in another batch, in halves, and not the same in another update.
    alone = mixing_.batch(5, [7])
    assert torch.equal(rows(alone)[0], rows(batch)[2])
    first, second = batch.split()
    assert isinstance(second, LabelledBatch) and second.shares is not None
    assert torch.equal(torch.cat([first.shares, second.shares]), batch.shares)  # type: ignore[list-item]
    assert not torch.equal(mixing_.batch(6, numbers).shares, batch.shares)  # type: ignore[arg-type]


def test_shares_and_partners_are_drawn_as_they_should_be() -> None:
    drawn = [mixing(0.4, 10, seed) for seed in range(4000)]
    shares = np.array([share for share, _ in drawn])
    assert abs(shares.mean() - 0.5) < 0.03
    assert abs(shares.var() - 1 / (4 * (2 * 0.4 + 1))) < 0.01  # of a beta distribution
    counts = np.bincount([other for _, other in drawn], minlength=10)
    assert counts.min() > 320 and counts.max() < 480


def test_the_loss_is_of_both_labels_in_their_shares() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(5, 4, generator=generator, dtype=torch.float64)
    one, other = torch.tensor([0, 1, 2, 3, 0]), torch.tensor([1, 1, 0, 2, 3])
    shares = torch.tensor([0.1, 0.5, 1.0, 0.0, 0.7])
    target = shares[:, None] * F.one_hot(one, 4) + (1 - shares)[:, None] * F.one_hot(other, 4)
    wanted = F.cross_entropy(logits, target.double(), label_smoothing=0.2, reduction="sum")
    loss, nll = smoothed_cross_entropy(logits, one, 0.2, other, shares)
    assert float(loss) == pytest.approx(float(wanted), abs=1e-5)
    assert float(nll) == pytest.approx(
        float(F.cross_entropy(logits, target.double(), reduction="sum")), abs=1e-5
    )
    all_own = smoothed_cross_entropy(logits, one, 0.2, other, torch.ones(5))
    assert [float(v) for v in all_own] == pytest.approx(
        [float(v) for v in smoothed_cross_entropy(logits, one, 0.2)], abs=1e-5
    )


def test_mixup_is_refused_where_there_are_no_labels(tmp_path: Path) -> None:
    for task, words in (
        ("detection", "a detector must learn from unchanged pictures"),
        ("translation", "mixup mixes labels"),
    ):
        with pytest.raises(RecipeError, match=words):
            tiny_cell(task, "transformer", "picture", tmp_path / task).change(
                ["training.picture_augment.mixup=0.2"]
            )
