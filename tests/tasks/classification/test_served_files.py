"""The API of a run that labels recordings: what the verb says, in turns, within limits, and in one
clear line where it cannot."""

from __future__ import annotations

import asyncio
import base64
import io
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image
from row_files import RATE, tone
from sent_files import damaged, in_base64, sent, told_once
from serving_echo import Served, client_of, echo_run, open_run, post, serves, until
from slow_work import SlowWork
from untrained_run import untrained_run

from dragoman.serving.http import connection, uploads
from dragoman.serving.http.limits import LimitSettings, Places
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.operate.settings import ServeSettings
from dragoman.sources.frames import form as frames_form
from dragoman.sources.frames.form import FramesForm, LogMel
from dragoman.sources.shared.files import InMemory
from dragoman.tasks.catalogue import Run
from dragoman.tasks.classification import endpoint
from dragoman.tasks.classification.labeller import Labeller

JSON = {"content-type": "application/json"}
SMALL = ("model.model_dim=32", "model.ffn_dim=32", "model.layers=1", "plan.context=24")
FORMATS = (("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"),
           ("MP3", "MPEG_LAYER_III"))  # fmt: skip


def recording(
    seconds: float = 0.3, kind: str = "WAV", coding: str = "PCM_16", rate: int = RATE
) -> bytes:
    """A rising tone as a file."""
    file = io.BytesIO()
    samples = tone(300, seconds * rate / RATE, until=1800)
    soundfile.write(file, samples, rate, format=kind, subtype=coding)
    return file.getvalue()


@pytest.fixture(scope="module")
def tones(run_of: Callable[..., Run]) -> Run:
    """A run that reads rising tones and falling ones."""
    return run_of("classification", "frames", "encoder")


@pytest.fixture
def served(tones: Run) -> Served:
    return serves(tones, "tones")


def test_it_answers_what_the_verb_does(tones: Run, served: Served, tmp_path: Path) -> None:
    files = [recording(0.3), recording(0.2, "FLAC"), recording(2)]
    paths = [tmp_path / f"{n}.wav" for n in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    wanted = Labeller(tones)([str(path) for path in paths])

    async def check() -> None:
        async with served() as client:
            parts = await sent(client, *files, seen="true")
            assert parts.status_code == 200, parts.text
            answer = parts.json()
            assert answer["run"] == "tones" and "texts" not in answer
            for told, path, one in zip(answer["files"], paths, wanted, strict=True):
                assert (told["name"], told["label"]) == (path.name, one.label)
                assert told["probability"] == pytest.approx(one.probability, abs=1e-5)
                assert [label["name"] for label in told["labels"]] == [n for n, _ in one.ranked]
                assert told["cut"] == one.cut
            assert [told["size"] for told in answer["files"]] == [0.3, 0.2, 2.0]
            assert [told["cut"] for told in answer["files"]] == [False, False, True]
            seen = answer["files"][0]["seen"]
            png = base64.b64decode(seen["png"])
            assert png.startswith(b"\x89PNG") and (seen["height"], seen["width"]) == (20, 28)
            # The same in base64, one and several, as browsers write it too.
            same = await post(client, "/v1/classify", file=[in_base64(one) for one in files])
            told = [
                {
                    "name": f"file[{n}]",
                    **{k: v for k, v in one.items() if k not in ("name", "seen")},
                }
                for n, one in enumerate(answer["files"])
            ]
            assert same["files"] == told
            address = f"data:audio/wav;base64,{in_base64(files[0])}"
            (alone,) = (await post(client, "/v1/classify", file=address, top=1))["files"]
            assert alone["name"] == "file" and alone["labels"] == told[0]["labels"][:1]

    asyncio.run(check())


def test_hidden_parts_of_sound_are_silent_there(tones: Run, served: Served) -> None:
    """Cells are counted from the highest bands down, and from left to right."""
    form = tones.source
    assert isinstance(form, FramesForm)
    data = recording(0.6)
    rows = np.concatenate([one for one in form.in_turns(InMemory("a", data)) if one is not None])

    async def check() -> None:
        async with served() as client:
            shown = []
            for hidden in ("", "0", "10"):
                (told,) = (await sent(client, data, seen="true", hidden=hidden)).json()["files"]
                png = Image.open(io.BytesIO(base64.b64decode(told["seen"]["png"])))
                shown.append(np.asarray(png).astype(int))
                grid = told["seen"]["grid"]
                assert grid["rows"] == 4 and "heads" not in told["seen"]
            whole, high, low = shown
            columns = grid["columns"]
            stretch = round(0.25 * 1000 / form.settings.hop_ms)
            height = whole.shape[0] // 4
            assert columns == -(-len(rows) // stretch)
            for one, cell in ((high, 0), (low, 10)):
                down, across = divmod(cell, columns)
                part = (
                    slice(down * height, (down + 1) * height),
                    slice(across * stretch, (across + 1) * stretch),
                )
                assert (one[part] == 127).all()  # the mean, in the middle of black and white
                changed = one != whole
                changed[part] = False
                assert not changed.any()
            answer = await sent(client, data, hidden=str(4 * columns))
            assert answer.status_code == 400 and str(4 * columns - 1) in answer.json()["error"]

    asyncio.run(check())


def test_each_head_tells_what_it_hears(tones: Run, served: Served) -> None:
    """Of all rows behind the convolutions, and of the row in the middle of a stretch of time."""
    labeller = Labeller(tones)
    form = tones.source
    assert isinstance(form, FramesForm)
    data = recording(0.6)
    rows = np.concatenate([one for one in form.in_turns(InMemory("a", data)) if one is not None])
    weights = labeller.engine.attention.record(rows, ()).encoder  # (L, H, T, T)
    count = weights.shape[-1]

    async def check() -> None:
        async with served() as client:
            answer = await sent(client, data, seen="true", heads="true")
            seen = answer.json()["files"][0]["seen"]
            assert seen["rollout"]["rows"] == 1 and seen["rollout"]["columns"] == count
            assert sum(seen["rollout"]["shares"]) == pytest.approx(1, abs=1e-3)
            assert np.asarray(seen["heads"]) == pytest.approx(weights.mean(axis=2), abs=2e-4)
            columns = seen["grid"]["columns"]
            stretch = round(0.25 * 1000 / form.settings.hop_ms)
            for cell in (0, columns + 1, 3 * columns):  # of any band
                begin = cell % columns * stretch
                middle = (begin + min(begin + stretch, len(rows))) // 2
                answer = await sent(client, data, seen="true", heads="true", at=str(cell))
                heads = np.asarray(answer.json()["files"][0]["seen"]["heads"])
                at = min(middle * count // len(rows), count - 1)
                assert heads == pytest.approx(weights[:, :, at], abs=2e-4)
            answer = await sent(client, data, seen="true", heads="true", at=str(4 * columns))
            assert answer.status_code == 400 and str(4 * columns - 1) in answer.json()["error"]

    asyncio.run(check())


@pytest.mark.parametrize(("kind", "coding"), FORMATS)
def test_every_format_is_known_by_what_it_holds(served: Served, kind: str, coding: str) -> None:
    """Whatever it is called."""
    rate = 48_000 if coding == "OPUS" else RATE

    async def check() -> None:
        async with served() as client:
            answer = await sent(client, recording(1, kind, coding, rate), names=["a.txt"])
            assert answer.status_code == 200, answer.text  # Opus has 48 kHz always

    asyncio.run(check())


def aiff() -> bytes:
    file = io.BytesIO()
    soundfile.write(file, tone(300, 0.1), RATE, format="AIFF")
    return file.getvalue()


def flac_without_length() -> bytes:
    """As a program writes it that does not know yet how long it will be."""
    data = bytearray(recording(0.5, "FLAC"))
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    return bytes(data)


BROKEN = [
    (b"", "one.wav is empty"),
    (b"hello", "one.wav is damaged or not a supported recording"),
    (recording()[:100], "is cut off"),
    (aiff(), "one.wav is AIFF, not "),
    (b"ID3\3\0\0\0\0\0\x0a" + bytes(10) + aiff(), "is AIFF, not "),
    (recording(0.0), "has no samples"),
    (flac_without_length(), "has no duration in its header"),
    (b"\x89PNG\r\n\x1a\n" + bytes(50), "not a supported recording"),
]


@pytest.mark.parametrize(("data", "words"), BROKEN, ids=[words for _, words in BROKEN])
def test_a_file_that_cannot_be_read_is_told_of(served: Served, data: bytes, words: str) -> None:
    async def check() -> None:
        async with served() as client:
            told_once(await sent(client, data, names=["one.wav"]), 400, words)
            both = await sent(client, recording(), data, names=["good.wav", "one.wav"])
            told_once(both, 400, words)
            assert both.json()["values"]["file"] == "one.wav"
            assert (await sent(client, recording())).status_code == 200

    asyncio.run(check())


GOOD = in_base64(recording())


@pytest.mark.parametrize(
    ("values", "status", "words"),
    [
        ({}, 400, "missing text"),
        ({"text": "a"}, 400, "No run here labels texts"),
        ({"text": "a", "run": "tones"}, 400, "tones reads recordings: send them as file"),
        ({"text": "a", "file": GOOD}, 400, "not both"),
        ({"file": GOOD, "why": True}, 400, "only with texts"),
        ({"file": GOOD, "seen": True, "reading": True}, 400, "works only with pictures"),
        ({"file": ["%%%"]}, 400, "file[0] is not base64"),
        ({"file": "ü"}, 400, "file is not base64"),
        ({"file": [in_base64(recording(4)), in_base64(recording(7))]}, 400, "11.0 seconds"),
    ],
)
def test_errors_are_clear(tones: Run, values: dict[str, Any], status: int, words: str) -> None:
    settings = ServeSettings(limits=LimitSettings(sound_seconds=10))

    async def check() -> None:
        run = open_run(tones, settings, "tones")
        async with client_of(run, echo_run(), settings=settings) as client:
            told_once(await client.post("/v1/classify", json=values), status, words)

    asyncio.run(check())


def test_files_go_to_a_run_that_reads_them_and_texts_to_another(tones: Run, tmp_path: Path) -> None:
    topics = Run.open(untrained_run(tmp_path, *SMALL, recipe_name="demo-labels"))
    runs = [open_run(run, ServeSettings(), name) for run, name in
            ((topics, "topics"), (tones, "tones"))]  # fmt: skip

    async def check() -> None:
        async with client_of(*runs) as client:
            assert (await post(client, "/v1/classify", text="a"))["run"] == "topics"
            assert (await post(client, "/v1/classify", file=GOOD))["run"] == "tones"
            wrong = await client.post("/v1/classify", json={"file": GOOD, "run": "topics"})
            told_once(wrong, 400, "topics reads text")
            told = (await client.get("/v1/info")).json()
            assert [one["reads"] for one in told["runs"]] == ["text", "recordings"]
            assert told["runs"][0]["takes"] is None and told["runs"][1]["takes"]["rate"] == RATE
            assert told["sound_seconds"] == 600 and told["upload_bytes"] == 10_000_000
            assert told["runs"][1]["look"] is False and told["runs"][1]["figures"] is False
            look = await client.post("/v1/look", json={"text": "a", "run": "tones"})
            told_once(look, 400, "it reads recordings")
            # No path of the machine that it was trained on is told.
            assert told["runs"][1]["knows"]["examples"] == []
            described = (await client.get("/openapi.json")).json()
            body = described["paths"]["/v1/classify"]["post"]["requestBody"]["content"]
            assert set(body) == {"application/json", "multipart/form-data"}

    asyncio.run(check())


def test_a_form_is_held_in_memory_and_has_its_limits(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a file was written to a disk")

    monkeypatch.setattr("tempfile.SpooledTemporaryFile.rollover", never)
    limits = LimitSettings(upload_bytes=3_000_000, body_bytes=10_000)

    async def check() -> None:
        async with served(limits=limits) as client:
            long = recording(100)
            assert len(long) > 1_500_000
            assert (await sent(client, long)).status_code == 200
            told_once(await sent(client, *[b"x"] * 400), 400, "257 files or more")
            told_once(await sent(client, bytes(4_200_000)), 413, "4,065,536")
            other = await client.post("/v1/classify", files={"other": ("a", b"x")})
            told_once(other, 400, "called file, not 'other'")
            told_once(await sent(client, bytes(3_500_000)), 413, "3,000,000")
            text = {"text": "a " * 100_000}
            assert (await client.post("/v1/classify", json=text)).status_code == 413
            fields = await client.post("/v1/classify", files={"file": b""}, data=dict.fromkeys(
                map(str, range(100)), "x"
            ))  # fmt: skip
            told_once(fields, 400, "Too many fields")

    asyncio.run(check())


def test_what_is_large_and_no_base64_is_not_read_as_json(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of brackets takes a second to be read, and ten of them ten."""
    read: list[int] = []
    original = connection._parse

    def counted(body: bytes, max_values: int) -> Any:
        read.append(len(body))
        return original(body, max_values)

    monkeypatch.setattr(connection, "_parse", counted)

    async def check() -> None:
        async with served(limits=LimitSettings(body_bytes=100_000)) as client:
            for bomb in (
                b'{"file": [' + b'"",' * 2_000_000 + b'""]}',
                b"{" + b"[" * 3_000_000,
                b"a=" + b"%41" * 1_000_000,
                b'{"file": "' + b"\\u0041" * 500_000 + b'"}',
            ):
                answer = await client.post("/v1/classify", content=bomb, headers=JSON)
                told_once(answer, 413, "100,000")
            assert not read
            slashes = in_base64(recording(20)).replace("/", "\\/")  # as PHP writes it
            answer = await client.post(
                "/v1/classify", content=f'{{"file": "{slashes}"}}', headers=JSON
            )
            assert answer.status_code == 200 and len(read) == 1

    asyncio.run(check())


def test_a_header_that_lies_is_found_out(tones: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a header belies costs no more than what is allowed."""
    monkeypatch.setattr(frames_form, "costly_seconds", lambda _: 0.1)
    settings = ServeSettings(limits=LimitSettings(sound_seconds=1))
    decoded: list[int] = []
    original = LogMel.parts

    def counted(self: LogMel, blocks: Any) -> Any:
        for part in original(self, blocks):
            decoded.append(len(part))
            yield part

    monkeypatch.setattr(LogMel, "parts", counted)

    async def check() -> None:
        async with client_of(open_run(tones, settings, "tones"), settings=settings) as client:
            told_once(await sent(client, recording(30)), 400, "at most 101 are allowed")
            assert sum(decoded) <= 101
            monkeypatch.setattr("dragoman.sources.frames.form.samples_of", lambda *_: 800)
            told_once(await sent(client, recording(300)), 400, "at most 101 are allowed")
            assert 101 < sum(decoded) <= 101 + 4096  # what is computed at once

    asyncio.run(check())


def test_nothing_slow_is_done_on_the_event_loop(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = [
        (uploads.Upload, "read"), (uploads, "_beside_base64"), (frames_form, "costly_seconds"),
        (LogMel, "_some"), (endpoint, "png_of"), (endpoint, "labels_told"),
        (connection, "_parse"),
    ]  # fmt: skip
    work = SlowWork(slow, monkeypatch)

    async def check() -> None:
        async with served(limits=LimitSettings(body_bytes=10_000)) as client:
            asked = {"file": in_base64(recording(3)), "seen": True}
            await work.ask(client, [("/v1/classify", asked)])
        work.require_elsewhere()

    asyncio.run(check())


def test_a_short_recording_does_not_wait_for_long_ones(
    tones: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten minutes of one client are held in the middle; another's is answered meanwhile."""
    gate, begun = threading.Event(), threading.Event()
    original = FramesForm.in_turns

    def held(self: FramesForm, file: InMemory, most: int) -> Any:
        if len(file.data) > 1_000_000:
            begun.set()
            gate.wait(30)
        yield from original(self, file, most)

    monkeypatch.setattr(FramesForm, "in_turns", held)
    run = open_run(tones, ServeSettings(), "tones")
    assert isinstance(run, endpoint.ServedFileClassifier)

    async def check() -> None:
        async with client_of(run) as client:
            long = [asyncio.ensure_future(sent(client, recording(300))) for _ in range(2)]
            await until(begun.is_set)
            assert (await sent(client, recording())).status_code == 200
            # A client has as many places as eight short ones; it takes one long one all the same.
            await until(lambda: sum(one.done() for one in long) == 1)
            gate.set()
            assert sorted([(await one).status_code for one in long]) == [200, 429]
            assert run._decoding.places.taken == run.opening.places.taken == 0

    asyncio.run(check())


def test_one_client_holds_a_quarter_of_the_memory_for_files() -> None:
    held = Places("uploads", 250, 1000)
    with held.occupy("a", 900):  # alone it always has room
        with pytest.raises(Refusal, match="the most that one client"), held.occupy("a", 1):
            pass
        with held.occupy("b", 100), pytest.raises(Refusal, match="Other clients"):
            held.occupy("c", 1).__enter__()
    with held.occupy("a", 250), pytest.raises(Refusal):
        held.occupy("a", 1).__enter__()
    with held.occupy("c", 900):
        pass


def test_large_requests_need_a_key_in_their_header(tones: Run, tmp_path: Path) -> None:
    """Where keys are needed, nobody who is not known makes the server read megabytes."""
    (tmp_path / "keys").write_text("0123456789abcdef  Ada\n")
    limits = LimitSettings(body_bytes=10_000)
    settings = ServeSettings(api_keys=tmp_path / "keys", limits=limits)

    async def check() -> None:
        async with client_of(open_run(tones, settings, "tones"), settings=settings) as client:
            small = {"file": in_base64(recording(0.1)), "api_key": "0123456789abcdef"}
            assert (await client.post("/v1/classify", json=small)).status_code == 200
            large = small | {"file": in_base64(recording(3))}
            told_once(await client.post("/v1/classify", json=large), 413, "10,000")
            client.headers["authorization"] = "Bearer 0123456789abcdef"
            assert (await client.post("/v1/classify", json=large)).status_code == 200

    asyncio.run(check())


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_files_are_answered_and_the_server_lives_on(tones: Run, count: int) -> None:
    limits = LimitSettings(requests_per_minute=1_000_000, burst=1_000_000)
    settings = ServeSettings(limits=limits)
    whole = [recording(0.3, kind, coding, 48_000 if coding == "OPUS" else RATE)
             for kind, coding in FORMATS]  # fmt: skip
    draw = random.Random(7)

    async def check() -> None:
        async with client_of(open_run(tones, settings, "tones"), settings=settings) as client:
            for number in range(count):
                answer = await sent(client, damaged(whole[number % len(whole)], draw))
                if answer.status_code != 200:
                    code = answer.json()["code"]
                    told_once(answer, 400, "")
                    assert code in ("bad_file", "too_much_sound"), answer.text
            assert (await sent(client, whole[0])).status_code == 200

    asyncio.run(check())


def test_sound_is_drawn_as_it_is(tones: Run) -> None:
    """A rising tone rises: the lightest row of each column climbs."""
    form = tones.source
    assert isinstance(form, FramesForm)
    *_, rows = form.in_turns(InMemory("a", recording(1)))
    assert rows is not None
    pixels = form.picture(rows)
    assert pixels.shape == (20, len(rows), 1)
    lightest = pixels[:, :, 0].argmax(axis=0)
    assert lightest[5] > lightest[len(rows) // 2] > lightest[-5]
    wide = form.picture(np.tile(rows, (40, 1)))
    assert wide.shape[1] <= 1024
