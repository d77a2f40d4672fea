"""The API of a run that finds boxes: what the verb finds, bounded before anything is decoded."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from sent_files import in_base64, told_once
from serving_echo import Served, post, serves
from slow_work import SlowWork
from tiny_tasks import tiny_recipe_of
from trained_run import trained_run

from dragoman.engine.settings import EngineSettings
from dragoman.forms.boxes import BoxForm
from dragoman.runs.run import MOST_EXAMPLE, Run
from dragoman.serving.http import uploads
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.sources.picture import form as picture_form
from dragoman.sources.picture.form import PicturesForm
from dragoman.tasks import catalogue
from dragoman.tasks.detection.detector import Detector
from dragoman.tasks.detection.endpoint import FoundBox, ServedDetector
from dragoman.tasks.report import keep_example


@pytest.fixture(scope="module")
def scenes(run_of: Callable[..., Run]) -> Run:
    """A run that has seen some pictures."""
    return run_of("detection", "picture", "transformer")


@pytest.fixture
def served(scenes: Run) -> Served:
    return serves(scenes, "scenes")


async def detect(client: httpx.AsyncClient, *files: bytes, **fields: Any) -> httpx.Response:
    parts = [("file", (f"{number}.png", data)) for number, data in enumerate(files)]
    return await client.post("/v1/detect", files=parts, data=fields)


def picture(width: int = 16, height: int = 16) -> bytes:
    held = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).save(held, "PNG")
    return held.getvalue()


def test_it_answers_what_the_detector_finds(scenes: Run, served: Served, tmp_path: Path) -> None:
    files = [picture(), picture(48, 20)]
    paths = [tmp_path / f"{number}.png" for number in range(2)]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    detector = Detector(scenes)
    wanted = [[one.to_dict() for one in detector(path, threshold=0)] for path in paths]

    async def check() -> None:
        async with served() as client:
            answer = await detect(client, *files, threshold="0")
            assert answer.status_code == 200, answer.text
            told = answer.json()["files"]
            assert [(one["name"], one["width"], one["height"]) for one in told] == [
                ("0.png", 16, 16), ("1.png", 48, 20),
            ]  # fmt: skip
            for one, boxes in zip(told, wanted, strict=True):
                assert [(box["label"], box["box"]) for box in one["boxes"]] == [
                    (box["label"], box["box"]) for box in boxes
                ]
                for box, own in zip(one["boxes"], boxes, strict=True):
                    assert box["score"] == pytest.approx(own["score"], abs=2e-4)
            again = await post(
                client, "/v1/detect", file=[in_base64(one) for one in files], threshold=0
            )
            assert [one["boxes"] for one in again["files"]] == [one["boxes"] for one in told]
            surest = told[0]["boxes"][0]["score"]
            (few,) = (await detect(client, files[0], threshold=str(surest))).json()["files"]
            assert len(few["boxes"]) < len(told[0]["boxes"])
            (run,) = (await client.get("/v1/info")).json()["runs"]
            assert (run["task"], run["reads"], run["look"]) == ("detection", "pictures", False)

    asyncio.run(check())


def test_a_run_keeps_a_file_to_begin_with(scenes: Run, tmp_path: Path) -> None:
    folder = tmp_path / "scenes"
    shutil.copytree(scenes.folder, folder)
    run = catalogue.Run.open(folder)
    for old in folder.glob("example.*"):
        old.unlink()
    large, small, archive = tmp_path / "large.png", tmp_path / "small.PNG", tmp_path / "many.zip"
    large.write_bytes(bytes(MOST_EXAMPLE + 1))
    small.write_bytes(picture())
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("of/one.bmp", b"packed")

    def keep(*sources: str) -> Path | None:
        samples = [{"source": source, "translation": "", "reference": ""} for source in sources]
        line = {
            "kind": "validation", "update": 9, "weights": "own", "best": True, "scores": {},
            "samples": samples,
        }  # fmt: skip
        (folder / "metrics.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
        keep_example(run)
        return run.example()

    gone = (str(tmp_path / "gone.png"), f"{tmp_path}/ubyte.gz#17", str(large), f"{archive}#no.png")
    assert keep(*gone) is None

    async def asked() -> httpx.Response:
        async with serves(run, "scenes")() as client:
            (told,) = (await client.get("/v1/info")).json()["runs"]
            found = run.example()
            assert told["knows"]["examples"] == ([found.name] if found else [])
            return await client.get("/v1/runs/scenes/example")

    assert asyncio.run(asked()).status_code == 204
    kept = keep(*gone, str(small))
    assert kept == folder / "example.png" and kept.read_bytes() == picture()
    assert keep(f"{archive}#of/one.bmp") == kept  # what there is stays
    answer = asyncio.run(asked())
    assert answer.content == picture()
    assert answer.headers["content-type"] == "application/octet-stream"
    kept.unlink()
    kept.symlink_to(small)
    assert run.example() is None
    kept.unlink()
    packed = keep(f"{archive}#of/one.bmp")
    assert packed == folder / "example.bmp" and packed.read_bytes() == b"packed"


def test_it_tells_where_the_run_looked_as_it_wrote_each_box(
    scenes: Run, served: Served, tmp_path: Path
) -> None:
    (tmp_path / "0.png").write_bytes(picture(16, 16))
    detector = Detector(scenes)
    (found,) = detector.stream([str(tmp_path / "0.png")])
    looked = detector.look(str(tmp_path / "0.png"), found.ids).cross[-1].mean(axis=0)
    decode = BoxForm.of(detector.engine.target).symbols.decode
    shares: dict[tuple[Any, ...], list[Any]] = {}  # a box may be written twice
    for begin in range(0, len(found.ids), 5):  # top, left, bottom, right, label
        (box,) = decode(found.ids[begin : begin + 5], 16, 16)
        edges = (box.left, box.top, box.right, box.bottom)
        mean = looked[begin : begin + 5].mean(axis=0)
        shares.setdefault((box.label, *map(round, edges)), []).append(mean)

    async def check() -> None:
        async with served() as client:
            answer = await detect(client, picture(16, 16), seen="true", threshold="0")
            assert answer.status_code == 200, answer.text
            (told,) = answer.json()["files"]
            seen = told["seen"]
            size = Image.open(io.BytesIO(base64.b64decode(seen["png"]))).size
            assert size == (seen["width"], seen["height"])
            assert len(told["boxes"]) == len(found.detections) == len(found.ids) // 5
            for one in told["boxes"]:
                wanted = shares[one["label"], *one["box"].values()]
                assert len(one["looked"]) == seen["rows"] * seen["columns"]
                near = [pytest.approx(one, rel=6e-3, abs=1e-6) for one in wanted]
                assert one["looked"] in near
                assert sum(one["looked"]) == pytest.approx(1, abs=0.02)
            (plain,) = (await detect(client, picture(16, 16), threshold="0")).json()["files"]
            assert "seen" not in plain and "looked" not in plain["boxes"][0]
            told_once(await detect(client, picture(), picture(), seen="true"), 400, "one picture")
        async with served(limits=LimitSettings(token_steps=300)) as client:
            told_once(await detect(client, picture(), seen="true"), 400, "token steps")

    asyncio.run(check())


def test_a_run_that_finds_boxes_as_a_set_tells_of_no_looking(tmp_path: Path) -> None:
    recipe = tiny_recipe_of("detection", tmp_path).change(["boxes.kind=set"])
    run = trained_run(recipe, tmp_path / "run")

    async def check() -> None:
        async with serves(run, "set")() as client:
            answer = await detect(client, picture(), seen="true", threshold="0")
            assert answer.status_code == 200, answer.text
            (told,) = answer.json()["files"]
            assert told["seen"]["png"]
            assert told["boxes"] and not any("looked" in one for one in told["boxes"])

    asyncio.run(check())


def test_it_computes_as_the_server_is_told_to(scenes: Run, tmp_path: Path) -> None:
    asked = ServeSettings(precision="fp32", rows=8, longest=2)
    predictor = ServedDetector.open(scenes, asked, "boxes").predictor
    assert predictor.precision == "fp32"
    path = tmp_path / "a.png"
    path.write_bytes(picture())
    whole = Detector(scenes, EngineSettings(precision="fp32"))
    found = predictor(path, threshold=0)  # longest counts tokens, and a picture has patches
    assert found and found == whole(path, threshold=0)


def test_errors_are_clear(served: Served) -> None:
    async def check() -> None:
        async with served() as client:
            told_once(
                await detect(client, b"GIF89a nothing"),
                400,
                "0.png is damaged or not a supported picture",
            )
            told_once(await detect(client, picture()[:60]), 400, "0.png is damaged or cut off")
            told_once(await detect(client, picture(), threshold="2"), 400, "threshold")

    asyncio.run(check())


def test_bounds_hold_before_anything_is_decoded(served: Served) -> None:
    limits = LimitSettings(pixels=1_000, items=2)
    bomb = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 0, 0, 0, 0)
    chunk = b"IHDR" + bomb
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk
    png += struct.pack(">I", zlib.crc32(chunk)) + struct.pack(">I", 0) + b"IDAT"
    png += struct.pack(">I", zlib.crc32(b"IDAT"))

    async def check() -> None:
        async with served(limits=limits) as client:
            assert (await detect(client, picture())).status_code == 200
            told_once(await detect(client, picture(40, 40)), 400, "1,600 pixels")
            told_once(await detect(client, *[picture()] * 3), 400, "takes 2 at once")
        async with served() as client:
            told_once(await detect(client, png), 400, "at most 100,000,000")

    asyncio.run(check())


def test_nothing_slow_is_done_on_the_event_loop(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """25,600 boxes of 256 pictures took more than half a second to be told."""
    slow = [
        (uploads.Upload, "read"), (picture_form, "picture_size"), (PicturesForm, "in_turns"),
        (Detector, "answer"), (FoundBox, "__init__"),
    ]  # fmt: skip
    work = SlowWork(slow, monkeypatch)

    async def check() -> None:
        async with served() as client:
            asked = {"file": [in_base64(picture()), in_base64(picture(48, 20))], "threshold": 0}
            await work.ask(client, [("/v1/detect", asked)])

    asyncio.run(check())
    work.require_elsewhere()
