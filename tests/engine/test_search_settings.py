"""Search settings with ``key=value`` merged in: checked by themselves, and by the task's rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dragoman.base.errors import RecipeError
from dragoman.engine.settings import for_test_set, parse_search, search_of, with_beams
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.tasks.catalogue import Recipe


@pytest.mark.parametrize("parse", [search_of, for_test_set])
@pytest.mark.parametrize("change", ["min_length=5", "no_repeat_ngram=3"])
def test_a_parse_has_its_own_rules(
    parse: Callable[[Recipe, Sequence[str]], SearchSettings], change: str
) -> None:
    with pytest.raises(
        RecipeError, match=r"^how to search: a parse has its own rules, .*set both to 0"
    ):
        parse(Recipe.load("demo-trees"), [change])
    name, value = change.split("=")
    assert getattr(parse(Recipe.load("demo"), [change]), name) == int(value)
    assert parse(Recipe.load("demo-trees"), ["beam=7"]).beam == 7


def test_no_recipe_is_made_to_change_a_beam(monkeypatch: pytest.MonkeyPatch) -> None:
    def recipe(*_: Any, **__: Any) -> None:
        raise AssertionError("a recipe is parsed")

    monkeypatch.setattr(Recipe, "parse", recipe)
    monkeypatch.setattr(Recipe, "__init__", recipe)
    given = SearchSettings(beam=3, max_length=9, sampling=SamplingSettings(seed=4))
    changed = parse_search(given, ["sampling.top_k=5", "length_penalty=1"])
    assert changed == given.model_copy(
        update={"length_penalty": 1.0, "sampling": SamplingSettings(seed=4, top_k=5)}
    )
    assert with_beams(SearchSettings(), None, 6) == SearchSettings(beam=6, n_best=6)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["sampling.tmperature=1"], "unknown key 'search.sampling.tmperature'; did you mean"),
        (["beam=3", "n_best=4"], "search: n_best 4 is greater than beam 3. Raise beam"),
        (["beam=a"], "search.beam: Input should be a valid integer"),
    ],
)
def test_a_mistake_is_told_as_one_of_a_recipe(changes: list[str], told: str) -> None:
    with pytest.raises(RecipeError) as raised:
        parse_search(SearchSettings(), changes)
    assert str(raised.value).startswith(f"how to search: {told}")
    with pytest.raises(RecipeError) as of_recipe:
        Recipe().change([f"search.{change}" for change in changes])
    assert str(raised.value).partition(": ")[2] == str(of_recipe.value).partition(": ")[2]
