"""The elements that are open at a place of an HTML document, as browsers determine them.

https://html.spec.whatwg.org/multipage/parsing.html#parsing-main-inbody. Browsers end elements
implicitly (``<p>`` before ``<p>``) and reopen some (``<b>`` in the next paragraph). This module
follows them as far as it matters for the translate attribute; it builds no tree. Content that is
misplaced in a table, outside its cells, is treated as if it came before the table, as in browsers.

The sets of elements before ``ENDS_TEXT`` say how elements affect those that are open; the other
sets, their role in translation.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import takewhile, zip_longest

from dragoman.formats.html.tokens import HtmlToken

MAX_OPEN = 128
"""The most nested elements that are followed; browsers have such a limit too."""

VOID = {
    *("area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "image", "img"),
    *("input", "keygen", "link", "meta", "param", "source", "track", "wbr"),
}
"""The void elements, which have no content."""

FORMATTING = {
    *("a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt"),
    "u",
}
"""Formatting elements, which continue in the next block until they are ended."""

HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
BLOCKS = {
    *("address", "article", "aside", "blockquote", "center", "details", "dialog", "dir", "div"),
    *("dl", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "listing"),
    *("main", "menu", "nav", "ol", "pre", "search", "section", "summary", "ul"),
}
ENDS_P = {*BLOCKS, *HEADINGS, "p", "li", "dd", "dt", "hr", "plaintext", "xmp"}
"""Elements before which a paragraph ends."""
IMPLIED = {"dd", "dt", "li", "optgroup", "option", "p", "rb", "rp", "rt", "rtc"}
"""Elements that may end without an end tag."""
CELLS = {"td", "th", "caption"}
"""Parts of a table that contain text."""
IN_TABLE = {"tbody", "thead", "tfoot", "tr", "table"}
"""Parts of a table that contain only other parts."""
MARKERS = {*CELLS, "applet", "marquee", "object", "template"}
"""Elements inside which formatting elements from outside do not continue."""
SPECIAL = {
    *BLOCKS, *HEADINGS, *MARKERS, *IN_TABLE, *VOID, "p", "li", "dd", "dt", "body", "button",
    "colgroup", "frameset", "head", "html", "iframe", "noembed", "noframes", "noscript",
    "plaintext", "script", "select", "style", "textarea", "title", "xmp",
}  # fmt: skip
"""Elements that the end tag of another element does not end."""
SCOPE = {*MARKERS, "html", "table"}
"""Elements across which most end tags do not reach."""
IN_HEAD = {
    *("base", "basefont", "bgsound", "head", "html", "link", "meta", "noframes", "noscript"),
    *("script", "style", "template", "title"),
}
"""Elements that may be in the head of a document."""
PARTS = {*CELLS, *IN_TABLE, "colgroup", "script", "style", "template"} - {"table"}
"""Elements that may be in a table without being misplaced."""
_GROUPS = {"caption", "colgroup", "tbody", "thead", "tfoot"}
TABLE_PARTS = {
    **dict.fromkeys((*_GROUPS, "col"), _GROUPS),
    "tr": {"caption", "colgroup", "tr"},
    "td": {"caption", "colgroup", "td", "th"},
    "th": {"caption", "colgroup", "td", "th"},
}
"""Parts of a table, each with the open parts that its start tag ends."""
HTML_IN = {
    "svg": {"desc", "foreignobject", "title"},
    "math": {"annotation-xml", "mi", "mn", "mo", "ms", "mtext"},
}
"""Elements of SVG and MathML whose content is HTML."""
ENDS_FOREIGN = {
    *("b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em"),
    *("embed", "h1", "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing"),
    *("menu", "meta", "nobr", "ol", "p", "pre", "ruby", "s", "small", "span", "strong", "strike"),
    *("sub", "sup", "table", "tt", "u", "ul", "var"),
}
"""HTML elements that cannot be in SVG or MathML: both end there."""

ENDS_TEXT = {
    *(BLOCKS - {"listing"}), *HEADINGS, *CELLS, *IN_TABLE, "audio", "body", "br", "button",
    "canvas", "col", "colgroup", "dd", "dt", "embed", "frame", "frameset", "head", "hr", "html",
    "iframe", "input", "legend", "li", "link", "meta", "noframes", "noscript", "object", "optgroup",
    "option", "p", "param", "rp", "rt", "ruby", "script", "select", "style", "template",
    "textarea", "title", "track", "video",
}  # fmt: skip
"""Elements at which running text begins and ends. All others, even unknown ones, are inside it."""
KEPT = {"code", "kbd", "pre", "samp", "var"}
"""Elements that are translated only if they, or elements inside, are marked for it."""
RAW = {"iframe", "noembed", "noframes", "noscript", "script", "style", "textarea", "title", "xmp"}
"""Elements in which tags do not count: only their own end tag ends them."""
NEVER = {*RAW, "math", "svg", "template", "plaintext"} - {"title"}
"""Elements whose content is never running text, whatever their marks."""
SHOWN = {"alt", "placeholder", "title"}
"""Attributes that a reader sees as text."""
HIDES_TITLE = {"link", "math", "meta", "param", "script", "style", "svg"}
"""Elements whose title no reader sees."""


@dataclass(frozen=True, eq=False, slots=True)
class Element:
    """An open element, with its setting for translation."""

    name: str
    written: str
    """The start tag as the document writes it."""
    translates: bool | None = None
    """Its own setting for the translation of its content; None without one."""
    foreign: str = ""
    """svg or math, for an element of one of them."""

    @property
    def holds_html(self) -> bool:
        return not self.foreign or self.name in HTML_IN[self.foreign]

    @property
    def special(self) -> bool:
        """True if the end tag of another element does not end it."""
        return self.holds_html if self.foreign else self.name in SPECIAL


class OpenElements:
    """The stack of open elements, outermost first."""

    def __init__(self) -> None:
        self._stack: list[Element] = []
        self._formatting: list[Element | None] = []
        """The formatting elements that continue in the next block; None where a cell begins."""
        self._in_form = False

    @property
    def foreign(self) -> bool:
        """True if the place is inside SVG or MathML."""
        return bool(self._stack) and not self._stack[-1].holds_html

    def translates(self, never: Collection[str] = (), *, around: bool = False) -> bool:
        """True if content here is translated: the innermost setting counts; elements of ``never``
        are not translated at all. ``around``: the same around the innermost element."""
        stack = self._stack[:-1] if around else self._stack
        for element in stack:  # this runs for every token
            if element.translates is not None or element.name in never:
                break
        else:
            return True
        if any(element.name in never for element in stack):
            return False
        answer = before_table = True
        for element, following in zip_longest(stack, stack[1:]):
            if element.name == "table":
                before_table = answer
            if element.translates is not None:
                answer = element.translates
            if element.name in IN_TABLE and (following is None or following.name not in PARTS):
                answer = before_table
        return answer

    def text(self, written: str) -> None:
        """Process a text outside of tags."""
        if not self.foreign and not written.isspace():
            self._leave_head()
            self._reopen()

    def start(self, token: HtmlToken, translates: bool | None) -> Element | None:
        """Process a start tag; returns the element that it opens, or None for one without content.

        ``translates``: its own setting for the translation of its content.
        """
        name = token.name
        if self.foreign:
            if name not in ENDS_FOREIGN:
                if token.closes_itself or len(self._stack) >= MAX_OPEN:
                    return None
                foreign = self._stack[-1].foreign
                self._stack.append(Element(name, token.written, translates, foreign))
                return self._stack[-1]
            while self.foreign:
                self._stack.pop()
        if name not in IN_HEAD:
            self._leave_head()
        if name in TABLE_PARTS:
            if not self._part_of_table(name):
                return None
        elif name in ("html", "head", "body"):
            if any(element.name == name for element in self._stack):
                return None
        elif name == "form" and (self._in_form or self._current in IN_TABLE):
            return None
        else:
            self._in_form |= name == "form"
            self._end_before(name)
        foreign = name if name in HTML_IN else ""
        if name in VOID or (foreign and token.closes_itself) or len(self._stack) >= MAX_OPEN:
            return None
        element = Element(name, token.written, translates, foreign)
        self._stack.append(element)
        if name in FORMATTING:
            self._goes_on(element)
        elif name in MARKERS:
            self._formatting.append(None)
        return element

    def end(self, name: str) -> None:
        """Process the end tag of a name."""
        in_foreign = bool(self._stack and self._stack[-1].foreign)
        if in_foreign and name not in ("br", "p"):
            for place in range(len(self._stack) - 1, -1, -1):
                if not self._stack[place].foreign:
                    break
                if self._stack[place].name == name:
                    del self._stack[place:]
                    return
        while in_foreign and self.foreign and name in ("br", "p"):
            self._stack.pop()
        if name in FORMATTING:
            self._end_formatting(name)
        elif name in HEADINGS:
            self._pop_to(HEADINGS, SCOPE)
        elif name == "p":
            self._pop_to({"p"}, {*SCOPE, "button"})
        elif name == "li":
            self._pop_to({"li"}, {*SCOPE, "ol", "ul"})
        elif name in TABLE_PARTS or name == "table":
            self._pop_to({name}, {"table", "template"})
        elif name == "template":
            self._pop_to({name}, ())
        elif name == "form":
            self._end_form()
        elif name in MARKERS or name in BLOCKS or name in ("dd", "dt", "button"):
            self._pop_to({name}, SCOPE)
        elif name == "head":
            self._leave_head()
        elif name not in ("body", "html"):
            self._end_open({name})

    # ---- inside

    def _leave_head(self) -> None:
        if self._stack and self._stack[-1].name == "head":
            self._stack.pop()

    def _end_before(self, name: str) -> None:
        """End elements that cannot contain one of this name, and reopen formatting elements."""
        if name in ("li", "dd", "dt"):
            self._end_open({"li"} if name == "li" else {"dd", "dt"}, ("address", "div", "p"))
        if name in ENDS_P:
            self._pop_to({"p"}, {*SCOPE, "button"})
        top = self._current
        if (name in HEADINGS and top in HEADINGS) or (
            name in ("option", "optgroup") and top == "option"
        ):
            self._stack.pop()
        elif name == "button":
            self._pop_to({"button"}, SCOPE)
        elif name in ("rb", "rtc", "rp", "rt"):
            kept = {"rtc"} if name in ("rp", "rt") else set()
            while self._stack and self._stack[-1].name in IMPLIED - kept:
                self._stack.pop()
        elif name == "a" and (open_link := self._formatting_of("a")):
            self._end_formatting("a")
            self._forget(open_link)
        elif name == "nobr" and self._formatting_of("nobr"):
            self._end_formatting("nobr")
        if name == "table":  # inside a table, but not in a cell of it
            self._pop_to({"table"}, {*CELLS, "template"})
        if name not in ENDS_P and name not in {*IN_HEAD, "table", "param", "source", "track"}:
            self._reopen()

    @property
    def _current(self) -> str:
        return self._stack[-1].name if self._stack else ""

    def _end_open(self, names: Collection[str], across: Collection[str] = ()) -> None:
        """End the innermost of ``names``, unless a special element, other than those of ``across``,
        is in between."""
        for place in range(len(self._stack) - 1, -1, -1):
            element = self._stack[place]
            if element.name in names and not element.foreign:
                self._close_from(place)
                return
            if element.special and element.name not in across:
                return

    def _part_of_table(self, name: str) -> bool:
        """End parts of a table that cannot contain this one; returns False outside of tables."""
        place = self._place_of({"table", "template"}, ())
        if place is None or self._stack[place].name == "template":
            return False
        ended = TABLE_PARTS[name]
        for inner in range(place + 1, len(self._stack)):
            # Only parts of a table may be between the table and its parts.
            if self._stack[inner].name in ended or self._stack[inner].name not in IN_TABLE:
                self._close_from(inner)
                break
        return True

    def _place_of(self, names: Collection[str], stop: Collection[str]) -> int | None:
        for place in range(len(self._stack) - 1, -1, -1):
            if self._stack[place].foreign:
                if self._stack[place].holds_html and stop:
                    return None
                continue
            if self._stack[place].name in names:
                return place
            if self._stack[place].name in stop:
                return None
        return None

    def _pop_to(self, names: Collection[str], stop: Collection[str]) -> None:
        """End the innermost of ``names`` and its content, unless ``stop`` is in between."""
        place = self._place_of(names, stop)
        if place is not None:
            self._close_from(place)

    def _close_from(self, place: int) -> None:
        for element in self._stack[place:]:
            if element.name in MARKERS and not element.foreign and None in self._formatting:
                last = len(self._formatting) - 1 - self._formatting[::-1].index(None)
                del self._formatting[last:]
        del self._stack[place:]
        while self._stack and not self._stack[-1].name:
            self._stack.pop()

    def _end_form(self) -> None:
        """End a form alone: elements that began in it stay open, and keep its setting."""
        self._in_form = False
        place = self._place_of({"form"}, SCOPE)
        if place is not None:
            while self._current in IMPLIED:
                self._close_from(len(self._stack) - 1)
            self._stack[place] = replace(self._stack[place], name="")
            self._close_from(len(self._stack))

    def _formatting_of(self, name: str) -> Element | None:
        """The last formatting element of a name since the cell began."""
        return next((element for element in self._since_cell() if element.name == name), None)

    def _since_cell(self) -> list[Element]:
        """The formatting elements since the cell began, the last one first."""
        since = [*reversed(self._formatting), None]
        return [element for element in since[: since.index(None)] if element is not None]

    def _goes_on(self, element: Element) -> None:
        """Add a formatting element; of equal ones only the last three are kept ("Noah's Ark")."""
        since = self._since_cell()
        equal = [earlier for earlier in since if earlier.written == element.written]
        if len(equal) >= 3:
            self._formatting.remove(equal[2])
        elif len(since) >= MAX_OPEN:
            self._formatting.remove(since[-1])
        self._formatting.append(element)

    def _forget(self, element: Element) -> None:
        if element in self._formatting:
            self._formatting.remove(element)
        if element in self._stack:
            self._stack.remove(element)

    def _reopen(self) -> None:
        """Reopen the formatting elements of the block before."""
        if len(self._stack) >= MAX_OPEN or not self._formatting:
            return
        is_open = set(self._stack)
        going_on = list(takewhile(lambda element: element not in is_open, self._since_cell()))
        self._stack += going_on[::-1][: MAX_OPEN - len(self._stack)]

    def _end_formatting(self, name: str) -> None:
        """Run the adoption agency algorithm, as far as it moves open elements."""
        if self._current == name and self._stack[-1] not in self._formatting:
            self._stack.pop()
            return
        for _ in range(8):
            element = self._formatting_of(name)
            if element is None:
                self._end_open({name})
                return
            if element not in self._stack:
                self._formatting.remove(element)
                return
            place = self._stack.index(element)
            inside = self._stack[place + 1 :]
            if any(it.holds_html if it.foreign else it.name in SCOPE for it in inside):
                return
            inner = range(place + 1, len(self._stack))
            furthest = next((n for n in inner if self._stack[n].special), None)
            if furthest is None:
                self._close_from(place)
                self._formatting.remove(element)
                return
            between = self._stack[place + 1 : furthest]
            for enclosed in between[:-3]:
                if enclosed in self._formatting:
                    self._formatting.remove(enclosed)
            going_on = [enclosed for enclosed in between if enclosed in self._formatting]
            # The block leaves the element; a copy continues inside the block until the next round.
            copy = replace(element)
            bookmark = self._formatting.index(element)
            if going_on:
                bookmark = self._formatting.index(going_on[-1])
            self._formatting.insert(bookmark + 1, copy)
            self._formatting.remove(element)
            block = self._stack[furthest]
            self._stack[place : furthest + 1] = [*going_on, block, copy]
