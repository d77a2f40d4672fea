"""What figures call the parts of a model."""

from __future__ import annotations

from dragoman.models.interface import AttentionLayer
from dragoman.models.transformer.model import Sublayer
from dragoman.pictures.figure import Words

_SIDES = {"encoder": "인코더", "decoder": "디코더"}
_KINDS = {
    "self-attention": "셀프 어텐션",
    "cross-attention": "교차 어텐션",
    "feed-forward": "피드포워드",
}
PART_WORDS: dict[str, Words] = {
    "encoder": Words("encoder self-attention", "인코더 셀프 어텐션"),
    "decoder": Words("decoder self-attention", "디코더 셀프 어텐션"),
    "cross": Words("cross-attention", "교차 어텐션"),
}


def attention_words(attention: AttentionLayer) -> Words:
    """ "decoder layer 2, cross-attention"; layers count from 1."""
    side = "encoder" if attention.part == "encoder" else "decoder"
    kind = "cross-attention" if attention.part == "cross" else "self-attention"
    return _words(side, attention.layer, kind)


def sublayer_words(sublayer: Sublayer) -> Words:
    """ "encoder layer 1, feed-forward"; layers count from 1."""
    return _words(sublayer.side, sublayer.layer, sublayer.kind)


def _words(side: str, layer: int, kind: str) -> Words:
    return Words(
        f"{side} layer {layer + 1}, {kind}", f"{_SIDES[side]} {layer + 1}층 {_KINDS[kind]}"
    )
