"""This module learns a vocabulary, a SentencePiece model, from sentences."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sentencepiece

from dragoman.base.errors import DataError
from dragoman.forms.subwords.sampling import SPACE
from dragoman.forms.subwords.text import Text, TextSettings, prepare

_THREADS = 4
"""The number of threads for learning. It is fixed because the last bits of unigram sums depend
on it."""

_MERGED = ("bpe", "unigram")
"""The kinds whose vocabulary has exactly the size in the settings."""


def normalise_all(sentences: Iterable[str], settings: TextSettings) -> Iterator[str]:
    """Yield the sentences as a vocabulary sees them, with ``SPACE`` for spaces."""
    how = _normalization(settings)
    normalise = sentencepiece.SentencePieceNormalizer(
        rule_name=how["normalization_rule_name"],
        add_dummy_prefix=how["add_dummy_prefix"],
        remove_extra_whitespaces=how["remove_extra_whitespaces"],
        escape_whitespaces=True,
    ).normalize
    for sentence in sentences:
        yield str(normalise(prepare(sentence, settings)))


def learn_vocabulary(
    sentences: Iterable[str],
    settings: TextSettings,
    *,
    seed: int = 0,
    symbols: Sequence[str] = (),
    up_to: bool = False,
) -> Text:
    """Learn a vocabulary. The same sentences, settings and seed give the same one.

    ``symbols``: further tokens that represent no text, such as ``MASK``. ``up_to``: learn the
    largest vocabulary that the sentences support, up to the size in the settings.

    Raises DataError if the text is empty or does not support a vocabulary of this size.
    """
    chosen = _reservoir(sentences, settings.sample_sentences, seed)
    prepared = [prepare(sentence, settings) for sentence in chosen]
    if not any(sentence.strip() for sentence in prepared):
        raise DataError("no text to learn a vocabulary from: every sentence is empty")
    if settings.lossless:
        prepared.append(" ")  # a space must be among the tokens, even if no sentence has one
    written = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(prepared),
            model_writer=written,
            control_symbols=list(symbols),
            hard_vocab_limit=settings.kind in _MERGED and not up_to,
            **_trainer_arguments(settings, max(len(s.encode("utf-8")) for s in prepared)),
        )
    except RuntimeError as error:
        raise _vocabulary_error(str(error), settings) from error
    return Text(written.getvalue(), settings)


def _trainer_arguments(settings: TextSettings, longest: int) -> dict[str, Any]:
    """Return our settings as SentencePiece's. ``longest``: the longest sentence, in bytes."""
    return {
        **_normalization(settings),
        "model_type": settings.kind,
        "vocab_size": settings.vocabulary,
        "byte_fallback": settings.byte_fallback,
        "character_coverage": settings.character_coverage,
        "required_chars": SPACE,
        "user_defined_symbols": list(settings.user_symbols),
        "max_sentence_length": max(longest + 1, 10),  # the least that it accepts
        "num_threads": _THREADS,
        "unk_id": 0,
        "bos_id": 1,
        "eos_id": 2,
        "pad_id": -1,
        "minloglevel": 2,
    }


def _normalization(settings: TextSettings) -> dict[str, Any]:
    """Return the settings of SentencePiece's normalisation; ``prepare`` does the rest."""
    is_plain = settings.lossless or settings.normalization == "nfc"
    return {
        "normalization_rule_name": "identity" if is_plain else settings.normalization,
        "add_dummy_prefix": not settings.lossless,
        "remove_extra_whitespaces": not settings.lossless,
    }


def _vocabulary_error(message: str, settings: TextSettings) -> DataError:
    """Return SentencePiece's complaint about the size as an error with the remedy."""
    asked = settings.vocabulary
    if largest := re.search(r"value <= (\d+)", message):
        return DataError(
            f"a {settings.kind} vocabulary of {asked:,} is larger than this text supports: "
            f"the largest possible is {int(largest[1]):,}. Set text.vocabulary to that or less."
        )
    if smallest := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return DataError(
            f"a vocabulary of {asked:,} is too small for the characters of this text: "
            f"text.vocabulary must be at least {int(smallest[1]):,}, or text.character_coverage "
            f"less than {settings.character_coverage}."
        )
    return DataError(f"no vocabulary of {asked:,} can be learned from this text: {message.strip()}")


def _reservoir(sentences: Iterable[str], limit: int, seed: int) -> list[str]:
    """Return up to ``limit`` sentences, each equally likely, in one pass and bounded memory."""
    chosen: list[str] = []
    generator = random.Random(seed)
    for count, sentence in enumerate(sentences):
        if count < limit:
            chosen.append(sentence)
        elif (place := generator.randrange(count + 1)) < limit:
            chosen[place] = sentence
    return chosen
