"""HTML whose text is translated and whose every tag stays as it was written.

A document is cut into what is kept, character for character (tags, comments, scripts), and the
text between; runs of text are handed out and their translations put in their place, so tags and
nesting cannot change. Nothing is parsed into a tree and nothing is repaired.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

# One token of HTML: a comment, a declaration or instruction, a tag with quoted values, or text.
# Possessive quantifiers keep the time linear in the length, whatever is sent.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<[!?][^>]*+(?:>|\Z)"
    r"|</?+[A-Za-z](?:[^\"'<>]|\"[^\"]*+\"|'[^']*+')*+>"
    r"|(?:[^<]|<(?!/?[A-Za-z]|[!?]))++|<",
    re.DOTALL,
)
_NAME = re.compile(r"</?+([A-Za-z][^\s/>]*+)")
_SPACE = " \t\n\r\f"
_SPACES = re.compile(f"[{_SPACE}]+")
_NOT_TO_TRANSLATE = re.compile(
    r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*(?:"[^"]*?\bnotranslate\b|'[^']*?\bnotranslate\b"""
    r"|notranslate\b)",
    re.IGNORECASE,
)

KEPT = {
    *("code", "kbd", "math", "noscript", "pre", "samp", "script", "style", "svg", "template"),
    *("textarea", "var"),
}
"""Elements whose inside is not running text."""

RAW = {"script", "style", "textarea"}
"""Elements in which tags do not count: only their own end tag ends them."""

VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source"),
    *("track", "wbr"),
}
"""Elements without an inside."""


@dataclass
class Markup:
    """An HTML text, cut up. ``texts`` are to be translated; ``join`` puts translations back."""

    texts: list[str] = field(default_factory=list)
    """Plain text, characters unescaped, spaces as one."""
    _parts: list[str | int] = field(default_factory=list)
    """Kept characters, or the number of a text."""

    @classmethod
    def cut(cls, source: str) -> Markup:
        """Any string: what is not HTML is text."""
        markup = cls()
        closed: list[str] = []  # the kept element that is open, and those of its name in it
        pending = ""  # text whose end is not reached
        place = 0
        while place < len(source):
            found = _TOKEN.match(source, place)
            assert found is not None, "every character is a token"
            token, place = found[0], found.end()
            tag = _NAME.match(token) if len(token) > 1 and token[0] == "<" else None
            if tag is None and not closed and not token.startswith(("<!", "<?")):
                pending += token
                continue
            markup._add(pending)
            pending = ""
            markup._parts.append(token)
            if tag is None:
                continue
            name, opens = tag[1].lower(), not token.startswith("</")
            if token.endswith("/>") or name in VOID:
                continue
            if closed:
                if name == closed[0]:
                    closed = [*closed, name] if opens else closed[:-1]
            elif opens and (name in KEPT or _NOT_TO_TRANSLATE.search(token)):
                closed = [name]
                if name in RAW:
                    end = re.compile(rf"</{name}\b", re.IGNORECASE).search(source, place)
                    until = end.start() if end else len(source)
                    markup._parts.append(source[place:until])
                    place = until
        markup._add(pending)
        return markup

    def join(self, translations: Sequence[str]) -> str:
        """The document with its texts replaced, in their order; they are escaped here."""
        assert len(translations) == len(self.texts), "one translation for each text"
        return "".join(
            part if isinstance(part, str) else html.escape(translations[part], quote=False)
            for part in self._parts
        )

    def _add(self, text: str) -> None:
        body = text.strip(_SPACE)
        plain = html.unescape(_SPACES.sub(" ", body))
        if not plain.strip():
            self._parts.append(text)
            return
        begin = text.index(body)
        self._parts += (text[:begin], len(self.texts), text[begin + len(body) :])
        self.texts.append(plain)
