"""The requirements of figures and experiments, and the messages for models that do not meet
them."""

from __future__ import annotations

from collections.abc import Collection

from dragoman.base.errors import DragomanError
from dragoman.models.catalogue.classifier import Classifier
from dragoman.models.encoding import Encoder
from dragoman.models.front_ends import BAND_WEIGHTS
from dragoman.models.interface import Network
from dragoman.models.transformer.model import Transformer
from dragoman.pictures.figure import Words

INSIDE = "inside"
"""A figure's need for a Transformer, whose queries, keys, values, positions and norms can be
read."""

WRITES = "writes"
"""A figure's need for a model that writes text token by token, so that its choices can be shown."""

PATCHES = "patches"
"""A figure's need for a model that labels pictures by attention over their patches."""

LEARNED_PLACES = "learned places"
"""A figure's need for a model that labels pictures by attention over their patches and has learned
positions."""

SPIKES = "spikes"
"""A figure's need for a model that transcribes recordings and was trained with CTC."""

BANDS = "bands"
"""A figure's need for a model of recordings whose first heads each read a slice of the frequency
bands."""

_LACKING = {
    INSIDE: Words(
        "This shows the inside of a Transformer, and this run is a {kind} model.",
        "Transformer의 내부를 보여 줍니다. 이 모델은 {kind} 모델입니다.",
    ),
    WRITES: Words(
        "This {kind} model writes nothing, so it chooses no words one after another.",
        "이 {kind} 모델은 문장을 쓰지 않으므로 단어를 차례로 고르지 않습니다.",
    ),
    PATCHES: Words(
        "This figure looks at the patches of a picture, and this {kind} model reads no pictures.",
        "이 그림은 이미지의 패치를 보여 줍니다. 이 {kind} 모델은 이미지를 읽지 않습니다.",
    ),
    LEARNED_PLACES: Words(
        "This figure shows learned positions of patches, and this {kind} model has none.",
        "이 그림은 패치의 학습된 위치 임베딩을 보여 줍니다. 이 {kind} 모델에는 없습니다.",
    ),
    SPIKES: Words(
        "This figure shows CTC over a recording, and this {kind} model has not learned it.",
        "이 그림은 녹음 위에 CTC를 보여 줍니다. 이 {kind} 모델은 CTC를 배우지 않았습니다.",
    ),
    BANDS: Words(
        "This figure shows heads over slices of the bands of a recording, and this {kind} model "
        "has none: train one with --set source.band_heads=4.",
        "이 그림은 녹음의 주파수 대역을 나누어 보는 헤드를 보여 줍니다. 이 {kind} 모델에는 그런 "
        "헤드가 없습니다. --set source.band_heads=4로 학습하면 생깁니다.",
    ),
    "encoder": Words(
        "The encoder of this {kind} model has no attention to draw.",
        "이 {kind} 모델의 인코더에는 그릴 어텐션이 없습니다.",
    ),
    "decoder": Words(
        "The decoder of this {kind} model does not attend to what it has written.",
        "이 {kind} 모델의 디코더는 번역문의 앞부분을 보는 어텐션이 없습니다.",
    ),
    "cross": Words(
        "This {kind} model has no attention from target to source.",
        "이 {kind} 모델에는 번역문이 원문을 보는 어텐션이 없습니다.",
    ),
}


_OF_WORDS = Words(
    "This figure shows words that were read, and this model reads recordings.",
    "이 그림은 읽은 단어를 보여 줍니다. 이 모델은 녹음을 읽습니다.",
)


def lacking(needs: Collection[str], model: Network) -> Words | None:
    """Return the reason why ``model`` does not meet ``needs``, or None if it meets them. Each need
    is one of the constants above, such as ``WRITES``, or the name of a part of the model that must
    have attention ("encoder", "decoder" or "cross")."""
    front = model.front_end
    in_line = front is not None and not front.across  # the rows follow time
    if needs and in_line and not {SPIKES, BANDS} & {*needs}:
        return _OF_WORDS
    has: set[str] = {attention.part for attention in model.attentions}
    if isinstance(model, Transformer):
        has.add(INSIDE)
    if model.settings.writes:
        has.add(WRITES)
    if isinstance(model, Classifier) and isinstance(model.body, Encoder):
        has |= _of_patches(model.body)
    if in_line and model.ctc is not None:
        has.add(SPIKES)
    if front is not None and BAND_WEIGHTS in front.attention_names:
        has.add(BANDS)
    for need in needs:
        if need not in has:
            words, kind = _LACKING[need], model.settings.kind
            return Words(words.english.format(kind=kind), words.korean.format(kind=kind))
    return None


def _of_patches(model: Encoder) -> set[str]:
    if model.front_end is None or not model.front_end.across:
        return set()
    return {PATCHES} if model.source_positions.table is None else {PATCHES, LEARNED_PLACES}


def has_learned_positions(model: Network) -> bool:
    """Return True if a Transformer has learned positions. Errors: as ``transformer_of``."""
    return transformer_of(model).settings.positions.kind == "learned"


def transformer_of(model: Network) -> Transformer:
    """Return ``model`` as a Transformer. Errors: ``DragomanError`` for a model of another kind."""
    if isinstance(model, Transformer):
        return model
    raise DragomanError(_LACKING[INSIDE].english.format(kind=model.settings.kind))
