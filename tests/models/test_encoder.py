"""The encoder by itself against torch.nn, and beside the encoder of a Transformer."""

from __future__ import annotations

import copy

import pytest
import torch
from implementations import encoder, transformer
from torch import Tensor, nn

from dragoman.models.catalogue.networks import new_network
from dragoman.models.settings import EncoderSettings
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import kernels_fit, use_precision

pytestmark = pytest.mark.usefixtures("in_fp64")

VOCABULARY = 40


def sentences(*lengths: int) -> Sequences:
    return Sequences.of([torch.randint(3, VOCABULARY, (n,)) for n in lengths])


def as_torch_calls_it(state: dict[str, Tensor], norm: str) -> dict[str, Tensor]:
    """Our weights by the names of ``torch.nn.TransformerEncoder``."""
    found = {}
    for number in range(2):
        mine, theirs = f"encoder.{number}", f"layers.{number}"
        for kind in ("weight", "bias"):
            found[f"{theirs}.self_attn.in_proj_{kind}"] = torch.cat(
                [state[f"{mine}.attention.{part}.{kind}"] for part in ("query", "key", "value")]
            )
            for one, other in (
                ("attention.output", "self_attn.out_proj"),
                ("attention_norm", "norm1"),
                ("feed_forward.inner", "linear1"),
                ("feed_forward.outer", "linear2"),
                ("feed_forward_norm", "norm2"),
            ):
                found[f"{theirs}.{other}.{kind}"] = state[f"{mine}.{one}.{kind}"]
            if norm == "pre":
                found[f"norm.{kind}"] = state[f"encoder_norm.{kind}"]
    return found


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_equals_torch_nn_transformer_encoder(norm: str) -> None:
    model = encoder(norm=norm)
    layer = nn.TransformerEncoderLayer(16, 4, 24, 0.0, batch_first=True, norm_first=norm == "pre")
    final = nn.LayerNorm(16) if norm == "pre" else None
    theirs = nn.TransformerEncoder(layer, 2, final, enable_nested_tensor=False).eval()
    theirs.load_state_dict(as_torch_calls_it(model.state_dict(), norm))
    source = sentences(7, 3, 5)
    words = [
        model.input_terms(tokens, "source")["sum"]
        for tokens in source.values.split(list(source.layout.lengths))
    ]
    with torch.no_grad():
        found = model.encode(source).rows
        expected = theirs(
            nn.utils.rnn.pad_sequence(words, batch_first=True),
            src_key_padding_mask=~source.layout.mask,
        )
        logits = expected @ model.source_embedding.weight.T
    torch.testing.assert_close(found, source.layout.pack(expected), atol=1e-9, rtol=0)
    torch.testing.assert_close(model.project(found), source.layout.pack(logits), atol=1e-9, rtol=0)


def test_it_is_the_encoder_of_a_transformer() -> None:
    whole = transformer()
    taken = encoder(norm="post")
    state = whole.state_dict()
    taken.load_state_dict({name: state[name] for name in taken.state_dict()})
    source = sentences(4, 6)
    torch.testing.assert_close(taken.encode(source).rows, whole.encode(source).rows)


@pytest.mark.parametrize(("tie", "outputs"), [(True, VOCABULARY), (False, 3)])
def test_its_outputs_are_the_tasks(tie: bool, outputs: int) -> None:
    settings = EncoderSettings(model_dim=16, ffn_dim=24, layers=1, tie=tie)
    model = new_network(settings, VOCABULARY, outputs)
    rows = model.encode(sentences(4, 2)).rows
    assert model.project(rows).shape == (6, outputs)
    assert ("output.weight" in model.state_dict()) != tie


@pytest.mark.parametrize(("precision", "least"), [("fp32", 0.99999), ("bf16", 0.995)])
def test_it_trains_by_the_native_kernels(precision: str, least: float) -> None:
    torch.set_default_dtype(torch.float32)
    model = encoder(model_dim=64, ffn_dim=128)
    if not kernels_fit(model, precision):  # type: ignore[arg-type]
        pytest.skip("no native kernels on this machine")
    model.requires_grad_(True)
    source, plain = sentences(9, 1, 7), copy.deepcopy(model)
    use_precision(model, precision, by_kernels=True)  # type: ignore[arg-type]

    def gradient(one: nn.Module) -> Tensor:
        logits = one.project(one.encode(source).rows).float()  # type: ignore[operator, union-attr]
        torch.logsumexp(logits, -1).sum().backward()
        return torch.cat([p.grad.flatten() for p in one.parameters() if p.grad is not None])

    exact = gradient(plain)
    assert len(exact) == sum(p.numel() for p in model.parameters())
    assert torch.cosine_similarity(exact, gradient(model), dim=0) > least
