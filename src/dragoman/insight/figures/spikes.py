"""A figure of a model that transcribes: what CTC says in each row of the encoder, below the sound,
and where the decoder looked.

Shapes: T frames, F bands, S rows of the encoder, V outputs, N tokens that were written.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.forms.rows.frames_form import FramesForm
from dragoman.forms.text_form import as_text
from dragoman.insight.figures.captions import Drawn
from dragoman.insight.subject import Subject
from dragoman.nn.layout import Sequences
from dragoman.pictures.figure import DataTable, Words
from dragoman.pictures.matrix import MatrixPicture

Array = NDArray[np.float64]

_WIDE, _PER_SECOND = 900.0, 280.0
"""Pixels, of all and of a second at most."""
_BANDS_HIGH, _LINE = 120.0, 16.0
_LEAST_LINE = 9.0
"""Lower rows are drawn without their names."""
_TOLD = 0.01
"""Probabilities below this are left out of the table."""
BLANK = "—"


def spikes_figure(subject: Subject) -> Drawn:
    """The filter bank, CTC's probability of each token that is written and of the blank, and the
    attention of the last layer while each token is written."""
    form, output = subject.run.source, subject.output
    assert isinstance(form, FramesForm)
    rows = np.asarray(subject.predictor.source_values(subject.sentence))
    bands = form.picture(rows)[:, :, 0] / 255  # (F, T)
    known = probabilities(subject, rows)  # (S, V + 1)
    tokens = list(dict.fromkeys(output.ids))
    text = as_text(subject.run.target)
    names, written = [*text.shown(tokens), BLANK], text.shown(output.ids)
    lines = known[:, [*tokens, known.shape[1] - 1]].T  # (tokens + 1, S)
    looked = subject.attention.cross[-1].mean(axis=0)[: len(written)]  # (N, S)
    hop = form.settings.hop_ms / 1000
    row = hop * form.settings.subsample
    wide = min(_WIDE, _PER_SECOND * row * len(known))
    # Named alike, so that all begin at one place; such names are too low to be drawn.
    longest = max([*names, *written], key=len)
    high = min(_BANDS_HIGH / len(bands), _LEAST_LINE - 1)
    frame = wide / (len(known) * form.settings.subsample) * (len(rows) / bands.shape[1])
    what = "Coefficients" if form.settings.features == "mfcc" else "Filter bank"
    each = f"rows of {row:g} s"
    found = [
        (number, round(number * row, 4), name, float(line[number]))
        for number in range(len(known))
        for name, line in zip(names, lines, strict=True)
        if line[number] >= _TOLD
    ]
    spiked = sum(one[2] != BLANK and one[3] > 0.5 for one in found)
    blank = float((lines[-1] > 0.5).mean())
    return Drawn(
        [
            MatrixPicture(
                    what, bands, [longest] * len(bands), across=f"frames of {hop:g} s",
                    cell=(frame, high), reach=1.0,
                ),
            MatrixPicture(
                    "CTC", lines, names, across=each, cell=(wide / len(known), _LINE), reach=1.0
                ),
            MatrixPicture(
                    "Attention of the last layer", looked, written, across=each,
                    cell=(wide / len(known), _LINE), reach=1.0,
                ),
        ],
        [DataTable("", ("row", "second", "token", "probability"), found)],
        run=subject.name,
        notes=[
            Words(
                f"{subject.sentence}: “{output.text}”. CTC is more than half sure of a token in "
                f"{spiked} of {len(known)} rows, and of the blank in {100 * blank:.0f} % of them.",
                f"{subject.sentence}: “{output.text}”. CTC가 토큰 하나를 절반 넘게 확신하는 행은 "
                f"{len(known)}개 가운데 {spiked}개이고, 공백 기호를 그렇게 확신하는 행은 "
                f"{100 * blank:.0f}%입니다.",
            )
        ],
    )  # fmt: skip


def probabilities(subject: Subject, rows: NDArray[np.floating]) -> Array:
    """(S, V + 1): what CTC says in each row of the encoder, the blank last."""
    model = subject.predictor.plain
    assert model.ctc is not None
    with torch.inference_mode():
        memory = model.encode(Sequences.of([torch.from_numpy(rows)]))
        found: Array = torch.softmax(model.ctc(memory.rows).double(), dim=-1).numpy()
    return found
