"""Sets of HTML elements: by their effect on open elements (the sets of
https://html.spec.whatwg.org/multipage/parsing.html#parsing-main-inbody), and by their role in
translation."""

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
"""Parts of a table, each with the other parts that it ends."""
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
NAMES_ITS_TITLE = {"link", "math", "meta", "param", "script", "style", "svg"}
"""Elements whose title no reader sees."""
