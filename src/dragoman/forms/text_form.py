"""The form of text in one language: a vocabulary, and the preparation of text for it.

A text is cut into sentences; a sentence with more tokens than a model should read at once is cut
between words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from dragoman.base.errors import DataError, RunError, needing
from dragoman.forms.form import Form, Passage, Piece
from dragoman.forms.languages import base, writes_spaces
from dragoman.forms.segmentation import list_marker, segment
from dragoman.forms.subwords.text import Text


class MosesText:
    """This class lower-cases and tokenises text of one language by the rules of Moses, as older
    papers do, and undoes it.

    It runs ``lowercase.perl | normalize-punctuation.perl | tokenizer.perl`` of Moses (Koehn et
    al., 2007) in their Python port sacremoses (the extra ``moses``). Raises DataError if
    sacremoses is not installed.
    """

    def __init__(self, language: str) -> None:
        with needing("moses", "Tokenising as Moses does needs sacremoses", DataError):
            from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
        code = base(language)
        self._normaliser = MosesPunctNormalizer(code)
        self._tokeniser = MosesTokenizer(code)
        self._detokeniser = MosesDetokenizer(code)

    def prepare(self, text: str) -> str:
        """Lower-case, normalise punctuation and tokenise: return tokens separated by spaces.

        Text is composed first (NFC), because the rules of Moses separate an accent from its
        letter. Characters with a meaning in XML become entities (``'`` is ``&apos;``), as in the
        prepared files that papers share.
        """
        text = unicodedata.normalize("NFC", text).lower()
        return str(self._tokeniser.tokenize(self._normaliser.normalize(text), return_str=True))

    def restore(self, tokens: str) -> str:
        """Return plain text from prepared text, without its former case."""
        return str(self._detokeniser.detokenize(tokens.split()))


def as_text(form: Form) -> TextForm:
    """Return a form that is text of a language. Errors: ``RunError`` for another form."""
    if not isinstance(form, TextForm):
        raise RunError("this run does not write text. Use a run that does")
    return form


@dataclass(frozen=True)
class _Sentence:
    text: str
    behind: str
    """The text between this sentence and the next."""
    marker: str = ""
    """The bullet or number of a list before the sentence, which is kept."""


class TextForm(Form):
    """The form of text: a vocabulary and a language; with ``moses``, text is prepared by Moses
    and restored."""

    vocabulary: Text

    def __init__(self, vocabulary: Text, language: str, moses: MosesText | None = None) -> None:
        self.vocabulary = vocabulary
        self.language = language
        self.moses = moses
        self.spaced = writes_spaces(language)
        self.size = vocabulary.size
        self.bos, self.eos = vocabulary.bos, vocabulary.eos
        self.forbidden = vocabulary.forbidden

    @property
    def fingerprint(self) -> str:
        return "".join([self.vocabulary.fingerprint, *self.names_of(self.before)])

    def save(self, path: Path) -> None:
        self.vocabulary.save(path)

    def prepare(self, text: str) -> str:
        """Return a text as the vocabulary knows it."""
        return text if self.moses is None else self.moses.prepare(text)

    def restore(self, prepared: str) -> str:
        """Return prepared text as plain text."""
        return prepared if self.moses is None else self.moses.restore(prepared)

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        prepared = raws if self.moses is None else [self.prepare(text) for text in raws]
        return self.vocabulary.encode_lists(prepared)

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        # One call is faster: SentencePiece releases Python's lock each time, and must wait to get
        # it back.
        written = self.vocabulary.decode_batch(outputs)
        return written if self.moses is None else [self.restore(text) for text in written]

    def names_of(self, tokens: Iterable[int]) -> list[str]:
        return self.vocabulary.pieces(tokens)

    def longest_output(self, length: int, extra: int) -> int:
        """Return the source's tokens plus ``extra``, which is 50 in the paper (§6.1)."""
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
        values = iter(self.values([part.text for _, sentences in drafts for part in sentences]))
        passages = []
        for before, sentences in drafts:
            read = [next(values) for _ in sentences]
            if whole and read and len(read[0]) > longest:
                sentences = self._sentences(sentences[0].text, sentences[0].behind, into)
                read = self.values([part.text for part in sentences])
            passages.append(self._passage(before, sentences, read, longest))
        return passages

    def _sentences(self, body: str, behind: str, into: Form) -> list[_Sentence]:
        """Return the sentences of a text, each with the text after it in the translation."""
        sentences = []
        begins_line = True
        for text, gap in segment(body, self.language):
            marker = list_marker(text, self.language) if begins_line else ""
            begins_line = "\n" in gap
            # The original may have no space between two sentences, as in Chinese.
            gap = gap or (" " if into.spaced else "")
            sentences.append(_Sentence(text.removeprefix(marker), gap, marker))
        return [*sentences[:-1], replace(sentences[-1], behind=behind)]

    def _passage(
        self,
        before: str,
        sentences: Sequence[_Sentence],
        read: Sequence[list[int]],
        longest: int,
    ) -> Passage:
        """Make a passage of sentences and the text around each. A sentence that has no tokens (a
        control character) is kept unchanged."""
        pieces: list[Piece] = []
        for part, values in zip(sentences, read, strict=True):
            kept = part.marker if len(values) > 1 else part.marker + part.text + part.behind
            if pieces:
                pieces[-1] = replace(pieces[-1], behind=pieces[-1].behind + kept)
            else:
                before += kept
            if len(values) > 1:
                pieces += self._parts(part.text, part.behind, values, longest)
        return Passage(before, tuple(pieces))

    def _parts(self, text: str, behind: str, values: list[int], longest: int) -> list[Piece]:
        """Return a sentence in one piece or, if it is too long, in parts of nearly equal length
        that begin with a word."""
        if len(values) <= longest:
            return [Piece(text, behind, tuple(values))]
        tokens = self.without_tag(values)
        written = self.names_of(tokens)
        count = -(-len(tokens) // (longest - 1 - len(self.before)))
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
            values = [*self.with_tag(part), self.eos]
            parts.append(Piece(self.vocabulary.decode(part), after, tuple(values)))
        return parts
