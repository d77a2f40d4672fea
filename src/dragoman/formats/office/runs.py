"""The runs of a paragraph: text of one font each, and what stands between them.

WordprocessingML, DrawingML and SpreadsheetML (ECMA-376) share them: a paragraph of runs, in each a
font and text. Programs cut runs at every edit, so equal neighbours are read as one. The font of
most of a paragraph is not noted; runs of other fonts are elements that may stand several times or
not at all, whose words take them along.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dragoman.formats.office.atoms import Atom, atoms_of
from dragoman.formats.units.unit import Code, Target, Unit, says_something
from dragoman.formats.xml.tokens import Xml, escaped


@dataclass(slots=True)
class RunUnit:
    """A unit of a paragraph, and how it is written."""

    unit: Unit
    begin: int
    end: int
    base: str
    """The font of what has no other."""
    first: str | None
    """The font of the run that is open where it begins; None: none is."""
    last: str | None
    run: str
    """The name of a run as it is written, its prefix included,"""
    text: str
    """and that of its text."""
    codes: list[Atom | str | None] = field(default_factory=list)
    """For each code of the unit what stands in the file, or the font that begins, or None where
    one ends."""
    runs: tuple[int, int, str | None, str | None] = (0, 0, None, None)
    """``begin``, ``end``, ``first`` and ``last`` with the whole of its runs, where it is the text
    of one alone."""


def units_in(xml: Xml, first: int, kept: set[int]) -> Iterator[RunUnit]:
    """The units of the paragraph that begins with token ``first``. ``kept``: the texts that are
    not translated, by the tokens that begin them."""
    segment: list[Atom] = []
    for atom in atoms_of(xml, first, kept):
        if atom.kind == "break":
            yield from _unit(xml, segment)
            segment = []
        else:
            segment.append(atom)
    yield from _unit(xml, segment)


def _unit(xml: Xml, atoms: Sequence[Atom]) -> Iterator[RunUnit]:
    """The unit of a segment, if it says something: from its first text to its last."""
    texts = [n for n, atom in enumerate(atoms) if atom.kind == "text" and atom.text]
    if not texts or not says_something("".join(atoms[n].text for n in texts)):
        return
    first, last = _balanced(atoms, texts[0], texts[-1] + 1)
    inner = atoms[first:last]
    characters: Counter[str] = Counter()
    for atom in inner:
        if atom.kind == "text":
            characters[atom.font] += len(atom.text)
    base = characters.most_common(1)[0][0]
    begin, open_first = _edge(xml, atoms[first], first=True)
    end, open_last = _edge(xml, atoms[last - 1], first=False)
    runs = begin, end, open_first, open_last
    if len(inner) == 1:  # the run stays as it is
        begin, end, open_first, open_last = inner[0].begin, inner[0].end, base, base
    text_name = name_at(xml, atoms[texts[0]].begin)
    run = atoms[texts[0]].run
    run_name = name_at(xml, xml.tokens[run].begin) if run >= 0 else ""
    made = RunUnit(Unit(""), begin, end, base, open_first, open_last, run_name, text_name)
    made.runs = runs
    made.unit = _with_codes(made, inner)
    yield made


def _balanced(atoms: Sequence[Atom], first: int, last: int) -> tuple[int, int]:
    """Wider, so that both ends of a wrapper are in it, where both are there."""
    places = {(atom.kind, atom.wrapper): n for n, atom in enumerate(atoms) if atom.wrapper >= 0}
    while True:
        low, high = first, last
        for atom in atoms[first:last]:
            if atom.wrapper >= 0:
                other = "closes" if atom.kind == "opens" else "opens"
                place = places.get((other, atom.wrapper), first)
                low, high = min(low, place), max(high, place + 1)
        if (low, high) == (first, last):
            return first, last
        first, last = low, high


def _edge(xml: Xml, atom: Atom, *, first: bool) -> tuple[int, str | None]:
    """Where the span of a unit begins or ends, and the font of the run that is open there."""
    if atom.run < 0:
        return (atom.begin if first else atom.end), None
    start = xml.tokens[atom.run]
    stop = xml.tokens[start.partner]
    if first:
        return (start.begin, None) if atom.begins_run else (atom.begin, atom.font)
    return (stop.end, None) if atom.ends_run else (atom.end, atom.font)


def name_at(xml: Xml, place: int) -> str:
    """The name of the tag that begins there, as it is written."""
    end = place + 1
    while xml.data[end : end + 1] not in (b" ", b">", b"/", b"\t", b"\n", b"\r"):
        end += 1
    return xml.written(place + 1, end)


def _with_codes(made: RunUnit, atoms: Sequence[Atom]) -> Unit:
    pieces, length, codes = list[str](), 0, list[Code]()
    mark: int | None = None  # the code that began the font that is not the base
    begun: dict[int, int] = {}
    is_orphan = False

    def add(what: Atom | str | None, **more: bool | int | None) -> int:
        codes.append(Code(length, **more))  # type: ignore[arg-type]
        made.codes.append(what)
        return len(codes) - 1

    def pair(first: int, second: int) -> None:
        for one, other in ((first, second), (second, first)):
            codes[one] = replace(codes[one], partner=other)

    def end_mark() -> None:
        nonlocal mark
        if mark is not None:
            pair(mark, add(None, closes=True, repeats=True))
            mark = None

    # Whether a word, or what is shown as one, stands right before and right behind.
    before, behind = False, [False] * len(atoms)
    for n in range(len(atoms) - 2, -1, -1):
        following = atoms[n + 1]
        is_text = following.kind == "text" and following.text
        word = following.text[0].isalnum() if is_text else following.shows
        behind[n] = word or (behind[n + 1] and not is_text)
    for n, atom in enumerate(atoms):
        if atom.kind == "text":
            if not atom.text:
                continue
            font = made.codes[mark] if mark is not None else made.base
            if atom.font != font:
                end_mark()
                if atom.font != made.base:
                    mark = add(atom.font, opens=True, repeats=True)
            pieces.append(atom.text)
            length += len(atom.text)
            before = atom.text[-1].isalnum()
            continue
        if atom.wrapper >= 0:
            end_mark()
        if atom.kind == "opens":
            begun[atom.wrapper] = add(atom, opens=True)
        elif atom.kind == "closes":
            number = add(atom, closes=True)
            if atom.wrapper in begun:
                pair(begun.pop(atom.wrapper), number)
            else:
                is_orphan = True
        else:
            add(
                atom,
                apart_before=atom.shows and not before,
                apart_behind=atom.shows and not behind[n],
            )
            before = before or atom.shows
    end_mark()
    return Unit("".join(pieces), tuple(codes), ordered=is_orphan or bool(begun))


def written(one: RunUnit, target: Target, span: Callable[[int, int], str], keep_space: bool) -> str:
    """A translation as runs. ``span``: gives what stands in the file, its own units translated;
    ``keep_space``: whether texts say that their spaces count."""
    current, mark = one.first, one.base
    out: list[str] = []
    space = ' xml:space="preserve"' if keep_space else ""

    def run(font: str | None) -> None:
        nonlocal current
        if font == current:
            return
        if current is not None and one.run:
            out.append(f"</{one.run}>")
        if font is not None and one.run:
            out.append(f"<{one.run}>{font}")
        current = font

    for item in target:
        if isinstance(item, str):
            if item:
                run(mark)
                out.append(f"<{one.text}{space}>{escaped(item)}</{one.text}>")
            continue
        what = one.codes[item]
        if isinstance(what, Atom):
            run(what.font if what.run >= 0 else None)
            out.append(span(what.begin, what.end))
        else:
            mark = what if what is not None else one.base
    run(one.last)
    return "".join(out)
