"""The vocabulary of an imported model: its table of tokens, as a SentencePiece model.

A model of another program has a table from token to id, and often a SentencePiece model that cuts
the text. The two differ: a table for both languages has tokens that the SentencePiece model of one
lacks, and the reverse. Here they become one SentencePiece model, by which text is cut as before:

- A token of both stays as it is.
- A token of the table alone is marked "unused": text is never cut into it, and it can be written.
- A token of the SentencePiece model alone stays, and the weights of ``<unk>`` stand in its place,
  as the table reads it as ``<unk>``.

Our ids begin with the special symbols (``<unk>`` 0, ``<s>`` 1, ``</s>`` 2); the others follow in
the order of the table.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import RunError
from dragoman.base.reading import read_bytes, read_json
from dragoman.forms.subwords.sampling import SPACE
from dragoman.forms.subwords.text import (
    MOST_TOKENS,
    TOKEN,
    Text,
    TextSettings,
    field_bytes,
    field_number,
    fields,
    read_varint,
)

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
MOST_JSON = 8 << 20
"""Bytes of a table of tokens in JSON; tables of 58,000 tokens have up to 2.2 million."""
_MOST_SPM = 8 << 20
"""Bytes of a SentencePiece model; those of 256,000 pieces have some 5 million."""

_NORMAL, _UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6
"""The types of a piece in SentencePiece's files."""
_UNIGRAM, _BPE, _WORD, _CHAR = 1, 2, 3, 4
"""The types of a model there."""
_NAMES: dict[int, Any] = {_UNIGRAM: "unigram", _BPE: "bpe", _WORD: "word", _CHAR: "char"}
_TRAINER, _NORMALIZERS = 2, (3, 5)
"""The fields of a model that cutting needs beside its pieces: how it was trained, and how text is
normalised."""
_IDENTITY = b"\x0a\x08identity"
"""The name of the normaliser that changes nothing."""


@dataclass(frozen=True)
class Vocabulary:
    """One side's vocabulary, and the place of each of its tokens in the table of the model."""

    text: Text
    rows: Sequence[int]
    """(V,) for each of our ids, the id in the table of the model; -1: no row, but zeros."""
    strangers: int
    """The number of tokens at the end that the table lacks: they are ``<unk>`` to the model."""


@dataclass(frozen=True)
class _Piece:
    word: str
    score: float
    kind: int


@dataclass(frozen=True)
class _Cutter:
    """The content of a SentencePiece file: its pieces, its type, and the rest as it stands."""

    pieces: Sequence[_Piece]
    kind: int
    rest: bytes


def read_table(path: Path) -> list[str]:
    """Read a table from token to id, or a list of tokens. Errors: ``RunError`` if it is damaged, or
    has holes."""
    table = read_json(path, MOST_JSON)
    if isinstance(table, dict):
        try:
            table = table_in_order(table, path)
        except TypeError:
            raise RunError(f"{path} is not a table of tokens and ids") from None
    return check_table(table, path)


def table_in_order(table: Mapping[str, Any], path: Path) -> list[str]:
    """Return the tokens of a table in the order of their ids. Errors: ``RunError`` for holes."""
    pairs = sorted((number, token) for token, number in table.items())
    if [number for number, _ in pairs] != list(range(len(pairs))):
        raise RunError(f"{path} has gaps: its ids are not all from 0 to {len(pairs) - 1:,}")
    return [token for _, token in pairs]


def pieces_of(spm: Path) -> list[str]:
    """Return the pieces of a SentencePiece file in the order of their ids. Errors: ``RunError``."""
    return [piece.word for piece in _read_cutter(spm).pieces]


def check_table(table: Any, path: Path) -> list[str]:
    """Return a list of tokens that has been checked. Errors: ``RunError``."""
    if not isinstance(table, list) or not all(isinstance(token, str) for token in table):
        raise RunError(f"{path} contains no tokens")
    if not 0 < len(table) <= MOST_TOKENS:
        raise RunError(f"{path} has {len(table):,} tokens; 1 to {MOST_TOKENS:,} are allowed")
    if len(set(table)) != len(table):
        raise RunError(f"{path} has a token twice")
    if any("\0" in token or not token for token in table):
        raise RunError(f"{path} has a token that is empty or contains a NUL")
    return table


def from_sentencepiece(
    spm: Path, table: Sequence[str], specials: Mapping[str, int], tags: bool
) -> Vocabulary:
    """Return the vocabulary of a model whose text is cut by ``spm``.

    ``specials``: ids in ``table`` of ``<unk>``, ``<s>`` (-1: it has none) and ``</s>``, in the
    order of ours.
    ``tags``: True for a source, where tags such as ``>>deu<<`` are tokens. Errors: ``RunError``.
    """
    cutter = _read_cutter(spm)
    known = {piece.word: piece for piece in cutter.pieces if piece.kind in (_NORMAL, _USER, _BYTE)}
    hidden = set(specials.values())
    ordinary = [(number, word) for number, word in enumerate(table) if number not in hidden]
    alone = sum(word not in known and not _is_tag(word) for _, word in ordinary)
    if cutter.kind != _UNIGRAM and alone:
        raise RunError(
            f"{spm} is a {_NAMES.get(cutter.kind, 'foreign')} model that lacks {alone:,} tokens of "
            "the vocabulary. Only a unigram model may lack some of them"
        )
    pieces = list(_specials(specials))
    for number, word in ordinary:
        if word in (UNKNOWN, BEGIN, END):
            pieces.append(_Piece(f"<token-{number}>", 0.0, _CONTROL))
        elif tags and _is_tag(word):
            pieces.append(_Piece(SPACE + word, 0.0, _USER))
        else:
            pieces.append(known.get(word) or _Piece(word, 0.0, _UNUSED))
    rows = [*specials.values(), *(number for number, _ in ordinary)]
    ours = {piece.word for piece in pieces}
    strangers = [piece for word, piece in known.items() if word not in ours]
    rows += [specials[UNKNOWN]] * len(strangers)
    settings = _settings(cutter.kind, len(rows), spm)
    text = _text(_write([*pieces, *strangers], cutter.rest), settings, spm)
    return Vocabulary(text, rows, len(strangers))


def from_table_alone(
    table: Sequence[str], specials: Mapping[str, int], nulls: Collection[str], path: Path
) -> Vocabulary:
    """Return the vocabulary of a model without a tokenizer. If all tokens are single characters, it
    reads characters; else tokens are what stands between spaces. ``nulls``: tokens of the table
    that no text has, such as ``<blank>``."""
    hidden = set(specials.values())
    rows = list(specials.values())
    pieces = list(_specials(specials))
    by_characters = all(
        len(word) == 1 or number in hidden or word in nulls for number, word in enumerate(table)
    )
    for number, word in enumerate(table):
        if number in hidden:
            continue
        rows.append(number)
        kind = _CONTROL if word in nulls else _NORMAL
        spelt = word if by_characters or word in nulls else SPACE + word.removeprefix(SPACE)
        pieces.append(_Piece(spelt, 0.0, kind))
    if len({piece.word for piece in pieces}) != len(pieces):
        raise RunError(f"{path} has a word with and without {SPACE}. Add its SentencePiece file")
    kind = _CHAR if by_characters else _WORD
    settings = _settings(kind, len(rows), path)
    normalizer = _IDENTITY + b"".join(
        field_number(field, int(not by_characters)) for field in (3, 4)
    ) + field_number(5, 1)  # fmt: skip
    trainer = field_number(3, kind) + field_number(4, len(rows))
    rest = field_bytes(2, trainer) + field_bytes(3, normalizer)
    return Vocabulary(_text(_write(pieces, rest), settings, path), rows, 0)


def _is_tag(word: str) -> bool:
    return word.startswith(">>") and word.endswith("<<") and len(word) > 4


def _specials(ids: Mapping[str, int]) -> Iterator[_Piece]:
    for name in ids:
        yield _Piece(name, 0.0, _UNKNOWN if name == UNKNOWN else _CONTROL)


def _settings(kind: int, size: int, path: Path) -> TextSettings:
    if size > MOST_TOKENS:
        raise RunError(f"{path} and its table have {size:,} tokens; the most is {MOST_TOKENS:,}")
    return TextSettings(
        kind=_NAMES[kind],
        vocabulary=max(size, 8),
        shared=False,
        byte_fallback=False,
        normalization="identity" if kind in (_WORD, _CHAR) else "nmt_nfkc",
    )


def _text(model: bytes, settings: TextSettings, path: Path) -> Text:
    try:
        return Text(model, settings)
    except (RuntimeError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: its tokens are not a vocabulary ({str(error)[:200]})") from None


def _read_cutter(path: Path) -> _Cutter:
    """Take a SentencePiece file apart. Errors: ``RunError`` if it is damaged."""
    model = read_bytes(path, _MOST_SPM)
    pieces, kind, kept = list[_Piece](), _UNIGRAM, dict[int, bytes]()
    try:
        for number, begin, first, last in fields(model):
            if number == TOKEN:
                pieces.append(_piece(model[begin:last]))
                if len(pieces) > MOST_TOKENS:
                    raise RunError(f"{path} has more than {MOST_TOKENS:,} pieces")
            elif number == _TRAINER:
                kind = _kind_in(model[begin:last])
                kept[number] = b""
            elif number in _NORMALIZERS:
                kept[number] = model[first:last]
    except (IndexError, UnicodeDecodeError, struct.error):
        raise RunError(f"{path} is damaged or not a SentencePiece model") from None
    if not kept or kind not in _NAMES:
        raise RunError(f"{path} is not a supported SentencePiece model")
    # The names and ids of the special symbols are ours.
    kept[_TRAINER] = field_bytes(_TRAINER, _trainer(kind, pieces))
    return _Cutter(pieces, kind, b"".join(kept.values()))


def _piece(message: bytes) -> _Piece:
    word, score, kind = "", 0.0, _NORMAL
    for number, begin, _, last in fields(message):
        if number == 1:
            word = message[begin:last].decode()
        elif number == 2:
            (score,) = struct.unpack("<f", message[begin:last])
        elif number == 3:
            kind = read_varint(message, begin)[0]
    return _Piece(word, score, kind)


def _trainer(kind: int, pieces: Sequence[_Piece]) -> bytes:
    """The settings of training that cutting depends on: the type, and the use of bytes."""
    has_bytes = any(piece.kind == _BYTE for piece in pieces)
    return field_number(3, kind) + (field_number(35, 1) if has_bytes else b"")


def _kind_in(trainer: bytes) -> int:
    for number, begin, _, _ in fields(trainer):
        if number == 3:
            return read_varint(trainer, begin)[0]
    return _UNIGRAM


def _write(pieces: Sequence[_Piece], rest: bytes) -> bytes:
    """A SentencePiece model with these pieces."""
    return (
        b"".join(
            field_bytes(
                1,
                field_bytes(1, piece.word.encode())
                + b"\x15"
                + struct.pack("<f", piece.score)
                + field_number(3, piece.kind),
            )
            for piece in pieces
        )
        + rest
    )
