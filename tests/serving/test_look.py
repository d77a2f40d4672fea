"""Looking inside over the API: compact for long texts, the same numbers whichever way one asks."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from serving_echo import client_of, open_run
from untrained_run import untrained_run

from dragoman.forms.text_form import MosesText
from dragoman.insight.experiments import order_experiment
from dragoman.insight.subject import Subject
from dragoman.nn.layout import Sequences
from dragoman.search.settings import SearchSettings
from dragoman.serving.look import inspector
from dragoman.serving.operate.settings import ServeSettings
from dragoman.tasks.catalogue import Run
from dragoman.tasks.translation.translator import Translator, TranslatorSettings

Open = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]
TEXT = "The small man eats the dinosaur."


@pytest.fixture(scope="module")
def run(tiny_run: Path) -> Run:
    return Run.open(tiny_run)


@pytest.fixture
def client(run: Run) -> Open:
    """A way to a server of the tiny run; each use is a server of its own."""

    def make(**settings: Any) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        served = open_run(run, ServeSettings(precision="fp32", **settings), "tiny")
        return client_of(served)

    return make


def half(message: dict[str, Any]) -> NDArray[np.float64]:
    raw = base64.b64decode(message["data"])
    return np.frombuffer(raw, "<f2").reshape(message["shape"]).astype(float)


async def post(client: httpx.AsyncClient, path: str, **values: Any) -> Any:
    answer = await client.post(path, json=values)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_parts_are_parts_of_the_whole(client: Open) -> None:
    """Single heads, means, words and small maps all come from the same weights."""

    async def check() -> None:
        async with client() as http:
            seen = await post(http, "/v1/look", text=TEXT, maps=6, choices=3)
            for part in ("encoder", "decoder", "cross"):
                whole = half(seen["attention"][part])
                one = await post(http, "/v1/look/attention", text=TEXT, part=part, layer=1, head=2)
                assert np.array_equal(half(one)[0, 0], whole[1, 2])
                mean = await post(
                    http, "/v1/look/attention", text=TEXT, part=part, layer=0, mean=True
                )
                assert np.allclose(half(mean)[0, 0], whole[0].mean(0), atol=1e-3)
                off = {"part": part, "layer": 0, "head": 1}
                without = await post(http, "/v1/look", text=TEXT, heads_off=[off], attention=[part])
                mean = await post(
                    http, "/v1/look/attention", text=TEXT, heads_off=[off], part=part, layer=0,
                    mean=True,
                )  # fmt: skip
                on = np.delete(half(without["attention"][part])[0], 1, axis=0)
                assert np.allclose(half(mean)[0, 0], on.mean(0), atol=1e-3)
                small = seen["maps"][part]
                raw = np.frombuffer(base64.b64decode(small["data"]), np.uint8).reshape(
                    small["shape"]
                )
                assert raw.shape[2] <= 6 and raw.shape[3] <= 6
                assert np.allclose(raw.max((2, 3)) / 255, whole.max((2, 3)), atol=0.5 / 255 + 1e-3)
            word = await post(http, "/v1/look/word", text=TEXT, side="target", first=1, count=2)
            assert np.array_equal(
                half(word["attention"]["cross"]), half(seen["attention"]["cross"])[:, :, 1:3]
            )
            word = await post(http, "/v1/look/word", text=TEXT, side="source", first=0)
            column = half(seen["attention"]["cross"])[:, :, :, 0]
            assert np.array_equal(half(word["looked_at"]["cross"])[:, :, 0], column)
            for place, choices in enumerate(seen["choices"][:-1]):
                chosen = seen["best"]["tokens"][place]
                known = {choice["id"]: choice["probability"] for choice in choices}
                if chosen["id"] in known:
                    assert np.log(known[chosen["id"]]) == pytest.approx(
                        chosen["log_probability"], abs=0.02
                    )

    asyncio.run(check())


def test_one_sentence_is_looked_into(client: Open) -> None:
    """The same as if it stood alone, and the others are named; none beyond the last."""
    two = f"{TEXT} The dog sees it."

    async def check() -> None:
        async with client() as http:
            alone = await post(http, "/v1/look", text="The dog sees it.")
            seen = await post(http, "/v1/look", text=two, sentence=1)
            assert seen["sentences"] == [TEXT, "The dog sees it."]
            same = dict.fromkeys(("sentences", "detected"))
            assert seen | same == alone | same
            asked = {"side": "source", "first": 0}
            word = await post(http, "/v1/look/word", text=two, sentence=1, **asked)
            assert word == await post(http, "/v1/look/word", text="The dog sees it.", **asked)
            whole = await post(http, "/v1/look", text=two)
            assert len(whole["source_ids"]) > len(seen["source_ids"]) + 4
            refused = await http.post("/v1/look", json={"text": two, "sentence": 2})
            assert refused.status_code == 400 and "the text has 2" in refused.json()["error"]

    asyncio.run(check())


def test_the_rows_of_a_word_are_the_models_own(client: Open, run: Run) -> None:
    async def check() -> None:
        async with client() as http:
            word = await post(http, "/v1/look/word", text=TEXT, side="source", first=2)
            ids = [*run.source_text.encode([TEXT])[0].tolist(), run.source_text.eos]
            with torch.inference_mode():
                memory = run.model().encode(Sequences.of([torch.tensor(ids)]))
            rows = half(word["vectors"])[0]
            names = [stage["name"] for stage in word["stages"]]
            assert names[:3] == ["embedding", "position", "sum"] and names[-1] == "encoder.1"
            assert np.allclose(rows[-1, 0], memory.rows[2].numpy(), atol=5e-3)
            assert np.allclose(rows[0] + rows[1], rows[2], atol=5e-3)
            assert word["stages"][2]["sizes"][0] == pytest.approx(
                float(np.sqrt(np.square(rows[2, 0]).mean())), abs=1e-2
            )

    asyncio.run(check())


def test_long_texts_are_told_in_small_pieces(client: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six hundred tokens and more: no megabytes, and what was let go is made again."""
    text = "The small man eats the dinosaur and the big dog sees it. " * 48
    monkeypatch.setattr(inspector, "MAX_KEPT", 1)

    async def check() -> None:
        async with client() as http:
            asked = {"text": text, "beam": 1, "max_length": 40}
            answer = await http.post(
                "/v1/look", json={**asked, "attention_within": 400_000, "maps": 56}
            )
            seen = answer.json()
            assert len(seen["source_tokens"]) > 600 and seen["attention"] == {}
            assert len(answer.content) < 300_000
            await post(http, "/v1/look", text=TEXT, attention=[])
            head = {**asked, "part": "encoder", "layer": 0, "head": 0}
            one = half(await post(http, "/v1/look/attention", **head))
            assert np.allclose(one.sum(-1), 1, atol=0.05)
            refused = await http.post("/v1/look", json=asked)
            assert refused.status_code == 400 and "/v1/look/attention" in refused.json()["error"]
        async with client(look_longest=100) as http:
            refused = await http.post("/v1/look", json=asked)
            assert refused.status_code == 400 and "100" in refused.json()["error"]

    asyncio.run(check())


def test_what_each_head_is_good_for(client: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """By how much the doubt grows: the same as asking for it head by head. Too many are refused."""

    async def check() -> None:
        async with client() as http:
            seen = await post(http, "/v1/look", text=TEXT)
            tokens = [token["id"] for token in seen["best"]["tokens"]]
            found = await post(http, "/v1/look/heads", text=TEXT)
            whole = found["log_probability"]
            again = await post(http, "/v1/look", text=TEXT, compare=tokens, attention=[])
            assert whole == pytest.approx(again["compared"], abs=1e-3)
            assert {part: np.shape(one) for part, one in found["fallen"].items()} == {
                "encoder": (2, 4), "decoder": (2, 4), "cross": (2, 4),
            }  # fmt: skip
            for part, layer, head in (("encoder", 0, 3), ("decoder", 1, 0), ("cross", 1, 2)):
                off = {"part": part, "layer": layer, "head": head}
                without = await post(
                    http, "/v1/look", text=TEXT, heads_off=[off], compare=tokens, attention=[]
                )
                fallen = found["fallen"][part][layer][head]
                assert whole - fallen == pytest.approx(without["compared"], abs=1e-3)
            monkeypatch.setattr(inspector, "MAX_MEASURED", 24 * len(tokens))
            refused = await http.post("/v1/look/heads", json={"text": TEXT})
            assert refused.status_code == 400 and "24 heads" in refused.json()["error"]

    asyncio.run(check())


def test_a_cell_is_opened(client: Open) -> None:
    async def check() -> None:
        async with client() as http:
            seen = await post(http, "/v1/look", text=TEXT)
            whole = half(seen["attention"]["cross"])
            asked = {"text": TEXT, "part": "cross", "layer": 1, "head": 2, "column": 3}
            cell = await post(http, "/v1/look/cell", row=1, **asked)
            assert cell["weight"] == pytest.approx(whole[1, 2, 1, 3], abs=1e-3)
            assert np.dot(cell["query"], cell["key"]) == pytest.approx(cell["product"], abs=2e-3)
            assert len(cell["adds"]) == seen["model"]["model_dim"]
            beyond = await http.post("/v1/look/cell", json={"row": whole.shape[2], **asked})
            assert beyond.status_code == 400 and "row and column" in beyond.json()["error"]

    asyncio.run(check())


def test_doubt_in_another_translation(client: Open, run: Run) -> None:
    """``compare`` is force decoding: of the best itself it is its own log-probability."""

    async def check() -> None:
        async with client() as http:
            seen = await post(http, "/v1/look", text=TEXT, attention=[], beam=2, max_length=80)
            best = seen["best"]
            tokens = [token["id"] for token in best["tokens"]]
            again = await post(http, "/v1/look", text=TEXT, attention=[], compare=tokens)
            if best["finished"]:
                assert again["compared"] == pytest.approx(best["log_probability"], abs=1e-3)
            else:
                assert again["compared"] < best["log_probability"]
            off = [{"part": "cross", "layer": 0, "head": head} for head in range(4)]
            under = await post(
                http, "/v1/look", text=TEXT, attention=[], compare=tokens, heads_off=off
            )
            assert under["compared"] != again["compared"]

    asyncio.run(check())


@pytest.mark.parametrize(("kind", "cross"), [("recurrent", [1]), ("convolutional", [1, 1])])
def test_a_model_that_attends_to_its_source_alone(
    tmp_path: Path, kind: str, cross: list[int]
) -> None:
    """An LSTM, convolutions: what attention they have is told as any other, of others no layers."""
    run = Run.open(untrained_run(tmp_path, recipe_name=f"demo-{kind}"))
    served = open_run(run, ServeSettings(precision="fp32"), kind)

    async def check() -> None:
        values = {"text": TEXT, "max_length": 6}
        async with client_of(served) as http:
            seen = await post(http, "/v1/look", maps=8, **values)
            word = await post(http, "/v1/look/word", side="source", first=0, **values)
            fallen = await post(http, "/v1/look/heads", **values)
            cell = {"part": "cross", "layer": 0, "head": 0, "row": 0, "column": 0}
            refused = await http.post("/v1/look/cell", json={**values, **cell})
        layers = {"encoder": [], "decoder": [], "cross": cross}
        assert seen["model"]["attentions"] == layers
        for told in (seen["attention"], seen["maps"]):
            assert {part: told[part]["shape"][0] for part in layers} == {
                part: len(heads) for part, heads in layers.items()
            }
        weights = half(seen["attention"]["cross"])
        assert weights.sum(axis=-1) == pytest.approx(1, abs=2e-3)
        assert half(word["looked_at"]["cross"])[0, 0, 0] == pytest.approx(weights[0, 0, :, 0])
        assert fallen["fallen"]["encoder"] == [] and len(fallen["fallen"]["cross"][0]) == 1
        assert refused.status_code == 400 and kind in refused.json()["error"]

    asyncio.run(check())


def test_what_is_looked_at_is_what_translates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same text read, the same symbols forbidden, the same tokens found: with Moses too, and
    by a model that would write the unknown symbol if it might."""
    pytest.importorskip("sacremoses")
    run = Run.open(untrained_run(tmp_path, "data.moses=true", "text.byte_fallback=true"))
    model, text = run.model(), run.target_text
    project = model.project

    def fond_of_what_is_forbidden(hidden: torch.Tensor, *ids: torch.Tensor) -> torch.Tensor:
        logits = project(hidden, *ids)
        logits[:, list(text.forbidden)] += 100
        return logits

    monkeypatch.setattr(run, "model", lambda: model)
    monkeypatch.setattr(model, "project", fond_of_what_is_forbidden)
    served = open_run(run, ServeSettings(precision="fp32"), "fond")
    translator = Translator(run, TranslatorSettings(precision="fp32"))
    asked = "The OLD man's dog (it's small) sleeps."
    expected = translator(asked, settings=SearchSettings(beam=2, max_length=12))
    assert expected.ids and not set(expected.ids) & set(text.forbidden)
    assert expected.text == MosesText("de").restore(expected.prepared)

    async def check() -> None:
        values = {"text": asked, "beam": 2, "length_penalty": 0.6, "max_length": 12}
        async with client_of(served) as http:
            seen = await post(http, "/v1/look", attention=[], **values)
            given = await post(http, "/v1/translate", **values)
        (best,) = given["translations"][0]["sentences"][0]["hypotheses"]
        assert seen["source_ids"] == translator.source_ids(asked)
        for found in (seen["best"], best):
            assert [token["id"] for token in found["tokens"]] == list(expected.ids)
            assert found["text"] == expected.text

    asyncio.run(check())

    both = "the dog sees the man", "the man sees the dog"
    told = order_experiment(translator, *both).with_positions.translations
    assert told == tuple(translator(one).text for one in both)
    found = Subject(translator, "the dog", ()).hypotheses
    assert not {token for one in found for token in one.tokens} & set(text.forbidden)


def test_figures(client: Open) -> None:
    async def check() -> None:
        async with client() as http:
            listed = (await http.get("/v1/figures")).json()["figures"]
            assert {"position-sinusoidal", "temperature", "pronoun"} < {
                one["name"] for one in listed
            }
            named = {one["name"]: one for one in listed}
            waves = named["position-sinusoidal"]
            assert (waves["group"], waves["encoding"]["en"]) == ("positions", "sines")
            assert waves["values"]["dimension"][-1] == 512 and "sentence" not in waves
            assert "encoding" not in named["scale"] and named["mask"]["sentence"] == "chosen"
            assert named["alignment"]["sentence"] == "first" and not named["mask"]["values"]
            assert all(one["needs_run"] for one in listed if "sentence" in one)
            made = await post(
                http,
                "/v1/figures",
                name="position-sinusoidal",
                values={"dimension": 16, "length": 32},
            )
            values = made["panels"][0]["values"]
            table = np.frombuffer(base64.b64decode(values["data"]), "<f4").reshape(values["shape"])
            angle = np.arange(32)[:, None] / 10000 ** (np.arange(0, 16, 2) / 16)
            assert np.allclose(table[:, 0::2], np.sin(angle), atol=1e-6)
            assert np.allclose(table[:, 1::2], np.cos(angle), atol=1e-6)
            assert {slider["name"]: slider["value"] for slider in made["sliders"]} == {
                "dimension": 16,
                "length": 32,
            }
            own = await post(
                http,
                "/v1/figures",
                name="attention-cross",
                sentence=TEXT,
                values={"layer": 1, "head": 2},
            )
            assert own["run"] and own["sentence"] == TEXT
            data = await post(http, "/v1/figures", name="label-smoothing", data=True)
            assert data["files"]["label-smoothing.csv"].startswith("token,")
            for wrong in (
                {"name": "none"},
                {"name": "scale", "values": {"d": 1}},
                {"name": "mask", "values": {"layer": 77}},
                {"name": "position-learned"},
                {"name": "pronoun"},
                {"name": "x" * 10_000},
                {"name": "scale", "values": {"x" * 10_000: 1}},
                {"x" * 10_000: 1},
            ):
                refused = await http.post("/v1/figures", json=wrong)
                assert refused.status_code == 400, wrong
                assert refused.json()["error"] and len(refused.content) < 1_000
            await post(http, "/v1/figures", name="lookup", sentence="\u200b")

    asyncio.run(check())
