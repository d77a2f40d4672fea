"""Looking inside what does not translate, by the API: masked models, labels, parsers."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from serving_echo import post, refused, serves
from untrained_run import untrained_run

from dragoman.engine.predictor import Predictor
from dragoman.engine.session import InspectionRequest, InspectionSession
from dragoman.models.interface import Memory
from dragoman.nn.layout import Sequences
from dragoman.pictures.records import AttentionRecord
from dragoman.tasks.catalogue import Run
from dragoman.tasks.classification.labeller import Labeller
from dragoman.tasks.masked.filler import Filler
from dragoman.tasks.parsing.parser import Parser

SMALL = ("model.model_dim=32", "model.ffn_dim=32", "model.layers=2")
SMALL_PARSER = (
    "model.model_dim=32", "model.ffn_dim=32", "model.encoder_layers=1", "model.decoder_layers=2",
    "model.attention.num_heads=2", "text.vocabulary=400", "search.beam=2",
)  # fmt: skip
OFF = [{"part": "encoder", "layer": 0, "head": 1}]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for name, recipe, changes in (
        ("blanks", "demo-masked", SMALL),
        ("labels", "demo-labels", (*SMALL, "plan.context=24")),
        ("parser", "wsj-sample", SMALL_PARSER),
    ):
        folder = tmp_path_factory.mktemp(name)
        made[name] = untrained_run(folder, *changes, recipe_name=recipe)
    return made


def half(message: dict[str, Any]) -> NDArray[np.float64]:
    raw = base64.b64decode(message["data"])
    return np.frombuffer(raw, "<f2").reshape(message["shape"]).astype(float)


def is_record(seen: dict[str, Any], record: AttentionRecord) -> None:
    """What the API tells is what the engine records."""
    assert seen["source_tokens"] == list(record.source)
    assert seen["target_tokens"] == list(record.target)
    for part in ("encoder", "decoder", "cross"):
        weights = getattr(record, part)
        assert seen["model"]["attentions"][part] == [weights.shape[1]] * len(weights)
        if len(weights):
            assert half(seen["attention"][part]) == pytest.approx(weights, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "text"), [("blanks", "The ___ eats the ___."), ("labels", "The dog ate the soup.")]
)
def test_what_is_read_is_looked_into(folders: dict[str, Path], name: str, text: str) -> None:
    """Its encoder, what it says, and what becomes of that without a word and a head."""
    run = Run.open(folders[name])
    predictor: Predictor[object] = Filler(run) if name == "blanks" else Labeller(run)
    said = predictor.own_output(text)
    (believed,) = predictor.score_ids([text], [said.ids])
    total = sum(believed.token_log_probabilities)

    async def check() -> None:
        async with serves(run, name)() as client:
            asked = {"text": text, "run": name}
            seen = await post(client, "/v1/look", **asked, maps=8)
            is_record(seen, predictor.look(text, said.ids))
            assert seen["best"]["text"] == said.text and seen["steps"] == seen["choices"] == []
            assert [token["id"] for token in seen["best"]["tokens"]] == list(said.ids)
            assert seen["best"]["log_probability"] == pytest.approx(total, abs=1e-4)
            hidden = await post(
                client, "/v1/look", **asked, hidden=[1], compare=list(said.ids), heads_off=OFF
            )
            assert not half(hidden["attention"]["encoder"])[..., 1].any()
            assert hidden["compared"] != pytest.approx(total, abs=1e-4)
            one = await post(client, "/v1/look/attention", **asked, part="encoder", layer=1, head=0)
            assert np.array_equal(half(one)[0, 0], half(seen["attention"]["encoder"])[1, 0])
            word = await post(client, "/v1/look/word", **asked, side="source", first=1)
            assert [stage["name"] for stage in word["stages"]][-2:] == ["encoder.0", "encoder.1"]
            place = {"part": "encoder", "layer": 1, "head": 0, "row": 1, "column": 2}
            cell = await post(client, "/v1/look/cell", **asked, **place)
            assert cell["weight"] == pytest.approx(half(one)[0, 0, 1, 2], abs=1e-3)
            heads = await post(client, "/v1/look/heads", **asked)
            assert heads["log_probability"] == pytest.approx(total, abs=1e-4)
            off = await post(client, "/v1/look", **asked, heads_off=OFF, compare=list(said.ids))
            fell = total - off["compared"]
            assert heads["fallen"]["encoder"][0][1] == pytest.approx(fell, abs=1e-3)

    asyncio.run(check())


@pytest.mark.parametrize(
    ("name", "text", "times"),
    [("blanks", "The ___ eats the ___.", 2), ("labels", "The dog ate the soup.", 1)],
)
def test_what_is_watched_is_no_reading_of_its_own(
    folders: dict[str, Path], name: str, text: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is read for what is said of it (blank after blank), and once more to score that."""
    run = Run.open(folders[name])
    predictor: Predictor[object] = Filler(run) if name == "blanks" else Labeller(run)
    ids, encode, read = predictor.source_ids(text), predictor.plain.encode, []

    def counted(source: Sequences) -> Memory:
        read.append(source)
        return encode(source)

    monkeypatch.setattr(predictor.plain, "encode", counted)
    session = InspectionSession(predictor.engine, predictor)
    seen = session.inspect(InspectionRequest(text, ids, predictor.engine.search_settings))
    assert len(read) == times + 1
    assert seen.attention["encoder"].shape[-2:] == (len(ids), len(ids))


def test_a_tree_is_looked_into(folders: dict[str, Path]) -> None:
    """Its symbols with the words that stand there; and whatever is chosen for one, a tree."""
    run, text = Run.open(folders["parser"]), "the cat (of a dog) sleeps ."
    parser = Parser(run)
    best = parser(text)

    async def check() -> None:
        async with serves(run, "parser")() as client:
            asked = {"text": text, "run": "parser", "choices": 5}
            seen = await post(client, "/v1/look", **asked)
            assert seen["best"]["text"] == best.text and seen["steps"]
            (sentence,) = (await post(client, "/v1/parse", text=text))["sentences"]
            assert sentence["trees"][0]["text"] == best.text, "the same path goes on parsing"
            is_record(seen, parser.look(text, best.ids))
            ids = [token["id"] for token in seen["best"]["tokens"]]
            for place in range(1, len(ids)):
                for choice in seen["choices"][place]:
                    if choice["id"] not in (ids[place], run.target.eos):
                        forced = [*ids[:place], choice["id"]]
                        other = await post(client, "/v1/look", **asked, prefix_tokens=forced)
                        assert other["best"]["text"] != best.text
                        assert other["best"]["text"].count("(") == other["best"]["text"].count(")")
                        return
            raise AssertionError("nothing else may stand anywhere")

    asyncio.run(check())


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("blanks", {"text": "___ " * 33}, "fills 32 at once"),
        ("blanks", {"text": " "}, "no text to look at"),
        ("blanks", {"text": "word " * 200}, "tokens at most are read"),
        ("blanks", {"text": "a ___", "compare": [5, 6]}, "has 1 tokens"),
        ("blanks", {"text": "a ___", "given": [5]}, "writes nothing"),
        ("labels", {"text": "a dog", "sentence": 1}, "does not split"),
        ("labels", {"text": "a dog", "hidden": [40]}, "hidden"),
        ("parser", {"text": "word " * 300}, "can be looked at"),
        ("parser", {"text": "a dog", "prefix_tokens": [2]}, "prefix"),
    ],
)
def test_errors_are_clear(
    folders: dict[str, Path], name: str, values: dict[str, Any], words: str
) -> None:
    run = Run.open(folders[name])
    assert len(refused(run, name, "/v1/look", {**values, "run": name}, 400, words)) < 300


def test_what_has_no_encoder_is_refused(tmp_path: Path) -> None:
    """A run that labels by going over a text from left to right."""
    changes = (*SMALL, "plan.context=24", 'model.kind="decoder"')
    run = Run.open(untrained_run(tmp_path, *changes, recipe_name="demo-labels"))
    refused(run, "labels", "/v1/look", {"text": "a", "run": "labels"}, 400, "has no encoder")
