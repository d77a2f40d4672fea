"""The wire format of Protocol Buffers, in which SentencePiece's files are written.

A message is a row of fields. A field is a tag, which is its number and the form of its content, and
then the content: a varint, a fixed number of bytes, or a length and as many bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

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
