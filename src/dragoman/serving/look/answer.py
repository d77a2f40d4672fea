"""The answer of ``/v1/look``, which is made from the recorded attention of one translation. Large
arrays are encoded in base64."""

from __future__ import annotations

import base64

from torch import Tensor
from torch.nn import functional as F

from dragoman.engine.engine import Engine
from dragoman.engine.session import Inspection
from dragoman.pictures.records import words
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look import schema

MAX_WEIGHTS = 4_000_000
"""The largest number of attention weights in one answer, which is 11 MB of base64."""


def check_size(weights: int) -> None:
    """Raises Refusal for more weights than one answer may hold."""
    if weights > MAX_WEIGHTS:
        raise Refusal("too_many_weights", weights=weights, most=MAX_WEIGHTS)


def weights_message(weights: Tensor) -> schema.Weights:
    """Encode weights (L, H, T, S) as a message. Raises Refusal for more weights than one answer may
    have."""
    check_size(weights.numel())
    count, heads, looking, looked_at = weights.shape
    data = base64.b64encode(weights.half().contiguous().numpy().astype("<f2").tobytes()).decode()
    return schema.Weights(shape=(count, heads, looking, looked_at), data=data)


def small_maps(weights: Tensor, most: int) -> schema.Maps:
    """Reduce weights (L, H, T, S) to at most ``most`` rows and columns. Each cell of the result is
    the maximum of a block of weights."""
    _, _, looking, looked_at = weights.shape
    size = min(looking, most), min(looked_at, most)
    one_by_one = weights.float().flatten(0, 1)[:, None]  # (LH, 1, T, S), where LH may be 0
    small = F.adaptive_max_pool2d(one_by_one, size)
    data = (small * 255).round().clamp(0, 255).byte().numpy().tobytes()
    layers, heads = weights.shape[:2]
    return schema.Maps(shape=(layers, heads, *size), data=base64.b64encode(data).decode())


def look_answer(
    request: schema.LookRequest,
    sentences: list[str],
    seen: Inspection,
    run: str,
    engine: Engine,
    detected: schema.DetectedLanguage | None,
) -> schema.LookAnswer:
    """Return everything that the request selects. ``sentences``: the sentences into which its text
    was split. Raises Refusal for more weights than one answer may have."""
    source, target = engine.source, engine.target
    (text,) = schema.texts_of(target, [seen.best])
    best = schema.hypothesis_message(target, seen.best, text)
    read = source.names_of(seen.source_ids)
    probabilities, ids = (values[:, : request.choices].tolist() for values in seen.choices)
    tokens = {token for row in ids for token in row}
    if request.steps:
        tokens |= {c.token for step in seen.steps for c in step.continuations}
    names = {token: target.names_beside("", [token])[0] for token in tokens}
    count = sum(seen.attention[part].numel() for part in request.attention)
    fits = request.attention_within is None or count <= request.attention_within
    return schema.LookAnswer(
        run=run,
        source=source.language,
        target=target.language,
        detected=detected,
        sentences=sentences,
        beam=seen.settings.beam,
        length_penalty=seen.settings.length_penalty,
        source_tokens=read,
        source_ids=seen.source_ids,
        source_words=list(words(read)[1]),
        target_tokens=seen.target,
        target_words=list(words(seen.target)[1]),
        best=best.model_copy(update={"text": seen.text}),
        own=None
        if seen.own is None
        else schema.OwnAnswer(text=seen.own.text, place=seen.own.place),
        compared=seen.compared,
        model=_sizes(engine),
        attention={
            part: weights_message(seen.attention[part]) for part in request.attention if fits
        },
        maps={
            part: small_maps(weights, request.maps)
            for part, weights in seen.attention.items()
            if request.maps
        },
        choices=[
            [
                schema.Choice(id=token, piece=names[token], probability=round(p, 5))
                for p, token in zip(row, of_row, strict=True)
                if p > 0
            ]
            for row, of_row in zip(probabilities, ids, strict=True)
            if request.choices
        ],
        steps=[
            schema.Step(
                place=step.place,
                candidates=[
                    schema.StepCandidate(
                        parent=candidate.parent,
                        id=candidate.token,
                        piece=names[candidate.token],
                        log_probability=round(candidate.log_probability, 5),
                        total=round(candidate.total, 5),
                        outcome=candidate.outcome,
                    )
                    for candidate in step.continuations
                ],
            )
            for step in seen.steps
            if request.steps
        ],
    )


def _sizes(engine: Engine) -> schema.ModelInfo:
    model = engine.network
    return schema.ModelInfo.model_validate(
        {
            **model.settings.sizes,
            "kind": model.settings.kind,
            "attentions": {
                part: [attention.heads for attention in model.attentions_of(part)]
                for part in ("encoder", "decoder", "cross")
            },
            "source_vocabulary": engine.source.size,
            "target_vocabulary": engine.target.size,
            "parameters": sum(weights.numel() for weights in model.parameters()),
        }
    )
