"""What every served run must do alike, whatever its task and its source: a task is tested here from
the day on which the server takes it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from every_task import SERVED_CELLS, given_of
from PIL import Image
from refusal_kinds import KINDS
from row_files import tone, write_wav
from sent_files import in_base64
from serving_echo import client_of, echo_run, meters_of, open_run, post

from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.served_run import ServedRun
from dragoman.tasks import program
from dragoman.tasks.catalogue import Run
from dragoman.tasks.translation.served import ServedTranslator

pytestmark = pytest.mark.system

NAME = "asked"
SETTINGS = ServeSettings(precision="fp32")
KINDS_OF_RUNS = program.serving_tasks().runs
PATHS = list(dict.fromkeys(kind.path for kind in KINDS_OF_RUNS))


class Cell(NamedTuple):
    """A run, what serves it, and what it is asked."""

    run: Run
    kind: type[ServedRun]
    given: Any
    """What is answered of it: a text, or a file in base64."""

    @property
    def field(self) -> str:
        """Where it is given."""
        return field_of(self.kind)

    @property
    def named(self) -> dict[str, str]:
        """The field that names the run."""
        return {chooser_of(self.kind): NAME}

    def open(self) -> ServedRun:
        """The run, served."""
        return open_run(self.run, SETTINGS, NAME)


def field_of(kind: type[ServedRun]) -> str:
    """The field of what Send the request to a kind."""
    if kind.takes_files:
        return "file"
    return next(name for name in ("text", "prompt") if name in kind.sent.model_fields)


def chooser_of(kind: type[ServedRun]) -> str:
    """The field that names a run of a kind."""
    return "run" if "run" in kind.sent.model_fields else "model"


def file_of(source: str, folder: Path) -> bytes:
    """A recording or a picture that a run of a source reads."""
    if source == "frames":
        return write_wav(folder / "one.wav", tone(800, 0.3)).read_bytes()
    held = io.BytesIO()
    Image.effect_noise((40, 12) if source == "line" else (16, 16), 80).save(held, "PNG")
    return held.getvalue()


@pytest.fixture(scope="module", params=SERVED_CELLS, ids="-".join)
def cell(
    request: pytest.FixtureRequest,
    run_of: Callable[..., Run],
    tmp_path_factory: pytest.TempPathFactory,
) -> Cell:
    task, source, _ = request.param
    run = run_of(*request.param)
    kind = next(one for one in KINDS_OF_RUNS if one.takes(run))
    if kind.takes_files:
        given = in_base64(file_of(source, tmp_path_factory.mktemp(f"{task}-{source}")))
    else:
        given = given_of(run)[0]
    return Cell(run, kind, given)


def error_of(answer: httpx.Response, code: str) -> str:
    """The sentence of a refusal, whose code, status and values are those of the documentation."""
    body = answer.json()
    error = body["error"]
    if isinstance(error, dict):  # in OpenAI's shape
        assert list(body) == ["error"] and list(error)[:3] == ["message", "type", "param"]
        body = {"error": error["message"], "code": error["code"], "values": error["values"]}
    assert list(body) == ["error", "code", "values"] and body["code"] == code, answer.text
    assert (answer.status_code, set(body["values"])) == (KINDS[code].status, {*KINDS[code].values})
    sentence: str = body["error"]
    assert "\n" not in sentence and len(sentence) < 400
    return sentence


def wrong(cell: Cell) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Fields that are refused, and the code and some words of the refusal."""
    field, chooser, fields = cell.field, chooser_of(cell.kind), cell.kind.sent.model_fields
    yield {field: 5}, "bad_field", field
    yield {field: [cell.given, 5]}, "bad_field", field
    yield {field: cell.given, "colour": "red"}, "bad_field", "colour"
    yield {field: cell.given, chooser: "nobody"}, "no_such_run", f"Use one of: {NAME}, echo"
    yield {field: cell.given, chooser: "o" * 60_000}, "no_such_run", "ooo…'"
    if fields[field].default != "":
        yield cell.named, "missing_field", f"missing {field}"
    if cell.kind is not ServedTranslator:
        yield (
            {field: cell.given, chooser: "echo"},
            "other_task",
            "Send the request to /v1/translate",
        )
    for name in {"beam", "top", "n_best"} & fields.keys():
        yield {field: cell.given, name: 0}, "bad_field", name
    if "beam" in fields:
        yield {field: cell.given, "beam": 999, **cell.named}, "beam_too_wide", "at most 16"
    if not cell.kind.takes_files:
        yield {field: "a" * 20_001}, "text_too_long", "takes 20,000 at once"
        yield {field: "a" + "\u0301" * 101}, "too_many_marks", "101 combining marks"
    if not cell.kind.takes_files and takes_several(cell):
        yield {field: ["a"] * 257}, "too_many_texts", "takes 256 at once"
    if cell.kind.takes_files:
        most = 256 if takes_several(cell) else 1
        many = {field: [cell.given] * (most + 1), **cell.named}
        yield many, "too_many_files", f"takes {most} at once"
        yield {field: [], **cell.named}, "missing_field", "missing file"
        yield {field: "???", **cell.named}, "bad_file", "not base64"
        yield {field: in_base64(b"GIF89a nothing"), **cell.named}, "bad_file", "damaged or no"


def takes_several(cell: Cell) -> bool:
    """Whether one request may hold several texts or files."""
    one = getattr(cell.kind.sent, "takes_one", False)
    return "list" in str(cell.kind.sent.model_fields[cell.field].annotation) and not one


def test_every_kind_of_run_is_here() -> None:
    served = {(kind.task, kind.takes_files) for kind in KINDS_OF_RUNS}
    tasks = {task for task, _, _ in SERVED_CELLS} | {"transcription", "picture-translation"}
    assert {task for task, _ in served} == tasks


def test_what_a_run_is_asked_is_answered_as_it_says(cell: Cell) -> None:
    async def check() -> None:
        async with client_of(cell.open(), echo_run(), settings=SETTINGS) as client:
            asked = {cell.field: cell.given, **cell.named}
            answer = await client.post(cell.kind.path, json=asked)
            assert answer.status_code == 200, answer.text
            assert answer.json().keys() <= cell.kind.gives.model_fields.keys()
            if takes_several(cell):
                both = await post(client, cell.kind.path, **asked | {cell.field: [cell.given] * 2})
                (told,) = (one for one in both.values() if isinstance(one, list))
                assert len(told) == 2
            counted = f'dragoman_characters_total{{run="{NAME}"}}'.encode()
            assert (counted in meters_of(client).text()) == (not cell.kind.takes_files)
            described = (await client.get("/openapi.json")).json()
            assert {cell.kind.sent.__name__, cell.kind.gives.__name__} <= {
                *described["components"]["schemas"]
            }
            body = described["paths"][cell.kind.path]["post"]["requestBody"]["content"]
            reference = body["application/json"]["schema"]["$ref"]
            assert reference.endswith(f"/{cell.kind.sent.__name__}")

    asyncio.run(check())


def test_what_is_wrong_with_a_request_is_said(cell: Cell) -> None:
    async def check() -> None:
        async with client_of(cell.open(), echo_run(), settings=SETTINGS) as client:
            for fields, code, words in wrong(cell):
                answer = await client.post(cell.kind.path, json=fields)
                assert words in error_of(answer, code), (fields, answer.text)
                assert (await client.get("/health")).json() == {"status": "ok"}

    asyncio.run(check())


def test_who_asks_another_endpoint_is_led_to_its_own(cell: Cell) -> None:
    async def check() -> None:
        async with client_of(cell.open(), echo_run(), settings=SETTINGS) as client:
            for kind in KINDS_OF_RUNS:
                if kind.path == cell.kind.path:
                    continue
                given = in_base64(b"a") if kind.takes_files else "a"
                asked = {field_of(kind): given, chooser_of(kind): NAME}
                begun = [{}, {"prefix": "x"}] if kind is ServedTranslator else [{}]
                for more in begun:
                    answer = await client.post(kind.path, json=asked | more)
                    assert f"Send the request to {cell.kind.path}" in error_of(answer, "other_task")

    asyncio.run(check())


def test_a_server_without_such_a_run_says_how_to_make_one(
    cell: Cell, run_of: Callable[..., Run]
) -> None:
    async def check() -> None:
        other = echo_run()
        if cell.kind is ServedTranslator:
            other = open_run(run_of("tagging", "text", "decoder"), SETTINGS, "other")
        async with client_of(other, settings=SETTINGS) as client:
            answer = await client.post(cell.kind.path, json={cell.field: cell.given})
            told = error_of(answer, "no_run_for_task")
            assert cell.kind.does in told and told.endswith(cell.kind.trained)

    asyncio.run(check())


def test_a_server_of_it_alone_is_whole(cell: Cell) -> None:
    async def check() -> None:
        run = cell.open()
        async with client_of(run, settings=SETTINGS) as client:
            (told,) = (await client.get("/v1/info")).json()["runs"]
            assert (told["task"], told["reads"]) == (cell.kind.task, run.reads)
            assert (told["source"], told["target"]) == (run.source, run.target)
            assert told["look"] == run.can_be_looked_into and told["figures"] == run.has_figures
            assert (await client.get("/ready")).json() == {"ready": True, "runs": [NAME]}
            assert (await client.get(f"/v1/runs/{NAME}")).status_code == 200
            assert bool((await client.get("/languages")).json()) == run.translates
            assert (await client.get("/frontend/settings")).status_code == 200
            rows = f'dragoman_step_rows_total{{run="{NAME}"}} 0.0'.encode()
            assert rows in meters_of(client).text()
            if not run.can_be_looked_into:
                looked = await client.post("/v1/look", json={"text": "a", "run": NAME})
                assert NAME in error_of(looked, "cannot_look")
            if not run.has_figures:
                figures = (await client.get(f"/v1/figures?run={NAME}")).json()["figures"]
                assert all(("missing" in one) == one["needs_run"] for one in figures)
                figure = {"name": "attention-encoder", "run": NAME}
                refused = await client.post("/v1/figures", json=figure)
                assert cell.kind.does in error_of(refused, "no_figure_here")
            if not run.translates:
                asked = {"/translate": {"q": "x", "target": "de"}, "/v1/translate": {"text": "x"}}
                for path, values in asked.items():
                    answer = await client.post(path, json=values)
                    assert "No run here translates" in error_of(answer, "no_run_for_task")

    asyncio.run(check())
