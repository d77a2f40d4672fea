"""Codes and painting from pictures to pictures: a toy that learns in seconds, and what it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import Dragoman
from PIL import Image
from recipe_of_files import recipe_of
from row_files import write_bars
from tiny_cells import tiny_cell
from tiny_shapes import SIDE, write_blocks
from trained_run import trained_run

from dragoman.base.errors import DataError, RecipeError, RunError
from dragoman.data.files.corpora import read_pairs
from dragoman.forms.form import Pair
from dragoman.pictures.bitmaps import png_of
from dragoman.search.settings import SamplingSettings
from dragoman.sources.line import DRAWN
from dragoman.sources.picture.codes_form import CodesForm
from dragoman.sources.picture.form import PictureSource
from dragoman.sources.picture.picture_file import pixels_of
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.codes.evaluation import CodesEvaluation, CodesTally
from dragoman.tasks.painting.evaluation import PaintingEvaluation, code_scores, share_right
from dragoman.tasks.painting.form import count_seen
from dragoman.tasks.painting.painter import Anew, Judge, Painter, in_a_row
from dragoman.tasks.painting.runtime import PaintingRuntime
from dragoman.tasks.shared.progress_made import TrainingSummary
from dragoman.tasks.training import train
from dragoman.tasks.translation.translator import Translator

CODES = (
    "model.model_dim=32", "model.blocks=1", "plan.tokens_per_update=192", "source.patch=4",
    "training.updates=200", "training.validate_every=200", "training.schedule.peak=4e-3",
    "training.schedule.warmup=10",
)  # fmt: skip
PAINTER = (
    "model.model_dim=32", "model.ffn_dim=64", "model.attention.num_heads=4", "model.dropout=0",
    "model.encoder_layers=1", "model.decoder_layers=1", "plan.tokens_per_update=204",
    "training.updates=160", "training.validate_every=160", "training.schedule.peak=6e-3",
    "training.schedule.warmup=10", "training.average_last=0", "training.precision=fp32",
    "text.kind=word", "text.byte_fallback=false", "text.vocabulary=20",
)  # fmt: skip
CAPTIONS = ("a red block above", "a blue block left", "a green block right")


def small_recipe(given: Path, task: str, codes: Path | None = None, *more: str) -> Recipe:
    sizes = CODES if task == "codes" else PAINTER
    held = [str(given.with_name("held.tsv"))]
    recipe, _ = recipe_of(
        [str(given)], task=task, dev=held, test=held, changes=(*sizes, *more),
        codes=None if codes is None else str(codes),
    )  # fmt: skip
    return recipe


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned codes of blocks, and one that paints them."""
    folder = tmp_path_factory.mktemp("paint")
    given = write_blocks(folder, copies=2)
    write_blocks(folder, copies=1, name="held.tsv")
    for task, codes in (("codes", None), ("painting", folder / "codes")):
        recipe = small_recipe(given, task, codes)
        train(recipe, folder / task, say=lambda _: None, display=False, measure=False)
    return folder


@pytest.fixture(scope="module")
def painter(learned: Path) -> Painter:
    return Painter(Run.open(learned / "painting"))


# ---- codes


@pytest.mark.system
def test_codes_tell_pictures_again(learned: Path) -> None:
    report = CodesEvaluation()(Run.open(learned / "codes"))
    assert report.scores["rmse"] < 0.5 * report.chance
    assert report.scores["code_perplexity"] > 2 and report.scores["codes_used"] >= 4
    assert report.scores["code_bits"] == pytest.approx(np.log2(report.scores["code_perplexity"]))
    assert "codebook perplexity" in report.table() and "16 codes each" in report.table()
    kept = json.loads((learned / "codes" / "scores.json").read_text())["scores"]
    assert kept["rmse"]["value"] == report.scores["rmse"]
    again = CodesEvaluation()(Run.open(learned / "codes"), [learned / "held.tsv"])
    assert again.scores == report.scores


@pytest.mark.system
def test_chance_is_told_of_ten_pictures_and_more(learned: Path) -> None:
    run = Run.open(learned / "painting")
    chance = PaintingRuntime().chance
    pairs = list(read_pairs(run.recipe.data.train[0]))
    told = [chance(run.recipe, run.forms, pairs[:n]) for n in (9, 10)]
    assert told[0] == {} and set(told[1]) >= {"loss", "exact", "codes_right"}


def test_scores_of_codes_by_hand() -> None:
    tally = CodesTally(6)
    pictures = np.array([[[0, 10]], [[20, 30]]], np.uint8)
    tally.add(pictures, np.array([[[0, 14]], [[20, 30]]], np.uint8), np.array([[1], [4]]))
    assert tally.scores == pytest.approx(
        {"rmse": 2.0, "code_perplexity": 2.0, "codes_used": 2.0, "code_bits": 1.0,
         "loss": 4 * (2 / 255) ** 2}
    )  # fmt: skip


def test_pictures_become_codes_and_codes_pictures(learned: Path) -> None:
    form = Run.open(learned / "painting").target
    assert isinstance(form, CodesForm)
    files = [pair.source for pair in read_pairs(_listed(learned))]
    codes = form.tokens(files)
    assert {len(one) for one in codes} == {16} and len({tuple(one) for one in codes}) > 6
    assert all(3 <= one < form.size for row in codes for one in row)
    told = form.pictures(codes)
    wanted = [pixels_of(Path(file), SIDE, SIDE, 3) for file in files]
    error = np.sqrt(
        np.mean([np.square(a.astype(float) - b) for a, b in zip(told, wanted, strict=True)])
    )
    assert error == pytest.approx(
        CodesEvaluation()(Run.open(learned / "codes")).scores["rmse"], rel=1e-3
    )
    assert form.raw([codes[0]]) == [" ".join(str(one - 3) for one in codes[0])]
    cut = form.pictures([codes[0][:8]])[0]  # what is missing is black
    assert (cut[8:] == 0).all() and (cut[:8] > 0).any()


def _listed(learned: Path):  # type: ignore[no-untyped-def]
    (corpus,) = Run.open(learned / "codes").recipe.data.train
    return corpus.model_copy(update={"source": str(learned / "held.tsv")})


# ---- painting


def test_a_toy_is_learned_in_seconds(learned: Path) -> None:
    report = PaintingEvaluation()(Run.open(learned / "painting"))
    assert report.scores["exact"] > 0.5 and report.scores["codes_right"] > 0.8
    assert report.scores["rmse_of_codes"] <= report.scores["rmse"] + 1e-9
    assert report.scores["rmse_of_codes"] == pytest.approx(
        CodesEvaluation()(Run.open(learned / "codes")).scores["rmse"], rel=1e-3
    )
    assert "exact pictures" in report.table()
    assert json.loads((learned / "painting" / "scores.json").read_text())["scores"]["exact"]
    assert (
        PaintingEvaluation()(Run.open(learned / "painting"), [learned / "held.tsv"]).scores
        == report.scores
    )


def test_scores_of_paintings_by_hand() -> None:
    found = code_scores([[3, 4], [5, 6]], [[3, 4], [5, 7]])
    assert found == {"exact": 0.5, "codes_right": 0.75}


JUDGE = (
    "model.model_dim=32", "model.ffn_dim=64", "model.attention.num_heads=4", "model.dropout=0",
    "model.layers=1", "source.patch=4", "training.updates=60", "training.precision=fp32",
    "training.validate_every=60", "training.schedule.peak=6e-3", "training.schedule.warmup=10",
    "plan.tokens_per_update=204", "training.average_last=0",
)  # fmt: skip


@pytest.fixture(scope="module")
def judge(learned: Path) -> Judge:
    """A run that has the captions as labels."""
    held = [str(learned / "held.tsv")]
    files = [str(learned / "blocks.tsv")]
    recipe, _ = recipe_of(files, task="classification", dev=held, test=held, changes=JUDGE)
    train(recipe, learned / "judge", say=lambda _: None, display=False, measure=False)
    return Judge(Run.open(learned / "judge"))


def test_a_judge_chooses_the_picture_that_shows_its_caption(painter: Painter, judge: Judge) -> None:
    draw = SamplingSettings(seed=5, temperature=2.0)
    for caption in CAPTIONS:
        drawn = painter.paint(caption, count=6, sampling=draw)
        ranked = painter.paint(caption, count=6, sampling=draw, judge=judge)
        assert sorted(one.codes for one in drawn) == sorted(one.codes for one in ranked)
        liked = judge.log_probabilities([one.pixels for one in ranked], [caption] * 6)
        assert liked == sorted(liked, reverse=True) and liked[0] > liked[-1]


def test_what_a_judge_reads_is_counted(learned: Path, judge: Judge) -> None:
    report = PaintingEvaluation()(Run.open(learned / "painting"), judge=Run.open(learned / "judge"))
    scores = report.scores
    pairs = list(read_pairs(_listed(learned)))
    true = [pixels_of(Path(pair.source), SIDE, SIDE, 3) for pair in pairs]
    read = judge.captions(true)
    by_hand = sum(pair.target == one for pair, one in zip(pairs, read, strict=True)) / len(pairs)
    assert scores["judged_of_true"] == pytest.approx(by_hand) and by_hand > 0.8
    assert 0.5 < scores["judged"] <= 1 and 0.5 < scores["judged_of_codes"] <= 1
    assert "judge reads one of the captions" in report.table()
    chosen = PaintingEvaluation()(
        Run.open(learned / "painting"), changes=["sampling.seed=1", "sampling.temperature=3.0"],
        judge=Run.open(learned / "judge"), best_of=6,
    )  # fmt: skip
    drawn = PaintingEvaluation()(
        Run.open(learned / "painting"), changes=["sampling.seed=1", "sampling.temperature=3.0"],
        judge=Run.open(learned / "judge"),
    )  # fmt: skip
    assert chosen.scores["judged"] > drawn.scores["judged"]
    assert "optimistic" in chosen.table() and "optimistic" not in drawn.table()


def test_a_judge_may_write_captions(tmp_path: Path, dragoman: Dragoman) -> None:
    """What it finds probable is what ``dragoman score`` says of the files."""
    recipe = tiny_cell("translation", "transformer", "picture", tmp_path / "data")
    run = trained_run(recipe, tmp_path / "run")
    draw = np.random.default_rng(1)
    pictures = [draw.integers(0, 256, (8, 8, 1), dtype=np.uint8) for _ in range(3)]
    captions = ["0", "1", "0"]
    files = [tmp_path / f"{number}.png" for number in range(3)]
    for file, picture in zip(files, pictures, strict=True):
        file.write_bytes(png_of(picture))
    captioner = Judge(run)
    found = captioner.log_probabilities(pictures, captions)
    values = [captioner.run.source.read([str(file)])[0] for file in files]
    tokens = captioner.run.target.tokens(captions)
    engine = Translator(captioner.run).engine
    assert found == pytest.approx(
        [one.log_probability for one in engine.score(values, tokens)], abs=1e-4
    )
    assert len(set(found)) == 3
    texts = [one.text for one in Translator(captioner.run).stream(map(str, files))]
    assert captioner.captions(pictures) == texts
    (tmp_path / "files.txt").write_text("".join(f"{file}\n" for file in files))
    (tmp_path / "captions.txt").write_text("".join(f"{one}\n" for one in captions))
    said = dragoman("score", tmp_path / "run", tmp_path / "files.txt", tmp_path / "captions.txt")
    assert said.code == 0, said.err
    told = [float(line.split("\t")[0]) for line in said.out.splitlines()]
    assert told == pytest.approx(found, abs=2e-3)


def test_a_caption_of_two_orders_is_judged_by_both() -> None:
    x, y = f"{DRAWN}x", f"{DRAWN}y"
    pairs = [Pair(1, "a above b", x), Pair(2, "b below a", x), Pair(3, "a", y)]

    class Reads:
        def captions(self, pictures: list[str]) -> list[str]:
            return ["B  below a", "a above b", "b"]

    found = share_right(Reads(), pairs, [x, x, y])  # type: ignore[arg-type, list-item]
    assert found == pytest.approx(2 / 3)


def test_what_is_no_judge_is_told(learned: Path, dragoman: Dragoman) -> None:
    run = learned / "painting"
    said = dragoman("paint", run, CAPTIONS[0], "--codes", "--judge", learned / "codes")
    assert said.code == 1 and "cannot judge pictures" in said.err
    said = dragoman("evaluate", run, "--best-of", "4")
    assert said.code == 1 and "--judge" in said.err
    said = dragoman("evaluate", learned / "codes", "--best-of", "4")
    assert said.code == 1 and "--best-of" in said.err


def test_the_verb_paints_the_best_of_several(
    learned: Path, judge: Judge, dragoman: Dragoman
) -> None:
    run, draws = learned / "painting", ("--sample", "--temperature", "2", "--seed", "5")
    said = dragoman("paint", run, CAPTIONS[0], "--codes", "--judge", learned / "judge",
                    "--best-of", "6", *draws)  # fmt: skip
    assert said.code == 0, said.err
    every = dragoman("paint", run, CAPTIONS[0], "--codes", "--count", "6", *draws).out.splitlines()
    pictures = Painter(Run.open(run)).paint(
        CAPTIONS[0], count=6, sampling=SamplingSettings(seed=5, temperature=2.0)
    )
    liked = judge.log_probabilities([one.pixels for one in pictures], [CAPTIONS[0]] * 6)
    assert said.out.splitlines() == [every[int(np.argmax(liked))]]


def test_a_picture_has_exactly_its_codes(painter: Painter) -> None:
    for how in (
        {"beam": 1}, {"beam": 5, "count": 5}, {"count": 6, "sampling": SamplingSettings(seed=2)},
        {"count": 6, "sampling": SamplingSettings(temperature=50.0)},
    ):  # fmt: skip
        for caption in CAPTIONS:
            found = painter.paint(caption, **how)  # type: ignore[arg-type]
            assert len(found) == how.get("count", 1)
            for one in found:
                assert len(one.ids) == len(one.codes) == len(one.token_log_probabilities) == 16
                assert all(0 <= code < 240 for code in one.codes)
                assert one.pixels.shape == (SIDE, SIDE, 3) and str(one) == caption


def test_the_same_seed_draws_the_same_pictures(painter: Painter) -> None:
    def drawn(seed: int) -> list[tuple[int, ...]]:
        how = SamplingSettings(seed=seed, temperature=3.0)
        return [one.codes for one in painter.paint(CAPTIONS[0], count=8, sampling=how)]

    assert drawn(1) == drawn(1) != drawn(2)
    assert len(set(drawn(1))) > 1


def test_a_caption_that_comes_again_is_drawn_anew(painter: Painter) -> None:
    own = SamplingSettings(seed=3, temperature=3.0)
    settings = painter.engine.search_settings.model_copy(update={"sampling": own})
    given = [CAPTIONS[0], CAPTIONS[1], CAPTIONS[0], CAPTIONS[0], CAPTIONS[1]]
    found = [one.codes for one, *_ in painter.stream(given, settings)]
    for codes, caption, seed in zip(found, given, (3, 3, 4, 5, 4), strict=True):
        alone = painter.paint(caption, sampling=own.model_copy(update={"seed": seed}))
        assert codes == alone[0].codes
    assert len(set(found)) == len(found)
    last = own.model_copy(update={"seed": 2**63 - 1})
    anew = Anew(settings.model_copy(update={"sampling": last}))
    drawn = [anew("a").sampling, anew("a").sampling]
    assert [one.seed for one in drawn if one is not None] == [2**63 - 1, 0]
    searched = Anew(settings.model_copy(update={"sampling": None}))
    assert searched("a") is searched("a")


@pytest.mark.system
def test_of_a_name_there_are_many_right_pictures(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are drawn, each anew; other pictures of the same name are no leak, and none is exact."""
    given = [str(file) for file in write_bars(tmp_path, 160)]
    test = [str(file) for file in write_bars(tmp_path / "test", 40, seed=2)]
    runs = {"codes": tmp_path / "codes", "painting": tmp_path / "painting"}
    for task, folder in runs.items():
        codes = None if task == "codes" else str(runs["codes"])
        sizes = CODES if task == "codes" else (*PAINTER, "training.updates=60")
        recipe, _ = recipe_of(given, task=task, test=test, changes=sizes, codes=codes)
        said: list[str] = []
        train(recipe, folder, say=said.append, display=False, measure=False)
        assert not any("learned from" in line for line in said)
    assert recipe.search.sampling is not None and recipe.training.metric == "loss"
    run = Run.open(runs["painting"])
    # Whether it has learned is told by its loss, beside that of guessing by frequency.
    guess = run.notes()["text"]["by_frequency"]
    for loss, found in ((0.8 * guess, None), (guess, "token frequencies alone")):
        why = PaintingRuntime().hardly_learned(
            run, TrainingSummary(1, 1.0, loss, {"exact": 0.0, "loss": loss}, (), 1)
        )
        assert why is found if found is None else found in str(why)
    with caplog.at_level("WARNING"):
        report = PaintingEvaluation()(run)
        assert not caplog.records
        PaintingEvaluation()(run, [Path(file) for file in given])
        assert "has learned from" in caplog.text
    by_name: dict[str, set[str]] = {}
    for picture in report.pictures:
        by_name.setdefault(picture.caption, set()).add(picture.text)
    assert by_name.keys() == {"0", "1"} and all(len(texts) > 3 for texts in by_name.values())


def test_a_painter_is_one_folder(learned: Path, painter: Painter, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(learned / "painting", moved)
    recipe = (moved / "recipe.toml").read_text()
    (moved / "recipe.toml").write_text(recipe.replace("codes = ", "# codes = "))
    for caption in CAPTIONS:
        (one,), (other,) = painter.paint(caption), Painter(Run.open(moved)).paint(caption)
        assert one.codes == other.codes and (one.pixels == other.pixels).all()
    weights = moved / "codes.safetensors"
    kept = weights.read_bytes()
    weights.write_bytes(kept[:-4] + b"\0\0\0\0")
    with pytest.raises(
        RunError, match=r"codes\.safetensors is not the file that the painter was trained with"
    ):
        Painter(Run.open(moved)).paint(CAPTIONS[0])
    weights.unlink()
    with pytest.raises(RunError, match="the painter needs it"):
        Painter(Run.open(moved)).paint(CAPTIONS[0])


def test_a_painter_may_take_the_codes_of_another_painter(learned: Path, tmp_path: Path) -> None:
    given = learned / "blocks.tsv"
    recipe = small_recipe(given, "painting", learned / "painting", "training.updates=1")
    train(recipe, tmp_path / "again", say=lambda _: None, display=False, measure=False)
    first, second = learned / "painting", tmp_path / "again"
    for kept in ("codes.safetensors", "codes.json"):
        assert (second / kept).read_bytes() == (first / kept).read_bytes()


def test_pictures_that_codes_have_learned_from_are_told(learned: Path) -> None:
    run = Run.open(learned / "painting")
    form = run.target
    assert isinstance(form, CodesForm)
    (corpus,) = run.recipe.data.train
    trained = list(read_pairs(corpus))
    # The first copies in training are byte for byte those that are held out.
    assert count_seen(form.seen, trained) == len(trained)
    assert PaintingEvaluation()(Run.open(learned / "painting")).seen == 12
    said = run.task.check_held(run.recipe, {"test": trained}, run.forms)
    assert "the codes were learned from 24 of the 24 test pictures" in said[0]


# ---- the verb


def test_the_verb_paints(
    learned: Path, dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, file = learned / "painting", tmp_path / "out.png"
    said = dragoman("paint", run, *CAPTIONS, "--count", "2", "--scale", "3", "--to", file)
    assert said.code == 0 and not said.out, said.err
    with Image.open(file) as drawn:
        assert drawn.size == ((2 * SIDE + 2) * 3, (3 * SIDE + 4) * 3)
    said = dragoman("paint", run, "--codes", stdin="".join(f"{one}\n" for one in CAPTIONS).encode())
    lines = [line.split("\t") for line in said.out.splitlines()]
    assert [line[0] for line in lines] == list(CAPTIONS)
    assert all(len(line[2].split()) == 16 and float(line[1]) <= 0 for line in lines)
    said = dragoman("paint", run, "a purple block above", "--sample", "--seed", "4")
    assert said.code == 0 and "'purple'" in said.err and "has no colours" in said.err
    assert said.out == "a purple block above\n"
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("FORCE_COLOR", "1")
    said = dragoman("paint", run, CAPTIONS[0])
    assert said.out.count("\N{UPPER HALF BLOCK}") == SIDE * SIDE // 2 and "note" not in said.err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["  "], "the caption is empty"),
        (["block " * 400], "has 401 tokens, and the model reads 128 at most"),
        ([CAPTIONS[0], "--seed", "3"], "Add --sample"),
        ([CAPTIONS[0], "--sample", "--beam", "3"], "Leave one out"),
        ([CAPTIONS[0], "--count", "65"], "Use 1 to 64"),
        ([CAPTIONS[0], "--to", "nowhere/out.png"], "there is no folder nowhere"),
        ([CAPTIONS[0], "--to", "out.jpg"], "Use a name that ends in .png"),
        ([CAPTIONS[0], "--to", "out.png", "--scale", "65"], "Use 1 to 64"),
    ],
)
def test_what_cannot_be_painted_is_told(
    learned: Path, dragoman: Dragoman, given: list[str], told: str
) -> None:
    said = dragoman("paint", learned / "painting", *given)
    assert said.code != 0 and told in said.err and "Traceback" not in said.err
    assert not Path("out.png").exists()


def test_other_runs_do_not_paint(learned: Path, dragoman: Dragoman) -> None:
    said = dragoman("paint", learned / "codes", CAPTIONS[0])
    assert said.code == 1 and "is a picture coder, which does not paint" in said.err
    said = dragoman("look", learned / "codes", "a.png")
    assert said.code == 1 and "makes codes for a painter" in said.err


def test_a_row_of_pictures() -> None:
    one, other = np.zeros((2, 2, 1), np.uint8), np.full((2, 3, 1), 9, np.uint8)
    assert in_a_row([one, other], gap=1)[0, :, 0].tolist() == [0, 0, 255, 9, 9, 9]


# ---- training: what is refused


def test_what_a_painter_cannot_learn_from_is_told(learned: Path, tmp_path: Path) -> None:
    given = learned / "blocks.tsv"
    recipe = small_recipe(given, "painting")
    with pytest.raises(DataError, match="--codes RUN"):
        train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    with pytest.raises(RunError, match="there is no run folder"):
        small_recipe(given, "painting", tmp_path / "none")
    with pytest.raises(RunError, match="has no codes"):
        small_recipe(given, "painting", tmp_path)
    with pytest.raises(RecipeError, match="--codes works only with --task painting"):
        small_recipe(given, "codes", learned / "codes")
    with pytest.raises(RecipeError, match="give a list of pictures"):
        recipe_of([str(learned / "codes" / "recipe.toml.txt")], task="codes")
    (tmp_path / "words.tsv").write_text("a\tb\n" * 5, encoding="utf-8")
    with pytest.raises(RecipeError, match="give a list of pictures"):
        recipe_of([str(tmp_path / "words.tsv")], task="codes")
    for task in ("codes", "painting"):
        with pytest.raises(RecipeError, match="--texts works only with --task language-model"):
            recipe_of([str(given)], task=task, texts="line", codes=None)
    begun = Run.open(learned / "codes")
    with pytest.raises(RecipeError, match="--init-part encoder: a painter starts from all"):
        recipe_of([str(given)], task="painting", start_from=begun, take="encoder")
    for change, told in (
        ("search.min_length=3", "its own number of codes"),
        ('model.tie="all"', "cannot share a vocabulary"),
        ('source.kind="picture"', "reads captions"),
    ):
        with pytest.raises(RecipeError, match=told):
            small_recipe(given, "painting", learned / "codes", change)


def test_each_patch_of_a_picture_has_its_place(learned: Path) -> None:
    recipe = Recipe.load(learned / "codes" / "recipe.toml")
    assert isinstance(recipe.source, PictureSource)
    count = recipe.source.patches
    assert recipe.change([f"plan.max_source={count}", f"plan.max_target={count}"])
    for side in ("source", "target"):
        with pytest.raises(RecipeError, match=f"a picture has {count} patches, and plan.max_so"):
            recipe.change([f"plan.max_{side}={count - 1}"])


def test_codes_of_other_pictures_do_not_fit(learned: Path, tmp_path: Path) -> None:
    recipe = small_recipe(
        learned / "blocks.tsv", "painting", learned / "codes", "plan.max_target=16"
    )
    with pytest.raises(DataError, match="has 16 codes, and the model learns 15 at most"):
        train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    assert not (tmp_path / "run").exists()
    known = Run.open(learned / "codes")
    assert isinstance(known.recipe.source, PictureSource)
    other = known.recipe.change([f"source.height={2 * known.recipe.source.height}"])
    with pytest.raises(DataError, match=r"was trained on pictures of .* Set the same in .source."):
        train(
            other, tmp_path / "run", start_from=known, say=lambda _: None, display=False,
            measure=False,
        )  # fmt: skip
    broken = tmp_path / "broken"
    shutil.copytree(learned / "codes", broken)
    (broken / "model.safetensors").unlink()
    recipe = small_recipe(learned / "blocks.tsv", "painting", broken)
    with pytest.raises(RunError, match=r"has no model\.safetensors"):
        train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    shutil.copyfile(learned / "painting" / "model.safetensors", broken / "model.safetensors")
    with pytest.raises(RunError, match=r"does not hold the weights that codes\.json describes"):
        train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)


def test_a_missing_picture_is_named(learned: Path, tmp_path: Path) -> None:
    given = write_blocks(tmp_path)
    write_blocks(tmp_path, name="held.tsv")
    recipe = small_recipe(given, "painting", learned / "codes")
    file = tmp_path / "held" / "red-left-0.png"
    file.write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"held\.tsv, line 3: .*red-left-0\.png"):
        train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    file.unlink()
    with pytest.raises(DataError, match=r"held\.tsv, line 3: .*red-left-0\.png"):
        train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
