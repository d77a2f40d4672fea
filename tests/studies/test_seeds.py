"""Several seeds of one recipe: runs beside each other, one system in a comparison."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Dragoman
from tiny_recipe import TINY

from dragoman.studies.seeds import summary
from dragoman.tasks.catalogue import Recipe

pytestmark = pytest.mark.system


def test_several_seeds_are_several_runs_and_one_system(
    dragoman: Dragoman, parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    group = tmp_path / "group"
    settings = [f"--set={change}" for change in TINY]
    said = dragoman("train", *parallel_text, "--to", group, "--seeds", "3,1", *settings)
    assert said.code == 0, said.err
    assert "2 runs in" in said.out and "seeds 1, 3" in said.out and " sd " in said.out
    first, second = (Recipe.load(group / f"seed-{n}" / "recipe.toml") for n in (3, 1))
    assert (first.seed, second.seed) == (3, 1)
    assert first.change(["seed=1"]) == second
    weights = [(group / f"seed-{n}" / "model.safetensors").read_bytes() for n in (3, 1)]
    assert weights[0] != weights[1]
    said = dragoman("train", *parallel_text, "--to", group, "--seeds", "5", *settings)
    assert said.code == 1 and "already contains runs" in said.err
    # Seeds that were not begun are trained by resume; those that are done stay as they are.
    (group / "seeds.json").write_text('{"seeds": [3, 1, 2]}', encoding="utf-8")
    said = dragoman("resume", group)
    assert said.code == 0 and "3 runs in" in said.out, said.err
    assert (group / "seed-3" / "model.safetensors").read_bytes() == weights[0]
    assert Recipe.load(group / "seed-2" / "recipe.toml").seed == 2
    said = dragoman("compare", group, group / "seed-3", "--samples", "20", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert [len(system["runs"]) for system in found["systems"]] == [3, 1]
    one, other = found["metrics"]["BLEU"]["systems"]
    assert len(one["runs"]) == 3 and one["deviation"] is not None and other["deviation"] is None
    for wrong, told in (("1,x", "separated by commas"), ("1,1", "twice")):
        said = dragoman("train", *parallel_text, "--to", tmp_path / "x", "--seeds", wrong)
        assert said.code == 1 and told in said.err


def test_scores_of_other_texts_have_no_mean(tmp_path: Path) -> None:
    for seed, (bleu, chrf, refs) in enumerate([(30.0, 50.0, 1), (34.0, 60.0, 2)], 1):
        folder = tmp_path / f"seed-{seed}"
        folder.mkdir()
        Recipe.load("demo", [f"seed={seed}"]).save(folder / "recipe.toml")
        scores = {
            "BLEU": {"value": bleu, "signature": "nrefs:1"},
            "chrF": {"value": chrf, "signature": f"nrefs:{refs}"},
        }
        found = {"test": "the demo's test set", "sentences": 9, "scores": scores}
        (folder / "scores.json").write_text(json.dumps(found), encoding="utf-8")
    told = summary(tmp_path).splitlines()
    assert told[1].startswith("chrF: some of the runs were measured on other texts")
    assert told[2:] == ["BLEU    32.00 sd 2.83  (30.00, 34.00)"]
