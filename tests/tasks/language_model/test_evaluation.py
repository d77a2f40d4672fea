"""A task without a source, by a model that reads nothing: the same trainer, search and server."""

from __future__ import annotations

import asyncio
import csv
import json
import math
import re
from pathlib import Path

import pytest
import torch
from command_line import Dragoman
from recipe_of_files import recipe_of
from serving_echo import client_of, echo_run, open_run
from trained_run import on_texts, trained_run

from dragoman.base.errors import DragomanError, RecipeError, RunError
from dragoman.engine.engine import Engine
from dragoman.engine.settings import EngineSettings
from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import kernels_fit, use_precision
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.serving.operate.settings import ServeSettings
from dragoman.tasks.catalogue import TASKS, Recipe, Run, runtime_of
from dragoman.tasks.language_model.evaluation import (
    LanguageModelEvaluation,
    LanguageModelValidation,
)
from dragoman.tasks.language_model.writer import Writer
from dragoman.tasks.shared.evaluation import texts_of
from dragoman.tasks.translation.translator import Translator

SMALL = [
    "model.model_dim=48", "model.ffn_dim=96", "model.layers=2", "plan.tokens_per_update=1024",
    "training.updates=60", "training.validate_every=30", "training.schedule.warmup=10",
    "training.schedule.peak=4e-3", "training.precision=fp32", "evaluation.dev_sentences=5",
]  # fmt: skip


@pytest.fixture(scope="module")
def texts(parallel_text: tuple[Path, Path]) -> Path:
    """German alone, a sentence a line."""
    return parallel_text[1]


def recipe_of_letters(texts: Path, *changes: str) -> Recipe:
    return on_texts("demo-letters", texts, *SMALL, *changes)


@pytest.fixture(scope="module")
def letters(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "letters"
    return trained_run(recipe_of_letters(texts), folder)


def test_validation_predicts_each_token_once_and_where_the_text_ends(letters: Run) -> None:
    """Also of texts that fill their windows to the last place."""
    form, context = letters.forms.written, letters.recipe.plan.context
    pairs = [Pair(n, "", ("Der Hund " * 99)[:n]) for n in range(context - 3, 2 * context + 3)]
    lengths = [len(one) for one in form.vocabulary.encode([pair.target for pair in pairs])]
    assert {context - 1, 2 * context - 1} <= set(lengths)
    validation = LanguageModelValidation(
        letters.model(), letters.recipe, letters.forms, pairs, torch.device("cpu")
    )
    read = [len(batch.target_in.values) for batch in validation.batches]
    assert read == [len(batch.target_out) for batch in validation.batches]
    ends = sum(int((batch.target_out == form.eos).sum()) for batch in validation.batches)
    assert sum(read) == sum(lengths) + len(pairs) and ends == len(pairs)


def test_it_learns_and_says_so_in_its_own_terms(letters: Run, texts: Path) -> None:
    validations = [line for line in letters.metrics() if line["kind"] == "validation"]
    assert set(validations[0]["scores"]) == set(TASKS["language-model"].metrics)
    losses = [line["scores"]["loss"] for line in validations]
    assert losses[-1] < losses[0] < math.log(letters.target.size)
    assert letters.metadata()["metric"] == "loss"
    first = validations[-1]["samples"][0]
    assert first["source"] and first["translation"]
    lines = texts.read_text(encoding="utf-8").replace(" ", "").splitlines()
    whole = (first["source"] + first["reference"]).replace(" ", "")
    assert any(line.startswith(whole) for line in lines)  # what it was given, and what follows


def test_what_it_scores_is_the_sum_over_its_steps(
    letters: Run, texts: Path, tmp_path: Path
) -> None:
    lines = texts.read_text(encoding="utf-8").splitlines()[:20]
    part = tmp_path / "part.txt"
    part.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text, model = letters.target_text, letters.model()
    nll = 0.0
    for line in lines:
        ids = text.encode([line])[0].tolist()
        state = model.start(model.encode(Sequences.of([torch.tensor([text.eos])])))
        for last, wanted in zip([text.bos, *ids], [*ids, text.eos], strict=True):
            logits = model.step(torch.tensor([[last]]), state)[0].detach().double()
            nll -= float(torch.log_softmax(logits, 0)[wanted])
    found = LanguageModelEvaluation()(letters, [part])
    assert found.texts == 20 and found.length.bytes == part.stat().st_size
    assert found.nll == pytest.approx(nll, rel=1e-5)
    assert found.scores["bits_per_byte"] == pytest.approx(nll / math.log(2) / found.length.bytes)
    assert found.scores["perplexity"] == pytest.approx(math.exp(nll / found.length.tokens))


def test_a_test_set_is_called_by_its_file(letters: Run, tmp_path: Path) -> None:
    part = tmp_path / "part.txt"
    part.write_text("Der Hund.\n\nDie Katze.\n", encoding="utf-8")
    named = letters.recipe.change([f"data.test.source={part}", "data.test.format=text"])
    for run, files in ((letters, [part]), (Run(letters.folder, named), [])):
        texts, name = texts_of(run, files)
        assert (list(texts), name) == (["Der Hund.", "Die Katze."], "part.txt")
    assert texts_of(letters, [])[1] == "the held-out test set"


def test_text_that_is_not_the_runs_is_told_before_it_is_measured(
    letters: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert letters.recipe.languages.target == "de"
    subtitles = "1\n00:00:01,000 --> 00:00:02,500\nThe dog sleeps.\n"
    for name, content, words in (
        ("own", "Der Hund schläft in dem Haus, weil er müde ist.\n" * 3, None),
        (
            "other",
            "ძაღლი წიგნს დღეს ხედავს.\n" * 3,
            "other should be German and reads as Georgian",
        ),
        ("film", subtitles, "film holds subtitles"),
        ("trees", "(S (NP (NN dog)) (VP (VB sleeps)) (. .))\n", "trees holds bracketed trees"),
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
        caplog.clear()
        LanguageModelEvaluation()(letters, [tmp_path / name])
        assert words is None or words in caplog.text
        assert words is not None or "warning" not in caplog.text


def test_it_writes_on_from_what_it_is_given(letters: Run) -> None:
    writer = Writer(letters)
    (tokens,) = letters.forms.target.tokens(["Der Hund"])
    assert list(writer.ids_to_show("Der Hund")) == list(tokens)
    greedy = SearchSettings(beam=1, max_length=40)
    ((one,), (other,)) = writer(["Der Hund", ""], greedy)
    assert one.text.startswith("Der Hund") and len(one.text) > len("Der Hund") and other.text
    drawn = SearchSettings(sampling=SamplingSettings(seed=3), n_best=4, max_length=30)
    first, again = (writer(["Die"], drawn)[0] for _ in range(2))
    assert [t.text for t in first] == [t.text for t in again]
    assert len({t.text for t in first}) > 1 and all(t.text.startswith("Die") for t in first)
    with pytest.raises(RunError, match=r"does not translate: dragoman write"):
        Translator(letters)


def test_what_it_shows_piece_by_piece_is_what_it_writes(letters: Run) -> None:
    writer = Writer(letters)
    greedy = SearchSettings(beam=1, max_length=40)
    ((whole,),) = writer(["Der Hund"], greedy)
    given = writer.tokens("Der Hund")
    pieces = list(writer.stream("Der Hund", greedy, longest=40 - given))
    assert len(pieces) > 1 and "Der Hund" + "".join(pieces) == whole.text
    drawn = SearchSettings(sampling=SamplingSettings(seed=3))
    first, again = ("".join(writer.stream("Die", drawn, longest=60)) for _ in range(2))
    assert first == again
    stop = first[4:6]
    stopped = "".join(writer.stream("Die", drawn, longest=60, stop=["§", stop]))
    assert stopped == first[: first.index(stop)]


def test_a_text_goes_on_beyond_the_context(letters: Run) -> None:
    """Each window after the first begins with the last half of what there is."""
    writer = Writer(letters)
    writer.context = 16
    settings = SearchSettings(beam=1, min_length=1000)  # never ends
    begin = "Der Hund schläft."
    vocabulary, long = letters.target_text, writer.tokens("Der Hund schläft.")
    assert long >= writer.context  # gone on with all the same
    text = begin + "".join(writer.stream(begin, settings, longest=30))
    written = vocabulary.encode([begin])[0].tolist()
    while len(written) < long + 30:
        kept = written if len(written) < 16 else written[-8:]
        limit = min(16, len(kept) + long + 30 - len(written))
        one = settings.model_copy(update={"max_length": limit, "min_length": limit})
        (nothing,) = writer.engine.source.values([""])
        ((best, *_),) = writer.engine.search([writer.engine.request(nothing, one, kept)])
        written = [*written[: len(written) - len(kept)], *best.tokens]
    assert text == vocabulary.decode_exact(written)


def test_the_command_line_knows_the_task(letters: Run, dragoman: Dragoman, tmp_path: Path) -> None:
    said = dragoman("write", letters.folder, "Der", "-n", "3", "--longest", "20", "--seed", "1")
    assert said.code == 0 and len(said.out.splitlines()) == 3
    assert all(line.startswith("Der") for line in said.out.splitlines())
    evaluated = dragoman("evaluate", letters.folder)
    assert evaluated.code == 0 and "bits per byte" in evaluated.out
    assert "perplexity" in json.loads((letters.folder / "scores.json").read_text())["scores"]
    for wrong, words in (
        (("translate", letters.folder, "Hallo"), "does not translate: dragoman write"),
        (("evaluate", letters.folder, "--beam", "2"), "--beam: "),
        (("evaluate", letters.folder, "--output", "x"), "--output: "),
        (("evaluate", letters.folder, "one.txt", "two.txt"), "Leave two.txt out"),
        (("shortlist", letters.folder), "it reads no text"),
    ):
        refused = dragoman(*wrong)
        assert refused.code == 1 and words in refused.err and "Traceback" not in refused.err


def test_it_is_looked_into_from_the_command_line(
    letters: Run, dragoman: Dragoman, tmp_path: Path
) -> None:
    page, numbers, text = tmp_path / "look.html", tmp_path / "look.csv", "Der Hund schläft."
    said = dragoman("look", letters.folder, text, "--pieces", "--to", page)
    assert said.code == 0, said.err
    assert text in said.out and "decoder, layer 2, mean of the heads" in said.out
    assert text in page.read_text(encoding="utf-8")
    assert dragoman("look", letters.folder, text, "--pieces", "--to", numbers).code == 0
    rows = list(csv.reader(numbers.read_text(encoding="utf-8").splitlines()))[1:]
    assert {row[0] for row in rows} == {"decoder"}
    mass: dict[tuple[str, ...], float] = {}
    for row in rows:  # attention, layer, head, row, looking, column, looked at, weight
        mass[tuple(row[:4])] = mass.get(tuple(row[:4]), 0.0) + float(row[-1])
        assert int(row[5]) <= int(row[3]) or float(row[-1]) == 0, "nothing looks ahead"
    model, tokens = letters.model(), letters.target.tokens([text])[0]
    assert len(mass) == len(model.attentions) * model.attentions[0].heads * (len(tokens) + 1)
    assert all(value == pytest.approx(1, abs=1e-5) for value in mass.values())
    refused = dragoman("look", letters.folder, text, "--importance")
    assert refused.code == 1 and "has no held-out pairs" in refused.err
    off = dragoman("look", letters.folder, text, "--head-off", "decoder.*.*")
    (told,) = [line for line in off.out.splitlines() if "log P" in line]
    before, after = map(float, re.findall(r"-\d+\.\d+", told))
    engine = Engine.open(letters, EngineSettings(precision="fp32"))
    (scored,) = engine.score(letters.source.values([""]), [tokens])
    assert before == pytest.approx(sum(scored.token_log_probabilities), abs=0.01) and after < before
    for wrong in (("--hide", "Hund"), ("--target", "x"), ("--prefix", "x"), ("--gold", numbers)):
        refused = dragoman("look", letters.folder, text, *wrong)
        assert refused.code == 1 and wrong[0] in refused.err and "reads nothing" in refused.err


@pytest.mark.parametrize("name", ["attention-decoder", "temperature", "head-importance"])
def test_figures_are_made_of_it(
    letters: Run, dragoman: Dragoman, tmp_path: Path, name: str
) -> None:
    asked = ("--run", letters.folder, "--sentence", "Der Hund")
    said = dragoman("figure", name, *asked, "--to", tmp_path / "figure.svg")
    assert said.code == 0, said.err
    assert (tmp_path / "figure.svg").read_text(encoding="utf-8").startswith("<svg")
    refused = dragoman("figure", "attention-cross", *asked)
    assert refused.code == 1 and "no attention from target to source" in refused.err


def test_lstm_layers_learn_and_write_as_any_other_kind(texts: Path, tmp_path: Path) -> None:
    plain = recipe_of_letters(texts).model_dump(mode="json", exclude_none=True)
    plain["model"] = {"kind": "recurrent-decoder", "model_dim": 64, "layers": 2}
    # What is learned from windows of 32 letters is measured on whole texts.
    changes = ["plan.context=32", "evaluation.window=500", "plan.tokens_per_update=512",
               "training.updates=30", "training.validate_every=15"]  # fmt: skip
    recipe = Recipe.parse(plain, changes)
    run = trained_run(recipe, tmp_path / "run")
    losses = [one["scores"]["loss"] for one in run.metrics() if one["kind"] == "validation"]
    assert losses[-1] < losses[0] < math.log(run.target.size)
    assert len("".join(Writer(run).stream("Der", SearchSettings(beam=1), longest=20))) > 5
    part = tmp_path / "part.txt"
    part.write_text(" ".join(texts.read_text(encoding="utf-8").splitlines()[:9]), encoding="utf-8")
    whole, cut = (LanguageModelEvaluation()(run, [part], changes=c) for c in ((), ["window=32"]))
    assert whole.context == 500 and cut.context == 32 and whole.nll != cut.nll


def test_a_recipe_must_fit_its_task(texts: Path, parallel_text: tuple[Path, Path]) -> None:
    with pytest.raises(
        RecipeError, match=r"cannot be measured for a language model. Use one of loss"
    ):
        recipe_of_letters(texts, "training.metric=bleu")
    with pytest.raises(RecipeError, match="a language model learns only from texts"):
        recipe_of_letters(texts, f'data.train=[{{source="{texts}", target="{texts}"}}]')
    with pytest.raises(RecipeError, match="a translator has two sides"):
        Recipe.parse({"data": {"train": [{"source": str(texts), "format": "text"}]}})
    with pytest.raises(RecipeError, match=r"no such task\. Use one of translation, language-model"):
        Recipe.parse({"task": "poetry"})
    assert Recipe.parse({}).training.metric == "bleu"


def test_it_is_served_and_looked_into_as_any_run(letters: Run) -> None:
    served = open_run(letters, ServeSettings(), "letters")

    async def check() -> None:
        async with client_of(served) as client:
            look = {"text": "", "run": "letters", "attention": ["decoder"], "max_length": 12}
            answer = await client.post("/v1/look", json=look)
            assert answer.status_code == 200, answer.text
            seen = answer.json()
            assert seen["source_tokens"] == ["</s>"]
            assert seen["model"]["attentions"] == {"encoder": [], "decoder": [4, 4], "cross": []}
            layers, heads, rows, columns = seen["attention"]["decoder"]["shape"]
            assert (layers, heads) == (2, 4) and rows == columns == len(seen["target_tokens"])
            answer = await client.get("/v1/runs/letters")
            assert answer.status_code == 200 and answer.json()["target"] == "de"

    asyncio.run(check())


def test_one_file_and_the_recipe_of_a_language_model(texts: Path) -> None:
    recipe, epochs = recipe_of([str(texts)], base="demo-letters")
    assert recipe.task == "language-model" and recipe.data.embedded is None and epochs is None
    assert [corpus.format for corpus in recipe.data.train] == ["text"]
    assert recipe.data.split.dev > 0 and recipe.name == texts.name.split(".")[0]
    with pytest.raises(RecipeError, match="learns from texts alone: give one file"):
        recipe_of([str(texts), str(texts)], base="demo-letters")


def test_a_text_by_itself_gets_a_recipe(texts: Path, tmp_path: Path) -> None:
    """What its texts are, how much is held out, and in which language it is, are found out."""
    lines = texts.read_text(encoding="utf-8").splitlines()
    whole, parted = tmp_path / "novel.txt", tmp_path / "poems.txt"
    whole.write_text("\n".join(lines), encoding="utf-8")
    parted.write_text("\n\n".join(lines), encoding="utf-8")
    recipe, epochs = recipe_of([str(whole)], task="language-model")
    (corpus,) = recipe.data.train
    assert corpus.format == "file" and recipe.languages.target == "de" and epochs
    size = len(whole.read_text(encoding="utf-8"))
    assert corpus.section == max(500, size // 200) and recipe.text.lossless
    assert recipe.data.split.dev * size / corpus.section > 2
    masked, _ = recipe_of([str(whole)], task="masked")
    assert (masked.plan.context, masked.model.dropout) == (64, 0.0)
    assert (recipe.plan.context, recipe.model.dropout) == (256, 0.2)
    recipe, _ = recipe_of([str(parted)], task="language-model")
    assert recipe.data.train[0].format == "documents" and recipe.data.train[0].section == 20_000
    recipe, _ = recipe_of([str(tmp_path)], task="language-model", texts="documents")
    assert recipe.data.train[0].format == "documents" and recipe.name == tmp_path.name
    for wrong, words in (
        ({"task": "poetry"}, "no such task"),
        ({"task": "translation", "base": "demo-letters"}, "belongs to the task language-model"),
        ({"texts": "file"}, "--texts works only with --task language-model"),
        (
            {"task": "language-model", "languages": "en-de"},
            "have one language. Use a form such as en",
        ),
    ):
        with pytest.raises(RecipeError, match=words):
            recipe_of([str(whole)], **wrong)
    with pytest.raises(RecipeError, match="--task language-model"):
        recipe_of([str(whole)])


@pytest.mark.slow  # models are trained, and measured token by token
@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_documents_longer_than_the_context_are_learned_whole(
    texts: Path, tmp_path: Path, kind: str
) -> None:
    """A text with line ends, in windows; its figures are those of one token after the other."""
    lines = texts.read_text(encoding="utf-8").splitlines()
    (tmp_path / "novel.txt").write_text("\n".join(lines), encoding="utf-8")
    recipe, _ = recipe_of(
        [str(tmp_path / "novel.txt")], task="language-model",
        changes=[
            *SMALL, f"text.kind={kind}", "text.vocabulary=400", "plan.context=24",
            "training.updates=100", "training.validate_every=100",
        ],
    )  # fmt: skip
    run = trained_run(recipe, tmp_path / "run")
    pairs = run.notes()["pairs"]
    assert min(pairs.values()) > 0 and sum(pairs.values()) > 20
    part = tmp_path / "part.txt"
    part.write_text("\n".join(lines[:9]), encoding="utf-8")
    alone = LanguageModelEvaluation()(run, [part], changes=["stride=24"])
    carried = LanguageModelEvaluation()(run, [part], changes=["stride=3"])
    assert alone.length == carried.length and alone.length.bytes == part.stat().st_size + 1
    vocabulary, model = run.target_text, run.model()
    whole = [vocabulary.bos, *vocabulary.encode([part.read_text(encoding="utf-8")])[0].tolist()]
    whole.append(vocabulary.eos)
    nothing = Sequences.of([torch.tensor([vocabulary.eos])])
    for found, stride in ((alone, 24), (carried, 3)):
        nll = 0.0
        for place, wanted in enumerate(whole[1:]):
            begin = 0 if place < 24 else (place - 24) // stride * stride + stride
            state = model.start(model.encode(nothing))
            logits = model.step(torch.tensor([whole[begin : place + 1]]), state)[0].double()
            nll -= float(torch.log_softmax(logits.detach(), 0)[wanted])
        assert found.nll == pytest.approx(nll, rel=1e-4)
    assert carried.nll != pytest.approx(alone.nll, rel=1e-3)
    with pytest.raises(DragomanError, match="Set only window and stride"):
        LanguageModelEvaluation()(run, [part], changes=["beam=3"])
    with pytest.raises(RecipeError, match="greater than the window of 24"):
        LanguageModelEvaluation()(run, [part], changes=["stride=25"])


def test_a_kind_of_model_must_fit_the_task() -> None:
    with pytest.raises(RecipeError, match=r'"transformer" reads a source .*one of decoder, rec'):
        Recipe.parse({"task": "language-model"})
    with pytest.raises(RecipeError, match=r'"decoder" writes .*one of transformer, recurrent'):
        Recipe.parse({"model": {"kind": "decoder"}})
    with pytest.raises(RecipeError, match=r'"encoder" reads and writes nothing, .*of decoder, rec'):
        Recipe.parse({"task": "language-model", "model": {"kind": "encoder"}})


def test_a_client_is_told_that_its_text_is_not_read(letters: Run) -> None:
    served = open_run(letters, ServeSettings(), "letters")

    async def check() -> None:
        async with client_of(served, echo_run("a", ("en", "de"))) as client:
            asked = {"text": "Der Hund", "run": "letters"}
            answer = await client.post("/v1/translate", json=asked)
            assert (
                answer.status_code == 400
                and "Send the request to /v1/write" in answer.json()["error"]
            )
            languages = (await client.get("/languages")).json()
            assert [language["code"] for language in languages] == ["en", "de"]
            answer = await client.post(
                "/translate", json={"q": "Brot", "source": "auto", "target": "de"}
            )
            assert answer.json()["translatedText"] == "Brot"  # by the run that reads
            settings = (await client.get("/frontend/settings")).json()
            assert settings["language"]["target"]["code"] == "de"

    asyncio.run(check())


def test_validation_leaves_the_arithmetic_of_training_as_it_is(letters: Run) -> None:
    """A kind without fast ways to run is searched with itself, as training computes."""
    network = letters.model().train()
    if not kernels_fit(network, "bf16"):
        pytest.skip("this machine has no native kernels for bf16")
    use_precision(network, "bf16", by_kernels=True)
    packed = network.output_layer.packed
    assert packed is not None
    device, forms = torch.device("cpu"), Forms(letters.source, letters.target)
    pairs = [Pair(1, "", "Der Hund schläft."), Pair(2, "", "Das Tier ist müde.")]
    validation = (
        runtime_of(letters.recipe.spec)
        .parts()
        .validation(network, letters.recipe, forms, pairs, device)
    )
    with torch.no_grad():
        found = validation(1)
    assert network.output_layer.packed is packed
    first = found.samples[0]
    assert (first.source, first.reference.strip()) == ("Der Hund", "schläft.")
