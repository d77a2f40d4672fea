"""What recordings with texts get when nothing else is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from row_files import write_tones

from dragoman.data.corpora import read_pairs
from dragoman.data.split import side_of_pair
from dragoman.errors import DataError, RecipeError
from dragoman.sizing.from_files import recipe_of


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_tones(tmp_path_factory.mktemp("spoken") / "talks", 12)
    for file in root.rglob("*.wav"):
        file.with_suffix(".txt").write_text(f"this is a {file.parent.name} tone", "utf-8")
    return root


@pytest.mark.parametrize("family", [None, "lstm"])
def test_a_recipe_that_transcribes(talks: Path, family: str | None) -> None:
    recipe, epochs = recipe_of([str(talks)], languages="en", model=family)
    assert recipe.task == "translation" and recipe.source.kind == "frames" and epochs
    assert recipe.source.rate == 8_000 and recipe.training.ctc_weight
    assert (recipe.languages.source, recipe.languages.target) == ("en", "en")
    assert recipe.text.kind == "char" and recipe.name == "talks"


def test_speakers_stand_on_one_side(talks: Path) -> None:
    said: list[str] = []
    recipe, _ = recipe_of([str(talks)], groups="_([a-z]+)_", say=said.append)
    sides: dict[str, set[str]] = {}
    for pair in read_pairs(recipe.data.train[0]):
        sides.setdefault(pair.group, set()).add(side_of_pair(pair, recipe.data.split))
    assert len(sides) == 4 and all(len(one) == 1 for one in sides.values())
    assert not any("who speaks" in line for line in said)


def test_a_warning_where_nothing_tells_speakers(talks: Path) -> None:
    said: list[str] = []
    recipe, _ = recipe_of([str(talks)], test=[str(talks)], say=said.append)
    assert recipe.data.test is not None and recipe.data.test.format == "spoken"
    recipe_of([str(talks)], dev=[str(talks)], test=[str(talks)], say=said.append)
    assert not said  # too few for a part to be held out


def test_what_does_not_go_with_recordings(talks: Path, tmp_path: Path) -> None:
    for options in ({"columns": "1,2"}, {"texts": "text"}, {"model": "conv"}, {"groups": "("}):
        with pytest.raises(RecipeError, match=f"--{next(iter(options))}"):
            recipe_of([str(talks)], **options)  # type: ignore[arg-type]
    write_tones(tmp_path / "tones", 1)
    with pytest.raises(DataError, match="--task classification"):
        recipe_of([str(tmp_path / "tones")])
