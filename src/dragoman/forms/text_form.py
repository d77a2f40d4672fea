"""Text of one language as a form: a vocabulary, and how the text that it knows was prepared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.forms.form import Form
from dragoman.forms.languages import writes_spaces
from dragoman.forms.moses import MosesText
from dragoman.forms.text import Text


class TextForm(Form):
    """A vocabulary and a language; with ``moses``, text is prepared as Moses does and put back."""

    def __init__(self, vocabulary: Text, language: str, moses: MosesText | None = None) -> None:
        self.vocabulary = vocabulary
        self.language = language
        self.moses = moses

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
    def spaced(self) -> bool:
        """Whether its language writes spaces between words."""
        return writes_spaces(self.language)

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
