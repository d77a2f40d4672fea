"""The steps of a lesson, which explains how the model of a run translates one sentence. The last
step shows how it learned, from the log of the training and from its film (weights that were saved
during the training).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import RunError
from dragoman.engine.attention import attention_of
from dragoman.engine.session import Intervention, begin_part, teacher_forced
from dragoman.forms.text_form import as_text
from dragoman.insight.head import softmax
from dragoman.insight.lesson import answer
from dragoman.insight.lesson.reader import Reader, shorten
from dragoman.insight.subject import Subject
from dragoman.models.interface import AttentionLayer, Network
from dragoman.models.transformer.model import Transformer
from dragoman.nn import embedding
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Point, Probe
from dragoman.pictures.records import words
from dragoman.runs.run import Run
from dragoman.search.hypothesis import StepRecord, length_penalty
from dragoman.training.checkpoint import MOST_PARAMETERS

_SHOWN = 24
"""The numbers of each positional row that are shown."""
_MOST_WORDS = 13
"""If a sentence has more words, only neighbouring ones are exchanged."""
_CANDIDATES = 12
_TEMPERATURES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
_ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)
"""The strengths of the length penalty that are compared."""
_POINTS = 300
"""About this many points make the curve of the training loss."""


def pieces_step(reader: Reader, text: str) -> list[answer.Cut]:
    """Return each word of ``text`` with the merges that make its tokens."""
    vocabulary = reader.source
    words_in = as_text(reader.engine.source).prepare(text).split()
    return [
        answer.Cut(
            word=word,
            steps=vocabulary.merges(word),
            ids=ids,
            unknown=ids.count(vocabulary.unknown),
        )
        for word, ids in zip(words_in, vocabulary.encode_lists(words_in), strict=True)
    ]


def positions_step(reader: Reader, ids: Sequence[int]) -> answer.PositionStep:
    """Compare the translations of the sentence ``ids`` and of all exchanges of two of its words,
    with and without positions."""
    places = torch.arange(len(ids))
    lengths = torch.full_like(places, len(ids))
    width = reader.model.settings.model_dim
    rows = {
        "index": embedding.index(places, width),
        "normalised": embedding.normalised(places, lengths, width),
        "binary": embedding.binary(places, width),
        "sinusoidal": embedding.sinusoidal(places, width),
    }
    own = reader.model.source_positions
    with torch.inference_mode():
        rows[own.settings.kind] = own(places, lengths, torch.float32)
    spans = _movable(reader.engine.source.names_of(list(ids)))
    pairs = [(a, b) for a, b in combinations(spans, 2) if len(spans) <= _MOST_WORDS or b == a + 1]
    orders = [_exchange(len(ids), spans[a], spans[b]) for a, b in pairs]
    changed = [[ids[place] for place in order] for order in orders]
    outputs = reader.texts(changed)
    without, *others = reader.texts([ids, *changed], Probe(positions_off=True, record=False))
    texts = reader.engine.source.raw([source[:-1] for source in changed])
    first = _encode(reader, ids)
    swaps = [
        answer.Swap(
            words=pair,
            text=text,
            output=output,
            without=other,
            difference=shorten(_difference(first[order], _encode(reader, source))),
        )
        for pair, text, output, other, source, order in zip(
            pairs, texts, outputs, others, changed, orders, strict=True
        )
    ]
    encodings = {name: shorten(table[:, :_SHOWN]) for name, table in rows.items()}
    return answer.PositionStep(encodings=encodings, without=without, swaps=swaps)


def _movable(tokens: Sequence[str]) -> dict[int, range]:
    """Return the places of the tokens of each word, by the number of the word, without the
    punctuation behind it and without the end symbol."""
    word_of = words(tokens)[1]
    spans: dict[int, range] = {}
    for place, word in enumerate(word_of[:-1]):
        begin = spans[word].start if word in spans else place
        if word not in spans or any(map(str.isalnum, tokens[place])):
            spans[word] = range(begin, place + 1)
    return spans


def _exchange(length: int, first: range, second: range) -> list[int]:
    """Return the old places of all tokens, in the order in which the tokens of two words have
    changed places."""
    between = range(first.stop, second.start)
    behind = range(second.stop, length)
    return [*range(first.start), *second, *between, *first, *behind]


def _encode(reader: Reader, ids: Sequence[int]) -> NDArray[np.float64]:
    """Return the rows (S, D) of the encoder without positions."""
    with torch.inference_mode(), Probe(positions_off=True, record=False):
        rows = reader.model.encode(Sequences.of([torch.tensor(list(ids))])).rows
    return rows.double().numpy()


def _difference(old: NDArray[np.float64], new: NDArray[np.float64]) -> float:
    return float(np.max(np.linalg.norm(old - new, axis=1) / np.linalg.norm(old, axis=1)))


def open_heads(
    model: Transformer, attention: AttentionLayer, row: int, probe: Probe
) -> answer.OpenedHeads:
    """Return the computation of one row of an attention. ``probe`` took its queries, keys, values
    and outputs."""
    computes = attention_of(model, attention)
    assert computes is not None, "a Transformer has queries and keys"

    def values_of(point: Point) -> Tensor:
        return probe.taken[attention.name, point][0].double()

    query, key, value = values_of("query")[:, row], values_of("key"), values_of("value")
    weights = probe.attention[attention.name][0, :, row].double()  # (H, S)
    output = computes.output.weight.detach().double().unflatten(1, (attention.heads, -1))
    added = torch.einsum("hs,hsk,dhk->hsd", weights, value, output)
    return answer.OpenedHeads(
        layer=attention.layer,
        row=row,
        scale=shorten(attention.scale),
        queries=shorten(query),
        keys=shorten(key),
        values=shorten(value),
        products=shorten(torch.einsum("hk,hsk->hs", query, key)),
        weights=shorten(weights),
        outputs=shorten(values_of("heads")[:, row]),
        adds=shorten(added.square().mean(dim=-1).sqrt()),
    )


def changes_step(
    reader: Reader, ids: Sequence[int], tokens: Sequence[int], place: int, layer: int
) -> list[answer.Change]:
    """Translate the sentence ``ids`` with heads of the encoder switched off (each of ``layer``, all
    of each layer, and all) and with each word hidden. ``tokens``: its translation."""
    word_of = words(reader.engine.source.names_of(list(ids)))[1]
    every = {
        attention.layer: [(attention.name, head) for head in range(attention.heads)]
        for attention in reader.model.attentions_of("encoder")
    }
    changes: list[tuple[dict[str, int], Intervention]] = [
        ({"layer": layer, "head": head}, Intervention(frozenset([named])))
        for head, named in enumerate(every[layer])
    ]
    changes += [({"layer": number}, Intervention(frozenset(off))) for number, off in every.items()]
    changes.append(({}, Intervention(frozenset(chain.from_iterable(every.values())))))
    changes += [
        ({"hidden": word}, Intervention(hidden=tuple(np.flatnonzero(np.equal(word_of, word)))))
        for word in range(word_of[-1])
    ]
    made: list[answer.Change] = []
    for what, under in changes:
        probability, best = reader.next_token(ids, tokens, place, under)
        (output,) = reader.texts([ids], under.probe())
        made.append(
            answer.Change(**what, output=output, probability=shorten(probability), best=best)
        )
    return made


def sublayers_step(reader: Reader, probe: Probe) -> list[answer.LessonSublayer]:
    """Return the sizes of the rows around each sub-layer. ``probe`` took them."""

    def size(name: str, point: Point) -> list[float]:
        rows = probe.taken[name, point].double()
        sizes: list[float] = shorten(rows.square().mean(dim=-1).sqrt())
        return sizes

    return [
        answer.LessonSublayer(
            side=sublayer.side,
            layer=sublayer.layer,
            kind=sublayer.kind,
            stream=size(sublayer.name, "stream"),
            added=size(sublayer.name, "added"),
            after=size(sublayer.name, "after"),
        )
        for sublayer in reader.model.sublayers
    ]


def decoding_step(
    reader: Reader,
    ids: Sequence[int],
    tokens: Sequence[int],
    place: int,
    probe: Probe,
    reference: str | None,
) -> answer.DecoderStep:
    """Compute the weights without the mask, the steps of teacher forcing, and the translation after
    a mistake at ``place``. ``probe`` took the queries and keys of the translation ``tokens``."""
    first = reader.model.attentions_of("decoder")[0]
    query, key = (probe.taken[first.name, point][0].double() for point in ("query", "key"))
    unmasked = torch.softmax(query @ key.transpose(1, 2) * first.scale, dim=-1)
    given = tokens if reference is None else reader.engine.target.tokens([reference])[0]
    logits = reader.logits(ids, given)
    wanted = [*given, reader.target.eos]
    shares = softmax(logits)
    forced = [
        answer.Forced(wanted=piece, probability=shorten(row[token]), best=best)
        for piece, token, row, best in zip(
            reader.pieces(wanted), wanted, shares, reader.pieces(shares.argmax(1)), strict=True
        )
    ]
    mistake = after = None
    if place < len(tokens):
        order = np.argsort(-reader.logits(ids, tokens[:place])[-1])
        wrong = next(
            int(token) for token in order if token not in (tokens[place], reader.target.eos)
        )
        (mistake,) = reader.pieces([wrong])
        (after,) = reader.texts([ids], prefix=[*tokens[:place], wrong])
    return answer.DecoderStep(
        unmasked=shorten(unmasked),
        forced=forced,
        is_reference=reference is not None,
        mistake=mistake,
        after_mistake=after,
    )


def next_step(
    reader: Reader, ids: Sequence[int], tokens: Sequence[int], place: int
) -> answer.NextStep:
    """Return the candidates for the token ``place``, and the search of the translation."""
    logits = reader.logits(ids, tokens[:place])[-1]
    best = np.argsort(-logits, kind="stable")[:_CANDIDATES]
    epsilon = reader.predictor.run.recipe.training.label_smoothing
    steps: list[StepRecord] = []
    (hypotheses,) = reader.search([ids], record=steps)
    ended = [hypothesis for hypothesis in hypotheses if hypothesis.finished]
    ended.sort(key=lambda hypothesis: -hypothesis.log_probability)
    outputs = reader.engine.target.raw([hypothesis.tokens for hypothesis in ended])
    kind = reader.engine.search_settings.penalty
    candidates = sorted({record.token for step in steps for record in step.continuations})
    return answer.NextStep(
        candidates=reader.pieces(best.tolist()),
        temperatures=list(_TEMPERATURES),
        probabilities=shorten([softmax(logits / at)[best] for at in _TEMPERATURES]),
        wanted=shorten(1 - epsilon + epsilon / len(logits)),
        alphas=list(_ALPHAS),
        hypotheses=[
            answer.Ranked(
                output=output,
                length=(length := len(hypothesis.token_log_probabilities)),
                log_probability=shorten(hypothesis.log_probability),
                scores=shorten(
                    [hypothesis.log_probability / length_penalty(length, a, kind) for a in _ALPHAS]
                ),
            )
            for hypothesis, output in zip(ended, outputs, strict=True)
        ],
        beam=[list(step.continuations) for step in steps],
        pieces=dict(zip(candidates, reader.pieces(candidates), strict=True)),
        chosen=list(tokens),
    )


def probe_of(reader: Reader, ids: Sequence[int], tokens: Sequence[int]) -> Probe:
    """Read a sentence and its translation with teacher forcing. Return the probe that took the
    values of every attention and sub-layer."""
    probe = Probe(points=("query", "key", "value", "heads", "stream", "added", "after"))
    teacher_forced(reader.model, [ids], [[reader.target.bos, *tokens]], probe)
    return probe


def learning_step(
    reader: Reader, ids: Sequence[int], tokens: Sequence[int], place: int
) -> answer.LearningStep:
    """Return the losses of the training, the samples of its validations, and what each moment of
    its film makes of the sentence. A run that has no film shows its snapshots."""
    lines = list(reader.predictor.run.metrics())
    updates = [
        (line["update"], shorten(line["nll"]))
        for line in lines
        if line["kind"] == "update" and line["nll"] is not None and math.isfinite(line["nll"])
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
        moments=_moments(reader, ids, tokens, place),
    )


def learn_beside(subject: Subject, name: str) -> answer.Beside:
    """Return the outputs for the sentence at some moments of another run's training. ``name``: the
    name of that run, which may be of any family."""
    run, engine = subject.run, subject.predictor.engine
    request = engine.request(subject.predictor.source_ids(subject.sentence), engine.search_settings)

    def output(model: Network) -> str:
        begin_part()
        ((best, *_),) = engine.over(model).search([request])
        return engine.target.raw([best.tokens])[0]

    plain = subject.predictor.plain
    files = _files(run, plain)
    outputs = [(update, output(run.model(file))) for update, file in files[:: 1 + len(files) // 6]]
    outputs.append((run.last_update, output(plain)))
    return answer.Beside(name=name, family=run.recipe.model.kind, outputs=outputs)


def _files(run: Run, model: Network) -> list[tuple[int, Path]]:
    """Return the updates and the weights of the film of a run, or of its snapshots. The list is
    empty for a large model, because loading each file would take as long as opening the run."""
    if sum(tensor.numel() for tensor in model.parameters()) > MOST_PARAMETERS:
        return []
    return run.film() or run.snapshots()


def _loss(scores: Mapping[str, float]) -> float | None:
    """Return the loss without smoothing, which older runs call "loss"."""
    return scores.get("nll", scores.get("loss"))


def _moments(
    reader: Reader, ids: Sequence[int], tokens: Sequence[int], place: int
) -> list[answer.Moment]:
    run, moments = reader.predictor.run, list[answer.Moment]()
    for update, file in _files(run, reader.model):
        with suppress(RunError):  # a run works without its film
            earlier = Reader(reader.predictor, run.model(file))
            probability, best = earlier.next_token(ids, tokens, place, Intervention())
            (output,), p = earlier.texts([ids]), shorten(probability)
            moments.append(answer.Moment(update=update, output=output, probability=p, best=best))
    return moments
