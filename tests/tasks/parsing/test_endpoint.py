"""The API of a parser: the trees of the verb as lists, where it looked, limits and clear errors."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
from serving_echo import Served, meters_of, post, refused, serves
from untrained_run import untrained_run

from dragoman.engine.engine import Engine
from dragoman.engine.settings import EngineSettings
from dragoman.forms.tree import Tree
from dragoman.forms.tree_form import tree_of
from dragoman.tasks.catalogue import Run
from dragoman.tasks.parsing.endpoint import ServedParser
from dragoman.tasks.parsing.parser import Parser

SMALL = (
    "model.model_dim=32", "model.ffn_dim=32", "model.encoder_layers=1", "model.decoder_layers=2",
    "model.attention.num_heads=2", "text.vocabulary=400", "search.beam=2",
)  # fmt: skip
TEXT = "the small cat (of the house) sleeps ."


@pytest.fixture(scope="module", params=["none", "kept"])
def trees(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A parser of random weights, without tags and with them."""
    folder = tmp_path_factory.mktemp("trees")
    changes = (*SMALL, f"trees.tags={request.param}")
    return Run.open(untrained_run(folder, *changes, recipe_name="wsj-sample"))


@pytest.fixture
def served(trees: Run) -> Served:
    return serves(trees, "trees", precision="fp32")


def rebuilt(told: dict[str, Any]) -> Tree:
    """The tree that the lists of an answer tell."""
    brackets, words = told["brackets"], told["words"]

    def bracket(number: int) -> Tree:
        own = brackets[number]
        inside: list[tuple[int, Tree]] = [
            (one["first"], bracket(n))
            for n, one in enumerate(brackets)
            if one.get("parent") == number
        ]
        inside += [
            (n, Tree(word.get("tag", "XX"), word=word["text"]))
            for n, word in enumerate(words)
            if word["parent"] == number
        ]
        inside.sort(key=lambda one: one[0])
        tree = Tree(own["label"], tuple(one for _, one in inside))
        first = own["first"]
        assert tree.words == [one["text"] for one in words[first : first + own["count"]]]
        return tree

    return bracket(0)


def test_it_answers_what_the_verb_does(trees: Run, served: Served) -> None:
    sentences = [TEXT, "a dog sees the old tree ."]
    parser = Parser(trees, EngineSettings(precision="fp32"))
    settings = trees.recipe.search.model_copy(update={"beam": 3, "n_best": 2})
    wanted = list(parser.stream(sentences, settings))

    async def check() -> None:
        async with served() as client:
            answer = await post(client, "/v1/parse", text=sentences, beam=3, n_best=2)
            assert answer["run"] == "trees"
            for told, parses in zip(answer["sentences"], wanted, strict=True):
                assert [one["text"] for one in told["trees"]] == [one.text for one in parses]
                for one, parse in zip(told["trees"], parses, strict=True):
                    assert one["score"] == pytest.approx(parse.score, abs=1e-3)
                    total = sum(parse.token_log_probabilities)
                    assert one["log_probability"] == pytest.approx(total, abs=1e-3)
                    assert rebuilt(one) == parse.tree == tree_of(one["text"])
                    assert all("attention" not in bracket for bracket in one["brackets"])
            words = [word["text"] for word in answer["sentences"][0]["trees"][0]["words"]]
            assert words == ["the", "small", "cat", "-LRB-of", "the", "house-RRB-", "sleeps", "."]

    asyncio.run(check())


def test_each_bracket_tells_where_the_model_looked_when_it_opened_it(
    trees: Run, served: Served
) -> None:
    engine = Engine.open(trees, EngineSettings(precision="fp32"))
    sentence = TEXT.replace("(", "-LRB-").replace(")", "-RRB-")
    ((tokens, numbers),) = engine.source.tokens_of_words([sentence])

    async def check() -> None:
        async with served() as client:
            answer = await post(client, "/v1/parse", text=TEXT, attention=True, n_best=2)
            best, other = answer["sentences"][0]["trees"]
            assert all("attention" not in bracket for bracket in other["brackets"])
            (symbols,) = engine.target.tokens([best["text"]])
            ((alignment,),) = engine.attention.align([(tokens, symbols)])
            opening = [
                n for n, s in enumerate(engine.target.names_of(symbols)) if s.startswith("(")
            ]
            assert len(opening) == len(best["brackets"])
            for place, bracket in zip(opening, best["brackets"], strict=True):
                shares = np.zeros(len(sentence.split()))
                for number, share in zip(numbers, alignment[place], strict=True):
                    shares[number] += share
                assert bracket["attention"] == pytest.approx(shares.tolist(), abs=1e-3)
                assert 0 < sum(bracket["attention"]) <= 1 + 1e-3

    asyncio.run(check())


@pytest.mark.parametrize(
    ("path", "values", "status", "words"),
    [
        ("/v1/parse", {"text": " \n"}, 400, "no words"),
        ("/v1/parse", {"text": ["a", ""]}, 400, "number 1 from 0"),
        ("/v1/parse", {"text": "a " * 400}, 400, "read at once"),
        ("/v1/parse", {"text": "a", "beam": 1, "n_best": 3}, 400, "n_best"),
    ],
)
def test_errors_are_clear(
    trees: Run, path: str, values: dict[str, Any], status: int, words: str
) -> None:
    refused(trees, "trees", path, values, status, words, precision="fp32")


def test_sentences_are_counted(served: Served) -> None:
    async def check() -> None:
        async with served() as client:
            assert (await post(client, "/v1/parse", text=[]))["sentences"] == []
            await post(client, "/v1/parse", text="the cat .")
            assert b'dragoman_sentences_total{run="trees"} 1.0' in meters_of(client).text()

    asyncio.run(check())


def test_nothing_slow_is_done_on_the_event_loop(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran_in: dict[str, set[int]] = {}

    def watch(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def watched(*arguments: Any, **named: Any) -> Any:
            ran_in.setdefault(name, set()).add(threading.get_ident())
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, watched)

    for name in ("pair", "to_schema", "_tree"):
        watch(ServedParser, name)
    watch(Engine, "request")

    async def check() -> None:
        async with served() as client:
            await post(client, "/v1/parse", text=[TEXT, "the cat ."], attention=True)
        assert len(ran_in) == 4, "each was called"
        loop = threading.get_ident()
        assert {name for name, idents in ran_in.items() if loop in idents} == set()

    asyncio.run(check())
