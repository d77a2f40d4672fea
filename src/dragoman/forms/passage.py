"""Running text, cut into what is translated at once, and put together again.

A text is cut into sentences; what stands between them (spaces, newlines) is kept as it is. A
sentence with more tokens than the model should read at once is cut between words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dragoman.forms.segmentation import segment
from dragoman.forms.text_form import TextForm


@dataclass(frozen=True)
class Piece:
    """What is translated at once."""

    text: str
    """As it stands in the text."""
    behind: str
    """What follows it there and is kept: spaces, newlines."""
    values: tuple[int, ...]
    """Its tokens, the end symbol included."""


@dataclass(frozen=True)
class Passage:
    """One text. Its translation: ``before``, then each piece's and ``behind``."""

    before: str
    pieces: tuple[Piece, ...]

    @property
    def is_bare(self) -> bool:
        """Whether it is one piece with nothing around it."""
        return not self.before and len(self.pieces) == 1 and not self.pieces[0].behind

    def join(self, translations: Sequence[str]) -> str:
        """Put the translations of the pieces, in their order, where the pieces stood."""
        joined = [self.before]
        for piece, translation in zip(self.pieces, translations, strict=True):
            joined += (translation, piece.behind)
        return "".join(joined)


def cut(
    texts: Sequence[str], form: TextForm, into: TextForm, *, longest: int, whole: bool
) -> list[Passage]:
    """Cut each text of ``form``, whose translation will be ``into`` another.

    ``longest``: tokens of a piece, end symbol included. ``whole``: sentences that stand in one text
    are not cut apart unless it is too long.
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
            drafts.append((before, _sentences(body, behind, form, into)))
    values = iter(form.values([text for _, sentences in drafts for text, _ in sentences]))
    passages = []
    for before, sentences in drafts:
        pieces: list[Piece] = []
        for text, behind in sentences:
            found = next(values)
            if len(found) == 1 and pieces:
                # Nothing that the vocabulary can write (a control character): kept as it is.
                pieces[-1] = replace(pieces[-1], behind=pieces[-1].behind + text + behind)
            elif len(found) == 1:
                before += text + behind
            elif len(found) <= longest:
                pieces.append(Piece(text, behind, tuple(found)))
            elif whole:
                inner = _sentences(text, behind, form, into)
                for (part, gap), parted in zip(
                    inner, form.values([part for part, _ in inner]), strict=True
                ):
                    pieces += _parts(part, gap, parted, form, longest)
            else:
                pieces += _parts(text, behind, found, form, longest)
        passages.append(Passage(before, tuple(pieces)))
    return passages


def _sentences(body: str, behind: str, form: TextForm, into: TextForm) -> list[tuple[str, str]]:
    """Sentences of a text, each with what follows it in the translation."""
    found = [(sentence.text, sentence.gap) for sentence in segment(body, form.language)]
    if into.spaced:
        # Where the original writes no space between two sentences, as Chinese does.
        found = [(text, gap or " ") for text, gap in found]
    text, _ = found[-1]
    return [*found[:-1], (text, behind)]


def _parts(text: str, behind: str, values: list[int], form: TextForm, longest: int) -> list[Piece]:
    """A sentence, if it is too long in parts of nearly equal length that begin with a word."""
    if len(values) <= longest:
        return [Piece(text, behind, tuple(values))]
    tokens = values[:-1]
    written = form.shown(tokens)
    count = -(-len(tokens) // (longest - 1))
    cuts, parts = [0], []
    while cuts[-1] < len(tokens):
        wanted = min(cuts[-1] + -(-len(tokens) // count), len(tokens))
        begin = cuts[-1] + 1
        end = wanted
        while begin < end < len(tokens) and not written[end].startswith("▁"):
            end -= 1
        cuts.append(end if end > begin else wanted)
    for begin, end in pairwise(cuts):
        part = tokens[begin:end]
        after = behind if end == len(tokens) else " "
        parts.append(Piece(form.vocabulary.decode(part), after, (*part, form.eos)))
    return parts
