"""The parts of the server by themselves: fairness, words, passages, limits."""

from __future__ import annotations

import asyncio
import html
import math
import re
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving_echo import TEXT

from dragoman.base.errors import DataError, SearchError
from dragoman.forms.shown_words import words_of
from dragoman.forms.text_form import MosesText
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.clients import ApiKeys
from dragoman.serving.http.limits import Client, Limiter, LimitSettings
from dragoman.serving.http.refusals import FAILED, Refusal, error_body
from dragoman.serving.http.stream import _event_stream, event_of
from dragoman.serving.queue.fair_executor import Turns
from dragoman.serving.queue.worker import FairQueue, QueuedRequest

FULL = Refusal("queue_full", "slow down", sentences=5, most=4)


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (TimeoutError(), 504, Refusal("too_slow", seconds=1).body),
        (FULL, 429, FULL.body),
        (
            SearchError("too long"),
            400,
            error_body("bad_search", "too long", {"problem": "too long"}),
        ),
        (ValueError("nobody's business"), 500, FAILED),
    ],
)
def test_every_end_of_a_stream_is_told(error: Exception, status: int, body: dict[str, Any]) -> None:
    async def parts() -> AsyncGenerator[bytes, None]:
        yield b"first"
        raise error

    def event(status: int, body: dict[str, Any]) -> bytes:
        return event_of(str(status), body)

    async def check() -> None:
        told = [part async for part in _event_stream(parts(), 1, event)]
        assert told == [b"first", event_of(str(status), body)]

    asyncio.run(check())


def test_a_book_does_not_keep_a_line_waiting() -> None:
    async def check() -> None:
        queue = FairQueue()
        anything: Any = SimpleNamespace(settings=SearchSettings(beam=1), limit=1)
        book, line, other = (
            QueuedRequest(client, [anything] * sentences, watched=False)
            for client, sentences in (("ada", 100), ("ada", 1), ("bob", 1))
        )
        for party in (book, line, other):
            queue.add(party.client, party)
        order = []
        while following := queue.take_sentence():
            order.append(following)
        assert len(order) == 102
        assert {order.index((line, 0)), order.index((other, 0))} <= {0, 1, 2, 3}
        assert [number for party, number in order if party is book] == list(range(100))

    asyncio.run(check())


def test_who_leaves_is_forgotten() -> None:
    turns = Turns[int]()
    turns.add("ada", 5)
    turns.add("bob", 1)
    turns.forget("ada", 5)
    turns.forget("ada", 5)
    assert turns.take() == ("bob", 1) and turns.take() is None


def test_who_may_not_be_taken_keeps_the_turn() -> None:
    turns = Turns[int]()
    for number, client in enumerate(("ada", "ada", "bob", "cid")):
        turns.add(client, number)
    assert turns.take(lambda number: number > 1) == ("bob", 2)
    turns.end("bob")
    assert turns.take() == ("ada", 0)
    turns.add("bob", 4)
    turns.add("ada", 5)
    turns.end("ada")
    taken = []
    while following := turns.take():
        taken.append(following[1])
        turns.end(following[0])
    assert taken == [3, 4, 1, 5]


@given(st.text(min_size=1, max_size=40))
def test_words_spell_the_text(text: str) -> None:
    ids = TEXT.encode([text])[0]
    decoded = TEXT.decode(ids)
    values = [-0.1 * (i % 3) for i in range(len(ids))]
    words = words_of(decoded, TEXT.pieces(ids), values)
    assert "".join(word.before + word.text for word in words) == decoded
    assert sum(word.count for word in words) == len(ids)
    assert math.isclose(sum(word.log_probability for word in words), sum(values), abs_tol=1e-9)


def test_marks_stand_beside_words() -> None:
    pieces = ["▁„", "Hu", "nd", "“", ",", "▁sa", "gt", "."]
    words = words_of("„Hund“, sagt.", pieces, [-0.1] * 9)
    assert [(w.before, w.text) for w in words] == [
        ("", "„"), ("", "Hund"), ("", "“,"), (" ", "sagt"), ("", "."),
    ]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "de", "fr"])
@pytest.mark.parametrize(
    "sentence",
    [
        "The animal didn't cross the street, because it was (too) tired.",
        'It\'s 5% & costs $3.50 [or "so"] | <b>.',
        "Das Tier überquerte die „Straße“ nicht – weil es zu müde war!",
    ],
)
def test_words_of_moses_stand_between_spaces_and_own_their_tokens(
    sentence: str, language: str
) -> None:
    pytest.importorskip("sacremoses")
    moses = MosesText(language)
    ids = TEXT.encode([moses.prepare(sentence)])[0]
    pieces, values = TEXT.pieces(ids), [-0.1 * (i % 3) for i in range(len(ids))]
    text = moses.restore(TEXT.decode(ids))
    words = words_of(text, pieces, values)
    assert "".join(word.before + word.text for word in words) == text
    assert [word.before for word in words].count(" ") == text.count(" ") > 4
    place = 0
    for word in words:
        assert word.first == place and " " not in word.text
        place += word.count
        mine = ids[word.first : place]
        assert word.log_probability == pytest.approx(sum(values[word.first : place]))
        assert html.unescape(TEXT.decode(mine)).replace(" ", "") == word.text
    assert place == len(ids)


def test_the_rate_fills_up_again() -> None:
    now = 0.0
    limiter = Limiter(LimitSettings(burst=2, requests_per_minute=60), clock=lambda: now)
    ada, bob = Client("ada"), Client("bob")
    for client in (ada, ada, bob):
        with limiter.admit(client):
            pass
    with pytest.raises(Refusal) as refused, limiter.admit(ada):
        pass
    assert refused.value.status == 429 and refused.value.retry_after == 1
    now = 1.1
    with limiter.admit(ada):
        pass


def test_keys_that_can_be_guessed_are_refused(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "keys"
    path.write_text("# none\n\nshort Ada\n")
    with pytest.raises(DataError, match="line 3"):
        ApiKeys.load(path, LimitSettings())
    path.write_text("# none\n")
    with pytest.raises(DataError, match="contains no API key"):
        ApiKeys.load(path, LimitSettings())


def test_the_documentation_names_every_setting_with_its_default() -> None:
    from pathlib import Path

    from dragoman.serving.operate.settings import ServeSettings

    text = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    (part,) = re.findall(r"^## Settings\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    told = dict(re.findall(r"^\| `([\w.]+)` \| (\S+) \|", part, re.MULTILINE))
    settings = ServeSettings()
    there = {f"limits.{name}": value for name, value in settings.limits} | dict(settings)
    options = {"host", "port", "allowed_host", "api_keys", "precision", "page", "limits"}
    assert set(told) == set(there) - options
    for name, default in told.items():
        value = there[name]
        if isinstance(value, tuple):
            value = ",".join(value) or "none"
        assert default == ("all" if name == "threads" else str(value).removesuffix(".0"))


def test_a_holder_of_many_addresses_is_one_client() -> None:
    from starlette.requests import Request

    from dragoman.serving.http.clients import stranger

    def seen(host: str) -> str:
        return stranger(Request({"type": "http", "client": (host, 1), "headers": []})).name

    assert seen("192.0.2.7") == "192.0.2.7" and seen("unknown") == "unknown"
    assert seen("2001:db8::1") == seen("2001:db8::ffff:1") != seen("2001:db8:0:1::1")
    assert seen("fe80::1%eth0") == "fe80::/64" and seen("not:an:address") == "not:an:address"
