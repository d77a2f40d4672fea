"""The model against independent implementations, and the properties of the contract."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.model import Transformer
from dragoman.nn.dropout import drawing
from dragoman.nn.embedding import marian as marian_table
from dragoman.nn.embedding import sinusoidal
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import kernels_fit, refresh, use_precision
from dragoman.nn.probes import Probe
from dragoman.nn.settings import AttentionSettings, PositionSettings

pytestmark = pytest.mark.usefixtures("in_fp64")

VOCABULARY = 38


def settings(**changes: object) -> TransformerSettings:
    base: dict[str, object] = {
        "model_dim": 16, "ffn_dim": 24, "encoder_layers": 2, "decoder_layers": 2,
        "attention": AttentionSettings(num_heads=4), "dropout": 0.0,
    }  # fmt: skip
    return TransformerSettings.model_validate(base | changes)


def build(**changes: object) -> Transformer:
    model = Transformer(settings(**changes), VOCABULARY, VOCABULARY).eval()
    # Biases and gains start at 0 and 1, which would hide a wrong one.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def sentences(*lengths: int) -> Sequences:
    return Sequences.of([torch.randint(3, VOCABULARY, (n,)) for n in lengths])


def prefixes(*lengths: int) -> Sequences:
    first = torch.tensor([1])
    return Sequences.of(
        [torch.cat([first, torch.randint(0, VOCABULARY, (n - 1,))]) for n in lengths]
    )


def logits_of(model: Transformer, source: Sequences, target: Sequences) -> Tensor:
    with torch.no_grad():
        return model.project(model.decode(target, model.encode(source)))


@pytest.mark.parametrize(
    ("sizes", "vocabulary", "count"),
    [((512, 2048, 8), 37_000, 63_082_496), ((1024, 4096, 16), 37_000, 214_245_376)],
)
def test_parameter_counts_of_the_papers_table_3(
    sizes: tuple[int, int, int], vocabulary: int, count: int
) -> None:
    width, ffn, heads = sizes
    with torch.device("meta"):
        model = Transformer(
            TransformerSettings(
                model_dim=width, ffn_dim=ffn, attention=AttentionSettings(num_heads=heads)
            ),
            vocabulary,
            vocabulary,
        )
    assert sum(p.numel() for p in model.parameters()) == count


def _copy_attention(ours: nn.Module, theirs: nn.MultiheadAttention) -> None:
    state = ours.state_dict()
    theirs.in_proj_weight.copy_(
        torch.cat([state[f"{part}.weight"] for part in ("query", "key", "value")])
    )
    theirs.in_proj_bias.copy_(
        torch.cat([state[f"{part}.bias"] for part in ("query", "key", "value")])
    )
    theirs.out_proj.load_state_dict(
        {"weight": state["output.weight"], "bias": state["output.bias"]}
    )


def _copy(ours: nn.Module, theirs: nn.Module) -> None:
    for (name, mine), (_, other) in zip(
        ours.named_parameters(), theirs.named_parameters(), strict=True
    ):
        assert mine.shape == other.shape, name
        other.copy_(mine)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 2e-4)])
def test_equals_torch_nn_transformer(norm: str, dtype: torch.dtype, tolerance: float) -> None:
    torch.set_default_dtype(dtype)
    model = build(norm=norm)
    encoder_layer = nn.TransformerEncoderLayer(
        16, 4, 24, 0.0, batch_first=True, norm_first=norm == "pre"
    )
    decoder_layer = nn.TransformerDecoderLayer(
        16, 4, 24, 0.0, batch_first=True, norm_first=norm == "pre"
    )
    # Post-norm stacks carry no further norm; torch.nn.Transformer itself would add one.
    final = (nn.LayerNorm(16), nn.LayerNorm(16)) if norm == "pre" else (None, None)
    encoder = nn.TransformerEncoder(encoder_layer, 2, final[0], enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(decoder_layer, 2, final[1])
    encoder.eval(), decoder.eval()
    with torch.no_grad():
        for mine, other in zip(model.encoder, encoder.layers, strict=True):
            _copy_attention(mine.attention, other.self_attn)
            _copy(mine.attention_norm, other.norm1)
            _copy(mine.feed_forward.inner, other.linear1)
            _copy(mine.feed_forward.outer, other.linear2)
            _copy(mine.feed_forward_norm, other.norm2)
        for mine, other in zip(model.decoder, decoder.layers, strict=True):
            _copy_attention(mine.self_attention, other.self_attn)
            _copy_attention(mine.cross_attention, other.multihead_attn)
            _copy(mine.self_attention_norm, other.norm1)
            _copy(mine.cross_attention_norm, other.norm2)
            _copy(mine.feed_forward.inner, other.linear1)
            _copy(mine.feed_forward.outer, other.linear2)
            _copy(mine.feed_forward_norm, other.norm3)
        if norm == "pre":
            _copy(model.encoder_norm, final[0])
            _copy(model.decoder_norm, final[1])

        source, target = sentences(7, 3, 5), prefixes(4, 6, 2)
        table = model.source_embedding.weight

        def embed(batch: Sequences) -> Tensor:
            places = sinusoidal(torch.arange(batch.layout.longest), 16).to(dtype)
            ids = batch.layout.pad(batch.values)
            return table[ids] * 16**0.5 + places

        hidden_keys = ~source.layout.mask
        memory = encoder(embed(source), src_key_padding_mask=hidden_keys)
        steps = target.layout.longest
        out = decoder(
            embed(target),
            memory,
            tgt_mask=torch.ones(steps, steps, dtype=torch.bool).triu(1),
            tgt_key_padding_mask=~target.layout.mask,
            memory_key_padding_mask=hidden_keys,
        )
        theirs = target.layout.pack(out) @ table.t()
    assert (logits_of(model, source, target) - theirs).abs().max() < tolerance


OF_MARIAN = {"activation": "swish", "output_bias": True}
"""The settings in which Hugging Face's Marian departs from the paper."""


def marian_beside(model: Transformer, like: TransformerSettings) -> Any:
    """``MarianMTModel`` with the weights of ``model`` and the settings of ``like``."""
    marian = pytest.importorskip("transformers.models.marian.modeling_marian")
    config = marian.MarianConfig(
        vocab_size=VOCABULARY, d_model=16, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=24,
        decoder_ffn_dim=24, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
        activation_function=like.activation, scale_embedding=like.scale_embeddings,
        pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=None,
        max_position_embeddings=256, attn_implementation="eager",
    )  # fmt: skip
    theirs = marian.MarianMTModel(config).double().eval()
    for module in theirs.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = like.norm_epsilon
    state = theirs.state_dict()
    names = {
        "query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj",
        "attention.": "self_attn.", "self_attention.": "self_attn.",
        "cross_attention.": "encoder_attn.",
    }  # fmt: skip
    parts = {
        "attention_norm": "self_attn_layer_norm", "self_attention_norm": "self_attn_layer_norm",
        "cross_attention_norm": "encoder_attn_layer_norm", "feed_forward_norm": "final_layer_norm",
        "feed_forward.inner": "fc1", "feed_forward.outer": "fc2",
    }  # fmt: skip
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if not name.startswith(("encoder.", "decoder.")):
                continue
            side, layer, rest = name.split(".", 2)
            part, kind = rest.rsplit(".", 1)
            if part in parts:
                part = parts[part]
            else:
                owner, matrix = part.split(".")
                part = names[f"{owner}."] + names[matrix]
            state[f"model.{side}.layers.{layer}.{part}.{kind}"].copy_(value)
        for name in ("shared", "encoder.embed_tokens", "decoder.embed_tokens"):
            state[f"model.{name}.weight"].copy_(model.source_embedding.weight)
        state["lm_head.weight"].copy_(model.source_embedding.weight)
        if model.output_bias is not None:
            theirs.final_logits_bias.copy_(model.output_bias)
        # Hugging Face lays all sines before all cosines; the paper interleaves them.
        table = {"sinusoidal": sinusoidal, "marian": marian_table}[like.positions.kind]
        for side in ("encoder", "decoder"):
            places = getattr(theirs.model, side).embed_positions.weight
            places.copy_(table(torch.arange(256), 16))
    return theirs


def distance_to(theirs: Any, model: Transformer, source: Sequences, target: Sequences) -> float:
    with torch.no_grad():
        out = theirs(
            input_ids=source.layout.pad(source.values),
            attention_mask=source.layout.mask.long(),
            decoder_input_ids=target.layout.pad(target.values),
        ).logits
    return float((logits_of(model, source, target) - target.layout.pack(out)).abs().max())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        OF_MARIAN,
        OF_MARIAN | {"activation": "gelu"},
        OF_MARIAN | {"scale_embeddings": False},
        OF_MARIAN | {"norm_epsilon": 1e-2},
        OF_MARIAN | {"positions": {"kind": "marian"}},
    ],
)
def test_equals_transformers_marian(changes: dict[str, object]) -> None:
    model = build(**changes)
    theirs = marian_beside(model, model.settings)
    for length in (1, 40, 200):
        source, target = sentences(length, 3, 5), prefixes(length, 6, 2)
        assert distance_to(theirs, model, source, target) < 1e-9


@pytest.mark.parametrize(
    "wrong",
    [
        {"activation": "relu"},
        {"activation": "gelu"},
        {"output_bias": False},
        {"scale_embeddings": False},
        {"norm_epsilon": 1e-6},
        {"positions": {"kind": "marian"}},
        {"zero_start": True},
    ],
)
def test_a_wrong_setting_is_seen_beside_transformers_marian(wrong: dict[str, object]) -> None:
    right = build(**OF_MARIAN)
    theirs = marian_beside(right, right.settings)
    model = build(**OF_MARIAN | wrong)
    model.load_state_dict(right.state_dict(), strict="output_bias" not in wrong)
    for length in (1, 40, 200):
        source, target = sentences(length), prefixes(length)
        assert distance_to(theirs, right, source, target) < 1e-9
        if not (length == 1 and "positions" in wrong):  # position 0 is the same permuted
            assert distance_to(theirs, model, source, target) > 1e-6


@pytest.mark.parametrize(
    "changes",
    [
        {"tie": "none"},
        {"tie": "none", "norm": "pre", "next_word": True},
        {"tie": "none", "positions": {"kind": "binary", "combine": "concatenate", "width": 5}},
    ],
)
def test_of_a_zero_start_only_the_position_is_read(changes: dict[str, object]) -> None:
    model = build(zero_start=True, **changes)
    plain = build(**changes)
    plain.load_state_dict(model.state_dict())
    source, target = sentences(7, 3, 5), prefixes(4, 6, 2)
    source.values[2] = 1  # a source may hold any token
    assert (logits_of(model, source, target) - logits_of(plain, source, target)).abs().max() > 1e-3
    with torch.no_grad():
        plain.target_embedding.weight[1] = 0.0
    torch.testing.assert_close(logits_of(model, source, target), logits_of(plain, source, target))
    read = torch.tensor([1, 5, 9])
    if "next_word" not in changes:
        stages, expected = model.input_terms(read, "target"), plain.input_terms(read, "target")
        torch.testing.assert_close(stages, expected)


def test_logits_of_some_tokens_have_their_biases() -> None:
    model = build(**OF_MARIAN)
    hidden, ids = torch.randn(3, 16), torch.tensor([5, 0, 9])
    torch.testing.assert_close(model.project(hidden, ids), model.project(hidden)[:, ids])


def test_unknown_tokens_can_be_masked() -> None:
    model = build(attend_unknown=False)
    source, target = sentences(5), prefixes(3)
    source.values[2] = 0
    unmasked = build()
    unmasked.load_state_dict(model.state_dict())
    probe = Probe()
    with probe, torch.no_grad():
        model.decode(target, model.encode(source))
    assert float(probe.attention["encoder.0.attention"][..., 2].max()) == 0.0
    assert float(probe.attention["decoder.1.cross_attention"][..., 2].max()) == 0.0
    assert not torch.allclose(logits_of(model, source, target), logits_of(unmasked, source, target))


def test_without_positions_word_order_is_lost() -> None:
    source = sentences(5)
    turned = Sequences(source.values.flip(0), source.layout)
    for kind, same in (("none", True), ("sinusoidal", False), ("binary", False)):
        model = build(positions=PositionSettings(kind=kind))  # type: ignore[arg-type]
        with torch.no_grad():
            one, other = model.encode(source).rows, model.encode(turned).rows.flip(0)
        assert torch.allclose(one, other) is same, kind


def test_positions_are_switched_off_for_the_length_of_a_probe() -> None:
    source = sentences(5, 3)
    for positions in (
        {}, {"kind": "learned", "maximum": 40}, {"kind": "normalised"},
        {"combine": "concatenate", "width": 6},
    ):  # fmt: skip
        model = build(positions=positions, tie="none")
        never_told = build(positions={**positions, "kind": "none"}, tie="none")
        never_told.load_state_dict(model.state_dict(), strict=False)
        with torch.no_grad():
            told = model.encode(source).rows
            with Probe(positions_off=True):
                untold = model.encode(source).rows
            torch.testing.assert_close(untold, never_told.encode(source).rows)
            assert not torch.allclose(told, untold)
            torch.testing.assert_close(model.encode(source).rows, told)


_ATTENTION = ("query", "key", "value", "heads")
_SUBLAYER = ("stream", "input", "added", "after")
_GAINS = ("weight", "bias")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre"},
        {"norm": "none"},
        {"residual": False},
        {"norm": "pre", "residual": False},
        {"norm": "none", "residual": False},
        {"attention": {"num_heads": 4, "key_width": 3, "value_width": 5, "path": "fused"}},
        {"attention": {"num_heads": 2, "whole_input": False, "scaled": False}},
    ],
)
def test_what_a_probe_takes_are_the_terms_of_the_equations(changes: dict[str, object]) -> None:
    """Equation 1 and the residual connections of §3.1, from what was taken and the weights."""
    model, source, target = build(**changes), sentences(5), prefixes(4)
    weights = model.state_dict()
    with Probe(points=(*_ATTENTION, *_SUBLAYER)) as probe, torch.no_grad():
        memory = model.encode(source)
        model.decode(target, memory)
    taken = probe.taken
    assert {attention.name for attention in model.attentions} == probe.attention.keys()
    for attention in model.attentions:
        name = attention.name
        query, key, value, heads = (taken[name, point][0] for point in _ATTENTION)  # type: ignore[index]
        scores = query @ key.transpose(1, 2) * attention.scale
        if attention.part == "decoder":
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
        torch.testing.assert_close(scores.softmax(-1), probe.attention[name][0])
        torch.testing.assert_close(probe.attention[name][0] @ value, heads)
        joined = torch.cat(list(heads), dim=-1)
        output = F.linear(joined, weights[f"{name}.output.weight"], weights[f"{name}.output.bias"])
        torch.testing.assert_close(output, taken[name, "added"])
        read = {"query": taken[name, "input"], "key": taken[name, "input"]}
        if attention.part == "cross":
            read["key"] = memory.rows
        of_heads = model.query_matrix(attention)
        assert of_heads.equal(weights[f"{name}.query.weight"])
        if of_heads.ndim == 2:
            for part, made in (("query", query), ("key", key)):
                matrix, bias = (weights[f"{name}.{part}.{what}"] for what in ("weight", "bias"))
                rows = F.linear(read[part], matrix, bias)
                torch.testing.assert_close(torch.cat(list(made), dim=-1), rows)
    computed = list(dict.fromkeys(name for name, point in taken if point == "after"))
    assert computed == [sublayer.name for sublayer in model.sublayers]
    streams = {
        "encoder": model.input_terms(source.values, "source")["sum"],
        "decoder": model.input_terms(target.values, "target")["sum"],
    }
    with torch.no_grad():
        for sublayer in model.sublayers:
            x, given, added, after = (taken[sublayer.name, point] for point in _SUBLAYER)  # type: ignore[index]
            torch.testing.assert_close(x, streams[sublayer.side])
            reached = x + added if model.settings.residual else added
            gain, bias = (weights.get(f"{sublayer.name}_norm.{part}") for part in _GAINS)
            assert (gain is None) is (model.settings.norm == "none")

            def normed(rows: Tensor) -> Tensor:
                return rows if gain is None else F.layer_norm(rows, gain.shape, gain, bias)  # noqa: B023

            if model.settings.norm == "pre":
                torch.testing.assert_close(normed(x), given)
                torch.testing.assert_close(reached, after)
            else:
                assert given.equal(x)
                torch.testing.assert_close(normed(reached), after)
            streams[sublayer.side] = after
    assert ("encoder_norm.weight" in weights) is (model.settings.norm == "pre")


def test_a_probe_takes_what_it_was_asked_for_alone() -> None:
    model, source = build(), sentences(5)
    with Probe() as probe, torch.no_grad():
        model.encode(source)
    assert not probe.taken and probe.attention
    with Probe(points=["key"], record=False) as probe, torch.no_grad():
        model.encode(source)
    assert {point for _, point in probe.taken} == {"key"} and not probe.attention
    before = dict(probe.taken)
    with torch.no_grad():
        model.encode(source)
    assert probe.taken == before, "closed, it takes nothing"


def test_bf16_follows_fp32_and_keeps_fp32_parameters_and_gradients() -> None:
    torch.set_default_dtype(torch.float32)
    model = build(model_dim=64, ffn_dim=128)
    source, target = sentences(9, 7), prefixes(8, 9)

    def gradient() -> Tensor:
        model.zero_grad()
        logits = model.project(model.decode(target, model.encode(source))).float()
        torch.logsumexp(logits, -1).sum().backward()
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    exact, logits = gradient(), logits_of(model, source, target)
    use_precision(model, "bf16")
    low = gradient()
    assert low.dtype == torch.float32
    assert torch.cosine_similarity(exact, low, dim=0) > 0.995
    out = logits_of(model, source, target)
    assert out.dtype == torch.bfloat16
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)
    refresh(model)
    assert torch.equal(
        model.encoder[0].feed_forward.inner.low,
        model.encoder[0].feed_forward.inner.weight.bfloat16(),
    )
    assert (out.float() - logits).abs().max() < 0.1 * logits.abs().max()


def test_layout_pads_and_packs() -> None:
    layout = Layout([3, 1, 2])
    rows = torch.randn(6, 4)
    grid = layout.pad(rows)
    assert grid.shape == (3, 3, 4)
    assert float(grid[1, 1:].abs().max()) == 0.0
    torch.testing.assert_close(layout.pack(grid), rows)
    assert layout.positions.tolist() == [0, 1, 2, 0, 0, 1]


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "post"},
        {"norm": "pre"},
        {
            "activation": "swish", "output_bias": True, "zero_start": True, "norm_epsilon": 1e-3,
            "positions": {"kind": "marian"}, "scale_embeddings": False,
        },
        {"activation": "gelu"},
    ],
)  # fmt: skip
@pytest.mark.parametrize(("precision", "least"), [("fp32", 0.999999), ("bf16", 0.995)])
def test_native_kernels_follow_plain_torch(
    changes: dict[str, object], precision: str, least: float
) -> None:
    torch.set_default_dtype(torch.float32)
    model = build(model_dim=64, ffn_dim=128, **changes)
    if not kernels_fit(model, precision):  # type: ignore[arg-type]
        pytest.skip("no native kernels on this machine")
    source, target = sentences(9, 1, 7), prefixes(8, 3, 9)

    def gradient() -> tuple[Tensor, Tensor]:
        model.zero_grad()
        logits = model.project(model.decode(target, model.encode(source))).float()
        torch.logsumexp(logits, -1).sum().backward()
        return logits.detach(), torch.cat(
            [p.grad.flatten() for p in model.parameters() if p.grad is not None]
        )

    logits, exact = gradient()
    use_precision(model, precision, by_kernels=True)  # type: ignore[arg-type]
    low_logits, low = gradient()
    assert torch.cosine_similarity(exact, low, dim=0) > least
    assert torch.cosine_similarity(logits.flatten(), low_logits.flatten(), dim=0) > least
    with Probe() as probe, torch.no_grad():
        model.decode(target, model.encode(source))
    assert len(probe.attention) == 6
    use_precision(model, "fp32")
    torch.testing.assert_close(gradient()[1], exact)


def test_kernels_see_weights_that_were_changed_behind_them() -> None:
    """As an update does: in the flat buffer, whose views the parameters are."""
    torch.set_default_dtype(torch.float32)
    model = build(model_dim=64, ffn_dim=128)
    if not kernels_fit(model, "fp32"):
        pytest.skip("no native kernels on this machine")
    source, target = sentences(9, 1, 7), prefixes(8, 3, 9)
    use_precision(model, "fp32", by_kernels=True)
    before = logits_of(model, source, target)
    for parameter in model.parameters():
        parameter.data.mul_(1.5)
    refresh(model)
    found = logits_of(model, source, target)
    use_precision(model, "fp32")
    torch.testing.assert_close(found, logits_of(model, source, target), rtol=1e-3, atol=1e-3)
    assert not torch.allclose(found, before, atol=0.1)


def test_kernels_draw_the_dropout_of_attention_anew() -> None:
    torch.set_default_dtype(torch.float32)
    attention = AttentionSettings(num_heads=4, dropout=0.5)
    model = Transformer(
        settings(model_dim=64, ffn_dim=128, attention=attention), VOCABULARY, VOCABULARY
    )
    if not kernels_fit(model, "fp32"):
        pytest.skip("no native kernels on this machine")
    use_precision(model, "fp32", by_kernels=True)
    source, target = sentences(9, 1, 7), prefixes(8, 3, 9)

    def rows(seed: int) -> tuple[Tensor, Tensor]:
        with torch.no_grad(), drawing(seed):
            memory = model.train().encode(source)
            return memory.rows, model.decode(target, memory)

    first, again, other = rows(1), rows(1), rows(2)
    for one, same, anew in zip(first, again, other, strict=True):
        torch.testing.assert_close(one, same)
        assert not torch.allclose(one, anew)
    # Over the source too: the same memory, and other masks.
    memory = model.eval().encode(source)
    model.train()
    with torch.no_grad():
        with drawing(1):
            one = model.decoder[0].cross_attention(
                memory.rows, source.layout, memory.rows, source.layout
            )
        with drawing(2):
            anew = model.decoder[0].cross_attention(
                memory.rows, source.layout, memory.rows, source.layout
            )
    assert not torch.allclose(one, anew)


def test_queries_keys_and_values_are_drawn_as_one_matrix() -> None:
    """Glorot and Bengio's range for (D, 3D), whose variance is half of that for (D, D)."""
    torch.set_default_dtype(torch.float32)
    model = Transformer(settings(model_dim=128, ffn_dim=256), VOCABULARY, VOCABULARY)
    attention = model.encoder[0].attention
    for part in (attention.query, attention.key, attention.value):
        assert float(part.weight.detach().std()) == pytest.approx(math.sqrt(2 / 512), rel=0.03)


def test_the_kernels_table_of_positions_reaches_the_last_word() -> None:
    """Of 257 words the last stands behind the 256 rows of a table that was made for fewer."""
    torch.set_default_dtype(torch.float32)
    model = build(model_dim=64, ffn_dim=128, encoder_layers=1, decoder_layers=1)
    if not kernels_fit(model, "fp32"):
        pytest.skip("no native kernels on this machine")
    plain, source = copy.deepcopy(model), sentences(257, 2)
    use_precision(model, "fp32", by_kernels=True)
    with torch.no_grad():
        model.encode(sentences(5))
        found, expected = model.encode(source).rows, plain.encode(source).rows
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
