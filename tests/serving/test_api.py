"""The API as its clients meet it: LibreTranslate's endpoints, our own, events, errors, limits."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from typing import Any

import pytest
from pydantic import ValidationError
from serving_echo import (
    TEXT,
    UNTRAINED,
    EchoModel,
    client_of,
    create_app,
    detector,
    echo_run,
    events_of,
    meters_of,
    post,
    until,
)  # fmt: skip

from dragoman.engine.engine import Engine
from dragoman.forms.text_form import MosesText, TextForm
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.tasks.translation.libretranslate import LibreTranslateRequest
from dragoman.tasks.translation.served import ServedTranslator, TranslateRequest

PARAGRAPHS = "A small man eats.  Where is the bread?\n\n\tDas Tier ist müde.\n"


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)


def test_translates_strings_lists_and_forms() -> None:
    async def check() -> None:
        async with client_of() as client:
            one = await post(client, "/translate", q="Das Brot", source="en", target="de")
            assert one == {"translatedText": "Das Brot"}
            many = await post(client, "/translate", q=["Das", "", "Brot"], source="en", target="de")
            assert many == {"translatedText": ["Das", "", "Brot"]}
            form = {"q": "Das Brot", "source": "en", "target": "de", "format": "text"}
            for sent in ({"data": form}, {"files": {k: (None, v) for k, v in form.items()}}):
                answer = await client.post("/translate", **sent)  # type: ignore[arg-type]
                assert answer.json() == {"translatedText": "Das Brot"}

    run(check())


def test_paragraphs_keep_their_spacing() -> None:
    async def check() -> None:
        async with client_of() as client:
            got = await post(client, "/translate", q=PARAGRAPHS, source="en", target="de")
            assert got["translatedText"] == PARAGRAPHS

    run(check())


def test_html_keeps_tags_and_translates_text_alone() -> None:
    source = '<p class="a>b">Das <b>Brot</b> &amp; das Tier.</p>\n<script>a<b</script><br/>müde'

    async def check() -> None:
        async with client_of() as client:
            got = await post(
                client, "/translate", q=[source], source="en", target="de", format="html"
            )
            assert got["translatedText"] == [source]

    run(check())


def test_alternatives_and_detection() -> None:
    runs = (echo_run("a", ("en", "de")), echo_run("b", ("ko", "de")))

    async def check() -> None:
        async with client_of(*runs) as client:
            got = await post(
                client, "/translate", q="Where is it?", source="auto", target="de", alternatives=2
            )
            assert got["detectedLanguage"]["language"] == "en"
            assert len(got["alternatives"]) == 2
            assert got["translatedText"] not in got["alternatives"]
            got = await post(
                client, "/translate", q=["Where is it?", "그 동물은"], source="auto", target="de"
            )
            assert [d["language"] for d in got["detectedLanguage"]] == ["en", "ko"]
            guesses = await post(client, "/detect", q="그 동물은 너무 피곤해서")
            assert guesses[0]["language"] == "ko" and guesses[0]["confidence"] > 90

    run(check())


def test_languages_and_frontend_settings() -> None:
    runs = (echo_run("a", ("en", "de")), echo_run("b", ("ko", "en")), echo_run("c", ("en", "ko")))

    async def check() -> None:
        async with client_of(*runs) as client:
            languages = (await client.get("/languages")).json()
            assert languages[0] == {"code": "en", "name": "English", "targets": ["de", "ko"]}
            assert {language["code"] for language in languages} == {"en", "de", "ko"}
            settings = (await client.get("/frontend/settings")).json()
            assert settings["charLimit"] == LimitSettings().characters
            assert settings["language"]["target"] == {"code": "de", "name": "German"}
            info = (await client.get("/v1/info")).json()
            assert [r["name"] for r in info["runs"]] == ["a", "b", "c"]

    run(check())


@pytest.mark.parametrize(
    ("path", "values", "status", "words"),
    [
        ("/translate", {"source": "en", "target": "de"}, 400, "missing q"),
        ("/translate", {"q": "", "source": "en", "target": "de"}, 400, "missing q"),
        ("/translate", {"q": "x", "source": "en"}, 400, "missing target"),
        ("/translate", {"q": "x", "source": "fr", "target": "de"}, 400, "fr is not supported"),
        ("/translate", {"q": "x", "source": "en", "target": "xx"}, 400, "xx is not supported"),
        ("/translate", {"q": "x", "target": "de", "format": "pdf"}, 400, "format"),
        ("/translate", {"q": 3, "target": "de"}, 400, "q"),
        ("/translate", {"q": "x", "target": "de", "alternatives": 99}, 400, "at most 16"),
        ("/translate", {"q": "x", "target": "de", "alternatives": 4095}, 400, "at most 16"),
        ("/translate", {"q": "x", "target": "de", "alternatives": 4096}, 400, "at most 16"),
        ("/translate", {"q": "x", "target": "de", "alternatives": 10**30}, 400, "at most 16"),
        ("/translate", {"q": ["x"] * 300, "target": "de"}, 400, "256"),
        ("/translate", {"q": "x" * 20_001, "target": "de"}, 400, "20,001 characters"),
        ("/translate", {"q": "x" * 1_000_001, "target": "de"}, 413, "1,000,000 bytes"),
        (
            "/translate",
            {"q": f"<p title='&#{'1' * 9000};'>x", "target": "de", "format": "html"},
            200,
            "",
        ),
        ("/translate", {"q": "e" + 101 * "\u0301", "target": "de"}, 400, "101 combining marks"),
        ("/detect", {"q": " "}, 400, "missing q"),
        ("/v1/translate", {"text": "x", "bem": 3}, 400, "bem"),
        ("/v1/translate", {"text": "x", "run": "none"}, 404, "echo"),
        ("/v1/translate", {"text": "x", "prefix_tokens": [99999]}, 400, "vocabulary"),
        ("/v1/translate", {"text": "x", "prefix_tokens": [2]}, 400, "end symbol"),
        ("/v1/translate", {"text": "x", "prefix": "a", "prefix_tokens": [5]}, 400, "not both"),
        ("/v1/translate", {"text": "x", "min_length": 9, "max_length": 2}, 400, "min_length"),
        ("/v1/translate", {"text": "x", "beam": 17}, 400, "at most 16"),
        ("/v1/translate", {"text": "x", "beam": 4097}, 400, "beam"),
        ("/v1/translate", {"text": "x", "n_best": 10**30}, 400, "4096"),
        ("/v1/look", {"text": "x", "beam": 10**30}, 400, "beam of at most"),
        ("/v1/translate", {"text": "x", "n_best": 16, "alternatives": True, "beam": 9}, 400, "144"),
        ("/v1/translate", {"text": "x", "sampling": {"temperature": 0}}, 400, "temperature"),
        ("/v1/translate", {"text": ["x", "y"], "stream": True}, 400, "one text"),
    ],
)
def test_errors_are_clear(path: str, values: dict[str, Any], status: int, words: str) -> None:
    async def check() -> None:
        async with client_of() as client:
            answer = await client.post(path, json=values)
            assert answer.status_code == status, answer.text
            if status != 200:
                assert (
                    list(answer.json()) == ["error", "code", "values"]
                    and words in answer.json()["error"]
                )
            # And the server lives on.
            assert (await client.get("/health")).json() == {"status": "ok"}

    run(check())


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b"1" * 9999, b'{"q": NaN, "target": "de"}'],
)
@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "multipart/form-data", "multipart/form-data; boundary=x",
     "application/x-www-form-urlencoded"],
)  # fmt: skip
def test_bodies_that_are_not_requests(body: bytes, kind: str) -> None:
    async def check() -> None:
        async with client_of() as client:
            headers = {"content-type": kind} if kind else {}
            answer = await client.post("/translate", content=body, headers=headers)
            assert answer.status_code == (415 if kind == "text/plain" else 400), answer.text
            assert list(answer.json()) == ["error", "code", "values"] and answer.json()["error"]

    run(check())


def test_a_megabyte_of_mistakes_is_refused_at_the_first() -> None:
    """All would be listed where everybody waits: on the event loop, in one call."""
    for model, name in ((LibreTranslateRequest, "q"), (TranslateRequest, "text")):
        with pytest.raises(ValidationError) as refused:
            model.model_validate({name: [[0]] * 10_000, "target": "de"})
        assert refused.value.error_count() <= 2
    many = {f"name {n}": 0 for n in range(10_000)}

    async def check() -> None:
        async with client_of() as client:
            for body in (many, {"text": "Hallo.", "sampling": many}):
                answer = await client.post("/v1/translate", json=body)
                assert answer.status_code == 400 and "10,000 keys" in answer.json()["error"]

    run(check())


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async def check() -> None:
        settings = ServeSettings(limits=LimitSettings(seconds=0.1))
        app = create_app((echo_run(),), settings, detector())
        parts = [{"type": "http.request", "body": b"{", "more_body": True}]
        sent: list[Any] = []

        async def receive() -> Any:
            return parts.pop() if parts else await asyncio.sleep(3600)

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/translate", "headers": []}
        more = {"query_string": b"", "client": ("192.0.2.1", 1), "http_version": "1.1"}
        await app({**scope, **more}, receive, send)
        assert sent[0]["status"] == 408 and "0.1 seconds" in json.loads(sent[1]["body"])["error"]

    run(check())


def test_half_a_character_is_read_as_unreadable() -> None:
    async def check() -> None:
        async with client_of() as client:
            body = b'{"q": "\\ud800", "target": "de"}'
            assert (await client.post("/translate", content=body)).status_code == 200

    run(check())


def test_words_tokens_and_scores() -> None:
    async def check() -> None:
        async with client_of() as client:
            got = await post(client, "/v1/translate", text=" Das Tier ist müde.\n", source="en")
            (translation,) = got["translations"]
            assert translation["text"] == " Das Tier ist müde.\n"
            (sentence,) = translation["sentences"]
            assert (sentence["source"], sentence["behind"]) == ("Das Tier ist müde.", "\n")
            (best,) = sentence["hypotheses"]
            assert "".join(w["before"] + w["text"] for w in best["words"]) == best["text"]
            assert [w["text"] for w in best["words"]] == ["Das", "Tier", "ist", "müde", "."]
            for word in best["words"]:
                assert word["probability"] == pytest.approx(0.8 ** word["count"], rel=1e-4)
            total = sum(token["log_probability"] for token in best["tokens"])
            assert best["finished"] and best["log_probability"] < total < 0

    run(check())


def test_words_of_a_run_on_moses_tokens() -> None:
    pytest.importorskip("sacremoses")

    async def check() -> None:
        forms = [TextForm(TEXT, language, MosesText(language)) for language in ("en", "de")]
        engine = Engine(EchoModel(), *forms, SearchSettings(beam=1))
        served = ServedTranslator("moses", engine, ServeSettings(), UNTRAINED)
        async with client_of(served) as client:
            body = {"text": 'Where is "the bread" (& the man)?'}
            answer = (await client.post("/v1/translate", json=body)).json()
            (sentence,) = answer["translations"][0]["sentences"]
            best = sentence["hypotheses"][0]
            assert best["text"] == 'where is "the bread" (& the man)?'
            assert [word["before"] + word["text"] for word in best["words"]] == [
                "where", " is", ' "', "the", " bread", '"', " (&", " the", " man", ")?",
            ]  # fmt: skip
            for word in best["words"]:
                of_word = best["tokens"][word["first"] : word["first"] + word["count"]]
                together = math.exp(sum(token["log_probability"] for token in of_word))
                assert word["probability"] == pytest.approx(together)

    run(check())


def test_n_best_alternatives_prefix_and_sampling() -> None:
    async def check() -> None:
        async with client_of() as client:
            got = await post(client, "/v1/translate", text="Das Tier", n_best=3)
            hypotheses = got["translations"][0]["sentences"][0]["hypotheses"]
            scores = [h["score"] for h in hypotheses]
            assert len(scores) == 3 and scores == sorted(scores, reverse=True)

            tokens = [token["id"] for token in hypotheses[0]["tokens"]]
            got = await post(
                client,
                "/v1/translate",
                text="Das Tier",
                n_best=4,
                alternatives=True,
                prefix_tokens=tokens[:1],
            )
            others = got["translations"][0]["sentences"][0]["hypotheses"]
            assert {h["tokens"][0]["id"] for h in others} == {tokens[0]}
            assert len({h["tokens"][1]["id"] for h in others}) == 4

            got = await post(client, "/v1/translate", text="Das Tier", prefix="Where")
            assert got["translations"][0]["text"].startswith("Where")

            sampling = {"temperature": 5.0, "seed": 3}
            drawn = [
                await post(client, "/v1/translate", text="Das Tier", n_best=2, sampling=sampling)
                for _ in range(2)
            ]
            assert drawn[0] == drawn[1]

    run(check())


def test_a_stream_tells_each_sentence_as_it_grows() -> None:
    settings = ServeSettings()
    model = EchoModel(step_seconds=0.02)

    async def check() -> None:
        async with client_of(echo_run(model=model), settings=settings) as client:
            values = {"text": PARAGRAPHS, "beam": 1, "stream": True}
            answer = await client.post("/v1/translate", json=values)
            assert answer.headers["content-type"].startswith("text/event-stream")
            events = events_of(answer.text)
            names = [name for name, _ in events]
            assert names[0] == "start" and names[-1] == "done" and "draft" in names
            start = events[0][1]
            sources = [s["source"] for s in start["sentences"]]
            assert len(sources) == 3
            done = {e["sentence"]: e["hypotheses"] for name, e in events if name == "sentence"}
            assert [done[i][0]["text"] for i in range(3)] == sources
            # Greedy search only ever adds to what it showed.
            for name, draft in events:
                if name == "draft":
                    assert done[draft["sentence"]][0]["text"].startswith(draft["text"])

    run(check())


def test_a_stream_that_fails_says_so() -> None:
    model = EchoModel(fails_at=int(echo_token("Brot")))

    async def check() -> None:
        async with client_of(echo_run(model=model)) as client:
            values = {"text": "Das Brot", "stream": True}
            events = events_of((await client.post("/v1/translate", json=values)).text)
            assert events[-1][0] == "error" and "failed" in events[-1][1]["error"]
            answer = await client.post("/translate", json={"q": "Das Brot", "target": "de"})
            assert answer.status_code == 500 and "log" in answer.json()["error"]
            # The next one is served: the search began anew.
            assert (await post(client, "/translate", q="Das Tier", target="de"))["translatedText"]

    run(check())


def echo_token(word: str) -> int:
    from serving_echo import TEXT

    return int(TEXT.encode([word])[0][0])


def test_api_keys(tmp_path: Any) -> None:
    path = tmp_path / "keys"
    path.write_text("# ours\n0123456789abcdef  Ada\nfedcba9876543210\n")
    settings = ServeSettings(api_keys=path)

    async def check() -> None:
        async with client_of(settings=settings) as client:
            values = {"q": "Das", "target": "de"}
            refused = await client.post("/translate", json=values)
            assert refused.status_code == 403 and "API key" in refused.json()["error"]
            wrong = await client.post("/translate", json={**values, "api_key": "0123"})
            assert wrong.status_code == 403
            assert await post(client, "/translate", **values, api_key="0123456789abcdef")
            header = {"authorization": "Bearer fedcba9876543210"}
            answer = await client.post("/translate", json=values, headers=header)
            assert answer.status_code == 200
            assert (await client.get("/frontend/settings")).json()["keyRequired"]

    run(check())


def test_rate_and_concurrency() -> None:
    limits = LimitSettings(burst=3, requests_per_minute=1, concurrent=2)
    settings = ServeSettings(limits=limits)
    gate = threading.Event()

    async def check() -> None:
        model = EchoModel(gate=gate)
        async with client_of(echo_run(model=model), settings=settings) as client:
            values = {"q": "Das Tier ist müde.", "target": "de"}
            held = [asyncio.ensure_future(client.post("/translate", json=values)) for _ in "ab"]
            await until(lambda: b"requests_under_way 2.0" in meters_of(client).text())
            refused = await client.post("/translate", json=values)
            assert refused.status_code == 429
            assert "at a time" in refused.json()["error"] and refused.headers["retry-after"]
            gate.set()
            assert [(await one).status_code for one in held] == [200, 200]
            assert (await client.post("/translate", json=values)).status_code == 200
            late = await client.post("/translate", json=values)
            assert late.status_code == 429 and "a minute" in late.json()["error"]
            # Who is over the limit is not read any more.
            unread = await client.post("/v1/translate", content=b"{")
            assert unread.status_code == 429

    run(check())


def test_a_full_queue() -> None:
    settings = ServeSettings(limits=LimitSettings(waiting=3), rows=2)
    gate = threading.Event()

    async def check() -> None:
        served = echo_run(model=EchoModel(gate=gate), settings=settings)
        async with client_of(served, settings=settings) as client:
            many = await client.post("/translate", json={"q": ["x"] * 4, "target": "de"})
            assert many.status_code == 400 and "4 sentences" in many.json()["error"]
            held = asyncio.ensure_future(
                client.post("/translate", json={"q": ["x"] * 3, "target": "de"})
            )
            await until(lambda: served.queue.waiting == 2)
            full = await client.post("/translate", json={"q": ["x"] * 2, "target": "de"})
            assert full.status_code == 429 and "wait" in full.json()["error"]
            gate.set()
            assert (await held).status_code == 200

    run(check())


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_request_that_takes_too_long(is_stream: bool) -> None:
    settings = ServeSettings(limits=LimitSettings(seconds=0.3))
    gate = threading.Event()

    async def check() -> None:
        served = echo_run(model=EchoModel(gate=gate), settings=settings)
        async with client_of(served, settings=settings) as client:
            values = {"text": PARAGRAPHS, "stream": is_stream}
            slow = await client.post("/v1/translate", json=values)
            if is_stream:
                name, data = events_of(slow.text)[-1]
                assert name == "error" and "0.3 seconds" in data["error"]
            else:
                assert slow.status_code == 504 and "0.3 seconds" in slow.json()["error"]
            gate.set()
            await until(lambda: served.queue.counters["given_up_sentences"] == 3)
            await until(lambda: served.queue.rows == 0 and served.queue.waiting == 0)

    run(check())


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/translate", 405),
        ("HEAD", "/translate", 405),
        ("OPTIONS", "/translate", 405),
        ("DELETE", "/", 405),
        ("GET", "/assets/none.js", 404),
        ("GET", "/v1/runs/none", 404),
    ],
)
def test_what_is_not_there_is_told_as_json(method: str, path: str, status: int) -> None:
    async def check() -> None:
        async with client_of() as client:
            answer = await client.request(method, path)
            assert answer.status_code == status
            if method == "HEAD":
                assert not answer.content
            else:
                assert list(answer.json()) == ["error", "code", "values"] and answer.json()["error"]
            assert answer.headers["x-content-type-options"] == "nosniff"

    run(check())


def test_head_is_get_without_a_body() -> None:
    async def check() -> None:
        async with client_of() as client:
            head, got = await client.head("/docs.css"), await client.get("/docs.css")
            assert head.status_code == 200 and not head.content
            assert head.headers["content-length"] == got.headers["content-length"]

    run(check())


def test_what_nobody_foresaw_is_json_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        async with client_of() as client:

            def fail(*_: object) -> None:
                raise ZeroDivisionError("of all things")

            monkeypatch.setattr("dragoman.serving.service.catalogue.Catalogue.choose", fail)
            answer = await client.post("/translate", json={"q": "x", "target": "de"})
            assert answer.status_code == 500 and "log" in answer.json()["error"]
            assert "content-security-policy" in answer.headers
            assert "camera=(self), microphone=(self)" in answer.headers["permissions-policy"]
            text = (await client.get("/metrics")).text
            assert 'dragoman_requests_total{path="/translate",status="500"} 1.0' in text
            # This very question is the only one under way.
            assert "dragoman_requests_under_way 1.0" in text

    run(check())


def test_metrics_and_readiness() -> None:
    async def check() -> None:
        async with client_of() as client:
            assert await post(client, "/translate", q="Das Tier", target="de")
            assert (await client.get("/ready")).json() == {"ready": True, "runs": ["echo"]}
            text = (await client.get("/metrics")).text
            assert 'dragoman_requests_total{path="/translate",status="200"} 1.0' in text
            assert 'dragoman_sentences_total{run="echo"} 1.0' in text
            assert 'dragoman_waiting_sentences{run="echo"} 0.0' in text
            assert 'dragoman_characters_total{run="echo"} 8.0' in text

    run(check())


def test_nothing_is_loaded_from_outside() -> None:
    async def check() -> None:
        async with client_of() as client:
            docs = await client.get("/docs")
            assert docs.status_code == 200 and "/v1/translate" in docs.text
            assert "<script" not in docs.text and "style=" not in docs.text
            for mark in ('src="', 'href="http'):
                assert mark not in docs.text
            policy = docs.headers["content-security-policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy
            assert "access-control-allow-origin" not in docs.headers
            assert (await client.get("/docs.css")).status_code == 200

    run(check())


def test_cors_is_off_unless_asked_for() -> None:
    header = {"origin": "https://example.org"}

    async def check() -> None:
        async with client_of() as client:
            answer = await client.get("/languages", headers=header)
            assert "access-control-allow-origin" not in answer.headers
        async with client_of(settings=ServeSettings(origins=("https://example.org",))) as client:
            answer = await client.get("/languages", headers=header)
            assert answer.headers["access-control-allow-origin"] == "https://example.org"

    run(check())


def test_the_description_names_every_body() -> None:
    async def check() -> None:
        async with client_of() as client:
            described = (await client.get("/openapi.json")).json()
            schemas = described["components"]["schemas"]
            text = json.dumps(described)
            for reference in set(__import__("re").findall(r"#/components/schemas/(\w+)", text)):
                assert reference in schemas
            body = described["paths"]["/translate"]["post"]["requestBody"]["content"]
            assert set(body) == {"application/json", "application/x-www-form-urlencoded"}

    run(check())


def test_looking_inside_touches_nobody_else() -> None:
    """Attention is that of the model itself, and a head switched off is so for one request."""
    import base64

    import numpy as np
    from serving_echo import served_by, tiny_model

    from dragoman.search.settings import SearchSettings

    served = served_by(tiny_model(), search=SearchSettings(beam=2, max_extra=3))

    async def check() -> None:
        async with client_of(served) as client:
            text = "Where is the bread?"
            plain = await post(client, "/v1/look", text=text)
            off = [{"part": "encoder", "layer": 0, "head": 1}]
            changed, again = await asyncio.gather(
                post(client, "/v1/look", text=text, heads_off=off, hidden=[0]),
                post(client, "/v1/translate", text=text),
            )
            best = again["translations"][0]["sentences"][0]["hypotheses"][0]
            assert plain["best"]["tokens"] == best["tokens"]
            assert plain["best"]["score"] != changed["best"]["score"]
            source, target = len(plain["source_tokens"]), len(plain["target_tokens"])
            wanted = {
                "encoder": (2, 2, source, source),
                "decoder": (2, 2, target, target),
                "cross": (2, 2, target, source),
            }
            for part, shape in wanted.items():
                raw = base64.b64decode(plain["attention"][part]["data"])
                weights = np.frombuffer(raw, "<f2").reshape(shape)
                assert plain["attention"][part]["shape"] == list(shape)
                assert np.allclose(weights.astype(float).sum(-1), 1, atol=3e-3)
            raw = base64.b64decode(changed["attention"]["encoder"]["data"])
            hidden = np.frombuffer(raw, "<f2").reshape(2, 2, source, source)
            assert not hidden[:, :, :, 0].any()
            outcomes = {c["outcome"] for step in plain["steps"] for c in step["candidates"]}
            assert "kept" in outcomes and "dropped" in outcomes
            for values in (
                {"heads_off": [{"part": "cross", "layer": 2, "head": 0}]},
                {"text": " "},
            ):
                answer = await client.post("/v1/look", json={"text": text, **values})
                assert answer.status_code == 400, answer.text

    run(check())
