"""What would ruin a corpus, seen in a sample before hours are spent, with the lines that show it.

Nothing is refused here: a person knows better what a text is. ``dragoman data show`` and ``train``
say what is found.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from dragoman.data.block_sampler import Block
from dragoman.data.corpora import CorpusSettings, Pair
from dragoman.data.correspondence import Correspondence, Moved, find_correspondence
from dragoman.forms.identification import can_identify, identify
from dragoman.forms.languages import NAMES, base, name_of

_EXAMPLES = 3
_SHOWN_CHARACTERS = 70
_INVALID = 0.005
"""Share of lines with bytes that are not UTF-8 from which on the file is in another encoding."""
_TWICE = 0.02
"""Share of lines that were encoded twice."""
_TIMES = 0.02
"""Share of lines that are the times of subtitles."""
_NUMBERS = 0.5
"""Share of lines without a letter."""
_READ = 400
"""Lines that a language is told by."""
_EXCHANGED = 0.005
_EXCHANGED_FEW = 10
"""Share of exchanged pairs that is too much: 0.005 + 10 / pairs. A word that was seen once or twice
does not tell which side it belongs to."""
_SAME_LANGUAGE = 0.5
"""Of the running words. Two halves of one text have 0.74 to 0.89 in common, English and German
0.10, English and Korean with program code 0.22."""
_JUDGED = 60
_UNRELATED_JUDGED = 150
_UNRELATED = 0.02
_UNRELATED_FEW = 46
"""Share of unrelated pairs that is too much: 0.02 + (46 / pairs judged) ** 1.25. Few pairs teach a
dictionary little, and more of those that are right then look wrong (docs/experiments.md)."""
_TIME = re.compile(r"\d\d:\d\d(:\d\d)?[,.]\d{3} --> ")
_LETTER = re.compile(r"[^\W\d_]")
_SURROGATE = re.compile("[\udc80-\udcff]")
_ENCODED_TWICE = re.compile(
    "[\u00c2-\u00f4][\u0080-\u00bf\u0152-\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122]"
)
_HEADER = frozenset(
    {"source", "target", "src", "tgt", "trg", "text", "sentence", "translation", "original",
     "reference", "input", "output", "id", *NAMES, *map(str.casefold, NAMES.values())}
)  # fmt: skip
_CYRILLIC = ("windows-1251", "koi8-r")
_CENTRAL = ("windows-1250", "iso-8859-2")
_ENCODINGS = {
    "ko": ("cp949",), "ja": ("shift_jis", "euc-jp"), "zh": ("gb18030", "big5"), "th": ("cp874",),
    "el": ("windows-1253",), "tr": ("windows-1254",), "he": ("windows-1255",),
    "ar": ("windows-1256",), "vi": ("windows-1258",),
    **dict.fromkeys(("ru", "uk", "bg", "be", "mk", "sr"), _CYRILLIC),
    **dict.fromkeys(("pl", "cs", "sk", "hu", "sl", "hr", "ro", "sq"), _CENTRAL),
    **dict.fromkeys(("lt", "lv", "et"), ("windows-1257",)),
}  # fmt: skip
"""What text of a language was written in before UTF-8; all others in Latin-1."""


@dataclass(frozen=True)
class Doubt:
    """Something that is probably wrong with a corpus."""

    kind: str
    """encoding, header, subtitles, numbers, language, exchanged, shifted or unrelated."""
    words: str
    """What is wrong, and what to do."""
    lines: tuple[str, ...]
    """The evidence."""
    corpus: str = ""

    def __str__(self) -> str:
        return "\n".join([f"{self.corpus}: {self.words}", *(f"    {line}" for line in self.lines)])

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def find_doubts(
    corpus: CorpusSettings, blocks: Sequence[Block], languages: tuple[str, str]
) -> list[Doubt]:
    """What looks wrong in blocks of consecutive pairs of a corpus, its first block first.

    ``languages``: codes of source and target; "und" if they are not known.
    """
    pairs = list(chain.from_iterable(blocks))
    if not pairs:
        return []
    files = (corpus.source, corpus.target or corpus.source)
    found = list(_header(pairs[0]))
    # Where these are found, there are no sentences to judge, or not those that should be there.
    basic = [*_encoding(pairs, files, languages), *_subtitles(pairs), *_numbers(pairs)]
    if not basic:
        correspondence = find_correspondence([[*map(_readable, block)] for block in blocks])
        found += _language(pairs, languages, correspondence.common)
        found += _order(correspondence)
    return [Doubt(doubt.kind, doubt.words, doubt.lines, corpus.name) for doubt in basic + found]


def _encoding(
    pairs: Sequence[Pair], files: tuple[str, str], languages: tuple[str, str]
) -> Iterator[Doubt]:
    for name, path, code, lines in zip(
        ("source", "target"), files, languages, _sides(pairs), strict=True
    ):
        wrong = [(number, text) for number, text in lines if _SURROGATE.search(text)]
        if len(wrong) > _INVALID * len(lines):
            words = (
                f"the {name} side is not UTF-8: {_of(wrong, lines)} cannot be read and are dropped"
            )
            encoding = _guess_encoding([text for _, text in wrong], code)
            if encoding is not None:
                wrong = [(number, _recoded(text, encoding)) for number, text in wrong]
                words += f". It reads well as {encoding.upper()}: {_iconv(path, encoding)}"
            yield Doubt("encoding", words, _shown(wrong))
        twice = [(number, once) for number, text in lines if (once := _once(text)) is not None]
        if len(twice) > _TWICE * len(lines):
            words = f"the {name} side was encoded twice in {_of(twice, lines)}, which should be"
            yield Doubt("encoding", words, _shown(twice))


def _header(first: Pair) -> Iterator[Doubt]:
    sides = (first.source.strip().casefold(), first.target.strip().casefold())
    if first.line == 1 and all(side.strip("\"'#").split("_")[0] in _HEADER for side in sides):
        yield Doubt("header", "line 1 is probably a header: take it out", (_pair(first),))


def _subtitles(pairs: Sequence[Pair]) -> Iterator[Doubt]:
    timed = [p for p in pairs if _TIME.match(p.source.strip()) or _TIME.match(p.target.strip())]
    if len(timed) > _TIMES * len(pairs):
        words = (
            f"these are subtitles: {_of(timed, pairs)} are times. Lines of .srt and .vtt files are "
            "no sentences and rarely translate each other: take the text out and align it first"
        )
        yield Doubt("subtitles", words, _pairs(timed))


def _numbers(pairs: Sequence[Pair]) -> Iterator[Doubt]:
    for name, lines in zip(("source", "target"), _sides(pairs), strict=True):
        bare = [(n, text) for n, text in lines if text.strip() and not _LETTER.search(text)]
        if len(bare) > _NUMBERS * len(lines):
            words = f"the {name} side has no letter in {_of(bare, lines)}: is it the right column?"
            yield Doubt("numbers", words, _shown(bare))


def _language(pairs: Sequence[Pair], languages: tuple[str, str], common: float) -> Iterator[Doubt]:
    some = pairs[:: max(1, len(pairs) // _READ)]
    read_as = [identify(text for _, text in lines) for lines in _sides(some)]
    wanted = [base(code) for code in languages]
    wrong = [
        can_identify(code) and bool(found) and code not in found
        for code, found in zip(wanted, read_as, strict=True)
    ]
    if all(wrong) and wanted[0] in read_as[1] and wanted[1] in read_as[0]:
        words = (
            f"the sides are in the wrong order: the source should be {name_of(wanted[0])} and is "
            f"{name_of(wanted[1])}, the target the other way round"
        )
        yield Doubt("language", words, _pairs(pairs))
        return
    for name, code, found, is_wrong, lines in zip(
        ("source", "target"), wanted, read_as, wrong, _sides(some), strict=True
    ):
        if is_wrong:
            reads = " or ".join(sorted(name_of(one) for one in found if one in NAMES))
            words = f"the {name} side should be {name_of(code)} and reads as {reads}"
            yield Doubt("language", words, _shown(lines))
    if common > _SAME_LANGUAGE and wanted[0] != wanted[1] and not any(wrong):
        yield Doubt("language", "both sides seem to be in one language", _pairs(pairs))


def _order(found: Correspondence) -> Iterator[Doubt]:
    if found.pairs and found.reversed > _EXCHANGED + _EXCHANGED_FEW / found.pairs:
        words = f"about {found.reversed:.1%} of the pairs have source and target exchanged"
        yield Doubt("exchanged", words, _pairs(found.exchanged))
    if found.judged < _JUDGED:
        return
    for moved in found.moved:
        words = (
            f"the sides are shifted against each other {_where(moved)}: the translation of source "
            f"line n is target line n {moved.by:+}. Look for a line that only one side has"
        )
        lines = [
            f"line {pair.line}: {_cut(pair.source)} | line {other.line}: {_cut(other.target)}"
            for pair, other in moved.examples
        ]
        yield Doubt("shifted", words, tuple(lines))
    limit = _UNRELATED + (_UNRELATED_FEW / found.judged) ** 1.25
    enough = found.judged >= _UNRELATED_JUDGED or found.unrelated > 0.5
    if enough and found.unrelated > limit and not found.moved:
        words = f"about {found.unrelated:.0%} of the pairs do not seem to translate each other"
        if found.unrelated > 0.5:
            words = "the two sides do not seem to translate each other line by line"
        yield Doubt("unrelated", words, _pairs(found.least))


def _readable(pair: Pair) -> Pair:
    """The pair, or an empty one in its place where cleaning will drop it."""
    return Pair(pair.line, "", "") if _SURROGATE.search(pair.source + pair.target) else pair


def _guess_encoding(texts: Sequence[str], language: str) -> str | None:
    """The encoding in which the invalid bytes of these lines are letters; None if there is none."""
    windows = any("\udc80" <= letter <= "\udc9f" for text in texts for letter in text)
    western = "windows-1252" if windows else "iso-8859-1"
    for encoding in (*_ENCODINGS.get(base(language), ()), western):
        try:
            recoded = "".join(_recoded(text, encoding) for text in texts)
        except UnicodeDecodeError:
            continue
        foreign = [letter for letter in recoded if not letter.isascii()]
        if sum(map(str.isalpha, foreign)) > 0.5 * len(foreign):
            return encoding
    return None


def _recoded(text: str, encoding: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode(encoding)


def _once(text: str) -> str | None:
    """The text as it was before it was encoded a second time; None if it was not."""
    if not _ENCODED_TWICE.search(text):
        return None
    for encoding in ("windows-1252", "latin-1"):
        try:
            return text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
    return None


def _iconv(path: str, encoding: str) -> str:
    """The command that converts a file."""
    name = Path(path).name
    plain = name.removesuffix(".gz")
    convert = f"iconv -f {encoding.upper()} -t UTF-8"
    if plain != name:
        return f"zcat {shlex.quote(name)} | {convert} > {shlex.quote('utf8-' + plain)}"
    return f"{convert} {shlex.quote(name)} > {shlex.quote('utf8-' + name)}"


def _where(moved: Moved) -> str:
    if moved.from_start and moved.to_end:
        return "from beginning to end"
    if moved.from_start:
        return f"up to about line {moved.last:,}"
    return f"from about line {moved.first:,} on" + ("" if moved.to_end else f", to {moved.last:,}")


def _sides(pairs: Sequence[Pair]) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Line numbers and texts of either side."""
    return [(p.line, p.source) for p in pairs], [(p.line, p.target) for p in pairs]


def _of(part: Sequence[object], whole: Sequence[object]) -> str:
    return f"{len(part):,} of {len(whole):,} lines looked at"


def _shown(lines: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(f"line {number}: {_cut(text)}" for number, text in lines[:_EXAMPLES])


def _pairs(pairs: Sequence[Pair]) -> tuple[str, ...]:
    return tuple(_pair(pair) for pair in pairs[:_EXAMPLES])


def _pair(pair: Pair) -> str:
    return f"line {pair.line}: {_cut(pair.source)} | {_cut(pair.target)}"


def _cut(text: str) -> str:
    """For showing: not too long, and fit for any terminal and file."""
    text = _SURROGATE.sub("\ufffd", text)
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…")
