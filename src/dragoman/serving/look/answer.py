"""What was seen in one translation, as the API tells it."""

from __future__ import annotations

from dragoman.engine.engine import Engine
from dragoman.insight.session import Inspection
from dragoman.pictures.records import words
from dragoman.serving.look.checks import Cut
from dragoman.serving.look.packed import small_maps, weights_message
from dragoman.serving.look.schema import (
    Choice,
    LookAnswer,
    LookRequest,
    ModelInfo,
    OwnAnswer,
    Step,
    StepCandidate,
)
from dragoman.serving.outputs import schema


def look_answer(
    cut: Cut[LookRequest],
    seen: Inspection,
    best: schema.Hypothesis,
    *,
    run: str,
    engine: Engine,
    detected: schema.DetectedLanguage | None,
) -> LookAnswer:
    """All that the request asked for. Raises Refusal for more than one answer may hold."""
    request, source, target = cut.request, engine.source, engine.target
    read = source.shown(seen.source_ids)
    probabilities, ids = (one[:, : request.choices].tolist() for one in seen.choices)
    tokens = {token for row in ids for token in row}
    if request.steps:
        tokens |= {c.token for step in seen.steps for c in step.continuations}
    names = {token: target.shown_for("", [token])[0] for token in tokens}
    count = sum(seen.attention[part].numel() for part in request.attention)
    fits = request.attention_within is None or count <= request.attention_within
    return LookAnswer(
        run=run,
        source=source.language,
        target=target.language,
        detected=detected,
        sentences=cut.sentences,
        beam=seen.settings.beam,
        length_penalty=seen.settings.length_penalty,
        source_tokens=read,
        source_ids=seen.source_ids,
        source_words=list(words(read)[1]),
        target_tokens=seen.target,
        target_words=list(words(seen.target)[1]),
        best=best.model_copy(update={"text": seen.text}),
        own=None if seen.own is None else OwnAnswer(text=seen.own.text, place=seen.own.place),
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
                Choice(id=token, piece=names[token], probability=round(p, 5))
                for p, token in zip(row, of_row, strict=True)
                if p > 0
            ]
            for row, of_row in zip(probabilities, ids, strict=True)
            if request.choices
        ],
        steps=[
            Step(
                place=step.place,
                candidates=[
                    StepCandidate(
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


def _sizes(engine: Engine) -> ModelInfo:
    model = engine.network
    return ModelInfo.model_validate(
        {
            **model.settings.sizes,
            "kind": model.settings.kind,
            "attentions": {
                part: [attention.heads for attention in model.attentions_of(part)]
                for part in ("encoder", "decoder", "cross")
            },
            "source_vocabulary": engine.source.size,
            "target_vocabulary": engine.target.size,
            "parameters": sum(one.numel() for one in model.parameters()),
        }
    )
