"""This module guesses the encoding of a text that is not UTF-8.

A byte-order mark identifies UTF-16, and charset-normalizer distinguishes encodings of different
scripts. Encodings of the Latin script share most of their letters: among them the language decides,
which is identified by small words, most of them in ASCII (``forms/identification.py``). The result
is a guess, so nothing is converted: the message names the encoding and the command that converts.
"""

from __future__ import annotations

import codecs
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.data.files.lines import STANDARD_INPUT
from dragoman.forms.identification import identify
from dragoman.forms.languages import NAMES, base

_FEW = 4
"""Any text may have this many bytes that are not UTF-8 by mistake."""
_LINES = 0.02
"""A text in another encoding has at least this share of lines with such bytes."""
_TOGETHER = 1.6
"""The least mean length of runs of bytes outside ASCII in a script other than the Latin."""
_LETTERS = 0.5
"""In the right encoding, more than this share of the characters outside ASCII are letters."""

_NAMES = {
    "cp949": "CP949", "euc_jp": "EUC-JP", "cp932": "CP932",
    "gb18030": "GB18030", "big5": "BIG5", "cp874": "CP874", "koi8_r": "KOI8-R", "cp866": "CP866",
    "iso8859_1": "ISO-8859-1", "iso8859_2": "ISO-8859-2", "iso8859_5": "ISO-8859-5",
    "iso8859_7": "ISO-8859-7",
    **{f"cp{number}": f"WINDOWS-{number}" for number in range(1250, 1259)},
}  # fmt: skip
"""The encodings that are distinguished: Python's name -> iconv's name."""
_BY_LANGUAGE = {"koi8_u": "KOI8-U", "iso8859_6": "ISO-8859-6"}
"""Encodings that are tried only if the language is known, as text in them looks like others."""
_ALSO_CALLED = {"CP949": "EUC-KR", "CP932": "Shift-JIS", "ISO-8859-1": "Latin-1"}

_LATIN = frozenset({"cp1250", "cp1252", "cp1254", "cp1257", "cp1258", "iso8859_1", "iso8859_2"})
_WESTERN = ("iso8859_1", "cp1252")
_CENTRAL = ("iso8859_2", "cp1250")
_CYRILLIC = ("cp1251", "koi8_r", "iso8859_5", "cp866")
_USUAL = {
    "ko": ("cp949",), "ja": ("cp932", "euc_jp"), "zh": ("gb18030", "big5"),
    "th": ("cp874",), "el": ("cp1253", "iso8859_7"), "tr": ("cp1254",), "he": ("cp1255",),
    "ar": ("iso8859_6", "cp1256"), "vi": ("cp1258",),
    **dict.fromkeys(("ru", "bg", "be", "mk", "sr"), _CYRILLIC),
    "uk": ("cp1251", "koi8_u", "iso8859_5", "cp866"),
    **dict.fromkeys(("pl", "cs", "sk", "hu", "sl", "hr", "ro", "sq"), _CENTRAL),
    **dict.fromkeys(("lt", "lv", "et"), ("cp1257",)),
}  # fmt: skip
"""The encodings that a language used before UTF-8; languages that are not listed used Latin-1."""


_HIGH = re.compile(rb"[\x80-\xff]+")
_FOREIGN = re.compile(rb"(?:[\x80-\xff]+[\x40-\x7e]? ?)+")
"""Bytes outside ASCII with the ASCII bytes that may be the second half of a character. Much ASCII,
such as markup, would hide the script."""
_WIDE_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"), (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"),
)  # fmt: skip
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_MARKS = frozenset(
    "\u2018\u2019\u201c\u201d\u201e\u2013\u2014\u2026\u00ab\u00bb\u00bf\u00a1\u00b7\u3001\u3002\uff0c"
)
"""Quotes, dashes and stops, which ordinary text contains besides letters."""
_OF_JAPANESE = 0.2
"""More than this share of Japanese is in hiragana, which hardly any other text reaches."""


def check_width(start: bytes, name: str) -> None:
    """Raise ``DataError`` for the beginning of a text in UTF-16 or UTF-32."""
    wide = _wide(start)
    if wide is not None:
        raise DataError(
            f"{name} is {wide.removesuffix('LE').removesuffix('BE')}, not UTF-8. "
            f"Convert it: {iconv(name, wide)}"
        )


def check_encoding(start: bytes, name: str, language: str = "und") -> None:
    """Raise ``DataError`` for the beginning of a text that is not in UTF-8, with its probable
    encoding. A few wrong bytes in a UTF-8 text are accepted.

    ``name``: the path of the file, or "standard input"; ``language``: that of the text, if it is
    known.
    """
    if start.startswith(codecs.BOM_UTF8) or not _is_another(start):
        return
    known = language if language != "und" else _language_of_name(name)
    encoding = encoding_of(start, known)
    if encoding is None:
        raise DataError(
            f"{name} is not UTF-8, and its encoding cannot be determined. Convert it: "
            f"{iconv(name, 'ENCODING')}, where ENCODING is the name of its encoding (iconv -l "
            "lists the names)"
        )
    called = f"{encoding} ({_ALSO_CALLED[encoding]})" if encoding in _ALSO_CALLED else encoding
    reads = "it is probably" if known == "und" else "it reads well as"
    raise DataError(f"{name} is not UTF-8; {reads} {called}. Convert it: {iconv(name, encoding)}")


def encoding_of(text: bytes, language: str = "und") -> str | None:
    """Return the encoding, by iconv's name, in which the bytes outside ASCII are letters; None if
    there is none. The text may end within a character."""
    whole = text[: text.rfind(b"\n") + 1] or text
    usual = _USUAL.get(base(language), ())
    encoding = _by_script(whole)
    if encoding is not None:
        # A byte of ISO-8859-6 is not defined in CP1256.
        sure = encoding in usual and usual[0] != "iso8859_6"
        encoding = encoding if sure else _best(whole, usual) or encoding
        return _NAMES.get(encoding) or _BY_LANGUAGE[encoding]
    read_as = sorted(identify(whole.decode("iso8859_1").split("\n")))
    if read_as:
        usual = tuple(name for code in read_as for name in _USUAL.get(code, _WESTERN))
        encoding = _best(whole, usual)
    else:
        encoding = _best(whole, (*usual, *_WESTERN, *_CENTRAL))
    return None if encoding is None else _NAMES[encoding]


def _language_of_name(name: str) -> str:
    """Return the language in the ending of a file's name, as in my.uk.gz; "und" for none."""
    ending = Path(name.removesuffix(".gz")).suffix.removeprefix(".").lower()
    return ending if ending in NAMES else "und"


def _by_script(text: bytes) -> str | None:
    """Return the encoding of a text in a script other than the Latin, by charset-normalizer; None
    for the Latin script, whose letters outside ASCII are isolated, or if it is not recognised."""
    from charset_normalizer import from_bytes

    runs = _HIGH.findall(text)
    if sum(map(len, runs)) < _TOGETHER * len(runs):
        return None
    for japanese in _USUAL["ja"]:
        if _share(text, japanese, _is_hiragana) > _OF_JAPANESE:
            return japanese
    text = b" ".join(_FOREIGN.findall(text))
    for end in range(len(text), max(0, len(text) - 4), -1):
        best = from_bytes(
            text[:end], cp_isolation=[*_NAMES], enable_fallback=False, preemptive_behaviour=False
        ).best()
        if best is not None:
            return None if best.encoding in _LATIN else best.encoding
    return None


def iconv(name: str, encoding: str) -> str:
    """Return the command that converts a file or a pipe to UTF-8."""
    convert = f"iconv -f {encoding} -t UTF-8"
    if name == STANDARD_INPUT:
        return f"{convert} FILE | dragoman ..."
    return pipe(name, convert, "utf8-")


def pipe(name: str, command: str, prefix: str) -> str:
    """Return the command that sends a file, packed or not, through ``command`` to a file whose name
    begins with ``prefix``."""
    file = Path(name).name
    plain = file.removesuffix(".gz")
    to = shlex.quote(prefix + plain)
    if plain != file:
        return f"zcat {shlex.quote(file)} | {command} > {to}"
    return f"{command} < {shlex.quote(file)} > {to}"


def _wide(start: bytes) -> str | None:
    """Return an encoding of two or four bytes a letter, detected by its mark, or UTF-16 without a
    mark, detected by spaces and line ends, in which every other byte is zero."""
    for mark, encoding in _WIDE_MARKS:
        if start.startswith(mark):
            return encoding
    if b"\x00" not in start:
        return None
    for encoding, spaces in (
        ("UTF-16LE", (b" \x00", b"\n\x00")), ("UTF-16BE", (b"\x00 ", b"\x00\n"))
    ):  # fmt: skip
        pairs = [start[place : place + 2] for place in range(0, len(start) - 1, 2)]
        if sum(map(pairs.count, spaces)) > max(_FEW, len(pairs) // 50):
            return encoding
    return None


def _is_another(start: bytes) -> bool:
    """Return True if most characters outside ASCII are not UTF-8, on more than a few lines."""
    if start.isascii():
        return False
    whole = start[: start.rfind(b"\n") + 1] or start
    if _is_utf8(whole):
        return False
    text = whole.decode("utf-8", "surrogateescape")
    wrong = sum("\udc80" <= character <= "\udcff" for character in text)
    right = sum(not character.isascii() for character in text) - wrong
    if wrong < _FEW or wrong <= right:
        return False
    lines = whole.removesuffix(b"\n").split(b"\n")
    return sum(not _is_utf8(line) for line in lines) > _LINES * len(lines)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _best(text: bytes, encodings: Sequence[str]) -> str | None:
    """Return the encoding with the largest share of letters outside ASCII, the first of equals;
    None if most are no letters in any."""
    shares = {encoding: _share(text, encoding, _is_written) for encoding in encodings}
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] > _LETTERS else None


def _share(text: bytes, encoding: str, wanted: Callable[[str], bool]) -> float:
    """Return the share of ``wanted`` among characters outside ASCII in an encoding; 0 if the text
    cannot be decoded. The text may end within a character."""
    try:
        foreign = _NOT_ASCII.findall(codecs.getincrementaldecoder(encoding)().decode(text))
    except UnicodeDecodeError:
        return 0.0
    return sum(map(wanted, foreign)) / max(1, len(foreign))


def _is_written(character: str) -> bool:
    return character.isalpha() or character in _MARKS


def _is_hiragana(character: str) -> bool:
    return "\u3041" <= character <= "\u3093"
