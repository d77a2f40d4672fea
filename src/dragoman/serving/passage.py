"""Running text, cut into what is translated at once, and put together again.

A text is cut into sentences; what stands between them (spaces, newlines) is kept as it is. A
sentence with more tokens than the model should read at once is cut between words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from dragoman.forms.languages import writes_spaces
from dragoman.forms.segmentation import segment
from dragoman.forms.text import Text


@dataclass(frozen=True)
class Piece:
    """What is translated at once."""

    text: str
    """As it stands in the text."""
    behind: str
    """What follows it there and is kept: spaces, newlines."""
    ids: Tensor
    """(length,) int64, the end symbol included."""


@dataclass(frozen=True)
class Passage:
    """One text of a request. Its translation: ``before``, then each piece's and ``behind``."""

    before: str
    pieces: tuple[Piece, ...]

    def join(self, translations: Sequence[str]) -> str:
        """Put the translations of the pieces, in their order, where the pieces stood."""
        joined = [self.before]
        for piece, translation in zip(self.pieces, translations, strict=True):
            joined += (translation, piece.behind)
        return "".join(joined)


def cut(
    texts: Sequence[str],
    vocabulary: Text,
    *,
    language: str,
    into: str,
    longest: int,
    whole: bool,
    prepare: Callable[[str], str] | None = None,
) -> list[Passage]:
    """Cut each text.

    ``language`` and ``into``: of the texts and of their translations. ``longest``: tokens of a
    piece, end symbol included. ``whole``: sentences that stand in one text are not cut apart unless
    it is too long. ``prepare``: what is done to a sentence before it is cut into tokens.
    """
    drafts: list[tuple[str, list[tuple[str, str]]]] = []
    for text in texts:
        body = text.strip()
        before, behind = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        if not body:
            drafts.append((text, []))
        elif whole:
            drafts.append((before, [(body, behind)]))
        else:
            drafts.append((before, _sentences(body, behind, language, into)))
    every = [text for _, sentences in drafts for text, _ in sentences]
    tokens = iter(vocabulary.encode([prepare(text) for text in every] if prepare else every))
    passages = []
    for before, sentences in drafts:
        pieces: list[Piece] = []
        for text, behind in sentences:
            ids = next(tokens).tolist()
            if not ids:
                # Nothing that the vocabulary can write (a control character): kept as it is.
                before, pieces = _keep(before, pieces, text + behind)
            elif len(ids) < longest:
                pieces.append(_piece(text, behind, ids, vocabulary.eos))
            else:
                pieces += _parts(behind, ids, vocabulary, longest)
        passages.append(Passage(before, tuple(pieces)))
    return passages


def _sentences(body: str, behind: str, language: str, into: str) -> list[tuple[str, str]]:
    """Sentences of a text, each with what follows it in the translation."""
    found = [(sentence.text, sentence.gap) for sentence in segment(body, language)]
    if writes_spaces(into):
        # Where the original writes no space between two sentences, as Chinese does.
        found = [(text, gap or " ") for text, gap in found]
    text, _ = found[-1]
    return [*found[:-1], (text, behind)]


def _keep(before: str, pieces: list[Piece], text: str) -> tuple[str, list[Piece]]:
    if not pieces:
        return before + text, pieces
    last = pieces[-1]
    return before, [*pieces[:-1], Piece(last.text, last.behind + text, last.ids)]


def _piece(text: str, behind: str, ids: list[int], eos: int) -> Piece:
    return Piece(text, behind, torch.from_numpy(np.array([*ids, eos])))


def _parts(behind: str, ids: list[int], vocabulary: Text, longest: int) -> list[Piece]:
    """A sentence that is too long, in parts of nearly equal length that begin with a word."""
    written = vocabulary.pieces(ids)
    count = -(-len(ids) // (longest - 1))
    cuts, parts = [0], []
    while cuts[-1] < len(ids):
        wanted = min(cuts[-1] + -(-len(ids) // count), len(ids))
        begin = cuts[-1] + 1
        end = wanted
        while begin < end < len(ids) and not written[end].startswith("▁"):
            end -= 1
        cuts.append(end if end > begin else wanted)
    for begin, end in pairwise(cuts):
        part = ids[begin:end]
        parts.append(
            _piece(
                vocabulary.decode(part),
                behind if end == len(ids) else " ",
                part,
                vocabulary.eos,
            )
        )
    return parts
