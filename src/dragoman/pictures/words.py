"""Attention over words in place of subword pieces: what people read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.pictures.labels import SPACE, WORD_START, is_symbol
from dragoman.pictures.records import AttentionRecord, Weights


def words(pieces: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Join pieces into words -> the words, and for each piece the number of its word."""
    names: list[str] = []
    word_of: list[int] = []
    joinable = False
    for piece in pieces:
        if joinable and not piece.startswith(WORD_START) and not is_symbol(piece):
            names[-1] += piece
        else:
            names.append(piece.removeprefix(WORD_START))
        joinable = not is_symbol(piece)
        word_of.append(len(names) - 1)
    return tuple(name or SPACE for name in names), tuple(word_of)


def by_word(weights: Weights, word_of_row: Sequence[int], word_of_column: Sequence[int]) -> Weights:
    """(..., R, C) of pieces -> (..., R', C') of words.

    A word is looked at by as much as its pieces together, and looks as its pieces do on average,
    so rows that sum to one still do.
    """
    rows = np.eye(max(word_of_row, default=-1) + 1, dtype=weights.dtype)[list(word_of_row)]
    columns = np.eye(max(word_of_column, default=-1) + 1, dtype=weights.dtype)[list(word_of_column)]
    mean_of_rows = rows / rows.sum(axis=0, keepdims=True)  # (R, R')
    return np.asarray(mean_of_rows.T @ weights @ columns, dtype=weights.dtype)


def merged_to_words(record: AttentionRecord) -> AttentionRecord:
    """The record of subword pieces (with their ``▁``) as one of words.

    A word that the model was cut off in keeps its last piece apart, so that a step still has read
    exactly the words before it.
    """
    source, source_word_of = words(record.source)
    if not record.target:
        encoder = by_word(record.encoder, source_word_of, source_word_of)
        cross = record.cross[..., : len(source)]  # of no rows
        return AttentionRecord(source, (), encoder, record.decoder, cross, record.begin)
    target, target_word_of = words(record.target[:-1])
    target = (*target, record.target[-1].removeprefix(WORD_START) or SPACE)
    chosen = (*target_word_of, len(target) - 1)
    read = (0, *(word + 1 for word in target_word_of))  # the start symbol, then what was chosen
    return AttentionRecord(
        source,
        target,
        by_word(record.encoder, source_word_of, source_word_of),
        by_word(record.decoder, chosen, read),
        by_word(record.cross, chosen, source_word_of),
        record.begin,
    )
