"""What every model that reads rows, and every faster way to run one, must do alike: as
``test_model_contract.py`` has it for tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from implementations import TARGET, Path, drawn
from torch import Tensor

from dragoman.models.catalogue.classifier import new_classifier
from dragoman.models.catalogue.networks import new_network
from dragoman.models.interface import Writing, writing
from dragoman.models.prepared import PreparedNetwork
from dragoman.models.settings import KINDS, EncoderSettings
from dragoman.models.transformer.cpu import PreparedTransformer
from dragoman.models.transformer.int8 import Int8Transformer, why_not_here
from dragoman.native import library
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import use_precision
from dragoman.sources.frames.form import FramesSource
from dragoman.sources.line import LineSource
from dragoman.sources.picture.form import PictureSource
from dragoman.sources.shared.rows import RowsSource

SOURCES: dict[str, RowsSource] = {
    "frames by 4": FramesSource(bands=10, subsample=4, channels=3),
    "frames by 2": FramesSource(bands=7, subsample=2, channels=5),
    "frames by heads over bands": FramesSource(bands=8, subsample=2, channels=3, band_heads=2),
    "patches": PictureSource(height=8, width=8, patch=4),
    "patches by convolutions": PictureSource(
        height=8, width=12, patch=4, stem="convolutions", stem_channels=3
    ),
    "columns by 8": LineSource(height=11, subsample=8, channels=4),
}
SIZES: dict[str, dict[str, Any]] = {
    "transformer": {
        "model_dim": 16, "ffn_dim": 24, "encoder_layers": 2, "decoder_layers": 2,
        "attention": {"num_heads": 4}, "dropout": 0.0, "tie": "none",
    },
    "transformer beside": {
        "model_dim": 16, "ffn_dim": 24, "attention": {"num_heads": 4}, "tie": "none",
        "dropout": 0.0, "positions": {"kind": "binary", "combine": "concatenate", "width": 5},
    },
    "recurrent": {"model_dim": 16, "dropout": 0.0, "tie": "none"},
    "convolutional": {
        "model_dim": 16, "channels": 12, "dropout": 0.0, "positions": 40, "tie": "none",
    },
}  # fmt: skip


def network(name: str, source: RowsSource, **changes: Any) -> Writing:
    settings = {"kind": name.split(" ")[0], **SIZES[name], **changes}
    made = new_network(KINDS[settings["kind"]].model_validate(settings), source, TARGET)
    return writing(drawn(made))


def rows(source: RowsSource, *lengths: int) -> list[Tensor]:
    """Sources as stores keep them."""
    if isinstance(source, PictureSource):
        shape = source.patches, source.row_width
        return [torch.randint(0, 256, shape, dtype=torch.uint8) for _ in lengths]
    if isinstance(source, LineSource):
        shapes = [(length, source.row_width) for length in lengths]
        return [torch.randint(0, 256, shape, dtype=torch.uint8) for shape in shapes]
    return [torch.randn(length, source.row_width).half() for length in lengths]


@dataclass(frozen=True)
class Way:
    """One way to run a model over rows."""

    source: RowsSource
    make: Callable[[], Path]
    dtype: torch.dtype = torch.float64
    alike: float = 1e-9
    as_plain: float = 1e-9


def _in_int8(source: RowsSource) -> Path:
    if missing := why_not_here():
        pytest.skip(missing)
    model = network("transformer", source, model_dim=48, ffn_dim=70)
    return Int8Transformer(model)  # type: ignore[arg-type]


WAYS: dict[str, Way] = {
    **{
        f"{name}, {of}": Way(source, lambda n=name, s=source: network(n, s))  # type: ignore[misc]
        for name in SIZES
        for of, source in SOURCES.items()
    },
    **{
        f"transformer on prepared torch, {of}": Way(
            source,
            lambda s=source: PreparedTransformer(network("transformer", s), torch.float32),  # type: ignore[misc]
            torch.float32, 1e-4, 1e-4,
        )
        for of, source in SOURCES.items()
    },
    **{
        f"{name} on prepared torch, {of}": Way(
            source,
            lambda n=name, s=source: PreparedNetwork(network(n, s), torch.float32),  # type: ignore[misc]
            torch.float32, 1e-4, 1e-4,
        )
        for name in ("recurrent", "convolutional")
        for of, source in SOURCES.items()
    },
    **{
        f"transformer decoding in int8, {of}": Way(
            source,
            lambda s=source: _in_int8(s),  # type: ignore[misc]
            torch.float32, 1e-5, 0.06 if library.status().level == "avx2" else 0.05,
        )
        for of, source in SOURCES.items()
    },
}  # fmt: skip


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    chosen = WAYS[request.param]
    torch.set_default_dtype(chosen.dtype)
    torch.manual_seed(0)
    with torch.no_grad():
        yield chosen
    torch.set_default_dtype(torch.float32)


def prefixes(*lengths: int) -> list[Tensor]:
    begin = torch.tensor([1])
    return [torch.cat([begin, torch.randint(0, TARGET, (length - 1,))]) for length in lengths]


def distance(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def logits(model: Path, sources: list[Tensor], targets: list[Tensor]) -> list[Tensor]:
    layout = Sequences.of(targets)
    hidden = model.decode(layout, model.encode(Sequences.of(sources)))
    return list(model.project(hidden).split(list(layout.layout.lengths)))


def test_a_source_is_read_alone_as_beside_others(way: Way) -> None:
    """Nothing leaks across the end of a recording, also not of the padding behind it."""
    model, sources, targets = way.make(), rows(way.source, 9, 1, 22), prefixes(4, 6, 1)
    together = logits(model, sources, targets)
    for source, target, found in zip(sources, targets, together, strict=True):
        assert distance(found, logits(model, [source], [target])[0]) <= way.alike


def test_a_step_is_decode(way: Way) -> None:
    model, sources, targets = way.make(), rows(way.source, 9, 14), prefixes(5, 5)
    whole = torch.stack(logits(model, sources, targets))  # (2, 5, V)
    state, tokens = model.start(model.encode(Sequences.of(sources))), torch.stack(targets)
    for place in range(5):
        found = model.step(tokens[:, place : place + 1], state)
        assert distance(found, whole[:, place]) <= way.as_plain


def test_a_source_may_join_later(way: Way) -> None:
    model, sources = way.make(), rows(way.source, 9, 14)
    both = model.start(model.encode(Sequences.of(sources)))
    state = model.start(model.encode(Sequences.of(sources[:1])))
    state.admit(model.encode(Sequences.of(sources[1:])))
    tokens = torch.ones(2, 1, dtype=torch.int64)
    assert distance(model.step(tokens, state), model.step(tokens, both)) <= way.alike


@pytest.mark.parametrize("of", SOURCES)
@pytest.mark.parametrize("name", ["transformer", "recurrent", "convolutional"])
def test_a_source_changes_what_is_written(name: str, of: str) -> None:
    torch.manual_seed(0)
    source = SOURCES[of]
    model, (one, other), (target,) = network(name, source), rows(source, 9, 9), prefixes(4)
    with torch.no_grad():
        found = logits(model, [one, other], [target, target])
    assert distance(found[0], found[1]) > 1e-3


@pytest.mark.parametrize("of", SOURCES)
def test_a_classifier_is_the_mean_of_what_is_left_of_the_rows(of: str) -> None:
    """Also of a recording that is shortened on the way, beside longer ones."""
    torch.manual_seed(0)
    settings = EncoderSettings.model_validate(
        {"model_dim": 16, "ffn_dim": 24, "layers": 2, "attention": {"num_heads": 4}}
    )
    model, source = drawn(new_classifier(settings, SOURCES[of], 3)), SOURCES[of]
    sources = rows(source, 9, 1, 22)
    with torch.no_grad():
        together = model.project(model.encode(Sequences.of(sources)).rows)
        for number, one in enumerate(sources):
            alone = model.project(model.encode(Sequences.of([one])).rows)
            assert distance(together[number : number + 1], alone) < 1e-5
            assert model.memory_length(len(one)) == -(-len(one) // source.shortens)


def test_what_trains_in_bf16_is_decoded_in_int8() -> None:
    """Validation decodes over what the model reads in the precision of its training."""
    if missing := why_not_here():
        pytest.skip(missing)
    torch.manual_seed(0)
    source = SOURCES["frames by 4"]
    plain = network("transformer", source, model_dim=48, ffn_dim=70, norm="pre")
    use_precision(plain, "bf16")
    model = Int8Transformer(plain)
    with torch.no_grad():
        assert plain.encode(Sequences.of(rows(source, 9))).rows.dtype == torch.bfloat16
    state = model.start(model.encode(Sequences.of(rows(source, 9))))
    assert torch.isfinite(model.step(torch.ones(1, 1, dtype=torch.int64), state)).all()
