"""What figures call the parts of a model."""

from __future__ import annotations

from dragoman.pictures.figure import Words

_KINDS = {
    "attention": Words("self-attention", "셀프 어텐션"),
    "self_attention": Words("self-attention", "셀프 어텐션"),
    "cross_attention": Words("cross-attention", "교차 어텐션"),
    "feed_forward": Words("feed-forward", "피드포워드"),
}


def layer_words(name: str) -> Words:
    """decoder.1.cross_attention -> decoder layer 2, cross-attention; layers count from 1."""
    side, layer, part = name.split(".")
    number, kind = int(layer) + 1, _KINDS[part]
    korean = "인코더" if side == "encoder" else "디코더"
    return Words(f"{side} layer {number}, {kind.english}", f"{korean} {number}층 {kind.korean}")
