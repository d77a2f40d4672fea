"""From a recipe to stores of tokens: what a store was made from, its key knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest

from dragoman.base.errors import DataError, RecipeError
from dragoman.base.settings import Settings
from dragoman.forms.subwords.text import TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.runs.corpora import learn_vocabularies
from dragoman.runs.prepare import prepare
from dragoman.tasks.catalogue import Recipe

SENTENCES = [f"L'homme isn't the dog's {n}, qu'il said: «don't». Isn't it?" for n in range(14)]


def others(annotation: Any, value: Any) -> Iterator[Any]:
    """Values that a setting of this type could have in place of ``value``."""
    if get_origin(annotation) in (Union, UnionType):
        for part in get_args(annotation):
            yield from others(part, value)
    elif get_origin(annotation) is Literal:
        yield from (allowed for allowed in get_args(annotation) if allowed != value)
    elif annotation is bool:
        yield not value
    elif annotation is int:
        yield from ((value or 0) + 1, len(SENTENCES[0]) + len("my.en "))
    elif annotation is float:
        yield from ((value or 0.0) + 1.0, 0.5, 0.3, 0.0)
    elif annotation is str:
        yield "fr"
    elif annotation == tuple[str, ...]:
        yield ("dog",)


def neighbours(settings: Settings, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """(way to a setting, another value for it) for every setting in or below ``settings``."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, Settings):
            yield from neighbours(value, (*path, name))
        elif value and isinstance(value, tuple) and isinstance(value[0], Settings):
            for place, entry in enumerate(value):
                yield from neighbours(entry, (*path, name, place))
        else:
            for other in others(field.annotation, value):
                yield (*path, name), other


def changed(recipe: Recipe, path: tuple[Any, ...], value: Any) -> Recipe | None:
    """The recipe with another value there; None where that is not allowed."""
    values = recipe.model_dump(mode="json", exclude_none=True)
    inner = values
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    try:
        return Recipe.parse(values)
    except RecipeError:
        return None


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_changes_the_tokens_changes_the_key_of_their_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every setting of a recipe: a store that is found again is what would be made anew."""
    pytest.importorskip("sacremoses")
    monkeypatch.setattr("os.fsync", lambda _: None)
    files = [tmp_path / "my.en", tmp_path / "my.de"]
    for file in files:
        lines = [f"{file.name} {sentence}" for sentence in SENTENCES]
        file.write_text("".join(f"{line}\n" for line in [*lines, lines[0], ""]), "utf-8")
    recipe = Recipe.parse(
        {
            "languages": {"source": "en", "target": "de"},
            "data": {
                "train": [{"source": str(files[0]), "target": str(files[1])}],
                "moses": True,
                "split": {"dev": 0.2},
            },
            "model": {"tie": "none"},
        }
    )
    run = tmp_path / "run"
    run.mkdir()
    text = learn_vocabulary(SENTENCES, TextSettings(vocabulary=310))
    for name in ("shared", "source", "target"):
        text.save(run / f"{name}.model")

    def store(recipe: Recipe, cache: str = "cache") -> Path:
        monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / cache))
        return prepare(recipe, run, lambda _: None).train.folder

    first = store(recipe)
    tried, new_keys, elsewhere = set(), set(), recipe
    for number, (path, value) in enumerate(neighbours(recipe)):
        if path[-1] in ("source", "target") and "train" in path:
            continue  # files that are not there
        if path[-1] == "prepared":
            continue  # a folder that is not there
        if path == ("languages", "tag"):
            continue  # this vocabulary has no tags; tests/interop/test_tags.py has one
        if path[0] not in ("data", "languages"):  # all of these at once, below
            elsewhere = changed(elsewhere, path, value) or elsewhere
        elif variant := changed(recipe, path, value):
            tried.add(path)
            found = store(variant)
            if found != first:
                new_keys.add(path[1])
            else:
                assert content(found) == content(store(variant, f"fresh-{number}")), (path, value)
    assert len(tried) > 15
    assert {"moses", "cleaning", "split", "train"} <= new_keys
    assert elsewhere.training.updates != recipe.training.updates and elsewhere.seed != recipe.seed
    if (found := store(elsewhere)) == first:
        assert content(found) == content(store(elsewhere, "fresh"))
    # The content of the files and the vocabulary count too.
    before = files[0].read_text("utf-8")
    files[0].write_text(before.replace("dog", "cat"), "utf-8")
    assert store(recipe) != first
    files[0].write_text(before, "utf-8")
    assert store(recipe) == first
    learn_vocabulary(SENTENCES, TextSettings(vocabulary=305)).save(run / "shared.model")
    assert store(recipe) != first


def test_a_text_without_a_group_is_in_none(tmp_path: Path) -> None:
    """An empty cell is no group that two parts have in common."""
    train, dev = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    rows = [f"{text}\tx {text}\t{('anna', 'ben', '')[n % 3]}" for n, text in enumerate(SENTENCES)]
    train.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    dev.write_text("one\teins\t\ntwo\tzwei\tcarl\n")
    recipe = Recipe.parse(
        {
            "languages": {"source": "en", "target": "de"},
            "data": {
                "train": [{"source": str(train), "group_column": 3}],
                "dev": {"source": str(dev), "group_column": 3},
            },
            "text": {"vocabulary": 310},
        }
    )
    learn_vocabularies(recipe, tmp_path, lambda _: None)
    said = list[str]()
    assert len(prepare(recipe, tmp_path, said.append).dev) == 2
    assert "2 groups by group_column = 3; each is in only one part of the split" in said
    dev.write_text("one\teins\t\ntwo\tzwei\tBen.\n")  # a split takes both for one
    with pytest.raises(DataError, match=r"^dev.tsv, line 2: the group 'Ben.' is in dev and in tra"):
        prepare(recipe, tmp_path, said.append)
