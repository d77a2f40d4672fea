"""Which encoding a text is in: named where it is not UTF-8, and never where it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import DataError
from dragoman.data.files.encoding import check_encoding, check_width, encoding_of, iconv

TEXTS = {
    "ko": "안녕하세요. 오늘은 날씨가 좋습니다.\n저는 학교에 갑니다.\n",
    "ja": "犬が眠っている。\n猫は椅子の上にいる。\n",
    "zh": "今天天气很好。\n我去学校。猫在椅子上睡觉。\n",
    "fr": "Le garçon est à l'école.\nOù êtes-vous allés cet été ?\n",
    "es": "El niño está aquí.\n¿Dónde está la canción? Mañana iré al colegio.\n",
    "en": "The man said \u201cI don\u2019t know\u201d and left \u2014 for good, as it was.\n",
    "ru": "Привет. Сегодня хорошая погода.\nКошка спит на стуле.\n",
    "pl": "Dzisiaj jest ładna pogoda. Chłopiec idzie do szkoły, a dziewczyna śpi.\n",
    "tr": "Bugün hava çok güzel. Öğrenci bir şarkı söylüyor.\n",
    "el": "Καλημέρα. Σήμερα ο καιρός είναι καλός.\n",
    "th": "สวัสดี วันนี้อากาศดี แมวนอนบนเก้าอี้\n",
}
CASES = [
    ("ko", "CP949"), ("ja", "EUC-JP"), ("ja", "CP932"), ("zh", "GB18030"), ("zh", "BIG5"),
    ("fr", "ISO-8859-1"), ("es", "ISO-8859-1"), ("en", "WINDOWS-1252"), ("ru", "WINDOWS-1251"),
    ("ru", "KOI8-R"), ("pl", "WINDOWS-1250"), ("pl", "ISO-8859-2"), ("tr", "WINDOWS-1254"),
    ("el", "WINDOWS-1253"), ("th", "CP874"),
]  # fmt: skip


@pytest.mark.parametrize("times", [1, 30])
@pytest.mark.parametrize(("language", "encoding"), CASES)
def test_each_is_told_whatever_the_model_reads(language: str, encoding: str, times: int) -> None:
    text = TEXTS[language] if encoding != "BIG5" else "今天天氣很好。\n我去學校。\n"
    given = (text * times).encode(encoding)
    for known in ("und", language, "en"):
        found = encoding_of(given, known)
        assert found is not None and given.decode(found) == text * times, known


def test_markup_around_it_hides_no_script() -> None:
    line = ":class:`str` 의 값을 돌려줍니다. See :ref:`the documentation <typesseq>` for more.\n"
    assert encoding_of((line * 20).encode("cp949")) == "CP949"


def test_a_text_may_end_within_a_character() -> None:
    whole = TEXTS["ko"].replace("\n", " ").encode("cp949")
    assert encoding_of(whole[:25]) == encoding_of(whole[:26]) == "CP949"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.integers(0, 3))
def test_utf8_is_never_refused(text: str, cut: int) -> None:
    encoded = text.encode()
    check_encoding(encoded[: len(encoded) - cut], "my.txt")


@pytest.mark.parametrize(
    "text",
    [
        b"The dog sleeps.\n" * 300 + b"caf\xe9 ol\xe9 \xe9t\xe9\n",  # a slip among many lines
        "Der Bär schläft.\n".encode() * 9 + "Der Bär\n".encode("latin-1") * 8,
        b"caf\xe9\n",
        b"",
    ],
)
def test_a_few_wrong_bytes_are_no_other_encoding(text: bytes) -> None:
    check_encoding(text, "my.txt")


def test_it_is_said_with_the_command_that_converts(tmp_path: Path) -> None:
    path = tmp_path / "my letter.txt"
    path.write_bytes(TEXTS["ko"].encode("cp949"))
    with pytest.raises(DataError, match=r"letter\.txt is not UTF-8; .* CP949 \(EUC-KR\)") as error:
        check_encoding(path.read_bytes(), str(path))
    command = iconv(str(path), "CP949")
    assert str(error.value).endswith(command)
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert (tmp_path / "utf8-my letter.txt").read_text("utf-8") == TEXTS["ko"]
    with pytest.raises(DataError, match=r"iconv -f UTF-16 -t UTF-8 FILE \|"):
        check_width(TEXTS["ko"].encode("utf-16"), "standard input")
    assert iconv("a.gz", "BIG5") == "zcat a.gz | iconv -f BIG5 -t UTF-8 > utf8-a"


def test_what_cannot_be_told_is_said_to_be_so() -> None:
    with pytest.raises(DataError, match="its encoding cannot be determined"):
        check_encoding(b"a \x81 b \x8d c \x8f d \x90 e \x9d\n" * 3, "my.txt", "en")


@pytest.mark.parametrize(
    ("language", "encoding", "reads_as"),
    [
        ("uk", "KOI8-U", "KOI8-U"),
        ("tr", "ISO-8859-9", "WINDOWS-1254"),
        ("ar", "ISO-8859-6", "ISO-8859-6"),
        ("ar", "WINDOWS-1256", "WINDOWS-1256"),
    ],
)
def test_the_name_of_a_file_tells_the_language(language: str, encoding: str, reads_as: str) -> None:
    text = {
        "uk": "Сьогодні гарна погода. Її кіт спить на стільці.\n",
        "tr": TEXTS["tr"],
        "ar": "الطقس جميل اليوم. القطة تنام على الكرسي.\n",
    }[language]
    given = (text * 30).encode(encoding)
    with pytest.raises(DataError, match=f"it reads well as {reads_as}. Convert"):
        check_encoding(given, f"my.{language}.gz")
    assert given.decode(reads_as) == text * 30
    with pytest.raises(DataError, match=r"it is probably|cannot be determined"):
        check_encoding(given, "my.txt")
