"""A random search: what is drawn, trials that fail, going on, the best recipe."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import Dragoman
from tiny_tasks import tiny_recipe_of

from dragoman.base.errors import DragomanError
from dragoman.studies import records
from dragoman.studies.search_space import Range, check_space, draw, parse_over, usual
from dragoman.studies.sweep import Sweep, SweepPlan
from dragoman.tasks import training
from dragoman.tasks.catalogue import Recipe
from dragoman.training.fastest_way import Throughput
from dragoman.training.trainer import Outcome


@cache
def demo_recipe() -> Recipe:
    return Recipe.load("demo")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe that learns in a second or two, and whose learning rate of 100 diverges: with so
    strong a decay the weights grow a thousandfold at every update."""
    changes = (
        "training.updates=30", "training.validate_every=10", "training.max_bad_updates=3",
        "training.optimizer.weight_decay=10",
    )  # fmt: skip
    tiny_recipe_of("classification", tmp_path, *changes).save(tmp_path / "tiny.toml")
    return tmp_path / "tiny.toml"


def values_of(trials: list[tuple[str, ...]], key: str) -> list[str]:
    return [change.split("=")[1] for trial in trials for change in trial if change.startswith(key)]


def test_a_trial_is_the_same_whatever_else_is_searched() -> None:
    rate = parse_over("training.schedule.peak=1e-4..1e-2:log")
    dropout = parse_over("model.dropout=0.1,0.2,0.3")
    both = draw([rate, dropout], demo_recipe(), 12, 5)
    assert both[0] == ()
    assert draw([rate, dropout], demo_recipe(), 5, 5) == both[:5]
    alone = draw([rate], demo_recipe(), 12, 5)
    assert values_of(alone, "training") == values_of(both, "training")
    assert draw([rate], demo_recipe(), 12, 6)[1:] != alone[1:]
    # One setting's draws say nothing of another's.
    others = [
        parse_over(f"{key}=0.01..0.9") for key in ("model.dropout", "model.activation_dropout")
    ]
    first, second = (values_of(draw(others, demo_recipe(), 6, 5), over.key) for over in others)
    assert not set(first) & set(second)


def test_a_range_by_logarithms_is_even_by_logarithms() -> None:
    rate = parse_over("training.schedule.peak=1e-4..1e-2:log")
    rates = [float(value) for value in values_of(draw([rate], demo_recipe(), 120, 1), "training")]
    assert min(rates) >= 1e-4 and max(rates) <= 1e-2
    assert 0.4 < sum(value < 1e-3 for value in rates) / len(rates) < 0.6
    even = parse_over("training.schedule.peak=1e-4..1e-2")
    rates = [float(value) for value in values_of(draw([even], demo_recipe(), 120, 1), "training")]
    assert sum(value < 1e-3 for value in rates) / len(rates) < 0.2
    whole = parse_over("training.schedule.warmup=10..12")
    assert isinstance(whole, Range)
    assert {whole.value(share / 100) for share in range(100)} == {"10", "11", "12"}


def test_trials_differ() -> None:
    dropout = parse_over("model.dropout=0.1,0.2,0.3")  # 0.1 is the recipe's own
    drawn = draw([dropout], demo_recipe(), 3, 1)
    assert sorted(drawn) == [(), ("model.dropout=0.2",), ("model.dropout=0.3",)]
    with pytest.raises(DragomanError, match="--trials 3"):
        draw([dropout], demo_recipe(), 4, 1)


def test_what_is_usual_suits_the_kind() -> None:
    assert [str(over) for over in usual(demo_recipe())] == [
        "training.schedule.peak=0.0005..0.008:log",
        "model.dropout=0.1,0.2,0.3,0.4",
    ]
    rate, _ = usual(Recipe.load("transformer-base"))
    _, dropout = usual(Recipe.load("demo-recurrent"))
    assert str(rate).startswith("training.schedule.factor=0.25..4")
    assert str(dropout) == "model.dropout=0.2,0.3,0.4,0.5"
    for name in ("demo", "transformer-base", "demo-recurrent", "demo-letters"):
        check_space(usual(Recipe.load(name)), Recipe.load(name))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("seed=1,2", "must be the same in all trials"),
        (
            "data.split.dev=0.1,0.2",
            "the text that is learned and measured, which must be the same in all trials",
        ),
        ("data.cleaning.max_length=40,80", "must be the same in all trials"),
        ("evaluation.dev_sentences=10,20", "how trials are measured"),
        ("evaluation.dev_beam=1,4", "how trials are measured"),
        ("training.patience=1,2", "the length of a training"),
        ("training.validate_every=100,200", "how often dev is looked at"),
        ("plan.max_target=20,200", "which of the dev examples are measured"),
        ("model.dropout", "section.key=VALUES"),
        ("model.dropout=0.1", "has only one value"),
        ("model.dropout=0.1,0.1", "twice"),
        ("model.dropout=0.3..0.1", "empty range"),
        ("model.dropout=0..0.3:log", "above 0"),
        ("model.dropout=a..b", "is not a range"),
        ("model.dropuot=0.1,0.2", "did you mean 'dropout'"),
        ("model.attention.num_heads=3,5", "not a multiple of num_heads"),
        ("training.updates=100,200", "must be the same in all trials"),
        ("training.schedule.factor=1,2", "training.schedule.peak"),
    ],
)
def test_what_cannot_be_searched_is_said_before_anything_is_made(
    dragoman: Dragoman, wrong: str, told: str
) -> None:
    said = dragoman("sweep", "demo", "--search-space", wrong, "--to", "x")
    assert said.code == 1 and told in said.err and not Path("x").exists()


@pytest.mark.parametrize(
    ("demo", "setting", "told"),
    [
        ("demo-masked", "masking.share=0.05,0.3", "how trials are measured"),
        (
            "demo-masked",
            "text.vocabulary=300,800",
            "what a token is, by which the loss is measured",
        ),
        ("demo-masked", "plan.context=16,64", "which windows of dev are measured"),
        ("demo-letters", "text.normalization=nfkc,nfkc_cf", "how the bytes of dev are counted"),
        ("demo-letters", "evaluation.window=16,64", "how trials are measured"),
        ("demo-trees", "trees.tags=none,kept", "the text that is learned and measured"),
        ("demo-labels", "seed=1..9", "the luckiest seed would win"),
    ],
)
def test_what_changes_the_measure_is_refused(
    dragoman: Dragoman, demo: str, setting: str, told: str
) -> None:
    said = dragoman("sweep", demo, "--search-space", setting, "--to", "x")
    assert said.code == 1 and told in said.err and not Path("x").exists()
    assert len(said.err.splitlines()) == 1


def test_what_is_measured_alike_may_be_searched() -> None:
    for name, setting in (
        ("multi30k-en-de", "text.vocabulary=4000,8000"),  # judged by BLEU
        ("demo", "text.sampling=0.1,0.2"),
        ("demo-labels", "plan.context=16,64"),
        ("demo-labels", "text.vocabulary=300,600"),
        ("demo-letters", "text.kind=char,bpe"),
        ("demo-letters", "plan.context=32,64"),
        ("demo-trees", "text.vocabulary=300,400"),
    ):
        recipe, space = Recipe.load(name), [parse_over(setting)]
        check_space(space, recipe)
        assert len(draw(space, recipe, 2, 1)) == 2
    by_token = Recipe.load("demo", ["training.metric=perplexity"])
    with pytest.raises(DragomanError, match="or judge them by BLEU: --set"):
        check_space([parse_over("text.vocabulary=400,800")], by_token)
    learned = Recipe.load("demo", ["model.positions.kind=learned", "model.positions.maximum=64"])
    positions = parse_over("model.positions.maximum=32,64")
    with pytest.raises(DragomanError, match="is measured on other dev examples"):
        draw([positions], learned, 2, 1)


def test_language_models_are_judged_by_bits_per_byte(recipe: Path, tmp_path: Path) -> None:
    """Fewer nats a token are no better where tokens are shorter."""
    letters = Recipe.load("demo-letters")
    plan = SweepPlan(over=["text.kind=bpe,word"], seed=1, trials=2)
    records.begin(tmp_path / "sweep", "sweep.json", plan, letters, None, print)
    (tmp_path / "sweep" / "records").mkdir()
    found = Sweep.open(tmp_path / "sweep")
    for one, loss, bits in zip(found.trainings, (1.2, 4.0), (2.17, 1.07), strict=True):
        scores = {"loss": loss, "perplexity": 2.7**loss, "bits_per_byte": bits}
        record = records.Record(
            name=one.name, changes=list(one.changes), ended="finished", scores=scores
        )
        path = tmp_path / "sweep" / "records" / f"{one.name}.json"
        path.write_text(record.model_dump_json(), encoding="utf-8")
    assert [one.name for one in found.ranked] == ["trial-2", "trial-1"]
    header, rows = found.rows()
    assert header[2] == "dev bits per byte" and rows[0][2] == "1.070"
    assert found.charts() == [] and "dev bits per byte" in found.table()


def test_trials_one_of_which_diverges(
    dragoman: Dragoman, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sweep"
    words = ("sweep", recipe, "--search-space", "training.schedule.peak=2e-3,100", "--to", folder)
    said = dragoman(*words, "--trials", "2")
    assert said.code == 0, said.err
    said = dragoman(*words, "--trials", "3")  # the two that are there stay as they are
    assert said.code == 0 and "3 of 3" in said.out and "1 of 3" not in said.out, said.err
    found = Sweep.open(folder)
    records = {record.name: record for record in found.records}
    (failed,) = (record for record in records.values() if record.ended == "untrainable")
    assert failed.changes == ["training.schedule.peak=100"] and "not finite" in failed.why
    trained = [record for record in records.values() if record is not failed]
    assert [record.updates for record in trained] == [30, 30]
    assert all(record.tokens > 0 for record in trained)
    assert found.ranked[-1] == failed and "failed" in said.out
    # The best recipe is the one that was given, with what was best, and can be trained.
    best = Recipe.load(folder / "best.toml")
    assert found.best is not None
    assert best == Recipe.load(recipe).change(found.best.changes)
    assert found.best.scores["macro_f1"] == max(record.scores["macro_f1"] for record in trained)
    assert not (folder / "runs").exists()
    ElementTree.fromstring((folder / "sweep.svg").read_text(encoding="utf-8"))
    with (folder / "sweep.csv").open(encoding="utf-8") as file:
        rows = {row["trial"]: row for row in csv.DictReader(file)}
    assert float(rows[found.best.name]["dev macro_f1"]) == pytest.approx(
        found.best.scores["macro_f1"]
    )
    assert rows[failed.name]["training.schedule.peak"] == "100"

    # A record that is missing is made again, and is the same but for the time that it took.
    path = folder / "records" / "trial-1.json"
    before = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    stopped = Outcome(10, "interrupted", None, 0)
    with monkeypatch.context() as patch:
        patch.setattr(training, "begin_or_resume", lambda *_, **__: stopped)
        assert dragoman("resume", folder).code == 130
    assert not path.exists()
    assert dragoman("resume", folder).code == 0
    after = json.loads(path.read_text(encoding="utf-8"))
    assert (after["scores"], after["tokens"]) == (before["scores"], before["tokens"])

    # Another search does not go into the same folder.
    for option, value, told in (
        ("--seed", 2, "--seed"),
        ("--set", "model.dropout=0.5", "the recipe"),
        ("--minutes", 1, "--minutes"),
    ):
        said = dragoman(*words, option, value)
        assert said.code == 1 and f"another sweep ({told}: not the same" in said.err
    path.write_text(path.read_text(encoding="utf-8").replace("[]", '["a=1"]', 1), encoding="utf-8")
    said = dragoman("resume", folder)
    assert said.code == 1 and "another training" in said.err
    path.write_text("{}", encoding="utf-8")
    said = dragoman("resume", folder)
    assert said.code == 1 and "damaged" in said.err


def test_minutes_become_equal_updates(
    dragoman: Dragoman, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that takes a quarter of a second for each."""
    folder = tmp_path / "sweep"
    slow = Throughput(tokens_per_second=2000, seconds_per_update=0.25, updates=3, peak_bytes=1)
    monkeypatch.setattr(training, "measure_throughput", lambda *_, **__: slow)
    said = dragoman("sweep", recipe, "--trials", "2", "--minutes", "0.1", "--to", folder)
    assert said.code == 0, said.err
    found = Sweep.open(folder)
    assert 1 < found.base.training.updates <= 12, "three seconds for each trial"
    assert found.base.training.minutes == 0
    assert [record.updates for record in found.records] == [found.base.training.updates] * 2
    # What comes out is the whole training.
    assert Recipe.load(folder / "best.toml").training.updates == 30


def test_a_folder_with_something_else_is_left_alone(
    dragoman: Dragoman, tiny_run: Path, recipe: Path, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("Dear", encoding="utf-8")
    for folder, told in ((tmp_path / "full", "letter.txt"), (tiny_run, "is already a run")):
        said = dragoman("sweep", recipe, "--to", folder)
        assert said.code == 1 and told in said.err
        assert not (folder / "sweep.json").exists()
    said = dragoman("sweep", recipe, "--set", "training.validate_every=0", "--to", tmp_path / "x")
    assert said.code == 1 and "validate_every" in said.err


def test_a_run_that_is_kept_can_be_used(recipe: Path, tmp_path: Path) -> None:
    given = Recipe.load(recipe)
    folder = tmp_path / "several"
    records.begin(folder, "plan.json", records.StudyPlan(), given, None, print)
    trainings = [records.TrainingRecord("one", ("model.dropout=0.5",))]
    assert records.train_all(folder, trainings, say=lambda _: None, again="", keep=True)
    assert Recipe.load(folder / "runs" / "one" / "recipe.toml").model.model_dump()["dropout"] == 0.5
