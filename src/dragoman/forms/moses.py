"""Text as older papers prepare it: lower-cased, cut into tokens by the rules of Moses, and undone.

``lowercase.perl | normalize-punctuation.perl | tokenizer.perl`` of Moses (Koehn et al., 2007) in
their Python port sacremoses (the extra ``moses``).
"""

from __future__ import annotations

import unicodedata

from dragoman.errors import DataError
from dragoman.extras import install
from dragoman.forms.languages import base


class MosesText:
    """Prepares text of one language as Moses does, and undoes it.

    Raises:
        DataError: sacremoses is not installed.
    """

    def __init__(self, language: str, lowercase: bool = True) -> None:
        try:
            from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
        except ImportError as error:
            raise DataError(
                f"Tokenising as Moses does needs sacremoses: {install('moses')}"
            ) from error
        code = base(language)
        self._lowercase = lowercase
        self._normaliser = MosesPunctNormalizer(code)
        self._tokeniser = MosesTokenizer(code)
        self._detokeniser = MosesDetokenizer(code)

    def prepare(self, text: str) -> str:
        """Lower-case (if so set), normalise punctuation, tokenise: tokens separated by spaces.

        Text is composed first (NFC): the rules of Moses part an accent from its letter.
        Characters with a meaning in XML become entities (``'`` is ``&apos;``), as in the prepared
        files that papers share.
        """
        text = unicodedata.normalize("NFC", text)
        cased = text.lower() if self._lowercase else text
        return str(self._tokeniser.tokenize(self._normaliser.normalize(cased), return_str=True))

    def restore(self, tokens: str) -> str:
        """Plain text from prepared text, without its former case."""
        return str(self._detokeniser.detokenize(tokens.split()))
