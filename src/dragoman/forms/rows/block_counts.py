"""How many blocks a PNG or GIF file has, told before it is opened.

Pillow goes over the chunks of a PNG (W3C, PNG 3, section 5) and over what stands before the first
picture of a GIF (GIF89a, sections 23 to 26) one by one, in Python. An empty block has few bytes:
10 MB of them keep the interpreter busy for seconds, and with it whoever shares it.
"""

from __future__ import annotations

from dragoman.errors import DataError

MOST_BLOCKS, BYTES_OF_A_BLOCK = 1_000, 256
"""A file may have so many, and one more for each so many bytes."""
_PNG, _GIF = b"\x89PNG\r\n\x1a\n", (b"GIF87a", b"GIF89a")
_EXTENSION = 0x21


def check_blocks(called: str, data: bytes) -> None:
    """Errors: ``DataError`` for a PNG or GIF file that would take long; any other may follow."""
    most = MOST_BLOCKS + len(data) // BYTES_OF_A_BLOCK
    if data.startswith(_PNG):
        is_over, kind = _chunks(data, most) > most, "PNG"
    elif data.startswith(_GIF):
        is_over, kind = _extensions(data, most) > most, "GIF"
    else:
        return
    if is_over:
        raise DataError(
            f"{called} has more than {most:,} blocks, as no {kind} file of its size needs: write "
            "it again"
        )


def _chunks(data: bytes, most: int) -> int:
    """Of a PNG; no more are counted than one above ``most``."""
    at, count = len(_PNG), 0
    while at < len(data) and count <= most:
        at += 12 + int.from_bytes(data[at : at + 4])  # length, name, content, check sum
        count += 1
    return count


def _extensions(data: bytes, most: int) -> int:
    """Blocks of a GIF before its first picture, parts of blocks counted; no more than one above
    ``most``."""
    about = data[10] if len(data) > 10 else 0
    colours = 3 << (about & 7) + 1 if about & 0x80 else 0
    at, count = 13 + colours, 0
    while at + 2 < len(data) and data[at] == _EXTENSION and count <= most:
        at, count = at + 2, count + 1
        while at < len(data) and (length := data[at]) and count <= most:
            at, count = at + 1 + length, count + 1
        at += 1  # the part of no length that ends it
    return count
