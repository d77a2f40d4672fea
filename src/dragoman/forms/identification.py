"""This module identifies the language of many lines of text by their script and their most
frequent small words.

That is enough to see that a file is not in the expected language. The server's detector
(``serving/service/catalogue.py``) knows more languages and single sentences, and needs an extra.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from dragoman.forms.languages import NAMES, base, name_of

_SCRIPTS = (
    ("ko", "\uac00-\ud7a3\u1100-\u11ff"),
    ("ja", "\u3040-\u30ff"),
    ("zh", "\u3400-\u9fff"),
    ("th", "\u0e00-\u0e7f"),
    ("lo", "\u0e80-\u0eff"),
    ("km", "\u1780-\u17ff"),
    ("my", "\u1000-\u109f"),
    ("ka", "\u10a0-\u10ff"),
    ("hy", "\u0530-\u058f"),
    ("el", "\u0370-\u03ff"),
    ("he yi", "\u0590-\u05ff"),
    ("ar fa ur ps ug", "\u0600-\u06ff"),
    ("hi ne mr sa", "\u0900-\u097f"),
    ("bn as", "\u0980-\u09ff"),
    ("pa", "\u0a00-\u0a7f"),
    ("gu", "\u0a80-\u0aff"),
    ("ta", "\u0b80-\u0bff"),
    ("te", "\u0c00-\u0c7f"),
    ("kn", "\u0c80-\u0cff"),
    ("ml", "\u0d00-\u0d7f"),
    ("cyrillic", "\u0400-\u052f"),
    ("latin", "A-Za-z\u00c0-\u024f\u1e00-\u1eff"),
)
"""Scripts; the first ones determine a language even if they are mixed with others."""

_WORDS = {
    "latin": {
        "af": "die en van is nie het 'n wat vir om te dat sy ek hulle was met aan",
        "ca": "el la de i que els les no una per amb és va del un ha són més",
        "cs": "je se na to že si jsem by jako jsou byl ale ve pro když není co",
        "cy": "yn y yr a i mae ei ac ar o eu oedd gan wedi am ddim hi",
        "da": "det og er jeg ikke en at på for med har til den af de som et der",
        "de": "der die und das ist nicht ein zu in den ich mit eine auf es sie dem von",
        "en": "the of and to a in is that it you for he was on with are i this",
        "eo": "la kaj de en mi ne estas al li tio vi por ke ĉi ŝi kun sed estis",
        "es": "el de la que y no en los un es se por una con las del su para",
        "et": "on ja ei ta see et oma ma kui mis ning oli ka aga siis kas nii",
        "eu": "eta da ez zen dut du bat hau dira nik izan dago baina ere bere",
        "fi": "on ja ei se että hän oli minä en kun mutta ovat mitä tämä niin ole",
        "fr": "le de la et les des un une est que je pas dans il en du pour ne",
        "ga": "an na agus a ar is sé go bhí ní i le tá sí do ag mé",
        "hr": "je se i u na da ne su sam to za od što nije s ali bio kao",
        "hu": "a az és nem hogy egy is van ez volt meg de csak mint nem el azt",
        "id": "yang dan di itu tidak ini dengan untuk saya dari ke dia akan ada kami",
        "is": "að og í er á það ég ekki um sem hann við til var þú en með",
        "it": "di che e il la non un per è in una sono con del ha i le si",
        "lt": "ir yra kad ne į tai iš su jis aš kaip buvo bet už ar man ji",
        "lv": "un ir ka uz ar ne es tas par no viņš bija kas lai kā vai bet",
        "mt": "il li ta u hija ma huwa f'dan għal minn fil tal jew kien dan",
        "nl": "de het een en van ik is dat niet in je op te zijn met die voor was",
        "pl": "nie się w i na to że z do jest jak o co tak ale po czy był",
        "pt": "o de que a não e um uma do da é em para os com se no na",
        "ro": "și de în nu a la o că cu să este pe un ce din mai care sunt",
        "sk": "je sa na to že si som by ako sú bol ale vo pre keď nie čo",
        "sl": "je in se v na da ne so sem za to ni z bi pa kot bil",
        "sq": "të e në dhe nuk një i me për që është u nga si kam do ka",
        "sv": "det och är jag inte en att på för med har till den av de som ett han",
        "sw": "ya na wa kwa ni la katika za hii si yake kuwa cha huo yeye",
        "tl": "ang ng sa na mga ay at ko ka si niya ito ako hindi siya",
        "tr": "bir ve bu için ne o da de çok değil ben var mi gibi daha kadar",
        "vi": "là của và có không tôi một được cho người này trong đã anh các",
    },
    "cyrillic": {
        "be": "і ў не на што я з гэта ён як да яна а мы быў па",
        "bg": "на и да не се е в за от че с по ще това си са",
        "kk": "және мен бұл да бір үшін деп ол бар емес оның осы",
        "mk": "на и да не се во од за е со што тој ќе ги ја",
        "mn": "нь байна энэ юм гэж би бол тэр ч болон дээр",
        "ru": "и в не на я что он с это как а по но она за мы",
        "sr": "је се и у на да не су сам то за од што није али",
        "uk": "і не в на що я з це він та як до у вона але за",
    },
}
"""The most frequent words of each language."""

_COMMON = {
    script: {code: frozenset(words.split()) for code, words in languages.items()}
    for script, languages in _WORDS.items()
}

CLOSE = (
    {"da", "no", "nb", "nn"},
    {"hr", "sr", "bs", "sh", "sl"},
    {"cs", "sk"},
    {"id", "ms"},
    {"pt", "gl"},
    {"af", "nl"},
    {"zh", "yue", "wuu"},
    {"bg", "mk"},
    {"hi", "ne", "mr"},
)
"""Languages that small words cannot distinguish."""

_KNOWN = frozenset(
    code
    for group in (*_WORDS.values(), *CLOSE, *(names.split() for names, _ in _SCRIPTS))
    for code in group
)

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_FEW = 0.15
"""Text in a script other than Latin has at least this share of letters in it."""
_COMMONEST = 0.06
"""The least share of small words among all words."""
_BETTER = 1.5
"""A language must be likelier than the next one by this factor."""
_LETTERS = 20_000


def close_to(code: str) -> frozenset[str]:
    """Return the languages that may be mistaken for this one, and itself."""
    return frozenset({code}.union(*(group for group in CLOSE if code in group)))


def can_identify(code: str) -> bool:
    """Return True if text of this language can be identified."""
    return code in _KNOWN


def language_of(texts: Iterable[str]) -> str:
    """Return the code of the language of these lines, or "und" if it is not certain."""
    codes = [code for code in identify(texts) if code in NAMES]
    return codes[0] if len(codes) == 1 else "und"


def identify(texts: Iterable[str]) -> frozenset[str]:
    """Return the languages that these lines may be in; empty if that is unknown."""
    text = " ".join(texts)[:_LETTERS].lower()
    counts = {
        name: len(re.findall(f"[{characters}]", text, re.IGNORECASE))
        for name, characters in _SCRIPTS
    }
    letters = sum(counts.values())
    if not letters:
        return frozenset()
    script = next(
        (name for name, count in counts.items() if count >= _FEW * letters and name != "latin"),
        "latin",
    )
    if script not in _COMMON:
        return frozenset(script.split())
    words = Counter(_WORD.findall(text))
    total = sum(words.values())
    shares = {
        code: sum(words[word] for word in common) / max(1, total)
        for code, common in _COMMON[script].items()
    }
    best = max(shares, key=lambda code: shares[code])
    others = [share for code, share in shares.items() if code not in close_to(best)]
    if shares[best] < _COMMONEST or shares[best] < _BETTER * max(others):
        return frozenset()
    return close_to(best)


def other_language(texts: Iterable[str], code: str) -> str:
    """Return the names of the languages that these lines read as, if the language ``code`` is not
    among them; "" if it is, or if that is unknown."""
    read_as = identify(texts)
    if not can_identify(base(code)) or base(code) in read_as:
        return ""
    return names_of(read_as)


def names_of(codes: Iterable[str]) -> str:
    """Return the names of languages, in words. A language without a name is left out, unless none
    has one."""
    named = [code for code in codes if code in NAMES] or codes
    return " or ".join(sorted(map(name_of, named)))
