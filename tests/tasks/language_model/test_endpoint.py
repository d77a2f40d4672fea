"""The API of a language model: a text gone on with, its surprises, what else could come, a look."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import BaseModel
from serving_echo import (
    TEXT,
    UNTRAINED,
    EchoModel,
    Served,
    client_of,
    events_of,
    meters_of,
    open_run,
    post,
    refused,
    served_by,
    serves,
    tiny_model,
    until,
)
from slow_work import SlowWork
from untrained_run import untrained_run

from dragoman.engine.engine import Engine
from dragoman.engine.session import InspectionSession
from dragoman.forms.subwords.text import Text
from dragoman.forms.text_form import TextForm
from dragoman.search import forced_decoding
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.serving.http import connection
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.look import inspector
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.served_run import ServedRun
from dragoman.tasks.catalogue import Run
from dragoman.tasks.language_model import endpoint
from dragoman.tasks.language_model import served as served_language_model
from dragoman.tasks.language_model.runtime import NoSource
from dragoman.tasks.language_model.served import ServedLanguageModel
from dragoman.tasks.language_model.writer import Growth, Writer
from dragoman.tasks.shared.surprisal import Scorer, begin_of, words_of

SMALL = ("model.model_dim=32", "model.ffn_dim=32", "model.layers=2", "plan.context=32")
BEGIN = "Der Hund schläft und"


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A language model of random weights over letters."""
    folder = tmp_path_factory.mktemp("lm")
    return Run.open(untrained_run(folder, *SMALL, recipe_name="demo-letters"))


@pytest.fixture
def served(letters: Run) -> Served:
    return serves(letters, "letters", precision="fp32")


def joined(words: list[dict[str, Any]]) -> str:
    return "".join(word["before"] + word["text"] for word in words)


def grown(events: list[tuple[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """What was added, and all words, as a client puts them together."""
    text, words = "", list[dict[str, Any]]()
    for name, data in events:
        if name == "text":
            text += data["text"]
            words[data["first"] :] = data["words"]
    return text, words


@pytest.mark.parametrize("longest", [12, 70])
def test_a_stream_writes_what_the_program_writes(
    letters: Run, served: Served, longest: int
) -> None:
    """Also beyond what is read at once; and every word comes with its bits."""
    settings = SearchSettings(sampling=SamplingSettings(seed=5, temperature=0.7, top_k=20))
    wanted = "".join(Writer(letters).stream(BEGIN, settings, longest=longest))
    asked = {"text": BEGIN, "longest": longest, "sampling": settings.model_dump()["sampling"]}

    async def check() -> None:
        async with served() as client:
            answer = await client.post("/v1/write", json={**asked, "stream": True})
            assert answer.headers["content-type"].startswith("text/event-stream")
            events = events_of(answer.text)
            names = [name for name, _ in events]
            assert names[0] == "start" and names[-1] == "done" and names.count("text") >= 1
            start, done = events[0][1], events[-1][1]
            assert start["begin"] == BEGIN and start["given"] == len(
                letters.target.tokens([BEGIN])[0]
            )
            assert (start["run"], start["context"]) == ("letters", 32)
            text, words = grown(events)
            assert text == wanted and joined(words) == BEGIN + text
            assert done["ending"] == "longest" and done["written"] == longest
            assert all(word["bits"] >= 0 for word in words)
            whole = await post(client, "/v1/write", **asked)
            assert (whole["begin"], whole["text"], whole["words"]) == (BEGIN, wanted, words)
            other = asked["sampling"] | {"seed": 6}
            assert (await post(client, "/v1/write", **asked | {"sampling": other}))["text"] != text

    asyncio.run(check())


def test_bits_of_what_is_written_are_those_of_reading_it(letters: Run, served: Served) -> None:
    async def check() -> None:
        async with served() as client:
            wrote = await post(client, "/v1/write", text="Der", longest=20)
            text = wrote["begin"] + wrote["text"]
            (read,) = (await post(client, "/v1/surprisal", text=text))["texts"]
            assert joined(read["words"]) == text == joined(wrote["words"])
            assert [w["bits"] for w in wrote["words"]] == pytest.approx(
                [w["bits"] for w in read["words"]], abs=1e-3
            )

    asyncio.run(check())


def test_it_ends_before_a_stop_string_and_says_why(served: Served) -> None:
    async def check() -> None:
        async with served() as client:
            asked = {"text": "Die", "longest": 30, "likeliest": False}
            whole = (await post(client, "/v1/write", **asked))["text"]
            stop = whole[7:10]
            for stream in (False, True):
                values = {**asked, "stop": ["§", stop], "stream": stream}
                answer = await client.post("/v1/write", json=values)
                if stream:
                    events = events_of(answer.text)
                    text, words = grown(events)
                    ending = events[-1][1]["ending"]
                else:
                    told = answer.json()
                    text, words, ending = told["text"], told["words"], told["ending"]
                assert text == whole[: whole.index(stop)] and ending == "stop"
                assert joined(words) == "Die" + text
            likeliest = {"text": "Die", "likeliest": True, "longest": 8}
            twice = [await post(client, "/v1/write", **likeliest) for _ in range(2)]
            assert twice[0] == twice[1] and twice[0]["text"]

    asyncio.run(check())


class Counting(EchoModel):
    """Reads nothing and writes token after token of the vocabulary, as slowly as it is told."""

    def step(self, tokens: Any, state: Any) -> Any:
        super().step(tokens, state)
        probabilities = torch.full((len(state.lengths), TEXT.size), 1e-6)
        following = (tokens[:, -1] + 1) % TEXT.size
        probabilities[torch.arange(len(state.lengths)), following.clamp(min=10)] = 1.0
        return probabilities.log()


def counting(settings: ServeSettings, **model: Any) -> ServedRun:
    form = TextForm(TEXT, "en")
    engine = Engine(
        Counting(**model), NoSource(form.eos), form, SearchSettings(beam=1), settings=settings
    )
    evaluation = SimpleNamespace(window=16, stride=8)
    plan = SimpleNamespace(context=16)
    recipe = SimpleNamespace(**vars(UNTRAINED.recipe), evaluation=evaluation, plan=plan)
    run = SimpleNamespace(**{**vars(UNTRAINED), "recipe": recipe})
    writer: Any = SimpleNamespace(engine=engine, run=run, has_inside=True)
    return ServedLanguageModel("counting", writer, settings)


def test_who_leaves_is_written_for_no_longer() -> None:
    """As the page's Stop does it: the place in the queue is free again."""
    settings = ServeSettings()
    run = counting(settings, step_seconds=0.01)

    async def check() -> None:
        async with client_of(run, settings=settings) as client:
            service = client._transport.app.state.service  # type: ignore[attr-defined]
            growth = Growth(run.engine, 16, "", SearchSettings(beam=1), longest=900)
            parts = endpoint._Writing(service, run, growth, "Ada").events()
            seen = [await anext(parts) for _ in range(3)]
            assert b"event: text" in seen[-1] and run.queue.rows == 1
            await parts.aclose()
            await until(lambda: run.queue.rows == 0)
            assert run.queue.counters["given_up_sentences"] == 1
            # And whoever comes is served.
            assert (await post(client, "/v1/write", text="", longest=3))["written"] == 3

    asyncio.run(check())


def test_a_stream_that_takes_too_long_says_so() -> None:
    settings = ServeSettings(limits=LimitSettings(seconds=0.3))
    run = counting(settings, step_seconds=0.05)

    async def check() -> None:
        async with client_of(run, settings=settings) as client:
            values = {"longest": 100, "stream": True}
            events = events_of((await client.post("/v1/write", json=values)).text)
            assert "text" in {name for name, _ in events}
            assert events[-1][0] == "error" and "0.3 seconds" in events[-1][1]["error"]
            answer = await client.post("/v1/write", json={"longest": 100})
            assert answer.status_code == 504

    asyncio.run(check())


def test_surprises_are_those_of_the_program(letters: Run, served: Served) -> None:
    """Of short and long texts, and in windows that overlap."""
    texts = ["Der Hund schläft.", "Die Katze sieht den alten Hund, und der Hund sieht sie. " * 40]
    found = list(Scorer(letters, 32, 16)(texts))

    async def check() -> None:
        async with served() as client:
            told = await post(client, "/v1/surprisal", text=texts, run="letters")
            for text, one, wanted in zip(texts, told["texts"], found, strict=True):
                known = letters.target_text.text_as_read(text)
                assert joined(one["words"]) == known
                bits = [word.bits for word in wanted.words]
                assert [w["bits"] for w in one["words"]] == pytest.approx(bits[:-1], abs=1e-3)
                assert one["end"] == pytest.approx(bits[-1], abs=1e-3)
                assert one["perplexity"] == pytest.approx(wanted.perplexity, rel=1e-4)
                together = (sum(bits)) / (len(known.encode()) + 1)
                assert one["bits_per_byte"] == pytest.approx(together, rel=1e-3)
            (nothing,) = (await post(client, "/v1/surprisal", text=""))["texts"]
            assert nothing["words"] == [] and nothing["bits"] == 0 and nothing["end"] > 0

    asyncio.run(check())


def test_what_could_come_in_place_of_a_word(letters: Run, served: Served) -> None:
    """Each begins with another letter, has the model's own probability, and stands behind what
    stands before the word, its space included."""
    text = "Der Hund schläft"

    async def check() -> None:
        async with served() as client:
            told = await post(client, "/v1/continuations", text=text, word=1, count=5)
            assert told["begin"] == "Der "
            some = told["continuations"]
            values = [one["probability"] for one in some]
            assert 1 < len(some) <= 5 and values == sorted(values, reverse=True)
            assert len({one["text"][:1] for one in some}) == len(some)
            engine = Engine.open(letters, ServeSettings(precision="fp32"))
            for one in some[:2]:
                if not one["text"]:
                    continue
                (tokens,) = engine.target.tokens([f"Der {one['text']}"])
                (scored,) = engine.score([[engine.target.eos]], [tokens])
                given = len(engine.target.tokens(["Der"])[0])  # the space behind it is a letter too
                own = math.exp(sum(scored.token_log_probabilities[given:-1]))
                assert one["probability"] == pytest.approx(own, rel=1e-3)
            behind = await post(client, "/v1/continuations", text=text)
            assert behind["begin"] == text and len(behind["continuations"]) > 1
            late = await post(client, "/v1/continuations", text=text * 9, word=15)
            assert late["begin"].endswith(" ") and late["continuations"]

    asyncio.run(check())


def test_an_end_that_could_come_is_told_as_such() -> None:
    run = counting(ServeSettings())
    eos_last = Hypothesis((12,), -1.0, -1.5, (-0.5, -1.0), finished=True)
    place = served_language_model.TextPlace(
        "x", (12,), 0, run.engine.request([run.engine.target.eos])
    )
    (one,) = run.continuations(place, [eos_last]).continuations
    assert one.text == one.rest == "" and one.probability == pytest.approx(math.exp(-1.0))


@pytest.mark.parametrize(
    ("path", "values", "status", "words"),
    [
        ("/v1/write", {"longest": 1001}, 400, "1,000 at once"),
        ("/v1/write", {"longest": 0}, 400, "longest"),
        ("/v1/write", {"sampling": {"temperature": 0}}, 400, "temperature"),
        ("/v1/write", {"sampling": {"top_p": 2}}, 400, "top_p"),
        ("/v1/write", {"stop": [""]}, 400, "stop"),
        ("/v1/surprisal", {}, 400, "missing text"),
        ("/v1/surprisal", {"text": ["x"] * 300}, 400, "256"),
        ("/v1/surprisal", {"text": "x", "run": "echo"}, 400, "/v1/translate"),
        ("/v1/continuations", {"text": "Der Hund", "word": 2}, 400, "the text has 2"),
        ("/v1/continuations", {"text": "Der", "count": 17}, 400, "at most 16"),
        ("/v1/look", {"text": "x" * 900, "run": "letters"}, 400, "800 can be looked at"),
        ("/v1/look", {"text": "Der", "sentence": 1, "run": "letters"}, 400, "does not split"),
        ("/v1/look", {"text": "a", "run": "echo", "given": [99999]}, 400, "given must be below"),
        ("/v1/look", {"text": "a", "run": "echo", "given": [2]}, 400, "is a whole output"),
    ],
)
def test_errors_are_clear(
    letters: Run, path: str, values: dict[str, Any], status: int, words: str
) -> None:
    refused(letters, "letters", path, values, status, words, precision="fp32")


def test_a_server_without_a_language_model_says_so() -> None:
    async def check() -> None:
        async with client_of() as client:
            for path in ("/v1/write", "/v1/surprisal", "/v1/continuations"):
                answer = await client.post(path, json={"text": "x"})
                assert answer.status_code == 400
                assert "--task language-model" in answer.json()["error"]
            (info,) = (await client.get("/v1/info")).json()["runs"]
            assert info["task"] == "translation"

    asyncio.run(check())


def test_keys_limits_and_the_queue_hold_for_writing_too(letters: Run, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("0123456789abcdef  Ada characters=10\n")
    settings = ServeSettings(api_keys=tmp_path / "keys", limits=LimitSettings(waiting=1))
    gate = threading.Event()
    run = counting(settings, gate=gate)

    async def check() -> None:
        async with client_of(run, settings=settings) as client:
            assert (await client.post("/v1/write", json={})).status_code == 403
            key = {"api_key": "0123456789abcdef"}
            long = await client.post("/v1/write", json={**key, "text": "x" * 11})
            assert long.status_code == 400 and "10 at once" in long.json()["error"]
            held = [
                asyncio.ensure_future(client.post("/v1/write", json={**key, "longest": 2}))
                for _ in range(70)
            ]
            await until(lambda: run.queue.waiting == 1)
            await until(lambda: any(one.done() for one in held))
            gate.set()
            answers = [await one for one in held]
            assert {answer.status_code for answer in answers} == {200, 429}
            read = await client.post("/v1/surprisal", json={**key, "text": "abc"})
            assert read.status_code == 200
            assert b'dragoman_key_characters_total{holder="Ada"}' in meters_of(client).text()

    asyncio.run(check())


def test_nothing_is_cut_decoded_or_written_on_the_event_loop(
    letters: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for translation (``test_turns.py``): each slow function ran, and never on the loop."""
    slow = [
        (Text, "encode_lists"), (Text, "decode_exact"), (Text, "pieces"),
        (BaseModel, "model_dump_json"), (Growth, "take"), (Growth, "next"), (Growth, "words"),
        (endpoint._Writing, "_text"), (endpoint._Writing, "_start"),
        (ServedLanguageModel, "describe"), (served_language_model, "words_of"),
        (ServedLanguageModel, "surprise"), (ServedLanguageModel, "place"),
        (ServedLanguageModel, "continuations"),
        (connection, "_parse"), (InspectionSession, "inspect"), (inspector, "weights_message"),
    ]  # fmt: skip
    run = open_run(letters, ServeSettings(precision="fp32"), "letters")
    monkeypatch.setattr(connection, "SMALL", 0)
    work = SlowWork(slow, monkeypatch)
    scored_in: set[int] = set()
    original = Engine.score_parts

    def score_parts(self: Engine, *arguments: Any) -> Iterator[list[float]]:
        for part in original(self, *arguments):
            scored_in.add(threading.get_ident())
            yield part

    monkeypatch.setattr(Engine, "score_parts", score_parts)

    async def check() -> None:
        async with client_of(run) as client:
            asked: list[tuple[str, dict[str, Any]]] = [
                ("/v1/write", {"text": BEGIN, "longest": 20}),
                ("/v1/write", {"text": BEGIN, "longest": 20, "stream": True}),
                ("/v1/surprisal", {"text": [BEGIN, BEGIN * 9]}),
                ("/v1/continuations", {"text": BEGIN, "word": 2}),
                ("/v1/look", {"text": BEGIN, "maps": 4, "choices": 2}),
                ("/v1/look/attention", {"text": BEGIN, "part": "decoder", "layer": 0}),
            ]
            await work.ask(client, asked)
        work.require_elsewhere()
        assert scored_in and threading.get_ident() not in scored_in

    asyncio.run(check())


def test_a_long_text_is_read_in_turns(letters: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have theirs between: a part is there when its windows alone have been scored."""
    monkeypatch.setattr(served_language_model, "TOKENS_AT_ONCE", 64)
    read: list[int] = []
    scored = forced_decoding.log_probabilities_of

    def counting(model: Any, source: Any, given: Any, *others: Any) -> Any:
        read.append(sum(map(len, given)))
        return scored(model, source, given, *others)

    monkeypatch.setattr(forced_decoding, "log_probabilities_of", counting)
    run = ServedLanguageModel.open(letters, ServeSettings(precision="fp32"), "letters")
    tokens = run.tokens(BEGIN * 50)
    parts = run.parts(tokens)
    costs = [*next(parts)]
    assert len(read) == 1 and read[0] <= 64
    costs += [cost for part in parts for cost in part]
    assert len(read) > 10 and max(read) <= 64
    (whole,) = run.engine.score_windows([tokens], 32, 16)
    assert np.allclose(costs, whole, atol=1e-4)
    asyncio.run(run.close())


def test_the_text_itself_is_looked_into(letters: Run, served: Served) -> None:
    """Where each letter looked back, as forced decoding has it; and what if another stood there."""
    text = "Der Hund schläft."

    async def check() -> None:
        async with served() as client:
            asked = {"text": text, "run": "letters", "maps": 8, "choices": 3}
            seen = await post(client, "/v1/look", **asked)
            assert seen["sentences"] == [text] and seen["best"]["text"] == text
            (tokens,) = letters.target.tokens([text])
            assert [token["id"] for token in seen["best"]["tokens"]] == tokens
            assert seen["steps"] == [] and len(seen["choices"]) == len(tokens) + 1
            (scored,) = Engine.open(letters, ServeSettings(precision="fp32")).score(
                [[letters.target.eos]], [tokens]
            )
            total = sum(scored.token_log_probabilities)
            assert seen["best"]["log_probability"] == pytest.approx(total, rel=1e-4)
            _, _, rows, columns = seen["attention"]["decoder"]["shape"]
            assert rows == columns == len(tokens) + 1
            word = {"side": "target", "first": 4, "count": 4}
            answer = await post(client, "/v1/look/word", **asked, **word)
            assert set(answer["attention"]) == {"decoder", "cross"} and answer["stages"]
            forced = [*tokens[:4], (tokens[4] + 1) % letters.target.size]
            other = await post(
                client, "/v1/look", **asked, prefix_tokens=forced, compare=tokens, beam=1
            )
            ids = [token["id"] for token in other["best"]["tokens"]]
            assert ids[:5] == forced and len(ids) <= len(tokens) and other["steps"]
            assert other["compared"] == pytest.approx(total, rel=1e-4)
            off = [{"part": "decoder", "layer": 0, "head": 0}]
            without = await post(client, "/v1/look", **asked, heads_off=off)
            assert without["best"]["text"] == text
            assert without["best"]["log_probability"] != seen["best"]["log_probability"]
            fallen = await post(client, "/v1/look/heads", text=text, run="letters")
            assert fallen["log_probability"] == pytest.approx(total, rel=1e-4)
            fell = without["best"]["log_probability"] - seen["best"]["log_probability"]
            assert fallen["fallen"]["decoder"][0][0] == pytest.approx(-fell, abs=1e-3)

    asyncio.run(check())


def test_an_output_that_is_given_is_looked_at_in_place_of_a_search() -> None:
    async def check() -> None:
        run = served_by(tiny_model(), search=SearchSettings(beam=2, max_extra=3))
        async with client_of(run) as client:
            given = TEXT.encode_lists(["Wo ist das Brot"])[0]
            seen = await post(client, "/v1/look", text="Das Brot", given=given)
            assert [token["id"] for token in seen["best"]["tokens"]] == given
            assert seen["steps"] == []

    asyncio.run(check())


def test_words_that_share_characters_stay_whole_where_no_spaces_are() -> None:
    form = TextForm(TEXT, "zh")
    text = "小狗"
    (tokens,) = form.tokens([text])
    words = words_of(form, tokens, [-1.0] * len(tokens))
    assert [word.text for word in words] == ["小", "狗"]
    assert sum(word.tokens for word in words) == len(tokens)
    assert begin_of(form, tokens, 1) == (words[0].tokens, words[0].tokens)


def test_what_the_run_can_do_is_told(letters: Run) -> None:
    info = open_run(letters, ServeSettings(precision="fp32"), "letters")

    async def check() -> None:
        async with client_of(info) as client:
            (told,) = (await client.get("/v1/info")).json()["runs"]
            assert told["task"] == "language-model" and told["target"] == "de"
            page = (await client.get("/docs")).text
            for path in ("/v1/write", "/v1/surprisal", "/v1/continuations"):
                assert path in page
            described = (await client.get("/openapi.json")).json()["components"]["schemas"]
            assert {"WriteRequest", "SurpriseRequest", "ContinuationsRequest"} <= set(described)

    asyncio.run(check())
