"""Painting as OpenAI's clients ask for it: what the painter paints, within limits, and with their
errors."""

from __future__ import annotations

import asyncio
import base64
import io
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image
from refusal_kinds import KINDS
from serving_echo import Served, client_of, echo_run, open_run, serves
from slow_work import SlowWork
from tiny_shapes import SIDE
from tiny_tasks import tiny_recipe_of
from trained_run import trained_run
from warm_server import serving

from dragoman.base.errors import RunError
from dragoman.forms.lexicon import Lexicon
from dragoman.runs.run import LEXICON
from dragoman.search.settings import SamplingSettings
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.sources.picture.codes_form import WEIGHTS, CodesForm
from dragoman.tasks.catalogue import Run
from dragoman.tasks.painting import endpoint as served_painter
from dragoman.tasks.painting.painter import PaintedPicture, Painter

PATH = "/v1/images/generations"
CAPTION, OTHER = "a red block above", "a blue block left"


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A painter that has seen some pictures."""
    folder = tmp_path_factory.mktemp("blocks")
    return trained_run(tiny_recipe_of("painting", folder), folder / "run")


@pytest.fixture
def served(blocks: Run) -> Served:
    return serves(blocks, "blocks")


async def painted(client: httpx.AsyncClient, **fields: Any) -> list[np.ndarray[Any, Any]]:
    """The pictures that are answered."""
    answer = await client.post(PATH, json={"prompt": CAPTION, **fields})
    assert answer.status_code == 200, answer.text
    assert list(answer.json()) == ["created", "data"] and answer.json()["created"] > 1.7e9
    return [_pixels(one["b64_json"]) for one in answer.json()["data"]]


def _pixels(text: str) -> np.ndarray[Any, Any]:
    with Image.open(io.BytesIO(base64.b64decode(text))) as picture:
        assert picture.format == "PNG"
        return np.asarray(picture)


def told_so(answer: httpx.Response, status: int, words: str) -> dict[str, Any]:
    """An error as OpenAI has it."""
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    error: dict[str, Any] = answer.json()["error"]
    assert list(error) == ["message", "type", "param", "code", "values"]
    assert words in error["message"] and "\n" not in error["message"], error
    kind = KINDS[error["code"]]
    assert (kind.status, set(kind.values)) == (status, set(error["values"])), error
    return error


def test_it_paints_what_the_painter_paints(blocks: Run, served: Served) -> None:
    painter = Painter(blocks)
    likeliest = [one.pixels for one in painter.paint(CAPTION, count=3)]
    drawn = painter.paint(CAPTION, count=4, sampling=SamplingSettings(seed=5))
    assert len({one.codes for one in drawn}) > 1
    assert [one.codes for one in drawn[:3]] != [one.codes for one in painter.paint(CAPTION)]

    async def check() -> None:
        async with served() as client:
            (one,) = await painted(client)
            assert (one == painter.paint(CAPTION)[0].pixels).all()
            as_it_is: list[dict[str, Any]] = [
                {"size": "auto"}, {"size": f"{SIDE}x{SIDE}"}, {"model": "dall-e-2"},
                {"model": "blocks", "n": None, "response_format": "b64_json"},
            ]  # fmt: skip
            for given in as_it_is:
                (again,) = await painted(client, **given)
                assert (again == one).all(), given
            found = await painted(client, n=3)
            assert all((a == b).all() for a, b in zip(found, likeliest, strict=True))
            found = await painted(client, n=4, seed=5)
            assert all((a == b.pixels).all() for a, b in zip(found, drawn, strict=True))
            (large,) = await painted(client, scale=7)
            assert large.shape == (7 * SIDE, 7 * SIDE, 3)
            assert (large == one.repeat(7, 0).repeat(7, 1)).all()
            (run,) = (await client.get("/v1/info")).json()["runs"]
            assert (run["task"], run["reads"], run["look"]) == ("painting", "text", False)
            assert (await client.get("/v1/runs/blocks")).status_code == 200
            looked = await client.post("/v1/look", json={"text": CAPTION, "run": "blocks"})
            assert looked.status_code == 400 and "writes codes of pictures" in looked.text
            (named,) = (await client.get("/v1/models")).json()["data"]
            assert (named["id"], named["task"]) == ("blocks", "painting")

    asyncio.run(check())


WRONG: list[tuple[dict[str, Any], int, str, str | None]] = [
    ({}, 400, "missing prompt", "prompt"),
    ({"prompt": "  "}, 400, "the caption is empty", None),
    ({"prompt": "block " * 200}, 400, "and the model reads 128 at most", None),
    ({"prompt": "b" * 2001}, 400, "takes 2,000 at once", None),
    ({"prompt": "b" + "\u0301" * 200}, 400, "combining marks", None),
    ({"prompt": CAPTION, "n": 0}, 400, "greater than or equal to 1", "n"),
    ({"prompt": CAPTION, "n": 11}, 400, "less than or equal to 10", "n"),
    ({"prompt": CAPTION, "size": "1024x1024"}, 400, f"paints pictures of {SIDE}x{SIDE}", "size"),
    ({"prompt": CAPTION, "response_format": "url"}, 400, "'b64_json'", "response_format"),
    ({"prompt": CAPTION, "output_format": "jpeg"}, 400, "'png'", "output_format"),
    ({"prompt": CAPTION, "stream": True}, 400, "False", "stream"),
    ({"prompt": CAPTION, "scale": 65}, 400, "less than or equal to 64", "scale"),
    ({"prompt": CAPTION, "scale": 64, "n": 10}, 400, "at most 1,100,000 at once", None),
    ({"prompt": CAPTION, "seed": -1}, 400, "greater than or equal to 0", "seed"),
    ({"prompt": CAPTION, "model": "nobody"}, 404, "There is no run 'nobody'", None),
    ({"prompt": CAPTION, "model": "echo"}, 400, "Send the request to /v1/translate", None),
]  # fmt: skip


def test_errors_are_clear_and_in_openai_s_shape(blocks: Run) -> None:
    limits = LimitSettings(characters=2000, pixels=1_100_000)
    settings = ServeSettings(limits=limits)

    async def check() -> None:
        run = open_run(blocks, settings, "blocks")
        async with client_of(run, echo_run(), settings=settings) as client:
            for fields, status, words, field in WRONG:
                error = told_so(await client.post(PATH, json=fields), status, words)
                assert error["type"] == "invalid_request_error"
                assert error["param"] == field, error
            told_so(await client.get(PATH), 405, "")
            assert len(await painted(client, scale=64)) == 1  # 1,048,576 pixels
        async with client_of(echo_run()) as client:
            told_so(await client.post(PATH, json={"prompt": CAPTION}), 400, "--task painting")

    asyncio.run(check())


def test_nothing_slow_is_done_in_the_event_loop(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = [
        (CodesForm, "pictures"), (PaintedPicture, "png"), (Painter, "ask"),
        (served_painter, "by_words"), (served_painter, "unknown_words"),
    ]  # fmt: skip
    work = SlowWork(slow, monkeypatch)

    async def check() -> None:
        async with served() as client:
            asked = {"prompt": CAPTION, "n": 2, "explain": True}
            await work.ask(client, [(PATH, {**asked, "scale": scale}) for scale in (1, 64)])

    asyncio.run(check())
    work.require_elsewhere()


def test_small_pictures_do_not_wait_for_large_ones(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    png, waits = PaintedPicture.png, threading.Event()

    def held(self: PaintedPicture, scale: int = 1) -> bytes:
        assert scale == 1 or waits.wait(30)
        return png(self, scale)

    monkeypatch.setattr(PaintedPicture, "png", held)

    async def check() -> None:
        async with served() as client:
            large = asyncio.create_task(painted(client, scale=64))
            await asyncio.sleep(0)
            (small,) = await painted(client)
            assert not large.done() and small.shape == (SIDE, SIDE, 3)
            waits.set()
            assert (await large)[0].shape == (64 * SIDE, 64 * SIDE, 3)

    asyncio.run(check())


def test_the_words_of_the_training_are_read_once(
    blocks: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A list of 200,000 took half a second of every request, and everybody waited; one that is
    damaged keeps nobody from painting."""
    shutil.copytree(blocks.folder, tmp_path / "run")
    (tmp_path / "run" / LEXICON).write_text("no list\n", encoding="utf-8")

    async def check(run: Run, unknown: list[str]) -> None:
        async with serves(run, "blocks")() as client:
            monkeypatch.setattr(Lexicon, "load", lambda _: pytest.fail("it is read again"))
            for _ in range(2):
                wish = {"prompt": "a red zebra", "explain": True}
                answer = await client.post(PATH, json=wish)
                assert answer.json().get("unknown") == unknown, answer.text
        monkeypatch.undo()

    asyncio.run(check(blocks, ["zebra"]))
    asyncio.run(check(Run.open(tmp_path / "run"), []))
    assert "damaged" in caplog.text


def test_how_each_code_was_written_is_told_where_it_is_asked_for(
    blocks: Run, served: Served
) -> None:
    painter, caption = Painter(blocks), "a red zebra above"
    found = painter.paint(caption, count=2)

    async def check() -> None:
        async with served() as client:
            answer = await client.post(PATH, json={"prompt": caption, "n": 2, "explain": True})
            told = answer.json()
            assert told["words"] == caption.split() and told["unknown"] == ["zebra"]
            for one, image in zip(found, told["data"], strict=True):
                written = image["written"]
                assert written["codes"] == list(one.codes)
                assert written["rows"] * written["columns"] == len(one.codes)
                np.testing.assert_allclose(
                    written["probabilities"], np.exp(one.token_log_probabilities), atol=1e-4
                )
                ((tokens, numbers),) = painter.engine.source.tokens_of_words([caption])
                (looked,) = next(painter.engine.attention.align([(tokens, one.ids)]))
                of_word = [looked[:, np.array(numbers) == n].sum(axis=1) for n in range(4)]
                np.testing.assert_allclose(written["attention"], np.stack(of_word, 1), atol=1e-4)
            plain = (await client.post(PATH, json={"prompt": caption})).json()
            assert set(plain) == {"created", "data"} and set(plain["data"][0]) == {"b64_json"}

    asyncio.run(check())


def test_several_captions_share_the_queue(blocks: Run, served: Served) -> None:
    painter = Painter(blocks)
    captions = [CAPTION, OTHER] * 4
    wanted = [painter.paint(one)[0].pixels for one in captions]

    async def check() -> None:
        async with served() as client:
            found = await asyncio.gather(*(painted(client, prompt=one) for one in captions))
            assert all((a == b).all() for (a,), b in zip(found, wanted, strict=True))

    asyncio.run(check())


def test_damaged_weights_of_codes_are_told_at_the_start(blocks: Run, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(blocks.folder, run)
    (run / WEIGHTS).unlink()
    with pytest.raises(RunError, match="the painter needs it"):
        open_run(Run.open(run), ServeSettings(), "run")


def test_codes_are_not_served(tmp_path: Path) -> None:
    run = trained_run(tiny_recipe_of("codes", tmp_path), tmp_path / "run")
    with pytest.raises(RunError, match="is a picture coder, which the server does not support"):
        open_run(run, ServeSettings(), "run")


@pytest.fixture(scope="module")
def address(blocks: Run) -> Iterator[str]:
    """Of a process that serves the painter."""
    with serving(blocks.folder) as told:
        yield told


@pytest.mark.slow
def test_the_verb_serves_a_painter(blocks: Run, address: str) -> None:
    wanted = Painter(blocks).paint(CAPTION)[0].pixels
    answer = httpx.post(address + PATH, json={"prompt": CAPTION}, timeout=60)
    assert (_pixels(answer.json()["data"][0]["b64_json"]) == wanted).all()


@pytest.mark.slow
def test_openai_s_client_works_unchanged(blocks: Run, address: str) -> None:
    openai: Any = pytest.importorskip("openai", reason="the package openai is not installed")
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="any")
    answer = client.images.generate(
        model="dall-e-2", prompt=CAPTION, n=2, size="auto", response_format="b64_json",
        extra_body={"seed": 3, "scale": 2},
    )  # fmt: skip
    drawn = Painter(blocks).paint(CAPTION, count=2, sampling=SamplingSettings(seed=3))
    for told, one in zip(answer.data, drawn, strict=True):
        assert (_pixels(told.b64_json) == one.pixels.repeat(2, 0).repeat(2, 1)).all()
    with pytest.raises(openai.BadRequestError) as wrong:
        client.images.generate(prompt=CAPTION, size="1024x1024")
    assert wrong.value.code == "bad_field" and wrong.value.param == "size"
