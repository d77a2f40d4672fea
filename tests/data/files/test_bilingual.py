"""Files that hold translations already: what is read of them, and in how much memory."""

from __future__ import annotations

import io
import re
import tracemalloc
from pathlib import Path

import pytest
from command_line import Dragoman

from dragoman.data.files.bilingual import read_tmx
from dragoman.data.files.corpora import CorpusSettings, read_pairs
from dragoman.errors import DataError

TMX = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en-GB"/><body>
<tu><tuv xml:lang="de"><seg>Der <bpt i="1">&lt;b></bpt>Hund<ept i="1">&lt;/b></ept>.</seg></tuv>
<tuv xml:lang="en"><seg>The <hi>dog</hi> &amp;
  %s.</seg></tuv></tu>
<tu><tuv xml:lang="en-US"><seg>One</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Two</seg></tuv><tuv xml:lang="de"><seg>Zwei</seg></tuv></tu>
</body></tmx>
"""
IN_TMX = [("The dog & %s.", "Der Hund."), ("Two", "Zwei")]
XLIFF = """<xliff version="1.2"><file source-language="en" target-language="de"><body>
<trans-unit id="1"><source>The <g id="1">dog</g> {0}</source>
<target>Der <g id="1">Hund</g> {0}</target></trans-unit>
<trans-unit id="2"><source>One</source></trans-unit>
<trans-unit id="3"><source>Two</source><target state="new">Two</target></trans-unit>
</body></file></xliff>
"""
PO = r"""msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\n"

msgid "The dog"
msgstr "Der Hund"

#, fuzzy
msgid "One"
msgstr "Zwei"

msgid "Two"
msgstr ""
"""
CSV = '\ufeffThe dog;Der Hund;x\n"One; ""two""\nthree";Eins\n'


@pytest.mark.parametrize(
    ("name", "data", "pairs"),
    [
        ("my.tmx", TMX.format(encoding="utf-8").encode(), IN_TMX),
        ("my.tmx", TMX.format(encoding="utf-16").encode("utf-16"), IN_TMX),
        ("my.xlf", XLIFF.encode(), [("The dog {0}", "Der Hund {0}")]),
        ("my.po", PO.encode(), [("The dog", "Der Hund")]),
        ("my.csv", CSV.encode(), [("The dog", "Der Hund"), ('One; "two" three', "Eins")]),
    ],
)  # fmt: skip
def test_what_is_read(
    name: str, data: bytes, pairs: list[tuple[str, str]], tmp_path: Path, dragoman: Dragoman
) -> None:
    (tmp_path / name).write_bytes(data)
    found = read_pairs(CorpusSettings(source=str(tmp_path / name)))
    assert [(pair.source, pair.target) for pair in found] == pairs
    said = dragoman("data", "show", tmp_path / name)
    assert said.code == 0, said.err
    assert re.search(rf"^read +{len(pairs)}$", said.out, re.MULTILINE)


def test_a_memory_of_several_languages_is_asked_for_two(tmp_path: Path) -> None:
    text = TMX.format(encoding="utf-8").replace(
        "</tu>", '<tuv xml:lang="fr"><seg>x</seg></tuv></tu>'
    )
    (tmp_path / "my.tmx").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"line 4.*en, fr.*--keys"):
        list(read_pairs(CorpusSettings(source=str(tmp_path / "my.tmx"))))
    asked = CorpusSettings(source=str(tmp_path / "my.tmx"), source_key="fr", target_key="de")
    assert [pair.target for pair in read_pairs(asked)] == ["Der Hund.", "Zwei"]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("my.tmx", "<tmx><body><tu>", "line 1: it is damaged"),
        ("my.tmx", '<!DOCTYPE tmx [<!ENTITY a "b">]><tmx/>', "declares an entity"),
        ("my.csv", 'a,b\n"c,d\n', "line 2: it is no CSV"),
        ("my.csv", "a,b\nc\n", "line 2: column 2 is wanted"),
        ("my.po", 'msgid "a\n', "line 1"),
    ],
)
def test_damage_is_named_with_its_line(name: str, text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        list(read_pairs(CorpusSettings(source=str(tmp_path / name))))


class Endless(io.RawIOBase):
    """A memory of ``count`` entries that is made as it is read."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._held = b'<tmx version="1.4"><header srclang="en"/><body>'

    def read(self, size: int = -1) -> bytes:
        entry = (
            b'<tu><tuv xml:lang="en"><seg>The dog sleeps in the green house.</seg></tuv>'
            b'<tuv xml:lang="de"><seg>Der Hund schl\xc3\xa4ft.</seg></tuv></tu>\n'
        )
        while len(self._held) < size and self._left:
            self._held += entry * min(1000, self._left)
            self._left -= min(1000, self._left)
            if not self._left:
                self._held += b"</body></tmx>"
        data, self._held = self._held[:size], self._held[size:]
        return data


def test_a_memory_of_any_size_is_read_in_flat_memory() -> None:
    peaks = []
    for count in (16_000, 48_000):
        tracemalloc.start()
        assert sum(1 for _ in read_tmx(Endless(count), "my.tmx", None, None)) == count  # type: ignore[arg-type]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0], peaks


@pytest.mark.slow  # words are aligned, and a test set is measured
def test_they_are_aligned_and_measured_too(
    tmp_path: Path, tiny_run: Path, dragoman: Dragoman
) -> None:
    (tmp_path / "my.tmx").write_text(TMX.format(encoding="utf-8"), encoding="utf-8")
    said = dragoman("align", tiny_run, tmp_path / "my.tmx")
    assert said.code == 0 and len(said.out.splitlines()) == 2, said.err
    said = dragoman("evaluate", tiny_run, tmp_path / "my.tmx", "--keys", "en", "de")
    assert said.code == 0 and "BLEU" in said.out, said.err
