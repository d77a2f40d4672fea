"""A translation as a ``Translator`` gives it: the text, and what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from statistics import fmean
from typing import TYPE_CHECKING

from dragoman.forms.passage import Passage
from dragoman.forms.subwords.text import Text
from dragoman.forms.text_form import TextForm
from dragoman.search.hypothesis import Hypothesis

if TYPE_CHECKING:
    from dragoman.pictures.records import AttentionRecord


@dataclass(frozen=True)
class Translation:
    """One translation. ``str(translation)`` is its text."""

    source: str
    """The text that was given."""
    text: str
    """Its translation: one line for one line."""
    score: float
    """Log-probability over length penalty (see ``search.hypothesis``); higher is better. Summed
    over the sentences of a text that was split."""
    token_log_probabilities: tuple[float, ...]
    """log P of each token, in nats, and of the end symbol if the model ended the sentence. With a
    shortlist, P is the share among the tokens that it allows."""
    alternatives: tuple[Translation, ...] = ()
    """The further hypotheses when more than one was asked for, best first."""
    ids: tuple[int, ...] = ()
    """The tokens as ids."""
    prepared: str = ""
    """What the model wrote before it was put back into plain text; the same as ``text`` but where
    the model was trained on text prepared by Moses."""
    expected_chrf: float | None = None
    """Against all candidates, 0 to 100, where it was chosen by that (``TranslatorSettings.mbr``);
    of a text that was split the mean over its sentences."""
    finished: bool = True
    """Whether the model ended it; False where it was cut at its greatest length."""
    parts: tuple[Translation, ...] = ()
    """The translations of its sentences, where the text was cut into them."""
    passage: Passage | None = field(default=None, repr=False, compare=False)
    """How it was cut, without what was read of each piece."""
    attention: AttentionRecord | None = None
    """Where every layer and head looked, when asked for."""
    vocabulary: Text | None = field(default=None, repr=False, compare=False)
    """What the ids are of."""

    @classmethod
    def of(
        cls,
        source: str,
        hypotheses: Sequence[Hypothesis],
        target: TextForm,
        text: str | None = None,
    ) -> Translation:
        """The first of some hypotheses; the others become its alternatives. ``text``: the
        translation itself, where it was given and not found."""
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
        """One translation of the pieces of a text, with what stands around each.

        Its alternatives are the next best of what those of the pieces make together, as many as a
        piece has at most; of samples (``drawn``) each is made of one sample of every piece.
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
        """What it was chosen by: higher is better."""
        return self.score if self.expected_chrf is None else self.expected_chrf

    @property
    def is_behind(self) -> bool:
        """Whether it stands behind others in an n-best list, whatever it is worth: it was cut, and
        not chosen by its chrF."""
        return not self.finished and self.expected_chrf is None

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Target tokens as the vocabulary writes them, without the end symbol."""
        return () if self.vocabulary is None else tuple(self.vocabulary.pieces(self.ids))

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """How a notebook shows it: the probability of each token, attention if asked for."""
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
    """Combine the choices of all parts, the best first, into at most as many as the longest list
    has. Each list is sorted; combinations are ranked by the fewest cut-off parts, then by the
    sum of their worth."""
    choices = [[replace(part, alternatives=()), *part.alternatives] for part in parts]
    wanted = max(map(len, choices), default=1)
    first = (0,) * len(parts)
    waiting, seen, found = [((0, 0.0), first)], {first}, list[list[Translation]]()
    while waiting and len(found) < wanted:
        (cut, loss), ranks = heappop(waiting)
        found.append([of[rank] for of, rank in zip(choices, ranks, strict=True)])
        for place, rank in enumerate(ranks):
            after = (*ranks[:place], rank + 1, *ranks[place + 1 :])
            if rank + 1 < len(choices[place]) and after not in seen:
                seen.add(after)
                here, there = choices[place][rank], choices[place][rank + 1]
                cost = cut + there.is_behind - here.is_behind, loss + here.worth - there.worth
                heappush(waiting, (cost, after))
    return found


def _samples(parts: Sequence[Translation]) -> list[list[Translation]]:
    """Combine the first samples of all parts, the second ones, and so on."""
    choices = [[replace(part, alternatives=()), *part.alternatives] for part in parts]
    return [list(one) for one in zip(*choices, strict=False)] or [[]]
