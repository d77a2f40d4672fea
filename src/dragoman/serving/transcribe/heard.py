"""What a run that transcribes sees of a part of a recording, and where it looked.

Shapes: S rows of the encoder, V outputs.
"""

from __future__ import annotations

import numpy as np

from dragoman.forms.rows.rows_form import Rows, RowsForm
from dragoman.forms.rows.settings import FramesSource
from dragoman.forms.text_form import as_text
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.service.cells import grid_of
from dragoman.serving.service.seen import drawn, looked, looked_tokens
from dragoman.serving.transcribe.schema import Heard, Spike
from dragoman.tasks.translation.ranking import ctc_log_probabilities
from dragoman.tasks.translation.transcriber import Transcriber

_SURE = 0.5


def heard(transcriber: Transcriber, form: RowsForm, rows: Rows, best: Hypothesis) -> Heard:
    """Of the rows of a part, and what was written of it."""
    names = as_text(transcriber.run.target).shown(best.tokens)
    shares = looked(transcriber.engine, rows, best.tokens)
    width, height, png = drawn(form, rows)
    return Heard(
        width=width, height=height, png=png, grid=grid_of(form, len(rows)),
        spikes=_spikes(transcriber, form, rows), tokens=looked_tokens(names, shares),
    )  # fmt: skip


def _spikes(transcriber: Transcriber, form: RowsForm, rows: Rows) -> list[Spike] | None:
    """One for each run of rows in which CTC is sure of the same token, where it is the surest."""
    settings = form.settings
    if transcriber.engine.network.ctc is None or not isinstance(settings, FramesSource):
        return None
    known = ctc_log_probabilities(transcriber.engine, rows).exp().numpy()  # (S, V + 1)
    surest, blank = known.argmax(axis=1), known.shape[1] - 1
    seconds = settings.hop_ms / 1000 * settings.subsample
    text = as_text(transcriber.run.target)
    ends = np.flatnonzero(np.diff(surest, append=-1)) + 1
    found = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        token = int(surest[begin])
        place = begin + int(known[begin:end, token].argmax())
        sure = float(known[place, token])
        if token == blank or sure <= _SURE:
            continue
        (name,) = text.shown([token])
        found.append(
            Spike(text=name, second=round((place + 0.5) * seconds, 3), probability=round(sure, 4))
        )
    return found
