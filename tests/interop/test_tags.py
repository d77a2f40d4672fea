"""A model of several target languages: one tag for all sources of a use, wherever text is read."""

from __future__ import annotations

import asyncio
import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Dragoman
from foreign_models import PAIRS, marian_folder
from serving_echo import client_of, open_run, post

from dragoman.documents.placing import Translated
from dragoman.engine.ensemble import _reader
from dragoman.engine.settings import TranslatorSettings
from dragoman.formats.html.document import HtmlDocument
from dragoman.forms.languages import same_language, shortest_code
from dragoman.interop.folder import import_model
from dragoman.nn.layout import Sequences
from dragoman.search.settings import SearchSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.sizing.start_from import for_fine_tuning
from dragoman.tasks.catalogue import Recipe, Run

LINES = [pair.source for pair in PAIRS.test[:8]]
FP32 = TranslatorSettings(precision="fp32")
SHORT = SearchSettings(beam=2, max_length=12)


def folder_with(folder: Path, tags: dict[str, str]) -> Path:
    """A folder of a model whose tags de and ko have other names."""
    marian_folder(folder)
    text = (folder / "vocab.json").read_text()
    for old, new in tags.items():
        text = text.replace(f'">>{old}<<"', json.dumps(new))
    (folder / "vocab.json").write_text(text)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    named = {"de": ">>deu<<", "ko": ">>cmn_Hans<<"}
    return folder_with(tmp_path_factory.mktemp("model") / "opus-mt-en-mul", named)


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """A run whose tag is chosen when it is used."""
    import_model(folder, folder.parent / "run", None)
    return Run.open(folder.parent / "run")


def test_a_tag_reads_and_writes_what_the_text_with_it_does(run: Run) -> None:
    german = run.with_tag("deu")
    written = [f">>deu<< {line}" for line in LINES]
    assert german.source.values(LINES) == run.source.values(written)
    assert german.source.values([" "]) == [[german.source.eos]]
    found = german.open_predictor(FP32).batch(LINES, settings=SHORT)
    chinese = run.with_tag("zh").open_predictor(FP32).batch(LINES, settings=SHORT)
    assert [one.ids for one in found] != [one.ids for one in chinese]
    by_hand = run.with_tag("deu").open_predictor(FP32)
    by_hand.engine.source.before = ()
    assert [one.ids for one in found] == [one.ids for one in by_hand.batch(written, settings=SHORT)]


def test_a_training_and_an_ensemble_read_the_tag(run: Run) -> None:
    german, chinese = run.with_tag("deu").source, run.with_tag("zh").source
    values = german.values(LINES)
    assert [[*one, german.eos] for one in german.encode(LINES)] == values
    assert german.fingerprint != chinese.fingerprint != run.source.fingerprint
    read = _reader(german, chinese)(Sequences.of([torch.tensor(one) for one in values]))
    found = read.values.split(list(read.layout.lengths))
    assert [one.tolist() for one in found] == chinese.values(LINES)


def test_each_sentence_and_each_part_begins_with_the_tag(run: Run) -> None:
    german = run.with_tag("deu")
    text = " ".join(LINES)
    (token,) = german.source.before
    (cut,) = german.source.cut([text], german.target, longest=100, whole=False)
    assert len(cut.pieces) == len(LINES)
    (whole,) = german.source.cut([text], german.target, longest=9, whole=True)
    for piece in (*cut.pieces, *whole.pieces):
        assert piece.values[0] == token and token not in piece.values[1:]
        assert len(piece.values) <= 100 and ">>" not in piece.text
    assert all(len(piece.values) <= 9 for piece in whole.pieces)
    parts = [german.source.without_tag(piece.values) for piece in whole.pieces]
    alone = german.source.tokens([piece.text for piece in cut.pieces])
    assert [*chain(*parts)] == [*chain(*alone)]


def test_attention_is_that_of_the_tagged_source_without_its_tag(run: Run) -> None:
    engine = run.with_tag("deu").open_predictor(FP32).engine
    source, target = engine.source.tokens(LINES[:1])[0], engine.target.tokens(["der"])[0]
    ((found,),) = engine.attention.cross([(source, target)])
    record = engine.attention.record(engine.source.values(LINES[:1])[0], target)
    assert np.allclose(found, record.cross[..., 1:], atol=1e-6)
    untagged = run.with_tag("deu").open_predictor(FP32).engine
    untagged.source.before = ()
    ((other,),) = untagged.attention.cross([(source, target)])
    assert found.shape == other.shape and not np.allclose(found, other, atol=1e-6)


def test_codes_in_a_document_are_placed_without_the_tag(run: Run) -> None:
    engine = run.with_tag("deu").open_predictor(FP32).engine
    document = HtmlDocument()
    list(document.reading(f"<p>{LINES[0].replace(' ', ' <b>', 1)}</b></p>"))
    (unit,) = document.texts
    (passage,) = engine.cut([unit.text], whole=False)
    found = [one[0] for one in engine.search(engine.requests([passage], SHORT))]
    ((source, _),) = Translated(unit, passage, found, engine.source).pairs
    assert source == engine.source.tokens([unit.text])[0]


def test_a_run_without_a_tag_says_which_there_are(
    run: Run, folder: Path, dragoman: Dragoman
) -> None:
    for verb in ("translate", "look"):
        said = dragoman(verb, run.folder, "The dog sleeps.")
        assert said.code == 1 and not said.out
        assert "several languages: cmn_Hans, deu. Choose one with --tag cmn_Hans" in said.err
    out = folder.parent / "never"
    for given in (("translate", run.folder, "The dog."), ("import", folder, "--to", out)):
        said = dragoman(*given, "--tag", "fra")
        assert (
            said.code == 1 and "fra is not a tag of this run. Its tags: cmn_Hans, deu" in said.err
        )
    assert not out.exists()


def test_commands_take_a_tag_or_that_of_the_run(
    run: Run, folder: Path, tmp_path: Path, dragoman: Dragoman
) -> None:
    to = tmp_path / "german"
    assert dragoman("import", folder, "--to", to, "--tag", "deu").code == 0
    languages = Run.open(to).recipe.languages
    assert (languages.source, languages.target, languages.tag) == ("en", "de", "deu")
    files = [tmp_path / "my.en", tmp_path / "my.de"]
    for file, text in zip(files, (LINES[0], "der hund"), strict=True):
        file.write_text(text + "\n")
    for verb, *given in (
        ["translate", LINES[0], "--set", "max_length=9"],
        ["look", LINES[0], "--target", "der hund"],
        ["score", *files],
        ["align", *files, "--head", "1.1"],
        ["evaluate", *files, "--set", "max_length=9", "--output", tmp_path / "out"],
    ):
        seen = []
        for asked in ([to], [run.folder, "--tag", "de"], [run.folder, "--tag", "zh"]):
            said = dragoman(verb, *asked, *given)
            assert said.code == 0, said.err
            seen.append((tmp_path / "out").read_text() if verb == "evaluate" else said.out)
        assert seen[0] == seen[1], verb
        assert verb == "align" or seen[0] != seen[2], verb


def test_the_only_tag_is_taken(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "opus-mt-en-mul", {"de": ">>fra<<", "ko": "frfrfr"})
    assert import_model(folder, tmp_path / "run", None) == []
    assert Run.open(tmp_path / "run").recipe.languages.tag == "fra"


def test_a_training_keeps_the_tag_while_the_target_stays(run: Run) -> None:
    learned = run.with_tag("deu").recipe

    def kept(**languages: str) -> str | None:
        recipe = Recipe.parse({"languages": languages}, where="a test")
        return for_fine_tuning(recipe, learned).languages.tag

    assert kept() == kept(source="en", target="de") == "deu"
    assert kept(target="fr") is None
    assert kept(target="zh", tag="cmn_Hans") == "cmn_Hans"


def test_a_server_translates_into_the_language_that_is_asked_for(run: Run) -> None:
    wanted = {
        code: run.with_tag(code).open_predictor(FP32).batch(LINES[:1])[0].text
        for code in ("de", "zh")
    }
    assert wanted["de"] != wanted["zh"]

    async def check() -> None:
        served = open_run(run, ServeSettings(precision="fp32"), "mul")
        async with client_of(served) as client:
            listed = (await client.get("/languages")).json()
            assert [one["code"] for one in listed] == ["en", "zh-Hans", "de"]
            assert listed[0]["targets"] == ["zh-Hans", "de"]
            (told,) = (await client.get("/v1/info")).json()["runs"]
            assert told["targets"] == ["zh-Hans", "de"]
            for target, code in (
                ("de", "de"), ("deu", "de"), ("de-AT", "de"), ("zh", "zh"), ("cmn_Hans", "zh"),
                ("zh-Hans", "zh"), ("de", "de"),
            ):  # fmt: skip
                given = {"q": LINES[0], "source": "en", "target": target}
                assert (await post(client, "/translate", **given))["translatedText"] == wanted[code]
            asked = {"text": LINES[0], "target": "de", "warnings": True}
            (own,) = (await post(client, "/v1/translate", **asked))["translations"]
            assert (own["target"], own["run"], own["text"]) == ("de", "mul", wanted["de"])
            looks = [await post(client, "/v1/look", text=LINES[0], target=one) for one in wanted]
            assert [one["source_tokens"][0] for one in looks] == ["▁>>deu<<", "▁>>cmn_Hans<<"]
            assert looks[0]["best"]["tokens"] != looks[1]["best"]["tokens"]
            for target, words in ((None, "Set the target language: zh-Hans, de."),
                                  ("fr", "Use en to zh-Hans, en to de.")):  # fmt: skip
                answer = await client.post("/v1/translate", json={"text": "a", "target": target})
                assert answer.status_code == 400 and words in answer.text

    asyncio.run(check())


def test_a_server_knows_the_default_of_the_run(run: Run) -> None:
    async def check() -> None:
        async with client_of(open_run(run.with_tag("deu"), ServeSettings(), "mul")) as client:
            answer = await post(client, "/v1/translate", text=LINES[0])
            assert answer["translations"][0]["target"] == "de"
            assert (await client.get("/languages")).json()[0]["targets"] == ["de", "zh-Hans"]

    asyncio.run(check())


def test_codes_name_the_same_language() -> None:
    assert [*map(shortest_code, ("deu", "cmn_Hans", "pt-BR", "de", "haw"))] == [
        "de", "zh-Hans", "pt-BR", "de", "haw",
    ]  # fmt: skip
    codes = ["cmn", "zho", "srp_Latn", "srp_Cyrl"]
    assert same_language("zho", codes) == ["zho", "cmn"]
    assert same_language("zh", codes) == ["cmn", "zho"]
    assert same_language("sr-Cyrl", codes) == ["srp_Cyrl", "srp_Latn"]
    assert same_language("de", codes) == []
