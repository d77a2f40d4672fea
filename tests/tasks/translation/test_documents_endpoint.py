"""Documents through the server: as LibreTranslate takes them, private, and beside others."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import httpx
import made_office
import pytest
from made_office import W
from serving_echo import ADDRESS, at, client_of, echo_run, meters_of

from dragoman.serving.http.connection import InMemoryParser
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.operate.settings import ServeSettings
from dragoman.tasks.translation.documents_endpoint import SECONDS, KeptDocuments

docx = pytest.importorskip("docx")
TEXT = f"{{{W}}}t"
TO_GERMAN = {"source": "en", "target": "de"}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def limited(**limits: Any) -> ServeSettings:
    return ServeSettings(limits=LimitSettings(**limits))


async def sent(
    client: httpx.AsyncClient, data: bytes, name: str = "file", **fields: Any
) -> httpx.Response:
    files = {"file": (name, data)}
    return await client.post("/translate_file", files=files, data={**TO_GERMAN, **fields})


async def downloaded(client: httpx.AsyncClient, answer: httpx.Response) -> httpx.Response:
    assert answer.status_code == 200, answer.text
    return await client.get(answer.json()["translatedFileUrl"])


def test_a_document_comes_back_and_is_gone_after_the_download() -> None:
    async def check() -> None:
        async with client_of() as client:
            before = made_office.docx(4)
            # Clients send it as "file": its content says what it is.
            answer = await sent(client, before, "file", source="auto")
            url = answer.json()["translatedFileUrl"]
            assert url.startswith(f"{ADDRESS}/download_file/")
            assert (await client.head(url)).status_code == 200
            got = await client.get(url)
            assert got.status_code == 200 and "wordprocessingml" in got.headers["content-type"]
            assert "file_de" in got.headers["content-disposition"]
            texts = [
                "".join(t.text for t in docx.Document(io.BytesIO(data)).element.iter(TEXT))
                for data in (before, got.content)
            ]
            assert sorted("".join(texts[0].split())) == sorted("".join(texts[1].split()))
            gone = await client.get(url)
            assert gone.status_code == 404 and gone.json()["code"] == "no_such_document"
            characters = sum(map(len, texts[0]))
            meters = meters_of(client).text()
            counted = re.search(rb"dragoman_characters_total{.*} ([0-9.]+)", meters)
            assert counted is not None and float(counted[1]) >= characters > 0

    run(check())


def test_what_it_can_is_told_as_libretranslate_tells_it() -> None:
    async def check() -> None:
        async with client_of() as client:
            settings = (await client.get("/frontend/settings")).json()
            assert settings["filesTranslation"] is True
            assert {".docx", ".srt", ".odt", ".html"} <= set(settings["supportedFilesFormat"])

    run(check())


def test_some_columns_of_a_table() -> None:
    """Told by how many texts there are, as this model writes what it reads."""

    async def check() -> None:
        async with client_of() as client:
            table = b"key,text\r\na,Where is the bread?\r\nb,Where is it?\r\n"
            for columns, texts in (({}, 6), ({"columns": "text"}, 2), ({"columns": "2"}, 3)):
                answer = await sent(client, table, "a.csv", stream="true", **columns)
                assert f'"of":{texts}' in answer.text.replace(" ", ""), answer.text
            answer = await sent(client, table, "a.csv", columns="note")
            assert answer.status_code == 400 and "column note" in answer.json()["error"]

    run(check())


def test_how_far_it_is_is_told() -> None:
    async def check() -> None:
        async with client_of() as client:
            text = "\n\n".join(f"Where is the bread number {n}?" for n in range(900)).encode()
            answer = await sent(client, text, "a.txt", stream="true")
            assert answer.headers["content-type"].startswith("text/event-stream")
            events = [
                (one.split("\n")[0].removeprefix("event: "), json.loads(one.split("data: ")[1]))
                for one in answer.text.split("\n\n")
                if "data: " in one
            ]
            progress = [values for name, values in events if name == "progress"]
            assert [one["of"] for one in progress] == [900] * len(progress) and len(progress) > 2
            assert [one["done"] for one in progress] == sorted(one["done"] for one in progress)
            assert events[-1][0] == "done"
            got = await client.get(events[-1][1]["translatedFileUrl"])
            assert got.content == text

    run(check())


@pytest.mark.parametrize(
    ("data", "name", "fields", "status", "words"),
    [
        (b"%PDF-1.7", "a.pdf", {}, 400, "pdftotext"),
        (made_office.docx(1)[:-40], "my contract.docx", {}, 400, "my contract.docx"),
        (b"one", "a.txt", {"target": "xx"}, 400, "xx is not supported"),
        (b"one" * 70_000, "a.txt", {}, 413, "100,000"),
        (b"one " * 9_000, "a.txt", {}, 400, "characters"),
        (b"a\xcc\x81" + b"\xcc\x81" * 300, "a.txt", {}, 400, "combining marks"),
    ],
)
def test_what_is_refused(
    data: bytes, name: str, fields: dict[str, str], status: int, words: str
) -> None:
    async def check() -> None:
        settings = limited(file_bytes=100_000 - 65_536, file_characters=20_000, body_bytes=1000)
        async with client_of(settings=settings) as client:
            answer = await sent(client, data, name, **fields)
            assert answer.status_code == status, answer.text
            assert words in answer.json()["error"] and "\n" not in answer.json()["error"]
            assert (
                await client.post("/translate", json={"q": "one", **TO_GERMAN})
            ).status_code == 200

    run(check())


def test_a_document_of_other_languages() -> None:
    """The server translates from English into German. What binds is refused, also where the source
    is left open; what does not is told with the address."""
    xliff = (
        '<xliff version="1.2"><file source-language="{}" target-language="{}"><body><trans-unit>'
        "<source>Where is the bread?</source></trans-unit></body></file></xliff>"
    )
    memory = (
        '<tmx version="1.4"><header srclang="{}"/><body><tu><tuv xml:lang="{}"><seg>Where is it?'
        "</seg></tuv></tu></body></tmx>"
    )

    async def check() -> None:
        async with client_of() as client:
            for source in ("en", "auto"):
                for name, data, said in (
                    ("a.xlf", xliff.format("de", "en"), "German"),
                    ("a.xlf", xliff.format("en", "fr"), "French"),
                    ("a.tmx", memory.format("fr", "fr"), "fr"),
                ):
                    answer = await sent(client, data.encode(), name, source=source)
                    assert answer.status_code == 400, (source, name, said)
                    assert said in answer.json()["error"] or "de is not" in answer.json()["error"]
                for name, data in (
                    ("a.xlf", xliff.format("en-GB", "de")),
                    ("a.tmx", memory.format("en", "en")),
                    ("a.tmx", memory.format("*all*", "en-US")),
                    ("a.html", "<html lang='en'><p>Where is the bread?"),
                ):
                    answer = await sent(client, data.encode(), name, source=source)
                    assert "warnings" not in answer.json(), answer.text
                    got = (await downloaded(client, answer)).text
                    assert got.count("Where is") == (1 if "html" in name else 2), got
            page = b"<html lang='fr'><p>Le chien dort dans la maison et les oiseaux sont dans"
            for more in ({}, {"stream": "true"}):
                answer = await sent(client, page, "a.html", **more)
                assert "says French" in answer.text and "reads as French" in answer.text

    run(check())


def test_fields_that_are_missing() -> None:
    async def check() -> None:
        async with client_of() as client:
            for answer in (
                await client.post("/translate_file", data=TO_GERMAN, files={"x": ("a", b"b")}),
                await client.post(
                    "/translate_file", data={"source": "en"}, files={"file": ("a", b"b")}
                ),
                await client.post("/translate_file", json={"file": "x", **TO_GERMAN}),
            ):
                assert answer.status_code == 400, answer.text
                assert "error" in answer.json()

    run(check())


def test_a_document_is_held_in_memory_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a document was written to a disk")

    monkeypatch.setattr("tempfile.SpooledTemporaryFile.rollover", never)

    async def check() -> None:
        async with client_of() as client:
            page = b"<p>Where is it?</p><!--" + b"a" * 2_000_000 + b"-->"
            assert (await downloaded(client, await sent(client, page, "a.html"))).content == page
            several = [("file", ("a.txt", b"a")), ("file", ("b.txt", b"b"))]
            answer = await client.post("/translate_file", files=several, data=TO_GERMAN)
            assert answer.json()["code"] == "too_many_files", answer.text

    run(check())


def test_a_form_is_read_no_further_than_its_only_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """256 files without a key held up a neighbour, though one document is taken."""
    begun: list[str] = []
    whole = InMemoryParser.on_headers_finished

    def noted(parser: InMemoryParser) -> None:
        begun.append("part")
        whole(parser)

    monkeypatch.setattr(InMemoryParser, "on_headers_finished", noted)

    async def check() -> None:
        async with client_of() as client:
            several = [("file", (f"{n}.txt", b"a")) for n in range(200)]
            answer = await client.post("/translate_file", files=several)
            assert answer.json()["code"] == "too_many_files", answer.text

    run(check())
    assert len(begun) == 2


def test_large_documents_need_a_key_in_their_header(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("0123456789abcdef  Ada\n")
    limits = LimitSettings(body_bytes=10_000)
    settings = ServeSettings(api_keys=tmp_path / "keys", limits=limits)
    small, large = b"Where is it?", b"Where is it?" + b" " * 20_000

    async def check() -> None:
        async with client_of(settings=settings) as client:
            known = {"api_key": "0123456789abcdef"}
            assert (await sent(client, small, **known)).status_code == 200
            answer = await sent(client, large, **known)
            assert answer.status_code == 413 and "Authorization: Bearer" in answer.json()["error"]
            client.headers["authorization"] = "Bearer 0123456789abcdef"
            assert (await sent(client, large)).status_code == 200

    run(check())


def test_documents_that_are_being_received_have_their_bounds() -> None:
    """What they hold together is bounded, and so is the time in which one must be there."""
    begun = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    limits = limited(seconds=0.5, uploads_held=1_000_000)

    async def check() -> None:
        async with client_of(settings=limits) as client:

            async def slowly() -> AsyncIterator[bytes]:
                yield begun
                await asyncio.sleep(60)

            def send() -> Coroutine[Any, Any, httpx.Response]:
                kind = {"content-type": "multipart/form-data; boundary=b"}
                return client.post("/translate_file", content=slowly(), headers=kind)

            first, second = await asyncio.gather(send(), send())
            assert first.status_code == 408 and first.json()["code"] == "late_body"
            assert second.status_code == 429 and second.json()["values"]["kind"] == "uploads"

    run(check())


def test_one_client_has_few_documents_under_way() -> None:
    async def check() -> None:
        async with client_of(settings=limited(files=1)) as client:
            text = b"Where is the bread?\n\n" * 50
            answers = await asyncio.gather(sent(client, text), sent(client, text))
            assert sorted(one.status_code for one in answers) == [200, 429]
            assert (await sent(client, text)).status_code == 200

    run(check())


def test_documents_wait_for_ten_minutes() -> None:
    now = 0.0
    kept = KeptDocuments(10, lambda: now)
    first = kept.keep("me", "a", "text/plain", b"12345678")
    now = SECONDS - 1
    assert kept.get(first).data == b"12345678"
    now = SECONDS
    with pytest.raises(Refusal, match="ten minutes"):
        kept.get(first)
    assert len({kept.keep("me", "b", "text/plain", b"1") for _ in range(5)}) == 5


def test_a_client_that_fills_the_store_takes_nobody_elses_room() -> None:
    kept = KeptDocuments(20, lambda: 0.0)

    def keep(client: str, size: int) -> str:
        return kept.keep(client, "a", "text/plain", b"x" * size)

    mine = keep("me", 3)
    theirs = [keep("stranger", 5) for _ in range(20)]
    assert kept.get(mine) and kept.get(theirs[-1])
    more = [keep(f"other {n}", 4) for n in range(3)]
    assert kept.get(mine) and all(map(kept.get, more))
    with pytest.raises(Refusal, match="make room"):
        kept.get(theirs[-2])
    whole = keep("me", 20)
    assert len(kept.get(whole).data) == 20
    with pytest.raises(Refusal, match="make room"):
        kept.get(mine)


def test_a_translation_is_no_larger_than_what_is_kept() -> None:
    async def check() -> None:
        async with client_of(settings=limited(files_kept=50)) as client:
            answer = await sent(client, b"Where is the bread?" * 9, "a.txt")
            assert answer.status_code == 400 and "keeps at most 50" in answer.json()["error"], (
                answer.text
            )
            assert (await downloaded(client, await sent(client, b"The bread.", "a.txt"))).content

    run(check())


def test_nothing_of_a_document_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        async with client_of(settings=ServeSettings(access_log=True)) as client:
            answer = await sent(client, b"A secret is kept.", "secret name.txt")
            url = answer.json()["translatedFileUrl"]
            await client.get(url)
            await client.get(url)
            await sent(client, b"%PDF secret", "secret name.pdf")
            key = url.split("/")[-2]
            told = "\n".join(
                f"{record.getMessage()} {record.__dict__}"
                for record in caplog.records
                if record.name.startswith("dragoman")
            )
            assert "download_file" in told
            assert "secret" not in told and key not in told

    with caplog.at_level(logging.INFO):
        logging.getLogger("dragoman.access").propagate = True
        logging.getLogger("dragoman").propagate = True
        run(check())


def test_a_sentence_of_another_client_does_not_wait_for_a_document() -> None:
    """Counted in steps of the model, not in seconds."""
    served = echo_run()

    async def check() -> None:
        async with client_of(served) as client:
            text = "\n\n".join(f"Where is the bread number {n}?" for n in range(2000)).encode()
            document = asyncio.create_task(sent(client, text, "a.txt"))
            while served.queue.counters["sentences"] < 50:
                await asyncio.sleep(0.001)
            async with at(client, "10.0.0.9") as other:
                answer = await other.post("/translate", json={"q": "Where is it?", **TO_GERMAN})
            assert answer.status_code == 200 and not document.done()
            assert (await downloaded(client, await document)).content == text

    run(check())
