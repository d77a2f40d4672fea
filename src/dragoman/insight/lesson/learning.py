"""The last step of a lesson: the training of the run, from its log and its film."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from dragoman.engine.session import Intervention
from dragoman.insight.lesson import answer
from dragoman.insight.lesson.reader import Reader, shorten
from dragoman.insight.subject import Subject
from dragoman.models.interface import Network
from dragoman.runs.run import Run
from dragoman.training.film import MOST_PARAMETERS

_POINTS = 300
"""About this many points make the curve of the training loss."""


def learning_step(
    reader: Reader, ids: Sequence[int], tokens: Sequence[int], place: int
) -> answer.LearningStep:
    """Return the losses of the training, the samples of its validations, and what each moment of
    its film makes of the sentence. A run that has no film shows its snapshots."""
    run, lines = reader.predictor.run, list(reader.predictor.run.metrics())
    updates = [
        (line["update"], shorten(line["nll"]))
        for line in lines
        if line["kind"] == "update" and math.isfinite(line["nll"])
    ]
    # An update may be validated twice, the second time with averaged weights.
    validations = {line["update"]: line for line in lines if line["kind"] == "validation"}.values()
    losses = [(line["update"], _loss(line["scores"])) for line in validations]
    return answer.LearningStep(
        training=updates[:: -(-len(updates) // _POINTS) or 1],
        development=[(update, shorten(loss)) for update, loss in losses if loss is not None],
        samples=[
            answer.Heard(
                update=line["update"],
                source=sample["source"],
                output=sample["translation"],
                reference=sample["reference"],
            )
            for line in validations
            for sample in line.get("samples", [])[:2]
        ],
        moments=_moments(run, reader, ids, tokens, place),
    )


def learn_beside(subject: Subject, name: str) -> answer.Beside:
    """Return what some moments of a run of any family make of the sentence. ``name``: its name."""
    run, engine = subject.run, subject.predictor.engine
    request = engine.request(subject.predictor.source_ids(subject.sentence), engine.search_settings)

    def output(model: Network) -> str:
        ((best, *_),) = engine.over(model).search([request])
        return engine.target.raw([best.tokens])[0]

    plain = subject.predictor.plain
    files = _files(run, plain)
    outputs = [(update, output(run.model(file))) for update, file in files[:: 1 + len(files) // 6]]
    outputs.append((run.last_update, output(plain)))
    return answer.Beside(name=name, family=run.recipe.model.kind, outputs=outputs)


def _files(run: Run, model: Network) -> list[tuple[int, Path]]:
    """Return the updates and the weights of the film of a run, or of its snapshots. None of a large
    model: each would take as long as opening the run."""
    if sum(tensor.numel() for tensor in model.parameters()) > MOST_PARAMETERS:
        return []
    return run.film() or run.snapshots()


def _loss(scores: Mapping[str, float]) -> float | None:
    """Return the loss without smoothing, which older runs call "loss"."""
    return scores.get("nll", scores.get("loss"))


def _moments(
    run: Run, reader: Reader, ids: Sequence[int], tokens: Sequence[int], place: int
) -> list[answer.Moment]:
    readers = (
        (update, Reader(reader.predictor, run.model(file)))
        for update, file in _files(run, reader.model)
    )
    moments: list[answer.Moment] = []
    for update, earlier in readers:
        probability, best = earlier.next_token(ids, tokens, place, Intervention())
        (output,) = earlier.texts([ids])
        moments.append(
            answer.Moment(update=update, output=output, probability=shorten(probability), best=best)
        )
    return moments
