"""Segmentation splits running text into sentences and the exact gaps between them.

It uses rules and short lists of abbreviations, without downloads. Every character of the text is
in one sentence or in one gap, so a translation gets the spacing of the original.

* A blank line ends a sentence. A single line break does so unless it looks like the wrapping of a
  paragraph, in which the next word had no room left on its line.
* ``. ! ? …`` end a sentence before a space, unless a continuation (a lower-case letter) follows or
  the word before is an abbreviation, an initial or, in German, an ordinal. An abbreviation that may
  end a sentence ("etc.", "U.S.") does so before a word that often begins one.
* Full-width stops (``。！？``), the danda and similar stops need no space after them. Korean uses
  ``.`` with a space; if the space is missing, 다 before the stop ends a sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from dragoman.forms.languages import base

_CLOSERS = r"[\"'”’»«“‘)\]}›*_`」』）】》〉]*"
_OPENERS = "\"'“‘«»„‚‹([{¿¡「『（【《〈-–—•"
_STOP = re.compile(rf"(?<![.!?…])(?P<stop>[.!?…]+){_CLOSERS}(?=\s)")
_WIDE_STOP = re.compile(rf"[。！？｡।॥។။።۔؟]+{_CLOSERS}")
_KOREAN_STOP = re.compile(r"(?<=다)\.(?=[가-힣])")
_SPACES = re.compile(r"\s+")
_GAP = re.compile(r"\s*")
_LAST_WORD = re.compile(r"[^\s\"'“”‘’«»„‚(\[{/–—-]+\Z")
_NEXT_WORD = re.compile(r"[^\W_]+")
_INITIALS = re.compile(r"[^\W\d_](\.[^\W\d_])*\Z")
_LITERAL = re.compile(r"``.+?``", re.DOTALL)
_BULLET = re.compile(r"([-*•–+]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s")
_MARKER = re.compile(
    r"(?:[-*•‣◦▪–—+]|\(?(?P<number>\d{1,3}(?:\.\d{1,3})*)(?P<stop>[.)])|\(?[a-zA-Z]\))[ \t]+(?=\S)"
)
_WRAPPED_WIDTH = 50
"""Lines with fewer characters than this are not taken for wrapped text."""
_LONGEST_WORD = 40


class Sentence(NamedTuple):
    """A sentence and the gap after it."""

    text: str
    """The sentence, with single line breaks if the text is wrapped; empty if the text begins
    with a gap."""
    gap: str
    """The white space up to the next sentence, which may be empty in scripts without spaces."""


@dataclass(frozen=True)
class _Language:
    """The words of one language that the rules need, without their last full stop."""

    inner: frozenset[str] = frozenset()
    """Abbreviations inside a sentence: titles, "z.B"."""
    before_number: frozenset[str] = frozenset()
    """Words that are abbreviations only before a number: "No", "Fig"."""
    either: frozenset[str] = frozenset()
    """Abbreviations that may end a sentence: "etc", "Inc"."""
    last: frozenset[str] = frozenset()
    """Words like abbreviations that end a sentence before a capital: "p.m"."""
    starters: frozenset[str] = frozenset()
    """Words with a capital that mostly begin a sentence."""
    ordinals: bool = False
    """True if "3." means "third" in the language."""
    cased: bool = True
    """True if sentences begin with a capital, so that a small letter continues one."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LANGUAGES = {
    "en": _Language(
        inner=_words(
            "Mr Mrs Ms Mx Dr Prof St Messrs Mmes Gen Col Maj Capt Cpt Lt Sgt Cpl Pvt Adm Cmdr Gov "
            "Sen Rep Rev Hon Pres Supt Fr Sr Mt Ft vs v cf e.g i.e eg ie viz approx ca c Ph"
        ),
        before_number=_words(
            "No Nos no nos Fig Figs fig figs p pp Vol vol Vols Sec sec Ch ch Eq eq Art art Jan Feb "
            "Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec"
        ),
        either=_words(
            "etc Inc Ltd Co Corp Bros LLC Jr Sr al U.S U.K U.N E.U D.C Ph.D M.D B.A "
            "M.A Ave Blvd Rd Dept dept est ed eds"
        ),
        last=_words("a.m p.m"),
        starters=_words(
            "The A An This That These Those It He She We They You I In On At By For From With And "
            "But Or So If When While After Before As There Here What Why How Who Where His Her Its "
            "Our Their My Your One Some Many Most All Both Each Not No Yes However Then Now Also "
            "According Although Since During Until To Let"
        ),
    ),
    "de": _Language(
        inner=_words(
            "Mr Mrs Dr Prof Hr Hrn Fr Frl Dipl Ing Mag St bzw ca circa d.h z.B z.T u.a u.U u.ä "
            "i.d.R i.A i.V m.E o.g s.o s.u v.a vgl Vgl evtl ggf inkl exkl einschl max min mind "
            "sog bspw ehem gem jew lt rd insb insbes zzgl abzgl bez betr geb gest verh Hl hl Bd "
            "Hrsg Str Tel Mio Mrd Tsd Std allg amtl ung verm wg zw Art"
        ),
        before_number=_words(
            "Nr Nrn Abs Art Abb Tab Kap S Aufl Jg Bd Ziff Anm Jan Feb Mär Apr Jun Jul Aug Sep Sept "
            "Okt Nov Dez v n"
        ),
        either=_words("usw etc u.s.w usf Co Jh Jhd v.Chr n.Chr Chr o.ä o.Ä u.Ä"),
        starters=_words(
            "Der Die Das Den Dem Des Ein Eine Einen Einem Einer Er Sie Es Ich Wir Ihr Dies Diese "
            "Dieser Dieses Und Aber Oder Doch Denn Wenn Als Da Dann Danach Dort Hier Nun Nach Vor "
            "Seit Bei Mit Im In Am An Auf Aus Für Zu Zum Zur Wer Was Wo Wie Warum Man Auch So "
            "Nicht Kein Keine Seine Ihre Mein Unser Alle Viele Einige Jedoch Trotz Während Laut"
        ),
        ordinals=True,
    ),
    "fr": _Language(
        inner=_words("M MM Mme Mmes Mlle Mlles Dr Pr Me Mgr St Ste cf p.ex env av apr vol"),
        before_number=_words("n no nos art fig p pp chap t janv févr sept oct nov déc"),
        either=_words("etc av.J.-C J.-C"),
        starters=_words(
            "Le La Les L Un Une Des Il Elle Ils Elles On Nous Vous Je Ce Cette Ces Cela Et Mais "
            "Dans En À Au Pour Par Si Quand"
        ),
    ),
    "es": _Language(
        inner=_words("Sr Sra Srta Sres Dr Dra D Dña Prof Ud Uds Vd Vds p.ej aprox Sto Sta gral"),
        before_number=_words("n núm nro art fig pág págs cap vol"),
        either=_words("etc EE.UU S.A Cía a.C d.C a.m p.m"),
        starters=_words(
            "El La Los Las Un Una Unos Unas Y Pero En Por Para Con Si Cuando Este Esta Esto Es No "
            "Se Ella Ellos Yo Nosotros"
        ),
    ),
    "it": _Language(
        inner=_words("Sig Sigg Sig.ra Dott Dott.ssa Prof Ing Avv Arch Rag On San S p.es ca cfr"),
        before_number=_words("n nn art artt fig p pp pag cap vol sec"),
        either=_words("ecc etc S.p.A S.r.l a.C d.C"),
        starters=_words(
            "Il Lo La I Gli Le Un Una E Ma In Per Con Se Quando Questo Questa È Non Si"
        ),
    ),
    "pt": _Language(
        inner=_words("Sr Sra Srs Dr Dra Prof Profa Exmo Exma p.ex aprox Sto Sta"),
        before_number=_words("n nº núm art fig pág págs p cap vol"),
        either=_words("etc Ltda S.A Cia a.C d.C"),
        starters=_words(
            "O A Os As Um Uma E Mas Em Por Para Com Se Quando Este Esta Isso Não Ele Ela"
        ),
    ),
    "nl": _Language(
        inner=_words(
            "dhr mevr mw dr drs ir ing prof mr St bijv bv nl ca d.w.z m.a.w o.a t.o.v i.p.v"
        ),
        before_number=_words("nr nrs art afb blz p hfst vol"),
        either=_words("enz etc e.d a.u.b v.Chr n.Chr"),
        starters=_words(
            "De Het Een Hij Zij Ze Wij We Ik Dit Dat Deze En Maar In Op Voor Met Als Toen Er"
        ),
    ),
}
# Text in these scripts quotes English.
_LANGUAGES |= {
    code: replace(_LANGUAGES["en"], cased=False)
    for code in ("ar", "fa", "he", "hi", "ja", "ko", "th", "ur", "zh")
}
_ORDINAL_LANGUAGES = ("cs", "da", "de", "et", "fi", "hr", "hu", "lv", "nb", "no", "pl", "sk", "sl")


def segment(text: str, language: str = "en") -> list[Sentence]:
    """Return the sentences of a text. All ``text + gap`` joined are the text, to the character.

    ``language`` is an ISO 639-1 code, perhaps with more after it ("de-AT"); a language without
    rules of its own gets those that need no list.
    """
    rules = _rules(language)
    gaps: dict[int, int] = {}  # the begin of a gap -> its end
    leading = _gap_end(text, 0)
    if leading:
        gaps[0] = leading
    ends = set(_line_ends(text)) | set(_stops(text, rules))
    if base(language) == "ko":
        ends.update(match.end() for match in _KOREAN_STOP.finditer(text))
    for end in ends:
        gaps[end] = _gap_end(text, end)
    sentences: list[Sentence] = []
    begin = 0
    for end, following in sorted(gaps.items()):
        if end < begin:
            continue
        sentences.append(Sentence(text[begin:end], text[end:following]))
        begin = following
    if begin < len(text):
        last = text[begin:].rstrip()
        sentences.append(Sentence(last, text[begin + len(last) :]))
    return sentences


def list_marker(line: str, language: str = "en") -> str:
    """Return the bullet or number that begins an item of a list, with its space; "" if there is
    none. A number with a full stop that may be an ordinal (German "3. Oktober") is no marker."""
    match = _MARKER.match(line)
    if match is None:
        return ""
    ordinals = _rules(language).ordinals
    return "" if ordinals and match["number"] and match["stop"] == "." else match[0]


def _rules(language: str) -> _Language:
    code = base(language)
    return _LANGUAGES.get(code, _Language(ordinals=code in _ORDINAL_LANGUAGES))


def _gap_end(text: str, begin: int) -> int:
    match = _GAP.match(text, begin)
    assert match is not None
    return match.end()


def _line_ends(text: str) -> Iterator[int]:
    """Yield the line breaks that end a sentence."""
    breaks = [match for match in _SPACES.finditer(text) if "\n" in match.group()]
    starts = [0, *(match.end() for match in breaks)]
    ends = [*(match.start() for match in breaks), len(text)]
    is_hard = [match.group().count("\n") > 1 for match in breaks]
    width = 0
    for line, match in enumerate(breaks):
        if line == 0 or is_hard[line - 1]:  # a paragraph begins: how wide is it?
            stop = next((k for k in range(line, len(breaks)) if is_hard[k]), len(breaks))
            width = max(ends[k] - starts[k] for k in range(line, stop + 1))
        if is_hard[line] or not _is_wrapped(text, ends[line] - starts[line], match.end(), width):
            yield match.start()


def _is_wrapped(text: str, length: int, following: int, width: int) -> bool:
    """Return True if a line of this length ended because the word after it had no room."""
    if width < _WRAPPED_WIDTH or _BULLET.match(text, following):
        return False
    word = text[following : following + _LONGEST_WORD].split(maxsplit=1)
    return length + 1 + len(word[0] if word else "") > width


def _stops(text: str, rules: _Language) -> Iterator[int]:
    """Yield the ends of punctuation that ends a sentence."""
    literals = [match.span() for match in _LITERAL.finditer(text)]
    starts = [begin for begin, _ in literals]
    for match in _STOP.finditer(text):
        place = bisect_right(starts, match.start()) - 1
        if place >= 0 and match.end() < literals[place][1]:
            continue  # inside ``code``
        following = _gap_end(text, match.end())
        if _ends_sentence(text, match, following, rules):
            yield match.end()
    for match in _WIDE_STOP.finditer(text):
        yield match.end()


def _ends_sentence(text: str, match: re.Match[str], following: int, rules: _Language) -> bool:
    start = text[following : following + _LONGEST_WORD].lstrip(_OPENERS)
    if rules.cased and start[:1].islower():
        return False
    if match["stop"] != ".":
        return True
    before = _LAST_WORD.search(text, max(0, match.start() - _LONGEST_WORD), match.start())
    word = before.group() if before else ""
    if word.isdigit():
        line = text.rfind("\n", 0, match.start()) + 1
        if text[line : match.start()].strip() == word:  # "1. Introduction"
            return False
        return not rules.ordinals or len(word) > 2 or _begins_sentence(start, rules)
    if word in rules.inner:
        return False
    if word in rules.before_number and (start[:1].isdigit() or word not in rules.either):
        return not start[:1].isdigit()
    if word in rules.last:
        return True
    if word in rules.either or _INITIALS.match(word) or (rules.ordinals and _is_roman(word)):
        return _begins_sentence(start, rules)
    return True


def _begins_sentence(start: str, rules: _Language) -> bool:
    word = _NEXT_WORD.match(start)
    return bool(word and word.group() in rules.starters)


def _is_roman(word: str) -> bool:
    return bool(word) and not set(word) - set("IVX")
