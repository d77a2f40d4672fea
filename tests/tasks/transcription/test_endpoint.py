"""Transcription as OpenAI's clients ask for it: what the verb says, in their layouts, within
limits, and with their errors."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from refusal_kinds import KINDS
from row_files import RATE, tone
from sent_files import damaged
from serving_echo import Served, client_of, echo_run, open_run, serves, until
from slow_work import SlowWork
from tiny_cells import tiny_cell
from trained_run import trained_run
from warm_server import serving

from dragoman.engine.ctc_ranking import ctc_log_probabilities
from dragoman.runs.run import Run
from dragoman.serving.http import uploads
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.sources.frames import cutting
from dragoman.sources.frames import form as frames_form
from dragoman.sources.frames.form import FramesForm, LogMel
from dragoman.tasks.transcription import endpoint
from dragoman.tasks.transcription.endpoint import ServedTranscriber
from dragoman.tasks.transcription.transcriber import Transcriber

PATH = "/v1/audio/transcriptions"
WORDS, SEGMENTS = "timestamp_granularities[]", "segment"
FORMATS = (("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"),
           ("MP3", "MPEG_LAYER_III"))  # fmt: skip


def said(*directions: str, silence: float = 1.0) -> np.ndarray[Any, Any]:
    """Tones with silence around each, as samples."""
    parts = [np.zeros(int(RATE * silence))]
    for number, one in enumerate(directions):
        begin, end = (300.0, 1800.0) if one == "rising" else (1800.0, 300.0)
        parts += [tone(begin, 0.2, number, end), np.zeros(int(RATE * silence))]
    return np.concatenate(parts)


def recording(
    samples: np.ndarray[Any, Any] | None = None,
    kind: str = "WAV",
    coding: str = "PCM_16",
    rate: int = RATE,
) -> bytes:
    file = io.BytesIO()
    given = tone(300, 0.2, until=1800) if samples is None else samples
    soundfile.write(file, np.repeat(given, rate // RATE), rate, format=kind, subtype=coding)
    return file.getvalue()


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that has learned with CTC which way tones go."""
    folder = tmp_path_factory.mktemp("heard")
    changes = ["training.updates=60", "training.validate_every=60", "training.ctc_weight=0.3"]
    recipe = tiny_cell("translation", "transformer", "frames", folder)
    return trained_run(recipe.change([*changes, "languages.target=en"]), folder / "run")


@pytest.fixture
def served(heard: Run) -> Served:
    return serves(heard, "tones")


async def sent(
    client: httpx.AsyncClient, data: bytes = b"", name: str = "one.wav", **fields: Any
) -> httpx.Response:
    fields = {WORDS if key == "times" else key: value for key, value in fields.items()}
    return await client.post(PATH, files={"file": (name, data)}, data=fields)


def told_so(answer: httpx.Response, status: int, words: str) -> dict[str, Any]:
    """An error as OpenAI has it."""
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    error: dict[str, Any] = answer.json()["error"]
    assert list(error) == ["message", "type", "param", "code", "values"]
    assert words in error["message"] and "\n" not in error["message"], error
    assert not error["message"].endswith(".."), error
    kind = KINDS[error["code"]]
    assert (kind.status, set(kind.values)) == (status, set(error["values"])), error
    return error


def data_of(body: str) -> list[dict[str, Any]]:
    """The events of a stream, whose data say what they are."""
    lines = [block.splitlines() for block in body.strip().split("\n\n")]
    assert all(len(one) == 1 and one[0].startswith("data: ") for one in lines), body
    return [json.loads(one.removeprefix("data: ")) for (one,) in lines]


def test_it_says_what_the_verb_says_in_every_layout(
    heard: Run, served: Served, tmp_path: Path
) -> None:
    path = tmp_path / "long.flac"
    path.write_bytes(recording(said("rising", "falling", "rising"), "FLAC"))
    wanted = Transcriber(heard)(path, words=True)
    assert len(wanted.segments) == 3 and wanted.text

    async def check() -> None:
        async with served() as client:
            data = path.read_bytes()
            plain = (await sent(client, data, model="tones")).json()
            seconds = {"type": "duration", "seconds": round(wanted.seconds, 3)}
            assert plain == {"text": wanted.text, "usage": seconds}
            for layout in ("text", "srt", "vtt"):
                answer = await sent(client, data, response_format=layout)
                assert answer.headers["content-type"].startswith("text/plain")
                assert answer.text == wanted.captions(layout)  # type: ignore[arg-type]
            both = ["word", "segment"]
            told = (await sent(client, data, response_format="verbose_json", times=both)).json()
            assert told["language"] == "english" and told["duration"] == round(wanted.seconds, 3)
            for one, segment in zip(told["segments"], wanted.segments, strict=True):
                assert one["text"] == segment.text
                assert (one["start"], one["end"]) == (
                    round(segment.begin, 3),
                    round(segment.end, 3),
                )
                assert one["avg_logprob"] <= 0 and one["seek"] == int(segment.begin * 100)
            words = [word for segment in wanted.segments for word in segment.words]
            assert [
                (one["word"], one["start"], one["end"], one["probability"]) for one in told["words"]
            ] == [
                (
                    word.text,
                    round(word.begin, 3),
                    round(word.end, 3),
                    round(word.confidence or 0, 4),
                )
                for word in words
            ]
            alone = (await sent(client, data, response_format="verbose_json", times="word")).json()
            assert alone["words"] == told["words"] and "segments" not in alone
            narrow = (await sent(client, data, beam="1")).json()
            assert narrow["text"] == str(Transcriber(heard)(path, beam=1))

    asyncio.run(check())


def test_a_form_that_is_made_by_hand_is_read(heard: Run, served: Served, tmp_path: Path) -> None:
    """As RFC 7578 has it, with nothing but bytes."""
    path = tmp_path / "one.wav"
    path.write_bytes(recording())
    parts = [
        b'Content-Disposition: form-data; name="model"\r\n\r\nwhisper-1',
        b'Content-Disposition: form-data; name="timestamp_granularities[]"\r\n\r\nword',
        b'Content-Disposition: form-data; name="timestamp_granularities[]"\r\n\r\nsegment',
        b'Content-Disposition: form-data; name="response_format"\r\n\r\nverbose_json',
        b'Content-Disposition: form-data; name="temperature"\r\n\r\n0.0',
        b'Content-Disposition: form-data; name="file"; filename="one.wav"\r\n'
        b"Content-Type: audio/wav\r\n\r\n" + path.read_bytes(),
    ]
    body = b"".join(b"--edge\r\n" + part + b"\r\n" for part in parts) + b"--edge--\r\n"

    async def check() -> None:
        async with served() as client:
            kind = {"content-type": "multipart/form-data; boundary=edge"}
            answer = await client.post(PATH, content=body, headers=kind)
            told = answer.json()
            assert told["text"] == str(Transcriber(heard)(path)), answer.text
            assert told["words"] and told["segments"]

    asyncio.run(check())


def test_a_stream_tells_segment_by_segment(served: Served) -> None:
    data = recording(said("rising", "falling"))

    async def check() -> None:
        async with served() as client:
            whole = (await sent(client, data)).json()
            answer = await sent(client, data, stream="true")
            assert answer.headers["content-type"].startswith("text/event-stream")
            *deltas, done = data_of(answer.text)
            assert {one["type"] for one in deltas} == {"transcript.text.delta"} and len(deltas) == 2
            assert "".join(one["delta"] for one in deltas) == done["text"] == whole["text"]
            assert done["type"] == "transcript.text.done" and done["usage"] == whole["usage"]
            verbose = {"response_format": "verbose_json", "times": "word"}
            told = data_of((await sent(client, data, stream="true", **verbose)).text)
            of_segments = [one for one in told if one["type"] == "transcript.text.segment"]
            assert [one["id"] for one in of_segments] == ["0", "1"]
            assert all(one["words"] for one in of_segments)

    asyncio.run(check())


def test_what_is_seen_of_a_long_recording_ends(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer has more numbers than can be written without holding others up."""
    asked = {"response_format": "verbose_json", "seen": "true"}
    two = recording(said("rising", "falling"))

    async def check() -> None:
        async with served() as client:
            first, second = (await sent(client, two, **asked)).json()["segments"]
            shares = sum(len(one["looked"]) for one in first["seen"]["tokens"])
            assert shares and second["seen"]["tokens"]
            monkeypatch.setattr(endpoint, "MOST_SHARES", shares)
            seen, unseen = (await sent(client, two, **asked)).json()["segments"]
            assert seen == first and "seen" not in unseen
            assert unseen["text"] == second["text"]

    asyncio.run(check())


def test_what_is_seen_of_a_segment(heard: Run, served: Served, tmp_path: Path) -> None:
    """The spikes are those of CTC, and the attention is that of the last layer."""
    data = recording(said("rising", silence=0.1))
    (tmp_path / "one.wav").write_bytes(data)
    transcriber = Transcriber(heard)
    form = heard.source
    assert isinstance(form, FramesForm)
    # One short recording is read as one piece, and is as long as it is.
    rows = form.rows(str(tmp_path / "one.wav"))
    known = ctc_log_probabilities(transcriber.engine, rows).exp().numpy()

    async def check() -> None:
        async with served() as client:
            asked = {"response_format": "verbose_json", "seen": "true"}
            whole = (await sent(client, data, **asked)).json()
            (segment,) = whole["segments"]
            seen = segment["seen"]
            record = transcriber.engine.attention.record(rows, segment["tokens"])
            looked = [one["looked"] for one in seen["tokens"]]
            by_hand = record.cross[-1].mean(axis=0)[: len(looked)]
            assert np.allclose(looked, by_hand, atol=2e-3)
            written = "".join(one["text"] for one in seen["tokens"])
            assert written.replace("▁", " ").strip() == segment["text"]
            for spike in seen["spikes"]:
                place = round(
                    spike["second"] * 1000 / form.settings.hop_ms / form.settings.subsample - 0.5
                )
                assert known[place].max() == pytest.approx(spike["probability"], abs=1e-3)
                assert known[place].argmax() != known.shape[1] - 1
            sure = (known.argmax(axis=1) < known.shape[1] - 1) & (known.max(axis=1) > 0.5)
            assert bool(seen["spikes"]) == bool(sure.any())
            plain = await sent(client, data, response_format="verbose_json")
            assert "seen" not in plain.json()["segments"][0]
            left = (await sent(client, data, **asked, hidden="0,1")).json()["segments"]
            assert not left or left[0]["seen"]["png"] != seen["png"]
            told_so(await sent(client, data, seen="true"), 400, "verbose_json")
            answer = await sent(client, data, response_format="verbose_json", hidden="999")
            told_so(answer, 400, "hidden takes numbers from 0 to")
            two = recording(said("rising", "falling"))
            answer = await sent(client, two, response_format="verbose_json", hidden="0")
            told_so(answer, 400, "one segment")

    asyncio.run(check())


def test_a_failure_within_a_stream_is_an_event(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "_text", lambda _: 1 / 0)

    async def check() -> None:
        async with served() as client:
            *_, last = data_of((await sent(client, recording(), stream="true")).text)
            assert last["error"]["type"] == "server_error" and last["error"]["code"] == "failed"
            whole = await sent(client, recording())
            told_so(whole, 500, "See its log")

    asyncio.run(check())


def test_silence_says_nothing(served: Served) -> None:
    async def check() -> None:
        async with served() as client:
            for seconds in (1, 30):
                quiet = recording(np.zeros(seconds * RATE))
                assert (await sent(client, quiet)).json()["text"] == ""
                assert (await sent(client, quiet, response_format="srt")).text == ""
                (done,) = data_of((await sent(client, quiet, stream="true")).text)
                assert done["text"] == ""

    asyncio.run(check())


@pytest.mark.parametrize(("kind", "coding"), FORMATS)
def test_every_format_is_known_by_what_it_holds(served: Served, kind: str, coding: str) -> None:
    data = recording(None, kind, coding, 48_000 if coding == "OPUS" else RATE)

    async def check() -> None:
        async with served() as client:
            answer = await sent(client, data, name="a.bin")
            assert answer.status_code == 200 and answer.json()["text"], answer.text

    asyncio.run(check())


GOOD = recording()
WRONG: Sequence[tuple[bytes | None, dict[str, Any], int, str]] = [
    (None, {}, 400, "missing file"),
    (b"", {}, 400, "one.wav is empty"),
    (b"hello", {}, 400, "one.wav is damaged or not a supported recording"),
    (b"RIFF\x04\0\0\0WAVE", {}, 400, "No 'data' chunk marker."),
    (GOOD[:100], {}, 400, "is cut off"),
    (b"\x1aE\xdf\xa3" + bytes(60), {}, 400, "ffmpeg -i"),
    (recording(np.zeros(0)), {}, 400, "has no samples"),
    (recording(np.zeros(11 * RATE)), {}, 400, "11.0 seconds"),
    (bytes(300_000), {}, 413, "larger than"),
    (GOOD, {"model": "nobody"}, 404, "Use one of: tones, echo"),
    (GOOD, {"model": "echo"}, 400, "Send the request to /v1/translate"),
    (GOOD, {"language": "ko"}, 400, "tones writes en, not ko"),
    (GOOD, {"response_format": "docx"}, 400, "response_format"),
    (GOOD, {"times": "word"}, 400, "verbose_json"),
    (GOOD, {"times": "syllable", "response_format": "verbose_json"}, 400, "granularities[]"),
    (
        GOOD,
        {"stream": "true", "response_format": "srt"},
        400,
        "a stream needs response_format=json",
    ),
    (GOOD, {"temperature": "2"}, 400, "temperature"),
    (GOOD, {"beam": "17"}, 400, "beam of at most 16"),
    (GOOD, {"colour": "red"}, 400, "colour"),
]


@pytest.mark.parametrize(
    ("data", "fields", "status", "words"),
    WRONG,
    ids=[f"{one[3]}-{n}" for n, one in enumerate(WRONG)],
)
def test_errors_are_clear_and_in_openai_s_shape(
    heard: Run, data: bytes | None, fields: dict[str, Any], status: int, words: str
) -> None:
    settings = ServeSettings(limits=LimitSettings(sound_seconds=10, recording_bytes=200_000,
                                                  body_bytes=10_000))  # fmt: skip

    async def check() -> None:
        run = open_run(heard, settings, "tones")
        async with client_of(run, echo_run(), settings=settings) as client:
            if data is None:
                told_so(await client.post(PATH, json=fields), status, words)
            else:
                told_so(await sent(client, data, **fields), status, words)
            assert (await sent(client, GOOD)).status_code == 200
            both = await client.post(PATH, files=[("file", ("a", GOOD)), ("file", ("b", GOOD))])
            told_so(both, 400, "takes 1")
            told_so(await client.get(PATH), 405, "") if status == 404 else None

    asyncio.run(check())


def test_words_need_ctc(tmp_path: Path) -> None:
    recipe = tiny_cell("translation", "transformer", "frames", tmp_path).change(
        ["training.updates=1", "training.validate_every=1", "languages.target=und"]
    )
    run = trained_run(recipe, tmp_path / "run")

    async def check() -> None:
        async with serves(run, "tones")() as client:
            verbose = {"response_format": "verbose_json", "times": "word"}
            told_so(await sent(client, GOOD, **verbose), 400, "trained without CTC")
            assert (await sent(client, GOOD, response_format="verbose_json")).status_code == 200
            # Nobody knows which language it writes: any may be named.
            assert (await sent(client, GOOD, language="ko")).status_code == 200

    asyncio.run(check())


def test_runs_are_listed_as_models(served: Served, heard: Run) -> None:
    async def check() -> None:
        async with served() as client:
            told = (await client.get("/v1/models")).json()
            assert told["object"] == "list"
            (one,) = told["data"]
            assert (one["id"], one["object"], one["task"]) == ("tones", "model", "transcription")
            assert one["created"] == heard.written > 1_600_000_000
            (info,) = (await client.get("/v1/info")).json()["runs"]
            assert (info["task"], info["reads"]) == ("transcription", "recordings")
            assert info["takes"]["rate"] == RATE and not info["look"] and not info["figures"]
            assert info["takes"]["words"] is True
            assert info["knows"]["examples"] == []

    asyncio.run(check())


def test_base64_is_read_too(served: Served) -> None:
    async def check() -> None:
        async with served() as client:
            same = await client.post(PATH, json={"file": base64.b64encode(GOOD).decode()})
            assert same.json() == (await sent(client, GOOD)).json()

    asyncio.run(check())


def test_a_header_that_lies_is_found_out(heard: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it belies is decoded no further than what is allowed."""
    monkeypatch.setattr(frames_form, "costly_seconds", lambda _: 0.1)
    settings = ServeSettings(limits=LimitSettings(sound_seconds=40))
    blocks: list[int] = []
    original = cutting.blocks_of

    def counted(*given: Any) -> Any:
        for block in original(*given):
            blocks.append(len(block))
            yield block

    monkeypatch.setattr(cutting, "blocks_of", counted)

    async def check() -> None:
        async with client_of(open_run(heard, settings, "tones"), settings=settings) as client:
            long = recording(np.zeros(400 * RATE, np.float32))
            error = told_so(await sent(client, long), 400, "this server takes 40")
            assert error["code"] == "too_much_sound"
            assert sum(blocks) < 40 * RATE + 2 * (1 << 18)

    asyncio.run(check())


def test_too_much_sound_is_refused_before_it_is_decoded(
    heard: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("it was decoded")

    monkeypatch.setattr(cutting, "blocks_of", never)
    settings = ServeSettings(limits=LimitSettings(sound_seconds=10))

    async def check() -> None:
        async with client_of(open_run(heard, settings, "tones"), settings=settings) as client:
            told_so(await sent(client, recording(np.zeros(11 * RATE))), 400, "11.0 seconds")
            # Two seconds that cost as much as sixteen.
            wide = io.BytesIO()
            soundfile.write(wide, np.zeros((2 * 192_000, 8)), 192_000, format="FLAC")
            told_so(await sent(client, wide.getvalue()), 400, "16.0 seconds")

    asyncio.run(check())


def test_nothing_slow_is_done_on_the_event_loop(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = [
        (uploads.Upload, "read"), (frames_form, "costly_seconds"),
        (endpoint, "seconds_of"), (LogMel, "_some"),
        (cutting, "_levels"), (cutting, "spans_of"), (Transcriber, "best"),
        (Transcriber, "segment"),
    ]  # fmt: skip
    work = SlowWork(slow, monkeypatch)
    data = recording(said("rising", "falling"))

    async def check() -> None:
        async with served() as client:
            verbose = {"response_format": "verbose_json", "times": "word"}
            assert (await sent(client, data, **verbose)).status_code == 200
        work.require_elsewhere()

    asyncio.run(check())


def test_a_short_recording_does_not_wait_for_long_ones(
    heard: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minutes of one client are held in the middle; another's second is answered meanwhile."""
    gate, begun = threading.Event(), threading.Event()
    original = cutting.RecordingCutter.measuring

    def held(self: cutting.RecordingCutter, file: Any) -> Any:
        if len(file.data) > 1_000_000:
            begun.set()
            gate.wait(30)
        yield from original(self, file)

    monkeypatch.setattr(cutting.RecordingCutter, "measuring", held)
    run = open_run(heard, ServeSettings(), "tones")
    assert isinstance(run, ServedTranscriber)
    long = recording(np.zeros(300 * RATE))

    async def check() -> None:
        async with client_of(run) as client:
            asked = [asyncio.ensure_future(sent(client, long)) for _ in range(2)]
            await until(begun.is_set)
            assert (await sent(client, GOOD)).status_code == 200
            # A client has as many places as eight short ones; it takes one long one all the same.
            await until(lambda: sum(one.done() for one in asked) == 1)
            gate.set()
            assert sorted([(await one).status_code for one in asked]) == [200, 429]
            assert run._decoding.places.taken == run.opening.places.taken == 0

    asyncio.run(check())


def test_a_client_that_goes_away_leaves_nothing_behind(
    heard: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_run(heard, ServeSettings(), "tones")
    assert isinstance(run, ServedTranscriber)
    gate = threading.Event()
    original = Transcriber.best

    def held(*given: Any) -> Any:
        gate.wait(30)
        return original(*given)

    monkeypatch.setattr(Transcriber, "best", held)

    async def check() -> None:
        async with client_of(run) as client:
            asked = asyncio.ensure_future(sent(client, GOOD))
            await until(lambda: run.asking.places.taken)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            await until(lambda: run.asking.places.taken == run.opening.places.taken == 0)
            gate.set()
            assert (await sent(client, GOOD)).status_code == 200

    asyncio.run(check())


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_files_are_answered_and_the_server_lives_on(heard: Run, count: int) -> None:
    limits = LimitSettings(requests_per_minute=1_000_000, burst=1_000_000)
    settings = ServeSettings(limits=limits)
    whole = [recording(None, kind, coding, 48_000 if coding == "OPUS" else RATE)
             for kind, coding in FORMATS]  # fmt: skip
    draw = random.Random(11)

    async def check() -> None:
        async with client_of(open_run(heard, settings, "tones"), settings=settings) as client:
            for number in range(count):
                answer = await sent(client, damaged(whole[number % len(whole)], draw))
                if answer.status_code != 200:
                    error = told_so(answer, 400, "")
                    assert error["code"] in ("bad_file", "too_much_sound"), answer.text
            assert (await sent(client, GOOD)).status_code == 200

    asyncio.run(check())


@pytest.mark.slow
def test_openai_s_client_works_unchanged(heard: Run, tmp_path: Path) -> None:
    openai: Any = pytest.importorskip("openai", reason="the package openai is not installed")
    path = tmp_path / "long.wav"
    path.write_bytes(recording(said("rising", "falling")))
    wanted = Transcriber(heard)(path, words=True)
    with serving(heard.folder) as address:
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="any")
        assert [one.id for one in client.models.list()] == [heard.folder.name]

        def ask(**options: Any) -> Any:
            with path.open("rb") as file:
                return client.audio.transcriptions.create(model="whisper-1", file=file, **options)

        assert ask(language="en", temperature=0.0, prompt="tones").text == wanted.text
        assert ask(response_format="text") == wanted.captions("text")
        assert ask(response_format="srt") == wanted.captions("srt")
        both = ["word", "segment"]
        told = ask(response_format="verbose_json", timestamp_granularities=both)
        assert [one.text for one in told.segments] == [one.text for one in wanted.segments]
        spoken = [word.text for one in wanted.segments for word in one.words]
        assert [one.word for one in told.words] == spoken
        *deltas, done = ask(stream=True)
        assert "".join(one.delta for one in deltas) == done.text == wanted.text
        with pytest.raises(openai.BadRequestError) as wrong:
            client.audio.transcriptions.create(model="whisper-1", file=b"hello")
        assert wrong.value.code == "bad_file" and wrong.value.type == "invalid_request_error"
        with pytest.raises(openai.NotFoundError):
            client.audio.transcriptions.create(model="nobody", file=path.read_bytes())
