"""The API of a run that labels pictures: what the model says, bounded before it is decoded, and in
one clear line where it cannot be read."""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import random
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw
from sent_files import damaged, in_base64, sent, told_once
from serving_echo import Served, client_of, open_run, post, serves
from tiny_cells import tiny_cell
from trained_run import trained_run

from dragoman.base.errors import DataError
from dragoman.runs.run import Run
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.sources.picture.form import PicturesForm, patches_of
from dragoman.tasks.classification.labeller import Labeller

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP")


def bar(standing: bool, kind: str = "PNG", side: int = 64, place: int = 3) -> bytes:
    """A picture as the run was trained on, larger: a bright bar on black."""
    image = Image.new("L", (side, side), 10)
    begin, end = place * side // 8, (place + 1) * side // 8 - 1
    box = (begin, 0, end, side) if standing else (0, begin, side, end)
    ImageDraw.Draw(image).rectangle(box, fill=250)
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def empty_png(width: int, height: int) -> bytes:
    """So large by its header, with nothing behind it."""
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), (b"IDAT", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def check_rollout(run: Run, told: dict[str, Any], png: Image.Image) -> None:
    """Layer by layer, by hand: the mean of the heads, half of it the residual."""
    form, labeller = run.source, Labeller(run)
    assert isinstance(form, PicturesForm)
    rows = patches_of(np.asarray(png)[..., None], form.settings.patch)
    through = np.eye(len(rows))
    for layer in labeller.engine.attention.record(rows, ()).encoder.astype(float):
        through = 0.5 * (sum(layer) / len(layer) @ through) + 0.5 * through
    assert (told["rows"], told["columns"]) == form.settings.grid
    wanted = through.mean(axis=0)
    assert told["shares"] == pytest.approx(list(wanted / wanted.sum()), abs=2e-4)


@pytest.fixture(scope="module")
def bars(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that tells lying bars from standing ones."""
    folder = tmp_path_factory.mktemp("bars")
    recipe = tiny_cell("classification", "encoder", "picture", folder)
    learned = ["model.positions.kind=learned", "model.positions.maximum=4"]
    return trained_run(recipe.change(learned), folder / "run")


@pytest.fixture
def served(bars: Run) -> Served:
    return serves(bars, "bars")


def test_it_answers_what_the_model_says(bars: Run, served: Served, tmp_path: Path) -> None:
    """Pictures of the very size are those of an IDX file, and larger ones are seen alike."""
    files = [bar(False, side=8), bar(True, side=8)]
    pixels = np.stack([np.asarray(Image.open(io.BytesIO(one))) for one in files])
    idx = tmp_path / "two-idx3-ubyte.gz"
    idx.write_bytes(gzip.compress(struct.pack(">BBBBIII", 0, 0, 8, 3, 2, 8, 8) + pixels.tobytes()))
    wanted = Labeller(bars)([f"{idx}#0", f"{idx}#1"])
    assert [one.label for one in wanted] == ["0", "1"]

    async def check() -> None:
        async with served() as client:
            answer = await sent(client, *files, seen="true")
            assert answer.status_code == 200, answer.text
            for told, one, shown in zip(answer.json()["files"], wanted, pixels, strict=True):
                assert told["label"] == one.label and told["size"] == 64 and told["cut"] is False
                assert told["probability"] == pytest.approx(one.probability, abs=1e-5)
                png = Image.open(io.BytesIO(base64.b64decode(told["seen"]["png"])))
                check_rollout(bars, told["seen"]["rollout"], png)
                assert (np.asarray(png) == shown).all()
            larger = await post(
                client, "/v1/classify", file=[in_base64(bar(False)), in_base64(bar(True))]
            )
            assert [one["label"] for one in larger["files"]] == ["0", "1"]
            assert [one["size"] for one in larger["files"]] == [4096, 4096]
            (run,) = (await client.get("/v1/info")).json()["runs"]
            assert run["reads"] == "pictures"
            of_sound = {"rate": None, "words": None}
            assert run["takes"] == of_sound | {"height": 8, "width": 8, "channels": 1}

    asyncio.run(check())


def test_hidden_patches_have_the_mean_colour(bars: Run, served: Served) -> None:
    labeller = Labeller(bars)
    form = labeller.run.source
    assert isinstance(form, PicturesForm)
    pixels = np.asarray(Image.open(io.BytesIO(bar(True, side=8))))
    left = pixels.copy()
    left[4:, :4] = round(float(pixels.mean()))  # the third of four patches
    rows = patches_of(left[..., None], form.settings.patch)
    wanted = dict(labeller.parts(["left"], values=[rows]))[0]

    async def check() -> None:
        async with served() as client:
            answer = await sent(client, bar(True, side=8), seen="true", hidden="2")
            (told,) = answer.json()["files"]
            png = np.asarray(Image.open(io.BytesIO(base64.b64decode(told["seen"]["png"]))))
            assert (png == left).all() and told["seen"]["grid"] == {"rows": 2, "columns": 2}
            assert told["label"] == wanted.label
            assert told["probability"] == pytest.approx(wanted.probability, abs=1e-5)
            whole = (await sent(client, bar(True, side=8))).json()["files"][0]
            assert whole["probability"] != pytest.approx(told["probability"], abs=1e-4)
            for hidden in ("4", "1,9", "a", "-1", "1;2", ",", "99999"):
                answer = await sent(client, bar(True, side=8), hidden=hidden)
                assert answer.status_code == 400, hidden
                assert answer.json()["values"]["field"] == "hidden"
            answer = await sent(client, bar(True, side=8), heads="true")
            assert answer.status_code == 400 and answer.json()["values"]["field"] == "heads"
            two = {"file": 2 * [base64.b64encode(bar(True, side=8)).decode()]}
            two |= {"seen": True, "heads": True}
            answer = await client.post("/v1/classify", json=two)
            assert answer.status_code == 400 and answer.json()["values"]["field"] == "heads"
            assert "one at a time" in answer.json()["error"]

    asyncio.run(check())


def test_each_head_tells_what_it_looks_at(bars: Run, served: Served) -> None:
    labeller = Labeller(bars)
    form = labeller.run.source
    assert isinstance(form, PicturesForm)
    rows = patches_of(
        np.asarray(Image.open(io.BytesIO(bar(True, side=8))))[..., None], form.settings.patch
    )
    weights = labeller.engine.attention.record(rows, ()).encoder

    async def check() -> None:
        async with served() as client:
            answer = await sent(client, bar(True, side=8), seen="true", heads="true")
            heads = answer.json()["files"][0]["seen"]["heads"]
            assert np.shape(heads) == (*weights.shape[:2], 4)
            for layer, of_layer in enumerate(heads):
                for head, shares in enumerate(of_layer):
                    assert sum(shares) == pytest.approx(1, abs=1e-3)
                    by_hand = [sum(weights[layer, head, :, at]) / 4 for at in range(4)]
                    assert shares == pytest.approx(by_hand, abs=2e-4)
            picture = bar(True, side=8)
            answer = await sent(client, picture, seen="true", heads="true", at="2")
            of_third = answer.json()["files"][0]["seen"]["heads"]
            assert np.asarray(of_third) == pytest.approx(weights[:, :, 2], abs=2e-4)
            for asked in ({"at": "2"}, {"heads": "true", "at": "4"}, {"heads": "true", "at": "-1"}):
                answer = await sent(client, picture, seen="true", **asked)
                assert answer.status_code == 400 and answer.json()["values"]["field"] == "at"

    asyncio.run(check())


def test_how_a_picture_is_read_is_drawn(bars: Run, served: Served) -> None:
    """The same panels that the figure has."""
    labeller = Labeller(bars)

    async def check() -> None:
        async with served() as client:
            picture = bar(True, side=8)
            answer = await sent(client, picture, seen="true", reading="true")
            (told,) = answer.json()["files"]
            panels = told["seen"]["reading"]
            titles = [panel["title"] for panel in panels]
            layers = len(labeller.network.attentions_of("encoder"))
            assert titles[:3] == ["Its patches", "Patches as rows", "Rows, with their places"]
            assert titles[3:] == [f"After layer {n + 1}" for n in range(layers)] + ["The labels"]
            shares = np.frombuffer(base64.b64decode(panels[-1]["values"]["data"]), np.float32)
            assert panels[-1]["rows"] == [one["name"] for one in told["labels"]]
            assert shares == pytest.approx([one["probability"] for one in told["labels"]], abs=1e-5)
            rows = patches_of(
                np.asarray(Image.open(io.BytesIO(picture)))[..., None],
                labeller.run.source.settings.patch,
            )
            drawn = np.frombuffer(base64.b64decode(panels[1]["values"]["data"]), np.float32)
            assert drawn == pytest.approx(rows.ravel() / 255, abs=1e-6)
            answer = await sent(client, picture, reading="true")
            assert answer.status_code == 400 and answer.json()["values"]["field"] == "reading"

    asyncio.run(check())


def test_figures_of_a_labeller_show_no_file(bars: Run, served: Served) -> None:
    async def check() -> None:
        async with served() as client:
            (run,) = (await client.get("/v1/info")).json()["runs"]
            listed = {
                one["name"]: one for one in (await client.get("/v1/figures")).json()["figures"]
            }
            assert run["figures"] and listed["picture-positions"].get("missing") is None
            made = await client.post("/v1/figures", json={"name": "picture-positions"})
            assert made.status_code == 200 and made.json()["panels"][0]["kind"] == "heads"
            for name in ("picture-reading", "picture-rollout"):
                assert "the view Label" in listed[name]["missing"]["en"]
                refused = await client.post(
                    "/v1/figures", json={"name": name, "sentence": "/etc/hostname"}
                )
                assert refused.status_code == 400 and refused.json()["code"] == "no_figure_here"
            assert "the inside of a Transformer" in listed["heads"]["missing"]["en"]

    asyncio.run(check())


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_known_by_what_it_holds(served: Served, kind: str) -> None:
    async def check() -> None:
        async with served() as client:
            answer = await sent(client, bar(True, kind), names=["a.txt"])
            assert answer.json()["files"][0]["label"] == "1"

    asyncio.run(check())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "one.png is empty"),
        (b"hello", "one.png is damaged or not a supported picture"),
        (bar(True)[:90], "one.png is damaged or cut off"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "not a supported picture"),
        (empty_png(6_000, 6_000), "36,000,000 pixels or more; this server takes 25,000,000"),
        (empty_png(20_000, 20_000), "20,000 x 20,000 pixels"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_of(served: Served, data: bytes, words: str) -> None:
    async def check() -> None:
        async with served() as client:
            told_once(await sent(client, data, names=["one.png"]), 400, words)
            both = await sent(client, bar(True), data, names=["good.png", "one.png"])
            told_once(both, 400, words.replace("36,000,000", "36,004,096"))
            assert (await sent(client, bar(True))).status_code == 200

    asyncio.run(check())


def test_pixels_are_counted_before_any_is_decoded(
    bars: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("it was decoded")

    settings = ServeSettings(limits=LimitSettings(pixels=10_000))

    async def check() -> None:
        async with client_of(open_run(bars, settings, "bars"), settings=settings) as client:
            assert (await sent(client, bar(True), bar(True))).status_code == 200
            monkeypatch.setattr("dragoman.sources.picture.form.pixels_of", never)
            three = await sent(client, bar(True), bar(True), bar(True))
            told_once(three, 400, "12,288 pixels or more; this server takes 10,000")
            assert three.json()["code"] == "too_many_pixels"

    asyncio.run(check())


def test_without_pillow_the_server_does_not_start(
    bars: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match=r"needs Pillow: .*pip install '?pillow"):
        open_run(bars, ServeSettings(), "bars")


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_files_are_answered_and_the_server_lives_on(bars: Run, count: int) -> None:
    limits = LimitSettings(requests_per_minute=1_000_000, burst=1_000_000)
    settings = ServeSettings(limits=limits)
    whole = [bar(True, kind) for kind in FORMATS]
    draw = random.Random(7)

    async def check() -> None:
        refused = 0
        async with client_of(open_run(bars, settings, "bars"), settings=settings) as client:
            for number in range(count):
                answer = await sent(client, damaged(whole[number % len(whole)], draw))
                if answer.status_code != 200:
                    refused += 1
                    told_once(answer, 400, "")
                    assert answer.json()["code"] in ("bad_file", "too_many_pixels"), answer.text
            assert (await sent(client, whole[0])).json()["files"][0]["label"] == "1"
        assert refused > count // 4

    asyncio.run(check())
