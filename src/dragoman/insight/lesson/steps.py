"""The steps of a lesson, one function for each, computed from a run and a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.engine.attention import attention_of
from dragoman.engine.session import Intervention, teacher_forced
from dragoman.insight.lesson import answer
from dragoman.insight.lesson.reader import Reader, rounded, softmax
from dragoman.models.interface import AttentionLayer
from dragoman.models.transformer.model import Transformer
from dragoman.nn import embedding
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Point, Probe
from dragoman.pictures.records import words
from dragoman.runs.run import Run
from dragoman.search.hypothesis import StepRecord, length_penalty

SNAPSHOTS = "training/snapshots"
_SHOWN = 24
"""The numbers of each positional row that are shown."""
_MOST_WORDS = 13
"""If a sentence has more words, only neighbouring ones are exchanged."""
_CANDIDATES = 12
_TEMPERATURES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
_ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)
_MOST_PARAMETERS = 20_000_000
"""The snapshots of a larger model are not opened: each takes as long as opening the run."""
_POINTS = 300


def pieces_step(reader: Reader, text: str) -> list[answer.Cut]:
    """Return each word of ``text`` with the merges that make its tokens."""
    vocabulary = reader.source
    return [
        answer.Cut(word=word, steps=vocabulary.merges(word), ids=vocabulary.encode_lists([word])[0])
        for word in text.split()
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
    orders = [_exchanged(len(ids), spans[a], spans[b]) for a, b in pairs]
    changed = [[ids[place] for place in order] for order in orders]
    outputs = reader.texts(changed)
    without, *others = reader.texts([ids, *changed], Probe(positions_off=True, record=False))
    texts = reader.source.decode_batch([one[:-1] for one in changed])
    first = _encoded(reader, ids)
    swaps = [
        answer.Swap(
            words=pair,
            text=text,
            output=output,
            without=other,
            difference=rounded(_difference(first[order], _encoded(reader, one))),
        )
        for pair, text, output, other, one, order in zip(
            pairs, texts, outputs, others, changed, orders, strict=True
        )
    ]
    encodings = {name: rounded(table[:, :_SHOWN]) for name, table in rows.items()}
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


def _exchanged(length: int, first: range, second: range) -> list[int]:
    """Return the old places of all tokens, in the order in which the tokens of two words have
    changed places."""
    between = range(first.stop, second.start)
    behind = range(second.stop, length)
    return [*range(first.start), *second, *between, *first, *behind]


def _encoded(reader: Reader, ids: Sequence[int]) -> NDArray[np.float64]:
    """Return the rows (S, D) of the encoder without positions."""
    with torch.inference_mode(), Probe(positions_off=True, record=False):
        rows = reader.model.encode(Sequences.of([torch.tensor(list(ids))])).rows
    return rows.double().numpy()


def _difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.max(np.linalg.norm(one - other, axis=1) / np.linalg.norm(one, axis=1)))


def opened_heads(
    model: Transformer, attention: AttentionLayer, row: int, probe: Probe
) -> answer.OpenedHeads:
    """Return the computation of one row of an attention. ``probe`` took its queries, keys, values
    and outputs."""
    computes = attention_of(model, attention)
    assert computes is not None, "a Transformer has queries and keys"

    def taken(point: Point) -> Tensor:
        return probe.taken[attention.name, point][0].double()

    query, key, value = taken("query")[:, row], taken("key"), taken("value")
    weights = probe.attention[attention.name][0, :, row].double()  # (H, S)
    output = computes.output.weight.detach().double().unflatten(1, (attention.heads, -1))
    added = torch.einsum("hs,hsk,dhk->hsd", weights, value, output)
    return answer.OpenedHeads(
        layer=attention.layer,
        row=row,
        scale=rounded(attention.scale),
        queries=rounded(query),
        keys=rounded(key),
        values=rounded(value),
        products=rounded(torch.einsum("hk,hsk->hs", query, key)),
        weights=rounded(weights),
        outputs=rounded(taken("heads")[:, row]),
        adds=rounded(added.square().mean(dim=-1).sqrt()),
    )


def changes_step(
    reader: Reader, ids: Sequence[int], tokens: Sequence[int], place: int, layer: int
) -> list[answer.Change]:
    """Translate the sentence ``ids`` with heads of the encoder switched off (each of ``layer``, all
    of each layer, and all) and with each word hidden. ``tokens``: its translation."""
    word_of = words(reader.engine.source.names_of(list(ids)))[1]
    layers = reader.model.attentions_of("encoder")
    every = {one.layer: [(one.name, head) for head in range(one.heads)] for one in layers}
    changes: list[tuple[dict[str, int], Intervention]] = [
        ({"layer": layer, "head": head}, Intervention(frozenset([named])))
        for head, named in enumerate(every[layer])
    ]
    changes += [({"layer": one}, Intervention(frozenset(off))) for one, off in every.items()]
    changes.append(({}, Intervention(frozenset(chain.from_iterable(every.values())))))
    changes += [
        ({"hidden": word}, Intervention(hidden=tuple(np.flatnonzero(np.equal(word_of, word)))))
        for word in range(word_of[-1])
    ]
    return [
        answer.Change(
            **what,
            output=reader.texts([ids], under.probe())[0],
            probability=rounded(reader.probability(ids, tokens, place, under)),
        )
        for what, under in changes
    ]


def sublayers_step(reader: Reader, probe: Probe) -> list[answer.LessonSublayer]:
    """Return the sizes of the rows around each sub-layer. ``probe`` took them."""

    def size(name: str, point: Point) -> list[float]:
        rows = probe.taken[name, point].double()
        sizes: list[float] = rounded(rows.square().mean(dim=-1).sqrt())
        return sizes

    return [
        answer.LessonSublayer(
            side=one.side,
            layer=one.layer,
            kind=one.kind,
            stream=size(one.name, "stream"),
            added=size(one.name, "added"),
            after=size(one.name, "after"),
        )
        for one in reader.model.sublayers
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
        answer.Forced(wanted=piece, probability=rounded(row[token]), best=best)
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
        unmasked=rounded(unmasked),
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
    (found,) = reader.search([ids], record=steps)
    ended = sorted((one for one in found if one.finished), key=lambda one: -one.log_probability)
    penalty = reader.engine.search_settings.penalty
    ranked = sorted({one.token for step in steps for one in step.continuations})
    return answer.NextStep(
        candidates=reader.pieces(best.tolist()),
        temperatures=list(_TEMPERATURES),
        probabilities=rounded([softmax(logits / at)[best] for at in _TEMPERATURES]),
        wanted=rounded(1 - epsilon + epsilon / len(logits)),
        alphas=list(_ALPHAS),
        hypotheses=[
            answer.Ranked(
                output=output,
                length=(length := len(one.token_log_probabilities)),
                log_probability=rounded(one.log_probability),
                scores=rounded(
                    [one.log_probability / length_penalty(length, a, penalty) for a in _ALPHAS]
                ),
            )
            for one, output in zip(
                ended, reader.engine.target.raw([one.tokens for one in ended]), strict=True
            )
        ],
        beam=[list(step.continuations) for step in steps],
        pieces=dict(zip(ranked, reader.pieces(ranked), strict=True)),
        chosen=list(tokens),
    )


def learning_step(
    reader: Reader, ids: Sequence[int], tokens: Sequence[int], place: int
) -> answer.LearningStep:
    """Return the losses of the training, the samples of its validations, and what the snapshots of
    the run make of the sentence."""
    run, lines = reader.predictor.run, list(reader.predictor.run.metrics())
    trained = [
        (one["update"], rounded(one["nll"]))
        for one in lines
        if one["kind"] == "update" and np.isfinite(one["nll"])
    ]
    # An update may be validated twice, the second time with averaged weights.
    validations = {one["update"]: one for one in lines if one["kind"] == "validation"}.values()
    scores = [(one["update"], _loss(one["scores"])) for one in validations]
    return answer.LearningStep(
        training=trained[:: -(-len(trained) // _POINTS) or 1],
        development=[(at, rounded(loss)) for at, loss in scores if loss is not None],
        samples=[
            answer.Heard(
                update=one["update"],
                source=sample["source"],
                output=sample["translation"],
                reference=sample["reference"],
            )
            for one in validations
            for sample in one.get("samples", [])[:2]
        ],
        moments=_moments(run, reader, ids, tokens, place),
    )


def _loss(scores: Mapping[str, float]) -> float | None:
    """Return the loss without smoothing, which older runs call "loss"."""
    return scores.get("nll", scores.get("loss"))


def _moments(
    run: Run, reader: Reader, ids: Sequence[int], tokens: Sequence[int], place: int
) -> list[answer.Moment]:
    files = sorted((run.folder / SNAPSHOTS).glob("[0-9]*.safetensors"))
    if sum(one.numel() for one in reader.model.parameters()) > _MOST_PARAMETERS:
        files = []
    moments = []
    for file in files:
        earlier = Reader(reader.predictor, run.model(file))
        moments.append(
            answer.Moment(
                update=int(file.stem),
                output=earlier.texts([ids])[0],
                probability=rounded(earlier.probability(ids, tokens, place, Intervention())),
            )
        )
    return moments


def recorded(reader: Reader, ids: Sequence[int], tokens: Sequence[int]) -> Probe:
    """Read a sentence and its translation with teacher forcing. Return the probe that took the
    values of every attention and sub-layer."""
    points: tuple[Point, ...] = (
        "query", "key", "value", "heads", "stream", "added", "after",
    )  # fmt: skip
    probe = Probe(points=points)
    teacher_forced(reader.model, [ids], [[reader.target.bos, *tokens]], probe)
    return probe
