"""The runs of a paragraph: texts of one font each, and other elements between them.

WordprocessingML, DrawingML and SpreadsheetML (ECMA-376) share them: a paragraph consists of runs,
each with a font and text. Programs split runs at every edit, so equal neighbours are read as one.
The most frequent font of a paragraph needs no codes; runs of other fonts are elements that may be
repeated or left out, and follow their words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from dragoman.formats.units.document import Code, Target, Unit, says_something
from dragoman.formats.units.xml import Rendered, Xml, escape

WRAPPERS = {
    *("hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo", "sdt"),
}
"""Elements around runs, whose text is translated."""
BREAKS = {"tab", "br", "cr", "ptab"}
"""The elements that end a running text."""
_PASSED_OVER = {"proofErr", "lastRenderedPageBreak"}
"""Marks that Word generates; they are left out of rewritten text."""
_NO_CONTENT = {"pPr", "rPr", "endParaRPr", "rPh", "phoneticPr"}
_SHOWN = {"noBreakHyphen", "sym", "fldSimple", "fld", "oMath", "footnoteReference", "drawing"}


@dataclass(frozen=True, slots=True)
class Atom:
    """A part of a paragraph: a text, a code, one end of a wrapper, or a break."""

    kind: str
    """The kind: text, code, opens, closes or break."""
    begin: int
    end: int
    text: str = ""
    font: str = ""
    """The font of a text, or of the run that contains a code."""
    run: int = -1
    """The number of the start tag of the run that contains it; -1 outside of runs."""
    shows: bool = False
    begins_run: bool = False
    """True if only the font of its run comes before it in the run."""
    ends_run: bool = False
    """True if nothing comes after it in the run."""
    wrapper: int = -1
    """The number of the start tag of the wrapper."""


def _atoms(xml: Xml, first: int, kept: set[int]) -> Iterator[Atom]:
    tokens = xml.tokens
    at, last = first + 1, tokens[first].partner
    wrappers: list[int] = []
    while at < last:
        token = tokens[at]
        if token.kind == "end" and wrappers and token.partner == wrappers[-1]:
            begin = _inner_end(xml, wrappers[-1])
            yield Atom("closes", begin, token.end, wrapper=wrappers.pop())
        elif token.kind == "other":  # a comment
            yield Atom("code", token.begin, token.end)
        elif token.kind == "end" or token.name in _NO_CONTENT or token.kind != "start":
            at = token.partner if token.kind == "start" else at
        elif token.name == "r":
            yield from _run(xml, at, kept)
            at = token.partner
        elif token.name == "t":
            yield _text(xml, at)
            at = token.partner
        elif token.name in BREAKS:
            yield Atom("break", token.begin, tokens[token.partner].end)
            at = token.partner
        elif token.name in WRAPPERS and (inner := _inner_start(xml, at)) is not None:
            yield Atom("opens", token.begin, tokens[inner].end, wrapper=at)
            wrappers.append(at)
            at = inner
        else:
            if token.name not in _PASSED_OVER:
                end = tokens[token.partner].end
                yield Atom("code", token.begin, end, shows=token.name in _SHOWN)
            at = token.partner
        at += 1


def _inner_start(xml: Xml, wrapper: int) -> int | None:
    """The token after which the runs of a wrapper come; None if it has none."""
    tokens = xml.tokens
    if xml.is_empty(wrapper):
        return None
    if tokens[wrapper].name != "sdt":
        return wrapper
    contents = (n for n in xml.children(wrapper) if tokens[n].name == "sdtContent")
    return next((n for n in contents if not xml.is_empty(n)), None)


def _inner_end(xml: Xml, wrapper: int) -> int:
    inner = _inner_start(xml, wrapper)
    assert inner is not None, "only wrappers with runs are opened"
    return xml.tokens[xml.tokens[inner].partner].begin


def _run(xml: Xml, number: int, kept: set[int]) -> Iterator[Atom]:
    tokens = xml.tokens
    end = tokens[number].partner
    font, children, at = "", list[int](), number + 1
    is_odd = False  # text outside of its elements, or a font after its text
    while at < end:
        token = tokens[at]
        if token.kind == "start":
            if token.name == "rPr":
                is_odd |= bool(font or children)
                font = xml.text_between(token.begin, tokens[token.partner].end)
            else:
                children.append(at)
            at = token.partner
        elif token.kind == "other":
            children.append(at)
        elif token.text.strip():
            is_odd = True
        at += 1
    has_text = any(tokens[n].name == "t" and n not in kept for n in children)
    if not has_text and not any(tokens[n].name in BREAKS for n in children):
        if all(tokens[n].name in _PASSED_OVER for n in children) and children:
            return
        shows = any(tokens[n].name in _SHOWN or tokens[n].name == "t" for n in children)
        yield Atom("code", tokens[number].begin, tokens[end].end, shows=shows)
        return
    for child in children:
        token = tokens[child]
        begins, ends = child == children[0] and not is_odd, child == children[-1] and not is_odd
        if token.name == "t" and child not in kept:
            yield _text(xml, child, font, number, begins, ends)
        elif token.name in BREAKS:
            yield Atom("break", token.begin, tokens[token.partner].end, run=number)
        elif token.name not in _PASSED_OVER:
            stop = token.end if token.kind == "other" else tokens[token.partner].end
            shows = token.name in _SHOWN
            yield Atom(
                "code", token.begin, stop, font=font, run=number, shows=shows,
                begins_run=begins, ends_run=ends,
            )  # fmt: skip


def _text(
    xml: Xml, number: int, font: str = "", run: int = -1, begins: bool = False, ends: bool = False
) -> Atom:
    token = xml.tokens[number]
    text = "".join(part.text for part in xml.tokens[number : token.partner] if part.kind == "text")
    end = xml.tokens[token.partner].end
    return Atom("text", token.begin, end, text, font, run, False, begins, ends)


def _merge(atoms: Iterator[Atom]) -> Iterator[Atom]:
    """Merge consecutive codes outside of runs: a field has several runs."""
    before: Atom | None = None
    for atom in atoms:
        joins = before is not None and before.kind == atom.kind == "code"
        if before is not None and joins and before.run < 0 and atom.run < 0:
            shows = before.shows or atom.shows
            before = Atom("code", before.begin, atom.end, shows=shows)
            continue
        if before is not None:
            yield before
        before = atom
    if before is not None:
        yield before


@dataclass(slots=True)
class RunUnit:
    """A unit of a paragraph, with what is needed to write it."""

    unit: Unit
    begin: int
    end: int
    base: str
    """The font of text without another font."""
    first: str | None
    """The font of the run that is open at its beginning; None without one."""
    last: str | None
    run: str
    """The name of a run as written, with its prefix."""
    text: str
    """The name of a text as written, with its prefix."""
    codes: list[Atom | str | None] = field(default_factory=list)
    """For each code of the unit, its place in the file, or the font that begins; None if a font
    ends."""
    runs: tuple[int, int, str | None, str | None] = (0, 0, None, None)
    """``begin``, ``end``, ``first`` and ``last`` including its whole runs, for a unit that is the
    text of one run."""


def units_in(xml: Xml, first: int, kept: set[int]) -> Iterator[RunUnit]:
    """The units of the paragraph that begins with token ``first``. ``kept``: the numbers of the
    start tags of texts that are not translated."""
    segment: list[Atom] = []
    for atom in _merge(_atoms(xml, first, kept)):
        if atom.kind == "break":
            yield from _unit(xml, segment)
            segment = []
        else:
            segment.append(atom)
    yield from _unit(xml, segment)


def _unit(xml: Xml, atoms: Sequence[Atom]) -> Iterator[RunUnit]:
    """The unit of a segment, from its first text to its last, if it has text to translate."""
    texts = [n for n, atom in enumerate(atoms) if atom.kind == "text" and atom.text]
    if not texts or not says_something("".join(atoms[n].text for n in texts)):
        return
    first, last = _balance(atoms, texts[0], texts[-1] + 1)
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


def _balance(atoms: Sequence[Atom], first: int, last: int) -> tuple[int, int]:
    """Widen a range so that it contains both ends of each wrapper, if both are there."""
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
    """The begin or end of a unit's span, and the font of the run that is open there."""
    if atom.run < 0:
        return (atom.begin if first else atom.end), None
    start = xml.tokens[atom.run]
    stop = xml.tokens[start.partner]
    if first:
        return (start.begin, None) if atom.begins_run else (atom.begin, atom.font)
    return (stop.end, None) if atom.ends_run else (atom.end, atom.font)


def name_at(xml: Xml, place: int) -> str:
    """The name of the tag at a place, as written."""
    end = place + 1
    while xml.data[end : end + 1] not in (b" ", b">", b"/", b"\t", b"\n", b"\r"):
        end += 1
    return xml.text_between(place + 1, end)


def _with_codes(made: RunUnit, atoms: Sequence[Atom]) -> Unit:
    pieces, length, codes = list[str](), 0, list[Code]()
    mark: int | None = None  # the code that began a font other than the base
    begun: dict[int, int] = {}
    is_orphan = False

    def add(what: Atom | str | None, **more: bool | int | None) -> int:
        codes.append(Code(length, **more))  # type: ignore[arg-type]
        made.codes.append(what)
        return len(codes) - 1

    def pair(first: int, second: int) -> None:
        for number, partner in ((first, second), (second, first)):
            codes[number] = replace(codes[number], partner=partner)

    def end_mark() -> None:
        nonlocal mark
        if mark is not None:
            pair(mark, add(None, closes=True, repeats=True))
            mark = None

    # True where a word, or a code that shows text, comes right before or right after.
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


def write_runs(unit: RunUnit, target: Target, span: Rendered, keep_space: bool) -> str:
    """Write a translation as runs. ``span``: renders a span of the file, with its own units
    translated; ``keep_space``: texts are marked to keep their spaces."""
    current, mark = unit.first, unit.base
    out: list[str] = []
    space = ' xml:space="preserve"' if keep_space else ""

    def run(font: str | None) -> None:
        nonlocal current
        if font == current:
            return
        if current is not None and unit.run:
            out.append(f"</{unit.run}>")
        if font is not None and unit.run:
            out.append(f"<{unit.run}>{font}")
        current = font

    for item in target:
        if isinstance(item, str):
            if item:
                run(mark)
                out.append(f"<{unit.text}{space}>{escape(item)}</{unit.text}>")
            continue
        what = unit.codes[item]
        if isinstance(what, Atom):
            run(what.font if what.run >= 0 else None)
            out.append(span(what.begin, what.end))
        else:
            mark = what if what is not None else unit.base
    run(unit.last)
    return "".join(out)
