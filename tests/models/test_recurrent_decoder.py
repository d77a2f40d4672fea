"""LSTM layers by themselves, beside torch's own; and dropout that stays from step to step."""

from __future__ import annotations

import pytest
import torch
from implementations import TARGET, recurrent_decoder
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.models.decoder import RecurrentDecoder
from dragoman.nn.dropout import drawing
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Precision, kernels_fit, use_precision

EOS = 2


def sequences(*lengths: int) -> Sequences:
    return Sequences.of([torch.randint(3, TARGET, (length,)) for length in lengths])


def hidden(model: RecurrentDecoder, target: Sequences) -> Tensor:
    nothing = Sequences.of([torch.tensor([EOS])] * target.layout.batch)
    return model.decode(target, model.encode(nothing))


@pytest.mark.usefixtures("in_fp64")
def test_it_is_a_stack_of_torchs_layers_with_a_tied_output() -> None:
    model, target = recurrent_decoder(hidden_dim=24, layers=3), sequences(5, 1, 8)
    x = F.embedding(target.values, model.embedding.weight) * 4.0  # √16
    for name, inputs, width in (("0", 16, 24), ("1", 24, 24), ("2", 24, 16)):
        lstm = nn.LSTM(inputs, width)
        begin = f"layers.{name}."
        lstm.load_state_dict(
            {k.removeprefix(begin): v for k, v in model.state_dict().items() if k.startswith(begin)}
        )
        x = torch.cat([lstm(part)[0] for part in x.split(list(target.layout.lengths))])
    found = hidden(model, target)
    torch.testing.assert_close(found, x, atol=1e-12, rtol=0)
    torch.testing.assert_close(model.project(found), x @ model.embedding.weight.t())


def test_one_mask_a_sequence_whatever_is_beside_it() -> None:
    torch.manual_seed(0)
    model = recurrent_decoder(
        dropout=0.5, embedding_dropout=0.0, recurrent_dropout=0.0, model_dim=64, layers=1
    ).train()
    values = torch.randint(3, TARGET, (12,))
    row_keys = torch.tensor([7, 12345], dtype=torch.int32)

    def dropped(lengths: list[int], rows: Tensor, of: Tensor) -> Tensor:
        with drawing(3), torch.no_grad():
            return hidden(model, Sequences(rows, Layout(lengths, first_row_keys=of)))

    both = dropped([7, 5], values, row_keys)
    first, second = both.split([7, 5])
    for one in (first, second):  # the same columns at every step
        assert ((one == 0) == (one[0] == 0)).all() and 16 < int((one[0] == 0).sum()) < 48
    assert not torch.equal(first[0] == 0, second[0] == 0)
    torch.testing.assert_close(dropped([5], values[7:], row_keys[1:]), second)


def test_what_a_step_is_handed_is_dropped_too() -> None:
    torch.manual_seed(0)
    rates = {"dropout": 0.0, "embedding_dropout": 0.0, "layers": 1}
    model, target = recurrent_decoder(recurrent_dropout=0.5, **rates).train(), sequences(2)
    with drawing(1), torch.no_grad():
        changed = hidden(model, target)
    plain = hidden(model.eval(), target)
    torch.testing.assert_close(changed[0], plain[0])  # nothing is handed to the first
    assert (changed[1] - plain[1]).abs().max() > 1e-3


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_kernels_learn_the_same(precision: Precision) -> None:
    torch.manual_seed(0)
    rates = {"dropout": 0.0, "embedding_dropout": 0.0, "recurrent_dropout": 0.0}
    model = recurrent_decoder(model_dim=32, hidden_dim=48, layers=3, **rates)
    target = sequences(6, 9)
    if not kernels_fit(model, precision):
        pytest.skip(f"this machine has no native kernels for {precision}")
    model.train().requires_grad_(True)

    def gradients(by_kernels: bool) -> dict[str, Tensor]:
        use_precision(model, precision if by_kernels else "fp32", by_kernels=by_kernels)
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        logits = model.project(hidden(model, target)).float()
        F.cross_entropy(logits, target.values).backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    plain, found = gradients(False), gradients(True)
    near = {"fp32": 1e-4, "bf16": 0.1}[precision]
    for name, gradient in plain.items():
        assert (found[name] - gradient).norm() <= near * gradient.norm() + 1e-7, name
