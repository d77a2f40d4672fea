"""Facts about languages, by their codes ("en", "pt-BR"), and about their scripts."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

WITHOUT_SPACES = frozenset({"ja", "km", "lo", "my", "th", "zh"})
"""Languages that are written without spaces between words: each token is displayed as a word."""


_CODES = """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da
    de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz
    ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln
    lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi
    pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw ta te tg th
    ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu

    ara ast awa ben bho bos bul cat ceb ces ckb cmn cym dan deu ell eng est eus fas fil fin fra gle
    glg grc haw heb hin hmn hrv hsb hun ilo ind isl ita jpn kab kmr kor lat lav lit lmo mai mkd msa
    nds nld nno nob nor nso pap pol por ron rus scn slk slv spa srp swe szl tha tpi tur ukr urd vec
    vie war yue zho
"""
CODES = frozenset(_CODES.split())
"""Codes that the ending of a file's name may be: those of two letters (ISO 639-1), and those of
three letters (ISO 639-3) that parallel texts often have."""


SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
"""A character of a script without spaces between words."""


def base(code: str) -> str:
    """Return the language of a code without its region: "pt-BR" -> "pt"."""
    return code.replace("_", "-").split("-")[0].lower()


def code_among(codes: Collection[str], language: str) -> str | None:
    """Return the code of a language among some codes: "en" finds "en-gb" too; None without it."""
    wanted = language.lower()
    if wanted in codes:
        return wanted
    return next((code for code in codes if base(code) == base(wanted)), None)


def is_code(text: str) -> bool:
    """Return True if a text has the form of a code: "en", "pt-BR", "zh_Hans"."""
    return re.fullmatch("[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*", text) is not None


def writes_spaces(code: str) -> bool:
    """Return True if spaces separate the words and the sentences of a language."""
    return base(code) not in WITHOUT_SPACES


def count_spaceless(text: str) -> int:
    """Return the number of characters in scripts without spaces between words."""
    return 0 if text.isascii() else len(SPACELESS.findall(text))


NAMES = {
    "af": "Afrikaans",
    "ar": "Arabic",
    "az": "Azerbaijani",
    "be": "Belarusian",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "br": "Breton",
    "ca": "Catalan",
    "cs": "Czech",
    "cy": "Welsh",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "eo": "Esperanto",
    "es": "Spanish",
    "et": "Estonian",
    "eu": "Basque",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "ga": "Irish",
    "gl": "Galician",
    "gu": "Gujarati",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "hy": "Armenian",
    "id": "Indonesian",
    "is": "Icelandic",
    "it": "Italian",
    "ja": "Japanese",
    "ka": "Georgian",
    "kk": "Kazakh",
    "km": "Khmer",
    "ko": "Korean",
    "la": "Latin",
    "lo": "Lao",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "mk": "Macedonian",
    "mn": "Mongolian",
    "ms": "Malay",
    "mt": "Maltese",
    "my": "Burmese",
    "nb": "Norwegian Bokmål",
    "ne": "Nepali",
    "nl": "Dutch",
    "nn": "Norwegian Nynorsk",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sr": "Serbian",
    "sv": "Swedish",
    "sw": "Swahili",
    "ta": "Tamil",
    "te": "Telugu",
    "th": "Thai",
    "tl": "Tagalog",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "uz": "Uzbek",
    "vi": "Vietnamese",
    "zh": "Chinese",
}


_PAIRS = """
    afr:af als:sq amh:am ara:ar arb:ar aze:az azj:az bel:be ben:bn bos:bs bre:br bul:bg cat:ca
    ces:cs cmn:zh cym:cy dan:da deu:de ekk:et ell:el eng:en epo:eo est:et eus:eu fas:fa fin:fi
    fra:fr gla:gd gle:ga glg:gl guj:gu heb:he hin:hi hrv:hr hun:hu hye:hy ind:id isl:is ita:it
    jpn:ja kan:kn kat:ka kaz:kk khm:km kor:ko lao:lo lat:la lav:lv lit:lt lvs:lv mal:ml mar:mr
    mkd:mk mlt:mt mon:mn msa:ms mya:my nep:ne nld:nl nno:nn nob:nb nor:no pan:pa pes:fa pol:pl
    por:pt ron:ro rus:ru sin:si slk:sk slv:sl som:so spa:es sqi:sq srp:sr swa:sw swe:sv swh:sw
    tam:ta tel:te tgl:tl tha:th tur:tr ukr:uk urd:ur uzb:uz vie:vi zho:zh zsm:ms zul:zu
"""
_OF_THREE = dict(pair.split(":") for pair in _PAIRS.split())
"""Codes of three letters (ISO 639-3) and those of two letters for the same languages."""


def shortest_code(code: str) -> str:
    """Return a code with the language in two letters if there are such: "deu" -> "de", "cmn_Hans"
    -> "zh-Hans"."""
    language, dash, rest = code.replace("_", "-").partition("-")
    return _OF_THREE.get(language.lower(), language.lower()) + dash + rest


def same_language(given: str, codes: Sequence[str]) -> list[str]:
    """Return those of some codes that mean the language of another: equal ones first, then those
    with two letters instead of three, then those of another region or script."""
    matches: dict[str, None] = {}
    for form in (str, shortest_code, lambda code: base(shortest_code(code))):
        matches |= {code: None for code in codes if form(code) == form(given)}
    return list(matches)


def name_of(code: str) -> str:
    """Return the English name of a language, or the code if it has none here."""
    return NAMES.get(base(code), code)


COUNTRIES = {
    "cn": "zh", "cz": "cs", "dk": "da", "gr": "el", "jp": "ja", "kr": "ko", "ua": "uk", "vn": "vi",
}  # fmt: skip
"""Codes of countries (ISO 3166) that people write for a language with another code. Of these,
only kr is also the code of a language: Kanuri."""


def code_meant(given: str) -> str:
    """Return the code of a language that is given by its English name, or by the code of a
    country; return anything else unchanged."""
    by_name = {name.casefold(): code for code, name in NAMES.items()}
    return COUNTRIES.get(given) or by_name.get(given.casefold(), given)
