"""Text of one language as a form: a vocabulary, and how the text that it knows was prepared.

A text is cut into sentences; a sentence with more tokens than a model should read at once is cut
between words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from dragoman.base.errors import DataError, RunError, install
from dragoman.forms.form import Form
from dragoman.forms.languages import base, writes_spaces
from dragoman.forms.passage import Passage, Piece
from dragoman.forms.segmentation import list_marker, segment
from dragoman.forms.subwords.text import Text


class MosesText:
    """Prepares text of one language as older papers do, and undoes it: lower-cased, cut into tokens
    by the rules of Moses.

    ``lowercase.perl | normalize-punctuation.perl | tokenizer.perl`` of Moses (Koehn et al., 2007)
    in their Python port sacremoses (the extra ``moses``).

    Raises:
        DataError: sacremoses is not installed.
    """

    def __init__(self, language: str) -> None:
        try:
            from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
        except ImportError as error:
            raise DataError(
                f"Tokenising as Moses does needs sacremoses: {install('moses')}"
            ) from error
        code = base(language)
        self._normaliser = MosesPunctNormalizer(code)
        self._tokeniser = MosesTokenizer(code)
        self._detokeniser = MosesDetokenizer(code)

    def prepare(self, text: str) -> str:
        """Lower-case, normalise punctuation, tokenise: tokens separated by spaces.

        Text is composed first (NFC): the rules of Moses part an accent from its letter.
        Characters with a meaning in XML become entities (``'`` is ``&apos;``), as in the prepared
        files that papers share.
        """
        text = unicodedata.normalize("NFC", text).lower()
        return str(self._tokeniser.tokenize(self._normaliser.normalize(text), return_str=True))

    def restore(self, tokens: str) -> str:
        """Plain text from prepared text, without its former case."""
        return str(self._detokeniser.detokenize(tokens.split()))


def as_text(form: Form) -> TextForm:
    """A form that is text of a language. Errors: ``RunError`` for another."""
    if not isinstance(form, TextForm):
        raise RunError("this needs a run that writes text, and this one writes none")
    return form


@dataclass(frozen=True)
class _Sentence:
    text: str
    behind: str
    """What follows it."""
    marker: str = ""
    """The bullet or number of a list that stands before it, and is kept."""


class TextForm(Form):
    """A vocabulary and a language; with ``moses``, text is prepared as Moses does and put back."""

    vocabulary: Text

    def __init__(self, vocabulary: Text, language: str, moses: MosesText | None = None) -> None:
        self.vocabulary = vocabulary
        self.language = language
        self.moses = moses
        self.spaced = writes_spaces(language)

    @property
    def size(self) -> int:
        return self.vocabulary.size

    @property
    def bos(self) -> int:
        return self.vocabulary.bos

    @property
    def eos(self) -> int:
        return self.vocabulary.eos

    @property
    def forbidden(self) -> tuple[int, ...]:
        return self.vocabulary.forbidden

    @property
    def fingerprint(self) -> str:
        return self.vocabulary.fingerprint

    def save(self, path: Path) -> None:
        self.vocabulary.save(path)

    def prepare(self, text: str) -> str:
        """Text as the vocabulary knows it."""
        return text if self.moses is None else self.moses.prepare(text)

    def restore(self, prepared: str) -> str:
        """Plain text again."""
        return prepared if self.moses is None else self.moses.restore(prepared)

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        prepared = raws if self.moses is None else [self.prepare(text) for text in raws]
        return self.vocabulary.encode_lists(prepared)

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        # At once: SentencePiece gives up Python's lock each time, and must wait to have it back.
        written = self.vocabulary.decode_batch(outputs)
        return written if self.moses is None else [self.restore(text) for text in written]

    def shown(self, tokens: Iterable[int]) -> list[str]:
        return self.vocabulary.pieces(tokens)

    def longest_output(self, length: int, extra: int) -> int:
        """The source's tokens and ``extra``, 50 in the paper (§6.1)."""
        return length - 1 + extra

    # ---- cutting

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        drafts = []
        for text in raws:
            body = text.strip()
            before, behind = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
            if not body:
                drafts.append((text, list[_Sentence]()))
            else:
                alone = [_Sentence(body, behind)]
                drafts.append((before, alone if whole else self._sentences(body, behind, into)))
        values = iter(self.values([one.text for _, sentences in drafts for one in sentences]))
        passages = []
        for before, sentences in drafts:
            read = [next(values) for _ in sentences]
            if whole and read and len(read[0]) > longest:
                sentences = self._sentences(sentences[0].text, sentences[0].behind, into)
                read = self.values([one.text for one in sentences])
            passages.append(self._passage(before, sentences, read, longest))
        return passages

    def _sentences(self, body: str, behind: str, into: Form) -> list[_Sentence]:
        """Sentences of a text, each with what follows it in the translation."""
        found = []
        begins_line = True
        for text, gap in segment(body, self.language):
            marker = list_marker(text, self.language) if begins_line else ""
            begins_line = "\n" in gap
            # Where the original writes no space between two sentences, as Chinese does.
            gap = gap or (" " if into.spaced else "")
            found.append(_Sentence(text.removeprefix(marker), gap, marker))
        return [*found[:-1], replace(found[-1], behind=behind)]

    def _passage(
        self,
        before: str,
        sentences: Sequence[_Sentence],
        read: Sequence[list[int]],
        longest: int,
    ) -> Passage:
        """Of sentences and what stands around each. Where the vocabulary can write nothing of one
        (a control character), it is kept as it is."""
        pieces: list[Piece] = []
        for one, values in zip(sentences, read, strict=True):
            kept = one.marker if len(values) > 1 else one.marker + one.text + one.behind
            if pieces:
                pieces[-1] = replace(pieces[-1], behind=pieces[-1].behind + kept)
            else:
                before += kept
            if len(values) > 1:
                pieces += self._parts(one.text, one.behind, values, longest)
        return Passage(before, tuple(pieces))

    def _parts(self, text: str, behind: str, values: list[int], longest: int) -> list[Piece]:
        """A sentence, if it is too long in parts of nearly equal length that begin with a word."""
        if len(values) <= longest:
            return [Piece(text, behind, tuple(values))]
        tokens = values[:-1]
        written = self.shown(tokens)
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
            parts.append(Piece(self.vocabulary.decode(part), after, (*part, self.eos)))
        return parts
