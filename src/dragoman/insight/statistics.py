"""What the residual stream and the layer norms do, sub-layer by sub-layer, in a trained run.

Post-norm, the paper's (§3.1, §5.4): x becomes LayerNorm(x + Sublayer(x)). Pre-norm: x becomes
x + Sublayer(LayerNorm(x)). Measured per row (token), averaged over all rows of some sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.insight.needs import transformer_of
from dragoman.nn.layers import DecoderLayer, EncoderLayer, LayerNorm
from dragoman.nn.layout import Sequences
from dragoman.tasks.translator import Translator


@dataclass(frozen=True)
class SublayerStatistics:
    """One sub-layer. Sizes are root mean squares over a row's dimensions, averaged over rows."""

    name: str
    """``encoder.0.attention``, say."""
    stream: float
    """Size of x, what comes in along the residual connection."""
    added: float
    """Size of Sublayer(·), what is added to it."""
    agreement: float
    """Cosine between the two: 0 adds something new, 1 says the same again."""
    summed: float
    """Size of x + Sublayer(·)."""
    after: float
    """Size of what goes on: after the norm (post) or the sum itself (pre)."""
    gain: float
    """Mean of the norm's gain (γ)."""
    bias: float
    """Root mean square of the norm's bias (β)."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def layer_statistics(
    translator: Translator, pairs: Sequence[tuple[str, str]]
) -> list[SublayerStatistics]:
    """Read ``pairs`` by force, and measure around every sub-layer, in the order of computing."""
    run = translator.run
    model = transformer_of(run.model())  # hooks stay on it
    norms: dict[str, LayerNorm] = {}
    streams: dict[str, Tensor] = {}
    outputs: dict[str, Tensor] = {}
    post = model.settings.norm == "post"
    layers: list[EncoderLayer | DecoderLayer] = [*model.encoder, *model.decoder]
    for layer in layers:
        for name, part in layer.named_children():
            if name.endswith("_norm"):
                continue
            place = f"{layer.name}.{name}"
            norm = layer.get_submodule(f"{name}_norm")
            assert isinstance(norm, LayerNorm)
            norms[place] = norm

            def keep(
                _: nn.Module, given: tuple[Tensor, ...], made: Tensor, place: str = place
            ) -> None:
                outputs[place] = made.detach()
                if post:
                    streams[place] = given[0].detach()

            def keep_stream(
                _: nn.Module, given: tuple[Tensor, ...], __: Tensor, place: str = place
            ) -> None:
                streams[place] = given[0].detach()

            part.register_forward_hook(keep)
            if not post:
                norm.register_forward_hook(keep_stream)
    sources = [torch.tensor(translator.source_ids(source)) for source, _ in pairs]
    bos = run.target_text.bos
    targets = [
        torch.tensor([bos, *ids]) for ids in run.target.tokens([target for _, target in pairs])
    ]
    measured = []
    with torch.inference_mode():
        model.decode(Sequences.of(targets), model.encode(Sequences.of(sources)))
        for place, norm in norms.items():
            x, y = streams[place].double(), outputs[place].double()
            after = norm((x + y).float()).double() if post else x + y
            measured.append(
                SublayerStatistics(
                    place,
                    _size(x),
                    _size(y),
                    float(torch.cosine_similarity(x, y, dim=-1).mean()),
                    _size(x + y),
                    _size(after),
                    float(norm.weight.double().mean()),
                    float(norm.bias.double().square().mean().sqrt()),
                )
            )
    return measured


def _size(rows: Tensor) -> float:
    return float(rows.square().mean(dim=-1).sqrt().mean())
