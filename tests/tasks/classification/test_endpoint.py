"""The API of a run that labels: what the verb says, in turns, within limits, with clear errors."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel
from serving_echo import Served, client_of, meters_of, post, refused, serves, until
from slow_work import SlowWork
from untrained_run import TOPICS, untrained_run

from dragoman.forms.subwords.text import Text
from dragoman.serving.http import connection
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.tasks.catalogue import Run
from dragoman.tasks.classification import endpoint
from dragoman.tasks.classification.endpoint import ClassifyRequest, ServedClassifier
from dragoman.tasks.classification.labeller import Labeller
from dragoman.tasks.classification.reasons import reasons

SMALL = ("model.model_dim=32", "model.ffn_dim=32", "model.layers=2", "plan.context=24")
TEXT = "The dog ate the soup\nalthough it was  very hot."
LONG = "The dog ate the soup. " * 20


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of random weights that labels."""
    folder = tmp_path_factory.mktemp("topics")
    return Run.open(untrained_run(folder, *SMALL, recipe_name="demo-labels"))


@pytest.fixture
def served(topics: Run) -> Served:
    return serves(topics, "topics")


def test_it_answers_what_the_verb_does(topics: Run, served: Served) -> None:
    texts = [LONG, TEXT, "", "  "]
    wanted = Labeller(topics)(texts)

    async def check() -> None:
        async with served() as client:
            answer = await post(client, "/v1/classify", text=texts)
            assert (answer["run"], answer["longest"]) == ("topics", 24)
            for told, one in zip(answer["texts"], wanted, strict=True):
                assert told["label"] == one.label and "words" not in told
                assert told["cut"] == one.cut
                assert told["probability"] == pytest.approx(one.probability, abs=1e-5)
                names = [label["name"] for label in told["labels"]]
                assert names == [name for name, _ in one.ranked] and set(names) == set(TOPICS)
                shares = [label["probability"] for label in told["labels"]]
                assert sum(shares) == pytest.approx(1, abs=1e-5)
            assert [told["cut"] for told in answer["texts"]] == [True, False, False, False]
            (alone,) = (await post(client, "/v1/classify", text=TEXT, top=2))["texts"]
            assert alone["labels"] == answer["texts"][1]["labels"][:2]

    asyncio.run(check())


def test_why_gives_every_word_both_measures(topics: Run, served: Served) -> None:
    async def check() -> None:
        async with served() as client:
            asked = {"text": [TEXT, LONG, " \n"], "why": True}
            short, long, nothing = (await post(client, "/v1/classify", **asked))["texts"]
            joined = "".join(word["before"] + word["text"] for word in short["words"])
            assert joined == TEXT
            wanted = reasons(Labeller(topics), TEXT)
            assert wanted.label == short["label"]
            for told, word in zip(short["words"], wanted.words, strict=True):
                assert told["text"] == word.text
                assert told["gradient"] == pytest.approx(word.gradient, abs=1e-4)
                assert told["attention"] == pytest.approx(word.attention, abs=1e-4)
            # What is behind was not read: it has no figures, and is there all the same.
            read = [word for word in long["words"] if "gradient" in word]
            assert 0 < len(read) < len(long["words"]) == len(LONG.split())
            assert all("attention" not in word for word in long["words"][len(read) :])
            assert nothing["words"] == []

    asyncio.run(check())


def test_a_run_that_writes_nothing_is_given_no_output_to_look_at(topics: Run) -> None:
    asked = {"text": "a", "run": "topics", "given": [1]}
    refused(topics, "topics", "/v1/look", asked, 400, "writes nothing")


def test_an_answer_holds_only_so_many_labels(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "MAX_LABELS", 5)

    async def check() -> None:
        async with served() as client:
            answer = await client.post("/v1/classify", json={"text": ["a", "b"]})
            assert answer.status_code == 400
            assert "3 labels of each of 2 texts are 6" in answer.json()["error"]
            fewer = await post(client, "/v1/classify", text=["a", "b"], top=2)
            assert [len(told["labels"]) for told in fewer["texts"]] == [2, 2]

    asyncio.run(check())


def test_keys_and_turns_hold_for_labelling_too(
    topics: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has too many requests waiting is told to wait; others are served between."""
    (tmp_path / "keys").write_text("0123456789abcdef  Ada\nfedcba9876543210  Bob\n")
    settings = ServeSettings(api_keys=tmp_path / "keys", limits=LimitSettings(characters=100))
    gate, original = threading.Event(), Labeller.parts

    def waiting(self: Labeller, *arguments: Any) -> Any:
        gate.wait(30)
        yield from original(self, *arguments)

    monkeypatch.setattr(Labeller, "parts", waiting)
    run = ServedClassifier.open(topics, settings, "topics")
    turns = run.asking

    async def check() -> None:
        async with client_of(run, settings=settings) as client:

            def ask(key: str, text: str = "x") -> asyncio.Future[httpx.Response]:
                values = {"api_key": key, "text": text}
                return asyncio.ensure_future(client.post("/v1/classify", json=values))

            assert (await client.post("/v1/classify", json={"text": "x"})).status_code == 403
            long = await ask("0123456789abcdef", "x" * 101)
            assert long.status_code == 400 and "100 at once" in long.json()["error"]
            held = [ask("0123456789abcdef") for _ in range(10)]
            await until(lambda: turns.places.taken == 8 and sum(one.done() for one in held) == 2)
            other = ask("fedcba9876543210")
            await until(lambda: turns.places.taken == 9)
            gate.set()
            assert (await other).status_code == 200
            statuses = sorted([(await one).status_code for one in held])
            assert statuses == [200] * 8 + [429] * 2
            assert b'dragoman_key_characters_total{holder="Ada"} 8.0' in meters_of(client).text()

    asyncio.run(check())


def test_many_texts_are_labelled_in_turns(topics: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first turn brings is there when its texts alone were read."""
    monkeypatch.setattr(endpoint, "TOKENS_AT_ONCE", 30)
    found = ServedClassifier.open(topics, ServeSettings(), "topics")
    read: list[int] = []
    network = found.predictor.network
    original = network.encode

    def counted(source: Any) -> Any:
        read.append(source.layout.total)
        return original(source)

    monkeypatch.setattr(network, "encode", counted)
    parts = found.label([TEXT, "a", LONG, "b"], ClassifyRequest(text=[]))
    first = next(parts)
    assert len(read) == 1 and first[0] in (1, 3)
    assert {first[0], *(number for number, _ in parts)} == {0, 1, 2, 3}
    assert len(read) == 2 and max(read) <= 30
    asyncio.run(found.close())


def test_nothing_slow_is_done_on_the_event_loop(
    topics: Run, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = [
        (Text, "encode_lists"), (BaseModel, "model_dump_json"), (endpoint, "reasons"),
        (endpoint, "labels_told"), (connection, "_parse"),
    ]  # fmt: skip
    monkeypatch.setattr(connection, "SMALL", 0)
    work = SlowWork(slow, monkeypatch)

    async def check() -> None:
        async with served() as client:
            await work.ask(client, [("/v1/classify", {"text": [TEXT, LONG], "why": True})])
        work.require_elsewhere()

    asyncio.run(check())
