"""Recipes: read, merged, checked, written, and what a wrong one gets."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dragoman.base.errors import RecipeError
from dragoman.runs.recipe.recipe import OPTIONAL
from dragoman.runs.recipe.recipe_text import shipped_recipes
from dragoman.tasks.catalogue import Recipe


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_is_whole_and_comes_back_from_its_file(
    name: str, tmp_path: Path
) -> None:
    recipe = Recipe.load(name)
    assert recipe.name == name
    recipe.save(tmp_path / "recipe.toml")
    assert Recipe.load(tmp_path / "recipe.toml") == recipe


def test_the_papers_sizes() -> None:
    base, big = Recipe.load("transformer-base"), Recipe.load("transformer-big")
    assert (base.model.model_dim, base.model.ffn_dim, base.model.attention.num_heads) == (
        512, 2048, 8,
    )  # fmt: skip
    assert (big.model.model_dim, big.model.ffn_dim, big.model.attention.num_heads) == (
        1024, 4096, 16,
    )  # fmt: skip
    for recipe in (base, big):
        assert (recipe.model.encoder_layers, recipe.model.decoder_layers) == (6, 6)
        optimizer = recipe.training.optimizer
        assert (optimizer.beta1, optimizer.beta2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
        assert recipe.training.schedule.kind == "noam"
        assert recipe.training.schedule.warmup == 4000
        assert recipe.plan.tokens_per_update == 25_000
        assert recipe.search.model_dump()["beam"] == 4
        assert (recipe.search.length_penalty, recipe.search.max_extra) == (0.6, 50)


def test_a_written_recipe_is_complete_and_holds_no_absolute_path(tmp_path: Path) -> None:
    recipe = Recipe.load("multi30k-en-de")
    text = recipe.to_toml(tmp_path)
    assert str(Path.cwd()) not in text.replace("../", "")
    assert 'source = "/' not in text
    for section in ("[data.cleaning]", "[text]", "[training.schedule]", "[search]"):
        assert section in text


def test_paths_are_relative_to_the_recipes_own_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[data]\ntrain = [{ source = "text/a.en", target = "text/a.de" }]\n', encoding="utf-8"
    )
    corpus = Recipe.load(tmp_path / "mine.toml").data.train[0]
    assert corpus.source == str(tmp_path / "text" / "a.en")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("model.model_dimm=3", ["model.model_dimm", "did you mean 'model_dim'"]),
        ("modell.model_dim=3", ["modell", "did you mean 'model'"]),
        ("data.dev.sorce='x'", ["data.dev.sorce", "'source'"]),
        ("training.updates=many", ["training.updates", "integer", "'many'"]),
        ("training.label_smoothing=1.5", ["training.label_smoothing", "less than 1"]),
        ("model.model_dim=130", ["130", "num_heads"]),
        ("training", ["section.key=value"]),
        ("source.rate=8000", ["unknown key 'source.rate'; known are kind"]),
        ("source={kind='frames', subsamples=2}", ["'source.subsamples'; did you mean 'subsample'"]),
        ("source={kind='frames', subsample=3}", ["source.subsample: Input should be 2 or 4"]),
        ("source={kind='picture', patch=0}", ["source.patch: Input should be greater"]),
        ("seed.x=1", ["seed"]),
    ],
)
def test_a_wrong_change_is_named_with_what_is_allowed(change: str, words: list[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.load("multi30k-en-de", [change])
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "source={kind='picture', rate=8000, bands=40, channels=32}",
            (
                "source.kind is 'picture', but rate, bands are keys of 'frames'. Give the keys of "
                "'picture' alone, or leave the kind as it is"
            ),
        ),
        ("source={kind='picture', rate=8000, hands=40}", "unknown key 'source.rate'"),
    ],
)
def test_a_changed_kind_is_told_in_one_line_for_all_its_keys(change: str, told: str) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.load("multi30k-en-de", [change])
    assert told in str(caught.value)
    assert len(str(caught.value).splitlines()) == (1 if "keys of" in told else 2)


def test_changes_are_toml_or_plain_strings() -> None:
    recipe = Recipe.load(
        "demo", ["training.schedule.peak=1e-9", "name=mine", 'text.user_symbols=["<a>"]']
    )
    assert recipe.training.schedule.peak == 1e-9
    assert recipe.name == "mine"
    assert recipe.text.user_symbols == ("<a>",)


def test_a_recipe_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("format = 99\nfuture = true\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"format 99.*newer"):
        Recipe.load(tmp_path / "recipe.toml")


def test_a_setting_that_was_removed_is_read_in_a_run_and_named_elsewhere(tmp_path: Path) -> None:
    """Runs of commit c1266482 hold all settings that there were then."""
    written = tmp_path / "recipe.toml"
    Recipe.load("fsdd-digits").save(written)
    text = written.read_text("utf-8")
    old = text.replace("[training.spec_augment]", "[training.spec_augment]\nwarp = 0.1")
    assert old != text
    written.write_text(old, "utf-8")
    assert Recipe.load(written) == Recipe.load("fsdd-digits")
    written.write_text(old.replace("format = 1\n", ""), "utf-8")
    gone = r"'training\.spec_augment\.warp' is no longer a setting: leave it out"
    with pytest.raises(RecipeError, match=gone):
        Recipe.load(written)
    with pytest.raises(RecipeError, match=gone):
        Recipe.load("fsdd-digits", ["training.spec_augment.warp=0.1"])


def test_names_and_files_that_are_not_there() -> None:
    with pytest.raises(RecipeError, match="Did you mean demo"):
        Recipe.load("demmo")
    with pytest.raises(RecipeError, match=r"no recipe nowhere\.toml"):
        Recipe.load("nowhere.toml")


def test_toml_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("name = \n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"bad\.toml is not valid TOML.*line 1"):
        Recipe.load(tmp_path / "bad.toml")


@pytest.mark.parametrize("line", ["a{}=1", "[a{}]", '"a b"{} = 1', "text = {{a{}=1}}"])
def test_a_key_of_very_many_parts_is_not_read(line: str, tmp_path: Path) -> None:
    """Python would take the square of their number: 20,000 take ten seconds."""
    file = tmp_path / "deep.toml"
    file.write_text(f"seed = 2\n{line.format('.a' * 20_000)}\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"deep\.toml is not valid TOML: line 2 has 20,000 dots"):
        Recipe.load(file)
    with pytest.raises(RecipeError, match="text"):
        Recipe.load("demo", [f"text={{a{'.a' * 20_000}=1}}"])


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        ("demo", {"search"}),
        ("demo-letters", {"search"}),
        ("demo-masked", {"masking"}),
        ("demo-labels", set()),
        ("demo-trees", {"search", "trees"}),
    ],
)
def test_a_recipe_has_the_sections_of_its_task(name: str, sections: set[str]) -> None:
    recipe = Recipe.load(name)
    written = tomllib.loads(recipe.to_toml(Path()))
    assert set(OPTIONAL) & written.keys() == sections
    assert Recipe.parse(written) == recipe
    # Recipes of earlier versions have every section, and some may have changed what was ignored.
    every = recipe.model_dump(mode="json", exclude_none=True)
    changed = {
        "search": {"beam": 7}, "masking": {"share": 0.3}, "trees": {"tags": "kept"},
        "boxes": {"most": 3}, "painting": {"codes": "runs/codes"},
    }  # fmt: skip
    ignored = {name: changed[name] for name in set(OPTIONAL) - sections}
    assert Recipe.parse(every) == Recipe.parse(every | ignored) == recipe
    other = {
        "search": "search.beam=3", "masking": "masking.share=0.3", "trees": "trees.tags=kept",
        "boxes": "boxes.most=3", "painting": "painting.codes=runs/codes",
    }  # fmt: skip
    for section in set(OPTIONAL) - sections:
        with pytest.raises(RecipeError, match=f"has no section {section} "):
            recipe.change([other[section]])


def test_an_empty_recipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"recipe\.toml is empty"):
        Recipe.load(tmp_path / "recipe.toml")
