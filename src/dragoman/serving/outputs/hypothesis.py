"""One hypothesis, as the API tells it: its text, its words and tokens, and what is doubtful."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.forms.form import Form
from dragoman.forms.lexicon import Span
from dragoman.forms.shown_words import ShownWord, words_of
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.outputs import schema
from dragoman.tasks.translation.proofreading.plain import ProofWarning, lost_warnings
from dragoman.tasks.translation.proofreading.proofreader import Proof

_LOOKED_AT = 0.15
"""Attention of which a word of the source must have got so much, for one to come from it,"""
_AS_MUCH = 0.5
"""and of what the word got that was looked at most so much."""


def texts_of(target: Form, hypotheses: Sequence[Hypothesis]) -> list[str]:
    """The texts of some hypotheses."""
    return target.raw([one.tokens for one in hypotheses])


def hypothesis_message(
    target: Form,
    hypothesis: Hypothesis,
    text: str,
    proof: Proof | None = None,
    source: str = "",
) -> schema.Hypothesis:
    """A hypothesis, whose ``text`` is known, with its words and tokens; ``proof``: what is doubtful
    about it, and where its words come from; ``source``: of the best one, of which is told what it
    has lost."""
    warnings = lost_warnings(source, text) or None if proof is None else proof.warnings
    tokens, values = hypothesis.tokens, hypothesis.token_log_probabilities
    pieces = target.shown(tokens)
    words = words_of(text, pieces, values, spaced=target.spaced)
    sources = [None] * len(words) if proof is None else sources_of(words, proof)
    return schema.Hypothesis(
        text=text,
        score=hypothesis.score,
        log_probability=hypothesis.log_probability,
        finished=hypothesis.finished,
        words=[
            schema.Word(
                before=word.before,
                text=word.text,
                probability=word.probability,
                first=word.first,
                count=word.count,
                source=source,
            )
            for word, source in zip(words, sources, strict=True)
        ],
        warnings=None if warnings is None else [_warning(one) for one in warnings],
        tokens=[
            schema.Token(id=token, piece=piece, log_probability=value)
            for token, piece, value in zip(tokens, pieces, values, strict=False)
        ],
    )


def sources_of(words: Sequence[ShownWord], proof: Proof) -> list[list[Span]]:
    """Of each word of a translation the words of the source that it comes from, in their order;
    none where it looked at none in particular."""
    found = []
    for word in words:
        looks = proof.alignment[word.first : word.first + word.count].mean(axis=0)  # (W,)
        least = max(_LOOKED_AT, _AS_MUCH * looks.max(initial=0.0))
        found.append([place for place, got in zip(proof.words, looks, strict=True) if got >= least])
    return found


def _warning(found: ProofWarning) -> schema.TranslationWarning:
    return schema.TranslationWarning(
        code=found.code,
        side=found.side,
        begin=found.begin,
        end=found.end,
        text=found.text,
        languages=list(found.languages),
        covered=found.covered,
        message=str(found),
    )
