"""The API of a masked model: what the verb says, in turns, within limits, with clear errors."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from serving_echo import Served, client_of, meters_of, post, refused, serves, until
from untrained_run import untrained_run

from dragoman.engine.engine import Engine
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service import served_run
from dragoman.serving.service.served_run import knowledge_of
from dragoman.tasks.catalogue import Run
from dragoman.tasks.masked.endpoint import FillRequest, ServedFillMask
from dragoman.tasks.masked.filler import Filler

SMALL = ("model.model_dim=32", "model.ffn_dim=32", "model.layers=2", "plan.context=48")
TEXT = "The ___ eats the _____ , and 字 ___."


@pytest.fixture(scope="module")
def blanks(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A masked model of random weights."""
    folder = tmp_path_factory.mktemp("blanks")
    return Run.open(untrained_run(folder, *SMALL, recipe_name="demo-masked"))


@pytest.fixture
def served(blanks: Run) -> Served:
    return serves(blanks, "blanks")


@pytest.mark.parametrize(
    ("sources", "examples"),
    [
        (["A ___ sleeps."], ["A ___ sleeps."]),
        # As long ones as a training on whole documents has.
        (["word " * 30 + "some___ more a b ___ c ___ " + "text " * 30, "none " * 30],
         ["word word some___ more a b ___ c ___ text text text text"]),
    ],
)  # fmt: skip
def test_examples_are_short_and_have_a_blank(
    tmp_path: Path, sources: list[str], examples: list[str]
) -> None:
    run = Run.open(untrained_run(tmp_path, *SMALL, recipe_name="demo-masked"))
    samples = [{"source": source, "reference": "", "translation": ""} for source in sources]
    line = {
        "kind": "validation", "update": 1, "weights": "current", "scores": {"loss": 1.0},
        "samples": samples, "best": True,
    }  # fmt: skip
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    assert knowledge_of(run, ServedFillMask.examples).examples == examples


@pytest.mark.parametrize("pieces", [1, 2])
def test_it_answers_what_the_verb_does(blanks: Run, served: Served, pieces: int) -> None:
    wanted = Filler(blanks)(TEXT, best=3, pieces=pieces)

    async def check() -> None:
        async with served() as client:
            told = await post(client, "/v1/fill", text=TEXT, top=3, pieces=pieces)
            assert (told["run"], told["text"]) == ("blanks", wanted.text)
            assert told["log_probability"] == pytest.approx(wanted.score, abs=1e-3)
            assert len(told["blanks"]) == 3
            for one, candidates, chosen in zip(
                told["blanks"], wanted.blanks, wanted.chosen, strict=True
            ):
                assert set(TEXT[one["begin"] : one["end"]]) == {"_"}
                assert one["chosen"] == chosen.text
                assert [c["text"] for c in one["candidates"]] == [c.text for c in candidates]
                assert [c["probability"] for c in one["candidates"]] == pytest.approx(
                    [c.probability for c in candidates], abs=1e-4
                )
            # A blank that is filled by somebody changes what the others are asked.
            word = told["blanks"][0]["candidates"][2]["text"]
            other = await post(client, "/v1/fill", text=TEXT.replace("___", word, 1), pieces=pieces)
            assert len(other["blanks"]) == 2

    asyncio.run(check())


@pytest.mark.parametrize(
    ("path", "values", "status", "words"),
    [
        ("/v1/fill", {"text": ["___"]}, 400, "text"),
        ("/v1/fill", {"text": "no blank, but __"}, 400, "Write ___"),
        ("/v1/fill", {"text": "___ " * 33}, 400, "fills 32 at once"),
        ("/v1/fill", {"text": "word " * 3000 + "___"}, 400, "1,023 tokens at most are read"),
        ("/v1/fill", {"text": "___", "pieces": 9}, 400, "pieces"),
        ("/v1/fill", {"text": "___ " * 6, "top": 1000}, 400, "5,000 at once"),
        ("/v1/fill", {"text": "___", "top": 17, "pieces": 2}, 400, "at most 16 candidates"),
    ],
)
def test_errors_are_clear(
    blanks: Run, path: str, values: dict[str, Any], status: int, words: str
) -> None:
    assert len(refused(blanks, "blanks", path, values, status, words)) < 300


def test_a_figure_is_made_of_it(served: Served) -> None:
    async def check() -> None:
        # The time that a figure takes is not what is tested here.
        async with served(limits=LimitSettings(seconds=600)) as client:
            figure = {"name": "attention-encoder", "run": "blanks", "sentence": "The ___ eats."}
            assert (await client.post("/v1/figures", json=figure)).status_code == 200

    asyncio.run(check())


@pytest.mark.parametrize(("pieces", "questions"), [(1, 3), (2, 12)])
def test_the_model_is_asked_in_turns(
    blanks: Run, monkeypatch: pytest.MonkeyPatch, pieces: int, questions: int
) -> None:
    """Once for all open blanks of one piece, and for each piece of each of longer ones."""
    asked: list[int] = []
    original = Engine.output_log_probabilities

    def counted(self: Engine, values: Any, places: Any) -> Any:
        asked.append(len(values))
        return original(self, values, places)

    monkeypatch.setattr(Engine, "output_log_probabilities", counted)
    found = ServedFillMask.open(blanks, ServeSettings(), "blanks")
    parts = found.parts(FillRequest(text=TEXT, pieces=pieces))
    assert next(parts) is None and len(asked) == 1
    *between, last = parts
    assert last is not None and all(one is None for one in between)
    assert len(asked) == questions
    asyncio.run(found.close())


def test_turns_are_fair_and_bounded_and_nobody_is_filled_for_who_is_gone(
    blanks: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, asked, original = threading.Event(), list[int](), Engine.output_log_probabilities

    def waiting(self: Engine, values: Any, places: Any) -> Any:
        asked.append(threading.get_ident())
        gate.wait(30)
        return original(self, values, places)

    monkeypatch.setattr(Engine, "output_log_probabilities", waiting)
    monkeypatch.setattr(served_run, "OF_CLIENT", 2)
    settings = ServeSettings()
    run = ServedFillMask.open(blanks, settings, "blanks")
    turns = run.asking

    async def check() -> None:
        async with client_of(run, settings=settings) as client:
            long = {"text": "___ " * 8, "pieces": 2}
            held = [asyncio.ensure_future(client.post("/v1/fill", json=long)) for _ in range(3)]
            await until(lambda: turns.places.taken == 2 and any(one.done() for one in held))
            statuses = {one.result().status_code for one in held if one.done()}
            assert statuses == {429}
            for one in held:
                one.cancel()
            await until(lambda: turns.places.taken == 0)
            gate.set()
            told = await post(client, "/v1/fill", text="A ___.")
            assert told["blanks"] and threading.get_ident() not in asked
            assert len(asked) < 10, "who has gone is filled in for no longer"
            assert b'dragoman_characters_total{run="blanks"} 6.0' in meters_of(client).text()

    asyncio.run(check())
