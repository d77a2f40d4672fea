"""Files that hold translations already: what is read of them, and in how much memory."""

from __future__ import annotations

import io
import re
import tracemalloc
from pathlib import Path

import pytest
from command_line import Dragoman
from recipe_of_files import recipe_of
from upper_case import raised

from dragoman.base.errors import DataError
from dragoman.data.files.bilingual import read_tmx
from dragoman.data.files.corpora import CorpusSettings, read_pairs
from dragoman.formats.units.document import OutputOptions
from dragoman.sizing.options import TrainOptions
from dragoman.tasks.from_files import name_of

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


XLIFF_STATES = {
    **dict.fromkeys(("translated", "final", "signed-off"), True),
    **dict.fromkeys(("new", "needs-translation", "needs-adaptation", "needs-l10n"), False),
    **dict.fromkeys(("needs-review-translation", "needs-review-adaptation"), False),
    **dict.fromkeys(("needs-review-l10n", "x-rejected"), False),
}


def pairs_of(tmp_path: Path, name: str, data: str) -> list[tuple[str, str]]:
    (tmp_path / name).write_text(data, encoding="utf-8")
    found = read_pairs(CorpusSettings(source=str(tmp_path / name)))
    return [(pair.source, pair.target) for pair in found]


def test_which_states_of_xliff_are_learned_from(tmp_path: Path) -> None:
    def unit(unit: str, target: str) -> str:
        begin = f'<xliff version="1.2"><file><body><trans-unit id="a"{unit}><source>One</source>'
        return f"{begin}<target{target}>Eins</target></trans-unit></body></file></xliff>"

    def teaches(more: str, target: str) -> bool:
        return pairs_of(tmp_path, "a.xlf", unit(more, target)) == [("One", "Eins")]

    for state, wanted in XLIFF_STATES.items():
        assert teaches("", f' state="{state}"') == wanted, state
        assert teaches(' approved="yes"', f' state="{state}"') == wanted, state
        machine = f' state="{state}" state-qualifier="leveraged-mt"'
        assert teaches("", machine) == (state in ("final", "signed-off")), state
    for origin in ("fuzzy-match", "rejected-grammar", "rejected-inaccurate", "mt-suggestion"):
        assert not teaches("", f' state-qualifier="{origin}"'), origin
    assert teaches("", "") and teaches(' approved="yes"', "") and teaches("", ' state=""')
    assert not teaches(' approved="no"', "")
    for state in ("translated", "reviewed", "final", "initial"):
        for more, is_machine in (("", False), (' subState="dragoman:machine"', True)):
            text = (
                f'<xliff version="2.0"><file><unit id="a"><segment state="{state}"{more}>'
                "<source>One</source><target>Eins</target></segment></unit></file></xliff>"
            )
            wanted = state != "initial" and not (is_machine and state == "translated")
            assert bool(pairs_of(tmp_path, "a.xlf", text)) == wanted, (state, more)


@pytest.mark.parametrize("name", ["a.xlf", "b.xlf", "a.po", "a.tmx"])
def test_what_we_have_translated_is_not_learned_from(name: str, tmp_path: Path) -> None:
    """Unless somebody says by --final that it is done."""
    data = {
        "a.xlf": '<xliff version="1.2"><file target-language="de"><body><trans-unit>'
        "<source>One</source></trans-unit></body></file></xliff>",
        "b.xlf": '<xliff version="2.0"><file><unit id="a"><segment><source>One</source>'
        "</segment></unit></file></xliff>",
        "a.po": 'msgid "One"\nmsgstr ""\n',
        "a.tmx": '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en">'
        "<seg>One</seg></tuv></tu></body></tmx>",
    }[name]
    assert pairs_of(tmp_path, name, data) == []
    made = raised(data, name).decode()
    assert "ONE" in made and pairs_of(tmp_path, name, made) == []
    assert raised(made, name).decode() == made, "it waits no more"
    final = raised(data, name, OutputOptions("de", final=True)).decode()
    assert pairs_of(tmp_path, name, final) == [("One", "ONE")]


def test_an_entry_that_a_machine_has_made_is_not_learned_from(tmp_path: Path) -> None:
    english, german = '<tuv xml:lang="en"><seg>One</seg>', '<tuv xml:lang="de"{}><seg>Eins</seg>'
    entry = f"<tu{{}}>{english}</tuv>{german}</tuv></tu>"
    for of_entry, of_text, wanted in (
        ("", "", True),
        (' creationid="ANNA"', "", True),
        (' creationid="MT!"', "", False),
        (' creationid="ANNA"', ' creationid="MT!"', False),
    ):
        memory = f'<tmx version="1.4"><header srclang="en"/><body>{entry}</body></tmx>'
        found = pairs_of(tmp_path, "a.tmx", memory.format(of_entry, of_text))
        assert bool(found) == wanted, (of_entry, of_text)


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
    ("name", "text", "keys", "languages"),
    [
        ("my.tmx", TMX, None, ("en", "de")),
        ("my.tmx", TMX.replace("en-GB", "*all*"), None, ("de", "en")),
        ("my.tmx", TMX, ("de", "en-US"), ("de", "en")),
        ("my.xlf", XLIFF, None, ("en", "de")),
        ("my.po", PO.replace('UTF-8\\n"', 'UTF-8\\n"\n"Language: de_AT\\n"'), None, ("und", "de")),
        ("my.csv", CSV, None, ("und", "und")),
    ],
)  # fmt: skip
def test_the_languages_that_a_file_says_are_those_of_the_run(
    name: str, text: str, keys: tuple[str, str] | None, languages: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text.format(encoding="utf-8") if name == "my.tmx" else text)
    recipe, _ = recipe_of([str(tmp_path / name)], keys=keys, learns=False)
    assert (recipe.languages.source, recipe.languages.target) == languages
    assert recipe.name == ("my" if "und" in languages else "-".join(languages))
    told, _ = recipe_of([str(tmp_path / name)], keys=keys, languages="ko-fr", learns=False)
    assert (told.languages.source, told.languages.target) == ("ko", "fr")
    assert name_of(TrainOptions(inputs=[str(tmp_path / name)])) in (None, recipe.name)


def test_files_of_several_pairs_of_languages_are_not_mixed(tmp_path: Path) -> None:
    text = TMX.format(encoding="utf-8").replace("en-GB", "*all*")
    last = text.rindex('xml:lang="de"')
    french = f'{text[:last]}xml:lang="fr"{text[last + 13 :]}'
    file = XLIFF[XLIFF.index("<file") : XLIFF.index("</xliff>")]
    two = XLIFF.replace("</xliff>", file.replace('"de"', '"fr"') + "</xliff>")
    for name, written, told in (
        ("my.tmx", french, r"line 8.* \(en, fr, de\)\. Choose two with --keys"),
        (
            "my.xlf",
            two,
            r'line 6: target-language="fr", but an earlier one is de\. .* only that pair',
        ),
    ):
        (tmp_path / name).write_text(written)
        with pytest.raises(DataError, match=told):
            recipe_of([str(tmp_path / name)], learns=False)
    assert pairs_of(tmp_path, "my.tmx", text)[1] == ("Zwei", "Two")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("my.tmx", "<tmx><body><tu>", "line 1 is damaged"),
        ("my.tmx", '<!DOCTYPE tmx [<!ENTITY a "b">]><tmx/>', "declares an entity"),
        ("my.csv", 'a,b\n"c,d\n', "line 2: it is not valid CSV"),
        ("my.csv", "a,b\nc\n", "line 2 has no column 2"),
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


@pytest.mark.system
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
