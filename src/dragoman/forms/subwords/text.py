"""Text <-> tokens: subwords learned by SentencePiece (Kudo and Richardson, 2018).

A ``Text`` is one trained vocabulary: it encodes strings to token ids without special symbols and
decodes them again. It is kept in one file, which is an ordinary SentencePiece model; its settings
travel inside it (``with_note``).

The paper (section 5.1) uses byte-pair encoding with a vocabulary shared by both languages.

SentencePiece's files are in the wire format of Protocol Buffers, which is read and written here. A
message is a row of fields. A field is a tag, which is its number and the form of its content, and
then the content: a varint, a fixed number of bytes, or a length and as many bytes.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import sentencepiece
from pydantic import Field, ValidationError, model_validator

from dragoman.base.atomic import write_bytes
from dragoman.base.errors import RunError
from dragoman.base.reading import read_bytes, readable
from dragoman.base.settings import Settings
from dragoman.forms.subwords.sampling import SPACE, BpeDropout, Pieces, Sampler, UnigramSampling

_FEW = 32
"""Fewer texts are decoded one by one, because starting SentencePiece's threads takes longer."""

_MOST_BYTES = 24 << 20
"""The most bytes of a vocabulary file: MOST_TOKENS of 16 characters, the most that SentencePiece
learns, of four bytes each, and some bytes more. The largest in use, of 256,000 tokens, have some
five million; scripts with three bytes per letter need more."""

MASK = "<mask>"
"""The symbol for a hidden token. No text contains it: written out, it is read as text."""

MOST_TOKENS = 300_000
"""The most tokens of a vocabulary. SentencePiece takes up to 270 bytes of memory for each."""

LEAST_COVERAGE = 0.98
"""The least ``character_coverage`` that SentencePiece accepts."""
TOKEN = 1
"""The number of the field of each token in a SentencePiece model."""


def field_bytes(number: int, content: bytes) -> bytes:
    """A field of bytes, text or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def field_number(number: int, value: int) -> bytes:
    """A field of a whole number that is not negative."""
    return varint(number << 3) + varint(value)


def fields(message: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield the top-level fields of a Protocol Buffers message.

    Each is (number, begin of content, begin of field, end). Raises IndexError if the message is
    damaged.
    """
    place = 0
    while place < len(message):
        first = place
        if message[place] == TOKEN << 3 | 2 and message[place + 1 : place + 2] < b"\x80":
            # Nearly all of a large file are tokens, of less than 128 bytes each.
            begin = place + 2
            place = begin + message[place + 1]
            if place > len(message):
                raise IndexError("the message is cut off")
            yield TOKEN, begin, first, place
            continue
        tag, place = read_varint(message, place)
        begin = place
        match tag & 7:
            case 0:
                _, place = read_varint(message, place)
            case 1:
                place += 8
            case 2:
                length, begin = read_varint(message, place)
                place = begin + length
            case 5:
                place += 4
            case _:
                raise IndexError("a field has an unknown wire type")
        if place > len(message):
            raise IndexError("the message is cut off")
        yield tag >> 3, begin, first, place


def read_varint(message: bytes, place: int) -> tuple[int, int]:
    """A number at a place of a message, and the place after it. Raises IndexError."""
    value = 0
    for shift in range(0, 70, 7):  # 64 bits at most
        byte = message[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
    raise IndexError("a number has no end")


def varint(value: int) -> bytes:
    """A whole number in base 128, lowest digits first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


class TextSettings(Settings):
    """The settings for splitting text into tokens."""

    kind: Literal["bpe", "unigram", "char", "word"] = "bpe"
    """The kind of tokens: byte-pair encoding, unigram language model, characters, or words."""
    vocabulary: int = Field(8000, ge=8, le=MOST_TOKENS)
    """The size of the vocabulary, including special and byte tokens. For char and word: its upper
    limit."""
    shared: bool = True
    """Use one vocabulary for source and target (section 5.1 of the paper) instead of two."""
    byte_fallback: bool = True
    """Encode characters outside the vocabulary as UTF-8 bytes, so that no character is unknown."""
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "nfc", "identity"] = (
        "nmt_nfkc"
    )
    """Unicode normalisation. cf folds case; nmt also normalises spaces and removes control
    characters."""
    lossless: bool = False
    """Make tokenisation exactly reversible: no normalisation, and all spaces are kept."""
    character_coverage: float = Field(0.9995, ge=LEAST_COVERAGE, le=1)
    """The share of the training text that must be covered by characters with their own token. The
    remaining characters are treated as rare."""
    user_symbols: tuple[str, ...] = ()
    """Strings that are always a single token, such as markup or language tags."""
    sampling: float = Field(0.0, ge=0, lt=1)
    """For training only. bpe: the probability of dropping a merge (usually 0.1); unigram: the
    sampling exponent α (usually 0.2). 0: off."""
    sample_sentences: int = Field(1_000_000, ge=1, le=1_000_000_000)
    """The maximum number of sentences, chosen at random, from which the vocabulary is learned."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.lossless and (not self.byte_fallback or self.kind == "word"):
            raise ValueError("lossless needs byte_fallback = true and a kind other than word")
        if self.sampling and self.kind not in ("bpe", "unigram"):
            raise ValueError(f"sampling works only with kind bpe or unigram, not {self.kind}")
        for symbol in self.user_symbols:
            if not symbol or any(c.isspace() or c == SPACE for c in symbol):
                raise ValueError(f"user symbol {symbol!r} is empty or holds a space")
        return self


def prepare(text: str, settings: TextSettings) -> str:
    """Prepare a text in ways that SentencePiece cannot: NFC, and bytes that were not valid
    UTF-8. ASCII needs neither."""
    if text.isascii():
        return text
    if settings.normalization == "nfc" and not settings.lossless:
        text = unicodedata.normalize("NFC", text)
    return readable(text)


class Text:
    """One vocabulary. ``load`` reads it from a file; ``learn_vocabulary`` learns it from text."""

    def __init__(self, model: bytes, settings: TextSettings) -> None:
        """Make a vocabulary from the bytes of a SentencePiece model. ``settings`` say how text
        is prepared for it."""
        self.settings = settings
        self._given = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.size: int = self._processor.vocab_size()
        self.unknown: int = self._processor.unk_id()
        self.bos: int = self._processor.bos_id()
        self.eos: int = self._processor.eos_id()
        mask = self._processor.piece_to_id(MASK)
        self.mask: int | None = mask if self._processor.is_control(mask) else None
        """The symbol of a hidden token; None in a vocabulary that was learned without one."""
        hidden = () if self.mask is None else (self.mask,)
        self.forbidden: tuple[int, ...] = (self.bos, self.unknown, *hidden)
        """The symbols that no output may contain, which every search forbids."""

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
                raise RunError(f"{path}: a vocabulary may have at most {MOST_TOKENS:,} tokens")
            if settings is None:
                settings = TextSettings.model_validate_json(inside) if inside else TextSettings()
            text = cls(model, settings)
            if text.pieces(range(text.size)) and min(text.unknown, text.bos, text.eos) < 0:
                raise RunError(f"{path}: the vocabulary has no <unk>, no <s> or no </s>")
            text.decode_exact([text.unknown])
            return text
        except ValidationError as error:
            raise RunError(
                f"{path}: the vocabulary has settings that this version does not know "
                f"({error.error_count()} of them); it may come from a newer one"
            ) from error
        except (RuntimeError, IndexError, UnicodeDecodeError) as error:
            raise RunError(f"{path} is damaged or not a SentencePiece model") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary and its settings to one file. Raises FileError if that fails."""
        write_bytes(Path(path), self._model)

    @cached_property
    def _model(self) -> bytes:
        """The bytes of the model with the settings inside."""
        return with_note(self._given, self.settings.model_dump_json().encode("utf-8"))

    @cached_property
    def tags(self) -> dict[str, int]:
        """The tags of target languages among the tokens of a model that was imported, and their
        ids: ``deu`` is the tag of ``>>deu<<``."""
        if self.settings.byte_fallback:  # the vocabulary is ours, and has none
            return {}
        pieces = enumerate(self.pieces(range(self.size)))
        return {match[1]: token for token, piece in pieces if (match := TAG.fullmatch(piece))}

    @cached_property
    def ordinary(self) -> npt.NDArray[np.bool_]:
        """(V,) flags, True for tokens of text, including byte tokens; the others are symbols."""
        is_control, is_unknown = self._processor.is_control, self._processor.is_unknown
        return np.array([not (is_control(i) or is_unknown(i)) for i in range(self.size)])

    @cached_property
    def bytes(self) -> npt.NDArray[np.bool_]:
        """(V,) flags, True for tokens of one byte."""
        return np.array([self._processor.is_byte(i) for i in range(self.size)])

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the model and its settings."""
        return hashlib.sha256(self._model).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[npt.NDArray[np.int32]]:
        """Tokens of each text, (length,) int32, without special symbols."""
        return [np.array(ids, np.int32) for ids in self.encode_lists(texts)]

    def encode_lists(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of ``encode`` as lists."""
        prepared = [prepare(text, self.settings) for text in texts]
        if self.settings.lossless:
            return [self._by_part(text, self._encode) for text in prepared]
        # A list of one would pay for starting threads, which takes ten times the work itself.
        if len(prepared) == 1:
            return [self._encode(prepared[0], 0)]
        encoded: list[list[int]] = self._processor.encode(prepared, out_type=int)
        if self._has_unused:
            for text, ids in zip(prepared, encoded, strict=True):
                self._find_unused(text, ids)
        return encoded

    def encode_inside(self, text: str) -> list[int]:
        """Return the tokens of a text that continues a word, with no space assumed before it."""
        if self.settings.lossless or not text:
            return self.encode_lists([text])[0]
        # The text is encoded after a character that no token contains, which marks where it begins.
        before, whole = self.encode_lists([_STRANGER])[0], self.encode_lists([_STRANGER + text])[0]
        assert whole[: len(before)] == before, "a token goes across a character that it cannot hold"
        return whole[len(before) :]

    def sample(self, text: str, key: int) -> npt.NDArray[np.int32]:
        """Return the tokens of one text, cut at random by ``settings.sampling``: (length,)
        int32.

        The result is a pure function of (text, key). Without sampling it is that of ``encode``.
        """
        if self._sampler is None:
            return self.encode([text])[0]
        sampler, prepared = self._sampler, prepare(text, self.settings)
        ids = self._by_part(
            prepared, lambda part, place: sampler.segment(self._normalise(part), key + place)
        )
        return np.array(ids, np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of some tokens, on one line: a newline becomes a space. Bytes that
        belong to no character are left out."""
        return self.decode_exact(ids).replace("\n", " ")

    def decode_batch(self, batch: Sequence[Iterable[int]]) -> list[str]:
        """Return ``decode`` of each."""
        listed, decode = [[int(token) for token in ids] for ids in batch], self._processor.decode
        texts = decode(listed) if len(batch) >= _FEW else map(decode, listed)
        return [text.replace("\n", " ") for text in map(self._readable, listed, texts)]

    def decode_exact(self, ids: Iterable[int]) -> str:
        """Return the exact text of some tokens; with ``lossless`` it is the encoded text."""
        listed = [int(token) for token in ids]
        return self._readable(listed, self._processor.decode(listed))

    def _readable(self, ids: Sequence[int], text: str) -> str:
        """Return the ``text`` of some tokens without the bytes that belong to no character: a
        model may write any bytes, and SentencePiece has U+FFFD for each that is not UTF-8."""
        if _UNREADABLE in text:
            kept: list[int] = []
            for are_bytes, some in groupby(ids, key=self._byte_of.__contains__):
                if are_bytes:
                    written = bytes(self._byte_of[token] for token in some)
                    some = map(self._byte_ids.__getitem__, written.decode(errors="ignore").encode())
                kept += some
            text = str(self._processor.decode(kept))
        if SPACE in text and not self.settings.lossless:
            # The bytes of an unknown word include the space before it, or a model wrote them.
            return text.removeprefix(SPACE).replace(SPACE, " ")
        return text

    def merges(self, text: str) -> list[list[str]]:
        """Return the symbols of a text without spaces after each merge of byte-pair encoding, from
        its characters to its tokens. A vocabulary of another kind has no merges: the result is its
        characters and its tokens. So is the end of a text with characters that the vocabulary does
        not know."""
        symbols = list(self._normalise(prepare(text, self.settings)))
        steps, scores = [symbols], self._pieces_for_sampling().scores
        while self.settings.kind == "bpe":
            pairs = [a + b for a, b in pairwise(symbols)]
            known = [place for place, pair in enumerate(pairs) if pair in scores]
            if not known:
                break
            best = max(known, key=lambda place: (scores[pairs[place]], -place))
            symbols = [*symbols[:best], pairs[best], *symbols[best + 2 :]]
            steps.append(symbols)
        tokens = self.pieces(self.encode_lists([text])[0])
        return steps if tokens == steps[-1] else [*steps, tokens]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the written form of each token: U+2581 for a space, <0x41> for a byte."""
        return list(self._processor.id_to_piece([int(token) for token in ids]))

    def symbols_of(self, texts: Iterable[str]) -> tuple[int, ...]:
        """Return the tokens of those texts that are user symbols of the vocabulary."""
        known = [text for text in texts if text in self.settings.user_symbols]
        return tuple(map(self._processor.piece_to_id, known))

    def text_as_read(self, text: str) -> str:
        """Return the text that the tokens of ``text`` represent, with unknown characters:
        normalised, except with ``lossless``."""
        prepared = prepare(text, self.settings)
        if self.settings.lossless:
            return prepared
        return self._normalise(prepared).removeprefix(SPACE).replace(SPACE, " ")

    def _normalise(self, prepared: str) -> str:
        return str(self._processor.normalize(prepared))

    def _encode(self, prepared: str, place: int) -> list[int]:
        ids = list(self._processor.encode(prepared, out_type=int))
        if self._has_unused:
            self._find_unused(prepared, ids)
        return ids

    def _find_unused(self, prepared: str, ids: list[int]) -> None:
        """Replace, in the tokens of a text, each unknown run that is spelt as an unused token by
        that token, as programs do that look pieces up in a table of their own (Marian)."""
        if self.unknown not in ids:
            return
        written = self._processor.encode(prepared, out_type=str)
        for place, piece in enumerate(written):
            if ids[place] == self.unknown:
                known = self._processor.piece_to_id(piece)
                if self._processor.is_unused(known):
                    ids[place] = known

    @cached_property
    def _has_unused(self) -> bool:
        """True if text is not cut into some tokens, as in models of other programs. A vocabulary
        with tokens for bytes is ours, and has none: its tokens are not looked through."""
        unused = map(self._processor.is_unused, range(self.size))
        return not self.settings.byte_fallback and any(unused)

    def _by_part(self, prepared: str, cut: Callable[[str, int], list[int]]) -> list[int]:
        """Return the tokens of a text. SentencePiece reads U+2581 as a space: in lossless text
        it is written as bytes, and the parts between are ``cut`` one by one."""
        parts = prepared.split(SPACE) if self.settings.lossless else [prepared]
        ids: list[int] = []
        for place, part in enumerate(parts):
            ids.extend(self._space_bytes if place else ())
            ids.extend(cut(part, place))
        return ids

    @cached_property
    def _byte_ids(self) -> list[int]:
        return [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]

    @cached_property
    def _byte_of(self) -> dict[int, int]:
        return {token: byte for byte, token in enumerate(self._byte_ids) if self.bytes[token]}

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
        texts = np.flatnonzero(self.ordinary & ~self.bytes).tolist()
        ids = {processor.id_to_piece(i): i for i in texts if not processor.is_unused(i)}
        return Pieces(
            scores={piece: processor.get_score(i) for piece, i in ids.items()},
            ids=ids,
            bytes=self._byte_ids if self.bytes.any() else None,
            unknown=self.unknown,
            whole=self.settings.user_symbols,
        )


_UNREADABLE = "\ufffd"
_STRANGER = "\ue000"
"""A character for private use, which texts hardly contain."""


TAG = re.compile(f"{SPACE}>>(.+)<<")
"""A token for the language into which a model of several target languages translates."""


_NOTE = 1027
"""The number of our own field."""


def with_note(model: bytes, note: bytes) -> bytes:
    """Return the model with a note at its end, which replaces an existing one.

    Raises IndexError if the model is no Protocol Buffers message.
    """
    kept, end = [], 0
    for number, _, first, last in fields(model):
        if number == _NOTE:
            kept.append(model[end:first])
            end = last
    return b"".join([*kept, model[end:], field_bytes(_NOTE, note)])


def note_in(model: bytes) -> tuple[bytes | None, int]:
    """Return the note in a model, or None, and its number of tokens.

    Raises IndexError as ``with_note`` does.
    """
    note, tokens = None, 0
    for number, begin, _, last in fields(model):
        if number == _NOTE:
            note = model[begin:last]
        tokens += number == TOKEN
    return note, tokens
