"""Which encoding the bytes of a text are in, where they are not UTF-8.

A mark at the beginning tells UTF-16, and charset-normalizer tells encodings of different scripts
apart. Those of the Latin script share most of their letters: between them the language decides,
which is told by small words, most of them in ASCII (``forms/identification.py``). What is found is
a guess, so nothing is converted by it: it is named, with the command that converts.
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
"""Bytes that are not UTF-8: any text may have this many by mistake."""
_LINES = 0.02
"""The least share of lines with such bytes in a text in another encoding."""
_TOGETHER = 1.6
"""Bytes outside of ASCII that stand together, on average, in a script other than the Latin."""
_LETTERS = 0.5
"""Share of the characters outside of ASCII that are letters, in the right encoding."""

_NAMES = {
    "cp949": "CP949", "euc_jp": "EUC-JP", "cp932": "CP932",
    "gb18030": "GB18030", "big5": "BIG5", "cp874": "CP874", "koi8_r": "KOI8-R", "cp866": "CP866",
    "iso8859_1": "ISO-8859-1", "iso8859_2": "ISO-8859-2", "iso8859_5": "ISO-8859-5",
    "iso8859_7": "ISO-8859-7",
    **{f"cp{number}": f"WINDOWS-{number}" for number in range(1250, 1259)},
}  # fmt: skip
"""The encodings that are distinguished: Python's name -> iconv's name."""
_BY_LANGUAGE = {"koi8_u": "KOI8-U", "iso8859_6": "ISO-8859-6"}
"""Those that are asked only where the language is known: text in them looks like others."""
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
"""What text of a language was written in before UTF-8; all others in Latin-1."""


_HIGH = re.compile(rb"[\x80-\xff]+")
_FOREIGN = re.compile(rb"(?:[\x80-\xff]+[\x40-\x7e]? ?)+")
"""What is not ASCII. The script cannot be recognised among much ASCII, such as markup. An ASCII
byte may be the second half of a character."""
_UTF8_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"), (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"),
)  # fmt: skip
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_MARKS = frozenset(
    "\u2018\u2019\u201c\u201d\u201e\u2013\u2014\u2026\u00ab\u00bb\u00bf\u00a1\u00b7\u3001\u3002\uff0c"
)
"""What stands beside letters in ordinary text: quotes, dashes, stops."""
_OF_JAPANESE = 0.2
"""Share of Japanese that is written in hiragana, and of hardly any other text."""


def check_width(start: bytes, name: str) -> None:
    """Errors: ``DataError`` for the beginning of a text in UTF-16 or UTF-32."""
    wide = _wide(start)
    if wide is not None:
        raise DataError(
            f"{name} is {wide.removesuffix('LE').removesuffix('BE')}, not UTF-8. "
            f"Convert it: {iconv(name, wide)}"
        )


def check_encoding(start: bytes, name: str, language: str = "und") -> None:
    """Errors: ``DataError`` for the beginning of a text that is not in UTF-8, with the encoding
    that it seems to be in. A few wrong bytes in a text that is UTF-8 are no reason.

    ``name``: the path of the file, or "standard input"; ``language``: of the text, if it is known.
    """
    if start.startswith(_UTF8_MARK) or not _is_another(start):
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
    """The encoding, as iconv calls it, in which the bytes of a text outside of ASCII are letters;
    None if there is none. The text may end within a character."""
    whole = text[: text.rfind(b"\n") + 1] or text
    usual = _USUAL.get(base(language), ())
    found = _by_script(whole)
    if found is not None:
        sure = (
            found in usual and usual[0] != "iso8859_6"
        )  # of which a byte is not defined in CP1256
        found = found if sure else _best(whole, usual) or found
        return _NAMES.get(found) or _BY_LANGUAGE[found]
    read_as = sorted(identify(whole.decode("iso8859_1").split("\n")))
    if read_as:
        usual = tuple(one for code in read_as for one in _USUAL.get(code, _WESTERN))
        found = _best(whole, usual)
    else:
        found = _best(whole, (*usual, *_WESTERN, *_CENTRAL))
    return None if found is None else _NAMES[found]


def _language_of_name(name: str) -> str:
    """The language that the ending of a file's name tells, as in my.uk.gz; "und" for none."""
    ending = Path(name.removesuffix(".gz")).suffix.removeprefix(".").lower()
    return ending if ending in NAMES else "und"


def _by_script(text: bytes) -> str | None:
    """The encoding of a text in another script than the Latin, by charset-normalizer; None if the
    script is Latin, in which letters outside of ASCII stand alone, or if it is not told."""
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
    """The command that converts a file, or what is read from a pipe, to UTF-8."""
    convert = f"iconv -f {encoding} -t UTF-8"
    if name == STANDARD_INPUT:
        return f"{convert} FILE | dragoman ..."
    return piped(name, convert, "utf8-")


def piped(name: str, command: str, prefix: str) -> str:
    """The command that hands a file, packed or not, to ``command``, and writes one beside it whose
    name begins with ``prefix``."""
    file = Path(name).name
    plain = file.removesuffix(".gz")
    to = shlex.quote(prefix + plain)
    if plain != file:
        return f"zcat {shlex.quote(file)} | {command} > {to}"
    return f"{command} < {shlex.quote(file)} > {to}"


def _wide(start: bytes) -> str | None:
    """Encodings of two or four bytes for every letter, by their mark; or UTF-16 without one, by
    spaces and ends of lines, of which every other byte is zero."""
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
    """Whether what is not ASCII in it is mostly not UTF-8 either, in more than some lines."""
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
    """The first of the encodings in which most of what is not ASCII is a letter, unless more of it
    is in another."""
    shares = {encoding: _share(text, encoding, _is_written) for encoding in encodings}
    best = max(shares, key=lambda one: shares[one], default=None)
    return best if best is not None and shares[best] > _LETTERS else None


def _share(text: bytes, encoding: str, wanted: Callable[[str], bool]) -> float:
    """Of what is not ASCII in a text, read in an encoding; 0 if it cannot be. The text may end
    within a character."""
    try:
        foreign = _NOT_ASCII.findall(codecs.getincrementaldecoder(encoding)().decode(text))
    except UnicodeDecodeError:
        return 0.0
    return sum(map(wanted, foreign)) / max(1, len(foreign))


def _is_written(character: str) -> bool:
    return character.isalpha() or character in _MARKS


def _is_hiragana(character: str) -> bool:
    return "\u3041" <= character <= "\u3093"
