"""The API of a run that tags: what the verb says, in turns, within limits, with clear errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from serving_echo import Served, post, refused, serves
from slow_work import SlowWork
from tiny_tasks import tiny_tagger_of
from trained_run import trained_run

from dragoman.data import labelled
from dragoman.data.labelled import WordCutter
from dragoman.forms.subwords.text import Text
from dragoman.runs.run import Run
from dragoman.serving.http import connection
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.tasks.tagging import endpoint as served_tagger
from dragoman.tasks.tagging.endpoint import ServedTagger, TagAnswer
from dragoman.tasks.tagging.metrics import spans_of
from dragoman.tasks.tagging.tagger import Tagger

TEXT = " dog the\u2003bread\n\n soup\x1fcat  zzz ☃ \n"
LONG = "cat bread dog soup " * 40


@pytest.fixture(scope="module")
def spans(run_of: Callable[..., Run]) -> Run:
    """A run that tags spans."""
    return run_of("tagging", "text", "encoder")


@pytest.fixture
def served(spans: Run) -> Served:
    return serves(spans, "spans")


def test_it_answers_what_the_verb_does(spans: Run, served: Served) -> None:
    texts = [LONG, TEXT, "", " \t\n"]
    wanted = Tagger(spans)(texts)
    names = Tagger(spans).tags.labels.names

    async def check() -> None:
        async with served() as client:
            answer = await post(client, "/v1/tag", text=texts, top=100)
            assert (answer["run"], answer["longest"]) == ("spans", 24)
            for told, text, one in zip(answer["texts"], texts, wanted, strict=True):
                words = told["words"]
                assert "".join(word["before"] + word["text"] for word in words) == text.rstrip()
                assert tuple(word["text"] for word in words) == one.words
                assert tuple(word["tag"] for word in words) == one.tags
                shares = [word["probability"] for word in words]
                assert shares == pytest.approx(one.probabilities, abs=1e-5)
                for place, word in enumerate(words):
                    ranked = [(choice["tag"], choice["probability"]) for choice in word["tags"]]
                    assert len(ranked) == len(names)
                    assert ranked[0] == (word["tag"], word["probability"])
                    assert dict(ranked) == pytest.approx(dict(one.ranking(place)), abs=1e-5)
                found = [(s["kind"], s["first"], s["first"] + s["count"]) for s in told["spans"]]
                assert found == spans_of(one.tags)
                assert told["parts"] == one.parts
            assert [told["parts"] > 1 for told in answer["texts"]] == [True, False, False, False]
            (alone,) = (await post(client, "/v1/tag", text=TEXT))["texts"]
            first = answer["texts"][1]["words"]
            for one, word in zip(alone["words"], first, strict=True):
                assert "tags" not in one and one["tag"] == word["tag"]
                # What is read beside other texts may differ in its last digit.
                assert one["probability"] == pytest.approx(word["probability"], abs=2e-6)
            (two,) = (await post(client, "/v1/tag", text=TEXT, top=2))["texts"]
            for one, word in zip(two["words"], first, strict=True):
                ranked = [
                    {choice["tag"]: choice["probability"] for choice in every["tags"][:2]}
                    for every in (one, word)
                ]
                assert len(one["tags"]) == 2 and ranked[0] == pytest.approx(ranked[1], abs=2e-6)

    asyncio.run(check())


def test_tags_that_are_of_no_spans_have_none(tmp_path: Path) -> None:
    path = tmp_path / "tags.txt"
    path.write_text("the_DT cat_NN B_B-\n" * 80, encoding="utf-8")
    run = trained_run(tiny_tagger_of(path), tmp_path / "run")

    async def check() -> None:
        async with serves(run, "tags")() as client:
            (told,) = (await post(client, "/v1/tag", text="the cat"))["texts"]
            assert len(told["words"]) == 2 and "spans" not in told

    asyncio.run(check())


def test_a_run_that_writes_nothing_is_given_no_output_to_look_at(spans: Run) -> None:
    asked = {"text": "a", "run": "spans", "given": [1]}
    refused(spans, "spans", "/v1/look", asked, 400, "writes nothing")


def test_what_is_odd_is_answered(served: Served) -> None:
    """Space alone, as many words as fit, one endless word, half a character, none at all."""

    async def check() -> None:
        async with served() as client:
            for text, words in (
                (" " * 20_000, 0),
                ("\u3000\x1c\x85 " * 5_000, 0),
                ("a " * 10_000, 10_000),
                ("☃" * 20_000, 1),
                (" ".join(map(str, range(3_000))), 3_000),
                ("\x00 \u200b", 2),
            ):
                (told,) = (await post(client, "/v1/tag", text=text, top=5))["texts"]
                assert len(told["words"]) == words
                assert all(word["tag"] and 0 < word["probability"] <= 1 for word in told["words"])
            half = await client.post(
                "/v1/tag",
                content=b'{"text": ["a\\ud800 \\udc00b", "\\ud800"]}',
                headers={"content-type": "application/json"},
            )
            assert half.status_code == 200, half.text
            shown = [[word["text"] for word in one["words"]] for one in half.json()["texts"]]
            assert shown == [["a\ufffd", "\ufffdb"], ["\ufffd"]]
            assert (await post(client, "/v1/tag", text=[]))["texts"] == []
            assert (await post(client, "/v1/tag", text=[""] * 256))["texts"][255]["words"] == []
            assert (await client.get("/health")).json() == {"status": "ok"}

    asyncio.run(check())


def test_twenty_thousand_words_are_refused_or_tagged_as_the_limits_say(spans: Run) -> None:
    text = "dog " * 20_000
    assert refused(spans, "spans", "/v1/tag", {"text": text}, 400, "20,000 at once")

    async def check() -> None:
        limits = LimitSettings(characters=100_000)
        async with serves(spans, "spans", limits=limits)() as client:
            (told,) = (await post(client, "/v1/tag", text=text))["texts"]
            assert len(told["words"]) == 20_000 and told["parts"] > 800
            costly = LimitSettings(characters=100_000, token_steps=40_000)
        async with serves(spans, "spans", limits=costly)() as client:
            answer = (await client.post("/v1/tag", json={"text": text})).json()
            assert (answer["code"], answer["values"]["work"]) == ("too_costly", "tags")
            assert answer["values"]["cost"] > 4 * 20_000

    asyncio.run(check())


def test_an_answer_holds_only_so_many_tags(
    spans: Run, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_tagger, "MAX_PROBABILITIES", 6)

    async def check() -> None:
        async with served() as client:
            answer = await client.post("/v1/tag", json={"text": ["a b", "c"], "top": 3})
            assert answer.status_code == 400 and answer.json()["code"] == "too_many_tags"
            assert "3 tags of each of 3 words are 9" in answer.json()["error"]
            fewer = await post(client, "/v1/tag", text=["a b", "c"], top=2)
            assert [len(word["tags"]) for word in fewer["texts"][0]["words"]] == [2, 2]
            # More tags than the run has are not asked for.
            one = await post(client, "/v1/tag", text="a", top=10**9)
            assert len(one["texts"][0]["words"][0]["tags"]) == Tagger(spans).tags.size

    asyncio.run(check())


def test_it_is_described(served: Served) -> None:
    async def check() -> None:
        async with served() as client:
            (told,) = (await client.get("/v1/info")).json()["runs"]
            examples = told["knows"]["examples"]
            assert examples and not any("_" in example for example in examples)
            scores = (await client.get("/v1/runs/spans")).json()["scores"]
            assert all(one["value"] >= 0 for one in scores)
            fields = (await client.get("/openapi.json")).json()["components"]["schemas"]
            assert {"TaggedText", "TaggedSpan"} <= fields.keys()

    asyncio.run(check())


def test_its_text_is_looked_into(spans: Run, served: Served) -> None:
    text = "dog the bread"
    tagger = Tagger(spans)
    said = tagger.own_output(text)

    async def check() -> None:
        async with served() as client:
            seen = await post(client, "/v1/look", text=text)
            assert seen["best"]["text"] == said.text and seen["target_tokens"] == []
            assert [token["id"] for token in seen["best"]["tokens"]] == list(said.ids)
            assert seen["source_tokens"] == list(tagger.look(text, said.ids).source)

    asyncio.run(check())


def test_long_texts_are_tagged_in_turns(spans: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first turn brings is there when one batch alone was read."""
    monkeypatch.setattr(served_tagger, "TOKENS_AT_ONCE", 40)
    monkeypatch.setattr(served_tagger, "WORDS_AT_ONCE", 5)
    run = ServedTagger.open(spans, ServeSettings(), "spans")
    read: list[int] = []
    network = run.predictor.network
    original = network.encode

    def counted(source: Any) -> Any:
        read.append(source.layout.total)
        return original(source)

    monkeypatch.setattr(network, "encode", counted)
    texts = [LONG, "dog", TEXT]
    parts = run.tag(texts, 1)
    first = next(parts)
    assert len(read) == 1 and first.text in (1, 2)
    found = [first, *parts]
    assert len(read) > 3 and max(read) <= 40 and max(len(one.tags) for one in found) == 5
    written = b"".join(run.answer(3, reversed(found)))
    as_pydantic = TagAnswer.model_validate_json(written)
    assert as_pydantic.model_dump_json(exclude_none=True).encode() == written
    told = json.loads(written)
    assert [len(one["words"]) for one in told["texts"]] == [160, 1, 7]
    assert [one["parts"] for one in told["texts"]] == [one.parts for one in Tagger(spans)(texts)]
    asyncio.run(run.close())


def test_words_of_strangers_fill_no_memory(spans: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of words has an end, and holds none that is endless."""
    monkeypatch.setattr(labelled, "_KEPT", 50)
    cutter = WordCutter(spans.source)
    fresh = WordCutter(spans.source)
    for turn in range(20):
        words = [f"dog{turn}{number}" for number in range(9)] + ["x" * 20_000 + str(turn)]
        assert cutter([words]) == fresh([words])
        assert len(cutter._kept) <= 50
        assert max(map(len, cutter._kept)) <= 60


def test_a_word_is_cut_while_another_thread_forgets_it(
    spans: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same words are cut for the endpoint and for Look, which have a thread each."""
    cutter = WordCutter(spans.source)
    form, original = spans.source, type(spans.source).tokens
    wanted = WordCutter(form)([["dog", "cat"]])
    cutter([["dog"]])

    def meanwhile(self: Any, raws: Any) -> Any:
        monkeypatch.setattr(labelled, "_KEPT", 0)
        monkeypatch.setattr(type(form), "tokens", original)
        cutter([["bread", "soup"]])
        return original(self, raws)

    monkeypatch.setattr(type(form), "tokens", meanwhile)
    assert cutter([["dog", "cat"]]) == wanted


def test_nothing_slow_is_done_on_the_event_loop(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = [
        (Text, "encode_lists"), (BaseModel, "model_dump_json"), (ServedTagger, "_words"),
        (ServedTagger, "_spans"), (connection, "_parse"),
    ]  # fmt: skip
    monkeypatch.setattr(connection, "SMALL", 0)
    work = SlowWork(slow, monkeypatch)

    async def check() -> None:
        async with served() as client:
            await work.ask(client, [("/v1/tag", {"text": [TEXT, LONG], "top": 3})])
        work.require_elsewhere()

    asyncio.run(check())
