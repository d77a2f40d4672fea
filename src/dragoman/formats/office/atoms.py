"""The parts of a paragraph: texts of one font each, codes, wrappers and breaks, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.formats.xml.tokens import Xml

WRAPPERS = {
    *("hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo", "sdt"),
}
"""Elements around runs, whose text is translated."""
BREAKS = {"tab", "br", "cr", "ptab"}
"""What ends running text."""
_PASSED_OVER = {"proofErr", "lastRenderedPageBreak"}
"""Marks that Word makes anew; where text is written anew they are left out."""
_NO_CONTENT = {"pPr", "rPr", "endParaRPr", "rPh", "phoneticPr"}
_SHOWN = {"noBreakHyphen", "sym", "fldSimple", "fld", "oMath", "footnoteReference", "drawing"}


@dataclass(frozen=True, slots=True)
class Atom:
    """A part of a paragraph."""

    kind: str
    """text, code, opens, closes or break."""
    begin: int
    end: int
    text: str = ""
    font: str = ""
    """Of a text, or of the run that a code stands in."""
    run: int = -1
    """The number of the token that begins the run, of what stands inside one; -1: none."""
    shows: bool = False
    begins_run: bool = False
    """Whether nothing but the font of its run stands before it in there."""
    ends_run: bool = False
    """Whether nothing stands behind it in there."""
    wrapper: int = -1
    """The number of the token that begins the wrapper."""


def atoms_of(xml: Xml, first: int, kept: set[int]) -> Iterator[Atom]:
    """The parts of the paragraph that begins with token ``first``. ``kept``: the texts that are
    not translated, by the tokens that begin them."""
    return _merged(_atoms(xml, first, kept))


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
    """The token behind which the runs of a wrapper stand; None where it has none."""
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
    is_odd = False  # text outside of its elements, or a font behind what it is for
    while at < end:
        token = tokens[at]
        if token.kind == "start":
            if token.name == "rPr":
                is_odd |= bool(font or children)
                font = xml.written(token.begin, tokens[token.partner].end)
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
    text = "".join(one.text for one in xml.tokens[number : token.partner] if one.kind == "text")
    end = xml.tokens[token.partner].end
    return Atom("text", token.begin, end, text, font, run, False, begins, ends)


def _merged(atoms: Iterator[Atom]) -> Iterator[Atom]:
    """Codes outside of runs that follow each other are one: a field has several runs."""
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
