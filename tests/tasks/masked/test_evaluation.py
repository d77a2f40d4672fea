"""A model that reads and fills in: the same trainer and files, a verb and figures of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Dragoman
from recipe_of_files import recipe_of
from trained_run import on_texts, trained_run

import dragoman as package
from dragoman.base.errors import DragomanError, RecipeError, RunError
from dragoman.data.batches import Tokens
from dragoman.data.chunks import CorpusRange
from dragoman.data.store import TextPieces
from dragoman.engine.engine import Engine
from dragoman.engine.settings import EngineSettings
from dragoman.nn.layout import Sequences
from dragoman.runs.prepare import prepare
from dragoman.tasks.catalogue import TASKS, Recipe, Run
from dragoman.tasks.language_model.writer import Writer
from dragoman.tasks.masked.evaluation import MaskedEvaluation, MaskedSums, with_blanks
from dragoman.tasks.masked.filler import Filler
from dragoman.tasks.shared.examples import MaskedTexts
from dragoman.tasks.training import resume, train

LIKES = {"cat": "milk", "bear": "honey", "cow": "grass", "child": "cake"}
SMALL = [
    "model.model_dim=48", "model.ffn_dim=96", "model.layers=2", "model.dropout=0.0",
    "plan.tokens_per_update=768", "plan.context=32", "text.vocabulary=120",
    "training.updates=150", "training.validate_every=50", "training.schedule.warmup=20",
    "training.schedule.peak=5e-3", "training.precision=fp32",
]  # fmt: skip


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Who likes what: the one tells the other."""
    draw = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("text") / "likes.txt"
    with path.open("w", encoding="utf-8") as file:
        for _ in range(500):
            animal = draw.choice(list(LIKES))
            size, when = draw.choice(["small", "old", "good"]), draw.choice(["today", "always"])
            file.write(f"The {size} {animal} likes {LIKES[animal]} {when}.\n")
    return path


def recipe_of_likes(texts: Path, *changes: str) -> Recipe:
    return on_texts("demo-masked", texts, *SMALL, *changes)


@pytest.fixture(scope="module")
def likes(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "likes"
    return trained_run(recipe_of_likes(texts), folder)


def log_probabilities(run: Run, values: list[int]) -> torch.Tensor:
    """(places, V), by the model itself."""
    model = run.model()
    with torch.no_grad():
        rows = model.encode(Sequences.of([torch.tensor(values)])).rows
        return torch.log_softmax(model.project(rows).double(), -1)


@pytest.mark.system
def test_it_learns_and_says_so_in_its_own_terms(likes: Run) -> None:
    validations = [line for line in likes.metrics() if line["kind"] == "validation"]
    assert set(validations[0]["scores"]) == set(TASKS["masked"].metrics)
    first, last = validations[0]["scores"], validations[-1]["scores"]
    assert last["loss"] < first["loss"] < math.log(likes.target.size)
    assert last["accuracy"] > 0.6 > 1 / 3
    assert last["perplexity"] == pytest.approx(math.exp(last["loss"]))
    assert likes.metadata()["metric"] == "loss"
    shown = validations[-1]["samples"][0]
    assert "___" in shown["source"] and "___" not in shown["reference"]
    words = zip(shown["source"].split(), shown["reference"].split(), strict=True)
    assert all("___" in one or one == other for one, other in words)


def test_it_fills_a_blank_with_what_the_rest_tells(likes: Run) -> None:
    filler = Filler(likes)
    for animal, food in LIKES.items():
        found = filler(f"The old {animal} likes ___ today.")
        assert str(found) == f"The old {animal} likes {food} today."
        (candidates,) = found.blanks
        assert len(candidates) == 5 and candidates[0].text == food
        assert candidates[0].probability > 0.5 > candidates[1].probability
        assert found.score == pytest.approx(math.log(candidates[0].probability))
        assert str(filler(f"The old ___ likes {food} today.")) == str(found).replace("___", animal)


def test_probabilities_are_the_models_own(likes: Run) -> None:
    filler, vocabulary = Filler(likes), likes.target_text
    before = vocabulary.encode_lists(["The old cat likes"])[0]
    behind = vocabulary.encode_lists(["today."])[0]
    assert vocabulary.mask is not None
    values = [*before, vocabulary.mask, *behind, vocabulary.eos]
    assert filler.source_ids("The old cat likes ___ today.") == values
    expected = log_probabilities(likes, values)[len(before)].exp()
    (candidates,) = filler("The old cat likes ___ today.", best=200).blanks
    for one in candidates:
        assert one.probability == pytest.approx(float(expected[one.ids[0]]), rel=1e-4, abs=1e-9)
        assert vocabulary.pieces(one.ids)[0].startswith("▁") and one.text
    assert [one.probability for one in candidates] == sorted(
        (one.probability for one in candidates), reverse=True
    )
    assert sum(one.probability for one in candidates) <= 1 + 1e-6


def test_several_blanks_agree_because_the_surest_is_filled_first(likes: Run) -> None:
    found = Filler(likes)("The good ___ likes ___ always.", best=4)
    assert len(found.blanks) == 2 and all(len(one) == 4 for one in found.blanks)
    animal, food = (one.text for one in found.chosen)
    assert LIKES[animal] == food and str(found) == f"The good {animal} likes {food} always."
    # What was filled second is given the first: surer than while both were open.
    alone = {one.text: one.probability for one in found.blanks[1]}
    assert max(one.probability for one in found.chosen) > 0.5
    assert found.score == pytest.approx(sum(math.log(one.probability) for one in found.chosen))
    assert len(found.ids) == 2 and food in alone


def test_a_blank_of_several_tokens_is_a_word_of_their_product(likes: Run) -> None:
    filler, vocabulary = Filler(likes), likes.target_text
    (candidates,) = filler("The old cat likes ___ today.", best=3, pieces=2).blanks
    before = vocabulary.encode_lists(["The old cat likes"])[0]
    behind = [*vocabulary.encode_lists(["today."])[0], vocabulary.eos]
    mask, place = vocabulary.mask, len(before)
    assert mask is not None
    for one in candidates:
        first, second = one.ids
        begins, goes_on = vocabulary.pieces(one.ids)
        assert begins.startswith("▁") and not goes_on.startswith("▁")
        nothing = log_probabilities(likes, [*before, mask, mask, *behind])[place, first]
        half = log_probabilities(likes, [*before, first, mask, *behind])[place + 1, second]
        assert one.probability == pytest.approx(float((nothing + half).exp()), rel=1e-4)


@pytest.mark.parametrize("best", [2, 12])
@pytest.mark.parametrize("pieces", [1, 2, 3])
@pytest.mark.parametrize("blanks", [1, 2, 4])
@pytest.mark.parametrize("before", ["", "The old cat likes milk today. " * 8])
def test_as_many_tokens_are_told_as_are_read(
    before: str, blanks: int, pieces: int, best: int, likes: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a server counts before it begins; a beam may find fewer than it has room for."""
    text, filler, read = before + "The ___ cat ___ milk ___ ___.", Filler(likes), 0
    text = text.replace("___", "old", 4 - blanks)
    ask = filler.engine.output_log_probabilities

    def counted(values: Sequence[Sequence[int]], places: Sequence[Sequence[int]]) -> Any:
        nonlocal read
        read += sum(map(len, values))
        return ask(values, places)

    monkeypatch.setattr(filler.engine, "output_log_probabilities", counted)
    assert len(filler(text, best, pieces).blanks) == blanks
    told = filler.tokens_read(text, best, pieces)
    assert (told == read) if pieces == 1 else (0.6 * told < read <= told)


@pytest.mark.parametrize("pieces", [1, 2])
def test_of_a_long_text_the_tokens_nearest_to_a_blank_are_read(likes: Run, pieces: int) -> None:
    filler = Filler(likes)
    room, end = filler.context - 1, filler.source_ids("")[-1]
    text = "The cat likes milk. " * 9 + "The old cow likes ___ today." + " The dog likes ___." * 9
    values = list(filler._tokenise(text, pieces, 1024).values)
    places = [place for place, one in enumerate(values) if one == filler.source_ids("___")[0]]
    assert len(values) > 3 * filler.context and len(places) == 10 * pieces
    blanks = filler(text, pieces=pieces).blanks
    assert [len(one) for one in blanks] == [5] * 10
    for number in (0, 4, 9):
        at = places[number * pieces]
        # The middle of the window, but where the text ends.
        begin = min(at + pieces // 2 - room // 2, len(values) - 1 - room)
        seen = [*values[begin : begin + room], end]
        likeliest = blanks[number][0]
        found = log_probabilities(likes, seen)[at - begin, likeliest.ids[0]]
        if pieces == 1:
            assert math.exp(found) == pytest.approx(likeliest.probability, rel=1e-4)
        else:
            assert math.exp(found) >= likeliest.probability
    assert filler(text, pieces=pieces).text.startswith("The cat likes milk. " * 9 + "The old cow")
    with pytest.raises(DragomanError, match="31 tokens at most are read"):
        filler.source_ids(text)


@pytest.mark.parametrize("lossless", [False, True])
def test_blanks_stand_where_a_token_stood(texts: Path, tmp_path: Path, lossless: bool) -> None:
    """A text with one token replaced by a blank is read as the text with that token masked."""
    recipe = recipe_of_likes(
        texts, f"text.lossless={str(lossless).lower()}", "text.byte_fallback=true",
        "text.vocabulary=360", "training.updates=1", "training.validate_every=0",
    )  # fmt: skip
    run = trained_run(recipe, tmp_path / "run")
    filler, vocabulary = Filler(run), run.target_text
    text = "The smallest child likes milky cakes, today (always)."
    (tokens,) = vocabulary.encode_lists([text])
    for place, piece in enumerate(vocabulary.pieces(tokens)):
        if piece in ("▁",) or piece.startswith("<0x"):
            continue
        blank = with_blanks(vocabulary, np.array(tokens, np.int32), [place])
        read = filler.source_ids(blank)
        rest = [vocabulary.mask if n == place else t for n, t in enumerate(tokens)]
        assert read == [*rest, vocabulary.eos], blank
        (candidates,) = filler(blank, best=vocabulary.size).blanks
        assert tuple(tokens[place : place + 1]) in [one.ids for one in candidates], blank


def test_what_is_measured_is_the_mean_over_what_was_hidden(likes: Run, tmp_path: Path) -> None:
    lines = ["The old cat likes milk today.", "The small bear likes honey always."]
    part = tmp_path / "part.txt"
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found, vocabulary = MaskedEvaluation()(likes, [part]), likes.target_text
    nll, count = 0.0, 0
    for tokens in vocabulary.encode_lists(lines):
        for place, token in enumerate(tokens):
            values = [vocabulary.mask if n == place else t for n, t in enumerate(tokens)]
            known = log_probabilities(likes, [*values, vocabulary.eos])  # type: ignore[list-item]
            nll -= float(known[place, token])
            count += 1
    assert found.alone.tokens == found.tokens == count
    assert found.scores["pseudo_perplexity"] == pytest.approx(math.exp(nll / count), rel=1e-4)
    assert 2 <= found.masked.tokens < count and found.texts == 2
    again = MaskedEvaluation()(likes, [part])
    assert again.scores == found.scores
    assert "hides one token at a time" in found.table()
    (tmp_path / "nothing.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(DragomanError, match="no text to measure"):
        MaskedEvaluation()(likes, [tmp_path / "nothing.txt"])


def test_of_nothing_everything_is_0() -> None:
    assert MaskedSums(0.0, 0, 0).scores == {"loss": 0.0, "perplexity": 1.0, "accuracy": 0.0}
    assert MaskedSums(math.log(8), 1, 1).scores["perplexity"] == pytest.approx(8)


def test_masks_belong_to_the_examples_however_a_batch_is_cut(
    likes: Run, texts: Path, tmp_path: Path
) -> None:
    prepared = prepare(likes.recipe, likes.folder, lambda _: None)
    examples = MaskedTexts(prepared.train, likes.recipe, prepared.forms)

    def by_example(update: int, *cut: list[int]) -> dict[int, tuple[list[int], list[int]]]:
        found = {}
        for some in cut:
            batch = examples.batch(update, some)
            ends = np.cumsum(batch.source.layout.lengths)
            for name, end, length in zip(batch.ids, ends, batch.source.layout.lengths, strict=True):
                inside = (batch.places >= end - length) & (batch.places < end)
                read = batch.source.values[end - length : end].tolist()
                found[name] = (read, (batch.places[inside] - (end - length)).tolist())
        return found

    whole = by_example(3, [5, 9, 2, 7])
    assert by_example(3, [7], [2, 5], [9]) == whole
    assert by_example(4, [5, 9, 2, 7]) != whole
    other = recipe_of_likes(texts, "seed=2")
    again = MaskedTexts(prepared.train, other, prepared.forms).batch(3, [5, 9, 2, 7])
    assert again.source.values.tolist() != [v for read, _ in whole.values() for v in read]


def test_pieces_are_the_texts_cut_so_that_the_end_symbol_fits() -> None:
    class Held:
        corpora = (CorpusRange(0, 3),)
        lengths = {"target": np.array([7, 0, 3], np.int32)}  # noqa: RUF012

        def tokens(self, side: str, example: int, part: slice = slice(None)) -> Tokens:
            return (np.arange(7, dtype=np.int32) + 10 * example)[part]

    pieces = TextPieces(Held(), 4)
    assert len(pieces) == 4 and pieces.corpora[0].last == 4
    assert [pieces.piece(n).tolist() for n in range(4)] == [
        [0, 1, 2], [3, 4, 5], [6], [20, 21, 22],
    ]  # fmt: skip
    assert pieces.lengths["target"].tolist() == [3, 3, 1, 3]


def test_resumed_is_uninterrupted(texts: Path, tmp_path: Path) -> None:
    short = ["training.updates=12", "training.validate_every=6", "training.checkpoint_every=6"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder, updates in ((whole, 12), (cut, 6)):
        recipe = recipe_of_likes(texts, *short, "training.schedule.kind=constant")
        recipe = recipe.change([f"training.updates={updates}"])
        train(recipe, folder, say=lambda _: None, display=False, measure=False)
    path = cut / "recipe.toml"
    path.write_text(path.read_text().replace("updates = 6", "updates = 12"), encoding="utf-8")
    resume(cut, say=lambda _: None, display=False)
    ours, theirs = Run.open(whole).model().state_dict(), Run.open(cut).model().state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_command_line_knows_the_task(likes: Run, texts: Path, dragoman: Dragoman) -> None:
    said = dragoman("fill", likes.folder, "The old cow likes ___ today.", "--best", "3")
    assert said.code == 0 and said.out.splitlines()[0] == "The old cow likes grass today."
    assert [line.split()[0] for line in said.out.splitlines()[2:]] == [
        "blank", "grass", *(line.split()[0] for line in said.out.splitlines()[4:]),
    ]  # fmt: skip
    assert len(said.out.splitlines()) == 6
    plain = dragoman("fill", likes.folder, "The old cow likes ___ today.", "--json")
    told = json.loads(plain.out)
    assert told["text"] == "The old cow likes grass today."
    assert told["blanks"][0][0]["text"] == "grass" and len(told["blanks"][0]) == 5
    lines = dragoman("fill", likes.folder, "--text", stdin=b"A ___.\n\n___ cat.\n")
    assert lines.code == 0 and [bool(line) for line in lines.out.splitlines()] == [
        True,
        False,
        True,
    ]
    alone = dragoman("fill", likes.folder, "A ___ likes ___.", "The ___.", "--text")
    assert alone.code == 0 and len(alone.out.splitlines()) == 2 and "___" not in alone.out
    evaluated = dragoman("evaluate", likes.folder)
    assert evaluated.code == 0 and "pseudo-perplexity" in evaluated.out
    scores = json.loads((likes.folder / "scores.json").read_text())["scores"]
    assert set(scores) == {"loss", "perplexity", "accuracy", "pseudo_perplexity"}
    long = "The old cat likes ___ " + "today " * 1200
    use = f"dragoman fill {likes.folder}"
    for command, wrong in (
        (("fill", likes.folder, "The cat likes milk."), "has no blank. Write ___"),
        (("fill", likes.folder, long), "and 1,023 tokens at most are read"),
        (("fill", likes.folder, "___", "--text", "--json"), "use only one"),
        (("evaluate", likes.folder, "--beam", "2"), "Leave it out"),
        (("evaluate", likes.folder, "--set", "window=9"), "Leave out --set"),
        (("evaluate", likes.folder, texts, texts), "measured on one file of texts"),
        (("write", likes.folder, "The"), use),
        (("translate", likes.folder, "The cat."), use),
        (("score", likes.folder, texts), use),
        (("align", likes.folder, "a", "b"), "cannot align words"),
        (("shortlist", likes.folder), use),
    ):
        refused = dragoman(*command)
        assert refused.code == 1 and wrong in refused.err and "Traceback" not in refused.err, (
            command, refused.err
        )  # fmt: skip
        assert len(refused.err.splitlines()) == 1, refused.err


def test_it_is_looked_into(likes: Run, dragoman: Dragoman, tmp_path: Path) -> None:
    page = tmp_path / "look.html"
    said = dragoman("look", likes.folder, "The old cat likes ___ today.", "--to", page)
    assert said.code == 0 and "The old cat likes milk today." in said.out, said.err
    assert "encoder, layer 2" in said.out and page.stat().st_size > 1000
    hidden = dragoman("look", likes.folder, "The old cat likes ___ today.", "--hide", "cat")
    assert hidden.code == 0 and "hidden: “cat”" in hidden.out, hidden.err
    about = ("--run", likes.folder, "--sentence", "The old cat likes ___ today.")
    drawn = dragoman("figure", "attention-encoder", *about, "--to", tmp_path / "encoder.svg")
    assert drawn.code == 0 and (tmp_path / "encoder.svg").is_file(), drawn.err
    for name in ("temperature", "length-penalty", "head-importance"):
        refused = dragoman("figure", name, *about)
        assert refused.code == 1 and "This encoder model writes nothing" in refused.err, refused.err
    refused = dragoman("look", likes.folder, "The cat ___.", "--prefix", "The")
    assert refused.code == 1 and "writes no text" in refused.err


@pytest.mark.system
def test_the_demo_trains_measures_and_fills(dragoman: Dragoman, tmp_path: Path) -> None:
    """All of it but for the size of the model and the length of the training."""
    folder = tmp_path / "demo"
    changes = (
        "training.updates=2", "training.validate_every=0", "model.layers=1", "model.model_dim=32",
        "model.ffn_dim=32",
    )  # fmt: skip
    settings = [word for change in changes for word in ("--set", change)]
    said = dragoman("demo", "--task", "fill", "--to", folder, *settings)
    assert said.code == 0, said.err
    assert "synthetic" in said.out and "pseudo-perplexity" in said.out
    assert "The ___ eats the ___." in said.out and "encoder, layer 1" in said.out
    assert Run.open(folder).languages == ("en",) and (folder / "report.html").is_file()
    assert "translate, write, fill, classify" in dragoman("demo", "--task", "sing").err


def test_other_runs_do_not_fill(texts: Path, tmp_path: Path) -> None:
    recipe = Recipe.load("demo-letters").change(["training.updates=1", "model.model_dim=16"])
    plain = recipe.model_dump(mode="json", exclude_none=True)
    del plain["data"]["embedded"]
    recipe = Recipe.parse(plain, [f'data.train=[{{source="{texts}", format="text"}}]'])
    run = trained_run(recipe, tmp_path / "letters")
    with pytest.raises(RunError, match="fills no blanks: dragoman write"):
        Filler(run)
    assert Writer(run) and package.Filler is Filler


def test_a_masked_run_writes_nothing(likes: Run) -> None:
    with pytest.raises(RunError, match=r"writes no text\. To use it: dragoman fill"):
        Engine.open(likes, EngineSettings())


def test_a_file_of_text_becomes_a_recipe(texts: Path) -> None:
    recipe, epochs = recipe_of([str(texts)], task="masked", texts="text")
    assert (recipe.task, recipe.model.kind, recipe.text.kind) == ("masked", "encoder", "bpe")
    assert epochs and recipe.training.metric == "loss"
    with pytest.raises(RecipeError, match="a masked language model learns from texts alone"):
        recipe_of([str(texts), str(texts)], task="masked")
    with pytest.raises(RecipeError, match=r'"decoder" writes and reads nothing.*one of encoder'):
        Recipe.parse({"task": "masked", "model": {"kind": "decoder"}})
    with pytest.raises(RecipeError, match="must not do"):
        Recipe.parse({"task": "masked", "model": {"kind": "encoder"}, "data": {"moses": True}})
