"""What is served of every task, and that the way of a translation does nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from serving_echo import TEXT, client_of, create_app, detector, echo_run, post

from dragoman.forms.form import Form
from dragoman.forms.text_form import TextForm
from dragoman.search.request import Request
from dragoman.serving.operate.settings import ServeSettings
from dragoman.tasks import program
from dragoman.tasks.catalogue import TASKS


def test_every_task_is_served_and_asked_where_it_says() -> None:
    kinds = program.serving_tasks().runs
    served = list(dict.fromkeys(kind.task for kind in kinds))
    kept = set(TASKS) - {"codes"}
    of_translation = ["transcription", "picture-translation"]
    assert sorted(served) == sorted([*kept, *of_translation])
    described = create_app([echo_run()], ServeSettings(), detector()).openapi()
    for kind in kinds:
        assert "post" in described["paths"][kind.path], kind.task
    told = described["components"]["schemas"]["RunInfo"]["properties"]["task"]
    assert told["enum"] == served


def test_a_translation_is_cut_checked_and_detokenised_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut: list[str] = []
    checked: list[Request] = []
    detokenised: list[tuple[int, ...]] = []
    form_cut, check, raw = TextForm.cut, Request.check, TextForm.raw

    def cut_once(self: TextForm, raws: Sequence[str], into: Form, **how: Any) -> Any:
        cut.extend(raws)
        return form_cut(self, raws, into, **how)

    def check_once(self: Request, eos: int) -> None:
        checked.append(self)
        check(self, eos)

    def raw_once(self: TextForm, outputs: Sequence[Iterable[int]]) -> list[str]:
        detokenised.extend(map(tuple, outputs))
        return raw(self, outputs)

    monkeypatch.setattr(TextForm, "cut", cut_once)
    monkeypatch.setattr(Request, "check", check_once)
    monkeypatch.setattr(TextForm, "raw", raw_once)
    text = "Das Brot. Wo ist es?"

    async def check_all() -> None:
        async with client_of() as client:
            answer = await post(client, "/v1/translate", text=text, n_best=2)
            sentences = answer["translations"][0]["sentences"]
            assert cut == [text]
            assert len(checked) == len(set(checked)) == len(sentences) == 2
            hypotheses = [one for each in sentences for one in each["hypotheses"]]
            assert len(hypotheses) == 4
            outputs = [tuple(token["id"] for token in one["tokens"]) for one in hypotheses]
            assert sorted(detokenised) == sorted(outputs)
            assert hypotheses[0]["text"] == TEXT.decode(outputs[0])

    asyncio.run(check_all())
