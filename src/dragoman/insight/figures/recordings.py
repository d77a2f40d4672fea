"""Figures of a model that transcribes: the sound, CTC's output in each row of the encoder, and the
decoder's attention; and the attention of heads that each read a slice of the frequency bands.

Shapes: T frames, F bands, S rows of the encoder, V outputs, N tokens that were written, H heads; G
frames or groups of frames that are drawn.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.engine.ctc_ranking import ctc_log_probabilities
from dragoman.forms.text_form import as_text
from dragoman.insight.figures.captions import Parts
from dragoman.insight.subject import Subject
from dragoman.models.front_ends import BAND_WEIGHTS
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.pictures.figure import DataTable, Words
from dragoman.pictures.matrix import MatrixPicture
from dragoman.sources.frames.form import FramesForm

Array = NDArray[np.float64]

_WIDE, _PER_SECOND = 900.0, 280.0
"""Panels have ``_PER_SECOND`` pixels per second of the recording, but at most ``_WIDE`` pixels."""
_BANDS_HIGH, _LINE = 120.0, 16.0
_LEAST_LINE = 9.0
"""Rows of less than this height, in pixels, are drawn without their names."""
_TOLD = 0.01
"""Probabilities below this are left out of the table."""
BLANK = "—"


def spikes_figure(subject: Subject) -> Parts:
    """Draw the filter bank of a recording, CTC's probability of each written token and of the
    blank, and the attention of the decoder's last layer at each token."""
    form, output = FramesForm.of(subject.run.source), subject.output
    rows = np.asarray(subject.predictor.source_values(subject.sentence))
    bands = form.picture(rows)[:, :, 0] / 255  # (F, T)
    by_ctc = ctc_log_probabilities(subject.predictor.engine, rows)
    known = by_ctc.double().exp().numpy()  # (S, V + 1)
    tokens = list(dict.fromkeys(output.ids))
    text = as_text(subject.run.target)
    names, written = [*text.names_of(tokens), BLANK], text.names_of(output.ids)
    lines = known[:, [*tokens, known.shape[1] - 1]].T  # (tokens + 1, S)
    looked = subject.attention.cross[-1].mean(axis=0)[: len(written)]  # (N, S)
    hop = form.settings.hop_ms / 1000
    row = hop * form.settings.subsample
    wide = min(_WIDE, _PER_SECOND * row * len(known))
    # Equal names let all panels begin at one place; these rows are too low for names.
    longest = max([*names, *written], key=len)
    high = min(_BANDS_HIGH / len(bands), _LEAST_LINE - 1)
    frame = wide / (len(known) * form.settings.subsample) * (len(rows) / bands.shape[1])
    what = "Coefficients" if form.settings.features == "mfcc" else "Filter bank"
    each = f"rows of {row:g} s"
    spikes = [
        (number, round(number * row, 4), name, float(line[number]))
        for number in range(len(known))
        for name, line in zip(names, lines, strict=True)
        if line[number] >= _TOLD
    ]
    spiked = sum(spike[2] != BLANK and spike[3] > 0.5 for spike in spikes)
    blank = float((lines[-1] > 0.5).mean())
    yield MatrixPicture(
        what, bands, [longest] * len(bands), across=f"frames of {hop:g} s",
        cell=(frame, high), reach=1.0,
    )  # fmt: skip
    yield MatrixPicture(
        "CTC", lines, names, across=each, cell=(wide / len(known), _LINE), reach=1.0
    )
    yield MatrixPicture(
        "Attention of the last layer", looked, written, across=each,
        cell=(wide / len(known), _LINE), reach=1.0,
    )  # fmt: skip
    yield DataTable(("row", "second", "token", "probability"), spikes)
    yield Words(
        f"{subject.sentence}: “{output.text}”. CTC is more than half sure of a token in "
        f"{spiked} of {len(known)} rows, and of the blank in {100 * blank:.0f} % of them.",
        f"{subject.sentence}: “{output.text}”. CTC가 토큰 하나를 절반 넘게 확신하는 벡터는 "
        f"{len(known)}개 가운데 {spiked}개이고, 공백 기호를 그렇게 확신하는 벡터는 "
        f"{100 * blank:.0f}%입니다.",
    )


_GROUPS = 60
"""The most groups of frames that are drawn."""
_HEADS = 8
"""The most heads that are drawn."""
_SIDE = 300.0
"""The width, in pixels, of a map of attention and of the bands above it."""
_BAND = 4.0


def band_heads_figure(subject: Subject) -> Parts:
    """Draw, for each head, the frequency bands that it reads, and its attention from each frame to
    all frames. The head that reads the highest bands comes first."""
    form = FramesForm.of(subject.run.source)
    rows = np.asarray(subject.predictor.source_values(subject.sentence))
    weights = band_attention(subject, rows)  # (H, T, T)
    bands = form.picture(rows)[:, :, 0] / 255  # (F, frames that are drawn)
    heads, each = len(weights), len(bands) // len(weights)
    frames, groups = len(rows), min(_GROUPS, len(rows))
    hop = form.settings.hop_ms / 1000
    cell = _SIDE / groups
    table: list[tuple[float, ...]] = []
    for head in reversed(range(heads)):
        low, high = head * each, (head + 1) * each
        name = f"Head {head + 1}: bands {low + 1} to {high}"
        map_of_head = group_frames(weights[head], groups)
        table += [
            (head + 1, round(q * frames / groups * hop, 3), round(k * frames / groups * hop, 3), w)
            for (q, k), w in np.ndenumerate(map_of_head)
        ]
        if heads - head > _HEADS:
            continue
        heard = bands[len(bands) - high : len(bands) - low]  # the lowest band is drawn last
        labels = ["000"] * each  # as wide as those of the map, and too low to be drawn
        yield MatrixPicture(name, heard, labels, cell=(_SIDE / heard.shape[1], _BAND), reach=1.0)
        yield MatrixPicture(
            "Its attention", map_of_head, ["000"] * groups, cell=(cell, cell),
            across=f"from 0 to {frames * hop:.2g} s", down="the frame that looks",
        )  # fmt: skip
    near = [nearness(attention) * hop for attention in weights]
    least, most = int(np.argmin(near)), int(np.argmax(near))
    yield DataTable(("head", "second that looks", "second looked at", "weight"), table)
    yield Words(
        f"{subject.sentence}: frames look {near[least]:.2f} s away on average in head "
        f"{least + 1} and {near[most]:.2f} s in head {most + 1}; "
        f"{nearness(np.full_like(weights[0], 1 / frames)) * hop:.2f} s if they looked at "
        "all frames alike.",
        f"{subject.sentence}: 프레임이 보는 곳까지의 거리는 평균으로 헤드 {least + 1}에서 "
        f"{near[least]:.2f}초, 헤드 {most + 1}에서 {near[most]:.2f}초입니다. 모든 프레임을 "
        f"똑같이 본다면 "
        f"{nearness(np.full_like(weights[0], 1 / frames)) * hop:.2f}초입니다.",
    )


def band_attention(subject: Subject, rows: NDArray[np.floating]) -> Array:
    """Return (H, T, T): the attention of each frame to all frames, in each head of the front end.
    ``rows``: the T frames of a recording."""
    front = subject.predictor.plain.front_end
    assert front is not None, "recordings are read"
    with torch.inference_mode(), Probe() as probe:
        front(Sequences.of([torch.from_numpy(rows)]))
    return probe.attention[BAND_WEIGHTS][0].double().numpy()


def group_frames(weights: Array, groups: int) -> Array:
    """Reduce ``weights`` (T, T) to (G, G), where G is ``groups``: the mean over the frames that
    attend, and the sum over the frames that they attend to, so that rows still sum to 1."""
    edges = np.linspace(0, len(weights), groups + 1).round().astype(int)
    summed = np.add.reduceat(weights, edges[:-1], axis=1)
    return np.add.reduceat(summed, edges[:-1], axis=0) / np.diff(edges)[:, None]


def nearness(weights: Array) -> float:
    """Return the mean distance, in frames, from a frame to the frames that it looks at. ``weights``
    (T, T): the attention of each frame to all frames."""
    places = np.arange(len(weights))
    return float((weights * np.abs(places[:, None] - places)).sum(axis=1).mean())
