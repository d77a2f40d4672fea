"""What the API tells of doubtful translations, over a model that repeats its source."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from serving_echo import TEXT, client_of, echo_run, open_run

from dragoman.forms.form import Piece
from dragoman.runs.run import LEXICON, NOTES, SCORES
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.served_run import ServedRun, knowledge_of
from dragoman.tasks.catalogue import Run
from dragoman.tasks.translation import served as served_translator
from dragoman.tasks.translation.proofreading.proofreader import Proof, Proofreader, ToProofread
from dragoman.tasks.translation.served import Proofs, ServedTranslator

ODD = "The animal 🐱 is tired. "
TWO = f"- {ODD}Where is the bread?"


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)


async def translated(*runs: ServedRun, **values: Any) -> Any:
    async with client_of(*runs) as client:
        answer = await client.post("/v1/translate", json={"text": TWO, **values})
        assert answer.status_code == 200, answer.text
        return answer


def sources(sentence: dict[str, Any], words: list[dict[str, Any]]) -> list[list[str]]:
    """What the words of a translation come from."""
    return [
        [sentence["source"][begin:end] for begin, end in word["source"]]
        for word in words
        if word["text"].isalpha()
    ]


def test_warnings_are_told_to_those_who_ask() -> None:
    (told,) = run(translated(warnings=True, n_best=2)).json()["translations"]
    first, second = told["sentences"]
    (warning,) = first["hypotheses"][0]["warnings"]
    assert (warning["code"], warning["side"], warning["text"]) == ("unknown", "source", "🐱")
    assert first["source"][warning["begin"] : warning["end"]] == "🐱"
    assert "🐱" in warning["message"]
    assert second["hypotheses"][0]["warnings"] == []
    assert "warnings" not in first["hypotheses"][1], "the best alone is read"
    words = second["hypotheses"][0]["words"]
    assert sources(second, words) == [["Where"], ["is"], ["the"], ["bread"]]
    assert told["before"] == "- "


def test_nothing_is_read_for_those_who_do_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Proofreader, translations: Sequence[ToProofread]) -> list[list[Proof]]:
        raise AssertionError("nobody asked")

    monkeypatch.setattr(Proofreader, "__call__", refuse)
    (told,) = run(translated()).json()["translations"]
    best = told["sentences"][0]["hypotheses"][0]
    assert "warnings" not in best and "source" not in best["words"][0]
    assert "event: done" in run(translated(stream=True)).text


def test_a_stream_tells_them_after_the_sentence_that_they_are_about() -> None:
    body = run(translated(warnings=True, stream=True)).text
    events = []
    for block in body.strip().split("\n\n"):
        name, data = block.split("\n", 1)
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    names = [name for name, _ in events]
    assert names[-1] == "done" and names.count("warnings") == 2
    for number in (0, 1):
        (at,) = [
            n
            for n, (name, data) in enumerate(events)
            if (name, data.get("sentence")) == ("warnings", number)
        ]
        (before,) = [
            n
            for n, (name, data) in enumerate(events)
            if (name, data.get("sentence")) == ("sentence", number)
        ]
        assert before < at
    said = {data["sentence"]: data for name, data in events if name == "warnings"}
    assert [one["text"] for one in said[0]["warnings"]] == ["🐱"] and said[1]["warnings"] == []
    sentence = events[0][1]["sentences"][1]
    assert sources(sentence, said[1]["words"]) == [["Where"], ["is"], ["the"], ["bread"]]


def test_a_placeholder_that_is_lost_is_told_unasked() -> None:
    async def check() -> None:
        async with client_of() as client:
            text = "Where is it? The bread of {name} is here."
            for most, codes in ((None, [None, None]), (3, [None, ["lost"]])):
                wish = {"text": text, "target": "de", "n_best": 2, "max_length": most}
                answer = (await client.post("/v1/translate", json=wish)).json()
                sentences = answer["translations"][0]["sentences"]
                found = [one["hypotheses"][0].get("warnings") for one in sentences]
                assert [some and [w["code"] for w in some] for some in found] == codes
                assert not any("warnings" in one["hypotheses"][-1] for one in sentences)
            (warning,) = found[1]
            assert (warning["text"], warning["side"]) == ("{name}", "source")
            assert sentences[1]["source"][warning["begin"] : warning["end"]] == "{name}"
            wish |= {"warnings": True}
            answer = (await client.post("/v1/translate", json=wish)).json()
            every = answer["translations"][0]["sentences"][1]["hypotheses"][0]["warnings"]
            assert warning in every

    run(check())


def test_they_stand_in_the_description_of_the_api() -> None:
    async def check() -> Any:
        async with client_of() as client:
            return (await client.get("/openapi.json")).json()["components"]["schemas"]

    schemas = run(check())
    assert "omitted" in schemas["TranslationWarning"]["properties"]["code"]["enum"]
    assert schemas["Hypothesis"]["properties"]["warnings"]["description"]
    assert schemas["TranslateRequest"]["properties"]["warnings"]["default"] is False


class Counting(Proofreader):  # counts what it is asked
    asked = 0

    def __call__(self, translations: Sequence[ToProofread]) -> Any:
        self.asked += len(translations)
        return super().__call__(translations)


def test_the_last_proofs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = echo_run().engine
    tokens = [tuple(TEXT.encode_lists([text])[0]) for text in ("Das Brot", "Das Tier")]
    pieces = [
        Piece(text, "", (*of, TEXT.eos))
        for text, of in zip(("Das Brot", "Das Tier"), tokens, strict=True)
    ]
    found = [
        (piece, Hypothesis(of, 0.0, 0.0, (), True))
        for piece, of in zip(pieces, tokens, strict=True)
    ]

    async def check() -> None:
        reader, turns = Counting(engine), FairExecutor("align")
        kept = Proofs(engine, reader, turns)
        first = await kept([*found, found[0]], "me")
        assert reader.asked == 2, "the same is read once"
        assert first[0] is first[2] and first[0] is not first[1]
        assert await kept(found[::-1], "me") == [first[1], first[0]] and reader.asked == 2
        cut = [(piece, Hypothesis(one.tokens, 0.0, 0.0, (), False)) for piece, one in found]
        assert (await kept(cut, "me"))[0].warnings[0].code == "cut_off" and reader.asked == 4
        monkeypatch.setattr(served_translator, "MAX_PROOFS_KEPT", 1)
        await kept(found, "me")
        await kept(found, "me")
        assert reader.asked == 6, "what has no room is read again"
        turns.close()

    run(check())


def test_what_a_run_knows_is_told(tiny_run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    measured = ["The long one.", "Short.", "Short.", "x" * 200, "", "A", "B", "C"]
    samples = [{"source": one, "reference": "", "translation": ""} for one in measured]
    (folder / SCORES).write_text(json.dumps({"samples": samples}), encoding="utf-8")
    known = knowledge_of(Run.open(folder), ServedTranslator.examples)
    assert known.pairs == 546 and known.words is not None and known.words > 100
    assert known.commonest[0] == "the" and len(known.commonest) <= 300
    assert known.label_smoothing == 0.1 and known.notice == ""
    assert known.longest is None, "so few pairs do not show it"
    notes = json.loads((folder / NOTES).read_text(encoding="utf-8"))
    (folder / NOTES).write_text(json.dumps(notes | {"longest_words": 17}), encoding="utf-8")
    assert knowledge_of(Run.open(folder), ServedTranslator.examples).longest == 17
    assert known.examples == ["A", "B", "Short.", "The long one."]


def test_what_is_damaged_of_it_does_not_keep_a_run_from_translating(
    tiny_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    (folder / LEXICON).write_text("nothing\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        served = open_run(Run.open(folder), ServeSettings(precision="fp32"), "damaged")
    assert "Remove it" in caplog.text
    assert served.knowledge.words is None and served.knowledge.label_smoothing == 0.1
    (told,) = run(translated(served, warnings=True)).json()["translations"]
    assert "warnings" in told["sentences"][0]["hypotheses"][0]
