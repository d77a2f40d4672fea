"""Settings explain themselves, survive a recipe file, and stand in the documentation."""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import get_args

import pytest
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

import dragoman
from dragoman.base.errors import RecipeError
from dragoman.base.settings import Settings
from dragoman.console.options import help_texts
from dragoman.runs.recipe.recipe_text import settings_in
from dragoman.tasks.catalogue import Recipe

ROOT = Path(__file__).parents[2]


def settings_within(settings: type[BaseModel]) -> list[type[BaseModel]]:
    """A class of settings and all that it is made of."""
    found = [settings]
    for field in settings.model_fields.values():
        inner = settings_in(field.annotation)
        if inner is not None:
            found += settings_within(inner)
    return found


CLASSES = sorted(set(settings_within(Recipe)), key=lambda settings: settings.__name__)


@pytest.mark.parametrize("settings", CLASSES, ids=lambda settings: settings.__name__)
def test_every_setting_has_its_help(settings: type[BaseModel]) -> None:
    assert settings.__doc__
    helps = help_texts(settings)
    for name, field in settings.model_fields.items():
        if not isinstance(field.default, BaseModel):  # a section is explained by its class
            assert len(helps.get(name, "")) > 3, name


@pytest.mark.parametrize("settings", CLASSES, ids=lambda settings: settings.__name__)
def test_none_is_allowed_only_where_it_is_the_default(settings: type[BaseModel]) -> None:
    """TOML has no word for it: another default would come back from the file."""
    for name, field in settings.model_fields.items():
        if NoneType in get_args(field.annotation):
            assert field.default is None, f"{settings.__name__}.{name}"


def numbers() -> Iterator[tuple[type[Settings], str, FieldInfo]]:
    """Every number of every class of settings in the whole program."""
    for found in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
        if not found.name.endswith(("__main__", ".libdragoman")):
            importlib.import_module(found.name)
    classes = [Settings]
    for settings in classes:
        classes += settings.__subclasses__()
        for name, field in settings.model_fields.items():
            if {int, float} & {field.annotation, *get_args(field.annotation)}:
                yield settings, name, field


def test_every_number_has_bounds_and_is_held_to_them() -> None:
    seen = set()
    for settings, name, field in numbers():
        seen.add(settings.__name__)
        where = f"{settings.__name__}.{name}"
        low, high = (
            {
                value
                for limit in field.metadata
                for word in words
                if (value := vars_of(limit, word)) is not None
            }
            for words in (("ge", "gt"), ("le", "lt"))
        )
        assert len(low) == len(high) == 1, f"{where} needs a lower and an upper bound"
        outside = [min(low) - 1, max(high) + 1, float("nan"), float("inf"), -float("inf"), 10**400]
        for value in outside:
            with pytest.raises(ValidationError) as refused:
                settings.model_validate({name: value})
            assert (name,) in [problem["loc"] for problem in refused.value.errors()], where
    assert {"Recipe", "TransformerSettings", "SearchSettings", "LimitSettings"} <= seen


def vars_of(limit: object, word: str) -> float | None:
    """One of ge, gt, le, lt of a bound, if it is that."""
    found: float | None = getattr(limit, word, None)
    return found


@pytest.mark.parametrize(
    "change",
    [
        "model.dropout=1.5", "model.model_dim=-8", "model.encoder_layers=-1",
        "model.attention.num_heads=0", "evaluation.dev_sentences=-5", "model.model_dim=4000000",
        "model.positions.width=7", "model.attention={whole_input=false, key_width=4, num_heads=5}",
    ],
)  # fmt: skip
def test_sizes_that_make_no_model_are_refused(change: str) -> None:
    name = "num_heads" if "whole_input" in change else re.split(r"[.=]", change)[-2]
    with pytest.raises(RecipeError, match=name):
        Recipe.load("demo", [change])


def test_a_limit_that_is_off_stays_off(tmp_path: Path) -> None:
    off = ["data.cleaning.max_length=0", "data.cleaning.max_length_ratio=0"]
    recipe = Recipe.load("demo", off).change(["seed=7"])
    recipe.save(tmp_path / "recipe.toml")
    cleaning = Recipe.load(tmp_path / "recipe.toml").data.cleaning
    assert (cleaning.max_length, cleaning.max_length_ratio) == (0, 0)
    with pytest.raises(RecipeError, match="Set 0 to switch this filter off"):
        Recipe.load("demo", ["data.cleaning.max_length_ratio=0.5"])


def test_two_vocabularies_do_not_share_a_matrix() -> None:
    with pytest.raises(RecipeError, match=r'model\.tie = "target"'):
        Recipe.load("demo", ["text.shared=false"])
    assert not Recipe.load("demo", ["text.shared=false", "model.tie=target"]).text.shared


def test_the_recipes_of_the_documentation_are_some() -> None:
    examples = [
        Recipe.parse(tomllib.loads(one))
        for page in sorted((ROOT / "docs").glob("*.md"))
        for one in re.findall(
            r"^```toml\n(name = .*?)^```",
            page.read_text(encoding="utf-8"),
            re.MULTILINE | re.DOTALL,
        )
    ]
    of_task = {recipe.task: recipe for recipe in examples}
    assert {"translation", "language-model", "masked", "classification"} <= set(of_task)
    assert [corpus.weight for corpus in of_task["translation"].data.train] == [1.0, 3.0, 1.0]
    assert of_task["language-model"].model.kind == "decoder"
    assert of_task["masked"].model.kind == "encoder"
    assert of_task["classification"].data.train[0].target_column == 1


def test_the_tree_of_the_documentation_is_the_tree() -> None:
    text = (ROOT / "docs" / "how-it-is-built.md").read_text(encoding="utf-8")
    (tree,) = re.findall(r"^```text\nsrc/dragoman/\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    folder = ROOT / "src" / "dragoman"
    for name in re.findall(r"^  ([\w.]+)(?:/| )", tree, re.MULTILINE):
        assert (folder / name).exists(), name
    for path in folder.iterdir():
        if not path.name.startswith(("__", ".", "py.typed")):
            assert re.search(rf"\b{re.escape(path.name)}\b", tree), path.name
