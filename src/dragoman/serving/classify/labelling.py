"""What one run does with texts that want a label: for a thread beside the event loop."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dragoman.serving.classify.schema import ClassifyRequest, Label, LabelledText, LabelledWord
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.turns import Turns
from dragoman.tasks.classification.labeller import Labelled, Labeller
from dragoman.tasks.classification.reasons import reasons

TOGETHER = 1024
"""Tokens that are read in one turn, or one text: others wait no longer than that takes."""
OF_CLIENT, OF_ALL = 8, 64
"""Requests that may wait to have their texts labelled, of one client and of all."""
MOST = 20_000
"""Labels in one answer, those of all texts together."""

_WORD = re.compile(r"\S+")


class Labelling:
    """A run that labels and is served."""

    def __init__(self, labeller: Labeller) -> None:
        self.labeller = labeller
        self.turns = Turns("classify", of_client=OF_CLIENT, of_all=OF_ALL)
        """Where texts are labelled."""

    def close(self) -> None:
        self.turns.close()

    def check(self, texts: int, top: int | None) -> None:
        """Raises Refusal 400 for more labels than one answer holds."""
        every = len(self.labeller.labels.names)
        each = every if top is None else min(top, every)
        if texts * each > MOST:
            raise Refusal(
                "too_many_labels",
                f"{each:,} labels of each of {texts:,} texts are {texts * each:,}; this server "
                f"gives {MOST:,} at once. Ask for fewer of each (top), or send fewer texts.",
                each=each,
                texts=texts,
                total=texts * each,
                most=MOST,
            )

    def texts(
        self, texts: Sequence[str], request: ClassifyRequest
    ) -> Iterator[tuple[int, LabelledText]]:
        """Each text with its number, as they come: a turn's worth is read at once."""
        for number, found in self.labeller.parts(texts, TOGETHER):
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


def _told(found: Labelled, top: int | None, words: list[LabelledWord] | None) -> LabelledText:
    """A labelled text, as the API tells it."""
    return LabelledText(
        label=found.label,
        probability=round(found.probability, 6),
        labels=[
            Label(name=name, probability=round(probability, 6))
            for name, probability in found.ranked[:top]
        ],
        cut=found.cut,
        words=words,
    )
