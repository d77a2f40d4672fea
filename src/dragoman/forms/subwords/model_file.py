"""A note inside a SentencePiece model file, which other programs pass over.

Such a file is one Protocol Buffers message (``ModelProto``), which leaves field numbers from 200 up
to third parties. So a vocabulary and what must be known about it travel in one file, and every
program that reads SentencePiece models still reads it. Only the outermost fields are looked at
here; that takes no library.
"""

from __future__ import annotations

from collections.abc import Iterator

_TOKEN, _NOTE = 1, 1027
"""The numbers of the field of each token, and of our own."""


def with_note(model: bytes, note: bytes) -> bytes:
    """The model with a note at its end, in place of one that it had.

    Raises IndexError if the model is no Protocol Buffers message.
    """
    kept, end = [], 0
    for number, _, first, last in _fields(model):
        if number == _NOTE:
            kept.append(model[end:first])
            end = last
    return b"".join([*kept, model[end:], _varint(_NOTE << 3 | 2), _varint(len(note)), note])


def note_in(model: bytes) -> tuple[bytes | None, int]:
    """The note that a model carries, if any; and how many tokens it has.

    Raises IndexError as ``with_note`` does.
    """
    note, tokens = None, 0
    for number, begin, _, last in _fields(model):
        if number == _NOTE:
            note = model[begin:last]
        tokens += number == _TOKEN
    return note, tokens


def _fields(message: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Top-level fields of a Protocol Buffers message: number, and where content and field stand.

    Yields (number, begin of content, begin of field, end). Raises IndexError if it is damaged.
    """
    place = 0
    while place < len(message):
        first = place
        if message[place] == _TOKEN << 3 | 2 and message[place + 1 : place + 2] < b"\x80":
            # Nearly all of a large file: tokens, of less than 128 bytes each.
            begin = place + 2
            place = begin + message[place + 1]
            if place > len(message):
                raise IndexError("cut off")
            yield _TOKEN, begin, first, place
            continue
        tag, place = _read_varint(message, place)
        begin = place
        match tag & 7:
            case 0:
                _, place = _read_varint(message, place)
            case 1:
                place += 8
            case 2:
                length, begin = _read_varint(message, place)
                place = begin + length
            case 5:
                place += 4
            case _:
                raise IndexError("unknown wire type")
        if place > len(message):
            raise IndexError("cut off")
        yield tag >> 3, begin, first, place


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):  # 64 bits at most
        byte = message[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
    raise IndexError("a number without an end")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
