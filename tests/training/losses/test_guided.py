"""Guided alignment: its labels and its loss by hand, and the same however an update is cut."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from implementations import convolutional, recurrent, transformer
from torch import Tensor

from dragoman.data.batches import Batch, make_batch
from dragoman.data.word_links import WordLinks
from dragoman.models.interface import Writing
from dragoman.native.linear import is_supported
from dragoman.nn.linear import use_precision
from dragoman.nn.probes import Probe
from dragoman.training.losses.objectives import GuidedAlignment, Sums, next_token

STARTS = np.array([token % 3 != 0 for token in range(40)])
"""Tokens that are multiples of 3 go on with the word before them."""


def batch() -> Batch:
    sources = [[4, 6, 7], [9, 3, 5, 8], [10]]
    targets = [[11, 13, 15], [5], [6, 9, 10, 12]]
    return make_batch(
        [np.array(s, np.int32) for s in sources], [np.array(t, np.int32) for t in targets], 1, 2,
        [3, 0, 1],
    )  # fmt: skip


LINKS = WordLinks.of(
    [
        frozenset({(0, 0), (2, 0)}),  # words {9 3} {5} {8} and {5}
        frozenset({(0, 1)}),  # {10} and {6 9} {10 12}
        frozenset(),
        frozenset({(1, 0), (0, 1), (7, 1), (0, 9)}),  # {4 6} {7} and {11} {13 15}; two lie outside
    ]
)


def objective(model: Writing, weight: float = 0.5) -> GuidedAlignment:
    attention = model.attentions_of("cross")[0]
    return GuidedAlignment(
        next_token(model, 0.1), LINKS, (STARTS, STARTS),
        attention=attention.name, head=attention.heads - 1, weight=weight,
    )  # fmt: skip


@pytest.fixture(params=[transformer, recurrent, convolutional])
def model(request: pytest.FixtureRequest) -> Writing:
    torch.manual_seed(0)
    return request.param().requires_grad_(True)


def test_labels_are_the_links_of_words_spread_over_their_tokens(model: Writing) -> None:
    found = objective(model).labels(batch())
    wanted = torch.zeros(3, 5, 5)
    wanted[0, 1, 2] = 1  # 11 is of {7}
    wanted[0, 2:4, 0:2] = 0.5  # 13 and 15 are of {4 6}
    wanted[1, 1, [0, 1, 3]] = 1 / 3  # 5 is of {9 3} and {8}
    wanted[2, 3:5, 0] = 1  # {10 12} is of {10}
    torch.testing.assert_close(found, wanted)


def weights_of(model: Writing, one: Batch) -> Tensor:
    attention = model.attentions_of("cross")[0]
    with torch.no_grad(), Probe() as probe:
        model.decode(one.target_in, model.encode(one.source))
    return probe.attention[attention.name][:, -1].double()


def test_the_loss_is_the_formula(model: Writing) -> None:
    one = batch()
    plain = next_token(model, 0.1)(model, one)
    guided = objective(model, 0.5)(model, one)
    known, total = weights_of(model, one), 0.0
    for row, column, value in (
        (0, (1, 2), 1), (0, (2, 0), 0.5), (0, (2, 1), 0.5), (0, (3, 0), 0.5), (0, (3, 1), 0.5),
        (1, (1, 0), 1 / 3), (1, (1, 1), 1 / 3), (1, (1, 3), 1 / 3), (2, (3, 0), 1), (2, (4, 0), 1),
    ):  # fmt: skip
        total -= value * float(known[row][column].log())
    assert guided.loss.item() == pytest.approx(plain.loss.item() + 0.5 * total, rel=1e-5)
    assert float(guided.nll) == pytest.approx(float(plain.nll)) and guided.tokens == plain.tokens


class Silent:
    """An objective of which nothing is to be learned."""

    def __call__(self, model: Writing, one: Batch) -> Sums:
        model.decode(one.target_in, model.encode(one.source))
        return Sums(torch.zeros((), dtype=torch.float64), torch.zeros(()), one.target_tokens)


def test_one_head_of_one_layer_is_taught_and_what_it_reads() -> None:
    torch.manual_seed(0)
    model = transformer().requires_grad_(True)
    attention = model.attentions_of("cross")[0]
    guided = GuidedAlignment(
        Silent(), LINKS, (STARTS, STARTS), attention=attention.name, head=2, weight=1.0
    )
    guided(model, batch()).loss.backward()
    told = {
        name: parameter.grad
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and parameter.grad.abs().max() > 1e-12
    }
    at = "decoder.0.cross_attention."
    for side in ("query.weight", "key.weight"):
        heads = told.pop(at + side).unflatten(0, (attention.heads, -1)).abs().amax((1, 2))
        assert (heads > 0).tolist() == [False, False, True, False]
    behind = ("decoder.1.", "decoder.0.feed_forward", "decoder.0.cross_attention_norm",
              at + "value", at + "output")  # fmt: skip
    assert not [name for name in told if name.startswith(behind)]
    assert any(name.startswith("encoder.") for name in told), "what it reads learns from it"


def test_an_update_may_be_cut_anywhere(model: Writing) -> None:
    def gradients(*parts: Batch) -> tuple[float, list[Tensor]]:
        model.zero_grad()
        total = 0.0
        for part in parts:
            sums = objective(model)(model, part)
            sums.loss.backward()
            total += sums.loss.item()
        return total, [p.grad.clone() for p in model.parameters() if p.grad is not None]

    whole, of_whole = gradients(batch())
    first, second = batch().split()
    assert len(first) + len(second) == 3
    cut, of_cut = gradients(first, second)
    assert cut == pytest.approx(whole, rel=1e-5)
    for one, other in zip(of_cut, of_whole, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_it_teaches_the_head_to_look_where_it_is_told(model: Writing) -> None:
    one, taught = batch(), objective(model, 5.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    labels = taught.labels(one)
    before = float((weights_of(model, one) * labels).sum())
    for _ in range(80):
        optimizer.zero_grad()
        (taught(model, one).loss / one.target_tokens).backward()
        optimizer.step()
    # Each labelled row puts its mass on what is linked; shared links have a third or a half each.
    linked = weights_of(model, one)[labels > 0].sum()
    assert float((weights_of(model, one) * labels).sum()) > before
    assert float(linked) > 0.8 * int((labels.sum(-1) > 0).sum())


@pytest.mark.parametrize("make", [transformer, recurrent, convolutional])
def test_kernels_learn_the_same(make: Callable[..., Writing]) -> None:
    """Beside kernels, which compute all heads without weights, one head is computed by itself."""
    if not is_supported(32, 32, "fp32"):
        pytest.skip("no kernels for training on this machine")
    torch.manual_seed(0)
    model = make(model_dim=32).requires_grad_(True)
    found = []
    for by_kernels in (False, True):
        use_precision(model, "fp32", by_kernels)
        model.zero_grad()
        sums = objective(model)(model, batch())
        sums.loss.backward()
        found.append((sums.loss.item(), [p.grad.clone() for p in model.parameters()]))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-5)
    for one, other in zip(found[1][1], found[0][1], strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)
