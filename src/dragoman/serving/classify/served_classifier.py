"""A run that labels texts and is served."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dragoman.plural import plural
from dragoman.runs.run import Run
from dragoman.serving.classify.schema import (
    ClassifyRequest,
    Label,
    LabelledText,
    LabelledWord,
)
from dragoman.serving.http.refusals import check_total
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.cost import EXPLAINING
from dragoman.serving.service.served_run import ServedRun, sentences_of
from dragoman.tasks.classification.labeller import ClassifiedText, Labeller
from dragoman.tasks.classification.reasons import reasons

TOKENS_AT_ONCE = 1024
"""Tokens that are read in one turn, or one text: others wait no longer than that takes."""
MAX_LABELS = 20_000
"""Labels in one answer, those of all texts together."""

_WORD = re.compile(r"\S+")


class ServedClassifier(ServedRun):
    """A run that labels and is served."""

    task, does, path = "classification", "labels texts", "/v1/classify"
    trained = "dragoman train my.tsv --task classification"
    has_figures = False

    def __init__(self, name: str, labeller: Labeller, settings: ServeSettings) -> None:
        super().__init__(name, labeller.engine, settings, labeller.run, labeller)
        self.labeller = labeller
        self.labelling = self.executor("classify")
        """Where texts are labelled."""

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> ServedClassifier:
        return cls(name, Labeller(run, settings), settings)

    examples = staticmethod(sentences_of)

    def check(self, texts: Sequence[str], request: ClassifyRequest) -> None:
        """Raises Refusal 400 for more labels than one answer holds, and for what costs too much."""
        count = len(texts)
        check_labels(count, "texts", len(self.labeller.labels.names), request.top)
        if request.why:
            tokens = sum(min(len(text), self.labeller.longest) for text in texts)
            self.check_cost(
                tokens * EXPLAINING,
                "reasons",
                f"the words of {plural(count, 'text')}, {tokens:,} tokens at most",
                "Send fewer or shorter texts at once, or leave why out.",
            )

    def label(
        self, texts: Sequence[str], request: ClassifyRequest
    ) -> Iterator[tuple[int, LabelledText]]:
        """Each text with its number, as they come: a turn's worth is read at once."""
        for number, found in self.labeller.parts(texts, TOKENS_AT_ONCE):
            words = self._words(found.text) if request.why else None
            yield number, _told(found, request.top, words)

    def _words(self, text: str) -> list[LabelledWord]:
        known = {}
        if text.split():
            known = {word.number: word for word in reasons(self.labeller, text).words}
        words, end = [], 0
        for number, found in enumerate(_WORD.finditer(text)):
            word = known.get(number)
            gradient = attention = None
            if word is not None:
                # In digits of its own: where a label is certain, all of them are small.
                gradient, attention = float(f"{word.gradient:.5g}"), word.attention
            words.append(
                LabelledWord(
                    before=text[end : found.start()],
                    text=found[0],
                    gradient=gradient,
                    attention=None if attention is None else round(attention, 5),
                )
            )
            end = found.end()
        return words


def check_labels(count: int, noun: str, every: int, top: int | None) -> None:
    """Raises Refusal 400 where so many texts or files would have too many labels in one answer."""
    check_total(
        "too_many_labels",
        (every if top is None else min(top, every), "label"),
        (count, "texts"),
        MAX_LABELS,
        f"Ask for fewer of each (top), or send fewer {noun}.",
        noun,
    )


def labels_told(found: ClassifiedText, top: int | None) -> list[Label]:
    """The labels of a text or file, as the API tells them."""
    return [
        Label(name=name, probability=round(probability, 6))
        for name, probability in found.ranked[:top]
    ]


def _told(found: ClassifiedText, top: int | None, words: list[LabelledWord] | None) -> LabelledText:
    """A labelled text, as the API tells it."""
    return LabelledText(
        label=found.label,
        probability=round(found.probability, 6),
        labels=labels_told(found, top),
        cut=found.cut,
        words=words,
    )
