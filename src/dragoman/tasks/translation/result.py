"""The result of a ``Translator``: the text of a translation, its probabilities and alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from statistics import fmean
from typing import TYPE_CHECKING

from dragoman.forms.form import Passage
from dragoman.forms.subwords.text import Text
from dragoman.forms.text_form import TextForm
from dragoman.search.hypothesis import Hypothesis

if TYPE_CHECKING:
    from dragoman.pictures.records import AttentionRecord


@dataclass(frozen=True)
class Translation:
    """One translation. ``str(translation)`` is its text."""

    source: str
    """The text in the source language."""
    text: str
    """The translation; one line for each line of the source."""
    score: float
    """The log-probability divided by the length penalty (see ``search.hypothesis``); higher is
    better. The score of a text that was split is the sum over its sentences."""
    token_log_probabilities: tuple[float, ...]
    """log P of each token, in nats, and of the end symbol if the model ended the sentence. With a
    shortlist, P is the share among the tokens that it allows."""
    alternatives: tuple[Translation, ...] = ()
    """The other hypotheses, best first, if more than one was requested."""
    ids: tuple[int, ...] = ()
    """The ids of the target tokens."""
    prepared: str = ""
    """The output of the model before it was restored to plain text. It differs from ``text`` only
    if the model was trained on text prepared by Moses."""
    expected_chrf: float | None = None
    """The expected chrF against all candidates, 0 to 100, if the translation was chosen by it
    (``TranslatorSettings.mbr``). For a text that was split, it is the mean over its sentences."""
    finished: bool = True
    """False if the translation was cut off at its greatest length."""
    parts: tuple[Translation, ...] = ()
    """The translations of the sentences, if the text was split."""
    passage: Passage | None = field(default=None, repr=False, compare=False)
    """The pieces that the text was split into, without their input values."""
    attention: AttentionRecord | None = None
    """The attention of every layer and head, if it was requested."""
    vocabulary: Text | None = field(default=None, repr=False, compare=False)
    """The vocabulary to which the ids belong."""

    @classmethod
    def of(
        cls,
        source: str,
        hypotheses: Sequence[Hypothesis],
        target: TextForm,
        text: str | None = None,
    ) -> Translation:
        """Make a ``Translation`` from the first hypothesis, with the other hypotheses as its
        alternatives. ``text`` is the translation itself, if it was given instead of searched
        for."""
        best, *others = hypotheses
        prepared = target.vocabulary.decode(best.tokens)
        return cls(
            source,
            target.restore(prepared) if text is None else text,
            best.score,
            best.token_log_probabilities,
            tuple(cls.of(source, [other], target) for other in others),
            ids=best.tokens,
            prepared=prepared,
            finished=best.finished,
            vocabulary=target.vocabulary,
        )

    @classmethod
    def join(
        cls, source: str, passage: Passage, parts: Sequence[Translation], *, drawn: bool = False
    ) -> Translation:
        """Join the translations of the pieces of a text, with the text around each.

        The alternatives are the next best combinations of the pieces' alternatives, as many as a
        piece has at most. For samples (``drawn``), each combines one sample of every piece.
        """
        if len(parts) == 1 and passage.is_bare:
            return parts[0]
        expected = [part.expected_chrf for part in parts if part.expected_chrf is not None]
        _, *others = _samples(parts) if drawn else _best_of(parts)
        return cls(
            source,
            passage.join([part.text for part in parts]),
            sum(part.score for part in parts),
            tuple(value for part in parts for value in part.token_log_probabilities),
            tuple(cls.join(source, passage, other) for other in others),
            ids=tuple(i for part in parts for i in part.ids),
            prepared=passage.join([part.prepared for part in parts]),
            expected_chrf=fmean(expected) if expected else None,
            finished=all(part.finished for part in parts),
            parts=tuple(parts),
            passage=passage.unread,
            vocabulary=parts[0].vocabulary if parts else None,
        )

    @property
    def worth(self) -> float:
        """The value by which the translation was chosen: the expected chrF, or otherwise the score.
        Higher is better."""
        return self.score if self.expected_chrf is None else self.expected_chrf

    @property
    def is_behind(self) -> bool:
        """True if it ranks after all others in an n-best list, whatever its worth, because it was
        cut off. Translations that were chosen by their chrF are exempt."""
        return not self.finished and self.expected_chrf is None

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Target tokens as the vocabulary writes them, without the end symbol."""
        return () if self.vocabulary is None else tuple(self.vocabulary.pieces(self.ids))

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Format for a notebook: the probability of each token, and attention if requested."""
        from dragoman.pictures.explorer import translation_html
        from dragoman.pictures.records import merged_to_words

        return translation_html(
            self.source,
            self.text,
            self.tokens,
            self.token_log_probabilities,
            self.score,
            [(other.text, other.score) for other in self.alternatives],
            None if self.attention is None else merged_to_words(self.attention),
        )


def _best_of(parts: Sequence[Translation]) -> list[list[Translation]]:
    """Combine the choices of all parts, the best combination first, into as many combinations as
    the part with the most choices has. Each part's choices are sorted; combinations are ranked by
    the fewest cut-off parts, then by the sum of their worth."""
    choices = [[replace(part, alternatives=()), *part.alternatives] for part in parts]
    wanted = max(map(len, choices), default=1)
    first = (0,) * len(parts)
    waiting, seen, combinations = [((0, 0.0), first)], {first}, list[list[Translation]]()
    while waiting and len(combinations) < wanted:
        (cut, loss), ranks = heappop(waiting)
        combinations.append([of[rank] for of, rank in zip(choices, ranks, strict=True)])
        for place, rank in enumerate(ranks):
            after = (*ranks[:place], rank + 1, *ranks[place + 1 :])
            if rank + 1 < len(choices[place]) and after not in seen:
                seen.add(after)
                here, there = choices[place][rank], choices[place][rank + 1]
                cost = cut + there.is_behind - here.is_behind, loss + here.worth - there.worth
                heappush(waiting, (cost, after))
    return combinations


def _samples(parts: Sequence[Translation]) -> list[list[Translation]]:
    """Combine the first samples of all parts, then the second samples, and so on."""
    choices = [[replace(part, alternatives=()), *part.alternatives] for part in parts]
    return [list(sample) for sample in zip(*choices, strict=False)] or [[]]
