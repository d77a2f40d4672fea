"""Checks of a sample for what would ruin a corpus, with the lines that show it.

A doubt stops nothing: people know better what a text is. ``dragoman data show`` and ``train`` print
the doubts.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from dragoman.base.reading import NOT_UTF8, readable
from dragoman.base.wording import shorten
from dragoman.data.correspondence import Block, Correspondence, Moved, find_correspondence
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.encoding import encoding_of, iconv, pipe
from dragoman.forms.form import Pair
from dragoman.forms.identification import can_identify, identify, names_of
from dragoman.forms.languages import NAMES, base, name_of

_SIDES = ("source", "target")
_EXAMPLES = 3
_SHOWN_CHARACTERS = 70
_INVALID = 0.005
"""A file with at least this share of lines that are not UTF-8 is in another encoding."""
_TWICE = 0.02
"""A file with at least this share of lines that were encoded twice is reported."""
_TIMES = 0.02
"""A file with at least this share of lines that are times is a file of subtitles."""
_NUMBERS = 0.5
"""A side with at least this share of lines without a letter is reported."""
_FEW_VALUES, _MOST_VALUES = 0.05, 100
"""A side with at most this share, and this number, of different values consists of labels, because
sentences rarely repeat."""
_LONGEST_LABEL = 40
"""Labels have at most this many characters, on average over the lines."""
_LABELS_READ = 100
"""Fewer lines than this are not checked for labels."""
_READ = 400
"""The language is identified from this many lines."""
_EXCHANGED = 0.005
_EXCHANGED_FEW = 10
"""More exchanged pairs than 0.005 + 10 / pairs are reported. A word that occurs once or twice does
not show which side it belongs to."""
_MIXED = 0.25
"""From this share of exchanged pairs on, each side contains both languages."""
_COPIED = 0.9
"""A larger share of pairs with two equal sides means that one file was given twice."""
_SAME_LANGUAGE = 0.5
"""The limit for the share of running words that both sides have. Two halves of one text share 0.74
to 0.89, English and German 0.10, English and Korean with program code 0.22."""
_JUDGED = 60
_UNRELATED_JUDGED = 150
_UNRELATED = 0.02
_UNRELATED_FEW = 46
"""More unrelated pairs than 0.02 + (46 / pairs judged) ** 1.25 are reported. Few pairs give a poor
dictionary, and more of the right ones then look wrong (docs/experiments.md)."""
_TOKENISED = 0.05
"""A larger share of lines that are cut into tokens is reported. In plain text at most one line in a
thousand has a space before a full stop or a comma, or an entity (docs/experiments.md)."""
_PIECES = re.compile("\u2581")
_PARTS = re.compile("@@( |$)")
_TOKENS = re.compile(r"\S [.,\u3002\u3001]( |$)|&(apos|quot|amp|lt|gt|#9[13]|#124);| @-@ ")
_CUTS = (
    (_PIECES, "by SentencePiece, which marks spaces as \u2581",
     "sed 's/ //g; s/\u2581/ /g; s/^ //'"),
    (_PARTS, "into parts of words that end in @@", r"sed -E 's/@@( |$)//g'"),
    (_TOKENS, "into tokens, such as full stops with a space before them",
     "sacremoses -l {} detokenize"),
)  # fmt: skip
"""For each kind of cut: its pattern, its description, and the command that undoes it for a
language."""
_TIME = re.compile(r"\d\d:\d\d(:\d\d)?[,.]\d{3} --> ")
_LETTER = re.compile(r"[^\W\d_]")
_ENCODED_TWICE = re.compile(
    "[\u00c2-\u00f4][\u0080-\u00bf\u0152-\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122]"
)
_HEADER = frozenset(
    {"source", "target", "src", "tgt", "trg", "text", "sentence", "translation", "original",
     "reference", "input", "output", "id", *NAMES, *map(str.casefold, NAMES.values())}
)  # fmt: skip


@dataclass(frozen=True)
class Doubt:
    """Something that is probably wrong with a corpus."""

    kind: str
    """The kind: copied, encoding, header, tokenised, subtitles, numbers, labels, language,
    exchanged, shifted or unrelated."""
    words: str
    """The problem and its remedy, in words."""
    lines: tuple[str, ...]
    """Lines of the corpus that show the problem."""
    corpus: str = ""

    def __str__(self) -> str:
        return "\n".join([f"{self.corpus}: {self.words}", *(f"    {line}" for line in self.lines)])

    def to_dict(self) -> dict[str, Any]:
        """Return the doubt as values of JSON."""
        return asdict(self)


def find_doubts(
    corpus: CorpusSettings, blocks: Sequence[Block], languages: tuple[str, str]
) -> list[Doubt]:
    """Return the doubts about blocks of consecutive pairs of a corpus; its first block comes first.

    ``languages``: codes of source and target, or "und" if they are not known.
    """
    pairs = list(chain.from_iterable(blocks))
    if not pairs:
        return []
    files = (corpus.source, corpus.target or corpus.source)
    if copied := list(_find_copied(pairs, corpus)):
        return [Doubt(doubt.kind, doubt.words, doubt.lines, corpus.name) for doubt in copied]
    doubts = [*_header(pairs[0]), *_find_tokenised(pairs, files, languages)]
    # After these doubts there are no sentences to judge, or not the right ones.
    basic = [*_encoding(pairs, files, languages), *_subtitles(pairs), *_numbers(pairs),
             *_labels(pairs)]  # fmt: skip
    if not basic:
        correspondence = find_correspondence([[*map(_readable, block)] for block in blocks])
        if correspondence.reversed < _MIXED:  # else each side has both languages
            doubts += _language(pairs, languages, correspondence.common)
        doubts += _order(correspondence, languages)
    return [Doubt(doubt.kind, doubt.words, doubt.lines, corpus.name) for doubt in basic + doubts]


def _find_copied(pairs: Sequence[Pair], corpus: CorpusSettings) -> Iterator[Doubt]:
    same = [p for p in pairs if p.source == p.target and p.source.strip()]
    if len(same) > _COPIED * len(pairs):
        words = f"source and target are the same text in {_of(same, pairs)}"
        if corpus.target is not None and os.path.realpath(corpus.source) == os.path.realpath(
            corpus.target
        ):
            words = "the same file is given twice, as source and as target"
        yield Doubt("copied", words, _pairs(same))


def _encoding(
    pairs: Sequence[Pair], files: tuple[str, str], languages: tuple[str, str]
) -> Iterator[Doubt]:
    for name, path, code, lines in zip(_SIDES, files, languages, _sides(pairs), strict=True):
        wrong = [(number, text) for number, text in lines if NOT_UTF8.search(text)]
        if len(wrong) > _INVALID * len(lines):
            words = (
                f"the {name} side is not UTF-8: {_of(wrong, lines)} cannot be read and are dropped"
            )
            given = b"\n".join(text.encode("utf-8", "surrogateescape") for _, text in wrong)
            encoding = encoding_of(given, code)
            if encoding is not None:
                read = given.decode(encoding, "replace").split("\n")
                wrong = [(number, text) for (number, _), text in zip(wrong, read, strict=True)]
                reads = "are probably" if code == "und" else "read well as"
                words += f". They {reads} {encoding}"
                if all(text.isascii() for _, text in lines if not NOT_UTF8.search(text)):
                    words += f": {iconv(path, encoding)}"
                else:
                    words += "; the other lines are UTF-8, so convert only these"
            yield Doubt("encoding", words, _show(wrong))
        twice = [(number, once) for number, text in lines if (once := _once(text)) is not None]
        if len(twice) > _TWICE * len(lines):
            words = f"the {name} side was encoded twice in {_of(twice, lines)}, which should be"
            yield Doubt("encoding", words, _show(twice))


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


def _find_tokenised(
    pairs: Sequence[Pair], files: tuple[str, str], languages: tuple[str, str]
) -> Iterator[Doubt]:
    for name, path, code, lines in zip(_SIDES, files, languages, _sides(pairs), strict=True):
        for mark, how, command in _CUTS:
            cut = [(number, text) for number, text in lines if mark.search(text)]
            if len(cut) > _TOKENISED * len(lines):
                undo = pipe(path, command.format("en" if code == "und" else base(code)), "plain-")
                words = f"the {name} side is cut {how}, in {_of(cut, lines)}; undo it"
                # A file with both sides has columns, which the command would not keep.
                words += f": {undo}" if files[0] != files[1] else f" with {undo.split(' <')[0]}"
                yield Doubt("tokenised", words, _show(cut))
                break


def _labels(pairs: Sequence[Pair]) -> Iterator[Doubt]:
    if len(pairs) < _LABELS_READ:
        return
    values = [Counter(text.strip() for _, text in lines) for lines in _sides(pairs)]
    most = min(_MOST_VALUES, _FEW_VALUES * len(pairs))
    source, target = values
    for name, side, other in (("source", source, target), ("target", target, source)):
        length = sum(len(value) * count for value, count in side.items()) / len(pairs)
        if 1 < len(side) <= most and length <= _LONGEST_LABEL and len(other) > 2 * len(side):
            first = ", ".join(repr(value[:_LONGEST_LABEL]) for value, _ in side.most_common(3))
            words = (
                f"the {name} side has {len(side):,} different values in {len(pairs):,} lines "
                f"looked at, such as {first}: these look like labels, not like translations. To "
                "learn which label a text has: --task classification"
            )
            yield Doubt("labels", words, _pairs(pairs))


def _numbers(pairs: Sequence[Pair]) -> Iterator[Doubt]:
    for name, lines in zip(_SIDES, _sides(pairs), strict=True):
        bare = [(n, text) for n, text in lines if text.strip() and not _LETTER.search(text)]
        if len(bare) > _NUMBERS * len(lines):
            words = f"the {name} side has no letter in {_of(bare, lines)}: is it the right column?"
            yield Doubt("numbers", words, _show(bare))


def _language(pairs: Sequence[Pair], languages: tuple[str, str], common: float) -> Iterator[Doubt]:
    some = pairs[:: max(1, len(pairs) // _READ)]
    read_as = [identify(text for _, text in lines) for lines in _sides(some)]
    wanted = [base(code) for code in languages]
    wrong = [
        can_identify(code) and bool(read) and code not in read
        for code, read in zip(wanted, read_as, strict=True)
    ]
    if all(wrong) and wanted[0] in read_as[1] and wanted[1] in read_as[0]:
        words = (
            f"the sides are in the wrong order: the source should be {name_of(wanted[0])} and is "
            f"{name_of(wanted[1])}, the target the other way round"
        )
        yield Doubt("language", words, _pairs(pairs))
        return
    for name, code, read, is_wrong, lines in zip(
        _SIDES, wanted, read_as, wrong, _sides(some), strict=True
    ):
        if is_wrong:
            words = f"the {name} side should be {name_of(code)} and reads as {names_of(read)}"
            yield Doubt("language", words, _show(lines))
    if common > _SAME_LANGUAGE and wanted[0] != wanted[1] and not any(wrong):
        yield Doubt("language", "both sides seem to be in one language", _pairs(pairs))


def _order(pairing: Correspondence, languages: tuple[str, str]) -> Iterator[Doubt]:
    if pairing.pairs and pairing.reversed > _EXCHANGED + _EXCHANGED_FEW / pairing.pairs:
        words = f"about {pairing.reversed:.1%} of the pairs have source and target exchanged"
        shown = pairing.exchanged
        if pairing.reversed > _MIXED and _in_order(shown, languages):
            shown = pairing.others
        yield Doubt("exchanged", words, _pairs(shown))
    if pairing.judged < _JUDGED:
        return
    for moved in pairing.moved:
        words = (
            f"the sides are shifted against each other {_where(moved)}: the translation of source "
            f"line n is target line n {moved.by:+}. Look for a line that only one side has"
        )
        lines = [
            f"line {pair.line}: {_quote(pair.source)} | line {other.line}: {_quote(other.target)}"
            for pair, other in moved.examples
        ]
        yield Doubt("shifted", words, tuple(lines))
    limit = _UNRELATED + (_UNRELATED_FEW / pairing.judged) ** 1.25
    enough = pairing.judged >= _UNRELATED_JUDGED or pairing.unrelated > 0.5
    if enough and pairing.unrelated > limit and not pairing.moved:
        words = f"about {pairing.unrelated:.0%} of the pairs do not seem to translate each other"
        if pairing.unrelated > 0.5:
            words = "the two sides do not seem to translate each other line by line"
        yield Doubt("unrelated", words, _pairs(pairing.least))


def _in_order(pairs: Sequence[Pair], languages: tuple[str, str]) -> bool:
    source, target = map(base, languages)
    return source in identify(pair.source for pair in pairs) or target in identify(
        pair.target for pair in pairs
    )


def _readable(pair: Pair) -> Pair:
    """Return the pair, or an empty pair on its line if cleaning will drop it."""
    return Pair(pair.line, "", "") if NOT_UTF8.search(pair.source + pair.target) else pair


def _once(text: str) -> str | None:
    """Return the text before its second encoding, or None if it was encoded only once."""
    if not _ENCODED_TWICE.search(text):
        return None
    for encoding in ("windows-1252", "latin-1"):
        try:
            return text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
    return None


def _where(moved: Moved) -> str:
    if moved.from_start and moved.to_end:
        return "from beginning to end"
    if moved.from_start:
        return f"up to about line {moved.last:,}"
    return f"from about line {moved.first:,} on" + ("" if moved.to_end else f", to {moved.last:,}")


def _sides(pairs: Sequence[Pair]) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return the line numbers and texts of both sides."""
    return [(p.line, p.source) for p in pairs], [(p.line, p.target) for p in pairs]


def _of(part: Sequence[object], whole: Sequence[object]) -> str:
    return f"{len(part):,} of {len(whole):,} lines looked at"


def _show(lines: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(f"line {number}: {_quote(text)}" for number, text in lines[:_EXAMPLES])


def _pairs(pairs: Sequence[Pair]) -> tuple[str, ...]:
    return tuple(_pair(pair) for pair in pairs[:_EXAMPLES])


def _pair(pair: Pair) -> str:
    return f"line {pair.line}: {_quote(pair.source)} | {_quote(pair.target)}"


def _quote(text: str) -> str:
    """Return the text shortened, and safe to print on any terminal."""
    return repr(shorten(readable(text), _SHOWN_CHARACTERS))
