"""The API of a run that reads lines of text in pictures: what the verb writes, bounded before
anything is decoded."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from sent_files import in_base64, told_once
from serving_echo import Served, post, serves
from tiny_cells import tiny_cell
from trained_run import trained_run

from dragoman.runs.run import Run
from dragoman.serving.http.limits import LimitSettings
from dragoman.sources.line import DrawingSettings, draw_text
from dragoman.tasks.classification.labeller import Labeller
from dragoman.tasks.translation.translator import Translator

PATH = "/v1/translate/pictures"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that reads, with CTC."""
    folder = tmp_path_factory.mktemp("lines")
    recipe = tiny_cell("translation", "transformer", "line", folder)
    return trained_run(recipe.change(["training.ctc_weight=0.5", "search.beam=3"]), folder / "run")


@pytest.fixture
def served(lines: Run) -> Served:
    return serves(lines, "lines")


async def send(client: httpx.AsyncClient, *files: bytes, **fields: Any) -> httpx.Response:
    parts = [("file", (f"{number}.png", data)) for number, data in enumerate(files)]
    return await client.post(PATH, files=parts, data=fields)


def line(text: str, turn: int | None = None) -> bytes:
    """A picture of a text in red on white, larger than what is read, stored as it was held."""
    held, pixels = io.BytesIO(), draw_text(text, 24, DrawingSettings())
    picture = Image.fromarray(pixels).convert("RGB")
    if turn is None:
        picture.save(held, "PNG")
    else:
        exif = Image.Exif()
        exif[0x0112] = turn
        picture.transpose(Image.Transpose.ROTATE_90).save(held, "PNG", exif=exif)
    return held.getvalue()


def test_it_answers_what_the_verb_writes(lines: Run, served: Served, tmp_path: Path) -> None:
    files = [line("red 3"), line("white 8"), line("red 3", turn=6), line("green 1 " * 12)]
    paths = [tmp_path / f"{number}.png" for number in range(4)]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    translator = Translator(lines)
    assert translator.ctc.ranks
    wanted = [translator(str(path)).text for path in paths]
    assert wanted[0] == wanted[2] and wanted[0]

    async def check() -> None:
        async with served() as client:
            answer = await send(client, *files)
            assert answer.status_code == 200, answer.text
            told = answer.json()
            assert (told["run"], told["source"], told["target"]) == ("lines", "en", "de")
            assert [one["text"] for one in told["files"]] == wanted
            assert all(0 < one["probability"] <= 1 for one in told["files"])
            high, turned = told["files"][0], told["files"][2]
            assert (turned["width"], turned["height"]) == (high["width"], high["height"])
            assert high["height"] == 24 < high["width"]
            again = await post(client, PATH, file=[in_base64(one) for one in files])
            assert [one["text"] for one in again["files"]] == wanted
            assert again["files"][0]["name"] == "file[0]"
            (run,) = (await client.get("/v1/info")).json()["runs"]
            assert (run["task"], run["reads"]) == ("picture-translation", "pictures")

    asyncio.run(check())


def test_it_tells_where_the_run_looked_as_it_wrote_each_token(
    lines: Run, served: Served, tmp_path: Path
) -> None:
    path, translator = tmp_path / "0.png", Translator(lines)
    path.write_bytes(line("white 8"))

    async def check() -> None:
        async with served() as client:
            answer = await send(client, line("white 8"), seen="true")
            assert answer.status_code == 200, answer.text
            (told,) = answer.json()["files"]
            names = [one["text"] for one in told["seen"]["tokens"]]
            ids = translator.engine.target.tokens([told["text"]])[0]
            assert names == translator.engine.target.names_of(ids) and names
            record = translator.look(str(path), ids)
            looked = record.cross[-1].mean(axis=0)
            for one, wanted in zip(told["seen"]["tokens"], looked, strict=False):
                assert one["looked"] == pytest.approx(wanted, rel=6e-3, abs=1e-6)
            size = Image.open(io.BytesIO(base64.b64decode(told["seen"]["png"]))).size
            assert size == (told["seen"]["width"], told["seen"]["height"])
            (plain,) = (await send(client, line("white 8"))).json()["files"]
            assert "seen" not in plain and plain["text"] == told["text"]
            both = await send(client, line("red 3"), line("red 3"), seen="true")
            told_once(both, 400, "one picture")

    asyncio.run(check())


def test_ctc_ranks_what_the_beam_has_found(
    lines: Run, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the verb does: the first or the last of the beam, whichever CTC prefers."""
    path, translator = tmp_path / "a.png", Translator(lines)
    path.write_bytes(line("green 1"))
    wanted, found = list[str](), list[str]()

    async def check() -> None:
        async with served() as client:
            for sign in (1, -1):
                monkeypatch.setattr(
                    "dragoman.engine.ctc_ranking.text_log_probabilities",
                    lambda _, texts, sign=sign: [sign * 1e4 * n for n in range(len(texts))],
                )
                wanted.append(translator(str(path)).text)
                (one,) = (await send(client, line("green 1"))).json()["files"]
                found.append(one["text"])

    asyncio.run(check())
    assert found == wanted and len(set(wanted)) == 2


def test_errors_are_clear_and_bounds_hold(served: Served) -> None:
    limits = LimitSettings(pixels=5_000, items=2)
    held = io.BytesIO()
    Image.new("L", (4_000, 1), 255).save(held, "PNG")

    async def check() -> None:
        async with served() as client:
            told_once(
                await send(client, b"GIF89a nothing"),
                400,
                "0.png is damaged or not a supported picture",
            )
            told_once(await send(client, line("red")[:90]), 400, "0.png is damaged or cut off")
            told_once(await send(client, held.getvalue()), 400, "32,000 pixels wide")
        async with served(limits=limits) as client:
            assert (await send(client, line("red"))).status_code == 200
            told_once(await send(client, line("white " * 20)), 400, "pixels")
            told_once(await send(client, *[line("red")] * 3), 400, "takes 2 at once")

    asyncio.run(check())


def test_lines_are_labelled_too(run_of: Callable[..., Run], tmp_path: Path) -> None:
    run = run_of("classification", "line", "encoder")
    path = tmp_path / "a.png"
    path.write_bytes(line("blue 6 " * 9))  # wider than what is read
    (wanted,) = Labeller(run)([str(path)])

    async def check() -> None:
        async with serves(run, "kinds")() as client:
            parts = [("file", ("a.png", path.read_bytes()))]
            (found,) = (await client.post("/v1/classify", files=parts)).json()["files"]
            assert found["label"] == wanted.label
            assert found["probability"] == pytest.approx(wanted.probability, abs=1e-4)

    asyncio.run(check())
