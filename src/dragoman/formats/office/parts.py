"""Parts of an office document that hold paragraphs, and their units in the order of reading."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from dragoman.formats.office.runs import RunUnit, units_in, written
from dragoman.formats.units.document import Splice
from dragoman.formats.units.inline import spaced
from dragoman.formats.units.unit import Target
from dragoman.formats.xml.tokens import Xml


@dataclass(frozen=True)
class Part:
    """A file of XML with its units."""

    xml: Xml
    units: Sequence[RunUnit]
    keep_space: bool
    """Whether texts say that their spaces count."""

    @classmethod
    def read(cls, data: bytes, name: str, paragraphs: set[str], *, keep_space: bool = True) -> Part:
        """``paragraphs``: the names of the elements that hold runs."""
        xml = Xml.read(data, name)
        kept = _in_fields(xml)
        units: list[RunUnit] = []
        for number, token in enumerate(xml.tokens):
            if token.kind == "start" and token.name in paragraphs:
                units += units_in(xml, number, kept)
        return cls(xml, units, keep_space)

    def without(self, texts: Collection[str]) -> Part:
        """The part, with some texts left as they are."""
        return replace(self, units=[one for one in self.units if one.unit.text not in texts])

    def join(
        self,
        targets: Sequence[Target],
        extra: Sequence[Splice] = (),
        font: Callable[[str], str] | None = None,
    ) -> bytes:
        """The part with its translations. ``extra``: what else is replaced. ``font``: makes the
        fonts of what is translated."""
        replaced: list[tuple[int, int, RunUnit | str, Target]] = [
            (splice.begin, splice.end, splice.written, []) for splice in extra
        ]
        for one, target in zip(self.units, targets, strict=True):
            if font is not None:
                wide = _in_font(one, font)
                replaced.append((wide.begin, wide.end, wide, target))
            elif target != one.unit.as_it_is:
                replaced.append((one.begin, one.end, one, target))
        # What is put between stands before what begins there, and what holds others before these.
        replaced.sort(key=lambda one: (one[0], one[1] > one[0], -one[1]))
        begins = [begin for begin, *_ in replaced]

        def rendered(begin: int, end: int) -> str:
            """What stands in a span, with all that is replaced in it."""
            out, at = [], begin
            for start, stop, what, target in islice(replaced, bisect_left(begins, begin), None):
                if start >= end:
                    break
                # A unit may begin with a code of its own, and something be put before it.
                is_around = stop > end or (start == stop == begin > 0)
                if start >= at and not is_around:
                    out.append(self.xml.written(at, start))
                    if isinstance(what, str):
                        out.append(what)
                    else:
                        pieces = spaced(what.unit, target)
                        out.append(written(what, pieces, rendered, self.keep_space))
                    at = stop
            return "".join(out) + self.xml.written(at, end)

        if not replaced:
            return self.xml.spliced([])
        length = len(self.xml.data)
        return self.xml.spliced([Splice(0, length, rendered(0, length))])


def _in_font(one: RunUnit, font: Callable[[str], str]) -> RunUnit:
    """A unit with other fonts; that of one run takes its run with it."""
    codes = [font(what) if isinstance(what, str) else what for what in one.codes]
    begin, end, first, last = one.runs
    return replace(
        one, begin=begin, end=end, first=first, last=last, base=font(one.base), codes=codes
    )


def _in_fields(xml: Xml) -> set[int]:
    """The texts that a field shows, which the program makes anew: a number of a page, a date, a
    table of contents. The text of a link is no such."""
    kept: set[int] = set()
    fields: list[list[_Field]] = [[]]
    for number, token in enumerate(xml.tokens):
        if token.name == "txbxContent":
            if token.kind == "start":
                fields.append([])
            elif len(fields) > 1:
                fields.pop()
        elif token.kind != "start":
            if token.kind == "text" and fields[-1] and not fields[-1][-1].shows:
                fields[-1][-1].said += token.text
        elif token.name == "fldChar":
            kind = next((v for k, v in token.attributes.items() if k.endswith("fldCharType")), "")
            if kind == "begin":
                fields[-1].append(_Field())
            elif fields[-1] and kind == "separate":
                fields[-1][-1].shows = True
            elif fields[-1] and kind == "end":
                fields[-1].pop()
        elif token.name == "t" and any(not one.is_link for one in fields[-1]):
            kept.add(number)
    return kept


@dataclass
class _Field:
    said: str = ""
    """Its instruction."""
    shows: bool = False
    """Whether what it shows has begun."""

    @property
    def is_link(self) -> bool:
        return self.shows and self.said.split()[:1] == ["HYPERLINK"]
