"""Text <-> tokens: subwords learned by SentencePiece (Kudo and Richardson, 2018).

A ``Text`` is one trained vocabulary: it encodes strings to token ids without special symbols and
decodes them again. It is kept in one file, which is an ordinary SentencePiece model; our settings
travel inside it (``model_file.py``).

The paper (section 5.1) uses byte-pair encoding with a vocabulary shared by both languages.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import sentencepiece
from pydantic import Field, ValidationError, model_validator

from dragoman.atomic import replacing_file
from dragoman.errors import DataError, RunError
from dragoman.forms.model_file import note_in, with_note
from dragoman.forms.sampling import SPACE, BpeDropout, Pieces, Sampler, UnigramSampling
from dragoman.reading import read_bytes
from dragoman.settings import Settings

_THREADS = 4
"""Of vocabulary training. Fixed: unigram sums depend on the number of threads in the last bits."""

_FEW = 32
"""Texts that are decoded one by one: starting SentencePiece's threads takes longer than they do."""


_MOST_BYTES = 6 << 20
"""Of a vocabulary file. The largest in use, of 256,000 tokens, have some five million."""

MASK = "<mask>"
"""A symbol that stands for a hidden token. No text can hold it: written out, it is read as text."""

MOST_TOKENS = 300_000
"""Of a vocabulary. SentencePiece takes up to 270 bytes of memory for each, however short."""


class TextSettings(Settings):
    """How text is cut into tokens."""

    kind: Literal["bpe", "unigram", "char", "word"] = "bpe"
    """Byte-pair encoding, unigram language model, characters, or words."""
    vocabulary: int = Field(8000, ge=8, le=MOST_TOKENS)
    """Tokens in the vocabulary, special and byte tokens included; an upper limit for char, word."""
    shared: bool = True
    """One vocabulary for source and target (section 5.1 of the paper) instead of one for each."""
    byte_fallback: bool = True
    """Write characters outside the vocabulary as their UTF-8 bytes, so that none is unknown."""
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "nfc", "identity"] = (
        "nmt_nfkc"
    )
    """Unicode normalisation: cf folds case; nmt also tidies spaces and control characters."""
    lossless: bool = False
    """Every valid string comes back exactly: no normalisation, all spaces kept."""
    character_coverage: float = Field(0.9995, gt=0, le=1)
    """Share of the text's characters that get a token of their own; the rest are rare."""
    user_symbols: tuple[str, ...] = ()
    """Strings that are always one token, such as markup or language tags."""
    sampling: float = Field(0.0, ge=0, lt=1)
    """Training only. bpe: probability to drop a merge (0.1 is usual); unigram: the exponent α of
    sampling (0.2 is usual). 0 switches it off."""
    sample_sentences: int = Field(1_000_000, ge=1, le=1_000_000_000)
    """At most so many sentences, drawn at random, are read to learn the vocabulary."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.lossless and (not self.byte_fallback or self.kind == "word"):
            raise ValueError("lossless needs byte_fallback = true and a kind other than word")
        if self.sampling and self.kind not in ("bpe", "unigram"):
            raise ValueError(f"sampling is for kind bpe or unigram; kind {self.kind} has one way")
        for symbol in self.user_symbols:
            if not symbol or any(c.isspace() or c == SPACE for c in symbol):
                raise ValueError(f"user symbol {symbol!r} is empty or holds a space")
        return self


class Text:
    """One vocabulary. Make it with ``train`` or ``load``."""

    def __init__(self, model: bytes, settings: TextSettings) -> None:
        """From the bytes of a SentencePiece model. ``settings`` say how text is prepared for it."""
        self.settings = settings
        self._given = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.size: int = self._processor.vocab_size()
        self.unknown: int = self._processor.unk_id()
        self.bos: int = self._processor.bos_id()
        self.eos: int = self._processor.eos_id()
        mask = self._processor.piece_to_id(MASK)
        self.mask: int | None = mask if self._processor.is_control(mask) else None
        """The symbol of a hidden token, in vocabularies that were learned with one."""
        hidden = () if self.mask is None else (self.mask,)
        self.forbidden: tuple[int, ...] = (self.bos, self.unknown, *hidden)
        """Symbols that no output may hold: every search with this vocabulary forbids them."""

    @classmethod
    def train(
        cls,
        sentences: Iterable[str],
        settings: TextSettings,
        *,
        seed: int = 0,
        symbols: Sequence[str] = (),
    ) -> Text:
        """Learn a vocabulary. The same sentences, settings and seed give the same one.

        ``symbols``: further tokens that stand for no text, as ``MASK``.

        Raises DataError if the text is empty or does not support a vocabulary of this size.
        """
        chosen = _reservoir(sentences, settings.sample_sentences, seed)
        prepared = [_prepare(sentence, settings) for sentence in chosen]
        if not any(sentence.strip() for sentence in prepared):
            raise DataError("no text to learn a vocabulary from: every sentence is empty")
        if settings.lossless:
            prepared.append(" ")  # a space must be among the tokens, also if no sentence has one
        written = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(prepared),
                model_writer=written,
                control_symbols=list(symbols),
                **_trainer_arguments(settings, max(len(s.encode("utf-8")) for s in prepared)),
            )
        except RuntimeError as error:
            raise _vocabulary_error(str(error), settings) from error
        return cls(written.getvalue(), settings)

    @classmethod
    def load(cls, path: str | os.PathLike[str], settings: TextSettings | None = None) -> Text:
        """Read a vocabulary, and with it its settings unless others are given.

        A SentencePiece model made elsewhere works too; it then gets default settings. Raises
        RunError if the file is missing or damaged.
        """
        path = Path(path)
        model = read_bytes(path, _MOST_BYTES)
        try:
            inside, tokens = note_in(model)
            if tokens > MOST_TOKENS:
                raise RunError(f"{path}: a vocabulary has at most {MOST_TOKENS:,} tokens")
            if settings is None:
                settings = TextSettings.model_validate_json(inside) if inside else TextSettings()
            found = cls(model, settings)
            if found.pieces(range(found.size)) and min(found.unknown, found.bos, found.eos) < 0:
                raise RunError(f"{path}: this vocabulary has no <unk>, no <s> or no </s>")
            found.decode_exact([found.unknown])
            return found
        except ValidationError as error:
            raise RunError(
                f"{path}: this vocabulary has settings that this version does not know "
                f"({error.error_count()} of them); was it made by a newer one?"
            ) from error
        except (RuntimeError, IndexError, UnicodeDecodeError) as error:
            raise RunError(f"{path}: not a SentencePiece model, or a damaged one") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary and its settings to one file. Raises FileError if that fails."""
        with replacing_file(Path(path)) as temporary:
            temporary.write_bytes(self._model)

    @cached_property
    def _model(self) -> bytes:
        """With the settings inside."""
        return with_note(self._given, self.settings.model_dump_json().encode("utf-8"))

    @cached_property
    def ordinary(self) -> npt.NDArray[np.bool_]:
        """(V,): whether a token stands for text, byte tokens too; the rest are symbols."""
        is_control, is_unknown = self._processor.is_control, self._processor.is_unknown
        return np.array([not (is_control(i) or is_unknown(i)) for i in range(self.size)])

    @cached_property
    def bytes(self) -> npt.NDArray[np.bool_]:
        """(V,): whether a token stands for one byte."""
        return np.array([self._processor.is_byte(i) for i in range(self.size)])

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the model and its settings."""
        return hashlib.sha256(self._model).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[npt.NDArray[np.int32]]:
        """Tokens of each text, (length,) int32, without special symbols."""
        return [np.array(ids, np.int32) for ids in self.encode_lists(texts)]

    def encode_lists(self, texts: Sequence[str]) -> list[list[int]]:
        """``encode`` as lists."""
        prepared = [_prepare(text, self.settings) for text in texts]
        if self.settings.lossless:
            return [self._encode_lossless(text) for text in prepared]
        if len(prepared) > 1:
            encoded: list[list[int]] = self._processor.encode(prepared, out_type=int)
            return encoded
        # A list of one would pay for starting threads, ten times the work itself.
        return [self._processor.encode(text, out_type=int) for text in prepared]

    def encode_inside(self, text: str) -> list[int]:
        """Tokens of what stands behind something in one word: no space is taken to be before it."""
        if self.settings.lossless or not text:
            return self.encode_lists([text])[0]
        # Behind a character that no token holds, which so tells where it ends.
        before, whole = self.encode_lists([_STRANGER])[0], self.encode_lists([_STRANGER + text])[0]
        assert whole[: len(before)] == before, "a token goes across a character that it cannot hold"
        return whole[len(before) :]

    def sample(self, text: str, key: int) -> npt.NDArray[np.int32]:
        """Tokens of one text, cut at random as ``settings.sampling`` says: (length,) int32.

        A pure function of (text, key). Without sampling it is what ``encode`` gives.
        """
        if self._sampler is None:
            return self.encode([text])[0]
        prepared = _prepare(text, self.settings)
        if not self.settings.lossless or SPACE not in prepared:
            return np.array(self._sampler.segment(self._normalise(prepared), key), np.int32)
        ids: list[int] = []
        for place, part in enumerate(prepared.split(SPACE)):
            ids.extend(self._space_bytes if place else ())
            ids.extend(self._sampler.segment(self._normalise(part), key + place))
        return np.array(ids, np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some tokens, on one line: a newline becomes a space."""
        return self.decode_exact(ids).replace("\n", " ")

    def decode_batch(self, batch: Sequence[Iterable[int]]) -> list[str]:
        """``decode`` for many."""
        if len(batch) < _FEW:
            return [self.decode(ids) for ids in batch]
        texts = self._processor.decode([[int(token) for token in ids] for ids in batch])
        return [self._tidy(str(text)).replace("\n", " ") for text in texts]

    def decode_exact(self, ids: Iterable[int]) -> str:
        """The text of some tokens as it stands; with ``lossless`` exactly what was encoded."""
        return self._tidy(str(self._processor.decode([int(token) for token in ids])))

    def _tidy(self, text: str) -> str:
        if SPACE in text and not self.settings.lossless:
            # From bytes: an unknown word is spelled with the space before it, or a model wrote it.
            return text.removeprefix(SPACE).replace(SPACE, " ")
        return text

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The written form of each token: U+2581 for a space, <0x41> for a byte."""
        return list(self._processor.id_to_piece([int(token) for token in ids]))

    def known_as(self, text: str) -> str:
        """The text that the tokens of ``text`` stand for, unknown characters included: normalised,
        but with ``lossless``."""
        prepared = _prepare(text, self.settings)
        if self.settings.lossless:
            return prepared
        return self._normalise(prepared).removeprefix(SPACE).replace(SPACE, " ")

    def _normalise(self, prepared: str) -> str:
        return str(self._processor.normalize(prepared))

    def _encode_lossless(self, prepared: str) -> list[int]:
        """SentencePiece reads U+2581 as a space; written as bytes it stays itself."""
        if SPACE not in prepared:
            return list(self._processor.encode(prepared, out_type=int))
        ids: list[int] = []
        for place, part in enumerate(prepared.split(SPACE)):
            ids.extend(self._space_bytes if place else ())
            ids.extend(self._processor.encode(part, out_type=int))
        return ids

    @cached_property
    def _byte_ids(self) -> list[int]:
        return [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]

    @cached_property
    def _space_bytes(self) -> tuple[int, ...]:
        return tuple(self._byte_ids[byte] for byte in SPACE.encode("utf-8"))

    @cached_property
    def _sampler(self) -> Sampler | None:
        if not self.settings.sampling:
            return None
        pieces = self._pieces_for_sampling()
        if self.settings.kind == "bpe":
            return BpeDropout(pieces, self.settings.sampling)
        return UnigramSampling(pieces, self.settings.sampling)

    def _pieces_for_sampling(self) -> Pieces:
        processor = self._processor
        has_bytes = any(map(processor.is_byte, range(self.size)))
        ids = {
            processor.id_to_piece(i): i
            for i in range(self.size)
            if not (processor.is_control(i) or processor.is_unknown(i) or processor.is_byte(i))
        }
        return Pieces(
            scores={piece: processor.get_score(i) for piece, i in ids.items()},
            ids=ids,
            bytes=self._byte_ids if has_bytes else None,
            unknown=self.unknown,
            whole=self.settings.user_symbols,
        )


def _prepare(text: str, settings: TextSettings) -> str:
    """What SentencePiece cannot do itself: NFC, and bytes that were not valid UTF-8."""
    if settings.normalization == "nfc" and not settings.lossless:
        text = unicodedata.normalize("NFC", text)
    # Lone surrogates are how Python carries invalid UTF-8; U+FFFD says "unreadable" to a reader.
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


_STRANGER = "\ue000"
"""A character of nobody's: for private use."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def _trainer_arguments(settings: TextSettings, longest: int) -> dict[str, Any]:
    """Our settings in SentencePiece's words. ``longest`` sentence in bytes."""
    normalization = settings.normalization
    if settings.lossless or normalization == "nfc":
        normalization = "identity"
    return {
        "model_type": settings.kind,
        "vocab_size": settings.vocabulary,
        "hard_vocab_limit": settings.kind in ("bpe", "unigram"),
        "byte_fallback": settings.byte_fallback,
        "normalization_rule_name": normalization,
        "add_dummy_prefix": not settings.lossless,
        "remove_extra_whitespaces": not settings.lossless,
        "character_coverage": settings.character_coverage,
        "required_chars": SPACE,
        "user_defined_symbols": list(settings.user_symbols),
        "max_sentence_length": max(longest + 1, 10),  # its own least
        "num_threads": _THREADS,
        "unk_id": 0,
        "bos_id": 1,
        "eos_id": 2,
        "pad_id": -1,
        "minloglevel": 2,
    }


def _vocabulary_error(message: str, settings: TextSettings) -> DataError:
    """SentencePiece's complaint about the size, as an error that says what to do."""
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
    """At most ``limit`` of the sentences, each equally likely, in one pass and bounded memory."""
    chosen: list[str] = []
    generator = random.Random(seed)
    for count, sentence in enumerate(sentences):
        if count < limit:
            chosen.append(sentence)
        elif (place := generator.randrange(count + 1)) < limit:
            chosen[place] = sentence
    return chosen
